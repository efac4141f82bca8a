//! Emergency stops: what an operator stops is not called by anybody until it ends or is lifted, in no process that shares
//! the store.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test may panic"
)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use toolgate::backend::{Answer, Backend, Dispatch, Found, Looking, Lookup, Running};
use toolgate::clock::{Clock, ManualClock, Millis};
use toolgate::gate::{self, NotLifted, NotStopped};
use toolgate::ledger::Store;
use toolgate::refusal::{Code, Effect, Fix, Retry};
use toolgate::session::{Principal, Session};
use toolgate::stoppage::{Stoppage, Target};
use toolgate::{Call, Gate, Reply, Tool};

const HOUR: Duration = Duration::from_secs(3600);
const WHY: &str = "the bank reports doubled transfers";

/// Pays, and tells balances. On request it sets a stop while it is asked for a fact.
#[derive(Default)]
struct Bank {
    runs: AtomicUsize,
    looks: AtomicUsize,
    stops_meanwhile: AtomicBool,
    store: OnceLock<Store>,
}

impl Backend for Bank {
    fn run(&self, _: Dispatch) -> Running<'_> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Answer::done(r#"{"left": 100}"#) })
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            if self.stops_meanwhile.load(Ordering::SeqCst) {
                let store = self.store.get().unwrap();
                gate::stop(store, Target::tool("pay"), HOUR, WHY, &operator(), NOW).await.unwrap();
            }
            Found::Found(br#"{"left": 100}"#.to_vec())
        })
    }
}

struct Desk {
    gate: Gate,
    bank: Arc<Bank>,
    clock: Arc<ManualClock>,
    store: Store,
}

const NOW: Millis = Millis(100_000_000);

fn operator() -> Principal {
    Principal::new("os", "operator#1")
}

