//! The streamable HTTP transport, without the HTTP: the headers and the body of a POST go in, what to answer comes out.
//!
//! There are no sessions and no streams: each POST is answered whole, by one JSON body. An `Mcp-Session-Id` is never
//! given out and never looked at.

use data_encoding::BASE64;
use toolgate::json::{self, Limits};

use super::message::{self, Broken, INVALID_REQUEST, Id, METHOD_NOT_FOUND, Message};
use super::server::{Answer, Request, Tools, is_request};
use super::version::{Envelope, HANDSHAKE, HEADER_MISMATCH, STATELESS, missing, unsupported};

/// The headers of a request that the protocol speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers<'a> {
    version: Header<'a>,
    method: Header<'a>,
    name: Header<'a>,
    content_type: Header<'a>,
    /// A list, which may stand on several lines.
    accept: Vec<&'a [u8]>,
}

/// A header that is given at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Header<'a> {
    #[default]
    Absent,
    Given(&'a [u8]),
    /// Two readers could take two values.
    Repeated,
}

/// What to answer to a POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpAnswer {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The type of the body; `None` where there is no body.
    pub(crate) content_type: Option<&'static str>,
    /// The body.
    pub(crate) body: String,
}

/// The revision that the header speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoken {
    Handshake,
    Stateless,
}

/// A request whose headers have been held against its body.
struct Asked<'a> {
    id: Id,
    method: String,
    params: Option<&'a [u8]>,
    envelope: Option<Envelope>,
    spoken: Spoken,
}

const OTHER_VERSION: &str = "`MCP-Protocol-Version` must name the revision that `_meta` names";
const JSON: &str = "application/json";
const OK: u16 = 200;
const ACCEPTED: u16 = 202;
const BAD_REQUEST: u16 = 400;
const NOT_FOUND: u16 = 404;
const NOT_ACCEPTABLE: u16 = 406;
const UNSUPPORTED_MEDIA_TYPE: u16 = 415;

impl<'a> Headers<'a> {
    /// Picks the headers out of those of a request. Names are in lower case.
    pub(crate) fn of(all: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut headers = Self::default();
        for (name, value) in all {
            match name {
                "mcp-protocol-version" => headers.version.put(value),
                "mcp-method" => headers.method.put(value),
                "mcp-name" => headers.name.put(value),
                "content-type" => headers.content_type.put(value),
                "accept" => headers.accept.push(value),
                _ => {}
            }
        }
        headers
    }

    /// Whether the body is said to be JSON.
    fn brings_json(&self) -> bool {
        match self.content_type {
            Header::Given(value) => media_type(value).eq_ignore_ascii_case(JSON.as_bytes()),
            Header::Absent | Header::Repeated => false,
        }
    }

    /// Whether JSON may be answered. Whoever names nothing takes anything (RFC 9110, section 12.5.1).
    fn takes_json(&self) -> bool {
        let mut ranges = self.accept.iter().flat_map(|line| line.split(|&byte| byte == b',')).map(media_type);
        self.accept.is_empty()
            || ranges.any(|range| {
                ["*/*", "application/*", JSON].iter().any(|known| range.eq_ignore_ascii_case(known.as_bytes()))
            })
    }
}

impl<'a> Header<'a> {
    fn put(&mut self, value: &'a [u8]) {
        *self = match self {
            Self::Absent => Self::Given(value.trim_ascii()),
            Self::Given(_) | Self::Repeated => Self::Repeated,
        };
    }

    fn is(self, expected: &str) -> bool {
        self == Header::Given(expected.as_bytes())
    }
}

/// Answers a POST.
pub(crate) async fn handle(tools: &impl Tools, headers: &Headers<'_>, body: &[u8]) -> HttpAnswer {
    if !headers.brings_json() {
        return refused(UNSUPPORTED_MEDIA_TYPE, "send one JSON message with `Content-Type: application/json`");
    }
    if !headers.takes_json() {
        return refused(NOT_ACCEPTABLE, "the answer is JSON: send `Accept: application/json, text/event-stream`");
    }
    let limits = message::limits(body);
    let Asked { id, method, params, envelope, spoken } = match read(headers, body, &limits) {
        Ok(Some(asked)) => asked,
        Ok(None) => return HttpAnswer { status: ACCEPTED, content_type: None, body: String::new() },
        Err(broken) => return json_answer(status_of(broken.code), broken.answer()),
    };
    let Answer { text, error } = match Request::read(id, &method, params, envelope.as_ref(), &limits) {
        Ok(request) => request.answer(tools).await,
        Err(broken) => Answer::from(&broken),
    };
    // Before 2026-07-28 an error is an answer like any other.
    let status = match (spoken, error) {
        (Spoken::Stateless, Some(code)) => status_of(code),
        (Spoken::Stateless, None) | (Spoken::Handshake, _) => OK,
    };
    json_answer(status, text)
}

