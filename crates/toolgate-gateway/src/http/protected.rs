//! `/.well-known/oauth-protected-resource`: where a client logs in that was answered 401 (RFC 9728). Anybody may ask.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;

use super::door::{Door, json_response};
use super::problem::{Kind, Problem};
use crate::identity::Protected;

pub(super) async fn document(State(door): State<Arc<Door>>) -> Result<Response, Problem> {
    shown(door.protected())
}

pub(super) async fn document_of(
    State(door): State<Arc<Door>>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let path = path.map(|Path(path)| path).unwrap_or_default();
    shown(door.protected().filter(|protected| protected.is_at(&path)))
}

fn shown(protected: Option<&Protected>) -> Result<Response, Problem> {
    match protected {
        Some(protected) => Ok(json_response(&protected.document())),
        None => Err(Problem::new(Kind::NotFound, "there is nothing at this path")),
    }
}
