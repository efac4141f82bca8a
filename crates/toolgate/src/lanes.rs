//! The queue in front of each lane, within this process: who waits here need not ask the store again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, timeout_at};

use crate::ledger::LaneKey;

/// The lanes that somebody of this process is on or waits for.
#[derive(Clone, Default)]
pub(crate) struct Lanes(Arc<Mutex<HashMap<LaneKey, Weak<tokio::sync::Mutex<()>>>>>);

/// A place on a lane: nobody else of this process is on it while this lives.
#[derive(Debug)]
pub(crate) struct Place {
    _guard: OwnedMutexGuard<()>,
}

impl Lanes {
    /// Waits for the lane, at most until `patience`.
    pub(crate) async fn enter(&self, lane: LaneKey, patience: Instant) -> Option<Place> {
        let queue = self.queue(lane);
        let guard = timeout_at(patience, queue.lock_owned()).await.ok()?;
        Some(Place { _guard: guard })
    }

    fn queue(&self, lane: LaneKey) -> Arc<tokio::sync::Mutex<()>> {
        const TIDY_ABOVE: usize = 1024;
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = lanes.get(&lane).and_then(Weak::upgrade) {
            return queue;
        }
        if lanes.len() > TIDY_ABOVE {
            lanes.retain(|_, queue| queue.strong_count() > 0);
        }
        let queue = Arc::new(tokio::sync::Mutex::new(()));
        lanes.insert(lane, Arc::downgrade(&queue));
        queue
    }
}
