//! The `mcp` backend: one tool of an MCP server. What the server says is read strictly; of its result only what the
//! contract declares gets further, and its own prose where the contract declares nothing.

pub(crate) mod pins;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate::backend::{Answer, Backend, Context, Dispatch, Failure, FailureKind, Found, Looking, Lookup, Running};
use toolgate::contract::{Access, Contract};
use toolgate::fields::{Fields, Problems, nearest};
use toolgate::json::{self, Limits, canonical};
use toolgate::refusal::Effect;
use toolgate::schema::Problem;
use toolgate::template::Template;

use crate::mcp::shown::one_line;
use crate::mcp::upstream::{Afterwards, Answered, CallFailure, Clearance, NotReady, Over, ToolCall, Upstream, in_time};
use pins::{Off, Pins};

/// Runs the tool of one contract.
pub(crate) struct Mcp {
    upstream: Upstream,
    tool: String,
    access: Access,
    results: Results,
    /// What goes into the call's `_meta`: all that the server learns of the session.
    meta: BTreeMap<String, Template>,
    /// The member of `_meta` that takes the key of the action, where the server honours it.
    idempotency_meta: Option<String>,
    over: Connections,
    /// What the folder calls the server.
    shared: Option<String>,
}

/// Which connections calls may use.
#[derive(Clone)]
pub(crate) enum Connections {
    All,
    /// The one that has this clearance, and how it is got again.
    Cleared(Clearance, Compare),
    /// The one over which the tool is as it was pinned.
    Pinned(Arc<Pins>),
}

/// What the results of a tool are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Results {
    /// Its content blocks.
    Content,
    /// Its structured content, which the contract's own schema is for.
    Structured,
}

/// Compares a server with what it should be where that is needed, until then at the longest.
pub(crate) type Compare = Arc<dyn Fn(Instant) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What the tools of a server are held to.
#[derive(Clone)]
pub(crate) enum Held {
    /// The pins of `toolgate.lock`.
    Pinned(Arc<Pins>),
    /// Nothing, as the folder says.
    Unpinned,
    /// Nothing, and the folder does not say so: no imported contract may use it.
    Unsaid,
}

/// The servers of a folder, by name.
#[derive(Clone, Default)]
pub(crate) struct Upstreams(BTreeMap<String, (Upstream, Held)>);

/// What of a contract its backend goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Governed<'a> {
    pub(super) name: &'a str,
    pub(super) access: Access,
    pub(super) results: Results,
    /// Its words and schemas are the server's own.
    pub(super) imported: bool,
}

/// Bytes of the tool's words that go with a failure.
const MOST_WORDS: usize = 4096;
/// Characters of them that stand in the record.
const RECORDED_WORDS: usize = 500;

impl Mcp {
    pub(crate) fn new(upstream: Upstream, tool: String, access: Access, results: Results, over: Connections) -> Self {
        let (meta, idempotency_meta, shared) = Default::default();
        Self { upstream, tool, access, results, meta, idempotency_meta, over, shared }
    }

    /// Reads the rest of the `backend` table of `contract`.
    pub(super) fn read(
        mut table: Fields<'_>,
        contract: Governed<'_>,
        upstreams: &Upstreams,
        problems: &mut Problems,
    ) -> Option<Self> {
        let shared = table.needed("upstream", problems);
        let upstream = shared.and_then(|name| {
            let upstream = upstreams.0.get(name);
            if upstream.is_none() {
                let names = || upstreams.0.keys().map(String::as_str);
                let hint = nearest(name, names()).unwrap_or_else(|| match names().next() {
                    None => format!("declare it under [upstreams.{name}] in toolgate.toml"),
                    Some(_) => format!("known: {}", names().collect::<Vec<_>>().join(", ")),
                });
                problems.hinted(table.place("upstream"), "unknown", "there is no such upstream", Some(hint));
            }
            upstream
        });
        // The tool that the contract is named after, where it names none.
        let named = table.text("tool", problems);
        let tool = named.unwrap_or(contract.name);
        let (upstream, held) = upstream?;
        let over = match held {
            Held::Pinned(pins) => Connections::Pinned(Arc::clone(pins)),
            Held::Unpinned | Held::Unsaid => Connections::All,
        };
        match held {
            Held::Unsaid if contract.imported => {
                let message =
                    "toolgate.lock pins nothing of this upstream, so its tools may be others than were imported";
                let hint = "run `toolgate init NEW --from mcp` again and take its toolgate.lock, or say `pinned = false` \
                            under the upstream in toolgate.toml";
                problems.hinted(table.place("upstream"), "unpinned", message, Some(hint.into()));
            }
            Held::Pinned(_) | Held::Unpinned | Held::Unsaid => {}
        }
        if let Connections::Pinned(pins) = &over
            && pins.names().all(|pinned| pinned != tool)
        {
            let place = table.place(if named.is_some() { "tool" } else { "upstream" });
            let message = format!("toolgate.lock pins no tool {tool} of this upstream");
            problems.hinted(place, "unknown", message, nearest(tool, pins.names()));
        }
        let meta = read_meta(&mut table, problems);
        let idempotency_meta = read_idempotency_meta(&mut table, &meta, contract.access, problems);
        let shared = shared.map(|name| format!("mcp/{name}"));
        table.end(problems);
        let own = Self::new(upstream.clone(), tool.to_owned(), contract.access, contract.results, over);
        Some(Self { meta, idempotency_meta, shared, ..own })
    }

