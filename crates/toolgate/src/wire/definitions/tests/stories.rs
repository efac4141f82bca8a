//! What a dialect is shown where it cannot say all.

use super::*;
use Dialect::{Anthropic, Bedrock, Gemini, Mcp, Ollama, OpenaiChat, OpenaiResponses, OpenaiStrict};

fn strict(input: Value) -> (Value, bool) {
    let list = OpenaiStrict.definitions(&[&contract("tool", input)]);
    (list[0]["function"]["parameters"].clone(), list[0]["function"]["strict"].as_bool().unwrap())
}

fn gemini(input: Value) -> Value {
    Gemini.definitions(&[&contract("tool", input)])[0]["functionDeclarations"][0].clone()
}

fn called(dialect: Dialect, message: &Value) -> Call {
    let turn: Turn = dialect.decode(message.to_string().as_bytes(), &Limits::default()).unwrap();
    match turn.calls() {
        [Proposed::Call(call)] => call.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_tool_is_called_by_the_name_that_is_shown() {
    let long = format!("shop.{}", "a".repeat(123));
    for name in ["shop.get_order", "2fa", &long] {
        let tool = contract(name, json!({}));
        for dialect in Dialect::ALL {
            let (shown, _) = declared(dialect, &tool);
            let mut admission = crate::admission::Admission::new(Limits::default());
            admission.add(contract(name, json!({}))).unwrap();
            let call = Call::new("c", crate::contract::names::meant(&shown), "{}");
            let call = if dialect == Mcp { Call::new("c", shown.clone(), "{}") } else { call };
            let digest =
                admission.admit(&call).unwrap_or_else(|refusal| panic!("{dialect} {shown}: {refusal:?}")).digest();
            assert_eq!(digest, admission.admit(&Call::new("c", name, "{}")).unwrap().digest());
        }
    }
}

#[test]
fn a_short_form_cannot_be_taken_by_another_tool() {
    let long = "a".repeat(100);
    let form = declared(OpenaiChat, &contract(&long, json!({}))).0;
    assert_eq!(form.len(), 64);
    let mut admission = crate::admission::Admission::new(Limits::default());
    admission.add(contract(&long, json!({}))).unwrap();
    assert!(admission.add(contract(&form, json!({}))).is_err());
    let mut admission = crate::admission::Admission::new(Limits::default());
    admission.add(contract(&form, json!({}))).unwrap();
    assert!(admission.add(contract(&long, json!({}))).is_err());
}

#[test]
fn no_provider_gets_a_union_at_the_top_and_each_learns_of_its_members() {
    let input = json!({
        "type": "object",
        "properties": { "kind": { "enum": ["a", "b"] } },
        "required": ["kind"],
        "oneOf": [
            { "properties": { "kind": { "const": "a" }, "size": { "type": "integer" } }, "required": ["size"] },
            { "properties": { "kind": { "const": "b" }, "name": { "type": "string" }, "size": { "type": "string" } }, "required": ["size"] },
        ],
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "kind": { "enum": ["a", "b"], "type": "string" },
            "size": { "anyOf": [{ "type": "integer" }, { "type": "string" }] },
            "name": { "type": "string" },
        },
        "required": ["kind", "size"],
        "additionalProperties": false,
    });
    for dialect in [OpenaiChat, OpenaiResponses, Anthropic] {
        assert_eq!(shown(dialect, input.clone()), expected);
    }
    assert_eq!(strict(input), (expected, false), "shown as it is outside of strict mode");
}

#[test]
fn what_cannot_be_said_of_a_value_is_told_in_words() {
    let input = json!({ "properties": {
        "id": { "type": "string", "pattern": "^ord_", "maxLength": 40, "description": "The order." },
        "level": { "enum": [1, 2] },
        "day": { "type": "string", "format": "date" },
    } });
    let members = gemini(input.clone())["parameters"]["properties"].clone();
    assert_eq!(
        members,
        json!({
            "id": { "type": "STRING", "description": "The order. (pattern: ^ord_; at most 40 characters)" },
            "level": { "type": "INTEGER", "description": "one of 1, 2" },
            "day": { "type": "STRING", "description": "format: date" },
        })
    );
    let (strict, _) = strict(input);
    assert_eq!(strict["properties"]["day"], json!({ "type": ["string", "null"], "description": "format: date" }));
    let long = json!({ "properties": { "id": { "type": "string", "pattern": format!("^{}$", "a".repeat(300)) } } });
    assert_eq!(shown(Ollama, long)["properties"]["id"], json!({ "type": "string" }), "words are few or none");
}

#[test]
fn strict_mode_closes_every_object_and_says_null_for_what_is_left_out() {
    let input = json!({
        "properties": {
            "id": { "type": "string" },
            "size": { "type": "integer", "minimum": 1 },
            "colour": { "enum": ["red"] },
            "next": { "$ref": "#/$defs/node", "description": "What follows." },
            "code": { "type": ["string", "integer"] },
            "until": { "type": ["string", "null"] },
        },
        "required": ["id", "until"],
        "$defs": { "node": {
            "type": "object", "additionalProperties": false,
            "properties": { "next": { "$ref": "#/$defs/node" } },
        } },
    });
    let nothing = json!({ "type": "null" });
    let expected = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string" },
            "size": { "type": ["integer", "null"], "description": "at least 1" },
            "colour": { "type": ["string", "null"], "enum": ["red", null] },
            "next": { "anyOf": [{ "$ref": "#/$defs/part_1" }, nothing], "description": "What follows." },
            "code": { "anyOf": [{ "type": "string" }, { "type": "integer" }, nothing] },
            "until": { "type": ["string", "null"] },
        },
        "required": ["id", "size", "colour", "next", "code", "until"],
        "additionalProperties": false,
        "$defs": { "part_1": {
            "type": "object",
            "properties": { "next": { "anyOf": [{ "$ref": "#/$defs/part_1" }, nothing] } },
            "required": ["next"],
            "additionalProperties": false,
        } },
    });
    assert_eq!(strict(input), (expected, true));
}

