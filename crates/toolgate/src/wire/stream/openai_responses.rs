//! Events of `openai-responses`: an item is added, its arguments grow and are told whole, the item is told whole, and so is
//! the response.
//!
//! So what a call says comes up to four times. All that is told must agree; of a call where it does not, nobody knows what
//! was meant. A kind of event that nobody knows is passed over: the provider adds them.

use super::super::frame::{Frame, Members};
use super::super::{Dialect, MOST_CALLS, Turn, WireFault};
use super::pieces::{Fact, Pieces, list, object, quoted, spelled};
use super::{Doubts, SENT_AGAIN, Warnings, Whole, agree, failed, integer, is_call, kind};
use crate::json::{self, Limits};

const AS_IT_CAME: &str = "pass the provider's events on as they came";

/// An item that was never added.
const UNKNOWN: &[u8] = br#"{"type":"function_call"}"#;

/// A streamed response.
#[derive(Debug, Default)]
pub(super) struct Stream {
    response: Response,
    calls: Vec<Growing>,
    /// The last number that an event had.
    sequence: Option<i64>,
    /// The turn of the whole response, where that has calls.
    whole: Option<Turn>,
    cut_off: bool,
}

/// How far the response is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Response {
    /// Items may come without it.
    #[default]
    Unstarted,
    Started,
    Ended,
}

/// An item that is a call.
#[derive(Debug)]
struct Growing {
    index: i64,
    /// The item as it was told last.
    item: Vec<u8>,
    /// The item's own id, which is no call's.
    id: Fact,
    call_id: Fact,
    name: Fact,
    pieces: Pieces,
    /// The whole text of the arguments.
    arguments: Fact,
    stage: Stage,
    doubts: Doubts,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Pieces came, and no item was added for them.
    Unopened,
    Growing,
    /// All of its arguments were told.
    Told,
    /// The whole item was told.
    Finished,
}

impl Stream {
    pub(super) fn push(&mut self, frame: &Frame<'_>) -> Result<(), WireFault> {
        let event = frame.members(frame.bytes(), "the event")?;
        let kind = kind(frame, &event, "an event")?;
        self.in_order(frame, &event)?;
        match kind.as_str() {
            "response.created" => self.create(frame),
            "response.queued" | "response.in_progress" => self.start(frame),
            "response.output_item.added" => self.added(frame, &event),
            "response.function_call_arguments.delta" => self.grow(frame, &event),
            "response.function_call_arguments.done" => self.told(frame, &event),
            "response.output_item.done" => self.finished(frame, &event),
            "response.completed" => self.completed(frame, &event),
            "response.incomplete" => {
                self.goes_on(frame)?;
                self.response = Response::Ended;
                self.cut_off = true;
                Ok(())
            }
            "response.failed" | "response.cancelled" | "error" => Err(failed(frame, frame.bytes())),
            "function_call" => {
                Err(frame.fault(frame.bytes(), "a whole item among the events", "send the response by itself"))
            }
            _ => Ok(()),
        }
    }

