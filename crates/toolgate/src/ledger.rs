//! The durable record of actions: a pure state machine, and the store that persists it.
//!
//! ```text
//!               open                 close(done)
//!  (absent) ----------->  open  -------------------->  done     replayed while it is retained;
//!               open     / |  \                         | open again (anew) where the contract says so,
//!         ,-------------'  |   \  close(failed)         |  or where it is retained no longer
//!         |                |    `------------------>  failed    effect none; the next equal call reopens it
//!         |                |
//!         |                | lose: the owner is dead, or the lease is over
//!         |                | close(unknown): the run ended, and how is not known
//!         |                v
//!         |             unknown  -- claim: one at a time finds out, for a while
//!         |                |
//!         |                |-- resolve: the claimant found out ------------------.
//!         |                |-- close: its owner learned late how it ended -------|-->  done | failed
//!         |                `-- rule: an operator says so, while nobody claims ---'             |
//!         `------------------------------------------------------------------------------------'
//! ```
//!
//! Only an opening makes an entry run, and it is open to no entry that is open or unknown. Only whoever opened it last
//! closes it: the owner and the number of the attempt must both fit, so that a stale owner cannot close a later opening.
//! What is known stays: neither `done` nor `failed` is left but by an opening.
//!
//! | becomes   | lane                                   | approval | limits              |
//! |-----------|----------------------------------------|----------|---------------------|
//! | `open`    | taken                                  | used up  | taken               |
//! | `done`    | free                                   | used up  | taken               |
//! | `failed`  | free                                   | given back with its time | given back into their own windows |
//! | `unknown` | held where something could be spent twice, else free | used up | taken |
//!
//! `step` is the whole machine: no clock and no store inside. A store runs it within one transaction and persists
//! what it returns. The tests in `ledger/model.rs` walk through all that two processes can do with it.

mod asked;
// A bench is a crate of its own: what it measures must be public, and is no part of the interface.
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod door;
mod handles;
#[cfg(test)]
mod interleavings;
mod memory;
#[cfg(test)]
mod model;
mod operator;
mod resting;
mod rows;
mod runs;
#[cfg(feature = "sqlite")]
mod sqlite;
mod standing;
mod stopping;
mod store;
mod subjects;
#[cfg(test)]
mod suite;
#[cfg(test)]
mod tests;
mod transact;
mod untold;
mod window;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::Ref;
use crate::clock::Millis;
use crate::json::{Digest, canonical};
use crate::refusal::Effect;
use crate::session::Principal;
use crate::vault::Subject;

pub(crate) use asked::{Asking, Edit, Full, Proposed};
pub(crate) use handles::HandleKey;
pub use operator::{ActionState, History, NotNamed, SHORTEST_KEY, Wanted};
pub(crate) use runs::{Marking, RunKey};
pub(crate) use standing::{Covered, Drawing};
pub(crate) use stopping::Stopped;
pub(crate) use store::{Closing, GrantKey, NewEntry, Opened, Opening, Pending, Question, Recall, Stamp, Taking};
pub use store::{Store, StoreError};
pub(crate) use subjects::{Erasing, Whose};
pub(crate) use transact::Answer;
pub use untold::Untold;
pub(crate) use window::Window;

/// The identity of an action: the digest of its tenant, scope, tool and key. INVARIANT (no contract in a key): neither a
/// contract's nor a policy's digest is part of it, so an edited description never makes a second action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct EntryKey(Digest);

/// What must not overlap: the digest of a resource, of a declared key, or of a tool within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct LaneKey(Digest);

/// One process that opens entries, known by its lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Owner(pub(crate) String);

/// One action and what became of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) key: EntryKey,
    /// Moves with every change: what a decision was based on still stands while it is the same.
    pub(crate) revision: u64,
    /// INVARIANT (fence): counts the openings, so that a stale owner cannot close a later one.
    pub(crate) attempt: u32,
    /// The attempt that first opened this occurrence: all its attempts share the key that is sent downstream.
    pub(crate) first: Ref,
    pub(crate) action: Action,
    pub(crate) state: State,
    /// Whether its arguments, facts and answer were made unreadable, by whoever's data they were.
    #[serde(skip)]
    pub(crate) erased: bool,
}

