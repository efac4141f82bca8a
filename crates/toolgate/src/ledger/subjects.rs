//! Whose personal data a store holds: the salts by which they can be told and read, until somebody is erased.

use super::rows::{Rows, Stored};
use super::transact;
use super::{Entry, State, Store, StoreError};
use crate::audit::Record;
use crate::vault::{Salt, Subject};

/// What the ledger holds of one subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holdings {
    /// Actions, whatever became of them.
    pub(crate) actions: usize,
    /// Those that run, or of which nobody knows how they ended.
    pub(crate) in_doubt: usize,
}

/// How many entries are looked through at once: no call waits behind it.
const PAGE: usize = 500;

impl Store {
    /// What the personal data of this name within the tenant are digested and sealed with: made where there is none.
    pub(crate) async fn salt(&self, tenant: &str, name: &str) -> Result<Salt, StoreError> {
        let subject = self.key().subject(tenant, name);
        if let Some(salt) = self.read(move |rows| rows.salt(subject)).await? {
            return Ok(salt);
        }
        self.write(move |rows| salt_of(rows, subject)).await
    }

    /// What it holds of a subject; `None` where nothing was kept, or all of it is erased already.
    pub(crate) async fn holdings(&self, subject: Subject) -> Result<Option<Holdings>, StoreError> {
        if self.read(move |rows| rows.salt(subject)).await?.is_none() {
            return Ok(None);
        }
        let mut holdings = Holdings::default();
        let mut before = u64::MAX;
        loop {
            let page = self.list(move |rows| rows.entries_before(before, PAGE)).await?;
            let Some((last, _)) = page.last() else { return Ok(Some(holdings)) };
            before = *last;
            let theirs = |(_, entry): &&(u64, Entry)| entry.action.subject == Some(subject) && !entry.erased;
            for (_, entry) in page.iter().filter(theirs) {
                holdings.actions += 1;
                holdings.in_doubt += match entry.state {
                    State::Open { .. } | State::Unknown { .. } => 1,
                    State::Done { .. } | State::Failed { .. } => 0,
                };
            }
        }
    }

    /// Makes the personal data of a subject unreadable, on the record. `false`: there was nothing, and nothing was written.
    pub(crate) async fn erase(&self, subject: Subject, record: Record) -> Result<bool, StoreError> {
        let erase = move |rows: &mut dyn Rows| {
            let erased = rows.erase_salt(subject)?;
            if erased {
                transact::append(rows, &record)?;
            }
            Ok(erased)
        };
        self.write(erase).await
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
