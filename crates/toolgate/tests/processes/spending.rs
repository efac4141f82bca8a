//! Two people, in two processes, who spend what only one of them can.

use std::fs;

use serde_json::{Value, json};

use crate::Shared;
use crate::process::{Process, account_file, balance};

const ROUNDS: usize = 300;
const AT_ONCE: usize = 20;

#[test]
fn of_two_who_spend_one_balance_one_does_and_it_is_never_overdrawn() {
    let shared = Shared::new();
    let accounts: Vec<String> = (0..ROUNDS).map(|round| format!("{round}")).collect();
    for account in &accounts {
        fs::write(account_file(shared.path(), account), "1000").unwrap();
    }
    let (mut one, mut other) = (Process::start(shared.path()), Process::start(shared.path()));
    let order = |who: &str, cents: u64, accounts: &[String]| {
        let arguments: Vec<Value> =
            accounts.iter().map(|account| json!({ "account": account, "cents": cents })).collect();
        json!({ "calls": { "who": who, "tool": "spend", "arguments": arguments, "at_once": AT_ONCE } })
    };
    let (mut alice, mut mia) = (Vec::new(), Vec::new());
    for (turn, some) in accounts.chunks(AT_ONCE).enumerate() {
        // Who is told first changes, so that neither process is always the later one.
        if turn % 2 == 0 {
            one.tell(&order("alice", 700, some));
            other.tell(&order("mia", 600, some));
        } else {
            other.tell(&order("mia", 600, some));
            one.tell(&order("alice", 700, some));
        }
        alice.extend(one.hear().as_array().unwrap().clone());
        mia.extend(other.hear().as_array().unwrap().clone());
    }
    one.finish();
    other.finish();

    let effects = shared.effects();
    assert_eq!(effects.len(), ROUNDS);
    let mut won = [0, 0];
    for (round, account) in accounts.iter().enumerate() {
        let (alice, mia) = (&alice[round], &mia[round]);
        let (winner, refused, cents) = match (alice["result"].is_string(), mia["result"].is_string()) {
            (true, false) => (0, mia, 700),
            (false, true) => (1, alice, 600),
            _ => panic!("round {round}: one spends and the other is refused\n  {alice}\n  {mia}"),
        };
        won[winner] += 1;
        assert_eq!((&refused["code"], &refused["effect"]), (&json!("rule_failed"), &json!("none")), "round {round}");
        assert_eq!(balance(shared.path(), account), 1000 - cents, "round {round}");
        assert!(effects.contains(&format!("{account} {cents}")), "round {round}");
    }
    assert!(won.iter().all(|won| *won > 0), "{won:?}: they never raced");
}
