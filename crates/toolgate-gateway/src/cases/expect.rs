//! What a case says must become of its call, and how that differs from what would.

use std::fmt::{self, Display, Formatter};

use serde_json::Value;
use toolgate::Reply;
use toolgate::fields::{Fields, Problems, nearest};
use toolgate::refusal::{Code, problem_codes};
use toolgate::schema::Problem;

/// What must become of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// It would run.
    Run,
    /// It would be refused, as this says.
    Refused(Refused),
}

/// A refusal, as far as the case speaks of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    code: Code,
    rule: Option<String>,
    /// A part of the message.
    message: Option<String>,
    /// Each of them must be told; others may be told too.
    problems: Vec<Told>,
}

/// A problem, as far as the case speaks of it.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    at: Option<String>,
    code: Option<String>,
}

/// What came, in the words of [`Expect`].
struct Came<'a>(&'a Reply);

impl Expect {
    /// Reads the value that stands at `/expect`.
    pub(super) fn read(value: &Value, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::String(word) if word == "run" => Some(Self::Run),
            Value::String(word) => Some(Self::Refused(Refused::of(read_code(word, "/expect", &["run"], problems)?))),
            Value::Object(table) => Refused::read(Fields::of(table, "/expect"), problems).map(Self::Refused),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                let message = "expected \"run\", the code of a refusal, or {\"code\": ...}";
                problems.note("/expect", "type", message);
                None
            }
        }
    }

    /// What is said of a call that was answered otherwise. No values: what a case sends, its file shows.
    pub(super) fn difference(&self, reply: &Reply) -> Option<String> {
        let fits = match self {
            Self::Run => reply.is_ok(),
            Self::Refused(refused) => refused.fits(reply),
        };
        (!fits).then(|| format!("expected {self}, came {}", Came(reply)))
    }
}

impl Refused {
    fn of(code: Code) -> Self {
        Self { code, rule: None, message: None, problems: Vec::new() }
    }

    fn read(mut fields: Fields<'_>, problems: &mut Problems) -> Option<Self> {
        let at = fields.place("code");
        let code = fields.needed("code", problems).and_then(|word| read_code(word, &at, &[], problems));
        let rule = fields.text("rule", problems).map(str::to_owned);
        let message = fields.text("message", problems).map(str::to_owned);
        let at = fields.place("problems");
        let told = match fields.raw("problems") {
            None => Vec::new(),
            Some(Value::Array(list)) => {
                let each = list.iter().enumerate();
                each.filter_map(|(index, value)| Told::read(value, &format!("{at}/{index}"), problems)).collect()
            }
            Some(_) => {
                problems.note(at, "type", "expected a list such as [{\"at\": \"/order_id\", \"code\": \"required\"}]");
                Vec::new()
            }
        };
        fields.end(problems);
        Some(Self { code: code?, rule, message, problems: told })
    }

    fn fits(&self, reply: &Reply) -> bool {
        let Some(refusal) = reply.refusal() else { return false };
        let told = refusal.problem_list();
        self.code == refusal.code()
            && self.rule.as_deref().is_none_or(|rule| refusal.rule_id() == Some(rule))
            && self.message.as_deref().is_none_or(|part| refusal.text().contains(part))
            && self.problems.iter().all(|wanted| told.iter().any(|problem| wanted.fits(problem)))
    }
}

impl Told {
    fn read(value: &Value, at: &str, problems: &mut Problems) -> Option<Self> {
        let Value::Object(table) = value else {
            problems.note(at, "type", "expected {\"at\": PLACE, \"code\": CODE}");
            return None;
        };
        let mut fields = Fields::of(table, at);
        let place = fields.text("at", problems).map(str::to_owned);
        let code = fields.text("code", problems);
        if let Some(word) = code.filter(|word| problem_codes().all(|known| known != *word)) {
            let hint = nearest(word, problem_codes());
            problems.hinted(fields.place("code"), "enum", "no problem has this code", hint);
        }
        if place.is_none() && code.is_none() {
            problems.note(at, "required", "a problem is named by its place `at`, its `code`, or both");
        }
        fields.end(problems);
        Some(Self { at: place, code: code.map(str::to_owned) })
    }

