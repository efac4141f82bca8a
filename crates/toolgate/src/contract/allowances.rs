//! What a contract lets its calls be otherwise than its schema wants: `lenient`, `lenient_for_write`, `fill_defaults`.

use super::Access;
use crate::fields::{Fields, Problems};
use crate::leniency::{Granted, Leniencies, Leniency};
use crate::schema::{Problem, Schema};

/// The leniencies of the keys, as they stand in the contract.
pub(super) struct Named {
    lenient: Vec<Entry>,
    /// `None` where the key is not there.
    for_write: Option<Vec<Entry>>,
}

/// A leniency, and where it is named.
struct Entry {
    at: String,
    leniency: Leniency,
}

impl Named {
    pub(super) fn read(top: &mut Fields<'_>, problems: &mut Problems) -> Self {
        let lenient = entries(top, "lenient", problems);
        let for_write = entries(top, "lenient_for_write", problems);
        Self { lenient, for_write: top.has("lenient_for_write").then_some(for_write) }
    }

    /// What holds for the calls, and what is named and never applies.
    pub(super) fn grant(
        self,
        access: Access,
        input: &Schema,
        output: Option<&Schema>,
        problems: &mut Problems,
    ) -> (Granted, Vec<Problem>) {
        if output.is_some_and(|output| !output.lenient_members().is_empty()) {
            problems.note(
                "/output",
                "lenient",
                "`x-lenient` is about arguments; a result is held to its schema as it is",
            );
        }
        let everywhere: Leniencies = self.lenient.iter().map(|entry| entry.leniency).collect();
        let in_members = input.lenient_members();
        match access {
            Access::Read => {
                if self.for_write.is_some() {
                    let message = "`lenient_for_write` is for a write; of a read `lenient` is enough";
                    problems.note("/lenient_for_write", "read", message);
                }
                (Granted { everywhere, where_said: in_members }, Vec::new())
            }
            Access::Write => {
                let again = self.for_write.unwrap_or_default();
                for Entry { at, leniency } in &again {
                    if !everywhere.or(in_members).has(*leniency) {
                        let message = format!("`{}` is no leniency of this tool yet", leniency.as_str());
                        let hint = "name it under `lenient`, or under `x-lenient` of a member, as well".to_owned();
                        problems.hinted(at, "lenient", message, Some(hint));
                    }
                }
                let again: Leniencies = again.iter().map(|entry| entry.leniency).collect();
                let granted = Granted { everywhere: everywhere.and(again), where_said: in_members.and(again) };
                (granted, idle(&self.lenient, in_members, again))
            }
        }
    }
}

/// The leniencies of a write that are not named again, each with its place.
fn idle(lenient: &[Entry], in_members: Leniencies, again: Leniencies) -> Vec<Problem> {
    let problem = |at: &str, leniency: Leniency| Problem {
        at: at.to_owned(),
        code: "lenient_for_write".to_owned(),
        message: format!("this tool acts, so `{}` does not apply until it is named again", leniency.as_str()),
        hint: Some(format!("lenient_for_write = [\"{}\"]", leniency.as_str())),
    };
    let named = lenient.iter().map(|entry| (entry.at.as_str(), entry.leniency));
    let of_members = Leniency::ALL.into_iter().filter(|leniency| in_members.has(*leniency));
    let of_members = of_members.map(|leniency| ("/input", leniency));
    named.chain(of_members).filter(|(_, leniency)| !again.has(*leniency)).map(|(at, l)| problem(at, l)).collect()
}

fn entries(top: &mut Fields<'_>, key: &'static str, problems: &mut Problems) -> Vec<Entry> {
    let place = top.place(key);
    let mut entries: Vec<Entry> = Vec::new();
    for (index, name) in top.texts(key, problems).into_iter().enumerate() {
        let at = format!("{place}/{index}");
        match Leniency::parse(&name) {
            None => {
                let hint = Leniency::instead_of(&name);
                problems.hinted(at, "enum", "there is no such leniency", Some(hint));
            }
            Some(leniency) if entries.iter().any(|entry| entry.leniency == leniency) => {
                problems.note(at, "unique_items", "named twice in this list");
            }
            Some(leniency) => entries.push(Entry { at, leniency }),
        }
    }
    entries
}

/// A default that is filled in is an argument: it is held to its schema before the first call.
pub(super) fn check_defaults(input: &Schema, problems: &mut Problems) {
    for fault in input.unfit_defaults() {
        problems.hinted(format!("/input{}", fault.at), "default", fault.message, fault.hint);
    }
}
