//! The parameters of a function for Gemini.
//!
//! Its schema is a part of OpenAPI's: each place has one type, `null` is said beside it, a union says nothing else, an
//! array has items, and `required` names what is declared. A schema with a place for anything at all cannot be said so;
//! that one is sent as `parametersJsonSchema`, which newer models take.

use serde_json::{Map, Value, json};

/// The parameters, under the name of their form; none for a function without any.
pub(in crate::wire) type Parameters = Option<(&'static str, Value)>;

pub(super) fn parameters(schema: Value) -> Parameters {
    let no_members = schema.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
    if no_members {
        return None;
    }
    match schema.as_object().and_then(said) {
        Some(said) => Some(("parameters", Value::Object(said))),
        None => Some(("parametersJsonSchema", schema)),
    }
}

/// The schema in OpenAPI's words, if it can be said in them.
fn said(schema: &Map<String, Value>) -> Option<Map<String, Value>> {
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return union(schema.get("anyOf")?.as_array()?, schema.get("description")),
    };
    let nullable = types.contains(&"null");
    let kinds: Vec<&str> = types.iter().copied().filter(|kind| *kind != "null").collect();
    let mut said = match kinds.as_slice() {
        // There is no word for a value that is only ever `null`.
        [] => Map::from_iter([("type".to_owned(), json!("STRING"))]),
        [kind] => of_type(kind, schema)?,
        several => {
            let branches: Option<Vec<Value>> =
                several.iter().map(|kind| Some(Value::Object(of_type(kind, schema)?))).collect();
            Map::from_iter([("anyOf".to_owned(), Value::Array(branches?))])
        }
    };
    if nullable {
        allow_null(&mut said);
    }
    Some(said)
}

fn union(branches: &[Value], description: Option<&Value>) -> Option<Map<String, Value>> {
    let is_null = |branch: &&Value| branch.get("type").is_some_and(|kind| kind == "null");
    let some: Option<Vec<Map<String, Value>>> =
        branches.iter().filter(|branch| !is_null(branch)).map(|branch| said(branch.as_object()?)).collect();
    let mut some = some?;
    if let (Some(text), Some(first)) = (description, some.first_mut()) {
        first.entry("description").or_insert_with(|| text.clone());
    }
    let mut said = match some.len() {
        0 => Map::from_iter([("type".to_owned(), json!("STRING"))]),
        1 => some.pop()?,
        _ => Map::from_iter([("anyOf".to_owned(), json!(some))]),
    };
    if branches.iter().any(|branch| is_null(&branch)) {
        allow_null(&mut said);
    }
    Some(said)
}

/// What a schema says of values of one type.
fn of_type(kind: &str, schema: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut said = Map::from_iter([("type".to_owned(), json!(kind.to_ascii_uppercase()))]);
    if let Some(description) = schema.get("description") {
        said.insert("description".to_owned(), description.clone());
    }
    match kind {
        "string" => {
            if let Some(format) = schema.get("format") {
                said.insert("format".to_owned(), format.clone());
            }
            if let Some(Value::Array(values)) = schema.get("enum") {
                let texts: Vec<&Value> = values.iter().filter(|value| value.is_string()).collect();
                if !texts.is_empty() {
                    said.insert("enum".to_owned(), json!(texts));
                }
            }
        }
        "array" => {
            let items = self::said(schema.get("items")?.as_object()?)?;
            said.insert("items".to_owned(), Value::Object(items));
        }
        "object" => {
            let members = schema.get("properties").and_then(Value::as_object);
            let members: Option<Map<String, Value>> = members
                .into_iter()
                .flatten()
                .map(|(name, schema)| Some((name.clone(), Value::Object(self::said(schema.as_object()?)?))))
                .collect();
            let members =
                members.filter(|members| !members.is_empty() || schema.get("properties").is_none_or(is_empty))?;
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            let required: Vec<&Value> =
                required.filter(|name| name.as_str().is_some_and(|name| members.contains_key(name))).collect();
            if !required.is_empty() {
                said.insert("required".to_owned(), json!(required));
            }
            if !members.is_empty() {
                said.insert("properties".to_owned(), Value::Object(members));
            }
        }
        _ => {}
    }
    Some(said)
}

fn is_empty(members: &Value) -> bool {
    members.as_object().is_none_or(Map::is_empty)
}

/// Beside a union nothing else may be said, so one of its branches says it.
fn allow_null(said: &mut Map<String, Value>) {
    match said.get_mut("anyOf").and_then(Value::as_array_mut).and_then(|branches| branches.first_mut()) {
        Some(Value::Object(branch)) => allow_null(branch),
        _ => {
            said.insert("nullable".to_owned(), json!(true));
        }
    }
}
