//! The `fixed` backend: answers that the folder itself holds, for a first try, for tests and for what never changes.
//! Nothing is asked and nothing happens in the world; the gate's own part is as real as ever, so a write is still done at
//! most once.

mod shaped;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};
use toolgate::backend::{
    Answer, Backend, Context, Dispatch, Failure, FailureKind, Found, Looking, Lookup, Recorded, Recording, Running,
};
use toolgate::contract::Contract;
use toolgate::fields::{Fields, Problems};
use toolgate::json::canonical;
use toolgate::refusal::Effect;
use toolgate::schema::Problem;

use crate::config::is_inside;
use shaped::Shaped;

/// Answers the calls of one contract.
#[derive(Debug)]
pub(super) struct Fixed {
    answers: Answers,
    delay: Duration,
}

/// Where the answers are.
#[derive(Debug)]
enum Answers {
    /// In the contract. The first that fits a call is its answer.
    Listed(Vec<Entry>),
    /// In a file beside it, by their arguments.
    Recorded(Recording),
}

/// One answer of the contract.
#[derive(Debug)]
struct Entry {
    /// Its place in the contract, as a JSON pointer.
    at: String,
    /// The arguments that it is for: all that are named here are equal. Without any it is for every call.
    when: Map<String, Value>,
    end: End,
}

/// How a call ends.
#[derive(Debug)]
enum End {
    Result(Shaped),
    Error(Recorded),
}

/// No answer is for these arguments: in a look-up, there is no such thing.
const NO_ANSWER: &str = "no_answer";

impl Fixed {
    /// Reads the rest of the `backend` table of a contract that stands in `folder`.
    pub(super) fn read(mut table: Fields<'_>, folder: &Path, problems: &mut Problems) -> Option<Self> {
        let delay = table.span("delay", Duration::ZERO, problems);
        let given: Vec<&'static str> =
            ["result", "results", "error", "file"].into_iter().filter(|key| table.raw(key).is_some()).collect();
        let answers = match given.as_slice() {
            ["file"] => read_file(&mut table, folder, problems).map(Answers::Recorded),
            ["results"] => Some(Answers::Listed(read_list(&mut table, problems))),
            [_] => read_end(&mut table, problems)
                .map(|(at, end)| Answers::Listed(vec![Entry { at, when: Map::new(), end }])),
            [] => {
                let hint = "write result = { ... }, results = [{ when = { ... }, result = { ... } }], error = \"SIGNAL\" or \
                            file = \"NAME.jsonl\"";
                let message = "`result` is missing: there is no answer";
                problems.hinted(table.place("result"), "required", message, Some(hint.to_owned()));
                None
            }
            [first, second, ..] => {
                let message = format!("the answers are said twice: as `{first}` and as `{second}`");
                problems.note(table.place(second), "one_of", message);
                None
            }
        };
        table.end(problems);
        Some(Self { answers: answers?, delay })
    }

    /// The answer to a call; `None` where none is for its arguments.
    fn answer(&self, context: &Context) -> Option<Answer> {
        let arguments = context.arguments();
        match &self.answers {
            Answers::Recorded(recording) => recording.answer(arguments).map(Recorded::to_answer),
            Answers::Listed(entries) => {
                let entry = entries.iter().find(|entry| entry.is_for(arguments))?;
                Some(match &entry.end {
                    // What is absent of the call is left out; a result that is nothing but that is null.
                    End::Result(shaped) => Answer::done(shaped.fill(context).unwrap_or_default().to_string()),
                    End::Error(error) => error.to_answer(),
                })
            }
        }
    }

    /// The failures that the answers name.
    fn errors(&self) -> Vec<&str> {
        match &self.answers {
            Answers::Recorded(recording) => recording.answers().filter_map(Recorded::signal).collect(),
            Answers::Listed(entries) => entries.iter().filter_map(Entry::signal).collect(),
        }
    }
}

impl Entry {
    fn signal(&self) -> Option<&str> {
        match &self.end {
            End::Result(_) => None,
            End::Error(error) => error.signal(),
        }
    }

    fn is_for(&self, arguments: &Map<String, Value>) -> bool {
        self.when
            .iter()
            .all(|(name, wanted)| arguments.get(name).is_some_and(|given| canonical(given) == canonical(wanted)))
    }
}

/// The file of recorded answers, which stands beside the contract.
fn read_file(table: &mut Fields<'_>, folder: &Path, problems: &mut Problems) -> Option<Recording> {
    let at = table.place("file");
    let name = table.text("file", problems)?;
    if !is_inside(name) {
        let message = "a recording is named relative to the contract, and stands in the same folder or below";
        problems.note(at, "format", message);
        return None;
    }
    let text = match std::fs::read_to_string(folder.join(name)) {
        Ok(text) => text,
        Err(error) => {
            problems.note(at, "unreadable", format!("the recording cannot be read: {error}"));
            return None;
        }
    };
    match Recording::read(&text) {
        Ok(recording) => Some(recording),
        Err(faults) => {
            for fault in faults {
                problems.hinted(&at, &fault.problem.code, format!("{name}, {fault}"), fault.problem.hint.clone());
            }
            None
        }
    }
}

