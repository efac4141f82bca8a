//! run: `Reserved -> Ran`. The backend, under its deadline; tried again only where that is provably safe.
//!
//! ```text
//! may it be sent? -> attempt -> answered ------------------------------------------> Ran
//!    ^                   `----> failed: safe to repeat, and in the budget? -- no ----^
//!    `------ wait <------------------------------------------ yes
//! ```

mod attempt;
mod budget;
mod proof;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::reserve::Reserved;
use crate::backend::{Answer, Case, Context, Desk, Failure, FailureKind, Late, Place};
use crate::clock::{Clock, Millis};
use crate::contract::{Contract, Registered, Registry};
use crate::crash::{self, Point};
use crate::refusal::Effect;
use crate::schema::Hidden;
use crate::trace::Learned;

pub(crate) use attempt::hide;
pub(crate) use proof::{known, proved};

use attempt::attempt;
use budget::Budgets;
use proof::{Ended, Failed, may_go_again, wait};

/// The fifth stage.
pub(crate) struct Run {
    registry: Arc<Registry>,
    budgets: Budgets,
    desk: Arc<dyn Desk>,
    clock: Arc<dyn Clock>,
}

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
    /// When it was first sent, where it was sent at all.
    sent_at: Option<Millis>,
    /// Lets what comes later in, once this has fallen.
    _over: Option<DropGuard>,
}

/// What came of all attempts.
struct Tried {
    answer: Answer,
    attempts: u32,
    /// What each that failed ended with, and how long the next one waited.
    failures: Vec<Value>,
    /// Why there was no further one.
    ended: Option<Ended>,
    sent_at: Option<Millis>,
}

/// Until when a call may be sent.
struct Lease {
    /// On this process's own clock.
    until: Instant,
    /// As others read it.
    end: Millis,
}

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
    /// `desk` takes what is learned of a write after it was given up.
    pub(crate) fn new(registry: &Arc<Registry>, desk: Arc<dyn Desk>, clock: Arc<dyn Clock>) -> Self {
        Self { registry: Arc::clone(registry), budgets: Budgets::of(registry), desk, clock }
    }

    /// Runs the call to its end. INVARIANT (no way out): whatever the backend does, a panic included, this returns.
    pub(crate) async fn enter(&self, mut reserved: Reserved, cancelled: CancellationToken) -> Ran {
        let informed = reserved.permitted().informed();
        let admitted = informed.admitted();
        let tool = Arc::clone(admitted.tool());
        let case = self.case(&reserved);
        let context = Context {
            session: Arc::clone(admitted.session()),
            arguments: Arc::clone(admitted.arguments()),
            facts: Arc::clone(informed.facts()),
            reference: admitted.reference().clone(),
            idempotency_key: reserved.idempotency_key(),
            deadline: admitted.deadline(),
            cancelled,
            traced: admitted.traced().cloned(),
            late: case.as_ref().map(|case| Late::new(Arc::clone(case))),
        };
        let lease = reserved.entry().map(|entry| Lease { until: entry.lease_ends, end: entry.lease_end });
        let mut tried = self.try_all(&tool, &context, lease.as_ref(), case.as_deref()).await;
        crash::at(Point::AfterEffect);
        hide(&mut tried.answer, || self.hidden(&reserved));
        reserved.note("run", learned(&tool.contract, &tried));
        // What the backend was given goes first: whoever still holds the case then waits for a late answer.
        drop(context);
        let over = case.map(Case::ended);
        Ran { reserved, answer: tried.answer, sent_at: tried.sent_at, _over: over }
    }

    async fn try_all(&self, tool: &Registered, context: &Context, lease: Option<&Lease>, case: Option<&Case>) -> Tried {
        let contract = &tool.contract;
        let mut tried = match self.barred(context, lease) {
            None => {
                self.budgets.earn(&contract.name);
                let sent_at = Some(self.clock.now());
                let answer = self.send(tool, context, case).await;
                Tried { answer, attempts: 1, failures: Vec::new(), ended: None, sent_at }
            }
            Some(why) => {
                let answer = Answer::failed(Effect::None, not_sent(why));
                Tried { answer, attempts: 0, failures: Vec::new(), ended: Some(why), sent_at: None }
            }
        };
        let mut in_doubt = false;
        while tried.ended.is_none() {
            let last = proved(contract, &tried.answer);
            tried.answer.effect = known(in_doubt, last);
            in_doubt |= last == Effect::Unknown;
            let Err(failure) = &tried.answer.outcome else { break };
            let pause = self.pause(tool, context, failure, last, tried.attempts);
            tried.failures.push(told(failure, last, pause.as_ref().ok()));
            let pause = match pause {
                Ok(pause) => pause,
                Err(ended) => {
                    tried.ended = Some(ended);
                    break;
                }
            };
            tokio::select! {
                () = sleep_until(Instant::now() + pause) => {}
                () = context.cancelled() => {}
            }
            match self.barred(context, lease) {
                None => {
                    tried.attempts += 1;
                    tried.answer = self.send(tool, context, case).await;
                }
                Some(why) => tried.ended = Some(why),
            }
        }
        tried
    }

    async fn send(&self, tool: &Registered, context: &Context, case: Option<&Case>) -> Answer {
        if let Some(case) = case {
            case.sends.fetch_add(1, Ordering::SeqCst);
        }
        let dispatch = Dispatch { context: context.clone() };
        attempt(&tool.contract, context, || tool.backend.run(dispatch)).await
    }

    /// Why the call may not be sent now. INVARIANT (fence): the deadline is on a clock that nobody can move; the lease is
    /// what others go by, and a machine that slept has time for the one when the other is long over.
    fn barred(&self, context: &Context, lease: Option<&Lease>) -> Option<Ended> {
        let now = Instant::now();
        if context.is_cancelled() {
            return Some(Ended::Cancelled);
        }
        if context.deadline <= now {
            return Some(Ended::Deadline);
        }
        lease.filter(|lease| lease.until <= now || lease.end <= self.clock.now()).map(|_| Ended::Lease)
    }

    /// How long to wait before the call is sent again, or why it is not.
    fn pause(
        &self,
        tool: &Registered,
        context: &Context,
        failure: &Failure,
        effect: Effect,
        attempt: u32,
    ) -> Result<Duration, Ended> {
        let Registered { contract, backend, .. } = tool;
        let (write, keyed) = (contract.is_write(), backend.honours_key());
        may_go_again(&Failed { failure, effect, attempt, write, keyed }, &contract.retry)?;
        if context.is_cancelled() {
            return Err(Ended::Cancelled);
        }
        let pause = wait(failure, attempt, &context.reference);
        let in_time = Instant::now().checked_add(pause).is_some_and(|next| next < context.deadline);
        if !in_time {
            return Err(Ended::Deadline);
        }
        // The last thing that is asked: what is spent is used.
        if self.budgets.spend(&contract.name) { Ok(pause) } else { Err(Ended::Budget) }
    }

    /// The write that this is, for what is learned of it later.
    fn case(&self, reserved: &Reserved) -> Option<Arc<Case>> {
        let entry = reserved.entry()?;
        let admitted = reserved.permitted().informed().admitted();
        let tool = admitted.tool();
        Some(Arc::new(Case {
            key: entry.key,
            attempt: entry.attempt,
            contract: Arc::clone(&tool.contract),
            mark: tool.mark,
            session: Arc::clone(admitted.session()),
            reference: admitted.reference().clone(),
            hidden: tool.mark.map(|_| self.hidden(reserved)).unwrap_or_default(),
            sends: AtomicU32::new(0),
            over: CancellationToken::new(),
            runtime: Handle::current(),
            desk: Place::at(&self.desk),
        }))
    }

    /// What of a call leaves in nobody's words.
    fn hidden(&self, reserved: &Reserved) -> Hidden {
        let informed = reserved.permitted().informed();
        let admitted = informed.admitted();
        self.registry.hidden(&admitted.tool().contract, admitted.arguments(), informed.facts())
    }
}

