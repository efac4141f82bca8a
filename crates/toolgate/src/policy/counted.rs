//! How often Cedar was asked on this thread, for tests that compare work and not the clock.

use std::cell::Cell;

thread_local! {
    static EVALUATIONS: Cell<usize> = const { Cell::new(0) };
}

pub(super) fn once_more() {
    EVALUATIONS.with(|count| count.set(count.get() + 1));
}

/// How often Cedar is asked while `work` is done.
pub(crate) fn during<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = EVALUATIONS.with(Cell::get);
    let done = work();
    (done, EVALUATIONS.with(Cell::get) - before)
}
