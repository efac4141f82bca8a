//! What a schema document may say.

use std::time::{Duration, Instant};

use super::*;

/// Places of the faults, with their hints.
fn faults(document: Value) -> Vec<(String, Option<String>)> {
    Schema::input(&document).unwrap_err().into_iter().map(|fault| (fault.at, fault.hint)).collect()
}

fn fault(document: Value) -> SchemaFault {
    let mut faults = Schema::input(&document).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults.remove(0)
}

#[test]
fn every_fault_of_a_document_is_listed_at_once() {
    let found = faults(json!({
        "type": "object",
        "additionalproperties": false,
        "properties": {
            "a": { "typ": "string" },
            "b": { "type": "int" },
            "c": { "type": "string", "maxLength": "20", "pattern": "(?=x)" },
            "d": { "$ref": "https://example.com/x.json" },
            "e": { "type": "string", "format": "datetime" },
            "f": { "type": "string", "required": true },
        },
    }));
    let hint = |text: &str| Some(text.to_owned());
    let at = |place: &str| {
        found.iter().find(|(at, _)| at == place).unwrap_or_else(|| panic!("{place} in {found:?}")).1.clone()
    };
    assert_eq!(at("/additionalproperties"), hint("did you mean additionalProperties?"));
    assert_eq!(at("/properties/a/typ"), hint("did you mean type?"));
    assert_eq!(at("/properties/b/type"), hint("did you mean integer?"));
    assert_eq!(at("/properties/c/maxLength"), None);
    assert!(at("/properties/c/pattern").unwrap().contains("allOf"));
    assert!(at("/properties/d/$ref").unwrap().contains("$defs"));
    assert_eq!(at("/properties/e/format"), hint("did you mean date-time?"));
    assert!(at("/properties/f/required").is_some());
    assert_eq!(found.len(), 8);
}

#[test]
fn words_of_programming_languages_are_understood_and_refused() {
    for (word, meant) in [
        ("int", "integer"),
        ("str", "string"),
        ("text", "string"),
        ("dict", "object"),
        ("list", "array"),
        ("float", "number"),
        ("bool", "boolean"),
        ("strnig", "string"),
    ] {
        let fault = fault(json!({ "properties": { "a": { "type": word } } }));
        assert_eq!(fault.hint, Some(format!("did you mean {meant}?")));
        assert!(!fault.message.contains(word));
    }
}

#[test]
fn own_keywords_begin_with_x() {
    let schema = json!({ "properties": { "a": { "type": "string", "x-note": { "any": 1 }, "x-secret": true } } });
    assert!(Schema::input(&schema).is_ok());
    assert_eq!(fault(json!({ "properties": { "a": { "x-secret": "yes" } } })).at, "/properties/a/x-secret");
}

#[test]
fn the_arguments_are_an_object() {
    for document in [json!({}), json!(true), json!({ "properties": { "a": {} } })] {
        assert!(Schema::input(&document).is_ok(), "{document}");
    }
    for document in
        [json!({ "type": "string" }), json!({ "type": ["array", "null"] }), json!(false), json!([]), json!("x")]
    {
        assert_eq!(Schema::input(&document).unwrap_err().len(), 1, "{document}");
    }
    assert!(!input(json!({})).is_valid(&json!({ "a": 1 })));
}

#[test]
fn references_stay_inside_the_document() {
    for to in [
        "other.json",
        "file:///etc/hostname",
        "https://schemas.example.net/x.json",
        "#/$defs/nope",
        "#nope",
        "#/$defs/ordr",
    ] {
        let fault = fault(json!({ "properties": { "a": { "$ref": to } }, "$defs": { "order": { "type": "string" } } }));
        assert_eq!(fault.at, "/properties/a/$ref", "{to}");
        assert_eq!(fault.hint.as_deref() == Some("did you mean #/$defs/order?"), to == "#/$defs/ordr");
    }
    assert_eq!(fault(json!({ "$schema": "https://evil.example.net/meta" })).at, "/$schema");
    assert_eq!(fault(json!({ "$dynamicRef": "https://schemas.example.net/y#n" })).at, "/$dynamicRef");
    assert_eq!(
        fault(json!({ "$id": "http://169.254.169.254/", "properties": { "a": { "$ref": "latest" } } })).at,
        "/properties/a/$ref"
    );
    let inside = input(json!({
        "properties": { "a": { "$ref": "#/$defs/a%20b" }, "b": { "$ref": "#here" }, "c": { "$ref": "#/x-shared/c" } },
        "$defs": { "a b": { "type": "string" }, "c": { "$anchor": "here", "type": "integer" } },
        "x-shared": { "c": { "type": "null" } },
    }));
    assert!(inside.is_valid(&json!({ "a": "x", "b": 1, "c": null })));
    assert_eq!(
        codes(&inside, &json!({ "a": 1, "b": "x", "c": 1 })),
        pairs(&[("type", "/a"), ("type", "/b"), ("type", "/c")])
    );
    let own = input(json!({
        "$id": "https://example.com/tool.json",
        "properties": { "a": { "$ref": "https://example.com/tool.json#/$defs/a" }, "b": { "$ref": "https://example.com/tool.json#b" } },
        "$defs": { "a": { "type": "string" }, "b": { "$anchor": "b", "type": "integer" } },
    }));
    assert_eq!(codes(&own, &json!({ "a": 1, "b": "x" })), pairs(&[("type", "/a"), ("type", "/b")]));
    let shared = json!({ "properties": { "c": { "$ref": "#/x-shared/c" } }, "x-shared": { "c": { "typ": "null" } } });
    assert_eq!(fault(shared).at, "/x-shared/c/typ");
}

