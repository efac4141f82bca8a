//! settle: `Ran -> Settled`. Makes the result fit to be shown, and closes the entry. It always happens.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::inform::Came;
use super::reserve::OpenEntry;
use super::run::{Ran, hide, known, proved};
use crate::audit::Record;
use crate::backend::{self, Case, Failure, FailureKind};
use crate::clock::{Clock, Millis};
use crate::contract::Contract;
use crate::crash::{self, Point};
use crate::ledger::{Closing, Marking, Store, StoreError, Verdict};
use crate::refusal::{Code, Effect, Fix, Refusal, Retry};
use crate::reply::Answer;
use crate::result;
use crate::trace::{Learned, Trace};

/// The last stage.
#[derive(Clone)]
pub(crate) struct Settle {
    store: Store,
    clock: Arc<dyn Clock>,
}

/// A call that is over.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) answer: Answer,
    pub(crate) trace: Trace,
    pub(crate) recorded: Recorded,
}

/// What the record holds of how a call ended.
#[derive(Debug)]
pub(crate) enum Recorded {
    /// All of it, from the transaction that closed the entry or found that it no longer was this call's.
    Durable,
    /// Nothing yet: it was a read, which has no entry.
    Read,
    /// Nothing, for the store failed: the entry of a write still stands open.
    Lost(StoreError),
}

/// What came of closing an entry.
enum Close {
    Durable,
    /// The entry was no longer this call's: its outcome is on the record, and the entry is unknown.
    TooLate,
    /// The store could not be written until the lease ended.
    NotDurable(StoreError),
}

/// What an answer comes to, as it may stand in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It is how the write ended.
    Outcome,
    /// Somebody had found out before, or it leaves it unknown.
    TooLate,
}

/// How long to wait before closing is tried again.
const PAUSE: Duration = Duration::from_millis(100);
/// How long closing is tried with a late answer, which no lease bounds.
const LATE: Duration = Duration::from_secs(5);

impl Settle {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// `record` writes how the call ended.
    pub(crate) async fn enter(&self, ran: Ran, record: impl Fn(&Trace, &Answer, Said) -> Record) -> Settled {
        let admitted = ran.reserved().permitted().informed().admitted();
        let contract = &admitted.tool().contract;
        let mut answer = answer(contract, ran.answer(), ran.sent_at());
        let mut learned = Learned::new().with("effect", answer.effect().as_str());
        let mut recorded = Recorded::Read;
        let informed = ran.reserved().permitted().informed();
        let marking = |answer: &Answer| informed.marking(came(contract, answer));
        if ran.reserved().entry().is_none()
            && let Some(marking) = marking(&answer)
            && self.store.join(marking, self.clock.now()).await.is_err()
        {
            // INVARIANT (labelled first): what a run has read is known of it before it reads it.
            learned = learned.with("labelled", false);
            answer = Answer::Refused(unlabelled(answer.effect()));
        }
        if let Some(entry) = ran.reserved().entry() {
            crash::at(Point::BeforeClose);
            let closed =
                self.close(entry, &answer, marking(&answer), |said| record(admitted.trace(), &answer, said)).await;
            crash::at(Point::AfterClose);
            let shown = matches!(closed, Close::Durable);
            recorded = match closed {
                Close::Durable | Close::TooLate => Recorded::Durable,
                Close::NotDurable(error) => Recorded::Lost(error),
            };
            if !shown {
                // INVARIANT (withheld): what did not close its entry is not shown.
                learned = learned.with("closed", false);
                let refusal = in_doubt(contract, Refusal::new(Code::OutcomeUnknown, Effect::Unknown));
                answer = Answer::Refused(dated(refusal, ran.sent_at()));
            }
        }
        let mut reserved = ran.into_reserved();
        reserved.note("settle", learned);
        Settled { answer, trace: reserved.into_trace(), recorded }
    }

    /// Closes the entry of a write; tries until its lease ends.
    async fn close(
        &self,
        entry: &OpenEntry,
        answer: &Answer,
        marking: Option<Marking>,
        record: impl Fn(Said) -> Record,
    ) -> Close {
        let closing = Closing {
            key: entry.key,
            owner: self.store.owner().clone(),
            attempt: entry.attempt,
            verdict: verdict(answer),
            marking,
        };
        loop {
            let (outcome, said) = (record(Said::Outcome), record(Said::TooLate));
            match self.store.close(closing.clone(), outcome, said, self.clock.now()).await {
                Ok(true) => return Close::Durable,
                Ok(false) => return Close::TooLate,
                Err(_) if Instant::now() + PAUSE < entry.lease_ends => sleep(PAUSE).await,
                Err(error) => return Close::NotDurable(error),
            }
        }
    }

