//! The ledger in the memory of one process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::ready;
use std::sync::{Mutex, MutexGuard};

use super::rows::{Change, Lane, Mark, Note, NoteKind, Rows, Stored, Transact};
use super::store::Pending;
use super::{CounterKey, Entry, EntryKey, GrantKey, LaneKey, Owner, State, StoreError};
use crate::approval::{Approval, ApprovalState};
use crate::audit::{Head, Sealed};
use crate::clock::Millis;
use crate::vault::{GateKey, Salt, Subject};

/// A ledger that ends with its process.
pub(super) struct MemoryLedger {
    owner: Owner,
    key: GateKey,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    entries: HashMap<EntryKey, Numbered>,
    /// The keys of the entries, by their numbers.
    numbers: BTreeMap<u64, EntryKey>,
    /// The keys of the open entries.
    open: BTreeSet<EntryKey>,
    /// The keys of the done and the failed entries, by the end of their time.
    closed: BTreeSet<(Millis, EntryKey)>,
    lanes: HashMap<LaneKey, Lane>,
    /// The lanes that nobody holds, by the moment from which nothing needs them.
    idle_lanes: BTreeSet<(Millis, LaneKey)>,
    counts: HashMap<(CounterKey, Millis), Count>,
    /// The counts, by the moment after which nothing needs them.
    past_counts: BTreeSet<(Millis, CounterKey, Millis)>,
    high_water: Mark,
    salts: HashMap<Subject, Salt>,
    /// In the order in which they were asked.
    approvals: Vec<Approval>,
    /// In the order in which they were first written.
    notes: Vec<(NoteKind, Note)>,
    /// INVARIANT (no gap): the record `seq` lies at `seq - 1`.
    records: Vec<Sealed>,
}

/// What is counted, and until when that is needed.
#[derive(Clone, Copy)]
struct Count {
    count: u64,
    needed_until: Millis,
}

/// An entry, and the number that it got when it was first put.
struct Numbered {
    number: u64,
    entry: Entry,
}

impl MemoryLedger {
    #[expect(clippy::expect_used, reason = "without random numbers its owner could have no name either")]
    pub(super) fn new() -> Self {
        let key = GateKey::generate().expect("the system gives random numbers");
        Self { owner: Owner(ulid::Ulid::generate().to_string()), key, tables: Mutex::default() }
    }

    pub(super) fn key(&self) -> &GateKey {
        &self.key
    }

    /// A transaction that panicked may have stopped halfway: nothing is read from such tables again.
    fn lock(&self) -> Stored<MutexGuard<'_, Tables>> {
        self.tables.lock().map_err(|_| {
            StoreError::Broken("the store in memory broke in the middle of a transaction; start the gate again".into())
        })
    }
}

impl Transact for MemoryLedger {
    fn owner(&self) -> &Owner {
        &self.owner
    }

    fn dead(&self, _: Vec<Owner>) -> Pending<'_, Vec<Owner>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    fn write<T, F>(&self, job: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&mut dyn Rows) -> Stored<T> + Send + 'static,
    {
        let answer = self.lock().and_then(|mut tables| job(&mut *tables));
        Box::pin(ready(answer))
    }

    fn read<T, F>(&self, job: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Rows) -> Stored<T> + Send + 'static,
    {
        let answer = self.lock().and_then(|tables| job(&*tables));
        Box::pin(ready(answer))
    }
}

impl Tables {
    fn opened(&self) -> impl Iterator<Item = &Entry> {
        self.open.iter().filter_map(|key| self.entries.get(key)).map(|numbered| &numbered.entry)
    }

    fn of_kind(&self, kind: NoteKind) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(move |(of, _)| *of == kind).map(|(_, note)| note)
    }

    fn of_subject(&self, subject: Subject) -> impl Iterator<Item = &Entry> {
        let entries = self.entries.values().map(|numbered| &numbered.entry);
        entries.filter(move |entry| entry.action.subject == Some(subject) && !entry.erased)
    }

    /// Removes an entry; returns the number that it had.
    fn take(&mut self, key: EntryKey) -> Option<u64> {
        let Numbered { number, entry } = self.entries.remove(&key)?;
        self.numbers.remove(&number);
        self.open.remove(&key);
        if let Some(end) = entry.lapses_at() {
            self.closed.remove(&(end, key));
        }
        Some(number)
    }
}

impl Rows for Tables {
    fn entry(&self, key: EntryKey) -> Stored<Option<Entry>> {
        Ok(self.entries.get(&key).map(|numbered| numbered.entry.clone()))
    }

