//! What the ledger knows of a write, and whether anything stands in its way.

use serde_json::Value;

use crate::call::Ref;
use crate::contract::Repeat;
use crate::ledger::{Entry, Recall, State};
use crate::session::Principal;
use crate::stage::admit::Admitted;

/// What the ledger knows of an action.
#[derive(Clone, Debug)]
pub(crate) enum Recalled {
    /// Nothing: it never ran.
    Fresh,
    /// It ran and provably had no effect.
    Reopen,
    /// It happened, and the contract lets it happen again.
    Anew,
    /// It happened.
    Replay(Past),
    /// Its key stands for a call with other arguments.
    Conflict,
}

/// An action that happened.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    /// The stored answer.
    pub(crate) answer: String,
    /// The attempt that first opened it.
    pub(crate) first: Ref,
    /// Whose it was.
    pub(crate) principal: Principal,
    /// Whether its facts and its answer were made unreadable.
    pub(crate) erased: bool,
    /// INVARIANT (facts of its day): a replay is judged by the facts on which it was decided.
    pub(super) facts: Value,
}

/// Where an action stands in the ledger.
pub(super) enum InLedger {
    /// Nothing is in the way.
    Clear(Recalled),
    /// It, or another action of its lane, is running.
    Busy(Box<Entry>),
    /// What became of it, or of another action of its lane, is not known.
    InDoubt(Box<Entry>),
}

impl Recalled {
    /// Whether the action will run, if it is permitted.
    pub(crate) fn will_run(&self) -> bool {
        match self {
            Self::Fresh | Self::Reopen | Self::Anew => true,
            Self::Replay(_) | Self::Conflict => false,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Reopen => "reopen",
            Self::Anew => "anew",
            Self::Replay(_) => "replay",
            Self::Conflict => "conflict",
        }
    }
}

/// Where a write stands, by what the store knows of it and its lane.
pub(super) fn in_ledger(admitted: &Admitted, recall: &Recall) -> InLedger {
    let contract = &admitted.tool().contract;
    let recalled = match &recall.entry {
        None => Recalled::Fresh,
        Some(entry) => match &entry.state {
            State::Failed { .. } => Recalled::Reopen,
            State::Open { .. } | State::Unknown { .. } | State::Done { .. }
                if entry.action.args_digest != admitted.args_digest() =>
            {
                Recalled::Conflict
            }
            State::Open { .. } => return InLedger::Busy(Box::new(entry.clone())),
            State::Unknown { .. } => return InLedger::InDoubt(Box::new(entry.clone())),
            State::Done { answer, lane_version, .. } => {
                let anew = match contract.once.repeat {
                    Repeat::Never => false,
                    Repeat::AfterOther => *lane_version != recall.own_lane_version,
                    Repeat::Free => true,
                };
                let past = Past {
                    answer: answer.clone(),
                    first: entry.first.clone(),
                    principal: entry.action.principal.clone(),
                    erased: entry.erased,
                    facts: entry.action.facts.clone(),
                };
                if anew { Recalled::Anew } else { Recalled::Replay(past) }
            }
        },
    };
    match &recall.holder {
        Some(holder) if recalled.will_run() => match &holder.state {
            State::Unknown { .. } => InLedger::InDoubt(Box::new(holder.clone())),
            State::Open { .. } => InLedger::Busy(Box::new(holder.clone())),
            State::Done { .. } | State::Failed { .. } => InLedger::Clear(recalled),
        },
        Some(_) | None => InLedger::Clear(recalled),
    }
}
