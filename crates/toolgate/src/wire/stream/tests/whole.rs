//! A stream gives the turn that the whole message gives.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

/// A call as a model makes it.
#[derive(Clone, Debug)]
struct Made {
    id: String,
    name: String,
    arguments: String,
}

fn made() -> impl Strategy<Value = Vec<Made>> {
    let value = prop_oneof![
        any::<i32>().prop_map(Value::from),
        "[a-z\"\\\\\u{1}ü\u{1F95D} ]{0,12}".prop_map(Value::from),
        Just(json!({ "deep": [1, { "n": null }] })),
        Just(json!(9_007_199_254_740_993_u64)),
    ];
    let arguments =
        prop::collection::btree_map("[a-zü]{1,4}", value, 0..4).prop_map(|members| json!(members).to_string());
    let call = ("[a-z0-9_]{0,8}", "[a-z_]{0,8}", arguments);
    let call = call.prop_map(|(id, name, arguments)| Made { id, name, arguments });
    prop::collection::vec(call, 0..5)
}

/// A text in pieces that end where `cuts` say, on boundaries of characters.
fn pieces(text: &str, cuts: &[Index]) -> Vec<String> {
    let bounds: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut ends: Vec<usize> = cuts.iter().map(|cut| bounds[cut.index(bounds.len())]).chain([text.len()]).collect();
    ends.sort_unstable();
    let mut start = 0;
    ends.into_iter().map(|end| text[std::mem::replace(&mut start, end)..end].to_owned()).collect()
}

/// Events of several calls in an order that keeps those of each.
fn interleaved(mut lists: Vec<std::collections::VecDeque<Value>>, picks: &[Index]) -> Vec<Value> {
    let mut events = Vec::new();
    for pick in picks.iter().cycle() {
        lists.retain(|list| !list.is_empty());
        if lists.is_empty() {
            break;
        }
        let list = pick.index(lists.len());
        events.extend(lists[list].pop_front());
    }
    events
}

/// What comes first must come in the order of the calls, since that is their order in the turn.
fn begun(calls: Vec<Vec<Value>>, picks: &[Index]) -> Vec<Value> {
    let (first, rest): (Vec<Value>, Vec<_>) = calls
        .into_iter()
        .map(|mut events| {
            let first = events.remove(0);
            (first, events.into())
        })
        .unzip();
    first.into_iter().chain(interleaved(rest, picks)).collect()
}

fn told(turn: &Turn) -> String {
    format!("{:?} {}", turn.calls(), turn.cut_off())
}

fn whole(dialect: Dialect, message: &Value) -> String {
    told(&dialect.decode(message.to_string().as_bytes(), &Limits::default()).unwrap())
}

fn streamed(dialect: Dialect, events: &[Value]) -> String {
    told(&turn(dialect, events))
}

