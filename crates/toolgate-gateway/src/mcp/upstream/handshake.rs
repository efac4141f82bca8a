//! The first words with a server, and in which revision of the protocol it is spoken to.

use serde_json::{Map, Value, json};
use toolgate::json::{self, Limits};

use super::connection::Connection;
use super::waiting::Arrived;
use crate::mcp::message::METHOD_NOT_FOUND;
use crate::mcp::shown::one_line;

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// After a handshake (revisions up to 2025-11-25).
    Handshake,
    /// Each request says by itself who is asking and in which revision (from 2026-07-28).
    Stateless,
}

/// What a server says of itself, as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The revision of the protocol.
    pub(crate) protocol: String,
}

/// Revisions that begin with a handshake, the newest first.
const HANDSHAKES: [&str; 4] = ["2025-11-25", "2025-06-18", BATCHES, "2024-11-05"];
/// The revision in which messages may come in arrays.
pub(super) const BATCHES: &str = "2025-03-26";
const STATELESS: &str = "2026-07-28";
/// The server does not speak the revision that it was asked in (2026-07-28).
const UNSUPPORTED_REVISION: i64 = -32022;
const SHOWN_WORD: usize = 80;

/// Agrees with the server on a revision. The error is for a person.
pub(super) async fn greet(connection: &Connection) -> Result<(), String> {
    let [newest, ..] = HANDSHAKES;
    let params = json!({ "protocolVersion": newest, "capabilities": {}, "clientInfo": ourselves() }).to_string();
    let agreed = match connection.request("initialize", &params).await? {
        Arrived::Result(result) => {
            let agreed = agreed(&result)?;
            connection.notify("notifications/initialized", "{}").await;
            (Era::Handshake, agreed)
        }
        Arrived::Error(error) if has_no_handshake(&error) => (Era::Stateless, discover(connection).await?),
        Arrived::Error(_) => return Err("it refuses the handshake".to_owned()),
        Arrived::Broken => return Err("its answer to the handshake cannot be read".to_owned()),
    };
    connection.agree(agreed);
    Ok(())
}

/// What stands beside the parameters of each request: ours, and what the call adds.
pub(super) fn meta(era: Era, more: &Map<String, Value>) -> Option<String> {
    let mut meta = more.clone();
    if era == Era::Stateless {
        meta.insert("io.modelcontextprotocol/protocolVersion".to_owned(), json!(STATELESS));
        meta.insert("io.modelcontextprotocol/clientInfo".to_owned(), ourselves());
        meta.insert("io.modelcontextprotocol/clientCapabilities".to_owned(), json!({}));
    }
    (!meta.is_empty()).then(|| Value::Object(meta).to_string())
}

fn ourselves() -> Value {
    json!({ "name": "toolgate", "version": env!("CARGO_PKG_VERSION") })
}

fn agreed(result: &[u8]) -> Result<ServerInfo, String> {
    let result = read(result)?;
    let spoken = result.get("protocolVersion").and_then(Value::as_str);
    let Some(protocol) = HANDSHAKES.into_iter().find(|known| spoken == Some(*known)) else {
        return Err("it speaks no revision of MCP that is known here".to_owned());
    };
    Ok(info(result.get("serverInfo"), protocol))
}

/// A server without a handshake need not answer this; one that does must name the revision.
async fn discover(connection: &Connection) -> Result<ServerInfo, String> {
    let params = format!(r#"{{"_meta":{}}}"#, meta(Era::Stateless, &Map::new()).unwrap_or_default());
    match connection.request("server/discover", &params).await? {
        Arrived::Result(result) => {
            let result = read(&result)?;
            let versions = result.get("supportedVersions").and_then(Value::as_array);
            if !versions.is_some_and(|versions| versions.iter().any(|version| version == STATELESS)) {
                return Err("it speaks no revision of MCP that is known here".to_owned());
            }
            let about = result.get("serverInfo");
            let about = about.or_else(|| result.get("_meta")?.get("io.modelcontextprotocol/serverInfo"));
            Ok(info(about, STATELESS))
        }
        Arrived::Error(error) if code(&error) == Some(METHOD_NOT_FOUND) => Ok(info(None, STATELESS)),
        Arrived::Error(_) => Err("it refuses every handshake that is known here".to_owned()),
        Arrived::Broken => Err("its answer to the handshake cannot be read".to_owned()),
    }
}

fn has_no_handshake(error: &[u8]) -> bool {
    matches!(code(error), Some(METHOD_NOT_FOUND | UNSUPPORTED_REVISION))
}

/// The code of a JSON-RPC error.
pub(super) fn code(error: &[u8]) -> Option<i64> {
    read(error).ok()?.get("code")?.as_i64()
}

fn read(text: &[u8]) -> Result<Value, String> {
    json::read(text, &Limits::default()).map_err(|_| "its answer to the handshake is not strict JSON".to_owned())
}

fn info(about: Option<&Value>, protocol: &str) -> ServerInfo {
    let word = |name: &str| {
        let word = about.and_then(|about| about.get(name)).and_then(Value::as_str).unwrap_or_default();
        one_line(word, SHOWN_WORD)
    };
    ServerInfo { name: word("name"), version: word("version"), protocol: protocol.to_owned() }
}
