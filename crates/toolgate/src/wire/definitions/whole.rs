//! The schema as the contract has it, for a protocol that takes all of JSON Schema.

use serde_json::{Value, json};

use super::subset;
use super::weaker::weaker;
use crate::schema::Schema;

/// Clients hand a tool on to providers, which refuse every tool of a request where one has these at the top level.
const NOT_AT_THE_TOP: [&str; 5] = ["allOf", "anyOf", "oneOf", "not", "enum"];

/// The schema as it is written, closed where the contract closes it; as weak as elsewhere where its top level has what no
/// provider takes there.
pub(in crate::wire) fn whole(schema: &Schema) -> Value {
    let mut top = schema.document().as_object().cloned().unwrap_or_default();
    if NOT_AT_THE_TOP.iter().any(|word| top.contains_key(*word)) {
        return weaker(schema, &subset::OPENAI);
    }
    top.insert("type".to_owned(), json!("object"));
    top.entry("properties").or_insert_with(|| json!({}));
    if schema.is_closed_by_its_contract() {
        top.insert("additionalProperties".to_owned(), json!(false));
    }
    Value::Object(top)
}
