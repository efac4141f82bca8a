//! What a rule tells: text with `{fact.NAME/pointer}` in it.
//!
//! A message may show facts whose schema bounds what they can say: numbers, booleans, enums, dates. A free string of a
//! fact could carry instructions, and an argument would let the model write its own refusal.

use serde_json::{Map, Value};

use super::schema::ToolShape;

/// A message, read once and rendered often.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Message(Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Fact { name: String, pointer: String },
}

impl Message {
    /// Reads a message; the error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("it says nothing".into());
        }
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                plain.extend(from.chars().next());
                rest = after;
                continue;
            }
            let Some((inside, after)) = from.strip_prefix('{').and_then(|from| from.split_once('}')) else {
                return Err("it has a brace without its partner; write `{{` or `}}` for a brace itself".into());
            };
            let Some((name, pointer)) = inside.strip_prefix("fact.").and_then(|inside| inside.split_once('/')) else {
                return Err(format!(
                    "`{{{inside}}}` is not something that it can show; it can show `{{fact.NAME/member}}`"
                ));
            };
            parts.push(Part::Text(std::mem::take(&mut plain)));
            parts.push(Part::Fact { name: name.to_owned(), pointer: format!("/{pointer}") });
            rest = after;
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        Ok(Self(parts))
    }

    /// Whether each fact that the message shows is one of `tool`'s and bounded by its schema.
    pub(super) fn check(&self, tool: &ToolShape<'_>) -> Result<(), String> {
        for part in &self.0 {
            let Part::Fact { name, pointer } = part else { continue };
            let Some(fact) = tool.facts.iter().find(|fact| fact.name == name) else {
                return Err(format!("{} looks up no fact `{name}`", tool.name));
            };
            match leaf(fact.output, pointer) {
                None => return Err(format!("the fact `{name}` of {} has no member `{pointer}`", tool.name)),
                Some(schema) if is_bounded(fact.output, schema) => {}
                Some(_) => {
                    return Err(format!(
                        "`{pointer}` of the fact `{name}` may be any text; a message shows numbers, booleans, enums and dates"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The names of the facts that the message shows.
    pub(super) fn facts(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .0
            .iter()
            .filter_map(|part| match part {
                Part::Fact { name, .. } => Some(name.clone()),
                Part::Text(_) => None,
            })
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// The message with the values of `facts`.
    pub(super) fn render(&self, facts: &Map<String, Value>) -> String {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Fact { name, pointer } => match facts.get(name).and_then(|fact| fact.pointer(pointer)) {
                    Some(Value::String(text)) => out.push_str(text),
                    Some(Value::Number(number)) => out.push_str(&number.to_string()),
                    Some(Value::Bool(true)) => out.push_str("yes"),
                    Some(Value::Bool(false)) => out.push_str("no"),
                    Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => out.push_str("(unknown)"),
                },
            }
        }
        out
    }
}

/// The schema of what stands at `pointer`, through declared members alone.
fn leaf<'a>(document: &'a Value, pointer: &str) -> Option<&'a Value> {
    let mut node = resolved(document, document)?;
    for member in pointer.split('/').skip(1) {
        let member = member.replace("~1", "/").replace("~0", "~");
        node = resolved(document, node.get("properties")?.get(&member)?)?;
    }
    Some(node)
}

fn resolved<'a>(document: &'a Value, node: &'a Value) -> Option<&'a Value> {
    match node.get("$ref").and_then(Value::as_str) {
        // One step only: a reference to a reference would need a guard against circles, and nobody writes one here.
        Some(target) => document.pointer(target.strip_prefix('#')?).filter(|node| node.get("$ref").is_none()),
        None => Some(node),
    }
}

/// Whether the values of `schema` say nothing that its author did not choose.
fn is_bounded(document: &Value, schema: &Value) -> bool {
    if schema.get("enum").is_some() || schema.get("const").is_some() {
        return true;
    }
    let names = match (schema.get("type"), schema.get("anyOf").or_else(|| schema.get("oneOf"))) {
        (Some(Value::Array(names)), _) => names.as_slice(),
        (Some(name), _) => std::slice::from_ref(name),
        (None, Some(Value::Array(branches))) => {
            let plain = |branch| {
                resolved(document, branch)
                    .filter(|branch| ["anyOf", "oneOf"].iter().all(|key| branch.get(key).is_none()))
            };
            return branches.iter().all(|branch| plain(branch).is_some_and(|branch| is_bounded(document, branch)));
        }
        _ => return false,
    };
    let dated = matches!(schema.get("format").and_then(Value::as_str), Some("date" | "date-time"));
    names.iter().all(|name| match name.as_str() {
        Some("integer" | "number" | "boolean" | "null") => true,
        Some("string") => dated,
        _ => false,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_shows_facts_and_keeps_doubled_braces() {
        let message = Message::parse("{{Only}} {fact.order/left_cents} of {fact.order/total/cents} cents").unwrap();
        let facts = json!({"order": {"left_cents": 2000, "total": {"cents": 4000}}});
        assert_eq!(message.render(facts.as_object().unwrap()), "{Only} 2000 of 4000 cents");
        assert_eq!(message.facts(), ["order"]);
        assert_eq!(message.render(&Map::new()), "{Only} (unknown) of (unknown) cents");
    }

    #[test]
    fn an_argument_or_half_a_brace_is_no_placeholder() {
        for text in ["{amount_cents}", "{session.user}", "{fact.order}", "left {fact.order/x", "}", " "] {
            assert!(Message::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_what_the_schema_bounds_may_be_shown() {
        for (schema, fine) in [
            (json!({"type": "integer"}), true),
            (json!({"type": ["number", "null"]}), true),
            (json!({"enum": ["open", "paid"]}), true),
            (json!({"type": "string", "format": "date"}), true),
            (json!({"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}], "$defs": {"n": {"type": "integer"}}}), true),
            (json!({"oneOf": [{"const": "a"}, {"const": "b"}]}), true),
            (json!({"anyOf": [{"$ref": "#"}]}), false),
            (json!({"oneOf": [{"$ref": "#"}]}), false),
            (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), false),
            (json!({"type": "string"}), false),
            (json!({"type": ["string", "integer"]}), false),
            (json!({}), false),
        ] {
            assert_eq!(is_bounded(&schema, &schema), fine, "{schema}");
        }
    }
}
