//! `abuse.jsonl`: the surfaces that admission guards.

use std::collections::BTreeMap;

use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use serde_json::{Value, json};
use toolgate::contract::Contract;
use toolgate::wire::Dialect;

use super::{admit, rows, tell, verdicts};

/// The surfaces that calls and contracts come in at.
const SURFACES: [&str; 4] = ["args", "wire", "name", "schema"];

/// Surfaces at which some abuse is stopped by admission already.
const ALSO: [&str; 2] = ["identity", "approval"];

/// What of the corpus admission cannot see, and how many variants there are of each kind. The requests to a door are sent
/// to one in `tests/suite/stories/abuse.rs`.
const BEYOND: [(&str, usize); 8] = [
    ("definitions of an upstream, which the wrapped gate guards", 1),
    ("paths are confined by the backend that opens them", 9),
    ("requests, which the HTTP doors guard", 5),
    ("the places of a URL are guarded by the backend that fills them", 6),
    ("the text of another configuration language; a contract comes as JSON here", 7),
    ("names as dialects show them, which the test below calls", 1),
    ("told in steps, of which admission is one", 2),
    ("told in words: the tests of schema build it", 1),
];

/// One variant of a row.
struct Try {
    name: String,
    case: Value,
    /// The outcomes that are right.
    outcomes: Vec<String>,
}

#[test]
fn every_abuse_of_a_call_or_a_contract_is_stopped_as_it_should_be() {
    let (mut counts, mut beyond) = (BTreeMap::new(), BTreeMap::new());
    let mut tries = Vec::new();
    let rows = rows("abuse.jsonl");
    for row in &rows {
        for (index, variant) in variants(row).into_iter().enumerate() {
            let is_of = |surfaces: &[&str]| surfaces.iter().any(|surface| row["surface"] == *surface);
            let stopped_here = is_of(&ALSO) && outcomes(row, index) == ["invalid_args"];
            if !is_of(&SURFACES) && !stopped_here {
                continue;
            }
            match cases(row, &variant) {
                Ok(cases) => tries.extend(cases.into_iter().map(|mut case| {
                    let name = format!("{} {} variant {index} {}", row["id"], row["threat"], case["dialect"]);
                    case["id"] = json!(name);
                    Try { name, case, outcomes: outcomes(row, index) }
                })),
                Err(why) => *beyond.entry(why).or_insert(0) += 1,
            }
        }
    }
    let cases: Vec<Value> = tries.iter().map(|one| one.case.clone()).collect();
    let mut wrong = Vec::new();
    for (Try { name, outcomes, .. }, answer) in tries.iter().zip(admit(&cases)) {
        let found = verdicts(&answer);
        let right = found.iter().all(|verdict| outcomes.iter().any(|outcome| ours(outcome).contains(&verdict.code())));
        match right && !found.is_empty() {
            true => *counts.entry("checked".to_owned()).or_insert(0) += 1,
            false => wrong.push(format!("{name}: expected {outcomes:?}, got {found:?}")),
        }
    }
    if !rows.is_empty() {
        assert_eq!(beyond, BTreeMap::from(BEYOND));
    }
    tell("abuse", &counts);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn variants(row: &Value) -> Vec<Value> {
    row["input"]["variants"].as_array().cloned().unwrap_or_else(|| vec![row["input"].clone()])
}

fn outcomes(row: &Value, index: usize) -> Vec<String> {
    let outcome = &row["expect"]["outcome"];
    let outcome = outcome.get(index).unwrap_or(outcome);
    outcome.as_str().unwrap().split('|').map(str::to_owned).collect()
}

/// The codes that an outcome of the corpus means here; an admitted call has none.
fn ours(outcome: &str) -> &'static [&'static str] {
    match outcome {
        "ok" => &[""],
        "invalid_args" => &["invalid_json", "invalid_arguments"],
        "reject_wire" => &["broken_message", "invalid_call", "invalid_json", "turn_truncated"],
        "unknown_tool" => &["unknown_tool"],
        "config_rejected" => &["invalid_contract"],
        "budget_exceeded" => &["broken_message"],
        _ => &[],
    }
}

