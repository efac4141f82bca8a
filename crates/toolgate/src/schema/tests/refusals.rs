//! What a model is told about its arguments.

use super::*;

#[test]
fn a_quoted_amount_and_a_stray_status_are_two_problems() {
    let call = json!({ "order_id": "ord_4821", "amount_cents": "2500", "currency": "USD", "reason": "duplicate", "status": "pending" });
    let problem = |at: &str, code: &str, message: &str, hint: &str| Problem {
        at: at.to_owned(),
        code: code.to_owned(),
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
    };
    assert_eq!(
        refund().problems(&call),
        Problems {
            list: vec![
                problem("/amount_cents", "type", "expected integer, got string", "send the number without quotes"),
                problem(
                    "/status",
                    "additional_property",
                    "unknown member",
                    "known: order_id, amount_cents, currency, reason"
                ),
            ],
            more: 0,
        }
    );
}

#[test]
fn refund_order_reports_every_kind_of_problem_together() {
    let schema = input(json!({
        "type": "object",
        "properties": {
            "order_id": { "type": "string", "pattern": "^ORD-[0-9]{6}$" },
            "amount_cents": { "type": "integer", "minimum": 1, "maximum": 50000 },
            "reason": { "enum": ["duplicate", "customer_request", "damaged", "other"] },
            "note": { "type": "string", "maxLength": 500 },
        },
        "required": ["order_id", "amount_cents", "reason"],
        "additionalProperties": false,
    }));
    let good = json!({ "order_id": "ORD-123456", "amount_cents": 5, "reason": "other" });
    assert!(schema.is_valid(&good));
    let with = |member: &str, value: Value| {
        let mut call = good.clone();
        call[member] = value;
        call
    };
    assert_eq!(only(&schema, &with("order_id", json!("123"))), ("must match ^ORD-[0-9]{6}$".to_owned(), None));
    assert_eq!(only(&schema, &with("amount_cents", json!(-5))), ("must be at least 1".to_owned(), None));
    assert_eq!(
        codes(&schema, &with("override_approval", json!(true))),
        pairs(&[("additional_property", "/override_approval")])
    );
    assert_eq!(
        only(&schema, &with("amount_cents", json!("fifty dollars"))),
        ("expected integer, got string".to_owned(), None)
    );
    let all = json!({ "order_id": "123", "amount_cents": -5, "reason": 7, "override_approval": true, "note": 3 });
    assert_eq!(
        codes(&schema, &all),
        pairs(&[
            ("minimum", "/amount_cents"),
            ("type", "/note"),
            ("pattern", "/order_id"),
            ("additional_property", "/override_approval"),
            ("enum", "/reason"),
        ])
    );
    let missing = schema.problems(&json!({}));
    assert_eq!(missing.list[0].at, "/amount_cents");
    assert_eq!(missing.list[2].hint.as_deref(), Some("one of: duplicate, customer_request, damaged, other"));
}

#[test]
fn the_one_free_member_that_takes_the_value_is_meant() {
    let schema = input(json!({
        "properties": { "query": { "type": "string" }, "max_results": { "type": "integer", "minimum": 1 } },
        "required": ["query"],
    }));
    let hint = only(&schema, &json!({ "query": "x", "limit": 5 })).1;
    assert_eq!(hint.as_deref(), Some("did you mean max_results? known: query, max_results"));
    assert_eq!(only(&schema, &json!({ "query": "x", "limit": -5 })).1.as_deref(), Some("known: query, max_results"));
    assert_eq!(
        only(&schema, &json!({ "query": "x", "maxResults": "five" })).1.as_deref(),
        Some("did you mean max_results? known: query, max_results")
    );
}

#[test]
fn a_stray_text_is_not_said_to_be_any_free_text() {
    let schema = input(json!({
        "properties": { "query": { "type": "string" }, "note": { "type": "string" }, "order": { "enum": ["asc", "desc"] } },
        "required": ["query"],
    }));
    let hint = |value: Value| {
        schema.problems(&value).list.into_iter().find(|p| p.code == "additional_property").unwrap().hint.unwrap()
    };
    assert_eq!(hint(json!({ "query": "x", "status": "pending" })), "known: query, note, order");
    assert_eq!(hint(json!({ "text": "x" })), "did you mean query? known: query, note, order");
    assert_eq!(hint(json!({ "query": "x", "sort_by": "asc" })), "did you mean order? known: query, note, order");
}

