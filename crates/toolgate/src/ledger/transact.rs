//! The transactions of the ledger, written once over the rows of any store.
//!
//! A kind of store says how it keeps [`Rows`] and how a transaction over them runs ([`Transact`]). Every function here
//! checks before it writes, so that a transaction that is turned down has written nothing.

use std::time::Duration;

use super::store::Pending;
use super::{
    ActionState, Claim, Closing, Command, Consequence, CounterKey, Entry, EntryKey, Finding, GrantKey, Hold, LaneKey,
    Listed, NewEntry, Opened, Opening, Owner, Page, Proposed, Question, Recall, Rejected, Stamp, State, StoreError,
    Taking, step,
};
use crate::approval::{Approval, ApprovalState, Decision, NotDecided};
use crate::audit::verify::Row;
use crate::audit::{Head, Record, Sealed};
use crate::clock::{Millis, Water};
use crate::json::Digest;
use crate::session::Session;
use crate::vault::{Salt, Subject};

/// How long a lapsed entry is kept. INVARIANT (fence): its attempt number goes on when the action comes again, and who
/// ran it first is long gone when the number is forgotten.
pub(super) const GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a count outlasts its window. INVARIANT (never over): no process of the store is so far behind that it still
/// takes in a window whose count is forgotten.
const AFTER_WINDOW: Duration = Duration::from_secs(60 * 60);

/// How long an approval is kept that can be neither decided nor used any more, for whoever looks back at it. The record
/// keeps what was decided.
const APPROVALS_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How many entries, lanes, counts and approvals one sweep removes of each: no call waits long behind it.
const PURGED_AT_ONCE: usize = 256;

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

    fn approval(&self, id: &str) -> Stored<Option<Approval>>;
    fn put_approval(&mut self, approval: &Approval) -> Stored<()>;
    /// Removes at most `limit` approvals whose time ended at `until` or before; returns how many.
    fn forget_approvals(&mut self, until: Millis, limit: usize) -> Stored<usize>;
    /// All approvals of one call, newest first.
    fn approvals_of_call(&self, call: &GrantKey) -> Stored<Vec<Approval>>;
    /// All approvals of one tenant, newest first.
    fn approvals_of_tenant(&self, tenant: &str) -> Stored<Vec<Approval>>;
    /// The number of approvals that wait for somebody and have not expired.
    fn count_pending(&self, tenant: &str, principal: &str, now: Millis) -> Stored<usize>;

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
    fn next_version(self, now: Millis) -> u64 {
        if self.version == 0 { now.0.clamp(1, 1 << 62) } else { self.version + 1 }
    }
}

/// How a store runs a transaction: all of it and durable before the answer, or nothing of it.
pub(super) trait Transact: Send + Sync + 'static {
    fn owner(&self) -> &Owner;

    /// Whether the process that opened entries under this name has provably ended.
    fn is_dead(&self, owner: &Owner) -> bool;

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

/// Keeps how far time has come: it must not be forgotten with the process.
pub(super) fn mark(rows: &mut dyn Rows, water: &Water) -> Stored<()> {
    let Some(reached) = water.due() else { return Ok(()) };
    let stored = rows.high_water()?;
    water.hear(&stored);
    if reached.passes(&stored) {
        rows.put_high_water(&reached)?;
        water.hear(&reached);
    }
    Ok(())
}

/// The later of `now` and the moment that the store has seen: a process whose clock is behind dates nothing by it.
pub(super) fn no_earlier(rows: &dyn Rows, water: &Water, now: Millis) -> Stored<Millis> {
    let stored = rows.high_water()?;
    water.hear(&stored);
    Ok(now.max(stored.at))
}

