//! Values of the record of which only a digest is left, and what can stand in their place.

use serde_json::{Map, Value};

use crate::json::Digest;
use crate::schema::Schema;

/// A value of the record, with samples in place of what is hidden in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Unhidden {
    /// The value.
    pub value: Value,
    /// Where it is hidden what stood there, as JSON pointers.
    pub places: Vec<String>,
    /// Those of the places for which no sample was found: the digest still stands there.
    pub left: Vec<String>,
}

/// Under which names a digest stands for a value.
const NAMES: [&str; 3] = ["$secret", "$personal", "$digest"];
/// What stands in a text for what looked like a secret: this, eight digits and a bracket.
const CUT_OUT: &str = "[secret ";
const DIGITS: usize = 8;

impl Unhidden {
    /// The value, with samples of what `schema` says of the places.
    pub fn of(value: &Value, schema: &Schema) -> Self {
        let mut unhidden = Self { value: value.clone(), places: Vec::new(), left: Vec::new() };
        gather(value, "", &mut unhidden.places);
        unhidden.places.sort();
        for place in &unhidden.places {
            let Some(here) = unhidden.value.pointer_mut(place) else { continue };
            match (schema.sample(place), here) {
                (_, Value::String(text)) => *text = without_digests(text),
                (Some(sample), here) => *here = sample,
                (None, _) => unhidden.left.push(place.clone()),
            }
        }
        unhidden
    }
}

/// Whether a value stands for one that is hidden.
pub(super) fn is_hidden(value: &Value) -> bool {
    match value {
        Value::Object(members) => is_digest(members),
        Value::String(text) => cut_out(text).is_some(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    }
}

/// Whether anything in a value is hidden.
pub(super) fn holds_hidden(value: &Value) -> bool {
    is_hidden(value)
        || match value {
            Value::Array(items) => items.iter().any(holds_hidden),
            Value::Object(members) => members.values().any(holds_hidden),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
}

fn is_digest(members: &Map<String, Value>) -> bool {
    let digest = |value: &Value| value.as_str().is_some_and(|text| text.parse::<Digest>().is_ok());
    members.len() == 1 && NAMES.iter().any(|name| members.get(*name).is_some_and(digest))
}

/// Where in a text a digest stands first: from where to where.
fn cut_out(text: &str) -> Option<(usize, usize)> {
    text.match_indices(CUT_OUT).find_map(|(at, _)| {
        let digits = at + CUT_OUT.len();
        let end = digits + DIGITS;
        let hex = text.get(digits..end)?.bytes().all(|byte| byte.is_ascii_hexdigit());
        (hex && text.get(end..=end) == Some("]")).then_some((at, end + 1))
    })
}

/// The text with plain words where digests stand.
fn without_digests(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some((from, to)) = cut_out(&text) {
        text.replace_range(from..to, "sample-of-a-value");
    }
    text
}

fn gather(value: &Value, at: &str, places: &mut Vec<String>) {
    if is_hidden(value) {
        return places.push(at.to_owned());
    }
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                gather(item, &format!("{at}/{index}"), places);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                gather(value, &format!("{at}/{name}"), places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A value that stands for a hidden one, for tests.
#[cfg(test)]
pub(super) fn hidden(name: &str) -> Value {
    serde_json::json!({ name: Digest::of(name.as_bytes()) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::disallowed_methods, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn samples_stand_where_something_is_hidden_and_all_else_is_as_it_was() {
        let schema = Schema::input(&json!({ "properties": {
            "card": { "type": "string", "pattern": "^[0-9]{16}$", "x-secret": true },
            "to": { "type": "array", "items": { "type": "object", "properties": { "mail": { "type": "string", "format": "email" } } } },
            "note": { "type": "string", "maxLength": 40 },
        } }))
        .unwrap();
        let recorded = json!({
            "card": hidden("$secret"),
            "to": [{ "mail": "a@b.example" }, { "mail": hidden("$personal") }],
            "note": "the key is [secret 0a1b2c3d] and no [secret at all]",
        });
        let Unhidden { value, places, left } = Unhidden::of(&recorded, &schema);
        assert_eq!(places, ["/card", "/note", "/to/1/mail"]);
        assert!(left.is_empty() && !holds_hidden(&value), "{value}");
        assert_eq!(
            (&value["to"][0], &value["note"]),
            (&recorded["to"][0], &json!("the key is sample-of-a-value and no [secret at all]"))
        );
        assert!(schema.is_valid(&json!({ "card": value["card"], "to": value["to"] })), "{value}");
    }

    #[test]
    fn only_what_a_record_writes_counts_as_hidden() {
        for plain in [
            json!({ "$secret": "no digest" }),
            json!({ "$secret": Digest::of(b""), "more": 1 }),
            json!({ "secret": Digest::of(b"") }),
            json!("[secret]"),
            json!("[secret 0a1b2c3]"),
            json!("[secret 0a1b2c3g]"),
            json!(null),
        ] {
            assert!(!is_hidden(&plain), "{plain}");
        }
        assert!(is_hidden(&hidden("$digest")) && holds_hidden(&json!([{ "a": hidden("$personal") }])));
    }
}
