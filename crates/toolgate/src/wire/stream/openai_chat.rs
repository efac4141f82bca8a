//! Chunks of `openai-chat`: the calls grow in `choices[].delta.tool_calls[]`.
//!
//! The index of a piece is a key and no position: it may begin anywhere and leave gaps, and the calls stand in the order
//! in which they were opened. Some servers leave the index out, use one for several calls, or send a whole message at
//! the end. To which call a piece belongs, [`Stream::owner`] tells; one that could belong to two stops the stream.

use std::collections::HashSet;

use super::super::form::Level;
use super::super::frame::{Frame, Members};
use super::super::openai_chat::{self, DONE, FUNCTION, ITEM};
use super::super::{Dialect, MOST_CALLS, Turn, WireFault};
use super::pieces::{Fact, Name, Named, Pieces, list, object, quoted, spelled};
use super::{Doubts, SENT_AGAIN, Warnings, Whole, agree, failed, integer};
use crate::json::{self, Limits};

/// Unknown members of a call that are kept for its refusal.
const MOST_OTHERS: usize = 20;

const AS_IT_CAME: &str = "pass the provider's chunks on as they came";

/// A streamed completion.
#[derive(Debug)]
pub(super) struct Stream {
    dialect: Dialect,
    calls: Vec<Growing>,
    /// The choice that has calls.
    choice: Option<i64>,
    /// The choices that told why they stopped.
    ended: HashSet<i64>,
    /// The id of the completion.
    id: Fact,
    /// The first whole message with calls. INVARIANT (one telling): a call of which another telling differs is broken.
    whole: Option<Turn>,
    cut_off: bool,
    warnings: Warnings,
}

/// A call of which pieces came.
#[derive(Debug)]
struct Growing {
    slot: Slot,
    id: Fact,
    kind: Fact,
    name: Name,
    arguments: Pieces,
    /// The raw text of a function, or of a name, that cannot be read as one.
    odd_function: Option<Vec<u8>>,
    odd_name: Option<Vec<u8>>,
    /// Members that nobody knows, of the call and of its function.
    others: Vec<(String, Vec<u8>)>,
    function_others: Vec<(String, Vec<u8>)>,
    /// It took an index from a call that had not all of its arguments: a piece that has the index alone could be of either.
    contested: bool,
    doubts: Doubts,
}

/// By what the pieces of a call are known that have no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// Their index.
    Index(i64),
    /// Their place in the chunk, where the provider leaves the index out.
    Position(usize),
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Pieces came, and none of them told its name.
    Unopened,
    /// It has its name.
    Opened,
    /// Its arguments grow.
    Growing,
}

/// To which call a piece belongs.
enum Owner {
    Known(usize),
    /// It opens a call.
    New(Slot, Option<&'static str>),
    /// It could belong to two.
    Unsure,
}

/// What a piece may be told by beside what it says itself.
struct Chunk {
    /// Places for pieces in it.
    places: usize,
    /// Whether no piece of it has an index or an id.
    is_bare: bool,
    /// Calls that were there before it.
    earlier: usize,
}

/// One item of `tool_calls`.
struct Piece<'a> {
    position: usize,
    index: Option<i64>,
    /// Not there if empty: some servers send an empty id with each piece.
    id: Option<Vec<u8>>,
    members: Members<'a>,
    function: Function<'a>,
}