fn keys(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn person(name: &str, tenant: &str) -> Session {
    Session::new(Principal::new("local", name), tenant)
}

impl Desk {
    fn new() -> Self {
        Self::with(&json!({}), "")
    }

    fn with(more: &Value, policy: &str) -> Self {
        let (store, clock, bank) = (Store::memory(), Arc::new(ManualClock::at(NOW)), Arc::<Bank>::default());
        bank.store.set(store.clone()).ok().unwrap();
        let mut pay = keys(&json!({
            "description": "Pays. Moves money.",
            "effect": "write",
            "input": {"properties": {"to": {"type": "string"}, "cents": {"type": "integer", "minimum": 0}}, "required": ["to"]},
            "facts": {"balance": {"tool": "look", "args": {}}},
        }));
        pay.extend(keys(more));
        let look = keys(&json!({
            "description": "Tells a balance.",
            "effect": "read",
            "input": {"properties": {}},
            "output": {"properties": {"left": {"type": "integer"}}, "required": ["left"]},
        }));
        let tool = |name: &str, contract| Tool::new(name, contract, Arc::clone(&bank) as Arc<dyn Backend>);
        let builder = Gate::builder().policy("permit (principal, action, resource);").policy(policy);
        let builder = builder.tool(tool("pay", pay)).tool(tool("look", look));
        let gate = builder.store(store.clone()).clock(Arc::clone(&clock) as _).build().unwrap();
        Self { gate, bank, clock, store }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Reply {
        self.call_as(&person("alice", "acme"), tool, arguments).await
    }

    async fn call_as(&self, session: &Session, tool: &str, arguments: Value) -> Reply {
        self.gate.call(Call::new("call_1", tool, arguments.to_string()), session).await.unwrap()
    }

    async fn pay(&self, to: &str) -> Reply {
        self.call("pay", json!({"to": to})).await
    }

    /// As another process on the store would do it.
    async fn stop(&self, target: Target) -> Stoppage {
        gate::stop(&self.store, target, HOUR, WHY, &operator(), self.clock.now()).await.unwrap()
    }

    async fn lift(&self, stop: &Stoppage) {
        gate::lift(&self.store, &stop.id, None, &operator(), self.clock.now()).await.unwrap();
    }

    fn runs(&self) -> usize {
        self.bank.runs.load(Ordering::SeqCst)
    }

    async fn records(&self, kind: &str) -> Vec<Value> {
        self.gate.finish().await.unwrap();
        let all = self.store.tail(100).await.unwrap();
        let told = all.iter().map(|record| serde_json::from_str::<Value>(&record.body).unwrap());
        told.filter(|body| body["kind"] == kind).collect()
    }
}

fn is_stopped(reply: &Reply) -> bool {
    let stopped = reply.refusal().is_some_and(|refusal| refusal.text().contains("An operator has stopped this"));
    assert_eq!(stopped, reply.code() == Some(Code::Forbidden), "{:?}", reply.refusal());
    stopped
}

#[tokio::test]
async fn a_stopped_write_is_refused_at_once_and_runs_again_after_the_end() {
    let desk = Desk::new();
    let stop = desk.stop(Target::tool("pay")).await;
    let reply = desk.pay("shop").await;
    let refusal = reply.refusal().unwrap();
    assert_eq!((refusal.code(), refusal.effect(), refusal.fix()), (Code::Forbidden, Effect::None, Fix::Operator));
    assert_eq!(refusal.retry_advice(), Retry::After(HOUR));
    assert!(refusal.text().contains(&stop.until.to_string()), "{}", refusal.text());
    assert!(!serde_json::to_string(&reply).unwrap().contains("bank"), "why is the operator's own");
    assert_eq!((desk.runs(), desk.bank.looks.load(Ordering::SeqCst)), (0, 0), "nothing is even looked up");
    desk.clock.advance(HOUR);
    assert!(desk.pay("shop").await.is_ok());
}

#[tokio::test]
async fn a_stop_that_comes_after_the_decision_is_met_before_anything_runs() {
    let desk = Desk::new();
    desk.bank.stops_meanwhile.store(true, Ordering::SeqCst);
    let reply = desk.pay("shop").await;
    assert!(is_stopped(&reply));
    let last = reply.trace().stages().last().unwrap();
    assert_eq!((last.stage, desk.runs()), ("reserve", 0));
    assert!(last.learned.get("stop").is_some());
}

#[tokio::test]
async fn the_record_tells_which_stop_it_was_and_why() {
    let desk = Desk::new();
    let stop = desk.stop(Target::tool("pay").within("acme")).await;
    assert!(is_stopped(&desk.pay("shop").await));
    desk.lift(&stop).await;
    let refused = desk.records("refusal").await;
    let permit = refused[0]["stages"].as_array().unwrap().iter().find(|stage| stage["stage"] == "permit").unwrap();
    assert_eq!(permit["stop"], json!(stop.id));
    assert_eq!(permit["why"], json!(format!("stopped by operator#1: {WHY}")));
    for kind in ["stopped", "lifted"] {
        let told = &desk.records(kind).await[0];
        assert_eq!((&told["stop"], &told["tool"], &told["tenant"]), (&json!(stop.id), &json!("pay"), &json!("acme")));
        assert_eq!((&told["why"], &told["principal"]["subject"]), (&json!(WHY), &json!("operator#1")));
    }
}

#[tokio::test]
async fn a_stop_is_of_the_tools_and_tenants_that_it_names() {
    let desk = Desk::new();
    let globex = person("bob", "globex");
    for (target, pay_here, pay_there, look_here) in [
        (Target::all(), true, true, true),
        (Target::tenant("acme"), true, false, true),
        (Target::tool("pay"), true, true, false),
        (Target::tool("pay").within("acme"), true, false, false),
    ] {
        let stop = desk.gate.stop(target.clone(), HOUR, WHY, &operator()).await.unwrap();
        assert_eq!(is_stopped(&desk.pay("shop").await), pay_here, "{target}");
        assert_eq!(is_stopped(&desk.call_as(&globex, "pay", json!({"to": "shop"})).await), pay_there, "{target}");
        assert_eq!(is_stopped(&desk.call("look", json!({})).await), look_here, "{target}");
        assert_eq!(desk.gate.tools(&globex).len(), 2, "what is stopped is still listed");
        desk.gate.lift(&stop.id, None, &operator()).await.unwrap();
    }
    assert!(!is_stopped(&desk.pay("shop").await));
}

#[tokio::test]
async fn a_stopped_read_is_refused_within_a_second_and_still_gives_facts_to_others() {
    let desk = Desk::new();
    assert!(desk.call("look", json!({})).await.is_ok(), "the view of stops is as young as it can be now");
    desk.stop(Target::tool("look")).await;
    let stopped = Instant::now();
    while !is_stopped(&desk.call("look", json!({})).await) {
        assert!(stopped.elapsed() < Duration::from_millis(1500), "a read knows of a stop within a second");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(desk.pay("shop").await.is_ok(), "the gate looks things up for itself");
}

#[tokio::test]
async fn what_was_done_is_not_told_again_while_it_is_stopped() {
    let desk = Desk::new();
    assert!(desk.pay("shop").await.is_ok());
    let stop = desk.stop(Target::all()).await;
    assert!(is_stopped(&desk.pay("shop").await));
    desk.lift(&stop).await;
    assert!(desk.pay("shop").await.replayed());
    assert_eq!(desk.runs(), 1);
}

#[tokio::test]
async fn an_approval_is_not_used_while_its_tool_is_stopped_and_stays() {
    let asks = r#"@id("two") @message("A manager must agree.") @approvers("manager")
        forbid (principal, action == Action::"pay", resource) unless { context.approved };"#;
    let desk = Desk::with(&json!({}), asks);
    let asked = desk.pay("shop").await;
    assert_eq!(asked.code(), Some(Code::ApprovalRequired), "{:?}", asked.refusal());
    let id = asked.refusal().unwrap().approval_notice().unwrap().id.clone();
    desk.gate.approve(&id, &person("mia", "acme").role("manager")).await.unwrap();
    let stop = desk.stop(Target::tool("pay")).await;
    assert!(is_stopped(&desk.pay("shop").await));
    let standing = desk.gate.approval(&id, &person("mia", "acme")).await.unwrap().unwrap();
    assert_eq!(standing.state_at(desk.clock.now()), "granted");
    desk.lift(&stop).await;
    assert!(desk.pay("shop").await.is_ok());
}

#[tokio::test]
async fn a_dry_run_tells_a_stop() {
    let desk = Desk::new();
    desk.stop(Target::tool("pay")).await;
    let call = Call::new("call_1", "pay", r#"{"to": "shop"}"#);
    assert!(is_stopped(&desk.gate.dry_run(call, &person("alice", "acme")).await.unwrap()));
}

#[tokio::test]
async fn a_dry_run_tells_that_a_limit_has_no_room_as_the_call_would_and_takes_nothing() {
    let limits = json!({"limits": [{"sum": "/cents", "max": 100, "per": "1d"}]});
    let desk = Desk::with(&limits, "");
    let arguments = |to: &str, cents: u64| json!({"to": to, "cents": cents});
    let alice = person("alice", "acme");
    let tried = |to: &str, cents: u64| {
        let call = Call::new("call_1", "pay", arguments(to, cents).to_string());
        desk.gate.dry_run(call, &alice)
    };
    for _ in 0..3 {
        assert!(tried("a", 60).await.unwrap().is_ok(), "nothing is taken");
    }
    assert!(desk.call("pay", arguments("a", 60)).await.is_ok());
    let (dry, real) = (tried("b", 41).await.unwrap(), desk.call("pay", arguments("b", 41)).await);
    assert_eq!(real.code(), Some(Code::LimitReached));
    assert_eq!(dry.refusal(), real.refusal());
    assert!(tried("a", 60).await.unwrap().is_ok(), "a replay takes nothing of a limit");
    assert!(tried("b", 40).await.unwrap().is_ok());
    assert_eq!(desk.runs(), 1);
}

#[tokio::test]
async fn nobody_stops_without_a_reason_or_without_an_end() {
    let desk = Desk::new();
    let stop = |target: Target, lasts: u64, why: &'static str| {
        let gate = desk.gate.clone();
        async move { gate.stop(target, Duration::from_secs(lasts), why, &operator()).await }
    };
    assert_eq!(stop(Target::all(), 60, "  ").await, Err(NotStopped::NoReason));
    assert_eq!(stop(Target::all(), 0, WHY).await, Err(NotStopped::Span));
    assert_eq!(stop(Target::all(), 31 * 24 * 3600, WHY).await, Err(NotStopped::Span));
    let near = Some("did you mean pay?".to_owned());
    assert_eq!(stop(Target::tool("pya"), 60, WHY).await, Err(NotStopped::UnknownTool { near }));
    assert_eq!(desk.gate.stops().await.unwrap(), []);
    assert_eq!(desk.gate.lift("stop_1", None, &operator()).await, Err(NotLifted::Missing));
    let long = desk.gate.stop(Target::all(), Duration::from_secs(30 * 24 * 3600), WHY, &operator()).await.unwrap();
    assert_eq!(desk.gate.stops().await.unwrap(), [long]);
}

#[tokio::test]
async fn whoever_stops_within_a_tenant_is_given_no_hint_of_a_tool_that_they_cannot_see() {
    let desk = Desk::with(&json!({}), r#"@id("none") forbid (principal, action == Action::"look", resource);"#);
    let ann = person("ann", "acme");
    assert_eq!(desk.gate.tools(&ann).len(), 1);
    let stop = async |tool: &str| desk.gate.stop_in_tenant(tool, HOUR, WHY, &ann).await;
    assert_eq!(stop("lok").await, Err(NotStopped::UnknownTool { near: None }), "as a name that resembles nothing");
    let near = Some("did you mean pay?".to_owned());
    assert_eq!(stop("pya").await, Err(NotStopped::UnknownTool { near }));
    let stop = stop("pay").await.unwrap();
    assert_eq!((stop.set_in.as_deref(), stop.target), (Some("acme"), Target::tool("pay").within("acme")));
}
