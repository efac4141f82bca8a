//! What is wrong with a value, in our words: place, code, expected and found types; never a value.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Schema;
use super::graph::{escaped, segments};
use super::hints::{form_of, listed, near, shown};
use super::inert::visible;
use super::keywords::{Applies, type_of};
use super::lengths::{Excess, Measure};
use super::words::{article, expected, limits, meaning};
use crate::json::{canonical, is_printable_ascii};

/// Problems in one answer.
const MAX_PROBLEMS: usize = 50;
/// Characters of one member name in a pointer.
const MAX_NAME: usize = 64;
/// Characters of a place, a message and a hint.
const MAX_PLACE: usize = 512;
const MAX_WORDS: usize = 1_024;
/// Bytes of all problems of an answer, about: a model reads them, and they are kept.
const MAX_BYTES: usize = 12_000;

/// One thing that is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The place, a JSON pointer; for a missing member, where it would stand.
    pub at: String,
    /// The keyword of the schema in snake case, `discriminator`, `control_character` or `size`.
    pub code: String,
    /// What was expected, and what type was found.
    pub message: String,
    /// What to change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// All that is wrong with a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    /// Sorted by place; at most 50, and about 12 kB in all.
    pub list: Vec<Problem>,
    /// How many more there are.
    pub more: usize,
}

impl Problems {
    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

pub(super) fn of(schema: &Schema, value: &Value) -> Problems {
    let mut report = Report { schema, value, found: Vec::new(), more: 0 };
    if schema.kind.is_input() && !value.is_object() {
        report.add("", "type", format!("expected object, got {}", type_of(value)), None);
        return report.finish();
    }
    if !schema.affords(value) {
        report.add("", "size", "more than can be held to the schema in time", Some("send less at a time".to_owned()));
        return report.finish();
    }
    if !schema.explains(value) {
        report.coarse(value);
        return report.finish();
    }
    let mut errors: Vec<ValidationError<'_>> = schema.validator.iter_errors(value).collect();
    errors.sort_by(|a, b| by_place(a.instance_path().as_str(), b.instance_path().as_str()));
    for error in &errors {
        report.explain(error, 0);
    }
    for name in schema.strangers(value) {
        report.undeclared("", value, name, Follows::FromNothing);
    }
    if schema.kind.is_input() {
        report.unspoken(value);
    }
    report.finish()
}

impl Problem {
    /// About the bytes of it as JSON.
    fn size(&self) -> usize {
        let texts = [Some(&self.at), Some(&self.code), Some(&self.message), self.hint.as_ref()];
        let escapes = |text: &str| text.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count();
        texts.into_iter().flatten().map(|text| text.len() + escapes(text)).sum::<usize>() + 48
    }
}

pub(super) struct Report<'s> {
    pub(super) schema: &'s Schema,
    value: &'s Value,
    found: Vec<Found>,
    /// Those that were counted, but not put into words.
    more: usize,
}

struct Found {
    problem: Problem,
    /// Follows from another problem: a branch that failed leaves its members unevaluated.
    derived: bool,
}

/// Whether an undeclared member may only seem to be one, because the branch that declares it failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    FromNothing,
    FromBranches,
}

