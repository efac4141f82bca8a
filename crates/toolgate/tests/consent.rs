//! One approval, and two threads that would use it at the same moment: one does, each time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may panic"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use toolgate::backend::{Context, ToolError};
use toolgate::call::OperationId;
use toolgate::ledger::Store;
use toolgate::refusal::{Code, Effect};
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Reply, Tool};

const TRIES: usize = 1000;

/// Reach for what needs a manager's consent.
#[derive(Deserialize, JsonSchema)]
struct Reach {
    #[expect(dead_code, reason = "it matters only that two calls say the same")]
    number: usize,
}

const POLICIES: &str = r#"
    permit (principal, action, resource);
    @id("consent") @message("A manager must agree.") @approvers("manager")
    forbid (principal, action, resource) unless { context.approved };
"#;

/// A gate with a lane, a queue and tasks of its own over the shared store.
fn gate(store: &Store, runs: &Arc<AtomicUsize>) -> Gate {
    let reached = |runs: &Arc<AtomicUsize>| {
        let runs = Arc::clone(runs);
        move |_: Reach, _: &Context| {
            runs.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, ToolError>(true) }
        }
    };
    let gate = Gate::builder()
        .tool(Tool::read("look", reached(runs)))
        .tool(Tool::write("take", reached(runs)).key("once", json!({ "caller": true })))
        .policy(POLICIES)
        .store(store.clone())
        .build();
    gate.unwrap_or_else(|error| panic!("{error}"))
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

fn person(name: &str, tries: usize) -> Session {
    Session::new(Principal::new("local", name), format!("tenant_{tries}"))
}

/// A thread that tries to use each approval, in a gate of its own.
struct Contender {
    name: &'static str,
    tool: &'static str,
    gate: Gate,
    runtime: Runtime,
}

impl Contender {
    fn call(&self, tries: usize, approval: Option<&str>) -> Reply {
        let session = person("alice", tries).in_run(self.name);
        let mut call = Call::new("call_1", self.tool, json!({ "number": tries }).to_string());
        if let Some(id) = approval {
            call = call.approval(id);
        }
        if self.tool == "take" {
            // Two operations, so that the ledger would let both run: the approval alone stands in the way.
            call = call.operation(OperationId::parse(&format!("{}-{tries}", self.name)).unwrap());
        }
        self.runtime.block_on(self.gate.call(call, &session)).unwrap()
    }

    /// Asks for an approval and has it given.
    fn granted(&self, tries: usize) -> String {
        let asked = self.call(tries, None);
        let id = asked.refusal().and_then(|refusal| refusal.approval_notice()).expect("it is asked for").id.clone();
        let approved = self.runtime.block_on(self.gate.approve(&id, &person("mia", tries).role("manager")));
        assert_eq!(approved.unwrap().state_at(self.gate.now()), "granted");
        id
    }
}

/// Both use each approval at once, and name it every second time.
fn race(tool: &'static str) {
    let (store, runs) = (Store::memory(), Arc::<AtomicUsize>::default());
    let (barrier, approval) = (Barrier::new(2), Mutex::new(String::new()));
    let answers: [Vec<Reply>; 2] = std::thread::scope(|scope| {
        let threads = [("one", true), ("other", false)].map(|(name, leads)| {
            let (store, runs, barrier, approval) = (&store, &runs, &barrier, &approval);
            scope.spawn(move || {
                let contender = Contender { name, tool, gate: gate(store, runs), runtime: runtime() };
                let tries = (0..TRIES).map(|tries| {
                    if leads {
                        *approval.lock().unwrap() = contender.granted(tries);
                    }
                    barrier.wait();
                    let id = approval.lock().unwrap().clone();
                    let reply = contender.call(tries, (tries % 2 == 1).then_some(id.as_str()));
                    barrier.wait();
                    reply
                });
                tries.collect::<Vec<Reply>>()
            })
        });
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(runs.load(Ordering::SeqCst), TRIES, "each approval is good for one run");
    let mut won = [0, 0];
    for (tries, (ours, theirs)) in answers[0].iter().zip(&answers[1]).enumerate() {
        let (winner, refused) = match (ours.is_ok(), theirs.is_ok()) {
            (true, false) => (0, theirs),
            (false, true) => (1, ours),
            (both, _) => panic!("try {tries}: both the same, {both}"),
        };
        won[winner] += 1;
        let expected = if tries % 2 == 1 { Code::ApprovalInvalid } else { Code::ApprovalRequired };
        assert_eq!((refused.code(), refused.effect()), (Some(expected), Effect::None), "try {tries}");
    }
    assert!(won.iter().all(|won| *won > 0), "{won:?}: they never raced");
}

#[test]
fn of_two_reads_that_use_one_approval_one_does() {
    race("look");
}

#[test]
fn of_two_writes_that_use_one_approval_one_does() {
    race("take");
}
