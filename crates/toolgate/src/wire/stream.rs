//! Streams: from the events of a streamed answer to the turn that the whole message would have been.
//!
//! A provider sends a call in pieces. Each event is read strictly, and what it brings is put at the end of what is there;
//! nothing that came before is looked at again. When the stream ends, the message is written as it would have come whole,
//! and read by the reader of whole messages: so what is refused, and how, is the same.
//!
//! What cannot be put together in one way alone is not put together: where it is known which call is concerned, that
//! call is [`Broken`] with a problem of the code `stream`; else the stream is a [`WireFault`], and none of its calls runs.
//! What is odd and has one meaning all the same is a [`Warning`].

mod anthropic;
mod openai_chat;
mod openai_responses;
mod pieces;
mod sse;

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::frame::{Frame, Members};
use super::{Broken, Dialect, Proposed, Turn, WireFault};
use crate::json::{self, Limits};
use crate::refusal::{Code, Refusal};
use crate::schema::Problem;

use pieces::list;

/// Events in one stream.
const MOST_EVENTS: usize = 1_000_000;

/// Warnings told of one stream.
const MOST_WARNINGS: usize = 20;

/// What some providers send after the last event.
const DONE: [&[u8]; 2] = [b"[DONE]", b"\"[DONE]\""];

/// The code of all that is wrong or odd about a stream.
const CODE: &str = "stream";

const SENT_AGAIN: &str = "none of its calls ran; ask the model again";

/// Puts the events of one streamed answer together.
///
/// ```
/// use toolgate::json::Limits;
/// use toolgate::wire::{Assembler, Dialect};
///
/// let mut stream = Assembler::new(Dialect::OpenaiChat, &Limits::default()).expect("a dialect with streams");
/// stream.push(br#"{"choices": [{"delta": {"tool_calls": [
///     {"index": 0, "id": "call_1", "function": {"name": "add", "arguments": "{\"a\":"}}]}}]}"#)?;
/// stream.push(br#"{"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": " 2}"}}]}}]}"#)?;
/// let turn = stream.end()?;
/// assert_eq!(turn.calls().len(), 1);
/// # Ok::<(), toolgate::wire::WireFault>(())
/// ```
#[derive(Debug)]
pub struct Assembler {
    dialect: Dialect,
    limits: Limits,
    machine: Machine,
    bytes: usize,
    events: usize,
    progress: Progress,
}

/// Something odd about a message that had one meaning all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The place, a JSON pointer into the calls of the turn: `/1` is the second call; empty for the whole.
    pub at: String,
    /// The stable code: `stream`, or `duplicate_call_id`.
    pub code: &'static str,
    /// What was found, in words. INVARIANT (no echo): holds no value of the message.
    pub message: Cow<'static, str>,
}

impl From<Warning> for Problem {
    /// As the warnings of contracts are told.
    fn from(Warning { at, code, message }: Warning) -> Self {
        Self { at, code: code.to_owned(), message: message.into_owned(), hint: None }
    }
}

/// What each dialect keeps of a stream.
#[derive(Debug)]
enum Machine {
    OpenaiChat(openai_chat::Stream),
    OpenaiResponses(openai_responses::Stream),
    Anthropic(anthropic::Stream),
}

/// How far a stream is.
#[derive(Debug)]
enum Progress {
    /// Events may come.
    Open,
    /// The provider said that there is no more.
    Done,
    /// INVARIANT (a fault is final): whoever goes on after a fault gets the fault, never a turn.
    Failed(WireFault),
}

/// The warnings of a stream while it comes, each told once.
#[derive(Debug, Default)]
struct Warnings(Vec<Warning>);

/// What is in doubt about one call: where in it, and why. INVARIANT (no guess): a call with one does not run.
#[derive(Debug, Default)]
struct Doubts(Vec<(&'static str, &'static str)>);

/// A stream that ended, as a whole message.
struct Whole {
    /// The message as text, with each call that the stream had.
    message: Vec<u8>,
    cut_off: bool,
    warnings: Warnings,
}

impl Assembler {
    /// A stream of this dialect, of which nothing has come; `None` for a dialect that is not read as a stream.
    ///
    /// `limits` bounds the bytes of all events together, and each event as it bounds a message.
    pub fn new(dialect: Dialect, limits: &Limits) -> Option<Self> {
        let machine = match dialect {
            Dialect::OpenaiChat | Dialect::OpenaiStrict => Machine::OpenaiChat(openai_chat::Stream::new(dialect)),
            Dialect::OpenaiResponses => Machine::OpenaiResponses(openai_responses::Stream::default()),
            Dialect::Anthropic => Machine::Anthropic(anthropic::Stream::default()),
            Dialect::Gemini | Dialect::Bedrock | Dialect::Ollama | Dialect::Mcp => return None,
        };
        Some(Self { dialect, limits: *limits, machine, bytes: 0, events: 0, progress: Progress::Open })
    }

