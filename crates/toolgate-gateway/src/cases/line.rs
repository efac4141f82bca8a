//! One line of a file of cases.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolgate::fields::{Fields, Problems};
use toolgate::json::{self, Limits};

use super::expect::Expect;
use crate::config::Finding;

/// A call, and what must become of it.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) place: Place,
    /// What is shown.
    pub(super) name: String,
    pub(super) user: Option<String>,
    pub(super) tool: String,
    /// The raw text of the arguments.
    pub(super) arguments: Vec<u8>,
    /// The calls that are made before this one.
    pub(super) after: Vec<Earlier>,
    /// Whether it is really made.
    pub(super) runs: bool,
    pub(super) expect: Expect,
}

/// A call that is made so that a case finds the data as it leaves them.
#[derive(Debug)]
pub(super) struct Earlier {
    pub(super) user: Option<String>,
    pub(super) tool: String,
    pub(super) arguments: Vec<u8>,
}

/// A line of a file, and where its members stand.
#[derive(Debug)]
pub(super) struct Place {
    file: PathBuf,
    line: usize,
    text: String,
    /// The column of each member's value, by the member's name.
    columns: BTreeMap<String, usize>,
}

impl Case {
    /// The case that stands in a line, or everything that is wrong with it.
    pub(super) fn read(file: &Path, line: usize, text: &str) -> Result<Self, Vec<Finding>> {
        let mut place = Place { file: file.to_owned(), line, text: text.to_owned(), columns: BTreeMap::new() };
        let limits = Limits::default();
        let read = json::read(text.as_bytes(), &limits).and_then(|whole| {
            // The arguments are sent as they are written, not as they would be printed.
            let raw = json::members(text.as_bytes(), &limits)?;
            Ok((whole, raw))
        });
        let (whole, raw) = read.map_err(|flaw| {
            let hint = flaw.hint().map(str::to_owned);
            vec![place.at(flaw.column, flaw.code.as_str(), format!("no strict JSON: {}", flaw.message)).hint(hint)]
        })?;
        place.columns = raw.iter().map(|(name, value)| (name.clone(), column_of(text, value))).collect();
        let mut problems = Problems::default();
        let parts = read_parts(&whole, &mut problems);
        let raw = raw.into_iter().find(|(name, _)| name == "arguments").map(|(_, value)| value.to_vec());
        match parts {
            Some(Parts { name, user, tool, text, after, runs, expect }) if problems.0.is_empty() => {
                let arguments = text.map(String::into_bytes).or(raw).unwrap_or_default();
                Ok(Self { place, name, user, tool, arguments, after, runs, expect })
            }
            _ => Err(problems.0.into_iter().map(|problem| place.problem(problem)).collect()),
        }
    }

    /// Whether it needs data of its own, because it changes them.
    pub(super) fn acts(&self) -> bool {
        self.runs || !self.after.is_empty()
    }
}

/// What the members say, but for the arguments.
struct Parts {
    name: String,
    user: Option<String>,
    tool: String,
    text: Option<String>,
    after: Vec<Earlier>,
    runs: bool,
    expect: Expect,
}

fn read_parts(whole: &Value, problems: &mut Problems) -> Option<Parts> {
    let Value::Object(members) = whole else {
        problems.note("", "type", "a case is an object");
        return None;
    };
    let mut fields = Fields::of(members, "");
    let name = fields.needed("case", problems).map(str::to_owned);
    let user = fields.text("as", problems).map(str::to_owned);
    let tool = fields.needed("tool", problems).map(str::to_owned);
    let arguments = fields.raw("arguments").is_some();
    let text = fields.text("text", problems).map(str::to_owned);
    if arguments && text.is_some() {
        problems.note("/text", "one_of", "the arguments are given twice: as `arguments` and as `text`");
    }
    let after = read_earlier(&mut fields, problems);
    let runs = fields.flag("run", problems);
    let expect = fields.raw("expect");
    if expect.is_none() {
        problems.note("/expect", "required", "`expect` is missing");
    }
    let expect = expect.and_then(|value| Expect::read(value, problems));
    if !runs && expect.as_ref().is_some_and(Expect::needs_a_run) {
        let hint = "write \"run\": true beside it".to_owned();
        problems.hinted("/expect/result", "required", "only a case that runs has a result", Some(hint));
    }
    fields.end(problems);
    Some(Parts { name: name?, user, tool: tool?, text, after, runs, expect: expect? })
}

