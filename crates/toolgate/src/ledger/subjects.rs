//! Whose personal data a store holds: the salts by which they can be told and read, until somebody is erased.

use super::rows::{Rows, Stored};
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

impl Store {
    /// What the personal data of this name within the tenant are digested and sealed with: made where there is none.
    pub(crate) async fn salt(&self, tenant: &str, name: &str) -> Result<Salt, StoreError> {
        let subject = self.key().subject(tenant, name);
        if let Some(salt) = self.read(move |rows| rows.salt(subject)).await? {
            return Ok(salt);
        }
        self.write(move |rows| salt_of(rows, subject)).await
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

fn salt_of(rows: &mut dyn Rows, subject: Subject) -> Stored<Salt> {
    if let Some(salt) = rows.salt(subject)? {
        return Ok(salt);
    }
    let salt = Salt::generate().map_err(|error| StoreError::Broken(error.to_string()))?;
    rows.put_salt(subject, &salt)?;
    Ok(salt)
}
