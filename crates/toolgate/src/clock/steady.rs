//! Time that nobody can set.

use std::sync::{Arc, Mutex, PoisonError};

use super::machine::Ruler;
use super::{Clock, Millis, Water};

/// The time of a store by the clock of the machine. The clock on the wall moves it only slowly.
pub(super) struct Steady {
    ruler: Arc<dyn Ruler>,
    water: Arc<Water>,
    /// What this process goes by.
    anchor: Mutex<Option<Anchor>>,
}

/// A moment that this process told, from which it counts.
#[derive(Clone, Copy)]
struct Anchor {
    at: Millis,
    uptime: Millis,
}

/// The time of a store by a clock that is taken at its word, but never before what the store has seen.
pub(super) struct Floored {
    clock: Arc<dyn Clock>,
    water: Arc<Water>,
}

/// Of how much time one part may be caught up with. INVARIANT (within the grace): a lease outlasts its deadline by five
/// seconds. Over the longest deadline, and as long before it, this comes to less than half of that.
pub(super) const ONE_PART_OF: u64 = 500;

impl Steady {
    pub(super) fn new(ruler: Arc<dyn Ruler>, water: Arc<Water>) -> Self {
        Self { ruler, water, anchor: Mutex::default() }
    }
}

impl Clock for Steady {
    fn now(&self) -> Millis {
        let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        let (wall, uptime, boot) = (self.ruler.wall(), self.ruler.uptime(), self.ruler.boot());
        let seen = self.water.seen_from(boot, uptime);
        let own = anchor.map(|anchor| Millis(anchor.at.0.saturating_add(uptime.0.saturating_sub(anchor.uptime.0))));
        let now = match own {
            Some(own) => seen.now.unwrap_or(seen.at).max(own),
            None => seen.now.unwrap_or(seen.at.max(wall)),
        };
        if own != Some(now) {
            *anchor = Some(Anchor { at: now, uptime });
        }
        // Only a mark in the store moves time beyond its pace, so that all processes move together; and no open lease is
        // older than the mark before it by more than the step between two marks.
        let allowed = seen.now.map_or(0, |_| seen.marked_since / ONE_PART_OF);
        let caught_up = wall.0.saturating_sub(now.0).min(allowed);
        self.water.reach(Millis(now.0.saturating_add(caught_up)), boot, uptime);
        now
    }

    fn wall(&self) -> Millis {
        self.ruler.wall()
    }
}

impl Floored {
    pub(super) fn new(clock: Arc<dyn Clock>, water: Arc<Water>) -> Self {
        Self { clock, water }
    }
}

impl Clock for Floored {
    fn now(&self) -> Millis {
        let now = self.clock.now().max(self.water.latest());
        self.water.reach(now, "", Millis(0));
        now
    }

