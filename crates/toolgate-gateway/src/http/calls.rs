//! `/v1/calls`: a model's own message becomes the tool messages that answer it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{HeaderMap, HeaderName};
use axum::http::{HeaderValue, Request};
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use toolgate::Reply;
use toolgate::call::{Call, OperationId, TraceContext};
use toolgate::fault::Fault;
use toolgate::json::Limits;
use toolgate::wire::{Dialect, Proposed, Turn, Warning, WireFault};

use super::body::Members;
use super::door::{Door, json_response, told};
use super::guard::{Twice, only};
use super::problem::{Kind, Problem};
use super::query::{Query, TAG};
use super::sessions;
use super::tagged;
use super::tools::{dialect, unknown};
use super::traced;
use crate::identity::Scope;
use crate::shown::{Answered, Outcome};

pub(super) const OPERATION: HeaderName = HeaderName::from_static("toolgate-operation");
/// The same, by the name that HTTP has for it.
pub(super) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const APPROVAL: HeaderName = HeaderName::from_static("toolgate-approval");
const PATIENCE: HeaderName = HeaderName::from_static("toolgate-patience");

/// The longest id of an approval that is looked for.
const LONGEST_ID: usize = 255;

/// What the host, never the model, says of a message: by headers.
#[derive(Debug, Default)]
struct Host {
    operation: Option<OperationId>,
    approval: Option<String>,
    patience: Option<Duration>,
    traced: Option<TraceContext>,
}

/// What is in the body of the request.
struct Envelope<'a> {
    dialect: Dialect,
    /// The raw text of the model's message: whoever decodes it sees what was sent.
    message: &'a [u8],
    dry_run: bool,
}

/// A problem of the gate, beside what was answered all the same.
#[derive(Serialize)]
struct Broken<'a> {
    #[serde(flatten)]
    problem: &'a Problem,
    #[serde(flatten)]
    answered: Answered<'a>,
}

pub(super) async fn answer(State(door): State<Arc<Door>>, request: Request<Body>) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let session = door.admit(&parts.headers, Scope::Calls)?;
    let session = tagged::within(session, &Query::read(parts.uri.query(), &[TAG])?)?;
    let host = Host::read(&parts.headers)?;
    let session = sessions::within(&door, session, &parts.headers).await?;
    let body = door.read(&parts.headers, body).await?;
    let envelope = Envelope::read(&body)?;
    let turn = envelope.decode(&body)?;
    let warnings = turn.warnings().to_vec();
    let (calls, asked) = turn.open();
    let calls = host.add_to(calls)?;
    let ids: Vec<String> = calls.iter().map(|call| call.call_id().to_owned()).collect();
    let _running = door.take(calls.len())?;
    let turn = async {
        match envelope.dry_run {
            true => door.gate().dry_turn(calls, &session).await,
            false => door.gate().turn(calls, &session).await,
        }
    };
    let answers = tokio::time::timeout(door.longest_turn(), turn).await.map_err(|_| {
        let detail = "the calls took longer than every deadline; what they did is in the ledger";
        Problem::new(Kind::TimedOut, detail).hint("look at the ledger before you send them again")
    })?;
    answers.iter().for_each(|answer| door.saw(answer));
    Ok(respond(&door, &ids, &answers, &asked.answer(&answers), &warnings))
}

fn respond(
    door: &Door,
    ids: &[String],
    answers: &[Result<Reply, Fault>],
    messages: &[Value],
    warnings: &[Warning],
) -> Response {
    let outcomes: Vec<Outcome<'_>> = ids
        .iter()
        .zip(answers)
        .map(|(id, answer)| Outcome::of(id, answer, false, |fault| told(fault).into()))
        .collect();
    let answered = Answered { messages, outcomes: &outcomes, warnings };
    match answers.iter().filter_map(|answer| answer.as_ref().err()).find(|fault| is_of_the_gate(fault)) {
        None => json_response(&answered),
        Some(fault) => {
            // What other calls of the message did must not be lost with it.
            let problem = door.unavailable(fault);
            let body = serde_json::to_vec(&Broken { problem: &problem, answered });
            problem.respond(body.unwrap_or_default())
        }
    }
}

/// Whether the gate as a whole takes no calls, rather than this one alone having been lost.
fn is_of_the_gate(fault: &Fault) -> bool {
    match fault {
        Fault::Store(_) | Fault::Record(_) | Fault::Closing => true,
        Fault::Lost => false,
    }
}

