//! The message as a whole: reading its levels, and telling places in it.

use std::borrow::Cow;

use serde_json::Value;

use super::{Dialect, WireFault};
use crate::json::{self, Flaw, FlawCode, Limits};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What helps against anything that a provider would not have written.
const AS_IT_CAME: &str = "pass the provider's message on as it came";

/// A message, the dialect it is read in, and the bounds under which it is read.
pub(super) struct Frame<'a> {
    dialect: Dialect,
    bytes: &'a [u8],
    limits: Limits,
}

/// The members of one object, with the raw text of their values.
pub(super) struct Members<'a>(Vec<(String, &'a [u8])>);

impl<'a> Frame<'a> {
    pub(super) fn new(dialect: Dialect, message: &'a [u8], limits: &Limits) -> Self {
        let bytes = message.strip_prefix(BYTE_ORDER_MARK).unwrap_or(message);
        // Arguments that are too deep are refused by the gate, not with the whole message: here the reader's own bound holds.
        Self { dialect, bytes, limits: Limits { depth: usize::MAX, ..*limits } }
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The members of an object of the message; `what` names it for a fault.
    pub(super) fn members(&self, part: &'a [u8], what: &'static str) -> Result<Members<'a>, WireFault> {
        Members::read(part, &self.limits).map_err(|flaw| self.flawed(part, &flaw, what))
    }

