use super::*;

const DIALECT: Dialect = Dialect::OpenaiResponses;

fn item(id: &str, name: &str, arguments: &str, status: &str) -> Value {
    json!({ "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments,
        "status": status })
}

fn added(index: i64, item: Value) -> Value {
    json!({ "type": "response.output_item.added", "output_index": index, "item": item })
}

fn delta(index: i64, text: &str) -> Value {
    json!({ "type": "response.function_call_arguments.delta", "item_id": "fc", "output_index": index, "delta": text })
}

fn told(index: i64, text: &str) -> Value {
    json!({ "type": "response.function_call_arguments.done", "item_id": "fc", "output_index": index, "arguments": text })
}

fn done(index: i64, item: Value) -> Value {
    json!({ "type": "response.output_item.done", "output_index": index, "item": item })
}

fn created() -> Value {
    json!({ "type": "response.created", "response": { "status": "in_progress", "output": [] } })
}

fn completed(output: Value) -> Value {
    json!({ "type": "response.completed", "response": { "status": "completed", "output": output } })
}

fn opened(index: i64, id: &str) -> Value {
    added(index, item(id, "t", "", "in_progress"))
}

fn finished(index: i64, id: &str, arguments: &str) -> Value {
    done(index, item(id, "t", arguments, "completed"))
}

#[test]
fn a_response_is_put_together_of_its_items() {
    let reasoning = json!({ "type": "reasoning", "id": "rs", "summary": [] });
    let mut events = vec![
        created(),
        json!({ "type": "response.in_progress", "response": {} }),
        added(0, reasoning.clone()),
        done(0, reasoning),
        opened(1, "a"),
        delta(1, "{\"n\""),
        delta(1, ""),
        delta(1, ":1}"),
        told(1, "{\"n\":1}"),
        finished(1, "a", "{\"n\":1}"),
        json!({ "type": "response.event_of_tomorrow" }),
        completed(json!([item("a", "t", "{\"n\":1}", "completed")])),
    ];
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number * 2);
    }
    let turn = turn(DIALECT, &events);
    assert_eq!(calls(&turn), [("a", "t", "{\"n\":1}")]);
    assert_eq!((turn.cut_off(), turn.warnings()), (false, &[][..]));
}

#[test]
fn items_may_be_interleaved_and_their_indexes_may_have_gaps() {
    let turn = turn(
        DIALECT,
        &[
            opened(4, "a"),
            opened(2, "b"),
            delta(2, "{\"n\":"),
            delta(4, "{}"),
            told(4, "{}"),
            delta(2, "2}"),
            finished(2, "b", "{\"n\":2}"),
        ],
    );
    assert_eq!(calls(&turn), [("a", "t", "{}"), ("b", "t", "{\"n\":2}")]);
}

#[test]
fn an_item_that_comes_whole_at_once_is_a_call() {
    for events in [
        vec![finished(0, "a", "{\"n\":1}")],
        vec![opened(0, "a"), told(0, "{\"n\":1}")],
        vec![opened(0, "a"), finished(0, "a", "{\"n\":1}")],
        vec![added(0, item("a", "t", "{\"n\":1}", "in_progress")), told(0, "{\"n\":1}")],
        vec![created(), completed(json!([item("a", "t", "{\"n\":1}", "completed")]))],
        vec![delta(0, "{\"n\":1}"), opened(0, "a"), told(0, "{\"n\":1}")],
        vec![created(), finished(0, "a", "{\"n\":1}"), completed(json!([]))],
    ] {
        assert_eq!(calls(&turn(DIALECT, &events)), [("a", "t", "{\"n\":1}")], "{events:#?}");
    }
}

#[test]
fn what_is_told_of_a_call_must_agree() {
    let pieces = || vec![opened(0, "a"), delta(0, "{\"n\":1}")];
    let other = [opened(1, "b"), delta(1, "{}"), told(1, "{}")];
    for (last, at) in [
        (vec![told(0, "{\"n\":2}")], "/arguments"),
        (vec![told(0, "")], "/arguments"),
        (vec![finished(0, "a", "{\"n\":2}")], "/arguments"),
        (vec![told(0, "{\"n\":1}"), finished(0, "a", "{\"n\":2}")], "/arguments"),
        (vec![told(0, "{\"n\":1}"), delta(0, " ")], "/arguments"),
        (vec![finished(0, "x", "{\"n\":1}")], "/call_id"),
        (vec![done(0, item("a", "u", "{\"n\":1}", "completed"))], "/name"),
        (vec![told(0, "{\"n\":1}"), done(0, json!({ "type": "reasoning" }))], ""),
    ] {
        let events = [pieces(), last.clone(), other.to_vec()].concat();
        assert_eq!(problems(&turn(DIALECT, &events)), [vec![(at, "stream")], vec![]], "{last:?}");
    }
}