impl Host {
    fn read(headers: &HeaderMap) -> Result<Self, Problem> {
        let bad = |detail: &'static str| Problem::new(Kind::BadHeader, detail);
        let operation = match (one(headers, &KEY)?, one(headers, &OPERATION)?) {
            (Some(_), Some(_)) => {
                return Err(bad("Idempotency-Key and Toolgate-Operation say the same; send one of them"));
            }
            (named, other) => named.or(other),
        };
        let operation = operation.map(|value| {
            let text = value.to_str().unwrap_or_default();
            let hint = "nothing was run; it is never shortened, so send a shorter one, such as a UUID";
            OperationId::parse(text).map_err(|_| bad("Idempotency-Key is 1 to 255 visible ASCII characters").hint(hint))
        });
        let approval = one(headers, &APPROVAL)?.map(|value| {
            let text = value.to_str().ok().filter(|text| (1..=LONGEST_ID).contains(&text.len()));
            text.map(str::to_owned).ok_or_else(|| bad("Toolgate-Approval is the id of an approval"))
        });
        let patience = one(headers, &PATIENCE)?.map(|value| {
            let digits = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let millis = digits.and_then(|text| text.parse().ok()).map(Duration::from_millis);
            millis.ok_or_else(|| bad("Toolgate-Patience is a whole number of milliseconds"))
        });
        let (operation, approval, patience) = (operation.transpose()?, approval.transpose()?, patience.transpose()?);
        Ok(Self { operation, approval, patience, traced: traced::context(headers) })
    }

    /// INVARIANT (one call): an operation or an approval belongs to one call; with several it could not be told to which.
    fn add_to(self, calls: Vec<Proposed>) -> Result<Vec<Proposed>, Problem> {
        let Self { operation, approval, patience, traced } = self;
        if calls.len() != 1 && (operation.is_some() || approval.is_some()) {
            let detail = "Idempotency-Key and Toolgate-Approval are for a message of exactly one call";
            return Err(Problem::new(Kind::BadHeader, detail).hint("nothing was run; send that call alone"));
        }
        let added = |call: Call| {
            let call = operation.iter().cloned().fold(call, Call::operation);
            let call = approval.iter().cloned().fold(call, Call::approval);
            let call = traced.iter().cloned().fold(call, Call::traced);
            patience.into_iter().fold(call, Call::patience)
        };
        let each = calls.into_iter().map(|proposed| match proposed {
            Proposed::Call(call) => Proposed::Call(added(call)),
            Proposed::Broken(broken) => Proposed::Broken(broken),
        });
        Ok(each.collect())
    }
}

fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, Problem> {
    only(headers, name).map_err(|Twice| Problem::new(Kind::BadHeader, format!("{name} is there more than once")))
}

impl<'a> Envelope<'a> {
    fn read(body: &'a [u8]) -> Result<Self, Problem> {
        // The bounds on depth and members are those of the message, and of the arguments in it.
        let limits = Limits { size: body.len(), depth: usize::MAX, members: usize::MAX };
        let mut members = Members::read(body, &limits)?;
        let named = members.text("dialect");
        let message = members.needed("message");
        let dry_run = members.flag("dry_run");
        if message.is_some_and(|message| !matches!(message.first(), Some(b'{' | b'['))) {
            members.problem("/message", "type", "expected the model's message as it came, an object or an array");
        }
        members.end()?;
        let missing = || Problem::new(Kind::BrokenEnvelope, "a member is missing");
        let dialect = dialect(&named.ok_or_else(missing)?).map_err(|hint| unknown(hint, Kind::BrokenEnvelope))?;
        Ok(Self { dialect, message: message.ok_or_else(missing)?, dry_run })
    }

    fn decode(&self, body: &[u8]) -> Result<Turn, Problem> {
        let limits = Limits { size: self.message.len(), ..Limits::default() };
        self.dialect.decode(self.message, &limits).map_err(|fault| {
            let WireFault { line, column, message, hint, .. } = fault;
            let (line, column) = placed(body, self.message, line, column);
            Problem::new(Kind::BrokenMessage, message).hint(hint).at(line, column)
        })
    }
}

