#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic, and read what it is held to"
)]

mod never_stricter;
mod stories;

use serde_json::{Map, Value, json};

use super::*;
use crate::call::Call;
use crate::json::Limits;
use crate::wire::{Proposed, Turn};

fn contract(name: &str, input: Value) -> Contract {
    let keys = json!({ "description": "Looks.", "effect": "read", "input": input, "backend": { "kind": "function" } });
    Contract::parse(name, &keys).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// The same of a contract that takes members that its schema does not declare.
fn open_contract(name: &str, input: Value) -> Contract {
    let keys = json!({
        "description": "Looks.", "effect": "read", "open": true, "input": input, "backend": { "kind": "function" },
    });
    Contract::parse(name, &keys).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// The name and the schema of the one tool that is declared, and the keyword that the schema stands under.
fn declared(dialect: Dialect, tool: &Contract) -> (String, Value) {
    let list = dialect.definitions(&[tool]);
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{dialect}: {list}");
    let tool = match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiStrict | Dialect::Ollama => &list[0]["function"],
        Dialect::OpenaiResponses | Dialect::Anthropic | Dialect::Mcp => &list[0],
        Dialect::Gemini => &list[0]["functionDeclarations"][0],
        Dialect::Bedrock => &list[0]["toolSpec"],
    };
    let schema = match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiStrict | Dialect::OpenaiResponses | Dialect::Ollama => &tool["parameters"],
        Dialect::Anthropic => &tool["input_schema"],
        Dialect::Gemini => match (tool.get("parameters"), tool.get("parametersJsonSchema")) {
            (Some(parameters), None) => &as_json_schema(parameters),
            (None, Some(schema)) => schema,
            (None, None) => &json!({ "type": "object" }),
            (Some(_), Some(_)) => panic!("both forms of parameters"),
        },
        Dialect::Bedrock => &tool["inputSchema"]["json"],
        Dialect::Mcp => &tool["inputSchema"],
    };
    (tool["name"].as_str().unwrap().to_owned(), schema.clone())
}

fn shown(dialect: Dialect, input: Value) -> Value {
    declared(dialect, &contract("tool", input)).1
}

/// What Gemini's schema means, as JSON Schema.
fn as_json_schema(schema: &Value) -> Value {
    let mut meant = Map::new();
    for (keyword, value) in schema.as_object().unwrap() {
        let value = match keyword.as_str() {
            "type" => json!(value.as_str().unwrap().to_ascii_lowercase()),
            "items" => as_json_schema(value),
            "properties" => {
                value.as_object().unwrap().iter().map(|(name, schema)| (name.clone(), as_json_schema(schema))).collect()
            }
            "anyOf" => value.as_array().unwrap().iter().map(as_json_schema).collect(),
            "nullable" => continue,
            "enum" | "required" | "description" | "format" => value.clone(),
            other => panic!("a keyword that Gemini does not take: {other}"),
        };
        meant.insert(keyword.clone(), value);
    }
    match schema.get("nullable") {
        Some(_) => json!({ "anyOf": [meant, { "type": "null" }] }),
        None => Value::Object(meant),
    }
}
