//! `mcp`: a `tools/call` request of the Model Context Protocol (revisions 2024-11-05 to 2026-07-28), and the JSON-RPC
//! response that answers it.
//!
//! What a door of the protocol needs beside the dialect stands here too: [`proposed`] reads the parameters of a call whose
//! envelope the door has read, [`said`] is what a reply says in the protocol's words.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::envelope::Envelope;
use super::form::Level;
use super::frame::{Frame, Members};
use super::{
    Address, Answered, Failure, Proposed, Turn, WireFault, definitions, everything, failed, foreign, parsed, text,
};
use crate::call::{OperationId, TraceContext};
use crate::contract::Contract;
use crate::fault::Fault;
use crate::json::Limits;
use crate::refusal::McpForm;
use crate::reply::Reply;
use crate::schema::{LENIENT, without};

const FORM: &str = r#"{"name": ..., "arguments": {...}}"#;
const REQUEST: Level = Level { wanted: &["jsonrpc", "id", "method", "params"], extras: &[], unset: &[] };
/// Whoever offers no tasks passes over the wish for one (MCP 2025-11-25, "Tasks").
const PARAMS: Level = Level { wanted: &["name", "arguments", "_meta"], extras: &["task"], unset: &[] };

/// The member of a call's `_meta` that names the operation, where the contract lets its caller do so.
pub const OPERATION: &str = "toolgate/operation";

/// JSON-RPC 2.0, section 5.1: the parameters are wrong.
pub const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC 2.0, section 5.1: the server failed.
pub const INTERNAL_ERROR: i64 = -32603;

/// The two forms of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era<'a> {
    /// 2024-11-05 to 2025-11-25: client and server agree on a revision once, by `initialize`.
    Handshake,
    /// From 2026-07-28: each request stands alone, and each result says whose it is.
    Stateless(Implementation<'a>),
}

/// The program that answers, as it names itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Implementation<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
}

/// What a reply says in the words of the protocol.
#[derive(Clone, Debug)]
pub enum Said {
    /// The members of a `CallToolResult`, as JSON text.
    Result(String),
    /// A JSON-RPC error, for what is no fault of the arguments: a tool that is not there, a gate that failed.
    Error {
        /// The JSON-RPC code.
        code: i64,
        /// The message, for people.
        message: String,
        /// The refusal, as JSON text.
        data: String,
    },
}

/// A `CallToolResult`.
#[derive(Serialize)]
struct CallToolResult<'a> {
    #[serde(rename = "resultType", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    content: Box<RawValue>,
    #[serde(rename = "structuredContent", skip_serializing_if = "Option::is_none")]
    structured: Option<&'a RawValue>,
    #[serde(rename = "isError")]
    is_error: bool,
    #[serde(rename = "_meta")]
    meta: Meta<'a>,
}

/// What the gate tells the program beside what the model reads.
#[derive(Serialize)]
struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/serverInfo", skip_serializing_if = "Option::is_none")]
    server: Option<Implementation<'a>>,
    #[serde(rename = "toolgate/reply")]
    reply: Note<'a>,
}

/// What a model must know of a result beside it. It stands in a block of its own, for the result is the tool's.
#[derive(Serialize)]
struct Aside<'a> {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    truncated: &'a [crate::schema::Truncated],
}

/// The members of a reply that have no place in a `CallToolResult`.
#[derive(Serialize)]
struct Note<'a> {
    effect: crate::refusal::Effect,
    replayed: bool,
    #[serde(rename = "ref")]
    reference: &'a crate::call::Ref,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_ref: Option<&'a crate::call::Ref>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    truncated: &'a [crate::schema::Truncated],
}

#[derive(Serialize)]
struct TextBlock<'a> {
    r#type: &'static str,
    text: &'a str,
}

pub(super) fn decode(frame: &Frame<'_>) -> Result<Turn, WireFault> {
    if frame.is_list() {
        return Err(frame.fault(frame.bytes(), "a batch of requests", "none ran; send one request at a time"));
    }
    let request = frame.members(frame.bytes(), "the request")?;
    if request.get("jsonrpc").is_none() {
        let hint = "write \"jsonrpc\": \"2.0\"";
        return Err(foreign::unlike(frame, frame.bytes(), &request, "the request has no jsonrpc", hint));
    }
    expect_text(frame, &request, "jsonrpc", "2.0", "write \"jsonrpc\": \"2.0\"")?;
    expect_text(frame, &request, "method", "tools/call", "only tools/call proposes a call")?;
    let id = match request.get("id") {
        Some(part) => id(frame, part)?,
        None => {
            let hint = "nothing ran, since nothing could be answered; send an id";
            return Err(frame.fault(frame.bytes(), "a call without an id", hint));
        }
    };
    let call_id = shown(&id);
    let mut call = Envelope::with_id(frame.limits(), id, call_id);
    call.only("", &request, &REQUEST);
    let call = params_of(call, "/params", request.get("params"));
    Ok(Turn::new(frame.dialect(), vec![call], false))
}

