//! `mcp-tools/*.json`: what real servers list.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{admit, corpus, tell};

/// Why a contract of our own may not have a schema that a server lists. Importing it lets some of it pass by name.
const REASONS: [(&str, &str); 4] = [
    ("identity_member", "an argument of this name says who is asking"),
    ("unknown format", "it would not be checked"),
    ("unknown keyword", "it would not be checked"),
    ("pattern", "it could not be matched in linear time"),
];

#[test]
fn every_tool_of_a_real_server_has_a_schema_that_compiles_or_is_refused_for_a_reason() {
    let Some(folder) = corpus("mcp-tools") else { return };
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "json")) {
        let recorded: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        for page in recorded["tools_list_pages"].as_array().unwrap() {
            let tools =
                page["tools"].as_array().or_else(|| page["result"]["tools"].as_array()).expect("a page of tools");
            for tool in tools {
                let contract = json!({
                    "name": tool["name"], "description": tool["description"].as_str().unwrap_or("A tool."),
                    "effect": "write", "input": tool["inputSchema"],
                });
                cases.push(json!({ "id": [recorded["id"], tool["name"]], "contract": contract, "input": "" }));
            }
        }
    }
    assert!(!cases.is_empty(), "no tools were found");
    let mut counts = BTreeMap::new();
    let mut wrong = Vec::new();
    for answer in admit(&cases) {
        let Some(error) = answer.get("error") else {
            *counts.entry("compile".to_owned()).or_insert(0) += 1;
            continue;
        };
        for problem in error["problems"].as_array().unwrap() {
            let word = |name: &str| problem[name].as_str().unwrap_or_default();
            let known = REASONS.iter().find(|(reason, _)| word("code") == *reason || word("message").contains(reason));
            match known {
                Some((reason, why)) if !word("hint").is_empty() => {
                    println!("mcp-tools: {} at {}: {reason}", answer["id"], word("at"));
                    *counts.entry(format!("problems: {reason}, {why}")).or_insert(0) += 1;
                }
                _ => wrong.push(format!("{}: {problem}", answer["id"])),
            }
        }
    }
    tell("mcp-tools", &counts);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
