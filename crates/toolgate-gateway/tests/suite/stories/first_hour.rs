//! The first hour: from a binary to a refund that was approved, done and replayed, in five commands and no edited file.

use std::path::Path;

use serde_json::{Value, json};

use crate::door::{Run, toolgate};

/// An empty folder in which somebody begins.
struct Desk(tempfile::TempDir);

const REFUND: &str = r#"{"order_id":"ord_1","amount_cents":9000,"reason":"late"}"#;

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, words: &[&str]) -> Run {
        Run::of(toolgate(words).current_dir(self.path()), "")
    }
}

/// The files below a folder, as paths below it, sorted.
fn files(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path()).into_iter().map(|below| format!("{name}/{below}"))),
            false => found.push(name),
        }
    }
    found.sort();
    found
}

#[test]
fn five_commands_lead_to_a_refund_that_is_made_once() {
    let desk = Desk::new();
    let init = desk.run(&["init", "shop"]);
    assert_eq!((init.exit, init.stderr.as_str()), (Some(0), ""), "{init:?}");

    let refund = ["call", "shop", "create_refund", REFUND, "--json"];
    let pending = desk.run(&refund);
    assert_eq!(pending.exit, Some(4), "{pending:?}");
    let pending = pending.json();
    assert_eq!(pending["error"]["code"], "approval_required");
    assert_eq!(pending["error"]["effect"], "none");
    let id = pending["error"]["approval"]["id"].as_str().unwrap();

    let approved = desk.run(&["approvals", "shop", "approve", id, "--as", "mia@acme"]);
    assert_eq!(approved.exit, Some(0), "{approved:?}");

    let done = desk.run(&refund);
    assert_eq!(done.exit, Some(0), "{done:?}");
    let done = done.json();
    assert_eq!(done["result"], json!({ "refund_id": "re_1" }));
    assert_eq!((&done["effect"], &done["replayed"]), (&json!("done"), &json!(false)));

    let again = desk.run(&refund).json();
    assert_eq!((&again["replayed"], &again["first_ref"]), (&json!(true), &done["ref"]));
    assert_eq!(again["result"], done["result"]);
}

#[test]
fn what_is_written_is_short_and_sound() {
    let desk = Desk::new();
    let init = desk.run(&["init", "shop"]);
    let (tree, words): (Vec<&str>, Vec<&str>) = init.stdout.lines().partition(|line| line.contains("  "));
    assert!(words.len() <= 6, "{init:?}");
    let written = files(&desk.path().join("shop"));
    for file in &written {
        let name = file.rsplit('/').next().unwrap();
        assert!(tree.iter().any(|line| line.contains(name)), "{file} is not in the tree: {init:?}");
    }
    let counted = written.iter().filter(|file| file.ends_with(".toml") || file.ends_with(".cedar"));
    let texts: Vec<String> =
        counted.map(|file| std::fs::read_to_string(desk.path().join("shop").join(file)).unwrap()).collect();
    let lines: usize = texts.iter().map(|text| text.lines().count()).sum();
    assert!((20..=80).contains(&lines), "{lines} lines of TOML and Cedar");
    let check = desk.run(&["check", "shop"]);
    assert_eq!((check.exit, check.stderr.as_str()), (Some(0), ""), "{check:?}");
    assert_eq!(check.stdout, "ok: 3 tools, 3 policies, 6 cases\n");
    assert_eq!(files(&desk.path().join("shop")), written, "neither init nor check makes any state");
}

#[test]
fn a_folder_that_is_not_empty_is_left_as_it_is() {
    let desk = Desk::new();
    std::fs::write(desk.path().join("notes.txt"), "mine").unwrap();
    for words in [&["init"][..], &["init", "."], &["init", "notes.txt"], &["init", "--dry-run"]] {
        let run = desk.run(words);
        assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""), "{words:?}: {run:?}");
        assert!(run.stderr.starts_with("error[folder_not_empty]: ") && run.stderr.contains("\nhint: "), "{run:?}");
        assert_eq!(files(desk.path()), ["notes.txt"]);
    }
}

#[test]
fn without_a_name_the_empty_working_folder_is_taken() {
    let desk = Desk::new();
    let shown = desk.run(&["init", "--dry-run"]);
    assert_eq!(shown.exit, Some(0), "{shown:?}");
    assert_eq!(shown.stderr, "dry run: nothing is written\n");
    assert_eq!(files(desk.path()), [""; 0]);

    let json = |run: Run| -> Vec<String> {
        let mut files: Vec<String> =
            run.json()["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap().to_owned()).collect();
        files.sort();
        files
    };
    let shown = desk.run(&["init", "--dry-run", "--json"]);
    assert_eq!(shown.json()["dry_run"], Value::Bool(true));
    let listed = json(desk.run(&["init", "--json"]));
    assert_eq!(json(shown), listed);
    assert_eq!(files(desk.path()), listed);
    assert_eq!(desk.run(&["check"]).exit, Some(0));
}
