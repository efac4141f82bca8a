//! Documents that somebody else wrote.

use super::*;

fn imported(document: Value) -> Schema {
    Schema::imported_input(&document).unwrap()
}

#[test]
fn what_json_schema_does_not_know_is_an_annotation() {
    let schema = imported(json!({
        "type": "object",
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": { "n": { "type": "integer", "nullable": true, "format": "int64", "widget": "slider" } },
        "required": ["n"],
        "strict": true,
    }));
    assert!(schema.is_valid(&json!({ "n": 1 })));
    assert_eq!(codes(&schema, &json!({ "n": "1" })), pairs(&[("type", "/n")]));
    assert_eq!(codes(&schema, &json!({ "n": null })), pairs(&[("type", "/n")]), "an annotation allows nothing");
}

#[test]
fn what_it_knows_and_cannot_be_used_is_a_fault_all_the_same() {
    for (document, at) in [
        (json!({ "properties": { "a": { "pattern": "(?=x)" } } }), "/properties/a/pattern"),
        (json!({ "properties": { "a": { "$ref": "https://example.com/x.json" } } }), "/properties/a/$ref"),
        (json!({ "properties": { "a": { "type": "text" } } }), "/properties/a/type"),
        (json!({ "type": "array" }), "/type"),
    ] {
        let faults = Schema::imported_input(&document).unwrap_err();
        assert_eq!(faults.iter().map(|fault| fault.at.as_str()).collect::<Vec<_>>(), [at]);
    }
}

#[test]
fn undeclared_members_are_refused_where_the_document_does_not_speak_of_them() {
    let schema = imported(json!({ "type": "object", "properties": { "a": {} } }));
    assert_eq!(codes(&schema, &json!({ "b": 1 })), pairs(&[("additional_property", "/b")]));
}

#[test]
fn every_string_may_have_lines_and_none_may_have_other_controls() {
    let schema = imported(json!({ "properties": { "text": { "type": "string" } } }));
    assert!(schema.is_valid(&json!({ "text": "a\r\n\tb" })));
    for text in ["a\u{0}", "a\u{1b}[2J", "a\u{85}", "a\u{2028}b"] {
        assert_eq!(codes(&schema, &json!({ "text": text })), pairs(&[("control_character", "/text")]));
    }
    let own = input(json!({ "properties": { "text": { "type": "string", "x-multiline": true } } }));
    assert_eq!(codes(&own, &json!({ "text": "a\r\nb" })), pairs(&[("control_character", "/text")]));
}

#[test]
fn a_keyword_that_the_draft_does_not_know_neither_opens_nor_closes_the_top_level() {
    for said in [json!(false), json!(true)] {
        let schema = Schema::imported_input(&json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": { "a": { "type": "string" } },
            "unevaluatedProperties": said,
        }));
        assert_eq!(codes(&schema.unwrap(), &json!({ "a": "x", "b": 1 })), pairs(&[("additional_property", "/b")]));
    }
}
