//! How to mend a call: the one thing to change, where it can be told.

use serde_json::{Number, Value};

use super::Schema;
use super::graph::{Graph, NodeId};
use super::keywords::type_of;
use crate::json::{self, Limits, canonical};

/// Names listed in one hint.
const MAX_NAMES: usize = 24;
/// Allowed values listed in one message.
const MAX_VALUES: usize = 12;
const MAX_VALUES_LENGTH: usize = 200;
const MAX_SENTENCE: usize = 120;
/// Bytes of a word that may be meant as another one.
const MAX_COMPARED: usize = 512;
/// Bytes of a string that is read as JSON, to see what it would be.
const MAX_DECODED: usize = 16_384;

/// The candidate that `word` was meant to be, if one is near: the same but for case and separators, a slip of the
/// keyboard, or a part of the name.
pub(super) fn near<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MAX_COMPARED {
        return None;
    }
    let wanted = folded(word);
    let length = wanted.chars().count();
    if length == 0 || length > 64 {
        return None;
    }
    let most = match length {
        ..=2 => 0,
        3..=5 => 1,
        6..=11 => 2,
        _ => 3,
    };
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let known = folded(candidate);
        let part = |whole: &str, part: &str| part.len() >= 4 && (whole.starts_with(part) || whole.ends_with(part));
        // Two words are no nearer than their lengths are.
        let gap = known.chars().count().abs_diff(length);
        let distance = if gap > most { gap } else { strsim::osa_distance(&wanted, &known) };
        let distance = match distance {
            near if near <= most => near,
            _ if part(&known, &wanted) || part(&wanted, &known) => 4,
            _ => continue,
        };
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn folded(word: &str) -> String {
    word.chars().filter(|c| c.is_alphanumeric() || !c.is_ascii()).flat_map(char::to_lowercase).collect()
}

/// The values as a list for a message, if they are few and short.
pub(super) fn listed<'a>(values: impl IntoIterator<Item = &'a Value>) -> Option<String> {
    let mut words = Vec::new();
    for value in values {
        if words.len() == MAX_VALUES || value.is_object() || value.is_array() {
            return None;
        }
        words.push(shown(value));
    }
    let list = words.join(", ");
    (list.len() <= MAX_VALUES_LENGTH).then_some(list)
}

/// A declared value: bare where that can't be misread, else as JSON.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if bare(text) => text.clone(),
        other => super::inert::visible(&crate::json::canonical(other)),
    }
}

/// A text that reads as itself without quotes.
fn bare(text: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '+' | '#' | '@');
    text.chars().next().is_some_and(char::is_alphabetic)
        && text.chars().all(word)
        && !matches!(text, "true" | "false" | "null")
}

/// An example of the form that a format wants.
pub(super) fn form_of(format: &str) -> Option<&'static str> {
    Some(match format {
        "date" => "write it like 2026-01-31",
        "date-time" => "write it with a time and a zone, like 2026-01-31T09:30:00Z",
        "time" => "write it with a zone, like 09:30:00Z",
        "duration" => "write it like P1DT12H",
        "email" | "idn-email" => "write it like name@example.com",
        "uri" | "iri" => "write it with its scheme, like https://example.com/path",
        "uuid" => "write it like 123e4567-e89b-12d3-a456-426614174000",
        "ipv4" => "write it like 192.0.2.1",
        "ipv6" => "write it like 2001:db8::1",
        "hostname" | "idn-hostname" => "write it like www.example.com",
        "uri-reference" | "iri-reference" => "write it like https://example.com/path or /path",
        "uri-template" => "write it like https://example.com/orders/{id}",
        "json-pointer" => "write it like /orders/0/id",
        "relative-json-pointer" => "write it like 1/id",
        _ => return None,
    })
}

