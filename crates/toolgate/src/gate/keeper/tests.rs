#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};

use super::*;
use crate::Call;
use crate::backend::{Answer, Backend, Dispatch, Failure, FailureKind, Found, Looking, Lookup, Running};
use crate::clock::{ManualClock, Millis};
use crate::contract::Tool;
use crate::gate::Gate;
use crate::refusal::Effect;
use crate::session::{Principal, Session};

/// A backend that answers a payment as it is told, and finds it at the look that is named.
struct Payments {
    answer: fn() -> Option<Answer>,
    found_at: usize,
    looks: AtomicUsize,
}

impl Payments {
    fn new(answer: fn() -> Option<Answer>, found_at: usize) -> Arc<Self> {
        Arc::new(Self { answer, found_at, looks: AtomicUsize::new(0) })
    }

    fn looks(&self) -> usize {
        self.looks.load(Ordering::SeqCst)
    }
}

impl Backend for Payments {
    fn run(&self, _: Dispatch) -> Running<'_> {
        match (self.answer)() {
            Some(answer) => Box::pin(async { answer }),
            None => Box::pin(std::future::pending()),
        }
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        let looks = self.looks.fetch_add(1, Ordering::SeqCst) + 1;
        let found = match looks >= self.found_at {
            true => Found::Found(br#"{"paid":5}"#.to_vec()),
            false => Found::Failed("the backend is down".into()),
        };
        Box::pin(async { found })
    }
}

fn lost() -> Option<Answer> {
    Some(Answer::failed(Effect::Unknown, Failure::new(FailureKind::Reported, "lost", "the connection broke")))
}

fn keys(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn gate(store: Store, clock: &Arc<ManualClock>, payments: &Arc<Payments>) -> Gate {
    let pay = keys(json!({
        "description": "Pays. Moves money.", "effect": "write", "once": {"retain": "1h"},
        "input": {"properties": {"cents": {"type": "integer"}}, "required": ["cents"]},
        "reconcile": {"tool": "find", "args": {"key": "{idempotency_key}"}, "done": "/paid"},
    }));
    let find = keys(json!({
        "description": "Finds a payment by its key.", "effect": "read",
        "input": {"properties": {"key": {"type": "string"}}, "required": ["key"]},
        "output": {"type": "object", "properties": {"paid": {"type": "integer"}}},
    }));
    Gate::builder()
        .tool(Tool::new("pay", pay, Arc::clone(payments) as _))
        .tool(Tool::new("find", find, Arc::clone(payments) as _))
        .policy("permit (principal, action, resource);")
        .clock(Arc::clone(clock) as _)
        .store(store)
        .build()
        .unwrap()
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Millis(1_796_000_000_000)))
}

async fn pay(gate: &Gate, cents: usize) {
    let alice = Session::new(Principal::new("local", "alice"), "acme");
    gate.call(Call::new("call_1", "pay", json!({ "cents": cents }).to_string()), &alice).await.unwrap();
}

async fn states(store: &Store) -> Vec<&'static str> {
    let page = store.actions("acme", None, 2000).await.unwrap();
    page.items.into_iter().map(|action| action.state.as_str()).collect()
}

