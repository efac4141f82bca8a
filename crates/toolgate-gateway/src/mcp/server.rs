//! What a client of the protocol may ask of us, and the answers. It knows no transport: a request that was read goes in,
//! the text of its answer comes out.

use std::future::Future;

use serde_json::{Map, Value, json};
use tokio::sync::watch;
use toolgate::fault::Fault;
use toolgate::json::{self, Limits};
use toolgate::session::Session;
use toolgate::wire::Proposed;
use toolgate::wire::mcp::{self as dialect, Said};
use toolgate::{Gate, Reply};

use super::message::{self, Broken, INVALID_PARAMS, Id, METHOD_NOT_FOUND};
use super::version::{self, Envelope, Era, STATELESS};

/// The tools that somebody may see and call.
pub(crate) trait Tools: Send + Sync + 'static {
    /// The definitions of the tools.
    fn list(&self) -> impl Future<Output = Result<Vec<Value>, Fault>> + Send;

    /// Makes a call. Dropping the future tells the work that nobody waits for it any more.
    fn call(&self, proposed: Proposed) -> impl Future<Output = Result<Reply, Fault>> + Send;

    /// Moves each time the list has changed; `None` where it cannot.
    fn changes(&self) -> Option<watch::Receiver<()>> {
        None
    }
}

/// A gate, as one person sees it.
#[derive(Clone, Debug)]
pub(crate) struct GateFor {
    pub(crate) gate: Gate,
    pub(crate) session: Session,
}

/// A request that was understood.
#[derive(Debug)]
pub(crate) struct Request {
    id: Id,
    era: Era<'static>,
    pub(crate) ask: Ask,
}

/// What is asked for.
#[derive(Debug)]
pub(crate) enum Ask {
    /// To agree on this revision.
    Initialize(&'static str),
    Ping,
    Discover,
    List,
    Call(Proposed),
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The message.
    pub(crate) text: String,
    /// Its code, where it is an error.
    pub(crate) error: Option<i64>,
}

/// What the parameters of `tools/list` may hold.
const LISTING: [&str; 2] = ["cursor", "_meta"];

impl Tools for GateFor {
    async fn list(&self) -> Result<Vec<Value>, Fault> {
        Ok(self.gate.tools(&self.session).into_iter().map(dialect::definition).collect())
    }

    async fn call(&self, proposed: Proposed) -> Result<Reply, Fault> {
        self.gate.turn(vec![proposed], &self.session).await.pop().unwrap_or(Err(Fault::Lost))
    }
}

impl Request {
    /// Reads what is asked for. `envelope` is what the request says of itself, if it stands alone.
    pub(crate) fn read(
        id: Id,
        method: &str,
        params: Option<&[u8]>,
        envelope: Option<&Envelope>,
        limits: &Limits,
    ) -> Result<Self, Broken> {
        match Self::understand(&id, method, params, envelope, limits) {
            Ok((era, ask)) => Ok(Self { id, era, ask }),
            Err(broken) => Err(broken.to(Some(id))),
        }
    }

    fn understand(
        id: &Id,
        method: &str,
        params: Option<&[u8]>,
        envelope: Option<&Envelope>,
        limits: &Limits,
    ) -> Result<(Era<'static>, Ask), Broken> {
        // `initialize` belongs to its own era, whatever a client puts around it.
        let era = match envelope {
            Some(envelope) if method != "initialize" => envelope.era()?,
            Some(_) | None => Era::Handshake,
        };
        let ask = match (method, era) {
            ("initialize", _) => Ask::Initialize(version::agreed(&offered(params, limits)?)),
            ("ping", Era::Handshake) => Ask::Ping,
            ("server/discover", Era::Stateless(_)) => Ask::Discover,
            ("tools/list", _) => {
                one_page(params, limits)?;
                Ask::List
            }
            ("tools/call", _) => Ask::Call(dialect::proposed(&id.value(), params, limits)),
            (_, Era::Handshake | Era::Stateless(_)) => {
                return Err(Broken::new(METHOD_NOT_FOUND, "there is no such method here"));
            }
        };
        Ok((era, ask))
    }

