//! A schema document without some of its annotations, for whoever it is shown to.

use serde_json::{Map, Value};

use super::Schema;

/// What only a gate reads: whoever sends arguments has no use for how else they might be written.
pub(crate) const LENIENT: &str = "x-lenient";

/// Members of a schema whose own members are named freely.
const OF_NAMES: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// Members of a schema that hold values, which are nothing but themselves.
const OF_VALUES: [&str; 4] = ["const", "enum", "default", "examples"];

impl Schema {
    /// The document as callers are shown it: without `x-lenient`, which is for the gate alone. `x-secret`, `x-personal`
    /// and `x-multiline` stay, for a client that keeps what it sends has to know them.
    pub fn shown(&self) -> Value {
        without(&self.document, &[LENIENT])
    }
}

/// A schema without these keywords, at any depth. A member of an object may have such a name, and stays.
pub(crate) fn without(schema: &Value, keywords: &[&str]) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !keywords.contains(&name.as_str()));
            let shown = kept.map(|(name, value)| match value {
                Value::Object(named) if OF_NAMES.contains(&name.as_str()) => {
                    let named = named.iter().map(|(name, schema)| (name.clone(), without(schema, keywords)));
                    (name.clone(), Value::Object(named.collect::<Map<_, _>>()))
                }
                value if OF_VALUES.contains(&name.as_str()) => (name.clone(), value.clone()),
                value => (name.clone(), without(value, keywords)),
            });
            Value::Object(shown.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| without(item, keywords)).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}
