//! The clocks of the machine that this runs on.

use std::sync::Arc;

use super::{Clock, Millis};

/// Where steady time is read from.
pub(crate) trait Ruler: Send + Sync + 'static {
    /// What the clock on the wall says. It may be set.
    fn wall(&self) -> Millis;
    /// How long the machine has been running, suspended or not. Nobody can set it.
    fn uptime(&self) -> Millis;
    /// Which start of which machine this is; empty where that cannot be told.
    fn boot(&self) -> &str;
}

/// This machine.
pub(super) struct Machine {
    wall: Arc<dyn Clock>,
    boot: String,
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    begun: std::time::Instant,
}

impl Machine {
    pub(super) fn new(wall: Arc<dyn Clock>) -> Self {
        Self {
            wall,
            boot: boot(),
            #[cfg(not(any(target_os = "linux", target_os = "android")))]
            begun: std::time::Instant::now(),
        }
    }
}

impl Ruler for Machine {
    fn wall(&self) -> Millis {
        self.wall.now()
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn uptime(&self) -> Millis {
        let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(since.tv_sec).unwrap_or(0);
        Millis(seconds.saturating_mul(1000).saturating_add(u64::try_from(since.tv_nsec).unwrap_or(0) / 1_000_000))
    }

    /// How long this process has been running: no more is known of the machine.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn uptime(&self) -> Millis {
        Millis(0).after(self.begun.elapsed())
    }

    fn boot(&self) -> &str {
        &self.boot
    }
}

/// The start of the machine, and the namespace in which its running time is counted: a container may count another.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn boot() -> String {
    let Ok(boot) = std::fs::read_to_string("/proc/sys/kernel/random/boot_id") else { return String::new() };
    let counted = std::fs::read_link("/proc/self/ns/time");
    let counted = counted.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!("{} {counted}", boot.trim())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn boot() -> String {
    String::new()
}

#[cfg(test)]
mod tests {
    use super::super::SystemClock;
    use super::*;

    #[test]
    fn a_machine_knows_how_long_it_has_been_running_and_since_which_start() {
        let (one, other) = (Machine::new(Arc::new(SystemClock)), Machine::new(Arc::new(SystemClock)));
        let begun = one.uptime();
        std::thread::yield_now();
        assert!(begun <= other.uptime());
        assert_eq!(one.boot(), other.boot());
        #[cfg(target_os = "linux")]
        assert!(one.boot().len() > 30 && begun > Millis(1000), "{} {begun:?}", one.boot());
    }
}