#[test]
fn hints_work_behind_references_and_with_an_address() {
    let schema = input(json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://example.com/tool",
        "properties": { "n~/": { "$ref": "#/definitions/a%20b" } },
        "definitions": { "a b": { "allOf": [{ "$ref": "#/definitions/int" }] }, "int": { "type": "integer" } },
    }));
    assert_eq!(only(&schema, &json!({ "n~/": "5" })).1.as_deref(), Some("send the number without quotes"));
    assert_eq!(codes(&schema, &json!({ "n~/": "5" })), pairs(&[("type", "/n~0~1")]));
}

#[test]
fn missing_members_are_described() {
    let problems = refund().problems(&json!({ "amount_cents": 1, "currency": "USD", "reason": "other" })).list;
    assert_eq!(problems[0].at, "/order_id");
    assert_eq!(problems[0].message, "missing member");
    assert_eq!(problems[0].hint.as_deref(), Some("string: The order"));
    let tree = input(json!({ "properties": { "root": { "$ref": "#/$defs/n" } }, "$defs": { "n": {
        "type": "object",
        "properties": { "name": { "type": "string" }, "children": { "type": "array", "items": { "$ref": "#/$defs/n" } } },
        "required": ["name"],
    } } }));
    let value = json!({ "root": { "name": "a", "children": [{ "children": [] }] } });
    assert_eq!(codes(&tree, &value), pairs(&[("required", "/root/children/0/name")]));
}

#[test]
fn values_of_the_wrong_type_are_mended_only_where_they_would_fit() {
    let schema = input(json!({ "properties": {
        "n": { "type": "integer", "maximum": 9 },
        "b": { "type": "boolean" },
        "s": { "type": "string" },
        "l": { "type": "array", "items": { "type": "string" } },
        "o": { "type": "object", "properties": { "k": {} } },
        "e": { "enum": ["markdown", "json"] },
        "d": { "type": "string", "format": "date" },
        "t": { "type": "string", "format": "date-time" },
        "choice": { "type": ["integer", "null"] },
    } }));
    for (member, value, message, hint) in [
        ("n", json!("7"), "expected integer, got string", Some("send the number without quotes")),
        ("n", json!("70"), "expected integer, got string", None),
        (
            "n",
            json!("7px"),
            "expected integer, got string",
            Some("send the number alone, without quotes, units or other characters"),
        ),
        ("n", json!("seven"), "expected integer, got string", None),
        ("o", json!("k"), "expected object, got string", Some("known: k")),
        ("n", json!(2.75), "expected integer, got number", Some("send a whole number")),
        ("n", json!(null), "expected integer, got null", Some("leave the member out")),
        ("n", json!([7]), "expected integer, got array", Some("send the value itself, not a list")),
        ("b", json!("true"), "expected boolean, got string", Some("send true or false without quotes")),
        ("b", json!("yes"), "expected boolean, got string", Some("send true or false without quotes")),
        ("b", json!("perhaps"), "expected boolean, got string", None),
        ("b", json!(1), "expected boolean, got integer", Some("send true or false")),
        ("n", json!(" 7 "), "expected integer, got string", Some("send the number without quotes")),
        (
            "n",
            json!({ "value": 7 }),
            "expected integer, got object",
            Some("send the value itself, not an object around it"),
        ),
        (
            "s",
            json!({ "depth": 2 }),
            "expected string, got object",
            Some("send one string, in quotes; what has parts is written into it, in words or as JSON"),
        ),
        ("s", json!(true), "expected string, got boolean", Some("send it as a string, in quotes")),
        ("s", json!(5), "expected string, got integer", Some("send it as a string, in quotes")),
        ("l", json!("a"), "expected array, got string", Some("send a list, even for one value")),
        (
            "o",
            json!("{\"k\":1}"),
            "expected object, got string",
            Some("send the value itself, not a string of its JSON"),
        ),
        ("e", json!("JSON"), "one of: markdown, json", Some("did you mean json?")),
        ("e", json!("pdf"), "one of: markdown, json", None),
        ("d", json!("31.01.2026"), "not a date", Some("write it like 2026-01-31")),
        (
            "t",
            json!("2031-05-06"),
            "not a date-time",
            Some("write it with a time and a zone, like 2026-01-31T09:30:00Z"),
        ),
        (
            "t",
            json!("2031-05-06T10:00:00"),
            "not a date-time",
            Some("write it with a time and a zone, like 2026-01-31T09:30:00Z"),
        ),
        ("choice", json!("5"), "expected integer or null, got string", Some("send the number without quotes")),
    ] {
        let (said, hinted) = only(&schema, &json!({ member: value }));
        assert_eq!((said.as_str(), hinted.as_deref()), (message, hint), "{member}: {value}");
    }
}

