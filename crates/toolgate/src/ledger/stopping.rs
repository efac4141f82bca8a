//! The stops that stand in a store.

use std::time::Duration;

use super::rows::{Note, NoteKind, Rows, Stored};
use super::store::Pending;
use super::{Store, transact};
use crate::audit::Record;
use crate::clock::Millis;
use crate::stoppage::{Spot, Stoppage};

/// What became of a stop that was to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// It stands.
    Stands(Stoppage),
    /// As many stand as may.
    TooMany,
}

/// Writes the record of a stop that was set or lifted.
pub(crate) type Telling = Box<dyn FnOnce(&Stoppage, Millis) -> Record + Send>;

/// All stand in one scope: every call looks at all of them.
const SCOPE: &str = "";

impl Store {
    /// The stops that stand at `now`, the oldest first.
    pub(crate) fn stops(&self, now: Millis) -> Pending<'_, Vec<Stoppage>> {
        self.read_at(now, standing)
    }

    /// Sets a stop that lasts from now on for `lasts`, unless `cap` stand already of the same tenant, or of none.
    pub(crate) fn stop(
        &self,
        stop: Stoppage,
        lasts: Duration,
        cap: usize,
        record: Telling,
        now: Millis,
    ) -> Pending<'_, Stopped> {
        self.write_at(now, move |rows, now| {
            let of_tenant = |other: &&Stoppage| other.target.tenant == stop.target.tenant;
            if standing(rows, now)?.iter().filter(of_tenant).count() >= cap {
                return Ok(Stopped::TooMany);
            }
            let stop = Stoppage { at: now, until: now.after(lasts), ..stop };
            rows.put_note(NoteKind::Stop, &Note::new(stop.id.as_str(), SCOPE, stop.until, &stop)?)?;
            transact::append(rows, &record(&stop, now))?;
            Ok(Stopped::Stands(stop))
        })
    }

    /// Lifts the stop with this id, where it stands and, if `tenant` is said, is of that tenant.
    pub(crate) fn lift(
        &self,
        id: String,
        tenant: Option<String>,
        record: Telling,
        now: Millis,
    ) -> Pending<'_, Option<Stoppage>> {
        self.write_at(now, move |rows, now| {
            let within = |stop: &Stoppage| tenant.is_none() || stop.target.tenant == tenant;
            let Some(stop) = standing(rows, now)?.into_iter().find(|stop| stop.id == id && within(stop)) else {
                return Ok(None);
            };
            rows.remove_note(NoteKind::Stop, &id)?;
            transact::append(rows, &record(&stop, now))?;
            Ok(Some(stop))
        })
    }
}

/// What stops a call made there.
pub(super) fn stopping(rows: &dyn Rows, spot: &Spot, now: Millis) -> Stored<Option<Stoppage>> {
    Ok(Stoppage::of(&standing(rows, now)?, spot, now))
}

/// INVARIANT (none is missed): all of them, however many there are.
fn standing(rows: &dyn Rows, now: Millis) -> Stored<Vec<Stoppage>> {
    let notes = rows.notes(NoteKind::Stop, SCOPE, usize::MAX)?;
    notes.iter().filter(|note| now < note.until).map(Note::read).collect()
}