    async fn ask(&self, context: &Context) -> Result<Vec<u8>, Trouble> {
        let arguments = canonical(&Value::Object(context.arguments().clone()));
        let named = self.meta.iter().filter_map(|(key, template)| Some((key.clone(), template.value(context)?)));
        let key = self.idempotency_meta.clone().zip(context.idempotency_key().map(Value::from));
        let meta = named.chain(key).collect();
        let afterwards = self.afterwards(context);
        let call = ToolCall {
            tool: &self.tool,
            arguments: &arguments,
            meta: &meta,
            access: self.access,
            afterwards: afterwards.as_ref(),
        };
        let over = match &self.over {
            Connections::All => Over::Any,
            Connections::Cleared(clearance, compare) => {
                if clearance.stands(&self.upstream).is_none() {
                    tokio::select! {
                        () = compare(in_time(context.deadline())) => {}
                        () = context.cancelled() => return Err(CallFailure::NotSent { cancelled: true }.into()),
                    }
                }
                let why = || NotReady::new("its tools have yet to be compared with what was pinned");
                Over::Listed(clearance.mark().ok_or_else(|| CallFailure::NotReady(why()))?)
            }
            Connections::Pinned(pins) => tokio::select! {
                over = pins.hold(&self.upstream, &self.tool, in_time(context.deadline())) => over?,
                () = context.cancelled() => return Err(CallFailure::NotSent { cancelled: true }.into()),
            },
        };
        self.results.of(self.upstream.call(call, over, context.deadline(), context.cancelled()).await?)
    }

    /// What becomes of an answer that comes after the write was given up.
    fn afterwards(&self, context: &Context) -> Option<Afterwards> {
        let (late, results) = (context.late()?, self.results);
        Some(Arc::new(move |answered| {
            late.answer(ended(answered.map_err(Trouble::from).and_then(|answered| results.of(answered))));
        }))
    }
}

/// How a run ends.
fn ended(asked: Result<Vec<u8>, Trouble>) -> Answer {
    match asked {
        Ok(result) => Answer::done(result),
        Err(trouble) => Answer::failed(trouble.effect(), trouble.into_failure()),
    }
}

impl Backend for Mcp {
    fn run(&self, dispatch: Dispatch) -> Running<'_> {
        Box::pin(async move { ended(self.ask(dispatch.context()).await) })
    }

    fn honours_key(&self) -> bool {
        self.idempotency_meta.is_some()
    }

    fn upstream(&self) -> Option<&str> {
        self.shared.as_deref()
    }

    fn check(&self, contract: &Contract) -> Vec<Problem> {
        let place = |key: &String| format!("/backend/meta/{}", key.replace('~', "~0").replace('/', "~1"));
        self.meta.iter().flat_map(|(key, template)| template.problems(&place(key), contract)).collect()
    }

    fn look(&self, lookup: Lookup) -> Looking<'_> {
        Box::pin(async move {
            match self.ask(lookup.context()).await {
                Ok(result) => Found::Found(result),
                Err(trouble) => Found::Failed(trouble.into_failure().detail),
            }
        })
    }
}

