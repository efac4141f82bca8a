//! Events of `anthropic`: a block is started, grows by deltas, and is stopped; each event says its `type`.
//!
//! What its versions may add is passed over, as the provider asks of clients: events, kinds of blocks, and deltas of
//! blocks that are no calls. A delta of a call that nobody knows makes that call unsure.

use std::collections::HashSet;

use super::super::anthropic::DONE;
use super::super::frame::{Frame, Members};
use super::super::{Dialect, MOST_CALLS, Proposed, Turn, WireFault};
use super::pieces::{Pieces, list, object, spelled};
use super::{Doubts, SENT_AGAIN, Warnings, Whole, failed, integer, is_call, kind};
use crate::json::{self, Limits};

const AS_IT_CAME: &str = "pass the provider's events on as they came";

/// A call that was never started.
const UNKNOWN: &[u8] = br#"{"type":"tool_use"}"#;

/// A streamed message.
#[derive(Debug, Default)]
pub(super) struct Stream {
    message: Message,
    uses: Vec<Use>,
    /// The open blocks that are no calls.
    others: HashSet<i64>,
    cut_off: bool,
    warnings: Warnings,
}

/// How far the message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Message {
    /// Blocks may come without it.
    #[default]
    Unstarted,
    Started,
    /// Its reason to stop was told.
    Ending,
    Stopped,
}

/// A block that is a call.
#[derive(Debug)]
struct Use {
    index: i64,
    /// The block as it was started; its input is empty, or all of it.
    block: Vec<u8>,
    input: Pieces,
    stage: Stage,
    doubts: Doubts,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Pieces came, and no block was started for them.
    Unopened,
    Open,
    Finished,
}

impl Stream {
    pub(super) fn push(&mut self, frame: &Frame<'_>) -> Result<(), WireFault> {
        let event = frame.members(frame.bytes(), "the event")?;
        match kind(frame, &event, "an event")?.as_str() {
            "message_start" => self.start(frame, &event),
            "content_block_start" => self.open(frame, &event),
            "content_block_delta" => self.grow(frame, &event),
            "content_block_stop" => self.close(frame, &event),
            "message_delta" => self.ending(frame, &event),
            "message_stop" => {
                self.message = Message::Stopped;
                Ok(())
            }
            "error" => Err(failed(frame, frame.bytes())),
            "message" | "tool_use" => {
                Err(frame.fault(frame.bytes(), "a whole message among the events", "send the message by itself"))
            }
            other if other.starts_with("response.") => {
                let hint = "read it as the dialect openai-responses";
                Err(frame.fault(frame.bytes(), "an event of another dialect", hint))
            }
            _ => Ok(()),
        }
    }