/// What was to be done, by whom: everything that reconciling needs, recorded at the opening.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Action {
    pub(crate) tool: String,
    pub(crate) tenant: String,
    pub(crate) principal: Principal,
    pub(crate) run: String,
    pub(crate) args_digest: Digest,
    /// The effective arguments.
    pub(crate) arguments: Value,
    /// The facts on which it was decided.
    pub(crate) facts: Value,
    pub(crate) lane: LaneKey,
    /// Whether the lane stays held while the outcome is unknown.
    pub(crate) keeps_lane: bool,
    /// How long a done entry is replayed, in milliseconds.
    pub(crate) retain_ms: u64,
    /// The approval that it uses up.
    pub(crate) grant: Option<String>,
    /// What it takes of limits. INVARIANT (kept while unknown): given back only where it provably did not happen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) holds: Vec<Hold>,
    /// Whose personal data its contents are, where they are anybody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<Subject>,
}

/// A part of a limit or of a standing grant, taken by one action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hold {
    pub(crate) counter: CounterKey,
    /// The beginning of the window that it counts in.
    pub(crate) window: Millis,
    /// The end of the window.
    pub(crate) end: Millis,
    pub(crate) amount: u64,
}

/// What a limit counts: the digest of its tenant, its tool, what of the calls it counts, and whose calls. INVARIANT (no
/// maximum in a key): an edited maximum never forgets what was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct CounterKey(Digest);

/// What may be told of an action beyond its own call. INVARIANT (no contents): neither its arguments, nor the facts that
/// it rests on, nor its stored answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The identity of the action.
    pub key: Digest,
    /// The name of the tool.
    pub tool: String,
    /// Whose it is.
    pub tenant: String,
    /// Who asked.
    pub principal: Principal,
    /// The run in which it was asked.
    pub run: String,
    /// Where it stands.
    pub state: ActionState,
    /// What became of the outside world; `None` while it runs.
    pub effect: Option<Effect>,
    /// How often it was opened.
    pub attempt: u32,
    /// The attempt that first opened this occurrence.
    pub first: Ref,
    /// The digest of the tool and its effective arguments.
    pub args_digest: Digest,
    /// The approval that it used up.
    pub approval: Option<String>,
    /// When it was done or failed, or since when nobody knows.
    pub at: Option<Millis>,
    /// Until when the process that runs it, or ran it, had the right to.
    pub lease_end: Option<Millis>,
    /// Until when somebody alone is finding out what became of it.
    pub claimed_until: Option<Millis>,
}

/// A part of a long list, the newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// What was found.
    pub items: Vec<T>,
    /// Before which number to go on looking; `None` at the end of the list.
    pub next: Option<u64>,
}

/// Where an action stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// It may be running.
    Open {
        /// The process that runs it.
        owner: Owner,
        /// When it was opened, by the clock that dated its lease.
        since: Millis,
        /// INVARIANT (never renewed): the deadline of the call and five seconds.
        lease_end: Millis,
    },
    /// It happened.
    Done {
        /// The stored answer, replayed byte for byte.
        answer: String,
        /// The version of the lane just after it closed.
        lane_version: u64,
        at: Millis,
    },
    /// It provably did not happen.
    Failed { at: Millis },
    /// Nobody knows.
    Unknown {
        /// Who ran it, and may still learn how it ended.
        owner: Owner,
        since: Millis,
        lease_end: Millis,
        /// Who is finding out, and until when nobody else does.
        claim: Option<Claim>,
    },
}

/// The right to find out what became of an unknown action, for a while.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) token: String,
    pub(crate) until: Millis,
}

/// What happens to an entry.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time, handed over and gone")]
pub(crate) enum Command {
    /// A call is about to run.
    Open { owner: Owner, since: Millis, lease_end: Millis, reference: Ref, action: Action, anew: bool },
    /// The call that runs it has ended.
    Close { owner: Owner, attempt: u32, verdict: Verdict, lane_version: u64, now: Millis },
    /// Its owner is dead, or its lease is over.
    Lose { owner_dead: bool, now: Millis },
    /// Somebody wants to find out.
    Claim { claim: Claim, now: Millis },
    /// Somebody found out.
    Resolve { token: String, finding: Finding, lane_version: u64, now: Millis },
    /// An operator says what happened.
    Rule { finding: Finding, lane_version: u64, now: Millis },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Verdict {
    Done { answer: String },
    Failed,
    Unknown,
}

/// What reconciling found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Finding {
    Done { answer: String },
    NotDone,
}

/// What a transition asks of the rest of the store, in the same transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// The lane is taken, and its version moves.
    TakeLane,
    /// The lane is free again, and its version moves.
    FreeLane,
    /// The lane stays held, and its version moves.
    MoveLane,
    /// The approval is used up.
    SpendGrant,
    /// The approval may be used again while it is still good.
    ReturnGrant,
    /// What it takes of limits is counted.
    TakeHolds,
    /// What it took of limits is given back.
    ReturnHolds,
}

