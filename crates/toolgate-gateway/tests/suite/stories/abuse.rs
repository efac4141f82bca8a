//! The rows of `abuse.jsonl`, in `$TOOLGATE_CORPORA`, that are requests to a door: sent as they stand there.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;

use crate::folder::Folder;
use crate::serve::{Response, Serving};

/// The requests of the corpus that no door has a path for, and how many there are.
const OUT_OF_REACH: [(&str, usize); 1] = [("pages of an admin console, which there is none", 4)];
/// How many are sent.
const SENT: usize = 10;

/// One request, as the corpus tells it.
enum Told<'a> {
    /// The parts of a request.
    Http(&'a Value),
    /// The body of a message to the MCP endpoint.
    Body(&'a str),
    /// All of its bytes.
    Bytes(&'a str),
}

#[expect(clippy::print_stdout, reason = "it says what it skips")]
fn rows() -> Vec<Value> {
    let Some(corpora) = std::env::var_os("TOOLGATE_CORPORA") else {
        println!("skipped: TOOLGATE_CORPORA does not name the folder that holds abuse.jsonl");
        return Vec::new();
    };
    let path = Path::new(&corpora).join("abuse.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn told<'a>(row: &'a Value, variant: &'a Value) -> Option<Told<'a>> {
    if let Some(http) = variant.get("http") {
        return Some(Told::Http(http));
    }
    match variant["wire_raw"].as_str()? {
        bytes if bytes.starts_with("POST ") => Some(Told::Bytes(bytes)),
        body if row["given"] == "MCP endpoint" => Some(Told::Body(body)),
        _ => None,
    }
}

/// The text of a request, with what any request must have beside what is given.
fn request(http: &Value, address: SocketAddr) -> String {
    let text = |name: &str| http[name].as_str().unwrap();
    let given: Vec<(&str, &str)> = http["headers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|header| (header[0].as_str().unwrap(), header[1].as_str().unwrap()))
        .collect();
    let (address, length) = (address.to_string(), text("body").len().to_string());
    let own = [("Host", address.as_str()), ("Content-Type", "application/json"), ("Content-Length", &length)];
    let own = own.into_iter().filter(|(name, _)| !given.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
    let head: String = own.chain(given.iter().copied()).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{} {} HTTP/1.1\r\n{head}\r\n{}", text("method"), text("path"), text("body"))
}

/// Whether a request was stopped as the row wants it.
fn stopped(row: &Value, response: &Response) -> bool {
    match row["expect"]["outcome"].as_str().unwrap() {
        "http_reject" => (400..500).contains(&response.status),
        "reject_wire" => response.status == 400 && response.json()["error"]["code"] == -32600,
        other => panic!("no outcome of a request: {other}"),
    }
}

/// Whether a client chooses its session in it.
fn names_a_session(http: &Value) -> bool {
    http["headers"].as_array().unwrap().iter().any(|header| header[0] == "Mcp-Session-Id")
}

#[test]
fn abuse_of_a_door_is_stopped_as_the_corpus_wants_it() {
    let rows = rows();
    if rows.is_empty() {
        assert!(std::env::var_os("TOOLGATE_CORPORA").is_none(), "abuse.jsonl has no rows");
        return;
    }
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let (mut sent, mut out_of_reach) = (0, BTreeMap::new());
    for row in &rows {
        let alone = [row["input"].clone()];
        for variant in row["input"]["variants"].as_array().map_or(&alone[..], Vec::as_slice) {
            let name = format!("{} {}: {variant}", row["id"], row["threat"]);
            match told(row, variant) {
                None => continue,
                Some(Told::Http(http)) if http["path"].as_str().unwrap().starts_with("/admin/") => {
                    *out_of_reach.entry(OUT_OF_REACH[0].0).or_insert(0) += 1;
                    continue;
                }
                Some(Told::Http(http)) if names_a_session(http) => {
                    // It is answered like any other, and no session comes of it.
                    let response = serving.connect().answer(&request(http, serving.address()));
                    assert_eq!(response.header("mcp-session-id"), None, "{name}");
                    assert!(!response.body.contains("fixed-123"), "{name}: {response:?}");
                }
                Some(Told::Http(http)) => {
                    let response = serving.connect().answer(&request(http, serving.address()));
                    assert!(stopped(row, &response), "{name}: {response:?}");
                    if http["headers"].to_string().contains("Mcp-Name") {
                        assert_eq!(response.json()["error"]["code"], -32020, "{name}");
                    }
                }
                Some(Told::Body(body)) => {
                    let response = serving.connect().post("/mcp", &[], body).answered();
                    assert!(stopped(row, &response), "{name}: {response:?}");
                }
                Some(Told::Bytes(bytes)) => {
                    let said = serving.raw(&bytes.replace("127.0.0.1:8787", &serving.address().to_string()));
                    assert!(said.starts_with("HTTP/1.1 400 "), "{name}: {said}");
                    assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "a second request was read: {name}: {said}");
                }
            }
            sent += 1;
        }
    }
    assert_eq!((sent, out_of_reach), (SENT, BTreeMap::from(OUT_OF_REACH)));
    serving.stop();
    let ledger = rusqlite::Connection::open(folder.join("state/toolgate.db")).unwrap();
    let calls: i64 =
        ledger.query_row("select count(*) from records where body like '%payout%'", [], |row| row.get(0)).unwrap();
    assert_eq!(calls, 0, "nothing of it was a call");
}
