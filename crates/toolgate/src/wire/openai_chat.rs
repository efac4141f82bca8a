//! `openai-chat`: an assistant message, a whole completion with one choice, or one call object by itself; a `tool` message
//! for each call.

use serde_json::{Value, json};

use super::envelope::{Calls, Envelope};
use super::frame::{Frame, Members};
use super::{Answered, Dialect, MOST_CALLS, Turn, WireFault};
use crate::contract::Contract;

const FORM: &str = r#"{"id": ..., "type": "function", "function": {"name": ..., "arguments": "..."}}"#;
const CALL: [&str; 3] = ["id", "type", "function"];
/// The place among streamed deltas, and what Gemini sends along to get back.
const CALL_EXTRAS: [&str; 2] = ["index", "extra_content"];
const FUNCTION: [&str; 2] = ["name", "arguments"];
/// A message has one of these.
const MESSAGE: [&str; 3] = ["role", "content", "tool_calls"];

/// Why a model stopped before it was done.
const EARLY: [&str; 2] = ["length", "content_filter"];

pub(super) fn decode(dialect: Dialect, frame: &Frame<'_>) -> Result<Turn, WireFault> {
    let top = frame.members(frame.bytes(), "the message")?;
    if is_call(&top) {
        let mut calls = Calls::new(FORM);
        calls.push(call(frame, frame.bytes().trim_ascii()));
        return Ok(Turn::new(dialect, calls.into_list(), false));
    }
    let (message, mut cut_off) = match top.given("choices") {
        Some(choices) => {
            let choice = only_choice(frame, &top, choices)?;
            let message = choice.given("message").ok_or_else(|| {
                frame.fault(
                    choices,
                    "a choice without a message",
                    "put streamed deltas together first, then send the whole",
                )
            })?;
            (frame.members(message, "message")?, frame.stopped_early(&choice, "finish_reason", &EARLY)?)
        }
        None => (top, false),
    };
    expect_message(frame, &message)?;
    cut_off |= frame.stopped_early(&message, "finish_reason", &EARLY)?;
    let mut calls = Calls::new(FORM);
    if let Some(part) = message.given("tool_calls") {
        let items = frame.items(part, "tool_calls")?;
        if items.len() > MOST_CALLS {
            return Err(frame.too_many_calls(part));
        }
        for item in items {
            calls.push(call(frame, item));
        }
    }
    Ok(Turn::new(dialect, calls.into_list(), cut_off))
}

pub(super) fn encode(answers: &[Answered<'_>]) -> Vec<Value> {
    let message =
        |answer: &Answered<'_>| json!({ "role": "tool", "tool_call_id": answer.id, "content": answer.content() });
    answers.iter().map(message).collect()
}

pub(super) fn definition(name: &str, contract: &Contract, schema: Value) -> Value {
    let function = json!({ "name": name, "description": contract.description(), "parameters": schema });
    json!({ "type": "function", "function": function })
}

/// Whether this is one of the objects of `tool_calls`, without the message around it.
fn is_call(top: &Members<'_>) -> bool {
    let mut names = top.names();
    top.given("function").is_some() && !names.any(|name| MESSAGE.contains(&name) || name == "choices")
}

/// The one choice of a completion. Of several, each would be another turn.
fn only_choice<'a>(frame: &Frame<'a>, top: &Members<'a>, choices: &'a [u8]) -> Result<Members<'a>, WireFault> {
    if let Some(calls) = top.given("tool_calls") {
        return Err(frame.fault(calls, "calls beside the choices", "send a message or a completion, not both in one"));
    }
    match frame.items(choices, "choices")?.as_slice() {
        [choice] => frame.members(choice, "choice"),
        [] => Err(frame.fault(choices, "no choice", "send the completion of a model that has answered")),
        [_, ..] => {
            Err(frame.fault(choices, "more than one choice", "none ran; ask for n = 1, or send the message of one"))
        }
    }
}

/// A message of another kind could hold calls that would be passed over in silence.
fn expect_message<'a>(frame: &Frame<'a>, message: &Members<'a>) -> Result<(), WireFault> {
    frame.expect_assistant(message)?;
    if let Some(legacy) = message.given("function_call") {
        return Err(frame.fault(
            legacy,
            "a call in the old member function_call, which has no id to answer to",
            "declare the tools to the model as tools, not as functions; its calls then come in tool_calls",
        ));
    }
    if let Some(content) = message.given("content").filter(|content| content.starts_with(b"[")) {
        let is_call = |part: &'a [u8]| {
            let kind = frame.members(part, "part").ok().and_then(|part| part.get("type"));
            kind.is_some_and(|kind| matches!(frame.text(kind, "type"), Ok(Some(kind)) if kind == "tool_use"))
        };
        if let Some(part) = frame.items(content, "content")?.into_iter().find(|part| is_call(part)) {
            return Err(frame.fault(part, "a call in the form of another dialect", "read it as the dialect anthropic"));
        }
    }
    if !message.names().any(|name| MESSAGE.contains(&name)) {
        return Err(frame.fault(
            frame.bytes(),
            "neither an assistant message nor a completion",
            "send the model's message, with its role, or the whole completion, with its choices",
        ));
    }
    Ok(())
}

fn call<'a>(frame: &'a Frame<'a>, item: &'a [u8]) -> Envelope<'a> {
    let mut call = Envelope::new(frame.limits());
    let Some(members) = call.open("", item) else { return call };
    call.id(&members);
    if !is_function(&mut call, &members) {
        return call;
    }
    call.only("", &members, &CALL, &CALL_EXTRAS);
    let Some(part) = members.get("function") else {
        call.missing("/function", "send an object with name and arguments");
        return call;
    };
    let Some(function) = call.open("/function", part) else { return call };
    call.name("/function/name", function.get("name"));
    if let Some(part) = function.given("arguments") {
        arguments(&mut call, part);
    }
    call.only("/function", &function, &FUNCTION, &[]);
    call
}

/// Nothing can be said of the members of another kind of call.
fn is_function<'a>(call: &mut Envelope<'a>, members: &Members<'a>) -> bool {
    let Some(part) = members.get("type") else { return true };
    match call.value("/type", part) {
        Some(Value::String(kind)) if kind == "function" => true,
        Some(Value::String(_)) => {
            call.problem("/type", "const", "another kind of call than function", "only functions can be called here");
            false
        }
        Some(other) => {
            call.wrong_type("/type", "the string \"function\"", &other);
            true
        }
        None => true,
    }
}

/// Text that holds the object. A server that sends the object itself may have read it, and rounded its numbers, before.
fn arguments<'a>(call: &mut Envelope<'a>, part: &'a [u8]) {
    match call.value("/function/arguments", part) {
        Some(Value::String(text)) => call.arguments(text),
        Some(other) => call.wrong_type("/function/arguments", "a string that holds a JSON object", &other),
        None => {}
    }
}
