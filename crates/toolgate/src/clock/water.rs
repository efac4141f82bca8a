//! How far time has come, as a store keeps it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Millis;

/// A moment, and where the clock that counts since the machine was started stood then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: Millis,
    /// Which start of which machine; empty where that cannot be told.
    pub(crate) boot: String,
    /// How long the machine had been running.
    pub(crate) uptime: Millis,
}

/// How far time has come in a store, as far as this process knows.
#[derive(Debug, Default)]
pub(crate) struct Water(Mutex<Level>);

#[derive(Debug, Default)]
struct Level {
    /// The latest mark that the store was seen to hold.
    stored: Mark,
    /// How far time has come since, and what the store should hold.
    reached: Mark,
}

/// What a store says of the time at some moment of a start of a machine.
pub(super) struct Seen {
    /// The moment of the mark.
    pub(super) at: Millis,
    /// The moment that it is now, where the mark is of that start.
    pub(super) now: Option<Millis>,
    /// How long ago the mark was made, in milliseconds, where it is of that start.
    pub(super) marked_since: u64,
}

/// A mark is not written more often than this: it must not cost anything.
const STEP: Duration = Duration::from_secs(1);

impl Mark {
    /// The moment that it is at `uptime` of the same start of the same machine.
    pub(super) fn carried_to(&self, boot: &str, uptime: Millis) -> Option<Millis> {
        let passed = uptime.0.checked_sub(self.uptime.0)?;
        (!boot.is_empty() && self.boot == boot).then(|| Millis(self.at.0.saturating_add(passed)))
    }

    /// Whether time that stands at this mark is later than time that stands at the other one. Of two marks of one start
    /// the later one may have been made by a process that had not heard of the other.
    pub(crate) fn passes(&self, other: &Self) -> bool {
        self.at > other.at && other.carried_to(&self.boot, self.uptime).is_none_or(|carried| carried <= self.at)
    }
}

impl Water {
    /// Takes in what the store holds. Two reads may come in either order.
    pub(crate) fn hear(&self, stored: &Mark) {
        let mut level = self.level();
        if stored.at > level.stored.at {
            level.stored = stored.clone();
        }
    }

    /// What the store should be told of, if it is worth writing.
    pub(crate) fn due(&self) -> Option<Mark> {
        let level = self.level();
        (level.reached.at >= level.stored.at.after(STEP)).then(|| level.reached.clone())
    }

    /// Whether what was decided at `now` was decided by a clock that is behind.
    pub(crate) fn is_behind(now: Millis, later: Millis) -> bool {
        now.after(STEP) < later
    }

    /// What is known at `uptime` of a start of a machine.
    pub(super) fn seen_from(&self, boot: &str, uptime: Millis) -> Seen {
        let level = self.level();
        let marked_since = uptime.0.saturating_sub(level.stored.uptime.0);
        Seen { at: level.stored.at, now: level.stored.carried_to(boot, uptime), marked_since }
    }

    /// The latest moment that was told, or seen in the store.
    pub(super) fn latest(&self) -> Millis {
        let level = self.level();
        level.stored.at.max(level.reached.at)
    }

    /// Time has come to this. It is told often, so nothing is allocated for it.
    pub(super) fn reach(&self, at: Millis, boot: &str, uptime: Millis) {
        let reached = &mut self.level().reached;
        if at <= reached.at {
            return;
        }
        (reached.at, reached.uptime) = (at, uptime);
        if reached.boot != boot {
            boot.clone_into(&mut reached.boot);
        }
    }

    fn level(&self) -> MutexGuard<'_, Level> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
