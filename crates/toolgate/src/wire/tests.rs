use proptest::prelude::*;
use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::call::Ref;
use crate::json;
use crate::ledger::StoreError;
use crate::reply::{Answer, Outcome};
use crate::trace::Trace;

fn read(dialect: Dialect, message: &str) -> Turn {
    dialect.decode(message.as_bytes(), &Limits::default()).unwrap_or_else(|fault| panic!("{fault}\n{message}"))
}

fn fault(dialect: Dialect, message: &str) -> String {
    match dialect.decode(message.as_bytes(), &Limits::default()) {
        Ok(turn) => panic!("read as {turn:?}: {message}"),
        Err(fault) => fault.to_string(),
    }
}

/// The id, the tool and the raw arguments of each call; none may be broken.
fn whole(turn: &Turn) -> Vec<(&str, &str, &str)> {
    let mut calls = Vec::new();
    for proposed in turn.calls() {
        match proposed {
            Proposed::Call(call) => {
                calls.push((call.id(), call.tool(), std::str::from_utf8(&call.arguments).expect("arguments are text")));
            }
            Proposed::Broken(broken) => panic!("{broken:?}"),
        }
    }
    calls
}

fn broken(turn: &Turn, index: usize) -> &Broken {
    match &turn.calls()[index] {
        Proposed::Broken(broken) => broken,
        Proposed::Call(call) => panic!("whole: {call:?}"),
    }
}

/// The places and codes of what is wrong with a call.
fn problems(turn: &Turn, index: usize) -> Vec<(&str, &str)> {
    let refusal = &broken(turn, index).refusal;
    assert_eq!((refusal.code(), refusal.effect()), (Code::InvalidCall, Effect::None));
    refusal.problem_list().iter().map(|problem| (problem.at.as_str(), problem.code.as_str())).collect()
}

/// An assistant message of openai-chat with these call objects.
fn openai(calls: &str) -> String {
    format!(r#"{{"role":"assistant","content":null,"tool_calls":[{calls}]}}"#)
}

/// A message of anthropic with these blocks.
fn anthropic(blocks: &str) -> String {
    format!(r#"{{"role":"assistant","content":[{blocks}],"stop_reason":"tool_use"}}"#)
}

const OPENAI_COMPLETION: &str = r#"{
  "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion", "created": 1741569952, "model": "gpt-5.1",
  "choices": [{
    "index": 0,
    "message": {
      "role": "assistant", "content": null, "refusal": null, "annotations": [],
      "tool_calls": [
        {"id": "call_a1", "type": "function",
         "function": {"name": "get_order", "arguments": "{\"order_id\": \"ord_4821\"}"}},
        {"index": 1, "id": "call_a2", "type": "function",
         "function": {"name": "create_refund",
                      "arguments": "{\"order_id\":\"ord_4821\",\"amount_cents\":1500,\"note\":\"\\u00fc \\\"late\\\"\\n\"}"}}
      ]
    },
    "logprobs": null, "finish_reason": "tool_calls"
  }],
  "usage": {"prompt_tokens": 82, "completion_tokens": 17, "total_tokens": 99}, "service_tier": "default"
}"#;

const MCP_REQUEST: &str = r#"{
  "jsonrpc": "2.0", "id": "7", "method": "tools/call",
  "params": {"name": "create_refund", "arguments": {"order_id": "ord_4821", "note": "\u00fc \"late\"\n"},
             "_meta": {"progressToken": 1}}
}"#;

const ANTHROPIC_MESSAGE: &str = r#"{
  "id": "msg_01Aq9w938a90dw8q", "type": "message", "role": "assistant", "model": "claude-opus-4-5",
  "content": [
    {"type": "thinking", "thinking": "The order first.", "signature": "EqQBCg=="},
    {"type": "text", "text": "I will look at the order. {\"type\": \"tool_use\"}"},
    {"type": "tool_use", "id": "toolu_01A", "name": "get_order", "input": {"order_id" : "ord_4821"}},
    {"type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search", "input": {"query": "refund"}},
    {"type": "tool_use", "id": "toolu_01B", "name": "list_regions", "input": {}, "caller": {"type": "direct"}}
  ],
  "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 472, "output_tokens": 91}
}"#;