enum Function<'a> {
    None,
    Odd(&'a [u8]),
    Members(Members<'a>),
}

impl Stream {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            calls: Vec::new(),
            choice: None,
            ended: HashSet::new(),
            id: Fact::default(),
            whole: None,
            cut_off: false,
            warnings: Warnings::default(),
        }
    }

    pub(super) fn push(&mut self, frame: &Frame<'_>) -> Result<(), WireFault> {
        let chunk = frame.members(frame.bytes(), "the event")?;
        if let Some(error) = chunk.given("error") {
            return Err(failed(frame, error));
        }
        if let Some(calls) = chunk.given("tool_calls") {
            return Err(frame.fault(calls, "calls beside the choices of a chunk", AS_IT_CAME));
        }
        let Some(choices) = chunk.given("choices") else {
            // What was used may come by itself.
            return match chunk.given("usage") {
                Some(_) => Ok(()),
                None => Err(frame.fault(frame.bytes(), "an event that is no chunk of a completion", AS_IT_CAME)),
            };
        };
        let choices = frame.items(choices, "choices")?;
        // A chunk without choices brings nothing of the answer; some servers give it an id of its own.
        let id = chunk.given("id").filter(|id| *id != b"\"\"" && !choices.is_empty());
        if let Some(id) = id.filter(|id| !self.id.tell(id, frame.limits())) {
            return Err(frame.fault(id, "a chunk of another completion", "send one stream at a time"));
        }
        for choice in choices {
            self.choice(frame, choice)?;
        }
        Ok(())
    }

    fn choice<'a>(&mut self, frame: &Frame<'a>, part: &'a [u8]) -> Result<(), WireFault> {
        let choice = frame.members(part, "choice")?;
        let index = choice.given("index").map(|index| integer(frame, index, "the index of a choice")).transpose()?;
        let index = index.unwrap_or_default();
        self.cut_off |= frame.stopped_otherwise(&choice, "finish_reason", &DONE)?;
        let mut ended = has_reason(&choice);
        if let Some(delta) = choice.given("delta") {
            let members = frame.members(delta, "delta")?;
            // A piece of a message says who speaks, or nothing.
            if members.given("role").is_some_and(|role| role != b"\"\"") {
                frame.expect_role(&members, "assistant")?;
            }
            openai_chat::expect_no_other_calls(frame, &members)?;
            self.cut_off |= frame.stopped_otherwise(&members, "finish_reason", &DONE)?;
            ended |= has_reason(&members);
            if let Some(pieces) = members.given("tool_calls") {
                self.pieces(frame, index, pieces)?;
            }
        }
        if ended {
            self.ended.insert(index);
        }
        choice.given("message").map_or(Ok(()), |message| self.message(frame, index, message))
    }

    fn pieces<'a>(&mut self, frame: &Frame<'a>, choice: i64, part: &'a [u8]) -> Result<(), WireFault> {
        let items = frame.items(part, "tool_calls")?;
        let there = items.iter().enumerate().filter(|(_, item)| **item != b"null");
        let pieces: Vec<(&[u8], Piece<'_>)> = there
            .map(|(position, item)| Piece::read(frame, position, item).map(|piece| (*item, piece)))
            .collect::<Result<_, _>>()?;
        let is_bare = pieces.iter().all(|(_, piece)| piece.is_bare());
        let chunk = Chunk { places: items.len(), is_bare, earlier: self.calls.len() };
        for (item, piece) in pieces {
            self.of_one_choice(frame, choice, item)?;
            if self.whole.is_some() {
                return Err(frame.fault(item, "a piece of a call after the whole message", SENT_AGAIN));
            }
            if self.ended.contains(&choice) && !piece.is_empty() {
                return Err(frame.fault(item, "a piece of a call after the reason to stop", SENT_AGAIN));
            }
            let owner = self.owner(&chunk, &piece);
            self.take(frame, item, owner, &piece)?;
        }
        Ok(())
    }

    /// Of several choices with calls, each would be another turn.
    fn of_one_choice(&mut self, frame: &Frame<'_>, choice: i64, part: &[u8]) -> Result<(), WireFault> {
        if *self.choice.get_or_insert(choice) == choice {
            return Ok(());
        }
        Err(frame.fault(part, "calls in more than one choice", "none ran; ask for n = 1, or send the message of one"))
    }

    /// A whole message in place of a delta. One without calls says nothing of them.
    fn message<'a>(&mut self, frame: &Frame<'a>, choice: i64, part: &'a [u8]) -> Result<(), WireFault> {
        let message = Frame::new(self.dialect, part, frame.limits());
        let turn = self.dialect.read(&message).map_err(|fault| fault.moved(frame.place(part)))?;
        self.cut_off |= turn.cut_off;
        if turn.calls.is_empty() {
            return Ok(());
        }
        self.of_one_choice(frame, choice, part)?;
        let told = self.whole.as_ref().map_or(self.calls.len(), |whole| whole.calls.len());
        if told > 0 && told != turn.calls.len() {
            return Err(frame.fault(part, "a whole message with other calls than came before it", SENT_AGAIN));
        }
        match &mut self.whole {
            Some(whole) => agree(whole, &turn, "another call in one whole message than in another"),
            None => self.whole = Some(turn),
        }
        Ok(())
    }

    /// The index tells, then the id, then the place in the chunk. An id is told once, so another id on the same index is
    /// another call of a stream that has all calls on one; among calls with indices of their own nobody knows.
    fn owner(&self, chunk: &Chunk, piece: &Piece<'_>) -> Owner {
        let last = |slot: Slot| self.calls.iter().rposition(|call| call.slot == slot);
        let without_id = |at: usize| self.calls.get(at).is_some_and(|call| call.id.raw().is_none());
        let position = Slot::Position(piece.position);
        match (piece.index.map(Slot::Index), &piece.id) {
            (Some(slot), None) => match last(slot) {
                Some(last) if self.calls.get(last).is_some_and(|call| call.contested) => Owner::Unsure,
                last => last.map_or(Owner::New(slot, None), Owner::Known),
            },
            (Some(slot), Some(id)) => {
                let same: Vec<usize> = self.with_id(id).collect();
                let here = same.iter().rfind(|at| self.calls.get(**at).is_some_and(|call| call.slot == slot));
                match (here, last(slot)) {
                    (Some(known), _) => Owner::Known(*known),
                    // The id tells one call, the index another.
                    (None, _) if !same.is_empty() && !piece.has_name() => Owner::Unsure,
                    (None, Some(last)) if without_id(last) => Owner::Known(last),
                    (None, Some(_)) if self.counts(slot) => Owner::Unsure,
                    (None, Some(_)) => Owner::New(slot, Some("another id on an index that is in use: another call")),
                    (None, None) => Owner::New(slot, None),
                }
            }
            (None, Some(id)) => {
                let mut same = self.with_id(id);
                match (same.next(), same.next(), last(position)) {
                    (Some(_), Some(_), _) => Owner::Unsure,
                    (Some(known), None, _) => Owner::Known(known),
                    (None, _, Some(last)) if without_id(last) => Owner::Known(last),
                    (None, ..) => Owner::New(position, Some("a call without an index: its pieces are known by its id")),
                }
            }
            (None, None) => self.by_place(chunk, piece.position),
        }
    }

    /// The call of a piece without index and id. Servers that leave both out mean the place in the chunk, or the call that
    /// was opened last: where these differ, nobody knows.
    fn by_place(&self, chunk: &Chunk, position: usize) -> Owner {
        let last = |slot: Slot| self.calls.iter().rposition(|call| call.slot == slot);
        let index = i64::try_from(position).ok().and_then(|index| last(Slot::Index(index)));
        let behind = chunk.places.saturating_sub(position + 1);
        match (last(Slot::Position(position)), index) {
            _ if !chunk.is_bare => Owner::Unsure,
            // The calls that were opened after it have their places in the chunk as well.
            (Some(known), None) | (None, Some(known)) if self.calls.len() <= known + 1 + behind => Owner::Known(known),
            (None, None) if chunk.earlier == 0 => {
                let odd = "a call without index and id: its pieces are known by their place";
                Owner::New(Slot::Position(position), Some(odd))
            }
            (Some(_) | None, Some(_) | None) => Owner::Unsure,
        }
    }

    /// Whether the stream tells its calls apart by their indices: one has another index than this.
    fn counts(&self, slot: Slot) -> bool {
        self.calls.iter().any(|call| matches!(call.slot, Slot::Index(_)) && call.slot != slot)
    }

    /// The calls that have this id.
    fn with_id(&self, id: &[u8]) -> impl Iterator<Item = usize> {
        self.calls.iter().enumerate().filter(move |(_, call)| call.id.raw() == Some(id)).map(|(at, _)| at)
    }

    fn take(&mut self, frame: &Frame<'_>, item: &[u8], owner: Owner, piece: &Piece<'_>) -> Result<(), WireFault> {
        let at = match owner {
            Owner::Known(at) => at,
            Owner::New(..) | Owner::Unsure if piece.is_empty() => return Ok(()),
            Owner::Unsure => return Err(frame.fault(item, "a piece that could belong to two calls", SENT_AGAIN)),
            Owner::New(..) if self.calls.len() == MOST_CALLS => return Err(frame.too_many_calls(item)),
            Owner::New(slot, odd) => {
                let at = self.calls.len();
                if let Some(odd) = odd {
                    self.warnings.of_call(at, odd);
                }
                let before = self.calls.iter().rfind(|call| call.slot == slot);
                let contested = before.is_some_and(|call| call.contested || !call.arguments.is_whole(frame.limits()));
                self.calls.push(Growing { contested, ..Growing::at(slot) });
                at
            }
        };
        if let Some(call) = self.calls.get_mut(at) {
            call.take(piece, frame.limits(), |odd| self.warnings.of_call(at, odd));
        }
        Ok(())
    }

    /// `done` says that the provider told that there is no more.
    pub(super) fn end(self, done: bool, limits: &Limits) -> Result<Turn, WireFault> {
        let Self { dialect, calls: growing, choice, ended, whole, cut_off, warnings, .. } = self;
        let whole = match whole {
            Some(whole) if growing.is_empty() => return Ok(if cut_off { whole.cut() } else { whole }),
            whole => whole,
        };
        let has_end = done || whole.is_some() || choice.is_some_and(|choice| ended.contains(&choice));
        let (calls, doubts): (Vec<Vec<u8>>, Vec<Doubts>) = growing.into_iter().map(|call| call.end(has_end)).unzip();
        let calls = list(&calls);
        let message = object([("role", &b"\"assistant\""[..]), ("tool_calls", &calls)]);
        let mut turn = Whole { message, cut_off, warnings }.read(dialect, doubts, limits)?;
        if let Some(whole) = &whole {
            agree(&mut turn, whole, "another call in the whole message than in its pieces");
        }
        Ok(turn)
    }
}

