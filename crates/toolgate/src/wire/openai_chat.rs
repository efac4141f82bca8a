//! `openai-chat` and `openai-strict`: an assistant message, a whole completion with one choice, or one call object by
//! itself; a `tool` message for each call.

use serde_json::{Value, json};

use super::form::{Arguments, Calls, Form, Id, Inner, Level};
use super::frame::{Frame, Members};
use super::{Answered, Turn, WireFault, foreign};
use crate::contract::Contract;

/// The members of a call: beside them the place among streamed deltas, and what Gemini sends along to get back.
pub(super) const ITEM: Level =
    Level { wanted: &["id", "type", "function"], extras: &["index", "extra_content"], unset: &[] };
pub(super) const FUNCTION: Level = Level { wanted: &["name", "arguments"], extras: &[], unset: &[] };

const CALL: Form = Form {
    shown: r#"{"id": ..., "type": "function", "function": {"name": ..., "arguments": "..."}}"#,
    item: ITEM,
    kind: Some("function"),
    inner: Some(Inner { member: "function", level: FUNCTION, holds_id: false }),
    id: Id::Needed("id"),
    arguments: Arguments::Text("arguments"),
};

/// A message has one of these.
const MESSAGE: [&str; 3] = ["role", "content", "tool_calls"];

/// Every reason but these says that the model was not done, or that something failed: servers that speak like OpenAI have
/// words of their own for that. An empty one tells nothing.
pub(super) const DONE: [&str; 5] = ["stop", "tool_calls", "function_call", "eos", ""];

pub(super) fn decode(frame: &Frame<'_>) -> Result<Turn, WireFault> {
    let top = frame.members(frame.bytes(), "the message")?;
    let mut calls = Calls::new(frame, &CALL);
    if top.given("function").is_some() && !top.has_any(&MESSAGE) && !top.has_any(&["choices"]) {
        calls.item(frame.bytes().trim_ascii())?;
        return Ok(calls.into_turn(false));
    }
    let (message, mut cut_off) = match top.given("choices") {
        Some(choices) => {
            let choice = only_choice(frame, &top, choices)?;
            let message = choice.given("message").ok_or_else(|| {
                frame.fault(
                    choices,
                    "a choice without a message",
                    "of a stream send all chunks: {\"stream\": [...]}, or the server-sent events as they came",
                )
            })?;
            (frame.members(message, "message")?, frame.stopped_otherwise(&choice, "finish_reason", &DONE)?)
        }
        None => (top, false),
    };
    expect_message(frame, &message)?;
    cut_off |= frame.stopped_otherwise(&message, "finish_reason", &DONE)?;
    if let Some(part) = message.given("tool_calls") {
        calls.items(&frame.items(part, "tool_calls")?)?;
    }
    Ok(calls.into_turn(cut_off))
}

pub(super) fn encode(answers: &[Answered<'_>]) -> Vec<Value> {
    let message =
        |answer: &Answered<'_>| json!({ "role": "tool", "tool_call_id": answer.id(), "content": answer.content() });
    answers.iter().map(message).collect()
}

pub(super) fn definition(name: &str, contract: &Contract, schema: Value) -> Value {
    let function = json!({ "name": name, "description": contract.description(), "parameters": schema });
    json!({ "type": "function", "function": function })
}

fn only_choice<'a>(frame: &Frame<'a>, top: &Members<'a>, choices: &'a [u8]) -> Result<Members<'a>, WireFault> {
    if let Some(calls) = top.given("tool_calls") {
        return Err(frame.fault(calls, "calls beside the choices", "send a message or a completion, not both in one"));
    }
    frame.only(choices, "choices", "choice", "none ran; ask for n = 1, or send the message of one")
}

/// A message of another kind could hold calls that would be passed over in silence.
fn expect_message<'a>(frame: &Frame<'a>, message: &Members<'a>) -> Result<(), WireFault> {
    frame.expect_role(message, "assistant")?;
    expect_no_other_calls(frame, message)?;
    if !message.has_any(&MESSAGE) {
        return Err(foreign::unlike(
            frame,
            frame.bytes(),
            message,
            "neither an assistant message nor a completion",
            "send the model's message, with its role, or the whole completion, with its choices",
        ));
    }
    Ok(())
}

/// Calls that stand elsewhere than in `tool_calls`.
pub(super) fn expect_no_other_calls<'a>(frame: &Frame<'a>, message: &Members<'a>) -> Result<(), WireFault> {
    if let Some(legacy) = message.given("function_call") {
        return Err(frame.fault(
            legacy,
            "a call in the old member function_call, which has no id to answer to",
            "declare the tools to the model as tools, not as functions; its calls then come in tool_calls",
        ));
    }
    foreign::none_beside(frame, message, &["tool_calls"])?;
    foreign::no_call_in_content(frame, message)
}
