//! The ledger in one SQLite file, which several processes may share.
//!
//! All writes of a process go through one thread, which commits together what waits; the reads of calls have a thread and a
//! connection of their own, and so have lists and checkpoints. Each process holds the lock of its owner file, so that the others can tell when it has
//! ended ([`owners`]).

mod checkpoints;
mod entries;
mod holders;
mod layout;
mod owners;
mod raw;
mod rows;
mod sealing;
mod trouble;
mod view;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use tokio::task::spawn_blocking;

use self::checkpoints::Checkpoints;
use self::layout::{Content, content};
use self::owners::OwnerLock;
use self::sealing::Vault;
use self::trouble::{READ_ONLY, broken};
use self::worker::Worker;
use super::rows::{Rows, Stored, Transact};
use super::store::Pending;
use super::{Owner, StoreError};
use crate::json::Digest;
use crate::vault::GateKey;

pub(super) use self::view::SqliteView;

/// How long a transaction waits for those of other processes.
const PATIENCE: Duration = Duration::from_secs(5);

/// Checkpoints copy the log back into the file beside the writing. Should they not keep up, the writer makes one at this
/// many pages of log, at the price of a slow commit.
const LOG_PAGES: i32 = 64 << 10;

/// A log that begins anew is cut to this many bytes.
const LOG_BYTES: i32 = 64 << 20;

/// How much of the file a connection that writes or reads for calls keeps in memory, in KiB.
const CACHE: i32 = 64 << 10;

/// No statement is compiled twice.
const STATEMENTS: usize = 64;

/// A ledger in an SQLite file. The fields fall in this order: the writer does what still waits, the reader ends, and
/// only then the lock of this process is gone.
pub(super) struct SqliteLedger {
    writer: Worker,
    reader: Worker,
    /// It reads what people ask for, which may be long.
    lister: Worker,
    vault: Arc<Vault>,
    /// Whether the log still holds what was erased, because somebody reads an old moment of it.
    stained: Arc<AtomicBool>,
    lock: OwnerLock,
}

impl SqliteLedger {
    /// Opens the ledger with this key, or with the one in the file beside it.
    pub(super) fn open(path: &Path, key: Option<GateKey>) -> Stored<Self> {
        let file = path.display().to_string();
        Self::start(path, &file, key).map_err(|error| match error {
            StoreError::Busy => StoreError::Broken(format!("the store {file} stayed locked by {}", locked_by(path))),
            StoreError::Broken(_) => error.of(&file),
        })
    }

    fn start(path: &Path, file: &str, key: Option<GateKey>) -> Stored<Self> {
        let writing = connect(path)?;
        if writing.is_readonly("main")? {
            return Err(broken(READ_ONLY));
        }
        // Asked before anything is changed: the file may belong to somebody else.
        let found = content(&Transaction::new_unchecked(&writing, TransactionBehavior::Deferred)?)?;
        log_ahead(&writing)?;
        let beside = Beside::of(&writing)?;
        let given = key.is_some();
        let key = key.map_or_else(|| beside.key(found), Ok)?;
        let fingerprint = key.fingerprint();

        let transaction = Transaction::new_unchecked(&writing, TransactionBehavior::Immediate)?;
        match content(&transaction)? {
            Content::Nothing => layout::create(&transaction, fingerprint)?,
            Content::Ledger(made_with) => beside.same(made_with, fingerprint, given)?,
        }
        let lock = owners::enter(&transaction, beside.owners)?;
        transaction.commit()?;
        // A process that was killed may have left a log that holds what it had just erased.
        let _ = checkpoints::cut(&writing);

        let vault = Arc::new(Vault::new(key));
        let reader = |name: &str| {
            let reading = connect(path)?;
            reading.pragma_update(None, "query_only", true)?;
            Worker::reader(name, file, reading, Some(Arc::clone(&vault)))
        };
        let (reader, lister) = (reader("ledger-reader")?, reader("ledger-lister")?);
        let stained = Arc::new(AtomicBool::new(false));
        let checkpoints = Checkpoints::new(connect(path)?, Arc::clone(&stained))?;
        let writer = Worker::writer(file, writing, Arc::clone(&vault), checkpoints)?;
        Ok(Self { writer, reader, lister, vault, stained, lock })
    }

    pub(super) fn key(&self) -> &GateKey {
        self.vault.key()
    }

