//! Faults that were found and mended: each story is named after what went wrong.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate::admission::Admission;
use toolgate::backend::{Answer, Backend, Dispatch, Failure, FailureKind, Found, Looking, Lookup, Running};
use toolgate::clock::{ManualClock, Millis};
use toolgate::contract::Contract;
use toolgate::gate::{BuildError, Ruling};
use toolgate::json::Limits;
use toolgate::ledger::{Store, Wanted};
use toolgate::refusal::{Code, Effect};
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Reply, Tool};

const PERMIT_ALL: &str = "permit (principal, action, resource);";

fn person(name: &str) -> Session {
    Session::new(Principal::new("local", name), "acme")
}

fn keys(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn call(gate: &Gate, session: &Session, tool: &str, arguments: Value) -> Reply {
    gate.call(Call::new("call_1", tool, arguments.to_string()), session).await.unwrap()
}

/// A backend that answers as it is told, and notes who asked and with which key.
struct Told {
    run: Box<dyn Fn(usize) -> Answer + Send + Sync>,
    look: Box<dyn Fn() -> Found + Send + Sync>,
    runs: AtomicUsize,
    keys: Mutex<Vec<String>>,
    askers: Mutex<Vec<String>>,
}

impl Told {
    fn runs(run: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Arc<Self> {
        Self::new(run, || Found::Absent)
    }

    fn looks(look: impl Fn() -> Found + Send + Sync + 'static) -> Arc<Self> {
        Self::new(|_| Answer::done("{}"), look)
    }

    fn new(
        run: impl Fn(usize) -> Answer + Send + Sync + 'static,
        look: impl Fn() -> Found + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            run: Box::new(run),
            look: Box::new(look),
            runs: AtomicUsize::new(0),
            keys: Mutex::default(),
            askers: Mutex::default(),
        })
    }

    fn count(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

impl Backend for Told {
    // The work begins in `run` itself, as the trait allows.
    fn run(&self, dispatch: Dispatch) -> Running<'_> {
        let n = self.runs.fetch_add(1, Ordering::SeqCst);
        self.keys.lock().unwrap().extend(dispatch.context().idempotency_key().map(str::to_owned));
        let answer = (self.run)(n);
        Box::pin(async move { answer })
    }

    fn look(&self, lookup: Lookup) -> Looking<'_> {
        self.askers.lock().unwrap().push(lookup.context().session().principal().subject.clone());
        let found = (self.look)();
        Box::pin(async move { found })
    }
}

fn unknown(_: usize) -> Answer {
    Answer::failed(Effect::Unknown, Failure::new(FailureKind::Reported, "lost", "the connection broke after sending"))
}

/// A write on an account, reconciled by `find`.
fn pay(more: Value, backend: &Arc<Told>) -> Tool {
    let mut contract = keys(json!({
        "description": "Pays. Moves money.",
        "effect": "write",
        "input": {"properties": {"account": {"type": "string"}, "cents": {"type": "integer"}}, "required": ["account", "cents"]},
        "lane": {"key": ["{account}"]},
        "reconcile": {"tool": "find", "args": {"key": "{idempotency_key}"}, "done": "/paid", "absent_after": "10s"},
    }));
    contract.extend(keys(more));
    Tool::new("pay", contract, Arc::clone(backend) as Arc<dyn Backend>)
}

fn find(longest_key: usize, backend: &Arc<Told>) -> Tool {
    let contract = keys(json!({
        "description": "Finds a payment by its key.",
        "effect": "read",
        "input": {"properties": {"key": {"type": "string", "maxLength": longest_key}}, "required": ["key"]},
        "output": {"type": "object", "properties": {"paid": {"type": "integer"}}},
    }));
    Tool::new("find", contract, Arc::clone(backend) as Arc<dyn Backend>)
}

