//! Handles of runs that were begun clean: one note each, until the run has rested for a day.

use serde_json::{Map, json};

use super::Store;
use super::resting::{is_fresh, rests_until};
use super::rows::{Note, NoteKind};
use super::store::Pending;
use crate::clock::Millis;
use crate::json::{Digest, canonical};
use crate::session::Session;

/// A handle, as its own principal shows it. INVARIANT (bound by name): whose it is is part of the key, so a handle of
/// somebody else is looked for and not found exactly as one that never was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandleKey(Digest);

impl HandleKey {
    pub(crate) fn of(handle: &str, session: &Session) -> Self {
        let named = json!(["handle", session.tenant(), session.principal().canonical(), handle]);
        Self(Digest::of(canonical(&named).as_bytes()))
    }

    /// Whose handles are counted together: those of one principal in one tenant.
    pub(crate) fn holder(session: &Session) -> String {
        let named = json!(["handles", session.tenant(), session.principal().canonical()]);
        Digest::of(canonical(&named).as_bytes()).hex()
    }

    /// The name of the run. Whoever reads it in a record does not learn the handle.
    pub(crate) fn run(&self) -> String {
        const LENGTH: usize = 26;
        let name: String = self.0.base32().chars().take(LENGTH).collect();
        format!("run_{name}")
    }
}

impl Store {
    /// Begins a run under this handle; `false` where as many of its holder go on as may. INVARIANT (never over): they are
    /// counted in the transaction that writes it.
    pub(crate) fn begin_run(&self, handle: HandleKey, holder: String, most: usize, now: Millis) -> Pending<'_, bool> {
        self.write_at(now, move |rows, now| {
            // The sweep may not have come by those that have ended.
            let going_on =
                rows.notes(NoteKind::Handle, &holder, usize::MAX)?.iter().filter(|note| now < note.until).count();
            if going_on >= most {
                return Ok(false);
            }
            rows.put_note(NoteKind::Handle, &note(handle, &holder, now)?)?;
            Ok(true)
        })
    }

    /// Whether the run of this handle goes on. It rests anew from now on.
    pub(crate) fn goes_on(&self, handle: HandleKey, holder: &str, now: Millis) -> Pending<'_, bool> {
        let holder = holder.to_owned();
        Box::pin(async move {
            let found = self.read_at(now, move |rows, now| {
                let note = rows.note(NoteKind::Handle, &handle.0.hex())?.filter(|note| now < note.until);
                Ok(note.map(|note| is_fresh(note.until, now)))
            });
            match found.await? {
                None => Ok(false),
                Some(true) => Ok(true),
                Some(false) => self.renew_run(handle, holder, now).await,
            }
        })
    }

    /// Lets the run of this handle rest anew; `false` where it has ended. INVARIANT (ended is ended): whether it goes on is
    /// looked at in the transaction that renews it.
    pub(super) fn renew_run(&self, handle: HandleKey, holder: String, now: Millis) -> Pending<'_, bool> {
        self.write_at(now, move |rows, now| {
            let goes_on = rows.note(NoteKind::Handle, &handle.0.hex())?.is_some_and(|note| now < note.until);
            if goes_on {
                rows.put_note(NoteKind::Handle, &note(handle, &holder, now)?)?;
            }
            Ok(goes_on)
        })
    }

    /// Ends the run of this handle; `false` where there is none.
    pub(crate) fn end_run(&self, handle: HandleKey, now: Millis) -> Pending<'_, bool> {
        self.write_at(now, move |rows, now| {
            let key = handle.0.hex();
            let found = rows.note(NoteKind::Handle, &key)?.is_some_and(|note| now < note.until);
            if found {
                rows.remove_note(NoteKind::Handle, &key)?;
            }
            Ok(found)
        })
    }
}

fn note(handle: HandleKey, holder: &str, now: Millis) -> Result<Note, super::StoreError> {
    Note::new(handle.0.hex(), holder, rests_until(now), &Map::new())
}
