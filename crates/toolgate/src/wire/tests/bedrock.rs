//! `bedrock-converse`: what stands in its form alone.

use super::*;

const DIALECT: Dialect = Dialect::Bedrock;

#[test]
fn a_response_gives_its_tool_uses_and_none_that_the_provider_runs_itself() {
    let calls = [("tooluse_a1", "get_order", r#"{"order_id" : "ord_4821"}"#), ("tooluse_a2", "list_regions", "{}")];
    assert_eq!(whole(&read(DIALECT, BEDROCK_RESPONSE)), calls);
}

#[test]
fn a_message_its_content_and_one_block_by_itself_are_read_alike() {
    let block = simple_call(DIALECT, "t", "n");
    for message in [
        format!(r#"{{"role":"assistant","content":[{block}]}}"#),
        format!(" [{block}]"),
        format!(" {block} "),
        message(DIALECT, std::slice::from_ref(&block)),
    ] {
        assert_eq!(whole(&read(DIALECT, &message)), [("t", "n", "{}")], "{message}");
    }
}

#[test]
fn a_block_is_a_call_and_nothing_beside_it() {
    let beside = simple_call(DIALECT, "t", "n").replacen('{', r#"{"text":"hi","#, 1);
    assert_eq!(problems(&read(DIALECT, &message(DIALECT, &[beside])), 0), [("/text", "additional_property")]);
}

#[test]
fn the_answers_are_one_message_and_a_refusal_has_the_status_of_an_error() {
    let calls = [simple_call(DIALECT, "t1", "a"), simple_call(DIALECT, "t2", "b")];
    let (_, asked) = read(DIALECT, &message(DIALECT, &calls)).open();
    let first = result_of(r#"{"total":1.10}"#);
    let text = serde_json::to_string(&first).unwrap();
    let messages = asked.answer(&[Ok(first), Ok(refused(Refusal::before(Code::Forbidden)))]);
    assert_eq!((messages.len(), &messages[0]["role"]), (1, &json!("user")));
    let blocks = messages[0]["content"].as_array().unwrap();
    assert_eq!(blocks[0], json!({"toolResult": {"toolUseId": "t1", "content": [{"text": text}]}}));
    let second = &blocks[1]["toolResult"];
    assert_eq!((&second["toolUseId"], &second["status"]), (&json!("t2"), &json!("error")));
}

#[test]
fn a_message_that_is_not_one_says_what_and_where_and_what_to_do() {
    for (message, told) in [
        (r#"{"message":"Too many requests"}"#, "neither a response nor a message with content at line 1 column 1"),
        (r#"{"output":{}}"#, "an output without a message at line 1 column 1"),
        (r#"{"output":{"message":{"role":"user","content":[]}}}"#, "a message that is not the assistant's at line 1"),
        (r#"{"role":"assistant","content":"words"}"#, "content: expected an array, found a string at line 1 column 31"),
        (r#"["call"]"#, "a content block: expected an object, found a string at line 1 column 2"),
    ] {
        let fault = fault(DIALECT, message);
        assert!(fault.starts_with(told), "{fault}\n{message}");
    }
}

#[test]
fn the_dialect_has_a_short_name() {
    assert_eq!(Dialect::parse("bedrock"), Some(DIALECT));
    assert_eq!(DIALECT.as_str(), "bedrock-converse");
}
