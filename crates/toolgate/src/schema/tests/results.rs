//! What becomes of results.

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD};
use proptest::prelude::*;

use super::*;

fn orders() -> Schema {
    output(json!({
        "type": "object",
        "properties": {
            "orders": { "type": "array", "minItems": 2, "items": {
                "type": "object",
                "properties": { "id": { "type": "string", "pattern": "^o[0-9]+$" }, "note": { "type": "string" } },
                "required": ["id"],
                "additionalProperties": false,
            } },
            "summary": { "type": "string", "minLength": 5 },
            "debug": { "type": "object", "additionalProperties": true },
        },
        "required": ["orders"],
    }))
}

#[test]
fn undeclared_members_are_dropped_and_wrong_types_refused() {
    let schema = orders();
    let result =
        json!({ "orders": [{ "id": "o1", "internal_cost": 9 }, { "id": "o2" }], "trace": "x", "debug": { "any": 1 } });
    assert!(schema.is_valid(&result));
    assert!(schema.problems(&result).is_empty());
    let shown = schema.project(result);
    assert_eq!(shown, json!({ "orders": [{ "id": "o1" }, { "id": "o2" }], "debug": { "any": 1 } }));
    assert_eq!(
        codes(&schema, &json!({ "orders": [{ "id": "o1" }, { "id": 2, "x": 1 }] })),
        pairs(&[("type", "/orders/1/id")])
    );
}

#[test]
fn a_projection_keeps_what_any_branch_declares() {
    let schema = output(json!({
        "allOf": [{ "$ref": "#/$defs/base" }],
        "oneOf": [{ "properties": { "a": { "type": "integer" } }, "required": ["a"] }, { "properties": { "b": {} }, "required": ["b"] }],
        "$defs": { "base": { "properties": { "id": {}, "map": { "type": "object", "additionalProperties": { "properties": { "k": {} } } } } } },
    }));
    let value = json!({ "id": 1, "a": 2, "z": 3, "map": { "x": { "k": 1, "gone": 2 } } });
    assert_eq!(schema.project(value), json!({ "id": 1, "a": 2, "map": { "x": { "k": 1 } } }));
    for (document, kept) in [
        (json!({}), true),
        (json!({ "type": "object" }), true),
        (json!({ "additionalProperties": false }), false),
        (json!({ "properties": { "y": {} }, "patternProperties": { "^z": {} } }), true),
        (json!({ "properties": { "y": {} } }), false),
    ] {
        let left = output(document.clone()).project(json!({ "z": 1 }));
        assert_eq!(left, if kept { json!({ "z": 1 }) } else { json!({}) }, "{document}");
    }
}

#[test]
fn marked_values_leave_no_trace() {
    let schema = input(json!({ "properties": {
        "token": { "$ref": "#/$defs/token" },
        "people": { "type": "array", "items": { "type": "object", "properties": { "mail": { "type": "string", "x-personal": true }, "id": {} } } },
    }, "$defs": { "token": { "type": "string", "x-secret": true } } }));
    let value = json!({ "token": "t", "people": [{ "mail": "a@b.c", "id": 1 }] });
    assert_eq!(schema.masked(&value), json!({ "token": "[secret]", "people": [{ "mail": "[personal]", "id": 1 }] }));
}

