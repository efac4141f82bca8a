//! Clocks that jump by hours: nothing is revived, freed or forgotten by them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::Gate;
use crate::Call;
use crate::backend::{Answer, Backend, Dispatch, Found, Looking, Lookup, Running};
use crate::clock::rehearsed::{BEGUN, HOUR, Rehearsed};
use crate::contract::Tool;
use crate::ledger::{ActionState, Store};
use crate::refusal::{Code, Effect};
use crate::reply::Reply;
use crate::session::{Principal, Session};

/// A backend that counts what it did, and does it once it is let.
struct Payments {
    done: AtomicUsize,
    let_through: Semaphore,
}

impl Payments {
    fn new() -> Arc<Self> {
        Arc::new(Self { done: AtomicUsize::new(0), let_through: Semaphore::new(1000) })
    }

    fn held() -> Arc<Self> {
        Arc::new(Self { done: AtomicUsize::new(0), let_through: Semaphore::new(0) })
    }

    fn done(&self) -> usize {
        self.done.load(Ordering::SeqCst)
    }
}

impl Backend for Payments {
    fn run(&self, _: Dispatch) -> Running<'_> {
        Box::pin(async {
            self.let_through.acquire().await.unwrap().forget();
            self.done.fetch_add(1, Ordering::SeqCst);
            Answer::done(r#"{"paid":true}"#)
        })
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        Box::pin(async { Found::Absent })
    }
}

const PERMIT: &str = "permit (principal, action, resource);";
const ASK: &str =
    r#"@id("ask") @approvers("manager") forbid (principal, action, resource) unless { context.approved };"#;

/// A process of `machine` that opens the store at `path`. Payments are kept for an hour.
fn gate(path: &Path, machine: &Arc<Rehearsed>, payments: &Arc<Payments>, policies: &str) -> Gate {
    let keys = json!({
        "description": "Pays. Moves money.",
        "effect": "write",
        "input": {"properties": {"cents": {"type": "integer"}}, "required": ["cents"]},
        "once": {"retain": "1h"},
        "deadline": "60s",
    });
    let keys: Map<String, Value> = keys.as_object().unwrap().clone();
    Gate::builder()
        .tool(Tool::new("pay", keys, Arc::clone(payments) as _))
        .policy(policies)
        .machine(Arc::clone(machine) as _)
        .store(Store::sqlite(path).unwrap())
        .build()
        .unwrap()
}

async fn pay(gate: &Gate, cents: u32) -> Reply {
    let call = Call::new("call_1", "pay", json!({ "cents": cents }).to_string()).patience(Duration::from_millis(200));
    gate.call(call, &person("alice")).await.unwrap()
}

fn person(name: &str) -> Session {
    Session::new(Principal::new("local", name), "acme").role("manager")
}

/// The stories of one process that stays, of one that is started anew, and of a machine that is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Stays,
    Reopened,
    StartedAgain,
}

const ALL: [Then; 3] = [Then::Stays, Then::Reopened, Then::StartedAgain];

/// What becomes of a process and its machine.
async fn then(
    what: Then,
    gate: Gate,
    path: &Path,
    machine: &mut Arc<Rehearsed>,
    payments: &Arc<Payments>,
    policies: &str,
) -> Gate {
    use crate::clock::Ruler;
    match what {
        Then::Stays => return gate,
        Then::Reopened => {}
        Then::StartedAgain => *machine = Arc::new(Rehearsed::started_again(machine.wall())),
    }
    gate.finish().await.unwrap();
    drop(gate);
    self::gate(path, machine, payments, policies)
}

#[tokio::test]
async fn a_grant_does_not_revive_when_the_clock_is_set_back() {
    for what in ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.db");
        let (mut machine, payments) = (Arc::new(Rehearsed::new()), Payments::new());
        let policies = format!("{PERMIT} {ASK}");
        let desk = gate(&path, &machine, &payments, &policies);
        let asked = pay(&desk, 5).await;
        let id = asked.refusal().unwrap().approval_notice().unwrap().id.clone();
        desk.approve(&id, &person("mia")).await.unwrap();
        machine.pass(HOUR + Duration::from_secs(60));
        assert_eq!(pay(&desk, 5).await.code(), Some(Code::ApprovalRequired), "it was good for an hour");
        machine.set_back(3 * HOUR);
        let desk = then(what, desk, &path, &mut machine, &payments, &policies).await;
        assert_eq!(pay(&desk, 5).await.code(), Some(Code::ApprovalRequired));
        assert_eq!(payments.done(), 0);
    }
}

#[tokio::test]
async fn a_grant_is_good_for_its_time_when_the_clock_jumps_forward() {
    for what in [Then::Stays, Then::Reopened] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.db");
        let (mut machine, payments) = (Arc::new(Rehearsed::new()), Payments::new());
        let policies = format!("{PERMIT} {ASK}");
        let desk = gate(&path, &machine, &payments, &policies);
        let asked = pay(&desk, 5).await;
        let id = asked.refusal().unwrap().approval_notice().unwrap().id.clone();
        desk.approve(&id, &person("mia")).await.unwrap();
        machine.set_ahead(5 * HOUR);
        let desk = then(what, desk, &path, &mut machine, &payments, &policies).await;
        assert!(pay(&desk, 5).await.is_ok());
    }
}