pub(super) fn recall(rows: &dyn Rows, question: &Question, now: Millis) -> Stored<Recall> {
    let approval = match &question.grant {
        Some(call) => newest(rows.approvals_of_call(call)?, now),
        None => None,
    };
    let Some((key, lane)) = question.action else {
        let stamp = Stamp { revision: 0, lane_version: 0 };
        return Ok(Recall { entry: None, own_lane_version: 0, stamp, holder: None, approval });
    };
    let entry = rows.entry(key)?.filter(|entry| !entry.lapsed(now));
    let own_lane_version = match &entry {
        Some(entry) => rows.lane(entry.action.lane)?.version,
        None => 0,
    };
    let lane = rows.lane(lane)?;
    let holder = match lane.holder {
        Some(holder) if holder != key => rows.entry(holder)?,
        Some(_) | None => None,
    };
    let revision = entry.as_ref().map_or(0, |entry| entry.revision);
    let stamp = Stamp { revision, lane_version: lane.version };
    Ok(Recall { entry, own_lane_version, stamp, holder, approval })
}

/// Of approvals that come newest first, the one to go by: a granted one before a pending one.
fn newest(approvals: Vec<Approval>, now: Millis) -> Option<Approval> {
    let mut pending = None;
    for approval in approvals.into_iter().filter(|approval| now < approval.expires_at) {
        match approval.state {
            ApprovalState::Granted => return Some(approval),
            ApprovalState::Pending => pending = pending.or(Some(approval)),
            ApprovalState::Denied | ApprovalState::Used { .. } => {}
        }
    }
    pending
}

pub(super) fn open(rows: &mut dyn Rows, opening: Opening, now: Millis) -> Stored<Opened> {
    let Opening { entry, grant, takings, intent } = opening;
    let opened = match entry {
        None => None,
        // A limit refuses only what may still run: the same call may have been done meanwhile, and then it is replayed.
        Some(new) => match open_entry(rows, new, now)? {
            Some(opened) => Some(opened),
            None => return Ok(Opened::Moved),
        },
    };
    let holds = match take(rows, &takings, now)? {
        Ok(holds) => holds,
        Err(limited) => return Ok(limited),
    };
    let spent = match grant {
        None => None,
        Some((id, slice)) => match usable(rows, &id, slice, now)? {
            Some(approval) => {
                Some(Approval { state: ApprovalState::Used { by: intent.reference().clone() }, ..approval })
            }
            None => return Ok(Opened::Moved),
        },
    };
    let (attempt, first) = match opened {
        None => {
            if let Some(spent) = &spent {
                rows.put_approval(spent)?;
            }
            count(rows, &holds, Counting::Take)?;
            (1, intent.reference().clone())
        }
        Some((mut entry, consequences)) => {
            // INVARIANT (one approval, one action): what the entry names is what is used up with it.
            entry.action.holds = holds;
            entry.action.grant = spent.as_ref().map(|approval| approval.id.clone());
            apply(rows, &entry, Change::Opened, &consequences, spent.as_ref(), now)?;
            (entry.attempt, entry.first)
        }
    };
    append(rows, &intent)?;
    Ok(Opened::Open { attempt, first })
}

/// The approval, if it can be used now under policies of this digest.
fn usable(rows: &dyn Rows, id: &str, slice: Digest, now: Millis) -> Stored<Option<Approval>> {
    let approval = rows.approval(id)?;
    Ok(approval.filter(|approval| {
        approval.state == ApprovalState::Granted && now < approval.expires_at && approval.slice == slice
    }))
}

/// The opened entry, if what the decision was based on still stands.
fn open_entry(rows: &dyn Rows, new: NewEntry, now: Millis) -> Stored<Option<(Entry, Vec<Consequence>)>> {
    let NewEntry { key, action, owner, lease_end, reference, anew, stamp } = new;
    let entry = rows.outline(key)?;
    let lapsed = entry.as_ref().is_some_and(|entry| entry.lapsed(now));
    let revision = entry.as_ref().filter(|_| !lapsed).map_or(0, |entry| entry.revision);
    let lane = rows.lane(action.lane)?;
    let free = lane.holder.is_none_or(|holder| holder == key);
    if (Stamp { revision, lane_version: lane.version }) != stamp || !free {
        return Ok(None);
    }
    let command = Command::Open { owner, lease_end, reference, action, anew: anew || lapsed };
    Ok(step(key, entry.as_ref(), command).ok())
}

