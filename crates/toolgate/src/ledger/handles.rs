//! Handles of runs that were begun clean: one note each, until the run has rested for a day.

use std::time::Duration;

use serde_json::{Map, json};

use super::Store;
use super::rows::{Note, NoteKind};
use super::store::Pending;
use crate::clock::Millis;
use crate::json::{Digest, canonical};
use crate::session::Session;

/// How long a run may rest before its handle ends.
const RESTS: Duration = Duration::from_secs(24 * 60 * 60);
/// How much of that is left of a note that need not be written anew.
const FRESH: Duration = Duration::from_secs(23 * 60 * 60);

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
    /// Begins a run under this handle.
    pub(crate) fn begin_run(&self, handle: HandleKey, tenant: &str, now: Millis) -> Pending<'_, ()> {
        let tenant = tenant.to_owned();
        self.write_at(now, move |rows, now| rows.put_note(NoteKind::Handle, &note(handle, &tenant, now)?))
    }

    /// Whether the run of this handle goes on. It rests anew from now on.
    pub(crate) fn goes_on(&self, handle: HandleKey, tenant: &str, now: Millis) -> Pending<'_, bool> {
        let tenant = tenant.to_owned();
        Box::pin(async move {
            let found = self.read_at(now, move |rows, now| {
                let note = rows.note(NoteKind::Handle, &handle.0.hex())?.filter(|note| now < note.until);
                Ok(note.map(|note| now.after(FRESH) < note.until))
            });
            match found.await? {
                None => Ok(false),
                Some(true) => Ok(true),
                Some(false) => self.begin_run(handle, &tenant, now).await.map(|()| true),
            }
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

impl Store {
    /// Begins a run under this handle; `false` where as many of its holder go on as may. INVARIANT (never over): they are
    /// counted in the transaction that writes it.
    pub(crate) fn begin_run_within(
        &self,
        handle: HandleKey,
        holder: String,
        most: usize,
        now: Millis,
    ) -> Pending<'_, bool> {
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
}

fn note(handle: HandleKey, tenant: &str, now: Millis) -> Result<Note, super::StoreError> {
    Note::new(handle.0.hex(), tenant, now.after(RESTS), &Map::new())
}
