//! Leniencies: what each takes, what it never takes, and that a right call is never touched.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate::admission::{Admission, EffectiveArguments};
use toolgate::backend::Context;
use toolgate::contract::Contract;
use toolgate::gate::BuildError;
use toolgate::json::Limits;
use toolgate::ledger::Store;
use toolgate::refusal::{Code, Refusal};
use toolgate::schema::Problem;
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Tool};

/// A read tool with these leniencies, whose arguments have these members, none of them required.
fn keys(lenient: &[&str], properties: Value) -> Value {
    json!({
        "description": "A tool.", "effect": "read", "lenient": lenient,
        "input": { "properties": properties },
    })
}

fn with(mut keys: Value, more: Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        keys[key] = value.clone();
    }
    keys
}

fn admission(keys: &Value) -> Admission {
    let mut admission = Admission::new(Limits::default());
    admission.add(Contract::parse("tool", keys).unwrap_or_else(|problems| panic!("{problems:?}"))).unwrap();
    admission
}

fn admit(keys: &Value, text: &str) -> Result<EffectiveArguments, Refusal> {
    admission(keys).admit(&Call::new("", "tool", text))
}

/// The effective arguments and what was used for them.
fn taken(keys: &Value, arguments: Value) -> (Value, Vec<String>) {
    let taken = admit(keys, &arguments.to_string()).unwrap_or_else(|refusal| panic!("{arguments}: {refusal:?}"));
    (Value::Object(taken.members().clone()), taken.leniencies().iter().map(ToString::to_string).collect())
}

#[track_caller]
fn assert_taken(keys: &Value, sent: Value, meant: Value, used: &[&str]) {
    assert_eq!(taken(keys, sent.clone()), (meant.clone(), used.iter().map(|u| (*u).to_owned()).collect()), "{sent}");
    // The same call, written right, is the same call.
    let (sent, right) = (admit(keys, &sent.to_string()).unwrap(), admit(keys, &meant.to_string()).unwrap());
    assert_eq!(sent.digest(), right.digest());
    assert!(right.leniencies().is_empty(), "{meant} is right as it stands");
}

/// The places of the problems for which a call is refused.
#[track_caller]
fn refused(keys: &Value, sent: Value) -> Vec<String> {
    let refusal = admit(keys, &sent.to_string()).expect_err(&sent.to_string());
    assert_eq!(refusal.code(), Code::InvalidArguments, "{sent}");
    refusal.problem_list().iter().map(|problem| problem.at.clone()).collect()
}

/// The faults of a contract: place and hint.
fn faults(keys: &Value) -> Vec<(String, String)> {
    let told = |problem: &Problem| (problem.at.clone(), problem.hint.clone().unwrap_or_default());
    Contract::parse("tool", keys).expect_err("a fault").iter().map(told).collect()
}

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
fn a_near_name_is_taken_where_it_can_be_of_one_tool_alone() {
    let tool = |lenient: &[&str]| keys(lenient, json!({}));
    let admission_of = |tools: &[(&str, Value)]| {
        let mut admission = Admission::new(Limits::default());
        for (name, keys) in tools {
            admission.add(Contract::parse(name, keys).unwrap()).unwrap();
        }
        admission
    };
    let near = &["near_tool_name"];
    let admission = admission_of(&[("find_files", tool(near)), ("web-fetch", tool(near)), ("send_mail", tool(&[]))]);
    let named = |name: &str| {
        let taken = admission.admit(&Call::new("", name, "{}"));
        taken.map(|taken| {
            let used: Vec<&str> = taken.leniencies().iter().map(|used| used.by.as_str()).collect();
            (taken.tool().to_owned(), used.join(" "), taken.digest())
        })
    };
    let right = named("find_files").unwrap();
    assert_eq!(right.1, "");
    for name in ["find_files ", "FindFiles", "find-files", "find_file", "functions.find_files"] {
        let (tool, used, digest) = named(name).unwrap();
        assert_eq!((tool.as_str(), used.as_str(), digest), ("find_files", "near_tool_name", right.2), "{name}");
    }
    for name in ["fetch", "send-mail", "send_email", "mail", "", "print(find_files(glob='*'))", "delete_everything"] {
        assert_eq!(named(name).unwrap_err().code(), Code::UnknownTool, "{name}");
    }
    // Two that are near, one of which takes no near name: what was meant cannot be told.
    let admission = admission_of(&[("get_order", tool(near)), ("get_orders", tool(&[]))]);
    assert_eq!(admission.admit(&Call::new("", "get_ordes", "{}")).unwrap_err().code(), Code::UnknownTool);
    assert_eq!(admission.admit(&Call::new("", "GetOrder", "{}")).unwrap().tool(), "get_order");
}

