//! `/v1/audit`: the record of the caller's tenant, the newest first.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use toolgate::session::Session;

use super::door::{Door, json_response};
use super::problem::Problem;
use super::query::Query;
use crate::identity::Scope;
use crate::shown::Recorded;

/// How many are listed where nothing is said, and at most.
const LISTED: (usize, usize) = (100, 1000);

#[derive(Serialize)]
struct Listed<'a> {
    records: Vec<Recorded<'a>>,
    next: Option<u64>,
}

pub(super) async fn list(
    State(door): State<Arc<Door>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let session = door.admit(&headers, Scope::Audit)?;
    listed(&door, &session, query.as_deref()).await
}

pub(super) async fn listed(door: &Door, session: &Session, query: Option<&str>) -> Result<Response, Problem> {
    let query = Query::read(query, &["limit", "before"])?;
    let (limit, before) = (query.limit(LISTED.0, LISTED.1)?, query.number("before")?);
    let page = door.gate().store().records_of_tenant(session.tenant(), before, limit).await;
    let page = page.map_err(|error| door.unavailable(&error.into()))?;
    let records = page.items.iter().map(Recorded::of).collect();
    Ok(json_response(&Listed { records, next: page.next }))
}
