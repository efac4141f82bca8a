//! What a Rust type says of arguments and of results, in the vocabulary of contracts.
//!
//! schemars derives the schema and serde the decoder, each from the same type and each with its own idea of what an
//! `i32` or an unknown member is. INVARIANT (one type, one meaning): what the schema of the arguments admits, the
//! decoder reads, with nothing dropped on the way. Where the two differ the schema is made stricter here, and what it
//! cannot say is a fault of the tool.
//!
//! The other way round the schema may refuse what the decoder would read: a list in the place of a struct, an alias of a
//! name, a member that is not known, a value twice in a set, what `range`, `length` and `regex` exclude. Each is another
//! spelling of a value than the one that is declared.

mod closing;
mod prose;
mod scalars;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::Transform;
use serde_json::Value;

use crate::schema::Problem;

/// The schema of arguments that are read into `A`, and what it cannot say of them.
pub(super) fn arguments<A: JsonSchema>() -> (Value, Vec<Problem>) {
    let mut schema = SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<A>();
    let problems = unsayable(schema.as_value(), "/input");
    scalars::Bounds.transform(&mut schema);
    prose::Prose.transform(&mut schema);
    let mut schema = plain(schema.into(), &A::schema_name());
    closing::close(&mut schema);
    (schema, problems)
}

/// The schema of results that are printed from `R`.
pub(super) fn result<R: JsonSchema>() -> Value {
    let mut schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<R>();
    scalars::Formats.transform(&mut schema);
    prose::Prose.transform(&mut schema);
    plain(schema.into(), &R::schema_name())
}

/// Without what a contract says elsewhere. A type whose doc comment is a heading alone is described by it; where there is
/// none, schemars makes a title of the type's name, which describes nothing.
fn plain(mut schema: Value, name: &str) -> Value {
    if let Value::Object(root) = &mut schema {
        root.remove("$schema");
        let heading = root.remove("title").filter(|title| title != name);
        if let (None, Some(heading)) = (root.get("description"), heading) {
            root.insert("description".to_owned(), heading);
        }
    }
    schema
}

/// What no schema can say, so that calls would be admitted that the decoder refuses.
fn unsayable(schema: &Value, at: &str) -> Vec<Problem> {
    let below: Vec<(String, &Value)> = match schema {
        Value::Object(node) => {
            node.iter().map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value)).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let mut problems = Vec::new();
    let mut note = |message: &str, hint: &str| {
        let (at, hint) = (at.to_owned(), Some(hint.to_owned()));
        problems.push(Problem { at, code: "type".to_owned(), message: message.to_owned(), hint });
    };
    if is_numbered_map(schema) {
        let message = "a map whose keys are integers: no schema can say which of them its keys take";
        note(message, "take a map of String, or a Vec of pairs");
    }
    if is_wide(schema) {
        let message = "an integer of 128 bits: those of a call have 64, and serde reads no wider ones in an enum";
        note(message, "take an i64 or a u64, or a String of digits");
    }
    problems.extend(below.iter().flat_map(|(key, value)| unsayable(value, &format!("{at}/{key}"))));
    problems
}

/// A member's name is text, and schemars says of it only that it is digits: nothing keeps `300` out of a map of `u8`.
fn is_numbered_map(schema: &Value) -> bool {
    const DIGITS: [&str; 2] = [r"^\d+$", r"^-?\d+$"];
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    patterns.is_some_and(|patterns| DIGITS.iter().any(|digits| patterns.contains_key(*digits)))
}

fn is_wide(schema: &Value) -> bool {
    schema.get("format").and_then(Value::as_str).is_some_and(|format| matches!(format, "int128" | "uint128"))
}

#[cfg(test)]
mod tests;
