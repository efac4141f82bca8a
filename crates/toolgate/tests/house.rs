//! The rules of the house that the compiler cannot see.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test may panic"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// The stages, in the order in which a call passes.
const LINE: [&str; 6] = ["admit", "inform", "permit", "reserve", "run", "settle"];

/// What stands above the stages: the gate itself, and the dialects that only doors know.
const ABOVE: [&str; 2] = ["gate", "wire"];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    files
}

/// The stage that a file belongs to.
fn stage_of(file: &Path) -> Option<usize> {
    let below = file.strip_prefix(source().join("stage")).ok()?;
    let first = below.components().next()?.as_os_str().to_string_lossy().into_owned();
    LINE.iter().position(|stage| first == *stage || first == format!("{stage}.rs"))
}

/// What is wrong with a stage's file, if it looks right or up: in its `use` lines, however they are grouped, and in the
/// paths that stand in its code.
fn wrong_looks(stage: usize, text: &str) -> Vec<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut wrong = Vec::new();
    for (other, name) in LINE.iter().enumerate().filter(|(other, _)| *other > stage) {
        if names_module(&code, name) {
            wrong.push(format!("{} looks right, at {}", LINE[stage], LINE[other]));
        }
    }
    for above in ABOVE {
        if names_module(&code, above) {
            wrong.push(format!("{} looks up, at {above}", LINE[stage]));
        }
    }
    wrong
}

/// Whether a path goes through a module of this name.
fn names_module(code: &str, name: &str) -> bool {
    let path = format!("{name}::");
    code.match_indices(&path).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[test]
fn a_stage_looks_left_and_down_only() {
    let mut seen = [false; LINE.len()];
    let mut wrong = Vec::new();
    for file in rust_files(&source().join("stage")) {
        let Some(stage) = stage_of(&file) else { panic!("{} belongs to no stage of the line", file.display()) };
        seen[stage] = true;
        wrong.extend(wrong_looks(stage, &fs::read_to_string(&file).unwrap()));
    }
    assert_eq!(seen, [true; LINE.len()], "every stage has its file");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_rule_would_catch_a_stage_that_looks_right_or_up() {
    let permit = 2;
    for fine in ["use super::inform::Informed;\nuse crate::call::Call;\n", "// as in gate::Gate\nlet rerun::X = y;"] {
        assert_eq!(wrong_looks(permit, fine), Vec::<String>::new());
    }
    for wrong in [
        "use crate::call::Call;\nuse super::reserve::Reserved;\n",
        "use super::{Halt, settle::Settled};",
        "use crate::stage::run::{\n    Dispatch,\n    Ran,\n};\n",
        "use crate::{call::Call, gate::Gate};",
        "fn f() -> crate::wire::Dialect {}",
        "use super::super::settle::Settle;",
    ] {
        assert_eq!(wrong_looks(permit, wrong).len(), 1, "{wrong}");
    }
}

#[test]
fn only_the_policy_room_knows_cedar() {
    for file in rust_files(&source()) {
        let inside = file.starts_with(source().join("policy")) || file == source().join("policy.rs");
        let text = fs::read_to_string(&file).unwrap();
        assert!(inside || !text.contains("cedar_policy"), "{} knows Cedar", file.display());
    }
}

#[test]
fn the_words_below_do_not_know_the_line() {
    let rooms = [
        "admission",
        "approval",
        "audit",
        "call",
        "caught",
        "clock",
        "contract",
        "crash",
        "facts",
        "fields",
        "guards",
        "json",
        "lanes",
        "ledger",
        "leniency",
        "nearness",
        "policy",
        "recovery",
        "redaction",
        "refusal",
        "reply",
        "result",
        "runs",
        "schema",
        "session",
        "standing",
        "stoppage",
        "template",
        "trace",
        "turn",
    ];
    for room in rooms {
        let mut files = vec![source().join(format!("{room}.rs"))];
        if source().join(room).is_dir() {
            files.extend(rust_files(&source().join(room)));
        }
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            for above in ["stage", "gate"] {
                assert!(!code.contains(&format!("crate::{above}")), "{} looks up, at {above}", file.display());
            }
        }
    }
}

#[test]
fn files_stay_small() {
    for file in rust_files(&source()) {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\n#[allow").next().unwrap().lines().count();
        let is_test = file
            .components()
            .any(|part| ["tests", "tests.rs", "suite", "suite.rs"].iter().any(|t| part.as_os_str() == *t));
        assert!(is_test || code <= 600, "{}: {code} lines", file.display());
    }
}