    fn wall(&self) -> Millis {
        self.clock.wall()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::time::Duration;

    use super::super::rehearsed::{BEGUN, HOUR, Rehearsed};
    use super::super::{ManualClock, Mark};
    use super::*;

    /// A process of a machine, and what it knows of a store.
    struct Process {
        machine: Arc<Rehearsed>,
        water: Arc<Water>,
        clock: Steady,
    }

    impl Process {
        fn begin(machine: Rehearsed, store: &Mark) -> Self {
            let (machine, water) = (Arc::new(machine), Arc::new(Water::default()));
            water.hear(store);
            let clock = Steady::new(Arc::clone(&machine) as _, Arc::clone(&water));
            clock.now();
            Self { machine, water, clock }
        }

        /// What every transaction does.
        fn write(&self, store: &mut Mark) -> Millis {
            let now = self.clock.now();
            self.water.hear(store);
            if let Some(due) = self.water.due().filter(|due| due.passes(store)) {
                *store = due;
                self.water.hear(store);
            }
            now
        }
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_clock_that_is_set_ahead_or_back_moves_nothing_at_once() {
        let mut store = Mark::default();
        let process = Process::begin(Rehearsed::new(), &store);
        assert_eq!(process.write(&mut store), BEGUN);
        process.machine.set_ahead(5 * HOUR);
        assert_eq!(process.write(&mut store), BEGUN);
        process.machine.set_back(9 * HOUR);
        assert_eq!(process.write(&mut store), BEGUN);
        process.machine.pass(HOUR);
        assert_eq!(process.write(&mut store), BEGUN.after(HOUR), "time goes on at its pace while the clock is behind");
        assert_eq!(process.clock.wall(), Millis(BEGUN.0 - 3 * 3_600_000));
    }

    #[test]
    fn a_clock_that_is_ahead_is_caught_up_with_within_the_grace_of_leases() {
        let mut store = Mark::default();
        let process = Process::begin(Rehearsed::new(), &store);
        process.machine.set_ahead(HOUR);
        process.write(&mut store);
        // The longest deadline, with a write each second; then as long a rest, and a write.
        for _ in 0..600 {
            process.machine.pass(seconds(1));
            process.write(&mut store);
        }
        let ahead = process.clock.now().0 - BEGUN.after(seconds(600)).0;
        assert!((1000..=1200).contains(&ahead), "{ahead}");
        process.machine.pass(seconds(600));
        process.write(&mut store);
        let ahead = process.clock.now().0 - BEGUN.after(seconds(1200)).0;
        assert!((2200..=2400).contains(&ahead), "{ahead}");
    }

    #[test]
    fn a_small_difference_is_caught_up_with_and_no_more() {
        let mut store = Mark::default();
        let process = Process::begin(Rehearsed::new(), &store);
        process.machine.set_ahead(seconds(2));
        for _ in 0..3000 {
            process.machine.pass(seconds(1));
            process.write(&mut store);
        }
        assert_eq!(process.clock.now(), process.clock.wall());
    }

    #[test]
    fn processes_of_one_machine_tell_the_same_time_whatever_the_clock_said_when_they_began() {
        let mut store = Mark::default();
        let first = Process::begin(Rehearsed::new(), &store);
        first.write(&mut store);
        let others = [5 * HOUR, Duration::ZERO].map(|ahead| {
            let machine = first.machine.beside();
            machine.set_ahead(ahead);
            machine.set_back(3 * HOUR);
            Process::begin(machine, &store)
        });
        for _ in 0..500 {
            let times = [&first, &others[0], &others[1]].map(|process| {
                process.machine.pass(seconds(3));
                process.water.hear(&store);
                process.write(&mut store)
            });
            assert!(times[2].0 - times[0].0 <= 6, "{times:?}");
            assert!(times[1].0 - times[0].0 <= 6, "{times:?}");
        }
    }

    #[test]
    fn a_process_that_begins_on_the_same_start_goes_on_from_the_mark() {
        let mut store = Mark::default();
        let first = Process::begin(Rehearsed::new(), &store);
        first.write(&mut store);
        for ahead in [Duration::ZERO, 20 * HOUR] {
            let machine = first.machine.beside();
            machine.set_ahead(ahead);
            machine.pass(HOUR);
            machine.set_back(2 * HOUR);
            assert_eq!(Process::begin(machine, &store).clock.now(), BEGUN.after(HOUR));
        }
    }

    #[test]
    fn after_another_start_time_is_the_later_of_the_mark_and_the_wall() {
        let mut store = Mark::default();
        let first = Process::begin(Rehearsed::new(), &store);
        first.write(&mut store);
        let behind = Process::begin(Rehearsed::started_again(Millis(BEGUN.0 - 7_200_000)), &store);
        assert_eq!(behind.write(&mut store), BEGUN);
        behind.machine.pass(HOUR);
        assert_eq!(behind.write(&mut store), BEGUN.after(HOUR), "it goes on from there");
        let rested = Process::begin(Rehearsed::started_again(BEGUN.after(9 * HOUR)), &store);
        assert_eq!(rested.clock.now(), BEGUN.after(9 * HOUR));
    }

    #[test]
    fn a_clock_that_is_given_is_taken_at_its_word_but_for_what_was_seen_before() {
        let (manual, water) = (Arc::new(ManualClock::at(BEGUN)), Arc::new(Water::default()));
        let clock = Floored::new(Arc::clone(&manual) as _, Arc::clone(&water));
        manual.advance(HOUR);
        assert_eq!(clock.now(), BEGUN.after(HOUR));
        manual.set(BEGUN);
        assert_eq!(clock.now(), BEGUN.after(HOUR));
        water.hear(&Mark { at: BEGUN.after(3 * HOUR), ..Mark::default() });
        assert_eq!(clock.now(), BEGUN.after(3 * HOUR), "another process was there");
        assert_eq!(clock.wall(), BEGUN);
    }
}