/// Where in the body a place of the message is.
fn placed(body: &[u8], message: &[u8], line: usize, column: usize) -> (usize, usize) {
    let offset = message.as_ptr().addr().saturating_sub(body.as_ptr().addr());
    let before = body.get(..offset).unwrap_or_default();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let lines = before.iter().filter(|byte| **byte == b'\n').count();
    let columns = String::from_utf8_lossy(before.get(start..).unwrap_or_default()).chars().count();
    (line + lines, if line == 1 { column + columns } else { column })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    const MESSAGE: &str = r#"{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"t","arguments":"{\"a\":1.0}"}}]}"#;

    fn refused(body: &str) -> Value {
        json!(Envelope::read(body.as_bytes()).err().unwrap())
    }

    #[test]
    fn the_message_is_taken_as_its_raw_text() {
        let body = format!("{{ \"message\" : {MESSAGE} ,\n \"dialect\": \"openai-chat\"}}");
        let envelope = Envelope::read(body.as_bytes()).unwrap();
        assert_eq!(envelope.message, MESSAGE.as_bytes());
        assert_eq!((envelope.dialect, envelope.dry_run), (Dialect::OpenaiChat, false));
    }

    #[test]
    fn an_envelope_with_anything_else_in_it_is_refused_with_all_that_is_wrong() {
        let problem = refused(r#"{"dialect":"mcp","message":"{}","dry_run":1,"as":"mia@acme","role":"x"}"#);
        assert_eq!(problem["code"], "broken_envelope");
        let told: Vec<&str> =
            problem["problems"].as_array().unwrap().iter().map(|p| p["at"].as_str().unwrap()).collect();
        assert_eq!(told, ["/dry_run", "/message", ""]);
        assert!(!problem.to_string().contains("mia"), "{problem}");
        for bad in [
            r#"{"dialect":"mcp","dialect":"mcp","message":{}}"#,
            r#"{"dialect":"mcp","\u0064ialect":"mcp","message":{}}"#,
            r#"{"dialect":"mcp"}"#,
            r#"{"message":{}}"#,
            r#"{"dialect":"open-ai","message":{}}"#,
            r#"{"dialect":null,"message":{}}"#,
            r#"{"dialect":"mcp","message":null}"#,
            r#"{"dialect":"mcp","message":{}} x"#,
            "[]",
            "",
        ] {
            assert_eq!(refused(bad)["status"], 400, "{bad}");
        }
    }

    #[test]
    fn a_broken_message_is_found_where_it_stands_in_the_body() {
        let body = "{\"dialect\":\"openai-chat\",\n \"message\": {\"role\":\"assistant\",\n  \"tool_calls\": 1}}";
        let problem = json!(Envelope::read(body.as_bytes()).unwrap().decode(body.as_bytes()).err().unwrap());
        assert_eq!((&problem["line"], &problem["column"]), (&json!(3), &json!(17)), "{problem}");
        let body = r#"{"dialect":"openai-chat","message":{"role":"user"}}"#;
        let problem = json!(Envelope::read(body.as_bytes()).unwrap().decode(body.as_bytes()).err().unwrap());
        assert_eq!((&problem["line"], &problem["column"]), (&json!(1), &json!(44)), "{problem}");
    }

    #[test]
    fn headers_of_the_host_are_for_one_call() {
        let headers = |list: &[(&'static str, &'static str)]| {
            list.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
        };
        let calls =
            |count| (0..count).map(|n| Proposed::Call(Call::new(format!("c{n}"), "t", "{}"))).collect::<Vec<_>>();
        let host = |list| Host::read(&headers(list));
        assert_eq!(host(&[("toolgate-operation", "op-1")]).unwrap().add_to(calls(1)).unwrap().len(), 1);
        let named = |id: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(KEY, HeaderValue::from_str(id).unwrap());
            Host::read(&headers).map(|host| host.operation.unwrap().as_str().len())
        };
        assert_eq!((named(&"x".repeat(255)).ok(), named(&"x".repeat(256)).ok()), (Some(255), None));
        for count in [0, 2] {
            let operation = host(&[("toolgate-operation", "op-1")]).unwrap();
            assert!(operation.add_to(calls(count)).is_err());
            assert!(host(&[("toolgate-approval", "apr_1")]).unwrap().add_to(calls(count)).is_err());
            assert!(host(&[("toolgate-patience", "250")]).unwrap().add_to(calls(count)).is_ok());
        }
        for bad in [
            &[("toolgate-operation", "a b")][..],
            &[("toolgate-operation", "")],
            &[("idempotency-key", "a b")],
            &[("idempotency-key", "")],
            &[("idempotency-key", "op-1"), ("toolgate-operation", "op-1")],
            &[("toolgate-approval", "")],
            &[("toolgate-patience", "1s")],
            &[("toolgate-patience", "-1")],
            &[("toolgate-patience", "")],
        ] {
            assert!(host(bad).is_err(), "{bad:?}");
        }
        let mut twice: HeaderMap = headers(&[("toolgate-operation", "a")]);
        twice.append(OPERATION, HeaderValue::from_static("a"));
        assert!(Host::read(&twice).is_err());
    }
}
