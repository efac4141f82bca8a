//! A door that is asked to close lets what it took come to its end: no reply is lost, and no entry is left open.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use rusqlite::Connection as Database;
use serde_json::{Value, json};

use super::{lock, refund, until};
use crate::door;
use crate::folder::Folder;
use crate::serve::{Connection, Exchange, Serving, message};

/// What a client has seen.
#[derive(Default)]
struct Seen {
    replies: AtomicUsize,
    refunds: AtomicI64,
    /// Requests that the door had not taken when it closed.
    not_taken: AtomicUsize,
}

/// Posts refunds and looks at orders until the door is closed, on one connection for as long as that is open. A response
/// that breaks off fails the test (see [`Connection::receive`]).
fn talk(serving: &Serving, seen: &Seen, amounts: &AtomicI64) {
    let mut connection = None;
    loop {
        let Some(open) = connection.take().or_else(|| Connection::open(serving.address()).ok()) else { return };
        let mut open = open;
        let number = amounts.fetch_add(1, Ordering::SeqCst);
        let order = json!({ "order_id": "ord_1001" });
        let body = match number % 3 {
            0 => message(&[("get_order", &order)]),
            _ => message(&[("create_refund", &refund("ord_1001", number))]),
        };
        match open.post("/v1/calls", &[], &body.to_string()) {
            Exchange::Answered(response) => {
                seen.replies.fetch_add(1, Ordering::SeqCst);
                let reply = response.reply();
                if reply["effect"] == "done" {
                    assert_eq!(reply["replayed"], json!(false), "each of them is another refund: {reply}");
                    seen.refunds.fetch_add(1, Ordering::SeqCst);
                }
                if response.header("connection") != Some("close") {
                    connection = Some(open);
                }
            }
            Exchange::Closed => {
                seen.not_taken.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

fn number(folder: &Folder, sql: &str) -> i64 {
    Database::open(folder.join("state/toolgate.db")).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn under_load_no_reply_is_lost_and_no_entry_is_left_open() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let (seen, amounts) = (Seen::default(), AtomicI64::new(1));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| talk(&serving, &seen, &amounts));
        }
        until("they are at it", || seen.replies.load(Ordering::SeqCst) >= 30);
        // From here on refunds wait for the database, so that some run when the signal comes.
        let database = lock(&folder.join("state/shop.db"));
        until("a refund runs", || number(&folder, "select count(*) from entries where state = 'open'") > 0);
        serving.signal("-TERM");
        std::thread::sleep(Duration::from_millis(300));
        drop(database);
    });
    let (exit, told) = serving.end();
    assert_eq!(exit, Some(0), "{told}");
    assert!(told.contains("calls run") && told.contains("drained:"), "{told}");
    let refunds = folder.number("select count(*) from refunds");
    assert_eq!(seen.refunds.load(Ordering::SeqCst), refunds, "each refund that was made was answered");
    assert!(refunds > 0);
    assert_eq!(number(&folder, "select count(*) from entries where state = 'open'"), 0);
    door::verify(folder.path()).unwrap();
}

/// A refund that waits for the database, and what holds it.
fn waiting_refund(folder: &Folder, serving: &Serving) -> (std::thread::JoinHandle<Exchange>, Database) {
    let order = json!({ "order_id": "ord_4821" });
    assert_eq!(serving.call(&[("get_order", &order)]).status, 200);
    let database = lock(&folder.join("state/shop.db"));
    let mut connection = serving.connect();
    let waiting = std::thread::spawn(move || {
        let body = message(&[("create_refund", &refund("ord_4821", 100))]);
        connection.post("/v1/calls", &[], &body.to_string())
    });
    until("it runs", || number(folder, "select count(*) from entries where state = 'open'") == 1);
    (waiting, database)
}

#[test]
fn while_it_drains_it_takes_nobody_new_and_says_that_it_is_not_ready() {
    let folder = Folder::shop();
    let mut serving = Serving::start(folder.path(), &[]);
    let mut idle = serving.connect();
    let ready = format!("GET /readyz HTTP/1.1\r\nHost: {}\r\n\r\n", serving.address());
    assert_eq!(idle.answer(&ready).status, 200);
    let (waiting, database) = waiting_refund(&folder, &serving);
    serving.signal("-TERM");
    until("it takes nobody new", || Connection::open(serving.address()).is_err());
    // Whoever was there hears of it, unless their connection has been closed by now.
    if let Exchange::Answered(response) = idle.exchange(&ready) {
        assert_eq!((response.status, response.header("connection")), (503, Some("close")), "{response:?}");
    }
    assert!(serving.is_running(), "it waits for the refund");
    drop(database);
    let reply: Value = waiting.join().unwrap().answered().reply();
    assert_eq!(reply["effect"], "done");
    let (exit, told) = serving.end();
    assert_eq!(exit, Some(0), "{told}");
    door::verify(folder.path()).unwrap();
}

#[test]
fn asked_twice_it_stops_at_once() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let (waiting, _database) = waiting_refund(&folder, &serving);
    serving.signal("-INT");
    until("it takes nobody new", || Connection::open(serving.address()).is_err());
    serving.signal("-INT");
    let (exit, told) = serving.end();
    assert_eq!(exit, Some(130), "{told}");
    assert!(told.contains("stopped:"), "{told}");
    assert!(matches!(waiting.join().unwrap(), Exchange::Closed));
}