/// The dialects whose messages hold several calls.
const DIALECTS: [Dialect; 6] = [
    Dialect::OpenaiChat,
    Dialect::OpenaiResponses,
    Dialect::Anthropic,
    Dialect::Gemini,
    Dialect::Bedrock,
    Dialect::Ollama,
];

/// A variant as cases, one for each dialect where it does not say in which; or why admission cannot see it.
fn cases(row: &Value, variant: &Value) -> Result<Vec<Value>, &'static str> {
    beyond(row)?;
    let calls = match variant.get("call").filter(|call| call["name"].is_string()) {
        Some(call) => vec![(call["name"].as_str().unwrap().to_owned(), call["args"].clone())],
        None => match variant["gen"].as_str().and_then(count_of_calls) {
            Some(count) => vec![(contract(row)["name"].as_str().unwrap().to_owned(), json!({})); count],
            None => return case(row, variant).map(|case| vec![case]),
        },
    };
    let case = |dialect: Dialect| {
        let input = message(dialect, &calls);
        json!({ "contract": contract(row), "dialect": dialect.as_str(), "input": input })
    };
    Ok(DIALECTS.into_iter().map(case).collect())
}

fn case(row: &Value, variant: &Value) -> Result<Value, &'static str> {
    let mut case = json!({ "contract": contract(row) });
    let text = |name: &str| variant[name].as_str();
    if let Some(raw) = text("args_raw").map(str::to_owned).or_else(|| generated(&variant["args_gen"])) {
        case["input"] = Value::from(raw);
        if row["surface"] == "name" {
            // What is generated is the call, with its name.
            let params = case["input"].take();
            let request = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}}"#,
                params.as_str().unwrap_or_default()
            );
            case["dialect"] = json!("mcp");
            case["input"] = Value::from(request);
        }
    } else if let Some(hex) = text("args_hex") {
        case["input_base64"] = json!(BASE64.encode(&HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).unwrap()));
    } else if let Some(wire) = text("wire_raw") {
        case["dialect"] = json!(dialect(row["given"].as_str().unwrap_or_default(), wire)?);
        case["input"] = json!(wire);
    } else if let Some(schema) = variant["config"].get("schema") {
        case["contract"]["input"] = schema.clone();
        case["input"] = json!({});
    } else {
        return Err(otherwise(row, variant));
    }
    Ok(case)
}

fn beyond(row: &Value) -> Result<(), &'static str> {
    match row["contract"]["backend"]["kind"].as_str() {
        Some("file") => Err("paths are confined by the backend that opens them"),
        Some("http") if row["contract"]["backend"]["url"].as_str().is_some_and(|url| url.contains('{')) => {
            Err("the places of a URL are guarded by the backend that fills them")
        }
        _ => Ok(()),
    }
}

fn otherwise(row: &Value, variant: &Value) -> &'static str {
    if named_in(row).is_some() {
        return "names as dialects show them, which the test below calls";
    }
    for (member, why) in [
        ("http", "requests, which the HTTP doors guard"),
        ("upstream", "definitions of an upstream, which the wrapped gate guards"),
        ("config_raw", "the text of another configuration language; a contract comes as JSON here"),
        ("steps", "told in steps, of which admission is one"),
    ] {
        if variant.get(member).is_some() {
            return why;
        }
    }
    "told in words: the tests of schema build it"
}

/// How many calls a message has of which is told: "a message with N tool calls".
fn count_of_calls(told: &str) -> Option<usize> {
    let (count, _) = told.strip_prefix("a message with ")?.split_once(" tool calls")?;
    count.parse().ok()
}

/// The contracts of a row that is told in steps and is about how their names are shown: "contracts A and B exist".
fn named_in(row: &Value) -> Option<[&str; 2]> {
    row["input"].get("steps").filter(|_| row["surface"] == "name")?;
    let (_, told) = row["given"].as_str()?.split_once("contracts ")?;
    let (first, second) = told.strip_suffix(" exist")?.split_once(" and ")?;
    Some([first, second])
}