impl Report<'_> {
    fn finish(self) -> Problems {
        let mut found = self.found;
        if found.iter().any(|f| !f.derived) {
            found.retain(|f| !f.derived);
        }
        let mut list: Vec<Problem> = found.into_iter().map(|f| f.problem).collect();
        let mistyped: BTreeSet<String> = list.iter().filter(|p| p.code == "type").map(|p| p.at.clone()).collect();
        list.retain(|p| !(matches!(p.code.as_str(), "enum" | "const") && mistyped.contains(&p.at)));
        list.sort_by(|a, b| {
            by_place(&a.at, &b.at).then_with(|| a.code.cmp(&b.code)).then_with(|| a.message.cmp(&b.message))
        });
        list.dedup();
        let mut bytes = 0;
        let fit = list.iter().take(MAX_PROBLEMS).take_while(|problem| {
            bytes += problem.size();
            bytes <= MAX_BYTES
        });
        let kept = fit.count().max(1).min(list.len());
        let more = self.more + list.len() - kept;
        list.truncate(kept);
        Problems { list, more }
    }

    /// What is wrong with strings and lists where the schema does not speak of it.
    fn unspoken(&mut self, value: &Value) {
        for at in self.schema.controls(value) {
            let hint = match self.schema.takes_lines(&at) {
                true => "leave control characters out; lines end with \\n alone",
                false => "send plain text on one line",
            };
            self.add(&at, "control_character", "holds a control character", Some(hint.to_owned()));
        }
        for Excess { at, of, most } in self.schema.excesses(value) {
            let (code, thing) = match of {
                Measure::Characters => ("max_length", "characters"),
                Measure::Items => ("max_items", "items"),
            };
            let message = format!("must have at most {most} {thing}, since the schema says no other bound");
            self.add(&at, code, message, Some("send less, or in several calls".to_owned()));
        }
    }

    /// The members that do not fit, of a value that holds too much to say where in them.
    fn coarse(&mut self, value: &Value) {
        let message = "does not fit, and holds too much to say where";
        let hint = || Some("send less at a time; then each problem is named".to_owned());
        for (name, member) in value.as_object().into_iter().flatten().take(MAX_PROBLEMS) {
            let at = format!("/{}", escaped(name));
            if !self.schema.accepted_all(&self.schema.graph.entries(&at), member) {
                self.add(&at, "size", message, hint());
            }
        }
        if self.found.is_empty() {
            self.add("", "size", message, hint());
        }
    }

    pub(super) fn add(&mut self, at: &str, code: &str, message: impl Into<String>, hint: Option<String>) {
        let (message, hint) = (cut(message.into()), hint.map(cut));
        let problem = Problem { at: pointer(at), code: code.to_owned(), message, hint };
        self.found.push(Found { problem, derived: false });
    }

    pub(super) fn explain(&mut self, error: &ValidationError<'_>, unions: usize) {
        let at = error.instance_path().as_str();
        let value: &Value = error.instance();
        let kind = error.kind();
        if self.found.len() > MAX_PROBLEMS {
            self.more += match kind {
                Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                    unexpected.len()
                }
                _ => 1,
            };
            return;
        }
        match kind {
            Kind::Type { kind } => {
                let wanted = expected(kind);
                let missing = || value.is_null().then(|| self.schema.described(at)).flatten();
                let members =
                    || wanted.split(" or ").any(|kind| kind == "object").then(|| self.schema.known(at)).flatten();
                let hint =
                    self.schema.retyped(at, value).or_else(|| self.choices(at)).or_else(missing).or_else(members);
                let hint = hint.or_else(|| self.schema.exemplified(at));
                self.add(at, "type", format!("expected {wanted}, got {}", type_of(value)), hint);
            }
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                let at = format!("{at}/{}", escaped(name));
                let hint = self.schema.described(&at);
                let asking = self.schema.asking(error.schema_path().as_str(), value, name);
                let (code, message) = missing(error.schema_path().as_str(), asking);
                self.add(&at, code, message, hint);
            }
            Kind::AdditionalProperties { unexpected } => {
                for name in unexpected {
                    self.undeclared(at, value, name, Follows::FromNothing);
                }
            }
            Kind::UnevaluatedProperties { unexpected } => {
                for name in unexpected {
                    self.undeclared(at, value, name, Follows::FromBranches);
                }
            }
            // Where nothing is declared, the engine names the object for the first of its members.
            Kind::FalseSchema if error.schema_path().as_str().ends_with("/additionalProperties") => {
                let object = self.value.pointer(at).unwrap_or(value);
                for name in object.as_object().into_iter().flat_map(|members| members.keys()) {
                    self.undeclared(at, object, name, Follows::FromNothing);
                }
            }
            Kind::Enum { options } => {
                let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
                self.not_among(at, "enum", options.iter().collect(), value);
            }
            Kind::Constant { expected_value } => self.not_among(at, "const", vec![expected_value.as_ref()], value),
            Kind::AnyOf { context } => self.union(error, context, Applies::Any, unions),
            Kind::OneOfNotValid { context } => self.union(error, context, Applies::One, unions),
            Kind::OneOfMultipleValid { context } => {
                let message = format!("fits more than one of {} variants; exactly one may fit", context.len());
                let branches = self.schema.branches(at, Applies::One, error.schema_path().as_str(), context.len());
                let apart = branches.and_then(|branches| self.schema.told_apart(&branches));
                let hint = apart.unwrap_or_else(|| "leave out what belongs to another variant".to_owned());
                self.add(at, "one_of", message, Some(hint));
            }
            Kind::UniqueItems => {
                let message = match twins(value) {
                    Some((first, second)) => format!("items {first} and {second} are equal; items must differ"),
                    None => "items must differ from each other".to_owned(),
                };
                self.add(at, "unique_items", message, Some("send each item once".to_owned()));
            }
            Kind::Contains => {
                let wanted = self.schema.document().pointer(error.schema_path().as_str()).and_then(meaning);
                let hint = wanted.map(|wanted| format!("such an item is {wanted}"));
                let (code, message) = limits(kind);
                self.add(at, &code, message, hint);
            }
            Kind::Pattern { .. } => {
                let (code, message) = limits(kind);
                self.add(at, &code, message, self.schema.exemplified(at));
            }
            Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
                let (code, message) = limits(kind);
                self.add(at, &code, message, Some("send a shorter and simpler text".to_owned()));
            }
            Kind::MinLength { .. } | Kind::MinItems { .. } | Kind::MinProperties { .. } => {
                let (code, message) = limits(kind);
                let empty = value.as_str() == Some("") || value.as_array().is_some_and(Vec::is_empty);
                let hint = match empty && !at.is_empty() && !self.schema.is_required(at) {
                    true => Some("leave the member out, if there is nothing to send".to_owned()),
                    false => value.as_object().and_then(|_| self.schema.known(at)),
                };
                self.add(at, &code, message, hint);
            }
            Kind::PropertyNames { error } => {
                let name = error.instance().as_str().unwrap_or_default();
                let (_, message) = limits(error.kind());
                self.add(
                    &format!("{at}/{}", escaped(name)),
                    "property_names",
                    format!("the name of this member: {message}"),
                    None,
                );
            }
            Kind::Format { format } => {
                let hint = form_of(format).map(str::to_owned).or_else(|| self.schema.exemplified(at));
                self.add(at, "format", format!("not {} {format}", article(format)), hint);
            }
            other => {
                let (code, message) = limits(other);
                self.add(at, &code, message, None);
            }
        }
    }

    fn undeclared(&mut self, at: &str, parent: &Value, name: &str, follows: Follows) {
        if self.found.len() > MAX_PROBLEMS {
            self.more += 1;
            return;
        }
        let spread = self.schema.graph.spread(&self.schema.graph.entries(at));
        let elsewhere = !self.schema.graph.of_named_member(&spread, name).is_empty();
        let (message, hint) = match elsewhere {
            true => ("not allowed beside the other members", None),
            false => ("unknown member", self.schema.undeclared(at, parent, name)),
        };
        let problem = Problem {
            at: pointer(&format!("{at}/{}", escaped(name))),
            code: "additional_property".to_owned(),
            message: message.to_owned(),
            hint: hint.map(cut),
        };
        self.found.push(Found { problem, derived: elsewhere && follows == Follows::FromBranches });
    }

    fn not_among(&mut self, at: &str, code: &str, options: Vec<&Value>, value: &Value) {
        let message = match (listed(options.iter().copied()), options.as_slice()) {
            (Some(list), [_]) => format!("must be {list}"),
            (Some(list), _) => format!("one of: {list}"),
            (None, [_]) => "not the one value that the schema allows".to_owned(),
            (None, _) => format!("not one of the {} allowed values", options.len()),
        };
        let hint = meant(&options, value).or_else(|| self.schema.retyped(at, value));
        self.add(at, code, message, hint);
    }

    /// The allowed values of a place, where they are listed.
    fn choices(&self, at: &str) -> Option<String> {
        let schemas = self.schema.locate(at);
        let list = schemas.iter().find_map(|schema| listed(schema.get("enum")?.as_array()?))?;
        Some(format!("one of: {list}"))
    }
}