#[test]
fn a_call_in_strict_mode_is_admitted_without_its_nulls_and_says_so() {
    let input =
        json!({ "properties": { "id": { "type": "string" }, "note": { "type": "string" } }, "required": ["id"] });
    let mut admission = crate::admission::Admission::new(Limits::default());
    admission.add(contract("tool", input)).unwrap();
    let message = json!({ "role": "assistant", "tool_calls": [{
        "id": "c", "type": "function", "function": { "name": "tool", "arguments": r#"{"id":"x","note":null}"# },
    }] });
    let admitted = admission.admit(&called(OpenaiStrict, &message)).unwrap();
    assert_eq!((admitted.canonical(), admitted.absent()), (r#"{"id":"x"}"#, &["/note".to_owned()][..]));
    let plain = admission.admit(&Call::new("c", "tool", r#"{"id":"x"}"#)).unwrap();
    assert_eq!(admitted.digest(), plain.digest());
    assert!(admission.admit(&called(OpenaiChat, &message)).is_err(), "a null is a null in any other dialect");
}

#[test]
fn anthropic_is_told_in_words_of_members_that_it_refuses_by_name() {
    let input =
        json!({ "properties": { "$top": { "type": "integer" }, "q": { "type": "string" } }, "required": ["$top"] });
    let expected = json!({
        "type": "object", "properties": { "q": { "type": "string" } }, "description": "it also takes \"$top\"",
    });
    assert_eq!(shown(Anthropic, input.clone()), expected);
    assert!(shown(OpenaiChat, input)["properties"].get("$top").is_some());
}

#[test]
fn an_older_draft_is_shown_in_the_words_of_the_newest() {
    let input = json!({
        "$schema": "http://json-schema.org/draft-04/schema#", "id": "https://example.org/tool",
        "type": "object",
        "properties": {
            "size": { "type": "integer", "minimum": 1, "exclusiveMinimum": true },
            "pair": { "type": "array", "items": [{ "type": "string" }], "additionalItems": false },
            "ref": { "$ref": "#/definitions/word" },
        },
        "definitions": { "word": { "type": "string" } },
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "size": { "type": "integer", "exclusiveMinimum": 1 },
            "pair": { "type": "array", "prefixItems": [{ "type": "string" }], "items": {}, "maxItems": 1 },
            "ref": { "$ref": "#/$defs/word" },
        },
        "additionalProperties": false,
        "$defs": { "word": { "type": "string" } },
    });
    assert_eq!(shown(Anthropic, input), expected);
}

#[test]
fn what_refers_to_itself_is_shown_in_its_place_once() {
    let input = json!({
        "properties": { "tree": { "$ref": "#/$defs/tree" } },
        "$defs": { "tree": { "type": "object", "properties": {
            "name": { "type": "string" }, "children": { "type": "array", "items": { "$ref": "#/$defs/tree" } },
        } } },
    });
    let tree = json!({ "type": "object", "properties": { "name": { "type": "string" }, "children": { "type": "array", "items": {} } } });
    for dialect in [Bedrock, Ollama] {
        assert_eq!(shown(dialect, input.clone()), json!({ "type": "object", "properties": { "tree": tree } }));
    }
    assert!(shown(OpenaiChat, input.clone())["$defs"]["tree"].is_object());
    let gemini = gemini(input);
    assert_eq!(gemini["parametersJsonSchema"]["properties"]["tree"], tree, "children may be anything");
    assert!(gemini.get("parameters").is_none());
}

#[test]
fn references_that_double_stay_small() {
    let mut definitions = Map::new();
    for level in 0..12 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        definitions.insert(
            format!("d{level}"),
            json!({ "type": "object", "properties": { "a": next, "b": next, "c": next } }),
        );
    }
    definitions.insert("d12".to_owned(), json!({ "type": "string" }));
    let input = json!({ "properties": { "x": { "$ref": "#/$defs/d0" } }, "$defs": definitions });
    for dialect in Dialect::ALL {
        let length = shown(dialect, input.clone()).to_string().len();
        assert!(length < 400_000, "{dialect}: {length}");
    }
}

#[test]
fn gemini_gets_one_type_a_place_with_null_beside_it() {
    let input = json!({ "properties": {
        "a": { "type": ["string", "null"], "description": "A." },
        "b": { "anyOf": [{ "type": "integer" }, { "type": "string" }, { "type": "null" }], "description": "B." },
        "c": { "type": ["integer", "string"] },
        "d": { "type": "array", "items": { "type": "object", "properties": { "e": { "type": "string" } }, "required": ["e"] } },
        "f": { "type": "object" },
        "g": { "enum": ["x", null] },
    } });
    assert_eq!(
        gemini(input)["parameters"],
        json!({ "type": "OBJECT", "properties": {
        "a": { "type": "STRING", "description": "A.", "nullable": true },
        "b": { "anyOf": [{ "type": "INTEGER", "description": "B.", "nullable": true }, { "type": "STRING" }] },
        "c": { "anyOf": [{ "type": "INTEGER" }, { "type": "STRING" }] },
        "d": { "type": "ARRAY", "items": { "type": "OBJECT", "properties": { "e": { "type": "STRING" } }, "required": ["e"] } },
        "f": { "type": "OBJECT" },
        "g": { "type": "STRING", "enum": ["x"], "nullable": true },
    } })
    );
}

#[test]
fn a_tool_without_arguments_is_declared_in_every_dialect() {
    let tool = contract("tool", json!({ "properties": {} }));
    for dialect in Dialect::ALL {
        declared(dialect, &tool);
        assert_eq!(dialect.definitions(&[]), json!([]), "{dialect}");
    }
    assert_eq!(gemini(json!({ "properties": {} })), json!({ "name": "tool", "description": "Looks." }));
}

#[test]
fn an_imported_union_before_members_reaches_a_client_of_mcp_as_it_did() {
    let tree = json!({ "type": "object", "properties": { "left": { "$ref": "#" }, "value": { "type": "integer" } } });
    let shown = shown(Mcp, tree.clone());
    assert_eq!(shown, tree, "used again further down, it cannot be closed at the top alone");
}

#[test]
fn an_open_contract_was_shown_as_one_that_takes_no_other_members() {
    let tool = open_contract("tool", json!({ "properties": { "a": { "type": "string" } }, "required": ["a"] }));
    let value = json!({ "a": "x", "more": 1 });
    assert!(tool.input().is_valid(&value));
    for dialect in Dialect::ALL {
        let (_, shown) = declared(dialect, &tool);
        assert!(jsonschema::is_valid(&shown, &value), "{dialect}: {shown}");
        assert!(!shown.to_string().contains("additionalProperties"), "{dialect}: {shown}");
    }
    assert_eq!(OpenaiStrict.definitions(&[&tool])[0]["function"]["strict"], json!(false));
    let mut call = json!({ "a": null });
    assert!(tool.input().absent_for_null(&mut call).is_empty());
}

#[test]
fn a_member_of_a_branch_is_held_to_nothing_where_an_open_contract_takes_it_beside_another_branch() {
    let branch = |name: &str| json!({ "properties": { name: { "type": "integer" } }, "required": [name] });
    let tool = open_contract("tool", json!({ "type": "object", "anyOf": [branch("a"), branch("b")] }));
    let value = json!({ "a": 1, "b": "any" });
    assert!(tool.input().is_valid(&value));
    for dialect in Dialect::ALL {
        let (_, shown) = declared(dialect, &tool);
        assert!(jsonschema::is_valid(&shown, &value), "{dialect}: {shown}");
    }
}

#[test]
fn a_model_was_told_how_else_it_may_write_a_member() {
    let text = json!({ "type": "integer", "x-lenient": ["integer_as_string"], "default": 1 });
    let input = json!({ "properties": {
        "n": text,
        "x-lenient": { "type": "string", "x-secret": true },
        "list": { "type": "array", "items": text, "default": [{ "x-lenient": 1 }] },
    } });
    for dialect in Dialect::ALL {
        let shown = shown(dialect, input.clone());
        assert!(!shown.to_string().contains("integer_as_string"), "{dialect}: {shown}");
        assert!(shown["properties"].get("x-lenient").is_some(), "{dialect}: an argument may be called so");
    }
    let shown = contract("tool", input).input().shown();
    assert_eq!(shown["properties"]["n"], json!({ "type": "integer", "default": 1 }));
    assert_eq!(shown["properties"]["x-lenient"], json!({ "type": "string", "x-secret": true }));
    assert_eq!(shown["properties"]["list"]["default"], json!([{ "x-lenient": 1 }]), "a value is itself");
}
