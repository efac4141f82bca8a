//! Each leniency at its places, and around the whole.

use super::*;

#[test]
fn an_integer_is_taken_from_its_exact_spelling() {
    let int = keys(&["integer_as_string"], json!({ "n": { "type": "integer" } }));
    assert_taken(&int, json!({ "n": "25" }), json!({ "n": 25 }), &["integer_as_string at /n"]);
    assert_taken(&int, json!({ "n": "-7" }), json!({ "n": -7 }), &["integer_as_string at /n"]);
    assert_taken(&int, json!({ "n": "0" }), json!({ "n": 0 }), &["integer_as_string at /n"]);
    let largest = json!({ "n": u64::MAX });
    assert_taken(&int, json!({ "n": "18446744073709551615" }), largest, &["integer_as_string at /n"]);
    for wrong in [
        "",
        " 25",
        "25 ",
        "+25",
        "025",
        "-0",
        "--1",
        "2.0",
        "2.5",
        "1e3",
        "0x10",
        "20px",
        "²",
        "٣",
        "1_000",
        "1,000",
        "18446744073709551616",
        "-9223372036854775809",
        "true",
        "null",
    ] {
        assert_eq!(refused(&int, json!({ "n": wrong })), ["/n"], "{wrong}");
    }
    assert_eq!(refused(&int, json!({ "n": ["25"] })), ["/n"]);
    assert_eq!(refused(&int, json!({ "n": true })), ["/n"]);
}

#[test]
fn an_integer_serves_where_any_number_is_wanted_but_no_fraction_is_read_from_a_text() {
    let number = keys(&["integer_as_string"], json!({ "n": { "type": "number", "minimum": 0 } }));
    assert_taken(&number, json!({ "n": "25" }), json!({ "n": 25 }), &["integer_as_string at /n"]);
    assert_eq!(refused(&number, json!({ "n": "2.5" })), ["/n"]);
    assert_eq!(refused(&number, json!({ "n": "-1" })), ["/n"], "what it would be must fit");
}

#[test]
fn a_text_that_is_accepted_stays_a_text() {
    let int = &["integer_as_string", "boolean_as_string", "json_as_string", "trim"];
    for place in [
        json!({ "type": ["integer", "string"] }),
        json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] }),
        json!({ "oneOf": [{ "type": "array" }, { "type": "string" }] }),
        json!({ "type": "string", "pattern": "^[0-9 tru\\[\\]e]+$" }),
        json!({ "description": "anything" }),
        json!({ "enum": ["25", "true", "[1]", " 25 ", 25, true] }),
    ] {
        let keys = keys(int, json!({ "v": place }));
        for text in ["25", "true", "[1]", " 25 "] {
            assert_taken(&keys, json!({ "v": text }), json!({ "v": text }), &[]);
        }
    }
}

#[test]
fn a_union_of_a_number_and_some_words_takes_the_number() {
    let limit = json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "string", "enum": ["all"] }] });
    let keys = keys(&["integer_as_string"], json!({ "limit": limit }));
    assert_taken(&keys, json!({ "limit": "20" }), json!({ "limit": 20 }), &["integer_as_string at /limit"]);
    assert_taken(&keys, json!({ "limit": "all" }), json!({ "limit": "all" }), &[]);
    assert_eq!(refused(&keys, json!({ "limit": "some" })), ["/limit"]);
}

#[test]
fn a_boolean_is_taken_from_its_exact_word() {
    let flag = keys(&["boolean_as_string"], json!({ "b": { "type": ["boolean", "null"] } }));
    assert_taken(&flag, json!({ "b": "true" }), json!({ "b": true }), &["boolean_as_string at /b"]);
    assert_taken(&flag, json!({ "b": "false" }), json!({ "b": false }), &["boolean_as_string at /b"]);
    for wrong in ["True", "TRUE", " true", "yes", "1", "on", ""] {
        assert_eq!(refused(&flag, json!({ "b": wrong })), ["/b"], "{wrong}");
    }
    assert_eq!(refused(&flag, json!({ "b": 1 })), ["/b"]);
}

