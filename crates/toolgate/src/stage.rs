//! The stages, in the order in which a call passes them. Each takes the proof of the one before it, whole, and returns
//! its own, or a [`Stop`]. A stage looks left (at the stage before it) and down (at the words), never right or up.

pub(crate) mod admit;
pub(crate) mod inform;
pub(crate) mod permit;
pub(crate) mod reserve;
pub(crate) mod run;
pub(crate) mod settle;

use crate::approval::Approval;
use crate::call::Ref;
use crate::fault::Fault;
use crate::refusal::{Code, Refusal};
use crate::reply::Answer;
use crate::trace::Trace;

/// A call that ends before anything runs.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) halt: Halt,
    pub(crate) trace: Trace,
}

/// Why a call ends before anything runs.
#[derive(Debug)]
pub(crate) enum Halt {
    /// It is refused.
    Refused(Box<Refusal>),
    /// A person must consent: what to propose.
    Pending(Box<Approval>),
    /// The action was done before: its stored answer, and the attempt that did it.
    Replayed { answer: Box<Answer>, first: Ref },
    /// The gate itself failed.
    Fault(Fault),
}

/// What is told of a session that ended before its call could begin.
const ENDED: &str = "The sign-in of whoever asks has ended before this call could begin. Nothing was done.";

/// The refusal of a call whose session has ended.
pub(crate) fn ended() -> Refusal {
    Refusal::before(Code::Unauthenticated).message(ENDED)
}

impl Stop {
    pub(crate) fn refused(refusal: Refusal, trace: Trace) -> Self {
        Self { halt: Halt::Refused(Box::new(refusal)), trace }
    }

    pub(crate) fn fault(fault: impl Into<Fault>, trace: Trace) -> Self {
        Self { halt: Halt::Fault(fault.into()), trace }
    }
}
