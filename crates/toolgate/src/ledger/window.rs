//! Windows in which something is counted.

use std::time::Duration;

use crate::clock::Millis;

/// A window in which something is counted: the calls of a limit, the refusals of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) begin: Millis,
    pub(crate) end: Millis,
}

/// How long a count outlasts its window. INVARIANT (never over): no process of the store is so far behind that it still
/// counts in a window whose count is forgotten.
const AFTER_WINDOW: Duration = Duration::from_secs(60 * 60);

impl Window {
    /// The window of this length that `now` lies in; they are aligned to 1970-01-01T00:00:00Z.
    pub(crate) fn of(now: Millis, per: Duration) -> Self {
        let per = u64::try_from(per.as_millis()).unwrap_or(u64::MAX).max(1);
        let begin = now.0 - now.0 % per;
        Self { begin: Millis(begin), end: Millis(begin.saturating_add(per)) }
    }

    /// Until when the count of a window that ends at `end` is needed.
    pub(super) fn counted_until(end: Millis) -> Millis {
        end.after(AFTER_WINDOW)
    }
}
