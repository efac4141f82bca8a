//! What a client of `toolgate mcp` can do wrong, and how a process of it begins and ends.

use std::time::Duration;

use serde_json::{Value, json};

use super::{lock, refund, until};
use crate::door::{Asker, Client, Era, Run, reply_of, toolgate};
use crate::folder::Folder;

const ALICE: Asker<'_> = Asker { user: Some("alice@acme"), tags: &[] };

fn client(folder: &Folder) -> Client {
    Client::start(folder.path(), ALICE, Era::Handshake)
}

fn order(id: &str) -> String {
    json!({ "order_id": id }).to_string()
}

/// Waits until a write is open in the ledger.
fn until_open(folder: &Folder) {
    let ledger = rusqlite::Connection::open(folder.join("state/toolgate.db")).unwrap();
    until("the refund is open", || entries(&ledger, "open") == 1);
}

fn entries(ledger: &rusqlite::Connection, state: &str) -> i64 {
    ledger.query_row("select count(*) from entries where state = ?1", [state], |row| row.get(0)).unwrap_or(0)
}

/// A client whose refund waits for the database, the id of that request, and what holds it up.
fn waiting_refund(folder: &Folder) -> (Client, u64, rusqlite::Connection) {
    let mut client = client(folder);
    client.call("get_order", &order("ord_4821"));
    let held = lock(&folder.join("state/shop.db"));
    let id = client.ask_call("create_refund", &refund("ord_4821", 100).to_string());
    until_open(folder);
    (client, id, held)
}

fn codes(answers: &[Value]) -> Vec<(Value, i64)> {
    answers.iter().map(|answer| (answer["id"].clone(), answer["error"]["code"].as_i64().unwrap_or(0))).collect()
}

#[test]
fn a_client_that_only_looks_leaves_no_trace() {
    let folder = Folder::shop();
    let listing = || {
        let mut names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names
    };
    let before = listing();
    let mut looking = client(&folder);
    looking.request("ping", "{}");
    assert_eq!(looking.request("tools/list", "{}")["result"]["tools"].as_array().unwrap().len(), 5);
    assert_eq!(looking.close().exit, Some(0));
    let mut looking = Client::start(folder.path(), ALICE, Era::Stateless);
    let found = looking.request("server/discover", "{}");
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(looking.close().exit, Some(0));
    assert_eq!(listing(), before);

    let mut calling = client(&folder);
    calling.call("get_order", &order("ord_4821"));
    assert!(folder.join("state/toolgate.db").exists());
}

