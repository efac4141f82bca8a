//! Pipes that nobody reads: a client that has stopped reading, and a stderr that is full.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::door::toolgate;
use crate::folder::Folder;
use crate::serve::{Connection, message};

/// Longer than a process may take to end, on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn signal(child: &Child, name: &str) {
    let sent = std::process::Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// The exit code; one that does not end fails the test.
fn ends(child: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("it still runs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_client_that_reads_no_answers_does_not_keep_the_gate_from_finishing() {
    let folder = Folder::shop();
    let mut command = toolgate(&["mcp", folder.path().to_str().unwrap(), "--as", "alice@acme"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let initialize = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize})).unwrap();
    let call = json!({ "name": "get_order", "arguments": { "order_id": "ord_4821" } });
    writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})).unwrap();
    let mut stdout = BufReader::new(stdout);
    for _ in 0..2 {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
    }
    // Each list is some kilobytes: they fill the pipe, and then everything that waits for it.
    for id in 2..600 {
        writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})).unwrap();
    }
    std::thread::sleep(Duration::from_millis(500));
    signal(&child, "-TERM");
    assert_eq!(ends(&mut child), Some(0), "the gate was finished");
}

#[test]
fn a_stderr_that_nobody_reads_holds_up_no_call() {
    let folder = Folder::shop();
    let mut command = toolgate(&["serve", folder.path().to_str().unwrap(), "--port", "0", "--dev"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("listening on http://").unwrap().parse().unwrap();
    let mut connection = Connection::open(address).unwrap();
    // A line of a hundred bytes each, in a pipe of 64 KiB.
    let calls = message(&[("no_such_tool", &json!({})); 16]).to_string();
    for _ in 0..80 {
        let response = connection.post("/v1/calls", &[], &calls).answered();
        assert_eq!(response.status, 200);
    }
    signal(&child, "-TERM");
    assert_eq!(ends(&mut child), Some(0), "it drains all the same");
}
