//! What is done without a call: actions whose owner is lost become unknown, and what nothing needs is forgotten.

use std::time::Duration;

use crate::audit::Record;
use crate::clock::Millis;
use crate::ledger::rows::{Change, Rows, Stored};
use crate::ledger::transact::{append, apply};
use crate::ledger::{Command, Entry, Owner, State, step};

/// How long a lapsed entry is kept. INVARIANT (fence): its attempt number goes on when the action comes again, and who
/// ran it first is long gone when the number is forgotten.
pub(in crate::ledger) const GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// How long an approval is kept that can be neither decided nor used any more, for whoever looks back at it. The record
/// keeps what was decided.
const APPROVALS_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How many entries, lanes, counts and approvals one sweep removes of each: no call waits long behind it.
const PURGED_AT_ONCE: usize = 256;

/// What there is to sweep.
pub(in crate::ledger) struct Survey {
    /// Who has open entries.
    pub(in crate::ledger) owners: Vec<Owner>,
    /// Whether a lease is over, or anything can be forgotten.
    pub(in crate::ledger) overdue: bool,
}

pub(in crate::ledger) fn survey(rows: &dyn Rows, now: Millis) -> Stored<Survey> {
    let open = rows.open_owners()?;
    let overdue = open.iter().any(|(_, lease_end)| *lease_end <= now)
        || !rows.lapsed(before(now, GRACE), 1)?.is_empty()
        || rows.is_littered(now, before(now, APPROVALS_KEPT))?;
    Ok(Survey { owners: open.into_iter().map(|(owner, _)| owner).collect(), overdue })
}

pub(in crate::ledger) fn sweep(
    rows: &mut dyn Rows,
    dead: &[Owner],
    record: &dyn Fn(&Entry) -> Record,
    now: Millis,
) -> Stored<usize> {
    let mut lost = 0;
    for entry in rows.open_entries()? {
        let State::Open { owner, lease_end, .. } = &entry.state else { continue };
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
    rows.forget_notes(now, PURGED_AT_ONCE)?;
    rows.forget_approvals(before(now, APPROVALS_KEPT), PURGED_AT_ONCE)?;
    Ok(())
}

/// The moment that lies so far back.
fn before(now: Millis, span: Duration) -> Millis {
    Millis(now.0.saturating_sub(Millis(0).after(span).0))
}
