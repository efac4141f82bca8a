//! The data of a scenario, as `scenarios/README.md` describes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// One story: a gate, and what happens to it step by step.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) gate: GateName,
    pub(crate) story: String,
    #[serde(default)]
    pub(crate) needs: Vec<Need>,
    pub(crate) steps: Vec<Step>,
}

/// The gates that scenarios speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GateName {
    Lab,
    Shop,
    RefundOrder,
}

/// What a door must be able to do, beside passing calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Need {
    /// Move the gate's clock.
    Clock,
}

/// One thing that happens, and what must come of it. The member that only this kind has names the kind.
#[derive(Debug)]
pub(crate) enum Step {
    Call(CallStep),
    Turn(TurnStep),
    Message(MessageStep),
    Approve(DecisionStep),
    Deny(DecisionStep),
    Approvals(ApprovalsStep),
    Tools(ToolsStep),
    Rows(RowsStep),
    Runs(RunsStep),
    Advance(AdvanceStep),
    Edit(EditStep),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallStep {
    #[serde(rename = "as")]
    pub(crate) user: Option<String>,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    pub(crate) call: Call,
    pub(crate) expect: Value,
    pub(crate) expect_trace: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    pub(crate) never: Vec<String>,
    pub(crate) same_as: Option<String>,
    #[serde(default)]
    pub(crate) save: BTreeMap<String, String>,
    pub(crate) within_ms: Option<u64>,
    pub(crate) result_at_most: Option<usize>,
    pub(crate) exit: Option<i32>,
}

/// A call, as a model and its host would make it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub(crate) tool: String,
    arguments: Option<Value>,
    text: Option<String>,
    pub(crate) operation: Option<String>,
    pub(crate) approval: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnStep {
    #[serde(rename = "as")]
    pub(crate) user: Option<String>,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    pub(crate) turn: Vec<Call>,
    pub(crate) expect: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageStep {
    #[serde(rename = "as")]
    pub(crate) user: Option<String>,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    pub(crate) dialect: String,
    pub(crate) message: Value,
    pub(crate) expect: Option<Value>,
    pub(crate) expect_messages: Option<Value>,
    pub(crate) expect_broken: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionStep {
    #[serde(alias = "approve", alias = "deny")]
    pub(crate) id: String,
    #[serde(rename = "as")]
    pub(crate) user: Option<String>,
    pub(crate) expect_state: Option<String>,
    pub(crate) expect_refused: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalsStep {
    pub(crate) approvals_as: String,
    pub(crate) expect_approvals: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolsStep {
    pub(crate) tools_as: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    pub(crate) expect_tools: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowsStep {
    pub(crate) rows: String,
    pub(crate) expect: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunsStep {
    pub(crate) runs: Runs,
}

/// How often a tool of the lab was really run, and how often its work was ended before its end.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Runs {
    pub(crate) tool: String,
    pub(crate) count: usize,
    #[serde(default)]
    pub(crate) ended_early: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdvanceStep {
    pub(crate) advance: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditStep {
    pub(crate) edit: Edit,
}

/// A change of one file of the gate's folder.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    pub(crate) file: String,
    pub(crate) replace: (String, String),
}

/// Every scenario of the folder with the name of its file, in the order of the names.
pub(crate) fn all(folder: &Path) -> Vec<(String, Scenario)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder of the scenarios")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap();
            let scenario = serde_json::from_str(&text).unwrap_or_else(|error| panic!("scenarios/{name}: {error}"));
            (name, scenario)
        })
        .collect()
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fn as_kind<T: DeserializeOwned>(step: Value, make: fn(T) -> Step) -> Result<Step, serde_json::Error> {
            serde_json::from_value(step).map(make)
        }
        let step = Value::deserialize(deserializer)?;
        let has = |name: &str| step.get(name).is_some();
        let read = match () {
            () if has("call") => as_kind(step, Step::Call),
            () if has("turn") => as_kind(step, Step::Turn),
            () if has("message") => as_kind(step, Step::Message),
            () if has("approve") => as_kind(step, Step::Approve),
            () if has("deny") => as_kind(step, Step::Deny),
            () if has("approvals_as") => as_kind(step, Step::Approvals),
            () if has("tools_as") => as_kind(step, Step::Tools),
            () if has("rows") => as_kind(step, Step::Rows),
            () if has("runs") => as_kind(step, Step::Runs),
            () if has("advance") => as_kind(step, Step::Advance),
            () if has("edit") => as_kind(step, Step::Edit),
            () => return Err(D::Error::custom(format!("a step of no known kind: {step}"))),
        };
        read.map_err(D::Error::custom)
    }
}

impl Call {
    pub(crate) fn new(tool: &str, arguments: Value) -> Self {
        Self { tool: tool.to_owned(), arguments: Some(arguments), text: None, operation: None, approval: None }
    }

    /// The text of the arguments, as a model would write it.
    pub(crate) fn text(&self) -> String {
        match (&self.text, &self.arguments) {
            (Some(text), None) => text.clone(),
            (None, Some(arguments)) => arguments.to_string(),
            (None, None) => "{}".to_owned(),
            (Some(_), Some(_)) => panic!("a call has either `arguments` or `text`"),
        }
    }
}

impl Step {
    /// The step in a few words, for a person who looks for it.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Call(step) => format!("call {} {}", step.call.tool, step.call.text()),
            Self::Turn(step) => format!("a turn of {} calls", step.turn.len()),
            Self::Message(step) => format!("a message of {}", step.dialect),
            Self::Approve(step) => format!("approve {}", step.id),
            Self::Deny(step) => format!("deny {}", step.id),
            Self::Approvals(step) => format!("the approvals that {} sees", step.approvals_as),
            Self::Tools(step) => format!("the tools that {} sees", step.tools_as),
            Self::Rows(step) => step.rows.clone(),
            Self::Runs(step) => format!("the runs of {}", step.runs.tool),
            Self::Advance(step) => format!("{} later", step.advance),
            Self::Edit(step) => format!("edit {}", step.edit.file),
        }
    }
}

/// A span such as `90s`, `2h` or `7d`.
pub(crate) fn span(text: &str) -> Duration {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().unwrap_or_else(|_| panic!("not a span: {text}"));
    match text.trim_start_matches(|c: char| c.is_ascii_digit()) {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(number * 60),
        "h" => Duration::from_secs(number * 3600),
        "d" => Duration::from_secs(number * 86_400),
        _ => panic!("not a span: {text}"),
    }
}
