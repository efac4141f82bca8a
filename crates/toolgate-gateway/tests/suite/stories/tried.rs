//! What is masked is not found out by trying values until a digest fits, and nothing is answered before it is asked.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::refund;
use crate::door::{Run, toolgate};
use crate::folder::Folder;

/// The shop, where the reason of a refund is secret.
fn secretive() -> Folder {
    let folder = Folder::shop();
    folder.edit("tools/create_refund.toml", "reason = { enum", "reason = { x-secret = true, enum");
    // What is secret stands in no preview.
    folder.edit("tools/create_refund.toml", ", reason: {reason}", "");
    folder
}

fn run(folder: &Folder, command: &str, words: &[&str]) -> Run {
    let words: Vec<&str> =
        [command, folder.path().to_str().unwrap()].into_iter().chain(words.iter().copied()).collect();
    Run::of(&mut toolgate(&words), "")
}

/// The last record that tells of an admitted call.
fn recorded(folder: &Folder) -> Value {
    let tail = run(folder, "audit", &["tail", "-n", "20", "--json"]);
    let mut told = tail.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    told.rfind(|body| body["call_digest"].is_string()).unwrap()
}

#[test]
fn no_list_of_approvals_shows_a_plain_digest_of_what_is_masked() {
    let folder = secretive();
    let plain = Folder::shop();
    let large = refund("ord_1001", 6000).to_string();
    let mut shown = Vec::new();
    for folder in [&folder, &plain] {
        let asked = run(folder, "call", &["create_refund", &large, "--json"]);
        assert_eq!(asked.exit, Some(4), "{asked:?}");
        let listed = run(folder, "approvals", &["list", "--as", "mia@acme", "--json"]).json();
        let digest = listed[0]["call_digest"].as_str().unwrap().to_owned();
        assert_eq!(recorded(folder)["call_digest"], digest.as_str(), "people can compare it with the record");
        let id = listed[0]["id"].as_str().unwrap();
        let people = run(folder, "approvals", &["show", id, "--as", "mia@acme"]).stdout;
        assert!(people.contains(&digest), "{people}");
        shown.push(digest);
    }
    let again = secretive();
    assert_eq!(run(&again, "call", &["create_refund", &large, "--json"]).exit, Some(4));
    let other = run(&again, "approvals", &["list", "--as", "mia@acme", "--json"]).json();
    assert_ne!(other[0]["call_digest"], shown[0].as_str(), "whoever has another key tries in vain");
}

#[test]
fn no_list_of_the_ledger_shows_a_plain_digest_of_what_is_masked() {
    let folder = secretive();
    assert_eq!(run(&folder, "call", &["create_refund", &refund("ord_1001", 100).to_string(), "--json"]).exit, Some(0));
    let entry = run(&folder, "ledger", &["list", "--json"]).json()[0].clone();
    assert_eq!(entry["key"], entry["ref"], "a key is a digest of the arguments");
    assert_eq!(entry["args_digest"], Value::Null, "a look has no key, so it shows no digest of what is masked");
    let named = entry["key"].as_str().unwrap();
    assert_eq!(
        run(&folder, "ledger", &["show", named, "--json"]).json()["key"],
        entry["key"],
        "what is listed is found"
    );
    let resolved = run(&folder, "ledger", &["resolve", named, "none", "--why", "seen", "--dry-run"]);
    assert!(resolved.stderr.starts_with("error[not_unknown]: "), "it is found, and known: {resolved:?}");
}

#[test]
fn a_yes_that_was_typed_before_the_question_confirms_nothing() {
    let folder = Folder::shop();
    folder.edit("tools/create_refund.toml", "role = \"manager\"", "role = \"self\"");
    let (program, dir) = (env!("CARGO_BIN_EXE_toolgate"), folder.path().display());
    let line = format!("'{program}' call '{dir}' create_refund '{}'", refund("ord_1001", 6000));
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env_remove("TOOLGATE_DIR").env("TERM", "xterm").env("SHELL", "/bin/sh");
    let mut asked = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut keyboard = asked.stdin.take().unwrap();
    keyboard.write_all(b"y\n").unwrap();
    let (mut screen, mut shown) = (asked.stdout.take().unwrap(), Vec::new());
    let mut byte = [0];
    while !String::from_utf8_lossy(&shown).contains("[y/N]") && screen.read(&mut byte).unwrap() == 1 {
        shown.extend(byte);
    }
    drop(keyboard);
    let _ = screen.read_to_end(&mut shown);
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("[y/N]") && shown.contains("not answered"), "{shown}");
    assert_eq!(asked.wait().unwrap().code(), Some(4), "{shown}");
    assert_eq!(folder.number("select count(*) from refunds"), 0);
}
