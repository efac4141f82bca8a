//! `/v1/grants`: consent that a person gives beforehand to a bounded set of another person's calls.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use serde_json::{Value, json};
use toolgate::json::Limits;
use toolgate::session::{Principal, Session};
use toolgate::standing::{Granting, NotGranted, Refused};

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
    let session = door.admit(&headers, Scope::Approve)?;
    Query::read(query.as_deref(), &[])?;
    listed(&door, &session).await
}

pub(super) async fn listed(door: &Door, session: &Session) -> Result<Response, Problem> {
    let grants = door.gate().standing_grants(session).await.map_err(|fault| door.unavailable(&fault))?;
    Ok(json_response(&json!({ "grants": grants.iter().map(shown::standing).collect::<Vec<Value>>() })))
}

pub(super) async fn give(State(door): State<Arc<Door>>, request: Request<Body>) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let session = door.admit(&parts.headers, Scope::Approve)?;
    Query::read(parts.uri.query(), &[])?;
    let body = door.read(&parts.headers, body).await?;
    given(&door, &session, &body).await
}

pub(super) async fn given(door: &Door, session: &Session, body: &[u8]) -> Result<Response, Problem> {
    let asked = asked(body, session)?;
    let granted = door.gate().grant_standing(&asked, session).await;
    granted.map(|standing| json_response(&shown::standing(&standing))).map_err(|not| not_granted(&not))
}

pub(super) async fn revoke(
    State(door): State<Arc<Door>>,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let session = door.admit(&headers, Scope::Approve)?;
    Query::read(query.as_deref(), &[])?;
    let id = id.map(|Path(id)| id).unwrap_or_default();
    revoked(&door, &session, &id).await
}

pub(super) async fn revoked(door: &Door, session: &Session, id: &str) -> Result<Response, Problem> {
    let revoked = door.gate().revoke_standing(id, session).await;
    revoked.map(|standing| json_response(&shown::standing(&standing))).map_err(|not| not_granted(&not))
}

/// What a body asks for. A person who is named by a text alone is one of the caller's own issuer.
fn asked(body: &[u8], session: &Session) -> Result<Granting, Problem> {
    let limits = Limits { size: body.len(), ..Limits::default() };
    let mut members = Members::read(body, &limits)?;
    let (tool, rule) = (members.text("tool"), members.text("rule"));
    let to = person(&mut members, session);
    let (calls, sum) = (count(&mut members, "calls"), count(&mut members, "sum"));
    let of = optional(&mut members, "of");
    let lasts = members.span("for");
    members.end()?;
    match (tool, rule, to, lasts) {
        (Some(tool), Some(rule), Some(to), Some(lasts)) => Ok(Granting { tool, rule, to, calls, sum, of, lasts }),
        _ => Err(Problem::new(Kind::BrokenEnvelope, "the body does not say what is granted to whom")),
    }
}

fn person(members: &mut Members<'_>, session: &Session) -> Option<Principal> {
    let raw = members.needed("to")?;
    let value = members.value("to", raw)?;
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let named = match (&value, text("issuer"), text("subject")) {
        (Value::String(subject), _, _) => Some(Principal::new(session.principal().issuer.as_str(), subject.as_str())),
        (Value::Object(members), Some(issuer), Some(subject)) if members.len() == 2 => {
            Some(Principal::new(issuer, subject))
        }
        (Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_), _, _) => None,
    };
    if named.is_none() {
        members.problem("/to", "type", "expected a name, or an object with `issuer` and `subject`");
    }
    named
}

fn count(members: &mut Members<'_>, name: &'static str) -> Option<u64> {
    let raw = members.raw(name)?;
    let value = members.value(name, raw)?;
    if value.as_u64().is_none() {
        members.problem(&format!("/{name}"), "type", "expected a whole number from 1");
    }
    value.as_u64()
}

fn optional(members: &mut Members<'_>, name: &'static str) -> Option<String> {
    let raw = members.raw(name)?;
    let value = members.value(name, raw)?;
    if value.as_str().is_none() {
        members.problem(&format!("/{name}"), "type", "expected a string");
    }
    value.as_str().map(str::to_owned)
}

fn not_granted(not: &NotGranted) -> Problem {
    let kind = match not.why {
        Refused::Unfit => Kind::UnfitGrant,
        Refused::NotYours => Kind::GrantNotYours,
        Refused::Missing => Kind::NoSuchGrant,
        Refused::TooMany => Kind::TooManyGrants,
        Refused::Store => Kind::Unavailable,
    };
    let problem = Problem::new(kind, not.to_string());
    match not.advice() {
        Some(hint) => problem.hint(hint.to_owned()),
        None => problem,
    }
}
