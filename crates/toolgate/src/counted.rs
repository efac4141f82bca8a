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

/// How often this thread did `what` while `work` was done.
pub(crate) fn during<T>(what: &'static str, work: impl FnOnce() -> T) -> (T, usize) {
    let count = || DONE.with_borrow(|done| done.get(what).copied().unwrap_or_default());
    let before = count();
    let done = work();
    (done, count() - before)
}

/// What was counted on this thread since the last time.
pub(crate) fn taken() -> BTreeMap<&'static str, usize> {
    DONE.take()
}