    fn put_entry(&mut self, entry: &Entry, change: Change) -> Stored<()> {
        if let (Change::Opened, Some(subject)) = (change, entry.action.subject)
            && !self.salts.contains_key(&subject)
        {
            // Whoever it is may have been erased while the call was on its way.
            let salt = Salt::generate().map_err(|error| StoreError::Broken(error.to_string()))?;
            self.salts.insert(subject, salt);
        }
        let next = self.numbers.last_key_value().map_or(1, |(last, _)| last + 1);
        let number = self.take(entry.key).unwrap_or(next);
        if let State::Open { .. } = entry.state {
            self.open.insert(entry.key);
        }
        if let Some(end) = entry.lapses_at() {
            self.closed.insert((end, entry.key));
        }
        let mut entry = entry.clone();
        // Whose data it is had it erased while it ran: what came of it is not kept either.
        if entry.erased {
            entry.erase();
        }
        self.numbers.insert(number, entry.key);
        self.entries.insert(entry.key, Numbered { number, entry });
        Ok(())
    }

    fn remove_entry(&mut self, key: EntryKey) -> Stored<()> {
        self.take(key);
        Ok(())
    }

    fn open_entries(&self) -> Stored<Vec<Entry>> {
        Ok(self.opened().cloned().collect())
    }

    fn entries_before(&self, before: u64, limit: usize) -> Stored<Vec<(u64, Entry)>> {
        let keys = self.numbers.range(..before).rev().take(limit);
        let entries = keys.filter_map(|(number, key)| Some((*number, self.entries.get(key)?.entry.clone())));
        Ok(entries.collect())
    }

    fn open_owners(&self) -> Stored<Vec<(Owner, Millis)>> {
        let mut owners: HashMap<&Owner, Millis> = HashMap::new();
        for entry in self.opened() {
            if let State::Open { owner, lease_end, .. } = &entry.state {
                owners.entry(owner).and_modify(|first| *first = (*first).min(*lease_end)).or_insert(*lease_end);
            }
        }
        Ok(owners.into_iter().map(|(owner, first)| (owner.clone(), first)).collect())
    }

    fn lapsed(&self, until: Millis, limit: usize) -> Stored<Vec<EntryKey>> {
        Ok(self.closed.iter().take_while(|(end, _)| *end <= until).take(limit).map(|(_, key)| *key).collect())
    }

    fn lane(&self, key: LaneKey) -> Stored<Lane> {
        Ok(self.lanes.get(&key).copied().unwrap_or_default())
    }

    fn put_lane(&mut self, key: LaneKey, lane: Lane) -> Stored<()> {
        if let Some(before) = self.lanes.insert(key, lane) {
            self.idle_lanes.remove(&(before.needed_until, key));
        }
        if lane.holder.is_none() {
            self.idle_lanes.insert((lane.needed_until, key));
        }
        Ok(())
    }

    fn forget_lanes(&mut self, until: Millis, limit: usize) -> Stored<usize> {
        let idle: Vec<_> = self.idle_lanes.iter().take_while(|(end, _)| *end <= until).take(limit).copied().collect();
        for (end, key) in &idle {
            self.idle_lanes.remove(&(*end, *key));
            self.lanes.remove(key);
        }
        Ok(idle.len())
    }

    fn counted(&self, counter: CounterKey, window: Millis) -> Stored<u64> {
        Ok(self.counts.get(&(counter, window)).map_or(0, |count| count.count))
    }

    fn put_counted(&mut self, counter: CounterKey, window: Millis, count: u64, needed_until: Millis) -> Stored<()> {
        if let Some(before) = self.counts.insert((counter, window), Count { count, needed_until }) {
            self.past_counts.remove(&(before.needed_until, counter, window));
        }
        self.past_counts.insert((needed_until, counter, window));
        Ok(())
    }

    fn forget_counts(&mut self, until: Millis, limit: usize) -> Stored<usize> {
        let past: Vec<_> = self.past_counts.iter().take_while(|(end, ..)| *end <= until).take(limit).copied().collect();
        for (end, counter, window) in &past {
            self.past_counts.remove(&(*end, *counter, *window));
            self.counts.remove(&(*counter, *window));
        }
        Ok(past.len())
    }

    fn is_littered(&self, now: Millis, expired: Millis) -> Stored<bool> {
        let lane = self.idle_lanes.first().is_some_and(|(end, _)| *end <= now);
        let count = self.past_counts.first().is_some_and(|(end, ..)| *end <= now);
        let note = self.notes.iter().any(|(_, note)| note.until <= now);
        Ok(lane || count || note || self.approvals.iter().any(|approval| approval.expires_at <= expired))
    }

    fn high_water(&self) -> Stored<Mark> {
        Ok(self.high_water.clone())
    }

    fn put_high_water(&mut self, mark: &Mark) -> Stored<()> {
        self.high_water = mark.clone();
        Ok(())
    }

    fn salt(&self, subject: Subject) -> Stored<Option<Salt>> {
        Ok(self.salts.get(&subject).cloned())
    }

    fn put_salt(&mut self, subject: Subject, salt: &Salt) -> Stored<()> {
        self.salts.insert(subject, salt.clone());
        Ok(())
    }