#[test]
fn the_text_of_a_list_or_an_object_is_read_as_strictly_as_any_other() {
    let members = json!({
        "tags": { "type": "array", "items": { "type": "string" } },
        "filter": { "type": "object", "properties": { "n": { "type": "integer" } }, "additionalProperties": false },
    });
    let json_text = keys(&["json_as_string"], members.clone());
    assert_taken(
        &json_text,
        json!({ "tags": r#"["red", "blue"]"# }),
        json!({ "tags": ["red", "blue"] }),
        &["json_as_string at /tags"],
    );
    assert_taken(
        &json_text,
        json!({ "filter": " {\"n\": 1.0}\n" }),
        json!({ "filter": { "n": 1 } }),
        &["json_as_string at /filter"],
    );
    for wrong in
        [r#"{"n":1,}"#, r#"{"n":1,"n":2}"#, r#"{"n":1} {"n":2}"#, r#"{"n":"1"}"#, r#"{"m":1}"#, "", "null", "[1]"]
    {
        assert_eq!(refused(&json_text, json!({ "filter": wrong })), ["/filter"], "{wrong}");
    }
    assert_eq!(refused(&json_text, json!({ "tags": r#"[red]"# })), ["/tags"]);
    assert_eq!(refused(&json_text, json!({ "tags": "red" })), ["/tags"], "a word is no list of one");
    // Several leniencies meet within each other.
    let both = keys(&["json_as_string", "integer_as_string"], members);
    assert_taken(
        &both,
        json!({ "filter": r#"{"n":"1"}"# }),
        json!({ "filter": { "n": 1 } }),
        &["json_as_string at /filter", "integer_as_string at /filter/n"],
    );
}

#[test]
fn no_text_is_opened_where_a_text_is_allowed_even_one_of_another_form() {
    let place = json!({ "anyOf": [{ "type": "object" }, { "type": "string", "pattern": "^[a-z]+$" }] });
    let keys = keys(&["json_as_string"], json!({ "v": place }));
    assert_eq!(refused(&keys, json!({ "v": "{\"a\":1}" })), ["/v"]);
}

#[test]
fn texts_within_texts_keep_the_bounds_of_the_whole() {
    let nested = json!({ "type": "array", "items": { "$ref": "#/properties/v" } });
    let contract = with(keys(&["json_as_string"], json!({ "v": nested })), json!({ "arguments": { "depth": 6 } }));
    // The text stands one bracket deep, so that five may be open in it.
    let deep = |levels: usize| json!({ "v": "[".repeat(levels) + &"]".repeat(levels) });
    assert!(admit(&contract, &deep(5).to_string()).is_ok());
    assert_eq!(refused(&contract, deep(6)), ["/v"]);
    let many = with(
        keys(&["json_as_string"], json!({ "a": { "type": "object" }, "b": { "type": "object" } })),
        json!({ "arguments": { "members": 5 } }),
    );
    assert!(admit(&many, r#"{"a": "{\"x\":1,\"y\":1,\"z\":1}"}"#).is_ok());
    assert!(admit(&many, r#"{"a": "{\"x\":1,\"y\":1}", "b": "{\"x\":1}"}"#).is_ok());
    assert!(admit(&many, r#"{"a": "{\"x\":1,\"y\":1}", "b": "{\"x\":1,\"y\":1}"}"#).is_err());
}

#[test]
fn null_for_an_optional_member_that_takes_none_is_left_out() {
    let properties = json!({
        "room": { "type": "string" }, "note": { "type": ["string", "null"] },
        "host": { "type": "object", "properties": { "email": { "type": "string" }, "name": { "type": "string" } },
                  "required": ["name"] },
    });
    let mut contract = keys(&["null_as_absent"], properties);
    contract["input"]["required"] = json!(["room"]);
    assert_taken(
        &contract,
        json!({ "room": "B2", "note": null, "host": null }),
        json!({ "room": "B2", "note": null }),
        &["null_as_absent at /host"],
    );
    assert_taken(
        &contract,
        json!({ "room": "B2", "host": { "name": "Al", "email": null } }),
        json!({ "room": "B2", "host": { "name": "Al" } }),
        &["null_as_absent at /host/email"],
    );
    assert_eq!(refused(&contract, json!({ "room": null })), ["/room"], "a member that must be there");
    assert_eq!(refused(&contract, json!({ "room": "B2", "host": { "name": null } })), ["/host/name"]);
    assert_eq!(refused(&contract, json!({ "room": "B2", "rom": null })), ["/rom"], "a misspelled member is told");
    let list = keys(&["null_as_absent"], json!({ "list": { "type": "array", "items": { "type": "integer" } } }));
    assert_eq!(refused(&list, json!({ "list": [1, null] })), ["/list/1"], "an item is no member");
}

#[test]
fn white_space_is_taken_off_only_where_the_text_does_not_fit_with_it() {
    let contract = keys(
        &["trim"],
        json!({
            "city": { "enum": ["Leeds", "Lima"] }, "id": { "type": "string", "pattern": "^ord_[0-9]+$" },
            "text": { "type": "string" }, "n": { "type": "integer" },
        }),
    );
    assert_taken(
        &contract,
        json!({ "city": " Leeds\n", "id": "ord_1 " }),
        json!({ "city": "Leeds", "id": "ord_1" }),
        &["trim at /city", "trim at /id"],
    );
    assert_taken(&contract, json!({ "text": "  as it is " }), json!({ "text": "  as it is " }), &[]);
    assert_taken(&contract, json!({ "text": "a line\n" }), json!({ "text": "a line" }), &["trim at /text"]);
    assert_eq!(refused(&contract, json!({ "city": "leeds " })), ["/city"]);
    assert_eq!(refused(&contract, json!({ "n": " 5 " })), ["/n"]);
    // One at a place: a text with blanks is no spelling of a number.
    let both = keys(&["trim", "integer_as_string"], json!({ "n": { "type": "integer" } }));
    assert_eq!(refused(&both, json!({ "n": " 5 " })), ["/n"]);
}

#[test]
fn what_stands_around_the_arguments_is_taken_off_by_name() {
    let contract = keys(
        &["code_fence", "trailing_token", "json_as_string", "integer_as_string"],
        json!({ "n": { "type": "integer" } }),
    );
    let used = |text: &str| -> Vec<String> {
        let taken = admit(&contract, text).unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));
        assert_eq!(taken.canonical(), r#"{"n":1}"#);
        taken.leniencies().iter().map(ToString::to_string).collect()
    };
    assert_eq!(used("```json\n{\"n\": 1}\n```"), ["code_fence"]);
    assert_eq!(used("{\"n\": 1}</tool_call>"), ["trailing_token"]);
    assert_eq!(used(r#""{\"n\": 1}""#), ["json_as_string"]);
    assert_eq!(used("```\n{\"n\": \"1\"}</s>\n```"), ["code_fence", "trailing_token", "integer_as_string at /n"]);
    assert!(used("{\"n\": 1}").is_empty());
    let strict = keys(&[], json!({ "n": { "type": "integer" } }));
    for (text, code) in [
        ("```json\n{\"n\": 1}\n```", "code_fence"),
        ("{\"n\": 1}</tool_call>", "trailing_data"),
        (r#""{\"n\": 1}""#, "double_encoded"),
        // With leniencies or without: what was wrong is told of the text as it was sent.
        ("```json\n{\"n\": 1,}\n```", "code_fence"),
        ("{\"n\": 1}{\"n\": 2}", "trailing_data"),
    ] {
        let refusal = admit(&strict, text).unwrap_err();
        assert_eq!((refusal.code(), refusal.problem_list()[0].code.as_str()), (Code::InvalidJson, code), "{text}");
        if let Err(other) = admit(&contract, text) {
            assert_eq!(serde_json::to_value(other).unwrap(), serde_json::to_value(refusal).unwrap(), "{text}");
        }
    }
}

#[test]
fn the_branch_that_a_tag_or_a_type_tells_is_read_and_of_others_only_the_one_that_can() {
    let branch = |kind: &str, n: Value| json!({ "properties": { "kind": { "const": kind }, "n": n }, "required": ["kind", "n"], "additionalProperties": false });
    let tagged =
        json!({ "oneOf": [branch("a", json!({ "type": "integer" })), branch("b", json!({ "type": "string" }))] });
    let optional = json!({ "anyOf": [
        { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] }, { "type": "null" }] });
    let untagged = json!({ "anyOf": [
        { "type": "object", "properties": { "x": { "type": "integer" } }, "required": ["x"] },
        { "type": "object", "properties": { "y": { "type": "integer" } }, "required": ["y"] }] });
    let contract =
        keys(&["integer_as_string"], json!({ "tagged": tagged, "optional": optional, "untagged": untagged }));
    assert_taken(
        &contract,
        json!({ "tagged": { "kind": "a", "n": "5" } }),
        json!({ "tagged": { "kind": "a", "n": 5 } }),
        &["integer_as_string at /tagged/n"],
    );
    assert_taken(
        &contract,
        json!({ "tagged": { "kind": "b", "n": "5" } }),
        json!({ "tagged": { "kind": "b", "n": "5" } }),
        &[],
    );
    assert_taken(
        &contract,
        json!({ "optional": { "n": "5" } }),
        json!({ "optional": { "n": 5 } }),
        &["integer_as_string at /optional/n"],
    );
    assert_taken(
        &contract,
        json!({ "untagged": { "x": "5" } }),
        json!({ "untagged": { "x": 5 } }),
        &["integer_as_string at /untagged/x"],
    );
    // Either of two would do: nobody can tell which was meant.
    assert!(!refused(&contract, json!({ "untagged": { "x": "5", "y": "6" } })).is_empty());
    // One fits already, so the other was free text.
    assert_taken(
        &contract,
        json!({ "untagged": { "x": 5, "y": "6" } }),
        json!({ "untagged": { "x": 5, "y": "6" } }),
        &[],
    );
    let beside = json!({ "untagged": { "x": 5, "y": "6" }, "optional": { "n": "7" } });
    assert_taken(
        &contract,
        beside,
        json!({ "untagged": { "x": 5, "y": "6" }, "optional": { "n": 7 } }),
        &["integer_as_string at /optional/n"],
    );
}

#[test]
fn places_behind_references_and_conditions_of_members_are_found() {
    let contract = with(
        keys(&["integer_as_string"], json!({})),
        json!({ "input": {
        "$defs": { "tree": { "type": "object", "properties": {
            "n": { "type": "integer" }, "kids": { "type": "array", "items": { "$ref": "#/$defs/tree" } } } } },
        "allOf": [{ "properties": { "root": { "$ref": "#/$defs/tree" } } }],
        "patternProperties": { "^x_": { "type": "integer" } },
        "properties": { "map": { "type": "object", "additionalProperties": { "type": "integer" } } },
        "unevaluatedProperties": false,
    } }),
    );
    assert_taken(
        &contract,
        json!({ "root": { "n": "1", "kids": [{ "n": "2" }, { "kids": [{ "n": "3" }] }] }, "x_a": "4", "map": { "k": "5" } }),
        json!({ "root": { "n": 1, "kids": [{ "n": 2 }, { "kids": [{ "n": 3 }] }] }, "x_a": 4, "map": { "k": 5 } }),
        &[
            "integer_as_string at /map/k",
            "integer_as_string at /root/kids/0/n",
            "integer_as_string at /root/kids/1/kids/0/n",
            "integer_as_string at /root/n",
            "integer_as_string at /x_a",
        ],
    );
    assert_eq!(refused(&contract, json!({ "stranger": "4" })), ["/stranger"]);
}
