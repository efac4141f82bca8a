//! `/v1/stops`: what is stopped for a while. Over the network an administrator stops tools within their own tenant alone.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use serde_json::{Value, json};
use toolgate::gate::{NotLifted, NotStopped};
use toolgate::json::Limits;
use toolgate::session::Session;
use toolgate::stoppage::Stoppage;

use super::body::Members;
use super::door::{Door, json_response};
use super::problem::{Kind, Problem};
use super::query::Query;
use crate::identity::Scope;
use crate::shown;

pub(super) async fn list(
    State(door): State<Arc<Door>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let session = door.admit(&headers, Scope::Admin)?;
    Query::read(query.as_deref(), &[])?;
    let standing = door.gate().stops().await.map_err(|fault| door.unavailable(&fault))?;
    let concerns = |stop: &&Stoppage| stop.target.tenant.as_deref().is_none_or(|tenant| tenant == session.tenant());
    let listed: Vec<Value> =
        standing.iter().filter(concerns).map(|stop| shown::stoppage(stop, is_own(stop, &session))).collect();
    Ok(json_response(&json!({ "stops": listed })))
}

pub(super) async fn set(State(door): State<Arc<Door>>, request: Request<Body>) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let session = door.admit(&parts.headers, Scope::Admin)?;
    Query::read(parts.uri.query(), &[])?;
    let body = door.read(&parts.headers, body).await?;
    let mut members = Members::read(&body, &Limits { size: body.len(), ..Limits::default() })?;
    let (tool, why, lasts) = (members.text("tool"), members.text("why"), members.span("for"));
    members.end()?;
    // What is missing was told.
    let (Some(tool), Some(why), Some(lasts)) = (tool, why, lasts) else {
        return Err(Problem::new(Kind::BrokenEnvelope, "a member is missing"));
    };
    let stopped = door.gate().stop_in_tenant(&tool, lasts, &why, &session).await;
    let stop = stopped.map_err(|not| not_stopped(&door, not))?;
    Ok(json_response(&shown::stoppage(&stop, true)))
}

pub(super) async fn lift(
    State(door): State<Arc<Door>>,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let session = door.admit(&headers, Scope::Admin)?;
    Query::read(query.as_deref(), &[])?;
    let missing = || Problem::new(Kind::NoSuchStop, "no stop of this id stands that the caller's tenant has set");
    let Path(id) = id.map_err(|_| missing())?;
    let lifted = door.gate().lift(&id, Some(session.tenant()), session.principal()).await;
    let stop = lifted.map_err(|not| match not {
        NotLifted::Missing => missing(),
        NotLifted::Store(error) => door.unavailable(&error.into()),
    })?;
    Ok(json_response(&shown::stoppage(&stop, true)))
}

/// Whether it was set by the caller's tenant. Of what the operator stops in it the tenant reads that it is so, not why.
fn is_own(stop: &Stoppage, session: &Session) -> bool {
    stop.set_in.as_deref() == Some(session.tenant())
}

fn not_stopped(door: &Door, not: NotStopped) -> Problem {
    let told = not.to_string();
    match not {
        NotStopped::UnknownTool { near } => {
            let problem = Problem::new(Kind::BrokenEnvelope, format!("/tool: {told}"));
            match near {
                Some(near) => problem.hint(near),
                None => problem,
            }
        }
        NotStopped::NoReason => Problem::new(Kind::BrokenEnvelope, format!("/why: {told}")),
        NotStopped::Span => Problem::new(Kind::BrokenEnvelope, format!("/for: {told}")),
        NotStopped::TooMany => Problem::new(Kind::TooManyStops, told).hint("GET /v1/stops lists them"),
        NotStopped::Store(error) => door.unavailable(&error.into()),
    }
}
