//! The manners of the command: stdout is the answer and nothing else.

use serde_json::json;

use super::refund;
use crate::door::{self, Run, toolgate};
use crate::folder::Folder;

#[test]
fn with_json_every_command_answers_with_one_line() {
    let folder = Folder::shop();
    let dir = folder.path().to_str().unwrap();
    let refunded = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_4821", 100)).json();
    let reference = refunded["ref"].as_str().unwrap();
    let pending = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_1001", 8000));
    assert_eq!(pending.exit, Some(4));
    let pending = pending.json();
    let id = pending["error"]["approval"]["id"].as_str().unwrap();
    let message = std::fs::read_to_string(folder.join("message.json")).unwrap();
    let commands: [(&[&str], &str, i32); 14] = [
        (&["call", dir, "get_order", r#"{"order_id":"ord_4821"}"#, "--json"], "", 0),
        (&["call", dir, "get_order", r#"{"order_id":"ord_4821"}"#, "--json", "--trace"], "", 0),
        (&["call", dir, "create_refund", &refund("ord_4821", 200).to_string(), "--json", "--dry-run"], "", 0),
        (&["call", dir, "get_order", r#"{"order_id":}"#, "--json"], "", 3),
        (&["exec", dir, "--from", "openai-chat", "--json"], &message, 0),
        (&["tools", dir, "--json"], "", 0),
        (&["tools", dir, "--for", "openai-chat", "--json"], "", 0),
        (&["check", dir, "--json"], "", 0),
        (&["approvals", dir, "list", "--json"], "", 0),
        (&["approvals", dir, "show", id, "--json"], "", 0),
        (&["approvals", dir, "approve", id, "--as", "mia@acme", "--json"], "", 0),
        (&["why", dir, reference, "--json"], "", 0),
        (&["explain", "rule_failed", "--json"], "", 0),
        (&["audit", dir, "verify", "--json"], "", 0),
    ];
    for (words, stdin, exit) in commands {
        let run = Run::of(&mut toolgate(words), stdin);
        assert_eq!(run.exit, Some(exit), "{words:?}: {run:?}");
        assert!(!run.json().is_null(), "{words:?}");
    }
    assert_eq!(folder.number("select count(*) from refunds where amount_cents = 200"), 0, "a dry run runs nothing");
}

#[test]
fn what_a_database_holds_cannot_speak_to_the_terminal() {
    let folder = Folder::shop();
    let look = |words: &[&str]| Run::of(&mut toolgate(words), "");
    let dir = folder.path().to_str().unwrap();
    let read = ["call", dir, "read_document", r#"{"document_id":"doc-x"}"#];
    assert_eq!(look(&read).exit, Some(3), "there is no such document yet");
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J gone \u{202e}txt.exe\r\n";
    folder.database().execute("insert into documents values ('doc-x', 'acme', ?1, 'body')", [hostile]).unwrap();
    for words in [&read[..], &[&read[..], &["--json"]].concat()] {
        let run = look(words);
        assert_eq!(run.exit, Some(0), "{run:?}");
        let unseen = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!run.stdout.contains(unseen), "{:?}", run.stdout);
        assert!(run.stdout.contains("gone"), "{:?}", run.stdout);
    }
}

#[test]
fn without_a_name_it_is_the_default_user_who_asks() {
    let folder = Folder::shop();
    let dir = folder.path().to_str().unwrap();
    let first =
        Run::of(&mut toolgate(&["call", dir, "create_refund", &refund("ord_4821", 100).to_string(), "--json"]), "");
    let again = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_4821", 100));
    assert_eq!(again.json()["first_ref"], first.json()["ref"]);
    let mia = door::call(folder.path(), "mia@acme", "create_refund", &refund("ord_4821", 100));
    assert_eq!(mia.json()["replayed"], json!(false), "equal arguments of another person are another refund");
}
