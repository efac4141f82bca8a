//! A machine whose clocks a test moves.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Millis, Ruler};

/// A machine that was started an hour before the test begins.
pub(crate) struct Rehearsed {
    boot: String,
    clocks: Mutex<Clocks>,
}

struct Clocks {
    wall: Millis,
    uptime: Millis,
}

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
/// The moment at which a test begins.
pub(crate) const BEGUN: Millis = Millis(1_796_000_000_000);

impl Rehearsed {
    pub(crate) fn new() -> Self {
        Self::started("first", BEGUN, Millis(0).after(HOUR))
    }

    /// A machine that is started again, with what its clock on the wall says then.
    pub(crate) fn started_again(wall: Millis) -> Self {
        static STARTS: AtomicU64 = AtomicU64::new(1);
        let boot = format!("again {}", STARTS.fetch_add(1, Ordering::Relaxed));
        Self::started(&boot, wall, Millis(0).after(Duration::from_secs(10)))
    }

    /// Another process of this machine, whose clock on the wall can be set by itself.
    pub(crate) fn beside(&self) -> Self {
        let (wall, uptime) = (self.wall(), self.uptime());
        Self { boot: self.boot.clone(), clocks: Mutex::new(Clocks { wall, uptime }) }
    }

    fn started(boot: &str, wall: Millis, uptime: Millis) -> Self {
        Self { boot: boot.into(), clocks: Mutex::new(Clocks { wall, uptime }) }
    }

    /// Time passes.
    pub(crate) fn pass(&self, span: Duration) {
        let mut clocks = self.clocks.lock().unwrap();
        *clocks = Clocks { wall: clocks.wall.after(span), uptime: clocks.uptime.after(span) };
    }

    /// Somebody sets the clock on the wall.
    pub(crate) fn set_ahead(&self, span: Duration) {
        let mut clocks = self.clocks.lock().unwrap();
        clocks.wall = clocks.wall.after(span);
    }

    /// Somebody sets the clock on the wall.
    pub(crate) fn set_back(&self, span: Duration) {
        let mut clocks = self.clocks.lock().unwrap();
        clocks.wall = Millis(clocks.wall.0 - Millis(0).after(span).0);
    }
}

impl Ruler for Rehearsed {
    fn wall(&self) -> Millis {
        self.clocks.lock().unwrap().wall
    }

    fn uptime(&self) -> Millis {
        self.clocks.lock().unwrap().uptime
    }

    fn boot(&self) -> &str {
        &self.boot
    }
}
