//! `ollama`: a response of `/api/chat`, its message, or one call object by itself; a `tool` message for each call.

use serde_json::{Map, Value, json};

use super::form::{Arguments, Calls, Form, Id, Inner, Level};
use super::frame::{Frame, Members};
use super::{Answered, Turn, WireFault, foreign};
use crate::contract::Contract;

const CALL: Form = Form {
    shown: r#"{"function": {"name": ..., "arguments": {...}}}"#,
    item: Level { wanted: &["function"], extras: &["id", "type", "index"], unset: &[] },
    kind: Some("function"),
    inner: Some(Inner {
        member: "function",
        level: Level { wanted: &["name", "arguments"], extras: &["index"], unset: &[] },
        holds_id: false,
    }),
    id: Id::Optional("id"),
    arguments: Arguments::Object("arguments"),
};

/// A message has one of these.
const MESSAGE: [&str; 3] = ["role", "content", "tool_calls"];

/// Every reason but these says that the model was not done, or did not begin. An empty one tells nothing.
const DONE: [&str; 3] = ["stop", "tool_calls", ""];

pub(super) fn decode(frame: &Frame<'_>) -> Result<Turn, WireFault> {
    let top = frame.members(frame.bytes(), "the message")?;
    let mut calls = Calls::new(frame, &CALL);
    if top.given("function").is_some() && !top.has_any(&MESSAGE) && !top.has_any(&["message"]) {
        calls.item(frame.bytes().trim_ascii())?;
        return Ok(calls.into_turn(false));
    }
    let cut_off = frame.stopped_otherwise(&top, "done_reason", &DONE)?;
    if let Some(done) = top.get("done").filter(|done| *done == b"false") {
        let hint = "ask with \"stream\": false, or put the pieces together first, then send the whole";
        return Err(frame.fault(done, "a piece of a streamed response", hint));
    }
    let message = match top.given("message") {
        Some(message) => {
            foreign::none_beside(frame, &top, &[])?;
            frame.members(message, "message")?
        }
        None => top,
    };
    expect_message(frame, &message)?;
    if let Some(part) = message.given("tool_calls") {
        calls.items(&frame.items(part, "tool_calls")?)?;
    }
    Ok(calls.into_turn(cut_off))
}

pub(super) fn encode(answers: &[Answered<'_>]) -> Vec<Value> {
    let message = |answer: &Answered<'_>| {
        let mut message = Map::new();
        message.insert("role".to_owned(), json!("tool"));
        message.insert("tool_name".to_owned(), json!(answer.address.name));
        if let Some(id) = &answer.address.id {
            message.insert("tool_call_id".to_owned(), id.clone());
        }
        message.insert("content".to_owned(), json!(answer.content()));
        Value::Object(message)
    };
    answers.iter().map(message).collect()
}

pub(super) fn definition(name: &str, contract: &Contract, schema: Value) -> Value {
    json!({ "type": "function", "function": { "name": name, "description": contract.description(), "parameters": schema } })
}

/// A message of another kind could hold calls that would be passed over in silence.
fn expect_message<'a>(frame: &Frame<'a>, message: &Members<'a>) -> Result<(), WireFault> {
    frame.expect_role(message, "assistant")?;
    foreign::none_beside(frame, message, &["tool_calls"])?;
    foreign::no_call_in_content(frame, message)?;
    if !message.has_any(&MESSAGE) {
        return Err(foreign::unlike(
            frame,
            frame.bytes(),
            message,
            "neither an assistant message nor a response of /api/chat",
            "send the model's message, with its role, or the whole response, with its message",
        ));
    }
    Ok(())
}
