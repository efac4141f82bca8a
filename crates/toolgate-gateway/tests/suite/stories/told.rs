//! What goes wrong is told with a code of its own, before a command serves and while it does.

use std::net::TcpListener;

use serde_json::json;

use super::tokens;
use crate::door::{Run, toolgate};
use crate::folder::Folder;

/// A client's greeting, and its question for the tools.
fn greeting() -> String {
    let client =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
    ];
    messages.iter().map(|message| format!("{message}\n")).collect()
}

/// The codes on stderr, in their order.
fn codes(stderr: &str) -> Vec<&str> {
    stderr.lines().filter_map(|line| Some(line.strip_prefix("error[")?.split_once("]: ")?.0)).collect()
}

#[test]
fn what_cannot_be_done_has_a_code_of_its_own() {
    let (shop, guarded) = (Folder::shop(), tokens::shop());
    let [shop, guarded] = [&shop, &guarded].map(|folder| folder.path().to_str().unwrap());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let commands: [(&[&str], &str, i32); 14] = [
        (&["serve", shop, "--listen", &taken], "port_in_use", 2),
        (&["serve", shop, "--listen", "0.0.0.0:0"], "not_loopback", 2),
        (&["serve", guarded, "--listen", "0.0.0.0:0"], "no_hosts", 2),
        (&["serve", guarded, "--dev", "--port", "0"], "usage", 2),
        (&["serve", guarded, "--as", "mia@acme"], "unknown_user", 2),
        (&["health", "http://127.0.0.1:1"], "not_ready", 1),
        (&["token", "list", shop], "people_listed", 2),
        (&["token", "revoke", guarded, "0123456789ab"], "no_token", 2),
        (&["token", "list", "/no/such/folder"], "no_such_folder", 2),
        (&["mcp", "/no/such/folder"], "no_such_folder", 2),
        (&["wrap", "--", "no-such-program-anywhere"], "no_program", 2),
        (&["init", shop], "folder_not_empty", 2),
        (&["approvals", guarded, "list", "--as", "mia@acme"], "unknown_user", 2),
        (&["admit"], "usage", 2),
    ];
    for (words, code, exit) in commands {
        let run = Run::of(&mut toolgate(words), "");
        assert_eq!((codes(&run.stderr), run.exit), (vec![code], Some(exit)), "{words:?}: {run:?}");
        assert_eq!(run.stdout, "", "{words:?}");
        assert!(run.stderr.lines().any(|line| line.starts_with("hint: ")), "{words:?}: {run:?}");
    }
    let full = tokens::shop();
    full.write("state", "no folder");
    let full = full.path().to_str().unwrap();
    let unwritten = Run::of(&mut toolgate(&["token", "new", full, "--as", "mia@acme"]), "");
    assert_eq!((codes(&unwritten.stderr), unwritten.exit), (vec!["unwritable"], Some(2)), "{unwritten:?}");
    let mut nowhere = toolgate(&["wrap", "--", "true"]);
    let nowhere = Run::of(nowhere.env_remove("HOME").env_remove("XDG_STATE_HOME"), "");
    assert_eq!(codes(&nowhere.stderr), ["no_state_folder"], "{nowhere:?}");
}

#[test]
fn the_tokens_of_a_folder_are_found_like_any_other_folder() {
    let guarded = tokens::shop();
    let dir = guarded.path().to_str().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let within = |words: &[&str]| Run::of(toolgate(words).current_dir(guarded.path()), "");
    let given = within(&["token", "new", "--as", "mia@acme", "--json"]).json();
    let id = given["id"].as_str().unwrap();
    let listed = Run::of(toolgate(&["token", "list", "--json"]).current_dir(&elsewhere).env("TOOLGATE_DIR", dir), "");
    assert_eq!(listed.json()[0]["id"], id);
    assert_eq!(within(&["token", "revoke", id, "--json"]).json()["state"], "revoked");
    assert_eq!(codes(&within(&["token", "revoke"]).stderr), ["usage"]);
    for action in [&["token", "list"][..], &["token", "revoke", id], &["serve"], &["mcp"]] {
        let nowhere = Run::of(toolgate(action).current_dir(&elsewhere), "");
        assert_eq!((codes(&nowhere.stderr), nowhere.exit), (vec!["no_folder"], Some(2)), "{action:?}");
    }
}

#[test]
fn a_wrapped_server_that_is_off_as_a_whole_is_told_with_its_code() {
    let desk = tempfile::tempdir().unwrap();
    let [state, server, tools] =
        ["state", "server.py", "tools.json"].map(|name| desk.path().join(name).to_str().unwrap().to_owned());
    let described = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/described.py");
    std::fs::copy(described, &server).unwrap();
    let listed = json!([{ "name": "look", "inputSchema": {}, "annotations": { "readOnlyHint": true } }]);
    std::fs::write(&tools, listed.to_string()).unwrap();
    let wrap = |more: &[&str]| {
        let words = [&["wrap", "--state", &state], more, &["--", "python3", &server, &tools]].concat();
        let run = Run::of(&mut toolgate(&words), &greeting());
        assert_eq!(run.exit, Some(0), "{run:?}");
        run
    };
    let offered = |run: &Run| run.stdout.contains(r#""name":"look""#);
    let first = wrap(&["--allow", "lock"]);
    assert!(offered(&first) && codes(&first.stderr).is_empty(), "{first:?}");
    assert!(first.stderr.contains("\nwarning: --allow names lock, "), "{first:?}");

    let text = std::fs::read_to_string(&server).unwrap();
    std::fs::write(&server, format!("{text}\n# another one\n")).unwrap();
    let changed = wrap(&[]);
    assert_eq!(codes(&changed.stderr), ["not_as_pinned"], "{changed:?}");
    assert!(!offered(&changed) && offered(&wrap(&["--repin"])));

    std::fs::write(desk.path().join("state/wrap.lock"), "{}").unwrap();
    let unlocked = wrap(&[]);
    assert_eq!(codes(&unlocked.stderr), ["lock_unreadable"], "{unlocked:?}");
    assert!(!offered(&unlocked));

    std::fs::write(&server, "raise SystemExit(1)\n").unwrap();
    let dead = wrap(&["--repin"]);
    assert_eq!(codes(&dead.stderr), ["server_failed"], "{dead:?}");
}

#[test]
fn what_is_told_while_a_command_serves_is_coloured_as_it_was_asked_for() {
    let folder = Folder::shop();
    folder.write("state", "no folder");
    let dir = folder.path().to_str().unwrap();
    let call = json!({ "name": "get_order", "arguments": { "order_id": "ord_4821" } });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call });
    let lines = format!("{}{call}\n", greeting());
    let plain = Run::of(&mut toolgate(&["mcp", dir]), &lines);
    assert_eq!(codes(&plain.stderr), ["store_failed"], "{plain:?}");
    let stdin = folder.join("lines");
    std::fs::write(&stdin, lines).unwrap();
    let mut forced = toolgate(&["--color", "always", "mcp", dir]);
    let output = forced.stdin(std::fs::File::open(stdin).unwrap()).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("\u{1b}[1;31merror[store_failed]\u{1b}[0m: "), "{told:?}");
    assert!(!output.stdout.contains(&0x1b), "what a client reads is the protocol and nothing else");
}

#[test]
fn who_checks_an_empty_folder_is_told_how_to_make_a_gate() {
    let empty = tempfile::tempdir().unwrap();
    let run = Run::of(&mut toolgate(&["check", empty.path().to_str().unwrap()]), "");
    assert_eq!(run.exit, Some(2), "{run:?}");
    assert!(run.stderr.contains("hint: toolgate init "), "{run:?}");
}