/// The request of a body whose headers say the same as it does; `None` for what needs no answer.
fn read<'a>(headers: &Headers<'_>, body: &'a [u8], limits: &Limits) -> Result<Option<Asked<'a>>, Broken> {
    let (id, method, params) = match message::read(body, limits)? {
        Message::Request { id, method, params } => (id, method, params),
        Message::Notification { method, .. } if is_request(&method) => {
            let message = "a request without an id could not be answered, so it was not made";
            return Err(Broken::new(INVALID_REQUEST, message));
        }
        // A notification is about nothing that a request of its own could know of. Cancelling is closing the connection.
        Message::Notification { .. } => return spoken(headers).map(|_| None),
        Message::Response { .. } => return Err(Broken::new(INVALID_REQUEST, "nothing was asked of this client")),
    };
    match agreeing(headers, &method, params, limits) {
        Ok((spoken, envelope)) => Ok(Some(Asked { id, method, params, envelope, spoken })),
        Err(broken) => Err(broken.to(Some(id))),
    }
}

/// What headers and body say alike: the era, and the envelope that it has.
fn agreeing(
    headers: &Headers<'_>,
    method: &str,
    params: Option<&[u8]>,
    limits: &Limits,
) -> Result<(Spoken, Option<Envelope>), Broken> {
    let spoken = spoken(headers)?;
    let envelope = Envelope::of(params, limits)?;
    match (spoken, &envelope) {
        (Spoken::Handshake, None) => {}
        (Spoken::Handshake, Some(_)) => return Err(mismatch(OTHER_VERSION)),
        (Spoken::Stateless, None) => {
            same(headers, method, params, limits)?;
            return Err(missing());
        }
        (Spoken::Stateless, Some(envelope)) if !headers.version.is(&envelope.version) => {
            return Err(mismatch(OTHER_VERSION));
        }
        (Spoken::Stateless, Some(_)) => same(headers, method, params, limits)?,
    }
    Ok((spoken, envelope))
}

/// Which era the header speaks of. Without one it is a revision before 2025-06-18, which had no such header.
fn spoken(headers: &Headers<'_>) -> Result<Spoken, Broken> {
    let value = match headers.version {
        Header::Absent => return Ok(Spoken::Handshake),
        Header::Given(value) => value,
        Header::Repeated => return Err(mismatch("`MCP-Protocol-Version` is there more than once")),
    };
    let is = |known: &&str| value == known.as_bytes();
    if STATELESS.iter().any(is) {
        Ok(Spoken::Stateless)
    } else if HANDSHAKE.iter().any(is) {
        Ok(Spoken::Handshake)
    } else {
        Err(unsupported(&String::from_utf8_lossy(value)))
    }
}

/// INVARIANT (one reading): whoever routes by the headers and whoever reads the body see the same request.
fn same(headers: &Headers<'_>, method: &str, params: Option<&[u8]>, limits: &Limits) -> Result<(), Broken> {
    if !headers.method.is(method) {
        return Err(mismatch("`Mcp-Method` must be there, and name the method of the body"));
    }
    let named = match method {
        "tools/call" => "name",
        _ => return Ok(()),
    };
    let members = json::members(params.unwrap_or_default(), limits).unwrap_or_default();
    let value = members.into_iter().find(|(name, _)| name == named).map(|(_, raw)| json::read(raw, limits));
    let agree = match (&value, headers.name) {
        (Some(Ok(serde_json::Value::String(text))), Header::Given(header)) => names(header, text),
        // What is no name at all is refused by who reads the call.
        (None | Some(_), Header::Absent) => !matches!(value, Some(Ok(serde_json::Value::String(_)))),
        (None | Some(_), Header::Given(_) | Header::Repeated) => false,
    };
    if agree { Ok(()) } else { Err(mismatch("`Mcp-Name` must be there, and name what the body names")) }
}

/// Whether a header's value, plain or in the form `=?base64?...?=`, means this text. What looks like that form is never
/// taken as plain.
fn names(header: &[u8], text: &str) -> bool {
    match header.strip_prefix(b"=?base64?").and_then(|rest| rest.strip_suffix(b"?=")) {
        // There is one spelling in base64: what decodes to the text is what it is encoded to.
        Some(encoded) => encoded == BASE64.encode(text.as_bytes()).as_bytes(),
        None => header == text.as_bytes(),
    }
}

fn mismatch(message: &'static str) -> Broken {
    Broken::new(HEADER_MISMATCH, message)
}

/// The status of an error (MCP 2026-07-28, "Streamable HTTP").
fn status_of(code: i64) -> u16 {
    match code {
        METHOD_NOT_FOUND => NOT_FOUND,
        message::INTERNAL_ERROR => OK,
        _ => BAD_REQUEST,
    }
}

fn refused(status: u16, message: &'static str) -> HttpAnswer {
    json_answer(status, Broken::new(INVALID_REQUEST, message).answer())
}

fn json_answer(status: u16, body: String) -> HttpAnswer {
    HttpAnswer { status, content_type: Some(JSON), body }
}

/// A media type without its parameters.
fn media_type(value: &[u8]) -> &[u8] {
    value.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii()
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic, and it reads JSON that was written here"
)]
mod tests;
