//! The rules of the house that the compiler cannot see.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

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

/// What is wrong with the `use` lines of a stage's file, if it looks right or up.
fn wrong_looks(stage: usize, text: &str) -> Vec<String> {
    // A `use` may run over several lines; paths are compared whole.
    let statements = text.split(';').filter_map(|statement| {
        let start = statement.rfind("use ")?;
        let line_start = statement[..start].rfind('\n').map_or(0, |newline| newline + 1);
        statement[line_start..start]
            .trim()
            .trim_start_matches("pub(crate)")
            .trim()
            .is_empty()
            .then(|| &statement[start + 4..])
    });
    let mut wrong = Vec::new();
    for path in statements.map(|path| path.split_whitespace().collect::<String>()) {
        for (other, name) in LINE.iter().enumerate() {
            let named = [format!("super::{name}::"), format!("super::{{{name}::"), format!("crate::stage::{name}::")]
                .iter()
                .any(|prefix| path.starts_with(prefix.as_str()));
            if named && other > stage {
                wrong.push(format!("{} looks right: use {path}", LINE[stage]));
            }
        }
        for above in ABOVE {
            if path.starts_with(&format!("crate::{above}")) {
                wrong.push(format!("{} looks up: use {path}", LINE[stage]));
            }
        }
    }
    wrong
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
    assert_eq!(wrong_looks(permit, "use super::inform::Informed;\nuse crate::call::Call;\n"), Vec::<String>::new());
    assert_eq!(wrong_looks(permit, "use crate::call::Call;\nuse super::reserve::Reserved;\n").len(), 1);
    assert_eq!(wrong_looks(permit, "use crate::stage::run::{\n    Dispatch,\n    Ran,\n};\n").len(), 1);
    assert_eq!(wrong_looks(permit, "use crate::gate::Gate;\n").len(), 1);
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
    for name in ["call", "session", "json", "schema", "template", "approval", "clock", "trace", "refusal"] {
        let text = fs::read_to_string(source().join(format!("{name}.rs"))).unwrap();
        assert!(!text.contains("crate::stage") && !text.contains("crate::gate"), "{name}.rs looks up");
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
