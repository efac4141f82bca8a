//! Guards of a run: what ends a run that only tries doors.

mod refusals;

use std::time::Duration;

pub(crate) use refusals::{Crowded, Refusals, Slot};

/// The guards of a gate. By default a run may be refused a permission 20 times in ten minutes.
///
/// What is counted are the codes `forbidden` and `approval_invalid`, of reads, writes and dry runs alike. Every call of the
/// run that comes afterwards is refused with `loop_detected`, before anything is looked up for it, until the window ends.
/// Windows are aligned to 1970-01-01T00:00:00Z. All processes of a store count together. So that what the first calls of
/// a run come to counts for the rest, no more of them than it may be refused are decided at once in one process.
///
/// ```
/// use std::time::Duration;
/// use toolgate::guards::Guards;
///
/// let strict = Guards::default().refused(5, Duration::from_secs(3600));
/// assert_ne!(strict, Guards::default());
/// assert_ne!(strict, Guards::off());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guards {
    refused: Option<Bound>,
}

/// How much of something there may be in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// INVARIANT (not nothing): a run that may not be refused once could do nothing after its first mistake.
    pub(crate) count: u32,
    pub(crate) per: Duration,
}

impl Guards {
    /// How many refused permissions a run may have by default.
    pub const REFUSED: u32 = 20;
    /// The default length of the window in which they are counted.
    pub const PER: Duration = Duration::from_secs(600);

    /// No guards at all.
    pub fn off() -> Self {
        Self { refused: None }
    }

    /// The same, with so many refused permissions in windows of this length; neither is taken as less than 1.
    #[must_use]
    pub fn refused(self, count: u32, per: Duration) -> Self {
        Self { refused: Some(Bound { count: count.max(1), per: per.max(Duration::from_millis(1)) }) }
    }

    /// The bound of refused permissions.
    pub(crate) fn bound(self) -> Option<Bound> {
        self.refused
    }
}

impl Default for Guards {
    fn default() -> Self {
        Self::off().refused(Self::REFUSED, Self::PER)
    }
}
