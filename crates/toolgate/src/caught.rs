//! The edge where other people's code runs: a panic in it ends its work, and nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

/// The work panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panicked;

/// Starts the work and waits for it; a panic of either is caught.
pub(crate) async fn caught<F: Future + Unpin>(start: impl FnOnce() -> F) -> Result<F::Output, Panicked> {
    let mut work = catch_unwind(AssertUnwindSafe(start)).map_err(|_| Panicked)?;
    std::future::poll_fn(move |context| {
        match catch_unwind(AssertUnwindSafe(|| std::pin::Pin::new(&mut work).poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    })
    .await
}