#[test]
fn limits_are_named() {
    let schema = input(json!({ "properties": {
        "s": { "type": "string", "minLength": 2, "maxLength": 3 },
        "n": { "type": "number", "exclusiveMinimum": 0, "maximum": 1.5, "multipleOf": 0.01 },
        "l": { "type": "array", "minItems": 1, "maxItems": 2, "uniqueItems": true },
        "c": { "const": true },
        "m": { "type": "object", "propertyNames": { "pattern": "^[a-z]+$" }, "additionalProperties": { "type": "integer" } },
    } }));
    for (value, code, message) in [
        (json!({ "s": "a" }), "min_length", "must have at least 2 characters"),
        (json!({ "s": "abcd" }), "max_length", "must have at most 3 characters"),
        (json!({ "n": 0 }), "exclusive_minimum", "must be more than 0"),
        (json!({ "n": 2 }), "maximum", "must be at most 1.5"),
        (json!({ "n": 0.075 }), "multiple_of", "must be a multiple of 0.01"),
        (json!({ "l": [] }), "min_items", "must have at least 1 item"),
        (json!({ "l": [1, 1] }), "unique_items", "items 0 and 1 are equal; items must differ"),
        (json!({ "c": false }), "const", "must be true"),
        (json!({ "m": { "A": 1 } }), "property_names", "the name of this member: must match ^[a-z]+$"),
    ] {
        assert_eq!(only(&schema, &value).0, message, "{value}");
        assert_eq!(codes(&schema, &value)[0].0, code, "{value}");
    }
    assert!(schema.is_valid(&json!({ "n": 0.07 })));
}

fn payment(union: &str) -> Schema {
    input(json!({ "required": ["m"], "properties": { "m": { union: [
        { "$ref": "#/$defs/card" },
        { "type": "object", "properties": { "kind": { "enum": ["bank"] }, "acct": { "type": "string" } }, "required": ["kind", "acct"], "additionalProperties": false },
        { "type": "null" },
    ] } }, "$defs": { "card": {
        "type": "object",
        "properties": { "kind": { "const": "card" }, "ref": { "type": "string" } },
        "required": ["kind", "ref"],
        "additionalProperties": false,
    } } }))
}

#[test]
fn a_tagged_union_reports_the_branch_it_means() {
    for schema in [payment("oneOf"), payment("anyOf")] {
        assert!(schema.is_valid(&json!({ "m": { "kind": "card", "ref": "r" } })));
        assert_eq!(codes(&schema, &json!({ "m": { "kind": "card", "ref": 71 } })), pairs(&[("type", "/m/ref")]));
        let both = json!({ "m": { "kind": "card", "acct": "a1" } });
        assert_eq!(codes(&schema, &both), pairs(&[("additional_property", "/m/acct"), ("required", "/m/ref")]));
        let mixed = json!({ "m": { "kind": "card", "ref": "r1", "acct": "a1" } });
        assert_eq!(codes(&schema, &mixed), pairs(&[("additional_property", "/m/acct")]));
        let shouted = json!({ "m": { "kind": "CARD", "ref": "r1" } });
        assert_eq!(codes(&schema, &shouted), pairs(&[("discriminator", "/m/kind")]));
        let (message, hint) = only(&schema, &shouted);
        assert_eq!(message, "tells the variants apart: one of: card, bank");
        assert_eq!(hint.as_deref(), Some("did you mean card?"));
        assert_eq!(codes(&schema, &json!({ "m": { "ref": "r1" } })), pairs(&[("discriminator", "/m/kind")]));
    }
}