mod reading {
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
    fn a_message_with_blocks_gives_its_tool_uses_and_nothing_that_only_looks_like_one() {
        let turn = read(Dialect::Anthropic, ANTHROPIC_MESSAGE);
        let calls = [("toolu_01A", "get_order", r#"{"order_id" : "ord_4821"}"#), ("toolu_01B", "list_regions", "{}")];
        assert_eq!(whole(&turn), calls);
        let blocks =
            r#" [{"type":"tool_use","id":"t","name":"n","input":{"a":1},"cache_control":{"type":"ephemeral"}}]"#;
        assert_eq!(whole(&read(Dialect::Anthropic, blocks)), [("t", "n", r#"{"a":1}"#)]);
    }

    #[test]
    fn one_call_by_itself_is_read_as_if_its_message_stood_around_it() {
        let call = r#" {"id":"c","type":"function","function":{"name":"n","arguments":"{\"a\": 1}"}} "#;
        assert_eq!(whole(&read(Dialect::OpenaiChat, call)), [("c", "n", r#"{"a": 1}"#)]);
        let turn = read(Dialect::OpenaiChat, r#"{"id":"c","function":{"name":"n"},"tenant":"other"}"#);
        assert_eq!(problems(&turn, 0), [("/tenant", "additional_property")]);
        let block = r#" {"type":"tool_use","id":"t","name":"n","input":{"a": 1}}"#;
        assert_eq!(whole(&read(Dialect::Anthropic, block)), [("t", "n", r#"{"a": 1}"#)]);
        let turn = read(Dialect::Anthropic, r#"{"type":"tool_use","id":"t","name":"n","content":[]}"#);
        assert_eq!(problems(&turn, 0), [("/content", "additional_property")]);
    }

    #[test]
    fn a_message_of_words_has_no_calls() {
        for (dialect, message) in [
            (Dialect::OpenaiChat, r#"{"role":"assistant","content":"{\"tool_calls\":[{}]}"}"#),
            (Dialect::OpenaiChat, r#"{"role":"assistant","content":[{"type":"text","text":"hi"}],"tool_calls":null}"#),
            (Dialect::OpenaiChat, r#"{"role":"assistant","content":"hi","tool_calls":[],"function_call":null}"#),
            (Dialect::Anthropic, r#"{"role":"assistant","content":"I would call get_order."}"#),
            (Dialect::Anthropic, r#"{"role":"assistant","content":[],"stop_reason":"end_turn"}"#),
        ] {
            assert!(read(dialect, message).calls().is_empty(), "{message}");
        }
    }

    #[test]
    fn big_numbers_repeated_members_and_depth_reach_the_gate_as_they_were_written() {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(100), "]".repeat(100));
        for arguments in [r#"{"id":12345678901234567890123,"x":1.10}"#, r#"{"a":1,"a":2}"#, r#"{"s":"\ud83d"}"#, &deep]
        {
            let message = anthropic(&format!(r#"{{"type":"tool_use","id":"t","name":"n","input":{arguments}}}"#));
            assert_eq!(whole(&read(Dialect::Anthropic, &message)), [("t", "n", arguments)]);
            let text = serde_json::to_string(arguments).unwrap();
            let message = openai(&format!(r#"{{"id":"c","function":{{"name":"n","arguments":{text}}}}}"#));
            assert_eq!(whole(&read(Dialect::OpenaiChat, &message)), [("c", "n", arguments)]);
        }
    }

    #[test]
    fn arguments_that_are_blank_null_or_not_there_are_blank() {
        for arguments in ["", r#","arguments":null"#, r#","arguments":"""#] {
            let message = openai(&format!(r#"{{"id":"c","type":"function","function":{{"name":"n"{arguments}}}}}"#));
            assert_eq!(whole(&read(Dialect::OpenaiChat, &message)), [("c", "n", "")]);
        }
        for input in ["", r#","input":null"#] {
            let message = anthropic(&format!(r#"{{"type":"tool_use","id":"t","name":"n"{input}}}"#));
            assert_eq!(whole(&read(Dialect::Anthropic, &message)), [("t", "n", "")]);
        }
    }

    #[test]
    fn arguments_of_mcp_that_are_null_are_no_empty_object() {
        for (arguments, read) in [("", ""), (r#","arguments":null"#, "null"), (r#","arguments":{}"#, "{}")] {
            let params = format!(r#"{{"name":"n"{arguments}}}"#);
            let proposed = crate::wire::mcp::proposed(&json!(1), Some(params.as_bytes()), &json::Limits::default());
            let Proposed::Call(call) = proposed else { panic!("{proposed:?}") };
            assert_eq!(&*call.arguments, read.as_bytes());
        }
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
}

mod cut_off {
    use super::*;

    #[test]
    fn a_turn_that_was_cut_off_runs_nothing_whatever_its_calls_look_like() {
        let call =
            r#"{"id":"call_1","type":"function","function":{"name":"write_file","arguments":"{\"path\": \"a\"}"}}"#;
        let broken_call = r#"{"id":"call_2","type":"custom"}"#;
        let completion = |reason: &str| {
            let message = openai(&format!("{call},{broken_call}"));
            format!(r#"{{"choices":[{{"index":0,"message":{message},"finish_reason":"{reason}"}}]}}"#)
        };
        let block = r#"{"type":"tool_use","id":"call_1","name":"write_file","input":{"path":"a"}}"#;
        let message = |reason: &str| anthropic(block).replace(r#""tool_use"}"#, &format!(r#""{reason}"}}"#));
        for (dialect, message) in [
            (Dialect::OpenaiChat, completion("length")),
            (Dialect::OpenaiChat, completion("content_filter")),
            (Dialect::OpenaiChat, format!(r#"{{"finish_reason":"length","tool_calls":[{call}]}}"#)),
            (Dialect::Anthropic, message("max_tokens")),
            (Dialect::Anthropic, message("model_context_window_exceeded")),
            (Dialect::Anthropic, message("refusal")),
        ] {
            let turn = read(dialect, &message);
            assert!(turn.cut_off(), "{message}");
            assert_eq!((turn.calls()[0].call_id(), broken(&turn, 0).tool.as_str()), ("call_1", "write_file"));
            for index in 0..turn.calls().len() {
                assert_eq!(broken(&turn, index).refusal, Refusal::before(Code::TurnTruncated));
            }
        }
        assert_eq!(whole(&read(Dialect::Anthropic, &message("tool_use"))).len(), 1);
        assert!(!read(Dialect::OpenaiChat, &completion("tool_calls")).cut_off());
    }

    #[test]
    fn a_message_that_ends_in_the_middle_is_a_fault_that_says_so() {
        let cut = r#"{"stop_reason":"max_tokens","content":[{"type":"tool_use","id":"tu_1","name":"pay","input":{"amount":50"#;
        let fault = fault(Dialect::Anthropic, cut);
        assert_eq!(
            fault,
            "the message: unexpected end at line 1 column 104: the text stops too early: send the whole of it"
        );
    }
}

mod broken_calls {
    use super::*;

    #[test]
    fn a_member_that_names_a_principal_is_refused_where_it_stands_and_the_other_calls_go_on() {
        let good = r#"{"id":"call_2","type":"function","function":{"name":"get_order","arguments":"{}"}}"#;
        let outside =
            r#"{"id":"call_1","type":"function","principal":{"tenant":"globex"},"function":{"name":"get_order"}}"#;
        let inside = r#"{"id":"call_3","function":{"name":"get_order","arguments":"{}","on/behalf":"mia"}}"#;
        let turn = read(Dialect::OpenaiChat, &openai(&format!("{outside},{good},{inside}")));
        assert_eq!(problems(&turn, 0), [("/principal", "additional_property")]);
        assert_eq!((turn.calls()[0].call_id(), broken(&turn, 0).tool.as_str()), ("call_1", "get_order"));
        assert!(matches!(&turn.calls()[1], Proposed::Call(call) if call.id() == "call_2"));
        assert_eq!(problems(&turn, 2), [("/function/on~1behalf", "additional_property")]);
        let answer = serde_json::to_string(&broken(&turn, 0).refusal).unwrap();
        assert!(answer.contains("leave it out; known: id, type, function") && !answer.contains("globex"), "{answer}");

        let block = r#"{"type":"tool_use","id":"t","name":"get_order","input":{},"principal":"mia"}"#;
        assert_eq!(problems(&read(Dialect::Anthropic, &anthropic(block)), 0), [("/principal", "additional_property")]);
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

        let block = r#"{"type":"tool_use","name":"","input":"{\"order_id\":\"ord_1\"}"}"#;
        let turn = read(Dialect::Anthropic, &anthropic(block));
        assert_eq!(problems(&turn, 0), [("/id", "required"), ("/name", "min_length"), ("/input", "type")]);
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

        let block = r#"{"type":"text","type":"tool_use","id":"t","name":"n","input":{}}"#;
        assert_eq!(problems(&read(Dialect::Anthropic, &anthropic(block)), 0), [("/type", "duplicate_key")]);
    }

    #[test]
    fn two_calls_with_one_id_are_both_answered_in_their_order() {
        let call =
            |tool: &str| format!(r#"{{"id":"functions.find:3","type":"function","function":{{"name":"{tool}"}}}}"#);
        let turn = read(Dialect::OpenaiChat, &openai(&format!("{},{}", call("a"), call("b"))));
        let tools: Vec<&str> = turn
            .calls()
            .iter()
            .map(|proposed| match proposed {
                Proposed::Call(call) if call.id() == "functions.find:3" => call.tool(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(tools, ["a", "b"]);
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
}

mod faults {
    use super::*;

    #[test]
    fn a_message_that_is_not_one_says_what_and_where_and_what_to_do() {
        let call = r#"{"id":"c","function":{"name":"n"}}"#;
        let choice = format!(r#"{{"message":{}}}"#, openai(call));
        for (message, told) in [
            ("", "the message: unexpected end at line 1 column 1: "),
            ("{\n  \"tool_calls\": [],\n}", "the message: trailing comma at line 3 column 1: "),
            (
                "[]",
                "the message: expected an object, found an array at line 1 column 1: pass the provider's message on",
            ),
            (
                r#"{"role":"assistant","tool_calls":{"id":"c"}}"#,
                "tool_calls: expected an array, found an object at line 1 column 34",
            ),
            (
                r#"{"error":{"message":"overloaded"}}"#,
                "neither an assistant message nor a completion at line 1 column 1",
            ),
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

    #[test]
    fn a_message_that_is_too_large_or_calls_too_often_is_refused_whole() {
        let small = Limits { size: 40, ..Limits::default() };
        let told = Dialect::OpenaiChat.decode(OPENAI_COMPLETION.as_bytes(), &small).unwrap_err();
        assert_eq!(told.message, "the message: more than 40 bytes");
        let openai_calls = |count: usize| {
            let calls: Vec<String> =
                (0..count).map(|n| format!(r#"{{"id":"c{n}","function":{{"name":"n"}}}}"#)).collect();
            openai(&calls.join(","))
        };
        let blocks = |count: usize| {
            let text = r#"{"type":"text","text":"and"}"#.to_owned();
            let block = |n| format!(r#"{{"type":"tool_use","id":"c{n}","name":"n","input":{{}}}}"#);
            anthropic(&std::iter::once(text).chain((0..count).map(block)).collect::<Vec<_>>().join(","))
        };
        for (dialect, most, more) in [
            (Dialect::OpenaiChat, openai_calls(MOST_CALLS), openai_calls(MOST_CALLS + 1)),
            (Dialect::Anthropic, blocks(MOST_CALLS), blocks(MOST_CALLS + 1)),
        ] {
            assert_eq!(whole(&read(dialect, &most)).len(), MOST_CALLS);
            assert!(fault(dialect, &more).starts_with("more than 128 calls in one message"));
        }
    }
}

mod answering {
    use super::*;

    fn reply(call_id: &str, answer: Answer) -> Reply {
        Reply::new(call_id.to_owned(), "get_order".to_owned(), Ref::fresh(), answer, Trace::start())
    }

    fn done(result: &str) -> Answer {
        let result = RawValue::from_string(result.to_owned()).unwrap();
        Answer::Result(Outcome { result, effect: Effect::Done, truncated: Vec::new(), content: false })
    }

    /// The messages of a dialect for answers to calls with these ids.
    fn answered(dialect: Dialect, ids: &[&str], answers: &[Result<Reply, Fault>]) -> Vec<Value> {
        Asked { dialect, ids: ids.iter().map(|id| json!(id)).collect() }.answer(answers)
    }

    #[test]
    fn each_call_is_answered_in_order_with_its_id_and_the_bytes_of_its_result() {
        let first = reply("call_1", done(r#"{"big":12345678901234567890123,"pad" : 1.10,"q":"\"ü"}"#));
        let second = reply("call_2", Answer::Refused(Refusal::before(Code::Forbidden)));
        let whole = serde_json::to_string(&first).unwrap();
        let answers = [Ok(first), Ok(second)];

        let messages = answered(Dialect::OpenaiChat, &["call_1", "call_2"], &answers);
        assert_eq!(messages.len(), 2);
        assert_eq!((&messages[0]["role"], &messages[0]["tool_call_id"]), (&json!("tool"), &json!("call_1")));
        let content = messages[0]["content"].as_str().unwrap();
        assert_eq!(content, whole);
        assert!(content.contains(r#""result":{"big":12345678901234567890123,"pad" : 1.10,"q":"\"ü"}"#), "{content}");
        assert_eq!(messages[1]["tool_call_id"], json!("call_2"));

        let messages = answered(Dialect::Anthropic, &["call_1", "call_2"], &answers);
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0]["role"], json!("user"));
        let blocks = messages[0]["content"].as_array().unwrap();
        assert_eq!(blocks[0], json!({"type": "tool_result", "tool_use_id": "call_1", "content": content}));
        assert_eq!((&blocks[1]["tool_use_id"], &blocks[1]["is_error"]), (&json!("call_2"), &json!(true)));
        assert_eq!(blocks.len(), 2);
    }

    #[test]
    fn a_turn_without_calls_needs_no_messages() {
        assert!(Dialect::ALL.iter().all(|dialect| answered(*dialect, &[], &[]).is_empty()));
    }

    #[test]
    fn a_failure_of_the_gate_is_answered_and_nothing_happened() {
        for fault in [Fault::Closing, Fault::Store(StoreError::Busy), Fault::Lost] {
            let message = &answered(Dialect::OpenaiChat, &["call_1"], &[Err(fault)])[0];
            assert_eq!(message["tool_call_id"], json!("call_1"));
            let content: Value = serde_json::from_str(message["content"].as_str().unwrap()).unwrap();
            assert_eq!((&content["ok"], &content["error"]["effect"]), (&json!(false), &json!("none")));
            assert_eq!(content["error"]["fix"], json!("operator"));
        }
    }
}

mod protocol {
    use super::*;
    use crate::contract::Contract;
    use crate::schema::Truncated;
    use crate::wire::mcp::{Era, Implementation, Said, definition, proposed, said};

    const SERVER: Implementation<'static> = Implementation { name: "toolgate", version: "1" };

    fn request(id: &str, params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
    }

    fn reply(answer: Answer) -> Reply {
        Reply::new("1".into(), "get_order".into(), Ref::fresh(), answer, Trace::start())
    }

    fn outcome(result: &str, truncated: Vec<Truncated>, content: bool) -> Answer {
        let result = RawValue::from_string(result.to_owned()).unwrap();
        Answer::Result(Outcome { result, effect: Effect::Done, truncated, content })
    }

    fn refused(refusal: Refusal) -> Reply {
        reply(Answer::Refused(refusal))
    }

    fn result(reply: &Reply, era: Era<'_>) -> Value {
        match said(Ok(reply), era) {
            Said::Result(text) => serde_json::from_str(&text).unwrap(),
            Said::Error { message, .. } => panic!("an error: {message}"),
        }
    }

    fn error(outcome: Result<&Reply, &Fault>) -> (i64, Value) {
        match said(outcome, Era::Handshake) {
            Said::Error { code, data, .. } => (code, serde_json::from_str(&data).unwrap()),
            Said::Result(text) => panic!("a result: {text}"),
        }
    }

    #[test]
    fn a_request_gives_one_call_with_the_text_of_its_arguments_and_is_answered_under_its_own_id() {
        let params = r#"{"name":"shop.get_order","arguments":{"n":12345678901234567890, "n":1.50},"_meta":{"x":1}}"#;
        for (id, shown) in [("7", "7"), (r#""7""#, "7"), ("-3", "-3"), (r#""a\u0062""#, "ab")] {
            let turn = read(Dialect::Mcp, &request(id, params));
            assert_eq!(whole(&turn), [(shown, "shop.get_order", r#"{"n":12345678901234567890, "n":1.50}"#)]);
            let (_, asked) = turn.open();
            let answers = asked.answer(&[Ok(reply(outcome("{}", Vec::new(), false)))]);
            let id: Value = serde_json::from_str(id).unwrap();
            assert_eq!((&answers[0]["id"], &answers[0]["result"]["isError"]), (&id, &json!(false)));
        }
    }

    #[test]
    fn what_cannot_be_answered_or_is_another_request_is_a_fault_of_the_message() {
        let one = request("1", r#"{"name":"x"}"#);
        for (message, expected) in [
            (format!("[{one}]"), "a batch of requests"),
            (format!(" \n[{one},{one}]"), "a batch of requests"),
            (one.replace(r#""id":1,"#, ""), "a call without an id"),
            (request("null", r#"{"name":"x"}"#), "neither text nor a whole number"),
            (request("1.5", r#"{"name":"x"}"#), "neither text nor a whole number"),
            (request("[1]", r#"{"name":"x"}"#), "neither text nor a whole number"),
            (one.replace("tools/call", "tools/list"), "another method than"),
            (one.replace("2.0", "1.0"), "another jsonrpc than"),
            (one.replace(r#""jsonrpc":"2.0","#, ""), "the request has no jsonrpc"),
            (one.replace(r#""id":1"#, r#""id":1,"id":2"#), "the request"),
        ] {
            let found = fault(Dialect::Mcp, &message);
            assert!(found.contains(expected), "{message}\n{found}");
        }
    }

    #[test]
    fn a_member_beside_what_the_protocol_knows_is_refused_where_it_stands() {
        let stray = request("1", r#"{"name":"x","tenant":"globex","arguments":{}}"#);
        assert_eq!(problems(&read(Dialect::Mcp, &stray), 0), [("/params/tenant", "additional_property")]);
        let beside = request("1", r#"{"name":"x"}"#).replace(r#""id":1"#, r#""id":1,"user":"eve""#);
        assert_eq!(problems(&read(Dialect::Mcp, &beside), 0), [("/user", "additional_property")]);
        let Proposed::Broken(broken) = proposed(&json!(1), Some(br#"{"name":7,"user":1}"#), &Limits::default()) else {
            panic!("whole")
        };
        let places: Vec<&str> = broken.refusal.problem_list().iter().map(|problem| problem.at.as_str()).collect();
        assert_eq!(places, ["/name", "/user"]);
        assert!(matches!(proposed(&json!(1), None, &Limits::default()), Proposed::Broken(_)));
    }

    #[test]
    fn the_trace_of_a_call_comes_from_its_meta_and_what_is_malformed_is_none() {
        let traced = |meta: &str| {
            let turn = read(Dialect::Mcp, &request("1", &format!(r#"{{"name":"x","_meta":{meta}}}"#)));
            match &turn.calls()[0] {
                Proposed::Call(call) => call.traced.as_ref().map(|context| context.trace_id().to_owned()),
                Proposed::Broken(broken) => panic!("{broken:?}"),
            }
        };
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        let parent = format!("00-{id}-00f067aa0ba902b7-01");
        assert_eq!(traced(&format!(r#"{{"traceparent":"{parent}","tracestate":"a=1"}}"#)), Some(id.to_owned()));
        for none in ["{}", r#"{"traceparent":"00-1-2-01"}"#, r#"{"traceparent":7}"#, "null"] {
            assert_eq!(traced(none), None, "{none}");
        }
    }

    #[test]
    fn a_wish_for_a_task_is_passed_over_and_the_call_is_made() {
        let turn = read(Dialect::Mcp, &request("1", r#"{"name":"x","task":{"ttl":1000}}"#));
        assert_eq!(whole(&turn), [("1", "x", "")]);
    }

    #[test]
    fn a_result_stands_in_text_and_structure_with_its_own_bytes_and_the_rest_beside_it() {
        let reply = reply(outcome(r#"{"total":1.10,"pad":"ü"}"#, Vec::new(), false));
        let Said::Result(text) = said(Ok(&reply), Era::Handshake) else { panic!("an error") };
        assert!(text.contains(r#""structuredContent":{"total":1.10,"pad":"ü"}"#), "{text}");
        let found = result(&reply, Era::Handshake);
        assert_eq!(found["content"], json!([{"type": "text", "text": r#"{"total":1.10,"pad":"ü"}"#}]));
        assert_eq!(found["isError"], json!(false));
        let note = &found["_meta"]["toolgate/reply"];
        assert_eq!(*note, json!({"effect": "done", "replayed": false, "ref": reply.reference().as_str()}));
        assert_eq!(found.get("resultType"), None);
    }

    #[test]
    fn a_result_of_the_stateless_era_says_that_it_is_complete_and_by_whom_and_may_be_any_json() {
        let list = reply(outcome("[1,2]", Vec::new(), false));
        assert_eq!(result(&list, Era::Handshake).get("structuredContent"), None);
        let found = result(&list, Era::Stateless(SERVER));
        assert_eq!(found["structuredContent"], json!([1, 2]));
        assert_eq!(found["resultType"], json!("complete"));
        assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"], json!({"name": "toolgate", "version": "1"}));
    }

    #[test]
    fn a_model_can_see_that_a_result_is_replayed_or_cut() {
        let cut = vec![Truncated { at: "/rows".into(), kept: 2, of: 9 }];
        let first = reply(outcome(r#"{"rows":[1,2]}"#, cut, false)).replayed_from(Ref::fresh());
        let found = result(&first, Era::Handshake);
        let aside = r#"{"replayed":true,"truncated":[{"at":"/rows","kept":2,"of":9}]}"#;
        assert_eq!(found["content"][1], json!({"type": "text", "text": aside}));
        assert_eq!(found["structuredContent"], json!({"rows": [1, 2]}));
        assert_eq!(found["_meta"]["toolgate/reply"]["first_ref"], json!(first.first_reference().unwrap().as_str()));

        let blocks =
            r#"{"content":[{"type":"text","text":"a,b]"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}"#;
        let content = reply(outcome(blocks, Vec::new(), true));
        let given: Value = serde_json::from_str(blocks).unwrap();
        assert_eq!(result(&content, Era::Handshake)["content"], given["content"]);
        assert_eq!(result(&content, Era::Handshake).get("structuredContent"), None);
        let again = result(&content.replayed_from(Ref::fresh()), Era::Handshake);
        assert_eq!(again["content"].as_array().unwrap().len(), 3);
        assert_eq!(again["content"][2], json!({"type": "text", "text": r#"{"replayed":true}"#}));
        let none = reply(outcome(r#"{"content":[]}"#, Vec::new(), true)).replayed_from(Ref::fresh());
        assert_eq!(result(&none, Era::Handshake)["content"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn a_refusal_is_a_result_that_the_model_reads_and_a_tool_that_is_not_there_is_an_error() {
        let forbidden = refused(Refusal::before(Code::Forbidden));
        let found = result(&forbidden, Era::Handshake);
        assert_eq!((&found["isError"], found.get("structuredContent")), (&json!(true), None));
        assert_eq!(found["content"][0]["text"], json!(serde_json::to_string(&forbidden).unwrap()));

        let unknown = refused(Refusal::before(Code::UnknownTool));
        let (code, data) = error(Ok(&unknown));
        assert_eq!(code, -32602);
        assert_eq!(data, serde_json::to_value(&unknown).unwrap());
    }

    #[test]
    fn a_failure_of_the_gate_is_an_error_that_tells_nothing_of_its_inside() {
        let (code, data) = error(Err(&Fault::Store(StoreError::Broken("disk /dev/sda".into()))));
        assert_eq!(
            (code, &data["error"]["code"], &data["error"]["effect"]),
            (-32603, &json!("unavailable"), &json!("none"))
        );
        assert!(!data.to_string().contains("disk"));
    }

    #[test]
    fn only_a_result_that_is_an_object_has_a_declared_schema() {
        let of = |output: Value| {
            let keys = json!({"description": "x", "effect": "write", "input": {"properties": {}}, "output": output});
            definition(&Contract::parse("x", &keys).unwrap())
        };
        let object = of(json!({"type": "object", "properties": {"a": {"type": "integer"}}}));
        assert_eq!(object["outputSchema"]["type"], json!("object"));
        assert_eq!(object["inputSchema"]["type"], json!("object"));
        assert_eq!(object["annotations"], json!({"readOnlyHint": false}));
        assert_eq!(of(json!({"type": "array", "items": {"type": "integer"}, "maxItems": 3})).get("outputSchema"), None);
    }

    #[test]
    fn no_argument_is_asked_for_as_a_header_which_nothing_would_compare() {
        let marked = json!({"type": "string", "x-mcp-header": "Region", "default": {"x-mcp-header": 1}});
        let schema = json!({
            "type": "object", "additionalProperties": false,
            "properties": {"region": marked, "x-mcp-header": {"type": "array", "items": marked}},
        });
        let keys = json!({"description": "x", "effect": "write", "imported": true, "input": schema, "output": schema});
        let definition = definition(&Contract::parse("x", &keys).unwrap());
        let plain = json!({"type": "string", "default": {"x-mcp-header": 1}});
        for schema in [&definition["inputSchema"], &definition["outputSchema"]] {
            assert_eq!(schema["properties"]["region"], plain);
            assert_eq!(schema["properties"]["x-mcp-header"]["items"], plain, "an argument may be called so");
        }
    }

    #[test]
    fn a_deep_result_is_answered_whole() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(63), "}".repeat(63));
        let messages = Asked { dialect: Dialect::Mcp, ids: vec![json!(1)] }.answer(&[Ok(reply(outcome(
            &deep,
            Vec::new(),
            false,
        )))]);
        assert_eq!(messages[0]["result"]["structuredContent"].to_string(), deep);
    }
}

mod anything {
    use super::*;

    fn mutated(message: &'static str) -> impl Strategy<Value = Vec<u8>> {
        let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..8);
        edits.prop_map(move |edits| {
            let mut bytes = message.as_bytes().to_vec();
            for (index, byte, edit) in edits {
                let at = index.index(bytes.len());
                match edit {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, b"{}[]\",:\\"[usize::from(byte) % 8]),
                    2 if bytes.len() > 1 => drop(bytes.remove(at)),
                    _ => bytes.truncate(at + 1),
                }
            }
            bytes
        })
    }

    /// Every call that comes out is answerable, and what is refused has its reason.
    fn check(dialect: Dialect, bytes: &[u8]) {
        let Ok(turn) = dialect.decode(bytes, &Limits::default()) else { return };
        for proposed in turn.calls() {
            match proposed {
                Proposed::Call(call) => {
                    assert!(!turn.cut_off() && !call.id().is_empty() && !call.tool().is_empty());
                    let _ = json::read_arguments(&call.arguments, &Limits::default());
                }
                Proposed::Broken(broken) => {
                    assert!(matches!(broken.refusal.code(), Code::InvalidCall | Code::TurnTruncated));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for dialect in Dialect::ALL {
                check(dialect, &bytes);
            }
        }

        #[test]
        fn changed_messages_never_panic(bytes in prop_oneof![mutated(OPENAI_COMPLETION), mutated(ANTHROPIC_MESSAGE), mutated(MCP_REQUEST)]) {
            for dialect in Dialect::ALL {
                check(dialect, &bytes);
            }
        }

        #[test]
        fn the_text_of_arguments_is_never_changed(text in "\\PC*") {
            let escaped = serde_json::to_string(&text).unwrap();
            let message = openai(&format!(r#"{{"id":"c","function":{{"name":"n","arguments":{escaped}}}}}"#));
            let turn = read(Dialect::OpenaiChat, &message);
            prop_assert_eq!(whole(&turn), [("c", "n", text.as_str())]);
        }
    }

    #[test]
    fn a_dialect_is_found_by_its_own_name_alone() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::parse(dialect.as_str()), Some(dialect));
        }
        assert_eq!(Dialect::parse("OpenAI-Chat"), None);
    }
}
