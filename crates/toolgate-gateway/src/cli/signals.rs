//! Interrupts: the first lets what runs come to its end, the second stops.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Output;

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
        Output::new().note("stopped: what was running is unknown until it is looked up");
        std::process::exit(INTERRUPTED);
    }
}

/// Waits for interrupts beside the work, until the process ends.
pub(super) fn drain_on_interrupt() {
    let Ok(mut interrupts) = Interrupts::listen() else {
        // Without handlers the process is stopped at once, and the ledger finds out what became of its calls.
        return;
    };
    tokio::spawn(async move {
        interrupts.next().await;
        let text = "interrupted: waiting for the running calls to end within their deadlines; again to stop";
        Output::new().note(text);
        interrupts.stop().await
    });
}
