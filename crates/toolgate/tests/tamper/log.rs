//! A real record: what a gate wrote on disk.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tempfile::{NamedTempFile, TempDir};
use toolgate::audit::Sealed;
use toolgate::backend::{Answer, Backend, Dispatch, Failure, FailureKind, Found, Looking, Lookup, Running};
use toolgate::clock::{ManualClock, Millis};
use toolgate::ledger::Store;
use toolgate::refusal::Effect;
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Reply, Tool};

use crate::file;

/// A store that was closed, and the records that it holds.
pub(crate) struct Log {
    pub(crate) folder: TempDir,
    pub(crate) file: PathBuf,
    pub(crate) records: Vec<Sealed>,
}

/// A backend that pays, or fails in the way that the amount asks for.
#[derive(Default)]
struct Bank(AtomicUsize);

const LOST: u64 = 13;
const NEVER_ANSWERED: u64 = 14;
const DECLINED: u64 = 15;

impl Backend for Bank {
    fn run(&self, dispatch: Dispatch) -> Running<'_> {
        let cents = dispatch.context().arguments().get("cents").and_then(Value::as_u64).unwrap_or_default();
        let paid = self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match cents {
                LOST => Answer::failed(
                    Effect::Unknown,
                    Failure::new(FailureKind::Reported, "lost", "the connection broke after sending"),
                ),
                DECLINED => {
                    Answer::failed(Effect::None, Failure::new(FailureKind::Reported, "declined", "the bank says no"))
                }
                NEVER_ANSWERED => std::future::pending().await,
                _ => Answer::done(format!(r#"{{"paid":{paid}}}"#)),
            }
        })
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        Box::pin(std::future::ready(Found::Found(br#"{"paid":7}"#.to_vec())))
    }
}

impl Log {
    pub(crate) fn make() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.db");
        let clock = Arc::new(ManualClock::at(Millis(1_769_851_800_000)));
        // The first gate ends in the middle of a call, as a process does that is killed.
        let first = runtime();
        first.block_on(async {
            let gate = gate(&path, &clock);
            some_of_all(&gate, &clock, 0).await;
            let hanging = gate.clone();
            tokio::spawn(async move { pay(&hanging, "alice", NEVER_ANSWERED, "hanging").await });
            tokio::time::sleep(Duration::from_millis(50)).await;
        });
        drop(first);
        runtime().block_on(async {
            let gate = gate(&path, &clock);
            assert_eq!(gate.sweep().await.unwrap(), 1, "the call that hung is lost");
            for round in 1..9 {
                some_of_all(&gate, &clock, round).await;
            }
            gate.finish().await.unwrap();
        });
        let records = file::records(&path).unwrap();
        Self { folder, file: path, records }
    }

    pub(crate) fn copy(&self) -> NamedTempFile {
        let copy = NamedTempFile::new_in(self.folder.path()).unwrap();
        std::fs::copy(&self.file, copy.path()).unwrap();
        copy
    }
}

pub(crate) fn kind(record: &Sealed) -> String {
    let body: Value = serde_json::from_str(&record.body).unwrap();
    body["kind"].as_str().unwrap().to_owned()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn gate(path: &std::path::Path, clock: &Arc<ManualClock>) -> Gate {
    let bank = Arc::new(Bank::default()) as Arc<dyn Backend>;
    let pay = json!({
        "description": "Pays. Moves money.",
        "effect": "write",
        "input": {"properties": {"account": {"type": "string"}, "cents": {"type": "integer"}},
                  "required": ["account", "cents"]},
        "lane": {"key": ["{account}"]},
        "approval": {"when": "context.input.cents > 100", "role": "manager"},
        "reconcile": {"tool": "find", "args": {"key": "{idempotency_key}"}, "done": "/paid", "absent_after": "10s"},
    });
    let find = json!({
        "description": "Finds a payment by its key.",
        "effect": "read",
        "input": {"properties": {"key": {"type": "string"}}, "required": ["key"]},
        "output": {"type": "object", "properties": {"paid": {"type": "integer"}}},
    });
    let tool = |name: &str, contract: Value| Tool::new(name, keys(contract), Arc::clone(&bank));
    Gate::builder()
        .tool(tool("pay", pay))
        .tool(tool("find", find))
        .policy("permit (principal, action, resource);")
        .store(Store::sqlite(path).unwrap())
        .clock(Arc::clone(clock) as _)
        .build()
        .unwrap()
}

fn keys(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn person(name: &str) -> Session {
    Session::new(Principal::new("local", name), "acme").role("manager")
}

async fn pay(gate: &Gate, who: &str, cents: u64, account: &str) -> Reply {
    let arguments = json!({ "account": account, "cents": cents }).to_string();
    gate.call(Call::new("call_1", "pay", arguments), &person(who)).await.unwrap()
}

/// Calls of each kind: refused, judged, read, paid, replayed, declined, lost and found again, asked for and decided.
async fn some_of_all(gate: &Gate, clock: &Arc<ManualClock>, round: u64) {
    let account = format!("acc_{round}");
    let call = |tool: &str, arguments: Value| Call::new("call_1", tool, arguments.to_string());
    let alice = person("alice");
    gate.call(call("pay", json!({ "cents": "5" })), &alice).await.unwrap();
    gate.call(call("pya", json!({})), &alice).await.unwrap();
    gate.dry_run(call("pay", json!({ "account": account, "cents": 5 })), &alice).await.unwrap();
    gate.call(call("find", json!({ "key": account })), &alice).await.unwrap();
    for cents in [20, 21, DECLINED, LOST] {
        pay(gate, "alice", cents, &account).await;
        pay(gate, "alice", cents, &account).await;
        clock.advance(Duration::from_secs(1));
    }
    let asked = pay(gate, "alice", 500, &account).await;
    let id = asked.refusal().unwrap().approval_notice().unwrap().id.clone();
    gate.approve(&id, &alice).await.unwrap_err();
    gate.approve(&id, &person("mia")).await.unwrap();
    assert!(pay(gate, "alice", 500, &account).await.is_ok());
    clock.advance(Duration::from_secs(60));
}
