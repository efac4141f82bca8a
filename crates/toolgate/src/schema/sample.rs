//! One value that fits a place of a schema: to stand where a value was that nobody may see any more.

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value, json};

use super::Schema;
use super::graph::NodeId;

/// How deep a sample goes into what is declared.
const DEEPEST: usize = 8;
/// How often a pattern repeats what it lets repeat, at most.
const REPEATS: u32 = 64;
/// Where a text ends that only grows.
const LONGEST: usize = 70_000;
/// Characters that a class of a pattern is shown by, where it holds one of them.
const PLAIN: [char; 5] = ['a', 'A', '1', '-', ' '];

impl Schema {
    /// A value that fits what is said of the place `pointer`, by itself; `None` where none is found.
    pub fn sample(&self, pointer: &str) -> Option<Value> {
        let entries = self.graph.entries(pointer);
        self.made(&entries, 0)
    }

    fn made(&self, entries: &[NodeId], depth: usize) -> Option<Value> {
        if entries.is_empty() {
            return Some(json!("sample"));
        }
        if depth > DEEPEST {
            return None;
        }
        let spread = self.graph.spread(entries);
        let written: Vec<&Map<String, Value>> = spread.iter().filter_map(|id| self.written(*id)?.as_object()).collect();
        let fits = |value: &Value| self.accepted_all(entries, value) && self.is_admissible(value);
        let said = written.iter().flat_map(|schema| said(schema));
        said.into_iter().find(&fits).or_else(|| {
            let types = self.types(entries);
            let kinds = if types.is_empty() { vec!["string", "object"] } else { types };
            kinds.into_iter().find_map(|kind| match kind {
                "object" => self.object(&spread, depth).filter(&fits),
                "array" => self.array(&spread, &written, depth).filter(&fits),
                "integer" | "number" => numbers(&written).into_iter().find(&fits),
                "boolean" => [json!(true), json!(false)].into_iter().find(&fits),
                "null" => Some(Value::Null).filter(&fits),
                _ => texts(&written).map(Value::String).find(&fits),
            })
        })
    }

    fn object(&self, spread: &[NodeId], depth: usize) -> Option<Value> {
        let needed = |name: &String| spread.iter().any(|id| self.graph.requires(&self.document, *id, name));
        let names = self.graph.names(spread).into_iter().filter(needed);
        let members: Option<Map<String, Value>> = names
            .map(|name| {
                let value = self.made(&self.graph.of_named_member(spread, &name), depth + 1)?;
                Some((name, value))
            })
            .collect();
        members.map(Value::Object)
    }

    fn array(&self, spread: &[NodeId], written: &[&Map<String, Value>], depth: usize) -> Option<Value> {
        let least = written.iter().filter_map(|schema| schema.get("minItems")?.as_u64()).max().unwrap_or(0);
        let least = usize::try_from(least).ok().filter(|least| *least <= 100)?;
        (0..least).map(|index| self.made(&self.graph.of_item(spread, index), depth + 1)).collect()
    }
}

/// The values that a schema names itself.
fn said(schema: &Map<String, Value>) -> Vec<Value> {
    let one = ["const", "default"].into_iter().filter_map(|keyword| schema.get(keyword));
    let several = ["enum", "examples"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array()).flatten();
    one.chain(several).cloned().collect()
}

fn numbers(written: &[&Map<String, Value>]) -> Vec<Value> {
    let bounds = ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"];
    let told = written.iter().flat_map(|schema| bounds.into_iter().filter_map(|keyword| schema.get(keyword)));
    let near = |number: &Value| {
        let whole =
            number.as_i64().into_iter().flat_map(|n| [n, n.saturating_add(1), n.saturating_sub(1)].map(Value::from));
        let double = number.as_f64().into_iter().flat_map(|n| [n, n + 0.5, n - 0.5].map(Value::from));
        whole.chain(double).collect::<Vec<Value>>()
    };
    [json!(1), json!(0)].into_iter().chain(told.flat_map(near)).collect()
}

