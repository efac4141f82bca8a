//! A store that cannot be written when a call ends.

use std::path::Path;

use rusqlite::Connection;
use toolgate::fault::Fault;
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

    // Another process finds the entry as it was left.
    drop(locked.lock().unwrap().take());
    drop(gate);
    let backend = Arc::new(Told::ends(|_| Answer::done(r#"{"paid":5}"#)));
    let later = gate_of([tool("pay", "write", json!({}), &backend)], Store::sqlite(&file).unwrap(), None);
    let again = call(&later, "pay", json!({})).await;
    assert_eq!((again.code(), backend.sends()), (Some(Code::OutcomeUnknown), 0));
}
