//! The calls of one turn of a model: which of them have not ended yet, and how many are decided at once.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// The calls of one message of a model, which were all made before any of them ran.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The tool of each call in the order of the calls, until it has ended.
    pending: Mutex<Vec<Option<String>>>,
    /// As many calls as may be between admission and verdict at once.
    slots: Option<Arc<Semaphore>>,
}

/// The place of one call in its turn. Dropped, the call has ended.
#[derive(Debug)]
pub(crate) struct Seat {
    turn: Arc<Turn>,
    index: usize,
}

impl Turn {
    /// The seats of calls of these tools, of which at most `at_once` are decided at the same time.
    pub(crate) fn seats(tools: Vec<Option<String>>, at_once: Option<usize>) -> Vec<Seat> {
        let count = tools.len();
        let slots = at_once.map(|at_once| Arc::new(Semaphore::new(at_once.clamp(1, Semaphore::MAX_PERMITS))));
        let turn = Arc::new(Self { pending: Mutex::new(tools), slots });
        (0..count).map(|index| Seat { turn: Arc::clone(&turn), index }).collect()
    }
}

impl Seat {
    /// The tools of which another call of the turn has not ended.
    pub(crate) fn awaited(&self) -> BTreeSet<String> {
        let pending = self.turn.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let others = pending.iter().enumerate().filter(|(index, _)| *index != self.index);
        others.filter_map(|(_, tool)| tool.clone()).collect()
    }

    /// The right to be decided, which ends when it is dropped; `None` where others had it until `patience` ended.
    pub(crate) async fn slot(&self, patience: Instant) -> Option<Slot> {
        match &self.turn.slots {
            Some(slots) => {
                let permit = timeout_at(patience, Arc::clone(slots).acquire_owned()).await;
                permit.ok()?.ok().map(|permit| Slot { _permit: Some(permit) })
            }
            None => Some(Slot { _permit: None }),
        }
    }
}

/// The right of a call to be decided.
#[derive(Debug)]
pub(crate) struct Slot {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut pending = self.turn.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tool) = pending.get_mut(self.index) {
            *tool = None;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use std::time::Duration;

    use super::*;

    fn seats(at_once: Option<usize>) -> Vec<Seat> {
        Turn::seats(vec![Some("get_order".into()), Some("create_refund".into()), None], at_once)
    }

    #[test]
    fn a_call_awaits_the_others_until_they_have_ended_and_never_itself() {
        let mut seats = seats(None);
        assert_eq!(seats[1].awaited().into_iter().collect::<Vec<_>>(), ["get_order"]);
        assert_eq!(seats[2].awaited().len(), 2);
        drop(seats.remove(0));
        assert_eq!(seats[0].awaited().len(), 0);
    }

    #[tokio::test]
    async fn only_so_many_calls_are_decided_at_once() {
        let seats = seats(Some(1));
        let soon = || Instant::now() + Duration::from_millis(10);
        let first = seats[0].slot(soon()).await.unwrap();
        assert!(seats[1].slot(soon()).await.is_none());
        drop(first);
        assert!(seats[1].slot(soon()).await.is_some());
    }
}
