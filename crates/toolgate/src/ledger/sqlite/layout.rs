//! The tables of the file, and what tells them from those of others.
//!
//! Keys are random: a table that is ordered by them is written all over. So rows are appended by number, and changed where
//! they lie while they are still among the last; a small index leads from the first half of a key to the number. Two keys
//! may share that half: the row holds the whole.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::super::StoreError;
use super::super::rows::Stored;
use super::trouble::broken;
use crate::json::Digest;

/// Marks a file as a ledger: `TGat`.
const APPLICATION_ID: i32 = 0x5447_6174;

/// The version of the tables that this code reads and writes.
const VERSION: i32 = 3;

/// What may be asked for stands in columns of its own. What a call carries stands sealed: its arguments and facts in
/// `contents`, the stored reply in `answers`, under the gate's key and, where `salt` names one, that salt.
///
/// Answers have a table of their own, so that a row does not outgrow its page when its action is done.
///
/// Rows of salts are never removed, and an erased one is overwritten where it lies: nothing moves them about, so no copy
/// of one is left in a corner of a page.
const TABLES: &str = "
    CREATE TABLE gate_key (one INTEGER PRIMARY KEY CHECK (one = 1), fingerprint BLOB NOT NULL) STRICT;
    CREATE TABLE owners (id TEXT PRIMARY KEY NOT NULL) STRICT;
    CREATE TABLE entry_keys (half BLOB NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (half, id)) STRICT, WITHOUT ROWID;
    CREATE TABLE entries (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL,
        revision INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        state TEXT NOT NULL,
        owner TEXT,
        lease_end INTEGER,
        at INTEGER,
        lane_version INTEGER,
        lapses_at INTEGER,
        claim TEXT,
        claim_until INTEGER,
        first_ref TEXT NOT NULL,
        tool TEXT NOT NULL,
        tenant TEXT NOT NULL,
        issuer TEXT NOT NULL,
        principal TEXT NOT NULL,
        run TEXT NOT NULL,
        args_digest BLOB NOT NULL,
        lane BLOB NOT NULL,
        keeps_lane INTEGER NOT NULL,
        retain_ms INTEGER NOT NULL,
        approval TEXT,
        holds TEXT,
        subject BLOB,
        salt INTEGER,
        contents BLOB NOT NULL,
        CHECK (state <> 'open' OR owner IS NOT NULL AND lease_end IS NOT NULL),
        CHECK ((lapses_at IS NOT NULL) = (state IN ('done', 'failed')))
    ) STRICT;
    CREATE INDEX entries_open ON entries (owner, lease_end) WHERE state = 'open';
    CREATE INDEX entries_unknown ON entries (id) WHERE state = 'unknown';
    CREATE INDEX entries_first ON entries (first_ref);
    CREATE INDEX entries_closed ON entries (lapses_at) WHERE lapses_at IS NOT NULL;
    CREATE TABLE answers (id INTEGER PRIMARY KEY, sealed BLOB NOT NULL) STRICT;
    CREATE TABLE lane_keys (half BLOB NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (half, id)) STRICT, WITHOUT ROWID;
    CREATE TABLE lanes (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL,
        version INTEGER NOT NULL,
        needed_until INTEGER NOT NULL,
        holder BLOB
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
    CREATE TABLE salts (id INTEGER PRIMARY KEY, subject BLOB NOT NULL, salt BLOB NOT NULL) STRICT;
    CREATE INDEX salts_subject ON salts (subject);
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
    CREATE INDEX approvals_past ON approvals (expires_at);
    CREATE INDEX approvals_pending ON approvals (tenant, principal, expires_at) WHERE state = 'pending';
    CREATE TABLE notes (
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        scope TEXT NOT NULL,
        until INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (kind, key)
    ) STRICT;
    CREATE INDEX notes_scope ON notes (kind, scope);
    CREATE INDEX notes_past ON notes (until);
    CREATE TABLE records (
        seq INTEGER PRIMARY KEY CHECK (seq > 0),
        ref TEXT NOT NULL,
        previous BLOB NOT NULL,
        hash BLOB NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX records_ref ON records (ref);
";

/// What a database holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Nothing,
    /// A ledger, made with the key of this fingerprint.
    Ledger(Digest),
}

/// Refuses a database of another program, and tables that this code does not know. In a transaction, because another
/// process may be making the tables.
pub(super) fn content(connection: &Transaction<'_>) -> Stored<Content> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    match (application, version) {
        (APPLICATION_ID, VERSION) => fingerprint(connection).map(Content::Ledger),
        (APPLICATION_ID, newer) if newer > VERSION => Err(StoreError::Broken(format!(
            "it was written by a newer version (its tables are of version {newer}, this one knows {VERSION}); \
             use that version, or another file"
        ))),
        (APPLICATION_ID, older) => Err(StoreError::Broken(format!(
            "it was written before the first release (its tables are of version {older}, this one knows {VERSION}); \
             name another file, and keep this one for the program that wrote it"
        ))),
        (0, 0) => {
            let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            if tables == 0 { Ok(Content::Nothing) } else { Err(broken(FOREIGN)) }
        }
        _ => Err(broken(FOREIGN)),
    }
}

/// Makes the tables of a ledger whose key has this fingerprint.
pub(super) fn create(transaction: &Transaction<'_>, fingerprint: Digest) -> Stored<()> {
    transaction.execute_batch(TABLES)?;
    transaction.execute("INSERT INTO gate_key (one, fingerprint) VALUES (1, ?1)", params![fingerprint.as_bytes()])?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(())
}

fn fingerprint(connection: &Connection) -> Stored<Digest> {
    let found = connection.query_row("SELECT fingerprint FROM gate_key", [], |row| row.get::<_, [u8; 32]>(0));
    found.optional()?.map(Digest::from).ok_or_else(|| broken("it does not say which key it was made with"))
}

const FOREIGN: &str = "it holds the data of another program; name another file";
