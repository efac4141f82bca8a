//! `[[limits]]`: what calls may take in a window of time, and what is said when it is taken.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may panic"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate::backend::{Answer, Backend, Dispatch, Failure, FailureKind, Found, Looking, Lookup, Running};
use toolgate::clock::{ManualClock, Millis};
use toolgate::ledger::Store;
use toolgate::refusal::{Code, Effect, Fix, Retry};
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Reply, Tool};

const HOUR: u64 = 60 * 60 * 1000;
const DAY: u64 = 24 * HOUR;

/// A backend that pays, says that it did not, or says nothing, by what it is asked for.
#[derive(Default)]
struct Bank {
    runs: AtomicUsize,
}

impl Backend for Bank {
    fn run(&self, dispatch: Dispatch) -> Running<'_> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let answer = match dispatch.context().arguments().get("to").and_then(Value::as_str) {
            Some("nobody") => failed(Effect::None),
            Some("somebody") => failed(Effect::Unknown),
            Some(_) | None => Answer::done("{}"),
        };
        Box::pin(async move { answer })
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        Box::pin(async { Found::Absent })
    }
}

fn failed(effect: Effect) -> Answer {
    Answer::failed(effect, Failure::new(FailureKind::Reported, "lost", "no answer"))
}

struct Desk {
    gate: Gate,
    bank: Arc<Bank>,
    clock: Arc<ManualClock>,
    store: Store,
}

impl Desk {
    fn new(effect: &str, limits: Value) -> Self {
        let clock = Arc::new(ManualClock::at(Millis(DAY + HOUR)));
        Self::over(Store::memory(), clock, &json!({"effect": effect, "limits": limits}))
    }

    fn over(store: Store, clock: Arc<ManualClock>, more: &Value) -> Self {
        let bank = Arc::<Bank>::default();
        let cents = json!({"type": "integer", "minimum": 0});
        let mut contract = keys(&json!({
            "description": "Pays. Moves money.",
            "input": {"properties": {"to": {"type": "string"}, "cents": cents}},
        }));
        contract.extend(keys(more));
        let tool = Tool::new("pay", contract, Arc::clone(&bank) as Arc<dyn Backend>);
        let builder = Gate::builder().policy("permit (principal, action, resource);").tool(tool);
        let gate = builder.store(store.clone()).clock(Arc::clone(&clock) as _).build().unwrap();
        Self { gate, bank, clock, store }
    }

    async fn pay(&self, session: &Session, arguments: Value) -> Reply {
        self.gate.call(Call::new("call_1", "pay", arguments.to_string()), session).await.unwrap()
    }

    /// Whether alice's payment to a shop goes through.
    async fn pays(&self, shop: &str, cents: u64) -> bool {
        self.pay(&person("alice"), json!({"to": shop, "cents": cents})).await.is_ok()
    }

    fn runs(&self) -> usize {
        self.bank.runs.load(Ordering::SeqCst)
    }
}

