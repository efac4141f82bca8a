//! A process of the gate is killed in the middle of a refund; others find out what became of it.

use std::path::Path;
use std::process::{Child, Stdio};

use rusqlite::{Connection, OpenFlags};
use serde_json::json;

use super::{lock, refund, until};
use crate::door::{self, Asker, Door, InProcess, toolgate};
use crate::folder::Folder;
use crate::scenario::{Call, span};

const LEDGER: &str = "state/toolgate.db";
const SHOP: &str = "state/shop.db";

/// A shop whose databases are there.
fn shop() -> Folder {
    let folder = Folder::shop();
    let looked = door::call(folder.path(), "alice@acme", "get_order", &json!({ "order_id": "ord_4821" }));
    assert_eq!(looked.exit, Some(0), "{looked:?}");
    folder
}

/// A process that refunds 1500 of `ord_4821` for alice.
fn refunding(folder: &Folder) -> Child {
    let arguments = refund("ord_4821", 1500).to_string();
    let words = ["call", folder.path().to_str().unwrap(), "create_refund", &arguments, "--as", "alice@acme", "--json"];
    toolgate(&words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// SIGKILL: it can do nothing about it.
fn kill(mut child: Child) {
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "it ended by itself before it was killed");
}

/// A shop in which nobody knows whether alice's refund of 1500 of `ord_4821` was made.
pub(super) fn in_doubt() -> Folder {
    let folder = shop();
    // However long a story takes, nothing proves meanwhile that it did not happen.
    folder.edit("tools/create_refund.toml", "absent_after = \"30s\"", "absent_after = \"1h\"");
    let database = lock(&folder.join(SHOP));
    let child = refunding(&folder);
    wait_for_the_open_entry(&folder);
    kill(child);
    drop(database);
    folder
}

fn count(database: &Path, sql: &str) -> i64 {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn wait_for_the_open_entry(folder: &Folder) {
    until("the entry is open", || {
        count(&folder.join(LEDGER), "select count(*) from entries where state = 'open'") == 1
    });
}

#[test]
fn killed_after_the_refund_and_before_its_entry_is_closed_it_is_found_and_not_made_again() {
    let folder = shop();
    let database = lock(&folder.join(SHOP));
    let child = refunding(&folder);
    wait_for_the_open_entry(&folder);
    // From here on the process can make the refund, but cannot close the entry.
    let ledger = lock(&folder.join(LEDGER));
    drop(database);
    until("the refund is made", || folder.number("select count(*) from refunds") == 1);
    kill(child);
    drop(ledger);
    assert_eq!(count(&folder.join(LEDGER), "select count(*) from entries where state = 'open'"), 1);

    for _ in 0..2 {
        let again = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_4821", 1500));
        let reply = again.json();
        assert_eq!(again.exit, Some(0), "{again:?}");
        assert_eq!(reply["result"]["refund_id"], "re_1");
        assert_eq!(reply["result"]["amount_cents"], 1500);
        assert_eq!((&reply["effect"], &reply["replayed"]), (&json!("done"), &json!(true)));
    }
    assert_eq!(folder.rows("select count(*), sum(amount_cents) from refunds"), json!([[1, 1500]]));
    assert_eq!(folder.number("select refunded_cents from orders where id = 'ord_4821'"), 3500);
    door::verify(folder.path()).unwrap();
}

#[test]
fn killed_before_the_refund_it_is_unknown_until_its_absence_is_proof() {
    let folder = shop();
    let database = lock(&folder.join(SHOP));
    let child = refunding(&folder);
    wait_for_the_open_entry(&folder);
    kill(child);
    let clock = door::manual_clock();
    drop(database);
    assert_eq!(folder.number("select count(*) from refunds"), 0);

    // Nobody knows: its own call is told so, another on the same order too, and a look is free.
    let again = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_4821", 1500));
    assert_eq!(again.exit, Some(5), "{again:?}");
    assert_eq!(again.json()["error"]["code"], "outcome_unknown");
    assert_eq!(again.json()["error"]["effect"], "unknown");
    let other = door::call(folder.path(), "mia@acme", "create_refund", &refund("ord_4821", 100));
    assert_eq!(other.exit, Some(3), "{other:?}");
    assert_eq!(other.json()["error"]["code"], "outcome_unknown");
    assert_eq!(other.json()["error"]["effect"], "none");
    assert_eq!(other.json()["error"]["fix"], "operator");
    let elsewhere = door::call(folder.path(), "mia@acme", "create_refund", &refund("ord_1001", 100));
    assert_eq!(elsewhere.exit, Some(0), "{elsewhere:?}");
    let looked = door::call(folder.path(), "mia@acme", "get_order", &json!({ "order_id": "ord_4821" }));
    assert_eq!(looked.exit, Some(0), "{looked:?}");

    // The lease is the deadline of 5 s and 5 s more; absence is proof 30 s after its end.
    let mut door = InProcess::of(folder, Some(clock));
    let call = Call::new("create_refund", refund("ord_4821", 1500));
    door.advance(span("33s"));
    let early = door.call(Asker::named("alice@acme"), &call);
    assert_eq!(early.reply["error"]["code"], "outcome_unknown", "{}", early.text);
    door.advance(span("8s"));
    let other = door.call(Asker::named("mia@acme"), &Call::new("create_refund", refund("ord_4821", 100)));
    assert_eq!(other.reply["effect"], "done", "{}", other.text);
    let at_last = door.call(Asker::named("alice@acme"), &call);
    assert_eq!(
        (&at_last.reply["effect"], &at_last.reply["replayed"]),
        (&json!("done"), &json!(false)),
        "{}",
        at_last.text
    );
    assert_eq!(
        door.rows("select order_id, amount_cents from refunds order by number"),
        json!([["ord_1001", 100], ["ord_4821", 100], ["ord_4821", 1500]])
    );
    door.verify().unwrap();
}