/// The failure of a call that was never sent.
fn not_sent(why: Ended) -> Failure {
    let (kind, signal) = match why {
        Ended::Cancelled => (FailureKind::Cancelled, "cancelled"),
        Ended::Attempts | Ended::Signal | Ended::Effect | Ended::Deadline | Ended::Lease | Ended::Budget => {
            (FailureKind::TimedOut, "timeout")
        }
    };
    Failure::new(kind, signal, "before it was sent")
}

/// What the record tells of one attempt that failed, and of the wait after it.
fn told(failure: &Failure, effect: Effect, pause: Option<&Duration>) -> Value {
    let (signal, effect) = (&failure.signal, effect.as_str());
    match pause {
        None => json!({ "signal": signal, "effect": effect }),
        Some(pause) => {
            let millis = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            json!({ "signal": signal, "effect": effect, "wait_ms": millis })
        }
    }
}

fn learned(contract: &Contract, tried: &Tried) -> Learned {
    let Tried { answer, attempts, failures, ended, sent_at } = tried;
    let mut learned = Learned::new().with("attempts", *attempts).with("effect", answer.effect.as_str());
    if let Some(at) = sent_at.filter(|_| contract.is_write()) {
        learned = learned.with("sent_at", at.0);
    }
    if let Err(failure) = &answer.outcome {
        learned = learned.with("signal", failure.signal.as_str()).with("detail", failure.detail.as_str());
    }
    if contract.retry.attempts > 1 && !failures.is_empty() {
        learned = learned.with("failures", failures.clone());
        if let Some(ended) = ended {
            learned = learned.with("retry", ended.as_str());
        }
    }
    learned
}

impl Ran {
    pub(crate) fn reserved(&self) -> &Reserved {
        &self.reserved
    }

    pub(crate) fn answer(&self) -> &Answer {
        &self.answer
    }

    /// When it was first sent, where it was sent at all.
    pub(crate) fn sent_at(&self) -> Option<Millis> {
        self.sent_at
    }

    pub(crate) fn into_reserved(self) -> Reserved {
        self.reserved
    }
}
