//! What data cannot tell: callers that go away, processes that are killed, races, broken stores and broken folders.

mod abuse;
mod admit;
mod approvals;
mod audit;
mod cases;
mod declared;
mod drained;
mod dropped;
mod faults;
mod first_hour;
mod fixed;
mod grants;
mod http;
mod imported;
mod interrupted;
mod killed;
mod ledger;
mod manners;
mod mcp;
mod mcp_http;
mod observe;
mod operations;
mod policies;
mod race;
mod redacted;
mod reviewed;
mod runs;
mod set_aside;
mod shapes;
mod shell;
mod stops;
mod store;
mod streams;
mod tags;
mod tokens;
mod told;
mod tried;
mod unread;
mod vouched;
mod warnings;

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

/// The arguments of a refund in the shop.
fn refund(order: &str, amount_cents: i64) -> Value {
    json!({ "order_id": order, "amount_cents": amount_cents, "currency": "USD", "reason": "damaged" })
}

/// Keeps everybody else from writing to an SQLite file, until it is dropped.
fn lock(file: &Path) -> Connection {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    connection.busy_timeout(Duration::from_secs(2)).unwrap();
    connection.execute_batch("begin immediate").unwrap();
    connection
}

/// Waits until something is so.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(4), "still not so: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
