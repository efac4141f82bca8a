//! What becomes of a call once it runs: repeats, late answers, and a store that fails at its end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test may panic"
)]

mod late;
mod retries;
mod settled;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate::backend::{Answer, Backend, Context, Dispatch, Failure, FailureKind, Found, Looking, Lookup, Running};
use toolgate::clock::{ManualClock, Millis};
use toolgate::ledger::Store;
use toolgate::refusal::Effect;
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Reply, Tool};

type Run = Box<dyn Fn(usize, Context) -> Running<'static> + Send + Sync>;

/// A backend that does with each call what it is told, and counts how often it was sent.
struct Told {
    run: Run,
    found: Mutex<Option<Value>>,
    sends: AtomicUsize,
    keys: Mutex<Vec<String>>,
    keyed: bool,
    upstream: Option<&'static str>,
}

impl Told {
    fn new(run: impl Fn(usize, Context) -> Running<'static> + Send + Sync + 'static) -> Self {
        let (sends, keys, found) = Default::default();
        Self { run: Box::new(run), found, sends, keys, keyed: false, upstream: None }
    }

    /// Its calls end so at once; the number is that of the send, from 0.
    fn ends(end: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::new(move |number, _| {
            let answer = end(number);
            Box::pin(async move { answer })
        })
    }

    fn sends(&self) -> usize {
        self.sends.load(Ordering::SeqCst)
    }
}

impl Backend for Told {
    fn run(&self, dispatch: Dispatch) -> Running<'_> {
        let number = self.sends.fetch_add(1, Ordering::SeqCst);
        self.keys.lock().unwrap().extend(dispatch.context().idempotency_key().map(str::to_owned));
        (self.run)(number, dispatch.into_context())
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        let found = self.found.lock().unwrap().clone();
        Box::pin(async move { found.map_or(Found::Absent, |found| Found::Found(found.to_string().into_bytes())) })
    }

    fn honours_key(&self) -> bool {
        self.keyed
    }

    fn upstream(&self) -> Option<&str> {
        self.upstream
    }
}

fn busy() -> Answer {
    Answer::failed(Effect::None, Failure::new(FailureKind::Unavailable, "503", "too much to do"))
}

fn lost() -> Answer {
    Answer::failed(Effect::Unknown, Failure::new(FailureKind::Reported, "lost", "the connection broke after sending"))
}

fn keys(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn tool(name: &str, effect: &str, more: Value, backend: &Arc<Told>) -> Tool {
    let mut contract = keys(json!({
        "description": format!("Does the {effect} of {name}."),
        "effect": effect,
        "input": {"properties": {"n": {"type": "integer"}}},
        "output": {"type": "object", "properties": {"paid": {"type": "integer"}}},
    }));
    contract.extend(keys(more));
    Tool::new(name, contract, Arc::clone(backend) as Arc<dyn Backend>)
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Millis(1_000_000)))
}

fn gate_of(tools: impl IntoIterator<Item = Tool>, store: Store, clock: Option<&Arc<ManualClock>>) -> Gate {
    let builder = Gate::builder().policy("permit (principal, action, resource);").store(store);
    let builder = clock.into_iter().fold(builder, |builder, clock| builder.clock(Arc::clone(clock) as _));
    tools
        .into_iter()
        .fold(builder, |builder, tool| builder.tool(tool))
        .build()
        .unwrap_or_else(|error| panic!("{error}"))
}

fn alice() -> Session {
    Session::new(Principal::new("local", "alice"), "acme")
}

async fn call(gate: &Gate, tool: &str, arguments: Value) -> Reply {
    gate.call(Call::new("call_1", tool, arguments.to_string()), &alice()).await.unwrap()
}

/// What the stage learned of a call.
fn noted(reply: &Reply, stage: &str, name: &str) -> Value {
    let note = reply.trace().stages().iter().find(|note| note.stage == stage);
    note.and_then(|note| note.learned.get(name)).cloned().unwrap_or(Value::Null)
}

/// The records of a reply, as JSON.
async fn history(gate: &Gate, reply: &Reply) -> Vec<Value> {
    let records = gate.store().history(reply.reference().as_str()).await.unwrap();
    records.iter().map(|record| serde_json::from_str(&record.body).unwrap()).collect()
}

/// Waits for what must come.
async fn eventually<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    for _ in 0..500 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} never came");
}
