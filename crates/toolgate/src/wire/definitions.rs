//! Declaring tools to a model: the names and the part of a schema that the provider takes.

use serde_json::{Value, json};

use super::names;
use crate::contract::Contract;
use crate::schema::Schema;

/// Neither provider takes these at the top level of a tool's schema.
const NOT_AT_THE_TOP: [&str; 5] = ["allOf", "anyOf", "oneOf", "not", "enum"];

/// Other members of a top level that may declare members of the arguments.
const BRANCHES: [&str; 5] = ["if", "then", "else", "dependentSchemas", "dependencies"];

const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The tools as a dialect declares them.
#[derive(Clone, Debug, PartialEq)]
pub struct Definitions {
    /// What to send to the provider: an array.
    pub tools: Value,
    /// The tools that cannot be declared.
    pub left_out: Vec<LeftOut>,
}

/// A tool that a dialect cannot declare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The name of the tool.
    pub tool: String,
    /// Why it is left out.
    pub reason: String,
}

pub(super) fn all(
    tools: &[&Contract],
    longest_name: usize,
    definition: fn(&str, &Contract, Value) -> Value,
) -> Definitions {
    let mut declared = Vec::with_capacity(tools.len());
    let mut left_out = Vec::new();
    for contract in tools {
        let name = names::shown(contract.name());
        if name.len() > longest_name {
            let reason = format!(
                "its name takes {} characters in this dialect, which allows {longest_name}: give it a shorter one",
                name.len()
            );
            left_out.push(LeftOut { tool: contract.name().to_owned(), reason });
            continue;
        }
        declared.push(definition(&name, contract, shown(contract.input())));
    }
    Definitions { tools: Value::Array(declared), left_out }
}

/// The schema as a provider takes it. INVARIANT (never stricter): it may allow more than the contract's, which still
/// judges every call, and never less.
pub(super) fn shown(schema: &Schema) -> Value {
    let document = schema.document();
    let mut top = document.as_object().cloned().unwrap_or_default();
    let speaks = ["additionalProperties", "unevaluatedProperties"].iter().any(|word| top.contains_key(*word));
    let branches = NOT_AT_THE_TOP.iter().chain(&BRANCHES).chain(&REFERENCES).any(|word| top.contains_key(*word));
    top.retain(|word, _| !NOT_AT_THE_TOP.contains(&word.as_str()));
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
