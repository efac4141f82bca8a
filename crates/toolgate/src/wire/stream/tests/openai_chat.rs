use super::*;

const DIALECT: Dialect = Dialect::OpenaiChat;

/// A chunk with these pieces of calls.
fn chunk(pieces: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": { "tool_calls": pieces }, "finish_reason": null }] })
}

/// A piece of the call on an index.
fn piece(index: i64, name: Value, arguments: &str) -> Value {
    json!({ "index": index, "function": { "name": name, "arguments": arguments } })
}

/// The first piece of a call.
fn opening(index: i64, id: &str, name: &str, arguments: &str) -> Value {
    json!({ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

#[test]
fn a_call_grows_over_the_chunks_of_a_completion() {
    let turn = turn(
        DIALECT,
        &[
            json!({ "choices": [], "prompt_filter_results": [] }),
            json!({ "choices": [{ "index": 0, "delta": { "role": "assistant", "content": null } }] }),
            chunk(json!([opening(0, "call_1", "get_order", "")])),
            chunk(json!([piece(0, Value::Null, "{\"order_id\"")])),
            chunk(json!([{ "index": 0, "function": { "arguments": ": \"ord_1\"}" } }])),
            json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] }),
            json!({ "choices": [], "usage": { "total_tokens": 9 } }),
            json!({ "usage": { "total_tokens": 9 } }),
            json!("[DONE]"),
        ],
    );
    assert_eq!(calls(&turn), [("call_1", "get_order", "{\"order_id\": \"ord_1\"}")]);
    assert_eq!((turn.cut_off(), turn.warnings()), (false, &[][..]));
}

#[test]
fn pieces_of_several_calls_may_come_in_any_order() {
    let turn = turn(
        DIALECT,
        &[
            chunk(json!([opening(0, "a", "t", "{"), opening(1, "b", "u", "")])),
            chunk(json!([piece(1, Value::Null, "{\"x\":"), piece(0, Value::Null, "\"y\":")])),
            chunk(json!([piece(0, Value::Null, "1}")])),
            chunk(json!([piece(1, Value::Null, "2}")])),
        ],
    );
    assert_eq!(calls(&turn), [("a", "t", "{\"y\":1}"), ("b", "u", "{\"x\":2}")]);
    assert!(turn.warnings().is_empty());
}

#[test]
fn an_index_is_a_key_and_calls_stand_in_the_order_in_which_they_were_opened() {
    let turn = turn(
        DIALECT,
        &[
            chunk(json!([opening(7, "a", "t", "{}")])),
            chunk(json!([opening(1, "b", "t", "")])),
            chunk(json!([opening(-3, "c", "t", "{}")])),
            chunk(json!([piece(1, Value::Null, "{}")])),
        ],
    );
    assert_eq!(calls(&turn), [("a", "t", "{}"), ("b", "t", "{}"), ("c", "t", "{}")]);
    assert!(turn.warnings().is_empty());
}

#[test]
fn nothing_is_added_by_null() {
    let turn = turn(
        DIALECT,
        &[
            chunk(json!([null, { "index": 0, "id": "a", "function": { "name": "t", "arguments": null } }])),
            chunk(json!([{ "index": 0, "id": null, "type": null, "function": null }])),
            chunk(json!([{ "index": 0, "id": "", "type": "", "function": { "name": "", "arguments": "" } }])),
            chunk(Value::Null),
            json!({ "choices": [{ "delta": null, "finish_reason": "tool_calls" }] }),
        ],
    );
    assert_eq!(calls(&turn), [("a", "t", "")]);
}

#[test]
fn id_and_name_may_come_late() {
    let turn = turn(
        DIALECT,
        &[
            chunk(json!([piece(0, Value::Null, "{\"a\":")])),
            chunk(json!([{ "index": 0, "id": "late" }])),
            chunk(json!([piece(0, json!("t"), "1}")])),
        ],
    );
    assert_eq!(calls(&turn), [("late", "t", "{\"a\":1}")]);
}

#[test]
fn a_name_that_comes_again_is_the_name() {
    let again = |id| opening(0, id, "get_order", "{");
    let turn = turn(DIALECT, &[chunk(json!([again("a")])), chunk(json!([opening(0, "a", "get_order", "}")]))]);
    assert_eq!(calls(&turn), [("a", "get_order", "{}")]);
    assert!(turn.warnings().is_empty());
}