fn keys(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn person(name: &str) -> Session {
    Session::new(Principal::new("local", name), "acme")
}

fn a_day_of(max: u64) -> Value {
    json!([{"sum": "/cents", "max": max, "per": "1d"}])
}

#[tokio::test]
async fn what_does_not_fit_is_refused_with_what_is_left_and_when_to_come_back() {
    let desk = Desk::new("write", a_day_of(100));
    assert!(desk.pays("a", 60).await);
    let over = desk.pay(&person("alice"), json!({"to": "b", "cents": 55})).await;
    let refusal = over.refusal().unwrap();
    assert_eq!((refusal.code(), refusal.effect(), refusal.fix()), (Code::LimitReached, Effect::None, Fix::User));
    assert_eq!(refusal.retry_advice(), Retry::After(Duration::from_millis(23 * HOUR)));
    let text = refusal.text();
    assert!(text.contains("40 of /cents is left") && text.contains("until 1970-01-03T00:00:00.000Z"), "{text}");
    let learned = over.trace().stages().last().unwrap().learned.get("limit").unwrap();
    assert_eq!(*learned, json!({"at": "/limits/0", "left": 40, "until": "1970-01-03T00:00:00.000Z"}));
    assert_eq!(desk.runs(), 1);
    assert!(desk.pays("c", 40).await);

    desk.clock.advance(Duration::from_millis(23 * HOUR));
    assert!(desk.pays("b", 55).await, "the same call, in the next window");
}

#[tokio::test]
async fn what_never_fits_is_not_told_to_wait() {
    let desk = Desk::new("write", a_day_of(100));
    let reply = desk.pay(&person("alice"), json!({"cents": 101})).await;
    let refusal = reply.refusal().unwrap();
    assert_eq!((refusal.code(), refusal.retry_advice()), (Code::LimitReached, Retry::AfterChange));
    assert!(refusal.text().contains("waiting does not help"), "{}", refusal.text());
}

#[tokio::test]
async fn a_replay_takes_nothing_and_an_absent_amount_does_not_either() {
    let desk = Desk::new("write", a_day_of(100));
    for _ in 0..3 {
        assert!(desk.pays("a", 100).await);
    }
    assert_eq!(desk.runs(), 1);
    assert!(!desk.pays("b", 1).await);
    assert!(desk.pay(&person("alice"), json!({"to": "c"})).await.is_ok());
}

#[tokio::test]
async fn what_did_not_happen_gives_its_part_back_and_what_is_unknown_keeps_it() {
    let desk = Desk::new("write", a_day_of(100));
    assert!(!desk.pays("nobody", 100).await);
    let unknown = desk.pay(&person("alice"), json!({"to": "somebody", "cents": 60})).await;
    assert_eq!(unknown.effect(), Effect::Unknown);
    assert!(!desk.pays("a", 41).await);
    assert!(desk.pays("b", 40).await);
}

#[tokio::test]
async fn a_role_raises_the_maximum_and_the_largest_counts() {
    let limits = json!([{"sum": "/cents", "max": 10, "roles": {"clerk": 50, "manager": 100}, "per": "1d"}]);
    let desk = Desk::new("write", limits);
    let pays = async |session: Session, to: &str, cents: u64| {
        desk.pay(&session, json!({"to": to, "cents": cents})).await.code()
    };
    assert_eq!(pays(person("bob"), "a", 11).await, Some(Code::LimitReached));
    assert_eq!(pays(person("bob").role("guest"), "a", 10).await, None);
    let mia = || person("mia").role("clerk").role("manager");
    assert_eq!(pays(mia(), "a", 100).await, None);
    assert_eq!(pays(mia(), "b", 1).await, Some(Code::LimitReached));
}

#[tokio::test]
async fn a_scope_says_whose_calls_count_together() {
    let once = async |scope: &str, others: [Session; 3]| {
        let desk = Desk::new("write", json!([{"calls": 1, "per": "1h", "scope": scope}]));
        assert!(desk.pays("first", 1).await);
        let mut went = Vec::new();
        for other in others {
            went.push(desk.pay(&other, json!({"to": "second"})).await.is_ok());
        }
        went
    };
    let others = || {
        let stranger = Session::new(Principal::new("local", "alice"), "globex");
        [person("alice").in_run("another"), person("bob"), stranger]
    };
    assert_eq!(once("run", others()).await, [true, true, true]);
    assert_eq!(once("user", others()).await, [false, true, true]);
    assert_eq!(once("tenant", others()).await, [false, false, true]);
    assert_eq!(once("tool", others()).await, [false, false, false]);
}

#[tokio::test]
async fn a_limit_of_everybody_does_not_tell_what_other_tenants_took() {
    let desk = Desk::new("write", json!([{"sum": "/cents", "max": 100, "per": "1d", "scope": "tool"}]));
    assert!(desk.pays("a", 63).await);
    let stranger = Session::new(Principal::new("local", "eve"), "globex");
    let reply = desk.pay(&stranger, json!({"cents": 90})).await;
    let text = reply.refusal().unwrap().text();
    assert!(!text.contains("37") && text.contains("everybody"), "{text}");
}

#[tokio::test]
async fn a_read_has_limits_too() {
    let desk = Desk::new("read", json!([{"calls": 2, "per": "1h"}]));
    let asks = async || desk.pay(&person("alice"), json!({})).await;
    assert!(asks().await.is_ok() && asks().await.is_ok());
    let third = asks().await;
    assert_eq!(third.code(), Some(Code::LimitReached));
    assert!(third.refusal().unwrap().text().contains("No call of this user is left"));
    desk.clock.advance(Duration::from_millis(HOUR));
    assert!(asks().await.is_ok());
}

#[tokio::test]
async fn calls_side_by_side_do_not_go_over_it_together() {
    let desk = Desk::new("write", json!([{"calls": 5, "per": "1d"}]));
    let alice = person("alice");
    let calls = (0..20).map(|n| desk.pay(&alice, json!({"to": format!("shop {n}")})));
    let replies = futures_util::future::join_all(calls).await;
    assert_eq!(replies.iter().filter(|reply| reply.is_ok()).count(), 5);
    assert_eq!(desk.runs(), 5);
}

#[tokio::test]
async fn an_edited_contract_forgets_nothing_that_was_taken() {
    let desk = Desk::new("write", a_day_of(100));
    assert!(desk.pays("a", 100).await);
    let limits = json!([{"calls": 9, "per": "1d"}, {"sum": "/cents", "max": 120, "per": "1d"}]);
    let more = json!({"effect": "write", "description": "Pays somebody. Moves money.", "limits": limits});
    let edited = Desk::over(desk.store.clone(), Arc::clone(&desk.clock), &more);
    assert!(!edited.pays("b", 21).await);
    assert!(edited.pays("c", 20).await);
}

#[tokio::test]
async fn a_replay_says_that_nothing_ran_now() {
    let desk = Desk::new("write", json!([]));
    let first = serde_json::to_value(desk.pay(&person("alice"), json!({"cents": 5})).await).unwrap();
    let again = serde_json::to_value(desk.pay(&person("alice"), json!({"cents": 5})).await).unwrap();
    assert_eq!((&first["replayed"], first.get("note")), (&json!(false), None));
    assert_eq!((&again["replayed"], &again["result"]), (&json!(true), &first["result"]));
    let note = again["note"].as_str().unwrap();
    assert!(note.starts_with("Nothing ran now") && note.contains("another operation id"), "{note}");
}
