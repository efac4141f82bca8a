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

/// All notes of this kind stand in one scope.
const SCOPE: &str = "";
/// How many are looked through at once.
const LOOKED_AT: usize = 10_000;

pub(in crate::ledger) fn note(approval: &Approval) -> Stored<Note> {
    Note::new(approval.id.as_str(), SCOPE, approval.expires_at, &Errand { not_before: Millis(0), attempts: 0 })
}

/// Whether there is one that could be taken.
pub(in crate::ledger) fn is_untold(rows: &dyn Rows, now: Millis) -> Stored<bool> {
    for note in rows.notes(NoteKind::Untold, SCOPE, LOOKED_AT)? {
        if note.read::<Errand>()?.not_before <= now {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Takes the first one that nobody is at, until `until`.
pub(in crate::ledger) fn take_untold(rows: &mut dyn Rows, until: Millis, now: Millis) -> Stored<Option<Untold>> {
    for note in rows.notes(NoteKind::Untold, SCOPE, LOOKED_AT)? {
        let Errand { not_before, attempts } = note.read()?;
        if now < not_before {
            continue;
        }
        match rows.approval(&note.key)?.filter(|approval| approval.state == ApprovalState::Pending) {
            Some(approval) if now < approval.expires_at => {
                let attempt = attempts.saturating_add(1);
                let note = Note::new(note.key, SCOPE, note.until, &Errand { not_before: until, attempts: attempt })?;
                rows.put_note(NoteKind::Untold, &note)?;
                return Ok(Some(Untold { approval, attempt }));
            }
            // Whether it has expired, the gate's time says, which may be another than that of whoever tells.
            Some(approval) => {
                let errand = Errand { not_before: approval.expires_at.max(until), attempts };
                rows.put_note(NoteKind::Untold, &Note::new(note.key, SCOPE, note.until, &errand)?)?;
            }
            None => rows.remove_note(NoteKind::Untold, &note.key)?,
        }
    }
    Ok(None)
}

pub(in crate::ledger) fn told(rows: &mut dyn Rows, id: &str, attempt: u32) -> Stored<()> {
    match own(rows, id, attempt)? {
        Some(_) => rows.remove_note(NoteKind::Untold, id),
        None => Ok(()),
    }
}

pub(in crate::ledger) fn put_off(rows: &mut dyn Rows, id: &str, attempt: u32, until: Millis) -> Stored<()> {
    let Some(note) = own(rows, id, attempt)? else { return Ok(()) };
    let errand = Errand { not_before: until, attempts: attempt };
    rows.put_note(NoteKind::Untold, &Note::new(note.key, SCOPE, note.until, &errand)?)
}

/// The note, if the attempt is the last one that was made.
fn own(rows: &dyn Rows, id: &str, attempt: u32) -> Stored<Option<Note>> {
    let Some(note) = rows.note(NoteKind::Untold, id)? else { return Ok(None) };
    let errand: Errand = note.read()?;
    Ok((errand.attempts == attempt).then_some(note))
}
