//! Facts: what a decision rests on, how old it may be, and what the record tells of it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test may panic"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate::backend::{FakeTool, Step, ToolError};
use toolgate::clock::{ManualClock, Millis};
use toolgate::gate::BuildError;
use toolgate::ledger::Store;
use toolgate::refusal::{Code, Effect, Fix, Retry};
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Reply, Tool};

const MINUTE: Duration = Duration::from_secs(60);
/// No payout above what is left for the day.
const RULE: &str = r#"permit (principal, action, resource);
    @id("payout.limit") @message("That is above the limit of today.")
    forbid (principal, action == Action::"payout", resource)
    unless { context.facts has limit && context.input.cents <= context.facts.limit.left };"#;

fn keys(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn get_limit(limits: &FakeTool) -> Tool {
    let contract = json!({
        "description": "Look up what is left of an account's limit.", "effect": "read",
        "input": {"properties": {"account": {"type": "string", "pattern": "^acc_"}}, "required": ["account"]},
        "output": {"type": "object", "properties": {"left": {"type": "integer"}}, "required": ["left"]},
    });
    limits.tool("get_limit", keys(&contract))
}

fn payout(max_age: &str, more: &Value) -> Map<String, Value> {
    let mut contract = keys(&json!({
        "description": "Pay out. Moves money.", "effect": "write",
        "input": {"properties": {"account": {"type": "string"}, "cents": {"type": "integer"}},
                  "required": ["account", "cents"]},
        "facts": {"limit": {"tool": "get_limit", "args": {"account": "{account}"}, "max_age": max_age}},
    }));
    contract.extend(keys(more));
    contract
}

struct Desk {
    gate: Gate,
    limits: FakeTool,
    clock: Arc<ManualClock>,
    store: Store,
}

impl Desk {
    fn new(max_age: &str, limits: FakeTool, more: &Value) -> Self {
        let (clock, store) = (Arc::new(ManualClock::at(Millis(1_796_000_000_000))), Store::memory());
        let gate = Gate::builder()
            .tool(get_limit(&limits))
            .tool(FakeTool::fixed(json!({})).tool("payout", payout(max_age, more)))
            .policy(RULE)
            .clock(Arc::clone(&clock) as _)
            .store(store.clone())
            .build()
            .unwrap();
        Self { gate, limits, clock, store }
    }

    async fn pay(&self, session: &Session, account: &str, cents: i64) -> Reply {
        let arguments = json!({"account": account, "cents": cents}).to_string();
        self.gate.call(Call::new("call_1", "payout", arguments), session).await.unwrap()
    }

    /// How often the limit was looked up.
    fn looks(&self) -> usize {
        self.limits.seen().len()
    }
}

fn person(name: &str) -> Session {
    Session::new(Principal::new("local", name), "acme")
}

fn code(reply: &Reply) -> Option<Code> {
    reply.code()
}

/// What the trace tells of where the limit came from.
fn source(reply: &Reply) -> Value {
    let inform = reply.trace().stages().iter().find(|stage| stage.stage == "inform").unwrap();
    inform.learned.get("sources").unwrap()["limit"].clone()
}

#[tokio::test]
async fn a_fact_is_looked_up_anew_for_each_decision_if_nothing_else_is_said() {
    let desk = Desk::new("0s", FakeTool::fixed(json!({"left": 10})), &json!({}));
    for _ in 0..3 {
        assert_eq!(code(&desk.pay(&person("alice"), "acc_71", 50).await), Some(Code::RuleFailed));
    }
    assert_eq!(desk.looks(), 3);
}

#[tokio::test]
async fn a_fact_that_is_young_enough_is_used_again_and_an_older_one_is_looked_up() {
    // What was ten thousand when somebody looked is a hundred by now.
    let limits = FakeTool::queue([Step::gives(json!({"left": 10_000})), Step::gives(json!({"left": 100}))]);
    let desk = Desk::new("60s", limits, &json!({}));
    assert_eq!(code(&desk.pay(&person("alice"), "acc_71", 20_000).await), Some(Code::RuleFailed));
    desk.clock.advance(MINUTE - Duration::from_secs(1));
    let again = desk.pay(&person("alice"), "acc_71", 20_000).await;
    assert_eq!((code(&again), desk.looks()), (Some(Code::RuleFailed), 1));
    assert!(source(&again)["age_ms"].as_u64().unwrap() >= 59_000, "{}", source(&again));
    desk.clock.advance(2 * 60 * MINUTE);
    let later = desk.pay(&person("alice"), "acc_71", 5000).await;
    assert_eq!((code(&later), desk.looks()), (Some(Code::RuleFailed), 2), "it would have passed by the old limit");
    assert!(source(&later)["age_ms"].as_u64().unwrap() < 59_000);
}

#[tokio::test]
async fn no_answer_is_shared_between_people_tenants_roles_or_arguments() {
    let desk = Desk::new("1h", FakeTool::fixed(json!({"left": 10})), &json!({}));
    let globex = Session::new(Principal::new("local", "alice"), "globex");
    let issued = Session::new(Principal::new("https://id", "alice"), "acme");
    let people = [person("alice"), person("bob"), globex, issued, person("alice").role("manager")];
    for (n, session) in people.iter().enumerate() {
        desk.pay(session, "acc_71", 50).await;
        assert_eq!(desk.looks(), n + 1);
    }
    desk.pay(&person("alice"), "acc_72", 50).await;
    assert_eq!(desk.looks(), people.len() + 1);
    desk.pay(&person("alice"), "acc_71", 51).await;
    assert_eq!(desk.looks(), people.len() + 1, "another sum is the same question");
}

#[tokio::test]
async fn two_writes_of_one_lane_never_share_a_balance() {
    let limits = FakeTool::queue([Step::gives(json!({"left": 1000})), Step::gives(json!({"left": 400}))]);
    let desk = Desk::new("1h", limits, &json!({"lane": {"key": ["{account}"]}}));
    assert!(desk.pay(&person("alice"), "acc_71", 600).await.is_ok());
    assert_eq!(code(&desk.pay(&person("alice"), "acc_71", 601).await), Some(Code::RuleFailed));
    assert_eq!(desk.looks(), 2, "the first one moved the lane");
    assert_eq!(code(&desk.pay(&person("alice"), "acc_71", 602).await), Some(Code::RuleFailed));
    assert_eq!(desk.looks(), 2, "a refusal moves nothing");
}

#[tokio::test]
async fn a_fact_that_cannot_be_looked_up_refuses_and_no_old_answer_stands_in() {
    let down = || Step::fails(ToolError::unavailable("the bank is down"));
    let limits = FakeTool::queue([Step::gives(json!({"left": 10_000})), down(), down()]);
    let desk = Desk::new("60s", limits, &json!({}));
    assert_eq!(code(&desk.pay(&person("alice"), "acc_71", 20_000).await), Some(Code::RuleFailed));
    desk.clock.advance(MINUTE + Duration::from_secs(1));
    for looks in [2, 3] {
        let reply = desk.pay(&person("alice"), "acc_71", 5).await;
        let refusal = reply.refusal().unwrap();
        assert_eq!((refusal.code(), refusal.fix(), refusal.effect()), (Code::RuleFailed, Fix::Operator, Effect::None));
        assert_eq!(refusal.retry_advice(), Retry::After(Duration::from_secs(5)));
        assert_eq!((source(&reply)["state"].as_str(), desk.looks()), (Some("failed"), looks), "a failure is not kept");
    }
}

#[tokio::test]
async fn a_fact_that_came_too_slowly_is_too_old_to_decide_by() {
    let slow = || Step::gives(json!({"left": 10_000})).after(Duration::from_millis(80));
    let desk = Desk::new("20ms", FakeTool::queue([slow(), slow()]), &json!({}));
    let reply = desk.pay(&person("alice"), "acc_71", 5).await;
    let refusal = reply.refusal().map(|refusal| (refusal.code(), refusal.fix()));
    assert_eq!(
        (refusal, desk.looks()),
        (Some((Code::RuleFailed, Fix::Operator)), 2),
        "it is asked once more, and no more"
    );
    let inform = reply.trace().stages().iter().find(|stage| stage.stage == "inform").unwrap();
    let why = inform.learned.get("why").unwrap().as_str().unwrap();
    assert!(why.starts_with("the fact limit: it was ") && why.ends_with(" ms old, and may be 20 ms"), "{why}");
}

#[tokio::test]
async fn a_kept_answer_that_comes_of_age_while_another_is_looked_up_is_looked_up_again() {
    let limits = FakeTool::fixed(json!({"left": 10_000}));
    let slow = FakeTool::queue([
        Step::gives(json!({"left": 1})),
        Step::gives(json!({"left": 1})).after(Duration::from_millis(600)),
    ]);
    let mut contract = payout("400ms", &json!({}));
    contract["facts"]["day"] = json!({"tool": "get_day", "args": {"account": "{account}"}});
    let gate = Gate::builder()
        .tool(get_limit(&limits))
        .tool(slow.tool("get_day", {
            let mut day = keys(&json!({"description": "Look up the sum of a day.", "effect": "read"}));
            let input = json!({"properties": {"account": {"type": "string"}}, "required": ["account"]});
            day.insert("input".into(), input);
            day.insert("output".into(), json!({"type": "object", "properties": {"left": {"type": "integer"}}}));
            day
        }))
        .tool(FakeTool::fixed(json!({})).tool("payout", contract))
        .policy(RULE)
        .store(Store::memory())
        .build()
        .unwrap();
    let alice = person("alice");
    let pay = || gate.call(Call::new("call_1", "payout", r#"{"account":"acc_71","cents":20000}"#), &alice);
    assert_eq!(code(&pay().await.unwrap()), Some(Code::RuleFailed));
    let second = pay().await.unwrap();
    assert_eq!(second.refusal().unwrap().rule_id(), Some("payout.limit"), "it is decided, and by a fresh answer");
    assert_eq!(limits.seen().len(), 2);
    assert!(source(&second)["age_ms"].as_u64().unwrap() <= 400, "{}", source(&second));
}

#[tokio::test]
async fn the_record_tells_value_source_and_age_of_each_fact_and_what_was_absent() {
    let limits = FakeTool::queue([Step::gives(json!({"left": 10})), Step::gives(Value::Null)]);
    let desk = Desk::new("60s", limits, &json!({}));
    desk.pay(&person("alice"), "acc_71", 50).await;
    desk.pay(&person("alice"), "acc_72", 50).await;
    desk.pay(&person("alice"), "wrong form", 50).await;
    desk.gate.finish().await.unwrap();
    let told: Vec<(Value, Value)> = desk
        .store
        .tail(10)
        .await
        .unwrap()
        .iter()
        .map(|sealed| {
            let body: Value = serde_json::from_str(&sealed.body).unwrap();
            let inform = body["stages"].as_array().unwrap().iter().find(|stage| stage["stage"] == "inform").unwrap();
            let mut source = inform["sources"]["limit"].clone();
            assert!(source["age_ms"].as_u64().unwrap() < 60_000);
            source.as_object_mut().unwrap().remove("age_ms");
            (inform.get("facts").cloned().unwrap_or_default(), source)
        })
        .collect();
    let from = |state: &str| json!({"tool": "get_limit", "state": state});
    let absent = (Value::Null, from("absent"));
    let mut expected = vec![(json!({"limit": {"left": 10}}), from("found")), absent.clone(), absent];
    if told.first() != expected.first() {
        expected.reverse();
    }
    assert_eq!(told, expected);
    assert_eq!(desk.looks(), 2, "an id of the wrong form is of nothing that is there");
}

#[tokio::test]
async fn an_erring_forbid_refuses_and_its_operator_hears_of_it_once_a_minute() {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let ears = Arc::clone(&heard);
    let erring = r#"permit (principal, action, resource);
        @id("sum.too_large") forbid (principal, action == Action::"payout", resource)
        when { context.input.cents * 9000000000000000 > 5 && context.input.account == "acc_suspended" };"#;
    let gate = Gate::builder()
        .tool(get_limit(&FakeTool::fixed(json!({"left": 10}))))
        .tool(FakeTool::fixed(json!({})).tool("payout", payout("0s", &json!({}))))
        .policy(erring)
        .store(Store::memory())
        .tell(move |notice| ears.lock().unwrap().push(notice.to_string()))
        .build()
        .unwrap();
    let pay = async |cents: i64| {
        let call = Call::new("call_1", "payout", json!({"account": "acc_71", "cents": cents}).to_string());
        gate.call(call, &person("alice")).await.unwrap()
    };
    assert!(pay(1).await.is_ok(), "it says nothing of this one");
    let first = pay(5000).await;
    assert_eq!(code(&first), Some(Code::Forbidden), "Cedar alone would have passed over the forbid");
    assert!(!first.refusal().unwrap().text().contains("sum.too_large"));
    assert_eq!(code(&pay(5001).await), Some(Code::Forbidden));
    let words = format!(
        "the policy sum.too_large could not be evaluated for a call of payout, which counts as a no (ref {})",
        first.reference()
    );
    assert_eq!(*heard.lock().unwrap(), [words]);
}

#[test]
fn no_fact_may_be_older_than_an_hour() {
    let build = |max_age: &str| {
        Gate::builder()
            .tool(get_limit(&FakeTool::fixed(json!({"left": 10}))))
            .tool(FakeTool::fixed(json!({})).tool("payout", payout(max_age, &json!({}))))
            .policy(RULE)
            .store(Store::memory())
            .build()
    };
    assert!(build("1h").is_ok());
    let Err(BuildError::Faults { tools, .. }) = build("61m") else { panic!("a fault") };
    assert_eq!(tools[0].problem.at, "/facts/limit/max_age");
}

#[test]
fn a_group_of_actions_is_named_apart_from_tools_and_tags() {
    let with = |group: &str| {
        let tool = get_limit(&FakeTool::fixed(json!({"left": 10}))).group(group);
        let policy = format!("permit (principal, action in Action::\"{group}\", resource);");
        Gate::builder().tool(tool).policy(policy).store(Store::memory()).build()
    };
    let gate = with("upstream:bank").unwrap();
    assert!(gate.cedar_schema().contains("action \"get_limit\" in [\"read\", \"upstream:bank\"]"));
    assert_eq!(gate.tools(&person("alice")).len(), 1);
    for group in ["tag:bank", "sink:mail", "bank", ":bank", "upstream:", "Up:bank"] {
        assert!(matches!(with(group), Err(BuildError::Faults { .. })), "{group}");
    }
}
