//! What of contracts holds and is probably not meant.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may panic"
)]

use serde_json::{Map, Value, json};
use toolgate::backend::Context;
use toolgate::contract::Contract;
use toolgate::ledger::Store;
use toolgate::{Gate, Tool};

fn keys(description: &str) -> Value {
    json!({ "description": description, "effect": "read", "input": { "properties": { "id": { "type": "string" } } } })
}

/// Code and place of each warning of a contract.
fn warned(name: &str, keys: &Value) -> Vec<(String, String)> {
    let contract = Contract::parse(name, keys).unwrap();
    contract.warnings().iter().map(|warning| (warning.code.clone(), warning.at.clone())).collect()
}

/// Tool, code and place of each warning of a gate with these tools.
fn of_gate(tools: impl IntoIterator<Item = (String, Value)>) -> Vec<(String, String, String)> {
    let mut gate = Gate::builder().policy("permit (principal, action, resource);").store(Store::memory());
    for (name, keys) in tools {
        let mut tool = Tool::read(name, |arguments: Value, _: &Context| async move { Ok(arguments) });
        for (key, value) in keys.as_object().cloned().unwrap_or_else(Map::new) {
            tool = tool.key(key, value);
        }
        gate = gate.tool(tool);
    }
    let warnings = gate.prepare().unwrap().warnings();
    warnings.into_iter().map(|warning| (warning.tool, warning.problem.code, warning.problem.at)).collect()
}

#[test]
fn a_description_that_says_no_more_than_the_name_is_told() {
    for (name, description) in [
        ("get_order", "Get an order."),
        ("get_order", "Gets the orders"),
        ("getOrder", "This tool is used to get the order."),
        ("scan-links", "Scan links."),
    ] {
        let expected = (name.to_owned(), "thin_description".to_owned(), "/description".to_owned());
        assert_eq!(of_gate([(name.to_owned(), keys(description))]), [expected], "{description}");
    }
    let mut imported = keys("Get order.");
    imported["imported"] = json!(true);
    for (name, keys) in [
        ("get_order", keys("Look up an order by its id: total, currency, what was refunded.")),
        ("run", keys("Runs the nightly import.")),
        ("get_order", imported),
    ] {
        assert_eq!(of_gate([(name.to_owned(), keys)]), []);
    }
}

#[test]
fn warnings_of_both_schemas_have_their_place_in_the_contract() {
    let mut contract = keys("Looks up what was ordered, by its number.");
    contract["imported"] = json!(true);
    contract["input"]["properties"]["id"]["widget"] = json!("area");
    contract["output"] = json!({ "type": "object", "properties": { "at": { "type": "string", "format": "moment" } } });
    let expected =
        [("unknown_keyword", "/input/properties/id/widget"), ("unknown_format", "/output/properties/at/format")];
    assert_eq!(warned("find", &contract), expected.map(|(code, at)| (code.to_owned(), at.to_owned())));
    assert!(
        Contract::parse("find", &{
            contract["imported"] = json!(false);
            contract
        })
        .is_err()
    );
}

#[test]
fn tools_that_say_nearly_the_same_are_told_apart_by_nobody() {
    let told = of_gate([
        ("find_a".to_owned(), keys("Search the orders of a customer by name or number.")),
        ("find_b".to_owned(), keys("Search orders of the customer, by number or by name.")),
        ("find_c".to_owned(), keys("Search the invoices of a supplier by date.")),
    ]);
    assert_eq!(told, [("find_b".to_owned(), "near_descriptions".to_owned(), "/description".to_owned())]);
}

#[test]
fn more_than_thirty_tools_are_many() {
    let tools =
        |count: usize| (0..count).map(|n| (format!("tool_{n}"), keys(&format!("Does the thing of number {n}x."))));
    let codes = |count| of_gate(tools(count)).into_iter().filter(|(_, code, _)| code == "many_tools").count();
    assert_eq!((codes(30), codes(31)), (0, 1));
}

#[test]
fn a_contract_says_whether_its_top_level_is_open() {
    let with = |open: Option<Value>, input: Value| {
        let mut contract = keys("Looks up what was ordered, by its number.");
        contract["input"] = input;
        if let Some(open) = open {
            contract["open"] = open;
        }
        Contract::parse("find", &contract)
    };
    let stray = json!({ "id": "a", "more": 1 });
    let silent = json!({ "properties": { "id": { "type": "string" } } });
    let open = json!({ "properties": { "id": { "type": "string" } }, "additionalProperties": true });
    let shut = json!({ "properties": { "id": { "type": "string" } }, "additionalProperties": false });
    assert!(!with(None, silent.clone()).unwrap().input().is_valid(&stray));
    assert!(!with(Some(json!(false)), silent.clone()).unwrap().input().is_valid(&stray));
    assert!(with(Some(json!(true)), silent).unwrap().input().is_valid(&stray));
    assert!(with(Some(json!(true)), open.clone()).unwrap().input().is_valid(&stray));
    assert_eq!(with(None, open).unwrap_err()[0].at, "/input/additionalProperties");
    assert_eq!(with(Some(json!(true)), shut.clone()).unwrap_err()[0].at, "/input/additionalProperties");
    assert_eq!(with(Some(json!("yes")), shut).unwrap_err()[0].at, "/open");
}

#[test]
fn an_old_answer_that_calls_of_several_runs_are_decided_over_is_told() {
    let pay = json!({
        "description": "Pays money out of an account.", "effect": "write",
        "input": { "properties": { "account": { "type": "string" } }, "required": ["account"] },
        "facts": { "limit": { "tool": "get_limit", "args": { "account": "{account}" }, "max_age": "1m" } },
    });
    let told = ("kept_fact".to_owned(), "/facts/limit/max_age".to_owned());
    assert_eq!(warned("pay", &pay), [told]);
    let with = |key: &str, value: Value| {
        let mut pay = pay.clone();
        pay[key] = value;
        warned("pay", &pay)
    };
    assert_eq!(with("lane", json!({ "key": ["{account}"] })), []);
    assert_eq!(with("effect", json!("read")), []);
    assert_eq!(with("facts", json!({ "limit": { "tool": "get_limit", "args": { "account": "{account}" } } })), []);
}
