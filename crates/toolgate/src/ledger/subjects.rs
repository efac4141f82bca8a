//! Whose personal data a store holds: the salts by which they can be told and read, until somebody is erased.

use std::sync::atomic::{AtomicBool, Ordering};

use super::rows::Rows;
use super::transact;
use super::{Store, StoreError};
use crate::audit::Record;
use crate::vault::{Salt, Subject};

/// What came of erasing a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Erasing {
    /// Its personal data cannot be read any more.
    Erased,
    /// There was nothing, or all of it was erased before. Nothing was written.
    Nobody,
    /// So many of its actions run, or nobody knows how they ended. Nothing was written.
    InDoubt(usize),
}

/// What the personal data of one call are digested with.
pub(crate) struct Whose {
    subject: Subject,
    salt: Salt,
    /// Whether it stands in the store, or did: what was erased never comes back.
    stands: AtomicBool,
}

impl Store {
    /// What the personal data of this name within the tenant are digested with. Where nothing was kept of them it is made,
    /// and stands nowhere: a name that a model wrote leaves nothing behind until a call of theirs runs.
    pub(crate) async fn whose(&self, tenant: &str, name: &str) -> Result<Whose, StoreError> {
        let subject = self.key().subject(tenant, name);
        let standing = self.read(move |rows| rows.salt(subject)).await?;
        let stands = AtomicBool::new(standing.is_some());
        let salt = match standing {
            Some(salt) => salt,
            None => Salt::generate().map_err(|error| StoreError::Broken(error.to_string()))?,
        };
        Ok(Whose { subject, salt, stands })
    }

    /// Keeps what the personal data of a call are digested with, since it is about to run. Where another call was faster,
    /// that of the other one stands.
    pub(crate) async fn keep(&self, whose: &Whose) -> Result<(), StoreError> {
        if whose.stands.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let (subject, salt) = (whose.subject, whose.salt.clone());
        let keep = move |rows: &mut dyn Rows| match rows.salt(subject)? {
            Some(_) => Ok(()),
            None => rows.put_salt(subject, &salt),
        };
        self.write(keep).await
    }

    /// How many actions are a subject's; `None` where nothing was kept, or all of it is erased already.
    pub(crate) async fn actions_of(&self, subject: Subject) -> Result<Option<usize>, StoreError> {
        self.list(move |rows| rows.salt(subject)?.map(|_| rows.actions_of(subject)).transpose()).await
    }

    /// Makes the personal data of a subject unreadable, on the record. `spares`: not where an action of theirs is in
    /// doubt.
    pub(crate) async fn erase(&self, subject: Subject, spares: bool, record: Record) -> Result<Erasing, StoreError> {
        self.write(move |rows| {
            if rows.salt(subject)?.is_none() {
                return Ok(Erasing::Nobody);
            }
            // INVARIANT (one moment): what opens after it was counted has another salt.
            let in_doubt = if spares { rows.in_doubt_of(subject)? } else { 0 };
            if in_doubt > 0 {
                return Ok(Erasing::InDoubt(in_doubt));
            }
            rows.erase_salt(subject)?;
            transact::append(rows, &record)?;
            Ok(Erasing::Erased)
        })
        .await
    }
}

impl Whose {
    pub(crate) fn salt(&self) -> &Salt {
        &self.salt
    }
}
