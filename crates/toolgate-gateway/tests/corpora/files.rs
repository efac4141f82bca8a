//! `abuse.jsonl`: texts of contract files, in a folder that `toolgate init` wrote and `toolgate check` looks at.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{rows, tell, told};

#[test]
fn every_abuse_of_a_contract_file_is_told_where_it_stands() {
    let mut counts = BTreeMap::new();
    for row in rows("abuse.jsonl").iter().filter(|row| row["surface"] == "schema") {
        let variants = row["input"]["variants"].as_array().cloned().unwrap_or_else(|| vec![row["input"].clone()]);
        for text in variants.iter().filter_map(|variant| variant["config_raw"].as_str()) {
            assert_eq!(row["expect"]["outcome"], "config_rejected", "{}", row["id"]);
            let folder = tempfile::tempdir().unwrap();
            toolgate(&["init"], folder.path());
            let (exit, _) = toolgate(&["check", "--json"], folder.path());
            assert_eq!(exit, Some(0), "the folder is sound as it was written");
            let file = "tools/get_order.toml";
            let sound = std::fs::read_to_string(folder.path().join(file)).unwrap();
            // What no line of TOML says stands for itself.
            let (added, what) = match told::toml_lines(text) {
                Some(lines) => (lines, "keys beside those of a contract"),
                None => (text.to_owned(), "a text that is no TOML"),
            };
            std::fs::write(folder.path().join(file), format!("{added}{sound}")).unwrap();
            let (exit, report) = toolgate(&["check", "--json"], folder.path());
            assert_eq!(exit, Some(2), "{}: {report}", row["id"]);
            let findings = report["findings"].as_array().unwrap();
            let last = added.lines().count() as u64;
            let is_there =
                |finding: &Value| finding["file"] == file && finding["line"].as_u64().is_some_and(|line| line <= last);
            assert!(findings.iter().any(is_there), "{}: {report}", row["id"]);
            *counts.entry(format!("refused: {what}")).or_insert(0) += 1;
        }
    }
    tell("contract files", &counts);
}

/// The exit of a command about a folder, and what it printed as JSON.
fn toolgate(command: &[&str], folder: &Path) -> (Option<i32>, Value) {
    let mut toolgate = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    let output = toolgate.args(command).arg(folder).env_remove("TOOLGATE_DIR").output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default())
}