impl Schema {
    /// How to send a value of the right type, given one of the wrong type.
    pub(super) fn retyped(&self, at: &str, value: &Value) -> Option<String> {
        let entries = self.graph.entries(at);
        let fits = |value: &Value| self.accepted(&entries, value);
        let as_text = || Value::String(canonical(value));
        let hint = match value {
            Value::String(text) => match meant(text.trim()) {
                Some(Value::Number(number)) if fits(&Value::Number(number.clone())) => "send the number without quotes",
                Some(Value::Bool(flag)) if fits(&Value::Bool(flag)) => "send true or false without quotes",
                Some(Value::Null) if fits(&Value::Null) => "send null without quotes",
                None if looks_encoded(text, &self.types(&entries)) => "send the value itself, not a string of its JSON",
                None if says_flag(text) && fits(&Value::Bool(true)) && fits(&Value::Bool(false)) => {
                    "send true or false without quotes"
                }
                _ if fits(&Value::Array(vec![value.clone()])) => "send a list, even for one value",
                None if holds_number(text) && self.types(&entries).iter().any(|kind| NUMBERS.contains(kind)) => {
                    "send the number alone, without quotes, units or other characters"
                }
                _ => return None,
            },
            Value::Number(_) | Value::Bool(_) if fits(&as_text()) => "send it as a string, in quotes",
            Value::Number(number)
                if matches!(number.as_u64(), Some(0 | 1)) && fits(&Value::Bool(true)) && fits(&Value::Bool(false)) =>
            {
                "send true or false"
            }
            Value::Number(number) if number.is_f64() && self.types(&entries).contains(&"integer") => {
                "send a whole number"
            }
            Value::Null if !self.is_required(at) => "leave the member out",
            Value::Array(items) => match items.as_slice() {
                [only] if fits(only) => "send the value itself, not a list",
                _ if fits(&as_text()) => INTO_TEXT,
                _ => return None,
            },
            Value::Object(members) if only(members.values()).is_some_and(fits) => {
                "send the value itself, not an object around it"
            }
            Value::Object(_) if fits(&as_text()) => INTO_TEXT,
            _ if fits(&Value::Array(vec![value.clone()])) => "send a list, even for one value",
            _ => return None,
        };
        Some(hint.to_owned())
    }

    /// What an undeclared member may have been, and what is known.
    pub(super) fn undeclared(&self, parent_at: &str, parent: &Value, name: &str) -> Option<String> {
        let entries = self.graph.entries(parent_at);
        let spread = self.graph.spread(&entries);
        let known = self.graph.names(&spread);
        let value = parent.get(name)?;
        let unsent: Vec<&String> = known.iter().filter(|known| parent.get(known.as_str()).is_none()).collect();
        let takes = |member: &str| self.accepted(&self.graph.of_named_member(&spread, member), value);
        let meant = near(name, unsent.iter().map(|name| name.as_str()))
            .map(|known| format!("did you mean {known}?"))
            .or_else(|| self.wrapped(&spread, &known, name, value))
            .or_else(|| self.unwrapped(&entries, value))
            .or_else(|| self.outside(parent_at, name, value))
            .or_else(|| {
                let missing = |name: &&&String| entries.iter().any(|id| self.graph.requires(&self.document, *id, name));
                // Any text fits a free text; that alone says nothing.
                let telling = |name: &&&String| !value.is_string() || self.lists_values(&spread, name);
                only(unsent.iter().filter(missing).filter(|name| takes(name)))
                    .or_else(|| only(unsent.iter().filter(|name| takes(name)).filter(telling)))
                    .map(|known| format!("did you mean {known}?"))
            });
        let list = names(&known);
        Some(match meant {
            Some(meant) => format!("{meant} {list}"),
            None => list,
        })
    }

    /// The members that are declared at a place, if any are.
    pub(super) fn known(&self, at: &str) -> Option<String> {
        let known = self.graph.names(&self.graph.spread(&self.graph.entries(at)));
        (!known.is_empty()).then(|| names(&known))
    }

    /// The member belongs to an object further out.
    fn outside(&self, parent_at: &str, name: &str, value: &Value) -> Option<String> {
        let (outer, inner) = parent_at.rsplit_once('/')?;
        let spread = self.graph.spread(&self.graph.entries(outer));
        let named = self.graph.of_named_member(&spread, name);
        if named.is_empty() || !self.accepted(&named, value) {
            return self.outside(outer, name, value);
        }
        Some(format!("put it beside {}, not in it.", super::inert::visible(&segment(inner))))
    }

    /// What a text looks like that fits: an example of the schema, or what it says of itself.
    pub(super) fn exemplified(&self, at: &str) -> Option<String> {
        let entries = self.graph.entries(at);
        let examples =
            self.graph.spread(&entries).into_iter().filter_map(|id| self.written(id)?.get("examples")?.as_array());
        let fits = |example: &&Value| example.is_string() && self.accepted_all(&entries, example);
        let example = examples.flatten().find(fits).and_then(|example| listed([example]));
        example.map(|example| format!("write it like {example}")).or_else(|| self.said(&entries))
    }