#[tokio::test]
async fn a_lease_is_not_freed_early_when_the_clock_jumps_forward_while_its_owner_lives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gate.db");
    let (machine, payments) = (Arc::new(Rehearsed::new()), Payments::held());
    let first = gate(&path, &machine, &payments, PERMIT);
    let running = tokio::spawn({
        let first = first.clone();
        async move { pay(&first, 5).await }
    });
    while first.store().actions("acme", None, 1).await.unwrap().items.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    machine.set_ahead(5 * HOUR);
    let beside = Arc::new(machine.beside());
    let second = gate(&path, &beside, &payments, PERMIT);
    for desk in [&first, &second] {
        assert_eq!(desk.sweep().await.unwrap(), 0);
        let twice = pay(desk, 5).await;
        assert_eq!((twice.code(), twice.effect()), (Some(Code::InProgress), Effect::None), "{:?}", twice.refusal());
    }
    // Its deadline and the grace have passed, and it still runs: now it may be given up.
    machine.pass(Duration::from_secs(66));
    beside.pass(Duration::from_secs(66));
    second.sweep().await.unwrap();
    // Whoever swept first: each of the two gates looks after the ledger by itself as well.
    let entry = second.store().actions("acme", None, 1).await.unwrap().items.remove(0);
    assert_eq!(entry.state, ActionState::Unknown);
    payments.let_through.add_permits(1);
    running.await.unwrap();
    assert_eq!(payments.done(), 1);
}

#[tokio::test]
async fn what_is_done_is_neither_forgotten_nor_purged_early_by_a_jump() {
    for what in ALL {
        for jump in [Rehearsed::set_ahead, Rehearsed::set_back] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("gate.db");
            let (mut machine, payments) = (Arc::new(Rehearsed::new()), Payments::new());
            let desk = gate(&path, &machine, &payments, PERMIT);
            assert!(pay(&desk, 5).await.is_ok());
            // Within the hour that it is kept. On another start nobody can tell a jump from a rest.
            jump(&machine, if what == Then::StartedAgain { HOUR / 2 } else { 48 * HOUR });
            let desk = then(what, desk, &path, &mut machine, &payments, PERMIT).await;
            desk.sweep().await.unwrap();
            assert!(pay(&desk, 5).await.replayed());
            assert_eq!(desk.store().actions("acme", None, 9).await.unwrap().items.len(), 1);
            machine.pass(HOUR);
            assert!(!pay(&desk, 5).await.replayed(), "its time has passed");
            assert_eq!(payments.done(), 2);
        }
    }
}

#[tokio::test]
async fn a_window_does_not_reopen_when_the_clock_is_set_back() {
    use crate::audit::{Kind, Record};
    use crate::call::Ref;
    use crate::ledger::{CounterKey, Opened, Opening, Taking};
    use crate::stoppage::Spot;

    for what in ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.db");
        let (mut machine, payments) = (Arc::new(Rehearsed::new()), Payments::new());
        let desk = gate(&path, &machine, &payments, PERMIT);
        let take = |gate: &Gate| {
            let (now, store) = (gate.now(), gate.store().clone());
            let counter = CounterKey::of(&json!(["acme", "pay"]));
            let takings = vec![Taking { counter, amount: 1, max: 1, per: HOUR }];
            let intent = Record::new(Kind::Intent, now, Ref::fresh(), Map::new());
            let opening =
                Opening { entry: None, grant: None, takings, drawings: Vec::new(), intent, spot: Spot::default() };
            async move { store.open(opening, now).await.unwrap() }
        };
        assert!(matches!(take(&desk).await, Opened::Open { .. }));
        machine.pass(HOUR);
        assert!(matches!(take(&desk).await, Opened::Open { .. }), "the next window");
        assert!(matches!(take(&desk).await, Opened::Limited { .. }));
        machine.set_back(HOUR * 2);
        let desk = then(what, desk, &path, &mut machine, &payments, PERMIT).await;
        // Neither the window before, which is full as well, nor one that was never counted.
        for _ in 0..3 {
            let refused = take(&desk).await;
            let Opened::Limited { until, .. } = refused else { panic!("{refused:?}") };
            assert!(until > BEGUN.after(HOUR));
            machine.set_back(HOUR);
        }
    }
}

#[tokio::test]
async fn a_process_that_was_behind_decides_again_by_the_time_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gate.db");
    let payments = Payments::new();
    // Two clocks that are taken at their word, as where no start of a machine can be told.
    let behind = crate::clock::ManualClock::at(BEGUN);
    let ahead = crate::clock::ManualClock::at(BEGUN.after(5 * HOUR));
    let [behind, ahead] = [behind, ahead].map(|clock| {
        let tool = Tool::new(
            "pay",
            json!({
                "description": "Pays. Moves money.", "effect": "write",
                "input": {"properties": {"cents": {"type": "integer"}}, "required": ["cents"]},
            })
            .as_object()
            .unwrap()
            .clone(),
            Arc::clone(&payments) as _,
        );
        let builder = Gate::builder().tool(tool).policy(PERMIT).clock(Arc::new(clock));
        builder.store(Store::sqlite(&path).unwrap()).build().unwrap()
    });
    assert!(pay(&behind, 1).await.is_ok());
    assert!(pay(&ahead, 2).await.is_ok());
    assert!(pay(&behind, 3).await.is_ok());
    assert_eq!(behind.now(), BEGUN.after(5 * HOUR));
    let actions = behind.store().actions("acme", None, 9).await.unwrap().items;
    let times: Vec<_> = actions.iter().map(|action| action.at.unwrap()).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older), "{times:?}");
}
