//! The transactions of the ledger, written once over the rows of any store.
//!
//! A kind of store says how it keeps [`Rows`] and how a transaction over them runs ([`Transact`]). Every function here
//! checks before it writes, so that a transaction that is turned down has written nothing.

mod approvals;
mod limits;
mod sweeping;
mod untold;

use super::rows::{Change, LOOKED_THROUGH, Lane, Rows, Stored};
use super::runs;
use super::stopping::stopping;
use super::{
    Claim, Closing, Command, Consequence, Entry, EntryKey, Finding, Listed, NewEntry, Opened, Opening, Page, Question,
    Recall, Rejected, Stamp, step,
};
use crate::approval::{Approval, ApprovalState};
use crate::audit::{Head, Record};
use crate::clock::{Millis, Water};
use crate::runs::RunState;

pub(crate) use self::approvals::Answer;
pub(super) use self::approvals::{decide, edit, propose};
use self::approvals::{newest, return_grant, usable};
pub(super) use self::limits::foresee;
use self::limits::{Counting, count, take};
pub(super) use self::sweeping::{GRACE, survey, sweep};
pub(super) use self::untold::{is_untold, put_off, take_untold, told};
use super::standing::{covering, draw};

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
    let stopped = match &question.spot {
        Some(spot) => stopping(rows, spot, now)?,
        None => None,
    };
    let standing = match &question.covered {
        Some(covered) => covering(rows, covered, now)?,
        None => Vec::new(),
    };
    let run = match question.run {
        Some(run) => runs::state(rows, run, now)?,
        None => RunState::default(),
    };
    let Some((key, lane)) = question.action else {
        let stamp = Stamp { revision: 0, lane_version: 0 };
        let (entry, holder) = (None, None);
        return Ok(Recall { entry, own_lane_version: 0, stamp, holder, approval, stopped, standing, run });
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
    Ok(Recall { entry, own_lane_version, stamp, holder, approval, stopped, standing, run })
}

pub(super) fn open(rows: &mut dyn Rows, opening: Opening, now: Millis) -> Stored<Opened> {
    let Opening { entry, grant, takings, drawings, intent, spot } = opening;
    if let Some(stop) = stopping(rows, &spot, now)? {
        return Ok(Opened::Stopped(Box::new(stop)));
    }
    let opened = match entry {
        None => None,
        // A limit refuses only what may still run: the same call may have been done meanwhile, and then it is replayed.
        Some(new) => match open_entry(rows, new, now)? {
            Some(opened) => Some(opened),
            None => return Ok(Opened::Moved),
        },
    };
    let mut holds = match take(rows, &takings, now)? {
        Ok(holds) => holds,
        Err(limited) => return Ok(limited),
    };
    match draw(rows, &drawings, now)? {
        Some(drawn) => holds.extend(drawn),
        None => return Ok(Opened::Moved),
    }
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

/// The opened entry, if what the decision was based on still stands.
fn open_entry(rows: &dyn Rows, new: NewEntry, now: Millis) -> Stored<Option<(Entry, Vec<Consequence>)>> {
    let NewEntry { key, action, owner, since, lease_end, reference, anew, stamp } = new;
    let entry = rows.outline(key)?;
    let lapsed = entry.as_ref().is_some_and(|entry| entry.lapsed(now));
    let revision = entry.as_ref().filter(|_| !lapsed).map_or(0, |entry| entry.revision);
    let lane = rows.lane(action.lane)?;
    let free = lane.holder.is_none_or(|holder| holder == key);
    if (Stamp { revision, lane_version: lane.version }) != stamp || !free {
        return Ok(None);
    }
    let command = Command::Open { owner, since, lease_end, reference, action, anew: anew || lapsed };
    Ok(step(key, entry.as_ref(), command).ok())
}

/// `record` tells of what came of it, whether or not it closed the entry.
pub(super) fn close(
    rows: &mut dyn Rows,
    closing: Closing,
    record: impl FnOnce(bool) -> Record,
    now: Millis,
) -> Stored<bool> {
    let Closing { key, owner, attempt, verdict, marking } = closing;
    let entry = rows.outline(key)?;
    let lane_version = next_lane_version(rows, entry.as_ref(), now)?;
    let command = Command::Close { owner, attempt, verdict, lane_version, now };
    let closed = match step(key, entry.as_ref(), command) {
        Ok((closed, consequences)) => {
            apply(rows, &closed, Change::Moved, &consequences, None, now)?;
            runs::found_out(rows, entry.as_ref(), &closed, now)?;
            if let Some(marking) = marking {
                runs::join(rows, marking, now)?;
            }
            true
        }
        Err(_) => false,
    };
    append(rows, &record(closed))?;
    Ok(closed)
}

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
    let Ok((found, consequences)) = step(key, entry.as_ref(), command) else { return Ok(false) };
    apply(rows, &found, Change::Moved, &consequences, None, now)?;
    runs::found_out(rows, entry.as_ref(), &found, now)?;
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
        Ok((found, consequences)) => {
            apply(rows, &found, Change::Moved, &consequences, None, now)?;
            runs::found_out(rows, entry.as_ref(), &found, now)?;
            append(rows, &record(&found))?;
            Ok(Ok(found))
        }
        Err(rejected) => Ok(Err(rejected)),
    }
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
