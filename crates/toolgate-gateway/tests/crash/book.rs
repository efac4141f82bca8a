//! What the clients know: every write that they asked for, how often, and what they were told.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::folder::WRITES;
use crate::gateway::Heard;

/// The writes of one folder.
#[derive(Debug, Default)]
pub(crate) struct Book {
    writes: BTreeMap<String, Write>,
    /// Those without a final answer.
    unfinished: Vec<String>,
    finished: Vec<String>,
    /// What no gate may ever say.
    pub(crate) wrong: Vec<String>,
}

/// One write, as its client knows it.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) identity: String,
    pub(crate) tool: &'static str,
    account: u64,
    /// What kept its client from an answer.
    pub(crate) cut_by: BTreeSet<&'static str>,
    /// The result that its client was told.
    pub(crate) told: Option<Value>,
    /// Whether it was told another one later.
    pub(crate) told_otherwise: bool,
}

/// What no answer yet may say, and stay asked again.
const NOT_YET: [&str; 6] = ["in_progress", "outcome_unknown", "timed_out", "tool_failed", "unavailable", "overloaded"];
/// Accounts, each a lane of the writes that take turns.
const ACCOUNTS: u64 = 6;
/// One call in so many is for a write that was answered before.
const ASKED_AGAIN: u64 = 8;

impl Write {
    pub(crate) fn arguments(&self) -> Value {
        json!({ "identity": self.identity, "account": self.account })
    }
}

impl Book {
    /// A write that nobody asked for before, or one that was answered.
    pub(crate) fn next(&mut self, chance: &mut Chance) -> Write {
        match self.finished.len() {
            finished if finished > 0 && chance.below(ASKED_AGAIN) == 0 => {
                let index = chance.index(finished);
                self.writes[&self.finished[index]].clone()
            }
            _ => self.another(chance),
        }
    }

    fn another(&mut self, chance: &mut Chance) -> Write {
        let write = Write {
            identity: format!("w{}", self.writes.len()),
            tool: WRITES[chance.index(WRITES.len())],
            account: chance.below(ACCOUNTS),
            cut_by: BTreeSet::new(),
            told: None,
            told_otherwise: false,
        };
        self.writes.insert(write.identity.clone(), write.clone());
        write
    }

    /// Everything that is without an answer; whoever takes it asks again.
    pub(crate) fn take_unfinished(&mut self) -> Vec<Write> {
        std::mem::take(&mut self.unfinished).iter().map(|identity| self.writes[identity].clone()).collect()
    }

    /// Gives back what was not asked.
    pub(crate) fn give_back(&mut self, write: &Write) {
        self.unfinished.push(write.identity.clone());
    }

    /// What a client heard while `cause` was about. Whether the gate is still there.
    pub(crate) fn heard(&mut self, write: &Write, heard: Heard, cause: Option<&'static str>) -> bool {
        let identity = &write.identity;
        let known = self.writes.get_mut(identity).unwrap();
        match heard {
            Heard::Nothing => {
                known.cut_by.extend(cause);
                if known.told.is_none() {
                    self.unfinished.push(identity.clone());
                }
                false
            }
            Heard::Problem(problem) => {
                self.wrong.push(format!("{identity}: a problem of the gate: {problem}"));
                if known.told.is_none() {
                    self.unfinished.push(identity.clone());
                }
                true
            }
            Heard::Reply(reply) => {
                self.replied(identity, &reply, cause);
                true
            }
        }
    }

    fn replied(&mut self, identity: &str, reply: &Value, cause: Option<&'static str>) {
        let known = self.writes.get_mut(identity).unwrap();
        if reply["ok"] == true {
            let result = &reply["result"];
            if reply["effect"] != "done" || result["identity"] != *identity {
                self.wrong.push(format!("{identity}: no answer to it: {reply}"));
            }
            match &known.told {
                None => {
                    known.told = Some(result.clone());
                    self.finished.push(identity.to_owned());
                }
                Some(told) => {
                    known.told_otherwise |= *told != *result || reply["replayed"] != true;
                }
            }
            return;
        }
        let (code, effect) = (reply["error"]["code"].as_str().unwrap(), reply["error"]["effect"].as_str().unwrap());
        if effect == "unknown" {
            known.cut_by.extend(cause);
        }
        match known.told {
            Some(_) => known.told_otherwise = true,
            None => self.unfinished.push(identity.to_owned()),
        }
        if !NOT_YET.contains(&code) || effect == "done" {
            self.wrong.push(format!("{identity}: refused for good: {reply}"));
        }
    }

    /// Some that have an answer: all that were cut off once, and as many others.
    pub(crate) fn to_ask_again(&self) -> Vec<Write> {
        let (cut, whole): (Vec<&Write>, Vec<&Write>) =
            self.writes.values().filter(|write| write.told.is_some()).partition(|write| !write.cut_by.is_empty());
        let as_many = cut.len();
        cut.into_iter().chain(whole.into_iter().take(as_many)).cloned().collect()
    }

    pub(crate) fn writes(&self) -> impl Iterator<Item = &Write> {
        self.writes.values()
    }
}
