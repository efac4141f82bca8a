#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::samples;

fn schema(document: Value) -> Schema {
    Schema::input(&document).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// A value that fits, as strict mode writes it; `None` where the schema has no strict form.
pub(crate) fn image(schema: &Schema, value: &Value) -> Option<Value> {
    fn part(schema: &Schema, strict: &Strict, id: PartId, value: &Value) -> Option<Value> {
        match (strict.form(id).unwrap(), value) {
            (Form::Same(to), _) => part(schema, strict, *to, value),
            (Form::Union(branches), _) => {
                let fits = |branch: &&PartId| schema.accepted(&[strict.part(**branch).unwrap().node], value);
                part(schema, strict, *branches.iter().find(fits)?, value)
            }
            (Form::Object(members), Value::Object(given)) => {
                let member = |member: &Member| match (given.get(&member.name), member.required) {
                    (Some(value), _) => Some((member.name.clone(), part(schema, strict, member.part, value)?)),
                    (None, false) => Some((member.name.clone(), Value::Null)),
                    (None, true) => None,
                };
                members.iter().map(member).collect::<Option<Map<String, Value>>>().map(Value::Object)
            }
            (Form::Array(items), Value::Array(given)) => given
                .iter()
                .map(|item| part(schema, strict, *items, item))
                .collect::<Option<Vec<Value>>>()
                .map(Value::Array),
            _ => Some(value.clone()),
        }
    }
    part(schema, schema.strict()?, Strict::ROOT, value)
}

/// What is left of a value that a model wrote in strict mode, and what was taken out.
fn read(schema: &Schema, mut value: Value) -> (Value, Vec<String>) {
    let absent = schema.absent_for_null(&mut value);
    (value, absent)
}

#[test]
fn a_null_that_stands_for_an_absent_member_is_taken_out_at_any_depth() {
    let schema = schema(json!({
        "properties": {
            "note": { "type": "string" },
            "to": {
                "type": "object", "additionalProperties": false, "required": ["street"],
                "properties": { "street": { "type": "string" }, "floor": { "type": "integer" } },
            },
            "lines": { "type": "array", "items": { "$ref": "#/$defs/line" } },
        },
        "required": ["to", "lines"],
        "$defs": { "line": {
            "type": "object", "additionalProperties": false, "required": ["id"],
            "properties": { "id": { "type": "string" }, "more": { "$ref": "#/$defs/line" }, "a/b": { "enum": [1, 2] } },
        } },
    }));
    let written = json!({
        "note": null, "to": { "street": "s", "floor": null },
        "lines": [{ "id": "1", "more": { "id": "2", "more": null, "a/b": 1 }, "a/b": null }],
    });
    let (left, absent) = read(&schema, written);
    assert_eq!(left, json!({ "to": { "street": "s" }, "lines": [{ "id": "1", "more": { "id": "2", "a/b": 1 } }] }));
    assert_eq!(absent, ["/note", "/to/floor", "/lines/0/more/more", "/lines/0/a~1b"]);
    assert!(schema.is_valid(&left));
}

#[test]
fn a_null_that_is_a_value_or_stands_for_a_required_member_stays() {
    let schema = schema(json!({
        "properties": {
            "until": { "type": ["string", "null"] },
            "since": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "colour": { "enum": ["red", null] },
            "id": { "type": "string" },
        },
        "required": ["until", "since", "colour", "id"],
    }));
    assert!(schema.strict().is_some());
    let written = json!({ "until": null, "since": null, "colour": null, "id": null });
    assert_eq!(read(&schema, written.clone()), (written, Vec::new()));
}

#[test]
fn a_tool_that_is_not_shown_in_strict_mode_keeps_every_null() {
    let schema = schema(json!({ "properties": { "a": { "type": "string" }, "any": {} } }));
    assert!(schema.strict().is_none());
    assert_eq!(read(&schema, json!({ "a": null })), (json!({ "a": null }), Vec::new()));
}

#[test]
fn a_member_that_may_be_null_or_absent_was_cleared_by_every_call_in_strict_mode() {
    let types = json!({ "type": ["string", "null"] });
    let union = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
    for nickname in [types, union, json!({ "enum": ["Bo", null] })] {
        let optional = schema(json!({ "properties": { "nickname": nickname } }));
        assert!(optional.strict().is_none(), "{}", optional.document());
        assert_eq!(read(&optional, json!({ "nickname": null })), (json!({ "nickname": null }), Vec::new()));
        let required = schema(json!({ "properties": { "nickname": nickname }, "required": ["nickname"] }));
        assert!(required.strict().is_some(), "{}", required.document());
    }
}

/// Objects in unions of three branches, so many levels deep, with a list at the bottom; `tag` tells a level's branches.
fn tower(levels: usize, tag: impl Fn(usize) -> Value) -> Schema {
    let bottom = json!({ "type": "array", "maxItems": 10_000, "items": { "type": "integer" } });
    let mut definitions = Map::from_iter([("level_0".to_owned(), bottom)]);
    for level in 1..=levels {
        let branch = |number: usize| {
            json!({
                "type": "object", "additionalProperties": false, "required": ["tag", "inner"],
                "properties": {
                    "tag": tag(number), "inner": { "$ref": format!("#/$defs/level_{}", level - 1) },
                    "note": { "type": "string" },
                },
            })
        };
        definitions.insert(format!("level_{level}"), json!({ "anyOf": [branch(0), branch(1), branch(2)] }));
    }
    let top = json!({ "$ref": format!("#/$defs/level_{levels}") });
    schema(json!({ "properties": { "top": top }, "$defs": definitions }))
}

fn towering(levels: usize, tag: &Value, items: usize) -> Value {
    let inner = (0..levels)
        .fold(json!((0..items).collect::<Vec<_>>()), |inner, _| json!({ "tag": tag, "inner": inner, "note": null }));
    json!({ "top": inner })
}

#[test]
fn branches_inside_branches_were_each_tried_at_every_level() {
    let tags = tower(7, |number| json!({ "const": format!("t{number}") }));
    assert!(tags.strict().is_some());
    let before = std::time::Instant::now();
    let (left, absent) = read(&tags, towering(7, &json!("t2"), 9_900));
    assert!(before.elapsed().as_millis() < 1_000, "{:?}", before.elapsed());
    assert_eq!(absent.len(), 7);
    assert!(tags.is_valid(&left));
}

#[test]
fn of_a_value_that_takes_too_long_to_read_every_null_stays() {
    let numbers = tower(7, |number| json!({ "type": "integer", "minimum": number }));
    assert!(numbers.strict().is_some());
    let written = towering(7, &json!(5), 9_900);
    let before = std::time::Instant::now();
    assert_eq!(read(&numbers, written.clone()), (written, Vec::new()));
    assert!(before.elapsed().as_millis() < 2_000, "{:?}", before.elapsed());
    let (left, absent) =
        read(&tower(2, |number| json!({ "type": "integer", "minimum": number })), towering(2, &json!(5), 9));
    assert_eq!((left.pointer("/top/note"), absent.len()), (None, 2));
}

#[test]
fn a_tag_of_one_and_a_tag_of_one_point_nought_told_two_branches_apart() {
    let branch = |tag: Value, member: Value| {
        json!({
            "type": "object", "additionalProperties": false, "required": ["tag"],
            "properties": { "tag": { "const": tag }, "m": member },
        })
    };
    let schema_of = |one: Value, other: Value| {
        let nothing = json!({ "type": "object", "additionalProperties": false, "required": ["tag", "m"],
            "properties": { "tag": { "const": other }, "m": { "type": "null" } } });
        schema(json!({ "properties": { "any": { "anyOf": [branch(one, json!({ "type": "string" })), nothing] } } }))
    };
    assert!(schema_of(json!(1), json!(1.0)).strict().is_none(), "a null of both is written alike");
    let apart = schema_of(json!(1), json!(2));
    assert!(apart.strict().is_some());
    let (left, absent) = read(&apart, json!({ "any": { "tag": 1.0, "m": null } }));
    assert_eq!((left, absent), (json!({ "any": { "tag": 1.0 } }), vec!["/any/m".to_owned()]));
}

#[test]
fn of_a_union_the_branch_that_fits_says_what_is_left_out() {
    let branch = |kind: &str, own: &str| {
        json!({
            "type": "object", "additionalProperties": false, "required": ["kind"],
            "properties": { "kind": { "const": kind }, own: { "type": "string" }, "size": { "type": "integer" } },
        })
    };
    let schema =
        schema(json!({ "properties": { "shape": { "oneOf": [branch("round", "r"), branch("square", "s")] } } }));
    let written = json!({ "shape": { "kind": "square", "s": null, "size": 3 } });
    let (left, absent) = read(&schema, written);
    assert_eq!(left, json!({ "shape": { "kind": "square", "size": 3 } }));
    assert_eq!(absent, ["/shape/s"]);
    let neither = json!({ "shape": { "kind": "flat", "s": null, "size": null } });
    assert_eq!(read(&schema, neither.clone()), (neither, Vec::new()), "no branch fits, so nothing is known");
}

#[test]
fn a_schema_that_cannot_be_said_exactly_has_no_strict_form() {
    let closed =
        |member: Value| json!({ "type": "object", "properties": { "m": member }, "additionalProperties": false });
    for member in [
        json!(true),
        json!({}),
        json!({ "type": "object" }),
        json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        json!({ "type": "array" }),
        json!({ "type": "array", "prefixItems": [{ "type": "string" }] }),
        json!({ "type": "object", "patternProperties": { "^a": { "type": "string" } }, "additionalProperties": false }),
        json!({ "allOf": [{ "type": "string" }, { "minLength": 1 }] }),
        json!({ "not": { "type": "string" } }),
        // `null` for the absent `m` of the first is a value of `m` in the second.
        json!({ "anyOf": [closed(json!({ "type": "string" })), closed(json!({ "type": "null" }))] }),
    ] {
        let schema = schema(json!({ "properties": { "one": member } }));
        assert!(schema.strict().is_none(), "{}", schema.document());
    }
    let open = json!({ "properties": { "a": { "type": "string" } }, "additionalProperties": true });
    let open = Schema::imported_input(&open).unwrap();
    let tree = schema(json!({ "properties": { "left": { "$ref": "#" } } }));
    let branches = schema(
        json!({ "type": "object", "anyOf": [{ "properties": { "a": { "type": "string" } } }, { "required": [] }] }),
    );
    for schema in [open, tree, branches] {
        assert!(schema.strict().is_none(), "{}", schema.document());
    }
}

#[test]
fn a_schema_beyond_the_bounds_of_strict_mode_has_no_strict_form() {
    let nested = |levels: usize| {
        (1..levels).fold(
            json!({ "type": "string" }),
            |inner, _| json!({ "type": "object", "properties": { "a": inner }, "additionalProperties": false }),
        )
    };
    let listed = |count: usize| json!({ "enum": (0..count).map(|n| format!("value {n}")).collect::<Vec<_>>() });
    for (member, fits) in [(nested(10), true), (nested(11), false), (listed(900), true), (listed(1_100), false)] {
        assert_eq!(schema(json!({ "properties": { "a": member } })).strict().is_some(), fits);
    }
    let members: Map<String, Value> = (0..200).map(|n| (format!("m{n}"), json!({ "type": "string" }))).collect();
    assert!(schema(json!({ "properties": members })).strict().is_some());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn what_strict_mode_writes_is_read_back_as_it_was(document in samples::documents(), seed: u64) {
        let Some(schema) = samples::load(&document) else { return Ok(()) };
        for value in samples::values(&schema, seed, 12) {
            let Some(written) = image(&schema, &value) else { continue };
            prop_assert_eq!(&read(&schema, written.clone()).0, &value, "{} in {}", written, document);
        }
    }

    #[test]
    fn no_null_is_taken_out_but_by_the_places_that_are_told(document in samples::documents(), seed: u64) {
        let Some(schema) = samples::load(&document) else { return Ok(()) };
        for value in samples::values(&schema, seed, 12) {
            let (left, absent) = read(&schema, value.clone());
            prop_assert!(!absent.is_empty() || left == value);
            prop_assert!(absent.iter().all(|at| value.pointer(at).is_some_and(Value::is_null)));
            prop_assert!(schema.is_valid(&left), "{} is left of {} in {}", left, value, document);
        }
    }
}
