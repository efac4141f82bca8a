//! A JSON body while it is read: one object, each member at most once, no member that is not known, and everything that
//! is wrong told at once.

use std::time::Duration;

use serde_json::Value;
use toolgate::fields::parse_span;
use toolgate::json::{self, Flaw, Limits};

use super::problem::{Kind, Problem};

/// The members of a body that are still to be read.
pub(super) struct Members<'a> {
    given: Vec<(String, &'a [u8])>,
    known: Vec<&'static str>,
    problems: Vec<toolgate::schema::Problem>,
}

impl<'a> Members<'a> {
    pub(super) fn read(body: &'a [u8], limits: &Limits) -> Result<Self, Problem> {
        let given = json::members(body, limits).map_err(|flaw| Problem::flawed(&flaw))?;
        Ok(Self { given, known: Vec::new(), problems: Vec::new() })
    }

    /// The raw text of a member.
    pub(super) fn raw(&mut self, name: &'static str) -> Option<&'a [u8]> {
        self.known.push(name);
        let at = self.given.iter().position(|(given, _)| given == name)?;
        Some(self.given.swap_remove(at).1)
    }

    /// The raw text of a member that must be there.
    pub(super) fn needed(&mut self, name: &'static str) -> Option<&'a [u8]> {
        let raw = self.raw(name);
        if raw.is_none() {
            self.problem(&format!("/{name}"), "required", "the member is missing");
        }
        raw
    }

    /// A text that must be there.
    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        let raw = self.needed(name)?;
        match self.value(name, raw)? {
            Value::String(text) => Some(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                self.problem(&format!("/{name}"), "type", "expected a string");
                None
            }
        }
    }

    /// A span of time that must be there.
    pub(super) fn span(&mut self, name: &'static str) -> Option<Duration> {
        let text = self.text(name)?;
        let span = parse_span(&text);
        if span.is_none() {
            self.problem(&format!("/{name}"), "format", "expected a span of time such as 30m, 12h or 7d");
        }
        span
    }

    /// Any value, where it is given.
    pub(super) fn any(&mut self, name: &'static str) -> Option<Value> {
        let raw = self.raw(name)?;
        self.value(name, raw)
    }

    /// True or false; false where it is not given.
    pub(super) fn flag(&mut self, name: &'static str) -> bool {
        let Some(raw) = self.raw(name) else { return false };
        match self.value(name, raw) {
            Some(Value::Bool(flag)) => flag,
            Some(_) => {
                self.problem(&format!("/{name}"), "type", "expected true or false");
                false
            }
            None => false,
        }
    }

    pub(super) fn problem(&mut self, at: &str, code: &str, message: &str) {
        let problem =
            toolgate::schema::Problem { at: at.into(), code: code.into(), message: message.into(), hint: None };
        self.problems.push(problem);
    }

    /// Every member has been asked for: what is left is not known. The names of such members are not repeated.
    pub(super) fn end(mut self) -> Result<(), Problem> {
        if !self.given.is_empty() {
            let hint = format!("known: {}", self.known.join(", "));
            let message = match self.given.len() {
                1 => "an unknown member".to_owned(),
                count => format!("{count} unknown members"),
            };
            let code = "additional_property".to_owned();
            self.problems.push(toolgate::schema::Problem { at: String::new(), code, message, hint: Some(hint) });
        }
        let detail = match self.problems.as_slice() {
            [] => return Ok(()),
            [one] if one.at.is_empty() => one.message.clone(),
            [one] => format!("{}: {}", one.at, one.message),
            all => format!("{} problems in the body", all.len()),
        };
        Err(Problem::new(Kind::BrokenEnvelope, detail).problems(self.problems))
    }

    /// What the raw text of a member says.
    pub(super) fn value(&mut self, name: &'static str, raw: &[u8]) -> Option<Value> {
        match json::read(raw, &Limits { size: raw.len(), ..Limits::default() }) {
            Ok(value) => Some(value),
            Err(Flaw { code, message, .. }) => {
                self.problem(&format!("/{name}"), code.as_str(), &message);
                None
            }
        }
    }
}