#[test]
fn other_unions_are_one_problem_or_the_only_branch_of_the_type() {
    let schema = input(json!({ "properties": {
        "limit": { "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "null" }] },
        "ids": { "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] },
        "at": { "oneOf": [
            { "type": "object", "properties": { "lat": {}, "lon": {} }, "required": ["lat", "lon"] },
            { "type": "object", "properties": { "place": {} }, "required": ["place"] },
        ] },
    } }));
    assert_eq!(codes(&schema, &json!({ "limit": 0 })), pairs(&[("minimum", "/limit")]));
    let (message, hint) = only(&schema, &json!({ "limit": "5" }));
    assert_eq!(message, "expected integer or null, got string");
    assert_eq!(hint.as_deref(), Some("send the number without quotes"));
    assert_eq!(codes(&schema, &json!({ "limit": "5" })), pairs(&[("any_of", "/limit")]));
    assert_eq!(codes(&schema, &json!({ "ids": ["a", 1] })), pairs(&[("type", "/ids/1")]));
    assert_eq!(codes(&schema, &json!({ "at": { "lat": 1 } })), pairs(&[("required", "/at/lon")]), "the nearest");
    let both = json!({ "at": { "lat": 1, "lon": 2, "place": 3 } });
    assert_eq!(codes(&schema, &both), pairs(&[("one_of", "/at")]));
    let hint = only(&schema, &both).1;
    assert_eq!(hint.as_deref(), Some("send the members of one alone: {lat, lon} or {place}"));
    let twins = input(json!({ "properties": { "at": { "oneOf": [
        { "type": "object", "properties": { "a": {}, "b": {} }, "required": ["a"] },
        { "type": "object", "properties": { "a": {}, "b": {} }, "required": ["b"] },
    ] } } }));
    let (message, hint) = only(&twins, &json!({ "at": {} }));
    assert_eq!(message, "fits none of 2 variants");
    assert_eq!(hint.as_deref(), Some("variants: {a} or {b}"));
}

#[test]
fn a_failed_branch_does_not_make_its_members_unknown() {
    let schema = input(json!({ "oneOf": [
        { "properties": { "kind": { "const": "a" }, "n": { "type": "integer" } }, "required": ["kind", "n"] },
        { "properties": { "kind": { "const": "b" } }, "required": ["kind"] },
    ] }));
    assert_eq!(codes(&schema, &json!({ "kind": "a", "n": "x" })), pairs(&[("type", "/n")]));
    assert_eq!(codes(&schema, &json!({ "kind": "b", "n": 1 })), pairs(&[("additional_property", "/n")]));
    assert_eq!(codes(&schema, &json!({ "kind": "b", "z": 1 })), pairs(&[("additional_property", "/z")]));
}

#[test]
fn wrappers_that_are_missing_or_too_many_are_named() {
    let schema = input(json!({ "properties": { "filter": {
        "type": "object",
        "properties": { "status": { "enum": ["open", "closed"] }, "owner": { "type": "string" } },
    } } }));
    let flat = only(&schema, &json!({ "status": "open" })).1.unwrap();
    assert!(flat.starts_with("put it inside filter."), "{flat}");
    let wrapped = only(&schema, &json!({ "arguments": { "filter": { "owner": "me" } } })).1.unwrap();
    assert!(wrapped.starts_with("send its members here, without the wrapper."), "{wrapped}");
    let encoded = json!({ "arguments": r#"{"filter": {"owner": "me"}}"# });
    assert_eq!(only(&schema, &encoded).1, Some(wrapped));
}

#[test]
fn control_characters_are_refused_unless_the_schema_wants_lines() {
    let schema = input(json!({ "properties": {
        "title": { "type": "string" },
        "text": { "type": "string", "x-multiline": true },
    } }));
    for (value, expected) in [
        (json!({ "title": "a\u{85}b" }), pairs(&[("control_character", "/title")])),
        (json!({ "title": "a\u{7f}b" }), pairs(&[("control_character", "/title")])),
        (json!({ "title": "a\u{2028}b" }), pairs(&[("control_character", "/title")])),
        (json!({ "title": "a\tb" }), pairs(&[("control_character", "/title")])),
        (json!({ "text": "x\u{b}y" }), pairs(&[("control_character", "/text")])),
        (json!({ "text": "x\r\ny" }), pairs(&[("control_character", "/text")])),
        (json!({ "text": "line1\nline2\tz", "title": "naïve 漢字" }), vec![]),
    ] {
        assert_eq!(codes(&schema, &value), expected, "{value}");
    }
}

#[test]
fn no_value_is_ever_echoed_and_names_are_made_harmless() {
    let schema = refund();
    let long = "n".repeat(500);
    let call = json!({ "order_id": "s3cret-1", "amount_cents": "s3cret-2", "currency": "s3cret-3", "reason": ["s3cret-4"], "a\u{202E}\nb": "s3cret-5", long: 1 });
    let problems = schema.problems(&call);
    let text = serde_json::to_string(&problems.list).unwrap();
    assert!(!text.contains("s3cret"), "{text}");
    assert!(text.contains(r"/a\\u{202E}\\u{000A}b"), "{text}");
    assert!(problems.list.iter().all(|p| p.at.chars().count() <= 80));
    assert_eq!(problems.list.len(), 7);
}

#[test]
fn fifty_problems_are_enough_and_the_rest_is_counted() {
    let schema = input(json!({ "properties": { "l": { "type": "array", "items": { "type": "integer" } } } }));
    let problems = schema.problems(&json!({ "l": vec!["x"; 1000] }));
    assert_eq!((problems.list.len(), problems.more), (50, 950));
    assert_eq!(problems.list[2].at, "/l/2");
    let many: serde_json::Map<String, Value> = (0..300).map(|n| (format!("m{n}"), json!(1))).collect();
    let problems = schema.problems(&Value::Object(many));
    assert_eq!((problems.list.len(), problems.more), (50, 250));
}

#[test]
fn a_problem_travels_as_json_without_an_empty_hint() {
    let problem = Problem { at: "/a".to_owned(), code: "type".to_owned(), message: "m".to_owned(), hint: None };
    let text = serde_json::to_string(&problem).unwrap();
    assert_eq!(text, r#"{"at":"/a","code":"type","message":"m"}"#);
    assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), problem);
}

#[test]
fn a_catastrophic_pattern_is_answered_at_once() {
    let schema = input(json!({ "properties": { "tag": { "type": "string", "pattern": "^(a+)+$" } } }));
    let start = std::time::Instant::now();
    assert!(!schema.is_valid(&json!({ "tag": format!("{}!", "a".repeat(50_000)) })));
    assert!(start.elapsed() < std::time::Duration::from_secs(10));
}

#[test]
fn the_branch_that_an_object_is_nearest_to_says_what_is_wrong() {
    let schema = input(json!({ "properties": { "to": { "type": "array", "items": { "anyOf": [
        { "type": "object", "properties": { "email": { "type": "string", "format": "email" }, "name": {} }, "required": ["email"], "additionalProperties": false },
        { "type": "object", "properties": { "phone": { "type": "string" }, "name": {} }, "required": ["phone"], "additionalProperties": false },
    ] } } } }));
    assert_eq!(codes(&schema, &json!({ "to": [{ "email": "x" }] })), pairs(&[("format", "/to/0/email")]));
    assert_eq!(
        codes(&schema, &json!({ "to": [{ "phone": 5, "name": "a" }, { "phone": "1" }] })),
        pairs(&[("type", "/to/0/phone")])
    );
    assert_eq!(codes(&schema, &json!({ "to": [{ "name": "a" }] })), pairs(&[("any_of", "/to/0")]), "as near to both");
}

#[test]
fn a_tag_is_found_through_unions_of_unions() {
    let shape = |kind: &str, member: &str| {
        json!({
            "type": "object", "properties": { "kind": { "const": kind }, member: { "type": "number" } }, "required": ["kind", member],
        })
    };
    let schema = input(json!({ "properties": { "shapes": { "type": "array", "items": { "oneOf": [
        { "oneOf": [shape("circle", "radius"), shape("square", "side")] },
        shape("line", "length"),
    ] } } } }));
    assert_eq!(
        codes(&schema, &json!({ "shapes": [{ "kind": "square", "side": "2" }] })),
        pairs(&[("type", "/shapes/0/side")])
    );
    let (message, hint) = only(&schema, &json!({ "shapes": [{ "kind": "circel", "radius": 1 }] }));
    assert_eq!(message, "tells the variants apart: one of: circle, square, line");
    assert_eq!(hint.as_deref(), Some("did you mean circle?"));
}

#[test]
fn what_other_keywords_want_is_said_in_words() {
    let schema = input(json!({ "properties": {
        "to": { "type": "array", "contains": { "properties": { "kind": { "const": "to" } }, "required": ["kind"] } },
        "user": { "type": "string", "not": { "enum": ["root", "admin"] } },
        "note": { "type": "string", "not": { "pattern": "^TODO" } },
        "pay": { "type": "object", "properties": { "card": {}, "address": { "type": "string", "description": "Where. And who." } },
            "dependentRequired": { "card": ["address"] } },
        "trip": { "type": "object", "properties": { "kind": { "enum": ["one_way", "return"] }, "back": { "type": "string" } },
            "if": { "properties": { "kind": { "const": "return" } }, "required": ["kind"] }, "then": { "required": ["back"] } },
        "id": { "type": "string", "pattern": "^ORD-[0-9]+$", "examples": ["ORD-7"] },
        "ref": { "type": "string", "pattern": "^R[0-9]+$", "description": "The reference, such as R12. Not the id." },
        "change": { "type": "object", "properties": { "a": {}, "b": {} }, "minProperties": 1 },
        "text": { "type": "string", "minLength": 1 },
    } }));
    for (value, code, at, message, hint) in [
        (
            json!({ "to": [{ "kind": "cc" }] }),
            "contains",
            "/to",
            "lacks items of the kind that the schema wants, or has too many of them",
            Some("such an item is an object with kind to"),
        ),
        (json!({ "user": "root" }), "not", "/user", "must not be one of: root, admin", None),
        (json!({ "note": "TODO x" }), "not", "/note", "must not be a text that matches ^TODO", None),
        (
            json!({ "pay": { "card": 1 } }),
            "dependent_required",
            "/pay/address",
            "missing member, which card asks for",
            Some("string: Where"),
        ),
        (
            json!({ "trip": { "kind": "return" } }),
            "required",
            "/trip/back",
            "missing member, which what else was sent asks for",
            Some("string"),
        ),
        (json!({ "id": "7" }), "pattern", "/id", "must match ^ORD-[0-9]+$", Some("write it like ORD-7")),
        (json!({ "ref": "7" }), "pattern", "/ref", "must match ^R[0-9]+$", Some("The reference, such as R12")),
        (json!({ "change": {} }), "min_properties", "/change", "must have at least 1 member", Some("known: a, b")),
        (
            json!({ "text": "" }),
            "min_length",
            "/text",
            "must have at least 1 character",
            Some("leave the member out, if there is nothing to send"),
        ),
    ] {
        assert_eq!(codes(&schema, &value), pairs(&[(code, at)]), "{value}");
        let (said, hinted) = only(&schema, &value);
        assert_eq!((said.as_str(), hinted.as_deref()), (message, hint), "{value}");
    }
}

#[test]
fn a_member_that_belongs_further_out_is_sent_there() {
    let schema = input(json!({ "properties": {
        "limit": { "type": "integer" },
        "filter": { "type": "object", "properties": { "status": { "type": "string" } }, "additionalProperties": false },
    } }));
    let hint = only(&schema, &json!({ "filter": { "status": "open", "limit": 5 } })).1.unwrap();
    assert_eq!(hint, "put it beside filter, not in it. known: status");
}

/// Schemas of every shape that a refusal looks into.
fn talkative() -> Schema {
    input(json!({ "properties": {
        "text": { "type": "string", "pattern": "^[a-c]$", "maxLength": 3 },
        "word": { "enum": ["alpha", "beta"] },
        "count": { "type": "integer", "minimum": 3, "multipleOf": 5 },
        "at": { "type": "string", "format": "date-time" },
        "list": { "type": "array", "items": { "type": "string", "minLength": 90 }, "uniqueItems": true, "contains": { "const": "a" } },
        "map": { "type": "object", "propertyNames": { "maxLength": 4 }, "additionalProperties": { "type": "boolean" } },
        "either": { "oneOf": [
            { "type": "object", "properties": { "kind": { "const": "a" }, "n": { "type": "integer" } }, "required": ["kind", "n"] },
            { "type": "object", "properties": { "kind": { "const": "b" } }, "required": ["kind"] },
        ] },
        "loose": { "anyOf": [{ "type": "string", "format": "uuid" }, { "type": "string", "format": "date" }, { "type": "array" }] },
        "never": { "not": { "type": "string" } },
    }, "required": ["text"] }))
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(100))]

    /// The names that a call gives its members are told, as far as 64 characters; its values never are.
    #[test]
    fn no_refusal_holds_a_value_or_the_end_of_a_long_name(
        member in "text|word|count|at|list|map|either|loose|never|other",
        shape in 0..9_u8,
        digits in 10_000_000..99_999_999_u64,
    ) {
        let schema = talkative();
        let marker = format!("mark{digits}");
        let held = json!(marker);
        let value = match shape {
            0 => held,
            1 => json!([held, held]),
            2 => json!({ "kind": held, "n": held }),
            3 => json!({ "kind": "a", "n": held }),
            4 => json!({ "x": { "y": [held] } }),
            5 => json!(digits),
            6 => json!({ format!("{}{marker}", "n".repeat(70)): true, "k": held }),
            7 => json!(format!("{{\"a\": \"{marker}\"}}")),
            _ => json!([{ "kind": held }, digits, [held]]),
        };
        let problems = schema.problems(&json!({ member: value }));
        let told = serde_json::to_string(&problems.list).unwrap();
        proptest::prop_assert!(!told.contains(&digits.to_string()), "{}", told);
    }

    #[test]
    fn a_refusal_is_bounded_whatever_was_sent(depth in 0..24_usize, width in 1..200_usize, name in "[a-z\"\u{202e}é]{1,300}") {
        let schema = input(json!({ "properties": { "v": { "$ref": "#/$defs/n" } }, "$defs": { "n": {
            "type": "object", "additionalProperties": { "$ref": "#/$defs/n" },
        } } }));
        let wide: serde_json::Map<String, Value> = (0..width).map(|n| (format!("{n}{name}"), json!(1))).collect();
        let deep = (0..depth).fold(Value::Object(wide), |inner, _| json!({ name.as_str(): inner }));
        let problems = schema.problems(&json!({ "v": deep }));
        let told = serde_json::to_string(&problems.list).unwrap();
        proptest::prop_assert!(told.len() <= 16_000, "{}", told.len());
        proptest::prop_assert_eq!(problems.list.len() + problems.more, width);
    }
}

/// Once it was said of the whole object that it must not be sent.
#[test]
fn a_member_of_a_tool_without_parameters_is_named() {
    for schema in [
        input(json!({ "type": "object", "properties": {} })),
        input(json!({})),
        input(json!({ "additionalProperties": false })),
    ] {
        let value = json!({ "verbose": true, "page": 2 });
        assert_eq!(
            codes(&schema, &value),
            pairs(&[("additional_property", "/page"), ("additional_property", "/verbose")])
        );
        assert_eq!(only(&schema, &json!({ "page": 1 })).1.as_deref(), Some("no members are known here"));
    }
}

/// Once the top level was said to be an object wherever the schema came back to it.
#[test]
fn a_schema_that_comes_back_to_its_top_asks_there_for_no_more_than_it_says() {
    let schema = input(json!({ "properties": { "foo": { "$ref": "#" } } }));
    assert!(schema.is_valid(&json!({ "foo": { "foo": false } })));
    assert_eq!(codes(&schema, &json!(false)), pairs(&[("type", "")]));
}