/// The allowed value that a near one was meant to be.
pub(super) fn meant(options: &[&Value], value: &Value) -> Option<String> {
    let known = near(value.as_str()?, options.iter().filter_map(|option| option.as_str()))?;
    Some(format!("did you mean {}?", shown(&Value::String(known.to_owned()))))
}

/// The code and the message of a missing member: another member, or a condition, may ask for it.
fn missing(schema_path: &str, asking: Option<&str>) -> (&'static str, String) {
    if let Some(asking) = asking {
        return ("dependent_required", format!("missing member, which {} asks for", visible(asking)));
    }
    match segments(schema_path).any(|segment| matches!(&*segment, "then" | "else" | "dependentSchemas")) {
        true => ("required", "missing member, which what else was sent asks for".to_owned()),
        false => ("required", "missing member".to_owned()),
    }
}

/// The positions of the first two items that are equal.
fn twins(value: &Value) -> Option<(usize, usize)> {
    let mut seen = BTreeMap::new();
    let items = value.as_array()?.iter().enumerate();
    items.map(|(index, item)| (index, canonical(item))).find_map(|(index, item)| {
        let first = *seen.entry(item).or_insert(index);
        (first != index).then_some((first, index))
    })
}

/// A pointer that is fit to be shown: long names and long ways cut, what is not seen escaped.
pub(crate) fn pointer(at: &str) -> String {
    if at.len() <= MAX_NAME && is_printable_ascii(at) {
        return at.to_owned();
    }
    let cut = |segment: &str| match segment.char_indices().nth(MAX_NAME) {
        Some(_) => segment.chars().take(MAX_NAME).chain(['…']).collect(),
        None => segment.to_owned(),
    };
    let shown = visible(&at.split('/').map(cut).collect::<Vec<String>>().join("/"));
    let length = shown.chars().count();
    if length <= MAX_PLACE {
        return shown;
    }
    let (head, tail) = (MAX_PLACE / 2, MAX_PLACE / 2 - 1);
    shown.chars().take(head).chain(['…']).chain(shown.chars().skip(length - tail)).collect()
}

/// Words that came to be long, because names or values of the schema are.
fn cut(words: String) -> String {
    match words.char_indices().nth(MAX_WORDS) {
        Some(_) => words.chars().take(MAX_WORDS).chain(['…']).collect(),
        None => words,
    }
}

/// By segments, positions as numbers.
pub(super) fn by_place(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (segments(a), segments(b));
    loop {
        let (left, right) = match (left.next(), right.next()) {
            (Some(left), Some(right)) => (left, right),
            (left, right) => return left.is_some().cmp(&right.is_some()),
        };
        let order = match (left.parse::<u64>(), right.parse::<u64>()) {
            (Ok(left), Ok(right)) => left.cmp(&right),
            _ => left.cmp(&right),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}