    fn start<'a>(&mut self, frame: &Frame<'a>, event: &Members<'a>) -> Result<(), WireFault> {
        match self.message {
            Message::Unstarted if self.uses.is_empty() => self.message = Message::Started,
            Message::Unstarted | Message::Started | Message::Ending | Message::Stopped => {
                return Err(frame.fault(frame.bytes(), "a second message in the stream", "send one stream at a time"));
            }
        }
        let Some(part) = event.given("message") else { return Ok(()) };
        let message = frame.members(part, "message")?;
        frame.expect_role(&message, "assistant")?;
        match message.given("content") {
            Some(content) if !frame.items(content, "content")?.is_empty() => {
                Err(frame.fault(content, "a message that starts with content", AS_IT_CAME))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn open<'a>(&mut self, frame: &Frame<'a>, event: &Members<'a>) -> Result<(), WireFault> {
        self.goes_on(frame)?;
        let index = index(frame, event)?;
        let block = event
            .given("content_block")
            .ok_or_else(|| frame.fault(frame.bytes(), "the start of a block without the block", AS_IT_CAME))?;
        let earlier = self.last(index).map(|at| (at, self.uses.get(at).map_or(Stage::Open, |call| call.stage)));
        let is_again = earlier.and_then(|(at, _)| self.uses.get(at)).is_some_and(|call| call.has_id_of(block, frame));
        if is_again {
            return Err(frame.fault(block, "the block of a call again, after its stop", SENT_AGAIN));
        }
        let is_open = matches!(earlier, Some((_, Stage::Open | Stage::Unopened))) || self.others.contains(&index);
        if is_open {
            return Err(frame.fault(block, "a block on an index whose block is not stopped", SENT_AGAIN));
        }
        if !is_call(Dialect::Anthropic, frame, block)? {
            self.others.insert(index);
            return Ok(());
        }
        let at = self.add(frame, Use::new(index, block, Stage::Open))?;
        if earlier.is_some() {
            self.warnings.of_call(at, "an index that was in use before: another call");
        }
        Ok(())
    }

    fn grow<'a>(&mut self, frame: &Frame<'a>, event: &Members<'a>) -> Result<(), WireFault> {
        self.goes_on(frame)?;
        let index = index(frame, event)?;
        if self.others.contains(&index) {
            return Ok(());
        }
        let delta =
            event.given("delta").ok_or_else(|| frame.fault(frame.bytes(), "an event without its delta", AS_IT_CAME))?;
        let delta = frame.members(delta, "delta")?;
        let is_input = kind(frame, &delta, "a delta")? == "input_json_delta";
        let piece = delta.given("partial_json").filter(|piece| is_input && *piece != b"\"\"");
        let at = match (self.last(index), piece) {
            (Some(at), _) => at,
            // Text of a block that was not started is no call.
            (None, None) => return Ok(()),
            (None, Some(_)) => self.add(frame, Use::new(index, UNKNOWN, Stage::Unopened))?,
        };
        let Some(call) = self.uses.get_mut(at) else { return Ok(()) };
        if !is_input {
            call.doubts.note("", "a delta of a kind that calls do not have");
            return Ok(());
        }
        let Some(piece) = piece else { return Ok(()) };
        match call.stage {
            Stage::Open | Stage::Unopened => call.input.add(piece, frame.limits()),
            Stage::Finished => call.doubts.note("", "a piece of the input after the end of its block"),
        }
        Ok(())
    }

    fn close<'a>(&mut self, frame: &Frame<'a>, event: &Members<'a>) -> Result<(), WireFault> {
        let index = index(frame, event)?;
        if self.others.remove(&index) {
            return Ok(());
        }
        if let Some(call) = self.last(index).and_then(|at| self.uses.get_mut(at)) {
            call.stage = match call.stage {
                Stage::Unopened => Stage::Unopened,
                Stage::Open | Stage::Finished => Stage::Finished,
            };
        }
        Ok(())
    }

    fn ending<'a>(&mut self, frame: &Frame<'a>, event: &Members<'a>) -> Result<(), WireFault> {
        let Some(part) = event.given("delta") else { return Ok(()) };
        let delta = frame.members(part, "delta")?;
        self.cut_off |= frame.stopped_otherwise(&delta, "stop_reason", &DONE)?;
        if delta.given("stop_reason").is_some() {
            self.message = match self.message {
                Message::Unstarted | Message::Started | Message::Ending => Message::Ending,
                Message::Stopped => Message::Stopped,
            };
        }
        Ok(())
    }

    fn goes_on(&self, frame: &Frame<'_>) -> Result<(), WireFault> {
        match self.message {
            Message::Unstarted | Message::Started => Ok(()),
            Message::Ending | Message::Stopped => {
                Err(frame.fault(frame.bytes(), "a block after the end of the message", SENT_AGAIN))
            }
        }
    }

    /// The call that was started last on an index.
    fn last(&self, index: i64) -> Option<usize> {
        self.uses.iter().rposition(|call| call.index == index)
    }

    fn add(&mut self, frame: &Frame<'_>, call: Use) -> Result<usize, WireFault> {
        if self.uses.len() == MOST_CALLS {
            return Err(frame.too_many_calls(frame.bytes()));
        }
        self.uses.push(call);
        Ok(self.uses.len() - 1)
    }

    /// A message that was started and has no end was cut off, and so was a block without its stop.
    pub(super) fn end(self, limits: &Limits) -> Result<Turn, WireFault> {
        let ended = match self.message {
            Message::Unstarted | Message::Ending | Message::Stopped => true,
            Message::Started => false,
        };
        let cut_off = self.cut_off || !ended || self.uses.iter().any(|call| call.stage == Stage::Open);
        let (mut blocks, mut doubts, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
        for call in self.uses {
            let (block, doubtful, input) = call.end(limits);
            blocks.push(block);
            doubts.push(doubtful);
            inputs.push(input);
        }
        let content = list(&blocks);
        let message = object([("role", &b"\"assistant\""[..]), ("content", &content)]);
        let whole = Whole { message, cut_off, warnings: self.warnings };
        let mut turn = whole.read(Dialect::Anthropic, doubts, limits)?;
        for (proposed, input) in turn.calls.iter_mut().zip(inputs) {
            if let (Proposed::Call(call), Some(input)) = (proposed, input) {
                call.arguments = input.into_boxed_slice();
            }
        }
        Ok(turn)
    }
}

