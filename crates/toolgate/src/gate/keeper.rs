//! What is done without a call: the actions of dead processes and of ended leases become unknown, what is past its time
//! is forgotten, and what became of unknown actions is looked for where their contracts say how.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::contract::Registry;
use crate::json::Digest;
use crate::ledger::{Entry, EntryKey, Store, StoreError};
use crate::recovery::{Reconciled, Recovery};

/// Looks after the ledger of a gate for as long as there is one.
pub(super) struct Keeper {
    rounds: Rounds,
    task: Mutex<Option<JoinHandle<()>>>,
    /// INVARIANT (never alive alone): cancelled with the last handle of the gate.
    ended: CancellationToken,
}

/// What the work needs. It holds nothing by which the gate would live on.
#[derive(Clone)]
struct Rounds {
    store: Store,
    recovery: Recovery,
    registry: Arc<Registry>,
    clock: Arc<dyn Clock>,
    at_once: Arc<Notify>,
    tell: Arc<OnceLock<Tell>>,
}

/// Who hears of a store that fails.
type Tell = Box<dyn Fn(&StoreError) + Send + Sync>;

/// When an unknown action is looked for again.
struct Again {
    at: Instant,
    wait: Duration,
}

/// How far the looking has come.
#[derive(Default)]
struct Search {
    again: HashMap<EntryKey, Again>,
    /// The number before which it goes on; `None` at the newest.
    before: Option<u64>,
}

/// A second; no test waits for whole ones.
const SECOND: Duration = Duration::from_millis(if cfg!(test) { 2 } else { 1000 });
/// About how long it rests between two rounds.
const PERIOD: Duration = SECOND.saturating_mul(5);
/// How many times in a row a bounded part is forgotten, before others get their turn for a while.
const STEPS: usize = 1000;
/// How many unknown actions one round looks through.
const LOOKED_THROUGH: usize = 256;
/// How many are looked for at the same moment: a backend that was down is not to be run down again.
const AT_ONCE: usize = 2;
/// How long it may take to look for one.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long one waits to be looked for again: this long at first, then twice as long each time.
const FIRST_WAIT: Duration = SECOND.saturating_mul(5);
const LONGEST_WAIT: Duration = SECOND.saturating_mul(600);
/// How many waiting ones are remembered at most. One that is forgotten is looked for again sooner.
const REMEMBERED: usize = 4096;

impl Keeper {
    pub(super) fn new(store: Store, recovery: Recovery, registry: Arc<Registry>, clock: Arc<dyn Clock>) -> Self {
        let (at_once, tell) = (Arc::default(), Arc::default());
        let rounds = Rounds { store, recovery, registry, clock, at_once, tell };
        Self { rounds, task: Mutex::default(), ended: CancellationToken::new() }
    }

    /// Begins, if it has not. The first round comes after a while: a process that makes one call goes before it.
    pub(super) fn begin(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        // It goes down with the runtime that it was begun on; whoever calls next has another one.
        if self.ended.is_cancelled() || task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let (rounds, ended) = (self.rounds.clone(), self.ended.clone());
        *task = Some(tokio::spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = rounds.sweep() => {}
                () = rounds.search() => {}
            }
        }));
    }

    /// Begins with a round at once. `tell` hears when the store begins to fail, once until it is well again.
    pub(super) fn begin_at_once(&self, tell: impl Fn(&StoreError) + Send + Sync + 'static) {
        let _ = self.rounds.tell.set(Box::new(tell));
        self.rounds.at_once.notify_one();
        self.begin();
    }

    /// Ends, and lets go of the store.
    pub(super) async fn end(&self) {
        self.ended.cancel();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

impl Rounds {
    /// Marks and forgets, for good. A store that fails may be well again.
    async fn sweep(&self) {
        let mut failing = false;
        for round in 0_u64.. {
            tokio::select! {
                () = self.at_once.notified() => {}
                () = self.rest("sweep", round) => {}
            }
            let swept = self.sweep_once().await;
            if let (Err(error), false, Some(tell)) = (&swept, failing, self.tell.get()) {
                tell(error);
            }
            failing = swept.is_err();
        }
    }

    async fn sweep_once(&self) -> Result<(), StoreError> {
        for _ in 0..STEPS {
            self.recovery.sweep().await?;
            if !self.store.is_overdue(self.clock.now()).await? {
                break;
            }
            yield_now().await;
        }
        Ok(())
    }

    /// Looks for what became of unknown actions, for good.
    async fn search(&self) {
        let mut search = Search::default();
        for round in 0_u64.. {
            self.rest("search", round).await;
            // A store that fails is told of by the sweep.
            let _ = self.search_once(&mut search).await;
        }
    }

    async fn search_once(&self, search: &mut Search) -> Result<(), StoreError> {
        let found = self.store.in_doubt(search.before, LOOKED_THROUGH).await?;
        search.before = found.last().map(|(number, _)| *number).filter(|_| found.len() == LOOKED_THROUGH);
        let due: Vec<Entry> =
            found.into_iter().map(|(_, entry)| entry).filter(|entry| self.is_due(search, entry)).collect();
        let looked = stream::iter(due)
            .map(|entry| async move { (entry.key, self.recovery.reconcile(&entry, Instant::now() + PATIENCE).await) })
            .buffer_unordered(AT_ONCE);
        let mut looked = std::pin::pin!(looked);
        while let Some((key, became)) = looked.next().await {
            match became? {
                Reconciled::Known => drop(search.again.remove(&key)),
                Reconciled::StillUnknown | Reconciled::Elsewhere => search.wait(key),
            }
        }
        Ok(())
    }

    /// Whether it can be looked for, and is not waited for.
    fn is_due(&self, search: &Search, entry: &Entry) -> bool {
        let tool = self.registry.get(&entry.action.tool);
        let can_be = !entry.erased && tool.is_some_and(|tool| tool.contract.reconcile.is_some());
        can_be && search.again.get(&entry.key).is_none_or(|again| again.at <= Instant::now())
    }

    /// Several processes of one store begin together, and must not go on together.
    async fn rest(&self, what: &str, round: u64) {
        let seed = Digest::of(format!("{}/{what}/{round}", self.store.owner().0).as_bytes());
        let share = seed.as_bytes().first().copied().unwrap_or(0);
        sleep(PERIOD.mul_f64(0.8 + f64::from(share) / 640.0)).await;
    }
}

impl Search {
    fn wait(&mut self, key: EntryKey) {
        let now = Instant::now();
        if self.again.len() >= REMEMBERED {
            self.again.retain(|_, again| again.at > now);
        }
        if self.again.len() >= REMEMBERED {
            self.again.clear();
        }
        let again = self.again.entry(key).or_insert(Again { at: now, wait: FIRST_WAIT });
        again.at = now + again.wait;
        again.wait = (again.wait * 2).min(LONGEST_WAIT);
    }
}
