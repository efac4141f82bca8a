//! JSON-RPC 2.0 messages as the Model Context Protocol uses them: read strictly, with parameters and results as raw text,
//! so that no number is rounded and no repeated member is lost.
//!
//! A message is one object: batches, which only revision 2025-03-26 had, are refused. An id is text or a whole number and
//! never null (MCP, "Requests").

use std::borrow::Cow;
use std::fmt;

use serde_json::{Value, json};
use toolgate::json::{self, Limits};

/// One message.
#[derive(Debug, PartialEq)]
pub enum Message<'a> {
    /// It wants an answer.
    Request {
        /// The id of its answer.
        id: Id,
        /// What is asked for.
        method: String,
        /// The raw text of the parameters.
        params: Option<&'a [u8]>,
    },
    /// It wants none.
    Notification {
        /// What is told.
        method: String,
        /// The raw text of the parameters.
        params: Option<&'a [u8]>,
    },
    /// The answer to a request of ours.
    Response {
        /// The id of the request.
        id: Id,
        /// The raw text of the result, or of the error object.
        outcome: Result<&'a [u8], &'a [u8]>,
    },
}

/// The id of a request. `1` and `"1"` are two ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    /// A whole number.
    Number(serde_json::Number),
    /// A text, which may be empty.
    Text(String),
}

/// A message that is none. It is answered as an error, with the id if that much could be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// The id of the message, if it could be read.
    pub id: Option<Id>,
    /// The code of JSON-RPC, or of the protocol.
    pub code: i64,
    /// INVARIANT (no echo): holds no value of the message.
    pub message: Cow<'static, str>,
    /// What the protocol wants beside it.
    pub data: Option<Box<Value>>,
}

/// JSON-RPC 2.0, section 5.1: the text is no JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;
/// JSON-RPC 2.0, section 5.1: the JSON is no request.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC 2.0, section 5.1: there is no such method.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC 2.0, section 5.1: the parameters are wrong.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC 2.0, section 5.1: the server failed.
pub(crate) const INTERNAL_ERROR: i64 = -32603;

const KNOWN: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The bounds under which a message is read. The depth of arguments is bounded where they are admitted, and counted from
/// there at every door: what stands around them is no part of them.
pub fn limits(frame: &[u8]) -> Limits {
    Limits { size: frame.len(), depth: usize::MAX, ..Limits::default() }
}

/// Reads one message. One byte order mark before it is skipped. What the parameters hold is not looked at, but for the
/// bounds of the whole.
pub fn read<'a>(frame: &'a [u8], limits: &Limits) -> Result<Message<'a>, Broken> {
    let text = frame.strip_prefix(BYTE_ORDER_MARK).unwrap_or(frame);
    if text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return Err(broken(None, INVALID_REQUEST, "a batch: send one message at a time"));
    }
    // Arguments that are too deep are refused where they are read, not with the whole message.
    let limits = Limits { depth: usize::MAX, ..*limits };
    let members = json::members(text, &limits).map_err(|flaw| {
        let code = if flaw.code == json::FlawCode::NotObject { INVALID_REQUEST } else { PARSE_ERROR };
        broken(None, code, format!("the message is no strict JSON object: {flaw}"))
    })?;
    let member = |name: &str| members.iter().find(|(known, _)| known == name).map(|(_, raw)| *raw);
    let id = match member("id") {
        None => None,
        Some(raw) => match Id::read(raw) {
            Some(id) => Some(id),
            None => return Err(broken(None, INVALID_REQUEST, "an id is text or a whole number")),
        },
    };
    if member("jsonrpc").and_then(text_of).as_deref() != Some("2.0") {
        return Err(broken(id, INVALID_REQUEST, "`jsonrpc` must be \"2.0\""));
    }
    if members.iter().any(|(name, _)| !KNOWN.contains(&name.as_str())) {
        return Err(broken(id, INVALID_REQUEST, "a member that JSON-RPC does not know"));
    }
    let answers = [member("result").is_some(), member("error").is_some()];
    match (member("method"), id, answers) {
        (Some(raw), id, [false, false]) => {
            let Some(method) = text_of(raw) else { return Err(broken(id, INVALID_REQUEST, "`method` must be text")) };
            let params = member("params");
            if params.is_some_and(|params| !params.starts_with(b"{")) {
                return Err(broken(id, INVALID_REQUEST, "`params` must be an object"));
            }
            Ok(match id {
                Some(id) => Message::Request { id, method, params },
                None => Message::Notification { method, params },
            })
        }
        (None, Some(id), [true, false]) => {
            Ok(Message::Response { id, outcome: Ok(member("result").unwrap_or_default()) })
        }
        (None, Some(id), [false, true]) => {
            Ok(Message::Response { id, outcome: Err(member("error").unwrap_or_default()) })
        }
        (_, id, _) => Err(broken(id, INVALID_REQUEST, "neither a request nor an answer")),
    }
}

/// A request of ours. `params` is JSON text.
pub(crate) fn request(id: &Id, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":{params}}}"#, json!(method))
}

/// A notification of ours. `params` is JSON text.
pub(crate) fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":{},"params":{params}}}"#, json!(method))
}

