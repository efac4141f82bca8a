//! `anthropic`: a message with content blocks, the blocks alone, or one `tool_use` block by itself; one `user` message with
//! a result for each call.

use serde_json::{Map, Value, json};

use super::envelope::{Calls, Envelope};
use super::frame::{Frame, Members};
use super::{Answered, Dialect, MOST_CALLS, Turn, WireFault};
use crate::contract::Contract;

const FORM: &str = r#"{"type": "tool_use", "id": ..., "name": ..., "input": {...}}"#;
const CALL: [&str; 4] = ["type", "id", "name", "input"];
const CALL_EXTRAS: [&str; 2] = ["cache_control", "caller"];

/// Why a model stopped before it was done.
const EARLY: [&str; 3] = ["max_tokens", "model_context_window_exceeded", "refusal"];

pub(super) fn decode(frame: &Frame<'_>) -> Result<Turn, WireFault> {
    let first = frame.bytes().iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'[') {
        return Ok(Turn::new(Dialect::Anthropic, blocks(frame, frame.bytes())?, false));
    }
    let message = frame.members(frame.bytes(), "the message")?;
    if message.get("type") == Some(br#""tool_use""#) {
        let mut calls = Calls::new(FORM);
        if let Some(call) = call(frame, frame.bytes().trim_ascii())? {
            calls.push(call);
        }
        return Ok(Turn::new(Dialect::Anthropic, calls.into_list(), false));
    }
    let content = content(frame, &message)?;
    let cut_off = frame.stopped_early(&message, "stop_reason", &EARLY)?;
    let calls = if content.starts_with(b"\"") { Vec::new() } else { blocks(frame, content)? };
    Ok(Turn::new(Dialect::Anthropic, calls, cut_off))
}

pub(super) fn encode(answers: &[Answered<'_>]) -> Vec<Value> {
    if answers.is_empty() {
        return Vec::new();
    }
    let result = |answer: &Answered<'_>| {
        let mut block = Map::new();
        block.insert("type".to_owned(), json!("tool_result"));
        block.insert("tool_use_id".to_owned(), json!(answer.id));
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
    frame.expect_assistant(message)?;
    if let Some(part) = message.given("tool_calls").or_else(|| message.given("choices")) {
        return Err(frame.fault(part, "a message of another dialect", "read it as the dialect openai-chat"));
    }
    message.given("content").ok_or_else(|| {
        frame.fault(frame.bytes(), "a message without content", "send the model's message with its content blocks")
    })
}

fn blocks<'a>(frame: &Frame<'a>, content: &'a [u8]) -> Result<Vec<super::Proposed>, WireFault> {
    let mut calls = Calls::new(FORM);
    for block in frame.items(content, "content")? {
        if let Some(call) = call(frame, block)? {
            if calls.len() == MOST_CALLS {
                return Err(frame.too_many_calls(block));
            }
            calls.push(call);
        }
    }
    Ok(calls.into_list())
}

/// The call of a block; `None` for a block of another kind. A block that may be a call is never passed over.
fn call<'f, 'a: 'f>(frame: &'f Frame<'a>, block: &'a [u8]) -> Result<Option<Envelope<'f>>, WireFault> {
    let mut call = Envelope::new(frame.limits());
    if !block.starts_with(b"{") {
        return frame.members(block, "a content block").map(|_| None);
    }
    let Some(members) = call.open("", block) else { return Ok(Some(call)) };
    let Some(kind) = members.given("type") else {
        return Err(frame.fault(block, "a content block without a type", "give each block its type"));
    };
    if frame.text(kind, "type")?.as_deref() != Some("tool_use") {
        return Ok(None);
    }
    call.id(&members);
    call.name("/name", members.get("name"));
    if let Some(input) = members.given("input") {
        match input.first() {
            Some(b'{') => call.arguments(input),
            _ => {
                if let Some(other) = call.value("/input", input) {
                    call.wrong_type("/input", "an object", &other);
                }
            }
        }
    }
    call.only("", &members, &CALL, &CALL_EXTRAS);
    Ok(Some(call))
}