/// Texts that may fit: of the form that a format has, of a pattern, and of a length.
fn texts<'s>(written: &'s [&Map<String, Value>]) -> impl Iterator<Item = String> + 's {
    let told = |keyword: &'static str| written.iter().filter_map(move |schema| schema.get(keyword));
    let formats = told("format").filter_map(Value::as_str).map(|format| {
        let text = match format {
            "date" => "2024-02-29",
            "date-time" => "2024-02-29T12:00:00Z",
            "time" => "12:00:00Z",
            "duration" => "P1D",
            "uri" | "iri" | "uri-reference" | "iri-reference" => "https://example.org/a",
            "email" | "idn-email" => "sample@example.org",
            "hostname" | "idn-hostname" => "example.org",
            "uuid" => "123e4567-e89b-12d3-a456-426614174000",
            "ipv4" => "192.0.2.1",
            "ipv6" => "2001:db8::1",
            "json-pointer" => "/a",
            _ => "sample",
        };
        text.to_owned()
    });
    let patterns = told("pattern").filter_map(|pattern| regex_syntax::parse(pattern.as_str()?).ok());
    let matching = patterns.flat_map(|pattern| (0..=REPEATS).map(move |extra| matching(&pattern, extra)));
    let least = told("minLength").filter_map(Value::as_u64).max().unwrap_or(0);
    let least = usize::try_from(least).unwrap_or(usize::MAX).min(LONGEST);
    let padded = format!("sample{}", "a".repeat(least.saturating_sub("sample".len())));
    let short = ["a", "1", ""].map(str::to_owned);
    formats.chain(matching).chain(std::iter::once(padded)).chain(short)
}

/// A text that a pattern matches, with each repeat made up to `extra` times more than it must be.
fn matching(pattern: &Hir, extra: u32) -> String {
    let mut text = String::new();
    write(pattern, extra, &mut text);
    text
}

fn write(pattern: &Hir, extra: u32, text: &mut String) {
    if text.len() > LONGEST {
        return;
    }
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => text.extend(shown(class)),
        HirKind::Repetition(repeated) => {
            let times = repeated.min.max(repeated.max.map_or(extra, |most| extra.min(most)));
            for _ in 0..times.min(repeated.min.saturating_add(REPEATS)) {
                write(&repeated.sub, extra, text);
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, extra, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, extra, text)),
        HirKind::Alternation(ways) => ways.iter().take(1).for_each(|way| write(way, extra, text)),
    }
}

/// A character of a class: a plain one, if there is any.
fn shown(class: &Class) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => class.iter().map(|range| (range.start().into(), range.end().into())).collect(),
    };
    let holds = |wanted: &char| ranges.iter().any(|(first, last)| first <= wanted && wanted <= last);
    PLAIN.into_iter().find(holds).or_else(|| ranges.iter().map(|(first, _)| *first).find(|c| !c.is_control()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "a test may panic")]
mod tests {
    use proptest::prelude::*;

    use super::super::samples;
    use super::*;

    #[test]
    fn a_sample_fits_what_is_said_of_its_place() {
        let schemas = [
            json!({ "type": "string" }),
            json!({ "type": "string", "pattern": "^ord_[A-Za-z0-9]+$", "minLength": 9, "maxLength": 40 }),
            json!({ "type": "string", "pattern": "^[A-Z]{2}[0-9]{2}( ?[0-9]{4}){3,7}$" }),
            json!({ "type": "string", "pattern": "^(?:[0-9]{3}-)?[0-9]{4}$" }),
            json!({ "type": "string", "format": "email", "x-personal": true }),
            json!({ "type": "string", "format": "date" }),
            json!({ "type": "string", "minLength": 12, "x-secret": true }),
            json!({ "type": "string", "maxLength": 1 }),
            json!({ "enum": ["red", "green"] }),
            json!({ "type": "integer", "minimum": 100, "maximum": 200 }),
            json!({ "type": "integer", "exclusiveMaximum": -7 }),
            json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 }),
            json!({ "type": "integer", "multipleOf": 25, "minimum": 25 }),
            json!({ "type": "array", "items": { "type": "integer", "minimum": 4 }, "minItems": 2 }),
            json!({ "type": "object", "properties": { "a": { "type": "boolean" }, "b": {} }, "required": ["a"] }),
            json!({ "anyOf": [{ "type": "string", "pattern": "^x$" }, { "type": "null" }] }),
            json!({ "$ref": "#/$defs/name" }),
        ];
        for inner in schemas {
            let document = json!({
                "properties": { "m": inner }, "required": ["m"],
                "$defs": { "name": { "type": "string", "pattern": "^[a-z]+$" } },
            });
            let schema = Schema::input(&document).unwrap_or_else(|faults| panic!("{document}: {faults:?}"));
            let sample = schema.sample("/m").unwrap_or_else(|| panic!("none for {document}"));
            assert!(schema.is_valid(&json!({ "m": sample })), "{sample} for {document}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_sample_of_any_schema_is_one_that_its_place_takes(document in samples::documents()) {
            let Some(schema) = samples::load(&document) else { return Ok(()) };
            for name in schema.members() {
                let at = format!("/{name}");
                let entries = schema.graph.entries(&at);
                if let Some(sample) = schema.sample(&at) {
                    prop_assert!(schema.accepted_all(&entries, &sample), "{} for {} of {}", sample, at, document);
                }
            }
        }
    }
}