#[test]
fn a_required_member_that_is_forbidden_is_a_fault() {
    let document = json!({ "properties": { "amount": { "type": "integer" } }, "required": ["Amount"] });
    let fault = fault(document);
    assert_eq!((fault.at.as_str(), fault.hint.as_deref()), ("/required/0", Some("did you mean amount?")));
    let branches =
        json!({ "properties": { "a": {}, "b": {} }, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] });
    assert!(Schema::input(&branches).is_ok());
}

/// `depth` definitions, each applying the next one `times` times.
fn multiplying(depth: usize, times: usize, keyword: &str) -> Value {
    let mut definitions = serde_json::Map::new();
    for level in 0..depth {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        definitions.insert(format!("d{level}"), json!({ keyword: vec![next; times] }));
    }
    definitions.insert(format!("d{depth}"), json!({ "type": "integer", "minimum": 10 }));
    json!({ "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": definitions })
}

#[test]
fn a_bomb_of_references_is_refused_before_it_is_used() {
    let start = Instant::now();
    for keyword in ["allOf", "anyOf", "oneOf"] {
        assert!(fault(multiplying(7, 4, keyword)).message.contains("10,000"), "{keyword}");
        for depth in [20, 28, 200] {
            assert!(fault(multiplying(depth, 2, keyword)).message.contains("in a row"), "{keyword}");
        }
        assert!(Schema::input(&multiplying(4, 2, keyword)).is_ok(), "{keyword}");
    }
    // Harmless on one level, doubling with each level of the value.
    let both = json!({ "allOf": [{ "$ref": "#/$defs/n" }, { "$ref": "#/$defs/n" }] });
    let recursive = json!({ "$ref": "#/$defs/n", "$defs": { "n": { "properties": { "x": both } } } });
    assert!(fault(recursive).message.contains("10,000"));
    let split = json!({ "$ref": "#/$defs/n", "$defs": { "n": { "allOf": [
        { "properties": { "x": { "$ref": "#/$defs/n" } } },
        { "additionalProperties": { "$ref": "#/$defs/n" } },
    ] } } });
    assert!(fault(split).message.contains("10,000"));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn recursion_goes_deeper_into_the_value_or_is_refused() {
    for document in [
        json!({ "$ref": "#" }),
        json!({ "properties": { "a": { "$ref": "#/$defs/a" } }, "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/a" }] } } }),
        json!({ "$defs": { "a": { "not": { "$ref": "#/$defs/b" } }, "b": { "anyOf": [{ "$ref": "#/$defs/a" }] } } }),
    ] {
        assert!(fault(document).message.contains("without going deeper"));
    }
    let trees = [
        json!({ "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" } } }),
        json!({ "$ref": "#/$defs/n", "$defs": { "n": { "properties": {
            "title": { "type": "string" },
            "kids": { "type": "array", "items": { "$ref": "#/$defs/n" } },
        } } } }),
        json!({ "properties": { "v": { "$ref": "#/$defs/json" } }, "$defs": { "json": { "anyOf": [
            { "type": ["string", "number", "boolean", "null"] },
            { "type": "array", "items": { "$ref": "#/$defs/json" } },
            { "type": "object", "additionalProperties": { "$ref": "#/$defs/json" } },
        ] } } }),
        json!({ "properties": { "filter": { "$ref": "#/$defs/f" } }, "$defs": { "f": { "oneOf": [
            { "properties": { "and": { "type": "array", "items": { "$ref": "#/$defs/f" } } }, "required": ["and"] },
            { "properties": { "or": { "type": "array", "items": { "$ref": "#/$defs/f" } } }, "required": ["or"] },
            { "properties": { "not": { "$ref": "#/$defs/f" } }, "required": ["not"] },
        ] } } }),
    ];
    for tree in trees {
        assert!(Schema::input(&tree).is_ok(), "{tree}");
    }
}

