//! The blocks of the README and of the pages in `docs/` do what they show.
//!
//! A page is followed from its top in an empty folder. A `console` block has commands, each with what it prints to
//! stdout; `toolgate serve` goes on beside the commands after it. A `toml`, `cedar` or `sql` block whose first line is a
//! comment with a path is that file. All other blocks are only read.

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

/// A command and what it shows.
struct Shown {
    command: String,
    output: String,
}

/// A file that a page has its reader write.
struct Written {
    path: String,
    text: String,
}

/// What a page has its reader do.
enum Step {
    Run(Shown),
    Write(Written),
}

/// The pages beside the README.
const PAGES: [&str; 19] = [
    "docs/admit.md",
    "docs/approvals.md",
    "docs/audit.md",
    "docs/checkpoints.md",
    "docs/definitions.md",
    "docs/dialects.md",
    "docs/folder.md",
    "docs/grants.md",
    "docs/http.md",
    "docs/identity.md",
    "docs/ledger.md",
    "docs/lenient.md",
    "docs/mcp.md",
    "docs/observe.md",
    "docs/policies-review.md",
    "docs/policies.md",
    "docs/schemas.md",
    "docs/stops.md",
    "docs/streams.md",
];
/// Where a page's server listens, for its reader.
const DOOR: &str = "127.0.0.1:8787";
/// Where a page's reader works, and where they keep the program.
const READER: &str = "/home/mia";
const PROGRAMS: &str = "/usr/local/bin";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn page(name: &str) -> String {
    fs::read_to_string(workspace().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn readme() -> String {
    page("README.md")
}

/// Where this build's `toolgate` is.
fn programs() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_toolgate")).parent().unwrap()
}

/// A shell that knows this build's `toolgate`.
fn bash(command: &str, folder: &Path) -> Command {
    let bin = programs();
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
    let run = |step| match step {
        Step::Run(shown) => Some(shown),
        Step::Write(_) => None,
    };
    steps(text).into_iter().filter_map(run).collect()
}

/// What a page has its reader do, in its order.
fn steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```").filter(|kind| !kind.is_empty()) else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let comment = match kind {
            "console" => {
                steps.extend(commands(&block).into_iter().map(Step::Run));
                continue;
            }
            "toml" => "# ",
            "cedar" => "// ",
            "sql" => "-- ",
            _ => continue,
        };
        let path = block.first().and_then(|line| line.strip_prefix(comment));
        if let Some(path) = path.filter(|path| path.contains('/') && !path.contains(' ')) {
            let text = block.iter().map(|line| format!("{line}\n")).collect();
            steps.push(Step::Write(Written { path: path.to_owned(), text }));
        }
    }
    steps
}

/// The commands of a block; one with a quote that is open goes on in the next line.
fn commands(block: &[&str]) -> Vec<Shown> {
    let mut commands: Vec<Shown> = Vec::new();
    for line in block {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push(Shown { command: command.to_owned(), output: String::new() }),
            None => {
                let last = commands.last_mut().unwrap();
                let goes_on = last.command.matches('\'').count() % 2 == 1;
                let text = if goes_on { &mut last.command } else { &mut last.output };
                text.push_str(&if goes_on { format!("\n{line}") } else { format!("{line}\n") });
            }
        }
    }
    commands
}

/// Follows a page from its top.
fn follow(text: &str, folder: &Path) {
    let folder = &folder.canonicalize().unwrap();
    let places = [(folder.to_str().unwrap(), READER), (programs().to_str().unwrap(), PROGRAMS)];
    let mut seen = HashMap::new();
    let mut served: Option<serving::Served> = None;
    for step in steps(text) {
        let Shown { command, output } = match step {
            Step::Run(shown) => shown,
            Step::Write(Written { path, text }) => {
                let path = folder.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
                continue;
            }
        };
        let filled =
            seen.iter().fold(command.clone(), |command, (name, value): (&&str, &String)| command.replace(*name, value));
        if let Some(words) = command.strip_prefix("toolgate serve ") {
            // The one before ends first: it may hold what this one needs.
            drop(served.take());
            served = Some(serving::Served::start(words, folder));
            assert_eq!(output, format!("listening on http://{DOOR}\n"), "$ {command}");
            continue;
        }
        let filled = served.iter().fold(filled, |command, served| command.replace(DOOR, served.address()));
        let ran = bash(&filled, folder).output().unwrap();
        let said = String::from_utf8(ran.stdout).unwrap();
        let said = places.iter().fold(said, |said, (here, there)| said.replace(here, there));
        // A body that is no text has no end of line.
        let said = if said.is_empty() || said.ends_with('\n') { said } else { format!("{said}\n") };
        assert_eq!(mask(&said, &mut seen), output, "$ {command}\n{}", String::from_utf8_lossy(&ran.stderr));
    }
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
        // A sentence may end with a moment.
        let end = if word.len() == 25 && word.ends_with("Z.") { "." } else { "" };
        word.truncate(word.len() - end.len());
        let is_ulid =
            |word: &str| word.len() == 26 && word.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
        let name = match word.strip_prefix("apr_") {
            Some(rest) if is_ulid(rest) => Some("APPROVAL"),
            Some(_) => None,
            None if word.strip_prefix("stop_").is_some_and(is_ulid) => Some("STOPID"),
            None if word.strip_prefix("stg_").is_some_and(is_ulid) => Some("STANDING"),
            _ if is_ulid(&word) => Some("REF"),
            _ if word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit()) => Some("HASH"),
            _ if word.len() == 12 && word.bytes().all(|b| b.is_ascii_hexdigit()) => Some("TOKENID"),
            _ if word.len() == 24 && word.ends_with('Z') && word.starts_with("20") => Some("TIME"),
            _ => None,
        };
        if let Some(name) = name {
            seen.insert(name, word.clone());
        }
        masked.push_str(name.unwrap_or(&word));
        masked.push_str(end);
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
    assert!(shown(&readme()).len() >= 14, "the README shows how it is used");
    follow(&readme(), folder.path());
    assert!(begun.elapsed() < Duration::from_secs(60), "a reader does not wait");
}

#[test]
fn what_the_pages_show_happens_in_an_empty_folder() {
    for name in PAGES {
        let text = page(name);
        assert!(!shown(&text).is_empty(), "{name} shows how it is used");
        follow(&text, tempfile::tempdir().unwrap().path());
    }
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
fn no_page_leads_where_nothing_is() {
    for name in PAGES.into_iter().chain(["README.md", "docs/README.md"]) {
        let text = page(name);
        let folder = workspace().join(name).parent().unwrap().to_owned();
        let links = text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
        for link in links.filter(|link| !link.starts_with("https://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let there = folder.join(file);
            assert!(there.exists(), "{name}: {link}");
            if !heading.is_empty() {
                let text = if file.is_empty() { text.clone() } else { fs::read_to_string(there).unwrap() };
                let plain = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
                let slug = |line: &str| -> String {
                    let heading = line.trim_start_matches('#').trim().to_lowercase();
                    heading.chars().filter(plain).map(|c| if c == ' ' { '-' } else { c }).collect()
                };
                assert!(text.lines().any(|line| line.starts_with("##") && slug(line) == heading), "{name}: {link}");
            }
        }
    }
}

#[test]
fn every_page_is_found_from_the_readme_and_from_every_other() {
    assert!(readme().contains("](docs/README.md)"), "the README leads to all pages");
    let all = page("docs/README.md");
    for name in PAGES {
        let file = name.strip_prefix("docs/").unwrap();
        assert!(all.contains(&format!("]({file})")), "the list of pages leads to {name}");
        assert!(page(name).contains("](README.md)"), "{name} leads to all others");
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
    pub(super) struct Served {
        child: Child,
        address: String,
    }

    impl Served {
        /// Starts `toolgate serve` with these words, on a port that is free.
        pub(super) fn start(words: &str, folder: &Path) -> Self {
            let mut command = bash(&format!("exec toolgate serve {words} --port 0"), folder);
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let mut lines = lines.map_while(Result::ok);
            let address = lines.find_map(|line| line.strip_prefix("listening on http://").map(str::to_owned));
            Self { child, address: address.unwrap_or_else(|| panic!("it does not listen")) }
        }

        pub(super) fn address(&self) -> &str {
            &self.address
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
        let words = serve.trim().strip_prefix("cargo run --release -- serve ").unwrap();
        let served = Served::start(words, folder.path());
        assert!(lines[1].contains(&format!("http://{DOOR}/")), "{}", lines[1]);
        let ran = bash(&lines[1].replace(DOOR, &served.address), folder.path()).output().unwrap();
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
