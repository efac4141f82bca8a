//! One approval, and two processes that would use it at the same moment.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Shared;
use crate::process::Process;

const TRIES: usize = 1000;
/// How many approvals one person asks for.
const AT_ONCE: usize = 10;

#[test]
fn of_two_processes_that_use_one_approval_one_does() {
    let shared = Shared::new();
    let (mut one, mut other) = (Process::start(shared.path()), Process::start(shared.path()));
    let (mut won, mut given) = ([0, 0], BTreeSet::new());
    for turn in 0..TRIES / AT_ONCE {
        let things: Vec<String> = (0..AT_ONCE).map(|number| format!("thing_{turn}_{number}")).collect();
        let arguments: Vec<Value> = things.iter().map(|what| json!({ "what": what })).collect();
        let who = format!("alice_{turn}");
        let asked = one.ask(&json!({ "calls": { "who": who, "tool": "give", "arguments": arguments, "at_once": 1 } }));
        let asked = asked.as_array().unwrap();
        let approvals: Vec<&Value> = asked.iter().map(|answer| &answer["approval"]).collect();
        assert!(approvals.iter().all(|id| id.is_string()), "{asked:?}");
        let states = one.ask(&json!({ "approve": { "who": "mia", "approvals": approvals } }));
        assert_eq!(states, json!(vec!["granted"; AT_ONCE]));

        // The operations are two, so that the ledger would let both run: the approval alone stands in the way.
        let order = |name: &str| {
            json!({ "calls": {
                "who": who, "tool": "give", "arguments": arguments, "at_once": AT_ONCE, "run": format!("{name}_{turn}"),
                "approvals": approvals, "operations": format!("{name}-{turn}"),
            } })
        };
        // Who is told first changes, so that neither process is always the later one.
        if turn % 2 == 0 {
            one.tell(&order("one"));
            other.tell(&order("other"));
        } else {
            other.tell(&order("other"));
            one.tell(&order("one"));
        }
        let (ours, theirs) = (one.hear(), other.hear());
        for (number, what) in things.iter().enumerate() {
            let (ours, theirs) = (&ours[number], &theirs[number]);
            let refused = match (ours["result"].is_string(), theirs["result"].is_string()) {
                (true, false) => (0, theirs),
                (false, true) => (1, ours),
                _ => panic!("{what}: one gives and the other is refused\n  {ours}\n  {theirs}"),
            };
            won[refused.0] += 1;
            let (code, effect) = (&refused.1["code"], &refused.1["effect"]);
            assert_eq!((code, effect), (&json!("approval_invalid"), &json!("none")), "{what}");
            given.insert(what.clone());
        }
    }
    one.finish();
    other.finish();
    let effects = shared.effects();
    assert_eq!(effects.len(), TRIES, "each thing is given away once");
    assert_eq!(effects.into_iter().collect::<BTreeSet<String>>(), given);
    assert!(won.iter().all(|won| *won > 0), "{won:?}: they never raced");
}
