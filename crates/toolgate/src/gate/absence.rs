//! When not finding an action is proof that it did not happen: nothing is written twice by a look that came too soon.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::Gate;
use crate::audit::{Kind, Record};
use crate::backend::{Answer, Backend, Dispatch, Found, Looking, Lookup, Running};
use crate::call::Ref;
use crate::clock::{Clock, ManualClock, Millis};
use crate::contract::Tool;
use crate::json::Digest;
use crate::ledger::{Action, Claim, Entry, EntryKey, LaneKey, NewEntry, Opened, Opening, Stamp, State, Store};
use crate::recovery::Reconciled;
use crate::session::Principal;
use crate::stoppage::Spot;

const BEGUN: Millis = Millis(1_796_000_000_000);
const LEASE: Duration = Duration::from_secs(65);
const ABSENT_AFTER: Duration = Duration::from_secs(10);

/// A backend that knows of no payment, and takes its time to say so.
struct Bank {
    clock: Arc<ManualClock>,
    /// It never answers where there is none.
    takes: Option<Duration>,
    /// What it says, where it finds something.
    says: Option<Value>,
}

impl Backend for Bank {
    fn run(&self, _: Dispatch) -> Running<'_> {
        Box::pin(async { Answer::done("{}") })
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        let Some(takes) = self.takes else { return Box::pin(std::future::pending()) };
        self.clock.advance(takes);
        let says = self.says.as_ref().map_or(Found::Absent, |says| Found::Found(says.to_string().into_bytes()));
        Box::pin(async { says })
    }
}

