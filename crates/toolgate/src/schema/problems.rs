//! What is wrong with a value, in our words: place, code, expected and found types; never a value.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Schema;
use super::graph::{Graph, escaped, segments};
use super::hints::{form_of, listed, near, shown};
use super::inert::visible;
use super::keywords::{Applies, type_of};
use crate::json::is_printable_ascii;

/// Problems in one answer.
const MAX_PROBLEMS: usize = 50;
/// Characters of one member name in a pointer.
const MAX_NAME: usize = 64;
const MAX_PATTERN: usize = 80;
/// Unions inside unions that are looked into.
const MAX_UNIONS: usize = 8;

/// One thing that is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The place, a JSON pointer; for a missing member, where it would stand.
    pub at: String,
    /// The keyword of the schema in snake case, `discriminator` or `control_character`.
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
    /// Sorted by place; at most 50.
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
    let mut report = Report { schema, found: Vec::new(), more: 0 };
    let mut errors: Vec<ValidationError<'_>> = schema.validator.iter_errors(value).collect();
    errors.sort_by(|a, b| by_place(a.instance_path().as_str(), b.instance_path().as_str()));
    for error in &errors {
        report.explain(error, 0);
    }
    for name in schema.strangers(value) {
        report.undeclared("", value, name);
    }
    for at in schema.controls(value) {
        report.add(
            &at,
            "control_character",
            "holds a control character",
            Some("send plain text on one line".to_owned()),
        );
    }
    report.finish()
}

struct Report<'s> {
    schema: &'s Schema,
    found: Vec<Found>,
    /// Those that were counted, but not put into words.
    more: usize,
}