/// The answer to a request. `result` is JSON text.
pub(crate) fn response(id: &Id, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// The answer to a request that failed, or to what was none. `data` is JSON text.
pub(crate) fn error(id: Option<&Id>, code: i64, message: &str, data: Option<&str>) -> String {
    let id = id.map_or_else(|| "null".to_owned(), Id::to_string);
    let data = data.map(|data| format!(r#","data":{data}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{}{data}}}}}"#, json!(message))
}

impl Id {
    fn read(raw: &[u8]) -> Option<Self> {
        match json::read(raw, &Limits::default()).ok()? {
            Value::String(text) => Some(Self::Text(text)),
            Value::Number(number) if number.is_i64() || number.is_u64() => Some(Self::Number(number)),
            _ => None,
        }
    }

    /// The id as a JSON value.
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::from(text.as_str()),
        }
    }
}

impl fmt::Display for Id {
    /// The id as JSON text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{}", json!(text)),
        }
    }
}

impl Broken {
    pub(crate) fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { id: None, code, message: message.into(), data: None }
    }

    /// Names the message that it is about.
    pub(crate) fn to(self, id: Option<Id>) -> Self {
        Self { id, ..self }
    }

    /// The answer to it.
    pub fn answer(&self) -> String {
        error(self.id.as_ref(), self.code, &self.message, self.data.as_ref().map(|data| data.to_string()).as_deref())
    }
}

fn broken(id: Option<Id>, code: i64, message: impl Into<Cow<'static, str>>) -> Broken {
    Broken::new(code, message).to(id)
}

fn text_of(raw: &[u8]) -> Option<String> {
    match json::read(raw, &Limits::default()) {
        Ok(Value::String(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_text(text: &str) -> Result<Message<'_>, Broken> {
        read(text.as_bytes(), &Limits::default())
    }

    fn code(text: &str) -> (Option<Id>, i64) {
        let broken = read_text(text).unwrap_err();
        (broken.id, broken.code)
    }

    #[test]
    fn each_kind_of_message_is_known_by_its_members() {
        let one = Id::Number(1.into());
        let request = read_text("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":1.50}}");
        assert_eq!(
            request,
            Ok(Message::Request { id: one.clone(), method: "ping".into(), params: Some(b"{\"a\":1.50}") })
        );
        let notification = read_text(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert_eq!(
            notification,
            Ok(Message::Notification { method: "notifications/initialized".into(), params: None })
        );
        let response = read_text(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(response, Ok(Message::Response { id: one.clone(), outcome: Ok(b"{}") }));
        let failed = read_text(r#"{"jsonrpc":"2.0","id":"1","error":{"code":-1}}"#);
        assert_eq!(failed, Ok(Message::Response { id: Id::Text("1".into()), outcome: Err(b"{\"code\":-1}") }));
        assert_ne!(one, Id::Text("1".into()));
    }

    #[test]
    fn what_is_no_message_is_answered_with_its_id_if_that_could_be_read() {
        let seven = Some(Id::Number(7.into()));
        for (text, expected) in [
            ("{", (None, PARSE_ERROR)),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, (None, PARSE_ERROR)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#, (None, PARSE_ERROR)),
            ("\"ping\"", (None, INVALID_REQUEST)),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, (None, INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, (None, INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, (None, INVALID_REQUEST)),
            (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, (seven.clone(), INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping","tenant":"x"}"#, (seven.clone(), INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":7,"method":7}"#, (seven.clone(), INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#, (seven.clone(), INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}"#, (seven.clone(), INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{}}"#, (seven.clone(), INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":7}"#, (seven, INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","result":{}}"#, (None, INVALID_REQUEST)),
        ] {
            assert_eq!(code(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let id = Id::Text("a\"b".into());
        let text = request(&id, "tools/call", r#"{"name":"x"}"#);
        assert_eq!(
            read_text(&text),
            Ok(Message::Request { id: id.clone(), method: "tools/call".into(), params: Some(br#"{"name":"x"}"#) })
        );
        let text = response(&id, "{\"n\":12345678901234567890123}");
        assert_eq!(
            read_text(&text),
            Ok(Message::Response { id: id.clone(), outcome: Ok(b"{\"n\":12345678901234567890123}") })
        );
        let text = error(Some(&id), INVALID_PARAMS, "no", Some("{}"));
        assert!(matches!(read_text(&text), Ok(Message::Response { outcome: Err(_), .. })), "{text}");
        assert!(notification("notifications/cancelled", "{}").contains("cancelled"));
    }

    const SEEDS: [&str; 3] = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1.50,"\u00e9"]}}}"#,
        r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    ];

    /// What is read is a part of what came, and what is not read is answered with JSON.
    fn holds(frame: &[u8]) {
        match read(frame, &limits(frame)) {
            Ok(Message::Request { params, .. } | Message::Notification { params, .. }) => {
                assert!(params.is_none_or(|params| params.starts_with(b"{")));
            }
            Ok(Message::Response { outcome: Ok(raw) | Err(raw), .. }) => assert!(!raw.is_empty()),
            Err(broken) => drop(json::read(broken.answer().as_bytes(), &Limits::default()).unwrap()),
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_a_message_or_an_error(frame in proptest::collection::vec(any::<u8>(), 0..200)) {
            holds(&frame);
        }

        #[test]
        fn a_message_that_was_damaged_is_a_message_or_an_error(
            seed in 0..SEEDS.len(), at in any::<proptest::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
        ) {
            let mut frame = SEEDS.get(seed).unwrap().as_bytes().to_vec();
            let at = at.index(frame.len());
            match cut {
                true => frame.truncate(at),
                false => *frame.get_mut(at).unwrap() = byte,
            }
            holds(&frame);
        }
    }
}