/// A command that the state does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// It is running.
    Running,
    /// It happened, and is not to happen anew.
    AlreadyDone,
    /// It must be reconciled first.
    InDoubt,
    /// The command comes from an earlier opening or claim.
    Stale,
}

/// The machine: the next entry and what follows from it.
pub(crate) fn step(
    key: EntryKey,
    entry: Option<&Entry>,
    command: Command,
) -> Result<(Entry, Vec<Consequence>), Rejected> {
    use Consequence::{FreeLane, MoveLane, SpendGrant, TakeHolds, TakeLane};
    match command {
        Command::Open { owner, since, lease_end, reference, action, anew } => {
            let (revision, attempt, first) = match entry {
                None => (1, 1, reference),
                Some(entry) => match &entry.state {
                    // Other arguments are another action: it must not share the key that was sent downstream.
                    State::Failed { .. } if entry.action.args_digest == action.args_digest => {
                        (entry.revision + 1, entry.attempt + 1, entry.first.clone())
                    }
                    State::Failed { .. } => (entry.revision + 1, entry.attempt + 1, reference),
                    State::Done { .. } if anew => (entry.revision + 1, entry.attempt + 1, reference),
                    State::Done { .. } => return Err(Rejected::AlreadyDone),
                    State::Open { .. } => return Err(Rejected::Running),
                    State::Unknown { .. } => return Err(Rejected::InDoubt),
                },
            };
            let state = State::Open { owner, since, lease_end };
            Ok((
                Entry { key, revision, attempt, first, action, state, erased: false },
                vec![TakeLane, SpendGrant, TakeHolds],
            ))
        }
        Command::Close { owner, attempt, verdict, lane_version, now } => {
            let entry = entry.ok_or(Rejected::Stale)?;
            let (holder, lease_end, running) = match &entry.state {
                State::Open { owner, lease_end, .. } => (owner, *lease_end, true),
                // Whoever ran it learned late how it ended: that is proof, and nobody has had to guess yet.
                State::Unknown { owner, lease_end, .. } => (owner, *lease_end, false),
                State::Done { .. } | State::Failed { .. } => return Err(Rejected::Stale),
            };
            if *holder != owner || entry.attempt != attempt {
                return Err(Rejected::Stale);
            }
            match verdict {
                Verdict::Done { answer } => Ok(entry.found(Finding::Done { answer }, lane_version, now)),
                Verdict::Failed => Ok(entry.found(Finding::NotDone, lane_version, now)),
                Verdict::Unknown if running => {
                    let state = State::Unknown { owner, since: now, lease_end, claim: None };
                    Ok((entry.moved_to(state), vec![if entry.action.keeps_lane { MoveLane } else { FreeLane }]))
                }
                Verdict::Unknown => Err(Rejected::Stale),
            }
        }
        Command::Lose { owner_dead, now } => {
            let entry = entry.ok_or(Rejected::Stale)?;
            let State::Open { owner, since, lease_end } = &entry.state else { return Err(Rejected::Stale) };
            // INVARIANT (absence): an owner that may live may act for the whole of its lease from now on. How far ahead the
            // clock is that says it is over, nobody knows.
            let whole = lease_end.0.saturating_sub(since.0);
            let from_now = Millis(now.0.saturating_add(whole));
            let lease_end = if owner_dead { *lease_end } else { from_now.max(*lease_end) };
            let state = State::Unknown { owner: owner.clone(), since: now, lease_end, claim: None };
            let lane = if entry.action.keeps_lane { MoveLane } else { FreeLane };
            Ok((entry.moved_to(state), vec![lane]))
        }
        Command::Claim { claim, now } => {
            let entry = entry.ok_or(Rejected::Stale)?;
            let State::Unknown { owner, since, lease_end, claim: standing } = &entry.state else {
                return Err(Rejected::Stale);
            };
            if standing.as_ref().is_some_and(|standing| now < standing.until && standing.token != claim.token) {
                return Err(Rejected::Running);
            }
            let owner = owner.clone();
            let state = State::Unknown { owner, since: *since, lease_end: *lease_end, claim: Some(claim) };
            Ok((entry.moved_to(state), vec![]))
        }
        Command::Resolve { token, finding, lane_version, now } => {
            let entry = entry.ok_or(Rejected::Stale)?;
            let State::Unknown { claim: Some(claim), .. } = &entry.state else { return Err(Rejected::Stale) };
            if claim.token != token {
                return Err(Rejected::Stale);
            }
            Ok(entry.found(finding, lane_version, now))
        }
        Command::Rule { finding, lane_version, now } => match entry.map(|entry| (entry, &entry.state)) {
            Some((_, State::Unknown { claim: Some(claim), .. })) if now < claim.until => Err(Rejected::Running),
            Some((entry, State::Unknown { .. })) => Ok(entry.found(finding, lane_version, now)),
            Some((_, State::Open { .. })) => Err(Rejected::Running),
            Some((_, State::Done { .. })) => Err(Rejected::AlreadyDone),
            Some((_, State::Failed { .. })) | None => Err(Rejected::Stale),
        },
    }
}