    /// Takes the next event: its JSON text, which server-sent events carry as their data, or `[DONE]`.
    ///
    /// # Errors
    ///
    /// What is wrong with the stream as a whole, placed in this event. The stream is over then.
    pub fn push(&mut self, event: &[u8]) -> Result<(), WireFault> {
        let taken = self.take(event);
        if let Err(fault) = &taken {
            self.progress = Progress::Failed(fault.clone());
        }
        taken
    }

    /// Ends the stream: the turn that it gave.
    ///
    /// # Errors
    ///
    /// The fault of an event before, or that no event came.
    pub fn end(self) -> Result<Turn, WireFault> {
        let done = match self.progress {
            Progress::Open => false,
            Progress::Done => true,
            Progress::Failed(fault) => return Err(fault),
        };
        if self.events == 0 {
            return Err(Frame::new(self.dialect, &[], &self.limits).fault(&[], "a stream without events", SENT_AGAIN));
        }
        // All that came is bounded already, and what is put together of it is hardly longer.
        let limits = Limits { size: usize::MAX, depth: usize::MAX, ..self.limits };
        match self.machine {
            Machine::OpenaiChat(stream) => stream.end(done, &limits),
            Machine::OpenaiResponses(stream) => stream.end(&limits),
            Machine::Anthropic(stream) => stream.end(&limits),
        }
    }

    fn take(&mut self, event: &[u8]) -> Result<(), WireFault> {
        let frame = Frame::new(self.dialect, event, &self.limits);
        match &self.progress {
            Progress::Open => {}
            Progress::Done => {
                return Err(frame.fault(event, "an event after the end of the stream", "send one stream at a time"));
            }
            Progress::Failed(fault) => return Err(fault.clone()),
        }
        self.bytes = self.bytes.saturating_add(event.len());
        self.events += 1;
        if self.bytes > self.limits.size {
            let message = format!("a stream of more than {} bytes", self.limits.size);
            return Err(frame.fault(event, message, "none of its calls ran; ask for a shorter answer"));
        }
        if self.events > MOST_EVENTS {
            let message = format!("a stream of more than {MOST_EVENTS} events");
            return Err(frame.fault(event, message, "none of its calls ran; ask for a shorter answer"));
        }
        if DONE.contains(&frame.bytes().trim_ascii()) {
            self.progress = Progress::Done;
            return Ok(());
        }
        match &mut self.machine {
            Machine::OpenaiChat(stream) => stream.push(&frame),
            Machine::OpenaiResponses(stream) => stream.push(&frame),
            Machine::Anthropic(stream) => stream.push(&frame),
        }
    }
}

/// The turn of a message that is a recorded stream: `{"stream": [...]}`, or server-sent events as they came; `None` for
/// any other message.
pub(super) fn decode(dialect: Dialect, frame: &Frame<'_>) -> Result<Option<Turn>, WireFault> {
    let opening =
        [b'{', b'"'].iter().try_fold(frame.bytes(), |rest, byte| rest.trim_ascii_start().strip_prefix(&[*byte]));
    if opening.is_some_and(|rest| rest.starts_with(b"stream\"")) {
        let events = frame.items(listed(frame)?, "stream")?;
        let start = |event: &&[u8]| frame.place(event);
        let mut stream = begin(dialect, frame)?;
        for event in events {
            stream.push(event).map_err(|fault| fault.moved(start(&event)))?;
        }
        return stream.end().map(Some);
    }
    if !sse::is_text(frame.bytes()) {
        return Ok(None);
    }
    let mut stream = begin(dialect, frame)?;
    for event in sse::events(frame.bytes()) {
        stream.push(event.data()).map_err(|fault| event.placed(fault))?;
    }
    stream.end().map(Some)
}

/// The raw text of the list in an object with the one member `stream`.
fn listed<'a>(frame: &Frame<'a>) -> Result<&'a [u8], WireFault> {
    let top = frame.members(frame.bytes(), "the message")?;
    match (top.get("stream"), top.each().count()) {
        (Some(events), 1) => Ok(events),
        _ => Err(frame.fault(frame.bytes(), "a stream with something beside it", "send {\"stream\": [...]} alone")),
    }
}

fn begin(dialect: Dialect, frame: &Frame<'_>) -> Result<Assembler, WireFault> {
    Assembler::new(dialect, frame.limits()).ok_or_else(|| {
        let message = format!("a stream, and {dialect} is not read as one");
        frame.fault(
            frame.bytes(),
            message,
            "send the whole message; streams are read of openai-chat, openai-responses and anthropic",
        )
    })
}

impl Warnings {
    /// Notes what is odd about the call in this place of the turn.
    fn of_call(&mut self, index: usize, message: &'static str) {
        self.note(format!("/{index}"), message);
    }

