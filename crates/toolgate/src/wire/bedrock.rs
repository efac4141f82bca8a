//! `bedrock-converse`: a response of `Converse`, its message, the content alone, or one `toolUse` block by itself; one `user`
//! message with a `toolResult` for each call.

use serde_json::{Map, Value, json};

use super::form::{Arguments, Calls, Form, Id, Inner, Level};
use super::frame::{Frame, Members};
use super::{Answered, Turn, WireFault, foreign};
use crate::contract::Contract;

const CALL: Form = Form {
    shown: r#"{"toolUse": {"toolUseId": ..., "name": ..., "input": {...}}}"#,
    item: Level { wanted: &["toolUse"], extras: &[], unset: &[] },
    kind: None,
    inner: Some(Inner {
        member: "toolUse",
        level: Level { wanted: &["toolUseId", "name", "input"], extras: &["type"], unset: &[] },
        holds_id: true,
    }),
    id: Id::Needed("toolUseId"),
    arguments: Arguments::Object("input"),
};

/// Every reason but these says that the model was not done, or was stopped, or failed to write a call.
const DONE: [&str; 3] = ["tool_use", "end_turn", "stop_sequence"];

pub(super) fn decode(frame: &Frame<'_>) -> Result<Turn, WireFault> {
    if frame.is_list() {
        return blocks(frame, &frame.items(frame.bytes(), "content")?, false);
    }
    let top = frame.members(frame.bytes(), "the message")?;
    if top.given("toolUse").is_some() && !top.has_any(&["role", "content", "output"]) {
        return blocks(frame, &[frame.bytes().trim_ascii()], false);
    }
    let cut_off = frame.stopped_otherwise(&top, "stopReason", &DONE)?;
    let message = match top.given("output") {
        Some(output) if output.starts_with(b"{") => {
            foreign::none_beside(frame, &top, &[])?;
            let output = frame.members(output, "output")?;
            let message = output.given("message").ok_or_else(|| {
                foreign::unlike(frame, frame.bytes(), &output, "an output without a message", "send the whole response")
            })?;
            frame.members(message, "message")?
        }
        Some(_) | None => top,
    };
    let content = content(frame, &message)?;
    blocks(frame, &frame.items(content, "content")?, cut_off)
}

/// The reply is text, not a `json` document: what stands between reads numbers of documents as doubles.
pub(super) fn encode(answers: &[Answered<'_>]) -> Vec<Value> {
    if answers.is_empty() {
        return Vec::new();
    }
    let block = |answer: &Answered<'_>| {
        let mut result = Map::new();
        result.insert("toolUseId".to_owned(), answer.id());
        result.insert("content".to_owned(), json!([{ "text": answer.content() }]));
        if !answer.is_ok() {
            result.insert("status".to_owned(), json!("error"));
        }
        json!({ "toolResult": result })
    };
    let content: Vec<Value> = answers.iter().map(block).collect();
    vec![json!({ "role": "user", "content": content })]
}

pub(super) fn definition(name: &str, contract: &Contract, schema: Value) -> Value {
    json!({ "toolSpec": { "name": name, "description": contract.description(), "inputSchema": { "json": schema } } })
}

/// The content of the assistant's message. One of another kind could hold calls that would be passed over in silence.
fn content<'a>(frame: &Frame<'a>, message: &Members<'a>) -> Result<&'a [u8], WireFault> {
    frame.expect_role(message, "assistant")?;
    foreign::none_beside(frame, message, &[])?;
    message.given("content").ok_or_else(|| {
        let hint = "send the whole response, with its output, or the message of it";
        foreign::unlike(frame, frame.bytes(), message, "neither a response nor a message with content", hint)
    })
}

fn blocks<'a>(frame: &Frame<'a>, blocks: &[&'a [u8]], cut_off: bool) -> Result<Turn, WireFault> {
    let mut calls = Calls::new(frame, &CALL);
    calls.blocks(blocks, |block, members| {
        foreign::no_call(frame, block, members)?;
        Ok(members.given("toolUse").filter(|part| !runs_there(frame, part)).map(|_| &CALL))
    })?;
    Ok(calls.into_turn(cut_off))
}

/// Whether the provider runs the tool, and answers it, itself.
fn runs_there<'a>(frame: &Frame<'a>, tool_use: &'a [u8]) -> bool {
    let kind = frame.members(tool_use, "toolUse").ok().and_then(|members| members.get("type"));
    kind.is_some_and(|kind| frame.is_text(kind, "server_tool_use"))
}