impl Use {
    fn new(index: i64, block: &[u8], stage: Stage) -> Self {
        Self { index, block: block.to_vec(), input: Pieces::default(), stage, doubts: Doubts::default() }
    }

    /// Whether another block has the same id, as one has that was sent twice.
    fn has_id_of(&self, other: &[u8], frame: &Frame<'_>) -> bool {
        let id = |block| {
            let members = json::members(block, frame.limits()).unwrap_or_default();
            members.into_iter().find(|(name, _)| name == "id").map(|(_, raw)| spelled(raw, frame.limits()))
        };
        self.stage == Stage::Finished && id(&self.block).is_some_and(|own| id(other) == Some(own))
    }

    /// The block as a whole message has it, and the text of an input that came in pieces. That text is kept beside the block:
    /// one that is no JSON would break the message, and the gate says best what is wrong with it.
    fn end(mut self, limits: &Limits) -> (Vec<u8>, Doubts, Option<Vec<u8>>) {
        match self.stage {
            Stage::Unopened => self.doubts.note("", "pieces of a call whose block was never started"),
            Stage::Open | Stage::Finished => {}
        }
        let text = match self.input.into_text() {
            Ok(text) => text,
            Err(_) => {
                self.doubts.note("/input", "a piece of the input that is no text");
                return (self.block, self.doubts, None);
            }
        };
        let text = text.trim_ascii();
        if text.is_empty() {
            return (self.block, self.doubts, None);
        }
        let Ok(members) = json::members(&self.block, limits) else { return (self.block, self.doubts, None) };
        let input = members.iter().find(|(name, _)| name == "input").map(|(_, raw)| *raw);
        if input.is_some_and(|input| json::members(input, limits).is_ok_and(|input| !input.is_empty())) {
            self.doubts.note("/input", "an input at the start of its block, and pieces after it");
        }
        if text.starts_with("{") {
            let text = text.as_bytes().to_vec();
            return (self.block, self.doubts, Some(text));
        }
        if json::read(text.as_bytes(), limits).is_err() {
            self.doubts.note("/input", "an input that is no object");
            return (self.block, self.doubts, None);
        }
        let others = members.iter().filter(|(name, _)| name != "input").map(|(name, raw)| (name.as_str(), *raw));
        (object(others.chain([("input", text.as_bytes())])), self.doubts, None)
    }
}

fn index<'a>(frame: &Frame<'a>, event: &Members<'a>) -> Result<i64, WireFault> {
    let index = event
        .given("index")
        .ok_or_else(|| frame.fault(frame.bytes(), "an event of a block without its index", AS_IT_CAME))?;
    integer(frame, index, "the index of a block")
}
