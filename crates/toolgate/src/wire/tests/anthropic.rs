//! `anthropic`: what stands in its form alone.

use super::*;

#[test]
fn a_message_with_blocks_gives_its_tool_uses_and_nothing_that_only_looks_like_one() {
    let turn = read(Dialect::Anthropic, ANTHROPIC_MESSAGE);
    let calls = [("toolu_01A", "get_order", r#"{"order_id" : "ord_4821"}"#), ("toolu_01B", "list_regions", "{}")];
    assert_eq!(whole(&turn), calls);
    let blocks = r#" [{"type":"tool_use","id":"t","name":"n","input":{"a":1},"cache_control":{"type":"ephemeral"}}]"#;
    assert_eq!(whole(&read(Dialect::Anthropic, blocks)), [("t", "n", r#"{"a":1}"#)]);
}

#[test]
fn a_message_that_ends_in_the_middle_is_a_fault_that_says_so() {
    let cut =
        r#"{"stop_reason":"max_tokens","content":[{"type":"tool_use","id":"tu_1","name":"pay","input":{"amount":50"#;
    let fault = fault(Dialect::Anthropic, cut);
    assert_eq!(
        fault,
        "the message: unexpected end at line 1 column 104: the text stops too early: send the whole of it"
    );
}

#[test]
fn a_block_by_itself_is_read_with_all_that_is_beside_it() {
    let turn = read(Dialect::Anthropic, r#"{"type":"tool_use","id":"t","name":"n","content":[]}"#);
    assert_eq!(problems(&turn, 0), [("/content", "additional_property")]);
}

#[test]
fn a_block_that_may_be_a_call_is_never_passed_over() {
    let block = r#"{"type":"text","type":"tool_use","id":"t","name":"n","input":{}}"#;
    assert_eq!(problems(&read(Dialect::Anthropic, &anthropic(block)), 0), [("/type", "duplicate_key")]);
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let block = r#"{"type":"tool_use","name":"","input":"{\"order_id\":\"ord_1\"}"}"#;
    let turn = read(Dialect::Anthropic, &anthropic(block));
    assert_eq!(problems(&turn, 0), [("/id", "required"), ("/name", "min_length"), ("/input", "type")]);
}

#[test]
fn a_message_that_is_not_one_says_what_and_where_and_what_to_do() {
    let call = r#"{"id":"c","function":{"name":"n"}}"#;
    for (message, told) in [
        (r#"{"role":"assistant"}"#, "a message without content at line 1 column 1"),
        (
            r#"{"role":"assistant","content":{"type":"tool_use"}}"#,
            "content: expected an array, found an object at line 1 column 31",
        ),
        (r#"{"role":"user","content":[]}"#, "a message that is not the assistant's"),
        (r#"{"content":["get_order"]}"#, "a content block: expected an object, found a string at line 1 column 13"),
        (r#"{"content":[{"text":"hi"}]}"#, "a content block without a type at line 1 column 13"),
        (&openai(call), "a message of another dialect at line 1 column 49: read it as the dialect openai-chat"),
        (OPENAI_COMPLETION, "a message of another dialect at line 3 column 14: read it as the dialect openai-chat"),
    ] {
        let fault = fault(Dialect::Anthropic, message);
        assert!(fault.starts_with(told), "{fault}\n{message}");
    }
}
