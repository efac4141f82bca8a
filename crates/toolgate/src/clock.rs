//! Time: the one room that reads the clock on the wall, and the clock that nothing is revived or ended early by.
//!
//! Deadlines run on the monotonic clock of the runtime. What is stored (entries, approvals, records) is dated by the
//! gate's own time, which nobody can set:
//!
//! - While a machine runs, it goes on as the clock does that counts since the machine was started, suspension included.
//!   A clock on the wall that is set changes nothing at once: one that is ahead is caught up with by at most 2 ms a
//!   second, and one that is behind is waited for by going on at the same pace.
//! - The store holds a mark: a moment, and where the clock of the machine stood then. Every process that opens the
//!   store while that machine runs goes on from there, so that all of them tell the same time whatever the clock on the
//!   wall said when each began.
//! - On another start of a machine, time is the later of the mark and the clock on the wall. A clock set back while the
//!   machine was off leaves time at the mark, from where it goes on.
//!
//! What cannot be told: a clock set hours ahead while the machine was off, from hours in which it was off. Time then goes
//! on from there for good. Nothing runs twice for it: who ran before is gone, and attempt numbers are kept a day longer
//! than anything else. But pending approvals, grants and what is kept for a while lapse as they would have then. Where a
//! system does not say which start of which machine it is (any but Linux), the same holds of each start of a process,
//! and a machine whose own clock is stopped (a virtual one that was paused) is as late as it was stopped for until the
//! clock on the wall is caught up with. [`Clock::wall`] tells what that clock says.

mod machine;
#[cfg(test)]
pub(crate) mod rehearsed;
mod steady;
mod water;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use self::machine::Machine;
pub(crate) use self::machine::Ruler;
pub(crate) use self::water::{Mark, Water};

/// A moment, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

/// Where a gate reads the time.
pub trait Clock: Send + Sync + 'static {
    /// The moment that it is now.
    fn now(&self) -> Millis;

    /// What the clock on the wall says, for people: it is not what anything is decided by.
    fn wall(&self) -> Millis {
        self.now()
    }
}

/// Which clock a gate is given.
#[derive(Clone)]
pub(crate) enum Given {
    /// One that is taken at its word.
    Whole(Arc<dyn Clock>),
    /// Those of a machine, of which one can be set.
    Machine(Arc<dyn Ruler>),
}

impl Given {
    /// The clocks of this machine, and one on the wall.
    pub(crate) fn wall(wall: Arc<dyn Clock>) -> Self {
        Self::Machine(Arc::new(Machine::new(wall)))
    }

    /// The time of a store, of which `water` is known.
    pub(crate) fn over(&self, water: Arc<Water>) -> Arc<dyn Clock> {
        match self {
            Self::Whole(clock) => Arc::new(steady::Floored::new(Arc::clone(clock), water)),
            Self::Machine(machine) => Arc::new(steady::Steady::new(Arc::clone(machine), water)),
        }
    }
}

/// The clock of the operating system, which whoever runs the machine may set.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// A clock that stands still until it is moved: for tests of expiry.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl Millis {
    /// This moment and `span` more; the end of time where that does not fit.
    pub fn after(self, span: Duration) -> Self {
        let span = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(span))
    }
}

impl fmt::Display for Millis {
    /// RFC 3339 in UTC with milliseconds, `2026-01-31T09:30:00.000Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, rest) = (self.0 / 86_400_000, self.0 % 86_400_000);
        let (year, month, day) = civil_date(days);
        let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", rest % 1000)
    }
}

/// A text that is no moment of the form that [`Millis`] is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a moment such as 2026-01-31T09:30:00Z")]
pub struct NotAMoment;

impl FromStr for Millis {
    type Err = NotAMoment;

