//! The tools of the shop, as each provider is told of them.

use serde_json::{Value, json};

use crate::door::{Run, toolgate};
use crate::folder::Folder;

const ORDER: &str =
    "Look up an order by its id: its total, how much of it was refunded and how much is left. Use it before a refund.";
const REFUND: &str = "Refund part or all of a paid order. Moves money. To see what is left on an order use get_order; to look \
                      at a refund use get_refund_status.";
const IN_WORDS: &str = "The id of the order, such as ord_1001. (pattern: ^ord_[A-Za-z0-9]+$; at most 40 characters)";

/// What the shop's tools are for a dialect.
fn tools(dialect: &str) -> Vec<Value> {
    let folder = Folder::shop();
    let shop = folder.path().to_str().unwrap();
    let run = Run::of(&mut toolgate(&["tools", shop, "--for", dialect, "--json"]), "");
    assert_eq!(run.exit, Some(0), "{run:?}");
    run.json().as_array().unwrap().clone()
}

/// The definitions of `create_refund` and `get_order` in a list.
fn two<'v>(list: &'v [Value], name: &str) -> [&'v Value; 2] {
    let find = |wanted: &str| {
        list.iter()
            .find(|tool| tool.pointer(name).is_some_and(|name| name == wanted))
            .unwrap_or_else(|| panic!("{wanted}"))
    };
    assert_eq!(list.len(), 5);
    [find("create_refund"), find("get_order")]
}

/// The schemas where bounds can be said.
fn full() -> [Value; 2] {
    let order_id = json!({
        "type": "string", "pattern": "^ord_[A-Za-z0-9]+$", "maxLength": 40,
        "description": "The id of the order, such as ord_1001.",
    });
    let refund = json!({
        "type": "object",
        "properties": {
            "order_id": order_id,
            "amount_cents": {
                "type": "integer", "minimum": 1, "maximum": 100000, "description": "How much to refund, in cents.",
            },
            "currency": { "type": "string", "enum": ["USD"], "description": "The currency of the order." },
            "reason": {
                "type": "string", "enum": ["duplicate", "customer_request", "damaged", "other"],
                "description": "Why it is refunded.",
            },
        },
        "required": ["order_id", "amount_cents", "currency", "reason"],
        "additionalProperties": false,
    });
    let order = json!({
        "type": "object",
        "properties": { "order_id": order_id },
        "required": ["order_id"],
        "additionalProperties": false,
    });
    [refund, order]
}

/// The same without `additionalProperties`.
fn unclosed() -> [Value; 2] {
    full().map(|mut schema| {
        schema.as_object_mut().unwrap().remove("additionalProperties");
        schema
    })
}

#[test]
fn openai_is_told_of_functions() {
    let [refund, order] = full();
    let function = |name: &str, description: &str, schema: &Value| json!({ "type": "function", "function": { "name": name, "description": description, "parameters": schema } });
    let expected = [function("create_refund", REFUND, &refund), function("get_order", ORDER, &order)];
    let list = tools("openai-chat");
    assert_eq!(two(&list, "/function/name"), expected.each_ref());
}

#[test]
fn openai_is_told_of_strict_functions_without_bounds() {
    let parameters = json!({
        "type": "object",
        "properties": {
            "order_id": { "type": "string", "description": IN_WORDS },
            "amount_cents": {
                "type": "integer", "description": "How much to refund, in cents. (at least 1; at most 100000)",
            },
            "currency": { "type": "string", "enum": ["USD"], "description": "The currency of the order." },
            "reason": {
                "type": "string", "enum": ["duplicate", "customer_request", "damaged", "other"],
                "description": "Why it is refunded.",
            },
        },
        "required": ["order_id", "amount_cents", "currency", "reason"],
        "additionalProperties": false,
    });
    let function =
        json!({ "name": "create_refund", "description": REFUND, "parameters": unordered(&parameters), "strict": true });
    let list = tools("openai-strict");
    let [refund, order] = two(&list, "/function/name");
    let mut refund = refund.clone();
    refund["function"]["parameters"] = unordered(&refund["function"]["parameters"]);
    assert_eq!(refund, json!({ "type": "function", "function": function }));
    let parameters = json!({
        "type": "object",
        "properties": { "order_id": { "type": "string", "description": IN_WORDS } },
        "required": ["order_id"],
        "additionalProperties": false,
    });
    let function = json!({ "name": "get_order", "description": ORDER, "parameters": parameters, "strict": true });
    assert_eq!(*order, json!({ "type": "function", "function": function }));
}