proptest! {
    #[test]
    fn of_openai_chat(
        calls in made(),
        cuts in prop::collection::vec(any::<Index>(), 0..6),
        picks in prop::collection::vec(any::<Index>(), 1..20),
        first in -2..3_i64,
        early in any::<bool>(),
    ) {
        // Without an id and a name there is nothing that opens a call.
        let calls: Vec<Made> = calls.into_iter().map(|call| Made { name: format!("t{}", call.name), ..call }).collect();
        let item = |(n, call): (usize, &Made)| json!({ "id": format!("{n}{}", call.id), "type": "function",
            "function": { "name": call.name, "arguments": call.arguments } });
        let items: Vec<Value> = calls.iter().enumerate().map(item).collect();
        let reason = if early { "length" } else { "tool_calls" };
        let message = json!({ "choices": [{ "message": { "role": "assistant", "tool_calls": items }, "finish_reason": reason }] });
        let chunk = |piece: Value| json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [piece] } }] });
        let events = calls.iter().enumerate().map(|(n, call)| {
            let index = first + 2 * i64::try_from(n).unwrap();
            let opening = chunk(json!({ "index": index, "id": format!("{n}{}", call.id), "type": "function",
                "function": { "name": call.name, "arguments": "" } }));
            let more = pieces(&call.arguments, &cuts).into_iter();
            let more = more.map(|text| chunk(json!({ "index": index, "function": { "arguments": text } })));
            [opening].into_iter().chain(more).collect()
        });
        let mut events = begun(events.collect(), &picks);
        events.push(json!({ "choices": [{ "delta": {}, "finish_reason": reason }] }));
        prop_assert_eq!(streamed(Dialect::OpenaiChat, &events), whole(Dialect::OpenaiChat, &message));
    }

    #[test]
    fn of_anthropic(
        calls in made(),
        cuts in prop::collection::vec(any::<Index>(), 0..6),
        picks in prop::collection::vec(any::<Index>(), 1..20),
        early in any::<bool>(),
    ) {
        let block = |call: &Made, input: &str| json::read(
            format!(r#"{{"type":"tool_use","id":{},"name":{},"input":{input}}}"#, json!(call.id), json!(call.name)).as_bytes(),
            &Limits::default(),
        ).unwrap();
        let blocks: Vec<Value> = calls.iter().map(|call| block(call, &call.arguments)).collect();
        let reason = if early { "max_tokens" } else { "tool_use" };
        let message = json!({ "role": "assistant", "content": blocks, "stop_reason": reason });
        let events = calls.iter().enumerate().map(|(index, call)| {
            let opening = json!({ "type": "content_block_start", "index": index, "content_block": block(call, "{}") });
            let delta = |text: String| json!({ "type": "content_block_delta", "index": index,
                "delta": { "type": "input_json_delta", "partial_json": text } });
            // The whole message was printed from a value, so its input is too.
            let input = block(call, &call.arguments)["input"].to_string();
            let more = pieces(&input, &cuts).into_iter().map(delta);
            let stop = json!({ "type": "content_block_stop", "index": index });
            [opening].into_iter().chain(more).chain([stop]).collect()
        });
        let mut events = begun(events.collect(), &picks);
        events.insert(0, json!({ "type": "message_start", "message": { "role": "assistant", "content": [] } }));
        events.push(json!({ "type": "message_delta", "delta": { "stop_reason": reason } }));
        events.push(json!({ "type": "message_stop" }));
        prop_assert_eq!(streamed(Dialect::Anthropic, &events), whole(Dialect::Anthropic, &message));
    }

    #[test]
    fn of_openai_responses(
        calls in made(),
        cuts in prop::collection::vec(any::<Index>(), 0..6),
        picks in prop::collection::vec(any::<Index>(), 1..20),
        repeated in any::<bool>(),
    ) {
        let item = |call: &Made, arguments: &str, status: &str| json!({ "type": "function_call", "id": "fc",
            "call_id": call.id, "name": call.name, "arguments": arguments, "status": status });
        let items: Vec<Value> = calls.iter().map(|call| item(call, &call.arguments, "completed")).collect();
        let message = json!({ "status": "completed", "output": items });
        let events = calls.iter().enumerate().map(|(index, call)| {
            let event = |kind: &str, member: &str, value: Value| json!({ "type": format!("response.{kind}"),
                "output_index": index, member: value });
            let opening = event("output_item.added", "item", item(call, "", "in_progress"));
            let more = pieces(&call.arguments, &cuts).into_iter();
            let more = more.map(|text| event("function_call_arguments.delta", "delta", json!(text)));
            let told = event("function_call_arguments.done", "arguments", json!(call.arguments));
            let done = event("output_item.done", "item", item(call, &call.arguments, "completed"));
            [opening].into_iter().chain(more).chain([told, done]).collect()
        });
        let mut events = begun(events.collect(), &picks);
        events.insert(0, json!({ "type": "response.created" }));
        let output = if repeated { json!(items) } else { json!([]) };
        events.push(json!({ "type": "response.completed", "response": { "status": "completed", "output": output } }));
        prop_assert_eq!(streamed(Dialect::OpenaiResponses, &events), whole(Dialect::OpenaiResponses, &message));
    }

    /// Whatever comes in whatever order, nothing runs that is not sound, and nothing panics.
    #[test]
    fn events_in_any_order_never_panic(events in prop::collection::vec(any_event(), 0..30)) {
        for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic] {
            let mut stream = Assembler::new(dialect, &Limits::default()).unwrap();
            let fine = events.iter().all(|event| stream.push(event.to_string().as_bytes()).is_ok());
            let turn = stream.end();
            if let (false, Ok(turn)) = (fine, &turn) {
                panic!("a turn after a fault: {turn:?}");
            }
            if let Ok(turn) = turn {
                prop_assert!(turn.calls().len() <= MOST_CALLS);
                let runs = turn.calls().iter().any(|call| matches!(call, Proposed::Call(_)));
                prop_assert!(!(runs && turn.cut_off()), "{:?}", turn);
            }
        }
    }
}

/// An event of one of the dialects, often of the same few calls.
fn any_event() -> impl Strategy<Value = Value> {
    let text = prop_oneof![Just("{}"), Just("{"), Just("\"n\":1}"), Just(""), Just("t"), Just("u")];
    let id = prop_oneof![Just(json!("a")), Just(json!("b")), Just(Value::Null), Just(json!("")), Just(json!(1))];
    (0..8_u8, -1..3_i64, text, id).prop_map(|(kind, index, text, id)| match kind {
        0 => json!({ "choices": [{ "delta": { "tool_calls": [{ "index": index, "id": id,
            "function": { "name": text, "arguments": "" } }] } }] }),
        1 => json!({ "choices": [{ "delta": { "tool_calls": [{ "id": id, "function": { "arguments": text } }] } }] }),
        2 => json!({ "choices": [{ "delta": {}, "finish_reason": text }], "type": "ping" }),
        3 => json!({ "type": "content_block_start", "index": index,
            "content_block": { "type": "tool_use", "id": id, "name": text, "input": {} } }),
        4 => json!({ "type": "content_block_delta", "index": index,
            "delta": { "type": "input_json_delta", "partial_json": text } }),
        5 => json!({ "type": "content_block_stop", "index": index }),
        6 => json!({ "type": "response.output_item.done", "output_index": index,
            "item": { "type": "function_call", "call_id": id, "name": text, "arguments": text } }),
        _ => json!({ "type": "response.function_call_arguments.delta", "output_index": index, "delta": text }),
    })
}
