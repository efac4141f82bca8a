//! The README's console blocks do what they show.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test may panic, and it runs the commands"
)]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command of the README and what it shows.
struct Shown {
    command: String,
    output: String,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn console_blocks(text: &str) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match line.strip_prefix("$ ") {
                Some(command) => shown.push(Shown { command: command.to_owned(), output: String::new() }),
                None => shown.last_mut().unwrap().output.push_str(&format!("{line}\n")),
            },
        }
    }
    shown
}

/// What differs from run to run, by a name. A name in a later command stands for the value that was seen.
fn mask(text: &str, seen: &mut HashMap<&'static str, String>) -> String {
    let mut masked = String::new();
    let mut word = String::new();
    for next in text.chars().chain(['\n']) {
        if next.is_ascii_alphanumeric() || "_-:.".contains(next) {
            word.push(next);
            continue;
        }
        let is_ulid =
            |word: &str| word.len() == 26 && word.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
        let name = match word.strip_prefix("apr_") {
            Some(rest) if is_ulid(rest) => Some("APPROVAL"),
            _ if is_ulid(&word) => Some("REF"),
            _ if word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit()) => Some("HASH"),
            _ if word.len() == 24 && word.ends_with('Z') && word.starts_with("20") => Some("TIME"),
            _ => None,
        };
        if let Some(name) = name {
            seen.insert(name, word.clone());
        }
        masked.push_str(name.unwrap_or(&word));
        masked.push(next);
        word.clear();
    }
    masked.pop();
    masked
}

#[test]
fn the_five_minutes_of_the_readme_show_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    copy(&workspace().join("examples/shop"), &folder.path().join("examples/shop"));
    let _ = fs::remove_dir_all(folder.path().join("examples/shop/state"));
    let bin = Path::new(env!("CARGO_BIN_EXE_toolgate")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let shown = console_blocks(&fs::read_to_string(workspace().join("README.md")).unwrap());
    assert!(shown.len() >= 10, "the README shows how it is used");
    let mut seen = HashMap::new();
    for Shown { command, output } in shown {
        let filled =
            seen.iter().fold(command.clone(), |command, (name, value): (&&str, &String)| command.replace(*name, value));
        let ran =
            Command::new("bash").args(["-c", &filled]).current_dir(folder.path()).env("PATH", &path).output().unwrap();
        assert_eq!(mask(&String::from_utf8(ran.stdout).unwrap(), &mut seen), output, "$ {command}");
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}
