//! Whatever a contract takes, every dialect's shown schema takes; and each shows only what its provider knows.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::schema::{Schema, samples};

/// Holds a contract's definitions to some values that the contract takes.
fn check(tool: &Contract, values: &[Value]) -> Result<(), String> {
    for dialect in Dialect::ALL {
        let (_, shown) = declared(dialect, tool);
        let judge = jsonschema::options()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(true)
            .build(&shown)
            .map_err(|error| format!("{dialect} is shown what is no schema: {error}\n{shown}"))?;
        keeps_to_its_subset(dialect, tool)?;
        for value in values {
            let strict = dialect == Dialect::OpenaiStrict && tool.input().strict().is_some();
            let written = match strict {
                true => crate::schema::strict::image(tool.input(), value)
                    .ok_or_else(|| format!("{} cannot be written in strict mode", value))?,
                false => value.clone(),
            };
            if !judge.is_valid(&written) {
                return Err(format!(
                    "{dialect}\n{}\n is shown as {shown},\n which refuses {written}",
                    tool.input().document()
                ));
            }
        }
    }
    Ok(())
}

/// Where a schema stands in a definition.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Top,
    Below,
}

fn keeps_to_its_subset(dialect: Dialect, tool: &Contract) -> Result<(), String> {
    let list = dialect.definitions(&[tool]);
    let (schema, subset) = match dialect {
        Dialect::OpenaiChat => (&list[0]["function"]["parameters"], &subset::OPENAI),
        Dialect::OpenaiResponses => (&list[0]["parameters"], &subset::OPENAI),
        Dialect::Anthropic => (&list[0]["input_schema"], &subset::ANTHROPIC),
        Dialect::Bedrock => (&list[0]["toolSpec"]["inputSchema"]["json"], &subset::BEDROCK),
        Dialect::Ollama => (&list[0]["function"]["parameters"], &subset::OLLAMA),
        Dialect::Gemini => match list[0]["functionDeclarations"][0].get("parametersJsonSchema") {
            Some(schema) => (schema, &subset::GEMINI),
            // The interpretation as JSON Schema knows its keywords.
            None => return Ok(()),
        },
        Dialect::OpenaiStrict => return strict_keeps_to_its_subset(&list[0]["function"]),
        Dialect::Mcp => return Ok(()),
    };
    knows(schema, subset, Place::Top)
}

fn knows(schema: &Value, subset: &subset::Subset, place: Place) -> Result<(), String> {
    let Some(members) = schema.as_object() else { return Err(format!("no object: {schema}")) };
    for (keyword, value) in members {
        let known = match (place, keyword.as_str()) {
            (Place::Top, "type" | "properties" | "required") => true,
            (Place::Top, "$defs") => subset.references == subset::References::Defined,
            (Place::Top, keyword) => subset.top.contains(&keyword),
            (Place::Below, "$ref") => subset.references == subset::References::Defined,
            (Place::Below, keyword) => subset.takes(keyword),
        };
        if !known {
            return Err(format!("a keyword that it does not take: {keyword} in {schema}"));
        }
        match (keyword.as_str(), value) {
            ("properties", Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    if !subset.members.takes(name) {
                        return Err(format!("a name that it does not take: {name}"));
                    }
                    knows(schema, subset, Place::Below)?;
                }
            }
            ("$defs", Value::Object(schemas)) => {
                schemas.values().try_for_each(|schema| knows(schema, subset, Place::Below))?;
            }
            ("items", schema) => knows(schema, subset, Place::Below)?,
            ("additionalProperties", Value::Object(_)) => knows(value, subset, Place::Below)?,
            ("anyOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter().try_for_each(|schema| knows(schema, subset, Place::Below))?;
            }
            _ => {}
        }
    }
    let is_array = members.get("type").is_some_and(|kind| kind == "array");
    if is_array && !members.contains_key("items") { Err(format!("an array without items: {schema}")) } else { Ok(()) }
}

