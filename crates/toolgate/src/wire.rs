//! The dialects: from a model's own message to calls, and from replies to the tool messages that the model reads.
//!
//! A message is read strictly, one level at a time. What is wrong with the message itself is a [`WireFault`], for the
//! program that sent it. What is wrong with one call of it makes that call [`Broken`]: it is answered with
//! `invalid_call`, and the other calls go on. The text of the arguments is not read here: it goes to the gate as it was
//! written. Nothing is repaired, and no calls are looked for in prose.
//!
//! A turn that a length limit or a filter cut off runs nothing: each of its calls is answered with `turn_truncated`.
//!
//! The file of a dialect says how it writes a call (`form`) and where a message holds calls; reading both, and answering,
//! is the same for all.

mod anthropic;
mod bedrock;
mod definitions;
mod envelope;
mod foreign;
mod form;
mod frame;
mod gemini;
pub mod mcp;
mod ollama;
mod openai_chat;
mod openai_responses;
mod stream;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::call::{Call, TraceContext};
use crate::contract::names;
use crate::fault::Fault;
use crate::json::Limits;
use crate::refusal::{Code, Effect, Fix, Refusal};
use crate::reply::Reply;

pub use stream::{Assembler, Warning};

use frame::Frame;

/// Calls in one message; a message with more is refused whole.
const MOST_CALLS: usize = 128;

/// How a provider writes calls, tool messages and definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Chat completions of OpenAI and of the many servers that speak like it.
    OpenaiChat,
    /// The same messages, for tools that were declared in OpenAI's strict mode: a `null` may stand for an absent member.
    OpenaiStrict,
    /// Responses of OpenAI.
    OpenaiResponses,
    /// Messages of Anthropic.
    Anthropic,
    /// `generateContent` of Gemini.
    Gemini,
    /// `Converse` of Amazon Bedrock.
    Bedrock,
    /// `/api/chat` of Ollama.
    Ollama,
    /// `tools/call` requests of the Model Context Protocol.
    Mcp,
}

/// What a model proposed in one message.
#[derive(Debug)]
pub struct Turn {
    /// INVARIANT (cut off runs nothing): holds no whole call if the turn was cut off.
    calls: Vec<Proposed>,
    asked: Asked,
    cut_off: bool,
    warnings: Vec<Warning>,
}

/// To whom the answers of a turn go: its dialect, and what the dialect pairs an answer with its call by.
#[derive(Debug)]
pub struct Asked {
    dialect: Dialect,
    /// INVARIANT (one address a call): as many as the turn has calls, in its order.
    addresses: Vec<Address>,
}

/// What an answer is paired with its call by.
#[derive(Debug, Default)]
struct Address {
    /// The id as the message wrote it; `None` in a dialect whose calls may have none.
    id: Option<Value>,
    /// The name of the tool as the message wrote it, before it was looked up.
    name: String,
}

/// One call of a message. Each is answered once, in the order of the message.
#[derive(Debug)]
pub enum Proposed {
    /// A whole call, for the gate to judge.
    Call(Call),
    /// A call that is refused as it stands; the gate only records it.
    Broken(Broken),
}

/// A call that cannot reach the gate, with the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// The id that the model gave to the call; empty if there is none that can be read.
    pub call_id: String,
    /// The name of the tool; empty if there is none that can be read.
    pub tool: String,
    /// Why it is refused: `invalid_call` or `turn_truncated`.
    pub refusal: Refusal,
}

impl Proposed {
    /// The same call as a part of a trace.
    #[must_use]
    pub fn traced(self, context: &TraceContext) -> Self {
        match self {
            Self::Call(call) => Self::Call(call.traced(context.clone())),
            broken @ Self::Broken(_) => broken,
        }
    }
}

