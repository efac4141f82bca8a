//! What a store keeps, and how it runs a transaction over it.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::store::Pending;
use super::{ActionState, CounterKey, Entry, EntryKey, GrantKey, LaneKey, Owner, StoreError};
use crate::approval::Approval;
use crate::audit::verify::Row;
use crate::audit::{Head, Sealed};
use crate::clock::Millis;
use crate::vault::{Salt, Subject};

pub(crate) use crate::clock::Mark;

pub(super) type Stored<T> = Result<T, StoreError>;

/// What a store keeps, as one transaction sees it.
pub(super) trait Rows {
    fn entry(&self, key: EntryKey) -> Stored<Option<Entry>>;
    /// As [`entry`](Self::entry), but perhaps without its arguments, facts and answer: for whoever moves it on.
    fn outline(&self, key: EntryKey) -> Stored<Option<Entry>> {
        self.entry(key)
    }
    fn put_entry(&mut self, entry: &Entry, change: Change) -> Stored<()>;
    fn remove_entry(&mut self, key: EntryKey) -> Stored<()>;
    /// The outlines of the open entries.
    fn open_entries(&self) -> Stored<Vec<Entry>>;
    /// The outlines of at most `limit` entries with a number below `before`, the highest first. An entry keeps the number that it got
    /// when it was first put.
    fn entries_before(&self, before: u64, limit: usize) -> Stored<Vec<(u64, Entry)>>;
    /// At most `limit` entries in a state with a number below `before`, the highest first.
    fn entries_in(&self, state: ActionState, before: u64, limit: usize) -> Stored<Vec<(u64, Entry)>> {
        look_through(self, before, limit, |entry| entry.state.named() == state)
    }
    /// At most `limit` entries whose keys lie between these two, or are one of them.
    fn entries_between(&self, first: EntryKey, last: EntryKey, limit: usize) -> Stored<Vec<Entry>> {
        let found = look_through(self, u64::MAX, limit, |entry| first <= entry.key && entry.key <= last)?;
        Ok(found.into_iter().map(|(_, entry)| entry).collect())
    }
    /// The entry whose present occurrence this attempt opened first.
    fn entry_opened_by(&self, first: &str) -> Stored<Option<Entry>> {
        let found = look_through(self, u64::MAX, 1, |entry| entry.first.as_str() == first)?;
        Ok(found.into_iter().next().map(|(_, entry)| entry))
    }
    /// The owners of open entries, each with the end of the first lease to end.
    fn open_owners(&self) -> Stored<Vec<(Owner, Millis)>>;
    /// At most `limit` entries, done or failed, that lapse at `until` or before.
    fn lapsed(&self, until: Millis, limit: usize) -> Stored<Vec<EntryKey>>;

    /// The lane; one that was never taken has version 0.
    fn lane(&self, key: LaneKey) -> Stored<Lane>;
    fn put_lane(&mut self, key: LaneKey, lane: Lane) -> Stored<()>;
    /// Removes at most `limit` lanes that nobody holds and that nothing needs from `until` on; returns how many.
    fn forget_lanes(&mut self, until: Millis, limit: usize) -> Stored<usize>;

    /// What is counted in a window.
    fn counted(&self, counter: CounterKey, window: Millis) -> Stored<u64>;
    /// Counts; the count is not needed any more after `needed_until`.
    fn put_counted(&mut self, counter: CounterKey, window: Millis, count: u64, needed_until: Millis) -> Stored<()>;
    /// Removes at most `limit` counts that nothing needs at `until`; returns how many.
    fn forget_counts(&mut self, until: Millis, limit: usize) -> Stored<usize>;

    /// Whether there is a lane that nobody holds or a count, which nothing needs from `now` on, or an approval whose time
    /// ended at `expired` or before.
    fn is_littered(&self, now: Millis, expired: Millis) -> Stored<bool>;

    /// The highest moment that this store has seen.
    fn high_water(&self) -> Stored<Mark>;
    fn put_high_water(&mut self, mark: &Mark) -> Stored<()>;

    /// What the personal data of a subject are sealed with, until it is erased.
    fn salt(&self, subject: Subject) -> Stored<Option<Salt>>;
    fn put_salt(&mut self, subject: Subject, salt: &Salt) -> Stored<()>;
    fn erase_salt(&mut self, subject: Subject) -> Stored<bool>;
    /// How many entries of a subject are there that are not erased.
    fn actions_of(&self, subject: Subject) -> Stored<usize>;
    /// How many of them are open or unknown.
    fn in_doubt_of(&self, subject: Subject) -> Stored<usize>;

    fn approval(&self, id: &str) -> Stored<Option<Approval>>;
    fn put_approval(&mut self, approval: &Approval) -> Stored<()>;
    /// Removes at most `limit` approvals whose time ended at `until` or before; returns how many.
    fn forget_approvals(&mut self, until: Millis, limit: usize) -> Stored<usize>;
    /// All approvals of one call, newest first.
    fn approvals_of_call(&self, call: &GrantKey) -> Stored<Vec<Approval>>;
    /// At most `limit` approvals of one tenant, newest first.
    fn approvals_of_tenant(&self, tenant: &str, limit: usize) -> Stored<Vec<Approval>>;
    /// The number of approvals that wait for somebody and have not expired.
    fn count_pending(&self, tenant: &str, principal: &str, now: Millis) -> Stored<usize>;
    /// As [`count_pending`](Self::count_pending), whoever of the tenant asked.
    fn count_pending_of_tenant(&self, tenant: &str, now: Millis) -> Stored<usize>;