#[test]
fn stdout_carries_messages_and_nothing_else() {
    let folder = Folder::shop();
    let mut client = client(&folder);
    client.call("get_order", &order("ord_4821"));
    client.call("get_order", &order("nothing that is an order"));
    client.say("no message");
    client.hear();
    client.say("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"after a byte order mark\",\"method\":\"ping\"}\r");
    assert_eq!(client.hear(), json!({"jsonrpc": "2.0", "id": "after a byte order mark", "result": {}}));
    let run = client.close();
    assert_eq!((run.exit, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn what_is_no_request_is_refused_and_runs_nothing() {
    let folder = Folder::shop();
    let mut client = client(&folder);
    let params = json!({ "name": "create_refund", "arguments": refund("ord_4821", 100) });
    let call = |id: &str| format!(r#"{{"jsonrpc":"2.0"{id},"method":"tools/call","params":{params}}}"#);
    let mut answers = Vec::new();
    for line in [
        format!("[{},{}]", call(r#","id":1"#), call(r#","id":2"#)),
        call(r#","id":null"#),
        call(r#","id":7,"id":8"#),
        call(r#","id":7,"tenant":"globex""#),
        call(r#","id":7.5"#),
        "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"".to_owned(),
    ] {
        client.say(&line);
        answers.push(client.hear());
    }
    let found = codes(&answers);
    let null = Value::Null;
    let expected = [-32600, -32600, -32700, -32600, -32600, -32700];
    assert_eq!(found.iter().map(|(_, code)| *code).collect::<Vec<_>>(), expected);
    assert!(found.iter().all(|(id, code)| *id == null || (*id == json!(7) && *code == -32600)), "{found:?}");

    // What a member beside the call claims is refused as a call, and stands in the record.
    let stray = json!({ "name": "create_refund", "arguments": refund("ord_4821", 100), "user": "mia" });
    let answer = client.request("tools/call", &stray.to_string());
    assert!(reply_of(&answer).contains("invalid_call"), "{answer}");
    client.say("{\"jsonrpc\":\"2.0\",\"id\":40,\"result\":{}}");
    client.say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/something\"}");
    client.say(&call(""));
    assert_eq!(client.request("ping", "{}")["result"], json!({}));
    let run = client.close();
    assert_eq!(run.exit, Some(0));
    assert!(run.stderr.contains("without an id"), "{}", run.stderr);
    assert_eq!(folder.number("select count(*) from refunds"), 0);
}

#[test]
fn a_method_that_is_not_there_and_parameters_that_are_wrong_are_errors() {
    let folder = Folder::shop();
    let mut client = client(&folder);
    let mut code = |method: &str, params: &str| client.request(method, params)["error"]["code"].as_i64();
    assert_eq!(code("resources/list", "{}"), Some(-32601));
    assert_eq!(code("server/discover", "{}"), Some(-32601));
    assert_eq!(code("tools/list", r#"{"cursor":"2"}"#), Some(-32602));
    assert_eq!(code("tools/list", r#"{"cursor":null}"#), None);
    assert_eq!(code("tools/list", r#"{"tenant":"globex"}"#), Some(-32602));
    assert_eq!(code("initialize", "{}"), Some(-32602));
    let wrong = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}"#;
    let answer = client.request("tools/list", wrong);
    assert_eq!(answer["error"]["code"], -32022);
    assert_eq!(answer["error"]["data"], json!({"supported": ["2026-07-28"], "requested": "2099-01-01"}));
    let unknown = client.call("no_such_tool", "{}");
    assert_eq!(
        (&unknown["error"]["code"], &unknown["error"]["data"]["error"]["code"]),
        (&json!(-32602), &json!("unknown_tool"))
    );
}

#[test]
fn before_anything_is_agreed_on_only_requests_that_stand_alone_are_made() {
    let folder = Folder::shop();
    let mut client = Client::silent(folder.path(), ALICE, Era::Handshake);
    assert_eq!(client.request("ping", "{}")["result"], json!({}));
    for (method, params) in [("tools/list", "{}"), ("tools/call", r#"{"name":"get_order","arguments":{}}"#)] {
        let answer = client.request(method, params);
        assert_eq!(answer["error"]["code"], -32600);
        assert!(answer["error"]["message"].as_str().unwrap().contains("`initialize`"), "{answer}");
    }
    let enveloped = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#;
    let answer = client.request("tools/list", enveloped);
    assert_eq!(
        (&answer["result"]["resultType"], &answer["result"]["cacheScope"]),
        (&json!("complete"), &json!("private"))
    );
    assert_eq!(answer["result"]["ttlMs"], json!(0));
}

#[test]
fn every_revision_without_batches_is_agreed_on_and_any_other_is_offered_the_newest() {
    let folder = Folder::shop();
    for (offered, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut client = Client::silent(folder.path(), ALICE, Era::Handshake);
        let answer = client.request("initialize", &json!({ "protocolVersion": offered }).to_string());
        assert_eq!(answer["result"]["protocolVersion"], agreed);
        assert_eq!(answer["result"]["serverInfo"]["name"], "toolgate");
        assert_eq!(answer["result"]["capabilities"], json!({"tools": {}}));
        assert_eq!(answer["result"].get("instructions"), None);
    }
}

#[test]
fn an_id_that_is_still_in_use_makes_nothing_and_leaves_the_first_alone() {
    let folder = Folder::shop();
    let (mut client, id, held) = waiting_refund(&folder);
    let params = json!({ "name": "create_refund", "arguments": refund("ord_1001", 100) });
    client.say(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string());
    let refused = client.hear();
    // Under its id it would be taken for the answer to the first.
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32600)));
    // The other spelling is another id.
    client.say(&json!({"jsonrpc": "2.0", "id": id.to_string(), "method": "ping"}).to_string());
    assert_eq!(client.hear()["id"], json!(id.to_string()));
    drop(held);
    let answer = client.hear();
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(id), &json!(false)));
    assert_eq!(client.close().exit, Some(0));
    assert_eq!(folder.number("select count(*) from refunds"), 1);
}

#[test]
fn a_cancelled_write_is_not_answered_and_is_settled_all_the_same() {
    let folder = Folder::shop();
    let (mut client, id, held) = waiting_refund(&folder);
    client.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"somebody else's"}}"#);
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "x"}});
    client.say(&cancel.to_string());
    assert_eq!(client.request("ping", "{}")["result"], json!({}), "nothing else is answered first");
    drop(held);
    let run = client.close();
    assert_eq!((run.exit, run.stdout.as_str()), (Some(0), ""));
    let ledger = rusqlite::Connection::open(folder.join("state/toolgate.db")).unwrap();
    assert_eq!((entries(&ledger, "open"), entries(&ledger, "unknown")), (0, 0));
    assert_eq!(folder.number("select count(*) from refunds"), entries(&ledger, "done"));
}

#[test]
fn a_cancelled_read_is_not_answered_and_its_id_is_free_again() {
    let folder = Folder::shop();
    // A database without a log beside it: whoever writes to it lets nobody read.
    std::fs::create_dir(folder.join("state")).unwrap();
    let shop = rusqlite::Connection::open(folder.join("state/shop.db")).unwrap();
    shop.execute_batch(&std::fs::read_to_string(folder.join("shop.sql")).unwrap()).unwrap();
    let mut client = client(&folder);
    shop.execute_batch("begin exclusive").unwrap();
    let id = client.ask_call("get_order", &order("ord_4821"));
    assert!(client.is_quiet(Duration::from_millis(100)), "it waits for the database");
    client
        .say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string());
    assert_eq!(client.request("ping", "{}")["result"], json!({}), "nothing else is answered first");
    client.say(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string());
    assert_eq!(client.hear(), json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    shop.execute_batch("rollback").unwrap();
    let run = client.close();
    assert_eq!((run.exit, run.stdout.as_str()), (Some(0), ""));
}

#[test]
fn calls_run_side_by_side_and_are_answered_as_they_end() {
    let folder = Folder::shop();
    let (mut client, slow, held) = waiting_refund(&folder);
    let quick = client.ask("tools/list", "{}");
    assert_eq!(client.hear()["id"], json!(quick));
    drop(held);
    assert_eq!(client.hear()["id"], json!(slow));
}

#[test]
fn more_calls_than_may_run_at_once_are_refused_and_the_others_are_answered() {
    let folder = Folder::shop();
    let (mut client, first, held) = waiting_refund(&folder);
    // Equal calls wait for the first, each with an id of its own.
    let waiting = refund("ord_4821", 100).to_string();
    let ids: Vec<u64> = (0..130).map(|_| client.ask_call("create_refund", &waiting)).collect();
    let refused: Vec<Value> = (0..3).map(|_| client.hear()).collect();
    for answer in &refused {
        assert!(reply_of(answer).contains("\"overloaded\""), "{answer}");
        assert!(ids.iter().rev().take(3).any(|id| answer["id"] == json!(id)), "the last ones: {answer}");
    }
    drop(held);
    let answers: Vec<Value> = (0..128).map(|_| client.hear()).collect();
    assert!(answers.iter().any(|answer| answer["id"] == json!(first)));
    assert_eq!(client.close().exit, Some(0));
    assert_eq!(folder.number("select count(*) from refunds"), 1);
}

#[test]
fn at_the_end_of_the_input_what_runs_comes_to_its_end_and_is_answered() {
    let folder = Folder::shop();
    let (mut client, id, held) = waiting_refund(&folder);
    client.hang_up();
    assert!(client.is_quiet(Duration::from_millis(200)), "it waits for what runs");
    drop(held);
    let answer = client.hear();
    assert_eq!((&answer["id"], &answer["result"]["_meta"]["toolgate/reply"]["effect"]), (&json!(id), &json!("done")));
    let run = client.ended();
    assert_eq!((run.exit, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn a_signal_stops_the_reading_and_what_runs_comes_to_its_end() {
    for signal in ["-TERM", "-INT"] {
        let folder = Folder::shop();
        let (client, id, held) = waiting_refund(&folder);
        client.signal(signal);
        assert!(client.is_quiet(Duration::from_millis(200)), "it waits for what runs");
        drop(held);
        assert_eq!(client.hear()["id"], json!(id));
        let run = client.ended();
        assert_eq!(run.exit, Some(0), "its input is open to the end: {}", run.stderr);
        assert!(run.stderr.contains("interrupted: waiting"), "{}", run.stderr);
    }
}

#[test]
fn a_line_that_is_too_long_is_told_and_the_client_goes_on() {
    let folder = Folder::shop();
    let mut client = client(&folder);
    let long =
        format!(r#"{{"jsonrpc":"2.0","id":9,"method":"ping","params":{{"x":"{}"}}}}"#, "y".repeat(5 * 1024 * 1024));
    client.say(&long);
    let answer = client.hear();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)));
    assert_eq!(client.request("ping", "{}")["result"], json!({}));
    assert_eq!(client.close().exit, Some(0));
}

#[test]
fn large_arguments_within_the_line_are_refused_by_the_gate_and_the_client_goes_on() {
    let folder = Folder::shop();
    let mut client = client(&folder);
    let answer = client.call("get_order", &order(&"y".repeat(2_000_000)));
    assert!(reply_of(&answer).contains("\"invalid_json\""), "{}", reply_of(&answer));
    assert_eq!(client.request("ping", "{}")["result"], json!({}));
}

#[test]
fn a_folder_with_faults_is_told_before_anything_is_said() {
    let folder = Folder::shop();
    folder.edit("tools/get_order.toml", "effect = \"read\"", "efect = \"read\"");
    folder.edit("policies/reads.cedar", "permit", "permitt");
    let run = Run::of(&mut toolgate(&["mcp", folder.path().to_str().unwrap()]), "");
    assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""));
    assert!(
        run.stderr.contains("tools/get_order.toml:") && run.stderr.contains("policies/reads.cedar:"),
        "{}",
        run.stderr
    );

    let folder = Folder::shop();
    let run = Run::of(&mut toolgate(&["mcp", folder.path().to_str().unwrap(), "--as", "eve@acme"]), "");
    assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""));
}

#[test]
fn a_store_that_cannot_be_opened_is_an_error_of_the_call_and_said_on_stderr() {
    let folder = Folder::shop();
    folder.write("state", "in the way of a folder");
    let mut client = client(&folder);
    let answer = client.call("get_order", &order("ord_4821"));
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["data"]["error"]["code"]),
        (&json!(-32603), &json!("unavailable"))
    );
    // Once it can be opened, the next call is made.
    std::fs::remove_file(folder.join("state")).unwrap();
    assert_eq!(client.call("get_order", &order("ord_4821"))["result"]["isError"], json!(false));
    let run = client.close();
    assert_eq!(run.exit, Some(0));
    assert!(run.stderr.contains("error[store_failed]: ") && run.stderr.contains("state"), "{}", run.stderr);
}

#[test]
fn the_entry_for_a_client_names_this_program_and_the_folder_by_their_whole_paths() {
    let folder = Folder::shop();
    let run =
        Run::of(&mut toolgate(&["mcp", folder.path().to_str().unwrap(), "--as", "mia@acme", "--print-config"]), "");
    assert_eq!(run.exit, Some(0), "{}", run.stderr);
    let entry: Value = serde_json::from_str(&run.stdout).unwrap();
    let servers = entry["mcpServers"].as_object().unwrap();
    let (name, server) = servers.iter().next().unwrap();
    let dir = folder.path().canonicalize().unwrap();
    assert_eq!(dir.file_name().unwrap().to_str(), Some(name.as_str()));
    assert_eq!(server["args"], json!(["mcp", dir.to_str().unwrap(), "--as", "mia@acme"]));
    assert_eq!(server["command"].as_str(), Some(env!("CARGO_BIN_EXE_toolgate")));
    assert!(!folder.join("state").exists());
}
