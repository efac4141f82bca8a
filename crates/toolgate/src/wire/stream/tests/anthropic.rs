use super::*;

const DIALECT: Dialect = Dialect::Anthropic;

fn start(index: i64, id: &str, name: &str, input: Value) -> Value {
    let block = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn delta(index: i64, text: &str) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": { "type": "input_json_delta", "partial_json": text } })
}

fn stop(index: i64) -> Value {
    json!({ "type": "content_block_stop", "index": index })
}

fn begin() -> Value {
    json!({ "type": "message_start", "message": { "type": "message", "role": "assistant", "content": [], "stop_reason": null } })
}

fn ending(reason: &str) -> Value {
    json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": {} })
}

fn end() -> Value {
    json!({ "type": "message_stop" })
}

#[test]
fn a_message_is_put_together_of_its_blocks() {
    let text = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } });
    let words =
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Well." } });
    let turn = turn(
        DIALECT,
        &[
            begin(),
            text,
            json!({ "type": "ping" }),
            words,
            stop(0),
            start(1, "toolu_1", "get_order", json!({})),
            delta(1, ""),
            delta(1, "{\"order_id\""),
            delta(1, ": \"ord_1\"}"),
            stop(1),
            json!({ "type": "an_event_of_tomorrow", "index": 1 }),
            ending("tool_use"),
            end(),
        ],
    );
    assert_eq!(calls(&turn), [("toolu_1", "get_order", "{\"order_id\": \"ord_1\"}")]);
    assert_eq!((turn.cut_off(), turn.warnings()), (false, &[][..]));
}

#[test]
fn blocks_may_be_interleaved() {
    let turn = turn(
        DIALECT,
        &[
            start(3, "a", "t", json!({})),
            start(1, "b", "u", json!({})),
            delta(1, "{\"x\":"),
            delta(3, "{}"),
            stop(3),
            delta(1, "1}"),
            stop(1),
        ],
    );
    assert_eq!(calls(&turn), [("a", "t", "{}"), ("b", "u", "{\"x\":1}")]);
}

#[test]
fn an_input_at_the_start_is_the_input_and_pieces_after_it_are_a_doubt() {
    let whole = turn(DIALECT, &[start(0, "a", "t", json!({ "n": 1 })), delta(0, ""), stop(0)]);
    assert_eq!(calls(&whole), [("a", "t", "{\"n\":1}")]);
    let both = turn(DIALECT, &[start(0, "a", "t", json!({ "n": 1 })), delta(0, "{\"n\":1}"), stop(0)]);
    assert_eq!(problems(&both), [vec![("/input", "stream")]]);
    let none = turn(DIALECT, &[start(0, "a", "t", json!({})), stop(0)]);
    assert_eq!(calls(&none), [("a", "t", "{}")]);
}

#[test]
fn an_index_that_is_used_again_after_its_stop_is_another_call() {
    let turn = turn(
        DIALECT,
        &[
            start(0, "a", "t", json!({})),
            delta(0, "{\"n\":1}"),
            stop(0),
            start(0, "b", "t", json!({})),
            delta(0, "{\"n\":2}"),
            stop(0),
        ],
    );
    assert_eq!(calls(&turn), [("a", "t", "{\"n\":1}"), ("b", "t", "{\"n\":2}")]);
    assert_eq!(warned(&turn), ["/1"]);
}

#[test]
fn a_call_whose_block_is_sent_twice_does_not_run_twice() {
    let call = [start(0, "a", "t", json!({})), delta(0, "{}"), stop(0)];
    let twice = fault(DIALECT, &[&call[..], &call].concat());
    assert!(twice.starts_with("the block of a call again, after its stop"), "{twice}");
}

#[test]
fn a_block_after_the_reason_to_stop_is_not_merged_into_the_message() {
    let call = [begin(), start(0, "a", "t", json!({})), stop(0), ending("tool_use")];
    for late in [start(1, "b", "t", json!({})), delta(0, "{}")] {
        let told = fault(DIALECT, &[&call[..], &[late]].concat());
        assert!(told.starts_with("a block after the end of the message"), "{told}");
    }
}

#[test]
fn a_message_that_ends_too_early_runs_nothing() {
    let call = [start(0, "a", "t", json!({})), delta(0, "{}"), stop(0)];
    let with = |before: &[Value], after: &[Value]| turn(DIALECT, &[before, &call, after].concat());
    for cut in [
        with(&[begin()], &[]),
        with(&[begin()], &[start(1, "b", "t", json!({}))]),
        with(&[], &[start(1, "b", "t", json!({})), delta(1, "{}")]),
        with(&[begin()], &[ending("max_tokens"), end()]),
        with(&[], &[ending("refusal")]),
    ] {
        assert!(cut.cut_off());
        assert!(refused(&cut).iter().all(|code| *code == Code::TurnTruncated));
    }
    for whole in [with(&[], &[]), with(&[begin()], &[end()]), with(&[begin()], &[ending("tool_use")])] {
        assert_eq!(calls(&whole), [("a", "t", "{}")]);
    }
}

