//! What is kept of runs: one note each, and how often each was refused.

use serde_json::json;

use super::resting::{is_fresh, rests_until};
use super::rows::{Note, NoteKind, Rows, Stored};
use super::store::Pending;
use super::{Action, CounterKey, Entry, State, Store, Window};
use crate::clock::Millis;
use crate::json::Digest;
use crate::runs::{Joining, RunState};
use crate::session::{Principal, Session};

/// The identity of a run: the digest of its tenant, its principal and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RunKey(Digest);

/// What a call adds to a run.
#[derive(Clone, Debug)]
pub(crate) struct Marking {
    pub(crate) run: RunKey,
    pub(crate) tenant: String,
    pub(crate) joining: Joining,
}

impl RunKey {
    /// The run of a session. INVARIANT (nobody else's): two principals, or two tenants, never share one, though they give
    /// it the same name.
    pub(crate) fn of(session: &Session) -> Self {
        Self::named(session.tenant(), session.principal(), session.run())
    }

    fn named(tenant: &str, principal: &Principal, run: &str) -> Self {
        let parts = [tenant, &principal.issuer, &principal.subject, run];
        // Each with its length, so that no two runs are the same text. Every call asks for this: it allocates nothing.
        let [tenant, issuer, subject, run] =
            parts.map(|part| u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        let [a, b, c, d] = parts.map(str::as_bytes);
        Self(Digest::of_all(&[b"run", &tenant, a, &issuer, b, &subject, c, &run, d]))
    }

    #[cfg(test)]
    pub(super) fn hex(self) -> String {
        self.0.hex()
    }

    /// What its refusals are counted under, in windows of this length.
    fn refused(self, window: Window) -> CounterKey {
        CounterKey::of(&json!(["guard", "refused", self.0.hex(), window.end.0 - window.begin.0]))
    }
}

impl Marking {
    /// What is to be written, where the run stood at `state` when the call began: nothing where it says nothing new.
    pub(crate) fn new(run: RunKey, tenant: &str, joining: Joining, state: &RunState) -> Option<Self> {
        joining.changes(state).then(|| Self { run, tenant: tenant.to_owned(), joining })
    }

    /// What keeps a run that has come to `state` and goes on: nothing of it is new, and nothing is written while its note
    /// is fresh. INVARIANT (only grows): a run that goes on forgets nothing, whether or not its calls add to it.
    pub(crate) fn renewing(run: RunKey, tenant: &str, state: &RunState, now: Millis) -> Option<Self> {
        let is_due = state.until > Millis(0) && !is_fresh(state.until, now);
        is_due.then(|| Self { run, tenant: tenant.to_owned(), joining: Joining::default() })
    }
}

impl Store {
    /// Adds to a run what a call did and shows.
    pub(crate) fn join(&self, marking: Marking, now: Millis) -> Pending<'_, ()> {
        self.write_at(now, move |rows, now| join(rows, marking, now))
    }

    /// How often a run was refused in a window.
    pub(crate) fn refused(&self, run: RunKey, window: Window) -> Pending<'_, u64> {
        self.read(move |rows| rows.counted(run.refused(window), window.begin))
    }

    /// Counts one refusal more of a run; returns how many there are.
    pub(crate) fn count_refused(&self, run: RunKey, window: Window) -> Pending<'_, u64> {
        self.write(move |rows| {
            let counter = run.refused(window);
            let count = rows.counted(counter, window.begin)?.saturating_add(1);
            rows.put_counted(counter, window.begin, count, Window::counted_until(window.end))?;
            Ok(count)
        })
    }
}

/// What is known of a run; one that has rested too long is as good as new.
pub(super) fn state(rows: &dyn Rows, run: RunKey, now: Millis) -> Stored<RunState> {
    match rows.note(NoteKind::Run, &run.0.hex())?.filter(|note| now < note.until) {
        Some(note) => Ok(RunState { until: note.until, ..note.read()? }),
        None => Ok(RunState::default()),
    }
}

/// INVARIANT (only grows): what is joined is added to what stands there now, whatever the call knew when it began.
pub(super) fn join(rows: &mut dyn Rows, marking: Marking, now: Millis) -> Stored<()> {
    let Marking { run, tenant, joining } = marking;
    let state = state(rows, run, now)?.with(joining);
    rows.put_note(NoteKind::Run, &Note::new(run.0.hex(), &tenant, rests_until(now), &state)?)
}

/// Completes in its run what a write turned out to have done, after its own call had ended without knowing. INVARIANT
/// (whoever finds out): the call that learns late, whoever looks it up, or an operator. It is kept whether or not some
/// policy reads runs today: it is rare, and those of tomorrow may.
pub(super) fn found_out(rows: &mut dyn Rows, before: Option<&Entry>, found: &Entry, now: Millis) -> Stored<()> {
    let was_unknown = before.is_some_and(|entry| match &entry.state {
        State::Unknown { .. } => true,
        State::Open { .. } | State::Done { .. } | State::Failed { .. } => false,
    });
    match &found.state {
        State::Done { .. } if was_unknown => {
            let Action { tool, tenant, principal, run, .. } = &found.action;
            let joining = Joining { completed: Some(tool.clone()), ..Joining::default() };
            let run = RunKey::named(tenant, principal, run);
            join(rows, Marking { run, tenant: tenant.clone(), joining }, now)
        }
        State::Done { .. } | State::Open { .. } | State::Failed { .. } | State::Unknown { .. } => Ok(()),
    }
}