/// Why a message could not be read: it is not one of its dialect, so none of its calls ran.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at line {line} column {column}: {hint}")]
#[non_exhaustive]
pub struct WireFault {
    /// Line of the finding, from 1.
    pub line: usize,
    /// Column of the finding in characters, from 1.
    pub column: usize,
    /// What was found, in words. INVARIANT (no echo): holds no value of the message.
    pub message: Cow<'static, str>,
    /// What to do.
    pub hint: Cow<'static, str>,
}

/// What became of one call, and to whom that is told.
#[derive(Clone, Copy, Debug)]
struct Answered<'a> {
    address: &'a Address,
    outcome: Result<&'a Reply, &'a Fault>,
}

impl Dialect {
    /// All dialects, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::OpenaiChat,
        Self::OpenaiStrict,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Bedrock,
        Self::Ollama,
        Self::Mcp,
    ];

    /// The dialect with this name. `bedrock` is short for `bedrock-converse`.
    pub fn parse(name: &str) -> Option<Self> {
        let name = if name == "bedrock" { Self::Bedrock.as_str() } else { name };
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == name)
    }

    /// The dialect's name, as commands and requests give it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiStrict => "openai-strict",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock-converse",
            Self::Ollama => "ollama",
            Self::Mcp => "mcp",
        }
    }

    /// Reads the calls of a model's message. One byte order mark before it is skipped.
    ///
    /// Of a dialect with streams a message may also be a recorded one: `{"stream": [event, ...]}`, or server-sent events
    /// as they came. [`Assembler`] is for a stream that is still coming.
    ///
    /// `limits` bounds the message as a whole. Its depth is for arguments alone, and those the gate reads.
    pub fn decode(self, message: &[u8], limits: &Limits) -> Result<Turn, WireFault> {
        let frame = Frame::new(self, message, limits);
        match stream::decode(self, &frame)? {
            Some(turn) => Ok(turn),
            None => self.read(&frame),
        }
    }

    /// Reads a whole message.
    fn read(self, frame: &Frame<'_>) -> Result<Turn, WireFault> {
        match self {
            Self::OpenaiChat => openai_chat::decode(frame),
            Self::OpenaiStrict => openai_chat::decode(frame).map(Turn::strict),
            Self::OpenaiResponses => openai_responses::decode(frame),
            Self::Anthropic => anthropic::decode(frame),
            Self::Gemini => gemini::decode(frame),
            Self::Bedrock => bedrock::decode(frame),
            Self::Ollama => ollama::decode(frame),
            Self::Mcp => mcp::decode(frame),
        }
    }
}