#[test]
fn what_a_version_adds_to_other_blocks_is_passed_over_and_to_a_call_is_a_doubt() {
    let other = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "block_of_tomorrow" } });
    let strange =
        |index| json!({ "type": "content_block_delta", "index": index, "delta": { "type": "delta_of_tomorrow" } });
    let server = json!({ "type": "content_block_start", "index": 1,
        "content_block": { "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} } });
    let turn = turn(
        DIALECT,
        &[
            other,
            strange(0),
            server,
            delta(1, "{\"query\":"),
            stop(0),
            stop(1),
            start(2, "a", "t", json!({})),
            delta(2, "{}"),
            strange(2),
            stop(2),
            start(3, "b", "t", json!({})),
            delta(3, "{}"),
            stop(3),
        ],
    );
    assert_eq!(problems(&turn), [vec![("", "stream")], vec![]]);
}

#[test]
fn pieces_without_a_block_are_ignored_where_they_are_empty_and_else_a_refused_call() {
    let turn = turn(DIALECT, &[delta(5, ""), delta(4, "{}"), stop(4), stop(9), start(0, "a", "t", json!({})), stop(0)]);
    assert_eq!(problems(&turn), [vec![("", "stream"), ("/id", "required"), ("/name", "required")], vec![]]);
}

#[test]
fn a_piece_after_the_stop_is_a_doubt() {
    let turn = turn(DIALECT, &[start(0, "a", "t", json!({})), delta(0, "{}"), stop(0), delta(0, " "), stop(0)]);
    assert_eq!(problems(&turn), [vec![("", "stream")]]);
}

#[test]
fn an_input_that_is_no_object_is_refused_and_one_that_is_broken_is_for_the_gate() {
    let with = |text: &str| turn(DIALECT, &[start(0, "a", "t", json!({})), delta(0, text), stop(0)]);
    assert_eq!(problems(&with("[1]")), [vec![("/input", "type")]]);
    assert_eq!(problems(&with("\"{}\"")), [vec![("/input", "type")]]);
    assert_eq!(problems(&with("nothing")), [vec![("/input", "stream")]]);
    assert_eq!(calls(&with("{\"n\":")), [("a", "t", "{\"n\":")]);
    assert_eq!(calls(&with("  ")), [("a", "t", "{}")]);
    let odd = json!({ "type": "content_block_delta", "index": 0,
        "delta": { "type": "input_json_delta", "partial_json": { "n": 1 } } });
    assert_eq!(problems(&turn(DIALECT, &[start(0, "a", "t", json!({})), odd, stop(0)])), [vec![("/input", "stream")]]);
}

#[test]
fn what_is_wrong_with_a_block_is_told_as_in_a_whole_message() {
    let block = json!({ "type": "tool_use", "id": "", "input": {}, "as": "mia" });
    let start = json!({ "type": "content_block_start", "index": 0, "content_block": block });
    let turn = turn(DIALECT, &[start, delta(0, "{}"), stop(0)]);
    assert_eq!(problems(&turn), [vec![("/id", "min_length"), ("/name", "required"), ("/as", "additional_property")]]);
}

#[test]
fn what_is_no_event_of_one_message_stops_all() {
    let untyped = json!({ "type": "content_block_start", "index": 1, "content_block": { "id": "a" } });
    let full = json!({ "type": "message_start", "message": { "role": "assistant", "content": [{ "type": "text" }] } });
    for (events, message) in [
        (vec![json!({ "type": "error", "error": { "type": "overloaded_error" } })], "an error of the provider"),
        (vec![json!({ "choices": [] })], "an event without a type"),
        (vec![json!({ "type": 1 })], "type is a number"),
        (vec![json!({ "type": "message", "role": "assistant", "content": [] })], "a whole message among the events"),
        (vec![begin(), begin()], "a second message in the stream"),
        (vec![full], "a message that starts with content"),
        (vec![start(0, "b", "t", json!({}))], "a block on an index whose block is not stopped"),
        (vec![end(), start(1, "b", "t", json!({}))], "a block after the end of the message"),
        (vec![end(), delta(0, "{}")], "a block after the end of the message"),
        (vec![untyped], "a content block without a type"),
        (vec![json!({ "type": "content_block_start", "content_block": {} })], "an event of a block without its index"),
        (vec![json!({ "type": "content_block_start", "index": 1 })], "the start of a block without the block"),
        (vec![json!({ "type": "content_block_delta", "index": "0", "delta": {} })], "the index of a block"),
    ] {
        let opened =
            if message == "a second message in the stream" { vec![] } else { vec![start(0, "a", "t", json!({}))] };
        let opened = if message == "a message that starts with content" { vec![] } else { opened };
        let told = fault(DIALECT, &[opened, events].concat());
        assert!(told.starts_with(message), "{message}: {told}");
    }
}