    fn fits(&self, problem: &Problem) -> bool {
        self.at.as_deref().is_none_or(|at| at == problem.at)
            && self.code.as_deref().is_none_or(|code| code == problem.code)
    }
}

fn read_code(word: &str, at: &str, others: &[&'static str], problems: &mut Problems) -> Option<Code> {
    let code = Code::parse(word);
    if code.is_none() {
        let words = Code::ALL.iter().map(|code| code.as_str()).chain(others.iter().copied());
        problems.hinted(at, "enum", "no refusal has this code", nearest(word, words));
    }
    code
}

impl Display for Expect {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self::Refused(Refused { code, rule, message, problems }) = self else { return f.write_str("run") };
        write!(f, "{code}")?;
        if let Some(rule) = rule {
            write!(f, " by the rule {rule}")?;
        }
        let list = problems.iter().map(|told| named(told.code.as_deref(), told.at.as_deref()));
        write_list(f, list)?;
        match message {
            Some(_) => f.write_str(" with the expected part in its message"),
            None => Ok(()),
        }
    }
}

impl Display for Came<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(refusal) = self.0.refusal() else { return f.write_str("run") };
        write!(f, "{}", refusal.code())?;
        if let Some(rule) = refusal.rule_id() {
            write!(f, " by the rule {rule}")?;
        }
        write_list(f, refusal.problem_list().iter().map(|problem| named(Some(&problem.code), Some(&problem.at))))
    }
}

fn named(code: Option<&str>, at: Option<&str>) -> String {
    let code = code.unwrap_or("a problem");
    match at {
        None => code.to_owned(),
        Some("") => format!("{code} at the top"),
        Some(at) => format!("{code} at {at}"),
    }
}

fn write_list(f: &mut Formatter<'_>, list: impl Iterator<Item = String>) -> fmt::Result {
    let list: Vec<String> = list.collect();
    if list.is_empty() { Ok(()) } else { write!(f, " ({})", list.join(", ")) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is wrong with an expectation, a line each: place, message, hint.
    fn faults(value: Value) -> Vec<String> {
        let mut problems = Problems::default();
        let read = Expect::read(&value, &mut problems);
        assert!(read.is_some() || !problems.0.is_empty(), "a fault is told: {value}");
        problems.0.into_iter().map(|p| format!("{}: {} ({})", p.at, p.message, p.hint.unwrap_or_default())).collect()
    }

    #[test]
    fn the_short_form_is_the_long_one_without_details() {
        let read = |value| Expect::read(&value, &mut Problems::default()).unwrap();
        assert_eq!(read(json!("forbidden")), read(json!({"code": "forbidden"})));
        assert_eq!(read(json!("run")), Expect::Run);
    }

    #[test]
    fn what_no_answer_could_be_is_a_fault_with_a_suggestion() {
        assert_eq!(faults(json!("runs")), ["/expect: no refusal has this code (did you mean run?)"]);
        assert_eq!(
            faults(json!({"code": "rule_faild", "rules": "x"})),
            [
                "/expect/code: no refusal has this code (did you mean rule_failed?)",
                "/expect/rules: unknown key (did you mean rule?)",
            ]
        );
        assert_eq!(
            faults(json!({"code": "invalid_arguments", "problems": [{"code": "requird"}, {}, 3]})),
            [
                "/expect/problems/0/code: no problem has this code (did you mean required?)",
                "/expect/problems/1: a problem is named by its place `at`, its `code`, or both ()",
                "/expect/problems/2: expected {\"at\": PLACE, \"code\": CODE} ()",
            ]
        );
        for none in [json!(null), json!(7), json!(["run"]), json!({})] {
            assert_eq!(faults(none).len(), 1);
        }
    }
}
