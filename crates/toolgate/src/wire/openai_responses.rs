//! `openai-responses`: a response, its output alone, or one `function_call` item by itself; a `function_call_output` item for
//! each call.

use serde_json::{Value, json};

use super::form::{Arguments, Calls, Form, Id, Level};
use super::frame::{Frame, Members};
use super::{Answered, Turn, WireFault, foreign};
use crate::contract::Contract;

const CALL: Form = Form {
    shown: r#"{"type": "function_call", "call_id": ..., "name": ..., "arguments": "..."}"#,
    item: Level {
        wanted: &["type", "call_id", "name", "arguments"],
        extras: &["id", "status", "caller", "created_by"],
        // A name means another tool in a namespace, and none is declared there.
        unset: &["namespace", "parsed_arguments"],
    },
    kind: None,
    inner: None,
    id: Id::Needed("call_id"),
    arguments: Arguments::Text("arguments"),
};

/// Items that are named like calls and that the provider answers itself.
const ANSWERED_THERE: [&str; 6] = [
    "code_interpreter_call",
    "file_search_call",
    "image_generation_call",
    "mcp_call",
    "tool_search_call",
    "web_search_call",
];

pub(super) fn decode(frame: &Frame<'_>) -> Result<Turn, WireFault> {
    if frame.is_list() {
        return items(frame, &frame.items(frame.bytes(), "output")?, false);
    }
    let response = frame.members(frame.bytes(), "the response")?;
    match response.given("output") {
        Some(output) if !output.starts_with(b"{") => {
            foreign::none_beside(frame, &response, &[])?;
            let cut_off = ended_early(frame, &response)?;
            items(frame, &frame.items(output, "output")?, cut_off)
        }
        _ if response.get("type").is_some_and(|kind| frame.is_text(kind, "function_call")) => {
            items(frame, &[frame.bytes().trim_ascii()], false)
        }
        Some(_) | None => {
            let hint = "send the whole response, with its output, or its output as a list";
            Err(foreign::unlike(frame, frame.bytes(), &response, "neither a response nor a function_call", hint))
        }
    }
}

pub(super) fn encode(answers: &[Answered<'_>]) -> Vec<Value> {
    let item = |answer: &Answered<'_>| json!({ "type": "function_call_output", "call_id": answer.id(), "output": answer.content() });
    answers.iter().map(item).collect()
}

pub(super) fn definition(name: &str, contract: &Contract, schema: Value) -> Value {
    json!({ "type": "function", "name": name, "description": contract.description(), "parameters": schema, "strict": false })
}

/// Whether the response ended before it was done. One that is still being made could end in any way.
fn ended_early<'a>(frame: &Frame<'a>, response: &Members<'a>) -> Result<bool, WireFault> {
    if response.given("incomplete_details").is_some() {
        return Ok(true);
    }
    let Some(part) = response.get("status") else { return Ok(false) };
    match frame.text(part, "status")?.as_deref() {
        None | Some("completed") => Ok(false),
        Some("queued" | "in_progress") => Err(frame.fault(
            part,
            "a response that is still being made",
            "none ran; wait for its end, then send the whole",
        )),
        Some(_) => Ok(true),
    }
}

/// The turn of these items. `cut_off` says what is known of the response; an item that is not whole tells the same.
fn items<'a>(frame: &Frame<'a>, items: &[&'a [u8]], mut cut_off: bool) -> Result<Turn, WireFault> {
    let mut calls = Calls::new(frame, &CALL);
    calls.blocks(items, |item, members| {
        let Some(part) = members.given("type") else {
            let hint = "give each item its type";
            return Err(foreign::unlike(frame, item, members, "an item without a type", hint));
        };
        let kind = frame.text(part, "type")?.unwrap_or_default();
        let is_call = kind == "function_call";
        if is_call {
            cut_off |= frame.stopped_otherwise(members, "status", &["completed"])?;
        } else {
            cut_off |= frame.stopped_early(members, "status", &["incomplete"])?;
            foreign::no_call(frame, item, members)?;
            expect_no_other_call(frame, part, &kind, members)?;
        }
        Ok(is_call.then_some(&CALL))
    })?;
    Ok(calls.into_turn(cut_off))
}

/// A call of another kind waits for an answer in a form of its own, which only the program that declared its tool can give.
fn expect_no_other_call<'a>(
    frame: &Frame<'a>,
    part: &'a [u8],
    kind: &str,
    item: &Members<'a>,
) -> Result<(), WireFault> {
    let by_the_program = item.get("execution").is_some_and(|part| frame.is_text(part, "client"));
    let waits = kind.ends_with("_call") || kind.ends_with("_request");
    if waits && (by_the_program || !ANSWERED_THERE.contains(&kind)) {
        return Err(frame.fault(
            part,
            "a call of another kind than function_call",
            "none ran; answer such items in the program that declared their tools, and send the others as a list",
        ));
    }
    Ok(())
}