/// `record` tells of what came of it, whether or not it closed the entry.
pub(super) fn close(
    rows: &mut dyn Rows,
    closing: Closing,
    record: impl FnOnce(bool) -> Record,
    now: Millis,
) -> Stored<bool> {
    let Closing { key, owner, attempt, verdict } = closing;
    let entry = rows.outline(key)?;
    let lane_version = next_lane_version(rows, entry.as_ref(), now)?;
    let command = Command::Close { owner, attempt, verdict, lane_version, now };
    let closed = match step(key, entry.as_ref(), command) {
        Ok((entry, consequences)) => {
            apply(rows, &entry, Change::Moved, &consequences, None, now)?;
            true
        }
        Err(_) => false,
    };
    append(rows, &record(closed))?;
    Ok(closed)
}

/// What there is to sweep.
pub(super) struct Survey {
    /// Who has open entries.
    pub(super) owners: Vec<Owner>,
    /// Whether a lease is over, or anything can be forgotten.
    pub(super) overdue: bool,
}

pub(super) fn survey(rows: &dyn Rows, now: Millis) -> Stored<Survey> {
    let open = rows.open_owners()?;
    let overdue = open.iter().any(|(_, lease_end)| *lease_end <= now)
        || !rows.lapsed(before(now, GRACE), 1)?.is_empty()
        || rows.is_littered(now, before(now, APPROVALS_KEPT))?;
    Ok(Survey { owners: open.into_iter().map(|(owner, _)| owner).collect(), overdue })
}

pub(super) fn sweep(
    rows: &mut dyn Rows,
    dead: &[Owner],
    record: &dyn Fn(&Entry) -> Record,
    now: Millis,
) -> Stored<usize> {
    let mut lost = 0;
    for entry in rows.open_entries()? {
        let State::Open { owner, lease_end } = &entry.state else { continue };
        let owner_dead = dead.contains(owner);
        if now < *lease_end && !owner_dead {
            continue;
        }
        if let Ok((entry, consequences)) = step(entry.key, Some(&entry), Command::Lose { owner_dead, now }) {
            apply(rows, &entry, Change::Moved, &consequences, None, now)?;
            append(rows, &record(&entry))?;
            lost += 1;
        }
    }
    purge(rows, now)?;
    Ok(lost)
}

/// Removes a bounded part of what nothing needs any more.
fn purge(rows: &mut dyn Rows, now: Millis) -> Stored<()> {
    for key in rows.lapsed(before(now, GRACE), PURGED_AT_ONCE)? {
        rows.remove_entry(key)?;
    }
    rows.forget_lanes(now, PURGED_AT_ONCE)?;
    rows.forget_counts(now, PURGED_AT_ONCE)?;
    rows.forget_approvals(before(now, APPROVALS_KEPT), PURGED_AT_ONCE)?;
    Ok(())
}

/// How many entries one page of a list looks through: nobody's list holds up the calls of others.
const LOOKED_THROUGH: usize = 1000;

pub(super) fn actions(rows: &dyn Rows, tenant: &str, before: Option<u64>, limit: usize) -> Stored<Page<Listed>> {
    let entries = rows.entries_before(before.unwrap_or(u64::MAX), LOOKED_THROUGH)?;
    let mut page = Page { items: Vec::new(), next: None };
    let seen_all = entries.len() < LOOKED_THROUGH;
    let last = entries.last().map(|(number, _)| *number);
    for (number, entry) in entries.into_iter().filter(|(_, entry)| entry.action.tenant == tenant) {
        if page.items.len() == limit {
            return Ok(page);
        }
        page.items.push(entry.listed());
        page.next = Some(number);
    }
    page.next = last.filter(|_| !seen_all);
    Ok(page)
}

/// The moment that lies so far back.
fn before(now: Millis, span: Duration) -> Millis {
    Millis(now.0.saturating_sub(Millis(0).after(span).0))
}

pub(super) fn claim(rows: &mut dyn Rows, key: EntryKey, claim: Claim, now: Millis) -> Stored<Option<Entry>> {
    let entry = rows.entry(key)?;
    let Ok((entry, consequences)) = step(key, entry.as_ref(), Command::Claim { claim, now }) else { return Ok(None) };
    apply(rows, &entry, Change::Moved, &consequences, None, now)?;
    Ok(Some(entry))
}