    /// The provider numbers its events. Numbers may be left out, since recordings leave events out.
    fn in_order<'a>(&mut self, frame: &Frame<'a>, event: &Members<'a>) -> Result<(), WireFault> {
        let Some(part) = event.given("sequence_number") else { return Ok(()) };
        let number = integer(frame, part, "the number of an event")?;
        if self.sequence.is_some_and(|last| number <= last) {
            return Err(frame.fault(part, "events out of order", "send them in the order of sequence_number"));
        }
        self.sequence = Some(number);
        Ok(())
    }

    /// A response is created once, and before its items.
    fn create(&mut self, frame: &Frame<'_>) -> Result<(), WireFault> {
        match self.response {
            Response::Unstarted if self.calls.is_empty() => self.start(frame),
            Response::Unstarted | Response::Started | Response::Ended => {
                Err(frame.fault(frame.bytes(), "a second response in the stream", "send one stream at a time"))
            }
        }
    }

    fn start(&mut self, frame: &Frame<'_>) -> Result<(), WireFault> {
        self.goes_on(frame)?;
        self.response = Response::Started;
        Ok(())
    }

    fn added<'a>(&mut self, frame: &Frame<'a>, event: &Members<'a>) -> Result<(), WireFault> {
        self.goes_on(frame)?;
        let index = self.index(frame, event)?;
        let part = item(frame, event)?;
        let at = self.find(index);
        match at.and_then(|at| self.calls.get(at)).map(|call| call.stage) {
            None | Some(Stage::Unopened) => {}
            Some(Stage::Growing | Stage::Told | Stage::Finished) => {
                return Err(frame.fault(part, "an item in the place of a call", SENT_AGAIN));
            }
        }
        if is_call(Dialect::OpenaiResponses, frame, part)? {
            let call = self.at(frame, index)?;
            call.identify(part, frame.limits());
            call.stage = Stage::Growing;
        }
        Ok(())
    }

    fn grow<'a>(&mut self, frame: &Frame<'a>, event: &Members<'a>) -> Result<(), WireFault> {
        self.goes_on(frame)?;
        let Some(piece) = event.given("delta").filter(|piece| *piece != b"\"\"") else { return Ok(()) };
        let index = self.index(frame, event)?;
        self.is_of_one_item(frame, event, index)?;
        let call = self.at(frame, index)?;
        match call.stage {
            Stage::Unopened | Stage::Growing => call.pieces.add(piece, frame.limits()),
            Stage::Told | Stage::Finished => call.doubts.note("/arguments", "a piece of the arguments after their end"),
        }
        Ok(())
    }

    fn told<'a>(&mut self, frame: &Frame<'a>, event: &Members<'a>) -> Result<(), WireFault> {
        self.goes_on(frame)?;
        let index = self.index(frame, event)?;
        let says_nothing = event.given("arguments").is_none_or(|text| text == b"\"\"");
        if says_nothing && self.find(index).is_none() {
            return Ok(());
        }
        self.is_of_one_item(frame, event, index)?;
        let call = self.at(frame, index)?;
        call.tell(event, frame.limits());
        call.stage = match call.stage {
            Stage::Unopened => Stage::Unopened,
            Stage::Growing | Stage::Told => Stage::Told,
            Stage::Finished => Stage::Finished,
        };
        Ok(())
    }

    fn finished<'a>(&mut self, frame: &Frame<'a>, event: &Members<'a>) -> Result<(), WireFault> {
        self.goes_on(frame)?;
        let index = self.index(frame, event)?;
        let part = item(frame, event)?;
        let known = self.find(index).and_then(|at| self.calls.get_mut(at));
        match (is_call(Dialect::OpenaiResponses, frame, part)?, known) {
            (true, _) => {
                let call = self.at(frame, index)?;
                call.identify(part, frame.limits());
                call.stage = Stage::Finished;
            }
            (false, Some(call)) => call.doubts.note("", "a call that ended as an item of another kind"),
            (false, None) => {}
        }
        Ok(())
    }

    /// The whole response. One without output says nothing of calls: some servers leave it empty.
    fn completed<'a>(&mut self, frame: &Frame<'a>, event: &Members<'a>) -> Result<(), WireFault> {
        self.goes_on(frame)?;
        self.response = Response::Ended;
        let Some(part) = event.given("response") else { return Ok(()) };
        let Some(output) = frame.members(part, "response")?.given("output") else { return Ok(()) };
        let response = Frame::new(frame.dialect(), part, frame.limits());
        let turn = frame.dialect().read(&response).map_err(|fault| fault.moved(frame.place(part)))?;
        self.cut_off |= turn.cut_off;
        if frame.items(output, "output")?.is_empty() {
            return Ok(());
        }
        if !self.calls.is_empty() && self.calls.len() != turn.calls.len() {
            return Err(frame.fault(part, "a whole response with other calls than its events had", SENT_AGAIN));
        }
        self.whole = Some(turn);
        Ok(())
    }

    fn goes_on(&self, frame: &Frame<'_>) -> Result<(), WireFault> {
        match self.response {
            Response::Unstarted | Response::Started => Ok(()),
            Response::Ended => Err(frame.fault(frame.bytes(), "an event after the end of the response", SENT_AGAIN)),
        }
    }

    fn index<'a>(&self, frame: &Frame<'a>, event: &Members<'a>) -> Result<i64, WireFault> {
        let index = event
            .given("output_index")
            .ok_or_else(|| frame.fault(frame.bytes(), "an event of an item without its output_index", AS_IT_CAME))?;
        integer(frame, index, "output_index")
    }

    /// A fault where the id of the item tells another call than the index does. An id that nobody has tells nothing.
    fn is_of_one_item<'a>(&self, frame: &Frame<'a>, event: &Members<'a>, index: i64) -> Result<(), WireFault> {
        let Some(part) = event.given("item_id") else { return Ok(()) };
        let id = spelled(part, frame.limits());
        let mut same = self.calls.iter().filter(|call| call.id.raw() == Some(&id)).peekable();
        if same.peek().is_some() && same.all(|call| call.index != index) {
            return Err(frame.fault(part, "an event that could belong to two calls", SENT_AGAIN));
        }
        Ok(())
    }

    fn find(&self, index: i64) -> Option<usize> {
        self.calls.iter().position(|call| call.index == index)
    }

    /// The call of an index; one that nobody opened yet, if there is none.
    fn at(&mut self, frame: &Frame<'_>, index: i64) -> Result<&mut Growing, WireFault> {
        let at = self.find(index).unwrap_or(self.calls.len());
        if at == MOST_CALLS {
            return Err(frame.too_many_calls(frame.bytes()));
        }
        if at == self.calls.len() {
            self.calls.push(Growing::new(index));
        }
        self.calls.get_mut(at).ok_or_else(|| frame.too_many_calls(frame.bytes()))
    }

    /// A response that was started and has no end was cut off, and so was a call of which not all was told.
    pub(super) fn end(self, limits: &Limits) -> Result<Turn, WireFault> {
        let Self { response, calls, whole, cut_off, .. } = self;
        let ended = match response {
            Response::Unstarted | Response::Ended => true,
            Response::Started => false,
        };
        let is_open = |call: &Growing| match call.stage {
            Stage::Growing => true,
            Stage::Unopened | Stage::Told | Stage::Finished => false,
        };
        let cut_off = cut_off || !ended || calls.iter().any(is_open);
        let whole = match whole {
            Some(whole) if calls.is_empty() => return Ok(if cut_off { whole.cut() } else { whole }),
            whole => whole,
        };
        let (items, doubts): (Vec<Vec<u8>>, Vec<Doubts>) = calls.into_iter().map(|call| call.end(limits)).unzip();
        let message = list(&items);
        let together = Whole { message, cut_off, warnings: Warnings::default() };
        let mut turn = together.read(Dialect::OpenaiResponses, doubts, limits)?;
        if let Some(whole) = &whole {
            agree(&mut turn, whole, "another call in the whole response than in its events");
        }
        Ok(turn)
    }
}

