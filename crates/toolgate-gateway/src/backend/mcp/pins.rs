//! What the tools of a server were when they were imported: the pins of `toolgate.lock`. A server may change what a tool
//! is at any time; what is called is what somebody has looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use tokio::time::Instant;
use toolgate::fields::{Fields, Problems};

use crate::cli::{Said, Say};
use crate::import::import;
use crate::mcp::upstream::{Clearance, FRESH, Flight, LONGEST_LIST, MOST_COMPARISONS, NotReady, Over, Upstream};

/// The hexadecimal digest of each tool's definition, by the tool's name.
pub(crate) type Pinned = BTreeMap<String, String>;
/// What `toolgate.lock` holds, by the name of the server.
pub(crate) type Lock = BTreeMap<String, Pinned>;

/// The pins of one server, and which of its tools they hold today.
pub(crate) struct Pins {
    server: String,
    pinned: Pinned,
    /// INVARIANT (compared first): no call uses a connection whose tools were not compared with the pins.
    clearance: Clearance,
    comparing: Flight<Result<(), NotReady>>,
    standing: Mutex<Standing>,
    say: Say,
}

/// What the comparisons came to.
#[derive(Debug, Default)]
struct Standing {
    /// The tools that are as they were, in the last one.
    held: BTreeSet<String>,
    /// INVARIANT (off stays off): a tool that once was not what was pinned does not come back in this process.
    off_for_good: BTreeSet<String>,
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
        let (clearance, comparing, standing) = Default::default();
        Self { server, pinned, clearance, comparing, standing, say }
    }

    /// The names of the tools that are pinned.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.pinned.keys().map(String::as_str)
    }

    /// The connection over which the server defines `tool` as it was pinned. It is waited for until then and no longer; a
    /// comparison goes on for whoever comes next.
    pub(super) async fn hold(self: &Arc<Self>, upstream: &Upstream, tool: &str, until: Instant) -> Result<Over, Off> {
        for _ in 0..MOST_COMPARISONS {
            if let Some(mark) = self.clearance.stands(upstream) {
                let held = self.standing().held.contains(tool);
                return if held { Ok(Over::Listed(mark)) } else { Err(Off::Changed) };
            }
            let (pins, upstream) = (Arc::clone(self), upstream.clone());
            let compared = self.comparing.join(until, || async move { pins.compare(&upstream).await }).await;
            let late = || Err(NotReady::new("its tools were not compared with toolgate.lock in time"));
            compared.unwrap_or_else(late).map_err(Off::NotReady)?;
        }
        Err(Off::NotReady(NotReady::new("its list of tools changes each time that it is compared")))
    }

    async fn compare(&self, upstream: &Upstream) -> Result<(), NotReady> {
        self.clearance.withdraw();
        let listing = upstream.list(Instant::now() + LONGEST_LIST).await?;
        let mark = listing.mark;
        let import = tokio::task::spawn_blocking(move || import(&listing.definitions, &[])).await;
        let import = import.map_err(|lost| NotReady::new(&lost.to_string()))?;
        self.judge(import.tools.into_iter().map(|tool| (tool.name, tool.digest.hex())).collect());
        self.clearance.grant(mark, Instant::now() + FRESH);
        Ok(())
    }

    /// Holds what there is today to the pins.
    fn judge(&self, today: Pinned) {
        let mut standing = self.standing();
        let Standing { held, off_for_good } = &mut *standing;
        held.clear();
        for (tool, digest) in &self.pinned {
            let why = match today.get(tool) {
                Some(now) if now == digest && !off_for_good.contains(tool) => {
                    held.insert(tool.clone());
                    continue;
                }
                Some(now) if now == digest => "has defined it otherwise, in this process, than",
                Some(_) => {
                    off_for_good.insert(tool.clone());
                    "defines it otherwise than"
                }
                None => "no longer lists it as",
            };
            let told = format!("{}: {tool} is off: the server {why} toolgate.lock pins", self.server);
            (self.say)(Said::Warning(told));
        }
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mcp::upstream::{Environment, Program};

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
    fn a_tool_that_once_was_another_does_not_come_back() {
        let pin = |tool: &str, digest: &str| (tool.to_owned(), digest.to_owned());
        let pinned = Pinned::from([pin("a", "1"), pin("b", "1"), pin("c", "1")]);
        let pins = Pins::new("desk".to_owned(), pinned.clone(), Arc::new(|_| {}));
        pins.judge(Pinned::from([pin("a", "1"), pin("b", "2")]));
        assert_eq!(pins.standing().held, BTreeSet::from(["a".to_owned()]));
        pins.judge(pinned);
        assert_eq!(pins.standing().held, ["a", "c"].map(str::to_owned).into(), "c was away and no other");
    }

    #[tokio::test]
    async fn a_change_that_nobody_tells_of_is_found_ten_minutes_later_and_stays_off() {
        const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/listed.py");
        let folder = tempfile::tempdir().unwrap();
        let serve = |title: &str| {
            let tool = json!({ "name": "look", "title": title, "inputSchema": { "type": "object" } });
            std::fs::write(folder.path().join("tools.json"), json!([[tool]]).to_string()).unwrap();
        };
        serve("Look");
        let command = ["python3", SERVER, folder.path().to_str().unwrap()].map(str::to_owned).to_vec();
        let program = Program { command, directory: None, environment: Environment::Inherited };
        let upstream = Upstream::new(program, Arc::new(|_| {}));
        let far = Instant::now() + LONGEST_LIST;
        let tools = import(&upstream.list(far).await.unwrap().definitions, &[]).tools;
        let pinned = tools.into_iter().map(|tool| (tool.name, tool.digest.hex())).collect();
        let pins = Arc::new(Pins::new("desk".to_owned(), pinned, Arc::new(|_| {})));
        let over = Ok(Over::Listed(upstream.mark().unwrap()));
        let ten_minutes_later = || pins.clearance.grant(upstream.mark().unwrap(), Instant::now());

        assert_eq!(pins.hold(&upstream, "look", far).await, over);
        serve("Look elsewhere");
        assert_eq!(pins.hold(&upstream, "look", far).await, over, "it was compared a moment ago");
        ten_minutes_later();
        assert_eq!(pins.hold(&upstream, "look", far).await, Err(Off::Changed));
        serve("Look");
        ten_minutes_later();
        assert_eq!(pins.hold(&upstream, "look", far).await, Err(Off::Changed), "what it was in between nobody knows");
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
