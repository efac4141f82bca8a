//! Processes whose clocks are hours apart.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Shared;
use crate::process::{Process, Start};

fn note(text: &str, lingers: u64) -> Value {
    json!({ "call": { "who": "alice", "tool": "note", "arguments": { "text": text, "lingers": lingers } } })
}

#[test]
fn processes_whose_clocks_are_hours_apart_hold_the_same_leases_and_keep_the_same_replies() {
    let shared = Shared::new();
    let mut first = Process::start(shared.path());
    // Its first write tells the others the time, as whoever comes first does.
    let done = first.ask(&note("before", 0));
    let [mut ahead, mut behind] = [5, -5].map(|ahead| Process::start_as(shared.path(), &Start { ahead, keeps: true }));
    let times = [&mut first, &mut ahead, &mut behind].map(|process| {
        let asked = Instant::now();
        let now = process.ask(&json!("now")).as_u64().unwrap();
        (now, asked.elapsed())
    });
    let (earliest, latest) = (times.iter().min().unwrap().0, times.iter().max().unwrap().0);
    let asking: Duration = times.iter().map(|(_, took)| *took).sum();
    assert!(u128::from(latest - earliest) <= asking.as_millis() + 20, "{times:?}");

    // What is kept for an hour is kept by all of them, and what runs has its lease with all of them.
    for process in [&mut ahead, &mut behind] {
        let again = process.ask(&note("before", 0));
        assert_eq!((&again["replayed"], &again["result"]), (&json!(true), &done["result"]), "{again}");
    }
    for (round, runs) in [&mut first, &mut behind].into_iter().enumerate() {
        let (text, waits) = (format!("slow_{round}"), &mut ahead);
        runs.tell(&note(&text, 1500));
        while shared.effects().len() < 2 + round {
            std::thread::yield_now();
        }
        let waited = waits.ask(&note(&text, 1500));
        let ran = runs.hear();
        assert_eq!((&ran["ok"], &ran["replayed"]), (&json!(true), &json!(false)), "{ran}");
        assert_eq!((&waited["replayed"], &waited["result"]), (&json!(true), &ran["result"]), "{waited}");
    }
    assert_eq!(shared.effects().len(), 3);
    [first, ahead, behind].into_iter().for_each(Process::finish);
}