#[test]
fn the_only_tool_that_is_seen_is_not_run_for_its_opposite() {
    let near = &["near_tool_name"];
    for (known, said) in [
        ("create_refund", ["delete_refund", "undo_create_refund", "dry_run_create_refund", "refund"]),
        ("enable_user", ["disable_user", "dont_enable_user", "unable_user", "user"]),
        ("delete_order", ["order", "undelete_order", "undo_delete_order", "get_order"]),
    ] {
        let mut admission = Admission::new(Limits::default());
        admission.add(Contract::parse(known, &keys(near, json!({}))).unwrap()).unwrap();
        for name in said {
            let refusal = admission.admit(&Call::new("", name, "{}")).unwrap_err();
            assert_eq!(refusal.code(), Code::UnknownTool, "{name} for {known}");
        }
    }
    // A hint may be wrong, and says so: whoever reads it decides.
    let mut admission = Admission::new(Limits::default());
    admission.add(Contract::parse("enable_user", &keys(near, json!({}))).unwrap()).unwrap();
    let refusal = admission.admit(&Call::new("", "disable_user", "{}")).unwrap_err();
    assert!(serde_json::to_string(&refusal).unwrap().contains("did you mean enable_user?"), "{refusal:?}");
}

#[test]
fn a_write_is_lenient_only_where_that_is_said_twice() {
    let properties =
        json!({ "n": { "type": "integer" }, "m": { "type": "integer", "x-lenient": ["integer_as_string"] } });
    let once = with(keys(&["integer_as_string", "trim"], properties), json!({ "effect": "write" }));
    assert_eq!(refused(&once, json!({ "n": "1" })), ["/n"]);
    assert_eq!(refused(&once, json!({ "m": "1" })), ["/m"]);
    let twice = with(once.clone(), json!({ "lenient_for_write": ["integer_as_string", "trim"] }));
    assert_taken(
        &twice,
        json!({ "n": "1", "m": "2" }),
        json!({ "n": 1, "m": 2 }),
        &["integer_as_string at /m", "integer_as_string at /n"],
    );
    // A gate does not take a contract that says what never applies.
    let tool = |keys: &Value| {
        let tool = Tool::write("tool", |arguments: Value, _: &Context| async move { Ok(arguments) });
        keys.as_object().unwrap().iter().fold(tool, |tool, (key, value)| tool.key(key, value.clone()))
    };
    let check = |keys: &Value| match Gate::builder().tool(tool(keys)).check(&[]) {
        Ok(()) => Vec::new(),
        Err(BuildError::Faults { tools, .. }) => {
            tools.into_iter().map(|fault| (fault.problem.at, fault.problem.hint.unwrap())).collect()
        }
        Err(other) => panic!("{other}"),
    };
    assert_eq!(check(&twice), []);
    let named = |name: &str| format!("lenient_for_write = [\"{name}\"]");
    assert_eq!(
        check(&once),
        [
            ("/lenient/0".to_owned(), named("integer_as_string")),
            ("/lenient/1".to_owned(), named("trim")),
            ("/input".to_owned(), named("integer_as_string")),
        ]
    );
}

#[test]
fn a_member_can_name_its_own_leniencies() {
    let contract = keys(
        &["trim"],
        json!({
            "a": { "type": "integer", "x-lenient": ["integer_as_string"] },
            "b": { "type": "integer" },
            "list": { "type": "array", "items": { "type": "object", "properties": {
                "on": { "type": "boolean", "x-lenient": ["boolean_as_string"] } } } },
            "union": { "anyOf": [{ "type": "integer", "x-lenient": ["integer_as_string"] }, { "type": "null" }] },
        }),
    );
    assert_taken(
        &contract,
        json!({ "a": "1", "list": [{ "on": "true" }, { "on": false }], "union": "2" }),
        json!({ "a": 1, "list": [{ "on": true }, { "on": false }], "union": 2 }),
        &["integer_as_string at /a", "boolean_as_string at /list/0/on", "integer_as_string at /union"],
    );
    assert_eq!(refused(&contract, json!({ "a": "1", "b": "2" })), ["/b"], "what is mended is not told again");
}

