//! The store as the stages see it: each method is one transaction.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use super::memory::MemoryLedger;
use super::rows::{Rows, Transact};
use super::runs::{Marking, RunKey};
#[cfg(feature = "sqlite")]
use super::sqlite::{SqliteLedger, SqliteView};
use super::transact;
use super::{
    Action, ActionState, Claim, CounterKey, Covered, Drawing, Entry, EntryKey, Finding, LaneKey, Listed, Owner, Page,
    Rejected, Verdict, Window,
};
use crate::approval::Approval;
use crate::audit::verify::Row;
use crate::audit::{Head, Record, Sealed};
use crate::call::Ref;
use crate::clock::{Millis, Water};
use crate::json::Digest;
use crate::runs::RunState;
use crate::standing::{Left, StandingGrant};
use crate::stoppage::{Spot, Stoppage};
use crate::vault::GateKey;

/// An opened store: the ledger, the approvals and the record.
#[derive(Clone)]
pub struct Store(Arc<Kind>, Arc<Water>);

/// Why a store did not do what was asked. Nothing of the transaction remains.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It cannot be opened or written; the text says what and where, for the operator.
    #[error("{0}")]
    Broken(String),
    /// Too much is waiting.
    #[error("the store has too much to do")]
    Busy,
}

/// A transaction that is on its way.
pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// What `inform` asks in one consistent read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question {
    pub(crate) action: Option<(EntryKey, LaneKey)>,
    pub(crate) grant: Option<GrantKey>,
    /// Where it is called, if it is to be told what stops a call made there.
    pub(crate) spot: Option<Spot>,
    /// Whose standing grants, where the call may need one.
    pub(crate) covered: Option<Covered>,
    pub(crate) run: Option<RunKey>,
}

/// Whose approval of which call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GrantKey {
    pub(crate) tenant: String,
    /// The canonical principal.
    pub(crate) principal: String,
    pub(crate) call_digest: Digest,
}

/// What the store knows of an action, its lane and its approval.
#[derive(Clone, Debug)]
pub(crate) struct Recall {
    /// The entry, unless it has lapsed.
    pub(crate) entry: Option<Entry>,
    /// The version of the lane that the entry was on, which may be another than the call's.
    pub(crate) own_lane_version: u64,
    pub(crate) stamp: Stamp,
    /// The action that holds the lane, if it is another one.
    pub(crate) holder: Option<Entry>,
    /// The newest approval of this call that is pending or granted and has not expired.
    pub(crate) approval: Option<Approval>,
    /// What stops the call.
    pub(crate) stopped: Option<Stoppage>,
    /// The standing grants that may cover the call, with what is left of each.
    pub(crate) standing: Vec<(StandingGrant, Left)>,
    /// What the run of the call has done and read, where that was asked.
    pub(crate) run: RunState,
}

/// What a decision was based on: it stands while both numbers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The revision of the entry, 0 where there is none.
    pub(crate) revision: u64,
    pub(crate) lane_version: u64,
}

/// What must be durable before anything runs.
#[derive(Debug)]
pub(crate) struct Opening {
    /// The action, where it is a write.
    pub(crate) entry: Option<NewEntry>,
    /// The approval to use up, of the digest of this call's policies.
    pub(crate) grant: Option<(String, Digest)>,
    /// What it takes of limits.
    pub(crate) takings: Vec<Taking>,
    /// What it takes of standing grants.
    pub(crate) drawings: Vec<Drawing>,
    pub(crate) intent: Record,
    /// Where it is called: nothing opens where an operator has stopped it.
    pub(crate) spot: Spot,
}

/// What a call takes of one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taking {
    pub(crate) counter: CounterKey,
    pub(crate) amount: u64,
    /// INVARIANT (never over): what is counted in a window never exceeds it.
    pub(crate) max: u64,
    /// How long a window is; they are aligned to 1970-01-01T00:00:00Z.
    pub(crate) per: Duration,
}

impl Taking {
    /// The window that it counts in now.
    pub(super) fn window(&self, now: Millis) -> Window {
        Window::of(now, self.per)
    }
}

/// An action to open.
#[derive(Debug)]
pub(crate) struct NewEntry {
    pub(crate) key: EntryKey,
    pub(crate) action: Action,
    pub(crate) owner: Owner,
    /// When the lease was dated, by the same clock as its end.
    pub(crate) since: Millis,
    pub(crate) lease_end: Millis,
    pub(crate) reference: Ref,
    pub(crate) anew: bool,
    pub(crate) stamp: Stamp,
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// It may: this attempt, of the occurrence that `first` opened.
    Open { attempt: u32, first: Ref },
    /// What the decision was based on has moved; nothing was written.
    Moved,
    /// A limit has no room for it; nothing was written.
    Limited {
        /// The place of the limit among those asked.
        which: usize,
        /// How much of it is left.
        left: u64,
        /// When its window ends.
        until: Millis,
    },
    /// An operator has stopped it; nothing was written.
    Stopped(Box<Stoppage>),
}

