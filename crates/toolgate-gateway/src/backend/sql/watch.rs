//! The end of the work: its deadline, and whether its caller is still there.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate::backend::Context;

use super::trouble::Trouble;

/// Until when, and for whom, work goes on.
#[derive(Clone)]
pub(super) struct Watch {
    until: Instant,
    gone: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// How long SQLite waits for a lock by itself; it cannot be told to stop in between.
const SLICE: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_millis(2);
/// How long before the call's deadline the work ends, so that it can still prove that nothing happened.
const MARGIN: Duration = Duration::from_millis(20);

impl Watch {
    /// The watch over the work of a call: it ends 20 ms, or a twentieth of what is left if that is less, before the
    /// deadline of the call.
    pub(super) fn of(context: &Context) -> Self {
        let deadline = context.deadline().into_std();
        let margin = MARGIN.min(deadline.saturating_duration_since(Instant::now()) / 20);
        let context = context.clone();
        Self::new(deadline.checked_sub(margin).unwrap_or(deadline), move || context.is_cancelled())
    }

    pub(super) fn new(until: Instant, gone: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { until, gone: Arc::new(gone) }
    }

    /// Fails once the work is to end.
    pub(super) fn check(&self) -> Result<(), Trouble> {
        if (self.gone)() {
            return Err(Trouble::Cancelled);
        }
        if Instant::now() >= self.until { Err(Trouble::TimedOut) } else { Ok(()) }
    }

    /// How long to wait for a lock before looking around.
    pub(super) fn slice(&self) -> Duration {
        SLICE.min(self.until.saturating_duration_since(Instant::now()))
    }

    /// Tries until it is no longer the locks of others that are in the way.
    #[expect(
        clippy::disallowed_methods,
        reason = "the work has a thread of its own, and the pause is a part of a slice"
    )]
    pub(super) fn patiently<T>(&self, mut attempt: impl FnMut() -> Result<T, Trouble>) -> Result<T, Trouble> {
        let mut waited = false;
        loop {
            match self.check() {
                Err(Trouble::TimedOut) if waited => return Err(Trouble::Busy),
                checked => checked?,
            }
            match attempt() {
                Err(Trouble::Busy) => waited = true,
                ended => return ended,
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("until", &self.until).finish_non_exhaustive()
    }
}
