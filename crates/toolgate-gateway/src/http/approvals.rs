//! `/v1/approvals`: what waits for a person, to wait for it, and a person's answer.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use serde_json::{Value, json};
use toolgate::approval::{Approval, Capacity, Decision, LISTED as MOST, NotDecided, Sought, Status};
use toolgate::fields::parse_span;
use toolgate::gate::NotEdited;
use toolgate::json::Limits;
use toolgate::session::Session;

use super::body::Members;
use super::door::{Door, json_response};
use super::problem::{Kind, Problem};
use super::query::Query;
use crate::identity::Scope;
use crate::shown;

/// How many are listed where nothing is said, and at most: the newest.
const LISTED: (usize, usize) = (100, MOST);
/// How long a request waits for an answer at most.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Who is asking of approvals, and what they may see and say.
pub(super) struct Asker {
    session: Session,
    /// Whether they see all of their tenant's, or what was asked in their own name alone.
    sees_all: bool,
    /// In which capacity they answer, or what they are told where they may only look.
    capacity: Result<Capacity, Problem>,
}

impl Asker {
    /// INVARIANT (by scope): a role answers with `approvals:approve` alone, the requester confirms with
    /// `approvals:confirm` alone, and whoever has only `calls` sees what they asked for themselves.
    fn of(door: &Door, headers: &HeaderMap) -> Result<Self, Problem> {
        // Once: somebody is judged by one answer of whoever knows them, and no failure to know them is a missing scope.
        let caller = door.caller(headers)?;
        let capacity = match (caller.may(Scope::Approve), caller.may(Scope::Confirm)) {
            (true, true) => Ok(Capacity::Any),
            (true, false) => Ok(Capacity::Approver),
            (false, true) => Ok(Capacity::Requester),
            (false, false) if caller.may(Scope::Calls) => Err(door.missing(Scope::Approve)),
            (false, false) => return Err(door.missing(Scope::Approve)),
        };
        let sees_all = caller.may(Scope::Approve);
        Ok(Self { session: caller.session_from(door.gate().now()), sees_all, capacity })
    }

    /// Whoever lists approvals or answers them has a scope for it.
    fn answering(door: &Door, headers: &HeaderMap) -> Result<(Self, Capacity), Problem> {
        let asker = Self::of(door, headers)?;
        let capacity = asker.capacity.clone()?;
        Ok((asker, capacity))
    }

    /// Somebody with all scopes.
    #[cfg(test)]
    pub(super) fn whole(session: Session) -> Self {
        Self { session, sees_all: true, capacity: Ok(Capacity::Any) }
    }

    fn sees(&self, approval: &Approval) -> bool {
        self.sees_all || approval.requester == *self.session.principal()
    }
}

pub(super) async fn list(
    State(door): State<Arc<Door>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let (asker, _) = Asker::answering(&door, &headers)?;
    listed(&door, &asker, query.as_deref()).await
}

pub(super) async fn listed(door: &Door, asker: &Asker, query: Option<&str>) -> Result<Response, Problem> {
    let query = Query::read(query, &["state", "limit"])?;
    let limit = query.limit(LISTED.0, LISTED.1)?;
    let status = query.text("state").map(|name| Status::named(name).ok_or_else(unknown_state)).transpose()?;
    let requester = (!asker.sees_all).then(|| asker.session.principal().clone());
    let (now, sought) = (door.gate().now(), Sought { status, requester, most: limit });
    let found = door.gate().approvals_sought(&asker.session, sought, now).await;
    let found = found.map_err(|fault| door.unavailable(&fault))?;
    let listed: Vec<Value> = found.iter().map(|one| shown::approval(one, now)).collect();
    Ok(json_response(&json!({ "approvals": listed })))
}

pub(super) async fn show(
    State(door): State<Arc<Door>>,
    id: Named,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let asker = Asker::of(&door, &headers)?;
    shown_by(&door, &asker, &named(id)?, query.as_deref()).await
}

pub(super) async fn shown_by(door: &Door, asker: &Asker, id: &str, query: Option<&str>) -> Result<Response, Problem> {
    let query = Query::read(query, &["wait"])?;
    let wait = wait(&query)?;
    let gate = door.gate();
    // Whoever may not see it does not wait for it: how long an answer takes tells nothing.
    let mut found = gate.approval(id, &asker.session).await.map_err(|fault| door.unavailable(&fault))?;
    found = found.filter(|one| asker.sees(one));
    if !wait.is_zero() && found.as_ref().is_some_and(|one| one.state_at(gate.now()) == "pending") {
        let _place = door.wait()?;
        let waited = tokio::select! {
            waited = gate.approval_within(id, &asker.session, wait) => waited,
            () = door.drained() => gate.approval(id, &asker.session).await,
        };
        found = waited.map_err(|fault| door.unavailable(&fault))?;
    }
    let approval = found.ok_or_else(|| not_decided(&NotDecided::Missing))?;
    Ok(json_response(&shown::approval(&approval, gate.now())))
}