/// How a call ended.
#[derive(Clone, Debug)]
pub(crate) struct Closing {
    pub(crate) key: EntryKey,
    pub(crate) owner: Owner,
    pub(crate) attempt: u32,
    pub(crate) verdict: Verdict,
    /// What it adds to its run. INVARIANT (labelled first): it is durable with the outcome, or the outcome is not shown.
    pub(crate) marking: Option<Marking>,
}

/// The kinds of store.
enum Kind {
    Memory(Box<MemoryLedger>),
    #[cfg(feature = "sqlite")]
    Sqlite(SqliteLedger),
    #[cfg(feature = "sqlite")]
    View(SqliteView),
}

impl Store {
    /// A store in the memory of this process, for tests and for gates whose writes need not survive it.
    pub fn memory() -> Self {
        Self(Arc::new(Kind::Memory(Box::new(MemoryLedger::new()))), Arc::default())
    }

    /// A store in one SQLite file, which is made if it is not there. Several processes may share it; it must not lie on
    /// a network file system. Fails where it cannot be written. The path may be a `file:` URI.
    ///
    /// What calls carry is sealed with the key in the file beside it whose name ends in `.key`, which is made with it.
    /// Keep a copy of that file elsewhere: without it nothing of them can be read.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(path: impl AsRef<std::path::Path>) -> Result<Self, StoreError> {
        Ok(Self(Arc::new(Kind::Sqlite(SqliteLedger::open(path.as_ref(), None)?)), Arc::default()))
    }

    /// As [`sqlite`](Self::sqlite), sealed with this key. Fails where it was made with another.
    #[cfg(feature = "sqlite")]
    pub fn sqlite_with_key(path: impl AsRef<std::path::Path>, key: GateKey) -> Result<Self, StoreError> {
        Ok(Self(Arc::new(Kind::Sqlite(SqliteLedger::open(path.as_ref(), Some(key))?)), Arc::default()))
    }

    /// A look at the store in an SQLite file, which may be a copy on a medium that cannot be written. Whatever would
    /// write to it fails. Where another process is writing, what it has written by then is seen. It needs no key: what
    /// is sealed is not shown.
    #[cfg(feature = "sqlite")]
    pub fn sqlite_to_read(path: impl AsRef<std::path::Path>) -> Result<Self, StoreError> {
        Ok(Self(Arc::new(Kind::View(SqliteView::open(path.as_ref())?)), Arc::default()))
    }

    /// The key of the gate that writes to this store: in memory one that ends with the process, and for a look one that
    /// opens nothing.
    pub fn key(&self) -> &GateKey {
        match &*self.0 {
            Kind::Memory(ledger) => ledger.key(),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(ledger) => ledger.key(),
            #[cfg(feature = "sqlite")]
            Kind::View(view) => view.key(),
        }
    }

    /// A digest of what a tool with secret or personal values was given, for whoever reads: under the gate's key, so that
    /// nobody tries values until it fits. Equal ones stay equal. `None` where the store is only looked at: that needs no
    /// key, and has none.
    pub fn keyed(&self, plain: Digest) -> Option<Digest> {
        let has_key = match &*self.0 {
            Kind::Memory(_) => true,
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(_) => true,
            #[cfg(feature = "sqlite")]
            Kind::View(_) => false,
        };
        has_key.then(|| self.key().seal().digest("digest", &[plain.as_bytes()]))
    }

    /// The identity of this process in the store.
    pub(crate) fn owner(&self) -> &Owner {
        match &*self.0 {
            Kind::Memory(ledger) => ledger.owner(),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(ledger) => ledger.owner(),
            #[cfg(feature = "sqlite")]
            Kind::View(view) => view.owner(),
        }
    }

    /// Whether a copy of what this process erased still lies in the log beside the file. It cannot be cut while somebody
    /// reads an old moment of it.
    pub(crate) fn is_stained(&self) -> bool {
        match &*self.0 {
            Kind::Memory(_) => false,
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(ledger) => ledger.is_stained(),
            #[cfg(feature = "sqlite")]
            Kind::View(_) => false,
        }
    }

    /// One consistent read.
    pub(crate) fn recall(&self, question: Question, now: Millis) -> Pending<'_, Recall> {
        #[cfg(test)]
        crate::counted::count("store read");
        self.read_at(now, move |rows, now| transact::recall(rows, &question, now))
    }

    /// Entry, lane, grant and intent, or nothing.
    pub(crate) fn open(&self, opening: Opening, now: Millis) -> Pending<'_, Opened> {
        self.write_at(now, move |rows, later| match Water::is_behind(now, later) {
            // Its lease would end early. What it was decided on is to be looked at again, by the time that it is now.
            true => Ok(Opened::Moved),
            false => transact::open(rows, opening, later),
        })
    }

    /// What an opening would be told of limits: `Limited` for the first that has no room. Nothing is taken.
    pub(crate) fn foresee(&self, takings: Vec<Taking>, now: Millis) -> Pending<'_, Option<Opened>> {
        self.read_at(now, move |rows, now| transact::foresee(rows, &takings, now))
    }

    /// Outcome, lane and record, or nothing. `false`: the entry is no longer this owner's, and only `said` was written.
    pub(crate) fn close(&self, closing: Closing, outcome: Record, said: Record, now: Millis) -> Pending<'_, bool> {
        self.write_at(now, move |rows, now| {
            transact::close(rows, closing, |closed| if closed { outcome } else { said }, now)
        })
    }

    /// Marks the open entries of dead owners and of ended leases as unknown, with a record each; returns how many.
    /// Lapsed entries are purged, a bounded number at a time. Locks are tested before the write begins.
    pub(crate) fn sweep(&self, record: Box<dyn Fn(&Entry) -> Record + Send>, now: Millis) -> Pending<'_, usize> {
        Box::pin(async move {
            let survey = self.read_at(now, transact::survey).await?;
            let others: Vec<Owner> = survey.owners.into_iter().filter(|owner| owner != self.owner()).collect();
            let dead = if others.is_empty() { others } else { self.dead(others).await? };
            if dead.is_empty() && !survey.overdue {
                return Ok(0);
            }
            self.write_at(now, move |rows, now| transact::sweep(rows, &dead, &*record, now)).await
        })
    }

    /// Whether there is more to sweep.
    pub(crate) fn is_overdue(&self, now: Millis) -> Pending<'_, bool> {
        self.read_at(now, |rows, now| Ok(transact::survey(rows, now)?.overdue))
    }

    /// The newest unknown entries with a number below `before`, at most `limit`.
    pub(crate) fn in_doubt(&self, before: Option<u64>, limit: usize) -> Pending<'_, Vec<(u64, Entry)>> {
        self.list(move |rows| rows.entries_in(ActionState::Unknown, before.unwrap_or(u64::MAX), limit))
    }

    /// The right to find out what became of an unknown entry; `None` where it is not unknown or somebody else has it.
    pub(crate) fn claim(&self, key: EntryKey, claim: Claim, now: Millis) -> Pending<'_, Option<Entry>> {
        self.write_at(now, move |rows, now| transact::claim(rows, key, claim, now))
    }

    /// What the claimant found. `false`: the claim is not the standing one, and nothing was written.
    pub(crate) fn resolve(
        &self,
        key: EntryKey,
        token: String,
        finding: Finding,
        record: Record,
        now: Millis,
    ) -> Pending<'_, bool> {
        self.write_at(now, move |rows, now| transact::resolve(rows, key, token, finding, record, now))
    }

    /// What an operator says of an unknown action, on the record as theirs.
    pub(crate) fn rule(
        &self,
        key: EntryKey,
        finding: Finding,
        record: Box<dyn FnOnce(&Entry) -> Record + Send>,
        now: Millis,
    ) -> Pending<'_, Result<Entry, Rejected>> {
        self.write_at(now, move |rows, now| transact::rule(rows, key, finding, record, now))
    }

    /// The newest actions of a tenant that were first opened before the one with this number, at most `limit`. One page
    /// looks through a bounded part of the ledger: it may be empty and yet not the last.
    pub async fn actions(&self, tenant: &str, before: Option<u64>, limit: usize) -> Result<Page<Listed>, StoreError> {
        let tenant = tenant.to_owned();
        self.list(move |rows| transact::actions(rows, &tenant, before, limit)).await
    }

    /// Whether a transaction can be begun and ended.
    pub(crate) fn probe(&self) -> Pending<'_, ()> {
        self.write(|_| Ok(()))
    }

    /// Chains records, in order.
    pub(crate) fn append(&self, records: impl Into<Arc<[Record]>>) -> Pending<'_, ()> {
        let records = records.into();
        self.write(move |rows| transact::append_all(rows, &records))
    }

    /// Records after `seq`, in order, at most `limit`.
    pub(crate) fn records(&self, after: u64, limit: usize) -> Pending<'_, Vec<Sealed>> {
        self.list(move |rows| rows.records(after, limit))
    }

    /// Rows of the record from this number on, whatever stands in them, at most `limit`.
    pub(crate) fn rows(&self, from: i64, limit: usize) -> Pending<'_, Vec<Row>> {
        self.list(move |rows| rows.rows(from, limit))
    }

    /// What is wrong beneath the rows of the record.
    pub(crate) fn damage(&self) -> Pending<'_, Option<String>> {
        self.list(|rows| rows.damage())
    }

    /// The records of one attempt, in order.
    pub(crate) fn find(&self, reference: String) -> Pending<'_, Vec<Sealed>> {
        self.list(move |rows| rows.records_of(&reference))
    }

    /// The end of the chain.
    pub(crate) fn head(&self) -> Pending<'_, Head> {
        self.read(|rows| rows.head())
    }

    #[cfg(all(test, feature = "sqlite"))]
    /// Lets the file grow no further, as a full disk would.
    pub(crate) async fn fill_disk(&self, full: bool) {
        if let Kind::Sqlite(ledger) = &*self.0 {
            assert_eq!(ledger.fill_disk(full).await, Ok(()));
        }
    }

    /// How far time has come in this store, as it is found now. It waits for the store on this very thread, as opening it
    /// does.
    pub(crate) fn water(&self) -> Result<Arc<Water>, StoreError> {
        let water = Arc::clone(&self.1);
        wait(self.read(move |rows| transact::no_earlier(rows, &water, Millis(0))))?;
        Ok(Arc::clone(&self.1))
    }

    pub(super) fn dead(&self, owners: Vec<Owner>) -> Pending<'_, Vec<Owner>> {
        match &*self.0 {
            Kind::Memory(ledger) => ledger.dead(owners),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(ledger) => ledger.dead(owners),
            #[cfg(feature = "sqlite")]
            Kind::View(view) => view.dead(owners),
        }
    }

    /// A write by the time that it is. INVARIANT (no earlier): a process whose clock is behind decides nothing by it.
    pub(super) fn write_at<T, F>(&self, now: Millis, job: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&mut dyn Rows, Millis) -> Result<T, StoreError> + Send + 'static,
    {
        let water = Arc::clone(&self.1);
        self.write(move |rows| {
            let now = transact::no_earlier(rows, &water, now)?;
            job(rows, now)
        })
    }

    /// As [`write_at`](Self::write_at), of what is only read.
    pub(super) fn read_at<T, F>(&self, now: Millis, job: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Rows, Millis) -> Result<T, StoreError> + Send + 'static,
    {
        let water = Arc::clone(&self.1);
        self.read(move |rows| {
            let now = transact::no_earlier(rows, &water, now)?;
            job(rows, now)
        })
    }

    pub(super) fn write<T, F>(&self, job: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&mut dyn Rows) -> Result<T, StoreError> + Send + 'static,
    {
        let water = Arc::clone(&self.1);
        let job = move |rows: &mut dyn Rows| {
            transact::mark(rows, &water)?;
            job(rows)
        };
        match &*self.0 {
            Kind::Memory(ledger) => ledger.write(job),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(ledger) => ledger.write(job),
            #[cfg(feature = "sqlite")]
            Kind::View(view) => view.write(job),
        }
    }

    pub(super) fn read<T, F>(&self, job: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Rows) -> Result<T, StoreError> + Send + 'static,
    {
        match &*self.0 {
            Kind::Memory(ledger) => ledger.read(job),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(ledger) => ledger.read(job),
            #[cfg(feature = "sqlite")]
            Kind::View(view) => view.read(job),
        }
    }

    pub(super) fn list<T, F>(&self, job: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Rows) -> Result<T, StoreError> + Send + 'static,
    {
        match &*self.0 {
            Kind::Memory(ledger) => ledger.list(job),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(ledger) => ledger.list(job),
            #[cfg(feature = "sqlite")]
            Kind::View(view) => view.list(job),
        }
    }
}

/// Waits for a transaction without a runtime.
fn wait<T>(mut pending: Pending<'_, T>) -> Result<T, StoreError> {
    struct Wakes(Thread);
    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Wakes(thread::current())));
    loop {
        match pending.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => thread::park(),
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
