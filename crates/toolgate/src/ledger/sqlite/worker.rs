//! Threads that each own a connection: what waits runs in one transaction, and is answered when that is durable.

use std::iter::once;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use super::super::StoreError;
use super::super::rows::Stored;
use super::super::store::Pending;
use super::checkpoints::Checkpoints;
use super::rows::Tables;
use super::sealing::Vault;
use super::trouble::broken;

/// How many jobs may wait; more are turned away.
const QUEUE: usize = 1024;

/// How many jobs share a transaction at most.
const BATCH: usize = 256;

/// A thread and what waits for it. Dropped, it does what still waits, and ends.
pub(super) struct Worker {
    /// `None` only while the worker is dropped.
    queue: Option<SyncSender<Job>>,
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
    pub(super) fn writer(
        file: &str,
        connection: Connection,
        vault: Arc<Vault>,
        checkpoints: Checkpoints,
    ) -> Stored<Self> {
        Self::spawn("ledger-writer", file, move |queue| {
            while let Ok(first) = queue.recv() {
                let batch = once(first).chain(queue.try_iter()).take(BATCH);
                let written = together(&connection, &vault, &checkpoints, batch);
                checkpoints.count(written);
            }
        })
    }

    /// A thread that reads: what waits is answered from one moment. Without a vault it reads nothing that is sealed.
    pub(super) fn reader(name: &str, file: &str, connection: Connection, vault: Option<Arc<Vault>>) -> Stored<Self> {
        Self::spawn(name, file, move |queue| {
            while let Ok(first) = queue.recv() {
                // INVARIANT (nothing older): the moment comes after the last question, so that whoever asks after a
                // write is answered with it.
                let asked: Vec<Job> = once(first).chain(queue.try_iter()).take(BATCH).collect();
                answer_all(&connection, vault.as_deref(), asked);
            }
        })
    }

    fn spawn(name: &str, file: &str, run: impl FnOnce(Receiver<Job>) + Send + 'static) -> Stored<Self> {
        let (queue, waiting) = sync_channel(QUEUE);
        let thread = start(name, move || run(waiting))?;
        Ok(Self { queue: Some(queue), thread: Some(thread), file: file.into() })
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

impl Drop for Worker {
    fn drop(&mut self) {
        self.queue = None;
        join(self.thread.take());
    }
}

pub(super) fn start(name: &str, run: impl FnOnce() + Send + 'static) -> Stored<JoinHandle<()>> {
    let thread = thread::Builder::new().name(name.into()).spawn(run);
    thread.map_err(|_| broken("its threads cannot be started; the system has run out of them"))
}

/// Waits for a thread to end, unless it is this one: the last job may own the last store.
pub(super) fn join(thread: Option<JoinHandle<()>>) {
    if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
        let _ = thread.join();
    }
}

fn answer_all(connection: &Connection, vault: Option<&Vault>, jobs: Vec<Job>) {
    match Transaction::new_unchecked(connection, TransactionBehavior::Deferred).map_err(StoreError::from) {
        Ok(_transaction) => {
            let mut tables = Tables::new(connection, vault);
            for job in jobs {
                (job(Ok(&mut tables)).answer)(Ok(()));
            }
        }
        Err(error) => {
            for job in jobs {
                (job(Err(error.clone())).answer)(Err(error.clone()));
            }
        }
    }
}

/// Runs jobs in one transaction and answers them when it is over; returns how many. A job that fails takes back what
/// it wrote, and nothing of the others.
fn together(
    connection: &Connection,
    vault: &Vault,
    checkpoints: &Checkpoints,
    mut jobs: impl Iterator<Item = Job>,
) -> usize {
    let mut answers: Vec<Answer> = Vec::with_capacity(BATCH);
    let outcome = transact(connection, vault, &mut jobs, &mut answers).map(|erased| {
        if erased {
            checkpoints.leave_no_trace(connection);
        }
    });
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

/// Returns whether something was erased.
fn transact(
    connection: &Connection,
    vault: &Vault,
    jobs: &mut impl Iterator<Item = Job>,
    answers: &mut Vec<Answer>,
) -> Stored<bool> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let mut tables = Tables::new(connection, Some(vault));
    for job in jobs {
        let begun = tables.run("SAVEPOINT job", []);
        let Ran { keep, answer } = job(begun.map(|()| &mut tables));
        answers.push(answer);
        if !keep {
            if connection.is_autocommit() {
                // Some failures end the whole transaction, and what the jobs before wrote with it.
                return Err(broken("a transaction beside this one failed so badly that both were undone; try again"));
            }
            tables.run("ROLLBACK TO job", [])?;
            tables.forget_seen();
        }
        tables.run("RELEASE job", [])?;
    }
    let erased = tables.has_erased();
    drop(tables);
    transaction.commit()?;
    Ok(erased)
}

fn ended() -> StoreError {
    broken("its thread has ended; start the gate again")
}
