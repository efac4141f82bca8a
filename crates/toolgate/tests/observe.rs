//! Observing: what policies would refuse is on record, and the call goes on. Nothing but policies is only observed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test may panic"
)]

use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate::approval::ApprovalState;
use toolgate::audit::observed::Observed;
use toolgate::backend::{FakeTool, Step, ToolError};
use toolgate::gate::{Builder, Ended, Recorded};
use toolgate::ledger::Store;
use toolgate::refusal::Code;
use toolgate::session::{Principal, Session, Tags};
use toolgate::standing::Granting;
use toolgate::{Call, Gate, Reply, Tool};

const POLICIES: &str = r#"
@id("clerks") permit (principal in Role::"clerk", action == Action::"pay", resource);
@id("anyone.looks") permit (principal, action == Action::"look", resource);
@id("large") @message("That is too much.") @fix("user")
forbid (principal, action == Action::"pay", resource) when { context.input.cents > 1000 };
@id("second.eye") @message("A second person must agree.") @approvers("manager")
forbid (principal, action == Action::"pay", resource) when { context.input.cents > 500 } unless { context.approved };
@id("quiet") forbid (principal, action == Action::"pay", resource) when { context.input.cents == 13 };
@id("broken") forbid (principal, action == Action::"pay", resource)
when { context.input.cents == 77 && context.input.cents * 9223372036854775807 > 0 };
"#;

