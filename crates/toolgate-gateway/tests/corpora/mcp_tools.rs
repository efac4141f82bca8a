//! `mcp-tools/*.json`: what real servers list.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolgate::contract::Contract;
use toolgate::schema::Problem;

use super::{admit, corpus, tell};

/// Why a contract of our own may not have a schema that a server lists. Importing it lets some of it pass by name.
const REASONS: [(&str, &str); 4] = [
    ("identity_member", "an argument of this name says who is asking"),
    ("unknown format", "it would not be checked"),
    ("unknown keyword", "it would not be checked"),
    ("pattern", "it could not be matched in linear time"),
];

/// Why a tool is set aside where it is imported; whoever reads the reason knows what to ask of its server.
const SET_ASIDE: [(&str, &str); 3] = [
    ("is not bounded well", "its schema may cost more than a call may take"),
    ("refers to", "what it refers to is not in its document, or is itself"),
    ("regular expression", "a pattern that cannot be matched within a bound of steps"),
];

/// A server and the tools that it lists.
pub(super) struct Server {
    pub(super) id: String,
    pub(super) tools: Vec<Value>,
}

/// The servers, by the names of their files; none where there are no corpora.
pub(super) fn servers() -> Vec<Server> {
    let Some(folder) = corpus("mcp-tools") else { return Vec::new() };
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let json = files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "json"));
    let servers: Vec<Server> = json
        .map(|file| {
            let recorded: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
            let page = |page: &Value| {
                let tools = page["tools"].as_array().or_else(|| page["result"]["tools"].as_array());
                tools.expect("a page of tools").clone()
            };
            let tools = recorded["tools_list_pages"].as_array().unwrap().iter().flat_map(page).collect();
            Server { id: recorded["id"].as_str().unwrap().to_owned(), tools }
        })
        .collect();
    assert!(servers.iter().any(|server| !server.tools.is_empty()), "no tools were found");
    servers
}

/// A tool as `toolgate init --from mcp` takes it, which allows by name what says who is asking.
pub(super) fn imported(name: &str, description: &str, input: &Value) -> Result<Contract, Vec<Problem>> {
    let mut keys = json!({ "description": description, "effect": "write", "imported": true, "input": input });
    keys["backend"] = json!({ "kind": "mcp" });
    if let Err(problems) = Contract::parse(name, &keys) {
        let named = problems.iter().filter(|problem| problem.code == "identity_member");
        let names = named.filter_map(|problem| problem.at.rsplit('/').next());
        keys["allow_identity_members"] = json!(names.map(|name| name.replace("~1", "/")).collect::<Vec<_>>());
    }
    Contract::parse(name, &keys)
}

/// The tools of a server that load, as they are imported, and how many are set aside.
pub(super) fn loaded(server: &Server) -> (Vec<Contract>, usize) {
    let mut aside = 0;
    let mut tools = Vec::new();
    for tool in &server.tools {
        let name = tool["name"].as_str().unwrap();
        let description = tool["description"].as_str().filter(|text| !text.trim().is_empty()).unwrap_or("A tool.");
        match imported(name, description, &tool["inputSchema"]) {
            Ok(contract) => tools.push(contract),
            Err(problems) => {
                for problem in problems {
                    let known = SET_ASIDE.iter().find(|(reason, _)| problem.message.contains(reason));
                    let (_, why) = known.unwrap_or_else(|| panic!("{} {name}: {problem:?}", server.id));
                    println!("mcp-tools: {} {name} is set aside at {}: {why}", server.id, problem.at);
                }
                aside += 1;
            }
        }
    }
    (tools, aside)
}

#[test]
fn every_tool_of_a_real_server_loads_as_it_is_imported_or_is_set_aside_for_a_reason() {
    let servers = servers();
    let (mut counts, mut listed) = (BTreeMap::new(), 0);
    for server in &servers {
        let (tools, aside) = loaded(server);
        assert_eq!(tools.len() + aside, server.tools.len(), "{}", server.id);
        listed += server.tools.len();
        *counts.entry("load as they are imported".to_owned()).or_insert(0) += tools.len();
        *counts.entry("are set aside".to_owned()).or_insert(0) += aside;
        for warning in tools.iter().flat_map(Contract::warnings) {
            *counts.entry(format!("are warned of: {}", warning.code)).or_insert(0) += 1;
        }
    }
    println!("mcp-tools: {listed} tools of {} servers", servers.len());
    tell("mcp-tools", &counts);
}

#[test]
fn every_tool_of_a_real_server_has_a_schema_that_compiles_or_is_refused_for_a_reason() {
    let mut cases = Vec::new();
    for Server { id, tools } in servers() {
        for tool in tools {
            let contract = json!({
                "name": tool["name"], "description": tool["description"].as_str().unwrap_or("A tool."),
                "effect": "write", "input": tool["inputSchema"],
            });
            cases.push(json!({ "id": [id, tool["name"]], "contract": contract, "input": "" }));
        }
    }
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
