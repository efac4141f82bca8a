//! Checkpoints of a running gate: the end of its record, signed and kept elsewhere, on a thread of its own. No call waits
//! for one; one that fails is told, and the next covers it.

mod delivery;

pub(crate) use delivery::agent;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use toolgate::audit::checkpoint::{Asked, Checkpoint, SigningKey};
use toolgate::clock::{Clock, SystemClock};
use toolgate::ledger::{Store, StoreError};

use crate::cli::{Failure, FailureCode, Said, Say};
use crate::config::Checkpoints;
use delivery::Delivery;

/// Keeps checkpoints of a store, from the moment that it is opened.
pub(crate) struct Keeper {
    wanted: Option<Checkpoints>,
    say: Say,
    running: Mutex<Option<Running>>,
}

/// The thread. It ends when it is told to, or when nobody is left to tell it.
struct Running {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

/// What the thread works with.
struct Work {
    store: Store,
    key: SigningKey,
    delivery: Delivery,
    every: Duration,
    /// The last one that was delivered.
    before: Option<Checkpoint>,
    /// How many failed since then.
    failures: u32,
    say: Say,
    runtime: tokio::runtime::Runtime,
}

/// The first one waits this long, so that a command that makes one call writes one checkpoint: the last.
const START: Duration = Duration::from_secs(1);
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(60);
const SHORTEST: Duration = Duration::from_millis(10);

impl Keeper {
    pub(crate) fn new(wanted: Option<Checkpoints>, say: Say) -> Self {
        Self { wanted, say, running: Mutex::default() }
    }

    /// Begins with a store. A key that cannot be used is a fault of the store: nothing would be signed.
    pub(crate) fn attend(&self, store: &Store) -> Result<(), StoreError> {
        let Some(wanted) = &self.wanted else { return Ok(()) };
        let broken = |why: String| StoreError::Broken(format!("its checkpoints cannot be signed: {why}"));
        let key = wanted.signing_key().map_err(|error| broken(error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let delivery = Delivery::new(&wanted.to);
        let mut work = Work {
            store: store.clone(),
            before: delivery.last_of(key.public()),
            key,
            delivery,
            every: wanted.every.max(SHORTEST),
            failures: 0,
            say: self.say.clone(),
            runtime: runtime.map_err(|error| broken(error.to_string()))?,
        };
        let (end, ended) = channel();
        let thread = thread::Builder::new().name("checkpoints".into()).spawn(move || work.go_on(&ended));
        let thread = thread.map_err(|error| broken(error.to_string()))?;
        // One that ran for another store of this gate ends without a last word.
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Running { end, thread });
        Ok(())
    }

    /// Writes the last one, and ends.
    pub(crate) fn finish(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { end, thread }) = running {
            // A thread that has panicked cannot be told.
            let _ = end.send(());
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

impl Work {
    fn go_on(&mut self, ended: &Receiver<()>) {
        let mut wait = START.min(self.every);
        loop {
            match ended.recv_timeout(wait) {
                Err(RecvTimeoutError::Timeout) => wait = self.round(),
                Ok(()) => {
                    self.round();
                    return;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Signs and delivers the end of the record where it has moved, and says how long to wait for the next.
    fn round(&mut self) -> Duration {
        let asked = self.store.checkpoint(&self.key, self.before.as_ref(), SystemClock.now());
        match self.runtime.block_on(asked) {
            Ok(Asked::Unmoved) => self.every,
            Ok(Asked::Moved(checkpoint)) => match self.delivery.deliver(&checkpoint) {
                Ok(()) => {
                    if self.failures > 0 {
                        let text = format!("checkpoints are kept again, after {} that were not", self.failures);
                        (self.say)(Said::Note(text));
                    }
                    self.failures = 0;
                    self.before = Some(checkpoint);
                    self.every
                }
                Err(why) => self.failed(&format!("of entry {} to {}: {why}", checkpoint.head.seq, self.delivery)),
            },
            Ok(Asked::Contradicted) => {
                let seq = self.before.as_ref().map_or(1, |before| before.head.seq);
                let text =
                    format!("the record does not hold entry {seq} as it was signed; nothing more is signed of it");
                (self.say)(Said::Failure(Failure::new(FailureCode::RecordBroken, text)));
                self.every.max(LONGEST_RETRY)
            }
            Err(error) => self.failed(&error.to_string()),
        }
    }

    fn failed(&mut self, why: &str) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let text = format!("no checkpoint was kept ({} in a row) {why}", self.failures);
        (self.say)(Said::Failure(Failure::new(FailureCode::CheckpointFailed, text)));
        let doubled = FIRST_RETRY.saturating_mul(1 << (self.failures - 1).min(6));
        doubled.min(LONGEST_RETRY).min(self.every.max(FIRST_RETRY))
    }
}

#[cfg(test)]
mod tests;
