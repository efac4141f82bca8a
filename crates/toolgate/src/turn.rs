//! The calls of one turn of a model: which of them have not ended yet.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The calls of one message of a model, which were all made before any of them ran.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The tool of each call in the order of the calls, until it has ended.
    pending: Mutex<Vec<Option<String>>>,
}

/// The place of one call in its turn. Dropped, the call has ended.
#[derive(Debug)]
pub(crate) struct Seat {
    turn: Arc<Turn>,
    index: usize,
}

impl Turn {
    /// The seats of calls of these tools.
    pub(crate) fn seats(tools: Vec<Option<String>>) -> Vec<Seat> {
        let count = tools.len();
        let turn = Arc::new(Self { pending: Mutex::new(tools) });
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
    use super::*;

    #[test]
    fn a_call_awaits_the_others_until_they_have_ended_and_never_itself() {
        let mut seats = Turn::seats(vec![Some("get_order".into()), Some("create_refund".into()), None]);
        assert_eq!(seats[1].awaited().into_iter().collect::<Vec<_>>(), ["get_order"]);
        assert_eq!(seats[2].awaited().len(), 2);
        drop(seats.remove(0));
        assert_eq!(seats[0].awaited().len(), 0);
    }
}
