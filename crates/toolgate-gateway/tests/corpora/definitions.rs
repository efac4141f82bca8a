//! Definitions for every dialect, of the tools that real servers list and of the functions of `bfcl/`: what providers
//! refuse does not occur, and no call that is good is refused by what was shown.

use std::collections::BTreeSet;

use serde_json::Value;
use toolgate::wire::Dialect;

use super::mcp_tools::{imported, loaded, servers};
use super::{bfcl, corpus, rows};

/// Keywords of providers that take few of them.
const OLLAMA: [&str; 7] = ["type", "description", "enum", "properties", "required", "items", "anyOf"];
const GEMINI: [&str; 9] =
    ["type", "description", "enum", "properties", "required", "items", "anyOf", "format", "nullable"];
const STRICT: [&str; 10] = [
    "type",
    "description",
    "enum",
    "properties",
    "required",
    "items",
    "anyOf",
    "additionalProperties",
    "$ref",
    "$defs",
];
/// What no provider's schemas have at any level.
const NOWHERE: [&str; 9] =
    ["oneOf", "allOf", "not", "if", "patternProperties", "$schema", "$anchor", "definitions", "nullable"];
const UNIONS: [&str; 6] = ["oneOf", "anyOf", "allOf", "not", "enum", "const"];

/// Name and schema of each tool in a list; a function of Gemini without parameters has none.
fn declared(dialect: Dialect, list: &Value) -> Vec<(String, Option<Value>)> {
    let list = match dialect {
        Dialect::Gemini => &list[0]["functionDeclarations"],
        _ => list,
    };
    let parts = |tool: &Value| {
        let (tool, schema) = match dialect {
            Dialect::OpenaiChat | Dialect::OpenaiStrict | Dialect::Ollama => (&tool["function"], "parameters"),
            Dialect::OpenaiResponses | Dialect::Gemini => (tool, "parameters"),
            Dialect::Anthropic => (tool, "input_schema"),
            Dialect::Bedrock => (&tool["toolSpec"], "inputSchema"),
            Dialect::Mcp => (tool, "inputSchema"),
        };
        let schema = match dialect {
            Dialect::Bedrock => Some(&tool[schema]["json"]),
            _ => tool.get(schema).or_else(|| tool.get("parametersJsonSchema")),
        };
        (tool["name"].as_str().unwrap().to_owned(), schema.cloned())
    };
    list.as_array().unwrap().iter().map(parts).collect()
}

fn takes_name(dialect: Dialect, name: &str) -> bool {
    let longest = match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiStrict | Dialect::OpenaiResponses | Dialect::Bedrock => 64,
        Dialect::Gemini => 63,
        Dialect::Anthropic | Dialect::Mcp => 128,
        Dialect::Ollama => 400,
    };
    let begins =
        dialect != Dialect::Gemini || name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let dotted = dialect == Dialect::Mcp;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || dotted && c == '.';
    begins && (1..=longest).contains(&name.len()) && name.chars().all(plain)
}

/// Every schema in a schema, itself first.
fn all(schema: &Value) -> Vec<&Value> {
    let mut found = vec![schema];
    let below = |keyword: &str| schema.get(keyword);
    let maps = ["properties", "$defs"].into_iter().filter_map(|keyword| below(keyword)?.as_object());
    found.extend(maps.flat_map(|schemas| schemas.values()).flat_map(all));
    let lists = ["anyOf", "prefixItems"].into_iter().filter_map(|keyword| below(keyword)?.as_array());
    found.extend(lists.flatten().flat_map(all));
    let single = ["items", "additionalProperties"].into_iter().filter_map(below).filter(|schema| schema.is_object());
    found.extend(single.flat_map(all));
    found
}