impl<'a> Piece<'a> {
    fn read(frame: &Frame<'a>, position: usize, item: &'a [u8]) -> Result<Self, WireFault> {
        let members = frame.members(item, "a piece of a call")?;
        let index = members.given("index").map(|index| integer(frame, index, "the index of a call")).transpose()?;
        let id = members.given("id").map(|id| spelled(id, frame.limits())).filter(|id| id != b"\"\"");
        let function = match members.given("function") {
            None => Function::None,
            Some(part) => Members::read(part, frame.limits()).map_or(Function::Odd(part), Function::Members),
        };
        Ok(Self { position, index, id, members, function })
    }

    /// Whether it does not say of which call it is.
    fn is_bare(&self) -> bool {
        self.index.is_none() && self.id.is_none()
    }

    fn has_name(&self) -> bool {
        match &self.function {
            Function::None | Function::Odd(_) => false,
            Function::Members(function) => function.given("name").is_some_and(|name| name != b"\"\""),
        }
    }

    /// Whether it says nothing that a call could be made of.
    fn is_empty(&self) -> bool {
        let blank = |part: Option<&[u8]>| part.is_none_or(|part| part == b"\"\"");
        self.id.is_none()
            && strange(&self.members, &ITEM).next().is_none()
            && match &self.function {
                Function::None => true,
                Function::Odd(_) => false,
                Function::Members(function) => {
                    blank(function.given("name"))
                        && blank(function.given("arguments"))
                        && strange(function, &FUNCTION).next().is_none()
                }
            }
    }
}

