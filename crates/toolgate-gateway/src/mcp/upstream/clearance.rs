//! Over which connection calls may go: the one whose list was compared with what it should be, while nothing is known
//! to have changed since.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::Upstream;

/// A moment of a server's list. Two that are equal have no change between them that the server told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The connection; each start has the next.
    pub(crate) generation: u64,
    /// How often the server had said that its tools changed.
    pub(super) changes: u64,
}

/// What calls may go by. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clearance(Arc<Mutex<Option<Cleared>>>);

#[derive(Clone, Copy, Debug)]
struct Cleared {
    /// INVARIANT (compared first): read before the first page of the list that was compared.
    mark: Mark,
    until: Instant,
}

/// Work that is done once for all who wait for it, and goes on when they stop waiting.
#[derive(Debug)]
pub(crate) struct Flight<T>(Mutex<Option<watch::Receiver<Option<T>>>>);

/// After this long a call is preceded by a comparison.
pub(crate) const FRESH: Duration = Duration::from_secs(600);
/// How long a comparison may take, with the start of the server before it.
pub(crate) const LONGEST_LIST: Duration = Duration::from_secs(90);
/// How often a call looks again at a list that changed while it was compared.
pub(crate) const MOST_COMPARISONS: usize = 3;

impl Clearance {
    /// Lets calls go over the connection of this mark, whose list was compared just now.
    pub(crate) fn grant(&self, mark: Mark, until: Instant) {
        self.set(Some(Cleared { mark, until }));
    }

    /// Keeps calls back until there was a comparison.
    pub(crate) fn withdraw(&self) {
        self.set(None);
    }

    /// What was compared last.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.get().map(|cleared| cleared.mark)
    }

    /// What was compared last, if that was not too long ago and the server is still there, unchanged.
    pub(crate) fn stands(&self, upstream: &Upstream) -> Option<Mark> {
        let Cleared { mark, until } = self.get()?;
        (upstream.mark() == Some(mark) && Instant::now() < until).then_some(mark)
    }

    fn get(&self) -> Option<Cleared> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, cleared: Option<Cleared>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = cleared;
    }
}

impl<T> Default for Flight<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone + Send + Sync + 'static> Flight<T> {
    /// What comes of the work that is going on, or else of `work`; `None` where it takes longer than may be waited.
    pub(crate) async fn join<F>(&self, until: Instant, work: impl FnOnce() -> F) -> Option<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut done = self.board(work);
        match timeout_at(until, done.wait_for(Option::is_some)).await {
            Ok(Ok(done)) => done.clone(),
            Ok(Err(_)) | Err(_) => None,
        }
    }

    fn board<F>(&self, work: impl FnOnce() -> F) -> watch::Receiver<Option<T>>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What has come to its end was for those who waited then; one that was lost has no sender any more.
        let going_on = |work: &&watch::Receiver<Option<T>>| work.borrow().is_none() && work.has_changed().is_ok();
        if let Some(running) = running.as_ref().filter(going_on) {
            return running.clone();
        }
        let (sender, receiver) = watch::channel(None);
        let work = work();
        tokio::spawn(async move {
            let done = work.await;
            sender.send_replace(Some(done));
        });
        *running = Some(receiver.clone());
        receiver
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn work_is_done_once_and_goes_on_when_nobody_waits_for_it() {
        let (flight, open) = (Flight::default(), Arc::new(Semaphore::new(0)));
        let times = Arc::new(AtomicUsize::new(0));
        let work = || {
            let (open, times) = (Arc::clone(&open), Arc::clone(&times));
            async move {
                // It is closed when the work may end.
                let _ = open.acquire().await;
                times.fetch_add(1, Ordering::SeqCst) + 1
            }
        };
        assert_eq!(flight.join(Instant::now(), work).await, None, "whoever has no time goes");
        let far = Instant::now() + Duration::from_secs(60);
        let (one, two, ()) = tokio::join!(flight.join(far, work), flight.join(far, work), async { open.close() });
        assert_eq!((one, two), (Some(1), Some(1)));
    }
}
