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
        (json!({ "properties": { "a": { "pattern": "(?=x" } } }), "/properties/a/pattern"),
        (json!({ "properties": { "a": { "pattern": "(?>a+)b" } } }), "/properties/a/pattern"),
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
fn a_pattern_that_backtracks_is_held_to_within_a_bound_of_steps() {
    let schema = imported(json!({ "properties": {
        "password": { "type": "string", "pattern": r"^(?=.*\d)(?=.*[a-z]).{8,}$" },
        "twice": { "type": "string", "pattern": r"^(.+)-\1$" },
        "slow": { "type": "string", "pattern": "^(?:(?=a)(?:a|aa))+$" },
        "map": { "type": "object", "patternProperties": { "^(?!x)": { "type": "integer" } }, "additionalProperties": false },
    } }));
    let codes_of: Vec<&str> = schema.warnings().iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(codes_of, ["bounded_pattern"; 4]);
    assert!(schema.is_valid(&json!({ "password": "abcdefg1", "twice": "ab-ab", "map": { "y": 1 } })));
    assert_eq!(
        codes(&schema, &json!({ "password": "abcdefgh", "twice": "ab-ac", "map": { "x": 1 } })),
        pairs(&[("additional_property", "/map/x"), ("pattern", "/password"), ("pattern", "/twice")])
    );
    let start = std::time::Instant::now();
    let (message, hint) = only(&schema, &json!({ "slow": format!("{}d", "a".repeat(60)) }));
    assert_eq!(message, "takes too many steps to be held to its pattern");
    assert_eq!(hint.as_deref(), Some("send a shorter and simpler text"));
    assert!(start.elapsed() < std::time::Duration::from_secs(2), "{:?}", start.elapsed());
    assert!(
        Schema::input(&json!({ "properties": { "a": { "pattern": "^(?!x)" } } })).is_err(),
        "not in a contract of ours"
    );
}

/// The engine checks `dependencies` in every draft: once it was passed over as unknown, and doubled unseen.
#[test]
fn a_bomb_of_keywords_that_the_draft_has_dropped_is_seen() {
    let mut definitions = serde_json::Map::new();
    for level in 0..14 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        definitions.insert(format!("d{level}"), json!({ "dependencies": { "a": next, "b": next } }));
    }
    definitions.insert("d14".to_owned(), json!({ "minProperties": 9 }));
    let bomb = json!({ "properties": { "v": { "$ref": "#/$defs/d0" } }, "$defs": definitions });
    assert!(Schema::imported_input(&bomb).unwrap_err()[0].message.contains("in a row"));
    let honest =
        imported(json!({ "properties": { "v": { "type": "object", "dependencies": { "card": ["address"] } } } }));
    assert_eq!(codes(&honest, &json!({ "v": { "card": 1 } })), pairs(&[("dependent_required", "/v/address")]));
    assert_eq!(honest.warnings()[0].code, "older_keyword");
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