/// A schema with its required members sorted: their order says nothing.
fn unordered(schema: &Value) -> Value {
    let mut schema = schema.clone();
    schema["required"].as_array_mut().unwrap().sort_by_key(Value::to_string);
    schema
}

#[test]
fn responses_are_told_that_nothing_is_strict() {
    let [refund, order] = full();
    let function = |name: &str, description: &str, schema: &Value| json!({ "type": "function", "name": name, "description": description, "parameters": schema, "strict": false });
    let expected = [function("create_refund", REFUND, &refund), function("get_order", ORDER, &order)];
    let list = tools("openai-responses");
    assert_eq!(two(&list, "/name"), expected.each_ref());
}

#[test]
fn anthropic_is_told_of_input_schemas() {
    let [refund, order] = full();
    let expected = [
        json!({ "name": "create_refund", "description": REFUND, "input_schema": refund }),
        json!({ "name": "get_order", "description": ORDER, "input_schema": order }),
    ];
    let list = tools("anthropic");
    assert_eq!(two(&list, "/name"), expected.each_ref());
}

#[test]
fn gemini_is_told_in_words_of_openapi() {
    let order_id = json!({ "type": "STRING", "description": IN_WORDS });
    let refund = json!({
        "type": "OBJECT",
        "properties": {
            "order_id": order_id,
            "amount_cents": {
                "type": "INTEGER", "description": "How much to refund, in cents. (at least 1; at most 100000)",
            },
            "currency": { "type": "STRING", "enum": ["USD"], "description": "The currency of the order." },
            "reason": {
                "type": "STRING", "enum": ["duplicate", "customer_request", "damaged", "other"],
                "description": "Why it is refunded.",
            },
        },
        "required": ["order_id", "amount_cents", "currency", "reason"],
    });
    let order = json!({ "type": "OBJECT", "properties": { "order_id": order_id }, "required": ["order_id"] });
    let expected = [
        json!({ "name": "create_refund", "description": REFUND, "parameters": refund }),
        json!({ "name": "get_order", "description": ORDER, "parameters": order }),
    ];
    let list = tools("gemini");
    assert_eq!(list.len(), 1, "all functions are one tool");
    let functions = list[0]["functionDeclarations"].as_array().unwrap();
    assert_eq!(two(functions, "/name"), expected.each_ref());
}

#[test]
fn bedrock_is_told_of_specifications() {
    let [refund, order] = unclosed();
    let spec = |name: &str, description: &str, schema: &Value| json!({ "toolSpec": { "name": name, "description": description, "inputSchema": { "json": schema } } });
    let expected = [spec("create_refund", REFUND, &refund), spec("get_order", ORDER, &order)];
    for name in ["bedrock", "bedrock-converse"] {
        let list = tools(name);
        assert_eq!(two(&list, "/toolSpec/name"), expected.each_ref());
    }
}

#[test]
fn ollama_is_told_of_functions_with_plain_members() {
    let order_id = json!({ "type": "string", "description": IN_WORDS });
    let order = json!({ "type": "object", "properties": { "order_id": order_id }, "required": ["order_id"] });
    let refund = json!({
        "type": "object",
        "properties": {
            "order_id": order_id,
            "amount_cents": {
                "type": "integer", "description": "How much to refund, in cents. (at least 1; at most 100000)",
            },
            "currency": { "type": "string", "enum": ["USD"], "description": "The currency of the order." },
            "reason": {
                "type": "string", "enum": ["duplicate", "customer_request", "damaged", "other"],
                "description": "Why it is refunded.",
            },
        },
        "required": ["order_id", "amount_cents", "currency", "reason"],
    });
    let function = |name: &str, description: &str, schema: &Value| json!({ "type": "function", "function": { "name": name, "description": description, "parameters": schema } });
    let expected = [function("create_refund", REFUND, &refund), function("get_order", ORDER, &order)];
    let list = tools("ollama");
    assert_eq!(two(&list, "/function/name"), expected.each_ref());
}

#[test]
fn a_client_of_mcp_is_told_of_the_schema_as_it_is_and_of_what_a_tool_does() {
    let [_, mut order] = full();
    let list = tools("mcp");
    let [refund, shown] = two(&list, "/name");
    assert_eq!(shown["inputSchema"], order.take());
    assert_eq!(shown["annotations"], json!({ "readOnlyHint": true }));
    assert_eq!(shown["outputSchema"]["properties"]["left_cents"]["type"], json!("integer"));
    assert_eq!(refund["annotations"], json!({ "readOnlyHint": false }));
    assert_eq!(
        refund["inputSchema"]["properties"]["currency"],
        json!({ "enum": ["USD"], "description": "The currency of the order." })
    );
}