/// The templates under `meta`, by the key of `_meta` that they are for.
fn read_meta(table: &mut Fields<'_>, problems: &mut Problems) -> BTreeMap<String, Template> {
    let mut meta = BTreeMap::new();
    let Some(given) = table.table("meta", problems) else { return meta };
    for (key, value) in given.entries() {
        let place = given.place(key);
        match value.as_str().map(Template::parse) {
            Some(Ok(template)) if !key.starts_with("io.modelcontextprotocol/") => {
                meta.insert(key.clone(), template);
            }
            Some(Ok(_)) => problems.note(place, "reserved", "this key of _meta is the protocol's own"),
            Some(Err(message)) => problems.note(place, "template", message),
            None => problems.note(place, "type", "expected a template, such as \"{session.tenant}\""),
        }
    }
    meta
}

/// The member of `_meta` that takes the key of the action. Saying it promises that the server makes one of two calls with
/// one key.
fn read_idempotency_meta(
    table: &mut Fields<'_>,
    meta: &BTreeMap<String, Template>,
    access: Access,
    problems: &mut Problems,
) -> Option<String> {
    let place = table.place("idempotency_meta");
    let name = table.text("idempotency_meta", problems)?;
    if name.is_empty() {
        problems.note(place, "min_length", "name a key of _meta, such as vendor.example/key");
    } else if name.starts_with("io.modelcontextprotocol/") {
        problems.note(place, "reserved", "this key of _meta is the protocol's own");
    } else if meta.contains_key(name) {
        problems.note(place, "unique", "`meta` says this key already");
    } else if access == Access::Read {
        problems.note(place, "read", "only a write has a key; a read runs each time");
    }
    Some(name.to_owned())
}

impl Results {
    /// The result in what a server answered.
    fn of(self, answered: Answered) -> Result<Vec<u8>, Trouble> {
        match answered {
            Answered::Result(result) => self.read(&result),
            Answered::Error { code, raw } => Err(Trouble::Error { code, words: message_of(&raw) }),
        }
    }