    pub(super) fn is_stained(&self) -> bool {
        self.stained.load(Ordering::SeqCst)
    }

    /// Lets the file grow no further, as a full disk would; `false` makes room again.
    #[cfg(test)]
    pub(super) fn fill_disk(&self, full: bool) -> Pending<'_, ()> {
        self.writer.submit(move |tables| {
            let connection = tables.connection();
            let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            let most = if full { pages } else { i64::from(u32::MAX) - 1 };
            Ok(connection.pragma_update_and_check(None, "max_page_count", most, |_| Ok(()))?)
        })
    }
}

/// What lies beside the real file: the same for all names that lead to it.
struct Beside {
    /// The folder of the owner files.
    owners: PathBuf,
    /// Where the key is, if nobody gives one.
    key: PathBuf,
}

impl Beside {
    fn of(connection: &Connection) -> Stored<Self> {
        match connection.path() {
            Some(file) if !file.is_empty() => {
                Ok(Self { owners: format!("{file}.owners").into(), key: format!("{file}.key").into() })
            }
            Some(_) | None => Err(broken("it is not a file; name a file whose path is valid UTF-8")),
        }
    }

    /// The key in the file, which is made with the ledger. It is never made for a ledger that is there: what that holds
    /// can be read with its own key alone.
    fn key(&self, found: Content) -> Stored<GateKey> {
        match found {
            Content::Ledger(_) if !self.key.exists() => Err(StoreError::Broken(format!(
                "its key file {} is not there, and what it holds cannot be read without; bring that file back, or give \
                 the key that it was made with",
                self.key.display()
            ))),
            Content::Ledger(_) | Content::Nothing => Ok(GateKey::in_file(&self.key)?),
        }
    }

    /// Refuses another key than the one that the ledger was made with.
    fn same(&self, made_with: Digest, key: Digest, given: bool) -> Stored<()> {
        let file = self.key.display();
        if made_with == key {
            Ok(())
        } else if given {
            Err(StoreError::Broken(format!(
                "it was made with another key than the one that is given; give that one, or none if it was {file}"
            )))
        } else {
            Err(StoreError::Broken(format!(
                "its key file {file} holds another key than the one that it was made with; bring the first {file} back, \
                 or give the key that it was made with"
            )))
        }
    }
}

impl Transact for SqliteLedger {
    fn owner(&self) -> &Owner {
        self.lock.owner()
    }

    fn dead(&self, owners: Vec<Owner>) -> Pending<'_, Vec<Owner>> {
        let folder = self.lock.folder().to_owned();
        Box::pin(async move {
            let tested = spawn_blocking(move || owners::dead(&folder, owners)).await;
            // A runtime that ends tests nothing any more: they count as alive.
            Ok(tested.unwrap_or_default())
        })
    }

    fn write<T, F>(&self, job: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&mut dyn Rows) -> Stored<T> + Send + 'static,
    {
        self.writer.submit(move |tables| job(tables))
    }

    fn read<T, F>(&self, job: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Rows) -> Stored<T> + Send + 'static,
    {
        self.reader.submit(move |tables| job(tables))
    }

    fn list<T, F>(&self, job: F) -> Pending<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Rows) -> Stored<T> + Send + 'static,
    {
        self.lister.submit(move |tables| job(tables))
    }
}

fn connect(path: &Path) -> Stored<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -CACHE)?;
    // What a job could have to take back is kept in memory.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // What is removed or overwritten is gone from its page.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// Turns the write-ahead log on. Two processes that do so at once may collide in a way that SQLite does not wait out.
fn log_ahead(connection: &Connection) -> Stored<()> {
    let begun = Instant::now();
    let mode = loop {
        let said = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match said.map_err(StoreError::from) {
            Err(StoreError::Busy) if begun.elapsed() < PATIENCE => thread::park_timeout(Duration::from_millis(5)),
            said => break said?,
        }
    };
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(broken(
            "its file system cannot share a write-ahead log; keep the store on a local disk, not in memory",
        ));
    }
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    Ok(())
}

/// Who keeps the others out, and what to do.
fn locked_by(path: &Path) -> String {
    let holders: Vec<String> = holders::holders(path).iter().map(u32::to_string).collect();
    match holders.as_slice() {
        [] => "another process; see which one holds it, then try again".into(),
        [pid] => format!("process {pid}; let it end, then try again"),
        pids => format!("the processes {}; let them end, then try again", pids.join(", ")),
    }
}
