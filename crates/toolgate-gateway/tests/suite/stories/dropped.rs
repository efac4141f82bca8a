//! A caller that goes away in the middle of a write leaves no entry open.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use toolgate::backend::{Context, ToolError};
use toolgate::ledger::Store;
use toolgate::refusal::{Code, Effect};
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Tool};
use toolgate_gateway::config::{self, Purpose};

use super::{lock, refund};
use crate::folder::Folder;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Serialize, JsonSchema)]
struct Sent {
    number: usize,
}

/// A write that tells when it has begun.
#[derive(Clone, Default)]
struct Letter {
    begun: Arc<Notify>,
    may_end: Arc<Notify>,
    count: Arc<AtomicUsize>,
}

impl Letter {
    fn begin(&self) -> usize {
        self.begun.notify_one();
        self.count.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

fn gate(tool: Tool) -> Gate {
    let tool = tool.description("Sends the letter.").deadline(Duration::from_millis(1500));
    let permit = "permit (principal, action, resource);";
    Gate::builder().tool(tool).policy(permit).store(Store::memory()).build().unwrap()
}

fn session() -> Session {
    Session::new(Principal::new("local", "alice"), "acme")
}

fn send() -> Call {
    Call::new("call_1", "send", "{}")
}

/// Calls, and goes away once the write has begun.
async fn call_and_leave(gate: &Gate, letter: &Letter) {
    let session = session();
    tokio::select! {
        reply = gate.call(send(), &session) => panic!("it ended before its caller went away: {reply:?}"),
        () = letter.begun.notified() => {}
    }
}

async fn assert_the_record_holds(gate: &Gate, kinds: &[&str]) {
    gate.finish().await.unwrap();
    gate.store().verify(None).await.unwrap().unwrap();
    let records = gate.store().tail(100).await.unwrap();
    let told: Vec<String> = records
        .iter()
        .map(|record| {
            serde_json::from_str::<serde_json::Value>(&record.body).unwrap()["kind"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(told, kinds);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_done_after_the_caller_left_is_replayed() {
    let letter = Letter::default();
    let worker = letter.clone();
    let gate = gate(Tool::write("send", move |_: Nothing, _: &Context| {
        let (worker, number) = (worker.clone(), worker.begin());
        async move {
            worker.may_end.notified().await;
            Ok(Sent { number })
        }
    }));
    call_and_leave(&gate, &letter).await;
    letter.may_end.notify_one();
    let reply = gate.call(send(), &session()).await.unwrap();
    assert_eq!((reply.result(), reply.effect(), reply.replayed()), (Some(r#"{"number":1}"#), Effect::Done, true));
    assert_eq!(letter.count(), 1);
    assert_the_record_holds(&gate, &["intent", "outcome", "replay"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_given_up_because_the_caller_left_is_reopened() {
    let letter = Letter::default();
    let worker = letter.clone();
    let gate = gate(Tool::write("send", move |_: Nothing, context: &Context| {
        let (context, number) = (context.clone(), worker.begin());
        async move {
            if number == 1 {
                context.cancelled().await;
                return Err(ToolError::refused("cancelled", "given up before it was sent"));
            }
            Ok(Sent { number })
        }
    }));
    call_and_leave(&gate, &letter).await;
    let reply = gate.call(send(), &session()).await.unwrap();
    assert_eq!((reply.result(), reply.effect(), reply.replayed()), (Some(r#"{"number":2}"#), Effect::Done, false));
    assert_eq!(letter.count(), 2);
    assert_the_record_holds(&gate, &["intent", "outcome", "intent", "outcome"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_never_ends_is_unknown_at_its_deadline_and_not_run_again() {
    let letter = Letter::default();
    let worker = letter.clone();
    let gate = gate(Tool::write("send", move |_: Nothing, _: &Context| {
        let (worker, number) = (worker.clone(), worker.begin());
        async move {
            worker.may_end.notified().await;
            Ok(Sent { number })
        }
    }));
    call_and_leave(&gate, &letter).await;
    tokio::time::sleep(Duration::from_millis(1600)).await;
    let reply = gate.call(send(), &session()).await.unwrap();
    assert_eq!((reply.code(), reply.effect()), (Some(Code::OutcomeUnknown), Effect::Unknown));
    assert_eq!(letter.count(), 1);
    assert_the_record_holds(&gate, &["intent", "outcome", "refusal"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_that_waited_for_the_database_when_its_caller_left_is_made_once() {
    let folder = Folder::shop();
    let loaded = config::load(folder.path(), Purpose::Run).unwrap();
    let alice = loaded.identity.session(Some("alice@acme")).unwrap();
    let call = || Call::new("call_1", "create_refund", refund("ord_4821", 1500).to_string());
    let look = Call::new("call_0", "get_order", r#"{"order_id":"ord_4821"}"#);
    assert!(loaded.gate.call(look, &alice).await.unwrap().is_ok());

    let database = lock(&folder.join("state/shop.db"));
    tokio::select! {
        reply = loaded.gate.call(call(), &alice) => panic!("it ended before its caller went away: {reply:?}"),
        () = has_intent(&loaded.gate) => {}
    }
    drop(database);
    let reply = loaded.gate.call(call(), &alice).await.unwrap();
    assert_eq!(reply.effect(), Effect::Done, "{:?}", reply.refusal());
    loaded.gate.finish().await.unwrap();
    loaded.gate.store().verify(None).await.unwrap().unwrap();
    assert_eq!(folder.number("select count(*) from refunds"), 1);
}

/// Ends once an intent is durable.
async fn has_intent(gate: &Gate) {
    // The record of the look before may come after it.
    while !gate.store().tail(10).await.unwrap().iter().any(|record| record.body.contains(r#""kind":"intent""#)) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
