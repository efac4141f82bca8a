//! `/v1/tools`: what the caller may see, as a dialect declares it or as it is.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};
use toolgate::fields::nearest;
use toolgate::wire::Dialect;

use super::door::{Door, json_response};
use super::problem::{Kind, Problem};
use super::query::{Query, TAG};
use super::tagged;
use crate::identity::Scope;
use crate::shown;

pub(super) async fn list(
    State(door): State<Arc<Door>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let session = door.admit(&headers, Scope::Calls)?;
    let query = Query::read(query.as_deref(), &["dialect", TAG])?;
    let session = tagged::within(session, &query)?;
    let tools = door.gate().tools(&session);
    let tools: Value = match query.text("dialect") {
        None => tools.iter().map(|tool| shown::tool(tool)).collect(),
        Some(name) => dialect(name).map_err(|hint| unknown(hint, Kind::BadQuery))?.definitions(&tools),
    };
    Ok(json_response(&json!({ "tools": tools })))
}

/// The dialect of this name, or a hint.
pub(super) fn dialect(name: &str) -> Result<Dialect, String> {
    let names = || Dialect::ALL.iter().map(|dialect| dialect.as_str());
    let known = || format!("known: {}", names().collect::<Vec<_>>().join(", "));
    Dialect::parse(name).ok_or_else(|| nearest(name, names()).unwrap_or_else(known))
}

pub(super) fn unknown(hint: String, kind: Kind) -> Problem {
    Problem::new(kind, "there is no such dialect").hint(hint)
}
