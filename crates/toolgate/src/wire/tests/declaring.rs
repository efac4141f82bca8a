//! Declaring tools to a model.

use super::*;

fn contract(name: &str, input: Value) -> Contract {
    let keys = json!({ "description": "Looks.", "effect": "read", "input": input, "backend": { "kind": "function" } });
    Contract::parse(name, &keys).unwrap_or_else(|problems| panic!("{problems:?}"))
}

#[test]
fn a_tool_is_declared_in_the_form_of_each_dialect_and_its_top_level_is_closed() {
    let input =
        json!({ "properties": { "order_id": { "type": "string", "maxLength": 20 } }, "required": ["order_id"] });
    let tool = contract("shop.get_order", input.clone());
    let mut schema = input;
    schema["type"] = json!("object");
    schema["additionalProperties"] = json!(false);
    let function = json!({ "name": "shop_-_get_order", "description": "Looks.", "parameters": schema });
    let declared = Dialect::OpenaiChat.definitions(&[&tool]);
    assert_eq!(declared.tools, json!([{ "type": "function", "function": function }]));
    let declared = Dialect::Anthropic.definitions(&[&tool]);
    let definition = json!({ "name": "shop_-_get_order", "description": "Looks.", "input_schema": schema });
    assert_eq!(declared, Definitions { tools: json!([definition]), left_out: Vec::new() });

    let called = openai(r#"{"id":"c","function":{"name":"shop_-_get_order"}}"#);
    assert_eq!(whole(&read(Dialect::OpenaiChat, &called)), [("c", "shop.get_order", "")]);
    let called = anthropic(r#"{"type":"tool_use","id":"t","name":"shop_-_get_order","input":{}}"#);
    assert_eq!(whole(&read(Dialect::Anthropic, &called)), [("t", "shop.get_order", "{}")]);
}

#[test]
fn a_name_that_is_too_long_for_a_dialect_leaves_its_tool_out_with_the_reason() {
    let long = "a".repeat(65);
    let (tool, other) = (contract(&long, json!({})), contract("get_order", json!({})));
    let declared = Dialect::OpenaiChat.definitions(&[&tool, &other]);
    assert_eq!(declared.tools.as_array().unwrap().len(), 1);
    assert_eq!(declared.left_out[0].tool, long);
    assert!(declared.left_out[0].reason.contains("65 characters"), "{}", declared.left_out[0].reason);
    assert!(Dialect::Anthropic.definitions(&[&tool, &other]).left_out.is_empty());
}

#[test]
fn the_shown_schema_never_refuses_what_the_contract_takes() {
    let branches = json!({
        "type": "object",
        "properties": { "a": { "type": "integer" } },
        "anyOf": [{ "properties": { "b": { "type": "integer" } }, "required": ["b"] }, { "required": ["a"] }],
    });
    let tree = json!({
        "type": "object",
        "properties": { "left": { "$ref": "#" }, "value": { "type": "integer" } },
    });
    let open = json!({ "type": "object", "properties": {}, "additionalProperties": { "type": "integer" } });
    for (input, taken) in
        [(branches, json!({ "b": 1 })), (tree, json!({ "left": { "value": 1 } })), (open, json!({ "anything": 1 }))]
    {
        let tool = contract("tool", input.clone());
        assert!(tool.input().is_valid(&taken), "{input}");
        let shown = &Dialect::Anthropic.definitions(&[&tool]).tools[0]["input_schema"];
        assert!(shown.get("anyOf").is_none());
        assert!(jsonschema::validator_for(shown).unwrap().is_valid(&taken), "{shown}");
    }
}
