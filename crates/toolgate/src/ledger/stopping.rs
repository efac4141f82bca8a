//! The stops that stand in a store.

use std::time::Duration;

use super::rows::{Note, NoteKind, Rows, Stored};
use super::store::Pending;
use super::{Store, transact};
use crate::audit::Record;
use crate::clock::Millis;
use crate::stoppage::{Spot, Stoppage, Target};

/// What became of a stop that was to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// It stands.
    Stands(Box<Stoppage>),
    /// As many stand as may.
    TooMany,
}

/// Writes the record of a stop that was set or lifted.
pub(crate) type Telling = Box<dyn FnOnce(&Stoppage, Millis) -> Record + Send>;

/// Where those stand that concern every tenant; the others stand in the scope of their own.
const EVERYWHERE: &str = "";

impl Store {
    /// The stops that stand at `now`, the oldest first.
    pub(crate) fn stops(&self, now: Millis) -> Pending<'_, Vec<Stoppage>> {
        self.read_at(now, |rows, now| standing(&rows.notes_of(NoteKind::Stop)?, now))
    }

    /// Sets a stop that lasts from now on for `lasts`, unless `cap` stand already that were set by the same tenant, or by
    /// the operator.
    pub(crate) fn stop(
        &self,
        stop: Stoppage,
        lasts: Duration,
        cap: usize,
        record: Telling,
        now: Millis,
    ) -> Pending<'_, Stopped> {
        self.write_at(now, move |rows, now| {
            let scope = scope(&stop.target).to_owned();
            let beside = standing(&rows.notes_of(NoteKind::Stop)?, now)?;
            // Whoever sets many leaves room for everybody else: above all for the operator, who stops just them.
            if beside.iter().filter(|other| other.set_in == stop.set_in).count() >= cap {
                return Ok(Stopped::TooMany);
            }
            let stop = Stoppage { at: now, until: now.after(lasts), ..stop };
            rows.put_note(NoteKind::Stop, &Note::new(stop.id.as_str(), &scope, stop.until, &stop)?)?;
            transact::append(rows, &record(&stop, now))?;
            Ok(Stopped::Stands(Box::new(stop)))
        })
    }

    /// Lifts the stop with this id, where it stands and, if `tenant` is said, was set by that tenant.
    pub(crate) fn lift(
        &self,
        id: String,
        tenant: Option<String>,
        record: Telling,
        now: Millis,
    ) -> Pending<'_, Option<Stoppage>> {
        self.write_at(now, move |rows, now| {
            let within = |stop: &Stoppage| tenant.is_none() || stop.set_in == tenant;
            let found: Vec<Note> = rows.note(NoteKind::Stop, &id)?.into_iter().collect();
            let Some(stop) = standing(&found, now)?.into_iter().find(within) else { return Ok(None) };
            rows.remove_note(NoteKind::Stop, &id)?;
            transact::append(rows, &record(&stop, now))?;
            Ok(Some(stop))
        })
    }
}

/// What stops a call made there. INVARIANT (none is missed): all of its tenant and all that concern every tenant, however
/// many there are. Those of other tenants cost it nothing.
pub(super) fn stopping(rows: &dyn Rows, spot: &Spot, now: Millis) -> Stored<Option<Stoppage>> {
    let mut notes = rows.notes(NoteKind::Stop, EVERYWHERE, usize::MAX)?;
    if spot.tenant != EVERYWHERE {
        notes.extend(rows.notes(NoteKind::Stop, &spot.tenant, usize::MAX)?);
    }
    Ok(Stoppage::of(&standing(&notes, now)?, spot, now))
}

fn scope(target: &Target) -> &str {
    target.tenant.as_deref().unwrap_or(EVERYWHERE)
}

fn standing(notes: &[Note], now: Millis) -> Stored<Vec<Stoppage>> {
    notes.iter().filter(|note| now < note.until).map(Note::read).collect()
}
