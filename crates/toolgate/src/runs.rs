//! What a run has done and read so far, as policies may ask for it.
//!
//! A run is one piece of work of one principal of one tenant. What is known of it only grows while it goes on, and is
//! forgotten once it has rested for a day.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::clock::Millis;

/// What a run has done and read so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunState {
    /// The tools of which a call ended well: a write that was done, a read that answered.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) completed: BTreeSet<String>,
    /// How many of its calls ran, or were answered from the record.
    #[serde(default)]
    pub(crate) calls: u64,
    /// INVARIANT (only grows): what it has read stays read.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) labels: BTreeSet<String>,
    /// Until when it is kept at least.
    #[serde(skip)]
    pub(crate) until: Millis,
}

/// What a gate keeps of runs: what its policies read of them, and labels where its tools have any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tracked {
    pub(crate) completed: bool,
    pub(crate) calls: bool,
    pub(crate) labels: bool,
}

/// What one call adds to its run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Joining {
    /// The tool, if its call ended well.
    pub(crate) completed: Option<String>,
    /// Whether it counts.
    pub(crate) counts: bool,
    /// The labels of what its answer shows.
    pub(crate) labels: BTreeSet<String>,
}

impl RunState {
    /// What it has done and read, under the names that policies know.
    pub(crate) fn told(&self, tracked: Tracked) -> Value {
        let mut told = serde_json::Map::new();
        if tracked.completed {
            told.insert("completed".into(), json!(self.completed));
        }
        if tracked.calls {
            told.insert("calls".into(), json!(self.calls));
        }
        if tracked.labels {
            told.insert("labels".into(), json!(self.labels));
        }
        Value::Object(told)
    }

    /// The same with what a call adds.
    pub(crate) fn with(mut self, joining: Joining) -> Self {
        self.completed.extend(joining.completed);
        self.calls = self.calls.saturating_add(u64::from(joining.counts));
        self.labels.extend(joining.labels);
        self
    }
}

impl Tracked {
    /// Whether anything of a run is kept.
    pub(crate) fn any(self) -> bool {
        self.completed || self.calls || self.labels
    }

    /// What either reads.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            completed: self.completed || other.completed,
            calls: self.calls || other.calls,
            labels: self.labels || other.labels,
        }
    }
}

impl Joining {
    /// Whether a run that has come to `state` would be another one afterwards.
    pub(crate) fn changes(&self, state: &RunState) -> bool {
        self.counts
            || self.completed.as_ref().is_some_and(|tool| !state.completed.contains(tool))
            || !self.labels.is_subset(&state.labels)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic")]
mod tests {
    use super::*;

    fn labelled(labels: &[&str]) -> Joining {
        Joining { labels: labels.iter().map(|label| (*label).to_owned()).collect(), ..Joining::default() }
    }

    #[test]
    fn a_run_only_grows_and_what_it_has_already_changes_nothing() {
        let done = Joining { completed: Some("get_order".into()), ..Joining::default() };
        let run = RunState::default().with(labelled(&["untrusted"])).with(done.clone());
        assert!(!done.changes(&run) && !labelled(&["untrusted"]).changes(&run) && !labelled(&[]).changes(&run));
        assert!(labelled(&["untrusted", "secret"]).changes(&run));
        assert!(Joining { counts: true, ..Joining::default() }.changes(&run));
        assert_eq!(run.clone().with(labelled(&[])), run);
    }

    #[test]
    fn a_run_is_read_back_as_it_was_written() {
        let run = RunState { calls: 3, ..RunState::default() }.with(labelled(&["untrusted"]));
        let text = serde_json::to_string(&run).unwrap();
        assert_eq!(text, r#"{"calls":3,"labels":["untrusted"]}"#);
        assert_eq!(serde_json::from_str::<RunState>(&text).unwrap(), run);
    }

    #[test]
    fn only_what_policies_read_is_told() {
        let run = RunState { calls: 3, ..RunState::default() }.with(labelled(&["untrusted"]));
        let tracked = Tracked { labels: true, ..Tracked::default() };
        assert_eq!(run.told(tracked), json!({"labels": ["untrusted"]}));
    }
}