#[test]
fn a_name_in_pieces_is_put_together_with_a_warning() {
    let turn = turn(
        DIALECT,
        &[
            chunk(json!([opening(0, "a", "get_", "")])),
            chunk(json!([piece(0, json!("order"), "")])),
            chunk(json!([piece(0, json!("get_order"), "{}")])),
            chunk(json!([piece(0, Value::Null, "")])),
        ],
    );
    assert_eq!(calls(&turn), [("a", "get_order", "{}")]);
    assert_eq!(warned(&turn), ["/0"]);
}

#[test]
fn a_name_that_could_be_two_things_is_none() {
    for (second, third) in [("get_order_items", ""), ("_items", "_items"), ("", "_items")] {
        let arguments = if second.is_empty() { "{" } else { "" };
        let turn = turn(
            DIALECT,
            &[
                chunk(json!([opening(0, "a", "get_order", arguments), opening(1, "b", "t", "{}")])),
                chunk(json!([piece(0, json!(second), "")])),
                chunk(json!([piece(0, json!(third), "{}")])),
            ],
        );
        assert_eq!(problems(&turn), [vec![("/function/name", "stream")], vec![]], "{second} {third}");
    }
}

#[test]
fn another_id_on_an_index_in_use_is_another_call() {
    let turn = turn(
        DIALECT,
        &[
            chunk(json!([opening(0, "a", "t", "{\"n\":")])),
            chunk(json!([piece(0, Value::Null, "1}")])),
            chunk(json!([opening(0, "b", "t", "{\"n\"")])),
            chunk(json!([piece(0, Value::Null, ":2}")])),
            chunk(json!([{ "index": 0, "id": "a", "function": { "arguments": " " } }])),
        ],
    );
    assert_eq!(calls(&turn), [("a", "t", "{\"n\":1} "), ("b", "t", "{\"n\":2}")]);
    assert_eq!(warned(&turn), ["/1"]);
    assert_eq!(turn.warnings()[0].code, "stream");
}

#[test]
fn another_id_on_an_index_in_use_stops_all_where_each_call_has_its_own() {
    let told = fault(
        DIALECT,
        &[
            chunk(json!([opening(0, "a", "t", "")])),
            chunk(json!([opening(1, "b", "t", "{}")])),
            chunk(json!([opening(0, "c", "u", "{}")])),
        ],
    );
    assert!(told.contains("could belong to two calls"), "{told}");
}

#[test]
fn two_calls_on_one_index_that_nothing_tells_apart_are_none() {
    let names = ["t", "u"].map(|second| {
        let events =
            [chunk(json!([opening(0, "a", "t", "{\"n\":1}")])), chunk(json!([piece(0, json!(second), "{\"n\":2}")]))];
        turn(DIALECT, &events)
    });
    // The gate refuses two objects in a row.
    assert_eq!(calls(&names[0]), [("a", "t", "{\"n\":1}{\"n\":2}")]);
    assert_eq!(problems(&names[1]), [vec![("/function/name", "stream")]]);
}

#[test]
fn without_an_index_the_id_tells_and_without_both_the_place_in_the_chunk() {
    let call = |id: &str, text: &str| json!({ "id": id, "function": { "name": "t", "arguments": text } });
    let bare = |text: &str| json!({ "function": { "arguments": text } });
    let turn = turn(
        DIALECT,
        &[
            chunk(json!([call("a", "{\"n\""), call("b", "{\"m\"")])),
            chunk(json!([bare(":1"), bare(":2")])),
            chunk(json!([{ "id": "b", "function": { "arguments": "}" } }])),
            chunk(json!([{ "id": "a", "function": { "arguments": "}" } }])),
            chunk(json!([call("c", "")])),
            chunk(json!([bare("{}")])),
        ],
    );
    assert_eq!(calls(&turn), [("a", "t", "{\"n\":1}"), ("b", "t", "{\"m\":2}"), ("c", "t", "{}")]);
    assert_eq!(warned(&turn), ["/0", "/1", "/2"]);
}

#[test]
fn an_index_that_was_left_out_later_is_the_place_in_the_chunk() {
    let bare = |text: &str| json!({ "function": { "arguments": text } });
    let turn = turn(
        DIALECT,
        &[
            chunk(json!([opening(0, "a", "t", ""), opening(1, "b", "t", "")])),
            chunk(json!([bare("{}"), bare("{\"n\":1}")])),
        ],
    );
    assert_eq!(calls(&turn), [("a", "t", "{}"), ("b", "t", "{\"n\":1}")]);
}

