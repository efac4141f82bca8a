//! `anthropic`: a message with content blocks, the blocks alone, or one `tool_use` block by itself; one `user` message with
//! a result for each call.

use serde_json::{Map, Value, json};

use super::form::{Arguments, Calls, Form, Id, Level};
use super::frame::{Frame, Members};
use super::{Answered, Turn, WireFault, foreign};
use crate::contract::Contract;

const CALL: Form = Form {
    shown: r#"{"type": "tool_use", "id": ..., "name": ..., "input": {...}}"#,
    item: Level { wanted: &["type", "id", "name", "input"], extras: &["cache_control", "caller"], unset: &[] },
    kind: None,
    inner: None,
    id: Id::Needed("id"),
    arguments: Arguments::Object("input"),
};

/// Every reason but these says that the model was not done, or was stopped.
pub(super) const DONE: [&str; 4] = ["end_turn", "tool_use", "stop_sequence", "pause_turn"];

pub(super) fn decode(frame: &Frame<'_>) -> Result<Turn, WireFault> {
    let mut calls = Calls::new(frame, &CALL);
    let is_call = |block, members: &Members<'_>| form_of(frame, block, members);
    if frame.is_list() {
        calls.blocks(&frame.items(frame.bytes(), "content")?, is_call)?;
        return Ok(calls.into_turn(false));
    }
    let message = frame.members(frame.bytes(), "the message")?;
    if message.get("type") == Some(br#""tool_use""#) {
        calls.item(frame.bytes().trim_ascii())?;
        return Ok(calls.into_turn(false));
    }
    let content = content(frame, &message)?;
    let cut_off = frame.stopped_otherwise(&message, "stop_reason", &DONE)?;
    if !content.starts_with(b"\"") {
        calls.blocks(&frame.items(content, "content")?, is_call)?;
    }
    Ok(calls.into_turn(cut_off))
}

pub(super) fn encode(answers: &[Answered<'_>]) -> Vec<Value> {
    if answers.is_empty() {
        return Vec::new();
    }
    let result = |answer: &Answered<'_>| {
        let mut block = Map::new();
        block.insert("type".to_owned(), json!("tool_result"));
        block.insert("tool_use_id".to_owned(), answer.id());
        block.insert("content".to_owned(), json!(answer.content()));
        if !answer.is_ok() {
            block.insert("is_error".to_owned(), json!(true));
        }
        Value::Object(block)
    };
    let content: Vec<Value> = answers.iter().map(result).collect();
    vec![json!({ "role": "user", "content": content })]
}

pub(super) fn definition(name: &str, contract: &Contract, schema: Value) -> Value {
    json!({ "name": name, "description": contract.description(), "input_schema": schema })
}

/// The content of the assistant's message. One of another kind could hold calls that would be passed over in silence.
fn content<'a>(frame: &Frame<'a>, message: &Members<'a>) -> Result<&'a [u8], WireFault> {
    frame.expect_role(message, "assistant")?;
    foreign::none_beside(frame, message, &[])?;
    message.given("content").ok_or_else(|| {
        let hint = "send the model's message with its content blocks";
        foreign::unlike(frame, frame.bytes(), message, "a message without content", hint)
    })
}

fn form_of<'a>(frame: &Frame<'a>, block: &'a [u8], members: &Members<'a>) -> Result<Option<&'static Form>, WireFault> {
    let Some(kind) = members.given("type") else {
        let hint = "give each block its type";
        return Err(foreign::unlike(frame, block, members, "a content block without a type", hint));
    };
    if frame.text(kind, "type")?.as_deref() == Some("tool_use") {
        return Ok(Some(&CALL));
    }
    foreign::no_call(frame, block, members)?;
    Ok(None)
}