fn read_earlier(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<Earlier> {
    let at = fields.place("after");
    let list = match fields.raw("after") {
        None => return Vec::new(),
        Some(Value::Array(list)) => list,
        Some(_) => {
            problems.note(at, "type", "expected a list of calls such as [{\"tool\": \"add_note\", \"arguments\": {}}]");
            return Vec::new();
        }
    };
    let mut earlier = Vec::new();
    for (index, call) in list.iter().enumerate() {
        let at = format!("{at}/{index}");
        let Value::Object(call) = call else {
            problems.note(at, "type", "expected a call such as {\"tool\": \"add_note\", \"arguments\": {}}");
            continue;
        };
        let mut fields = Fields::of(call, at);
        let user = fields.text("as", problems).map(str::to_owned);
        let tool = fields.needed("tool", problems).map(str::to_owned);
        let arguments = fields.raw("arguments").map(|arguments| arguments.to_string().into_bytes()).unwrap_or_default();
        fields.end(problems);
        earlier.extend(tool.map(|tool| Earlier { user, tool, arguments }));
    }
    earlier
}

impl Place {
    /// A fault at the value of a member; at the start of the line where there is no such member.
    pub(super) fn finding(
        &self,
        member: &str,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Finding {
        self.at(self.columns.get(member).copied().unwrap_or(1), code, message)
    }

    fn at(&self, column: usize, code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Finding {
        Finding {
            line: self.line,
            column,
            source: Some(self.text.clone()),
            ..Finding::of_file(&self.file, code, message)
        }
    }

    fn problem(&self, problem: toolgate::schema::Problem) -> Finding {
        let path = problem.at.trim_start_matches('/');
        let named = match path {
            "" => problem.message,
            path => format!("{}: {}", path.replace('/', "."), problem.message),
        };
        self.finding(path.split('/').next().unwrap_or_default(), problem.code, named).hint(problem.hint)
    }
}

/// The column, from 1, at which a part of a text stands.
fn column_of(text: &str, part: &[u8]) -> usize {
    let offset = part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    text.get(..offset).map_or(0, |before| before.chars().count()) + 1
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Case, Vec<String>> {
        let case = Case::read(Path::new("cases/a.jsonl"), 3, text);
        case.map_err(|findings| {
            let line = |finding: &Finding| finding.to_string().lines().next().unwrap().to_owned();
            findings.iter().map(line).collect()
        })
    }

    #[test]
    fn arguments_are_sent_as_they_are_written() {
        let case = read(r#"{"case": "c", "tool": "t", "arguments": {"n": 1.50e3}, "expect": "run"}"#).unwrap();
        assert_eq!(case.arguments, br#"{"n": 1.50e3}"#);
        let case = read(r#"{"case": "c", "tool": "t", "text": "{\"n\":", "expect": "invalid_json"}"#).unwrap();
        assert_eq!(case.arguments, br#"{"n":"#);
        assert!(read(r#"{"case": "c", "tool": "t", "expect": "run"}"#).unwrap().arguments.is_empty());
    }

    #[test]
    fn a_line_that_is_no_case_is_told_with_its_place() {
        assert_eq!(
            read(r#"{"case": "ü", "case": 1}"#).unwrap_err(),
            ["cases/a.jsonl:3:15: duplicate_key: no strict JSON: duplicate member \"case\""]
        );
        assert_eq!(read("[]").unwrap_err().len(), 1);
        assert_eq!(
            read(r#"{"case": "ü", "toll": "t", "arguments": {}, "text": "", "expect": "rnu"}"#).unwrap_err(),
            [
                "cases/a.jsonl:3:53: one_of: text: the arguments are given twice: as `arguments` and as `text`",
                "cases/a.jsonl:3:67: enum: expect: no refusal has this code",
                "cases/a.jsonl:3:23: unknown_key: toll: unknown key",
            ]
        );
    }

    #[test]
    fn what_is_missing_is_told_at_the_start_of_the_line() {
        assert_eq!(
            read("{}").unwrap_err(),
            [
                "cases/a.jsonl:3:1: required: case: `case` is missing",
                "cases/a.jsonl:3:1: required: tool: `tool` is missing",
                "cases/a.jsonl:3:1: required: expect: `expect` is missing",
            ]
        );
    }
}