fn gate(tools: impl IntoIterator<Item = Tool>, clock: &Arc<ManualClock>) -> Gate {
    let builder = Gate::builder().policy(PERMIT_ALL).store(Store::memory()).clock(Arc::clone(clock) as _);
    tools.into_iter().fold(builder, |builder, tool| builder.tool(tool)).build().unwrap()
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Millis(1_000_000)))
}

#[tokio::test]
async fn a_look_up_that_could_not_be_asked_was_taken_for_proof_that_nothing_happened() {
    let (payments, finder, clock) = (Told::runs(unknown), Told::looks(|| Found::Absent), clock());
    // No key is this short, so the tool is never asked.
    let gate = gate([pay(json!({}), &payments), find(10, &finder)], &clock);
    let (alice, arguments) = (person("alice"), json!({"account": "a", "cents": 5}));
    assert_eq!(call(&gate, &alice, "pay", arguments.clone()).await.effect(), Effect::Unknown);
    clock.advance(Duration::from_secs(3600));
    let again = call(&gate, &alice, "pay", arguments).await;
    assert_eq!(again.code(), Some(Code::OutcomeUnknown));
    assert_eq!(payments.count(), 1);
}

#[tokio::test]
async fn what_is_absent_long_after_the_lease_did_not_happen_and_runs_again() {
    let first_is_lost = |n| if n == 0 { unknown(n) } else { Answer::done(r#"{"paid":5}"#) };
    let (payments, finder, clock) = (Told::runs(first_is_lost), Told::looks(|| Found::Absent), clock());
    let gate = gate([pay(json!({}), &payments), find(100, &finder)], &clock);
    let (alice, arguments) = (person("alice"), json!({"account": "a", "cents": 5}));
    call(&gate, &alice, "pay", arguments.clone()).await;
    let early = call(&gate, &alice, "pay", arguments.clone()).await;
    assert_eq!(early.code(), Some(Code::OutcomeUnknown));
    clock.advance(Duration::from_secs(60));
    let again = call(&gate, &alice, "pay", arguments).await;
    assert!(again.is_ok(), "{:?}", again.refusal());
    let keys = payments.keys.lock().unwrap();
    assert_eq!(keys[0], keys[1], "all attempts of one action share the key that is sent downstream");
}

#[tokio::test]
async fn a_short_secret_could_be_tried_against_the_key_of_the_action_on_the_record() {
    let (payments, finder, clock) = (Told::runs(unknown), Told::looks(|| Found::Absent), clock());
    let hiding = json!({"input": {"properties": {"account": {"type": "string"}, "pin": {"type": "string", "x-secret": true}}, "required": ["account"]}});
    let gate = gate([pay(hiding, &payments), find(100, &finder)], &clock);
    let alice = person("alice");
    call(&gate, &alice, "pay", json!({"account": "a", "pin": "1234"})).await;
    let key = gate.store().ledger(Wanted::default(), None, 1).await.unwrap().items[0].key;
    let why = format!("the bank knows nothing of pin 1234{}", ".".repeat(2_000));
    gate.rule(key, &Ruling::NotDone, &why, &alice).await.unwrap();
    call(&gate, &alice, "pay", json!({"account": "a", "pin": "1234"})).await;
    clock.advance(Duration::from_secs(60));
    call(&gate, &alice, "pay", json!({"account": "a", "pin": "1234"})).await;
    gate.finish().await.unwrap();
    let records = gate.store().tail(100).await.unwrap();
    let sent = payments.keys.lock().unwrap().clone();
    let mut shown: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for record in &records {
        assert!(!sent.iter().any(|key| record.body.contains(key)), "{}", record.body);
        let body: Value = serde_json::from_str(&record.body).unwrap();
        let stages = body["stages"].as_array().into_iter().flatten();
        let keys = stages.chain([&body]).filter_map(|place| place["idempotency_key"].as_str());
        shown.entry(body["kind"].as_str().unwrap().to_owned()).or_default().extend(keys.map(str::to_owned));
    }
    let all: BTreeSet<&String> = shown.values().flatten().collect();
    let sent: BTreeSet<&String> = sent.iter().collect();
    assert_eq!(all.len(), sent.len(), "records of one action have one key: {shown:?}");
    let told = records.iter().find_map(|record| {
        let body: Value = serde_json::from_str(&record.body).unwrap();
        body["why"].as_str().map(str::to_owned)
    });
    let told = told.unwrap();
    assert!(told.starts_with("the bank knows nothing of pin [secret]..") && told.chars().count() == 1_000, "{told}");
    assert!(shown["ruling"].len() == 1 && shown["reconciled"].len() == 1, "{shown:?}");
    assert!(shown["outcome"].is_superset(&shown["ruling"]) && shown["outcome"].is_superset(&shown["reconciled"]));
}

#[tokio::test]
async fn reconciling_asked_as_whoever_came_by_instead_of_whoever_opened_the_action() {
    let (payments, finder, clock) =
        (Told::runs(unknown), Told::looks(|| Found::Found(br#"{"paid":5}"#.to_vec())), clock());
    let gate = gate([pay(json!({}), &payments), find(100, &finder)], &clock);
    call(&gate, &person("alice"), "pay", json!({"account": "a", "cents": 5})).await;
    call(&gate, &person("mia"), "pay", json!({"account": "a", "cents": 6})).await;
    assert_eq!(*finder.askers.lock().unwrap(), ["alice"]);
    let replay = call(&gate, &person("alice"), "pay", json!({"account": "a", "cents": 5})).await;
    assert!(replay.replayed());
    assert_eq!(replay.result(), Some(r#"{"paid":5}"#));
}

#[tokio::test]
async fn the_key_to_look_for_in_the_backend_was_on_no_record() {
    let (payments, finder) = (Told::runs(unknown), Told::looks(|| Found::Absent));
    let gate = gate([pay(json!({}), &payments), find(100, &finder)], &clock());
    let reply = call(&gate, &person("alice"), "pay", json!({"account": "a", "cents": 5})).await;
    let records = gate.store().history(reply.reference().as_str()).await.unwrap();
    let sent = payments.keys.lock().unwrap()[0].clone();
    assert!(records.iter().any(|record| record.body.contains(&sent)), "{records:?}");
}

#[tokio::test]
async fn a_backend_that_panicked_before_its_future_left_the_entry_open() {
    let (payments, finder) = (Told::runs(|_| panic!("at once")), Told::looks(|| Found::Absent));
    let gate = gate([pay(json!({}), &payments), find(100, &finder)], &clock());
    let reply = call(&gate, &person("alice"), "pay", json!({"account": "a", "cents": 5})).await;
    assert_eq!((reply.code(), reply.effect()), (Some(Code::ToolFailed), Effect::Unknown));
}

#[tokio::test]
async fn a_panic_in_a_look_up_took_the_whole_turn_with_it() {
    let (looked, other) = (Told::looks(|| panic!("in a look-up")), Told::runs(|_| Answer::done("1")));
    let own_fact = json!({
        "description": "Reads an account.", "effect": "read",
        "input": {"properties": {"id": {"type": "string"}}, "required": ["id"]},
        "output": {"type": "object", "properties": {"tenant": {"type": "string"}}},
        "resource": {"type": "Account", "id": "{id}", "fact": "account", "tenant": "/tenant"},
        "facts": {"account": {"tool": "account", "args": {"id": "{id}"}}},
    });
    let plain = json!({"description": "Counts.", "effect": "read", "input": {"properties": {}}});
    let tools = [
        Tool::new("account", keys(own_fact), Arc::clone(&looked) as Arc<dyn Backend>),
        Tool::new("count", keys(plain), Arc::clone(&other) as Arc<dyn Backend>),
    ];
    let gate = gate(tools, &clock());
    let alice = person("alice");
    let (refused, fine) =
        tokio::join!(call(&gate, &alice, "account", json!({"id": "a"})), call(&gate, &alice, "count", json!({})));
    assert_eq!(refused.code(), Some(Code::RuleFailed));
    assert!(fine.is_ok());
}

#[tokio::test]
async fn an_equal_call_of_another_run_was_done_anew_with_nothing_in_between() {
    let (payments, finder) = (Told::runs(|_| Answer::done(r#"{"paid":5}"#)), Told::looks(|| Found::Absent));
    let mut tool = pay(json!({"once": {"repeat": "after_other"}}), &payments);
    // Without a lane of its own the tool's lane is its run.
    tool = tool.key("lane", json!({"key": ["{account}"]}));
    let gate = gate([tool, find(100, &finder)], &clock());
    let alice = person("alice");
    let (one, two) = (json!({"account": "a", "cents": 5}), json!({"account": "a", "cents": 6}));
    assert!(!call(&gate, &alice, "pay", one.clone()).await.replayed());
    assert!(call(&gate, &alice.clone().in_run("r2"), "pay", one.clone()).await.replayed());
    assert!(!call(&gate, &alice, "pay", two).await.replayed());
    assert!(!call(&gate, &alice, "pay", one).await.replayed(), "another write of its lane came between");
}

#[tokio::test]
async fn a_run_of_its_own_lane_did_not_see_what_another_run_had_done() {
    let payments = Told::runs(|_| Answer::done("{}"));
    let contract = json!({
        "description": "Pays.", "effect": "write", "once": {"repeat": "after_other"},
        "input": {"properties": {"cents": {"type": "integer"}}, "required": ["cents"]},
    });
    let gate = gate([Tool::new("pay", keys(contract), Arc::clone(&payments) as Arc<dyn Backend>)], &clock());
    call(&gate, &person("alice").in_run("r1"), "pay", json!({"cents": 5})).await;
    assert!(call(&gate, &person("alice").in_run("r2"), "pay", json!({"cents": 5})).await.replayed());
    assert_eq!(payments.count(), 1);
}

#[tokio::test]
async fn a_failed_action_lent_its_downstream_key_to_another_one() {
    let refused = |_| Answer::failed(Effect::None, Failure::new(FailureKind::Reported, "declined", "declined"));
    let (payments, finder) = (Told::runs(refused), Told::looks(|| Found::Absent));
    let gate = gate([pay(json!({"once": {"key": ["{account}"]}}), &payments), find(100, &finder)], &clock());
    for cents in [5, 5, 6] {
        call(&gate, &person("alice"), "pay", json!({"account": "a", "cents": cents})).await;
    }
    let keys = payments.keys.lock().unwrap();
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[1], keys[2]);
}

#[tokio::test]
async fn a_person_was_asked_to_approve_a_call_that_its_key_refuses() {
    let (payments, finder) = (Told::runs(|_| Answer::done("{}")), Told::looks(|| Found::Absent));
    let approval = json!({
        "once": {"key": ["{account}"]},
        "approval": {"when": "context.input.cents > 100", "role": "manager"},
    });
    let gate = gate([pay(approval, &payments), find(100, &finder)], &clock());
    let alice = person("alice");
    assert!(call(&gate, &alice, "pay", json!({"account": "a", "cents": 5})).await.is_ok());
    let conflict = call(&gate, &alice, "pay", json!({"account": "a", "cents": 500})).await;
    assert_eq!((conflict.code(), conflict.effect()), (Some(Code::KeyConflict), Effect::None));
    assert!(gate.approvals(&alice).await.unwrap().is_empty());
    let dry = gate.dry_run(Call::new("c", "pay", r#"{"account":"a","cents":500}"#), &alice).await.unwrap();
    assert_eq!(dry.code(), Some(Code::KeyConflict));
}

#[tokio::test]
async fn the_record_of_a_second_proposal_named_an_approval_that_never_was() {
    let (payments, finder) = (Told::runs(|_| Answer::done("{}")), Told::looks(|| Found::Absent));
    let approval = json!({"approval": {"when": "true", "role": "manager"}});
    let gate = gate([pay(approval, &payments), find(100, &finder)], &clock());
    for _ in 0..2 {
        let reply = call(&gate, &person("alice"), "pay", json!({"account": "a", "cents": 5})).await;
        let id = reply.refusal().unwrap().approval_notice().unwrap().id.clone();
        let records = gate.store().history(reply.reference().as_str()).await.unwrap();
        assert!(records[0].body.contains(&id), "{}", records[0].body);
    }
}

#[tokio::test]
async fn an_approval_that_was_refused_left_no_record() {
    let (payments, finder) = (Told::runs(|_| Answer::done("{}")), Told::looks(|| Found::Absent));
    let approval = json!({"approval": {"when": "true", "role": "manager"}});
    let gate = gate([pay(approval, &payments), find(100, &finder)], &clock());
    let alice = person("alice").role("manager");
    let reply = call(&gate, &alice, "pay", json!({"account": "a", "cents": 5})).await;
    let id = reply.refusal().unwrap().approval_notice().unwrap().id.clone();
    gate.approve(&id, &alice).await.unwrap_err();
    gate.finish().await.unwrap();
    let last = gate.store().tail(1).await.unwrap().remove(0).body;
    assert!(last.contains(r#""kind":"decision""#) && last.contains(r#""state":"refused""#), "{last}");
}

#[tokio::test]
async fn a_record_that_was_cut_off_at_its_end_shows_against_a_head_that_was_kept() {
    let other = Told::runs(|_| Answer::done("1"));
    let plain = json!({"description": "Counts.", "effect": "read", "input": {"properties": {}}});
    let gate = gate([Tool::new("count", keys(plain), Arc::clone(&other) as Arc<dyn Backend>)], &clock());
    call(&gate, &person("alice"), "count", json!({})).await;
    gate.finish().await.unwrap();
    let head = gate.store().verify(None).await.unwrap().unwrap();
    assert_eq!(gate.store().verify(Some(head.hash)).await.unwrap(), Ok(head));
    let elsewhere = toolgate::json::Digest::of(b"the head of a longer record");
    gate.store().verify(Some(elsewhere)).await.unwrap().unwrap_err();
}

#[tokio::test]
async fn a_secret_stood_in_the_preview_that_is_shown_and_kept() {
    let other = Told::runs(|_| Answer::done("1"));
    let contract = json!({
        "description": "Charges a card.", "effect": "write", "preview": "Charge {card}",
        "input": {"properties": {"card": {"type": "string", "x-secret": true}}, "required": ["card"]},
    });
    let built = Gate::builder()
        .tool(Tool::new("charge", keys(contract), other as Arc<dyn Backend>))
        .policy(PERMIT_ALL)
        .store(Store::memory())
        .build();
    let Err(BuildError::Faults { tools, .. }) = built else { panic!("{built:?}") };
    assert_eq!(tools.iter().map(|fault| fault.problem.at.as_str()).collect::<Vec<_>>(), ["/preview"]);
}

#[tokio::test]
async fn somebody_was_asked_to_approve_a_name_without_its_arguments() {
    let other = Told::runs(|_| Answer::done("1"));
    let contract = json!({
        "description": "Charges a card.", "effect": "write", "approval": {"when": "true", "role": "boss"},
        "input": {"properties": {"cents": {"type": "integer"}, "card": {"type": "string", "x-secret": true}}},
    });
    let gate = Gate::builder()
        .tool(Tool::new("charge", keys(contract), other as Arc<dyn Backend>))
        .policy(PERMIT_ALL)
        .store(Store::memory())
        .build()
        .unwrap();
    call(&gate, &person("alice"), "charge", json!({"cents": 5, "card": "4242"})).await;
    let waiting = gate.approvals(&person("alice")).await.unwrap();
    assert_eq!(waiting[0].preview, r#"charge {"card":"[secret]","cents":5}"#);
}

#[tokio::test]
async fn a_look_up_was_promised_of_a_write_that_nothing_can_look_up() {
    let lost = || Failure::new(FailureKind::Reported, "lost", "the line broke");
    let payments = Told::runs(move |_| Answer::failed(Effect::Unknown, lost()));
    let finder = Told::looks(|| Found::Absent);
    let contract = json!({
        "description": "Pays.", "effect": "write", "input": {"properties": {"cents": {"type": "integer"}}},
    });
    let blind = Tool::new("blind", keys(contract), Arc::clone(&payments) as Arc<dyn Backend>);
    let gate = gate([blind, pay(json!({}), &payments), find(100, &finder)], &clock());
    for _ in 0..2 {
        let reply = call(&gate, &person("alice"), "blind", json!({"cents": 5})).await;
        let refusal = reply.refusal().unwrap();
        assert_eq!(refusal.effect(), Effect::Unknown);
        assert!(refusal.text().contains("nothing here can find it out"), "{}", refusal.text());
    }
    assert_eq!(payments.count(), 1);
    let reply = call(&gate, &person("alice"), "pay", json!({"account": "a", "cents": 5})).await;
    assert!(reply.refusal().unwrap().text().contains("it is looked up first"));
}

#[tokio::test]
async fn a_dry_run_told_the_model_what_only_people_read() {
    let (payments, finder) = (Told::runs(|_| Answer::done("{}")), Told::looks(|| Found::Absent));
    let preview = json!({"preview": "Pay {cents} to {account}"});
    let gate = gate([pay(preview, &payments), find(100, &finder)], &clock());
    let call = Call::new("c", "pay", r#"{"account":"a","cents":5}"#);
    let dry = gate.dry_run(call, &person("alice")).await.unwrap();
    assert_eq!(dry.result(), Some(r#"{"would":"run"}"#));
    assert_eq!(payments.count(), 0);
}

#[tokio::test]
async fn identity_was_only_refused_where_it_stood_at_the_top_and_in_one_spelling() {
    for member in ["TenantId", "tenant-id", "USER_ID"] {
        let nested = json!({"type": "object", "properties": {member: {"type": "string"}}});
        let contract = json!({
            "description": "Reads.", "effect": "read",
            "input": {"properties": {"filter": nested}},
        });
        let other = Told::runs(|_| Answer::done("1"));
        let built = Gate::builder()
            .tool(Tool::new("read_it", keys(contract), other as Arc<dyn Backend>))
            .policy(PERMIT_ALL)
            .store(Store::memory())
            .build();
        let Err(BuildError::Faults { tools, .. }) = built else { panic!("{member} is taken") };
        assert_eq!(tools[0].problem.code, "identity_member");
    }
}

#[tokio::test]
async fn a_forbid_of_somebody_who_cannot_be_was_loaded_and_forbade_nobody() {
    let refused = |policy: &str| {
        let plain = json!({"description": "Counts.", "effect": "read", "input": {"properties": {}}});
        let tool = Tool::new("count", keys(plain), Told::runs(|_| Answer::done("1")) as Arc<dyn Backend>);
        let built = Gate::builder().tool(tool).policy(PERMIT_ALL).policy(policy).store(Store::memory()).build();
        matches!(built, Err(BuildError::Faults { policies, .. }) if policies.len() == 1)
    };
    assert!(refused(r#"forbid (principal == User::"alice", action, resource);"#));
    assert!(refused(r#"forbid (principal == User::"[\"local\", \"alice\"]", action, resource);"#));
    assert!(refused(r#"forbid (principal, action, resource == Tool::"cuont");"#));
    assert!(!refused(r#"forbid (principal == User::"[\"local\",\"alice\"]", action, resource == Tool::"count");"#));
}

#[tokio::test]
async fn advice_named_a_tool_that_the_session_may_not_see() {
    let declined = |_| Answer::failed(Effect::None, Failure::new(FailureKind::Reported, "declined", "declined"));
    let (payments, finder) = (Told::runs(declined), Told::looks(|| Found::Absent));
    let errors = json!({"errors": {"declined": {"code": "declined", "message": "Declined.", "instead": "find"}}});
    let tools = [pay(errors, &payments), find(100, &finder)];
    let gate = tools.into_iter().fold(Gate::builder(), |builder, tool| builder.tool(tool));
    let gate = gate
        .policy(r#"permit (principal, action == Action::"pay", resource);"#)
        .policy(r#"permit (principal in Role::"clerk", action == Action::"find", resource);"#)
        .store(Store::memory())
        .build()
        .unwrap();
    let said = |reply: Reply| serde_json::to_value(&reply).unwrap()["error"]["instead"].clone();
    let arguments = json!({"account": "a", "cents": 5});
    assert_eq!(said(call(&gate, &person("alice"), "pay", arguments.clone()).await), Value::Null);
    assert_eq!(said(call(&gate, &person("mia").role("clerk"), "pay", arguments).await), json!("find"));
}

#[tokio::test]
async fn a_tool_that_repeated_a_secret_brought_it_into_the_record() {
    let repeated = |_| {
        let failure = Failure::new(FailureKind::Reported, "declined", "no card \"4000 0027\" of Ada Byron");
        Answer::failed(Effect::None, failure)
    };
    let contract = json!({
        "description": "Charges a card.", "effect": "write",
        "input": {"properties": {
            "card": {"type": "string", "x-secret": true}, "holder": {"type": "string", "x-personal": true},
        }, "required": ["card", "holder"]},
    });
    let gate = Gate::builder()
        .tool(Tool::new("charge", keys(contract), Told::runs(repeated) as Arc<dyn Backend>))
        .policy(PERMIT_ALL)
        .store(Store::memory())
        .build()
        .unwrap();
    call(&gate, &person("alice"), "charge", json!({"card": "4000 0027", "holder": "Ada Byron"})).await;
    gate.finish().await.unwrap();
    let record: String = gate.store().tail(10).await.unwrap().into_iter().map(|sealed| sealed.body).collect();
    assert!(record.contains("no card"), "{record}");
    assert!(!record.contains("4000 0027") && !record.contains("Ada Byron"), "{record}");
}

/// Levels of three variants each, all of which lead to the next level, above a list of integers.
fn nested_variants(levels: usize) -> Value {
    let variant = |tag: &str, next: usize| json!({ "type": "object", "properties": { tag: { "type": "integer" }, "next": { "$ref": format!("#/$defs/d{next}") } } });
    let level = |next| json!({ "anyOf": [variant("a", next), variant("b", next), variant("c", next)] });
    let mut definitions: Map<String, Value> = (0..levels).map(|n| (format!("d{n}"), level(n + 1))).collect();
    let list = json!({ "type": "array", "items": { "type": "integer" }, "maxItems": 50_000 });
    definitions.insert(format!("d{levels}"), list);
    json!({ "$defs": definitions, "properties": { "top": { "$ref": "#/$defs/d0" } } })
}

#[test]
fn many_wrong_items_below_many_variants_do_not_take_the_memory_of_the_machine() {
    let items = json!(vec!["x"; 20_000]);
    let sent = json!({ "top": (0..7).fold(items, |inner, _| json!({ "a": 1, "b": 1, "c": 1, "next": inner })) });
    for imported in [false, true] {
        for lenient in [json!([]), json!(["integer_as_string", "json_as_string", "null_as_absent", "trim"])] {
            let keys = json!({
                "description": "A tool.", "effect": "read", "imported": imported, "lenient": lenient,
                "input": nested_variants(7),
            });
            let mut admission = Admission::new(Limits::default());
            admission.add(Contract::parse("tool", &keys).unwrap()).unwrap();
            let begun = std::time::Instant::now();
            let refusal = admission.admit(&Call::new("", "tool", sent.to_string())).unwrap_err();
            assert_eq!(refusal.code(), Code::InvalidArguments);
            assert_eq!(refusal.problem_list().len(), 1, "too much is wrong to be told place by place");
            assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
        }
    }
}
