//! Who waits for which answer of a server, and who still wants to hear of one that was given up.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::mcp::message::Id;

/// Who waits for which answer; `None` once the connection has ended.
pub(super) struct Waiting(Mutex<Option<Requests>>);

/// What is owed by the server.
#[derive(Default)]
struct Requests {
    waiting: HashMap<String, oneshot::Sender<Arrived>>,
    /// INVARIANT (bounded): the oldest first; a server that answers nothing keeps no more than [`MOST_LEFT`].
    left: VecDeque<Left>,
}

/// A request that nobody waits for any more.
struct Left {
    id: String,
    until: Instant,
    hear: Hear,
}

/// Takes what came for a request after it was given up.
pub(super) type Hear = Arc<dyn Fn(Arrived) + Send + Sync>;

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

/// How long a late answer is of use.
const LATEST: Duration = Duration::from_secs(300);
const MOST_LEFT: usize = 256;

impl Default for Waiting {
    fn default() -> Self {
        Self(Mutex::new(Some(Requests::default())))
    }
}

impl Waiting {
    fn with<T>(&self, work: impl FnOnce(&mut Option<Requests>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn is_open(&self) -> bool {
        self.with(|requests| requests.is_some())
    }

    pub(super) fn wait_for(&self, id: &str) -> Option<oneshot::Receiver<Arrived>> {
        self.with(|requests| {
            let (sender, receiver) = oneshot::channel();
            requests.as_mut()?.waiting.insert(id.to_owned(), sender);
            Some(receiver)
        })
    }

    pub(super) fn forget(&self, id: &str) {
        self.with(|requests| requests.as_mut().and_then(|requests| requests.waiting.remove(id)));
    }

    /// Gives a request up that may have reached the server. What comes for it goes to `hear`, also where it has come
    /// already and nobody has looked.
    pub(super) fn leave(&self, id: &str, answer: &mut oneshot::Receiver<Arrived>, hear: Hear) {
        let arrived = self.with(|requests| {
            answer.close();
            if let Ok(arrived) = answer.try_recv() {
                return Some(arrived);
            }
            let requests = requests.as_mut()?;
            requests.waiting.remove(id);
            let now = Instant::now();
            requests.left.retain(|left| now < left.until);
            if requests.left.len() >= MOST_LEFT {
                requests.left.pop_front();
            }
            requests.left.push_back(Left { id: id.to_owned(), until: now + LATEST, hear: Arc::clone(&hear) });
            None
        });
        if let Some(arrived) = arrived {
            hear(arrived);
        }
    }

    /// Gives an answer to whoever waits for it, or wants to hear of it. INVARIANT (one answer, one caller): an id is known
    /// once, and as the text that we sent.
    pub(super) fn deliver(&self, id: &Id, arrived: Arrived) -> bool {
        let Id::Text(id) = id else { return false };
        let left = self.with(|requests| {
            let requests = requests.as_mut().ok_or(false)?;
            if let Some(waiter) = requests.waiting.remove(id) {
                return Err(waiter.send(arrived).is_ok());
            }
            let place = requests.left.iter().position(|left| left.id == *id).ok_or(false)?;
            let left = requests.left.remove(place).filter(|left| Instant::now() < left.until).ok_or(false)?;
            Ok((left.hear, arrived))
        });
        match left {
            Ok((hear, arrived)) => {
                hear(arrived);
                true
            }
            Err(delivered) => delivered,
        }
    }

    /// The ids that stand in a line which cannot be read. Ids can't be guessed, so it is the answer to these requests.
    pub(super) fn named_in(&self, line: &[u8]) -> Vec<Id> {
        let named = |id: &&String| line.windows(id.len()).any(|part| part == id.as_bytes());
        self.with(|requests| {
            let all = requests
                .iter()
                .flat_map(|requests| requests.waiting.keys().chain(requests.left.iter().map(|left| &left.id)));
            all.filter(named).cloned().map(Id::Text).collect()
        })
    }

    /// Ends all waiting.
    pub(super) fn end(&self) {
        self.with(|requests| *requests = None);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    /// What was heard.
    fn hearing() -> (Hear, Arc<Mutex<Vec<String>>>) {
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&heard);
        let hear: Hear = Arc::new(move |arrived| log.lock().unwrap().push(format!("{arrived:?}")));
        (hear, heard)
    }

    fn text(id: &str) -> Id {
        Id::Text(id.to_owned())
    }

    #[tokio::test]
    async fn what_comes_for_a_request_that_was_given_up_is_heard_once() {
        let waiting = Waiting::default();
        let (hear, heard) = hearing();
        let mut answer = waiting.wait_for("a").unwrap();
        waiting.leave("a", &mut answer, hear);
        assert!(waiting.deliver(&text("a"), Arrived::Broken));
        assert!(!waiting.deliver(&text("a"), Arrived::Broken), "the second is for nobody");
        assert_eq!(*heard.lock().unwrap(), ["Broken"]);
    }

    #[tokio::test]
    async fn what_came_while_it_was_given_up_is_not_lost() {
        let waiting = Waiting::default();
        let (hear, heard) = hearing();
        let mut answer = waiting.wait_for("a").unwrap();
        assert!(waiting.deliver(&text("a"), Arrived::Broken));
        waiting.leave("a", &mut answer, hear);
        assert_eq!(heard.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn only_so_many_are_kept_and_the_newest_of_them() {
        let waiting = Waiting::default();
        let (hear, heard) = hearing();
        for number in 0..=MOST_LEFT {
            let id = number.to_string();
            let mut answer = waiting.wait_for(&id).unwrap();
            waiting.leave(&id, &mut answer, Arc::clone(&hear));
        }
        assert!(!waiting.deliver(&text("0"), Arrived::Broken), "the oldest went");
        assert!(waiting.deliver(&text("1"), Arrived::Broken));
        assert_eq!(heard.lock().unwrap().len(), 1);
    }
}
