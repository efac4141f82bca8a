//! run: `Reserved -> Ran`. The backend, under its deadline; tried again only where nothing can have happened.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::reserve::Reserved;
use crate::backend::{Answer, Context, Failure, FailureKind, Running};
use crate::caught::{Panicked, caught};
use crate::contract::{Contract, Retry};
use crate::crash::{self, Point};
use crate::refusal::Effect;
use crate::trace::Learned;

/// The fifth stage.
pub(crate) struct Run;

/// What a backend runs with. Only a reserved call yields one.
#[derive(Debug)]
pub struct Dispatch {
    context: Context,
}

/// A call that has ended, and what its backend knows of it.
#[derive(Debug)]
pub(crate) struct Ran {
    reserved: Reserved,
    answer: Answer,
}

/// The first wait before a further attempt; it doubles each time.
const BACKOFF: Duration = Duration::from_millis(100);
const LONGEST_BACKOFF: Duration = Duration::from_secs(5);

impl Dispatch {
    /// What the call runs with.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// What the call runs with.
    pub fn into_context(self) -> Context {
        self.context
    }
}

impl Run {
    /// Runs the call to its end. INVARIANT (no way out): whatever the backend does, a panic included, this returns.
    pub(crate) async fn enter(&self, mut reserved: Reserved, cancelled: CancellationToken) -> Ran {
        let informed = reserved.permitted().informed();
        let admitted = informed.admitted();
        let tool = Arc::clone(admitted.tool());
        let context = Context {
            session: Arc::clone(admitted.session()),
            arguments: Arc::clone(admitted.arguments()),
            facts: Arc::clone(informed.facts()),
            reference: admitted.reference().clone(),
            idempotency_key: reserved.idempotency_key(),
            deadline: admitted.deadline(),
            cancelled,
            traced: admitted.traced().cloned(),
        };
        let mut attempt = 1;
        let mut answer = loop {
            let dispatch = Dispatch { context: context.clone() };
            let answer = attempt_once(&tool.contract, &context, || tool.backend.run(dispatch)).await;
            let Some(wait) = wait_before_next(&tool.contract, &answer, attempt, &context) else { break answer };
            sleep_until(Instant::now() + wait).await;
            attempt += 1;
        };
        crash::at(Point::AfterEffect);
        if let Err(failure) = &mut answer.outcome {
            hide(failure, &tool.contract, &context);
        }
        let mut learned = Learned::new().with("attempts", attempt).with("effect", answer.effect.as_str());
        if let Err(failure) = &answer.outcome {
            learned = learned.with("signal", failure.signal.as_str()).with("detail", failure.detail.as_str());
        }
        reserved.note("run", learned);
        Ran { reserved, answer }
    }
}

/// INVARIANT (no trace): what the contract marks as secret or personal leaves in no word of a failure, whoever repeats it.
fn hide(failure: &mut Failure, contract: &Contract, context: &Context) {
    let hidden = contract.input.hidden(&Value::Object((*context.arguments).clone()));
    failure.detail = hidden.taken_out_of(&failure.detail);
    failure.said = failure.said.as_deref().map(|said| hidden.taken_out_of(said));
}

/// One attempt, ended at the deadline, and not begun after it. A read whose caller has gone is dropped at once; a write is told, and has until
/// the deadline to end in a known state.
async fn attempt_once<'a>(contract: &Contract, context: &Context, start: impl FnOnce() -> Running<'a>) -> Answer {
    if context.is_cancelled() {
        return Answer::failed(Effect::None, Failure::new(FailureKind::Cancelled, "cancelled", "before it was sent"));
    }
    if context.deadline <= Instant::now() {
        return Answer::failed(Effect::None, Failure::new(FailureKind::TimedOut, "timeout", "before it was sent"));
    }
    let guarded = timeout_at(context.deadline, crash::started(caught(start)));
    let ended = if contract.is_write() {
        guarded.await
    } else {
        tokio::select! {
            ended = guarded => ended,
            () = context.cancelled() => {
                let failure = Failure::new(FailureKind::Cancelled, "cancelled", "the caller went away");
                return Answer::failed(Effect::None, failure);
            }
        }
    };
    let mut answer = match ended {
        Ok(Ok(answer)) => answer,
        Ok(Err(Panicked)) => {
            let failure = Failure::new(FailureKind::Reported, "panic", "the tool's function panicked");
            Answer::failed(Effect::Unknown, failure)
        }
        Err(_) => {
            let failure = Failure::new(FailureKind::TimedOut, "timeout", "the deadline passed while it ran");
            Answer::failed(Effect::Unknown, failure)
        }
    };
    if !contract.is_write() {
        answer.effect = Effect::None;
    }
    answer
}

/// How long to wait before the call is tried again; `None` where it is not. INVARIANT (provably safe): only what had no
/// effect is tried again.
fn wait_before_next(contract: &Contract, answer: &Answer, attempt: u32, context: &Context) -> Option<Duration> {
    let failure = answer.outcome.as_ref().err()?;
    let Retry { attempts, on } = &contract.retry;
    let listed = on.contains(&failure.signal);
    if attempt >= *attempts || !listed || answer.effect != Effect::None || context.is_cancelled() {
        return None;
    }
    let longest = BACKOFF.saturating_mul(1 << (attempt - 1).min(10)).min(LONGEST_BACKOFF);
    let wait = failure.retry_after.unwrap_or_else(|| jittered(longest, context, attempt));
    (Instant::now() + wait < context.deadline).then_some(wait)
}

/// Full jitter: a share of `longest` that differs from call to call, so that many failed calls don't come back at once.
fn jittered(longest: Duration, context: &Context, attempt: u32) -> Duration {
    let seed = crate::json::Digest::of(format!("{}/{attempt}", context.reference).as_bytes());
    let share = seed.as_bytes().first().copied().unwrap_or(0);
    longest.mul_f64(f64::from(share) / 256.0)
}

impl Ran {
    pub(crate) fn reserved(&self) -> &Reserved {
        &self.reserved
    }

    pub(crate) fn answer(&self) -> &Answer {
        &self.answer
    }

    pub(crate) fn into_reserved(self) -> Reserved {
        self.reserved
    }
}
