//! The command `toolgate`: each step is a process of its own.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{Answer, Asker, Door, Exchange};
use crate::folder::Folder;
use crate::scenario::{Call, GateName, Runs};

/// The command over a copy of an example.
pub(crate) struct Binary {
    folder: Folder,
}

/// How a run of the command ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) exit: Option<i32>,
}

impl Binary {
    pub(crate) fn new(gate: GateName) -> Self {
        Self { folder: Folder::of(gate) }
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// What the record tells of one attempt.
    pub(crate) fn records(&self, reference: &str) -> Vec<Value> {
        let told = Run::of(&mut toolgate(&["why", self.dir(), reference, "--json"]), "");
        if told.exit == Some(0) { told.json().as_array().unwrap().clone() } else { Vec::new() }
    }

    fn dir(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    /// Runs `toolgate approvals DIR ...`, whose options stand behind its action.
    fn approvals_command(&self, action: &[&str], user: Option<&str>) -> Run {
        let mut all = vec!["approvals", self.dir()];
        all.extend(action);
        all.push("--json");
        if let Some(user) = user {
            all.extend(["--as", user]);
        }
        Run::of(&mut toolgate(&all), "")
    }

    fn decide(&self, action: &str, id: &str, user: Option<&str>) -> Result<String, String> {
        let run = self.approvals_command(&[action, id], user);
        match run.exit {
            Some(0) => Ok(run.json()["state"].as_str().unwrap().to_owned()),
            Some(3) => {
                assert_eq!(run.stdout, "", "a refusal to decide is no answer");
                Err(run.stderr)
            }
            exit => panic!("exit {exit:?}: {}", run.stderr),
        }
    }
}

impl Door for Binary {
    fn call(&mut self, asker: Asker<'_>, call: &Call) -> Answer {
        let text = call.text();
        let mut words = vec!["call", "--trace", "--json"];
        words.extend(asker.options());
        words.extend(call.operation.iter().flat_map(|id| ["--operation", id.as_str()]));
        words.extend(call.approval.iter().flat_map(|id| ["--approval", id.as_str()]));
        words.extend(["--", self.dir(), call.tool.as_str(), text.as_str()]);
        let run = Run::of(&mut toolgate(&words), "");
        let mut reply = run.json();
        let trace = reply.as_object_mut().and_then(|reply| reply.remove("trace")).unwrap_or_default();
        let text = without_trace(&run.stdout);
        Answer { text, reply, trace, exit: run.exit }
    }

    fn message(&mut self, asker: Asker<'_>, dialect: &str, message: &Value) -> Exchange {
        let mut words = vec!["exec", "--json", "--from", dialect];
        words.extend(asker.options());
        words.push(self.dir());
        let run = Run::of(&mut toolgate(&words), &message.to_string());
        match run.exit {
            Some(0) => {
                let mut both = run.json();
                Exchange::Answered { messages: both["messages"].take(), outcomes: both["outcomes"].take() }
            }
            Some(2) => {
                assert_eq!(run.stdout, "", "a broken message has no answer");
                Exchange::Broken(run.stderr)
            }
            exit => panic!("exit {exit:?}: {}", run.stderr),
        }
    }

    fn approve(&mut self, id: &str, user: Option<&str>) -> Result<String, String> {
        self.decide("approve", id, user)
    }

    fn deny(&mut self, id: &str, user: Option<&str>) -> Result<String, String> {
        self.decide("deny", id, user)
    }

    fn approvals(&mut self, user: &str) -> Value {
        let run = self.approvals_command(&["list"], Some(user));
        assert_eq!(run.exit, Some(0), "{}", run.stderr);
        run.json()
    }

    fn tools(&mut self, asker: Asker<'_>) -> Vec<String> {
        let mut words = vec!["tools", self.dir(), "--json"];
        words.extend(asker.options());
        let run = Run::of(&mut toolgate(&words), "");
        assert_eq!(run.exit, Some(0), "{}", run.stderr);
        let tools = run.json();
        let mut names: Vec<String> =
            tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    fn rows(&self, sql: &str) -> Value {
        self.folder.rows(sql)
    }

    fn runs(&self, _tool: &str) -> Runs {
        panic!("only the tools of the lab are counted")
    }

    fn advance(&mut self, _span: Duration) {
        panic!("the clock of a process is not moved")
    }

    fn edit(&mut self, file: &str, from: &str, to: &str) {
        self.folder.edit(file, from, to);
    }

    fn verify(&mut self) -> Result<(), String> {
        verify(self.folder.path())
    }
}

impl Run {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command, stdin: &str) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        // A command that needs no input may have ended already.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let run = Self { stdout: text(output.stdout), stderr: text(output.stderr), exit: output.status.code() };
        assert!(!run.stdout.contains('\x1b') && !run.stderr.contains('\x1b'), "escape sequences: {run:?}");
        run
    }

    /// The answer, which is exactly one line of JSON.
    pub(crate) fn json(&self) -> Value {
        let line = self.stdout.strip_suffix('\n').unwrap_or_else(|| panic!("no answer: {self:?}"));
        assert!(!line.contains('\n'), "more than one line: {}", self.stdout);
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}

/// The command, with nothing of the tester's own environment that it goes by.
pub(crate) fn toolgate(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    command.args(words);
    for variable in ["TOOLGATE_DIR", "TOOLGATE_TOKEN", "NO_COLOR", "CLICOLOR_FORCE"] {
        command.env_remove(variable);
    }
    command
}

/// Makes one call with the command.
pub(crate) fn call(folder: &Path, user: &str, tool: &str, arguments: &Value) -> Run {
    let (folder, arguments) = (folder.to_str().unwrap(), arguments.to_string());
    Run::of(&mut toolgate(&["call", folder, tool, &arguments, "--as", user, "--json"]), "")
}

/// Whether the record of the folder's gate holds, as the command finds it.
pub(crate) fn verify(folder: &Path) -> Result<(), String> {
    let run = Run::of(&mut toolgate(&["audit", folder.to_str().unwrap(), "verify", "--json"]), "");
    match (run.exit, run.json()["records"].as_u64()) {
        (Some(0), Some(1..)) => Ok(()),
        _ => Err(run.stdout),
    }
}

/// The line of a reply without its last member, which is the trace.
fn without_trace(line: &str) -> String {
    match line.trim_end().rsplit_once(",\"trace\":[") {
        Some((reply, _)) => format!("{reply}}}"),
        None => line.trim_end().to_owned(),
    }
}