#[test]
fn the_deepest_accepted_schema_fits_the_stack_of_a_worker() {
    let wrap: [fn(Value) -> Value; 5] = [
        |inner| json!({ "allOf": [inner] }),
        |inner| json!({ "anyOf": [inner, { "type": "null" }] }),
        |inner| json!({ "oneOf": [inner, { "type": "null" }] }),
        |inner| json!({ "if": { "type": "object" }, "then": inner }),
        |inner| json!({ "not": { "not": inner } }),
    ];
    for (index, wrap) in wrap.into_iter().enumerate() {
        let tail =
            json!({ "type": "object", "properties": { "n": { "$ref": "#/$defs/n" } }, "additionalProperties": false });
        let length = [23, 11, 11, 11, 5][index];
        let chain = (0..length).fold(tail, |inner, _| wrap(inner));
        let schema = input(json!({ "properties": { "n": { "$ref": "#/$defs/n" } }, "$defs": { "n": chain } }));
        let deep = (0..62).fold(json!({ "wrong": 1 }), |inner, _| json!({ "n": inner }));
        assert_eq!(schema.problems(&deep).list.len(), 1);
    }
    let mut definitions = serde_json::Map::new();
    for level in 0..126 {
        definitions.insert(
            format!("d{level}"),
            json!({ "properties": { "n": { "$ref": format!("#/$defs/d{}", level + 1) } } }),
        );
    }
    definitions.insert("d126".to_owned(), json!({ "type": "integer" }));
    let long = json!({ "properties": { "n": { "$ref": "#/$defs/d0" } }, "$defs": definitions });
    assert!(fault(long).message.contains("128"));
}

#[test]
fn older_drafts_are_read_as_they_were_meant() {
    let draft7 = input(json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/args",
        "definitions": { "args": { "type": "object", "properties": { "id": { "type": "string", "format": "uuid" } }, "required": ["id"] } },
    }));
    assert!(draft7.is_valid(&json!({ "id": "123e4567-e89b-12d3-a456-426614174000" })));
    assert_eq!(
        codes(&draft7, &json!({ "id": "x", "extra": 1 })),
        pairs(&[("additional_property", "/extra"), ("format", "/id")])
    );
    assert_eq!(draft7.members(), ["id"]);
    let draft4 = input(json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": { "n": { "type": "number", "minimum": 0, "exclusiveMinimum": true } },
    }));
    assert_eq!(codes(&draft4, &json!({ "n": 0 })).len(), 1);
    let silenced = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": { "a": { "$ref": "#/definitions/s", "maxLength": 3 } },
        "definitions": { "s": { "type": "string" } },
    });
    assert_eq!(fault(silenced).at, "/properties/a/maxLength");
    assert_eq!(
        fault(json!({ "$schema": "http://json-schema.org/draft-04/schema#", "properties": { "a": { "const": 1 } } }))
            .at,
        "/properties/a/const"
    );
}

#[test]
fn a_silent_top_level_is_closed_and_a_speaking_one_is_not_touched() {
    let stray = json!({ "a": 1, "b": 2 });
    for (document, admits) in [
        (json!({ "properties": { "a": {} } }), false),
        (json!({ "properties": { "a": {} }, "additionalProperties": { "type": "integer" } }), true),
        (json!({ "properties": { "a": {} }, "patternProperties": { "^b$": {} } }), true),
        (json!({ "allOf": [{ "properties": { "a": {} } }, { "properties": { "b": {} } }] }), true),
        (json!({ "allOf": [{ "properties": { "a": {} } }], "anyOf": [{ "properties": { "c": {} } }] }), false),
        (json!({ "properties": { "a": {}, "kids": { "items": { "$ref": "#" } } } }), false),
        (json!({ "$ref": "#/$defs/x", "$defs": { "x": { "properties": { "a": {}, "b": {} } } } }), true),
    ] {
        assert_eq!(input(document.clone()).is_valid(&stray), admits, "{document}");
        assert!(Schema::output(&document).unwrap().is_valid(&stray), "{document}");
    }
    // Used again further down, the top level is closed at the top alone.
    let tree = input(json!({ "properties": { "a": {}, "kids": { "items": { "$ref": "#" } } } }));
    assert!(tree.is_valid(&json!({ "kids": [{ "other": 1 }] })));
    assert_eq!(codes(&tree, &json!({ "other": 1 })), pairs(&[("additional_property", "/other")]));
}

