//! The schema as the contract has it, for a protocol that takes all of JSON Schema.

use serde_json::{Value, json};

use super::subset;
use super::weaker::weaker;
use crate::schema::Schema;

/// Clients hand a tool on to providers, which refuse every tool of a request where one has these at the top level.
const NOT_AT_THE_TOP: [&str; 5] = ["allOf", "anyOf", "oneOf", "not", "enum"];

/// Other members of a top level that may declare members of the arguments.
const BRANCHES: [&str; 5] = ["if", "then", "else", "dependentSchemas", "dependencies"];

const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The schema as it is written, closed where the contract closes it; as weak as elsewhere where its top level has what no
/// provider takes there.
pub(in crate::wire) fn whole(schema: &Schema) -> Value {
    let document = schema.document();
    let mut top = document.as_object().cloned().unwrap_or_default();
    if NOT_AT_THE_TOP.iter().any(|word| top.contains_key(*word)) {
        return weaker(schema, &subset::OPENAI);
    }
    let speaks = ["additionalProperties", "unevaluatedProperties"].iter().any(|word| top.contains_key(*word));
    let branches = BRANCHES.iter().chain(&REFERENCES).any(|word| top.contains_key(*word));
    top.insert("type".to_owned(), json!("object"));
    top.entry("properties").or_insert_with(|| json!({}));
    if !speaks && !branches && !refers_to_top(document) {
        top.insert("additionalProperties".to_owned(), json!(false));
    }
    Value::Object(top)
}

/// Whether the top level may be used again further down, where it would be closed too: any reference that is not plainly
/// to a place inside.
fn refers_to_top(schema: &Value) -> bool {
    let may_refer = |(name, target): (&String, &Value)| {
        REFERENCES.contains(&name.as_str()) && !target.as_str().is_some_and(|target| target.starts_with("#/"))
    };
    match schema {
        Value::Object(members) => members.iter().any(may_refer) || members.values().any(refers_to_top),
        Value::Array(items) => items.iter().any(refers_to_top),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
