//! What a server did beside answering.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

/// Counted over all starts of one server.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    noise: AtomicU64,
    strays: AtomicU64,
    refused: AtomicU64,
    untold: AtomicU64,
    restarts: AtomicU64,
}

impl Counts {
    /// A line of stdout that is no message. Tells whether it was the first.
    pub(super) fn noise(&self) -> bool {
        self.noise.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// An answer that no call waits for.
    pub(super) fn stray(&self) {
        self.strays.fetch_add(1, Ordering::Relaxed);
    }

    /// A request of the server, which was refused.
    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A line of stderr that was not passed on.
    pub(super) fn untold(&self) {
        self.untold.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn restarted(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }

    /// All of them, by name.
    pub(crate) fn told(&self) -> Value {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        json!({
            "noise_lines": count(&self.noise),
            "stray_answers": count(&self.strays),
            "refused_requests": count(&self.refused),
            "dropped_stderr_lines": count(&self.untold),
            "restarts": count(&self.restarts),
        })
    }
}
