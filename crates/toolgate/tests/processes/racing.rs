//! The same calls in four processes at the same moment.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::Shared;
use crate::process::Process;

const PROCESSES: usize = 4;
const IDENTITIES: usize = 500;
/// How often each process makes each call.
const TIMES: usize = 5;
const AT_ONCE: usize = 64;

#[test]
fn ten_thousand_duplicates_of_four_processes_have_one_effect_each_and_one_reply() {
    let shared = Shared::new();
    let mut processes: Vec<Process> = (0..PROCESSES).map(|_| Process::start(shared.path())).collect();
    // Each process asks for the same at the same moment, and again before and after it is done.
    let texts: Vec<String> = (0..IDENTITIES)
        .collect::<Vec<_>>()
        .chunks(20)
        .flat_map(|some| (0..TIMES).flat_map(|_| some.to_vec()).collect::<Vec<_>>())
        .map(|identity| format!("note_{identity}"))
        .collect();
    assert_eq!(texts.len() * PROCESSES, 10_000);
    let arguments: Vec<Value> = texts.iter().map(|text| json!({ "text": text })).collect();
    let order = json!({ "calls": { "who": "alice", "tool": "note", "arguments": arguments, "at_once": AT_ONCE } });
    for process in &mut processes {
        process.tell(&order);
    }
    let answers: Vec<Value> = processes.iter_mut().map(Process::hear).collect();
    processes.into_iter().for_each(Process::finish);

    let mut effects: BTreeMap<String, String> = BTreeMap::new();
    for line in shared.effects() {
        let (text, secret) = line.split_once(' ').unwrap();
        let before = effects.insert(text.to_owned(), json!({ "secret": secret }).to_string());
        assert!(before.is_none(), "{text} has two effects");
    }
    assert_eq!(effects.len(), IDENTITIES);
    let mut first = 0;
    for answers in &answers {
        for (text, answer) in texts.iter().zip(answers.as_array().unwrap()) {
            assert_eq!(answer["result"].as_str(), Some(effects[text].as_str()), "{text}: {answer}");
            first += usize::from(answer["replayed"] == false);
        }
    }
    assert_eq!(first, IDENTITIES, "everybody but one is told that it was done before");
}