#[test]
fn each_name_that_a_dialect_shows_calls_its_own_contract() {
    for row in rows("abuse.jsonl") {
        let Some(names) = named_in(&row) else { continue };
        let keys = |name: &str| json!({ "name": name, "description": "A tool.", "effect": "read", "input": {} });
        let contracts: Vec<Contract> = names.iter().map(|name| Contract::parse(name, &keys(name)).unwrap()).collect();
        for dialect in DIALECTS {
            let definitions = dialect.definitions(&contracts.iter().collect::<Vec<_>>());
            let mut shown = Vec::new();
            names_in(&definitions, &mut shown);
            let calls: Vec<(String, Value)> = shown.iter().map(|name| (name.clone(), json!({}))).collect();
            let case = json!({
                "id": "names", "contracts": names.map(keys), "dialect": dialect.as_str(),
                "input": message(dialect, &calls),
            });
            let [answer] = &admit(&[case])[..] else { panic!("one answer") };
            let called: Vec<&str> =
                answer["calls"].as_array().unwrap().iter().map(|call| call["tool"].as_str().unwrap()).collect();
            assert_eq!(called, names, "{} {dialect}: {shown:?}", row["id"]);
        }
    }
}

/// The names in definitions of tools, whatever stands around them.
fn names_in(definitions: &Value, names: &mut Vec<String>) {
    match definitions {
        Value::Array(items) => items.iter().for_each(|item| names_in(item, names)),
        Value::Object(members) => match members.get("name").and_then(Value::as_str) {
            Some(name) => names.push(name.to_owned()),
            None => members.values().for_each(|member| names_in(member, names)),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A message with these calls, each of a name and arguments.
fn message(dialect: Dialect, calls: &[(String, Value)]) -> Value {
    let each = |call: fn(&str, &Value) -> Value| calls.iter().map(|(name, args)| call(name, args)).collect::<Value>();
    let assistant = |calls: Value| json!({ "role": "assistant", "tool_calls": calls });
    match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiStrict => assistant(each(
            |name, args| json!({ "id": "c", "function": { "name": name, "arguments": args.to_string() } }),
        )),
        Dialect::OpenaiResponses => each(
            |name, args| json!({ "type": "function_call", "call_id": "c", "name": name, "arguments": args.to_string() }),
        ),
        Dialect::Anthropic => each(|name, args| json!({ "type": "tool_use", "id": "c", "name": name, "input": args })),
        Dialect::Gemini => each(|name, args| json!({ "functionCall": { "name": name, "args": args } })),
        Dialect::Bedrock => each(|name, args| json!({ "toolUse": { "toolUseId": "c", "name": name, "input": args } })),
        Dialect::Ollama => assistant(each(|name, args| json!({ "function": { "name": name, "arguments": args } }))),
        Dialect::Mcp => panic!("a request has one call, which is its own"),
    }
}

fn dialect(given: &str, wire: &str) -> Result<&'static str, &'static str> {
    match wire.as_bytes().first() {
        Some(b'{' | b'[') if given.contains("Gemini") => Ok("gemini"),
        Some(b'{' | b'[') if given.contains("Anthropic") => Ok("anthropic"),
        Some(b'{' | b'[') if given.contains("OpenAI") => Ok("openai-chat"),
        Some(b'{' | b'[') => Ok("mcp"),
        _ => Err("requests, which the HTTP doors guard"),
    }
}

fn contract(row: &Value) -> Value {
    let given = &row["contract"];
    let input = given.get("schema").cloned().unwrap_or_else(|| json!({}));
    let name = given["tool"].as_str().unwrap_or("other.tool");
    json!({ "name": name, "effect": given["effect"].as_str().unwrap_or("read"), "input": input })
}

/// The text that `{prefix, unit, count, suffix}` describes.
fn generated(text: &Value) -> Option<String> {
    let word = |name: &str| text[name].as_str().map(str::to_owned);
    let (prefix, unit, suffix) = (word("prefix")?, word("unit")?, word("suffix")?);
    let units = (1..=text["count"].as_u64()?).map(|n| unit.replace("{n}", &n.to_string()));
    Some(prefix + &units.collect::<String>() + &suffix)
}
