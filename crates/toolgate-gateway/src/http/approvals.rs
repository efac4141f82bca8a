//! `/v1/approvals`: what waits for a person, and a person's answer.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use serde_json::{Value, json};
use toolgate::approval::{Decision, NotDecided};
use toolgate::json::Limits;
use toolgate::session::Session;

use super::body::Members;
use super::door::{Door, json_response};
use super::problem::{Kind, Problem};
use super::query::Query;
use crate::identity::Scope;
use crate::shown;

/// The states by which a list can be narrowed.
const STATES: [&str; 5] = ["pending", "granted", "denied", "used", "expired"];
/// How many are listed where nothing is said, and at most: the newest.
const LISTED: (usize, usize) = (100, 1000);

pub(super) async fn list(
    State(door): State<Arc<Door>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let session = door.admit(&headers, Scope::Approve)?;
    listed(&door, &session, query.as_deref()).await
}

pub(super) async fn listed(door: &Door, session: &Session, query: Option<&str>) -> Result<Response, Problem> {
    let query = Query::read(query, &["state", "limit"])?;
    let limit = query.limit(LISTED.0, LISTED.1)?;
    let wanted = query.text("state");
    if wanted.is_some_and(|wanted| !STATES.contains(&wanted)) {
        let problem = Problem::new(Kind::BadQuery, "an approval is never in such a state");
        return Err(problem.hint(format!("known: {}", STATES.join(", "))));
    }
    let now = door.gate().now();
    let approvals = door.gate().approvals(session).await.map_err(|fault| door.unavailable(&fault))?;
    let of_state = approvals.iter().filter(|one| wanted.is_none_or(|wanted| one.state_at(now) == wanted));
    let listed: Vec<Value> = of_state.take(limit).map(|one| shown::approval(one, now)).collect();
    Ok(json_response(&json!({ "approvals": listed })))
}

pub(super) async fn show(
    State(door): State<Arc<Door>>,
    id: Named,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let session = door.admit(&headers, Scope::Approve)?;
    Query::read(query.as_deref(), &[])?;
    shown_by(&door, &session, &named(id)?).await
}

pub(super) async fn shown_by(door: &Door, session: &Session, id: &str) -> Result<Response, Problem> {
    let found = door.gate().approval(id, session).await.map_err(|fault| door.unavailable(&fault))?;
    let approval = found.ok_or_else(|| not_decided(&NotDecided::Missing))?;
    Ok(json_response(&shown::approval(&approval, door.gate().now())))
}

pub(super) async fn decide(
    State(door): State<Arc<Door>>,
    id: Named,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let session = door.admit(&parts.headers, Scope::Approve)?;
    Query::read(parts.uri.query(), &[])?;
    let body = door.read(&parts.headers, body).await?;
    decided(&door, &session, &named(id)?, &body).await
}

pub(super) async fn decided(door: &Door, session: &Session, id: &str, body: &[u8]) -> Result<Response, Problem> {
    let decided = match decision(body)? {
        Decision::Approve => door.gate().approve(id, session).await,
        Decision::Deny => door.gate().deny(id, session).await,
    };
    let approval = decided.map_err(|reason| not_decided(&reason))?;
    Ok(json_response(&shown::approval(&approval, door.gate().now())))
}

/// The id in the path, if it is a text.
type Named = Result<Path<String>, PathRejection>;

fn named(id: Named) -> Result<String, Problem> {
    id.map(|Path(id)| id).map_err(|_| not_decided(&NotDecided::Missing))
}

/// What `{"decision": "approve" | "deny"}` says.
fn decision(body: &[u8]) -> Result<Decision, Problem> {
    let limits = Limits { size: body.len(), ..Limits::default() };
    let mut members = Members::read(body, &limits)?;
    let said = members.text("decision");
    let said = match said.as_deref() {
        Some("approve") => Some(Decision::Approve),
        Some("deny") => Some(Decision::Deny),
        Some(_) => {
            members.problem("/decision", "enum", "expected \"approve\" or \"deny\"");
            None
        }
        None => None,
    };
    members.end()?;
    said.ok_or_else(|| Problem::new(Kind::BrokenEnvelope, "the decision is missing"))
}

fn not_decided(reason: &NotDecided) -> Problem {
    let kind = match reason {
        NotDecided::Missing => Kind::NoSuchApproval,
        NotDecided::Closed(_) | NotDecided::Expired => Kind::ApprovalClosed,
        NotDecided::NotYours(_) => Kind::NotYours,
        NotDecided::Store => Kind::Unavailable,
    };
    Problem::new(kind, reason.to_string())
}