fn unknown_state() -> Problem {
    let known = Status::ALL.map(Status::as_str).join(", ");
    Problem::new(Kind::BadQuery, "an approval is never in such a state").hint(format!("known: {known}"))
}

/// How long a program is ready to wait for an answer.
fn wait(query: &Query) -> Result<Duration, Problem> {
    let Some(text) = query.text("wait") else { return Ok(Duration::ZERO) };
    let wait = parse_span(text).filter(|wait| *wait <= LONGEST_WAIT);
    wait.ok_or_else(|| Problem::new(Kind::BadQuery, "`wait` is a span of time, at most 60s").hint("wait=30s"))
}

pub(super) async fn decide(
    State(door): State<Arc<Door>>,
    id: Named,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let (asker, capacity) = Asker::answering(&door, &parts.headers)?;
    Query::read(parts.uri.query(), &[])?;
    let body = door.read(&parts.headers, body).await?;
    decided(&door, &asker, capacity, &named(id)?, &body).await
}

pub(super) async fn decided(
    door: &Door,
    asker: &Asker,
    capacity: Capacity,
    id: &str,
    body: &[u8],
) -> Result<Response, Problem> {
    let (gate, by) = (door.gate(), &asker.session);
    let said = said(body)?;
    if !asker.sees_all {
        let found = gate.approval(id, by).await.map_err(|fault| door.unavailable(&fault))?;
        found.filter(|one| asker.sees(one)).ok_or_else(|| not_decided(&NotDecided::Missing))?;
    }
    let answered = match said {
        Said::Decision(decision) => gate.answer(id, by, capacity, decision).await.map_err(NotEdited::NotDecided),
        Said::Arguments(arguments) => gate.edit(id, arguments, by, capacity).await,
    };
    match answered {
        Ok(approval) => Ok(json_response(&shown::approval(&approval, gate.now()))),
        Err(NotEdited::NotDecided(reason)) => Err(not_answered(door, asker, capacity, id, &reason).await),
        Err(NotEdited::Fault(fault)) => Err(door.unavailable(&fault)),
        Err(NotEdited::Refused(refusal)) => {
            let detail = format!("the edited call is refused as {}: {}", refusal.code(), refusal.text());
            let problem = Problem::new(Kind::EditRefused, detail).problems(refusal.problem_list().to_vec());
            Err(problem.hint("the approval that was to be edited is as it was"))
        }
        Err(not @ (NotEdited::Same | NotEdited::Masked | NotEdited::NeedsNobody | NotEdited::Made)) => {
            Err(Problem::new(Kind::EditRefused, not.to_string()))
        }
    }
}

/// Where the person may answer and their credential is not for it, they learn what it lacks.
async fn not_answered(door: &Door, asker: &Asker, capacity: Capacity, id: &str, reason: &NotDecided) -> Problem {
    let lacks = match (reason, capacity) {
        (NotDecided::NotYours(_), Capacity::Approver) => Scope::Confirm,
        (NotDecided::NotYours(_), Capacity::Requester) => Scope::Approve,
        (NotDecided::NotYours(_), Capacity::Any)
        | (NotDecided::Missing | NotDecided::Closed(_) | NotDecided::Expired | NotDecided::Store, _) => {
            return not_decided(reason);
        }
    };
    match door.gate().dry_decide(id, &asker.session, Decision::Deny).await {
        Ok(_) => {
            let detail = format!("this needs the scope `{}`, which the caller does not have", lacks.as_str());
            Problem::new(Kind::MissingScope, detail)
        }
        Err(_) => not_decided(reason),
    }
}

/// The id in the path, if it is a text.
type Named = Result<Path<String>, PathRejection>;

fn named(id: Named) -> Result<String, Problem> {
    id.map(|Path(id)| id).map_err(|_| not_decided(&NotDecided::Missing))
}

/// What somebody says of an approval.
enum Said<'a> {
    Decision(Decision),
    /// Other arguments, as the text that they are.
    Arguments(&'a [u8]),
}

/// What `{"decision": "approve" | "deny"}` or `{"arguments": {...}}` says.
fn said(body: &[u8]) -> Result<Said<'_>, Problem> {
    let limits = Limits { size: body.len(), ..Limits::default() };
    let mut members = Members::read(body, &limits)?;
    let arguments = members.raw("arguments");
    if arguments.is_some() && members.raw("decision").is_some() {
        members.problem("/decision", "additional_property", "either a decision or other arguments");
    }
    let said = match arguments {
        Some(arguments) => Some(Said::Arguments(arguments)),
        None => match members.text("decision").as_deref() {
            Some("approve") => Some(Said::Decision(Decision::Approve)),
            Some("deny") => Some(Said::Decision(Decision::Deny)),
            Some(_) => {
                members.problem("/decision", "enum", "expected \"approve\" or \"deny\"");
                None
            }
            None => None,
        },
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
