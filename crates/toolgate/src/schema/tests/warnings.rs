//! What holds and is probably not meant.

use super::*;

/// Code and place of each warning.
fn warned(schema: &Schema) -> Vec<(String, String)> {
    let mut warned: Vec<(String, String)> =
        schema.warnings().iter().map(|warning| (warning.code.clone(), warning.at.clone())).collect();
    warned.sort_by(|one, other| one.1.cmp(&other.1));
    warned
}

#[test]
fn keywords_and_formats_that_nothing_is_held_to_are_told_of_an_imported_schema() {
    let schema = Schema::imported_input(&json!({
        "properties": {
            "n": { "type": "integer", "format": "int64", "minimun": 1, "nullable": true },
            "u": { "type": "integer", "format": "uint32" },
            "d": { "type": "string", "format": "date time" },
            "x": { "type": "string", "x-widget": "area" },
        },
        "strict": true,
    }))
    .unwrap();
    assert_eq!(
        warned(&schema),
        pairs(&[
            ("unknown_format", "/properties/d/format"),
            ("unknown_keyword", "/properties/n/minimun"),
            ("unknown_keyword", "/properties/n/nullable"),
            ("unknown_keyword", "/strict"),
        ])
    );
}

#[test]
fn what_an_older_draft_ignores_is_told_and_not_held_to() {
    let schema = Schema::imported_input(&json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": { "a": { "$ref": "#/definitions/s", "description": "One.", "maxLength": 3, "properties": { "x": {} } } },
        "definitions": { "s": { "type": "string" } },
    }))
    .unwrap();
    let places = ["/properties/a/maxLength", "/properties/a/properties"];
    assert_eq!(warned(&schema), pairs(&places.map(|at| ("ignored_keyword", at))));
    assert!(schema.is_valid(&json!({ "a": "longer" })));
}

#[test]
fn a_parameter_without_a_type_is_told_unless_any_value_is_meant() {
    let schema = input(json!({
        "properties": {
            "silent": {},
            "described": { "description": "How many." },
            "bounded": { "maximum": 5 },
            "either": { "anyOf": [{ "type": "string" }, { "maxLength": 3 }] },
            "anything": true,
            "typed": { "type": "string" },
            "listed": { "enum": [1, 2] },
            "fixed": { "const": 1 },
            "referred": { "$ref": "#/$defs/s" },
            "nullable": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "inner": { "type": "object", "properties": { "deep": {} } },
        },
        "$defs": { "s": { "allOf": [{ "type": "string" }] } },
    }));
    let places = ["bounded", "described", "either", "inner/properties/deep", "silent"];
    let expected: Vec<(String, String)> =
        places.iter().map(|name| ("untyped_parameter".to_owned(), format!("/properties/{name}"))).collect();
    assert_eq!(warned(&schema), expected);
    assert!(output(json!({ "properties": { "a": {} } })).warnings().is_empty(), "a result is not written by a model");
}

#[test]
fn an_older_draft_of_our_own_is_told_and_a_servers_is_not() {
    let document =
        json!({ "$schema": "http://json-schema.org/draft-07/schema#", "properties": { "q": { "type": "string" } } });
    assert_eq!(warned(&input(document.clone())), pairs(&[("older_draft", "/$schema")]));
    assert_eq!(warned(&Schema::imported_input(&document).unwrap()), pairs(&[]));
    let today = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "properties": { "q": { "type": "string" } } });
    assert_eq!(warned(&input(today)), pairs(&[]));
}

#[test]
fn a_model_that_must_choose_a_reason_has_a_way_out() {
    let lint = |member: &str, values: Value, required: bool| {
        let names = if required { vec![member] } else { vec![] };
        warned(&input(json!({ "properties": { member: { "enum": values } }, "required": names })))
    };
    let closed = json!(["duplicate", "damaged"]);
    assert_eq!(lint("reason", closed.clone(), true), pairs(&[("enum_without_way_out", "/properties/reason/enum")]));
    assert_eq!(lint("cancel_reason", closed.clone(), true).len(), 1);
    assert_eq!(lint("ticketCategory", closed.clone(), true).len(), 1);
    for (member, values, required) in [
        ("reason", closed.clone(), false),
        ("reason", json!(["duplicate", "Other"]), true),
        ("reason", json!(["duplicate", "not_sure"]), true),
        ("reason", json!(["duplicate", null]), true),
        ("unit", json!(["celsius", "fahrenheit"]), true),
        ("reason", json!(["duplicate"]), true),
    ] {
        assert_eq!(lint(member, values, required), pairs(&[]), "{member}");
    }
}
