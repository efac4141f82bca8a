//! The refused permissions of runs, counted in the store and remembered in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::Bound;
use crate::clock::{Clock, Millis};
use crate::ledger::{RunKey, Store, StoreError, Window};
use crate::refusal::{Code, Fix, Refusal, Retry};
use crate::session::Session;

/// How old may be what is known here of refusals that other processes counted.
const FRESH: Duration = Duration::from_secs(1);
/// How many runs are remembered. Beyond it all are forgotten of which no call is being decided: the store knows.
const REMEMBERED: usize = 10_000;

/// Counts the refused permissions of runs.
pub(crate) struct Refusals {
    bound: Option<Bound>,
    store: Store,
    clock: Arc<dyn Clock>,
    runs: Mutex<HashMap<RunKey, Arc<Run>>>,
}

/// What is known here of one run.
#[derive(Debug)]
struct Run {
    key: RunKey,
    known: Mutex<Known>,
    /// One look at the store at a time.
    looking: tokio::sync::Mutex<()>,
    /// As many calls as may be between admission and verdict at once. INVARIANT (the run's): whether they come in one turn
    /// or each by itself.
    slots: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Known {
    /// INVARIANT (from the store): nothing before the store has answered, and nothing from a look that failed.
    seen: Option<Seen>,
    /// When the last look failed, and why.
    failed: Option<(Instant, StoreError)>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    window: Window,
    count: u64,
    /// When the look began that found it.
    asked: Instant,
}

/// The right of a call to be decided, beside as many others of its run as it may be refused.
#[derive(Debug)]
pub(crate) struct Slot {
    _permit: OwnedSemaphorePermit,
    /// A run is not forgotten while calls of it are decided: it would have as many slots again.
    _run: Arc<Run>,
}

impl Refusals {
    pub(crate) fn new(bound: Option<Bound>, store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { bound, store, clock, runs: Mutex::default() }
    }

    /// The right of a call of this run to be decided, where refusals are counted. It ends when it is dropped. An error
    /// where others of the run had it until `patience` ended.
    pub(crate) async fn slot(&self, session: &Session, patience: Instant) -> Result<Option<Slot>, Crowded> {
        let Some(bound) = self.bound else { return Ok(None) };
        let run = self.run(RunKey::of(session), bound);
        let permit = timeout_at(patience, Arc::clone(&run.slots).acquire_owned()).await;
        let permit = permit.map_err(|_| Crowded)?.map_err(|_| Crowded)?;
        Ok(Some(Slot { _permit: permit, _run: run }))
    }

    /// The refusal of a call whose run was refused too often already. A run that is known to be over costs no look at the
    /// store, any other one at most one a second. INVARIANT (fails closed): no call passes before the store has said once
    /// how often its run was refused in this window.
    pub(crate) async fn check(&self, session: &Session) -> Result<Option<Refusal>, StoreError> {
        let Some(bound) = self.bound else { return Ok(None) };
        let (run, window, now) = self.place(session, bound);
        let count = match run.seen(window) {
            Some(seen) if is_over(seen.count, bound) || seen.asked.elapsed() < FRESH => seen.count,
            // What is known is only to be refreshed: those who come meanwhile go by it.
            Some(seen) => match run.looking.try_lock() {
                Ok(_looking) => self.look(&run, window).await?,
                Err(_) => seen.count,
            },
            None => self.first_look(&run, window).await?,
        };
        Ok(is_over(count, bound).then(|| refusal(bound, window, now)))
    }

    /// What is told of a refusal: counted, where it is of a permission; and where the run had its share before, that.
    pub(crate) async fn hear(&self, session: &Session, told: Refusal) -> Result<Refusal, StoreError> {
        let Some(bound) = self.bound.filter(|_| is_of_a_permission(&told)) else { return Ok(told) };
        let (run, window, now) = self.place(session, bound);
        if run.seen(window).is_some_and(|seen| is_over(seen.count, bound)) {
            return Ok(refusal(bound, window, now));
        }
        let asked = Instant::now();
        let count = self.store.count_refused(run.key, window).await?;
        run.note(Seen { window, count, asked });
        Ok(if is_over(count.saturating_sub(1), bound) { refusal(bound, window, now) } else { told })
    }

    /// The first look at a run in a window, which all who come meanwhile wait for and share.
    async fn first_look(&self, run: &Run, window: Window) -> Result<u64, StoreError> {
        let came = Instant::now();
        let _looking = run.looking.lock().await;
        if let Some(seen) = run.seen(window) {
            return Ok(seen.count);
        }
        let failed = run.known().failed.clone();
        match failed.filter(|(failed, _)| came < *failed) {
            Some((_, error)) => Err(error),
            None => self.look(run, window).await,
        }
    }

