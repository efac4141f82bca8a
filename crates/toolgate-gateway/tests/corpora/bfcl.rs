//! `bfcl/`: function schemas and calls from the wild.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Verdict, admit, rows, tell, verdicts};

/// Why a call that is good by its schema is refused by a contract with that schema.
const STRICTER: [(&str, &str); 2] = [
    ("additional_property", "a top level that does not speak of undeclared members forbids them"),
    ("control_character", "lines in a string need x-multiline in its schema"),
];

/// The types that the corpus has for those of JSON Schema; an empty one allows anything.
const TYPES: [(&str, &str); 14] = [
    ("dict", "object"),
    ("HashMap", "object"),
    ("float", "number"),
    ("double", "number"),
    ("long", "integer"),
    ("tuple", "array"),
    ("Array", "array"),
    ("ArrayList", "array"),
    ("String", "string"),
    ("char", "string"),
    ("Boolean", "boolean"),
    ("Bigint", "integer"),
    ("any", ""),
    ("", ""),
];

pub(super) fn schemas() -> BTreeMap<String, Value> {
    let rows = rows("bfcl/schemas.jsonl").into_iter();
    rows.map(|row| (row["schema"].as_str().unwrap().to_owned(), row)).collect()
}

#[test]
fn every_good_call_is_admitted_and_every_other_refused() {
    let schemas = schemas();
    let calls = rows("bfcl/calls.jsonl");
    let case = |(index, call): (usize, &Value)| json!({ "id": index, "contract": contract(&schemas[call["schema"].as_str().unwrap()]), "input": call["args"] });
    let cases: Vec<Value> = calls.iter().enumerate().map(case).collect();
    let mut counts = BTreeMap::new();
    let mut wrong = Vec::new();
    for (call, answer) in calls.iter().zip(admit(&cases)) {
        let found = verdicts(&answer);
        let outcome = match (&found[0], call["valid"] == true) {
            (Verdict::Admitted, true) => "good and admitted".to_owned(),
            (Verdict::Refused { code, .. }, false) if code == "invalid_arguments" => "wrong and refused".to_owned(),
            (Verdict::Refused { problems, .. }, true)
                if problems.iter().all(|(code, _)| STRICTER.iter().any(|(known, _)| known == code)) =>
            {
                format!("stricter: {}", problems[0].0)
            }
            _ => {
                wrong.push(format!("{} ({}): {found:?}", call["case"], call["why"]));
                continue;
            }
        };
        *counts.entry(outcome).or_insert(0) += 1;
    }
    tell("bfcl", &counts);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let stricter: usize = counts.iter().filter(|(kind, _)| kind.starts_with("stricter")).map(|(_, count)| count).sum();
    assert!(stricter * 100 <= calls.len(), "{stricter} of {} calls are refused by design alone", calls.len());
}

/// What of the wrong calls `null_as_absent` does not take, by what stands there.
const STILL_WRONG: [(&str, &str); 5] = [
    ("null for a member that is required", "it may not be absent either"),
    ("a value outside of an enum", "a word for \"any\" or \"none\", or a value that nobody listed"),
    ("a text in place of another type", "a name in source text, or a word for \"any\""),
    ("a value of another type in place of a text", "no leniency turns a value into text"),
    ("a member that is required and missing", "nothing stands in for it"),
];

/// What kind of problem it is, and whether it is a null that could be absent.
fn kind(code: &str, at: &str, args: &Value, required: &[String]) -> &'static str {
    let value = args.pointer(at);
    match (code, value) {
        ("required", _) => "a member that is required and missing",
        ("type" | "enum", Some(Value::Null)) if required.iter().any(|name| *name == at) => {
            "null for a member that is required"
        }
        ("type" | "enum", Some(Value::Null)) => "null for a member that is optional",
        ("enum", Some(_)) => "a value outside of an enum",
        ("type", Some(Value::String(_))) => "a text in place of another type",
        ("type", Some(_)) => "a value of another type in place of a text",
        _ => "not explained",
    }
}

/// The places of the top level's required members.
fn required(schema: &Value) -> Vec<String> {
    let names = schema["required"].as_array().cloned().unwrap_or_default();
    names.iter().map(|name| format!("/{}", name.as_str().unwrap())).collect()
}

