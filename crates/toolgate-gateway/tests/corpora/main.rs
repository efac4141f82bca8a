//! The corpora of `$TOOLGATE_CORPORA`, through `toolgate admit --jsonl`: faults that users reported, abuse, and schemas and
//! calls from the wild. Each row is checked, or a table says why not; the tables go by the kind of a row, not by its id.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test may panic, start processes, read the environment and JSON, and say what it skips"
)]

mod abuse;
mod actions;
mod acts;
mod approvals;
mod authority;
mod bfcl;
mod definitions;
mod faults;
mod files;
mod gate;
mod lenient;
mod mcp_tools;
mod sample;
mod suggested;
mod texts;
mod told;
mod words;
mod workshop;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// A file of the corpora; `None` where there are none.
fn corpus(file: &str) -> Option<PathBuf> {
    let named = std::env::var_os("TOOLGATE_CORPORA").map(PathBuf::from);
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora"));
    let found = named.or_else(|| beside.is_dir().then_some(beside)).map(|corpora| corpora.join(file));
    if found.is_none() {
        println!("skipped: TOOLGATE_CORPORA does not name the folder that holds {file}");
    }
    found
}

/// The rows of a file of JSON lines; none where there are no corpora.
fn rows(file: &str) -> Vec<Value> {
    let Some(path) = corpus(file) else { return Vec::new() };
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{} (TOOLGATE_CORPORA names its folder): {error}", path.display()));
    let row = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let rows: Vec<Value> = text.lines().map(row).collect();
    assert!(!rows.is_empty(), "{} has no rows", path.display());
    rows
}

/// The answers to some cases, one each.
fn admit(cases: &[Value]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    command.args(["admit", "--jsonl"]).env_remove("TOOLGATE_DIR").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    let writing = std::thread::spawn(move || lines.iter().for_each(|line| writeln!(stdin, "{line}").unwrap()));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), cases.len(), "a line for each line");
    for (case, answer) in cases.iter().zip(&answers) {
        assert_eq!(case["id"], answer["id"], "in order");
        let refused = answer.get("error").is_some();
        // What was sent is never echoed, so a refusal is short whatever was sent.
        assert!(!refused || answer.to_string().len() < 16_384, "a long refusal of {}", case["id"]);
    }
    answers
}

/// The bytes of a case's input.
fn input(case: &Value) -> Vec<u8> {
    match (&case["input"], case["input_base64"].as_str()) {
        (_, Some(text)) => data_encoding::BASE64.decode(text.as_bytes()).unwrap(),
        (Value::String(text), None) => text.clone().into_bytes(),
        (input, None) => input.to_string().into_bytes(),
    }
}

/// What became of a call.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// As it was sent.
    Admitted,
    /// Otherwise than it was sent: the names of the leniencies that were taken.
    Taken(Vec<String>),
    /// With its problems, each a code and a place.
    Refused { code: String, problems: Vec<(String, String)> },
}

/// The verdicts on the calls of an answer; the one on the whole, where there are no calls.
fn verdicts(answer: &Value) -> Vec<Verdict> {
    match answer.get("error") {
        Some(error) => vec![refused(error)],
        None => answer["calls"].as_array().unwrap().iter().map(verdict).collect(),
    }
}

fn verdict(call: &Value) -> Verdict {
    match call.get("error") {
        Some(error) => refused(error),
        None => {
            assert_eq!(call["digest"].as_str().map(str::len), Some(64), "{call}");
            let used = call["leniencies"].as_array().unwrap();
            let names: Vec<String> = used.iter().map(|used| used["leniency"].as_str().unwrap().to_owned()).collect();
            if names.is_empty() { Verdict::Admitted } else { Verdict::Taken(names) }
        }
    }
}

fn refused(error: &Value) -> Verdict {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let problems = error["problems"].as_array().cloned().unwrap_or_default();
    let problems = problems.iter().map(|problem| (word(&problem["code"]), word(&problem["at"]))).collect();
    Verdict::Refused { code: word(&error["code"]), problems }
}

impl Verdict {
    fn is_refused_as(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused { code, .. } if code == wanted)
    }

    /// Whether the call is to reach its tool.
    fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted | Self::Taken(_))
    }
}

/// How many calls of a case reached a tool: as many as admission let in. Contracts that it refuses make no gate.
fn reaching(case: &Value, found: &[Verdict]) -> Result<usize, String> {
    let reached = match gate::backend_calls(case) {
        Ok(reached) => reached,
        Err(_) if found.iter().all(|verdict| verdict.is_refused_as("invalid_contract")) => 0,
        Err(error) => return Err(format!("the contracts make no gate: {error}")),
    };
    let admitted = found.iter().filter(|verdict| verdict.is_admitted()).count();
    (reached == admitted).then_some(reached).ok_or_else(|| format!("{reached} calls reached a tool: {found:?}"))
}

/// How many rows there were of each kind, for whoever runs the test with its output shown.
fn tell(what: &str, counts: &BTreeMap<String, usize>) {
    for (kind, count) in counts {
        println!("{what}: {count} {kind}");
    }
}