#[test]
fn marked_values_are_taken_out_of_what_others_say_of_them() {
    let schema = input(json!({ "properties": {
        "pin": { "type": "integer", "x-secret": true },
        "token": { "type": "string", "x-secret": true },
        "who": { "type": "object", "properties": { "names": { "type": "array" } }, "x-personal": true },
        "note": { "type": "string" },
    } }));
    let value = json!({
        "pin": 90125, "token": "a \"quoted\" token", "who": { "names": ["Ada", "Adalbert", "Adal"] }, "note": "plain",
    });
    let hidden = schema.hidden(&value);
    assert_eq!(
        hidden
            .taken_out_of(r#"no a "quoted" token, none in {"token":"a \"quoted\" token"}: Ada, Adalbert, plain 90125"#),
        r#"no [secret], none in {"token":"[secret]"}: [secret], [secret], plain [secret]"#
    );
    let unmarked = input(json!({ "properties": { "note": { "type": "string" } } }));
    assert_eq!(unmarked.hidden(&value).taken_out_of("plain"), "plain");
}

#[test]
fn a_short_marked_value_was_left_in_what_others_said_of_it() {
    let schema = input(json!({ "properties": {
        "pin": { "type": "integer", "x-secret": true }, "code": { "type": "string", "x-secret": true },
    } }));
    let hidden = schema.hidden(&json!({ "pin": 42, "code": "x\"y" }));
    let said = r#"no 42, none in {"pin":42,"code":"x\"y"}: pin_42, but 420, 142 and a42; xx"yy, x"y"#;
    let told = r#"no [secret], none in {"pin":[secret],"code":"[secret]"}: pin_[secret], but 420, 142 and a42; xx"yy, [secret]"#;
    assert_eq!(hidden.taken_out_of(said), told);
    assert_eq!(schema.hidden(&json!({ "code": " " })).taken_out_of("a b"), "a b");
}

#[test]
fn a_marked_value_was_left_where_it_stood_in_base64_or_with_percents() {
    let schema = input(json!({ "properties": { "token": { "type": "string", "x-secret": true } } }));
    let token = "a+b/ c?é>~~~~xy";
    let hidden = schema.hidden(&json!({ "token": token }));
    let taken = |said: &str| hidden.taken_out_of(&format!("said: {said}."));
    for said in ["a%2Bb%2F%20c%3F%C3%A9%3E~~~~xy", "a%2bb%2f+c%3f%c3%a9%3e~~~~xy", "a+b/%20c?%C3%A9%3E~~~~xy"] {
        assert_eq!(taken(said), "said: [secret].", "{said}");
    }
    for encoding in [BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD] {
        assert_eq!(taken(&encoding.encode(token.as_bytes())), "said: [secret].");
        for user in ["", "u", "us"] {
            let said = encoding.encode(format!("{user}:{token}:end").as_bytes());
            let left = taken(&said);
            assert!(left.contains("[secret]") && left.len() < "said: [secret].".len() + 16, "{left}");
        }
    }
    assert_eq!(taken("nothing of it"), "said: nothing of it.");
}

fn rows(count: usize, note: usize) -> Value {
    let rows: Vec<Value> = (0..count).map(|n| json!({ "id": format!("o{n}"), "note": "n".repeat(note) })).collect();
    json!({ "orders": rows, "summary": "s".repeat(40) })
}

fn size(value: &Value) -> usize {
    crate::json::canonical(value).len()
}

#[test]
fn what_fits_is_not_touched() {
    let value = rows(3, 10);
    let bounded = orders().bound(value.clone(), size(&value)).unwrap();
    assert_eq!(bounded, Bounded { value, truncated: vec![] });
}

#[test]
fn a_long_list_loses_its_tail_and_no_more_than_it_must() {
    let schema = orders();
    let bounded = schema.bound(rows(1000, 10), 4096).unwrap();
    assert!(schema.is_valid(&bounded.value));
    let left = bounded.value["orders"].as_array().unwrap().len();
    assert_eq!(bounded.truncated, [Truncated { at: "/orders".to_owned(), kept: left as u64, of: 1000 }]);
    assert!(size(&bounded.value) <= 4096 && size(&bounded.value) > 4096 - 60);
}

#[test]
fn the_schema_says_how_far_a_cut_may_go() {
    let schema = orders();
    let bounded = schema.bound(rows(4, 2000), 1000).unwrap();
    assert!(schema.is_valid(&bounded.value));
    assert_eq!(bounded.value["orders"].as_array().unwrap().len(), 2);
    assert!(bounded.truncated.iter().any(|t| t.at == "/orders/0/note" && t.of == 2000));
    assert!(size(&bounded.value) <= 1000 && size(&bounded.value) > 900);
    let none = schema.bound(rows(2, 0), 20).unwrap_err();
    assert_eq!(none.max, 20);
    let kept = schema.bound(rows(2, 0), 60).unwrap();
    assert!(kept.truncated.contains(&Truncated { at: "/summary".to_owned(), kept: 0, of: 1 }));
    assert_eq!(kept.value["orders"].as_array().unwrap().len(), 2);
}

#[test]
fn identifiers_and_formats_are_never_cut() {
    let schema = output(json!({
        "type": "object",
        "properties": {
            "code": { "type": "string", "pattern": "^[a-f]{300}$" },
            "text": { "type": "string" },
        },
        "required": ["code", "text"],
    }));
    let value = json!({ "code": "a".repeat(300), "text": "é\"".repeat(100) });
    let bounded = schema.bound(value, 450).unwrap();
    assert_eq!(bounded.value["code"].as_str().unwrap().len(), 300);
    assert!(schema.is_valid(&bounded.value));
    assert_eq!(bounded.truncated.len(), 1);
    assert_eq!((bounded.truncated[0].at.as_str(), bounded.truncated[0].of), ("/text", 200));
    assert!(schema.bound(json!({ "code": "a".repeat(300), "text": "" }), 200).is_err());
}

#[test]
fn without_a_schema_lists_strings_and_members_go_in_this_order() {
    let list = bound_free(json!((0..1000).collect::<Vec<_>>()), 100).unwrap();
    assert_eq!(list.truncated.len(), 1);
    assert!(list.value.as_array().unwrap().len() > 20);
    let text = bound_free(json!("日本".repeat(500)), 100).unwrap();
    assert_eq!(text.truncated, [Truncated { at: String::new(), kept: 32, of: 1000 }]);
    let map: serde_json::Map<String, Value> = (0..500).map(|n| (format!("key{n}"), json!(n))).collect();
    let map = bound_free(Value::Object(map), 1000).unwrap();
    assert_eq!(map.truncated.len(), 1);
    assert_eq!(map.truncated[0].kept, map.value.as_object().unwrap().len() as u64);
    assert_eq!(map.truncated[0].of, 500);
    assert!(map.truncated[0].kept > 40);
}

#[test]
fn the_smallest_member_that_is_enough_goes_first() {
    let value = json!({ "big": vec!["0123456789"; 1], "a": "x".repeat(60), "b": "y".repeat(50), "c": 1 });
    let bound = bound_free(value.clone(), size(&value) - 40).unwrap();
    assert_eq!(bound.truncated, [Truncated { at: "/b".to_owned(), kept: 0, of: 1 }]);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "\\PC{0,90}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map("[a-z/~]{1,4}", inner, 0..6)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn bounded_results_fit_and_stay_valid(count in 2_usize..30, note in 0_usize..300, summary in 5_usize..300, max in 40_usize..3000) {
        let schema = orders();
        let mut value = rows(count, note);
        value["summary"] = json!("é".repeat(summary));
        prop_assert!(schema.is_valid(&value));
        match schema.bound(value.clone(), max) {
            Ok(bounded) => {
                prop_assert!(size(&bounded.value) <= max);
                prop_assert!(schema.is_valid(&bounded.value));
                prop_assert_eq!(bounded.truncated.is_empty(), size(&value) <= max);
                prop_assert_eq!(bounded.value == value, bounded.truncated.is_empty());
                let places: std::collections::BTreeSet<&str> = bounded.truncated.iter().map(|t| t.at.as_str()).collect();
                prop_assert_eq!(places.len(), bounded.truncated.len());
            }
            Err(too_large) => {
                prop_assert_eq!(too_large.size, size(&value));
                prop_assert!(max < 300, "could have been cut to {}", max);
            }
        }
    }

    #[test]
    fn any_value_is_bounded_made_inert_and_judged_without_a_panic(value in any_json(), max in 2_usize..400) {
        if let Ok(bounded) = bound_free(value.clone(), max) {
            prop_assert!(size(&bounded.value) <= max);
        }
        let once = inert(value.clone());
        prop_assert_eq!(inert(once.clone()), once);
        let schema = refund();
        prop_assert_eq!(schema.problems(&value).is_empty(), schema.is_valid(&value));
        let schema = orders();
        let shown = schema.project(value);
        prop_assert_eq!(schema.project(shown.clone()), shown);
    }
}
