//! `/healthz`: the process lives. `/readyz`: calls would be taken.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::door::{Door, json_response};
use super::problem::{Kind, Problem};

/// Whoever asks wants to know soon; a store that is locked for longer is not ready.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn lives() -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], r#"{"status":"ok"}"#).into_response()
}

pub(super) async fn ready(State(door): State<Arc<Door>>) -> Result<Response, Problem> {
    if door.is_draining() {
        return Err(Problem::new(Kind::Unavailable, "the gate is draining: what runs comes to its end, and no more"));
    }
    match tokio::time::timeout(PATIENCE, door.gate().is_ready()).await {
        Ok(Ok(())) => Ok(json_response(&json!({ "status": "ready" }))),
        Ok(Err(fault)) => Err(door.unavailable(&fault)),
        Err(_) => Err(Problem::new(Kind::Unavailable, "the store does not answer")),
    }
}
