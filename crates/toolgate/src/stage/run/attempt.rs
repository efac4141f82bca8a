//! One attempt of a call, from its start to its end.

use tokio::time::timeout_at;

use crate::backend::{Answer, Context, Failure, FailureKind, Running};
use crate::caught::{Panicked, caught};
use crate::contract::Contract;
use crate::crash;
use crate::refusal::Effect;
use crate::schema::Hidden;

/// One attempt, ended at the deadline. A read whose caller has gone is dropped at once; a write is told, and has until the
/// deadline to end in a known state.
pub(super) async fn attempt<'a>(contract: &Contract, context: &Context, start: impl FnOnce() -> Running<'a>) -> Answer {
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
    match ended {
        Ok(Ok(answer)) => answer,
        Ok(Err(Panicked)) => {
            let failure = Failure::new(FailureKind::Reported, "panic", "the tool's function panicked");
            Answer::failed(Effect::Unknown, failure)
        }
        Err(_) => {
            let failure = Failure::new(FailureKind::TimedOut, "timeout", "the deadline passed while it ran");
            Answer::failed(Effect::Unknown, failure)
        }
    }
}

/// INVARIANT (no trace): what is marked as secret or personal leaves in no word of a failure, whoever repeats it.
pub(crate) fn hide(answer: &mut Answer, hidden: impl FnOnce() -> Hidden) {
    if let Err(failure) = &mut answer.outcome {
        let hidden = hidden();
        failure.detail = hidden.taken_out_of(&failure.detail);
        failure.said = failure.said.as_deref().map(|said| hidden.taken_out_of(said));
    }
}