pub(super) fn resolve(
    rows: &mut dyn Rows,
    key: EntryKey,
    token: String,
    finding: Finding,
    record: Record,
    now: Millis,
) -> Stored<bool> {
    let entry = rows.entry(key)?;
    let lane_version = next_lane_version(rows, entry.as_ref(), now)?;
    let command = Command::Resolve { token, finding, lane_version, now };
    let Ok((entry, consequences)) = step(key, entry.as_ref(), command) else { return Ok(false) };
    apply(rows, &entry, Change::Moved, &consequences, None, now)?;
    append(rows, &record)?;
    Ok(true)
}

/// What an operator says of an unknown action.
pub(super) fn rule(
    rows: &mut dyn Rows,
    key: EntryKey,
    finding: Finding,
    record: impl FnOnce(&Entry) -> Record,
    now: Millis,
) -> Stored<Result<Entry, Rejected>> {
    let entry = rows.entry(key)?;
    let lane_version = next_lane_version(rows, entry.as_ref(), now)?;
    match step(key, entry.as_ref(), Command::Rule { finding, lane_version, now }) {
        Ok((entry, consequences)) => {
            apply(rows, &entry, Change::Moved, &consequences, None, now)?;
            append(rows, &record(&entry))?;
            Ok(Ok(entry))
        }
        Err(rejected) => Ok(Err(rejected)),
    }
}

pub(super) fn propose(
    rows: &mut dyn Rows,
    approval: Approval,
    cap: usize,
    record: impl FnOnce(&Approval) -> Record,
    now: Millis,
) -> Stored<Proposed> {
    let call = GrantKey::of(&approval);
    // One that was asked under other policies, or for other reasons, would grant nothing today.
    let standing = rows.approvals_of_call(&call)?.into_iter().find(|pending| {
        pending.state == ApprovalState::Pending && now < pending.expires_at && pending.asks_what(&approval)
    });
    let approval = match standing {
        Some(standing) => standing,
        None if rows.count_pending(&call.tenant, &call.principal, now)? >= cap => return Ok(Proposed::TooMany),
        None => {
            rows.put_approval(&approval)?;
            approval
        }
    };
    append(rows, &record(&approval))?;
    Ok(Proposed::Pending(approval))
}

/// A person's answer to an approval.
pub(super) struct Answer {
    pub(super) by: Session,
    pub(super) decision: Decision,
    pub(super) granted_until: Millis,
}

pub(super) fn decide(
    rows: &mut dyn Rows,
    id: &str,
    answer: &Answer,
    record: impl FnOnce(&Approval) -> Record,
    now: Millis,
) -> Stored<Result<Approval, NotDecided>> {
    let Some(mut approval) = rows.approval(id)? else { return Ok(Err(NotDecided::Missing)) };
    if let Err(reason) = approval.decide(&answer.by, answer.decision, now, answer.granted_until) {
        return Ok(Err(reason));
    }
    rows.put_approval(&approval)?;
    append(rows, &record(&approval))?;
    Ok(Ok(approval))
}

/// The version that the lane of this entry has after the next change.
fn next_lane_version(rows: &dyn Rows, entry: Option<&Entry>, now: Millis) -> Stored<u64> {
    entry.map_or(Ok(0), |entry| Ok(rows.lane(entry.action.lane)?.next_version(now)))
}

