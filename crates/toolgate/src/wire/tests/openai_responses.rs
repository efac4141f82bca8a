//! `openai-responses`: what stands in its form alone.

use super::*;

const DIALECT: Dialect = Dialect::OpenaiResponses;

#[test]
fn a_response_gives_its_function_calls_and_nothing_that_the_provider_answers_itself() {
    let calls = [("call_a1", "get_order", r#"{"order_id": "ord_4821"}"#), ("call_a2", "list_regions", "")];
    assert_eq!(whole(&read(DIALECT, RESPONSES_RESPONSE)), calls);
}

#[test]
fn the_output_alone_and_one_item_by_itself_are_read_alike() {
    let item = simple_call(DIALECT, "c", "n");
    for message in [format!(" [{item}]"), format!(" {item} "), message(DIALECT, std::slice::from_ref(&item))] {
        assert_eq!(whole(&read(DIALECT, &message)), [("c", "n", "{}")], "{message}");
    }
}

#[test]
fn a_response_without_a_whole_end_runs_nothing() {
    let call = simple_call(DIALECT, "c", "n");
    let item = |status: &str| call.replace(r#""call_id""#, &format!(r#""status":"{status}","call_id""#));
    let words = r#"{"type":"message","role":"assistant","status":"incomplete","content":[]}"#.to_owned();
    let incomplete = r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[CALL]}"#;
    for cut in [
        incomplete.replace("CALL", &call),
        incomplete.replace("max_output_tokens", "content_filter").replace("CALL", &call),
        incomplete.replace(r#""status":"incomplete","#, "").replace("CALL", &call),
        response(DIALECT, std::slice::from_ref(&call), "failed"),
        response(DIALECT, std::slice::from_ref(&call), "cancelled"),
        message(DIALECT, &[item("completed"), item("incomplete")]),
        message(DIALECT, &[item("in_progress")]),
        format!("[{call},{words}]"),
        item("incomplete"),
    ] {
        let turn = read(DIALECT, &cut);
        assert!(turn.cut_off(), "{cut}");
        assert_eq!(broken(&turn, 0).refusal, Refusal::before(Code::TurnTruncated));
    }
    assert_eq!(whole(&read(DIALECT, &item("completed"))).len(), 1);
    for early in ["queued", "in_progress"] {
        let told = fault(DIALECT, &response(DIALECT, std::slice::from_ref(&call), early));
        assert!(told.starts_with("a response that is still being made"), "{told}");
    }
}

#[test]
fn a_call_of_another_kind_that_waits_for_an_answer_breaks_the_message() {
    let call = simple_call(DIALECT, "c", "n");
    for kind in [
        "custom_tool_call",
        "computer_call",
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
        "mcp_approval_request",
        "a_later_call",
    ] {
        let other = format!(r#"{{"type":"{kind}","call_id":"x","name":"n","input":"ls"}}"#);
        let told = fault(DIALECT, &message(DIALECT, &[call.clone(), other]));
        assert!(told.starts_with("a call of another kind than function_call"), "{kind}: {told}");
    }
    let searched = |place: &str| format!(r#"{{"type":"tool_search_call","execution":"{place}","arguments":{{}}}}"#);
    assert_eq!(read(DIALECT, &message(DIALECT, &[searched("server"), call.clone()])).calls().len(), 1);
    assert!(fault(DIALECT, &message(DIALECT, &[searched("client"), call])).starts_with("a call of another kind"));
}

#[test]
fn a_namespace_names_another_tool_and_is_never_ignored() {
    let call = simple_call(DIALECT, "c", "n").replace(r#""call_id""#, r#""namespace":"admin","call_id""#);
    assert_eq!(problems(&read(DIALECT, &call), 0), [("/namespace", "additional_property")]);
}

#[test]
fn a_message_that_is_not_one_says_what_and_where_and_what_to_do() {
    for (message, told) in [
        (r#"{"error":{"code":"x"}}"#, "neither a response nor a function_call at line 1 column 1: send the whole"),
        (r#"[{"call_id":"c"}]"#, "an item without a type at line 1 column 2: give each item its type"),
        (r#"["call"]"#, "a content block: expected an object, found a string at line 1 column 2"),
        (r#"{"output":"words"}"#, "output: expected an array, found a string at line 1 column 11"),
        (r#"{"output":[],"status":1}"#, "status is a number, not a string at line 1 column 23"),
    ] {
        let fault = fault(DIALECT, message);
        assert!(fault.starts_with(told), "{fault}\n{message}");
    }
}
