//! What a read knows of stops: a view of the store that is at most a second old.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{Spot, Stoppage};
use crate::clock::Millis;
use crate::ledger::{Store, StoreError};

/// The stops of a store, as all reads of a gate see them.
#[derive(Clone)]
pub(crate) struct View {
    store: Store,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    known: Mutex<Known>,
    /// One look at the store at a time, which all who wait share.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    standing: Arc<[Stoppage]>,
    /// INVARIANT (never younger than it is): when the look began that found it; nothing before the first.
    seen: Option<Instant>,
    /// When the last look ended, and why it found nothing, if it did not.
    looked: Option<(Instant, Option<StoreError>)>,
}

/// How old the view may be.
const FRESH: Duration = Duration::from_secs(1);
/// How old it may be where the store does not answer. INVARIANT (fails closed): beyond it, no read runs.
const LAST: Duration = Duration::from_secs(5);
/// How long a read waits for the store where the view is not too old yet.
const PATIENCE: Duration = Duration::from_millis(500);

impl View {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, shared: Arc::default() }
    }

    /// What stops a call made there. An error where nobody knows.
    pub(crate) async fn stops(&self, spot: &Spot, now: Millis) -> Result<Option<Stoppage>, StoreError> {
        let standing = match self.younger_than(FRESH) {
            Some(standing) => standing,
            None => self.look(now).await?,
        };
        Ok(Stoppage::of(&standing, spot, now))
    }

    /// The next read looks at the store: a stop was set or lifted here.
    pub(crate) fn forget(&self) {
        let mut known = self.known();
        (known.seen, known.looked) = (None, None);
    }

    async fn look(&self, now: Millis) -> Result<Arc<[Stoppage]>, StoreError> {
        let asked = Instant::now();
        let _looking = self.shared.looking.lock().await;
        // Somebody else has looked since: whoever waited does not look once more.
        if let Some(standing) = self.younger_than(FRESH) {
            return Ok(standing);
        }
        let looked = self.known().looked.clone();
        if let Some((_, Some(error))) = looked.filter(|(looked, _)| asked < *looked) {
            return self.younger_than(LAST).ok_or(error);
        }
        let began = Instant::now();
        let found = match self.younger_than(LAST) {
            Some(_) => timeout(PATIENCE, self.store.stops(now)).await.unwrap_or(Err(StoreError::Busy)),
            None => timeout(LAST, self.store.stops(now)).await.unwrap_or(Err(StoreError::Busy)),
        };
        let mut known = self.known();
        known.looked = Some((Instant::now(), found.as_ref().err().cloned()));
        match found {
            Ok(standing) => {
                (known.standing, known.seen) = (standing.into(), Some(began));
                Ok(Arc::clone(&known.standing))
            }
            Err(error) => {
                drop(known);
                self.younger_than(LAST).ok_or(error)
            }
        }
    }

    /// The view, if the look that found it began less than `age` ago.
    fn younger_than(&self, age: Duration) -> Option<Arc<[Stoppage]>> {
        let known = self.known();
        known.seen.is_some_and(|seen| seen.elapsed() < age).then(|| Arc::clone(&known.standing))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, feature = "sqlite"))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_000_000);

    fn spot() -> Spot {
        Spot { tool: "look".into(), tenant: "acme".into() }
    }

    impl View {
        fn age(&self, age: Duration) {
            let mut known = self.known();
            (known.seen, known.looked) = (Instant::now().checked_sub(age), None);
        }
    }

    #[tokio::test]
    async fn a_read_goes_by_an_old_view_for_five_seconds_and_then_by_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate.db");
        let view = View::new(Store::sqlite(&path).unwrap());
        assert_eq!(view.stops(&spot(), NOW).await, Ok(None));
        let breaking = rusqlite::Connection::open(&path).unwrap();
        breaking.execute_batch("ALTER TABLE notes RENAME TO lost").unwrap();
        view.age(Duration::from_secs(4));
        assert_eq!(view.stops(&spot(), NOW).await, Ok(None), "the store fails, and the view is not too old yet");
        view.age(Duration::from_secs(5));
        assert!(view.stops(&spot(), NOW).await.is_err(), "nobody knows what is stopped");
        breaking.execute_batch("ALTER TABLE lost RENAME TO notes").unwrap();
        assert_eq!(view.stops(&spot(), NOW).await, Ok(None), "it is well again");
    }

    #[tokio::test]
    async fn reads_side_by_side_look_once() {
        let view = View::new(Store::memory());
        let looks = (0..50).map(|_| async { view.stops(&spot(), NOW).await });
        assert!(futures_util::future::join_all(looks).await.iter().all(Result::is_ok));
        let first = view.known().seen;
        assert_eq!(view.stops(&spot(), NOW).await, Ok(None));
        assert_eq!(view.known().seen, first, "a view that is young is not looked for again");
    }
}