/// Waits for what is to come about within a moment.
async fn until(store: &Store, wanted: &[&str]) {
    for _ in 0..1000 {
        if states(store).await == wanted {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(states(store).await, wanted);
}

#[tokio::test]
async fn what_a_dead_process_left_open_is_unknown_at_once_and_no_call_comes_by() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gate.db");
    let dies = tokio::runtime::Runtime::new().unwrap();
    let died = gate(Store::sqlite(&path).unwrap(), &clock(), &Payments::new(|| None, usize::MAX));
    dies.spawn(async move { pay(&died, 5).await });
    let looker = Store::sqlite(&path).unwrap();
    until(&looker, &["open"]).await;
    dies.shutdown_background();

    let desk = gate(looker, &clock(), &Payments::new(lost, usize::MAX));
    desk.keep(|_| {});
    until(desk.store(), &["unknown"]).await;
    let records = desk.store().tail(9).await.unwrap();
    let lost = records.iter().filter(|record| record.body.contains(r#""kind":"lost""#));
    assert_eq!(lost.count(), 1);
    desk.finish().await.unwrap();
}

#[tokio::test]
async fn an_unknown_action_is_looked_for_until_it_is_found_and_less_and_less_often() {
    let payments = Payments::new(lost, 5);
    let desk = gate(Store::memory(), &clock(), &payments);
    let begun = Instant::now();
    pay(&desk, 5).await;
    until(desk.store(), &["done"]).await;
    assert_eq!(payments.looks(), 5);
    assert!(begun.elapsed() >= FIRST_WAIT * (1 + 2 + 4 + 8), "{:?}", begun.elapsed());
    sleep(PERIOD * 20).await;
    assert_eq!(payments.looks(), 5, "it is known now");
}

#[tokio::test]
async fn what_is_never_found_is_looked_for_seldom_in_the_end() {
    let payments = Payments::new(lost, usize::MAX);
    let desk = gate(Store::memory(), &clock(), &payments);
    for cents in 0..3 {
        pay(&desk, cents).await;
    }
    sleep(FIRST_WAIT * 150).await;
    // After 0, 1, 3, 7, 15, 31, 63 and 127 times the first wait.
    assert!((3..=3 * 8).contains(&payments.looks()), "{} looks", payments.looks());
    assert_eq!(states(desk.store()).await, ["unknown"; 3]);
}

#[tokio::test]
async fn what_is_past_its_time_is_forgotten_until_nothing_of_it_is_left() {
    let clock = clock();
    let desk = gate(Store::memory(), &clock, &Payments::new(|| Some(Answer::done("1")), 0));
    for cents in 0..1000 {
        pay(&desk, cents).await;
    }
    clock.advance(Duration::from_secs(26 * 3600));
    until(desk.store(), &[]).await;
}

#[tokio::test]
async fn a_gate_that_is_dropped_is_not_kept_alive() {
    let payments = Payments::new(lost, usize::MAX);
    let desk = gate(Store::memory(), &clock(), &payments);
    desk.keep(|_| {});
    pay(&desk, 5).await;
    assert!(Arc::strong_count(&payments) > 1);
    drop(desk);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(Arc::strong_count(&payments), 1);
}

#[tokio::test]
async fn a_gate_that_is_finished_has_let_go_of_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gate.db");
    let desk = gate(Store::sqlite(&path).unwrap(), &clock(), &Payments::new(lost, usize::MAX));
    desk.keep(|_| {});
    pay(&desk, 5).await;
    desk.finish().await.unwrap();
    drop(desk);
    let owners = || std::fs::read_dir(folder.path().join("gate.db.owners")).unwrap().count();
    // The recorder ends by itself in a moment.
    for _ in 0..200 {
        if owners() == 0 {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(owners(), 0, "the owner is still alive");
}

#[tokio::test]
async fn a_store_that_fails_is_told_of_once_and_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gate.db");
    let desk = gate(Store::sqlite(&path).unwrap(), &clock(), &Payments::new(lost, usize::MAX));
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("ALTER TABLE entries RENAME TO hidden").unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let telling = Arc::clone(&told);
    desk.keep(move |error| {
        assert!(error.to_string().contains("gate.db"), "{error}");
        telling.fetch_add(1, Ordering::SeqCst);
    });
    let rounds = async |expected: usize| {
        for _ in 0..20 {
            desk.keeper.rounds.at_once.notify_one();
            sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(told.load(Ordering::SeqCst), expected);
    };
    rounds(1).await;
    other.execute_batch("ALTER TABLE hidden RENAME TO entries").unwrap();
    rounds(1).await;
    other.execute_batch("ALTER TABLE entries RENAME TO hidden").unwrap();
    rounds(2).await;
}