    /// The first sentence that a place says of itself.
    fn said(&self, entries: &[NodeId]) -> Option<String> {
        let written = self.graph.spread(entries).into_iter().filter_map(|id| self.written(id));
        written.into_iter().find_map(|schema| schema.get("description")?.as_str().and_then(first_sentence))
    }

    /// Whether the schema names the values of this member.
    fn lists_values(&self, spread: &[NodeId], name: &str) -> bool {
        let inner = self.graph.spread(&self.graph.of_named_member(spread, name));
        inner
            .iter()
            .filter_map(|id| self.written(*id))
            .any(|schema| schema.get("enum").or(schema.get("const")).is_some())
    }

    /// The member belongs one level deeper.
    fn wrapped(&self, spread: &[NodeId], known: &[String], name: &str, value: &Value) -> Option<String> {
        let holds = |member: &&String| {
            let inner = self.graph.spread(&self.graph.of_named_member(spread, member));
            self.accepted(&self.graph.of_named_member(&inner, name), value)
        };
        only(known.iter().filter(holds)).map(|member| format!("put it inside {member}."))
    }

    /// The member's own members belong here, be it an object or a string of its JSON.
    fn unwrapped(&self, entries: &[NodeId], value: &Value) -> Option<String> {
        let fits = |value: &Value| match entries {
            [Graph::ROOT] => self.holds(value),
            entries => self.accepted(entries, value),
        };
        let sent = |value: &Value| value.as_object().is_some_and(|members| !members.is_empty()) && fits(value);
        let encoded = value.as_str().filter(|text| text.trim_start().starts_with('{') && text.len() <= MAX_DECODED);
        match encoded.map(|text| json::read(text.as_bytes(), &Limits::default())) {
            Some(decoded) => decoded.is_ok_and(|value| sent(&value)),
            None => sent(value),
        }
        .then(|| "send its members here, without the wrapper.".to_owned())
    }

    /// What a missing member is.
    pub(super) fn described(&self, at: &str) -> Option<String> {
        let entries = self.graph.entries(at);
        let spread = self.graph.spread(&entries);
        let written = || spread.iter().filter_map(|id| self.written(*id));
        let one_of =
            written().find_map(|schema| listed(schema.get("enum")?.as_array()?)).map(|list| format!("one of: {list}"));
        let kind = one_of.or_else(|| {
            let types = self.types(&entries);
            (!types.is_empty()).then(|| types.join(" or "))
        });
        let form = written().find_map(|schema| form_of(schema.get("format")?.as_str()?));
        let kind = match (kind, form) {
            (Some(kind), Some(form)) => Some(format!("{kind}, {form}")),
            (kind, form) => kind.or(form.map(str::to_owned)),
        };
        match (kind, self.said(&entries)) {
            (Some(kind), Some(said)) => Some(format!("{kind}: {said}")),
            (kind, said) => kind.or(said),
        }
    }

    /// The member that was sent and asks for the missing one, where that is what the schema says at this place of it.
    pub(super) fn asking(&self, schema_path: &str, value: &Value, missing: &str) -> Option<&str> {
        let keyword = ["/dependentRequired", "/dependencies"].into_iter().find_map(|keyword| {
            let at = schema_path.rfind(keyword)?;
            schema_path.get(..at + keyword.len())
        })?;
        let asks = |names: &Value| names.as_array().is_some_and(|names| names.iter().any(|name| name == missing));
        let by_name = self.document.pointer(keyword)?.as_object()?;
        by_name.iter().find(|(name, names)| value.get(name).is_some() && asks(names)).map(|(name, _)| name.as_str())
    }

    /// The types that a place takes.
    pub(super) fn types(&self, entries: &[NodeId]) -> Vec<&str> {
        let mut types: Vec<&str> = Vec::new();
        for schema in self.graph.spread(entries).into_iter().filter_map(|id| self.written(id)) {
            let words: Vec<&str> = match (schema.get("type"), schema.get("const")) {
                (Some(Value::String(word)), _) => vec![word],
                (Some(Value::Array(words)), _) => words.iter().filter_map(Value::as_str).collect(),
                (None, Some(value)) => vec![type_of(value)],
                _ => Vec::new(),
            };
            for word in words {
                if !types.contains(&word) {
                    types.push(word);
                }
            }
        }
        types
    }