fn strict_keeps_to_its_subset(function: &Value) -> Result<(), String> {
    fn check(schema: &Value) -> Result<(), String> {
        let members = schema.as_object().ok_or_else(|| format!("no object: {schema}"))?;
        let known = [
            "type",
            "description",
            "enum",
            "properties",
            "required",
            "additionalProperties",
            "items",
            "anyOf",
            "$ref",
            "$defs",
        ];
        let is_object = members.get("type").is_some_and(|kind| kind == "object");
        let all: Vec<&String> =
            members.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).collect();
        let closed = !is_object || members["additionalProperties"] == json!(false) && members["required"] == json!(all);
        let typed = ["type", "anyOf", "$ref"].iter().filter(|keyword| members.contains_key(**keyword)).count() == 1;
        let alone = !members.contains_key("$ref") || members.len() == 1;
        if !closed || !typed || !alone || !members.keys().all(|keyword| known.contains(&keyword.as_str())) {
            return Err(format!("not strict: {schema}"));
        }
        let below = ["properties", "$defs"].iter().filter_map(|keyword| members.get(*keyword)?.as_object());
        below.flat_map(Map::values).try_for_each(check)?;
        members
            .get("items")
            .into_iter()
            .chain(members.get("anyOf").and_then(Value::as_array).into_iter().flatten())
            .try_for_each(check)
    }
    match function["strict"].as_bool() {
        Some(true) => check(&function["parameters"]),
        Some(false) => knows(&function["parameters"], &subset::OPENAI, Place::Top),
        None => Err("strict is not said".to_owned()),
    }
}

/// Values with a member that nobody declared, or that only another branch did: those of them that are taken.
fn with_strays(schema: &Schema, values: &[Value]) -> Vec<Value> {
    let names = schema.members().into_iter().chain(["undeclared".to_owned()]);
    let mut taken = Vec::new();
    for name in names {
        for value in values.iter().filter(|value| value.get(&name).is_none()) {
            let mut value = value.clone();
            value[&name] = json!({ "of": [name, null] });
            taken.extend(Some(value).filter(|value| schema.is_valid(value)));
        }
    }
    taken
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn no_dialect_is_shown_a_stricter_schema(document in samples::documents(), seed: u64, open: bool) {
        let ours = json!({
            "description": "Looks.", "effect": "read", "open": open, "input": document, "backend": { "kind": "function" },
        });
        let Some(tool) = Contract::parse("tool", &ours).ok().or_else(|| imported("tool", &document)) else { return Ok(()) };
        let mut values = samples::values(tool.input(), seed, 12);
        values.extend(with_strays(tool.input(), &values));
        check(&tool, &values).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn enough_of_the_schemas_of_these_tests_are_tried_with_values() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut loaded, mut tried, mut strict) = (0, 0, 0);
    for seed in 0..400 {
        let document = samples::documents().new_tree(&mut runner).unwrap().current();
        let Some(schema) = samples::load(&document) else { continue };
        loaded += 1;
        let values = samples::values(&schema, seed, 12);
        tried += usize::from(!values.is_empty());
        strict += usize::from(values.iter().any(|value| crate::schema::strict::image(&schema, value).is_some()));
    }
    assert!(loaded > 150 && tried * 10 > loaded * 6 && strict > 20, "{loaded} loaded, {tried} tried, {strict} strict");
}

/// A folder or file of the corpora, in `$TOOLGATE_CORPORA` or beside the checkout.
fn corpus(name: &str) -> Option<std::path::PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora");
    let corpora = std::env::var("TOOLGATE_CORPORA").unwrap_or_else(|_| beside.to_owned());
    let path = Path::new(&corpora).join(name);
    path.exists().then_some(path)
}

