//! What holds in every dialect.

use super::*;

#[test]
fn arguments_that_are_null_or_not_there_are_blank() {
    for dialect in MANY {
        for arguments in [None, Some("null")] {
            let calls = [call(dialect, Some(r#""c""#), Some(r#""n""#), arguments)];
            assert_eq!(whole(&read(dialect, &message(dialect, &calls))), [("c", "n", "")], "{dialect}");
        }
    }
    for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses] {
        let calls =
            ["", " \n"].map(|text| call(dialect, Some(r#""c""#), Some(r#""n""#), Some(&json!(text).to_string())));
        assert_eq!(whole(&read(dialect, &message(dialect, &calls))), [("c", "n", ""), ("c", "n", " \n")]);
    }
}

#[test]
fn a_second_call_of_an_id_is_a_call_and_is_warned_of() {
    for dialect in MANY {
        let with = |id: &str| call(dialect, Some(id), Some(r#""n""#), None);
        let twice = read(dialect, &message(dialect, &[with(r#""c""#), with(r#""d""#), with(r#""c""#)]));
        assert_eq!(twice.calls().len(), 3, "{dialect}");
        let told: Vec<_> = twice.warnings().iter().map(|warning| (warning.at.as_str(), warning.code)).collect();
        assert_eq!(told, [("/2", "duplicate_call_id")], "{dialect}");
        let once = read(dialect, &message(dialect, &[with(r#""c""#), with(r#""d""#)]));
        assert_eq!(once.warnings(), [], "{dialect}");
    }
}

#[test]
fn arguments_of_another_type_than_the_dialect_writes_are_refused() {
    for dialect in MANY {
        let takes_text = written(dialect, "{}") != "{}";
        for arguments in [if takes_text { "{\"a\":1}" } else { r#""{\"a\":1}""# }, "[]", "[1]", "7", "true"] {
            let calls = [call(dialect, Some(r#""c""#), Some(r#""n""#), Some(arguments))];
            let turn = read(dialect, &message(dialect, &calls));
            assert_eq!(problems(&turn, 0), [(places(dialect)[2], "type")], "{dialect} {arguments}");
        }
    }
}

#[test]
fn repeated_members_and_depth_reach_the_gate_as_they_were_written() {
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(100), "]".repeat(100));
    for dialect in MANY {
        for arguments in [r#"{"id":12345678901234567890123,"x":1.10}"#, r#"{"a":1,"a":2}"#, r#"{"s":"\ud83d"}"#, &deep]
        {
            let calls = [call(dialect, Some(r#""c""#), Some(r#""n""#), Some(&written(dialect, arguments)))];
            assert_eq!(whole(&read(dialect, &message(dialect, &calls))), [("c", "n", arguments)], "{dialect}");
        }
    }
}

#[test]
fn ids_that_are_needed_are_text_that_is_not_empty() {
    for dialect in MANY {
        let of = |id: Option<&str>| {
            let turn = read(dialect, &message(dialect, &[call(dialect, id, Some(r#""n""#), None)]));
            match &turn.calls()[0] {
                Proposed::Call(call) => Ok(call.id().to_owned()),
                Proposed::Broken(_) => {
                    Err(problems(&turn, 0).iter().map(|(at, code)| format!("{at} {code}")).collect())
                }
            }
        };
        let at = places(dialect)[0];
        let broken = |code: &str| Err(vec![format!("{at} {code}")]);
        let or_none = |code: &str| if needs_ids(dialect) { broken(code) } else { Ok(String::new()) };
        assert_eq!(of(Some(r#""c""#)), Ok("c".to_owned()), "{dialect}");
        assert_eq!(of(None), or_none("required"), "{dialect}");
        assert_eq!(of(Some("null")), or_none("type"), "{dialect}");
        assert_eq!(of(Some(r#""""#)), or_none("min_length"), "{dialect}");
        assert_eq!(of(Some("7")), broken("type"), "{dialect}");
    }
}

#[test]
fn names_are_text_that_is_not_empty_and_are_never_mended() {
    for dialect in MANY {
        let at = places(dialect)[1];
        for (name, code) in
            [(None, "required"), (Some("null"), "type"), (Some(r#""""#), "min_length"), (Some("[]"), "type")]
        {
            let turn = read(dialect, &message(dialect, &[call(dialect, Some(r#""c""#), name, None)]));
            assert_eq!(problems(&turn, 0), [(at, code)], "{dialect}");
        }
        for name in [" get_order", "get_order ", "get\u{200B}order", "print(f(a='b'))", "tenant/../get_order"] {
            let calls = [call(dialect, Some(r#""c""#), Some(&json!(name).to_string()), None)];
            assert_eq!(whole(&read(dialect, &message(dialect, &calls))), [("c", name, "")], "{dialect}");
        }
    }
}

#[test]
fn a_member_that_names_a_principal_is_refused_where_it_stands_and_the_other_calls_go_on() {
    for dialect in MANY {
        let good = simple_call(dialect, "good", "get_order");
        // Every object of the call, from its beginning: the call itself, and the one inside.
        let opened: Vec<usize> = good.match_indices('{').map(|(at, _)| at).collect();
        let levels = good.matches("{\"").count();
        for at in &opened[..levels] {
            let mut stray = good.replace("good", "evil");
            stray.insert_str(at + 1, r#""on/behalf":{"tenant":"globex"},"#);
            let turn = read(dialect, &message(dialect, &[stray, good.clone()]));
            let [(place, "additional_property")] = problems(&turn, 0)[..] else { panic!("{dialect}: {turn:?}") };
            assert!(place.ends_with("/on~1behalf"), "{place}");
            assert_eq!((turn.calls()[0].call_id(), broken(&turn, 0).tool.as_str()), ("evil", "get_order"));
            assert!(matches!(&turn.calls()[1], Proposed::Call(call) if call.id() == "good"));
            let answer = serde_json::to_string(&broken(&turn, 0).refusal).unwrap();
            assert!(answer.contains("leave it out; known: ") && !answer.contains("globex"), "{answer}");
        }
    }
}

#[test]
fn a_call_that_is_none_or_has_a_member_twice_breaks_alone() {
    for dialect in MANY {
        let good = simple_call(dialect, "good", "n");
        let at = places(dialect)[1];
        let twice = good.replace(r#""name""#, r#""n\u0061me":"other","name""#);
        let turn = read(dialect, &message(dialect, &[twice, good.clone()]));
        assert_eq!(problems(&turn, 0), [(at, "duplicate_key")], "{dialect}");
        assert!(matches!(turn.calls()[1], Proposed::Call(_)));
    }
    for dialect in [Dialect::OpenaiChat, Dialect::Ollama] {
        let turn = read(dialect, &message(dialect, &[r#""call""#.to_owned(), "null".to_owned()]));
        assert_eq!((problems(&turn, 0), problems(&turn, 1)), (vec![("", "not_object")], vec![("", "not_object")]));
    }
}

#[test]
fn two_calls_with_one_id_are_both_answered_in_their_order() {
    for dialect in MANY {
        let calls = ["a", "b"].map(|name| simple_call(dialect, "functions.find:3", name));
        let turn = read(dialect, &message(dialect, &calls));
        assert_eq!(whole(&turn), [("functions.find:3", "a", "{}"), ("functions.find:3", "b", "{}")], "{dialect}");
    }
}

#[test]
fn a_turn_that_was_cut_off_runs_nothing_whatever_its_calls_look_like() {
    for dialect in MANY {
        let early: &[&str] = match dialect {
            Dialect::OpenaiChat | Dialect::OpenaiStrict => {
                &["length", "content_filter", "error", "LENGTH", "model_length"]
            }
            Dialect::OpenaiResponses => &["incomplete", "failed"],
            Dialect::Anthropic => &["max_tokens", "model_context_window_exceeded", "refusal", "a_later_reason"],
            Dialect::Gemini => &["MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", "OTHER", "A_LATER_REASON"],
            Dialect::Bedrock => &["max_tokens", "content_filtered", "guardrail_intervened", "malformed_tool_use"],
            Dialect::Ollama => &["length", "load"],
            Dialect::Mcp => &[],
        };
        let calls = [simple_call(dialect, "c1", "write_file"), call(dialect, Some(r#""c2""#), None, None)];
        for reason in early {
            let turn = read(dialect, &response(dialect, &calls, reason));
            assert!(turn.cut_off(), "{dialect} {reason}");
            assert_eq!((turn.calls()[0].call_id(), broken(&turn, 0).tool.as_str()), ("c1", "write_file"));
            for index in 0..calls.len() {
                assert_eq!(broken(&turn, index).refusal, Refusal::before(Code::TurnTruncated));
            }
        }
        assert!(!read(dialect, &message(dialect, &calls)).cut_off());
    }
    let message =
        format!(r#"{{"finish_reason":"length","tool_calls":[{}]}}"#, simple_call(Dialect::OpenaiChat, "c", "n"));
    assert!(read(Dialect::OpenaiChat, &message).cut_off(), "a message that tells it itself");
}

#[test]
fn a_message_of_words_has_no_calls() {
    for dialect in MANY {
        assert!(read(dialect, &message(dialect, &[])).calls().is_empty(), "{dialect}");
    }
    for (dialect, message) in [
        (Dialect::OpenaiChat, r#"{"role":"assistant","content":"{\"tool_calls\":[{}]}"}"#),
        (Dialect::OpenaiChat, r#"{"role":"assistant","content":[{"type":"text","text":"hi"}],"tool_calls":null}"#),
        (Dialect::OpenaiChat, r#"{"role":"assistant","content":"hi","tool_calls":[],"function_call":null}"#),
        (Dialect::OpenaiResponses, r#"[{"type":"message","content":[{"type":"output_text","text":"hi"}]}]"#),
        (Dialect::Anthropic, r#"{"role":"assistant","content":"I would call get_order."}"#),
        (Dialect::Gemini, r#"{"role":"model","parts":[{"text":"{\"functionCall\":{}}"},{"functionCall":null}]}"#),
        (Dialect::Bedrock, r#"{"role":"assistant","content":[{"text":"{\"toolUse\":{}}"}]}"#),
        (Dialect::Ollama, r#"{"message":{"role":"assistant","content":"<tool_call>{}"},"done":true}"#),
    ] {
        assert!(read(dialect, message).calls().is_empty(), "{message}");
    }
}

#[test]
fn a_message_of_another_dialect_is_told_so_and_never_read_as_words() {
    for (wrote, message) in MESSAGES {
        for reads in Dialect::ALL {
            if reads == wrote || (reads, wrote) == (Dialect::OpenaiStrict, Dialect::OpenaiChat) {
                continue;
            }
            let told = fault(reads, message);
            assert!(told.ends_with(&format!(": read it as the dialect {wrote}")), "{wrote} read as {reads}: {told}");
        }
    }
}

#[test]
fn a_list_of_calls_of_another_dialect_is_never_read_as_other_blocks() {
    let lists = [Dialect::OpenaiResponses, Dialect::Anthropic, Dialect::Gemini, Dialect::Bedrock];
    for reads in lists {
        for wrote in MANY.into_iter().filter(|wrote| *wrote != reads) {
            let told = fault(reads, &format!("[{}]", simple_call(wrote, "c", "n")));
            assert!(told.contains("read it as the dialect "), "{wrote} read as {reads}: {told}");
        }
    }
}

#[test]
fn a_message_that_is_too_large_or_calls_too_often_is_refused_whole() {
    for dialect in MANY {
        let calls = |count: usize| (0..count).map(|n| simple_call(dialect, &format!("c{n}"), "n")).collect::<Vec<_>>();
        let most = message(dialect, &calls(MOST_CALLS));
        assert_eq!(whole(&read(dialect, &most)).len(), MOST_CALLS);
        let told = fault(dialect, &message(dialect, &calls(MOST_CALLS + 1)));
        assert!(told.starts_with("more than 128 calls in one message"), "{told}");
        let small = Limits { size: 40, ..Limits::default() };
        let told = dialect.decode(most.as_bytes(), &small).unwrap_err();
        assert!(told.message.ends_with(": more than 40 bytes"), "{told}");
    }
}

#[test]
fn each_call_is_answered_in_order_with_its_id_and_the_bytes_of_its_result() {
    for dialect in MANY {
        let first = result_of(r#"{"big":12345678901234567890123,"pad" : 1.10,"q":"\"ü"}"#);
        let text = serde_json::to_string(&first).unwrap();
        let calls = [simple_call(dialect, "c1", "a"), simple_call(dialect, "c2", "b")];
        let (_, asked) = read(dialect, &message(dialect, &calls)).open();
        let messages = asked.answer(&[Ok(first), Ok(refused(Refusal::before(Code::Forbidden)))]);
        let [one, two] = &answers(dialect, &messages)[..] else { panic!("{dialect}: {messages:?}") };
        assert_eq!((one.id.as_str(), two.id.as_str()), ("c1", "c2"), "{dialect}");
        assert_eq!((one.flagged, two.flagged), (false, flags_refusals(dialect)), "{dialect}");
        if dialect != Dialect::Gemini {
            assert_eq!(one.text, text, "{dialect}");
        }
        assert!(two.text.contains(r#""code":"forbidden""#), "{}", two.text);
    }
}

#[test]
fn a_turn_without_calls_needs_no_messages() {
    for dialect in MANY {
        assert!(read(dialect, &message(dialect, &[])).open().1.answer(&[]).is_empty(), "{dialect}");
    }
}

#[test]
fn a_failure_of_the_gate_is_answered_and_nothing_happened() {
    for dialect in MANY {
        for failure in [Fault::Closing, Fault::Store(StoreError::Busy), Fault::Lost] {
            let (_, asked) = read(dialect, &message(dialect, &[simple_call(dialect, "c", "n")])).open();
            let messages = asked.answer(&[Err(failure)]);
            let answer = answers(dialect, &messages).remove(0);
            assert_eq!((answer.id.as_str(), answer.flagged), ("c", flags_refusals(dialect)));
            let content: Value = serde_json::from_str(&answer.text).unwrap();
            assert_eq!((&content["ok"], &content["error"]["effect"]), (&json!(false), &json!("none")));
            assert_eq!(content["error"]["fix"], json!("operator"));
        }
    }
}

#[test]
fn a_dialect_is_found_by_its_own_name_alone() {
    for dialect in Dialect::ALL {
        assert_eq!(Dialect::parse(dialect.as_str()), Some(dialect));
    }
    assert_eq!(Dialect::parse("OpenAI-Chat"), None);
}

/// Whether the dialect marks an answer that is a refusal.
fn flags_refusals(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::Anthropic | Dialect::Gemini | Dialect::Bedrock)
}
