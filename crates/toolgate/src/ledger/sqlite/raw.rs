//! The record as its rows stand in the file, whatever another program wrote there.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};

use super::super::rows::Stored;
use crate::audit::verify;

/// In the order of their numbers, from one on.
pub(super) const ROWS: &str =
    "SELECT seq, ref, previous, hash, body FROM records WHERE seq >= ?1 ORDER BY seq LIMIT ?2";

/// A row, of which only the number is sure to be one.
pub(super) fn row(row: &Row<'_>) -> rusqlite::Result<verify::Row> {
    let text = |column| Ok::<_, rusqlite::Error>(text(row.get_ref(column)?));
    let hash = |column| Ok::<_, rusqlite::Error>(hash(row.get_ref(column)?));
    Ok(verify::Row::of(row.get(0)?, text(1)?, hash(2)?, hash(3)?, text(4)?))
}

fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Text(bytes) => String::from_utf8(bytes.to_vec()).ok(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    }
}

fn hash(value: ValueRef<'_>) -> Option<[u8; 32]> {
    match value {
        ValueRef::Blob(bytes) => bytes.try_into().ok(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => None,
    }
}

/// What is wrong with the table of the record and its indexes: what a row cannot show, such as one that is found by
/// its number and not by its attempt.
pub(super) fn damage(connection: &Connection) -> Stored<Option<String>> {
    let sql = "SELECT integrity_check FROM pragma_integrity_check('records') LIMIT 1";
    let found = connection.query_row(sql, [], |row| row.get::<_, Option<String>>(0)).optional()?.flatten();
    Ok(found.filter(|said| said != "ok"))
}
