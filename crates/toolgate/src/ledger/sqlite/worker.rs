//! Threads that each own a connection: what waits runs in one transaction, and is answered when that is durable.

use std::iter::once;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use super::super::StoreError;
use super::super::store::Pending;
use super::super::transact::Stored;
use super::broken;
use super::rows::Tables;

/// How many jobs may wait; more are turned away.
const QUEUE: usize = 1024;

/// How many jobs share a transaction at most.
const BATCH: usize = 256;

/// After about this many written jobs the log is worth copying back.
const JOBS_PER_CHECKPOINT: usize = 256;

/// A thread and what waits for it. Dropped, it does what still waits, and ends.
pub(super) struct Worker<J = Job> {
    /// `None` only while the worker is dropped.
    queue: Option<SyncSender<J>>,
    thread: Option<JoinHandle<()>>,
    file: Arc<str>,
}

/// Work on the tables, or word of why it cannot be done.
pub(super) type Job = Box<dyn FnOnce(Stored<&mut Tables<'_>>) -> Ran + Send>;

/// Work that has run and waits for its transaction.
pub(super) struct Ran {
    /// Whether what it wrote is to be kept.
    keep: bool,
    /// Says how it went, once it is known how the transaction did.
    answer: Answer,
}

type Answer = Box<dyn FnOnce(Stored<()>)>;

impl Worker {
    /// The thread that writes: as many jobs as wait share a commit.
    pub(super) fn writer(file: &str, connection: Connection, checkpoints: Worker<()>) -> Stored<Self> {
        Self::spawn("ledger-writer", file, QUEUE, move |queue: Receiver<Job>| {
            let mut written = 0;
            while let Ok(first) = queue.recv() {
                let batch = once(first).chain(queue.try_iter()).take(BATCH);
                written += together(&connection, TransactionBehavior::Immediate, batch);
                if written >= JOBS_PER_CHECKPOINT {
                    written = 0;
                    checkpoints.nudge();
                }
            }
        })
    }

    /// A thread that reads: each question sees one moment.
    pub(super) fn reader(name: &str, file: &str, connection: Connection) -> Stored<Self> {
        Self::spawn(name, file, QUEUE, move |queue: Receiver<Job>| {
            while let Ok(job) = queue.recv() {
                together(&connection, TransactionBehavior::Deferred, once(job));
            }
        })
    }

    /// Lets the thread do `work` in a transaction, whether or not anybody waits for the answer.
    pub(super) fn submit<T, F>(&self, work: F) -> Pending<'static, T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tables<'_>) -> Stored<T> + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        let job: Job = Box::new(move |tables| {
            let said = tables.and_then(|tables| {
                catch_unwind(AssertUnwindSafe(|| work(tables)))
                    .unwrap_or_else(|_| Err(broken("a transaction panicked")))
            });
            let keep = said.is_ok();
            // Whoever asked may have gone; what was done stands all the same.
            let answer = move |outcome: Stored<()>| drop(tell.send(said.and_then(|said| outcome.map(|()| said))));
            Ran { keep, answer: Box::new(answer) }
        });
        let sent = match self.queue.as_ref().map(|queue| queue.try_send(job)) {
            Some(Ok(())) => Ok(()),
            Some(Err(TrySendError::Full(_))) => Err(StoreError::Busy),
            Some(Err(TrySendError::Disconnected(_))) | None => Err(ended()),
        };
        let file = Arc::clone(&self.file);
        Box::pin(async move {
            let answer = match sent {
                Ok(()) => told.await.unwrap_or_else(|_| Err(ended())),
                Err(error) => Err(error),
            };
            answer.map_err(|error| error.of(&file))
        })
    }
}

impl Worker<()> {
    /// The thread that copies the log back into the file, so that no commit has to wait for that.
    pub(super) fn checkpoints(file: &str, connection: Connection) -> Stored<Self> {
        Self::spawn("ledger-checkpoints", file, 1, move |queue: Receiver<()>| {
            while queue.recv().is_ok() {
                // One that fails is made up for by the next, or by the writer when the log has grown too long.
                let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            }
        })
    }

    /// Asks for a checkpoint; one that is already asked for will do.
    fn nudge(&self) {
        if let Some(queue) = &self.queue {
            let _ = queue.try_send(());
        }
    }
}

impl<J: Send + 'static> Worker<J> {
    fn spawn(name: &str, file: &str, bound: usize, run: impl FnOnce(Receiver<J>) + Send + 'static) -> Stored<Self> {
        let (queue, waiting) = sync_channel(bound);
        let thread = thread::Builder::new()
            .name(name.into())
            .spawn(move || run(waiting))
            .map_err(|_| broken("its threads cannot be started; the system has run out of them"))?;
        Ok(Self { queue: Some(queue), thread: Some(thread), file: file.into() })
    }
}

impl<J> Drop for Worker<J> {
    fn drop(&mut self) {
        self.queue = None;
        // The last job may own the last store, which then falls on this very thread.
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

/// Runs jobs in one transaction and answers them when it is over; returns how many. A job that fails takes back what
/// it wrote, and nothing of the others.
fn together(connection: &Connection, behavior: TransactionBehavior, mut jobs: impl Iterator<Item = Job>) -> usize {
    let mut answers: Vec<Answer> = Vec::new();
    let outcome = transact(connection, behavior, &mut jobs, &mut answers);
    if answers.is_empty() {
        // It did not even begin.
        let refusal = outcome.clone().err().unwrap_or_else(ended);
        answers.extend(jobs.map(|job| job(Err(refusal.clone())).answer));
    }
    let count = answers.len();
    for answer in answers {
        answer(outcome.clone());
    }
    count
}

fn transact(
    connection: &Connection,
    behavior: TransactionBehavior,
    jobs: &mut impl Iterator<Item = Job>,
    answers: &mut Vec<Answer>,
) -> Stored<()> {
    let transaction = Transaction::new_unchecked(connection, behavior)?;
    for job in jobs {
        let begun = connection.prepare_cached("SAVEPOINT job").and_then(|mut begin| begin.execute([]));
        let tables = &mut Tables(connection);
        let Ran { keep, answer } = job(begun.map(|_| tables).map_err(StoreError::from));
        answers.push(answer);
        if !keep {
            if connection.is_autocommit() {
                // Some failures end the whole transaction, and what the jobs before wrote with it.
                return Err(broken("a transaction beside this one failed so badly that both were undone; try again"));
            }
            connection.prepare_cached("ROLLBACK TO job")?.execute([])?;
        }
        connection.prepare_cached("RELEASE job")?.execute([])?;
    }
    transaction.commit()?;
    Ok(())
}

fn ended() -> StoreError {
    broken("its thread has ended; start the gate again")
}
