//! `toolgate_status`: what is offered, what is off and why, for the person behind the model.

use std::sync::{Arc, OnceLock, Weak};

use serde_json::{Map, Value, json};
use toolgate::approval::{self, Sought};
use toolgate::backend::{Answer, Backend, Dispatch, Found, Looking, Lookup, Running};
use toolgate::contract::Access;

use super::Wrapped;
use super::policy::Writes;
use crate::mcp::shown::plain;

/// The name of the tool. It is ours: a tool of the server with this name is quarantined.
pub(super) const STATUS: &str = "toolgate_status";

/// Whose words the names are. INVARIANT (no upstream text): beside them the server has none in the status.
const NAMES: &str = "the server chose the names of its tools and of itself: they are no words of this gate. One that is \
    more than letters, digits and _ . - is not shown";

/// Tells the status of what it is bound to.
#[derive(Default)]
pub(super) struct Status(OnceLock<Weak<Wrapped>>);

/// The contract of the tool.
pub(super) fn contract() -> Map<String, Value> {
    let contract = json!({
        "description": "Tells what this gate offers, which tools of the server behind it are off and why, and what waits \
            for the person's word. Use it when a tool that you expect is missing, or when a call waits for approval.",
        "effect": "read",
        "input": { "type": "object", "properties": {} },
    });
    match contract {
        Value::Object(keys) => keys,
        _ => Map::new(),
    }
}

impl Status {
    pub(super) fn bind(&self, wrapped: &Arc<Wrapped>) {
        // It is bound once, by whoever made it.
        let _ = self.0.set(Arc::downgrade(wrapped));
    }

    async fn tell(&self) -> Vec<u8> {
        match self.0.get().and_then(Weak::upgrade) {
            Some(wrapped) => status(&wrapped).await.to_string().into_bytes(),
            None => b"{}".to_vec(),
        }
    }
}

impl Backend for Status {
    fn run(&self, _: Dispatch) -> Running<'_> {
        Box::pin(async move { Answer::done(self.tell().await) })
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        Box::pin(async move { Found::Found(self.tell().await) })
    }
}

async fn status(wrapped: &Wrapped) -> Value {
    let desk = wrapped.desk();
    let mut status = Map::new();
    let mut put = |name: &str, value: Value| status.insert(name.to_owned(), value);
    if let Some(server) = wrapped.upstream.server() {
        put(
            "server",
            json!({
                "calls_itself": plain(&server.name), "its_version": plain(&server.version), "protocol": server.protocol,
            }),
        );
    }
    put("names", json!(NAMES));
    if let Some(problem) = wrapped.problem() {
        put("problem", json!(problem));
    }
    let (offered, off, remarks) = match &desk {
        Some(desk) => (desk.offer.offered.as_slice(), desk.offer.off.as_slice(), desk.offer.remarks.as_slice()),
        None => Default::default(),
    };
    let offered = offered.iter().map(|tool| {
        let effect = match tool.access {
            Access::Read => "read",
            Access::Write => "write",
        };
        match tool.notes.as_slice() {
            [] => json!({ "tool": tool.name, "effect": effect }),
            notes => json!({ "tool": tool.name, "effect": effect, "notes": notes }),
        }
    });
    put("offered", Value::Array(offered.collect()));
    put("off", Value::Array(off.iter().map(|off| json!({ "tool": plain(&off.name), "why": off.reason })).collect()));
    if !remarks.is_empty() {
        put("remarks", json!(remarks));
    }
    put("writes", json!(writes(&wrapped.writes)));
    if let Some(gate) = desk.as_ref().and_then(|desk| desk.opened()) {
        let now = gate.now();
        let waiting = gate.approvals_sought(&wrapped.session, Sought::of(approval::Status::Pending), now).await;
        let waiting: Vec<Value> = waiting
            .unwrap_or_default()
            .iter()
            .map(|approval| {
                json!({
                    "approval": approval.id, "tool": approval.tool, "until": approval.expires_at.to_string(),
                    "confirm_with": wrapped.state.confirm(&approval.id),
                })
            })
            .collect();
        if !waiting.is_empty() {
            put("waiting", Value::Array(waiting));
        }
    }
    put("counts", wrapped.upstream.counts().told());
    put("pinned_files", json!(wrapped.files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>()));
    put("state", json!(wrapped.state.dir().to_string_lossy()));
    Value::Object(status)
}

/// What becomes of writes, and how a person changes it.
fn writes(writes: &Writes) -> &'static str {
    match writes {
        Writes::Off => {
            "off. The person can start `toolgate wrap` with --allow NAME,NAME, with --ask (each write waits for a yes), or \
             with --allow-writes"
        }
        Writes::Named(_) => {
            "permitted by name. The person can name more with --allow, or start with --ask or --allow-writes"
        }
        Writes::All => "permitted",
        Writes::Asked => {
            "each waits for the person's yes: `waiting` has the command for each, and the same call then runs"
        }
    }
}
