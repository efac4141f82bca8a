//! What the tools of a server were when they were imported: the pins of `toolgate.lock`. A server may change what a tool
//! is at any time; what is called is what somebody has looked at.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;
use toolgate::fields::{Fields, Problems};

use crate::cli::{Said, Say};
use crate::import::import;
use crate::mcp::upstream::{NotReady, Over, Upstream};

/// The hexadecimal digest of each tool's definition, by the tool's name.
pub(crate) type Pinned = BTreeMap<String, String>;
/// What `toolgate.lock` holds, by the name of the server.
pub(crate) type Lock = BTreeMap<String, Pinned>;

/// The pins of one server, and which of its tools they hold today.
pub(crate) struct Pins {
    server: String,
    pinned: Pinned,
    /// INVARIANT (compared first): no call uses a connection whose tools were not compared with the pins.
    compared: Mutex<Option<Compared>>,
    say: Say,
}

/// What the comparison over one connection came to.
struct Compared {
    generation: u64,
    /// The tools that are as they were.
    held: BTreeSet<String>,
}

/// Why a tool is not called.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Off {
    /// The server cannot be asked.
    NotReady(NotReady),
    /// It is another tool today, or there is none of this name.
    Changed,
}

/// Reads `toolgate.lock`: a table for each server, in it a digest for each tool.
pub(crate) fn read(lock: &Map<String, Value>, problems: &mut Problems) -> Lock {
    let mut servers = Lock::new();
    let top = Fields::of(lock, "");
    for (server, value) in top.entries() {
        let at = top.place(server);
        let Value::Object(table) = value else {
            problems.note(at, "type", "expected the table of a server");
            continue;
        };
        let table = Fields::of(table, at);
        let mut pinned = Pinned::new();
        for (tool, digest) in table.entries() {
            match digest.as_str().filter(|digest| is_digest(digest)) {
                Some(digest) => drop(pinned.insert(tool.clone(), digest.to_owned())),
                None => problems.note(table.place(tool), "format", "expected a digest of 64 hexadecimal digits"),
            }
        }
        servers.insert(server.clone(), pinned);
    }
    servers
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl Pins {
    pub(crate) fn new(server: String, pinned: Pinned, say: Say) -> Self {
        Self { server, pinned, compared: Mutex::new(None), say }
    }

    /// The names of the tools that are pinned.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.pinned.keys().map(String::as_str)
    }

    /// The connection over which the server defines `tool` as it was pinned.
    pub(super) async fn hold(&self, upstream: &Upstream, tool: &str, until: Instant) -> Result<Over, Off> {
        let mut compared = self.compared.lock().await;
        let stands = compared
            .as_ref()
            .filter(|compared| upstream.generation() == Some(compared.generation) && !upstream.list_changed());
        let (generation, held) = match stands {
            Some(compared) => (compared.generation, compared.held.contains(tool)),
            None => {
                *compared = None;
                let new = self.compare(upstream, until).await.map_err(Off::NotReady)?;
                let found = (new.generation, new.held.contains(tool));
                *compared = Some(new);
                found
            }
        };
        if held { Ok(Over::Generation(generation)) } else { Err(Off::Changed) }
    }

    async fn compare(&self, upstream: &Upstream, until: Instant) -> Result<Compared, NotReady> {
        let listing = upstream.list(until).await?;
        let today: BTreeMap<String, String> =
            import(&listing.definitions, &[]).tools.into_iter().map(|tool| (tool.name, tool.digest.hex())).collect();
        let (held, off): (Vec<_>, Vec<_>) =
            self.pinned.iter().partition(|(tool, digest)| today.get(*tool) == Some(*digest));
        for (tool, _) in off {
            let why = if today.contains_key(tool) { "defines it otherwise than" } else { "no longer lists it as" };
            let told = format!("{}: {tool} is off: the server {why} toolgate.lock pins", self.server);
            (self.say)(Said::Warning(told));
        }
        let held = held.into_iter().map(|(tool, _)| tool.clone()).collect();
        Ok(Compared { generation: listing.generation, held })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lock_is_a_digest_for_each_tool_of_each_server() {
        let digest = "0a".repeat(32);
        let lock = json!({ "files": { "read": digest, "write.x": digest }, "empty": {} });
        let mut problems = Problems::default();
        let servers = read(lock.as_object().unwrap(), &mut problems);
        assert_eq!(problems.0, []);
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["empty", "files"]);
        assert_eq!(servers.get("files").unwrap().len(), 2);
    }

    #[test]
    fn what_is_no_digest_is_a_fault() {
        let lock = json!({ "a": 1, "b": { "c": "0A".repeat(32), "d": "00", "e": 7 } });
        let mut problems = Problems::default();
        read(lock.as_object().unwrap(), &mut problems);
        let places: Vec<&str> = problems.0.iter().map(|problem| problem.at.as_str()).collect();
        assert_eq!(places, ["/a", "/b/c", "/b/d", "/b/e"]);
    }
}
