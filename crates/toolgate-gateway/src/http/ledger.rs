//! `/v1/ledger`: the actions of the caller's tenant, the newest first, and an operator's word on those of which nobody
//! knows what became.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use serde_json::{Value, json};
use toolgate::gate::{LONGEST_WHY, NotRuled, Ruling};
use toolgate::json::{Digest, Limits};
use toolgate::ledger::Listed;
use toolgate::session::Session;

use super::body::Members;
use super::door::{Door, json_response};
use super::problem::{Kind, Problem};
use super::query::Query;
use crate::identity::Scope;
use crate::shown::{self, Names};

/// How many are listed where nothing is said, and at most.
const LISTED: (usize, usize) = (100, 1000);

pub(super) async fn list(
    State(door): State<Arc<Door>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let session = door.admit(&headers, Scope::Ledger)?;
    listed(&door, &session, query.as_deref()).await
}

pub(super) async fn listed(door: &Door, session: &Session, query: Option<&str>) -> Result<Response, Problem> {
    let query = Query::read(query, &["limit", "before"])?;
    let (limit, before) = (query.limit(LISTED.0, LISTED.1)?, query.number("before")?);
    let page = door.gate().store().actions(session.tenant(), before, limit).await;
    let page = page.map_err(|error| door.unavailable(&error.into()))?;
    let entries: Vec<Value> = page.items.iter().map(|action| shown(door, action)).collect();
    Ok(json_response(&json!({ "entries": entries, "next": page.next })))
}

/// Whether it is the `ref` of a call, and no key nor the beginning of one.
fn is_ref(key: &str) -> bool {
    key.bytes().any(|byte| !byte.is_ascii_hexdigit())
}

fn shown(door: &Door, action: &Listed) -> Value {
    let gate = door.gate();
    shown::action(action, &Names::of(action, gate.is_marked(&action.tool), gate.store()))
}

/// What a body says of an action.
struct Word {
    ruling: Ruling,
    why: String,
    dry_run: bool,
}

pub(super) async fn rule(
    State(door): State<Arc<Door>>,
    key: Result<Path<String>, PathRejection>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let session = door.admit(&parts.headers, Scope::Admin)?;
    Query::read(parts.uri.query(), &[])?;
    let body = door.read(&parts.headers, body).await?;
    let word = word(&body)?;
    let key = key.ok().map(|Path(key)| key).filter(|key| key.parse::<Digest>().is_ok() || is_ref(key));
    let action = ruled(&door, &session, key, &word).await?;
    Ok(json_response(&shown(&door, &action)))
}

/// INVARIANT (own tenant alone): the action of another tenant is as absent as one that never was.
async fn ruled(door: &Door, session: &Session, key: Option<String>, word: &Word) -> Result<Listed, Problem> {
    let missing = || Problem::new(Kind::NoSuchAction, "there is no action of this key in the caller's tenant");
    let key = key.ok_or_else(missing)?;
    if !word.dry_run {
        // What a dead process left open is unknown from now on, and can be spoken of.
        door.gate().sweep().await.map_err(|fault| door.unavailable(&fault))?;
    }
    let found = door.gate().store().action(&key).await.map_err(|error| door.unavailable(&error.into()))?;
    // A plain key of what is hidden would be tried until it fits.
    let named = |action: &Listed| is_ref(&key) || !door.gate().is_marked(&action.tool);
    let own = |action: &Listed| action.tenant == session.tenant() && named(action);
    let key = found.ok().filter(own).ok_or_else(missing)?.key;
    let ruled = match word.dry_run {
        true => door.gate().dry_rule(key, &word.ruling).await,
        false => door.gate().rule(key, &word.ruling, &word.why, session).await,
    };
    ruled.map_err(|not| {
        let told = not.to_string();
        match not {
            NotRuled::Missing => missing(),
            NotRuled::Running { .. } | NotRuled::Known { .. } => Problem::new(Kind::NotUnknown, told),
            NotRuled::Sought { .. } => Problem::new(Kind::BeingReconciled, told),
            NotRuled::Unfit { problems, .. } => Problem::new(Kind::ResultUnfit, told).problems(problems),
            NotRuled::NoContract { .. } => {
                Problem::new(Kind::ResultUnfit, told).hint("leave `result` away, or mend the contract")
            }
            NotRuled::Store(error) => door.unavailable(&error.into()),
        }
    })
}

/// `{"outcome": "done" | "none", "why", "result"?, "dry_run"?}`.
fn word(body: &[u8]) -> Result<Word, Problem> {
    let mut members = Members::read(body, &Limits { size: body.len(), ..Limits::default() })?;
    let (outcome, why) = (members.text("outcome"), members.text("why"));
    let (result, dry_run) = (members.any("result"), members.flag("dry_run"));
    let is_none = result.is_none();
    let ruling = match outcome.as_deref() {
        Some("done") => Some(Ruling::Done { result }),
        Some("none") => {
            if !is_none {
                members.problem("/result", "additional_property", "a result is of an action that is done");
            }
            Some(Ruling::NotDone)
        }
        Some(_) => {
            members.problem("/outcome", "enum", "expected \"done\" or \"none\"");
            None
        }
        None => None,
    };
    let why = why.map(|why| why.trim().to_owned());
    if why.as_ref().is_some_and(|why| why.is_empty() || why.chars().count() > LONGEST_WHY) {
        members.problem("/why", "min_length", "say how that is known, in 1 to 1000 characters");
    }
    members.end()?;
    // What is missing was told.
    let missing = || Problem::new(Kind::BrokenEnvelope, "a member is missing");
    Ok(Word { ruling: ruling.ok_or_else(missing)?, why: why.ok_or_else(missing)?, dry_run })
}
