//! `ollama`: what stands in its form alone.

use super::*;

const DIALECT: Dialect = Dialect::Ollama;

#[test]
fn a_response_gives_its_calls_with_and_without_ids() {
    let calls = [("", "get_order", r#"{"order_id" : "ord_4821"}"#), ("call_x7", "list_regions", "{}")];
    assert_eq!(whole(&read(DIALECT, OLLAMA_RESPONSE)), calls);
}

#[test]
fn a_message_and_one_call_by_itself_are_read_alike() {
    let call = r#"{"function":{"name":"n","arguments":{"a": 1}}}"#;
    for message in [openai(call), format!(" {call} "), message(DIALECT, &[call.to_owned()])] {
        assert_eq!(whole(&read(DIALECT, &message)), [("", "n", r#"{"a": 1}"#)], "{message}");
    }
}

#[test]
fn a_piece_of_a_stream_is_no_message() {
    let piece = OLLAMA_RESPONSE.replace(r#""done": true"#, r#""done": false"#);
    let told = fault(DIALECT, &piece);
    assert!(
        told.starts_with("a piece of a streamed response at line 10 column 34: ask with \"stream\": false"),
        "{told}"
    );
}

#[test]
fn a_call_of_another_kind_than_function_is_refused_for_that_alone() {
    let turn =
        read(DIALECT, &openai(r#"{"type":"custom","custom":{"name":"shell"}},{"type":7,"function":{"name":"n"}}"#));
    assert_eq!((problems(&turn, 0), problems(&turn, 1)), (vec![("/type", "const")], vec![("/type", "type")]));
}

#[test]
fn an_answer_names_its_tool_as_the_message_did_and_has_an_id_where_the_call_has_one() {
    let calls = [call(DIALECT, None, Some(r#""shop_-_a""#), None), simple_call(DIALECT, "c1", "b")];
    let (_, asked) = read(DIALECT, &message(DIALECT, &calls)).open();
    let messages = asked.answer(&[Ok(result_of("{}")), Ok(result_of("{}"))]);
    let of = |index: usize, name: &str| messages[index].get(name).cloned();
    assert_eq!((of(0, "role"), of(0, "tool_name")), (Some(json!("tool")), Some(json!("shop_-_a"))));
    assert_eq!(of(0, "tool_call_id"), None);
    assert_eq!((of(1, "tool_name"), of(1, "tool_call_id")), (Some(json!("b")), Some(json!("c1"))));
}

#[test]
fn a_message_that_is_not_one_says_what_and_where_and_what_to_do() {
    for (message, told) in [
        (
            r#"{"error":"model not found"}"#,
            "neither an assistant message nor a response of /api/chat at line 1 column 1",
        ),
        (
            r#"{"message":{"role":"user","content":"hi"},"done":true}"#,
            "a message that is not the assistant's at line 1",
        ),
        (r#"{"message":"hi","done":true}"#, "message: expected an object, found a string at line 1 column 12"),
        ("[]", "the message: expected an object, found an array at line 1 column 1"),
    ] {
        let fault = fault(DIALECT, message);
        assert!(fault.starts_with(told), "{fault}\n{message}");
    }
}
