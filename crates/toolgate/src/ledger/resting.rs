//! What a run leaves in the store lasts until the run has rested for a day.

use std::time::Duration;

use crate::clock::Millis;

/// How long a run may rest before its handle ends, and before what it has done and read is forgotten.
const RESTS: Duration = Duration::from_secs(24 * 60 * 60);
/// How much of that is left of a note that need not be written anew: a run that goes on costs one write an hour.
const FRESH: Duration = Duration::from_secs(23 * 60 * 60);

/// Until when a note lasts that is written now.
pub(super) fn rests_until(now: Millis) -> Millis {
    now.after(RESTS)
}

/// Whether a note that lasts until then need not be written anew.
pub(super) fn is_fresh(until: Millis, now: Millis) -> bool {
    now.after(FRESH) < until
}
