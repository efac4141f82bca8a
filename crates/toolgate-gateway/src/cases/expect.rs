//! What a case says must become of its call, and how that differs from what would.

use std::fmt::{self, Display, Formatter};

use serde_json::Value;
use toolgate::Reply;
use toolgate::fields::{Fields, Problems, nearest};
use toolgate::json::{self, Limits, canonical};
use toolgate::refusal::{Code, problem_codes};
use toolgate::schema::Problem;

/// What must become of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// Nothing stands in its way and, where it runs, it gives a result.
    Ok(Accepted),
    /// It would be refused, as this says.
    Refused(Refused),
}

/// A call that is in order, as far as the case speaks of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Accepted {
    /// What its result must hold; there may be more in it.
    result: Option<Value>,
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

/// `run` is the older word.
const OK: [&str; 2] = ["ok", "run"];

impl Expect {
    /// Reads the value that stands at `/expect`.
    pub(super) fn read(value: &Value, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::String(word) if OK.contains(&word.as_str()) => Some(Self::Ok(Accepted::default())),
            Value::String(word) => Some(Self::Refused(Refused::of(read_code(word, "/expect", &OK, problems)?))),
            Value::Object(table) if table.contains_key("result") && !table.contains_key("code") => {
                let mut fields = Fields::of(table, "/expect");
                let result = fields.raw("result").cloned();
                fields.end(problems);
                Some(Self::Ok(Accepted { result }))
            }
            Value::Object(table) => Refused::read(Fields::of(table, "/expect"), problems).map(Self::Refused),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                let message = "expected \"ok\", the code of a refusal, {\"code\": ...} or {\"result\": ...}";
                problems.note("/expect", "type", message);
                None
            }
        }
    }

    /// Whether only a call that was made can be what is expected.
    pub(super) fn needs_a_run(&self) -> bool {
        matches!(self, Self::Ok(Accepted { result: Some(_) }))
    }

    /// How a call was answered otherwise. No values: what a case sends, its file shows.
    pub(super) fn difference(&self, reply: &Reply) -> Option<Difference> {
        let details = match self {
            Self::Ok(accepted) if reply.is_ok() => accepted.differences(reply),
            Self::Refused(refused) if reply.refusal().is_some() => refused.differences(reply),
            Self::Ok(_) | Self::Refused(_) => Some(Vec::new()),
        };
        details.map(|details| Difference { summary: format!("expected {self}, came {}", Came(reply)), details })
    }
}

/// What was expected and what came, in a line, and each thing that is otherwise.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) summary: String,
    pub(super) details: Vec<String>,
}

impl Accepted {
    fn differences(&self, reply: &Reply) -> Option<Vec<String>> {
        let wanted = self.result.as_ref()?;
        let came = reply.result().and_then(|text| json::read(text.as_bytes(), &Limits::default()).ok());
        let mut details = Vec::new();
        compare(wanted, &came.unwrap_or_default(), "", &mut details);
        (!details.is_empty()).then_some(details)
    }
}

