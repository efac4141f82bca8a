//! A ledger that holds very many entries already, written straight into its tables.

use std::path::Path;

use rusqlite::Connection;
use toolgate::ledger::Store;

/// Rows a transaction.
const PART: u64 = 250_000;

/// Fills the ledger at `path` with done entries under random keys, each with an answer and a lane. Their records are left
/// out: they are only appended, and nothing of the past is read to chain the next one.
pub(crate) fn fill(path: &Path, entries: u64) {
    drop(Store::sqlite(path).unwrap());
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000;")
        .unwrap();
    let mut filled = 0;
    while filled < entries {
        let part = PART.min(entries - filled);
        let sql = format!(
            "BEGIN;
             INSERT INTO entries (key, revision, attempt, state, at, lane_version, lapses_at, first_ref, tool, tenant,
                 issuer, principal, run, args_digest, lane, keeps_lane, retain_ms, contents)
             WITH RECURSIVE numbers (n) AS (SELECT {filled} + 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {filled} + {part})
             SELECT randomblob(32), 2, 1, 'done', 1796000000000 + n, 2, 1796000000000 + n + 86400000000,
                 '01JDY2V0M1W5K3S9Z8X7C6B5A4', 'create_refund', 'acme', 'local', 'alice', 'default', randomblob(32),
                 randomblob(32), 1, 86400000000, randomblob(225) FROM numbers;
             INSERT INTO answers (id, sealed) SELECT id, randomblob(228) FROM entries WHERE id > {filled};
             INSERT INTO lanes (key, version, needed_until)
                 SELECT lane, 2, lapses_at + 86400000 FROM entries WHERE id > {filled};
             COMMIT;"
        );
        connection.execute_batch(&sql).unwrap();
        filled += part;
    }
    connection
        .execute_batch(
            "INSERT INTO entry_keys (half, id) SELECT substr(key, 1, 16), id FROM entries ORDER BY 1;
             INSERT INTO lane_keys (half, id) SELECT substr(key, 1, 16), id FROM lanes ORDER BY 1;",
        )
        .unwrap();
}
