//! The refused permissions of runs, counted in the store and remembered in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Bound;
use crate::clock::{Clock, Millis};
use crate::ledger::{RunKey, Store, StoreError, Window};
use crate::refusal::{Code, Fix, Refusal, Retry};
use crate::session::Session;

/// How old may be what is known here of refusals that other processes counted.
const FRESH: Duration = Duration::from_secs(1);
/// How many runs are remembered: beyond it those are forgotten that may go on, of which the store knows more.
const REMEMBERED: usize = 10_000;

/// Counts the refused permissions of runs.
pub(crate) struct Refusals {
    bound: Option<Bound>,
    store: Store,
    clock: Arc<dyn Clock>,
    runs: Mutex<HashMap<RunKey, Seen>>,
}

/// What is known here of one run.
#[derive(Clone, Copy)]
struct Seen {
    window: Window,
    count: u64,
    /// When the store was asked last.
    asked: Instant,
}

impl Refusals {
    pub(crate) fn new(bound: Option<Bound>, store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { bound, store, clock, runs: Mutex::default() }
    }

    /// How many refusals end a run; nothing where none do.
    pub(crate) fn bound(&self) -> Option<usize> {
        self.bound.map(|bound| usize::try_from(bound.count).unwrap_or(usize::MAX))
    }

    /// The refusal of a call whose run was refused too often already. A run that is known to be over costs no look at the
    /// store, any other one at most one a second.
    pub(crate) async fn check(&self, session: &Session) -> Result<Option<Refusal>, StoreError> {
        let Some(bound) = self.bound else { return Ok(None) };
        let (run, window, now) = self.place(session, bound);
        let known = self.seen(run, window);
        if known.is_some_and(|seen| is_over(seen.count, bound)) {
            return Ok(Some(refusal(bound, window, now)));
        }
        if known.is_none_or(|seen| FRESH <= seen.asked.elapsed()) {
            // Noted before the store answers: those who come meanwhile do not ask as well.
            self.note(run, window, known.map_or(0, |seen| seen.count));
            let count = self.store.refused(run, window).await?;
            self.note(run, window, count);
            return Ok(is_over(count, bound).then(|| refusal(bound, window, now)));
        }
        Ok(None)
    }

    /// What is told of a refusal: counted, where it is of a permission; and where the run had its share before, that.
    pub(crate) async fn hear(&self, session: &Session, told: Refusal) -> Result<Refusal, StoreError> {
        let Some(bound) = self.bound.filter(|_| is_of_a_permission(&told)) else { return Ok(told) };
        let (run, window, now) = self.place(session, bound);
        if self.seen(run, window).is_some_and(|seen| is_over(seen.count, bound)) {
            return Ok(refusal(bound, window, now));
        }
        let count = self.store.count_refused(run, window).await?;
        self.note(run, window, count);
        Ok(if is_over(count.saturating_sub(1), bound) { refusal(bound, window, now) } else { told })
    }

    fn place(&self, session: &Session, bound: Bound) -> (RunKey, Window, Millis) {
        let now = self.clock.now();
        (RunKey::of(session), Window::of(now, bound.per), now)
    }

    fn seen(&self, run: RunKey, window: Window) -> Option<Seen> {
        self.lock().get(&run).copied().filter(|seen| seen.window == window)
    }

    /// INVARIANT (never fewer): what was counted in a window stays counted.
    fn note(&self, run: RunKey, window: Window, count: u64) {
        let mut runs = self.lock();
        if runs.len() >= REMEMBERED && !runs.contains_key(&run) {
            let bound = self.bound;
            runs.retain(|_, seen| {
                seen.window.end > window.begin && bound.is_some_and(|bound| is_over(seen.count, bound))
            });
        }
        let asked = Instant::now();
        let seen = runs.entry(run).or_insert(Seen { window, count, asked });
        let before = if seen.window == window { seen.count } else { 0 };
        *seen = Seen { window, count: count.max(before), asked };
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunKey, Seen>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_over(count: u64, bound: Bound) -> bool {
    u64::from(bound.count) <= count
}

/// Whether it tells somebody that they may not. What an operator has to mend is nobody's trying of doors.
fn is_of_a_permission(told: &Refusal) -> bool {
    match told.code() {
        Code::Forbidden | Code::ApprovalInvalid => told.fix() != Fix::Operator,
        Code::Unauthenticated
        | Code::UnknownTool
        | Code::InvalidCall
        | Code::InvalidJson
        | Code::InvalidArguments
        | Code::TurnTruncated
        | Code::RuleFailed
        | Code::ApprovalRequired
        | Code::LimitReached
        | Code::Overloaded
        | Code::BudgetExhausted
        | Code::LoopDetected
        | Code::RepairExhausted
        | Code::InProgress
        | Code::AlreadyDone
        | Code::KeyConflict
        | Code::OutcomeUnknown
        | Code::TimedOut
        | Code::Cancelled
        | Code::EgressDenied
        | Code::ToolFailed
        | Code::Unavailable
        | Code::InvalidResult
        | Code::ResultTooLarge => false,
    }
}

fn refusal(bound: Bound, window: Window, now: Millis) -> Refusal {
    let message = format!(
        "This run asked {} times for what it may not do, so no call of it is taken until {}. Nothing was done. Do not try \
         other ways: tell the user what was refused.",
        bound.count, window.end
    );
    let wait = Duration::from_millis(window.end.0.saturating_sub(now.0));
    Refusal::before(Code::LoopDetected).message(message).fixed_by(Fix::User).retry(Retry::After(wait))
}