    fn note(&mut self, at: String, message: &'static str) {
        let warning = Warning { at, code: CODE, message: message.into() };
        if self.0.len() < MOST_WARNINGS && !self.0.contains(&warning) {
            self.0.push(warning);
        }
    }
}

/// What a provider says instead of the rest of its answer.
fn failed(frame: &Frame<'_>, part: &[u8]) -> WireFault {
    frame.fault(part, "an error of the provider in the midst of the stream", SENT_AGAIN)
}

/// Whether a part of an event is a call, as the reader of whole messages sees it.
fn is_call(dialect: Dialect, frame: &Frame<'_>, part: &[u8]) -> Result<bool, WireFault> {
    let limits = Limits { size: usize::MAX, ..*frame.limits() };
    let alone = list(&[part.to_vec()]);
    match dialect.read(&Frame::new(dialect, &alone, &limits)) {
        Ok(turn) => Ok(!turn.calls.is_empty()),
        Err(fault) => Err(frame.fault(part, fault.message, fault.hint)),
    }
}

/// A whole number by which a provider tells things apart.
fn integer(frame: &Frame<'_>, part: &[u8], what: &'static str) -> Result<i64, WireFault> {
    let number = json::read(part, frame.limits()).ok().as_ref().and_then(Value::as_i64);
    number.ok_or_else(|| {
        frame.fault(part, format!("{what} is no whole number"), "pass the provider's events on as they came")
    })
}

/// The kind of an event, or of a part of one.
fn kind<'a>(frame: &Frame<'a>, members: &Members<'a>, what: &'static str) -> Result<String, WireFault> {
    let kind = members.given("type").map(|part| frame.text(part, "type")).transpose()?.flatten();
    kind.ok_or_else(|| {
        let message = format!("{what} without a type");
        frame.fault(frame.bytes(), message, "pass the provider's events on as they came, and read them as its dialect")
    })
}

/// Makes broken what would run and is another call in `told`, which tells the same calls in the same order.
fn agree(turn: &mut Turn, told: &Turn, why: &'static str) {
    for (proposed, told) in turn.calls.iter_mut().zip(&told.calls) {
        if says_otherwise(proposed, told) {
            let mut doubts = Doubts::default();
            doubts.note("", why);
            *proposed = Proposed::Broken(doubts.refuse(proposed));
        }
    }
}

/// Whether a call that would run is another than the one that was told.
fn says_otherwise(proposed: &Proposed, told: &Proposed) -> bool {
    match (proposed, told) {
        (Proposed::Call(call), Proposed::Call(told)) => {
            (&call.id, &call.tool, &call.arguments) != (&told.id, &told.tool, &told.arguments)
        }
        (Proposed::Call(_), Proposed::Broken(_)) => true,
        (Proposed::Broken(_), Proposed::Call(_) | Proposed::Broken(_)) => false,
    }
}

impl Doubts {
    fn note(&mut self, at: &'static str, why: &'static str) {
        if !self.0.contains(&(at, why)) {
            self.0.push((at, why));
        }
    }

    /// The call, refused for what is in doubt and for what was wrong with it before.
    fn refuse(self, proposed: &Proposed) -> Broken {
        let (tool, earlier, more) = match proposed {
            Proposed::Call(call) => (call.tool(), &[][..], 0),
            Proposed::Broken(Broken { tool, refusal, .. }) => {
                (tool.as_str(), refusal.problem_list(), refusal.more_problems())
            }
        };
        let doubt = |(at, why): (&str, &str)| Problem {
            at: at.to_owned(),
            code: CODE.to_owned(),
            message: why.to_owned(),
            hint: Some("make this call again".to_owned()),
        };
        let problems: Vec<Problem> = self.0.into_iter().map(doubt).chain(earlier.iter().cloned()).collect();
        let count = problems.len() + more;
        let plural = if count == 1 { "problem" } else { "problems" };
        let message = format!("{count} {plural} in the streamed pieces of the call, so it did not run.");
        let refusal = Refusal::before(Code::InvalidCall).message(message).problems(problems, more);
        Broken { call_id: proposed.call_id().to_owned(), tool: tool.to_owned(), refusal }
    }
}

impl Whole {
    /// Reads the message; `doubts` has those of each of its calls.
    fn read(self, dialect: Dialect, doubts: Vec<Doubts>, limits: &Limits) -> Result<Turn, WireFault> {
        let mut turn = dialect.read(&Frame::new(dialect, &self.message, limits))?;
        for (proposed, doubts) in turn.calls.iter_mut().zip(doubts) {
            if !doubts.0.is_empty() {
                *proposed = Proposed::Broken(doubts.refuse(proposed));
            }
        }
        turn.warnings.extend(self.warnings.0);
        Ok(if self.cut_off { turn.cut() } else { turn })
    }
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
