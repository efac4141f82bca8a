//! Facts that a contract lets be a little old. They are kept in the process, within bounds, and never beyond their age.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::clock::{Clock, Millis};
use crate::contract::Contract;
use crate::json::{Digest, canonical};
use crate::ledger::LaneKey;
use crate::session::Session;

/// How many answers are kept, and how many bytes of them.
const MOST: usize = 1024;
const MOST_BYTES: usize = 16 << 20;

/// A lane, and the version of it that a decision rests on.
pub(crate) type Ground = (LaneKey, u64);

/// Answers that were looked up a short while ago.
#[derive(Default)]
pub(super) struct Kept(Mutex<Answers>);

#[derive(Default)]
struct Answers {
    by_key: HashMap<Key, Answer>,
    /// INVARIANT (counted): the bytes of all that is kept.
    bytes: usize,
}

struct Answer {
    /// What was found; nothing where it is absent.
    found: Option<Value>,
    bytes: usize,
    at: Moment,
    max_age: Duration,
}

/// What an answer is the answer to. INVARIANT (nobody else's): the tool and its contract, whose look it was with all that
/// a tool may tell sessions apart by, its arguments, and the version of the lane under which it was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(Digest);

/// When a look began. Two clocks that never go back: one stands still while the machine sleeps, and the other is moved by a
/// test or an embedder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    steady: Instant,
    gate: Millis,
}

impl Key {
    pub(super) fn of(tool: &Contract, session: &Session, arguments: &Value, ground: Option<Ground>) -> Self {
        let whole = json!([
            tool.name,
            tool.digest.to_string(),
            session.tenant(),
            session.principal().canonical(),
            session.roles(),
            session.run(),
            session.bounds().map(|tags| tags.iter().collect()).collect::<Vec<Vec<&str>>>(),
            arguments,
            ground.map(|(lane, version)| json!([lane, version.to_string()])),
        ]);
        Self(Digest::of(canonical(&whole).as_bytes()))
    }
}

impl Moment {
    pub(super) fn now(clock: &dyn Clock) -> Self {
        Self { steady: Instant::now(), gate: clock.now() }
    }

    /// How long ago it was, by the clock that says more.
    pub(super) fn age(self, now: Self) -> Duration {
        let by_gate = Duration::from_millis(now.gate.0.saturating_sub(self.gate.0));
        now.steady.saturating_duration_since(self.steady).max(by_gate)
    }
}

impl Kept {
    /// The answer under `key`, if it is no older than both it and whoever asks allow: what was found, and since when.
    pub(super) fn get(&self, key: Key, max_age: Duration, now: Moment) -> Option<(Option<Value>, Moment)> {
        let answers = self.answers();
        let answer = answers.by_key.get(&key)?;
        let young = answer.at.age(now) <= max_age.min(answer.max_age);
        young.then(|| (answer.found.clone(), answer.at))
    }

    /// Keeps an answer. One that is too large by itself is not kept.
    pub(super) fn put(&self, key: Key, found: Option<Value>, max_age: Duration, at: Moment, now: Moment) {
        let bytes = found.as_ref().map_or(0, |found| canonical(found).len());
        if bytes > MOST_BYTES / 16 {
            return;
        }
        let mut answers = self.answers();
        answers.remove(key);
        if answers.by_key.len() >= MOST || answers.bytes + bytes > MOST_BYTES {
            answers.make_room(now, bytes);
        }
        answers.bytes += bytes;
        answers.by_key.insert(key, Answer { found, bytes, at, max_age });
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn size(&self) -> (usize, usize) {
        let answers = self.answers();
        (answers.by_key.len(), answers.bytes)
    }
}

impl Answers {
    fn remove(&mut self, key: Key) {
        if let Some(gone) = self.by_key.remove(&key) {
            self.bytes -= gone.bytes;
        }
    }

