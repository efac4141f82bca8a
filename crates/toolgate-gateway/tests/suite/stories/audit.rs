//! The record as an operator looks at it: filtered, followed, exported, and verified against what was kept elsewhere.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::refund;
use crate::door::{self, Run, toolgate};
use crate::folder::Folder;

const IDENTITY: &str = "[identity]";
const WITNESSED: &str = "[audit.checkpoints]\nto = \"kept.jsonl\"\n\n[identity]";

/// A folder that keeps checkpoints beside itself, after two reads, a refund, its replay, and a refusal.
fn shop() -> Folder {
    let folder = Folder::shop();
    folder.edit("toolgate.toml", IDENTITY, WITNESSED);
    let order = json!({ "order_id": "ord_4821" });
    for (tool, arguments) in [
        ("get_order", order.clone()),
        ("get_order", order),
        ("create_refund", refund("ord_4821", 100)),
        ("create_refund", refund("ord_4821", 100)),
        ("get_order", json!({ "order": 1 })),
    ] {
        door::call(folder.path(), "alice@acme", tool, &arguments);
    }
    folder
}

fn audit(folder: &Folder, words: &[&str]) -> Run {
    let words: Vec<&str> = ["audit", folder.path().to_str().unwrap()].iter().chain(words).copied().collect();
    Run::of(&mut toolgate(&words), "")
}

fn edit_store(folder: &Folder, sql: &str) {
    rusqlite::Connection::open(folder.join("state/toolgate.db")).unwrap().execute_batch(sql).unwrap();
}

fn whats(run: &Run) -> Vec<Value> {
    run.json()["problems"].as_array().unwrap().iter().map(|problem| problem["what"].clone()).collect()
}

#[test]
fn every_command_leaves_a_checkpoint_and_verification_holds_the_record_against_them() {
    let folder = shop();
    let told = audit(&folder, &["verify", "--json"]);
    let answer = told.json();
    assert_eq!((told.exit, &answer["ok"], &answer["records"]), (Some(0), &json!(true), &json!(6)), "{told:?}");
    assert_eq!((&answer["checkpoints"]["agreed"], &answer["checkpoints"]["lines"]), (&json!(5), &json!(5)));
    let key = audit(&folder, &["key"]).stdout.trim().to_owned();
    assert_eq!(answer["checkpoints"]["key"], json!(key));
    let named = ["verify", "--checkpoints", "/dev/null", "--public-key", &key, "--json"];
    assert_eq!(whats(&audit(&folder, &named)), ["no_checkpoint"]);
    let absent = audit(&folder, &["verify", "--checkpoints", "no/such/file"]);
    assert!(absent.exit == Some(2) && absent.stderr.starts_with("error[unreadable_input]: "), "{absent:?}");
}

#[test]
fn a_cut_and_an_edit_and_a_forged_line_are_named_with_exit_3() {
    let folder = shop();
    let lines = std::fs::read_to_string(folder.join("kept.jsonl")).unwrap();
    folder.write("kept.jsonl", &format!("{}\nnot a line\n", lines.trim_end().replace("\"seq\":4", "\"seq\":3")));
    let told = audit(&folder, &["verify", "--json"]);
    assert_eq!(told.exit, Some(3), "{told:?}");
    let problems = told.json()["problems"].clone();
    let places: Vec<_> = problems.as_array().unwrap().iter().map(|p| (p["what"].clone(), p["line"].clone())).collect();
    assert_eq!(places, [(json!("bad_signature"), json!(3)), (json!("line_unreadable"), json!(6))]);
    folder.write("kept.jsonl", &lines);
    edit_store(&folder, "delete from records where seq > 4");
    let cut = audit(&folder, &["verify"]);
    assert_eq!(cut.exit, Some(3), "{cut:?}");
    assert!(cut.stderr.contains("ends with entry 4") && cut.stderr.contains("at least 2 were cut off"), "{cut:?}");
    edit_store(&folder, "update records set ref = 'x' where seq = 2");
    let edited = audit(&folder, &["verify", "--json"]);
    assert_eq!((&edited.json()["record"], whats(&edited)[0].as_str()), (&json!(2), Some("altered")));
}

#[test]
fn evidence_is_looked_at_though_the_contracts_and_the_key_are_gone() {
    let folder = shop();
    folder.write("tools/get_order.toml", "effect = 7");
    std::fs::remove_file(folder.join("state/checkpoints.key")).unwrap();
    let told = audit(&folder, &["verify"]);
    assert_eq!(told.exit, Some(0), "{told:?}");
    assert!(told.stderr.contains("not seen: checkpoints of another signer"), "{told:?}");
    assert!(!folder.join("state/checkpoints.key").exists(), "verification makes no key");
    std::fs::remove_file(folder.join("kept.jsonl")).unwrap();
    let without = audit(&folder, &["verify"]);
    assert!(without.exit == Some(3) && without.stderr.contains("its checkpoints are not there"), "{without:?}");
    assert_eq!(whats(&audit(&folder, &["verify", "--json"])), ["no_checkpoint"]);
}

