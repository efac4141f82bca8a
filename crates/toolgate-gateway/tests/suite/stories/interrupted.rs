//! An interrupt lets what runs come to its end; a second one stops.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::{lock, refund, until};
use crate::door::{self, toolgate};
use crate::folder::Folder;

/// A refund that waits for the database, and what holds it.
fn waiting_refund(folder: &Folder) -> (Child, rusqlite::Connection) {
    door::call(folder.path(), "alice@acme", "get_order", &serde_json::json!({ "order_id": "ord_4821" }));
    let held = lock(&folder.join("state/shop.db"));
    let arguments = refund("ord_4821", 100).to_string();
    let mut command = toolgate(&["call", folder.path().to_str().unwrap(), "create_refund", &arguments, "--json"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let ledger = rusqlite::Connection::open(folder.join("state/toolgate.db")).unwrap();
    until("the refund is open", || {
        ledger.query_row("select count(*) from entries where state = 'open'", [], |row| row.get(0)).ok() == Some(1)
    });
    (child, held)
}

fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    sleep(Duration::from_millis(200));
}

#[test]
fn interrupted_once_a_write_comes_to_its_end() {
    let folder = Folder::shop();
    let (mut child, held) = waiting_refund(&folder);
    interrupt(&child);
    assert!(child.try_wait().unwrap().is_none(), "it still waits");
    drop(held);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["effect"], "done");
    assert!(String::from_utf8(output.stderr).unwrap().contains("interrupted: waiting"));
}

#[test]
fn interrupted_twice_it_stops_and_says_what_that_means() {
    let folder = Folder::shop();
    let (mut child, _held) = waiting_refund(&folder);
    interrupt(&child);
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(told.contains("stopped:"), "{told}");
}