    fn note(&self, kind: NoteKind, key: &str) -> Stored<Option<Note>>;
    /// At most `limit` notes of one kind and scope, those that were written first before the others.
    fn notes(&self, kind: NoteKind, scope: &str, limit: usize) -> Stored<Vec<Note>>;
    /// All notes of one kind, whatever their scope, those that were written first before the others.
    fn notes_of(&self, kind: NoteKind) -> Stored<Vec<Note>>;
    /// Writes a note, in the place of the one with its key.
    fn put_note(&mut self, kind: NoteKind, note: &Note) -> Stored<()>;
    fn remove_note(&mut self, kind: NoteKind, key: &str) -> Stored<()>;
    /// Removes at most `limit` notes whose time ended at `until` or before; returns how many.
    fn forget_notes(&mut self, until: Millis, limit: usize) -> Stored<usize>;

    fn head(&self) -> Stored<Head>;
    fn push_record(&mut self, record: Sealed) -> Stored<()>;
    fn records(&self, after: u64, limit: usize) -> Stored<Vec<Sealed>>;
    fn records_of(&self, reference: &str) -> Stored<Vec<Sealed>>;

    /// Rows of the record from this number on, in order, whatever stands in them.
    fn rows(&self, from: i64, limit: usize) -> Stored<Vec<Row>> {
        let after = u64::try_from(from).unwrap_or_default().saturating_sub(1);
        Ok(self.records(after, limit)?.into_iter().map(Row::Sealed).collect())
    }

    /// What is wrong beneath the rows of the record, where that can be told.
    fn damage(&self) -> Stored<Option<String>> {
        Ok(None)
    }
}

/// At most `limit` entries below `before` that are wanted, the highest first: what a store does that has no index for it.
fn look_through<R: Rows + ?Sized>(
    rows: &R,
    mut before: u64,
    limit: usize,
    wanted: impl Fn(&Entry) -> bool,
) -> Stored<Vec<(u64, Entry)>> {
    let mut found = Vec::new();
    while found.len() < limit {
        let page = rows.entries_before(before, LOOKED_THROUGH)?;
        let Some((last, _)) = page.last() else { break };
        before = *last;
        found.extend(page.into_iter().filter(|(_, entry)| wanted(entry)));
    }
    found.truncate(limit);
    Ok(found)
}

/// A small piece of state beside the actions, with an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// Its name among those of its kind.
    pub(super) key: String,
    /// What it is listed by: a tenant, or nothing.
    pub(super) scope: String,
    /// From this moment on it says nothing, and is forgotten.
    pub(super) until: Millis,
    /// JSON, whose shape the kind tells.
    pub(super) body: String,
}

/// What a note is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum NoteKind {
    /// What a run has done, read and asked for in vain, by the run.
    Run,
    /// What an operator has stopped for a while, by its id, in the scope of its tenant, or of none where it concerns all.
    Stop,
    /// Consent that was given beforehand to a bounded set of calls, by its id, in the scope of its tenant.
    Standing,
    /// An approval of which somebody outside still has to be told, by its id.
    Untold,
    /// Whose calls of which tool a standing grant covers, by its id.
    Covers,
    /// The handle of a run that was begun clean, by the digest of whose it is and what it is.
    Handle,
}

impl Note {
    /// A note that says `body` until then.
    pub(super) fn new(key: impl Into<String>, scope: &str, until: Millis, body: &impl Serialize) -> Stored<Self> {
        let body =
            serde_json::to_string(body).map_err(|_| StoreError::Broken("a note cannot be written as JSON".into()))?;
        Ok(Self { key: key.into(), scope: scope.to_owned(), until, body })
    }

    /// What it says.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Stored<T> {
        serde_json::from_str(&self.body)
            .map_err(|_| StoreError::Broken("a note of the store is not as this program writes it".into()))
    }
}

impl NoteKind {
    /// Its name in tables.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Stop => "stop",
            Self::Standing => "standing",
            Self::Untold => "untold",
            Self::Covers => "covers",
            Self::Handle => "handle",
        }
    }
}

/// What of an entry is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// All of it: it was opened.
    Opened,
    /// Its revision and state; the action is the one that was opened.
    Moved,
}

/// Where the actions that must not overlap stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) version: u64,
    /// INVARIANT (no version twice): until then an entry may still compare itself with the version.
    pub(super) needed_until: Millis,
    /// INVARIANT (one holder): the only entry of the lane that is open, or unknown and keeps it.
    pub(super) holder: Option<EntryKey>,
}

impl Lane {
    /// The version after the next change. INVARIANT (no version twice): one that was forgotten goes on from the time that
    /// it is, which is further than it ever came by counting.
    pub(super) fn next_version(self, now: Millis) -> u64 {
        if self.version == 0 { now.0.clamp(1, 1 << 62) } else { self.version + 1 }
    }
}

/// How a store runs a transaction: all of it and durable before the answer, or nothing of it.
pub(super) trait Transact: Send + Sync + 'static {
    fn owner(&self) -> &Owner;

    /// Those of these whose processes have provably ended. Locks of files are tested, so not on the thread that asks.
    fn dead(&self, owners: Vec<Owner>) -> Pending<'_, Vec<Owner>>;

    fn write<T, F>(&self, job: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&mut dyn Rows) -> Stored<T> + Send + 'static;

    fn read<T, F>(&self, job: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Rows) -> Stored<T> + Send + 'static;

    /// As [`read`](Self::read), for what may be long: no call waits behind it.
    fn list<T, F>(&self, job: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Rows) -> Stored<T> + Send + 'static,
    {
        self.read(job)
    }
}

/// How many entries one page of a list looks through: nobody's list holds up the calls of others.
pub(super) const LOOKED_THROUGH: usize = 1000;
