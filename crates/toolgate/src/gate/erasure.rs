//! Erasing a person: what is personal to them becomes unreadable, and the record holds all the same.

use super::{Gate, records};
use crate::clock::Millis;
use crate::json::Digest;
use crate::ledger::{Erasing, Store, StoreError};
use crate::session::Session;

/// That somebody's personal data was made unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erased {
    /// What the record calls them: a keyed digest of tenant and name.
    pub subject: Digest,
    /// How many actions in the ledger were theirs. Their arguments, facts and answers cannot be read any more.
    pub actions: usize,
    /// Whether a copy of the key that was deleted still lies in the log beside the store, because somebody reads an old
    /// moment of it. Once they have ended it goes with the next opening of the store, or with whoever keeps it open now.
    pub in_log: bool,
}

/// What to do where an action of theirs runs, or nobody knows how it ended: once it is erased it cannot be reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InDoubt {
    /// Erase nothing.
    Spared,
    /// Erase it all the same.
    Erased,
}

/// Why nobody was erased.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotErased {
    /// Nothing personal is kept under this name.
    #[error("nothing personal is kept of this subject in this tenant, or it was erased before")]
    Nobody,
    /// Actions of theirs are open or unknown.
    #[error("{0} of their actions may be running, or nobody knows how they ended; erased, they could not be looked up")]
    InDoubt(usize),
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// Erases what is personal to `subject` in the tenant of `by`, who says so. The record keeps that it was done, by whom
/// and of which digest; whoever needs no gate for it, because its contracts are faulty, needs only the store.
pub async fn erase(
    store: &Store,
    subject: &str,
    by: &Session,
    in_doubt: InDoubt,
    now: Millis,
) -> Result<Erased, NotErased> {
    let subject = store.key().subject(by.tenant(), subject);
    let actions = store.actions_of(subject).await?.ok_or(NotErased::Nobody)?;
    let erased = Erased { subject: Digest::from(*subject.as_bytes()), actions, in_log: false };
    let record = records::erased(&erased, by, now);
    match store.erase(subject, in_doubt == InDoubt::Spared, record).await? {
        Erasing::Erased => Ok(Erased { in_log: store.is_stained(), ..erased }),
        Erasing::Nobody => Err(NotErased::Nobody),
        Erasing::InDoubt(count) => Err(NotErased::InDoubt(count)),
    }
}

impl Gate {
    /// Erases what is personal to `subject` in the tenant of `by`, as [`erase`] does.
    pub async fn erase(&self, subject: &str, by: &Session, in_doubt: InDoubt) -> Result<Erased, NotErased> {
        erase(&self.line.store, subject, by, in_doubt, self.now()).await
    }
}
