//! `gemini`: a response of `generateContent` with one candidate, its content, the parts alone, or one `functionCall` part by
//! itself; one `user` content with a `functionResponse` for each call.
//!
//! The API writes its members in camelCase. Programs that print what a library has read write them in snake_case, which the
//! JSON of protocol buffers takes as well ("ProtoJSON", the table of its mapping). Both are read, and one member in both
//! spellings is refused.

use serde_json::{Map, Value, json};

use super::definitions::Parameters;
use super::form::{Arguments, Calls, Form, Id, Inner, Level};
use super::frame::{Frame, Members};
use super::{Answered, Turn, WireFault, foreign, parsed};
use crate::contract::Contract;

const CALL: Form = Form {
    shown: r#"{"functionCall": {"name": ..., "args": {...}}}"#,
    item: PART,
    kind: None,
    inner: Some(inner("functionCall")),
    id: Id::Optional("id"),
    arguments: Arguments::Object("args"),
};

const CALL_IN_SNAKE_CASE: Form =
    Form { shown: r#"{"function_call": {"name": ..., "args": {...}}}"#, inner: Some(inner("function_call")), ..CALL };

/// A part that is a call is nothing else beside it.
const PART: Level = Level {
    wanted: &["functionCall", "function_call"],
    extras: &["thought", "thoughtSignature", "thought_signature", "partMetadata", "part_metadata"],
    unset: &[
        "text",
        "inlineData",
        "inline_data",
        "fileData",
        "file_data",
        "functionResponse",
        "function_response",
        "executableCode",
        "executable_code",
        "codeExecutionResult",
        "code_execution_result",
        "videoMetadata",
        "video_metadata",
        "mediaResolution",
        "media_resolution",
        "toolCall",
        "tool_call",
        "toolResponse",
        "tool_response",
    ],
};

/// Every reason but this one says that the model was not done, or was stopped, or failed to write a call.
const DONE: [&str; 1] = ["STOP"];

const fn inner(member: &'static str) -> Inner {
    let level = Level {
        wanted: &["name", "args", "id"],
        extras: &[],
        // Of a call that comes in pieces.
        unset: &["partialArgs", "partial_args", "willContinue", "will_continue"],
    };
    Inner { member, level, holds_id: true }
}

pub(super) fn decode(frame: &Frame<'_>) -> Result<Turn, WireFault> {
    if frame.is_list() {
        return turn(frame, Some(frame.bytes()), false);
    }
    let top = frame.members(frame.bytes(), "the message")?;
    if let Some(candidates) = top.given("candidates") {
        foreign::none_beside(frame, &top, &["candidates"])?;
        let hint = "none ran; ask for candidateCount = 1, or send the content of one";
        let candidate = frame.only(candidates, "candidates", "candidate", hint)?;
        let cut_off = match spelled(frame, &candidate, "finishReason", "finish_reason")? {
            Some((name, _)) => frame.stopped_otherwise(&candidate, name, &DONE)?,
            None => false,
        };
        // A filter may leave nothing of a candidate but the reason.
        let Some(content) = candidate.given("content") else { return turn(frame, None, cut_off) };
        return turn(frame, parts(frame, &frame.members(content, "content")?)?, cut_off);
    }
    if spelled(frame, &top, "functionCall", "function_call")?.is_some() && !top.has_any(&["role", "parts"]) {
        return whole(frame, &[frame.bytes().trim_ascii()], false);
    }
    if !top.has_any(&["role", "parts"]) || top.has_any(&["content", "tool_calls"]) {
        return Err(foreign::unlike(
            frame,
            frame.bytes(),
            &top,
            "neither a response nor a content of the model",
            "send the whole response, with its candidates, or a content, with its parts",
        ));
    }
    turn(frame, parts(frame, &top)?, false)
}

pub(super) fn encode(answers: &[Answered<'_>]) -> Vec<Value> {
    if answers.is_empty() {
        return Vec::new();
    }
    // The model reads a response with a member `error` as a failure: that is the flag of this dialect.
    let part = |answer: &Answered<'_>| {
        let mut response = Map::new();
        if let Some(id) = &answer.address.id {
            response.insert("id".to_owned(), id.clone());
        }
        response.insert("name".to_owned(), json!(answer.address.name));
        response.insert("response".to_owned(), parsed(&answer.content()));
        json!({ "functionResponse": response })
    };
    let parts: Vec<Value> = answers.iter().map(part).collect();
    vec![json!({ "role": "user", "parts": parts })]
}

pub(super) fn definition(name: &str, contract: &Contract, parameters: Parameters) -> Value {
    let mut function = Map::new();
    function.insert("name".to_owned(), json!(name));
    function.insert("description".to_owned(), json!(contract.description()));
    if let Some((form, schema)) = parameters {
        function.insert(form.to_owned(), schema);
    }
    Value::Object(function)
}

/// The parts of the model's content.
fn parts<'a>(frame: &Frame<'a>, content: &Members<'a>) -> Result<Option<&'a [u8]>, WireFault> {
    frame.expect_role(content, "model")?;
    foreign::none_beside(frame, content, &["parts"])?;
    Ok(content.given("parts"))
}

fn turn<'a>(frame: &Frame<'a>, parts: Option<&'a [u8]>, cut_off: bool) -> Result<Turn, WireFault> {
    let parts = parts.map_or(Ok(Vec::new()), |parts| frame.items(parts, "parts"))?;
    whole(frame, &parts, cut_off)
}

fn whole<'a>(frame: &Frame<'a>, parts: &[&'a [u8]], cut_off: bool) -> Result<Turn, WireFault> {
    let mut calls = Calls::new(frame, &CALL);
    calls.blocks(parts, |part, members| {
        if members.has_any(&["candidates"]) {
            let hint = "put the pieces together first, then send the whole response";
            return Err(frame.fault(part, "a piece of a streamed response", hint));
        }
        foreign::no_call(frame, part, members)?;
        Ok(match spelled(frame, members, "functionCall", "function_call")? {
            Some(("functionCall", _)) => Some(&CALL),
            Some(_) => Some(&CALL_IN_SNAKE_CASE),
            None => None,
        })
    })?;
    Ok(calls.into_turn(cut_off))
}

/// A member in the spelling that it has.
fn spelled<'a>(
    frame: &Frame<'a>,
    members: &Members<'a>,
    camel: &'static str,
    snake: &'static str,
) -> Result<Option<(&'static str, &'a [u8])>, WireFault> {
    match (members.given(camel), members.given(snake)) {
        (Some(_), Some(second)) => {
            let message = format!("{camel} a second time, as {snake}");
            Err(frame.fault(second, message, "pass the provider's message on as it came"))
        }
        (Some(part), None) => Ok(Some((camel, part))),
        (None, Some(part)) => Ok(Some((snake, part))),
        (None, None) => Ok(None),
    }
}
