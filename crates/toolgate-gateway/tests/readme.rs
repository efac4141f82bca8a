//! The README's blocks do what they show.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test may panic, and it runs the commands"
)]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A command of the README and what it shows.
struct Shown {
    command: String,
    output: String,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn readme() -> String {
    fs::read_to_string(workspace().join("README.md")).unwrap()
}

/// A shell that knows this build's `toolgate`.
fn bash(command: &str, folder: &Path) -> Command {
    let bin = Path::new(env!("CARGO_BIN_EXE_toolgate")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-c", command]).current_dir(folder).env("PATH", path).env_remove("TOOLGATE_DIR");
    bash
}

/// The lines of all blocks of a kind, in their order.
fn blocks<'t>(text: &'t str, kind: &str) -> Vec<&'t str> {
    let mut inside = false;
    let within = text.lines().filter(|line| {
        let fence = line.starts_with("```");
        if fence {
            inside = *line == format!("```{kind}");
        }
        inside && !fence
    });
    within.collect()
}

fn shown(text: &str) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for line in blocks(text, "console") {
        match line.strip_prefix("$ ") {
            Some(command) => shown.push(Shown { command: command.to_owned(), output: String::new() }),
            None => shown.last_mut().unwrap().output.push_str(&format!("{line}\n")),
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
fn what_the_readme_shows_happens_in_an_empty_folder() {
    let begun = Instant::now();
    let folder = tempfile::tempdir().unwrap();
    let shown = shown(&readme());
    assert!(shown.len() >= 14, "the README shows how it is used");
    let mut seen = HashMap::new();
    for Shown { command, output } in shown {
        let filled =
            seen.iter().fold(command.clone(), |command, (name, value): (&&str, &String)| command.replace(*name, value));
        let ran = bash(&filled, folder.path()).output().unwrap();
        assert_eq!(mask(&String::from_utf8(ran.stdout).unwrap(), &mut seen), output, "$ {command}");
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "a reader does not wait");
}

#[test]
fn the_first_screen_is_one_and_tells_the_story_in_five_commands() {
    let text = readme();
    let (first, _) = text.split_once("\n## ").unwrap();
    let rows: usize = first.lines().map(|line| line.chars().count().max(1).div_ceil(100)).sum();
    assert!(rows <= 45, "{rows} rows of 100 columns");
    let commands: Vec<String> = shown(first).into_iter().map(|shown| shown.command).collect();
    assert_eq!(commands.len(), 5, "{commands:#?}");
    assert!(commands[0].starts_with("toolgate init ") && commands[2].starts_with("toolgate approvals "));
    assert!(commands[1] == commands[3] && commands[3] == commands[4], "it is the same call three times");
    assert!(blocks(first, "sh")[0].starts_with("cargo run --release -- serve examples/shop"));
}

#[test]
fn the_readme_leads_nowhere_that_is_not_there() {
    let text = readme();
    let links = text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
    for link in links {
        match link.strip_prefix('#') {
            Some(heading) => {
                let slug = |line: &str| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
                assert!(text.lines().any(|line| line.starts_with("## ") && slug(line) == heading), "{link}");
            }
            None => assert!(link.starts_with("https://") || workspace().join(link).exists(), "{link}"),
        }
    }
}

#[test]
fn what_is_posted_is_the_message_of_the_example() {
    let read = |file: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(workspace().join("examples/shop").join(file)).unwrap()).unwrap()
    };
    let posted = serde_json::json!({ "dialect": "openai-chat", "message": read("message.json") });
    assert_eq!(read("post.json"), posted);
}

mod serving {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Stdio};

    use serde_json::Value;

    use super::*;

    /// A `toolgate serve` in the background, which ends with this.
    struct Served {
        child: Child,
        address: String,
    }

    impl Served {
        /// Starts the command of the README with this build, on a port that is free.
        fn start(command: &str, folder: &Path) -> Self {
            let words = command.strip_prefix("cargo run --release -- ").unwrap();
            let mut command = bash(&format!("exec toolgate {words} --port 0"), folder);
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let mut lines = lines.map_while(Result::ok);
            let address = lines.find_map(|line| line.strip_prefix("listening on http://").map(str::to_owned));
            Self { child, address: address.unwrap_or_else(|| panic!("it does not listen")) }
        }
    }

    impl Drop for Served {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    #[test]
    fn the_first_command_of_the_readme_serves_what_its_curl_posts() {
        let folder = tempfile::tempdir().unwrap();
        copy(&workspace().join("examples/shop"), &folder.path().join("examples/shop"));
        let text = readme();
        let lines = blocks(&text, "sh");
        let (serve, _) = lines[0].split_once('#').unwrap();
        let served = Served::start(serve.trim(), folder.path());
        assert!(lines[1].contains("http://127.0.0.1:8787/"), "{}", lines[1]);
        let ran = bash(&lines[1].replace("127.0.0.1:8787", &served.address), folder.path()).output().unwrap();
        let answer: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        let ids = |list: &Value, member: &str| -> Vec<Value> {
            list.as_array().unwrap().iter().map(|one| one[member].clone()).collect()
        };
        let messages = ids(&answer["messages"], "tool_call_id");
        assert_eq!(messages.len(), 4, "{answer}");
        assert_eq!(messages, ids(&answer["outcomes"], "call_id"), "each call has its answer, in its place");
        let codes: Vec<Value> = answer["outcomes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|outcome| outcome["reply"]["error"]["code"].clone())
            .collect();
        assert_eq!(codes, [Value::Null, Value::Null, "invalid_arguments".into(), "approval_required".into()]);
    }

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true if entry.file_name() == "state" => {}
                true => copy(&entry.path(), &to.join(entry.file_name())),
                false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
            }
        }
    }
}
