//! Work that takes its time says so once, to a person at a terminal. Nothing moves.

use std::time::Duration;

use super::Output;

/// How long work may be silent.
const SILENCE: Duration = Duration::from_secs(1);

/// Does the work, and says `what` it is when it takes longer than a moment.
pub(super) async fn patiently<T>(what: &str, work: impl Future<Output = T>, output: &mut Output) -> T {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = tokio::time::sleep(SILENCE) => output.patience(&format!("{what} ...")),
    }
    work.await
}