    /// Reads RFC 3339 in UTC, `2026-01-31T09:30:00Z`, with or without milliseconds.
    fn from_str(text: &str) -> Result<Self, NotAMoment> {
        let (whole, millis) = match text.strip_suffix('Z').ok_or(NotAMoment)?.split_once('.') {
            Some((whole, millis)) => (whole, digits(millis, 3)?),
            None => (text.strip_suffix('Z').unwrap_or_default(), 0),
        };
        let (date, time) = whole.split_once('T').ok_or(NotAMoment)?;
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
        if year < 1970 || hour > 23 || minute > 59 || second > 59 {
            return Err(NotAMoment);
        }
        let days = day_number(year, month, day);
        // The date that the number of the day stands for is another one where there is no such day.
        if civil_date(days) != (year, month, day) {
            return Err(NotAMoment);
        }
        Ok(Self((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis))
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the room of the wall clock")]
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl ManualClock {
    /// A clock that shows `start`.
    pub fn at(start: Millis) -> Self {
        Self(AtomicU64::new(start.0))
    }

    /// Moves the clock forward.
    pub fn advance(&self, span: Duration) {
        self.set(self.now().after(span));
    }

    /// Sets the clock, as somebody may who has the right to. A gate goes on from the latest moment that it has seen.
    pub fn set(&self, to: Millis) {
        self.0.store(to.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar (years from March, so
/// that the leap day ends one).
fn civil_date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// The day counted from 1970-01-01 of a date from then on; the inverse of [`civil_date`].
fn day_number(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let from_march = (month + 9) % 12;
    let day_of_year = (153 * from_march + 2) / 5 + day.saturating_sub(1);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).saturating_sub(719_468)
}

/// Three numbers of fixed widths.
fn numbers(text: &str, between: char, widths: [usize; 3]) -> Result<[u64; 3], NotAMoment> {
    let mut parts = text.split(between);
    let mut next = |width| digits(parts.next().ok_or(NotAMoment)?, width);
    let [first, second, third] = widths;
    let numbers = [next(first)?, next(second)?, next(third)?];
    if parts.next().is_some() { Err(NotAMoment) } else { Ok(numbers) }
}

fn digits(text: &str, width: usize) -> Result<u64, NotAMoment> {
    let fits = text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.parse().ok()).flatten().ok_or(NotAMoment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read_again() {
        for moment in [0, 1, 951_782_400_000, 951_868_799_999, 1_709_164_800_000, 1_796_083_199_999, 4_107_542_400_000]
        {
            assert_eq!(Millis(moment).to_string().parse(), Ok(Millis(moment)));
        }
        assert_eq!("2000-02-29T00:00:00Z".parse(), Ok(Millis(951_782_400_000)));
        for wrong in [
            "",
            "Z",
            "2026-01-31",
            "2026-01-31T09:30:00",
            "2026-01-31T09:30:00+00:00",
            "2026-02-30T09:30:00Z",
            "2026-13-01T09:30:00Z",
            "2026-00-10T09:30:00Z",
            "2026-01-00T09:30:00Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T09:60:00Z",
            "2026-01-31T09:30:00.5Z",
            "2026-1-31T09:30:00Z",
            "+026-01-31T09:30:00Z",
            "1969-12-31T23:59:59Z",
            "2026-01-31T09:30:00:00Z",
        ] {
            assert_eq!(wrong.parse::<Millis>(), Err(NotAMoment), "{wrong}");
        }
    }

    #[test]
    fn a_moment_is_written_as_rfc_3339() {
        assert_eq!(Millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Millis(951_782_400_000).to_string(), "2000-02-29T00:00:00.000Z");
        assert_eq!(Millis(1_796_083_199_999).to_string(), "2026-11-30T23:59:59.999Z");
    }

    #[test]
    fn a_manual_clock_moves_only_by_hand() {
        let clock = ManualClock::at(Millis(5));
        assert_eq!(clock.now(), Millis(5));
        clock.advance(Duration::from_secs(1));
        assert_eq!(clock.now(), Millis(1005));
    }
}
