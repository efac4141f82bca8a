//! Messages that were sent as one dialect and are written in another. They are told which it is, and no call of theirs is
//! passed over in silence.

use super::frame::{Frame, Members};
use super::{Dialect, WireFault};

/// The members in which a message, or a block of one, proposes calls.
const PROPOSING: [(&str, Dialect); 9] = [
    ("jsonrpc", Dialect::Mcp),
    ("choices", Dialect::OpenaiChat),
    ("tool_calls", Dialect::OpenaiChat),
    ("function", Dialect::OpenaiChat),
    ("candidates", Dialect::Gemini),
    ("parts", Dialect::Gemini),
    ("functionCall", Dialect::Gemini),
    ("function_call", Dialect::Gemini),
    ("toolUse", Dialect::Bedrock),
];

/// What the `type` of a call says, in the dialects that mark it so.
const TYPES: [(&str, Dialect); 2] = [("function_call", Dialect::OpenaiResponses), ("tool_use", Dialect::Anthropic)];

/// A fault where an object of a message proposes calls in another member than those that are read.
pub(super) fn none_beside<'a>(frame: &Frame<'a>, members: &Members<'a>, read: &[&str]) -> Result<(), WireFault> {
    let given = |(name, dialect): &(&str, Dialect)| Some((members.given(name)?, *dialect));
    match PROPOSING.iter().filter(|(name, _)| !read.contains(name)).find_map(given) {
        Some((part, dialect)) if is_own(frame, dialect) => {
            Err(frame.fault(part, "calls in a second place of the message", "send the message as it came"))
        }
        Some((part, dialect)) => Err(frame.fault(part, "a message of another dialect", read_as(dialect))),
        None => Ok(()),
    }
}

/// A fault where a block is a call of another dialect.
pub(super) fn no_call<'a>(frame: &Frame<'a>, block: &'a [u8], members: &Members<'a>) -> Result<(), WireFault> {
    match called_in(frame, members).filter(|dialect| !is_own(frame, *dialect)) {
        Some(dialect) => Err(frame.fault(block, "a call in the form of another dialect", read_as(dialect))),
        None => Ok(()),
    }
}

/// A fault where a block of the content, which is words alone in this dialect, is a call of another.
pub(super) fn no_call_in_content<'a>(frame: &Frame<'a>, message: &Members<'a>) -> Result<(), WireFault> {
    let Some(content) = message.given("content").filter(|content| content.starts_with(b"[")) else { return Ok(()) };
    for block in frame.items(content, "content")? {
        if let Ok(members) = frame.members(block, "part") {
            no_call(frame, block, &members)?;
        }
    }
    Ok(())
}

/// The fault of an object that has no form of its dialect: `message` says what it is not, and `hint` what to send where the
/// object shows no other dialect.
pub(super) fn unlike<'a>(
    frame: &Frame<'a>,
    part: &[u8],
    members: &Members<'a>,
    message: &'static str,
    hint: &'static str,
) -> WireFault {
    match written_in(frame, members).filter(|dialect| !is_own(frame, *dialect)) {
        Some(dialect) => frame.fault(part, message, read_as(dialect)),
        None => frame.fault(part, message, hint),
    }
}

/// The dialect in which an object is plainly a call, or a message with some.
fn called_in<'a>(frame: &Frame<'a>, members: &Members<'a>) -> Option<Dialect> {
    let by_member = PROPOSING.iter().find(|(name, _)| members.given(name).is_some()).map(|(_, dialect)| *dialect);
    let by_type = || {
        let kind = members.get("type")?;
        TYPES.iter().find(|(wanted, _)| frame.is_text(kind, wanted)).map(|(_, dialect)| *dialect)
    };
    by_member.or_else(by_type)
}

/// The dialect that an object is plainly written in.
fn written_in<'a>(frame: &Frame<'a>, members: &Members<'a>) -> Option<Dialect> {
    let begins = |name: &str, byte: u8| members.get(name).is_some_and(|part| part.first() == Some(&byte));
    let by_its_frame = || match () {
        () if begins("output", b'[') => Some(Dialect::OpenaiResponses),
        () if begins("output", b'{') => Some(Dialect::Bedrock),
        () if begins("message", b'{') && members.has_any(&["done"]) => Some(Dialect::Ollama),
        () => None,
    };
    let by_its_blocks = || {
        let content = members.get("content").filter(|content| content.starts_with(b"["))?;
        let blocks = frame.items(content, "content").ok()?;
        blocks.into_iter().find_map(|block| called_in(frame, &frame.members(block, "part").ok()?))
    };
    called_in(frame, members).or_else(by_its_frame).or_else(by_its_blocks)
}

/// Whether a mark of this dialect is one of the dialect that is read. Three write calls in `tool_calls`.
fn is_own(frame: &Frame<'_>, marked: Dialect) -> bool {
    let read = frame.dialect();
    let shared = matches!(read, Dialect::OpenaiStrict | Dialect::Ollama) && marked == Dialect::OpenaiChat;
    read == marked || shared
}

fn read_as(dialect: Dialect) -> String {
    format!("read it as the dialect {dialect}")
}
