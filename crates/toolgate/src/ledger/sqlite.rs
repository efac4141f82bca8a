//! The ledger in one SQLite file, which several processes may share.
//!
//! All writes of a process go through one thread, which commits together what waits; the reads of calls have a thread and a
//! connection of their own, and so have lists and checkpoints. Each process holds the lock of its owner file, so that the others can tell when it has
//! ended ([`owners`]).

mod holders;
mod owners;
mod rows;
mod view;
mod worker;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use self::owners::OwnerLock;
use self::worker::Worker;
use super::store::Pending;
use super::transact::{Rows, Stored, Transact};
use super::{Owner, StoreError};
use crate::vault::GateKey;

pub(super) use self::view::SqliteView;

/// Marks a file as a ledger: `TGat`.
const APPLICATION_ID: i32 = 0x5447_6174;

/// The version of the tables that this code reads and writes.
const VERSION: i32 = 1;

/// How long a transaction waits for those of other processes.
const PATIENCE: Duration = Duration::from_secs(5);

/// Checkpoints copy the log back into the file beside the writing. Should they not keep up, the writer makes one at this
/// many pages of log, at the price of a slow commit.
const LOG_PAGES: i32 = 4000;

/// A log that was copied back is cut to this many bytes.
const LOG_BYTES: i32 = 64 << 20;

/// No statement is compiled twice.
const STATEMENTS: usize = 64;

