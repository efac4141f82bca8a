//! Interrupts: the first lets what runs come to its end, the second stops.

use tokio::signal::unix::{SignalKind, signal};

use tokio_util::sync::CancellationToken;

use super::Output;

/// What a shell shows for a command that an interrupt stopped.
const INTERRUPTED: i32 = 130;

/// Waits for interrupts beside the work, until the process ends.
pub(super) fn drain_on_interrupt() {
    stop_on_interrupt();
}

/// As [`drain_on_interrupt`], for work that would not come to its end by itself: the first interrupt cancels the token.
pub(super) fn stop_on_interrupt() -> CancellationToken {
    let stop = CancellationToken::new();
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        // Without handlers the process is stopped at once, and the ledger finds out what became of its calls.
        return stop;
    };
    let told = stop.clone();
    tokio::spawn(async move {
        let mut output = Output::new();
        let mut waiting = false;
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if waiting {
                output.note("stopped: what was running is unknown until it is looked up");
                std::process::exit(INTERRUPTED);
            }
            waiting = true;
            told.cancel();
            output.note("interrupted: waiting for the running calls to end within their deadlines; again to stop");
        }
    });
    stop
}
