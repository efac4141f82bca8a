//! Messages that were sent as one dialect and are written in another. They are told which it is, and no call of theirs is
//! passed over in silence.

use super::frame::{Frame, Members};
use super::{Dialect, WireFault};

/// The dialects that write something in one way. The first is the one to read it as.
type Writers = &'static [Dialect];

const CHAT: Writers = &[Dialect::OpenaiChat, Dialect::OpenaiStrict];
const CHAT_AND_OLLAMA: Writers = &[Dialect::OpenaiChat, Dialect::OpenaiStrict, Dialect::Ollama];
const RESPONSES: Writers = &[Dialect::OpenaiResponses];
const ANTHROPIC: Writers = &[Dialect::Anthropic];
const GEMINI: Writers = &[Dialect::Gemini];
const BEDROCK: Writers = &[Dialect::Bedrock];
const OLLAMA: Writers = &[Dialect::Ollama];
const MCP: Writers = &[Dialect::Mcp];

/// The members in which a message, or a block of one, proposes calls.
const PROPOSING: [(&str, Writers); 9] = [
    ("jsonrpc", MCP),
    ("choices", CHAT),
    ("tool_calls", CHAT_AND_OLLAMA),
    ("function", CHAT_AND_OLLAMA),
    ("candidates", GEMINI),
    ("parts", GEMINI),
    ("functionCall", GEMINI),
    ("function_call", GEMINI),
    ("toolUse", BEDROCK),
];

/// What the `type` of a call says, in the dialects that mark it so.
const TYPES: [(&str, Writers); 2] = [("function_call", RESPONSES), ("tool_use", ANTHROPIC)];

/// A fault where an object of a message proposes calls in another member than those that are read.
pub(super) fn none_beside<'a>(frame: &Frame<'a>, members: &Members<'a>, read: &[&str]) -> Result<(), WireFault> {
    let given = |(name, writers): &(&str, Writers)| Some((members.given(name)?, *writers));
    match PROPOSING.iter().filter(|(name, _)| !read.contains(name)).find_map(given) {
        Some((part, writers)) => Err(match another(frame, writers) {
            Some(hint) => frame.fault(part, "a message of another dialect", hint),
            None => frame.fault(part, "calls in a second place of the message", "send the message as it came"),
        }),
        None => Ok(()),
    }
}

/// A fault where a block is a call of another dialect.
pub(super) fn no_call<'a>(frame: &Frame<'a>, block: &'a [u8], members: &Members<'a>) -> Result<(), WireFault> {
    match called_in(frame, members).and_then(|writers| another(frame, writers)) {
        Some(hint) => Err(frame.fault(block, "a call in the form of another dialect", hint)),
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
    match written_in(frame, members).and_then(|writers| another(frame, writers)) {
        Some(another) => frame.fault(part, message, another),
        None => frame.fault(part, message, hint),
    }
}

/// Where an object is plainly a call, or a message with some.
fn called_in<'a>(frame: &Frame<'a>, members: &Members<'a>) -> Option<Writers> {
    let by_member = PROPOSING.iter().find(|(name, _)| members.given(name).is_some()).map(|(_, writers)| *writers);
    let by_type = || {
        let kind = members.get("type")?;
        TYPES.iter().find(|(wanted, _)| frame.is_text(kind, wanted)).map(|(_, writers)| *writers)
    };
    by_member.or_else(by_type)
}

/// Where an object is plainly written.
fn written_in<'a>(frame: &Frame<'a>, members: &Members<'a>) -> Option<Writers> {
    let begins = |name: &str, byte: u8| members.get(name).is_some_and(|part| part.first() == Some(&byte));
    let by_its_frame = || match () {
        () if begins("output", b'[') => Some(RESPONSES),
        () if begins("output", b'{') => Some(BEDROCK),
        () if begins("message", b'{') && members.has_any(&["done"]) => Some(OLLAMA),
        () => None,
    };
    let by_its_blocks = || {
        let content = members.get("content").filter(|content| content.starts_with(b"["))?;
        let blocks = frame.items(content, "content").ok()?;
        blocks.into_iter().find_map(|block| called_in(frame, &frame.members(block, "part").ok()?))
    };
    called_in(frame, members).or_else(by_its_frame).or_else(by_its_blocks)
}

/// What to do with something that others write so; `None` where the dialect that is read does too.
fn another(frame: &Frame<'_>, writers: Writers) -> Option<String> {
    let first = writers.first().filter(|_| !writers.contains(&frame.dialect()))?;
    Some(format!("read it as the dialect {first}"))
}