    /// Forgets what is too old, and then the oldest, until there is room for one more of this size and a little besides:
    /// looking through all of them is not for every answer.
    fn make_room(&mut self, now: Moment, bytes: usize) {
        let mut ages: Vec<(Duration, Key, bool)> = Vec::with_capacity(self.by_key.len());
        for (key, answer) in &self.by_key {
            let age = answer.at.age(now);
            ages.push((age, *key, age > answer.max_age));
        }
        ages.sort_unstable_by_key(|(age, _, too_old)| std::cmp::Reverse((*too_old, *age)));
        for (_, key, too_old) in ages {
            let has_room = self.by_key.len() < MOST - MOST / 8 && self.bytes + bytes <= MOST_BYTES - MOST_BYTES / 8;
            if too_old || !has_room {
                self.remove(key);
            }
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::session::{Principal, Tags};

    const MINUTE: Duration = Duration::from_secs(60);

    fn key(n: usize) -> Key {
        Key(Digest::of(n.to_string().as_bytes()))
    }

    #[test]
    fn an_answer_is_given_up_to_its_age_by_whichever_clock_says_more() {
        let clock = ManualClock::at(Millis(1_000_000));
        let kept = Kept::default();
        let at = Moment::now(&clock);
        kept.put(key(1), Some(json!(7)), MINUTE, at, at);
        assert_eq!(kept.get(key(1), MINUTE, Moment::now(&clock)).unwrap().0, Some(json!(7)));
        clock.advance(MINUTE - Duration::from_secs(1));
        assert!(kept.get(key(1), MINUTE, Moment::now(&clock)).is_some());
        assert!(kept.get(key(1), MINUTE / 2, Moment::now(&clock)).is_none(), "whoever asks wants it younger");
        clock.advance(Duration::from_secs(2));
        assert!(kept.get(key(1), 2 * MINUTE, Moment::now(&clock)).is_none());
        // The machine's own clock went on while the gate's stood still.
        let later = Moment { steady: at.steady + 2 * MINUTE, gate: at.gate };
        assert!(kept.get(key(1), MINUTE, later).is_none());
        let earlier = Moment { steady: at.steady, gate: Millis(0) };
        assert_eq!(at.age(earlier), Duration::ZERO, "no clock that is set back makes it younger than new");
    }

    #[test]
    fn neither_many_answers_nor_large_ones_grow_without_bound() {
        let clock = ManualClock::at(Millis(1_000_000));
        let kept = Kept::default();
        for n in 0..3 * MOST {
            let now = Moment::now(&clock);
            kept.put(key(n), Some(json!(n)), MINUTE, now, now);
            clock.advance(Duration::from_millis(1));
        }
        assert!(kept.size().0 <= MOST, "{:?}", kept.size());
        let now = Moment::now(&clock);
        assert!(kept.get(key(3 * MOST - 1), MINUTE, now).is_some(), "the youngest stay");
        assert!(kept.get(key(0), MINUTE, now).is_none());

        let large = json!("x".repeat(MOST_BYTES / 20));
        for n in 0..100 {
            kept.put(key(n), Some(large.clone()), MINUTE, now, now);
        }
        assert!(kept.size().1 <= MOST_BYTES, "{:?}", kept.size());
        kept.put(key(1000), Some(json!("x".repeat(MOST_BYTES / 10))), MINUTE, now, now);
        assert!(kept.get(key(1000), MINUTE, now).is_none(), "one that is too large is not kept");
    }

    /// A tool is handed the whole session, and may answer each of them differently.
    #[test]
    fn an_answer_is_kept_for_the_run_and_the_tags_that_it_was_looked_up_in() {
        let keys = json!({"description": "Looks.", "effect": "read", "input": {"properties": {}}});
        let tool = Contract::parse("look", &keys).unwrap();
        let alice = || Session::new(Principal::new("local", "alice"), "acme");
        let tagged = |names: &[&str]| {
            let tags = names.iter().map(|name| Tags::of(*name).unwrap()).reduce(Tags::or).unwrap();
            alice().only_tags(tags)
        };
        let sessions = [
            alice(),
            alice().in_run("ticket_7"),
            tagged(&["orders"]),
            tagged(&["orders", "refunds"]),
            tagged(&["orders"]).only_tags(Tags::of("refunds").unwrap()),
        ];
        let of = |session: &Session| Key::of(&tool, session, &json!({"id": 1}), None);
        let keys: std::collections::HashSet<Key> = sessions.iter().map(of).collect();
        assert_eq!(keys.len(), sessions.len());
        assert_eq!(of(&alice().in_run("ticket_7")), of(&sessions[1]));
    }

    #[test]
    fn what_is_too_old_goes_first() {
        let clock = ManualClock::at(Millis(1_000_000));
        let kept = Kept::default();
        let then = Moment::now(&clock);
        for n in 0..MOST {
            kept.put(key(n), None, if n % 2 == 0 { MINUTE } else { 10 * MINUTE }, then, then);
        }
        clock.advance(2 * MINUTE);
        let now = Moment::now(&clock);
        kept.put(key(MOST), None, MINUTE, now, now);
        assert!((1..MOST).filter(|n| n % 2 == 1).all(|n| kept.get(key(n), 10 * MINUTE, now).is_some()));
        assert_eq!(kept.size().0, MOST / 2 + 1);
    }
}
