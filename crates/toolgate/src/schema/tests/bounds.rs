//! How much a schema, and a value under it, may cost.

use std::time::{Duration, Instant};

use super::*;

#[test]
fn strings_and_lists_are_bounded_where_the_schema_is_silent() {
    let schema = input(json!({ "properties": {
        "text": { "type": "string" },
        "long": { "type": "string", "maxLength": 100_000 },
        "list": { "type": "array" },
        "many": { "type": "array", "maxItems": 5_000, "items": { "type": "integer" } },
        "any": true,
    } }));
    let text = |length: usize| json!("é".repeat(length));
    assert!(schema.is_valid(
        &json!({ "text": text(65_536), "long": text(100_000), "list": vec![0; 1_000], "many": vec![0; 5_000] })
    ));
    let value = json!({ "text": text(65_537), "long": text(100_001), "list": vec![0; 1_001], "many": vec![0; 5_001], "any": [text(70_000)] });
    assert_eq!(
        codes(&schema, &value),
        pairs(&[
            ("max_length", "/any/0"),
            ("max_items", "/list"),
            ("max_length", "/long"),
            ("max_items", "/many"),
            ("max_length", "/text")
        ])
    );
    let (message, hint) = only(&schema, &json!({ "text": text(65_537) }));
    assert_eq!(message, "must have at most 65536 characters, since the schema says no other bound");
    assert_eq!(hint.as_deref(), Some("send less, or in several calls"));
    let imported = Schema::imported_input(&json!({ "properties": { "text": { "type": "string" } } })).unwrap();
    assert!(
        imported.is_valid(&json!({ "text": text(262_144) })) && !imported.is_valid(&json!({ "text": text(262_145) }))
    );
    let open = Schema::open_input(&json!({})).unwrap();
    assert_eq!(codes(&open, &json!({ "free": [vec![0; 1_001]] })), pairs(&[("max_items", "/free/0")]));
}

/// A schema with each of these at one place of a value.
fn at_one_place(branches: Vec<Value>) -> Value {
    json!({ "properties": { "v": { "maxLength": 2_000_000, "maxItems": 20_000, "not": { "anyOf": branches } } } })
}

#[test]
fn what_is_heavy_at_one_place_is_refused_at_load() {
    for (what, document, said) in [
        (
            "patterns",
            at_one_place((0..9).map(|n| json!({ "pattern": format!("[ab]*a[ab]{{{}}}", 1_990 - n) })).collect()),
            None,
        ),
        (
            "patterns behind references",
            json!({
                "properties": { "v": { "anyOf": vec![json!({ "$ref": "#/$defs/p" }); 20] } },
                "$defs": { "p": { "pattern": "[ab]*a[ab]{1900}" } },
            }),
            Some("patterns, formats and enums"),
        ),
        (
            "required names",
            at_one_place(vec![json!({ "required": (0..11_000).map(|n| n.to_string()).collect::<Vec<_>>() })]),
            Some("10,000"),
        ),
        (
            "values that are compared",
            at_one_place(vec![json!({ "enum": (0..9_999).collect::<Vec<i32>>() }), json!({ "enum": [1, 2, 3] })]),
            Some("10,000"),
        ),
        ("lists of unequal items", at_one_place(vec![json!({ "uniqueItems": true }); 4_900]), None),
        (
            "conditions",
            at_one_place((0..3_400).map(|n| json!({ "if": { "const": n }, "then": false })).collect()),
            Some("10,000"),
        ),
        ("formats", at_one_place(vec![json!({ "format": "uri" }); 4_999]), None),
    ] {
        let start = Instant::now();
        let loaded = Schema::imported_input(&document);
        match said {
            Some(said) => {
                let faults = loaded.unwrap_err();
                assert!(faults[0].message.contains(said), "{what}: {}", faults[0].message);
                assert!(start.elapsed() < Duration::from_secs(2), "{what}: {:?}", start.elapsed());
            }
            None => assert!(loaded.is_ok(), "{what}: {:?}", loaded.unwrap_err()),
        }
    }
}

#[test]
fn a_value_that_would_be_held_to_heavy_patterns_for_long_is_refused_at_once() {
    let heavy =
        Schema::input(&json!({ "properties": { "v": { "maxLength": 2_000_000, "pattern": "[ab]*a[ab]{1900}c" } } }))
            .unwrap();
    let text: String =
        (0..900_000_u32).map(|n| if n.wrapping_mul(2_654_435_761) >> 16 & 3 == 0 { 'a' } else { 'b' }).collect();
    let start = Instant::now();
    let (message, hint) = only(&heavy, &json!({ "v": text }));
    assert_eq!(
        (message.as_str(), hint.as_deref()),
        ("more than can be held to the schema in time", Some("send less at a time"))
    );
    assert_eq!(codes(&heavy, &json!({ "v": text })), pairs(&[("size", "")]));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(codes(&heavy, &json!({ "v": "abc" })), pairs(&[("pattern", "/v")]), "what is short is held to it");
}

/// The engine tells all that is wrong at once: once, a list of empty objects under a long `required` took gigabytes.
#[test]
fn what_is_wrong_at_millions_of_places_is_told_by_member() {
    let names: Vec<String> = (0..5_000).map(|n| format!("m{n}")).collect();
    let schema = input(json!({ "properties": {
        "v": { "type": "array", "maxItems": 20_000, "items": { "type": "object", "required": names } },
        "w": { "type": "integer" },
    } }));
    let start = Instant::now();
    let value = json!({ "v": vec![json!({}); 9_000], "w": 1 });
    assert_eq!(codes(&schema, &value), pairs(&[("size", "/v")]));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    let problems = schema.problems(&json!({ "v": [{}], "w": 1 }));
    assert_eq!(problems.list[0].at, "/v/0/m0");
    assert_eq!(problems.list.len() + problems.more, 5_000);
}

/// Only the members of objects were counted, and a list of a megabyte has half a million items.
#[test]
fn many_items_under_many_branches_took_a_minute() {
    let branches: Vec<Value> = (1..4_900).map(|n| json!({ "const": n })).collect();
    let schema = input(json!({ "properties": { "v": { "maxItems": 500_000, "contains": { "anyOf": branches } } } }));
    let start = Instant::now();
    assert_eq!(codes(&schema, &json!({ "v": vec![0; 490_000] })), pairs(&[("size", "")]));
    assert!(schema.is_valid(&json!({ "v": [0, 1] })));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}
