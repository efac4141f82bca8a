//! An interrupt lets what runs come to its end; a second one stops.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

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

/// A server that goes on whatever it is asked: its process id is what its tool is called.
const CLINGING: &str = r#"
import json, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    message = json.loads(line)
    version = message.get("params", {}).get("protocolVersion")
    if message.get("method") == "initialize":
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "c", "version": "1"}}
    elif message.get("method") == "tools/list":
        annotations = {"readOnlyHint": True}
        result = {"tools": [{"name": "pid_%d" % os.getpid(), "description": "Reads.",
                             "inputSchema": {"type": "object", "properties": {}}, "annotations": annotations}]}
    elif "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
time.sleep(300)
"#;

fn runs(pid: &str) -> bool {
    // One that has ended may stay known until somebody asks how.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn interrupted_twice_it_leaves_no_server_behind() {
    let state = tempfile::tempdir().unwrap();
    let words = ["wrap", "--state", state.path().to_str().unwrap(), "--", "python3", "-c", CLINGING];
    let mut command = toolgate(&words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |id: i64, method: &str, params: Value| {
        writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).unwrap();
        loop {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    };
    ask(1, "initialize", json!({"protocolVersion": "2025-11-25"}));
    let listed = ask(2, "tools/list", json!({}));
    let names = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    let pid = names.filter_map(|name| name.strip_prefix("pid_")).next().unwrap().to_owned();
    assert!(runs(&pid));
    interrupt(&child);
    assert!(child.try_wait().unwrap().is_none(), "it waits for the server");
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    until("the server is gone", || !runs(&pid));
}
