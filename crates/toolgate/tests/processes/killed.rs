//! A process that is killed in the middle of a call.

use std::fs;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate::ledger::Store;

use crate::Shared;
use crate::process::{Process, Start};

fn note(text: &str, lingers: u64) -> Value {
    json!({ "call": { "who": "alice", "tool": "note", "arguments": { "text": text, "lingers": lingers } } })
}

/// Starts a call in a process of its own, and kills it once the call has had its effect.
fn killed_after_its_effect(shared: &Shared, text: &str) {
    let mut dies = Process::start(shared.path());
    dies.tell(&note(text, 25_000));
    let begun = Instant::now();
    while shared.effects().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never began");
        yield_now();
    }
    dies.kill();
}

fn states(shared: &Shared) -> Vec<&'static str> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = Store::sqlite_to_read(shared.path().join("gate.db")).unwrap();
    let page = runtime.block_on(store.actions("acme", None, 9)).unwrap();
    page.items.into_iter().map(|action| action.state.as_str()).collect()
}

#[test]
fn what_a_killed_process_did_is_found_by_the_next_equal_call_and_not_done_again() {
    let shared = Shared::new();
    let mut lives = Process::start(shared.path());
    killed_after_its_effect(&shared, "a");
    assert_eq!(states(&shared), ["open"]);
    fs::write(shared.path().join("down"), "").unwrap();
    // The lease runs on for half a minute, but its owner is known to be dead.
    let begun = Instant::now();
    let unknown = lives.ask(&note("a", 25_000));
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(
        (&unknown["error"]["code"], &unknown["error"]["effect"]),
        (&json!("outcome_unknown"), &json!("unknown"))
    );
    assert_eq!(states(&shared), ["unknown"]);
    // Nobody else gets its lane, however they come by it.
    let other = lives.ask(&json!({ "call": { "who": "mia", "tool": "note", "arguments": { "text": "a" } } }));
    assert_eq!((&other["error"]["code"], &other["error"]["effect"]), (&json!("outcome_unknown"), &json!("none")));

    fs::remove_file(shared.path().join("down")).unwrap();
    let found = lives.ask(&note("a", 25_000));
    assert_eq!((&found["ok"], &found["replayed"]), (&json!(true), &json!(true)), "{found}");
    let effects = shared.effects();
    assert_eq!(effects.len(), 1);
    assert_eq!(effects[0], format!("a {}", found["result"]["secret"].as_str().unwrap()));
    lives.finish();
}

#[test]
fn what_a_killed_process_did_is_found_without_a_call_by_a_process_that_stands() {
    let shared = Shared::new();
    killed_after_its_effect(&shared, "a");
    let keeper = Process::start_as(shared.path(), &Start { keeps: true, ..Start::default() });
    let begun = Instant::now();
    let mut seen = vec!["open"];
    while seen.last() != Some(&"done") {
        assert!(begun.elapsed() < Duration::from_secs(30), "{seen:?}");
        let now = states(&shared)[0];
        if seen.last() != Some(&now) {
            seen.push(now);
        }
        yield_now();
    }
    assert_eq!(seen, ["open", "unknown", "done"]);
    assert_eq!(shared.effects().len(), 1);
    keeper.finish();
}