fn imported(name: &str, input: &Value) -> Option<Contract> {
    let mut keys = json!({ "description": "A tool.", "effect": "write", "imported": true, "input": input, "backend": { "kind": "function" } });
    if let Err(problems) = Contract::parse(name, &keys) {
        let named = problems.iter().filter(|problem| problem.code == "identity_member");
        let names: Vec<&str> = named.filter_map(|problem| problem.at.rsplit('/').next()).collect();
        keys["allow_identity_members"] = json!(names);
    }
    Contract::parse(name, &keys).ok()
}

/// The cases of a suite's files: schema, value, and whether the value fits.
fn suite(draft: &str) -> Vec<(Value, Value)> {
    let Some(folder) = corpus(&format!("json-schema-test-suite/tests/{draft}")) else { return Vec::new() };
    let mut cases = Vec::new();
    for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let groups: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        for group in groups.as_array().unwrap() {
            for test in group["tests"].as_array().unwrap() {
                cases.push((group["schema"].clone(), test["data"].clone()));
            }
        }
    }
    cases
}

/// A schema of any value as the schema of an argument; its references go on to lead where they did.
fn as_argument(schema: &Value, draft: &str) -> Value {
    let mut top = json!({ "properties": { "value": moved(schema) }, "required": ["value"] });
    if let Some(uri) =
        [("draft7", "http://json-schema.org/draft-07/schema#"), ("draft4", "http://json-schema.org/draft-04/schema#")]
            .iter()
            .find(|(name, _)| *name == draft)
    {
        top["$schema"] = json!(uri.1);
    }
    top
}

fn moved(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, value)| !(*name == "$schema" && value.is_string()));
            kept.map(|(name, value)| match (name.as_str(), value) {
                ("$ref", Value::String(to)) if to == "#" || to.starts_with("#/") => {
                    (name.clone(), json!(format!("#/properties/value{}", &to.strip_prefix('#').unwrap())))
                }
                _ => (name.clone(), moved(value)),
            })
            .collect()
        }
        Value::Array(items) => items.iter().map(moved).collect(),
        other => other.clone(),
    }
}

#[test]
fn every_dialect_takes_what_the_cases_of_the_json_schema_test_suite_take() {
    for draft in ["draft2020-12", "draft7", "draft4"] {
        let (mut held, mut wrong) = (0, Vec::new());
        let mut known: Option<(Value, Option<Contract>)> = None;
        for (schema, value) in suite(draft) {
            if known.as_ref().is_none_or(|(of, _)| *of != schema) {
                let tool = imported("tool", &as_argument(&schema, draft));
                known = Some((schema, tool));
            }
            let Some((_, Some(tool))) = &known else { continue };
            let value = json!({ "value": value });
            if tool.input().is_valid(&value) {
                held += 1;
                wrong.extend(check(tool, &[value]).err());
            }
        }
        assert!(wrong.is_empty(), "{} of {held}\n{}", wrong.len(), wrong.join("\n\n"));
        assert!(held > 200 || corpus("json-schema-test-suite").is_none(), "{draft}: {held} cases");
    }
}

#[test]
fn every_dialect_takes_what_the_schemas_of_real_servers_take() {
    let Some(folder) = corpus("mcp-tools") else { return };
    let (mut tools, mut tried, mut strict) = (0, 0, 0);
    for file in fs::read_dir(folder).unwrap() {
        let recorded: Value = serde_json::from_str(&fs::read_to_string(file.unwrap().path()).unwrap()).unwrap();
        for page in recorded["tools_list_pages"].as_array().unwrap() {
            for tool in page["tools"].as_array().unwrap() {
                let Some(tool) = imported(tool["name"].as_str().unwrap(), &tool["inputSchema"]) else { continue };
                let values = samples::values(tool.input(), tools, 12);
                tools += 1;
                tried += u64::from(!values.is_empty());
                strict += u64::from(tool.input().strict().is_some());
                check(&tool, &values).unwrap_or_else(|wrong| panic!("{}: {wrong}", tool.name()));
            }
        }
    }
    assert!(
        tools > 250 && tried * 10 > tools * 9 && strict * 2 > tools,
        "{tools} tools, {tried} with values, {strict} strict"
    );
}
