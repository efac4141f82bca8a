//! Who waits for which answer of a server.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::mcp::message::Id;

/// Who waits for which answer; `None` once the connection has ended.
pub(super) struct Waiting(Mutex<Option<HashMap<String, oneshot::Sender<Arrived>>>>);

/// What came for a request.
#[derive(Debug)]
pub(super) enum Arrived {
    /// The raw text of a result.
    Result(Vec<u8>),
    /// The raw text of an error object.
    Error(Vec<u8>),
    /// Something that has the id of the request and cannot be read.
    Broken,
}

impl Default for Waiting {
    fn default() -> Self {
        Self(Mutex::new(Some(HashMap::new())))
    }
}

impl Waiting {
    fn with<T>(&self, work: impl FnOnce(&mut Option<HashMap<String, oneshot::Sender<Arrived>>>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn is_open(&self) -> bool {
        self.with(|waiting| waiting.is_some())
    }

    pub(super) fn wait_for(&self, id: &str) -> Option<oneshot::Receiver<Arrived>> {
        self.with(|waiting| {
            let (sender, receiver) = oneshot::channel();
            waiting.as_mut()?.insert(id.to_owned(), sender);
            Some(receiver)
        })
    }

    pub(super) fn forget(&self, id: &str) {
        self.with(|waiting| waiting.as_mut().and_then(|waiting| waiting.remove(id)));
    }

    /// Gives an answer to whoever waits for it. INVARIANT (one answer, one caller): an id is known once, and as the text
    /// that we sent.
    pub(super) fn deliver(&self, id: &Id, arrived: Arrived) -> bool {
        let Id::Text(id) = id else { return false };
        let waiter = self.with(|waiting| waiting.as_mut().and_then(|waiting| waiting.remove(id)));
        waiter.is_some_and(|waiter| waiter.send(arrived).is_ok())
    }

    /// The ids that stand in a line which cannot be read. Ids can't be guessed, so it is the answer to these requests.
    pub(super) fn named_in(&self, line: &[u8]) -> Vec<Id> {
        let named = |id: &&String| line.windows(id.len()).any(|part| part == id.as_bytes());
        self.with(|waiting| waiting.iter().flat_map(HashMap::keys).filter(named).cloned().map(Id::Text).collect())
    }

    /// Ends all waiting.
    pub(super) fn end(&self) {
        self.with(|waiting| *waiting = None);
    }
}