fn read_list(table: &mut Fields<'_>, problems: &mut Problems) -> Vec<Entry> {
    let at = table.place("results");
    let Some(Value::Array(list)) = table.raw("results") else {
        problems.note(at, "type", "expected a list such as [{ when = { id = 1 }, result = { ... } }]");
        return Vec::new();
    };
    if list.is_empty() {
        problems.note(&at, "min_items", "expected at least one answer");
    }
    let mut entries = Vec::new();
    for (index, item) in list.iter().enumerate() {
        let at = format!("{at}/{index}");
        let Value::Object(item) = item else {
            problems.note(at, "type", "expected a table such as { when = { id = 1 }, result = { ... } }");
            continue;
        };
        let mut fields = Fields::of(item, at);
        let when = fields.raw("when").and(fields.table("when", problems)).map(|when| {
            when.entries().map(|(name, value)| (name.clone(), value.clone())).collect::<Map<String, Value>>()
        });
        let end = match (fields.raw("result").is_some(), fields.raw("error").is_some()) {
            (true, true) => {
                problems.note(fields.place("error"), "one_of", "an answer is a result or an error, not both");
                None
            }
            (false, false) => {
                let message = "`result` is missing, and there is no `error`";
                problems.note(fields.place("result"), "required", message);
                None
            }
            (true, false) | (false, true) => read_end(&mut fields, problems),
        };
        fields.end(problems);
        entries.extend(end.map(|(at, end)| Entry { at, when: when.unwrap_or_default(), end }));
    }
    entries
}

/// The `result` or the `error` of a table, with its place.
fn read_end(table: &mut Fields<'_>, problems: &mut Problems) -> Option<(String, End)> {
    match table.raw("result") {
        Some(result) => {
            let at = table.place("result");
            let shaped = Shaped::read(result, &at, problems)?;
            Some((at, End::Result(shaped)))
        }
        None => Some((table.place("error"), End::Error(Recorded::error(table, problems)?))),
    }
}

impl Backend for Fixed {
    fn run(&self, dispatch: Dispatch) -> Running<'_> {
        Box::pin(async move {
            let context = dispatch.into_context();
            tokio::select! {
                () = tokio::time::sleep(self.delay) => {}
                () = context.cancelled() => {
                    let failure = Failure::new(FailureKind::Cancelled, "cancelled", "the caller went away");
                    return Answer::failed(Effect::None, failure);
                }
            }
            self.answer(&context).unwrap_or_else(|| {
                let why = "none of the answers of the contract is for these arguments";
                Answer::failed(Effect::None, Failure::new(FailureKind::Broken, NO_ANSWER, why))
            })
        })
    }

    fn look(&self, lookup: Lookup) -> Looking<'_> {
        Box::pin(async move {
            tokio::time::sleep(self.delay).await;
            match self.answer(lookup.context()).map(|answer| answer.outcome) {
                None => Found::Absent,
                Some(Ok(result)) if result == b"null" => Found::Absent,
                Some(Ok(result)) => Found::Found(result),
                Some(Err(failure)) => Found::Failed(format!("{}: {}", failure.signal, failure.detail)),
            }
        })
    }

    fn signals(&self) -> Option<Vec<&str>> {
        let mut signals = vec![NO_ANSWER, "timeout", "cancelled"];
        signals.extend(self.errors());
        signals.sort_unstable();
        signals.dedup();
        Some(signals)
    }

    fn check(&self, contract: &Contract) -> Vec<Problem> {
        let mut problems = Vec::new();
        match &self.answers {
            Answers::Recorded(recording) => {
                for answer in recording.answers() {
                    let Recorded::Result(result) = answer else { continue };
                    let wrong = contract.output().map(|output| output.problems(result).list).unwrap_or_default();
                    problems.extend(wrong.into_iter().map(|problem| misfit("/backend/file", problem)));
                }
            }
            Answers::Listed(entries) => {
                for Entry { at, when, end } in entries {
                    let members = contract.input().members();
                    for name in when.keys().filter(|name| !members.contains(name)) {
                        let at = at.rsplit_once('/').map_or("", |(entry, _)| entry);
                        problems.push(Problem {
                            at: format!("{at}/when/{}", name.replace('~', "~0").replace('/', "~1")),
                            code: "unknown_key".to_owned(),
                            message: "the contract has no such argument, so this fits no call".to_owned(),
                            hint: Some(format!("known: {}", members.join(", "))),
                        });
                    }
                    let End::Result(shaped) = end else { continue };
                    problems.extend(shaped.template_problems(at, contract));
                    if let Some(output) = contract.output() {
                        problems.extend(shaped.misfits(output).into_iter().map(|problem| misfit(at, problem)));
                    }
                }
            }
        }
        problems
    }
}

/// A problem of a result, told at its place in the contract.
fn misfit(at: &str, problem: Problem) -> Problem {
    let inner = if problem.at.is_empty() { "the result" } else { problem.at.as_str() };
    let message = format!("{inner} does not fit the output schema: {}", problem.message);
    // What is missing, and what a recording says, has no place of its own in the contract.
    Problem { at: at.to_owned(), message, ..problem }
}