    /// Whether the schema demands the member at this place.
    pub(super) fn is_required(&self, at: &str) -> bool {
        let Some((parent, name)) = at.rsplit_once('/') else { return true };
        let name = segment(name);
        self.demands(parent, &name) || name.parse::<usize>().is_ok()
    }
}

/// The number, boolean or null that a text spells, if it is one as JSON writes it.
fn meant(text: &str) -> Option<Value> {
    match text {
        "true" => return Some(Value::Bool(true)),
        "false" => return Some(Value::Bool(false)),
        "null" => return Some(Value::Null),
        _ => {}
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    let leading = digits.starts_with('0') && digits.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
    let edges = [digits.bytes().next(), digits.bytes().last()].iter().all(|b| b.is_some_and(|b| b.is_ascii_digit()));
    if !plain || leading || !edges || digits.contains(".e") || digits.contains(".E") {
        return None;
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(Value::Number(number.into()));
    }
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        // Beyond 64 bits it can't be sent as a number.
        return text.parse::<u64>().ok().map(|number| Value::Number(number.into()));
    }
    Number::from_f64(text.parse().ok()?).map(Value::Number)
}

const INTO_TEXT: &str = "send one string, in quotes; what has parts is written into it, in words or as JSON";

const NUMBERS: [&str; 2] = ["integer", "number"];

/// Whether a text holds one number beside other characters: `$5.00`, `1,000`, `7 days`.
fn holds_number(text: &str) -> bool {
    let runs = text.split(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','));
    text.len() <= 64 && runs.filter(|run| run.contains(|c: char| c.is_ascii_digit())).count() == 1
}

/// Whether a text is a word for true or false.
fn says_flag(text: &str) -> bool {
    matches!(text.trim().to_lowercase().as_str(), "true" | "false" | "yes" | "no" | "on" | "off")
}

/// One segment of a pointer, unescaped.
fn segment(text: &str) -> String {
    text.replace("~1", "/").replace("~0", "~")
}

fn names(known: &[String]) -> String {
    match known.len() {
        0 => "no members are known here".to_owned(),
        count if count > MAX_NAMES => {
            format!(
                "known: {} and {} more",
                known.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", "),
                count - MAX_NAMES
            )
        }
        _ => format!("known: {}", known.join(", ")),
    }
}

fn looks_encoded(text: &str, types: &[&str]) -> bool {
    let text = text.trim();
    (types.contains(&"object") && text.starts_with('{') && text.ends_with('}'))
        || (types.contains(&"array") && text.starts_with('[') && text.ends_with(']'))
}

fn first_sentence(text: &str) -> Option<String> {
    let line = text.trim().lines().next()?;
    let sentence = match line.split_once(". ") {
        Some((first, _)) => first,
        None => line.trim_end_matches('.'),
    };
    let short: String = sentence.chars().take(MAX_SENTENCE).collect();
    (!short.is_empty()).then(|| super::inert::visible(&short))
}

fn only<T>(mut candidates: impl Iterator<Item = T>) -> Option<T> {
    let first = candidates.next()?;
    candidates.next().is_none().then_some(first)
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["order_id", "amount_cents", "currency", "max_results", "maxLevel", "to"];
        for (word, meant) in [
            ("orderId", Some("order_id")),
            ("ammount_cents", Some("amount_cents")),
            ("amount", Some("amount_cents")),
            ("curency", Some("currency")),
            ("level", Some("maxLevel")),
            ("status", None),
            ("limit", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(near(word, known), meant, "{word}");
        }
    }

    #[test]
    fn only_what_json_would_read_counts_as_a_number() {
        assert_eq!(meant("2500"), Some(json!(2500)));
        assert_eq!(meant("-2.5e3"), Some(json!(-2500.0)));
        for text in
            ["", "-", "20px", "0x10", "007", "+5", "1.", ".5", "NaN", "inf", "1e999", "99999999999999999999", "1 "]
        {
            assert_eq!(meant(text), None, "{text}");
        }
    }

    #[test]
    fn lists_stay_short_and_cannot_be_misread() {
        assert_eq!(listed(&[json!("duplicate"), json!(3), json!(null)]).unwrap(), "duplicate, 3, null");
        assert_eq!(listed(&[json!("3"), json!("true"), json!("a, b")]).unwrap(), r#""3", "true", "a, b""#);
        assert_eq!(listed(&vec![json!("x"); 13]), None);
        assert_eq!(listed(&[json!({})]), None);
    }
}
