//! `abuse.jsonl`: the surfaces that admission guards.

use std::collections::BTreeMap;

use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use serde_json::{Value, json};
use toolgate::contract::Contract;
use toolgate::wire::Dialect;

use super::{admit, reaching, rows, tell, told, verdicts, words};

/// The surfaces that calls and contracts come in at.
const SURFACES: [&str; 4] = ["args", "wire", "name", "schema"];

/// Surfaces at which some abuse is stopped by admission already.
const ALSO: [&str; 2] = ["identity", "approval"];

/// One variant of a row.
struct Try {
    name: String,
    case: Value,
    expect: Expect,
}

/// What must become of a variant.
struct Expect {
    /// The outcomes that are right.
    outcomes: Vec<String>,
    /// Calls that reach a tool: exact where the outcome is `ok`, else at most.
    backend_calls: usize,
}

#[test]
fn every_abuse_of_a_call_or_a_contract_is_stopped_as_it_should_be() {
    let mut counts = BTreeMap::new();
    let mut tries = Vec::new();
    for row in &rows("abuse.jsonl") {
        for (index, variant) in variants(row).into_iter().enumerate() {
            let is_of = |surfaces: &[&str]| surfaces.iter().any(|surface| row["surface"] == *surface);
            let stopped_here = is_of(&ALSO) && expect(row, index).outcomes == ["invalid_args"];
            if !is_of(&SURFACES) && !stopped_here {
                continue;
            }
            match cases(row, &variant) {
                Ok(cases) => tries.extend(cases.into_iter().map(|mut case| {
                    let name = format!("{} {} variant {index} {}", row["id"], row["threat"], case["dialect"]);
                    case["id"] = json!(name);
                    Try { name, case, expect: expect(row, index) }
                })),
                Err(why) => *counts.entry(format!("beyond admission: {why}")).or_insert(0) += 1,
            }
        }
    }
    let cases: Vec<Value> = tries.iter().map(|one| one.case.clone()).collect();
    let mut wrong = Vec::new();
    let mut all = 0;
    for (Try { name, case, expect }, answer) in tries.iter().zip(admit(&cases)) {
        let found = verdicts(&answer);
        let is_right = |verdict| expect.outcomes.iter().any(|outcome| words::is_outcome(outcome, verdict));
        if found.is_empty() || !found.iter().all(is_right) {
            wrong.push(format!("{name}: expected {:?}, got {found:?}", expect.outcomes));
            continue;
        }
        match reaching(case, &found) {
            Ok(calls) if calls == expect.backend_calls || calls == 0 && expect.outcomes != ["ok"] => {
                *counts.entry(format!("checked: {}", expect.outcomes.join(" or "))).or_insert(0) += 1;
                all += calls;
            }
            Ok(calls) => wrong.push(format!("{name}: {calls} calls reached a tool, not {}", expect.backend_calls)),
            Err(why) => wrong.push(format!("{name}: {why}")),
        }
    }
    counts.insert("calls reached a tool".to_owned(), all);
    tell("abuse", &counts);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn variants(row: &Value) -> Vec<Value> {
    row["input"]["variants"].as_array().cloned().unwrap_or_else(|| vec![row["input"].clone()])
}

/// What a row expects of one of its variants: a list has an entry for each.
fn expect(row: &Value, index: usize) -> Expect {
    let of = |member: &str| row["expect"][member].get(index).unwrap_or(&row["expect"][member]).clone();
    let outcomes = of("outcome").as_str().unwrap().split('|').map(str::to_owned).collect();
    Expect { outcomes, backend_calls: of("backend_calls").as_u64().unwrap().try_into().unwrap() }
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
    if let Some(tools) = variant["upstream"]["tools"].as_array().filter(|_| row["surface"] == "name") {
        let listed = |tool: &Value| json!({ "contract": named(tool["name"].as_str().unwrap()), "input": {} });
        return Ok(tools.iter().map(listed).collect());
    }
    let calls = match variant.get("call").filter(|call| call["name"].is_string()) {
        Some(call) => vec![(call["name"].as_str().unwrap().to_owned(), call["args"].clone())],
        None => match variant["gen"].as_str().and_then(told::count_of_calls) {
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
    } else if let Some(schema) = text("config_gen").and_then(told::chained_schema) {
        case["contract"]["input"] = schema;
        case["input"] = json!({ "value": 3 });
    } else if let Some(names) = text("config_raw").and_then(told::loaded_together) {
        case = json!({ "contracts": names.into_iter().map(named).collect::<Vec<_>>(), "dialect": "mcp", "input": {} });
    } else if let Some(stream) = variant["steps"].as_array().and_then(|steps| told::stream(steps)) {
        case["dialect"] = json!("openai-chat");
        case["input"] = stream;
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
        ("config_raw", "the text of a contract file, which the test of files writes"),
        ("steps", "told in steps of connections, which the HTTP doors guard"),
    ] {
        if variant.get(member).is_some() {
            return why;
        }
    }
    "told in words that nothing here builds"
}

/// The contracts of a row that is told in steps and is about how their names are shown.
fn named_in(row: &Value) -> Option<[&str; 2]> {
    row["input"].get("steps").filter(|_| row["surface"] == "name")?;
    told::two_contracts(row["given"].as_str()?)
}

fn named(name: &str) -> Value {
    json!({ "name": name, "description": "A tool.", "effect": "read", "input": {} })
}

#[test]
fn each_name_that_a_dialect_shows_calls_its_own_contract() {
    for row in rows("abuse.jsonl") {
        let Some(names) = named_in(&row) else { continue };
        let contracts: Vec<Contract> = names.iter().map(|name| Contract::parse(name, &named(name)).unwrap()).collect();
        for dialect in DIALECTS {
            let definitions = dialect.definitions(&contracts.iter().collect::<Vec<_>>());
            let mut shown = Vec::new();
            names_in(&definitions, &mut shown);
            let calls: Vec<(String, Value)> = shown.iter().map(|name| (name.clone(), json!({}))).collect();
            let case = json!({
                "id": "names", "contracts": names.map(named), "dialect": dialect.as_str(),
                "input": message(dialect, &calls),
            });
            let [answer] = &admit(std::slice::from_ref(&case))[..] else { panic!("one answer") };
            let called: Vec<&str> =
                answer["calls"].as_array().unwrap().iter().map(|call| call["tool"].as_str().unwrap()).collect();
            assert_eq!(called, names, "{} {dialect}: {shown:?}", row["id"]);
            assert_eq!(reaching(&case, &verdicts(answer)), Ok(names.len()), "{} {dialect}", row["id"]);
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
