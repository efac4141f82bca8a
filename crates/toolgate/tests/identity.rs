//! When two calls are the same action, and what the second one is told.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use toolgate::backend::{Answer, Backend, Dispatch, Failure, FailureKind, Found, Looking, Lookup, Running};
use toolgate::call::OperationId;
use toolgate::ledger::Store;
use toolgate::refusal::{Code, Effect, Retry};
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Reply, Tool};

/// A backend that answers once it is let.
struct Bank {
    runs: AtomicUsize,
    may_answer: Semaphore,
}

impl Backend for Bank {
    fn run(&self, dispatch: Dispatch) -> Running<'_> {
        let number = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        Box::pin(async move {
            self.may_answer.acquire().await.unwrap().forget();
            let failed = |effect| Answer::failed(effect, Failure::new(FailureKind::Reported, "lost", "no answer"));
            match dispatch.context().arguments().get("to").and_then(Value::as_str) {
                Some("nobody") => failed(Effect::None),
                Some("somebody") => failed(Effect::Unknown),
                Some(_) | None => Answer::done(format!(r#"{{"number":{number}}}"#)),
            }
        })
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        Box::pin(async { Found::Absent })
    }
}

struct Desk {
    gate: Gate,
    bank: Arc<Bank>,
}

impl Desk {
    /// A tool that pays, once for each order.
    fn new(once: Value) -> Self {
        let bank = Arc::new(Bank { runs: AtomicUsize::new(0), may_answer: Semaphore::new(0) });
        let keys = json!({
            "description": "Pays. Moves money.",
            "effect": "write",
            "input": {"properties": {"order": {"type": "string"}, "to": {"type": "string"}}},
            "output": {"type": "object", "properties": {"number": {"type": "integer"}}},
            "once": once,
        });
        let keys: Map<String, Value> = keys.as_object().unwrap().clone();
        let tool = Tool::new("pay", keys, Arc::clone(&bank) as Arc<dyn Backend>);
        let builder = Gate::builder().policy("permit (principal, action, resource);").tool(tool);
        Self { gate: builder.store(Store::memory()).build().unwrap(), bank }
    }

    /// Lets the backend answer so often.
    fn answers(self, times: usize) -> Self {
        self.bank.may_answer.add_permits(times);
        self
    }

    fn runs(&self) -> usize {
        self.bank.runs.load(Ordering::SeqCst)
    }

    async fn call(&self, session: &Session, arguments: Value) -> Reply {
        self.gate.call(pay(&arguments), session).await.unwrap()
    }

