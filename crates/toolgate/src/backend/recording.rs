//! Recorded answers: what a tool said to which arguments, a line each.
//!
//! ```json
//! {"arguments": {"order_id": "ord_1"}, "result": {"total_cents": 4000}}
//! {"arguments": {"order_id": "ord_2"}, "error": "no_row"}
//! {"arguments": {"order_id": "ord_3"}, "error": {"signal": "lost", "effect": "unknown"}}
//! ```

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::{Answer, Failure, FailureKind};
use crate::fields::{Fields, Problems};
use crate::json::{self, Limits, canonical};
use crate::refusal::Effect;
use crate::schema::Problem;

/// What a tool answered, by the arguments it was given. Arguments that are equal have one answer, however they are
/// spelled.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// By the canonical text of the arguments.
    answers: BTreeMap<String, Recorded>,
}

/// One recorded answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Recorded {
    /// It gave this result.
    Result(Value),
    /// It failed.
    Error {
        /// What the contract's `[errors]` and `[retry]` call the failure.
        signal: String,
        /// What became of the world.
        effect: Effect,
    },
}

/// A line that is no recorded answer.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordingFault {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it, with the place in the line's object as a JSON pointer.
    pub problem: Problem,
}

impl Recording {
    /// Reads JSON lines, each an object with `arguments` and either `result` or `error`; blank lines are passed over. An
    /// `error` is a signal, of a failure that had no effect, or a table of `signal` and `effect`.
    ///
    /// Fails with everything that is wrong, a second answer to the same arguments included.
    pub fn read(text: &str) -> Result<Self, Vec<RecordingFault>> {
        let mut recording = Self::default();
        let mut faults = Vec::new();
        for (index, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
            let mut problems = Problems::default();
            if let Some((arguments, answer)) = read_line(text, &mut problems)
                && recording.answers.insert(arguments, answer).is_some()
            {
                problems.note("/arguments", "unique", "these arguments have an answer already");
            }
            faults.extend(problems.0.into_iter().map(|problem| RecordingFault { line: index + 1, problem }));
        }
        if faults.is_empty() { Ok(recording) } else { Err(faults) }
    }

    /// What was answered to these arguments.
    pub fn answer(&self, arguments: &Map<String, Value>) -> Option<&Recorded> {
        self.answers.get(&canonical(&Value::Object(arguments.clone())))
    }

    /// All answers, in the order of their arguments' canonical texts.
    pub fn answers(&self) -> impl Iterator<Item = &Recorded> {
        self.answers.values()
    }
}

fn read_line(text: &str, problems: &mut Problems) -> Option<(String, Recorded)> {
    let line = match json::read(text.as_bytes(), &Limits::default()) {
        Ok(Value::Object(line)) => line,
        Ok(_) => {
            problems.note("", "type", "a recorded answer is an object");
            return None;
        }
        Err(flaw) => {
            problems.note(
                "",
                flaw.code.as_str(),
                format!("no strict JSON at column {}: {}", flaw.column, flaw.message),
            );
            return None;
        }
    };
    let mut fields = Fields::of(&line, "");
    let given = fields.raw("arguments").is_some();
    let arguments = fields.table("arguments", problems).is_some();
    if !given {
        problems.note("/arguments", "required", "`arguments` is missing");
    }
    let result = fields.raw("result").cloned();
    let error = Recorded::error(&mut fields, problems);
    let said = error.is_some() || line.contains_key("error");
    let answer = match (result, error) {
        (Some(_), _) if said => {
            problems.note("/error", "one_of", "an answer is a result or an error, not both");
            None
        }
        (Some(result), _) => Some(Recorded::Result(result)),
        (None, Some(error)) => Some(error),
        (None, None) => {
            if !said {
                problems.note("/result", "required", "`result` is missing, and there is no `error`");
            }
            None
        }
    };
    fields.end(problems);
    let arguments = line.get("arguments").filter(|_| arguments).map(canonical);
    Some((arguments?, answer?))
}