fn assert_taken(dialect: Dialect, name: &str, top: &Value) {
    assert!(UNIONS.iter().all(|keyword| top.get(*keyword).is_none()), "{dialect} {name}: {top}");
    if dialect == Dialect::Mcp {
        return;
    }
    assert!(["object", "OBJECT"].iter().any(|kind| top["type"] == *kind), "{dialect} {name}: {top}");
    let only: Option<&[&str]> = match dialect {
        Dialect::Ollama => Some(&OLLAMA),
        Dialect::Gemini => Some(&GEMINI),
        _ => None,
    };
    for schema in all(top) {
        let keywords: Vec<&str> = schema.as_object().unwrap().keys().map(String::as_str).collect();
        assert!(only.is_none_or(|only| keywords.iter().all(|word| only.contains(word))), "{dialect} {name}: {schema}");
        let nowhere = |word: &&str| NOWHERE.contains(word) && !(dialect == Dialect::Gemini && *word == "nullable");
        assert!(!keywords.iter().any(nowhere), "{dialect} {name}: {schema}");
        let is_array = ["array", "ARRAY"].iter().any(|kind| schema["type"] == *kind);
        assert!(!is_array || schema["items"].is_object(), "{dialect} {name}: {schema}");
        if matches!(dialect, Dialect::Anthropic | Dialect::Bedrock) {
            let mut members = schema["properties"].as_object().into_iter().flat_map(|members| members.keys());
            assert!(members.all(|name| name.len() <= 64 && !name.contains('$')), "{dialect} {name}: {schema}");
        }
    }
}

#[test]
fn every_tool_of_a_real_server_is_declared_in_every_dialect() {
    let (mut count, mut aside, mut strict) = (0, 0, 0);
    for server in servers() {
        let (tools, set_aside) = loaded(&server);
        count += tools.len();
        aside += set_aside;
        for dialect in Dialect::ALL {
            let list = dialect.definitions(&tools.iter().collect::<Vec<_>>());
            let declared = declared(dialect, &list);
            assert_eq!(declared.len(), tools.len(), "{dialect}: {}", server.id);
            let names: BTreeSet<&str> = declared.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names.len(), tools.len(), "{dialect}: {}", server.id);
            for (name, schema) in &declared {
                assert!(takes_name(dialect, name), "{dialect}: {name}");
                schema.iter().for_each(|schema| assert_taken(dialect, name, schema));
            }
            if dialect == Dialect::OpenaiStrict {
                for tool in list.as_array().unwrap().iter().filter(|tool| tool["function"]["strict"] == true) {
                    strict += 1;
                    for schema in all(&tool["function"]["parameters"]) {
                        let known = schema.as_object().unwrap().keys().all(|word| STRICT.contains(&word.as_str()));
                        assert!(known, "{schema}");
                    }
                }
            }
        }
    }
    println!("mcp-tools: {count} tools are declared in every dialect, {strict} in strict mode; {aside} are set aside");
}

#[test]
fn no_good_call_of_a_function_is_refused_by_what_was_shown() {
    let schemas = bfcl::schemas();
    let mut contracts = std::collections::BTreeMap::new();
    for (id, row) in &schemas {
        let keys = bfcl::contract(row);
        let name = row["name"].as_str().unwrap();
        let tool =
            imported(name, "A function.", &keys["input"]).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
        contracts.insert(id.as_str(), tool);
    }
    let mut count = 0;
    let mut judges = std::collections::BTreeMap::new();
    for call in rows("bfcl/calls.jsonl").iter().filter(|call| call["valid"] == true) {
        let id = call["schema"].as_str().unwrap();
        if !contracts[id].input().is_valid(&call["args"]) {
            continue;
        }
        count += 1;
        for dialect in Dialect::ALL {
            if matches!(dialect, Dialect::OpenaiStrict | Dialect::Gemini) {
                // Their schemas are written in other words, which the library's own tests know how to read.
                continue;
            }
            let judge = judges.entry((id.to_owned(), dialect.as_str())).or_insert_with(|| {
                let (_, schema) = declared(dialect, &dialect.definitions(&[&contracts[id]])).remove(0);
                jsonschema::validator_for(&schema.unwrap()).unwrap()
            });
            assert!(judge.is_valid(&call["args"]), "{dialect}: {}", call["case"]);
        }
    }
    println!("bfcl: {count} good calls fit what was shown");
    assert!(count > 1_000 || corpus("bfcl").is_none(), "{count}");
}