    /// The result that the contract is for, as JSON text. What is none of it, `_meta` above all, is left behind. A text
    /// that is no JSON is handed on as it is, and does not pass the contract.
    fn read(self, result: &[u8]) -> Result<Vec<u8>, Trouble> {
        let members = json::members(result, &everything()).map_err(|_| Trouble::Unreadable)?;
        let member = |name: &str| {
            let found = members.iter().find(|(known, _)| known == name).map(|(_, raw)| *raw);
            found.filter(|raw| *raw != b"null")
        };
        match member("resultType").map(|raw| json::read(raw, &Limits::default())) {
            None => {}
            Some(Ok(Value::String(kind))) if kind == "complete" => {}
            Some(_) => return Err(Trouble::WantsMore),
        }
        let blocks = member("content").map_or(Ok(Vec::new()), |raw| json::items(raw, &everything()));
        let blocks = blocks.map_err(|_| Trouble::Unreadable)?;
        match member("isError") {
            None | Some(b"false") => {}
            Some(b"true") => return Err(Trouble::Reported { words: texts(&blocks).join("\n") }),
            Some(_) => return Err(Trouble::Unreadable),
        }
        let structured = member("structuredContent");
        Ok(match (self, structured) {
            (Self::Structured, Some(structured)) => structured.to_vec(),
            (Self::Structured, None) => match <[String; 1]>::try_from(texts(&blocks)) {
                Ok([text]) => text.into_bytes(),
                Err(_) => Vec::new(),
            },
            // Content may be missing where everything is structured; then that is what the tool said.
            (Self::Content, Some(structured)) if blocks.is_empty() => {
                let text = std::str::from_utf8(structured).map_err(|_| Trouble::Unreadable)?;
                json!({ "content": [{ "type": "text", "text": text }] }).to_string().into_bytes()
            }
            (Self::Content, Some(_) | None) => {
                let content = member("content").unwrap_or(b"[]");
                [br#"{"content":"#, content, b"}"].concat()
            }
        })
    }
}

/// The texts of text blocks; what cannot be read is none.
fn texts(blocks: &[&[u8]]) -> Vec<String> {
    let text = |raw: &&[u8]| {
        let mut block = json::read(raw, &everything()).ok()?;
        let is_text = block.get("type").is_some_and(|kind| kind == "text");
        match block.get_mut("text").filter(|_| is_text).map(Value::take) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    };
    blocks.iter().filter_map(text).collect()
}

fn message_of(error: &[u8]) -> String {
    let error = json::read(error, &everything()).unwrap_or_default();
    error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The frame was bounded when it was read.
fn everything() -> Limits {
    Limits { size: usize::MAX, members: usize::MAX, ..Limits::default() }
}

/// Why there is no result.
#[derive(Debug, PartialEq, Eq)]
enum Trouble {
    Call(CallFailure),
    /// The server defines the tool otherwise than it was pinned.
    Changed,
    /// `isError`: the tool says that it failed.
    Reported {
        words: String,
    },
    /// The server answered with a JSON-RPC error.
    Error {
        code: Option<i64>,
        words: String,
    },
    /// It wants to be asked again with an answer to a question of its own, which nobody offered.
    WantsMore,
    Unreadable,
}

impl From<Off> for Trouble {
    fn from(off: Off) -> Self {
        match off {
            Off::NotReady(why) => Self::Call(CallFailure::NotReady(why)),
            Off::Changed => Self::Changed,
        }
    }
}

impl From<CallFailure> for Trouble {
    fn from(failure: CallFailure) -> Self {
        Self::Call(failure)
    }
}

impl Trouble {
    /// What is known of the effect of a write. INVARIANT (proved): `none` only where the server never had the call. What it
    /// says itself is no proof: a tool may fail in its midst, and any error code can come from inside of it.
    fn effect(&self) -> Effect {
        match self {
            Self::Call(CallFailure::NotReady(_) | CallFailure::NotSent { .. }) | Self::Changed => Effect::None,
            Self::Call(CallFailure::Died | CallFailure::TimedOut | CallFailure::Cancelled | CallFailure::Broken)
            | Self::Reported { .. }
            | Self::Error { .. }
            | Self::WantsMore
            | Self::Unreadable => Effect::Unknown,
        }
    }

    fn into_failure(self) -> Failure {
        use FailureKind::{Cancelled, Reported, TimedOut, Unavailable};
        let new = |kind, signal: &str, detail: &str| Failure::new(kind, signal, detail);
        match self {
            Self::Call(CallFailure::NotReady(NotReady { why, retry_after })) => {
                Failure { retry_after, ..new(Unavailable, "connect", &format!("the MCP server: {why}")) }
            }
            Self::Changed => {
                new(FailureKind::Off, "pin", "the MCP server defines the tool otherwise than toolgate.lock pins it")
            }
            Self::Call(CallFailure::NotSent { cancelled: true }) => new(Cancelled, "cancelled", "before it was sent"),
            Self::Call(CallFailure::NotSent { cancelled: false }) => new(TimedOut, "timeout", "before it was sent"),
            Self::Call(CallFailure::Died) => new(Unavailable, "died", "the MCP server ended before it answered"),
            Self::Call(CallFailure::TimedOut) => new(TimedOut, "timeout", "the MCP server did not answer in time"),
            Self::Call(CallFailure::Cancelled) => {
                new(Cancelled, "cancelled", "the caller went away, and the MCP server did not answer soon after")
            }
            Self::Call(CallFailure::Broken) | Self::Unreadable => {
                new(Reported, "broken", "the answer of the MCP server cannot be read")
            }
            Self::Reported { words } => {
                let detail = format!("the tool reports a failure: {}", one_line(&words, RECORDED_WORDS));
                new(Reported, "tool_error", &detail).said(bounded(words))
            }
            Self::Error { code, words } => {
                let signal = code.map_or_else(|| "rpc_error".to_owned(), |code| code.to_string());
                let detail = format!("JSON-RPC error {signal}: {}", one_line(&words, RECORDED_WORDS));
                new(Reported, &signal, &detail).said(bounded(words))
            }
            Self::WantsMore => {
                new(Reported, "input_required", "the MCP server asks for input, which no client of it offers")
            }
        }
    }
}

fn bounded(mut words: String) -> String {
    words.truncate(words.floor_char_boundary(MOST_WORDS));
    words
}

impl Upstreams {
    /// The servers, each with what its tools are held to.
    pub(crate) fn new(upstreams: BTreeMap<String, (Upstream, Held)>) -> Self {
        Self(upstreams)
    }

    /// Ends the servers that run.
    pub(crate) async fn close(&self) {
        futures_util::future::join_all(self.0.values().map(|(upstream, _)| upstream.close())).await;
    }
}

impl std::fmt::Debug for Upstreams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]
mod tests;