fn keys(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A payment, with these keys of its contract besides.
fn pay(more: Value) -> (FakeTool, Tool) {
    let mut contract = keys(json!({
        "description": "Pays. Moves money.", "effect": "write", "tags": ["money"],
        "input": {
            "properties": { "cents": { "type": "integer" }, "to": { "type": "string" } }, "required": ["cents"],
        },
    }));
    contract.extend(keys(more));
    let fake = FakeTool::fixed(json!({ "paid": true }));
    let tool = fake.tool("pay", contract);
    (fake, tool)
}

/// A look at an account, which is of the tenant `acme` where its id begins so.
fn look(steps: Vec<Step>) -> Tool {
    let contract = json!({
        "description": "Looks an account up.", "effect": "read",
        "input": { "properties": { "id": { "type": "string" } } },
        "output": { "type": "object", "properties": { "tenant": { "type": "string" } }, "required": ["tenant"] },
    });
    FakeTool::queue(steps).tool("look", keys(contract))
}

fn builder(tool: Tool) -> Builder {
    Gate::builder().tool(tool).tool(look(Vec::new())).policy(POLICIES).store(Store::memory())
}

fn person(name: &str, role: &str) -> Session {
    Session::new(Principal::new("local", name), "acme").role(role)
}

fn clerk() -> Session {
    person("ann", "clerk")
}

async fn call(gate: &Gate, session: &Session, cents: i64) -> Reply {
    gate.call(Call::new("c", "pay", json!({ "cents": cents }).to_string()), session).await.unwrap()
}

/// Everything on record, in order. Nothing can be called afterwards.
async fn records(gate: &Gate) -> Vec<toolgate::audit::Sealed> {
    gate.finish().await.unwrap();
    gate.store().tail(1000).await.unwrap()
}

fn body(record: &toolgate::audit::Sealed) -> Value {
    serde_json::from_str(&record.body).unwrap()
}

#[tokio::test]
async fn what_policies_would_refuse_goes_on_and_is_on_record_with_its_code_and_its_rule() {
    let (fake, tool) = pay(json!({}));
    let gate = builder(tool).observe().build().unwrap();
    let told = [
        (clerk(), 1, None),
        (clerk(), 2000, Some(json!({ "code": "rule_failed", "rule": "large", "rules": ["large"] }))),
        (clerk(), 600, Some(json!({ "code": "approval_required", "rules": ["second.eye"] }))),
        (clerk(), 13, Some(json!({ "code": "forbidden" }))),
        (clerk(), 77, Some(json!({ "code": "forbidden" }))),
        (person("bob", "guest"), 2, Some(json!({ "code": "unknown_tool" }))),
    ];
    for (session, cents, _) in &told {
        let reply = call(&gate, session, *cents).await;
        assert_eq!((reply.code(), reply.result()), (None, Some(r#"{"paid":true}"#)), "{cents}");
    }
    assert_eq!(fake.calls().len(), told.len());
    assert!(gate.approvals(&clerk()).await.unwrap().is_empty(), "nobody is asked");
    let records = records(&gate).await;
    let intents: Vec<Value> = records.iter().map(body).filter(|body| body["kind"] == "intent").collect();
    assert_eq!(intents.len(), told.len());
    for (intent, (_, cents, would)) in intents.iter().zip(&told) {
        let mut noted = intent.get("would_refuse").cloned();
        let why = noted.as_mut().map(|noted| noted.as_object_mut().unwrap().remove("why").unwrap());
        assert_eq!((noted.as_ref(), why.is_some()), (would.as_ref(), would.is_some()), "{cents}: {intent}");
    }
    let why = |place: usize| intents[place]["would_refuse"]["why"].as_str().unwrap();
    assert_eq!((why(3), why(5)), ("forbidden by quiet", "no policy permits it"));
    assert_eq!(why(4), "a policy could not be evaluated: broken");
    let outcomes = records.iter().map(body).filter(|body| body["kind"] == "outcome");
    assert!(outcomes.into_iter().all(|outcome| outcome.get("would_refuse").is_none()), "a call is told of once");
    let observed: Vec<Observed> = records.iter().filter_map(Observed::of).collect();
    let codes: Vec<Option<&str>> =
        observed.iter().map(|call| call.would_refuse.as_ref().map(|would| would.code.as_str())).collect();
    let expected: Vec<Option<&str>> =
        told.iter().map(|(_, _, would)| would.as_ref().and_then(|would| would["code"].as_str())).collect();
    assert_eq!(codes, expected);
}

#[tokio::test]
async fn what_no_policy_says_is_never_only_observed() {
    let resource = json!({
        "input": { "properties": { "cents": { "type": "integer" } }, "required": ["cents"] },
        "facts": { "account": { "tool": "look", "args": { "id": "{cents}" } } },
        "resource": { "type": "Account", "id": "{cents}", "fact": "account", "tenant": "/tenant" },
        "limits": [{ "calls": 1, "per": "1d", "scope": "user" }],
    });
    let (fake, tool) = pay(resource);
    let account = |tenant: &str| Step::gives(json!({ "tenant": tenant }));
    let looks = vec![
        account("globex"),
        Step::gives(Value::Null),
        Step::fails(ToolError::failed("down")),
        account("acme"),
        account("acme"),
        account("acme"),
    ];
    let accounts = json!({
        "description": "Looks an account up.", "effect": "read",
        "input": { "properties": { "id": { "type": "integer" } } },
        "output": { "type": "object", "properties": { "tenant": { "type": "string" } }, "required": ["tenant"] },
    });
    let gate = Gate::builder().tool(tool).tool(FakeTool::queue(looks).tool("look", keys(accounts))).observe();
    let gate = gate.store(Store::memory()).build().unwrap();
    let wrong = gate.call(Call::new("c", "pay", r#"{"cents":"1"}"#), &clerk()).await.unwrap();
    assert_eq!(wrong.code(), Some(Code::InvalidArguments));
    for (cents, code) in [(1, Code::Forbidden), (2, Code::Forbidden), (3, Code::RuleFailed)] {
        assert_eq!(call(&gate, &clerk(), cents).await.code(), Some(code), "{cents}");
    }
    assert_eq!(fake.calls().len(), 0);
    assert_eq!(call(&gate, &clerk(), 4).await.code(), None, "no policy permits anything, and it goes on");
    assert_eq!(call(&gate, &clerk(), 5).await.code(), Some(Code::LimitReached));
    let named = gate.call(Call::new("c", "pay", r#"{"cents":6}"#).approval("apr_none"), &clerk()).await.unwrap();
    assert_eq!(named.code(), Some(Code::ApprovalInvalid));
    let last = records(&gate).await;
    let limited = last.iter().map(body).find(|body| body["code"] == "limit_reached").unwrap();
    assert_eq!(limited["would_refuse"]["code"], "unknown_tool", "it would not have come so far");
}

#[tokio::test]
async fn a_tool_that_is_observed_is_there_for_whoever_its_tags_are_open_to() {
    let names = |gate: &Gate, session: &Session| -> Vec<String> {
        gate.tools(session).into_iter().map(|tool| tool.name().to_owned()).collect()
    };
    let guest = person("bob", "guest");
    let enforced = builder(pay(json!({})).1).build().unwrap();
    assert_eq!(names(&enforced, &guest), ["look"]);
    let gate = builder(pay(json!({})).1).observe().build().unwrap();
    assert_eq!(names(&gate, &guest), ["look", "pay"]);
    let bound = guest.only_tags(Tags::of("reports").unwrap());
    assert_eq!(names(&gate, &bound), Vec::<String>::new());
    assert_eq!(call(&gate, &bound, 1).await.code(), Some(Code::UnknownTool));
}

#[tokio::test]
async fn a_contract_says_for_its_own_tool_whether_its_policies_hold() {
    let observed = builder(pay(json!({ "mode": "observe" })).1);
    let held = builder(pay(json!({ "mode": "enforce" })).1).observe();
    let tried = builder(pay(json!({ "mode": "observe" })).1).observe().enforce();
    for (builder, code) in [(observed, None), (held, Some(Code::RuleFailed)), (tried, Some(Code::RuleFailed))] {
        let gate = builder.build().unwrap();
        let names: Vec<&str> = gate.observed().map(|tool| tool.name()).collect();
        assert_eq!(names.contains(&"pay"), code.is_none(), "{names:?}");
        assert_eq!(call(&gate, &clerk(), 2000).await.code(), code);
    }
    let (_, wrong) = pay(json!({ "mode": "obsrve" }));
    let told = builder(wrong).build().unwrap_err().to_string();
    assert!(told.contains("pay/mode: expected one of: enforce, observe") && told.contains("observe?"), "{told}");
    let (_, observed) = pay(json!({ "mode": "observe" }));
    let gate = builder(observed).build().unwrap();
    assert!(gate.warnings().iter().any(|fault| fault.problem.code == "observed" && fault.problem.at == "/mode"));
}

#[tokio::test]
async fn an_approval_is_neither_asked_for_nor_used_up_while_policies_are_observed() {
    let store = Store::memory();
    let gate = |observe: bool| {
        let builder = builder(pay(json!({})).1).store(store.clone());
        if observe { builder.observe() } else { builder }.build().unwrap()
    };
    let enforced = gate(false);
    let asked = call(&enforced, &clerk(), 600).await;
    let id = asked.refusal().unwrap().approval_notice().unwrap().id.clone();
    enforced.approve(&id, &person("mia", "manager")).await.unwrap();
    assert_eq!(call(&gate(true), &clerk(), 600).await.code(), None);
    let approval = enforced.approval(&id, &clerk()).await.unwrap().unwrap();
    assert_eq!(approval.state, ApprovalState::Granted, "it is still there");
}

#[tokio::test]
async fn a_replay_that_policies_would_refuse_is_given_and_told_as_such() {
    let store = Store::memory();
    let first = builder(pay(json!({})).1).store(store.clone()).build().unwrap();
    assert_eq!(call(&first, &clerk(), 5).await.code(), None);
    let strict = r#"@id("never") @message("Not any more.") forbid (principal, action == Action::"pay", resource);"#;
    let gate = builder(pay(json!({})).1).policy(strict).store(store).observe().build().unwrap();
    let again = call(&gate, &clerk(), 5).await;
    assert!(again.replayed() && again.code().is_none());
    let records = records(&gate).await;
    let replay = records.iter().map(body).find(|body| body["kind"] == "replay").unwrap();
    assert_eq!(replay["would_refuse"]["rule"], "never");
    assert_eq!(records.iter().filter_map(Observed::of).count(), 1, "the first call was judged by policies that held");
}

#[tokio::test]
async fn a_dry_run_says_what_becomes_of_the_call_and_what_would_if_policies_held() {
    let gate = builder(pay(json!({})).1).observe().build().unwrap();
    let tried = async |cents: i64| {
        let call = Call::new("c", "pay", json!({ "cents": cents }).to_string());
        let reply = gate.dry_run(call, &clerk()).await.unwrap();
        serde_json::from_str::<Value>(reply.result().unwrap()).unwrap()
    };
    assert_eq!(tried(1).await, json!({ "would": "run" }));
    let would = json!({ "code": "rule_failed", "rule": "large", "message": "That is too much." });
    assert_eq!(tried(2000).await, json!({ "would": "run", "would_refuse": would }));
    let would = json!({ "code": "approval_required", "message": "A second person must agree." });
    assert_eq!(tried(600).await, json!({ "would": "run", "would_refuse": would }));
    let silent = tried(13).await;
    assert_eq!(silent["would_refuse"]["code"], "forbidden");
    assert!(!silent.to_string().contains("quiet"), "a silent forbid stays silent");
    let records = records(&gate).await;
    assert_eq!(records.iter().filter_map(Observed::of).count(), 0, "what was only tried does not count");
}

#[tokio::test]
async fn a_call_that_a_standing_grant_covers_was_told_as_one_that_would_be_refused() {
    let gate = builder(pay(json!({})).1).observe().build().unwrap();
    let granting = Granting {
        tool: "pay".into(),
        rule: "second.eye".into(),
        to: clerk().principal().clone(),
        calls: Some(1),
        sum: None,
        of: None,
        lasts: Duration::from_secs(3600),
    };
    let boss = person("mia", "manager");
    gate.grant_standing(&granting, &boss).await.unwrap();
    for cents in [600, 601] {
        assert_eq!(call(&gate, &clerk(), cents).await.code(), None);
    }
    let records = records(&gate).await;
    let intents = records.iter().map(body).filter(|body| body["kind"] == "intent");
    assert!(intents.into_iter().all(|intent| intent.get("would_refuse").is_none()), "consent that is there counts");
    let left = gate.standing_grants(&boss).await.unwrap();
    assert_eq!(left[0].left.calls, Some(1), "and nothing of it is used up");
}

#[tokio::test]
async fn observed_calls_are_decided_again_as_what_policies_said_of_them() {
    let gate = builder(pay(json!({})).1).observe().build().unwrap();
    let guest = person("bob", "guest");
    for (session, cents) in
        [(clerk(), 1), (clerk(), 2000), (clerk(), 600), (clerk(), 13), (clerk(), 77), (guest.clone(), 2)]
    {
        assert_eq!(call(&gate, &session, cents).await.code(), None);
    }
    let same = builder(pay(json!({})).1).build().unwrap();
    let calls: Vec<Recorded> = records(&gate).await.iter().filter_map(Recorded::of).collect();
    assert_eq!(calls.len(), 6);
    let words: Vec<&str> = calls
        .iter()
        .map(|call| {
            let Ended::Decided(was) = call.ended() else { panic!("{call:?}") };
            let would = same.rejudge(call).unwrap();
            assert!(!was.differs(&would), "{was:?} and {would:?}");
            was.word()
        })
        .collect();
    let expected = ["permitted", "rule_failed", "approval_required", "forbidden", "forbidden", "unknown_tool"];
    assert_eq!(words, expected);
}
