//! Notes of approvals that are still to be told of outside.

use serde::{Deserialize, Serialize};

use crate::approval::{Approval, ApprovalState};
use crate::clock::Millis;
use crate::ledger::Untold;
use crate::ledger::rows::{Note, NoteKind, Rows, Stored};

/// What such a note says.
#[derive(Serialize, Deserialize)]
struct Errand {
    /// Until then nobody takes it: somebody is at it, or it failed a while ago.
    not_before: Millis,
    /// How often it was taken.
    attempts: u32,
}

/// Where those stand that were never taken, and those that were: what nobody takes in does not stand before what is new.
const NEW: &str = "";
const TAKEN: &str = "taken";
/// How many of each are looked through at once.
const LOOKED_AT: usize = 1000;

pub(in crate::ledger) fn note(approval: &Approval) -> Stored<Note> {
    Note::new(approval.id.as_str(), NEW, approval.expires_at, &Errand { not_before: Millis(0), attempts: 0 })
}

/// Whether there is one that could be taken.
pub(in crate::ledger) fn is_untold(rows: &dyn Rows, now: Millis) -> Stored<bool> {
    // Of those that are new, each could be.
    Ok(!rows.notes(NoteKind::Untold, NEW, 1)?.is_empty() || !due(rows, TAKEN, now)?.is_empty())
}

/// Takes the first one that nobody is at, until `until`: one that is new, or else the one that waits longest.
pub(in crate::ledger) fn take_untold(rows: &mut dyn Rows, until: Millis, now: Millis) -> Stored<Option<Untold>> {
    let mut due_now = due(rows, NEW, now)?;
    due_now.extend(due(rows, TAKEN, now)?);
    for (note, Errand { attempts, .. }) in due_now {
        match rows.approval(&note.key)?.filter(|approval| approval.state == ApprovalState::Pending) {
            Some(approval) if now < approval.expires_at => {
                let attempt = attempts.saturating_add(1);
                taken(rows, note, Errand { not_before: until, attempts: attempt })?;
                return Ok(Some(Untold { approval, attempt }));
            }
            // Whether it has expired, the gate's time says, which may be another than that of whoever tells.
            Some(approval) => {
                let not_before = approval.expires_at.max(until);
                taken(rows, note, Errand { not_before, attempts })?;
            }
            None => rows.remove_note(NoteKind::Untold, &note.key)?,
        }
    }
    Ok(None)
}

/// Those of a scope that could be taken, the one that waits longest first.
fn due(rows: &dyn Rows, scope: &str, now: Millis) -> Stored<Vec<(Note, Errand)>> {
    let mut due = Vec::new();
    for note in rows.notes(NoteKind::Untold, scope, LOOKED_AT)? {
        let errand: Errand = note.read()?;
        if errand.not_before <= now {
            due.push((note, errand));
        }
    }
    due.sort_by_key(|(_, errand)| errand.not_before);
    Ok(due)
}

fn taken(rows: &mut dyn Rows, note: Note, errand: Errand) -> Stored<()> {
    rows.put_note(NoteKind::Untold, &Note::new(note.key, TAKEN, note.until, &errand)?)
}

pub(in crate::ledger) fn told(rows: &mut dyn Rows, id: &str, attempt: u32) -> Stored<()> {
    match own(rows, id, attempt)? {
        Some(_) => rows.remove_note(NoteKind::Untold, id),
        None => Ok(()),
    }
}

pub(in crate::ledger) fn put_off(rows: &mut dyn Rows, id: &str, attempt: u32, until: Millis) -> Stored<()> {
    let Some(note) = own(rows, id, attempt)? else { return Ok(()) };
    taken(rows, note, Errand { not_before: until, attempts: attempt })
}

/// The note, if the attempt is the last one that was made.
fn own(rows: &dyn Rows, id: &str, attempt: u32) -> Stored<Option<Note>> {
    let Some(note) = rows.note(NoteKind::Untold, id)? else { return Ok(None) };
    let errand: Errand = note.read()?;
    Ok((errand.attempts == attempt).then_some(note))
}