    async fn look(&self, run: &Run, window: Window) -> Result<u64, StoreError> {
        let asked = Instant::now();
        match self.store.refused(run.key, window).await {
            Ok(count) => Ok(run.note(Seen { window, count, asked })),
            Err(error) => {
                run.known().failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    fn place(&self, session: &Session, bound: Bound) -> (Arc<Run>, Window, Millis) {
        let now = self.clock.now();
        (self.run(RunKey::of(session), bound), Window::of(now, bound.per), now)
    }

    fn run(&self, key: RunKey, bound: Bound) -> Arc<Run> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.len() >= REMEMBERED && !runs.contains_key(&key) {
            runs.retain(|_, run| Arc::strong_count(run) > 1);
        }
        Arc::clone(runs.entry(key).or_insert_with(|| Arc::new(Run::new(key, bound))))
    }
}

/// As many calls of a run are being decided as may be at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crowded;

impl Run {
    fn new(key: RunKey, bound: Bound) -> Self {
        let at_once = usize::try_from(bound.count).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS);
        let (known, looking, slots) = (Mutex::default(), tokio::sync::Mutex::default(), Semaphore::new(at_once));
        Self { key, known, looking, slots: Arc::new(slots) }
    }

    fn seen(&self, window: Window) -> Option<Seen> {
        self.known().seen.filter(|seen| seen.window == window)
    }

    /// Notes what the store said; returns how many refusals are known of then. INVARIANT (never fewer): what was counted in
    /// a window stays counted, also where an earlier answer of the store comes later.
    fn note(&self, found: Seen) -> u64 {
        let mut known = self.known();
        let count = match known.seen {
            Some(seen) if seen.window == found.window => found.count.max(seen.count),
            // Whoever looked in an earlier window tells nothing of this one.
            Some(seen) if seen.window.begin > found.window.begin => return found.count,
            Some(_) | None => found.count,
        };
        known.seen = Some(Seen { count, ..found });
        count
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]
mod tests {
    use futures_util::future::join_all;

    use super::*;
    use crate::clock::ManualClock;
    use crate::guards::Guards;
    use crate::session::Principal;

    fn alice(run: usize) -> Session {
        Session::new(Principal::new("local", "alice"), "acme").in_run(format!("ticket_{run}"))
    }

    fn refusals(store: &Store, count: u32) -> Refusals {
        let bound = Guards::default().refused(count, Duration::from_secs(600)).bound();
        Refusals::new(bound, store.clone(), Arc::new(ManualClock::at(Millis(1_796_000_000_000))))
    }

    fn forbidden() -> Refusal {
        Refusal::before(Code::Forbidden)
    }

    impl Refusals {
        fn remembered(&self) -> usize {
            self.runs.lock().unwrap().len()
        }
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn after_a_restart_no_call_passes_before_the_store_has_told_of_its_run() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::sqlite(folder.path().join("gate.db")).unwrap();
        let before = refusals(&store, 2);
        for _ in 0..2 {
            before.hear(&alice(1), forbidden()).await.unwrap();
        }
        let after = refusals(&store, 2);
        let (run, other) = (alice(1), alice(2));
        let told = join_all((0..50).map(|_| after.check(&run))).await;
        assert!(told.iter().all(|told| told.as_ref().unwrap().is_some()), "all fifty wait for the first look");
        assert_eq!(after.check(&other).await, Ok(None));
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn a_store_that_fails_says_nothing_of_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.db");
        let store = Store::sqlite(&path).unwrap();
        refusals(&store, 1).hear(&alice(1), forbidden()).await.unwrap();
        let (guard, run) = (refusals(&store, 1), alice(1));
        let breaking = rusqlite::Connection::open(&path).unwrap();
        breaking.execute_batch("ALTER TABLE counts RENAME TO lost").unwrap();
        for _ in 0..2 {
            assert!(guard.check(&run).await.is_err(), "nobody knows how often it was refused");
        }
        assert!(join_all((0..10).map(|_| guard.check(&run))).await.iter().all(Result::is_err));
        breaking.execute_batch("ALTER TABLE lost RENAME TO counts").unwrap();
        assert!(guard.check(&run).await.unwrap().is_some(), "it is well again, and the run is over");
    }

    #[tokio::test]
    async fn runs_that_are_over_are_forgotten_as_well_where_there_are_too_many() {
        let guard = refusals(&Store::memory(), 1);
        for run in 0..=REMEMBERED {
            guard.hear(&alice(run), forbidden()).await.unwrap();
        }
        assert!(guard.remembered() <= REMEMBERED, "{} are remembered", guard.remembered());
        assert!(guard.check(&alice(0)).await.unwrap().is_some(), "the store knows that it is over");
    }

    #[tokio::test]
    async fn only_so_many_calls_of_a_run_are_decided_at_once_wherever_they_come_from() {
        let guard = refusals(&Store::memory(), 1);
        let soon = || Instant::now() + Duration::from_millis(10);
        let first = guard.slot(&alice(0), soon()).await.unwrap();
        assert!(first.is_some());
        // Also where the run would have been forgotten meanwhile.
        for run in 1..=REMEMBERED {
            guard.check(&alice(run)).await.unwrap();
        }
        assert!(guard.slot(&alice(0), soon()).await.is_err());
        assert!(guard.slot(&alice(1), soon()).await.is_ok(), "another run does not wait for it");
        drop(first);
        assert!(guard.slot(&alice(0), soon()).await.is_ok());
    }
}