/// Notes where a result does not hold what is wanted of it. Members that are not named may be anything.
fn compare(wanted: &Value, came: &Value, at: &str, details: &mut Vec<String>) {
    let place = if at.is_empty() { "the result" } else { at };
    match (wanted, came) {
        (Value::Object(wanted), Value::Object(came)) => {
            for (name, wanted) in wanted {
                let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                match came.get(name) {
                    Some(came) => compare(wanted, came, &at, details),
                    None => details.push(format!("{at} is not there")),
                }
            }
        }
        (Value::Array(wanted), Value::Array(came)) => {
            if wanted.len() != came.len() {
                details.push(format!("{place} has {} items and not {}", came.len(), wanted.len()));
            }
            for (index, (wanted, came)) in wanted.iter().zip(came).enumerate() {
                compare(wanted, came, &format!("{at}/{index}"), details);
            }
        }
        (wanted, came) if canonical(wanted) == canonical(came) => {}
        (wanted, came) if kind(wanted) == kind(came) => details.push(format!("{place} has another value")),
        (wanted, came) => details.push(format!("{place} is {} and not {}", kind(came), kind(wanted))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
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
        let mut places = read_places(&mut fields, problems);
        let at = fields.place("problems");
        let told: Vec<Told> = match fields.raw("problems") {
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
        places.extend(told);
        Some(Self { code: code?, rule, message, problems: places })
    }

    fn differences(&self, reply: &Reply) -> Option<Vec<String>> {
        let refusal = reply.refusal()?;
        if self.code != refusal.code() {
            return Some(Vec::new());
        }
        let mut details = Vec::new();
        if let Some(rule) = self.rule.as_deref().filter(|rule| refusal.rule_id() != Some(rule)) {
            details.push(format!("the rule is not {rule}"));
        }
        if self.message.as_deref().is_some_and(|part| !refusal.text().contains(part)) {
            details.push("the message does not hold the expected part".to_owned());
        }
        let told = refusal.problem_list();
        let untold = self.problems.iter().filter(|wanted| !told.iter().any(|problem| wanted.fits(problem)));
        details
            .extend(untold.map(|wanted| format!("not told: {}", named(wanted.code.as_deref(), wanted.at.as_deref()))));
        (!details.is_empty()).then_some(details)
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

/// The short form of `problems`: a place, or a list of places.
fn read_places(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<Told> {
    let at_place = |place: String| Told { at: Some(place), code: None };
    match fields.raw("at") {
        Some(Value::Array(_)) => fields.texts("at", problems).into_iter().map(at_place).collect(),
        Some(_) => fields.text("at", problems).map(|place| at_place(place.to_owned())).into_iter().collect(),
        None => Vec::new(),
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
        let Refused { code, rule, message, problems } = match self {
            Self::Ok(Accepted { result: None }) => return f.write_str("ok"),
            Self::Ok(Accepted { result: Some(_) }) => return f.write_str("ok with a result"),
            Self::Refused(refused) => refused,
        };
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
        let Some(refusal) = self.0.refusal() else { return f.write_str("ok") };
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
        assert_eq!(read(json!("ok")), Expect::Ok(Accepted::default()));
        assert_eq!(read(json!("run")), read(json!("ok")), "the older word");
        let places = json!({"code": "invalid_arguments", "at": ["/a", "/b"]});
        let problems = json!({"code": "invalid_arguments", "problems": [{"at": "/a"}, {"at": "/b"}]});
        assert_eq!(read(places), read(problems));
        let one = json!({"code": "invalid_arguments", "at": "/a"});
        assert_eq!(read(one), read(json!({"code": "invalid_arguments", "problems": [{"at": "/a"}]})));
    }

    #[test]
    fn a_result_holds_what_is_wanted_of_it_and_may_hold_more() {
        let details = |wanted, came| {
            let mut details = Vec::new();
            compare(&wanted, &came, "", &mut details);
            details.sort();
            details
        };
        let came = json!({"id": "re_1", "items": [{"n": 1, "m": 2}, {"n": 2}], "more": true});
        assert_eq!(details(json!({"items": [{"n": 1.0}, {}]}), came.clone()), [""; 0]);
        assert_eq!(
            details(json!({"id": "re_2", "items": [{"n": "1"}], "gone": null}), came.clone()),
            [
                "/gone is not there",
                "/id has another value",
                "/items has 2 items and not 1",
                "/items/0/n is number and not string",
            ]
        );
        assert_eq!(details(json!([]), came), ["the result is object and not array"]);
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
        assert_eq!(
            faults(json!({"result": {}, "rule": "x"})),
            ["/expect/rule: unknown key (known: result)"],
            "a result and a refusal are two things"
        );
        for none in [json!(null), json!(7), json!(["ok"]), json!({}), json!({"code": "forbidden", "at": 7})] {
            assert_eq!(faults(none).len(), 1);
        }
    }
}
