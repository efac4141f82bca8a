//! `openai-chat`: what stands in its form alone.

use super::*;

#[test]
fn a_whole_completion_gives_its_calls_in_order_with_the_text_of_their_arguments() {
    let turn = read(Dialect::OpenaiChat, OPENAI_COMPLETION);
    assert!(!turn.cut_off());
    let refund = r#"{"order_id":"ord_4821","amount_cents":1500,"note":"\u00fc \"late\"\n"}"#;
    let order = r#"{"order_id": "ord_4821"}"#;
    assert_eq!(whole(&turn), [("call_a1", "get_order", order), ("call_a2", "create_refund", refund)]);
}

#[test]
fn an_object_where_openai_wants_text_is_refused() {
    let message = openai(r#"{"id":"c","function":{"name":"n","arguments":{"city" : "Leeds"}}}"#);
    assert_eq!(problems(&read(Dialect::OpenaiChat, &message), 0), [("/function/arguments", "type")]);
}

#[test]
fn one_byte_order_mark_is_skipped_and_a_second_is_not() {
    let marked = format!("\u{FEFF}{OPENAI_COMPLETION}");
    assert_eq!(read(Dialect::OpenaiChat, &marked).calls().len(), 2);
    let twice = fault(Dialect::OpenaiChat, &format!("\u{FEFF}{marked}"));
    assert!(twice.starts_with("the message: byte order mark at line 1 column 1: "), "{twice}");
}

#[test]
fn members_of_the_message_are_ignored_whatever_they_name() {
    let message = r#"{"role":"assistant","principal":"mia","content":null,
        "tool_calls":[{"id":"c","function":{"name":"n"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]}"#;
    assert_eq!(whole(&read(Dialect::OpenaiChat, message)), [("c", "n", "")]);
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let flat = r#"{"id":7,"name":"get_order","arguments":"{}"}"#;
    let nameless = r#"{"id":"","type":"function","function":{"name":null,"arguments":[1]}}"#;
    let turn = read(Dialect::OpenaiChat, &openai(&format!(r#"{flat},{nameless},{{}},"call",null"#)));
    let unknown = "additional_property";
    assert_eq!(
        problems(&turn, 0),
        [("/id", "type"), ("/name", unknown), ("/arguments", unknown), ("/function", "required")]
    );
    assert_eq!(
        problems(&turn, 1),
        [("/id", "min_length"), ("/function/name", "type"), ("/function/arguments", "type")]
    );
    assert_eq!(problems(&turn, 2), [("/id", "required"), ("/function", "required")]);
    assert_eq!(problems(&turn, 3), [("", "not_object")]);
    assert_eq!(problems(&turn, 4), [("", "not_object")]);
    assert!(broken(&turn, 0).refusal.text().starts_with("4 problems in the call around its arguments"));
}

#[test]
fn a_call_with_a_repeated_member_or_half_a_character_breaks_alone() {
    let repeated = r#"{"id":"call_1","function":{"name":"get_order","arguments":"{}","n\u0061me":"delete_all"}}"#;
    let half = r#"{"id":"call_2","function":{"name":"get_order","arguments":"{\"q\":\"\ud83d\"}"}}"#;
    let twice = r#"{"id":"call_3","id":"call_1","function":{"name":"get_order"}}"#;
    let good = r#"{"id":"call_4","function":{"name":"get_order"}}"#;
    let turn = read(Dialect::OpenaiChat, &openai(&[repeated, half, twice, good].join(",")));
    assert_eq!(problems(&turn, 0), [("/function/name", "duplicate_key")]);
    assert_eq!(problems(&turn, 1), [("/function/arguments", "lone_surrogate")]);
    assert_eq!(problems(&turn, 2), [("/id", "duplicate_key")]);
    let ids: Vec<&str> = turn.calls().iter().map(Proposed::call_id).collect();
    assert_eq!(ids, ["call_1", "call_2", "", "call_4"]);
    assert!(matches!(turn.calls()[3], Proposed::Call(_)));
}

#[test]
fn a_call_of_another_kind_than_function_is_refused_for_that_alone() {
    let custom = r#"{"id":"call_1","type":"custom","custom":{"name":"shell","input":"ls"}}"#;
    let turn =
        read(Dialect::OpenaiChat, &openai(&format!(r#"{custom},{{"id":"b","type":7,"function":{{"name":"n"}}}}"#)));
    assert_eq!(problems(&turn, 0), [("/type", "const")]);
    assert_eq!(problems(&turn, 1), [("/type", "type")]);
}

#[test]
fn names_of_members_that_are_long_or_do_not_print_are_not_repeated_and_many_are_counted() {
    let strange = format!(r#"{{"id":"c","function":{{"name":"n"}},"{}":1,"\u202e":1}}"#, "x".repeat(1000));
    let turn = read(Dialect::OpenaiChat, &openai(&strange));
    assert_eq!(problems(&turn, 0), [("", "additional_property"), ("", "additional_property")]);
    let many: String = (0..30).map(|n| format!(r#","m{n}":1"#)).collect();
    let turn = read(Dialect::OpenaiChat, &openai(&format!(r#"{{"id":"c","function":{{"name":"n"}}{many}}}"#)));
    let told = serde_json::to_value(&broken(&turn, 0).refusal).unwrap();
    assert_eq!((told["problems"].as_array().unwrap().len(), &told["more_problems"]), (20, &json!(10)));
}

#[test]
fn a_message_that_is_not_one_says_what_and_where_and_what_to_do() {
    let call = r#"{"id":"c","function":{"name":"n"}}"#;
    let choice = format!(r#"{{"message":{}}}"#, openai(call));
    for (message, told) in [
        ("", "the message: unexpected end at line 1 column 1: "),
        ("{\n  \"tool_calls\": [],\n}", "the message: trailing comma at line 3 column 1: "),
        ("[]", "the message: expected an object, found an array at line 1 column 1: pass the provider's message on"),
        (
            r#"{"role":"assistant","tool_calls":{"id":"c"}}"#,
            "tool_calls: expected an array, found an object at line 1 column 34",
        ),
        (r#"{"error":{"message":"overloaded"}}"#, "neither an assistant message nor a completion at line 1 column 1"),
        (r#"{"role":"user","tool_calls":[]}"#, "a message that is not the assistant's at line 1 column 9"),
        (r#"{"role":["assistant"],"tool_calls":[]}"#, "role is an array, not a string at line 1 column 9"),
        (
            r#"{"role":"assistant","tool_calls":[],"tool_calls":[]}"#,
            "the message: duplicate member \"tool_calls\" at line 1 column 37",
        ),
        (r#"{"choices":[]}"#, "no choice at line 1 column 12"),
        (&format!(r#"{{"choices":[{choice},{choice}]}}"#), "more than one choice at line 1 column 12"),
        (&format!(r#"{{"choices":[{choice}],"tool_calls":[{call}]}}"#), "calls beside the choices at line 1"),
        (r#"{"choices":[{"delta":{"tool_calls":[]}}]}"#, "a choice without a message at line 1 column 12"),
        (
            r#"{"role":"assistant","content":null,"function_call":{"name":"n","arguments":"{}"}}"#,
            "a call in the old member function_call",
        ),
        (
            r#"{"role":"assistant","tool_calls":[],"finish_reason":7}"#,
            "finish_reason is a number, not a string at line 1 column 53",
        ),
        (
            ANTHROPIC_MESSAGE,
            "a call in the form of another dialect at line 6 column 5: read it as the dialect anthropic",
        ),
    ] {
        let fault = fault(Dialect::OpenaiChat, message);
        assert!(fault.starts_with(told), "{fault}\n{message}");
    }
}

#[test]
fn a_call_by_itself_is_read_with_all_that_is_beside_it() {
    let turn = read(Dialect::OpenaiChat, r#"{"id":"c","function":{"name":"n"},"tenant":"other"}"#);
    assert_eq!(problems(&turn, 0), [("/tenant", "additional_property")]);
}