    fn erase_salt(&mut self, subject: Subject) -> Stored<bool> {
        let erased = self.salts.remove(&subject).is_some();
        // Nothing is sealed in memory: what belonged to the subject is taken out by hand.
        for numbered in self.entries.values_mut().filter(|numbered| numbered.entry.action.subject == Some(subject)) {
            numbered.entry.erase();
        }
        Ok(erased)
    }

    fn actions_of(&self, subject: Subject) -> Stored<usize> {
        Ok(self.of_subject(subject).count())
    }

    fn in_doubt_of(&self, subject: Subject) -> Stored<usize> {
        let in_doubt = |entry: &&Entry| matches!(entry.state, State::Open { .. } | State::Unknown { .. });
        Ok(self.of_subject(subject).filter(in_doubt).count())
    }

    fn approval(&self, id: &str) -> Stored<Option<Approval>> {
        Ok(self.approvals.iter().find(|approval| approval.id == id).cloned())
    }

    fn put_approval(&mut self, approval: &Approval) -> Stored<()> {
        match self.approvals.iter_mut().find(|standing| standing.id == approval.id) {
            Some(standing) => *standing = approval.clone(),
            None => self.approvals.push(approval.clone()),
        }
        Ok(())
    }

    fn forget_approvals(&mut self, until: Millis, limit: usize) -> Stored<usize> {
        let before = self.approvals.len();
        let mut left = limit;
        self.approvals.retain(|approval| {
            let stays = until < approval.expires_at || left == 0;
            left -= usize::from(!stays);
            stays
        });
        Ok(before - self.approvals.len())
    }

    fn approvals_of_call(&self, call: &GrantKey) -> Stored<Vec<Approval>> {
        // The digest first: it tells nearly all apart, and costs nothing.
        let of_call =
            |approval: &&Approval| approval.call_digest == call.call_digest && GrantKey::of(approval) == *call;
        Ok(self.approvals.iter().rev().filter(of_call).cloned().collect())
    }

    fn approvals_of_tenant(&self, tenant: &str, limit: usize) -> Stored<Vec<Approval>> {
        let of_tenant = self.approvals.iter().rev().filter(|approval| approval.tenant == tenant);
        Ok(of_tenant.take(limit).cloned().collect())
    }

    fn count_pending(&self, tenant: &str, principal: &str, now: Millis) -> Stored<usize> {
        let waits = |approval: &&Approval| {
            approval.state == ApprovalState::Pending
                && now < approval.expires_at
                && approval.tenant == tenant
                && approval.requester.canonical() == principal
        };
        Ok(self.approvals.iter().filter(waits).count())
    }

    fn count_pending_of_tenant(&self, tenant: &str, now: Millis) -> Stored<usize> {
        let waits = |approval: &&Approval| {
            approval.state == ApprovalState::Pending && now < approval.expires_at && approval.tenant == tenant
        };
        Ok(self.approvals.iter().filter(waits).count())
    }

    fn note(&self, kind: NoteKind, key: &str) -> Stored<Option<Note>> {
        Ok(self.of_kind(kind).find(|note| note.key == key).cloned())
    }

    fn notes(&self, kind: NoteKind, scope: &str, limit: usize) -> Stored<Vec<Note>> {
        Ok(self.of_kind(kind).filter(|note| note.scope == scope).take(limit).cloned().collect())
    }

    fn notes_of(&self, kind: NoteKind) -> Stored<Vec<Note>> {
        Ok(self.of_kind(kind).cloned().collect())
    }

    fn put_note(&mut self, kind: NoteKind, note: &Note) -> Stored<()> {
        match self.notes.iter_mut().find(|(of, standing)| *of == kind && standing.key == note.key) {
            Some((_, standing)) => *standing = note.clone(),
            None => self.notes.push((kind, note.clone())),
        }
        Ok(())
    }

    fn remove_note(&mut self, kind: NoteKind, key: &str) -> Stored<()> {
        self.notes.retain(|(of, note)| *of != kind || note.key != key);
        Ok(())
    }

    fn forget_notes(&mut self, until: Millis, limit: usize) -> Stored<usize> {
        let before = self.notes.len();
        let mut left = limit;
        self.notes.retain(|(_, note)| {
            let stays = until < note.until || left == 0;
            left -= usize::from(!stays);
            stays
        });
        Ok(before - self.notes.len())
    }

    fn head(&self) -> Stored<Head> {
        Ok(self.records.last().map_or_else(Head::empty, |last| Head { seq: last.seq, hash: last.hash }))
    }

    fn push_record(&mut self, record: Sealed) -> Stored<()> {
        self.records.push(record);
        Ok(())
    }

    fn records(&self, after: u64, limit: usize) -> Stored<Vec<Sealed>> {
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        Ok(self.records.iter().skip(after).take(limit).cloned().collect())
    }

    fn records_of(&self, reference: &str) -> Stored<Vec<Sealed>> {
        Ok(self.records.iter().filter(|record| record.reference == reference).cloned().collect())
    }
}