impl Recorded {
    /// Reads the key `error` of a table, such as that of a line: a signal, of a failure that had no effect, or a table
    /// of `signal` and `effect`. `None` where there is no such key, or where it is wrong, which is noted.
    pub fn error(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<Self> {
        let at = fields.place("error");
        match fields.raw("error")? {
            Value::String(signal) => Some(Self::Error { signal: signal.clone(), effect: Effect::None }),
            Value::Object(table) => {
                let mut table = Fields::of(table, at);
                let signal = table.needed("signal", problems).map(str::to_owned);
                let effects = [("none", Effect::None), ("done", Effect::Done), ("unknown", Effect::Unknown)];
                let effect = table.word("effect", &effects, Effect::None, problems);
                table.end(problems);
                Some(Self::Error { signal: signal?, effect })
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                problems.note(at, "type", "expected a signal, or a table of `signal` and `effect`");
                None
            }
        }
    }

    /// What `[errors]` and `[retry]` call it, where it is a failure.
    pub fn signal(&self) -> Option<&str> {
        match self {
            Self::Result(_) => None,
            Self::Error { signal, .. } => Some(signal),
        }
    }

    /// How a run ends with it.
    pub fn to_answer(&self) -> Answer {
        match self {
            Self::Result(result) => Answer::done(result.to_string()),
            Self::Error { signal, effect } => Answer::failed(*effect, failure(signal)),
        }
    }
}

/// A failure of the kind that a signal names where it is one of those that every backend has.
fn failure(signal: &str) -> Failure {
    let kind = match signal {
        "connect" | "429" | "503" => FailureKind::Unavailable,
        "timeout" => FailureKind::TimedOut,
        "cancelled" => FailureKind::Cancelled,
        _ => FailureKind::Reported,
    };
    Failure::new(kind, signal, "it fails so by its declaration")
}

impl fmt::Display for RecordingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, problem } = self;
        match problem.at.as_str() {
            "" => write!(f, "line {line}: {}", problem.message),
            at => write!(f, "line {line}: {at}: {}", problem.message),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(text: &str) -> Vec<String> {
        Recording::read(text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn equal_arguments_have_one_answer_however_they_are_spelled() {
        let text = "{\"arguments\": {\"a\": 1e3, \"b\": \"\\u0041\"}, \"result\": 9007199254740993}\n\n";
        let recording = Recording::read(text).unwrap();
        let asked = json!({ "b": "A", "a": 1000 });
        let answer = recording.answer(asked.as_object().unwrap());
        assert_eq!(answer, Some(&Recorded::Result(json!(9_007_199_254_740_993_u64))));
        assert_eq!(recording.answer(json!({ "a": 1000 }).as_object().unwrap()), None);
    }

    #[test]
    fn an_error_says_its_signal_and_what_became_of_the_world() {
        let text = r#"{"arguments": {}, "error": {"signal": "lost", "effect": "unknown"}}
{"arguments": {"a": 1}, "error": "no_row"}"#;
        let recording = Recording::read(text).unwrap();
        let effects: Vec<Effect> = recording.answers().map(|answer| answer.to_answer().effect).collect();
        assert_eq!(effects, [Effect::None, Effect::Unknown]);
    }

    #[test]
    fn everything_that_is_wrong_is_told_with_its_line() {
        let text = r#"{"arguments": {"a": 1}, "result": 1}
{"arguments": {"a": 1.0}, "result": 2}
{"arguments": [], "result": 1}
{"arguments": {}, "result": 1, "error": "x"}
{"arguments": {}, "reslt": 1}
{"arguments": {}, "error": {"effect": "never"}}
{"arguments": {}, "result": 1, "result": 2}
7"#;
        assert_eq!(
            faults(text),
            [
                "line 2: /arguments: these arguments have an answer already",
                "line 3: /arguments: expected a table, got a list",
                "line 4: /error: an answer is a result or an error, not both",
                "line 5: /reslt: unknown key",
                "line 6: /error/signal: `signal` is missing",
                "line 6: /error/effect: expected one of: none, done, unknown",
                "line 7: no strict JSON at column 32: duplicate member \"result\"",
                "line 8: a recorded answer is an object",
            ]
        );
    }
}