    /// The items of an array of the message.
    pub(super) fn items(&self, part: &'a [u8], what: &'static str) -> Result<Vec<&'a [u8]>, WireFault> {
        json::items(part, &self.limits).map_err(|flaw| self.flawed(part, &flaw, what))
    }

    /// A string of the message; `None` for `null`.
    pub(super) fn text(&self, part: &'a [u8], what: &'static str) -> Result<Option<String>, WireFault> {
        match json::read(part, &self.limits) {
            Ok(Value::String(text)) => Ok(Some(text)),
            Ok(Value::Null) => Ok(None),
            Ok(other) => Err(self.fault(part, format!("{what} is {}, not a string", kind(&other)), AS_IT_CAME)),
            Err(flaw) => Err(self.flawed(part, &flaw, what)),
        }
    }

    /// Whether the message is an array.
    pub(super) fn is_list(&self) -> bool {
        self.bytes.trim_ascii_start().starts_with(b"[")
    }

    /// Whether a part is the string `wanted`.
    pub(super) fn is_text(&self, part: &'a [u8], wanted: &str) -> bool {
        matches!(self.text(part, "the text"), Ok(Some(text)) if text == wanted)
    }

    /// The one alternative of a response. Of several, each would be another turn.
    pub(super) fn only(
        &self,
        list: &'a [u8],
        what: &'static str,
        one: &'static str,
        hint: &'static str,
    ) -> Result<Members<'a>, WireFault> {
        match self.items(list, what)?.as_slice() {
            [alone] => self.members(alone, one),
            [] => Err(self.fault(list, format!("no {one}"), "send the response of a model that has answered")),
            [_, ..] => Err(self.fault(list, format!("more than one {one}"), hint)),
        }
    }

    /// A fault where the message says that it is not the model's: its role is another than `model`, as the dialect calls it.
    pub(super) fn expect_role(&self, message: &Members<'a>, model: &str) -> Result<(), WireFault> {
        let Some(role) = message.get("role") else { return Ok(()) };
        match self.text(role, "role")? {
            Some(found) if found == model => Ok(()),
            _ => Err(self.fault(
                role,
                format!("a message that is not the {model}'s"),
                format!("send the {model}'s message alone: only there are calls proposed"),
            )),
        }
    }

    /// Why the model stopped, if the member `name` tells it.
    fn stop_reason(&self, members: &Members<'a>, name: &'static str) -> Result<Option<String>, WireFault> {
        members.get(name).map_or(Ok(None), |reason| self.text(reason, name))
    }

    /// Whether the model stopped for one of the reasons `early`, which mean that it was not done. For providers whose other
    /// reasons are many, and new ones of no harm.
    pub(super) fn stopped_early(
        &self,
        members: &Members<'a>,
        name: &'static str,
        early: &[&str],
    ) -> Result<bool, WireFault> {
        Ok(self.stop_reason(members, name)?.is_some_and(|reason| early.contains(&reason.as_str())))
    }

    /// Whether the model stopped for another reason than those in `done`. A reason that nobody knows yet is none of being
    /// done: a turn that may be half of one runs nothing.
    pub(super) fn stopped_otherwise(
        &self,
        members: &Members<'a>,
        name: &'static str,
        done: &[&str],
    ) -> Result<bool, WireFault> {
        Ok(self.stop_reason(members, name)?.is_some_and(|reason| !done.contains(&reason.as_str())))
    }

    /// A fault at the beginning of a part of the message.
    pub(super) fn fault(
        &self,
        part: &[u8],
        message: impl Into<Cow<'static, str>>,
        hint: impl Into<Cow<'static, str>>,
    ) -> WireFault {
        self.fault_at(self.offset(part), message.into(), hint.into())
    }

    pub(super) fn too_many_calls(&self, part: &[u8]) -> WireFault {
        let message = format!("more than {} calls in one message", super::MOST_CALLS);
        self.fault(part, message, "none of them ran; send fewer calls at a time")
    }

    fn flawed(&self, part: &[u8], flaw: &Flaw, what: &'static str) -> WireFault {
        let hint = match flaw.code {
            FlawCode::NotObject => AS_IT_CAME,
            _ => flaw.hint().unwrap_or(AS_IT_CAME),
        };
        let message = format!("{what}: {}", flaw.message);
        self.fault_at(self.offset(part) + flaw.offset, message.into(), hint.into())
    }

    /// Line and column at which a part of the message begins, from 1.
    pub(super) fn place(&self, part: &[u8]) -> (usize, usize) {
        self.place_at(self.offset(part))
    }

    fn fault_at(&self, at: usize, message: Cow<'static, str>, hint: Cow<'static, str>) -> WireFault {
        let (line, column) = self.place_at(at);
        WireFault { line, column, message, hint }
    }

    fn place_at(&self, at: usize) -> (usize, usize) {
        let before = self.bytes.get(..at).unwrap_or(self.bytes);
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let in_line = before.get(line_start..).unwrap_or_default();
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        (line, 1 + String::from_utf8_lossy(in_line).chars().count())
    }

    /// Where a part begins; parts are slices of the message.
    fn offset(&self, part: &[u8]) -> usize {
        part.as_ptr().addr().saturating_sub(self.bytes.as_ptr().addr())
    }
}

impl WireFault {
    /// A fault of a part, told of the text in which the part begins in this place.
    pub(super) fn moved(self, (line, column): (usize, usize)) -> Self {
        let column = if self.line == 1 { self.column + column - 1 } else { self.column };
        Self { line: self.line + line - 1, column, ..self }
    }
}

impl<'a> Members<'a> {
    pub(super) fn read(part: &'a [u8], limits: &Limits) -> Result<Self, Flaw> {
        json::members(part, limits).map(Self)
    }

    /// The raw text of a member.
    pub(super) fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, raw)| *raw)
    }

    /// The raw text of a member that is there and not `null`.
    pub(super) fn given(&self, name: &str) -> Option<&'a [u8]> {
        self.get(name).filter(|raw| *raw != b"null")
    }

    /// Whether one of these members is there.
    pub(super) fn has_any(&self, names: &[&str]) -> bool {
        self.0.iter().any(|(name, _)| names.contains(&name.as_str()))
    }

    /// The members with the raw text of their values, in their order.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, &'a [u8])> {
        self.0.iter().map(|(name, raw)| (name.as_str(), *raw))
    }
}

/// The kind of a value, for a message.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
