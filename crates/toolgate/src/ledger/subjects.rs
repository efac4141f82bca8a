//! Whose personal data a store holds: the salts by which they can be told and read, until somebody is erased.

use std::sync::atomic::{AtomicBool, Ordering};

use super::rows::Rows;
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

/// What the personal data of one call are digested with.
pub(crate) struct Whose {
    subject: Subject,
    salt: Salt,
    /// Whether it stands in the store, or did: what was erased never comes back.
    stands: AtomicBool,
}

/// How many entries are looked through at once: no call waits behind it.
const PAGE: usize = 500;

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

impl Whose {
    pub(crate) fn salt(&self) -> &Salt {
        &self.salt
    }
}