    /// A call that is running, and waits for its answer.
    async fn begins(&self, session: &Session, arguments: Value) -> tokio::task::JoinHandle<Reply> {
        let (gate, session) = (self.gate.clone(), session.clone());
        let before = self.runs();
        let running = tokio::spawn(async move { gate.call(pay(&arguments), &session).await.unwrap() });
        while self.runs() == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        running
    }
}

fn pay(arguments: &Value) -> Call {
    Call::new("call_1", "pay", arguments.to_string())
}

fn person(name: &str) -> Session {
    Session::new(Principal::new("local", name), "acme")
}

fn by_order() -> Value {
    json!({"key": ["{order}"]})
}

#[tokio::test]
async fn a_duplicate_waits_for_the_running_call_and_is_given_its_answer() {
    let desk = Desk::new(by_order());
    let alice = person("alice");
    let first = desk.begins(&alice, json!({"order": "o1"})).await;
    let (duplicate, ()) = tokio::join!(desk.call(&alice, json!({"order": "o1"})), async {
        tokio::time::sleep(Duration::from_millis(60)).await;
        desk.bank.may_answer.add_permits(1);
    });
    let first = first.await.unwrap();
    assert!(duplicate.replayed() && !first.replayed());
    assert_eq!((duplicate.result(), desk.runs()), (first.result(), 1));
}

#[tokio::test]
async fn a_caller_without_patience_is_told_to_come_back() {
    let desk = Desk::new(by_order());
    let alice = person("alice");
    let first = desk.begins(&alice, json!({"order": "o1"})).await;
    let hasty = pay(&json!({"order": "o1"})).patience(Duration::from_millis(10));
    let told = desk.gate.call(hasty, &alice).await.unwrap();
    let refusal = told.refusal().unwrap();
    assert_eq!((refusal.code(), refusal.effect()), (Code::InProgress, Effect::None));
    assert!(matches!(refusal.retry_advice(), Retry::After(_)));
    assert_eq!(Code::InProgress.row(Effect::None).status, 409);
    desk.bank.may_answer.add_permits(1);
    assert!(first.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_key_stands_for_no_other_call_while_it_runs_or_is_unknown_or_done() {
    let desk = Desk::new(by_order());
    let alice = person("alice");
    let conflicts = async |order: &str| {
        let other = desk.call(&alice, json!({"order": order, "to": "another"})).await;
        (other.code(), other.effect()) == (Some(Code::KeyConflict), Effect::None)
    };
    let running = desk.begins(&alice, json!({"order": "done"})).await;
    assert!(conflicts("done").await, "it runs");
    desk.bank.may_answer.add_permits(2);
    assert!(running.await.unwrap().is_ok());
    assert!(conflicts("done").await, "it is done");
    let unknown = desk.call(&alice, json!({"order": "unknown", "to": "somebody"})).await;
    assert_eq!(unknown.effect(), Effect::Unknown);
    assert!(conflicts("unknown").await, "it is unknown");
    assert_eq!(desk.runs(), 2);
    assert_eq!(Code::KeyConflict.row(Effect::None).status, 422);
}

#[tokio::test]
async fn a_call_that_had_no_effect_binds_its_key_to_nothing() {
    let desk = Desk::new(by_order()).answers(2);
    let failed = desk.call(&person("alice"), json!({"order": "o1", "to": "nobody"})).await;
    assert_eq!(failed.effect(), Effect::None);
    assert!(desk.call(&person("alice"), json!({"order": "o1", "to": "a shop"})).await.is_ok());
}

#[tokio::test]
async fn somebody_else_of_the_tenant_learns_that_it_is_done_and_not_the_answer() {
    let desk = Desk::new(json!({"key": ["{order}"], "scope": "tenant"})).answers(2);
    assert!(desk.call(&person("alice"), json!({"order": "o1"})).await.is_ok());
    let bob = desk.call(&person("bob"), json!({"order": "o1"})).await;
    assert_eq!((bob.code(), bob.effect(), bob.result()), (Some(Code::AlreadyDone), Effect::Done, None));
    assert!(desk.call(&person("alice").in_run("another"), json!({"order": "o1"})).await.replayed());
    let stranger = Session::new(Principal::new("local", "bob"), "globex");
    assert!(!desk.call(&stranger, json!({"order": "o1"})).await.replayed(), "another tenant is another world");
    assert_eq!(desk.runs(), 2);
}

#[tokio::test]
async fn a_scope_says_whose_equal_calls_are_the_same() {
    for (scope, runs) in [("run", 3), ("user", 2), ("tenant", 1)] {
        let desk = Desk::new(json!({"scope": scope})).answers(3);
        for session in [person("alice"), person("alice").in_run("another"), person("bob"), person("alice")] {
            desk.call(&session, json!({"order": "o1"})).await;
        }
        assert_eq!(desk.runs(), runs, "{scope}");
    }
}

#[tokio::test]
async fn what_is_naturally_idempotent_runs_again() {
    let desk = Desk::new(json!({"repeat": "free"})).answers(2);
    for _ in 0..2 {
        assert!(!desk.call(&person("alice"), json!({"order": "o1"})).await.replayed());
    }
    assert_eq!(desk.runs(), 2);
}

#[tokio::test]
async fn an_operation_of_the_host_is_an_action_of_its_own() {
    let desk = Desk::new(json!({"caller": true})).answers(3);
    let named = async |id: &str, to: &str| {
        let call = pay(&json!({"to": to})).operation(OperationId::parse(id).unwrap());
        desk.gate.call(call, &person("alice")).await.unwrap()
    };
    assert!(!named("monday", "rent").await.replayed());
    assert!(named("monday", "rent").await.replayed());
    assert!(!named("tuesday", "rent").await.replayed(), "an intended repeat");
    assert_eq!(named("tuesday", "food").await.code(), Some(Code::KeyConflict));
    assert!(!desk.call(&person("alice"), json!({"to": "rent"})).await.replayed(), "and so is the call without a name");
    assert_eq!(desk.runs(), 3);
}