#[test]
fn an_imported_schema_loosens_nothing() {
    let properties = json!({ "n": { "type": "integer", "x-lenient": ["integer_as_string", "anything"] } });
    let contract = with(keys(&[], properties), json!({ "imported": true }));
    assert_eq!(refused(&contract, json!({ "n": "1" })), ["/n"]);
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

#[test]
fn a_secret_that_was_mended_is_nowhere_but_in_the_arguments() {
    let secret = json!({ "type": "integer", "x-secret": true });
    let contract = keys(&["integer_as_string"], json!({ "pin": secret, "n": { "type": "integer" } }));
    let taken = admit(&contract, r#"{"pin": "4711"}"#).unwrap();
    assert_eq!(taken.members()["pin"], 4711);
    assert_eq!(taken.masked(), json!({ "pin": "[secret]" }));
    assert!(!format!("{:?}", taken.leniencies()).contains("4711"));
    let refusal = admit(&contract, r#"{"pin": "4711", "n": "x"}"#).unwrap_err();
    assert!(!format!("{refusal:?}").contains("4711"));
}

#[test]
fn what_a_contract_says_wrongly_of_leniencies_is_told() {
    let fault = |keys: Value, at: &str, hint: &str| {
        let faults = faults(&keys);
        assert!(faults.iter().any(|(place, said)| place == at && said.contains(hint)), "{faults:?}");
    };
    let n = json!({ "n": { "type": "integer" } });
    fault(keys(&["integer_as_strng"], n.clone()), "/lenient/0", "did you mean integer_as_string?");
    fault(keys(&["everything"], n.clone()), "/lenient/0", "known: integer_as_string, ");
    fault(keys(&["trim", "trim"], n.clone()), "/lenient/1", "");
    fault(with(keys(&[], n.clone()), json!({ "lenient": "trim" })), "/lenient", "");
    fault(with(keys(&["trim"], n.clone()), json!({ "lenient_for_write": ["trim"] })), "/lenient_for_write", "");
    let write =
        with(keys(&["trim"], n.clone()), json!({ "effect": "write", "lenient_for_write": ["trim", "code_fence"] }));
    fault(write, "/lenient_for_write/1", "name it under `lenient`");
    let member = |named: Value| keys(&[], json!({ "n": { "type": "integer", "x-lenient": named } }));
    fault(member(json!(["near_tool_name"])), "/input/properties/n/x-lenient/0", "`lenient` of the contract");
    fault(member(json!(["code_fence"])), "/input/properties/n/x-lenient/0", "`lenient` of the contract");
    fault(member(json!(["trimm"])), "/input/properties/n/x-lenient/0", "did you mean trim?");
    fault(member(json!("trim")), "/input/properties/n/x-lenient", "");
    fault(member(json!([1])), "/input/properties/n/x-lenient/0", "");
    let top = with(keys(&[], n.clone()), json!({ "input": { "properties": n, "x-lenient": ["trim"] } }));
    fault(top, "/input/x-lenient/0", "`lenient` of the contract");
    let output =
        json!({ "output": { "type": "object", "properties": { "r": { "type": "integer", "x-lenient": ["trim"] } } } });
    fault(with(keys(&[], json!({})), output), "/output", "");
}

#[test]
fn defaults_are_filled_in_only_where_the_contract_says_so() {
    let properties = json!({
        "limit": { "type": "integer", "default": 20 },
        "query": { "type": "string", "default": "never, since it is required" },
        "sort": { "anyOf": [{ "enum": ["up", "down"] }, { "type": "null" }], "default": null },
        "page": { "type": "object", "default": { "size": 5, "at": 0 }, "properties": {
            "size": { "type": "integer", "default": 10 }, "at": { "type": "integer", "default": 0 } } },
        "filter": { "type": "object", "properties": { "deep": { "type": "boolean", "default": false } } },
    });
    let mut silent = keys(&["null_as_absent"], properties);
    silent["input"]["required"] = json!(["query"]);
    let sent = json!({ "query": "a", "filter": {} });
    assert_taken(&silent, sent.clone(), sent.clone(), &[]);
    let filling = with(silent, json!({ "fill_defaults": true }));
    let used = ["/limit", "/page", "/sort", "/filter/deep"].map(|at| format!("fill_defaults at {at}"));
    let (arguments, by) = taken(&filling, sent);
    assert_eq!(
        arguments,
        json!({ "query": "a", "filter": { "deep": false }, "limit": 20, "sort": null, "page": { "size": 5, "at": 0 } })
    );
    assert_eq!(
        {
            let mut by = by;
            by.sort();
            by
        },
        {
            let mut used = used.to_vec();
            used.sort();
            used
        }
    );
    // An object that is there has what it lacks filled in; what is there is left alone; an absent object is not made.
    let (arguments, by) = taken(&filling, json!({ "query": "a", "limit": 1, "sort": "up", "page": { "at": 3 } }));
    assert_eq!(arguments, json!({ "query": "a", "limit": 1, "sort": "up", "page": { "at": 3, "size": 10 } }));
    assert_eq!(by, ["fill_defaults at /page/size"]);
    assert_eq!(refused(&filling, json!({})), ["/query"]);
    // What a leniency left out is absent.
    let (arguments, by) = taken(&filling, json!({ "query": "a", "limit": null, "page": {}, "sort": null }));
    assert_eq!(arguments["limit"], 20);
    assert!(by.contains(&"null_as_absent at /limit".to_owned()) && by.contains(&"fill_defaults at /limit".to_owned()));
    // The filled value is part of what makes two calls equal.
    let short = admit(&filling, r#"{"query":"a"}"#).unwrap();
    let whole = admit(&filling, r#"{"query":"a","limit":20,"sort":null,"page":{"size":5,"at":0}}"#).unwrap();
    assert_eq!(short.digest(), whole.digest());
}

#[test]
fn a_default_that_does_not_fit_is_a_fault_or_is_left_out() {
    let wrong =
        with(keys(&[], json!({ "n": { "type": "integer", "default": "20" } })), json!({ "fill_defaults": true }));
    assert_eq!(faults(&wrong)[0].0, "/input/properties/n/default");
    let line =
        with(keys(&[], json!({ "t": { "type": "string", "default": "a\nb" } })), json!({ "fill_defaults": true }));
    assert_eq!(faults(&line)[0].0, "/input/properties/t/default");
    let part = json!({ "page": { "default": {}, "properties": { "size": { "default": 10 } } } });
    let part = with(keys(&[], part), json!({ "fill_defaults": true }));
    assert_eq!(faults(&part), [("/input/properties/page/default".to_owned(), "write the whole value".to_owned())]);
    // Alone each is an annotation, and neither is a fault.
    assert!(Contract::parse("tool", &keys(&[], json!({ "n": { "type": "integer", "default": "20" } }))).is_ok());
    // By id or by name: the default of the other one would not hold beside it.
    let input = json!({
        "properties": { "id": { "type": "integer", "default": 1 }, "name": { "type": "string" }, "n": { "default": 3 } },
        "oneOf": [{ "required": ["id"] }, { "required": ["name"] }],
    });
    let either = with(keys(&[], json!({})), json!({ "input": input, "fill_defaults": true }));
    assert_eq!(
        taken(&either, json!({ "name": "a" })),
        (json!({ "name": "a", "n": 3 }), vec!["fill_defaults at /n".to_owned()])
    );
}

#[test]
fn a_contract_has_bounds_of_its_own() {
    let n = json!({ "list": { "type": "array" } });
    let bound = |bounds: Value| with(keys(&[], n.clone()), json!({ "arguments": bounds }));
    let code = |keys: &Value, text: &str| match admit(keys, text) {
        Ok(_) => "admitted".to_owned(),
        Err(refusal) => refusal.problem_list()[0].code.clone(),
    };
    assert_eq!(code(&bound(json!({ "size": "16B" })), r#"{"list":[1,2,3]}"#), "admitted");
    assert_eq!(code(&bound(json!({ "size": "15B" })), r#"{"list":[1,2,3]}"#), "size");
    assert_eq!(code(&bound(json!({ "depth": 3 })), r#"{"list":[[1]]}"#), "admitted");
    assert_eq!(code(&bound(json!({ "depth": 2 })), r#"{"list":[[1]]}"#), "depth");
    assert_eq!(code(&bound(json!({ "members": 1 })), r#"{"list":[{"a":1}]}"#), "members");
    let long = json!({ "list": vec!["x".repeat(50_000); 21] }).to_string();
    assert_eq!(code(&bound(json!({})), &long), "size");
    assert_eq!(code(&bound(json!({ "size": "2MB" })), &long), "admitted");
    for (bounds, at) in [
        (json!({ "size": "17MB" }), "/arguments/size"),
        (json!({ "size": "0KB" }), "/arguments/size"),
        (json!({ "size": 5 }), "/arguments/size"),
        (json!({ "size": "lots" }), "/arguments/size"),
        (json!({ "depth": 0 }), "/arguments/depth"),
        (json!({ "depth": 65 }), "/arguments/depth"),
        (json!({ "members": -1 }), "/arguments/members"),
        (json!({ "members": 1_000_001 }), "/arguments/members"),
        (json!({ "length": 1 }), "/arguments/length"),
        (json!(5), "/arguments"),
    ] {
        assert_eq!(faults(&bound(bounds.clone()))[0].0, at, "{bounds}");
    }
}

#[tokio::test]
async fn a_hidden_tool_is_as_far_from_every_name_as_one_that_is_not_there() {
    let tool = |name: &str| {
        let tool = Tool::read(name, |arguments: Value, _: &Context| async move { Ok(arguments) });
        let keys = keys(&["near_tool_name"], json!({}));
        keys.as_object().unwrap().iter().fold(tool, |tool, (key, value)| tool.key(key, value.clone()))
    };
    let gate = |names: &[&str]| {
        let policy = r#"permit (principal, action == Action::"find_file", resource);
            permit (principal in Role::"all", action, resource);"#;
        let builder = names.iter().fold(Gate::builder(), |builder, name| builder.tool(tool(name)));
        builder.policy(policy).store(Store::memory()).build().unwrap()
    };
    let alice = Session::new(Principal::new("local", "alice"), "acme");
    let (with, without) = (gate(&["find_file", "find_files", "drop_table"]), gate(&["find_file"]));
    for name in ["find_file", "find_files", "FindFiles", "find_filed", "drop_table", "drop-table", "DropTable", "other"]
    {
        let said = async |gate: &Gate, session: &Session| {
            let reply = gate.call(Call::new("call_1", name, "{}"), session).await.unwrap();
            let mut shown = serde_json::to_value(&reply).unwrap();
            shown["ref"] = Value::Null;
            shown["error"]["ref"] = Value::Null;
            (shown, reply.trace().stages()[0].learned.get("leniencies").cloned())
        };
        assert_eq!(said(&with, &alice).await, said(&without, &alice).await, "{name}");
        // Whoever sees all of them is told by the name alone.
        let boss = alice.clone().role("all");
        let (shown, used) = said(&with, &boss).await;
        let exact = ["find_file", "find_files", "drop_table"].contains(&name);
        let near = ["FindFiles", "drop-table", "DropTable"].contains(&name);
        assert_eq!((shown["ok"] == true, used.is_some()), (exact || near, near), "{name}: {shown}");
    }
}

#[tokio::test]
async fn a_write_by_a_near_name_is_recorded_under_the_name_of_its_tool() {
    let keys = with(
        keys(&["near_tool_name"], json!({ "n": { "type": "integer" } })),
        json!({ "lenient_for_write": ["near_tool_name"], "effect": "write" }),
    );
    let tool = Tool::write("create_refund", |arguments: Value, _: &Context| async move { Ok(arguments) });
    let tool = keys.as_object().unwrap().iter().fold(tool, |tool, (key, value)| tool.key(key, value.clone()));
    let gate = Gate::builder().tool(tool).policy("permit (principal, action, resource);").store(Store::memory());
    let gate = gate.build().unwrap();
    let alice = Session::new(Principal::new("local", "alice"), "acme");
    let reply = gate.call(Call::new("call_1", "CreateRefund", r#"{"n":1}"#), &alice).await.unwrap();
    assert_eq!((reply.is_ok(), reply.tool()), (true, "create_refund"));
    let learned = &reply.trace().stages()[0].learned;
    assert_eq!(learned.get("spelled"), Some(&json!("CreateRefund")));
    assert_eq!(learned.get("leniencies"), Some(&json!([{ "leniency": "near_tool_name", "at": "" }])));
    let again = gate.call(Call::new("call_2", "create_refund", r#"{"n":1}"#), &alice).await.unwrap();
    assert!(again.is_ok() && again.trace().stages()[0].learned.get("spelled").is_none());
    let refused = gate.call(Call::new("call_3", "Create-Refund", r#"{"n":"x"}"#), &alice).await.unwrap();
    assert_eq!((refused.is_ok(), refused.tool()), (false, "create_refund"));
    assert_eq!(refused.trace().stages()[0].learned.get("spelled"), Some(&json!("Create-Refund")));
}

/// Every leniency, for a contract whose places take them.
fn generous() -> Value {
    let item = json!({ "type": "object", "properties": {
        "n": { "type": "integer" }, "on": { "type": "boolean" }, "word": { "enum": ["up", "down"] } },
        "required": ["n"], "additionalProperties": false });
    keys(
        &[
            "integer_as_string",
            "boolean_as_string",
            "json_as_string",
            "null_as_absent",
            "trim",
            "code_fence",
            "trailing_token",
            "near_tool_name",
        ],
        json!({
            "n": { "type": "integer" }, "x": { "type": "number" }, "on": { "type": "boolean" }, "word": { "enum": ["up", "down"] },
            "text": { "type": "string" }, "either": { "type": ["integer", "string", "null"] },
            "items": { "type": "array", "items": item.clone() }, "one": item,
        }),
    )
}

/// Arguments that are right.
fn right() -> impl Strategy<Value = Value> {
    let word = || prop_oneof![Just(json!("up")), Just(json!("down"))];
    let item = || {
        (any::<i64>(), proptest::option::of(any::<bool>()), proptest::option::of(word())).prop_map(|(n, on, word)| {
            let mut item = json!({ "n": n });
            if let Some(on) = on {
                item["on"] = json!(on);
            }
            if let Some(word) = word {
                item["word"] = word;
            }
            item
        })
    };
    let either = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        "[0-9 a-z\\[\\]{}\"]{0,6}".prop_map(Value::from)
    ];
    let text = prop_oneof!["[0-9]{1,4}", "(true|false|null)", " {0,2}[a-z\\[\\]{}\"]{0,6} {0,2}"].prop_map(Value::from);
    let member = |name: &'static str, value: BoxedStrategy<Value>| {
        proptest::option::of(value).prop_map(move |value| value.map(|value| (name.to_owned(), value)))
    };
    (
        member("n", any::<i64>().prop_map(Value::from).boxed()),
        member("x", any::<u64>().prop_map(Value::from).boxed()),
        member("on", any::<bool>().prop_map(Value::from).boxed()),
        member("word", word().boxed()),
        member("text", text.boxed()),
        member("either", either.boxed()),
        member("items", proptest::collection::vec(item(), 0..4).prop_map(Value::from).boxed()),
        member("one", item().boxed()),
    )
        .prop_map(|(a, b, c, d, e, f, g, h)| [a, b, c, d, e, f, g, h].into_iter().flatten().collect())
}

/// Writes places of right arguments otherwise, as models do; `dice` says which.
fn spoiled(value: &Value, name: &str, dice: &mut dyn FnMut() -> bool) -> Value {
    let spoil = !matches!(name, "text" | "either");
    match value {
        Value::Object(members) => {
            let mut members: serde_json::Map<String, Value> =
                members.iter().map(|(name, value)| (name.clone(), spoiled(value, name, dice))).collect();
            if !name.is_empty() && !members.contains_key("on") && dice() {
                members.insert("on".into(), Value::Null);
            }
            let whole = Value::Object(members);
            if !name.is_empty() && dice() { Value::from(whole.to_string()) } else { whole }
        }
        Value::Array(items) => {
            let whole = Value::from(items.iter().map(|item| spoiled(item, "item", dice)).collect::<Vec<_>>());
            if dice() { Value::from(format!(" {whole}\n")) } else { whole }
        }
        Value::Number(_) | Value::Bool(_) if spoil && dice() => Value::from(value.to_string()),
        Value::String(word) if spoil && dice() => Value::from(format!("\t{word} ")),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn what_is_right_is_never_touched(arguments in right()) {
        let taken = admit(&generous(), &arguments.to_string()).unwrap();
        prop_assert!(taken.leniencies().is_empty());
        prop_assert_eq!(Value::Object(taken.members().clone()), arguments);
    }

    #[test]
    fn what_is_spoiled_in_the_named_ways_is_read_as_it_was_meant(arguments in right(), seed: u64, fenced: bool) {
        let mut state = seed | 1;
        let mut dice = || {
            state ^= state << 13; state ^= state >> 7; state ^= state << 17;
            state.is_multiple_of(3)
        };
        let sent = spoiled(&arguments, "", &mut dice);
        let text = if fenced { format!("```json\n{sent}\n```</tool_call>") } else { sent.to_string() };
        let taken = admit(&generous(), &text).unwrap();
        prop_assert_eq!(Value::Object(taken.members().clone()), arguments.clone());
        prop_assert_eq!(taken.digest(), admit(&generous(), &arguments.to_string()).unwrap().digest());
        prop_assert_eq!(taken.leniencies().is_empty(), sent == arguments && !fenced);
        // Without the leniencies the very same call is refused, unless it was right.
        let strict = with(generous(), json!({ "lenient": [] }));
        prop_assert_eq!(admit(&strict, &text).is_ok(), sent == arguments && !fenced);
    }
}
