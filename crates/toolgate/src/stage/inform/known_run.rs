//! What is known of the run of a call, and what the call adds to it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::clock::Millis;
use crate::ledger::{Marking, RunKey};
use crate::policy::Policies;
use crate::runs::{Joining, RunState, Tracked};
use crate::stage::admit::Admitted;
use crate::turn::Seat;

/// The run of a call, as far as the gate keeps runs.
#[derive(Debug, Default)]
pub(super) struct KnownRun {
    tracked: Tracked,
    state: RunState,
    /// INVARIANT (before the look): tools of the turn that end afterwards may be missing in `state`, so they still count
    /// as running here.
    awaited: BTreeSet<String>,
    /// Which run it is, where anything of it is kept.
    key: Option<RunKey>,
}

/// What a call has come to.
#[derive(Clone, Debug)]
pub(crate) enum Came {
    /// It ended, or is answered from the record.
    Ended {
        /// Whether it was done, or was a read that answered.
        well: bool,
        /// Whether anything is shown that its tool said.
        shows: bool,
    },
    /// It was refused in words that carry these labels.
    Refused { labels: BTreeSet<String> },
}

impl KnownRun {
    /// Before anything is looked up.
    pub(super) fn begin(tracked: Tracked, admitted: &Admitted) -> Self {
        Self {
            tracked,
            state: RunState::default(),
            awaited: match admitted.tool().contract.requires.is_empty() {
                true => BTreeSet::new(),
                false => admitted.seat().map(Seat::awaited).unwrap_or_default(),
            },
            key: tracked.any().then(|| RunKey::of(admitted.session())),
        }
    }

    pub(super) fn recalled(&mut self, state: RunState) {
        self.state = state;
    }

    /// Whether anything of runs is kept.
    pub(super) fn is_kept(&self) -> bool {
        self.key.is_some()
    }

    pub(super) fn key(&self) -> Option<RunKey> {
        self.key
    }

    pub(super) fn state(&self) -> &RunState {
        &self.state
    }

    pub(super) fn awaited(&self) -> &BTreeSet<String> {
        &self.awaited
    }

    /// What the policies of the tool read of it, for the record.
    pub(super) fn told(&self, policies: &Policies, admitted: &Admitted) -> Option<Value> {
        let reads = policies.reads_of_run(&admitted.tool().contract.name);
        reads.any().then(|| self.state.told(reads))
    }

    /// What keeps the run, of which `state` was recalled: it goes on with each call that looks it up.
    pub(super) fn renewal(&self, admitted: &Admitted, state: &RunState, now: Millis) -> Option<Marking> {
        Marking::renewing(self.key?, admitted.session().tenant(), state, now)
    }

    pub(super) fn marking(&self, admitted: &Admitted, came: Came) -> Option<Marking> {
        let contract = &admitted.tool().contract;
        let joining = match came {
            Came::Ended { well, shows } => Joining {
                completed: (self.tracked.completed && well).then(|| contract.name.clone()),
                counts: self.tracked.calls,
                labels: if shows { contract.labels.result.clone() } else { BTreeSet::new() },
            },
            Came::Refused { labels } => Joining { labels, ..Joining::default() },
        };
        let labels = if self.tracked.labels { joining.labels } else { BTreeSet::new() };
        Marking::new(self.key?, admitted.session().tenant(), Joining { labels, ..joining }, &self.state)
    }
}
