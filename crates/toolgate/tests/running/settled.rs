//! A store that cannot be written when a call ends.

use std::path::Path;

use rusqlite::Connection;
use tokio::sync::Notify;
use toolgate::fault::Fault;
use toolgate::gate::{Recorded, Ruling};
use toolgate::ledger::Wanted;
use toolgate::refusal::Code;

use super::*;

/// Somebody else writes to the file, and does not come to an end.
fn lock(file: &Path) -> Connection {
    let connection = Connection::open(file).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    connection.execute_batch("begin immediate").unwrap();
    connection
}

/// A gate over a file whose only tool takes the lock of it while it runs; the lock is let go after `held`.
fn gate(file: &Path, held: Option<Duration>) -> (Gate, Arc<Mutex<Option<Connection>>>) {
    let locked: Arc<Mutex<Option<Connection>>> = Arc::default();
    let (keep, path) = (Arc::clone(&locked), file.to_owned());
    let backend = Arc::new(Told::new(move |_, _| {
        *keep.lock().unwrap() = Some(lock(&path));
        if let Some(held) = held {
            let keep = Arc::clone(&keep);
            std::thread::spawn(move || {
                std::thread::sleep(held);
                keep.lock().unwrap().take();
            });
        }
        Box::pin(async { Answer::done(r#"{"paid":5}"#) })
    }));
    let pay = tool("pay", "write", json!({ "deadline": "200ms" }), &backend);
    (gate_of([pay], Store::sqlite(file).unwrap(), None), locked)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_for_a_while_is_waited_for_and_the_result_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (gate, _) = gate(&folder.path().join("gate.db"), Some(Duration::from_millis(1500)));
    let reply = call(&gate, "pay", json!({})).await;
    assert_eq!((reply.result(), reply.effect()), (Some(r#"{"paid":5}"#), Effect::Done));
    assert_eq!(history(&gate, &reply).await.pop().unwrap()["kind"], "outcome");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_until_the_lease_is_over_withholds_the_result_and_stops_the_gate() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gate.db");
    let (gate, locked) = gate(&file, None);
    let reply = call(&gate, "pay", json!({})).await;
    assert_eq!((reply.code(), reply.effect()), (Some(Code::OutcomeUnknown), Effect::Unknown));
    assert_eq!(reply.result(), None, "what did not close its entry is not shown");
    assert!(reply.refusal().unwrap().text().contains("It was sent at "));
    assert_eq!(noted(&reply, "settle", "closed"), false);
    // Nothing can be recorded, so nothing more is done.
    let next = gate.call(Call::new("call_2", "pay", r#"{"n":2}"#), &alice()).await;
    assert!(matches!(next, Err(Fault::Store(_) | Fault::Record(_))), "{next:?}");

    drop(locked.lock().unwrap().take());
    eventually("the record of it", async || gate.is_ready().await.is_ok()).await;
    let told = history(&gate, &reply).await;
    let told: Vec<Value> = told.into_iter().filter(|record| record["kind"] != "lost").collect();
    let kinds: Vec<&Value> = told.iter().map(|record| &record["kind"]).collect();
    assert_eq!(kinds, ["intent", "late"], "a write that was not closed is no read");
    assert_eq!((&told[1]["effect"], &told[1]["code"]), (&json!("unknown"), &json!("outcome_unknown")));
    let records = gate.store().records_after(0, 100).await.unwrap();
    assert_eq!(records.iter().filter_map(Recorded::of).count(), 1, "and one call");

    // Another process finds the entry as it was left.
    drop(gate);
    let backend = Arc::new(Told::ends(|_| Answer::done(r#"{"paid":5}"#)));
    let later = gate_of([tool("pay", "write", json!({}), &backend)], Store::sqlite(&file).unwrap(), None);
    let again = call(&later, "pay", json!({})).await;
    assert_eq!((again.code(), backend.sends()), (Some(Code::OutcomeUnknown), 0));
}

#[tokio::test]
async fn a_write_whose_entry_was_settled_by_others_meanwhile_is_late_on_the_record_and_no_outcome() {
    let (clock, running, over) = (clock(), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (runs, ends) = (Arc::clone(&running), Arc::clone(&over));
    let backend = Arc::new(Told::new(move |_, _| {
        let (runs, ends) = (Arc::clone(&runs), Arc::clone(&ends));
        Box::pin(async move {
            runs.notify_one();
            ends.notified().await;
            Answer::done(r#"{"paid":5}"#)
        })
    }));
    let gate = gate_of([tool("pay", "write", json!({}), &backend)], Store::memory(), Some(&clock));
    let other = gate.clone();
    let calling = tokio::spawn(async move { call(&other, "pay", json!({})).await });
    running.notified().await;
    clock.advance(Duration::from_secs(3600));
    gate.sweep().await.unwrap();
    let key = gate.store().ledger(Wanted::default(), None, 1).await.unwrap().items[0].key;
    gate.rule(key, &Ruling::NotDone, "the bank says so", &alice()).await.unwrap();
    over.notify_one();
    let reply = calling.await.unwrap();
    assert_eq!((reply.code(), reply.effect()), (Some(Code::OutcomeUnknown), Effect::Unknown));
    let told = history(&gate, &reply).await;
    assert!(told.iter().all(|record| record["kind"] != "outcome"), "{told:?}");
    let last = told.last().unwrap();
    assert_eq!((&last["kind"], &last["effect"]), (&json!("late"), &json!("done")), "what the tool said is told");
}
