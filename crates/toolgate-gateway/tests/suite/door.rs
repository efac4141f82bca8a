//! Doors: the ways in which a call reaches a gate. All answer alike.

mod binary;
mod http;
mod in_process;
mod mcp_http;
mod mcp_stdio;

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::scenario::{Call, Runs, Step};

pub(crate) use binary::{Binary, Run, call, toolgate, verify};
pub(crate) use http::Http;
pub(crate) use in_process::{InProcess, manual_clock};
pub(crate) use mcp_http::McpHttp;
pub(crate) use mcp_stdio::{Client, Era, McpStdio, reply_of, tells};

/// Who asks, and within which tags; without any, all tools may be there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asker<'a> {
    pub(crate) user: Option<&'a str>,
    pub(crate) tags: &'a [String],
}

impl<'a> Asker<'a> {
    pub(crate) fn named(user: &'a str) -> Self {
        Self { user: Some(user), tags: &[] }
    }

    /// The options by which the command is told.
    fn options(self) -> impl Iterator<Item = &'a str> {
        let user = self.user.into_iter().flat_map(|user| ["--as", user]);
        user.chain(self.tags.iter().flat_map(|tag| ["--tag", tag.as_str()]))
    }

    /// A path with the tags behind it.
    fn query(self, path: &str) -> String {
        let tags: Vec<String> = self.tags.iter().map(|tag| format!("tag={tag}")).collect();
        if tags.is_empty() { path.to_owned() } else { format!("{path}?{}", tags.join("&")) }
    }
}

/// A way to a gate. What is not an answer of the gate is a failure of the test, and panics.
pub(crate) trait Door {
    /// Whether a step can be taken through this door at all; one that cannot is left out.
    fn carries(&self, _step: &Step) -> bool {
        true
    }

    /// Makes one call.
    fn call(&mut self, asker: Asker<'_>, call: &Call) -> Answer;

    /// Hands in a model's message.
    fn message(&mut self, asker: Asker<'_>, dialect: &str, message: &Value) -> Exchange;

    /// Says yes to an approval: its state then, or why the answer does not count.
    fn approve(&mut self, id: &str, user: Option<&str>) -> Result<String, String>;

    /// Says no to an approval.
    fn deny(&mut self, id: &str, user: Option<&str>) -> Result<String, String>;

    /// The approvals that somebody sees, newest first.
    fn approvals(&mut self, user: &str) -> Value;

    /// The names of the tools that somebody sees, sorted.
    fn tools(&mut self, asker: Asker<'_>) -> Vec<String>;

    /// The rows of a query over the example's database.
    fn rows(&self, sql: &str) -> Value;

    /// How often a tool of the lab was run.
    fn runs(&self, tool: &str) -> Runs;

    /// Moves the gate's clock.
    fn advance(&mut self, span: Duration);

    /// Changes a file of the gate's folder; the gate then goes by it.
    fn edit(&mut self, file: &str, from: &str, to: &str);

    /// Whether the record of the gate holds.
    fn verify(&mut self) -> Result<(), String>;
}

/// The answer to one call.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The reply as it was written, without the trace.
    pub(crate) text: String,
    pub(crate) reply: Value,
    pub(crate) trace: Value,
    /// The exit code, where the door is a process.
    pub(crate) exit: Option<i32>,
}

/// What comes of a model's message.
#[derive(Debug)]
pub(crate) enum Exchange {
    Answered {
        /// The tool messages.
        messages: Value,
        /// `[{"call_id", "tool", "reply"}]`
        outcomes: Value,
    },
    /// It is no message of the dialect, and nothing ran.
    Broken(String),
}

/// What every stage learned of an attempt, from its last record. That of a read is written a moment after its reply.
fn on_record(reference: &str, records: impl Fn() -> Vec<Value>) -> Value {
    let begun = Instant::now();
    loop {
        if let Some(last) = records().last() {
            return last["stages"].clone();
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "it is not on record: {reference}");
    }
}
