//! Rows that fail after some of their writes: what a full disk or a crash does in the middle of a transaction.

use crate::approval::Approval;
use crate::audit::{Head, Sealed};
use crate::clock::Millis;
use crate::ledger::rows::{Change, Lane, Mark, Note, NoteKind, Rows, Stored};
use crate::ledger::{CounterKey, Entry, EntryKey, GrantKey, LaneKey, Owner, StoreError};
use crate::vault::{Salt, Subject};

/// How the failure is known.
pub(super) const WORDS: &str = "it failed on purpose";

pub(super) struct Failing<'r> {
    rows: &'r mut dyn Rows,
    /// How many writes still go well.
    left: Option<usize>,
}

impl<'r> Failing<'r> {
    pub(super) fn new(rows: &'r mut dyn Rows, fails_after: Option<usize>) -> Self {
        Self { rows, left: fails_after }
    }

    /// What was written, unless this was the last write: then it stands, and the transaction fails.
    fn written<T>(&mut self, written: Stored<T>) -> Stored<T> {
        match &mut self.left {
            None => written,
            Some(0) => Err(StoreError::Broken(WORDS.into())),
            Some(left) => {
                *left -= 1;
                written
            }
        }
    }
}

/// A write of the rows below, after which it may fail.
macro_rules! write {
    ($self:ident.$method:ident($($argument:expr),*)) => {{
        let written = $self.rows.$method($($argument),*);
        $self.written(written)
    }};
}

impl Rows for Failing<'_> {
    fn entry(&self, key: EntryKey) -> Stored<Option<Entry>> {
        self.rows.entry(key)
    }
    fn put_entry(&mut self, entry: &Entry, change: Change) -> Stored<()> {
        write!(self.put_entry(entry, change))
    }
    fn remove_entry(&mut self, key: EntryKey) -> Stored<()> {
        write!(self.remove_entry(key))
    }
    fn open_entries(&self) -> Stored<Vec<Entry>> {
        self.rows.open_entries()
    }
    fn entries_before(&self, before: u64, limit: usize) -> Stored<Vec<(u64, Entry)>> {
        self.rows.entries_before(before, limit)
    }
    fn open_owners(&self) -> Stored<Vec<(Owner, Millis)>> {
        self.rows.open_owners()
    }
    fn lapsed(&self, until: Millis, limit: usize) -> Stored<Vec<EntryKey>> {
        self.rows.lapsed(until, limit)
    }
    fn lane(&self, key: LaneKey) -> Stored<Lane> {
        self.rows.lane(key)
    }
    fn put_lane(&mut self, key: LaneKey, lane: Lane) -> Stored<()> {
        write!(self.put_lane(key, lane))
    }
    fn forget_lanes(&mut self, until: Millis, limit: usize) -> Stored<usize> {
        write!(self.forget_lanes(until, limit))
    }
    fn counted(&self, counter: CounterKey, window: Millis) -> Stored<u64> {
        self.rows.counted(counter, window)
    }
    fn put_counted(&mut self, counter: CounterKey, window: Millis, count: u64, needed_until: Millis) -> Stored<()> {
        write!(self.put_counted(counter, window, count, needed_until))
    }
    fn forget_counts(&mut self, until: Millis, limit: usize) -> Stored<usize> {
        write!(self.forget_counts(until, limit))
    }
    fn is_littered(&self, now: Millis, expired: Millis) -> Stored<bool> {
        self.rows.is_littered(now, expired)
    }
    fn high_water(&self) -> Stored<Mark> {
        self.rows.high_water()
    }
    fn put_high_water(&mut self, mark: &Mark) -> Stored<()> {
        write!(self.put_high_water(mark))
    }
    fn salt(&self, subject: Subject) -> Stored<Option<Salt>> {
        self.rows.salt(subject)
    }
    fn put_salt(&mut self, subject: Subject, salt: &Salt) -> Stored<()> {
        write!(self.put_salt(subject, salt))
    }
    fn erase_salt(&mut self, subject: Subject) -> Stored<bool> {
        write!(self.erase_salt(subject))
    }
    fn actions_of(&self, subject: Subject) -> Stored<usize> {
        self.rows.actions_of(subject)
    }
    fn in_doubt_of(&self, subject: Subject) -> Stored<usize> {
        self.rows.in_doubt_of(subject)
    }
    fn approval(&self, id: &str) -> Stored<Option<Approval>> {
        self.rows.approval(id)
    }
    fn put_approval(&mut self, approval: &Approval) -> Stored<()> {
        write!(self.put_approval(approval))
    }
    fn forget_approvals(&mut self, until: Millis, limit: usize) -> Stored<usize> {
        write!(self.forget_approvals(until, limit))
    }
    fn approvals_of_call(&self, call: &GrantKey) -> Stored<Vec<Approval>> {
        self.rows.approvals_of_call(call)
    }
    fn approvals_of_tenant(&self, tenant: &str, limit: usize) -> Stored<Vec<Approval>> {
        self.rows.approvals_of_tenant(tenant, limit)
    }
    fn count_pending(&self, tenant: &str, principal: &str, now: Millis) -> Stored<usize> {
        self.rows.count_pending(tenant, principal, now)
    }

    fn count_pending_of_tenant(&self, tenant: &str, now: Millis) -> Stored<usize> {
        self.rows.count_pending_of_tenant(tenant, now)
    }
    fn note(&self, kind: NoteKind, key: &str) -> Stored<Option<Note>> {
        self.rows.note(kind, key)
    }
    fn notes(&self, kind: NoteKind, scope: &str, limit: usize) -> Stored<Vec<Note>> {
        self.rows.notes(kind, scope, limit)
    }
    fn notes_of(&self, kind: NoteKind) -> Stored<Vec<Note>> {
        self.rows.notes_of(kind)
    }
    fn put_note(&mut self, kind: NoteKind, note: &Note) -> Stored<()> {
        write!(self.put_note(kind, note))
    }
    fn remove_note(&mut self, kind: NoteKind, key: &str) -> Stored<()> {
        write!(self.remove_note(kind, key))
    }
    fn forget_notes(&mut self, until: Millis, limit: usize) -> Stored<usize> {
        write!(self.forget_notes(until, limit))
    }
    fn head(&self) -> Stored<Head> {
        self.rows.head()
    }
    fn push_record(&mut self, record: Sealed) -> Stored<()> {
        write!(self.push_record(record))
    }
    fn records(&self, after: u64, limit: usize) -> Stored<Vec<Sealed>> {
        self.rows.records(after, limit)
    }
    fn records_of(&self, reference: &str) -> Stored<Vec<Sealed>> {
        self.rows.records_of(reference)
    }
}