impl Growing {
    fn at(slot: Slot) -> Self {
        Self {
            slot,
            id: Fact::default(),
            kind: Fact::default(),
            name: Name::default(),
            arguments: Pieces::default(),
            odd_function: None,
            odd_name: None,
            others: Vec::new(),
            function_others: Vec::new(),
            contested: false,
            doubts: Doubts::default(),
        }
    }

    fn stage(&self) -> Stage {
        match (self.name.text().is_empty() && self.odd_name.is_none(), self.arguments.is_empty()) {
            (true, _) => Stage::Unopened,
            (false, true) => Stage::Opened,
            (false, false) => Stage::Growing,
        }
    }

    fn take(&mut self, piece: &Piece<'_>, limits: &Limits, mut warn: impl FnMut(&'static str)) {
        if let Some(id) = &piece.id {
            // Whoever found this call by its id knows that it is the same; a late id is the first.
            self.id.tell(id, limits);
        }
        if let Some(kind) = piece.members.given("type").filter(|kind| *kind != b"\"\"")
            && !self.kind.tell(kind, limits)
        {
            self.doubts.note("/type", "another type than before");
        }
        keep(&mut self.others, &piece.members, &ITEM);
        let function = match &piece.function {
            Function::None => return,
            Function::Odd(raw) => {
                self.odd_function.get_or_insert_with(|| raw.to_vec());
                return;
            }
            Function::Members(function) => function,
        };
        if let Some(name) = function.given("name") {
            self.named(name, limits, &mut warn);
        }
        if let Some(arguments) = function.given("arguments")
            && !self.arguments.add_once(arguments, limits)
        {
            warn("all of the arguments again after their pieces: they are taken once");
        }
        keep(&mut self.function_others, function, &FUNCTION);
    }

    fn named(&mut self, raw: &[u8], limits: &Limits, warn: &mut impl FnMut(&'static str)) {
        let Some(piece) = json::read(raw, limits).ok().and_then(|name| name.as_str().map(str::to_owned)) else {
            self.odd_name.get_or_insert_with(|| raw.to_vec());
            return;
        };
        let begun = match self.stage() {
            Stage::Unopened | Stage::Opened => false,
            Stage::Growing => true,
        };
        match self.name.add(&piece, begun) {
            Named::Whole => {}
            Named::Longer => warn("a name in pieces: they are put together"),
            Named::Unsure(why) => self.doubts.note("/function/name", why),
        }
    }

    /// The call as a whole message has it. Of a stream without an end nobody knows whether arguments were still to come: a
    /// whole object is all, and no text is none.
    fn end(mut self, has_end: bool) -> (Vec<u8>, Doubts) {
        match self.stage() {
            Stage::Unopened => self.doubts.note("", "pieces of a call that none of them opened with a name"),
            Stage::Opened | Stage::Growing if !has_end && self.arguments.is_blank() => {
                self.doubts.note("/function/arguments", "no arguments came, and the stream has no end");
            }
            Stage::Opened | Stage::Growing => {}
        }
        let name = match self.odd_name {
            Some(odd) => Some(odd),
            None => Some(self.name.text()).filter(|name| !name.is_empty()).map(quoted),
        };
        let arguments = self.arguments.into_raw();
        let function = [("name", name.as_deref()), ("arguments", Some(&arguments))];
        let function =
            self.odd_function.unwrap_or_else(|| object(given(&function).chain(listed(&self.function_others))));
        let members = [("id", self.id.raw()), ("type", self.kind.raw()), ("function", Some(&function))];
        (object(given(&members).chain(listed(&self.others))), self.doubts)
    }
}

