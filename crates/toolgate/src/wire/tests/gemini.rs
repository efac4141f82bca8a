//! `gemini`: what stands in its form alone.

use super::*;

const DIALECT: Dialect = Dialect::Gemini;

#[test]
fn a_response_gives_its_function_calls_and_nothing_that_only_looks_like_one() {
    let order = r#"{"order_id" : "ord_4821", "big": 12345678901234567890123}"#;
    let turn = read(DIALECT, GEMINI_RESPONSE);
    assert_eq!(whole(&turn), [("", "get_order", order), ("fc-7", "list_regions", "{}")]);
}

#[test]
fn a_content_its_parts_and_one_part_by_itself_are_read_alike() {
    let part = call(DIALECT, None, Some(r#""n""#), Some("{}"));
    for message in [
        format!(r#"{{"parts":[{part}],"role":"model"}}"#),
        format!(r#"{{"parts":[{part}]}}"#),
        format!(" [{part}]"),
        format!(" {part} "),
        message(DIALECT, std::slice::from_ref(&part)),
    ] {
        assert_eq!(whole(&read(DIALECT, &message)), [("", "n", "{}")], "{message}");
    }
    assert!(read(DIALECT, r#"{"role":"model"}"#).calls().is_empty());
}

#[test]
fn what_a_library_prints_in_snake_case_is_read_and_never_both_spellings_of_one_member() {
    let printed = r#"{"candidates":[{"content":{"parts":[
        {"text":null,"inline_data":null,"thought":null,"thought_signature":"c2ln",
         "function_call":{"id":null,"args":{"a":1},"name":"n","partial_args":null,"will_continue":null}}],
        "role":"model"},"finish_reason":"STOP"}],"prompt_feedback":null}"#;
    assert_eq!(whole(&read(DIALECT, printed)), [("", "n", r#"{"a":1}"#)]);
    assert!(read(DIALECT, &printed.replace("STOP", "MAX_TOKENS")).cut_off());
    let nameless = printed.replace(r#""name":"n","#, "");
    assert_eq!(problems(&read(DIALECT, &nameless), 0), [("/function_call/name", "required")]);
    let both = r#"[{"functionCall":{"name":"a"},"function_call":{"name":"b"}}]"#;
    assert!(fault(DIALECT, both).starts_with("functionCall a second time, as function_call at line 1 column 47"));
    let reasons = printed.replace(r#""finish_reason":"STOP""#, r#""finish_reason":"STOP","finishReason":"STOP""#);
    assert!(fault(DIALECT, &reasons).starts_with("finishReason a second time, as finish_reason"));
}

#[test]
fn a_part_is_a_call_and_nothing_beside_it() {
    for (part, problem) in [
        (r#"{"functionCall":{"name":"n"},"text":"hi"}"#, "/text"),
        (r#"{"functionCall":{"name":"n"},"tenant":null}"#, "/tenant"),
        (r#"{"functionCall":{"name":"n","willContinue":true}}"#, "/functionCall/willContinue"),
        (r#"{"functionCall":{"name":"n","partialArgs":[{"jsonPath":"$.a"}]}}"#, "/functionCall/partialArgs"),
    ] {
        assert_eq!(problems(&read(DIALECT, part), 0), [(problem, "additional_property")]);
    }
}

#[test]
fn a_name_that_is_code_is_a_name_like_any_other() {
    let name = r#""print(default_api.find_files(glob='*.md'))""#;
    let turn = read(DIALECT, &call(DIALECT, None, Some(name), Some("{}")));
    assert_eq!(whole(&turn), [("", "print(default_api.find_files(glob='*.md'))", "{}")]);
}

#[test]
fn only_one_candidate_is_a_turn_and_only_a_stop_is_its_end() {
    let part = simple_call(DIALECT, "c", "n");
    let candidate = |reason: &str| format!(r#"{{"content":{{"parts":[{part}]}}{reason}}}"#);
    let two = format!(r#"{{"candidates":[{},{}]}}"#, candidate(""), candidate(""));
    assert!(fault(DIALECT, &two).starts_with("more than one candidate at line 1 column 15: none ran"));
    assert!(fault(DIALECT, r#"{"candidates":[]}"#).starts_with("no candidate at line 1 column 15"));
    let told = r#"{"candidates":[CANDIDATE]}"#;
    assert_eq!(whole(&read(DIALECT, &told.replace("CANDIDATE", &candidate("")))).len(), 1);
    let blocked = read(DIALECT, r#"{"candidates":[{"finishReason":"SAFETY","index":0}]}"#);
    assert!(blocked.cut_off() && blocked.calls().is_empty());
    let pieces = format!("[{0},{0}]", told.replace("CANDIDATE", &candidate("")));
    assert!(fault(DIALECT, &pieces).starts_with("a piece of a streamed response at line 1 column 2"));
}

#[test]
fn all_answers_of_a_turn_stand_in_one_content_and_those_of_calls_without_an_id_have_none() {
    let calls = [call(DIALECT, None, Some(r#""shop_-_a""#), None), simple_call(DIALECT, "fc-1", "b")];
    let (_, asked) = read(DIALECT, &message(DIALECT, &calls)).open();
    let answers = [Ok(result_of(r#"{"n":18446744073709551615}"#)), Ok(refused(Refusal::before(Code::Forbidden)))];
    let messages = asked.answer(&answers);
    assert_eq!((messages.len(), &messages[0]["role"]), (1, &json!("user")));
    let first = &messages[0]["parts"][0]["functionResponse"];
    assert_eq!((first.get("id"), &first["name"]), (None, &json!("shop_-_a")));
    assert_eq!(first["response"]["result"].to_string(), r#"{"n":18446744073709551615}"#);
    let second = &messages[0]["parts"][1]["functionResponse"];
    assert_eq!((&second["id"], &second["name"]), (&json!("fc-1"), &json!("b")));
    assert_eq!(second["response"]["error"]["code"], json!("forbidden"));
}

#[test]
fn a_message_that_is_not_one_says_what_and_where_and_what_to_do() {
    let call = r#"{"functionCall":{"name":"n"}}"#;
    for (message, told) in [
        (
            r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#,
            "neither a response nor a content of the model at line 1 column 1",
        ),
        (&format!(r#"{{"role":"user","parts":[{call}]}}"#), "a message that is not the model's at line 1 column 9"),
        (
            &format!(r#"{{"role":"model","parts":{call}}}"#),
            "parts: expected an array, found an object at line 1 column 25",
        ),
        (r#"{"parts":["call"]}"#, "a content block: expected an object, found a string at line 1 column 11"),
        (
            &format!(r#"{{"parts":[],"functionCall":{call}}}"#),
            "calls in a second place of the message at line 1 column 28",
        ),
    ] {
        let fault = fault(DIALECT, message);
        assert!(fault.starts_with(told), "{fault}\n{message}");
    }
}