#[test]
fn null_as_absent_takes_each_wrong_call_whose_nulls_are_optional_and_leaves_what_is_explained() {
    let schemas = schemas();
    let calls: Vec<Value> = rows("bfcl/calls.jsonl").into_iter().filter(|call| call["valid"] == false).collect();
    let schema = |call: &Value| &schemas[call["schema"].as_str().unwrap()];
    let case = |(index, call): (usize, &Value), lenient: &[&str]| {
        let mut contract = contract(schema(call));
        contract["lenient"] = json!(lenient);
        json!({ "id": index, "contract": contract, "input": call["args"] })
    };
    let of = |lenient: &[&str]| admit(&calls.iter().enumerate().map(|call| case(call, lenient)).collect::<Vec<_>>());
    let (mut counts, mut wrong) = (BTreeMap::new(), Vec::new());
    for ((call, strict), lenient) in calls.iter().zip(of(&[])).zip(of(&["null_as_absent"])) {
        let required = required(&schema(call)["parameters"]);
        let kinds = |verdict: &Verdict| -> Vec<&str> {
            let Verdict::Refused { problems, .. } = verdict else { return Vec::new() };
            problems.iter().map(|(code, at)| kind(code, at, &call["args"], &required)).collect()
        };
        let (before, after) = (&verdicts(&strict)[0], &verdicts(&lenient)[0]);
        let optional = "null for a member that is optional";
        let what = match after {
            Verdict::Taken(names) if names.iter().all(|name| name == "null_as_absent") => {
                kinds(before).iter().all(|kind| *kind == optional).then(|| format!("taken: {optional}"))
            }
            Verdict::Taken(_) | Verdict::Admitted => None,
            Verdict::Refused { .. } => {
                let kinds = kinds(after);
                let why = kinds.iter().map(|kind| STILL_WRONG.iter().find(|(listed, _)| listed == kind));
                let why = why.collect::<Option<Vec<_>>>().and_then(|why| why.first().copied());
                why.map(|(kind, why)| format!("still wrong: {kind} ({why})"))
            }
        };
        match what {
            Some(what) => *counts.entry(what).or_insert(0) += 1,
            None => wrong.push(format!("{} ({}): {before:?}, then {after:?}", call["case"], call["why"])),
        }
    }
    tell("bfcl", &counts);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_schema_compiles_once_its_types_are_those_of_json_schema() {
    let case = |(id, row): (&String, &Value)| json!({ "id": id, "contract": contract(row), "input": "" });
    let cases: Vec<Value> = schemas().iter().map(case).collect();
    let bad: Vec<Value> = admit(&cases).into_iter().filter(|answer| answer.get("error").is_some()).collect();
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn a_schema_with_types_of_another_language_is_refused_with_what_to_write() {
    let schemas = schemas();
    let raw = |(id, row): (&String, &Value)| json!({ "id": id, "contract": { "name": row["name"], "effect": "read", "input": row["parameters"] }, "input": "" });
    for answer in admit(&schemas.iter().map(raw).collect::<Vec<_>>()) {
        let error = &answer["error"];
        assert_eq!(error["code"], "invalid_contract", "{answer}");
        for problem in error["problems"].as_array().unwrap() {
            assert!(problem["hint"].is_string(), "{problem}");
        }
    }
}

/// The contract of a row. Its members that are named like an identity mean something else there.
pub(super) fn contract(row: &Value) -> Value {
    let mut members = Vec::new();
    let input = renamed(&row["parameters"], &mut members);
    json!({ "name": row["name"], "effect": "read", "input": input, "allow_identity_members": members })
}

fn renamed(schema: &Value, members: &mut Vec<String>) -> Value {
    let Value::Object(node) = schema else { return schema.clone() };
    let mut kept = Map::new();
    for (key, value) in node {
        let value = match (key.as_str(), value) {
            ("type", Value::String(word)) => match TYPES.iter().find(|(other, _)| other == word) {
                Some((_, "")) => continue,
                Some((_, plain)) => json!(plain),
                None => value.clone(),
            },
            // Drafts before the fourth had it at the member itself; `required` lists what is not optional.
            ("optional", _) => continue,
            ("properties", Value::Object(declared)) => {
                members.extend(declared.keys().cloned());
                declared.iter().map(|(name, schema)| (name.clone(), renamed(schema, members))).collect()
            }
            ("items" | "additionalProperties", _) => renamed(value, members),
            _ => value.clone(),
        };
        kept.insert(key.clone(), value);
    }
    Value::Object(kept)
}