impl Growing {
    fn new(index: i64) -> Self {
        Self {
            index,
            item: UNKNOWN.to_vec(),
            id: Fact::default(),
            call_id: Fact::default(),
            name: Fact::default(),
            pieces: Pieces::default(),
            arguments: Fact::default(),
            stage: Stage::Unopened,
            doubts: Doubts::default(),
        }
    }

    /// Takes the whole item, as it is when it is added or when it is done.
    fn identify(&mut self, item: &[u8], limits: &Limits) {
        self.item = item.to_vec();
        let Ok(members) = Members::read(item, limits) else { return };
        if let Some(id) = members.given("id") {
            // Some servers give an item another id with each event; the call is known by its place.
            self.id.tell(id, limits);
        }
        if members.given("call_id").is_some_and(|id| !self.call_id.tell(id, limits)) {
            self.doubts.note("/call_id", "another id than before");
        }
        self.tell(&members, limits);
    }

    /// Takes the name and the whole text of the arguments, as far as they are there.
    fn tell(&mut self, members: &Members<'_>, limits: &Limits) {
        if members.given("name").is_some_and(|name| !self.name.tell(name, limits)) {
            self.doubts.note("/name", "another name than before");
        }
        // What is added has no arguments yet, and says so with an empty text.
        let begun = self.stage == Stage::Unopened;
        let arguments = members.given("arguments").filter(|text| !begun || *text != b"\"\"");
        if arguments.is_some_and(|text| !self.arguments.tell(text, limits)) {
            self.doubts.note("/arguments", "other arguments than were told before");
        }
    }

    /// The item as a whole message has it.
    fn end(mut self, limits: &Limits) -> (Vec<u8>, Doubts) {
        match self.stage {
            Stage::Unopened => self.doubts.note("", "pieces of a call that was never added"),
            Stage::Growing | Stage::Told | Stage::Finished => {}
        }
        let came = !self.pieces.is_empty();
        let pieces = self.pieces.into_raw();
        if came && self.arguments.raw().is_some_and(|told| told != pieces) {
            self.doubts.note("/arguments", "other arguments than their pieces make");
        }
        let arguments = if came { Some(pieces.as_slice()) } else { self.arguments.raw() };
        let empty = quoted("");
        let arguments = ("arguments", arguments.unwrap_or(&empty));
        let Ok(members) = json::members(&self.item, limits) else { return (self.item, self.doubts) };
        // An item that is not told at its end still has the status that it began with.
        let begun = self.stage != Stage::Finished;
        let others = members.iter().filter(|(name, _)| name != "arguments" && !(begun && name == "status"));
        let item = object(others.map(|(name, raw)| (name.as_str(), *raw)).chain([arguments]));
        (item, self.doubts)
    }
}

fn item<'a>(frame: &Frame<'a>, event: &Members<'a>) -> Result<&'a [u8], WireFault> {
    event.given("item").ok_or_else(|| frame.fault(frame.bytes(), "an event of an item without the item", AS_IT_CAME))
}