#[test]
fn an_open_top_level_is_said_by_the_contract_and_not_by_the_schema_alone() {
    let declared = json!({ "properties": { "a": { "type": "integer" } } });
    let stray = json!({ "a": 1, "b": { "c": [2] } });
    let open = Schema::open_input(&declared).unwrap();
    assert!(open.is_valid(&stray));
    assert_eq!(codes(&open, &json!({ "a": "x", "b": 2 })), pairs(&[("type", "/a")]));
    for (schema, at) in [
        (json!({ "properties": { "a": {} }, "additionalProperties": true }), "/additionalProperties"),
        (json!({ "additionalProperties": { "description": "Anything." } }), "/additionalProperties"),
        (json!({ "properties": { "a": {} }, "unevaluatedProperties": {} }), "/unevaluatedProperties"),
        (
            json!({ "allOf": [{ "properties": { "a": {} }, "additionalProperties": true }] }),
            "/allOf/0/additionalProperties",
        ),
    ] {
        let fault = fault(schema.clone());
        assert_eq!(fault.at, at);
        assert!(fault.hint.unwrap().contains("open = true"));
        assert!(Schema::open_input(&schema).unwrap().is_valid(&stray), "{schema}");
        assert!(Schema::imported_input(&schema).unwrap().is_valid(&stray), "what a server says stands: {schema}");
    }
    let shut = json!({ "properties": { "a": {} }, "additionalProperties": false });
    assert_eq!(Schema::open_input(&shut).unwrap_err()[0].at, "/additionalProperties");
    // Further down, a schema says for itself what it allows.
    let map = json!({ "properties": { "labels": { "type": "object", "additionalProperties": true } } });
    assert!(input(map).is_valid(&json!({ "labels": { "x": 1 } })));
}

#[test]
fn a_look_around_pattern_comes_back_as_patterns_that_do_without() {
    let pattern = |pattern: &str| fault(json!({ "properties": { "a": { "type": "string", "pattern": pattern } } }));
    let hint = pattern(r"^(?=.*\d)(?!admin).{8,}$").hint.unwrap();
    let said = r#"write "allOf": [{"pattern":"\\d"},{"pattern":"^.{8,}$"}], "not": {"pattern":"^admin"} in place of the pattern"#;
    assert_eq!(hint, said);
    assert!(pattern(r"^(a|b)\1$").hint.unwrap().contains("write the alternatives out"));
    assert!(pattern("a(?=b)c").hint.unwrap().contains("several patterns under allOf"));
}

#[test]
fn places_and_members_are_found_through_references_and_branches() {
    let schema = input(json!({
        "properties": { "who": { "$ref": "#/$defs/who" }, "tags": { "type": "array", "prefixItems": [{ "const": 1 }], "items": { "const": 2 } } },
        "required": ["who"],
        "anyOf": [{ "properties": { "x": { "type": "integer" } } }, { "properties": { "y": {} } }],
        "additionalProperties": { "type": "string", "title": "rest" },
        "$defs": { "who": { "type": "object", "properties": { "name": { "type": "string" }, "mail": { "type": "string" } }, "required": ["name"] } },
    }));
    assert_eq!(schema.members(), ["who", "tags", "x", "y"]);
    assert_eq!(schema.locate("/who/name"), [&json!({ "type": "string" })]);
    assert_eq!(schema.locate("/tags/0"), [&json!({ "const": 1 })]);
    assert_eq!(schema.locate("/tags/7"), [&json!({ "const": 2 })]);
    assert!(schema.locate("/x").contains(&&json!({ "type": "integer" })));
    assert_eq!(schema.locate("/unknown"), [&json!({ "type": "string", "title": "rest" })]);
    assert!(schema.required("/who") && schema.required("/who/name") && !schema.required("/who/mail"));
    assert!(!schema.required("/tags") && !schema.required("/x") && schema.required(""));
    let either = input(
        json!({ "properties": { "a": {}, "b": {} }, "oneOf": [{ "required": ["a"] }, { "required": ["a", "b"] }] }),
    );
    assert!(either.required("/a") && !either.required("/b"));
}

#[test]
fn a_wide_and_deep_schema_of_the_real_world_passes_quickly() {
    let leaf = |n: usize| json!({ "type": ["string", "null"], "maxLength": n + 1, "description": "A field." });
    let record = |tag: usize| -> Value {
        let fields: serde_json::Map<String, Value> = (0..40).map(|n| (format!("f{tag}_{n}"), leaf(n))).collect();
        json!({ "type": "object", "properties": fields })
    };
    let records: serde_json::Map<String, Value> = (0..40)
        .map(|n| {
            let mut record = record(n);
            record["properties"]["next"] =
                json!({ "anyOf": [{ "$ref": format!("#/$defs/r{}", (n + 1) % 40) }, { "type": "null" }] });
            record["properties"]["list"] =
                json!({ "type": "array", "items": { "$ref": format!("#/$defs/r{}", (n + 7) % 40) } });
            (format!("r{n}"), record)
        })
        .collect();
    let start = Instant::now();
    let schema = input(json!({ "properties": { "root": { "$ref": "#/$defs/r0" } }, "$defs": records }));
    assert!(schema.is_valid(&json!({ "root": { "next": { "list": [{ "f8_0": null }] } } })));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}