#[test]
fn a_damaged_file_is_named_and_never_fine() {
    let folder = shop();
    let file = folder.join("state/toolgate.db");
    edit_store(&folder, "pragma wal_checkpoint(truncate)");
    let bytes = std::fs::read(&file).unwrap();
    let page = bytes.len() / 4096;
    for at in [0, page / 2, page - 1] {
        let mut damaged = bytes.clone();
        damaged[at * 4096..(at + 1) * 4096].fill(0xa5);
        std::fs::write(&file, &damaged).unwrap();
        let told = audit(&folder, &["verify"]);
        let fine = told.exit == Some(0);
        let untouched = || audit(&folder, &["export", "--jsonl"]).stdout.lines().count() == 6;
        assert!(!fine || untouched(), "page {at}: {told:?}");
        assert!(fine || matches!(told.exit, Some(1 | 3)) && told.stderr.contains("error["), "page {at}: {told:?}");
    }
}

#[test]
fn both_tail_and_export_take_the_same_filters_and_refuse_what_no_record_can_say() {
    let folder = shop();
    let count = |words: &[&str]| {
        let run = audit(&folder, words);
        assert_eq!(run.exit, Some(0), "{run:?}");
        run.stdout.lines().count()
    };
    for (filter, expected) in [
        (&["--kind", "read"][..], 2),
        (&["--tool", "create_refund"], 3),
        (&["--tool", "create_refund", "--kind", "replay"], 1),
        (&["--effect", "done"], 1),
        (&["--code", "invalid_arguments"], 1),
        (&["--principal", "alice"], 6),
        (&["--tenant", "globex"], 0),
        (&["--since", "2020-01-01T00:00:00Z"], 6),
        (&["--until", "2020-01-01T00:00:00Z"], 0),
        (&["--ref", "01J8Z3N0W7Q4V5X6Y7Z8A9B0C1"], 0),
    ] {
        let both = [&["export", "--jsonl"][..], &["tail", "--json", "-n", "100"]];
        let counts = both.map(|words| count(&[words, filter].concat()));
        assert_eq!(counts, [expected, expected], "{filter:?}");
    }
    assert_eq!(count(&["tail", "-n", "1", "--json", "--kind", "read"]), 1);
    for (name, value) in [("--kind", "raed"), ("--code", "x"), ("--effect", "some"), ("--ref", "x"), ("--since", "x")] {
        let refused = audit(&folder, &["tail", name, value]);
        assert!(refused.exit == Some(2) && refused.stderr.contains(name), "{refused:?}");
    }
}

#[test]
fn an_export_is_verified_where_there_is_no_folder() {
    let folder = shop();
    let elsewhere = tempfile::tempdir().unwrap();
    let file = |name: &str| elsewhere.path().join(name).to_str().unwrap().to_owned();
    let exported = audit(&folder, &["export", "--jsonl"]).stdout;
    assert_eq!(audit(&folder, &["export"]).stdout, exported, "there is one form");
    std::fs::write(file("all.jsonl"), &exported).unwrap();
    std::fs::copy(folder.join("kept.jsonl"), file("kept.jsonl")).unwrap();
    let verify = |more: &[&str]| {
        let all = file("all.jsonl");
        let words =
            [&["audit", elsewhere.path().to_str().unwrap(), "verify", "--json", "--export", &all], more].concat();
        Run::of(&mut toolgate(&words), "")
    };
    let kept = file("kept.jsonl");
    let whole = verify(&["--checkpoints", &kept]);
    assert_eq!((whole.exit, &whole.json()["checkpoints"]["agreed"]), (Some(0), &json!(5)), "{whole:?}");
    let some: Vec<&str> = exported.lines().step_by(2).collect();
    std::fs::write(file("all.jsonl"), some.join("\n")).unwrap();
    assert_eq!(whats(&verify(&[])), ["gap"]);
    assert_eq!(verify(&["--filtered", "--checkpoints", &kept]).exit, Some(0));
    // A whole forgery fits its own hash: that is said, and never that the records are as they were written.
    let unseen = verify(&["--filtered"]).json()["unseen"].to_string();
    assert!(
        unseen.contains(&format!("whether {0} of the {0} records are as they were written", some.len())),
        "{unseen}"
    );
    let all = file("all.jsonl");
    let words = ["audit", elsewhere.path().to_str().unwrap(), "verify", "--filtered", "--export", &all];
    let told = Run::of(&mut toolgate(&words), "");
    assert!(told.exit == Some(0) && !format!("{told:?}").contains("sound"), "{told:?}");
    assert!(format!("{told:?}").contains("and 0 of them what was kept elsewhere"), "{told:?}");
    std::fs::write(file("all.jsonl"), some.join("\n").replace("alice", "mia")).unwrap();
    assert_eq!(whats(&verify(&["--filtered"])), ["altered"]);
}

#[test]
fn what_is_recorded_while_somebody_follows_is_shown_as_it_comes() {
    let folder = shop();
    let mut command = toolgate(&["audit", folder.path().to_str().unwrap(), "tail", "-n", "1", "--follow", "--json"]);
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.next().unwrap().contains(r#""kind":"refusal""#));
    door::call(folder.path(), "alice@acme", "get_order", &json!({ "order_id": "ord_4821" }));
    assert!(lines.next().unwrap().contains(r#""kind":"read""#));
    following.kill().unwrap();
    following.wait().unwrap();
}
