//! What the model proposed: a call id, the name of a tool, and the raw text of the arguments. Nothing here is trusted.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Millis;

/// A proposed call, with what the host (never the model) adds to it.
#[derive(Clone, Debug)]
pub struct Call {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) arguments: Box<[u8]>,
    pub(crate) operation: Option<OperationId>,
    pub(crate) approval: Option<String>,
    pub(crate) patience: Option<Duration>,
    pub(crate) traced: Option<TraceContext>,
    /// Whether a `null` may stand for a member that is left out, because the tool was shown in a strict mode.
    pub(crate) nulls_for_absent: bool,
}

/// The W3C trace context that a call belongs to. It reaches backends that name it, and decides nothing: it is no part of
/// digests, keys, policies or approvals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    parent: String,
    state: Option<String>,
}

/// An id that the host gives to one intended operation, so that a repeat is known whatever the model wrote.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OperationId(String);

/// An operation id that is empty, longer than 255 characters or not made of visible ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an operation id is 1 to 255 visible ASCII characters; this one is not, and it is never shortened")]
pub struct BadOperationId;

/// The name of one attempt, for people and records: a ULID, which sorts by time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ref(String);

impl Call {
    /// A call of `tool` with the raw text of its arguments; `id` is the one the model gave to the call.
    pub fn new(id: impl Into<String>, tool: impl Into<String>, arguments: impl Into<Vec<u8>>) -> Self {
        Self {
            id: id.into(),
            tool: tool.into(),
            arguments: arguments.into().into_boxed_slice(),
            operation: None,
            approval: None,
            patience: None,
            traced: None,
            nulls_for_absent: false,
        }
    }

    /// Names the operation, for a contract with `caller = true` in `[once]`.
    #[must_use]
    pub fn operation(mut self, id: OperationId) -> Self {
        self.operation = Some(id);
        self
    }

    /// Names the approval that the host expects to be used; a wrong one is refused as `approval_invalid`.
    #[must_use]
    pub fn approval(mut self, id: impl Into<String>) -> Self {
        self.approval = Some(id.into());
        self
    }

    /// How long the caller is ready to wait for an equal call or for the lane; the call's deadline if not set.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Says which trace the call belongs to, for backends that pass it on.
    #[must_use]
    pub fn traced(mut self, context: TraceContext) -> Self {
        self.traced = Some(context);
        self
    }

    /// The id that the model gave to the call.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name of the tool, as the model wrote it.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The text of the arguments, as the model wrote it: any bytes, read by the gate alone.
    pub fn arguments(&self) -> &[u8] {
        &self.arguments
    }
}

impl OperationId {
    /// The id, if it is 1 to 255 visible ASCII characters (0x21 to 0x7E).
    pub fn parse(text: &str) -> Result<Self, BadOperationId> {
        let fits = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(Self(text.to_owned())) } else { Err(BadOperationId) }
    }

    /// The text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TraceContext {
    /// Reads the headers `traceparent` and `tracestate`. As the standard demands, a malformed `traceparent` is no trace
    /// context at all, and a malformed `tracestate` is left out; neither is a fault of the call. Of a version above 00 the
    /// part that 00 has is taken, and passed on as 00; there is no version ff.
    pub fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        let mut parts = parent.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let known = version == "00";
        let fits = (!known || parts.next().is_none())
            && is_hex(version, 2)
            && version != "ff"
            && is_hex(trace, 32)
            && is_hex(span, 16)
            && is_hex(flags, 2)
            && [trace, span].iter().all(|id| id.bytes().any(|digit| digit != b'0'));
        let state = state.filter(|state| is_state(state)).map(str::to_owned);
        // Of the flags of later versions only the one that 00 has is known: whether the trace is sampled.
        let sampled = || u8::from_str_radix(flags, 16).map_or(0, |flags| flags & 1);
        let parent = || if known { parent.to_owned() } else { format!("00-{trace}-{span}-{:02x}", sampled()) };
        fits.then(|| Self { parent: parent(), state })
    }

    /// What `traceparent` says.
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// What `tracestate` says, if there is one.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The id of the trace: 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        self.parent.split('-').nth(1).unwrap_or_default()
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Whether a `tracestate` can be passed on as it is: at most 512 printable ASCII characters, and not blank.
fn is_state(text: &str) -> bool {
    const LONGEST: usize = 512;
    let printable = |byte: u8| (b' '..=b'~').contains(&byte);
    text.len() <= LONGEST && text.bytes().all(printable) && !text.trim().is_empty()
}

impl Ref {
    /// A new, unique name.
    pub(crate) fn fresh() -> Self {
        Self(ulid::Ulid::generate().to_string())
    }

    /// The name that a store kept.
    #[cfg(feature = "sqlite")]
    pub(crate) fn kept(text: String) -> Self {
        Self(text)
    }

    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// When the name was given, by the clock of the process that gave it.
    pub fn given_at(&self) -> Option<Millis> {
        ulid::Ulid::from_string(&self.0).ok().map(|ulid| Millis(ulid.timestamp_ms()))
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_trace_context_is_passed_on_as_it_came() {
        let context = TraceContext::parse(PARENT, Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE")).unwrap();
        assert_eq!(context.parent(), PARENT);
        assert_eq!(context.state(), Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"));
        assert_eq!(context.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(TraceContext::parse(PARENT, None).unwrap().state(), None);
    }

    #[test]
    fn a_malformed_traceparent_is_no_trace_context() {
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.what",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "FF-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\nX-Admin: 1",
        ] {
            assert_eq!(TraceContext::parse(wrong, Some("a=b")), None, "{wrong}");
        }
    }

    #[test]
    fn of_a_later_version_the_known_part_is_passed_on_as_the_known_version() {
        for (later, known) in [("01", "01"), ("cc", "01"), ("01", "00"), ("fe", "ff-what-is-not-known")] {
            let said = format!("{later}-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{known}");
            let context = TraceContext::parse(&said, Some("a=b")).unwrap();
            let flags = if known == "00" { "00" } else { "01" };
            let expected = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}");
            assert_eq!((context.parent(), context.state()), (expected.as_str(), Some("a=b")), "{said}");
        }
    }

    #[test]
    fn a_malformed_tracestate_is_left_out_alone() {
        let longest = format!("a={}", "x".repeat(510));
        assert_eq!(TraceContext::parse(PARENT, Some(&longest)).unwrap().state(), Some(longest.as_str()));
        for wrong in ["", "  ", "a=b\r\nX-Admin: 1", "a=\u{e9}", "a=b\0", &format!("{longest}x")] {
            let context = TraceContext::parse(PARENT, Some(wrong)).unwrap();
            assert_eq!((context.parent(), context.state()), (PARENT, None), "{wrong}");
        }
    }
}