impl Entry {
    fn moved_to(&self, state: State) -> Self {
        Self { revision: self.revision + 1, state, ..self.clone() }
    }

    /// The entry once it is known how it ended, and what follows from that.
    fn found(&self, finding: Finding, lane_version: u64, now: Millis) -> (Self, Vec<Consequence>) {
        use Consequence::{FreeLane, ReturnGrant, ReturnHolds};
        match finding {
            Finding::Done { answer } => (self.moved_to(State::Done { answer, lane_version, at: now }), vec![FreeLane]),
            Finding::NotDone => (self.moved_to(State::Failed { at: now }), vec![FreeLane, ReturnGrant, ReturnHolds]),
        }
    }

    /// When an entry whose outcome is known is past its time. INVARIANT (never forgotten): what is open or unknown never
    /// is.
    pub(crate) fn lapses_at(&self) -> Option<Millis> {
        match &self.state {
            State::Done { at, .. } | State::Failed { at } => Some(Millis(at.0.saturating_add(self.action.retain_ms))),
            State::Open { .. } | State::Unknown { .. } => None,
        }
    }

    /// Until when the version of its lane may have to be compared with it: while it is there. One that is open or unknown
    /// compares itself with nothing before it is closed.
    fn needs_lane_until(&self) -> Millis {
        self.lapses_at().map_or(Millis(0), |end| end.after(transact::GRACE))
    }

    /// Whether it is past its time, and so as good as absent.
    pub(crate) fn lapsed(&self, now: Millis) -> bool {
        self.lapses_at().is_some_and(|end| end <= now)
    }

    /// Takes out what it holds of its caller's: what is left are its identity and its state.
    pub(crate) fn erase(&mut self) {
        self.erased = true;
        self.action.arguments = Value::Null;
        self.action.facts = Value::Null;
        if let State::Done { answer, .. } = &mut self.state {
            answer.clear();
        }
    }

    /// What may be told of it.
    pub(crate) fn listed(self) -> Listed {
        let state = self.state.named();
        let claimed_until = match &self.state {
            State::Unknown { claim, .. } => claim.as_ref().map(|claim| claim.until),
            State::Open { .. } | State::Done { .. } | State::Failed { .. } => None,
        };
        let (effect, at, lease_end) = match self.state {
            State::Open { lease_end, .. } => (None, None, Some(lease_end)),
            State::Done { at, .. } => (Some(Effect::Done), Some(at), None),
            State::Failed { at } => (Some(Effect::None), Some(at), None),
            State::Unknown { since, lease_end, .. } => (Some(Effect::Unknown), Some(since), Some(lease_end)),
        };
        let Action { tool, tenant, principal, run, args_digest, grant: approval, .. } = self.action;
        let (key, attempt, first) = (self.key.0, self.attempt, self.first);
        Listed {
            key,
            tool,
            tenant,
            principal,
            run,
            state,
            effect,
            attempt,
            first,
            args_digest,
            approval,
            at,
            lease_end,
            claimed_until,
        }
    }

    /// The key that is sent downstream: all attempts of one occurrence share it, a later occurrence never does.
    pub(crate) fn downstream_key(&self) -> String {
        downstream_key(self.key, &self.first)
    }
}

/// The key that is sent downstream for the occurrence of `key` that `first` opened.
pub(crate) fn downstream_key(key: EntryKey, first: &Ref) -> String {
    Digest::of(canonical(&json!([key.0.to_string(), first.as_str()])).as_bytes()).base32()
}

impl EntryKey {
    /// The digest of a canonical array that names an action.
    pub(crate) fn of(parts: &Value) -> Self {
        Self(Digest::of(canonical(parts).as_bytes()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

impl CounterKey {
    /// The digest of a canonical array that names what a limit counts.
    pub(crate) fn of(parts: &Value) -> Self {
        Self(Digest::of(canonical(parts).as_bytes()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

impl LaneKey {
    /// The digest of a canonical array that names a lane.
    pub(crate) fn of(parts: &Value) -> Self {
        Self(Digest::of(canonical(parts).as_bytes()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}
