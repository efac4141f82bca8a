//! What the attempts of a call prove of its effect, and whether it may be sent again. Pure: no clock, no store, no waiting.

use std::time::Duration;

use crate::backend::{Answer, Failure, FailureKind};
use crate::call::Ref;
use crate::contract::{Contract, Retry};
use crate::json::Digest;
use crate::refusal::Effect;

/// An attempt that failed.
pub(super) struct Failed<'a> {
    pub(super) failure: &'a Failure,
    /// What it proves by itself.
    pub(super) effect: Effect,
    /// Its number, from 1.
    pub(super) attempt: u32,
    pub(super) write: bool,
    /// Whether the backend honours the key of the action.
    pub(super) keyed: bool,
}

/// Why a call that failed is not sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// There were as many attempts as there may be.
    Attempts,
    /// It is no failure that a repeat would mend, or none that the contract lists.
    Signal,
    /// It happened, or may have, and the backend honours no key.
    Effect,
    /// The caller has gone.
    Cancelled,
    /// The deadline is nearer than the wait.
    Deadline,
    /// The lease of the action is over: somebody else may be finding out what became of it.
    Lease,
    /// What it goes to has failed too often to be asked once more.
    Budget,
}

/// The first wait before a further attempt; it doubles each time.
const BACKOFF: Duration = Duration::from_millis(100);
const LONGEST_BACKOFF: Duration = Duration::from_secs(5);

/// What one attempt proves of the effect: what the contract says of its failure, else what the backend knows.
pub(crate) fn proved(contract: &Contract, answer: &Answer) -> Effect {
    if !contract.is_write() {
        return Effect::None;
    }
    let failure = answer.outcome.as_ref().err();
    let mapped = failure.and_then(|failure| contract.errors.get(&failure.signal)?.effect);
    mapped.unwrap_or(answer.effect)
}

/// What is known of a write once an attempt has ended with `last`. INVARIANT (doubt stays): where an earlier attempt may
/// have happened, one that provably did not leaves that as it was; only what says that it is done says more.
pub(crate) fn known(in_doubt: bool, last: Effect) -> Effect {
    match last {
        Effect::None if in_doubt => Effect::Unknown,
        Effect::None | Effect::Done | Effect::Unknown => last,
    }
}

/// Whether a call may be sent again. INVARIANT (provably safe): a read, a write that provably did not happen, or one whose
/// backend makes two of one key into one.
pub(super) fn may_go_again(failed: &Failed<'_>, retry: &Retry) -> Result<(), Ended> {
    if failed.attempt >= retry.attempts {
        return Err(Ended::Attempts);
    }
    let passes = match failed.failure.kind {
        FailureKind::Unavailable | FailureKind::Reported | FailureKind::TimedOut => true,
        FailureKind::Cancelled | FailureKind::TooLarge | FailureKind::Off | FailureKind::Broken => false,
    };
    if !passes || !retry.on.contains(&failed.failure.signal) {
        return Err(Ended::Signal);
    }
    match failed.effect {
        Effect::None => Ok(()),
        Effect::Unknown if !failed.write || failed.keyed => Ok(()),
        Effect::Unknown | Effect::Done => Err(Ended::Effect),
    }
}

/// How long to wait after an attempt: as long as the backend says, else a while that doubles with each attempt, with full
/// jitter, so that many calls that failed together do not come back together.
pub(super) fn wait(failure: &Failure, attempt: u32, reference: &Ref) -> Duration {
    let longest = BACKOFF.saturating_mul(1 << attempt.saturating_sub(1).min(10)).min(LONGEST_BACKOFF);
    failure.retry_after.unwrap_or_else(|| longest.mul_f64(share(reference, attempt)))
}

/// A number from 0 up to 1 that differs from call to call and from attempt to attempt.
fn share(reference: &Ref, attempt: u32) -> f64 {
    let seed = Digest::of(format!("{reference}/{attempt}").as_bytes());
    let drawn = seed.as_bytes().first_chunk().map_or(0, |bytes: &[u8; 4]| u32::from_be_bytes(*bytes));
    f64::from(drawn) / (f64::from(u32::MAX) + 1.0)
}

impl Ended {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Attempts => "attempts",
            Self::Signal => "signal",
            Self::Effect => "effect",
            Self::Cancelled => "cancelled",
            Self::Deadline => "deadline",
            Self::Lease => "lease",
            Self::Budget => "budget",
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_known_of_a_write_by_what_was_known_before() {
        use Effect::{Done, None, Unknown};
        let table = [
            // an earlier attempt is in doubt | the last one proves | known
            (false, None, None),
            (false, Unknown, Unknown),
            (false, Done, Done),
            (true, None, Unknown),
            (true, Unknown, Unknown),
            (true, Done, Done),
        ];
        for (in_doubt, last, expected) in table {
            assert_eq!(known(in_doubt, last), expected, "{in_doubt} {last}");
        }
    }

