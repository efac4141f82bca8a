//! `/mcp`: the streamable HTTP transport of the Model Context Protocol. Each POST is one message, answered whole.
//!
//! `/mcp/tags/NAME` is the same, for clients that take an address and no query, within a tag. INVARIANT (nothing kept):
//! there are no sessions, so each POST is bounded by its own address and its own token, whatever came before it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use toolgate::Reply;
use toolgate::fault::Fault;
use toolgate::session::Session;
use toolgate::wire::Proposed;

use super::calls;
use super::door::Door;
use super::problem::{Kind, Problem};
use super::query::{Query, TAG};
use super::sessions;
use super::tagged;
use crate::identity::Scope;
use crate::mcp::http::{Headers, HttpAnswer, handle};
use crate::mcp::server::{GateFor, Tools};

/// A gate behind this door, as one person sees it.
struct Seen {
    door: Arc<Door>,
    gate: GateFor,
}

pub(super) async fn answer(State(door): State<Arc<Door>>, request: Request<Body>) -> Result<Response, Problem> {
    let session = door.admit(request.headers(), Scope::Calls)?;
    answered(&door, session, request).await
}

pub(super) async fn answer_within(
    State(door): State<Arc<Door>>,
    tag: tagged::InPath,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let session = door.admit(request.headers(), Scope::Calls)?;
    answered(&door, tagged::at(session, tag)?, request).await
}

async fn answered(door: &Arc<Door>, session: Session, request: Request<Body>) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    if parts.headers.contains_key(&calls::KEY) || parts.headers.contains_key(&calls::OPERATION) {
        let detail = "over MCP a header names no operation; nothing was run";
        return Err(Problem::new(Kind::BadHeader, detail).hint("say it as `toolgate/operation` in the call's `_meta`"));
    }
    let session = tagged::within(session, &Query::read(parts.uri.query(), &[TAG])?)?;
    let session = sessions::within(door, session, &parts.headers).await?;
    let body = door.read(&parts.headers, body).await?;
    let _running = door.take(1)?;
    let headers = Headers::of(parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())));
    let seen = Seen { gate: GateFor { gate: door.gate().clone(), session }, door: Arc::clone(door) };
    let answered = tokio::time::timeout(door.longest_turn(), handle(&seen, &headers, &body)).await;
    let HttpAnswer { status, content_type, body } = answered.map_err(|_| {
        let detail = "the call took longer than every deadline; what it did is in the ledger";
        Problem::new(Kind::TimedOut, detail).hint("look at the ledger before you send it again")
    })?;
    // The statuses are constants of the transport.
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok(match content_type {
        Some(kind) => (status, [(CONTENT_TYPE, HeaderValue::from_static(kind))], body).into_response(),
        None => status.into_response(),
    })
}

impl Tools for Seen {
    async fn list(&self) -> Result<Vec<Value>, Fault> {
        self.gate.list().await
    }

    async fn call(&self, proposed: Proposed) -> Result<Reply, Fault> {
        let answer = self.gate.call(proposed).await;
        self.door.saw(&answer);
        // The client learns of it by JSON-RPC.
        answer.inspect_err(|fault| drop(self.door.unavailable(fault)))
    }
}
