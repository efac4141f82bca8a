//! What becomes of streams, told by their events.

mod anthropic;
mod openai_chat;
mod openai_responses;
mod recorded;
mod whole;

use serde_json::{Value, json};

use super::super::MOST_CALLS;
use super::*;

/// The turn of these events.
fn turn(dialect: Dialect, events: &[Value]) -> Turn {
    assembled(dialect, events).unwrap_or_else(|fault| panic!("{fault}\n{events:#?}"))
}

/// What the fault of these events says.
fn fault(dialect: Dialect, events: &[Value]) -> String {
    match assembled(dialect, events) {
        Ok(turn) => panic!("assembled to {turn:?}: {events:#?}"),
        Err(fault) => fault.to_string(),
    }
}

fn assembled(dialect: Dialect, events: &[Value]) -> Result<Turn, WireFault> {
    let mut stream = Assembler::new(dialect, &Limits::default()).unwrap();
    for event in events {
        stream.push(event.to_string().as_bytes())?;
    }
    stream.end()
}

/// The id, the tool and the text of the arguments of each call; none may be broken.
fn calls(turn: &Turn) -> Vec<(&str, &str, &str)> {
    fn call(proposed: &Proposed) -> (&str, &str, &str) {
        match proposed {
            Proposed::Call(call) => (call.id(), call.tool(), std::str::from_utf8(&call.arguments).unwrap()),
            Proposed::Broken(broken) => panic!("{broken:?}"),
        }
    }
    turn.calls().iter().map(call).collect()
}

/// The places and codes of what is wrong with each call; nothing is with a whole one.
fn problems(turn: &Turn) -> Vec<Vec<(&str, &str)>> {
    fn problems(proposed: &Proposed) -> Vec<(&str, &str)> {
        match proposed {
            Proposed::Call(_) => Vec::new(),
            Proposed::Broken(broken) => {
                assert_eq!(broken.refusal.code(), Code::InvalidCall);
                let problems = broken.refusal.problem_list().iter();
                problems.map(|problem| (problem.at.as_str(), problem.code.as_str())).collect()
            }
        }
    }
    turn.calls().iter().map(problems).collect()
}

/// The codes of the refusals of all calls.
fn refused(turn: &Turn) -> Vec<Code> {
    fn code(proposed: &Proposed) -> Code {
        match proposed {
            Proposed::Call(call) => panic!("{call:?}"),
            Proposed::Broken(broken) => broken.refusal.code(),
        }
    }
    turn.calls().iter().map(code).collect()
}

fn warned(turn: &Turn) -> Vec<&str> {
    turn.warnings().iter().map(|warning| warning.at.as_str()).collect()
}

#[test]
fn only_three_providers_are_read_as_streams() {
    let with: Vec<&str> = Dialect::ALL
        .into_iter()
        .filter(|dialect| Assembler::new(*dialect, &Limits::default()).is_some())
        .map(Dialect::as_str)
        .collect();
    assert_eq!(with, ["openai-chat", "openai-strict", "openai-responses", "anthropic"]);
}

#[test]
fn whoever_goes_on_after_a_fault_gets_the_fault_and_no_turn() {
    let mut stream = Assembler::new(Dialect::OpenaiChat, &Limits::default()).unwrap();
    let first = stream.push(br#"{"choices": 1}"#).unwrap_err();
    let call =
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"t","arguments":"{}"}}]}}]}"#;
    assert_eq!(stream.push(call.as_bytes()).unwrap_err(), first);
    assert_eq!(stream.end().unwrap_err(), first);
}

#[test]
fn nothing_comes_after_the_end() {
    for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic] {
        let mut stream = Assembler::new(dialect, &Limits::default()).unwrap();
        stream.push(b" [DONE]\n").unwrap();
        assert_eq!(stream.push(b"{}").unwrap_err().message, "an event after the end of the stream");
        assert_eq!(fault(dialect, &[]), format!("a stream without events at line 1 column 1: {SENT_AGAIN}"));
    }
}

#[test]
fn an_event_is_read_strictly() {
    for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic] {
        for event in [
            "",
            "[]",
            "1",
            "{",
            r#"{"choices":[],"choices":[]}"#,
            r#"{"type":"ping","type":"ping"}"#,
            "{\"choices\":[],\"type\":\"ping\"} {}",
            "{}",
        ] {
            let mut stream = Assembler::new(dialect, &Limits::default()).unwrap();
            assert!(stream.push(event.as_bytes()).is_err(), "{dialect} {event}");
        }
    }
}

#[test]
fn all_events_together_are_bounded() {
    let limits = Limits { size: 100, ..Limits::default() };
    let mut stream = Assembler::new(Dialect::OpenaiChat, &limits).unwrap();
    let chunk = br#"{"choices":[],"padding":"0123456789"}"#;
    stream.push(chunk).unwrap();
    stream.push(chunk).unwrap();
    assert_eq!(stream.push(chunk).unwrap_err().message, "a stream of more than 100 bytes");
}

#[test]
fn one_call_too_many_is_a_fault_of_the_stream() {
    for (dialect, event) in [
        (
            Dialect::OpenaiChat,
            |n: usize| json!({"choices":[{"delta":{"tool_calls":[{"index":n,"id":format!("c{n}"),"function":{"name":"t"}}]}}]}),
        ),
        (Dialect::OpenaiResponses, |n| {
            json!({"type":"response.output_item.done","output_index":n,
                "item":{"type":"function_call","call_id":format!("c{n}"),"name":"t","arguments":"{}"}})
        }),
        (Dialect::Anthropic, |n| {
            json!({"type":"content_block_start","index":n,
                "content_block":{"type":"tool_use","id":format!("c{n}"),"name":"t","input":{}}})
        }),
    ] as [(Dialect, fn(usize) -> Value); 3]
    {
        let events: Vec<Value> = (0..=MOST_CALLS).map(event).collect();
        assert_eq!(turn(dialect, &events[..MOST_CALLS]).calls().len(), MOST_CALLS);
        assert!(fault(dialect, &events).starts_with("more than 128 calls in one message"), "{dialect}");
    }
}

#[test]
fn a_long_stream_of_small_pieces_costs_what_its_bytes_cost() {
    let limits = Limits { size: usize::MAX, ..Limits::default() };
    let mut stream = Assembler::new(Dialect::OpenaiChat, &limits).unwrap();
    let piece = |text: &str| {
        json!({"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"t","arguments":text}}]}}]})
            .to_string()
    };
    let (first, more) = (piece("{\"a\":\""), piece("0123456789"));
    let begun = std::time::Instant::now();
    stream.push(first.as_bytes()).unwrap();
    for _ in 0..50_000 {
        stream.push(more.as_bytes()).unwrap();
    }
    stream.push(piece("\"}").as_bytes()).unwrap();
    let turn = stream.end().unwrap();
    assert_eq!(calls(&turn)[0].2.len(), 500_008);
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}