    fn failed(failure: &Failure, effect: Effect, attempt: u32, write: bool, keyed: bool) -> Failed<'_> {
        Failed { failure, effect, attempt, write, keyed }
    }

    #[test]
    fn a_call_goes_again_only_where_that_is_provably_safe() {
        use Effect::{Done, None, Unknown};
        let retry = Retry { attempts: 3, on: vec!["503".into(), "lost".into()] };
        let of = |kind, signal: &str| Failure::new(kind, signal, "");
        let busy = of(FailureKind::Unavailable, "503");
        let lost = of(FailureKind::Reported, "lost");
        let other = of(FailureKind::Reported, "constraint");
        let table = [
            // failure | effect | attempt | write | keyed | outcome
            (&busy, None, 1, false, false, Ok(())),
            (&busy, None, 2, true, false, Ok(())),
            (&busy, None, 3, true, false, Err(Ended::Attempts)),
            (&lost, Unknown, 1, false, false, Ok(())),
            (&lost, Unknown, 1, true, false, Err(Ended::Effect)),
            (&lost, Unknown, 1, true, true, Ok(())),
            (&lost, Done, 1, true, true, Err(Ended::Effect)),
            (&other, None, 1, true, true, Err(Ended::Signal)),
        ];
        for (failure, effect, attempt, write, keyed, expected) in table {
            let said = may_go_again(&failed(failure, effect, attempt, write, keyed), &retry);
            assert_eq!(said, expected, "{} {effect} {attempt} {write} {keyed}", failure.signal);
        }
        for kind in [FailureKind::Cancelled, FailureKind::TooLarge, FailureKind::Off, FailureKind::Broken] {
            let failure = of(kind, "503");
            let said = may_go_again(&failed(&failure, None, 1, false, false), &retry);
            assert_eq!(said, Err(Ended::Signal), "{kind:?} is not mended by a repeat");
        }
    }

    #[test]
    fn the_wait_is_any_part_of_the_backoff_and_the_backend_has_the_last_word() {
        let failure = Failure::new(FailureKind::Unavailable, "503", "");
        for (attempt, longest) in [(1, 100), (2, 200), (5, 1600), (7, 5000), (40, 5000)] {
            let waits: Vec<u128> = (0..2000).map(|_| wait(&failure, attempt, &Ref::fresh()).as_micros() / 10).collect();
            let (low, high) = (*waits.iter().min().unwrap(), *waits.iter().max().unwrap());
            assert!(low < longest * 2 && high > longest * 98 && high < longest * 100, "{attempt}: {low} to {high}");
            let mean = waits.iter().sum::<u128>() / 2000;
            assert!((longest * 45..longest * 55).contains(&mean), "{attempt}: {mean}");
            let different: BTreeSet<u128> = waits.into_iter().collect();
            assert!(different.len() > 1000, "{attempt}: {} of 2000", different.len());
        }
        let asked = Failure { retry_after: Some(Duration::from_secs(7)), ..failure };
        assert_eq!(wait(&asked, 1, &Ref::fresh()), Duration::from_secs(7));
    }

    /// One attempt as the world sees it, and what is said of it.
    fn attempts() -> impl Strategy<Value = Vec<(bool, Effect)>> {
        let attempt = (any::<bool>(), any::<bool>()).prop_map(|(happened, heard)| {
            let said = match (happened, heard) {
                (_, false) => Effect::Unknown,
                (true, true) => Effect::Done,
                (false, true) => Effect::None,
            };
            (happened, said)
        });
        proptest::collection::vec(attempt, 1..10)
    }

    proptest! {
        #[test]
        fn what_is_known_is_true_whatever_the_attempts_were(attempts in attempts()) {
            let mut in_doubt = false;
            let mut happened = false;
            for (happens, said) in attempts {
                happened |= happens;
                let known = known(in_doubt, said);
                match known {
                    Effect::None => prop_assert!(!happened),
                    Effect::Done => prop_assert!(happened),
                    Effect::Unknown => {}
                }
                if said == Effect::Done {
                    prop_assert_eq!(known, Effect::Done);
                    break;
                }
                in_doubt |= said == Effect::Unknown;
            }
        }
    }
}
