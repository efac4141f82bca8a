//! Notes in memory, found by what they are asked for: none of them is walked through for another.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::clock::Millis;
use crate::ledger::rows::{Note, NoteKind};

/// The notes, each under a number. INVARIANT (one truth): whatever leads to a note is put and removed with it.
#[derive(Default)]
pub(super) struct Notes {
    /// By their numbers, which is the order in which they were first written.
    notes: BTreeMap<u64, (NoteKind, Note)>,
    kinds: HashMap<NoteKind, Kind>,
    ends: BTreeSet<(Millis, u64)>,
}

/// The numbers of the notes of one kind.
#[derive(Default)]
struct Kind {
    by_key: HashMap<String, u64>,
    by_scope: HashMap<String, BTreeSet<u64>>,
}

impl Notes {
    pub(super) fn get(&self, kind: NoteKind, key: &str) -> Option<&Note> {
        let number = self.kinds.get(&kind)?.by_key.get(key)?;
        self.notes.get(number).map(|(_, note)| note)
    }

    /// Those of one scope, the first written before the others.
    pub(super) fn of_scope(&self, kind: NoteKind, scope: &str) -> impl Iterator<Item = &Note> {
        let numbers = self.kinds.get(&kind).and_then(|of| of.by_scope.get(scope));
        numbers.into_iter().flatten().filter_map(|number| self.notes.get(number)).map(|(_, note)| note)
    }

    /// Those of one kind, the first written before the others.
    pub(super) fn of_kind(&self, kind: NoteKind) -> Vec<&Note> {
        let numbers: BTreeSet<u64> =
            self.kinds.get(&kind).into_iter().flat_map(|of| of.by_key.values().copied()).collect();
        numbers.iter().filter_map(|number| self.notes.get(number)).map(|(_, note)| note).collect()
    }

    /// Writes a note in the place of the one with its key, whose number it then has.
    pub(super) fn put(&mut self, kind: NoteKind, note: &Note) {
        let next = self.notes.last_key_value().map_or(1, |(last, _)| last + 1);
        let number = self.remove(kind, &note.key).unwrap_or(next);
        let of = self.kinds.entry(kind).or_default();
        of.by_key.insert(note.key.clone(), number);
        of.by_scope.entry(note.scope.clone()).or_default().insert(number);
        self.ends.insert((note.until, number));
        self.notes.insert(number, (kind, note.clone()));
    }

    /// Removes a note; returns the number that it had.
    pub(super) fn remove(&mut self, kind: NoteKind, key: &str) -> Option<u64> {
        let of = self.kinds.get_mut(&kind)?;
        let number = of.by_key.remove(key)?;
        let (_, note) = self.notes.remove(&number)?;
        self.ends.remove(&(note.until, number));
        if let Some(numbers) = of.by_scope.get_mut(&note.scope) {
            numbers.remove(&number);
            if numbers.is_empty() {
                of.by_scope.remove(&note.scope);
            }
        }
        Some(number)
    }

    /// Whether the time of one ended at `until` or before.
    pub(super) fn has_ended(&self, until: Millis) -> bool {
        self.ends.first().is_some_and(|(end, _)| *end <= until)
    }

    /// Removes at most `limit` whose time ended at `until` or before; returns how many.
    pub(super) fn forget(&mut self, until: Millis, limit: usize) -> usize {
        let ended: Vec<u64> =
            self.ends.iter().take_while(|(end, _)| *end <= until).take(limit).map(|(_, number)| *number).collect();
        for number in &ended {
            let named = self.notes.get(number).map(|(kind, note)| (*kind, note.key.clone()));
            if let Some((kind, key)) = named {
                self.remove(kind, &key);
            }
        }
        ended.len()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn note(key: &str, scope: &str, until: u64) -> Note {
        Note::new(key, scope, Millis(until), &()).unwrap()
    }

    fn keys<'n>(notes: impl IntoIterator<Item = &'n Note>) -> Vec<&'n str> {
        notes.into_iter().map(|note| note.key.as_str()).collect()
    }

    #[test]
    fn a_note_that_is_written_anew_keeps_its_place_and_leaves_its_old_scope_and_end() {
        let mut notes = Notes::default();
        for (key, scope) in [("b", "acme"), ("a", "acme"), ("c", "globex")] {
            notes.put(NoteKind::Run, &note(key, scope, 10));
        }
        notes.put(NoteKind::Run, &note("b", "globex", 20));
        assert_eq!(keys(notes.of_scope(NoteKind::Run, "acme")), ["a"]);
        assert_eq!(keys(notes.of_scope(NoteKind::Run, "globex")), ["b", "c"]);
        assert_eq!(keys(notes.of_kind(NoteKind::Run)), ["b", "a", "c"]);
        assert_eq!((notes.forget(Millis(10), 1), notes.forget(Millis(10), 9)), (1, 1));
        assert!(!notes.has_ended(Millis(19)) && notes.has_ended(Millis(20)));
        assert_eq!(keys(notes.of_kind(NoteKind::Run)), ["b"]);
        assert!(notes.remove(NoteKind::Run, "b").is_some() && notes.remove(NoteKind::Run, "b").is_none());
        let empty = |of: &Kind| of.by_key.is_empty() && of.by_scope.is_empty();
        assert!(notes.notes.is_empty() && notes.ends.is_empty() && notes.kinds.values().all(empty));
    }

    /// With a list that is walked through, this takes minutes.
    #[test]
    fn a_hundred_thousand_notes_are_written_found_and_forgotten_in_a_moment() {
        const MANY: u64 = 100_000;
        let (begun, mut notes) = (std::time::Instant::now(), Notes::default());
        for n in 0..MANY {
            notes.put(NoteKind::Handle, &note(&n.to_string(), &(n % 1000).to_string(), n));
        }
        for n in 0..MANY {
            assert_eq!(notes.get(NoteKind::Handle, &n.to_string()).unwrap().until, Millis(n));
        }
        assert_eq!(notes.of_scope(NoteKind::Handle, "7").count(), 100);
        assert_eq!(notes.forget(Millis(MANY), usize::MAX), 100_000);
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}
