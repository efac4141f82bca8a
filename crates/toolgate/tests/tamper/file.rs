//! The file, as any program sees it.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use toolgate::audit::Sealed;
use toolgate::json::Digest;

/// The records that a file holds, or why they cannot be read.
pub(crate) fn records(path: &Path) -> Result<Vec<Sealed>, String> {
    let read = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mut rows = connection.prepare("SELECT seq, ref, previous, hash, body FROM records ORDER BY seq")?;
        let sealed = |row: &rusqlite::Row<'_>| {
            Ok(Sealed {
                seq: row.get::<_, i64>(0)?.cast_unsigned(),
                reference: row.get(1)?,
                previous: Digest::from(row.get::<_, [u8; 32]>(2)?),
                hash: Digest::from(row.get::<_, [u8; 32]>(3)?),
                body: row.get(4)?,
            })
        };
        let records: rusqlite::Result<Vec<Sealed>> = rows.query_map([], sealed)?.collect();
        records
    };
    read().map_err(|error| error.to_string())
}

/// A connection that holds nothing to its types and bounds.
pub(crate) fn lax(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA synchronous = OFF;
             PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = replace(replace(sql, 'STRICT', ''), 'NOT NULL', '') WHERE name = 'records';",
        )
        .unwrap();
    drop(connection);
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF").unwrap();
    connection
}