struct Found {
    problem: Problem,
    /// Follows from another problem: a branch that failed leaves its members unevaluated.
    derived: bool,
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
        let more = self.more + list.len().saturating_sub(MAX_PROBLEMS);
        list.truncate(MAX_PROBLEMS);
        Problems { list, more }
    }

    fn add(&mut self, at: &str, code: &str, message: impl Into<String>, hint: Option<String>) {
        let problem = Problem { at: pointer(at), code: code.to_owned(), message: message.into(), hint };
        self.found.push(Found { problem, derived: false });
    }

    fn explain(&mut self, error: &ValidationError<'_>, unions: usize) {
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
                let hint = self.schema.retyped(at, value).or_else(|| self.choices(at));
                self.add(at, "type", format!("expected {wanted}, got {}", type_of(value)), hint);
            }
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                let at = format!("{at}/{}", escaped(name));
                let hint = self.schema.described(&at);
                self.add(&at, "required", "missing member", hint);
            }
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                for name in unexpected {
                    self.undeclared(at, value, name);
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
                self.add(at, "one_of", message, Some("leave out what belongs to another variant".to_owned()));
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
                let hint = form_of(format).map(str::to_owned);
                self.add(at, "format", format!("not {} {format}", article(format)), hint);
            }
            other => {
                let (code, message) = limits(other);
                self.add(at, &code, message, None);
            }
        }
    }

    fn undeclared(&mut self, at: &str, parent: &Value, name: &str) {
        if self.found.len() > MAX_PROBLEMS {
            self.more += 1;
            return;
        }
        let spread = self.schema.graph.spread(&self.schema.graph.entries(at));
        let derived = !self.schema.graph.of_named_member(&spread, name).is_empty();
        let hint = self.schema.undeclared(at, parent, name);
        let (message, hint) =
            if derived { ("not allowed beside the other members", None) } else { ("unknown member", hint) };
        let problem = Problem {
            at: format!("{}/{}", pointer(at), pointer(&escaped(name))),
            code: "additional_property".to_owned(),
            message: message.to_owned(),
            hint,
        };
        self.found.push(Found { problem, derived });
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

    /// The branch that was meant, if that can be told; else one problem for all of them.
    fn union(
        &mut self,
        error: &ValidationError<'_>,
        context: &[Vec<ValidationError<'static>>],
        kind: Applies,
        unions: usize,
    ) {
        let at = error.instance_path().as_str();
        let value: &Value = error.instance();
        let branches = self.schema.branches(at, kind, error.schema_path().as_str(), context.len());
        let tag = branches.as_ref().and_then(|branches| self.schema.tag(branches));
        if let (Some(tag), Value::Object(members)) = (tag, value) {
            let place = format!("{at}/{}", escaped(&tag.name));
            let sent = members.get(&tag.name);
            if let Some(errors) = sent.and_then(|sent| tag.branch(sent)).and_then(|index| context.get(index)) {
                return self.explain_all(errors, unions);
            }
            let values = tag.values();
            let list = listed(values.iter().copied()).map(|list| format!(": one of: {list}")).unwrap_or_default();
            let (message, hint) = match sent {
                Some(sent) => (format!("tells the variants apart{list}"), meant(&values, sent)),
                None => (format!("missing member that tells the variants apart{list}"), None),
            };
            return self.add(&place, "discriminator", message, hint);
        }
        let mistyped = |errors: &Vec<ValidationError<'_>>| {
            errors.iter().find_map(|e| match e.kind() {
                Kind::Type { kind } if e.instance_path().as_str() == at => Some(expected(kind)),
                _ => None,
            })
        };
        let mut fitting = context.iter().filter(|errors| mistyped(errors).is_none());
        if let (Some(errors), None) = (fitting.next(), fitting.next())
            && unions < MAX_UNIONS
        {
            return self.explain_all(errors, unions);
        }
        let code = if kind == Applies::Any { "any_of" } else { "one_of" };
        let mut wanted: Vec<String> = context.iter().filter_map(mistyped).collect();
        if wanted.len() == context.len() {
            let mut seen = BTreeSet::new();
            wanted.retain(|kind| seen.insert(kind.clone()));
            let message = format!("expected {}, got {}", wanted.join(" or "), type_of(value));
            let hint = self.schema.retyped(at, value);
            return self.add(at, code, message, hint);
        }
        let hint = branches.and_then(|branches| self.variants(&branches, context));
        self.add(at, code, format!("fits none of {} variants", context.len()), hint);
    }

    fn explain_all(&mut self, errors: &[ValidationError<'static>], unions: usize) {
        for error in errors {
            self.explain(error, unions + 1);
        }
    }

    /// The branches by the members or values that they want.
    fn variants(&self, branches: &[super::graph::NodeId], context: &[Vec<ValidationError<'static>>]) -> Option<String> {
        let graph: &Graph = &self.schema.graph;
        let mut words = Vec::new();
        for (branch, errors) in branches.iter().zip(context) {
            let names = graph.names(&graph.mandatory(&[*branch]));
            let needed: Vec<&str> = names
                .iter()
                .map(String::as_str)
                .filter(|name| graph.requires(&self.schema.document, *branch, name))
                .collect();
            words.push(match (needed.as_slice(), errors.as_slice()) {
                ([], [only]) => limits(only.kind()).1,
                ([], _) => return None,
                (needed, _) => format!("{{{}}}", needed.join(", ")),
            });
        }
        let list = words.join(" or ");
        (list.len() <= 200).then(|| format!("variants: {list}"))
    }
}

/// What a keyword that bounds a value says: code and message.
fn limits(kind: &Kind) -> (String, String) {
    let message = match kind {
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have at least {}", counted(*limit, "character")),
        Kind::MaxLength { limit } => format!("must have at most {}", counted(*limit, "character")),
        Kind::MinItems { limit } => format!("must have at least {}", counted(*limit, "item")),
        Kind::MaxItems { limit } => format!("must have at most {}", counted(*limit, "item")),
        Kind::AdditionalItems { limit } => {
            format!("must have at most {}", counted(u64::try_from(*limit).unwrap_or(u64::MAX), "item"))
        }
        Kind::MinProperties { limit } => format!("must have at least {}", counted(*limit, "member")),
        Kind::MaxProperties { limit } => format!("must have at most {}", counted(*limit, "member")),
        Kind::Pattern { pattern } if pattern.chars().count() <= MAX_PATTERN => {
            format!("must match {}", visible(pattern))
        }
        Kind::Pattern { .. } => "must match the pattern of its schema".to_owned(),
        Kind::UniqueItems => "items must differ from each other".to_owned(),
        Kind::Contains => "the number of items that fit contains is not what the schema wants".to_owned(),
        Kind::Not { .. } => "must not fit the schema under not".to_owned(),
        Kind::FalseSchema => "must not be sent".to_owned(),
        Kind::UnevaluatedItems { .. } => "holds items that no schema allows".to_owned(),
        Kind::Type { kind } => format!("expected {}", expected(kind)),
        Kind::Enum { options } => match options.as_array().and_then(listed) {
            Some(list) => format!("one of: {list}"),
            None => "not one of the allowed values".to_owned(),
        },
        Kind::Constant { expected_value } => match listed([expected_value.as_ref()]) {
            Some(value) => format!("must be {value}"),
            None => "not the one value that the schema allows".to_owned(),
        },
        Kind::Format { format } => format!("must be {} {format}", article(format)),
        Kind::ContentEncoding { content_encoding } => format!("is not encoded as {}", visible(content_encoding)),
        Kind::FromUtf8 { .. } => "its decoded bytes are not UTF-8 text".to_owned(),
        Kind::ContentMediaType { content_media_type } => format!("is not {}", visible(content_media_type)),
        _ => "does not fit its schema".to_owned(),
    };
    (snake_case(kind.keyword()), message)
}

fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

fn article(word: &str) -> &'static str {
    match word {
        "uri" | "uri-reference" | "uri-template" | "uuid" => "a",
        _ if word.starts_with(['a', 'e', 'i', 'o', 'u']) => "an",
        _ => "a",
    }
}

fn expected(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => kind.as_str().to_owned(),
        TypeKind::Multiple(kinds) => {
            let mut words: Vec<&str> = kinds.iter().map(JsonType::as_str).collect();
            words.sort_by_key(|word| *word == "null");
            words.join(" or ")
        }
    }
}

/// The allowed value that a near one was meant to be.
fn meant(options: &[&Value], value: &Value) -> Option<String> {
    let known = near(value.as_str()?, options.iter().filter_map(|option| option.as_str()))?;
    Some(format!("did you mean {}?", shown(&Value::String(known.to_owned()))))
}

fn snake_case(keyword: &str) -> String {
    let mut out = String::with_capacity(keyword.len() + 2);
    for c in keyword.trim_start_matches('$').chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// A pointer that is fit to be shown: long names cut, what is not seen escaped.
pub(super) fn pointer(at: &str) -> String {
    if at.len() <= MAX_NAME && is_printable_ascii(at) {
        return at.to_owned();
    }
    let cut = |segment: &str| match segment.char_indices().nth(MAX_NAME) {
        Some(_) => segment.chars().take(MAX_NAME).chain(['…']).collect(),
        None => segment.to_owned(),
    };
    visible(&at.split('/').map(cut).collect::<Vec<String>>().join("/"))
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
