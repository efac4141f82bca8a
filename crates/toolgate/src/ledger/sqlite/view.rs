//! A ledger that is only looked at.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::layout::{Content, content};
use super::trouble::broken;
use super::worker::Worker;
use super::{PATIENCE, STATEMENTS};
use crate::ledger::rows::{Rows, Stored, Transact};
use crate::ledger::store::Pending;
use crate::ledger::{Owner, StoreError};
use crate::vault::GateKey;

/// A ledger in an SQLite file that may be a copy, on a medium that cannot be written.
pub(in crate::ledger) struct SqliteView {
    reader: Worker,
    /// Of nothing: what is sealed is not read by a view.
    key: GateKey,
    /// Nobody: a view opens no entries.
    nobody: Owner,
}

impl SqliteView {
    pub(in crate::ledger) fn open(path: &Path) -> Stored<Self> {
        let file = path.display().to_string();
        let start = || {
            let connection = match (connect(path), log_bytes(path)) {
                (Ok(connection), _) => connection,
                // SQLite shares a log by files beside it, which may not be made everywhere. Without a log nobody
                // needs them.
                (Err(_), 0) if path.is_file() => connect(&immutable(path))?,
                (Err(error), 0) => return Err(error),
                (Err(_), _) => return Err(broken(LOG)),
            };
            Worker::reader("ledger-reader", &file, connection, None)
        };
        let reader = start().map_err(|error| error.of(&file))?;
        let key = GateKey::generate().map_err(|error| StoreError::from(error).of(&file))?;
        Ok(Self { reader, key, nobody: Owner(String::new()) })
    }

    pub(in crate::ledger) fn key(&self) -> &GateKey {
        &self.key
    }
}

impl Transact for SqliteView {
    fn owner(&self) -> &Owner {
        &self.nobody
    }

    /// Nobody is known to be dead: a view holds no lock by which that could be told.
    fn dead(&self, _: Vec<Owner>) -> Pending<'_, Vec<Owner>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn write<T, F>(&self, _job: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&mut dyn Rows) -> Stored<T> + Send + 'static,
    {
        Box::pin(std::future::ready(Err(broken("the store was opened to be looked at, and cannot be written"))))
    }

    fn read<T, F>(&self, job: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Rows) -> Stored<T> + Send + 'static,
    {
        self.reader.submit(move |tables| job(tables))
    }
}

fn connect(path: &Path) -> Stored<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "trusted_schema", false)?;
    match content(&Transaction::new_unchecked(&connection, TransactionBehavior::Deferred)?)? {
        Content::Ledger(_) => {}
        Content::Nothing => return Err(StoreError::Broken("it holds nothing yet".into())),
    }
    Ok(connection)
}

const LOG: &str = "it cannot be read together with its log, the file beside it that ends in -wal; copy both to a \
                   folder that can be written, and look at the copy";

/// How much the log beside a file holds.
///
/// INVARIANT (nothing left out): a file whose log still holds something is never read without it. A record would look
/// whole that lacks its end.
fn log_bytes(path: &Path) -> u64 {
    std::fs::metadata(format!("{}-wal", path.display())).map_or(0, |log| log.len())
}

/// The file, for a reader that makes nothing beside it.
fn immutable(path: &Path) -> PathBuf {
    let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{escaped}?immutable=1").into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::ledger::sqlite::SqliteLedger;

    /// Rights bind no administrator, so this reads as it is read where nothing can be made.
    #[test]
    fn without_a_log_it_is_read_with_nothing_made_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("led?ger%.db");
        drop(SqliteLedger::open(&folder.path().join("ledger.db"), None).unwrap());
        std::fs::rename(folder.path().join("ledger.db"), &path).unwrap();
        std::fs::remove_dir_all(folder.path().join("ledger.db.owners")).unwrap();
        std::fs::remove_file(folder.path().join("ledger.db.key")).unwrap();
        assert_eq!(log_bytes(&path), 0);
        drop(connect(&immutable(&path)).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
