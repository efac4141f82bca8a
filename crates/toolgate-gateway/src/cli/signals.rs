//! Interrupts: the first lets what runs come to its end, the second stops.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Said;
use super::journal::{self, journal};
use crate::mcp::upstream;

/// What a shell shows for a command that an interrupt stopped.
const INTERRUPTED: i32 = 130;

/// The signals that ask a process to end.
pub(super) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// From here on they no longer end the process by themselves.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Ends the process at the next.
    pub(super) async fn stop(mut self) -> ! {
        self.next().await;
        // They are in process groups of their own, which no signal to ours reaches.
        upstream::kill_all();
        journal()(Said::Note("stopped: what was running is unknown until it is looked up".into()));
        journal::flush();
        std::process::exit(INTERRUPTED);
    }
}

/// Waits for interrupts beside the work, until the process ends.
pub(super) fn drain_on_interrupt() {
    stop_on_interrupt();
}

/// As [`drain_on_interrupt`], for work that would not come to its end by itself: the first interrupt cancels the token.
pub(super) fn stop_on_interrupt() -> CancellationToken {
    let stop = CancellationToken::new();
    let Ok(mut interrupts) = Interrupts::listen() else {
        // Without handlers the process is stopped at once, and the ledger finds out what became of its calls.
        return stop;
    };
    let told = stop.clone();
    tokio::spawn(async move {
        interrupts.next().await;
        told.cancel();
        let text = "interrupted: waiting for the running calls to end within their deadlines; again to stop";
        journal()(Said::Note(text.into()));
        interrupts.stop().await
    });
    stop
}