    pub(crate) fn id(&self) -> &Id {
        &self.id
    }

    /// Whether it stands alone.
    pub(crate) fn is_stateless(&self) -> bool {
        matches!(self.era, Era::Stateless(_))
    }

    /// Does what is asked for. Nothing but a call runs anything.
    pub(crate) async fn answer(self, tools: &impl Tools) -> Answer {
        let Self { id, era, ask } = self;
        match ask {
            Ask::Initialize(version) => {
                let result = json!({
                    "protocolVersion": version,
                    "capabilities": { "tools": capability(tools) },
                    "serverInfo": version::SELF,
                });
                Answer::result(&id, &result.to_string())
            }
            Ask::Ping => Answer::result(&id, "{}"),
            // Whoever stands alone cannot be told of changes later.
            Ask::Discover => {
                let result = json!({ "supportedVersions": STATELESS, "capabilities": { "tools": {} } });
                Answer::result(&id, &fresh(result, era).to_string())
            }
            Ask::List => match tools.list().await {
                Ok(list) => Answer::result(&id, &fresh(json!({ "tools": list }), era).to_string()),
                Err(fault) => Answer::said(&id, dialect::said(Err(&fault), era)),
            },
            Ask::Call(proposed) => {
                let outcome = tools.call(proposed).await;
                Answer::said(&id, dialect::said(outcome.as_ref(), era))
            }
        }
    }
}

impl Answer {
    fn result(id: &Id, result: &str) -> Self {
        Self { text: message::response(id, result), error: None }
    }

    fn said(id: &Id, said: Said) -> Self {
        match said {
            Said::Result(result) => Self::result(id, &result),
            Said::Error { code, message, data } => {
                Self { text: message::error(Some(id), code, &message, Some(&data)), error: Some(code) }
            }
        }
    }
}

impl From<&Broken> for Answer {
    fn from(broken: &Broken) -> Self {
        Self { text: broken.answer(), error: Some(broken.code) }
    }
}

/// Whether this is the name of a request. One that comes without an id could not be answered, so it is not made.
pub(crate) fn is_request(method: &str) -> bool {
    !method.starts_with("notifications/")
}

/// How the tools are offered to a client that stays.
fn capability(tools: &impl Tools) -> Value {
    match tools.changes() {
        Some(_) => json!({ "listChanged": true }),
        None => json!({}),
    }
}

/// The revision that an `initialize` offers.
fn offered(params: Option<&[u8]>, limits: &Limits) -> Result<String, Broken> {
    let members = members(params, limits)?;
    match members.get("protocolVersion") {
        Some(Value::String(version)) => Ok(version.clone()),
        Some(_) | None => Err(Broken::new(INVALID_PARAMS, "`protocolVersion` is missing or no text")),
    }
}

/// All tools are on one page, so no page can be asked for.
fn one_page(params: Option<&[u8]>, limits: &Limits) -> Result<(), Broken> {
    let members = members(params, limits)?;
    if members.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err(Broken::new(INVALID_PARAMS, "this cursor was never given out"));
    }
    if members.keys().any(|name| !LISTING.contains(&name.as_str())) {
        return Err(Broken::new(INVALID_PARAMS, "unknown member; known: cursor, _meta"));
    }
    Ok(())
}

fn members(params: Option<&[u8]>, limits: &Limits) -> Result<Map<String, Value>, Broken> {
    json::read_arguments(params.unwrap_or_default(), limits)
        .map_err(|flaw| Broken::new(INVALID_PARAMS, format!("the parameters are no strict JSON object: {flaw}")))
}

/// A result that may be kept. INVARIANT (nobody else's): what somebody may see is for them alone, and true for now.
fn fresh(mut result: Value, era: Era<'_>) -> Value {
    if let (Era::Stateless(server), Value::Object(members)) = (era, &mut result) {
        members.insert("resultType".into(), json!("complete"));
        members.insert("ttlMs".into(), json!(0));
        members.insert("cacheScope".into(), json!("private"));
        members.insert("_meta".into(), json!({ "io.modelcontextprotocol/serverInfo": server }));
    }
    result
}