#[test]
fn a_piece_that_could_belong_to_two_calls_stops_all() {
    let told = fault(
        DIALECT,
        &[
            chunk(json!([opening(0, "a", "t", "")])),
            chunk(json!([{ "id": "b", "function": { "name": "t" } }])),
            chunk(json!([{ "function": { "arguments": "{}" } }])),
        ],
    );
    assert!(told.starts_with("a piece that could belong to two calls"), "{told}");
    for index in [json!("0"), json!(0.5), json!([]), json!(u64::MAX)] {
        let told = fault(DIALECT, &[chunk(json!([{ "index": index, "id": "a", "function": { "name": "t" } }]))]);
        assert!(told.starts_with("the index of a call is no whole number"), "{told}");
    }
}

#[test]
fn a_piece_that_no_name_opened_is_ignored_where_it_is_empty_and_else_a_refused_call() {
    let turn = turn(
        DIALECT,
        &[
            chunk(json!([piece(-1, Value::Null, ""), { "index": 4, "type": "function" }, {}])),
            chunk(json!([piece(-1, Value::Null, "{\"query\": \"tax\"}")])),
            chunk(json!([opening(0, "a", "t", "{}")])),
            chunk(json!([{ "index": 2, "id": "unnamed" }])),
        ],
    );
    let expected = [
        vec![("", "stream"), ("/id", "required"), ("/function/name", "required")],
        vec![],
        vec![("", "stream"), ("/function/name", "required")],
    ];
    assert_eq!(problems(&turn), expected);
}

#[test]
fn what_is_no_text_in_a_piece_is_refused_as_in_a_whole_call() {
    let odd = |id: Value, name: Value, arguments: Value| {
        turn(
            DIALECT,
            &[
                chunk(json!([{ "index": 0, "id": id, "function": { "name": name, "arguments": arguments } }])),
                chunk(json!([piece(0, Value::Null, "{}"), opening(1, "b", "t", "{}")])),
            ],
        )
    };
    let object = odd(json!("a"), json!("t"), json!({ "n": 1 }));
    assert_eq!(problems(&object), [vec![("/function/arguments", "type")], vec![]]);
    assert_eq!(problems(&odd(json!(1), json!("t"), Value::Null))[0], [("/id", "type")]);
    assert_eq!(problems(&odd(json!("a"), json!(["t"]), Value::Null))[0], [("/function/name", "type")]);
    let function = turn(DIALECT, &[chunk(json!([{ "index": 0, "id": "a", "function": "t" }]))]);
    assert_eq!(problems(&function), [vec![("", "stream"), ("/function", "not_object")]]);
    let kind = turn(
        DIALECT,
        &[chunk(json!([{ "index": 0, "id": "a", "type": "custom", "function": { "name": "t", "arguments": "{}" } }]))],
    );
    assert_eq!(problems(&kind), [vec![("/type", "const")]]);
}

#[test]
fn what_nobody_knows_in_a_piece_is_refused_as_in_a_whole_call() {
    let turn = turn(
        DIALECT,
        &[
            chunk(json!([opening(0, "a", "t", "{}")])),
            chunk(json!([{ "index": 0, "as": "mia@acme", "function": { "role": "admin" }, "extra_content": {} }])),
        ],
    );
    let expected = [vec![("/as", "additional_property"), ("/function/role", "additional_property")]];
    assert_eq!(problems(&turn), expected);
}

#[test]
fn arguments_that_come_again_whole_are_taken_once() {
    let turn = turn(
        DIALECT,
        &[
            chunk(json!([opening(0, "a", "t", "{\"n\":")])),
            chunk(json!([piece(0, Value::Null, "{\"n\":")])),
            chunk(json!([piece(0, Value::Null, "1}}")])),
            json!({ "choices": [{ "delta": { "tool_calls": [opening(0, "a", "t", "{\"n\":{\"n\":1}}")] },
                "finish_reason": "tool_calls" }] }),
        ],
    );
    assert_eq!(calls(&turn), [("a", "t", "{\"n\":{\"n\":1}}")]);
    assert_eq!(warned(&turn), ["/0"]);
}

/// The last chunk, with the whole message.
fn whole(id: &str, arguments: &str) -> Value {
    let call = json!({ "id": id, "type": "function", "function": { "name": "t", "arguments": arguments } });
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls",
        "message": { "role": "assistant", "content": null, "tool_calls": [call] } }] })
}