/// Rows of entries are appended and found by an index on their key: keys are random, and would scatter the writes.
const TABLES: &str = "
    CREATE TABLE owners (id TEXT PRIMARY KEY NOT NULL) STRICT;
    CREATE TABLE entries (
        key BLOB NOT NULL UNIQUE,
        state TEXT NOT NULL,
        owner TEXT REFERENCES owners (id),
        lease_end INTEGER,
        lapses_at INTEGER,
        body TEXT NOT NULL,
        CHECK ((owner IS NOT NULL) = (state = 'open') AND (lease_end IS NOT NULL) = (state = 'open')),
        CHECK ((lapses_at IS NOT NULL) = (state = 'done'))
    ) STRICT;
    CREATE INDEX entries_open ON entries (owner, lease_end) WHERE owner IS NOT NULL;
    CREATE INDEX entries_unknown ON entries (state) WHERE state = 'unknown';
    CREATE INDEX entries_done ON entries (lapses_at) WHERE lapses_at IS NOT NULL;
    CREATE TABLE lanes (
        key BLOB NOT NULL UNIQUE,
        version INTEGER NOT NULL,
        needed_until INTEGER NOT NULL,
        holder BLOB REFERENCES entries (key)
    ) STRICT;
    CREATE INDEX lanes_idle ON lanes (needed_until) WHERE holder IS NULL;
    CREATE TABLE counts (
        key BLOB NOT NULL,
        window INTEGER NOT NULL,
        count INTEGER NOT NULL,
        needed_until INTEGER NOT NULL,
        PRIMARY KEY (key, window)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX counts_past ON counts (needed_until);
    CREATE TABLE high_water (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        at INTEGER NOT NULL,
        boot TEXT NOT NULL,
        uptime INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE salts (subject BLOB PRIMARY KEY NOT NULL, salt BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE INDEX lanes_held ON lanes (holder) WHERE holder IS NOT NULL;
    CREATE TABLE approvals (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        tenant TEXT NOT NULL,
        principal TEXT NOT NULL,
        call BLOB NOT NULL,
        state TEXT NOT NULL,
        expires_at INTEGER NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX approvals_call ON approvals (call, principal, tenant);
    CREATE INDEX approvals_tenant ON approvals (tenant);
    CREATE INDEX approvals_pending ON approvals (tenant, principal, expires_at) WHERE state = 'pending';
    CREATE TABLE records (
        seq INTEGER PRIMARY KEY CHECK (seq > 0),
        ref TEXT NOT NULL,
        previous BLOB NOT NULL,
        hash BLOB NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX records_ref ON records (ref);
";

/// A ledger in an SQLite file. The fields fall in this order: the writer does what still waits, the reader ends, and
/// only then the lock of this process is gone.
pub(super) struct SqliteLedger {
    writer: Worker,
    reader: Worker,
    /// It reads what people ask for, which may be long.
    lister: Worker,
    key: GateKey,
    lock: OwnerLock,
}

/// What a database holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Nothing,
    Ledger,
}

impl SqliteLedger {
    pub(super) fn open(path: &Path, key: Option<GateKey>) -> Stored<Self> {
        let file = path.display().to_string();
        Self::start(path, &file, key).map_err(|error| match error {
            StoreError::Busy => StoreError::Broken(format!("the store {file} stayed locked by {}", locked_by(path))),
            StoreError::Broken(_) => error.of(&file),
        })
    }

    pub(super) fn key(&self) -> &GateKey {
        &self.key
    }

    fn start(path: &Path, file: &str, key: Option<GateKey>) -> Stored<Self> {
        let writing = connect(path)?;
        if writing.is_readonly("main")? {
            return Err(broken(READ_ONLY));
        }
        // Asked before anything is changed: the file may belong to somebody else.
        content(&Transaction::new_unchecked(&writing, TransactionBehavior::Deferred)?)?;
        log_ahead(&writing)?;
        let folder = owners_folder(&writing)?;
        let beside = || GateKey::in_file(&folder.with_extension("key"));
        let key = key.map_or_else(beside, Ok).map_err(|error| StoreError::Broken(error.to_string()))?;

        let transaction = Transaction::new_unchecked(&writing, TransactionBehavior::Immediate)?;
        if content(&transaction)? == Content::Nothing {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        let lock = owners::enter(&transaction, folder)?;
        transaction.commit()?;

        let reader = |name: &str| {
            let reading = connect(path)?;
            reading.pragma_update(None, "query_only", true)?;
            Worker::reader(name, file, reading)
        };
        let checkpoints = Worker::checkpoints(file, connect(path)?)?;
        let (reader, lister) = (reader("ledger-reader")?, reader("ledger-lister")?);
        Ok(Self { writer: Worker::writer(file, writing, checkpoints)?, reader, lister, key, lock })
    }
}

impl Transact for SqliteLedger {
    fn owner(&self) -> &Owner {
        self.lock.owner()
    }

    fn is_dead(&self, owner: &Owner) -> bool {
        self.lock.finds_dead(owner)
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
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// Refuses a database of another program, and tables that are newer than this code. In a transaction, because another
/// process may be making the tables.
fn content(connection: &Transaction<'_>) -> Stored<Content> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    match (application, version) {
        (APPLICATION_ID, VERSION) => Ok(Content::Ledger),
        (APPLICATION_ID, newer) if newer > VERSION => Err(StoreError::Broken(format!(
            "it was written by a newer version (its tables are of version {newer}, this one knows {VERSION}); \
             use that version, or another file"
        ))),
        (0, 0) => {
            let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            if tables == 0 { Ok(Content::Nothing) } else { Err(broken(FOREIGN)) }
        }
        _ => Err(broken(FOREIGN)),
    }
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

/// The folder of the owner files, beside the real file: the same for all names that lead to it.
fn owners_folder(connection: &Connection) -> Stored<PathBuf> {
    match connection.path() {
        Some(file) if !file.is_empty() => Ok(PathBuf::from(format!("{file}.owners"))),
        Some(_) | None => Err(broken("it is not a file; name a file whose path is valid UTF-8")),
    }
}

const READ_ONLY: &str = "it can be read but not written; open it without mode=ro, with the right to write, on a file \
                         system that can be written";
const FOREIGN: &str = "it holds the data of another program; name another file";

fn broken(text: &str) -> StoreError {
    StoreError::Broken(text.into())
}

impl StoreError {
    /// The same, naming the file.
    fn of(self, file: &str) -> Self {
        match self {
            Self::Broken(text) => Self::Broken(format!("the store {file}: {text}")),
            Self::Busy => Self::Busy,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let text = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => return Self::Busy,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => READ_ONLY,
            Some(ErrorCode::CannotOpen) => {
                "it cannot be opened; the path must name a file in a folder that exists, with the right to write both"
            }
            Some(ErrorCode::DiskFull) => "its disk is full; make room, then start the gate again",
            Some(ErrorCode::SystemIoFailure) => "its disk cannot be read or written; see to the disk first",
            Some(ErrorCode::NotADatabase) => "it is not a database; name another file",
            Some(ErrorCode::DatabaseCorrupt) => "it is damaged; keep it for examination, and bring back a copy",
            Some(ErrorCode::FileLockingProtocolFailed) => {
                "its locks do not work; keep the store on a local disk, not on a network file system"
            }
            _ => "a statement failed that should not; the file may have been changed by another program",
        };
        match error.sqlite_error() {
            Some(error) => Self::Broken(format!("{text} (SQLite code {})", error.extended_code)),
            None => broken(text),
        }
    }
}