impl Asked {
    /// The messages that answer the turn; `answers` stand in the order of its calls.
    ///
    /// What a model reads is the reply as JSON text, with the bytes of its result; in `gemini` the reply is an object of
    /// the message. A call whose id cannot be read is answered with an empty one where its dialect has no calls without.
    pub fn answer(&self, answers: &[Result<Reply, Fault>]) -> Vec<Value> {
        let outcomes = answers.iter().map(Result::as_ref);
        let answered: Vec<Answered<'_>> =
            self.addresses.iter().zip(outcomes).map(|(address, outcome)| Answered { address, outcome }).collect();
        match self.dialect {
            Dialect::OpenaiChat | Dialect::OpenaiStrict => openai_chat::encode(&answered),
            Dialect::OpenaiResponses => openai_responses::encode(&answered),
            Dialect::Anthropic => anthropic::encode(&answered),
            Dialect::Gemini => gemini::encode(&answered),
            Dialect::Bedrock => bedrock::encode(&answered),
            Dialect::Ollama => ollama::encode(&answered),
            Dialect::Mcp => mcp::encode(&answered),
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Turn {
    fn new(dialect: Dialect, calls: Vec<(Proposed, Address)>, cut_off: bool) -> Self {
        let (calls, addresses): (Vec<Proposed>, Vec<Address>) = calls.into_iter().unzip();
        let warnings = doubled(&addresses);
        let turn = Self { calls, asked: Asked { dialect, addresses }, cut_off, warnings };
        if cut_off { turn.cut() } else { turn }
    }

    /// The same turn, of which nothing may run.
    fn cut(self) -> Self {
        let calls = self.calls.into_iter().map(|call| Proposed::Broken(call.truncated())).collect();
        Self { calls, cut_off: true, ..self }
    }

    /// The same turn of a model whose tools were shown in strict mode.
    fn strict(mut self) -> Self {
        for proposed in &mut self.calls {
            if let Proposed::Call(call) = proposed {
                call.nulls_for_absent = true;
            }
        }
        self
    }

    /// The calls, in the order of the message.
    pub fn calls(&self) -> &[Proposed] {
        &self.calls
    }

    /// The calls, in the order of the message, and to whom their answers go.
    pub fn open(self) -> (Vec<Proposed>, Asked) {
        (self.calls, self.asked)
    }

    /// What is odd about the message, and was read in the one way that it can be.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Whether the message ended too early, so that none of its calls may run.
    pub fn cut_off(&self) -> bool {
        self.cut_off
    }
}

impl Proposed {
    /// The id that the model gave to the call; empty if there is none that can be read.
    pub fn call_id(&self) -> &str {
        match self {
            Self::Call(call) => &call.id,
            Self::Broken(broken) => &broken.call_id,
        }
    }

    fn truncated(self) -> Broken {
        let refusal = Refusal::before(Code::TurnTruncated);
        match self {
            Self::Call(call) => Broken { call_id: call.id, tool: call.tool, refusal },
            Self::Broken(broken) => Broken { refusal, ..broken },
        }
    }
}

impl Answered<'_> {
    /// The id of the call, in a dialect that has none without.
    fn id(&self) -> Value {
        self.address.id.clone().unwrap_or_else(|| Value::from(""))
    }

    fn is_ok(&self) -> bool {
        self.outcome.is_ok_and(Reply::is_ok)
    }

    /// The JSON text that the model reads.
    fn content(&self) -> String {
        match self.outcome {
            Ok(reply) => text(reply),
            Err(fault) => text(&Failure { ok: false, error: failed(fault) }),
        }
    }
}

/// The shape of an answer where there is no reply, and so no ref.
#[derive(Serialize)]
struct Failure {
    ok: bool,
    error: Refusal,
}

/// What a model may know of a failure of the gate.
fn failed(fault: &Fault) -> Refusal {
    match fault {
        Fault::Store(_) | Fault::Record(_) | Fault::Closing | Fault::Lost => {
            Refusal::new(Code::Unavailable, Effect::None)
                .message("The gate cannot take this call now. Nothing was done for it.")
                .fixed_by(Fix::Operator)
        }
    }
}

/// A warning for each call whose id is that of one before it. Ids are the provider's: a gate keeps its calls apart
/// without them.
fn doubled(addresses: &[Address]) -> Vec<Warning> {
    let mut ids = BTreeSet::new();
    let mut warnings = Vec::new();
    for (index, address) in addresses.iter().enumerate() {
        let Some(id) = address.id.as_ref().and_then(Value::as_str).filter(|id| !id.is_empty()) else { continue };
        if !ids.insert(id) {
            let message = "the id of a call before it; each is answered, in the order of the calls";
            warnings.push(Warning { at: format!("/{index}"), code: "duplicate_call_id", message: message.into() });
        }
    }
    warnings
}

fn text(answer: &impl Serialize) -> String {
    // An answer is made of strings, numbers and JSON text, which always print.
    serde_json::to_string(answer).unwrap_or_default()
}

/// Our own text as a value. What was bounded before needs no bound here.
fn parsed(text: &str) -> Value {
    crate::json::read(text.as_bytes(), &everything()).unwrap_or_default()
}

fn everything() -> Limits {
    Limits { size: usize::MAX, depth: usize::MAX, members: usize::MAX }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]
mod tests;