/// The call that the parameters of a `tools/call` request propose. `id` is the request's: its text, or its digits, is the
/// id of the call.
pub fn proposed(id: &Value, params: Option<&[u8]>, limits: &Limits) -> Proposed {
    // As with a whole message: arguments that are too deep are refused by the gate.
    let limits = Limits { depth: usize::MAX, ..*limits };
    params_of(Envelope::with_id(&limits, id.clone(), shown(id)), "", params).0
}

fn params_of(mut call: Envelope<'_>, at: &str, params: Option<&[u8]>) -> (Proposed, Address) {
    let (mut traced, mut operation) = (None, None);
    match params {
        None => call.missing(at, "send an object with name and arguments"),
        Some(part) => {
            if let Some(params) = call.open(at, part) {
                call.name_as_written(&format!("{at}/name"), params.get("name"));
                if let Some(part) = params.get("arguments") {
                    call.arguments(part);
                }
                call.only(at, &params, &PARAMS);
                let meta = params.given("_meta");
                traced = meta.and_then(trace_context);
                operation = meta.and_then(|meta| operation_id(&mut call, at, meta));
            }
        }
    }
    let (proposed, address) = call.end(FORM);
    let proposed = match (proposed, operation) {
        (Proposed::Call(call), Some(operation)) => Proposed::Call(call.operation(operation)),
        (proposed, _) => proposed,
    };
    (traced.iter().fold(proposed, Proposed::traced), address)
}

/// What the client's program, not its model, names the operation in `_meta`. INVARIANT (nothing lost): one that is none
/// refuses the call, for without it the call would be another action.
fn operation_id(call: &mut Envelope<'_>, at: &str, meta: &[u8]) -> Option<OperationId> {
    let members = call.open(&format!("{at}/_meta"), meta)?;
    let said = members.get(OPERATION)?;
    let id = match crate::json::read(said, &everything()) {
        Ok(Value::String(text)) => OperationId::parse(&text).ok(),
        _ => None,
    };
    if id.is_none() {
        let place = format!("{at}/_meta/{}", OPERATION.replace('/', "~1"));
        let message = "an operation id is 1 to 255 visible ASCII characters, and is never shortened";
        call.problem(place, "pattern", message, "send such an id, a UUID for example, or leave it out");
    }
    id
}

/// The trace that the client's program, not its model, names in `_meta`, in the words of W3C Trace Context. What is
/// malformed is none.
fn trace_context(meta: &[u8]) -> Option<TraceContext> {
    let members = Members::read(meta, &everything()).ok()?;
    let text = |name: &str| match crate::json::read(members.get(name)?, &everything()) {
        Ok(Value::String(text)) => Some(text),
        _ => None,
    };
    TraceContext::parse(&text("traceparent")?, text("tracestate").as_deref())
}

/// What the outcome of a call says to an MCP client of this era.
pub fn said(outcome: Result<&Reply, &Fault>, era: Era<'_>) -> Said {
    let reply = match outcome {
        Ok(reply) => reply,
        Err(fault) => {
            let refusal = failed(fault);
            let message = refusal.text().to_owned();
            return Said::Error { code: INTERNAL_ERROR, message, data: text(&Failure { ok: false, error: refusal }) };
        }
    };
    if let Some(refusal) = reply.refusal()
        && refusal.code().row(refusal.effect()).mcp == McpForm::ProtocolError
    {
        return Said::Error { code: INVALID_PARAMS, message: refusal.text().to_owned(), data: text(reply) };
    }
    let reply_note = Note {
        effect: reply.effect(),
        replayed: reply.replayed(),
        reference: reply.reference(),
        first_ref: reply.first_reference(),
        truncated: reply.truncated(),
    };
    let aside = Aside { replayed: reply.replayed(), note: reply.note(), truncated: reply.truncated() };
    let aside = (aside.replayed || !aside.truncated.is_empty()).then(|| text(&aside));
    let (content, structured) = match reply.raw_result() {
        Some(result) if reply.is_content() => (blocks_of(result, aside.as_deref()), None),
        Some(result) => (blocks(std::iter::once(result.get()).chain(aside.as_deref())), Some(result)),
        // A refusal tells all of it in its own text.
        None => (blocks([text(reply).as_str()]), None),
    };
    let (kind, server, structured) = match era {
        // What is no object stands in the text alone.
        Era::Handshake => (None, None, structured.filter(|result| result.get().starts_with('{'))),
        Era::Stateless(server) => (Some("complete"), Some(server), structured),
    };
    let meta = Meta { server, reply: reply_note };
    let result = CallToolResult { kind, content, structured, is_error: !reply.is_ok(), meta };
    Said::Result(text(&result))
}