fn keys(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A gate whose look-ups take so long, and find nothing.
fn gate(store: Store, clock: &Arc<ManualClock>, takes: impl Into<Option<Duration>>) -> Gate {
    gate_over(store, clock, Bank { clock: Arc::clone(clock), takes: takes.into(), says: None })
}

fn gate_over(store: Store, clock: &Arc<ManualClock>, bank: Bank) -> Gate {
    let pay = keys(json!({
        "description": "Pays. Moves money.", "effect": "write", "once": {"retain": "1h"}, "deadline": "60s",
        "input": {"properties": {}},
        "reconcile": {"tool": "find", "args": {"key": "{idempotency_key}"}, "done": "/paid", "absent_after": "10s"},
    }));
    let find = keys(json!({
        "description": "Finds a payment by its key.", "effect": "read",
        "input": {"properties": {"key": {"type": "string"}}, "required": ["key"]},
        "output": {"type": "object", "properties": {"paid": {"type": ["integer", "boolean"]}}},
    }));
    let bank = Arc::new(bank);
    Gate::builder()
        .tool(Tool::new("pay", pay, Arc::clone(&bank) as _))
        .tool(Tool::new("find", find, bank))
        .policy("permit (principal, action, resource);")
        .clock(Arc::clone(clock) as _)
        .store(store)
        .build()
        .unwrap()
}

/// Opens a payment as a process does whose clock says `now`.
async fn open(store: &Store, now: Millis) {
    let (lane, reference) = (LaneKey::of(&json!("lane")), Ref::fresh());
    let action = Action {
        tool: "pay".into(),
        tenant: "acme".into(),
        principal: Principal::new("local", "alice"),
        run: "default".into(),
        args_digest: Digest::of(b"{}"),
        arguments: json!({}),
        facts: json!({}),
        lane,
        keeps_lane: true,
        retain_ms: 3_600_000,
        grant: None,
        holds: Vec::new(),
        subject: None,
    };
    let entry = NewEntry {
        key: EntryKey::of(&json!("payment")),
        action,
        owner: store.owner().clone(),
        since: now,
        lease_end: now.after(LEASE),
        reference: reference.clone(),
        anew: false,
        stamp: Stamp { revision: 0, lane_version: 0 },
    };
    let intent = Record::new(Kind::Intent, now, reference, Map::new());
    let opening = Opening {
        entry: Some(entry),
        grant: None,
        takings: Vec::new(),
        drawings: Vec::new(),
        intent,
        spot: Spot::default(),
    };
    assert!(matches!(store.open(opening, now).await.unwrap(), Opened::Open { .. }));
}

async fn unknown(gate: &Gate) -> Entry {
    gate.store().in_doubt(None, 1).await.unwrap().remove(0).1
}

/// What comes of looking for the payment. No call comes by, so nothing else looks for it.
async fn look_for_it(gate: &Gate) -> Reconciled {
    let entry = unknown(gate).await;
    gate.line.recovery.reconcile(&entry, Instant::now() + Duration::from_secs(10)).await.unwrap()
}

#[tokio::test]
async fn a_look_that_began_too_soon_proves_nothing_however_long_it_took() {
    let clock = Arc::new(ManualClock::at(BEGUN));
    let desk = gate(Store::memory(), &clock, Duration::from_secs(1));
    open(desk.store(), BEGUN).await;
    clock.advance(LEASE);
    assert_eq!(desk.sweep().await.unwrap(), 1);
    let State::Unknown { lease_end, .. } = unknown(&desk).await.state else { panic!("it is unknown") };
    let proof_from = lease_end.after(ABSENT_AFTER);
    clock.set(Millis(proof_from.0 - 1));
    assert_eq!(look_for_it(&desk).await, Reconciled::StillUnknown, "it may have landed while it was looked for");
    assert!(proof_from < clock.now());
    assert_eq!(look_for_it(&desk).await, Reconciled::Known);
}

#[tokio::test]
async fn a_look_up_that_says_no_was_taken_for_a_proof_that_it_happened() {
    for (says, done) in [(json!({"paid": false}), false), (json!({"paid": true}), true), (json!({"paid": 0}), true)] {
        let clock = Arc::new(ManualClock::at(BEGUN));
        let bank = Bank { clock: Arc::clone(&clock), takes: Some(Duration::ZERO), says: Some(says.clone()) };
        let desk = gate_over(Store::memory(), &clock, bank);
        open(desk.store(), BEGUN).await;
        clock.advance(LEASE + LEASE + ABSENT_AFTER);
        assert_eq!(desk.sweep().await.unwrap(), 1);
        clock.advance(LEASE + ABSENT_AFTER);
        let key = unknown(&desk).await.key;
        assert_eq!(look_for_it(&desk).await, Reconciled::Known);
        let found = desk.store().action_of_key(Digest::from(*key.as_bytes())).await.unwrap().unwrap();
        assert_eq!(matches!(found.state, State::Done { .. }), done, "{says}: {:?}", found.state);
    }
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_process_whose_clock_is_ahead_waits_for_the_whole_lease_of_one_that_lives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gate.db");
    let lives = Store::sqlite(&path).unwrap();
    open(&lives, BEGUN).await;
    let clock = Arc::new(ManualClock::at(BEGUN.after(Duration::from_secs(5 * 3600))));
    let desk = gate(Store::sqlite(&path).unwrap(), &clock, Duration::ZERO);
    assert_eq!(desk.sweep().await.unwrap(), 1, "by its clock the lease is over");
    assert_eq!(look_for_it(&desk).await, Reconciled::StillUnknown, "whoever pays may still do it");
    clock.advance(LEASE + ABSENT_AFTER - Duration::from_millis(1));
    assert_eq!(look_for_it(&desk).await, Reconciled::StillUnknown);
    clock.advance(Duration::from_millis(1));
    assert_eq!(look_for_it(&desk).await, Reconciled::Known);
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn all_who_wait_sweep_together_a_few_times_a_second_and_find_out_that_an_owner_died() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gate.db");
    let dies = Store::sqlite(&path).unwrap();
    open(&dies, BEGUN).await;
    let desk = gate(Store::sqlite(&path).unwrap(), &Arc::new(ManualClock::at(BEGUN)), Duration::ZERO);
    let together = async || {
        let swept = futures_util::future::join_all((0..10).map(|_| desk.line.recovery.sweep_meanwhile(false))).await;
        swept.into_iter().map(Result::unwrap).sum::<usize>()
    };
    let begun = Instant::now();
    assert_eq!(together().await, 0, "it lives");
    drop(dies);
    let mut found = 0;
    for _ in 0..1000 {
        found = together().await;
        if found > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(found, 1);
    assert!(begun.elapsed() >= Duration::from_millis(250), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn whoever_is_cut_off_while_it_looks_leaves_it_to_the_next_at_once() {
    let clock = Arc::new(ManualClock::at(BEGUN));
    let desk = gate(Store::memory(), &clock, None);
    open(desk.store(), BEGUN).await;
    clock.advance(LEASE);
    assert_eq!(desk.sweep().await.unwrap(), 1);
    let looking = tokio::time::timeout(Duration::from_millis(50), look_for_it(&desk)).await;
    assert!(looking.is_err(), "it never ends");
    let next = Claim { token: "next".into(), until: clock.now().after(LEASE) };
    assert!(desk.store().claim(unknown(&desk).await.key, next, clock.now()).await.unwrap().is_some());
}
