//! What a test counts: work is compared by what was done, never by the clock.

use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    static DONE: RefCell<BTreeMap<&'static str, usize>> = const { RefCell::new(BTreeMap::new()) };
}

/// Counts one piece of work of this thread.
pub(crate) fn count(what: &'static str) {
    DONE.with_borrow_mut(|done| *done.entry(what).or_default() += 1);
}

/// What was counted on this thread since the last time.
pub(crate) fn taken() -> BTreeMap<&'static str, usize> {
    DONE.take()
}