#[test]
fn a_whole_message_may_stand_alone_and_nothing_comes_after_it() {
    let last = whole("a", "{\"n\":1}");
    assert_eq!(calls(&turn(DIALECT, std::slice::from_ref(&last))), [("a", "t", "{\"n\":1}")]);
    let after = [last, chunk(json!([opening(0, "a", "t", "{\"n\"")]))];
    assert!(fault(DIALECT, &after).starts_with("a piece of a call after the whole message"));
}

#[test]
fn a_whole_message_that_says_otherwise_than_its_pieces_does_not_overrule_them() {
    let pieces = [chunk(json!([opening(0, "a", "t", "{\"n\":")])), chunk(json!([piece(0, Value::Null, "1}")]))];
    let with = |last: Value| turn(DIALECT, &[&pieces[..], &[last]].concat());
    let same = with(whole("a", "{\"n\":1}"));
    assert_eq!((calls(&same), warned(&same)), (vec![("a", "t", "{\"n\":1}")], vec![]));
    for other in [whole("a", "{\"n\":2}"), whole("b", "{\"n\":1}"), whole("a", "")] {
        assert_eq!(problems(&with(other.clone())), [vec![("", "stream")]], "{other}");
    }
    let broken_off = turn(DIALECT, &[pieces[0].clone(), whole("a", "{\"n\":1}")]);
    assert_eq!(problems(&broken_off), [vec![("", "stream")]]);
    let more = [chunk(json!([opening(0, "a", "t", "{}"), opening(1, "b", "t", "{}")])), whole("a", "{}")];
    assert!(fault(DIALECT, &more).starts_with("a whole message with other calls than came before it"));
}

#[test]
fn the_last_of_several_whole_messages_does_not_win() {
    let same = turn(DIALECT, &[whole("a", "{}"), whole("a", "{}")]);
    assert_eq!(calls(&same), [("a", "t", "{}")]);
    let other = [whole("a", "{\"n\":1}"), whole("a", "{\"n\":2}"), whole("a", "{\"n\":1}")];
    assert_eq!(problems(&turn(DIALECT, &other)), [vec![("", "stream")]]);
}

#[test]
fn a_call_of_a_broken_stream_does_not_run_with_no_arguments() {
    for text in ["", " "] {
        let events = [chunk(json!([opening(0, "a", "list", "{}"), opening(1, "b", "purge", text)]))];
        let unsure = vec![vec![], vec![("/function/arguments", "stream")]];
        assert_eq!(problems(&turn(DIALECT, &events)), unsure);
        let of_another = json!({ "choices": [{ "index": 1, "delta": {}, "finish_reason": "stop" }] });
        assert_eq!(problems(&turn(DIALECT, &[&events[..], &[of_another]].concat())), unsure);
        let reason = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] });
        for end in [json!("[DONE]"), reason] {
            let whole = turn(DIALECT, &[&events[..], &[end]].concat());
            assert_eq!(calls(&whole)[1], ("b", "purge", text));
        }
    }
}