/// Persists a transition: the entry, and all that follows from it. `spent` is the approval that an opening uses up.
fn apply(
    rows: &mut dyn Rows,
    entry: &Entry,
    change: Change,
    consequences: &[Consequence],
    spent: Option<&Approval>,
    now: Millis,
) -> Stored<()> {
    rows.put_entry(entry, change)?;
    for consequence in consequences {
        match consequence {
            Consequence::TakeLane => move_lane(rows, entry, now, |_| Some(entry.key))?,
            // An entry that let go of its lane while it was unknown does not free it for whoever took it since.
            Consequence::FreeLane => {
                move_lane(rows, entry, now, |holder| holder.filter(|holder| *holder != entry.key))?;
            }
            Consequence::MoveLane => move_lane(rows, entry, now, |holder| holder)?,
            Consequence::SpendGrant => {
                if let Some(spent) = spent {
                    rows.put_approval(spent)?;
                }
            }
            Consequence::ReturnGrant => return_grant(rows, entry)?,
            Consequence::TakeHolds => count(rows, &entry.action.holds, Counting::Take)?,
            Consequence::ReturnHolds => count(rows, &entry.action.holds, Counting::Return)?,
        }
    }
    Ok(())
}

fn move_lane(
    rows: &mut dyn Rows,
    entry: &Entry,
    now: Millis,
    holder: impl FnOnce(Option<EntryKey>) -> Option<EntryKey>,
) -> Stored<()> {
    let lane = rows.lane(entry.action.lane)?;
    let needed_until = entry.needs_lane_until().max(lane.needed_until);
    let holder = holder(lane.holder);
    rows.put_lane(entry.action.lane, Lane { version: lane.next_version(now), needed_until, holder })
}

/// What an opening takes of limits, if all of them have room for it.
fn take(rows: &dyn Rows, takings: &[Taking], now: Millis) -> Stored<Result<Vec<Hold>, Opened>> {
    let mut holds: Vec<Hold> = Vec::with_capacity(takings.len());
    // What takes nothing fits, also where an edited maximum is exceeded already.
    for (which, taking) in takings.iter().enumerate().filter(|(_, taking)| taking.amount > 0) {
        let (window, end) = taking.window(now);
        let already: u64 = holds
            .iter()
            .filter(|hold| hold.counter == taking.counter && hold.window == window)
            .fold(0, |sum, hold| sum.saturating_add(hold.amount));
        let counted = rows.counted(taking.counter, window)?.saturating_add(already);
        if counted.saturating_add(taking.amount) > taking.max {
            return Ok(Err(Opened::Limited { which, left: taking.max.saturating_sub(counted), until: end }));
        }
        holds.push(Hold { counter: taking.counter, window, end, amount: taking.amount });
    }
    Ok(Ok(holds))
}

#[derive(Clone, Copy)]
enum Counting {
    Take,
    Return,
}

fn count(rows: &mut dyn Rows, holds: &[Hold], counting: Counting) -> Stored<()> {
    for Hold { counter, window, end, amount } in holds {
        let counted = rows.counted(*counter, *window)?;
        let count = match counting {
            Counting::Take => counted.saturating_add(*amount),
            // Of a window that is long over nothing is counted any more, and nobody takes in it.
            Counting::Return if counted == 0 => continue,
            Counting::Return => counted.saturating_sub(*amount),
        };
        rows.put_counted(*counter, *window, count, end.after(AFTER_WINDOW))?;
    }
    Ok(())
}

fn return_grant(rows: &mut dyn Rows, entry: &Entry) -> Stored<()> {
    let Some(id) = &entry.action.grant else { return Ok(()) };
    match rows.approval(id)? {
        Some(approval) if matches!(approval.state, ApprovalState::Used { .. }) => {
            rows.put_approval(&Approval { state: ApprovalState::Granted, ..approval })
        }
        Some(_) | None => Ok(()),
    }
}

pub(super) fn append(rows: &mut dyn Rows, record: &Record) -> Stored<()> {
    append_all(rows, std::slice::from_ref(record))
}

/// Chains records after the last one, which is asked for once.
pub(super) fn append_all(rows: &mut dyn Rows, records: &[Record]) -> Stored<()> {
    let mut head = rows.head()?;
    for record in records {
        let sealed = record.seal(head);
        head = Head { seq: sealed.seq, hash: sealed.hash };
        rows.push_record(sealed)?;
    }
    Ok(())
}

impl GrantKey {
    /// Whose approval of which call this is.
    pub(super) fn of(approval: &Approval) -> Self {
        Self {
            tenant: approval.tenant.clone(),
            principal: approval.requester.canonical(),
            call_digest: approval.call_digest,
        }
    }
}
