//! Tells somebody outside of approvals that wait: a signed request each, on a thread of its own. What is still to be told
//! stands in the store since the approval does, so that no end of a process loses it; no call waits for it.

mod request;
#[cfg(test)]
mod tests;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use toolgate::clock::{Clock, SystemClock};
use toolgate::ledger::{Store, StoreError, Untold};

use crate::cli::{Failure, FailureCode, Said, Say};
use crate::config::Webhook;
use request::Desk;

/// Tells of the approvals of a store, from the moment that it is opened.
pub(crate) struct Messenger {
    wanted: Option<Webhook>,
    say: Say,
    running: Mutex<Option<Running>>,
}

/// The thread. It ends when it is told to, or when nobody is left to tell it.
struct Running {
    end: Sender<()>,
    /// After which moment it begins no request, once it is to end.
    last: Arc<OnceLock<Instant>>,
    thread: JoinHandle<()>,
}

/// What the thread works with.
struct Work {
    store: Store,
    desk: Desk,
    say: Say,
    /// When the operator was last told of a failure, while it lasts.
    failed: Option<Instant>,
    /// When the store is looked at next: the longer nobody takes anything, the later.
    pause: Duration,
    last: Arc<OnceLock<Instant>>,
    runtime: tokio::runtime::Runtime,
}

/// How often the store is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How seldom, at most, while nobody takes anything.
const LONGEST_LOOK: Duration = Duration::from_secs(10);
/// How long it goes on telling at its end. One request more may be on its way then.
const LAST: Duration = Duration::from_secs(10);
/// How long nobody else tells of what this process tells of: longer than a request may take.
const LEASE: Duration = Duration::from_secs(30);
const FIRST_RETRY: Duration = Duration::from_secs(2);
const LONGEST_RETRY: Duration = Duration::from_secs(300);
/// The operator is told of failures no more often.
const SILENCE: Duration = Duration::from_secs(60);

impl Messenger {
    pub(crate) fn new(wanted: Option<Webhook>, say: Say) -> Self {
        Self { wanted, say, running: Mutex::default() }
    }

    /// Begins with a store. A secret that cannot be used is a fault of the store: nobody would believe what is told.
    pub(crate) fn attend(&self, store: &Store) -> Result<(), StoreError> {
        let Some(wanted) = &self.wanted else { return Ok(()) };
        let broken = |why: String| StoreError::Broken(format!("its approvals cannot be told of: {why}"));
        let secret = wanted.secret().map_err(|error| broken(error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let mut work = Work {
            store: store.clone(),
            desk: Desk::new(&wanted.url, &secret),
            say: self.say.clone(),
            failed: None,
            pause: LOOK,
            last: Arc::default(),
            runtime: runtime.map_err(|error| broken(error.to_string()))?,
        };
        let ((end, ended), last) = (channel(), Arc::clone(&work.last));
        let thread = thread::Builder::new().name("messenger".into()).spawn(move || work.go_on(&ended));
        let thread = thread.map_err(|error| broken(error.to_string()))?;
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Running { end, last, thread });
        Ok(())
    }

    /// Tells what there is to tell, once and for some seconds at most, and ends. What could not be told waits for the next
    /// process on the store.
    pub(crate) fn finish(&self) {
        self.finish_within(LAST);
    }

    fn finish_within(&self, time: Duration) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { end, last, thread }) = running {
            // A round that is under way hears of it too.
            let _ = last.set(Instant::now() + time);
            // A thread that has panicked cannot be told.
            let _ = end.send(());
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Messenger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messenger").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

impl Work {
    fn go_on(&mut self, ended: &Receiver<()>) {
        loop {
            match ended.recv_timeout(self.pause) {
                Err(RecvTimeoutError::Timeout) => self.round(),
                Ok(()) => {
                    self.round();
                    return;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Tells of what waits, until there is nothing left, something is not taken, or it is to end.
    fn round(&mut self) {
        while self.last.get().is_none_or(|last| Instant::now() < *last) {
            let taken = self.runtime.block_on(self.store.untold(LEASE, SystemClock.now()));
            match taken {
                Ok(None) => return,
                Ok(Some(untold)) => {
                    if !self.tell(&untold) {
                        return;
                    }
                }
                Err(error) => return self.failed(&error.to_string()),
            }
        }
    }

    /// Whether it was taken.
    fn tell(&mut self, untold: &Untold) -> bool {
        match self.desk.tell(&untold.approval, SystemClock.now()) {
            Ok(()) => {
                self.pause = LOOK;
                if self.failed.take().is_some() {
                    (self.say)(Said::Note("approvals that wait are told of again".into()));
                }
                // Where this does not stand, it is told of once more, under the same id.
                if let Err(error) = self.runtime.block_on(self.store.told(untold)) {
                    self.failed(&error.to_string());
                }
                true
            }
            Err(why) => {
                self.failed(&format!("{} to {}: {why}", untold.approval.id, self.desk));
                let again = backoff(untold.attempt);
                let put_off = self.store.not_told(untold, again, SystemClock.now());
                if let Err(error) = self.runtime.block_on(put_off) {
                    self.failed(&error.to_string());
                }
                false
            }
        }
    }

    fn failed(&mut self, why: &str) {
        self.pause = seldomer(self.pause);
        if self.failed.is_none_or(|told| told.elapsed() >= SILENCE) {
            let text = format!("nobody was told of an approval that waits: {why}; it is tried again until it expires");
            (self.say)(Said::Failure(Failure::new(FailureCode::WebhookFailed, text)));
            self.failed = Some(Instant::now());
        }
    }
}

fn seldomer(pause: Duration) -> Duration {
    pause.saturating_mul(2).min(LONGEST_LOOK)
}

/// How long to wait after so many tries.
fn backoff(attempts: u32) -> Duration {
    FIRST_RETRY.saturating_mul(1 << attempts.saturating_sub(1).min(10)).min(LONGEST_RETRY)
}