#[test]
fn a_second_completion_in_the_stream_is_not_merged_with_the_first() {
    let of = |id: &str, pieces: Value| {
        let mut chunk = chunk(pieces);
        chunk["id"] = json!(id);
        chunk
    };
    let first = of("chatcmpl-1", json!([opening(0, "a", "t", "{}")]));
    let end = json!({ "id": "chatcmpl-1", "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] });
    let again = of("chatcmpl-2", json!([opening(1, "b", "t", "{}")]));
    for events in [vec![first.clone(), again.clone()], vec![first.clone(), end.clone(), again]] {
        assert!(fault(DIALECT, &events).starts_with("a chunk of another completion"));
    }
    let after = [first.clone(), end.clone(), chunk(json!([opening(1, "b", "t", "{}")]))];
    assert!(fault(DIALECT, &after).starts_with("a piece of a call after the reason to stop"));
    let used = json!({ "id": "usage", "choices": [], "usage": {} });
    let fine = turn(DIALECT, &[json!({ "id": "", "choices": [] }), first, end, chunk(json!([{ "index": 0 }])), used]);
    assert_eq!(calls(&fine), [("a", "t", "{}")]);
}

#[test]
fn a_piece_without_index_and_id_does_not_go_to_an_earlier_call_than_the_last() {
    let bare = |text: &str| json!({ "function": { "arguments": text } });
    for events in [
        vec![json!([opening(0, "a", "list", "{}")]), json!([opening(1, "b", "purge", "")]), json!([bare("{}")])],
        vec![json!([opening(0, "a", "list", ""), opening(1, "b", "purge", "")]), json!([bare("{}")])],
        // Its place tells no call, though one is open.
        vec![json!([opening(1, "a", "purge", "")]), json!([bare("{}")])],
        vec![json!([opening(0, "a", "purge", ""), bare("{}")])],
    ] {
        let events: Vec<Value> = events.into_iter().map(chunk).collect();
        assert!(fault(DIALECT, &events).starts_with("a piece that could belong to two calls"), "{events:?}");
    }
    let nothing = [chunk(json!([opening(0, "a", "t", "{}"), opening(1, "b", "t", "{}")])), chunk(json!([bare("")]))];
    assert_eq!(calls(&turn(DIALECT, &nothing)).len(), 2);
}

#[test]
fn a_piece_whose_index_and_id_tell_two_calls_stops_all() {
    let named = |id: &str| json!({ "id": id, "function": { "arguments": "{}" } });
    for pieces in [
        // The id of one call on the index of another, or of none.
        vec![json!([opening(0, "a", "t", "")]), json!([{ "index": 1, "id": "a", "function": { "arguments": "{}" } }])],
        // One id of two calls.
        vec![json!([opening(0, "a", "t", ""), opening(1, "a", "t", "")]), json!([named("a")])],
        // One index of two calls, while the first has not all of its arguments.
        vec![
            json!([opening(0, "a", "t", "")]),
            json!([opening(0, "b", "t", "")]),
            json!([piece(0, Value::Null, "{}")]),
        ],
    ] {
        let events: Vec<Value> = pieces.into_iter().map(chunk).collect();
        assert!(fault(DIALECT, &events).starts_with("a piece that could belong to two calls"), "{events:?}");
    }
}

#[test]
fn a_whole_message_without_calls_says_nothing_of_them() {
    let turn = turn(
        DIALECT,
        &[
            chunk(json!([opening(0, "a", "t", "{}")])),
            json!({ "choices": [{ "message": { "role": "assistant", "content": "" }, "finish_reason": "stop" }] }),
        ],
    );
    assert_eq!(calls(&turn), [("a", "t", "{}")]);
}

#[test]
fn a_completion_that_was_cut_off_runs_nothing() {
    for reason in ["length", "content_filter"] {
        let turn = turn(
            DIALECT,
            &[
                chunk(json!([opening(0, "a", "t", "{}"), piece(1, Value::Null, "{")])),
                json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }),
                json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }),
            ],
        );
        assert!(turn.cut_off());
        assert_eq!(refused(&turn), [Code::TurnTruncated, Code::TurnTruncated]);
    }
}

#[test]
fn what_is_no_chunk_of_one_answer_stops_all() {
    let called = chunk(json!([opening(0, "a", "t", "{}")]));
    let second = json!({ "choices": [{ "index": 1, "delta": { "tool_calls": [opening(0, "b", "t", "{}")] } }] });
    for (event, message) in [
        (json!({ "error": { "message": "overloaded" } }), "an error of the provider in the midst of the stream"),
        (second, "calls in more than one choice"),
        (json!({ "type": "ping" }), "an event that is no chunk of a completion"),
        (json!({ "choices": {} }), "choices"),
        (json!({ "choices": [{ "delta": { "tool_calls": {} } }] }), "tool_calls"),
        (chunk(json!([1])), "a piece of a call"),
        (json!({ "choices": [], "tool_calls": [] }), "calls beside the choices of a chunk"),
        (
            json!({ "choices": [{ "delta": { "function_call": { "name": "t" } } }] }),
            "a call in the old member function_call",
        ),
        (json!({ "choices": [{ "delta": { "role": "user" } }] }), "a message that is not the assistant's"),
        (json!({ "choices": [{ "finish_reason": 1 }] }), "finish_reason"),
        (json!({ "choices": [{ "message": { "role": "user" } }] }), "a message that is not the assistant's"),
    ] {
        let told = fault(DIALECT, &[called.clone(), event]);
        assert!(told.starts_with(message), "{message}: {told}");
    }
}

#[test]
fn a_choice_without_calls_does_not_matter() {
    let turn = turn(
        DIALECT,
        &[
            json!({ "choices": [{ "index": 0, "delta": { "role": "", "content": "Hm." } }] }),
            json!({ "choices": [{ "index": 1, "delta": { "tool_calls": [opening(0, "a", "t", "{}")] } }] }),
        ],
    );
    assert_eq!(calls(&turn), [("a", "t", "{}")]);
}