/// Whether a choice tells why it stopped. Some servers send an empty reason with each chunk.
fn has_reason(members: &Members<'_>) -> bool {
    members.given("finish_reason").is_some_and(|reason| reason != b"\"\"")
}

/// The members that there are.
fn given<'m>(members: &'m [(&'m str, Option<&'m [u8]>)]) -> impl Iterator<Item = (&'m str, &'m [u8])> {
    members.iter().filter_map(|(name, raw)| raw.map(|raw| (*name, raw)))
}

/// The members that nobody knows.
fn strange<'m>(members: &'m Members<'_>, level: &'m Level) -> impl Iterator<Item = (&'m str, &'m [u8])> {
    members.each().filter(|(name, value)| !level.has(name, value))
}

/// Keeps what nobody knows, so that the call is refused for it as it would be in a whole message.
fn keep(kept: &mut Vec<(String, Vec<u8>)>, members: &Members<'_>, level: &Level) {
    for (name, value) in strange(members, level) {
        if kept.len() < MOST_OTHERS && !kept.iter().any(|(earlier, _)| earlier == name) {
            kept.push((name.to_owned(), value.to_vec()));
        }
    }
}

fn listed(members: &[(String, Vec<u8>)]) -> impl Iterator<Item = (&str, &[u8])> {
    members.iter().map(|(name, raw)| (name.as_str(), raw.as_slice()))
}
