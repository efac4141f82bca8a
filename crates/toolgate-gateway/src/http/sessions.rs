//! `/v1/sessions`: clean runs, and the header that puts a call into one.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{HeaderMap, HeaderName};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use toolgate::gate::NotBegun;
use toolgate::json::Limits;
use toolgate::session::Session;

use super::body::Members;
use super::door::{Door, json_response};
use super::guard::{Twice, only};
use super::problem::{Kind, Problem};
use super::query::Query;
use crate::identity::Scope;

/// The header that names the run of a call, by its handle.
pub(super) const SESSION: HeaderName = HeaderName::from_static("toolgate-session");

pub(super) async fn begin(State(door): State<Arc<Door>>, request: Request<Body>) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let session = door.admit(&parts.headers, Scope::CreateSessions)?;
    Query::read(parts.uri.query(), &[])?;
    let body = door.read(&parts.headers, body).await?;
    begun(&door, &session, &body).await
}

pub(super) async fn begun(door: &Door, session: &Session, body: &[u8]) -> Result<Response, Problem> {
    // There is nothing to say of a run yet.
    if !body.is_empty() {
        Members::read(body, &Limits { size: body.len(), ..Limits::default() })?.end()?;
    }
    let handle = door.gate().begin_run(session).await.map_err(|not| match not {
        NotBegun::TooMany => Problem::new(Kind::TooManySessions, not.to_string())
            .hint("`DELETE /v1/sessions/HANDLE` ends one; each ends by itself when it has rested for 24 hours"),
        NotBegun::Fault(fault) => door.unavailable(&fault),
    })?;
    Ok((StatusCode::CREATED, json_response(&json!({ "session": handle }))).into_response())
}

pub(super) async fn end(
    State(door): State<Arc<Door>>,
    handle: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let session = door.admit(&headers, Scope::CreateSessions)?;
    Query::read(query.as_deref(), &[])?;
    let Ok(Path(handle)) = handle else { return Err(unknown()) };
    ended(&door, &session, &handle).await
}

pub(super) async fn ended(door: &Door, session: &Session, handle: &str) -> Result<Response, Problem> {
    match door.gate().end_run(session, handle).await.map_err(|fault| door.unavailable(&fault))? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(unknown()),
    }
}

/// The session in the run that the header names; as it is where there is no such header.
pub(super) async fn within(door: &Door, session: Session, headers: &HeaderMap) -> Result<Session, Problem> {
    let named = only(headers, &SESSION)
        .map_err(|Twice| Problem::new(Kind::BadHeader, "the header Toolgate-Session is there more than once"))?;
    let Some(named) = named else { return Ok(session) };
    let handle = named.to_str().map_err(|_| unknown())?;
    let found = door.gate().in_run(session, handle).await.map_err(|fault| door.unavailable(&fault))?;
    found.ok_or_else(unknown)
}

fn unknown() -> Problem {
    Problem::new(Kind::NoSuchSession, "there is no such session of this caller, or it has ended; nothing was run")
        .hint("`POST /v1/sessions` begins another one")
}