pub(super) fn encode(answers: &[Answered<'_>]) -> Vec<Value> {
    let response = |answer: &Answered<'_>| match said(answer.outcome, Era::Handshake) {
        Said::Result(result) => json!({ "jsonrpc": "2.0", "id": answer.id(), "result": parsed(&result) }),
        Said::Error { code, message, data } => {
            let error = json!({ "code": code, "message": message, "data": parsed(&data) });
            json!({ "jsonrpc": "2.0", "id": answer.id(), "error": error })
        }
    };
    answers.iter().map(response).collect()
}

/// A tool as `tools/list` tells it.
pub fn definition(contract: &Contract) -> Value {
    let mut tool = Map::new();
    tool.insert("name".into(), json!(contract.name()));
    tool.insert("description".into(), json!(contract.description()));
    tool.insert("inputSchema".into(), told(&definitions::whole(contract.input())));
    if let Some(output) = contract.output().filter(|_| !contract.yields_content()) {
        // A result is an object or it is no structured content.
        if output.document().get("type").is_some_and(|kind| kind == "object") {
            tool.insert("outputSchema".into(), told(output.document()));
        }
    }
    let read = !contract.is_write();
    tool.insert("annotations".into(), json!({ "readOnlyHint": read }));
    Value::Object(tool)
}

/// Asks a client to send an argument as a header too (2026-07-28), which nothing here would compare with the argument.
const HEADER: &str = "x-mcp-header";

/// A schema without what no client is asked for or told of.
fn told(schema: &Value) -> Value {
    without(schema, &[HEADER, LENIENT])
}

fn expect_text<'a>(
    frame: &Frame<'a>,
    request: &Members<'a>,
    name: &'static str,
    wanted: &str,
    hint: &'static str,
) -> Result<(), WireFault> {
    let Some(part) = request.get(name) else {
        return Err(frame.fault(frame.bytes(), format!("the request has no {name}"), hint));
    };
    match frame.text(part, name)? {
        Some(found) if found == wanted => Ok(()),
        _ => Err(frame.fault(part, format!("another {name} than \"{wanted}\""), hint)),
    }
}

/// The id of a request: text or a whole number, never null (MCP, "Requests").
fn id<'a>(frame: &Frame<'a>, part: &'a [u8]) -> Result<Value, WireFault> {
    match crate::json::read(part, frame.limits()) {
        Ok(id @ Value::String(_)) => Ok(id),
        Ok(Value::Number(number)) if number.is_i64() || number.is_u64() => Ok(Value::Number(number)),
        _ => Err(frame.fault(part, "an id that is neither text nor a whole number", "nothing ran; send such an id")),
    }
}

/// The id of the call: the text of the request's, or its digits.
fn shown(id: &Value) -> String {
    match id {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Text blocks.
fn blocks<'a>(texts: impl IntoIterator<Item = &'a str>) -> Box<RawValue> {
    let blocks: Vec<TextBlock<'_>> = texts.into_iter().map(|text| TextBlock { r#type: "text", text }).collect();
    RawValue::from_string(text(&blocks)).unwrap_or_else(|_| empty())
}

/// The blocks that an upstream gave, as they were checked and bounded, and behind them what is ours to say.
fn blocks_of(result: &RawValue, aside: Option<&str>) -> Box<RawValue> {
    let members = crate::json::members(result.get().as_bytes(), &everything()).unwrap_or_default();
    let content = members.into_iter().find(|(name, _)| name == "content").map(|(_, raw)| raw).unwrap_or_default();
    let given = crate::json::items(content, &everything()).unwrap_or_default();
    let given = given.into_iter().map(String::from_utf8_lossy);
    let ours = aside.map(|aside| Cow::from(text(&TextBlock { r#type: "text", text: aside })));
    let all: Vec<Cow<'_, str>> = given.chain(ours).collect();
    RawValue::from_string(format!("[{}]", all.join(","))).unwrap_or_else(|_| empty())
}

fn empty() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}