#[test]
fn a_whole_response_that_says_otherwise_is_a_doubt_about_the_call_that_differs() {
    let events =
        |output: Value| vec![opened(0, "a"), told(0, "{}"), opened(1, "b"), told(1, "{\"n\":1}"), completed(output)];
    let whole = |id, arguments| item(id, "t", arguments, "completed");
    let differs = turn(DIALECT, &events(json!([whole("a", "{}"), whole("b", "{\"n\":2}")])));
    assert_eq!(problems(&differs), [vec![], vec![("", "stream")]]);
    let fewer = fault(DIALECT, &events(json!([whole("a", "{}")])));
    assert!(fewer.starts_with("a whole response with other calls than its events had"), "{fewer}");
    let none = fault(DIALECT, &events(json!([{ "type": "message", "role": "assistant", "content": [] }])));
    assert!(none.starts_with("a whole response with other calls than its events had"), "{none}");
    assert_eq!(calls(&turn(DIALECT, &events(json!([]))))[1], ("b", "t", "{\"n\":1}"));
}

#[test]
fn a_second_response_in_the_stream_is_not_merged_with_the_first() {
    let call = [created(), opened(0, "a"), told(0, "{}")];
    for events in [[&call[..], &[created(), opened(1, "b")]].concat(), vec![opened(0, "a"), created()]] {
        let second = fault(DIALECT, &events);
        assert!(second.starts_with("a second response in the stream"), "{second}");
    }
}

#[test]
fn arguments_whose_index_and_item_tell_two_calls_stop_all() {
    let of = |mut event: Value, item: &str| {
        event["item_id"] = json!(item);
        event
    };
    let open = [opened(0, "a"), opened(1, "b")];
    for swapped in [of(delta(0, "{}"), "fc_b"), of(told(0, "{}"), "fc_b")] {
        let two = fault(DIALECT, &[&open[..], &[swapped]].concat());
        assert!(two.starts_with("an event that could belong to two calls"), "{two}");
    }
    let right = [of(told(0, "{}"), "fc_a"), of(told(1, "{}"), "rewritten")];
    assert_eq!(calls(&turn(DIALECT, &[&open[..], &right].concat())), [("a", "t", "{}"), ("b", "t", "{}")]);
}

#[test]
fn a_response_that_ends_too_early_runs_nothing() {
    let call = [opened(0, "a"), told(0, "{}")];
    for (before, after) in [
        (vec![created()], vec![]),
        (vec![], vec![opened(1, "b")]),
        (vec![], vec![opened(1, "b"), delta(1, "{}")]),
        (vec![created()], vec![json!({ "type": "response.incomplete", "response": {} })]),
        (vec![], vec![done(1, item("b", "t", "{}", "incomplete"))]),
    ] {
        let turn = turn(DIALECT, &[before, call.to_vec(), after].concat());
        assert!(turn.cut_off(), "{turn:?}");
        assert!(refused(&turn).iter().all(|code| *code == Code::TurnTruncated));
    }
}

#[test]
fn pieces_without_an_item_are_ignored_where_they_are_empty_and_else_a_refused_call() {
    let turn = turn(DIALECT, &[delta(3, ""), told(3, ""), delta(2, "{}"), finished(0, "a", "{}")]);
    let problems = problems(&turn);
    assert_eq!(problems[0], [("", "stream"), ("/call_id", "required"), ("/name", "required")]);
    assert_eq!((problems.len(), &problems[1]), (2, &vec![]));
}

#[test]
fn what_is_no_event_of_one_response_stops_all() {
    let ordered = |number: Value| json!({ "type": "response.in_progress", "sequence_number": number });
    let custom = json!({ "type": "custom_tool_call", "call_id": "c", "name": "shell", "input": "ls" });
    for (events, message) in [
        (vec![json!({ "type": "error", "message": "overloaded" })], "an error of the provider"),
        (vec![json!({ "type": "response.failed", "response": {} })], "an error of the provider"),
        (vec![ordered(json!(2)), ordered(json!(1))], "events out of order"),
        (vec![ordered(json!(2)), ordered(json!(2))], "events out of order"),
        (vec![ordered(json!("2"))], "the number of an event is no whole number"),
        (vec![json!({ "choices": [] })], "an event without a type"),
        (vec![item("a", "t", "{}", "completed")], "a whole item among the events"),
        (vec![opened(0, "b")], "an item in the place of a call"),
        (vec![completed(json!([])), opened(1, "b")], "an event after the end of the response"),
        (vec![added(1, custom)], "a call of another kind than function_call"),
        (
            vec![json!({ "type": "response.output_item.added", "item": {} })],
            "an event of an item without its output_index",
        ),
        (
            vec![json!({ "type": "response.output_item.done", "output_index": 1 })],
            "an event of an item without the item",
        ),
    ] {
        let told = fault(DIALECT, &[vec![opened(0, "a")], events].concat());
        assert!(told.starts_with(message), "{message}: {told}");
    }
}