    /// Closes the entry of a write that was given up, with what is known of it now, if nobody has found out before.
    /// `record` writes what came of it. Fails with the record that could not be made durable.
    pub(crate) async fn late(
        &self,
        case: &Case,
        mut given: backend::Answer,
        record: impl Fn(&Answer, Said, Millis) -> Record,
    ) -> Result<bool, Record> {
        let contract = &*case.contract;
        given.effect = known(case.was_sent_again(), proved(contract, &given));
        hide(&mut given, || case.hidden.clone());
        let answer = answer(contract, &given, None);
        let owner = self.store.owner().clone();
        let closing = Closing { key: case.key, owner, attempt: case.attempt, verdict: verdict(&answer), marking: None };
        let until = Instant::now() + LATE;
        loop {
            let now = self.clock.now();
            let said = record(&answer, Said::TooLate, now);
            let outcome = record(&answer, Said::Outcome, now);
            match self.store.close(closing.clone(), outcome, said.clone(), now).await {
                Ok(closed) => return Ok(closed),
                Err(_) if Instant::now() + PAUSE < until => sleep(PAUSE).await,
                Err(_) => return Err(said),
            }
        }
    }
}

/// What may be shown of how a backend ended.
fn answer(contract: &Contract, given: &backend::Answer, sent_at: Option<Millis>) -> Answer {
    match &given.outcome {
        Ok(text) => result::read(contract, text, given.effect),
        Err(failure) => Answer::Refused(dated(refusal(contract, failure, given.effect), sent_at)),
    }
}

/// What an answer comes to for the run of its call.
fn came(contract: &Contract, answer: &Answer) -> Came {
    match answer {
        Answer::Result(_) => Came::Ended { well: true, shows: true },
        Answer::Refused(refusal) => Came::Ended {
            well: contract.is_write() && refusal.effect() == Effect::Done,
            shows: refusal.words_of_the_tool().is_some(),
        },
    }
}

/// The refusal of a read whose answer may not be shown, since what it carries could not be kept.
fn unlabelled(effect: Effect) -> Refusal {
    Refusal::new(Code::Unavailable, effect)
        .message("The gate could not keep what this run has read, so the answer is not shown. Nothing was changed.")
        .fixed_by(Fix::Operator)
        .retry(Retry::After(Duration::from_secs(5)))
}

/// What an answer makes of its entry.
fn verdict(answer: &Answer) -> Verdict {
    match answer.effect() {
        Effect::None => Verdict::Failed,
        Effect::Unknown => Verdict::Unknown,
        Effect::Done => match answer.to_stored() {
            Some(answer) => Verdict::Done { answer },
            None => Verdict::Unknown,
        },
    }
}

/// Whoever looks for what became of it elsewhere needs to know when it was sent.
fn dated(refusal: Refusal, sent_at: Option<Millis>) -> Refusal {
    match (refusal.effect(), sent_at) {
        (Effect::Unknown, Some(at)) => {
            let message = format!("{} It was sent at {at}.", refusal.text());
            refusal.message(message)
        }
        (Effect::Unknown, None) | (Effect::Done | Effect::None, _) => refusal,
    }
}

/// What may have happened is looked up only where the contract says how.
fn in_doubt(contract: &Contract, refusal: Refusal) -> Refusal {
    match refusal.effect() {
        Effect::Unknown if contract.reconcile.is_none() => refusal.beyond_finding_out(),
        Effect::Unknown | Effect::Done | Effect::None => refusal,
    }
}

/// What the model may know of a failure: the contract's own words for it, else the table's. What the contract says of its
/// effect is in `effect` already, with what earlier attempts leave in doubt.
fn refusal(contract: &Contract, failure: &Failure, effect: Effect) -> Refusal {
    if let Some(mapped) = contract.errors.get(&failure.signal) {
        let refusal = Refusal::new(Code::ToolFailed, effect)
            .message(mapped.message.clone())
            .reason(mapped.code.clone())
            .instead(mapped.instead.clone());
        return match effect {
            // The contract knows this failure and has words for it: another call may succeed.
            Effect::None => refusal.fixed_by(Fix::Model).retry(Retry::AfterChange),
            Effect::Done | Effect::Unknown => refusal,
        };
    }
    let code = match failure.kind {
        FailureKind::Unavailable => Code::Unavailable,
        FailureKind::Reported => Code::ToolFailed,
        FailureKind::TimedOut => Code::TimedOut,
        FailureKind::Cancelled => Code::Cancelled,
        FailureKind::TooLarge => Code::ResultTooLarge,
        FailureKind::Off => Code::Unavailable,
        FailureKind::Broken => Code::ToolFailed,
    };
    if matches!(failure.kind, FailureKind::Off | FailureKind::Broken) {
        return Refusal::new(code, effect).fixed_by(Fix::Operator).retry(Retry::Never);
    }
    let words = failure.said.as_deref().filter(|_| contract.lets_tool_speak()).and_then(result::words);
    let refusal = in_doubt(contract, Refusal::new(code, effect));
    match (words, effect) {
        (None, _) => refusal,
        // Nothing happened, and the tool says why: another call may succeed, the same one won't.
        (Some(words), Effect::None) => refusal.fixed_by(Fix::Model).retry(Retry::AfterChange).tool_said(Some(words)),
        (Some(words), Effect::Done | Effect::Unknown) => refusal.tool_said(Some(words)),
    }
}
