//! `/healthz`: the process lives. `/readyz`: calls would be taken.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use toolgate::Gate;
use toolgate::fault::Fault;

use super::door::{Door, json_response};
use super::problem::{Kind, Problem};

/// Whoever asks wants to know soon; a store that is locked for longer is not ready.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long what was found is true.
const KEPT: Duration = Duration::from_millis(250);

/// Whether calls would be taken, as it was found last. INVARIANT (one at a time): nobody has to say who they are to ask,
/// so that however many ask, the store is asked by one of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Readiness(Arc<Mutex<Option<(Instant, Found)>>>);

/// `None`: the store does not answer.
type Found = Option<Result<(), Fault>>;

impl Readiness {
    async fn of(&self, gate: &Gate) -> Found {
        let (Self(last), gate) = (self.clone(), gate.clone());
        // Whoever hangs up does not end it: the next would only begin again.
        let looked = tokio::spawn(async move {
            let mut last = last.lock().await;
            if let Some((_, found)) = last.as_ref().filter(|(at, _)| at.elapsed() < KEPT) {
                return found.clone();
            }
            let found = timeout(PATIENCE, gate.is_ready()).await.ok();
            *last = Some((Instant::now(), found.clone()));
            found
        });
        looked.await.unwrap_or(Some(Err(Fault::Lost)))
    }
}

pub(super) async fn lives() -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], r#"{"status":"ok"}"#).into_response()
}

pub(super) async fn ready(State(door): State<Arc<Door>>) -> Result<Response, Problem> {
    if door.is_draining() {
        return Err(Problem::new(Kind::Unavailable, "the gate is draining: what runs comes to its end, and no more"));
    }
    match door.readiness().of(door.gate()).await {
        Some(Ok(())) => Ok(json_response(&json!({ "status": "ready" }))),
        Some(Err(fault)) => Err(door.unavailable(&fault)),
        None => Err(Problem::new(Kind::Unavailable, "the store does not answer")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::super::tests::gate;
    use super::*;

    #[tokio::test]
    async fn what_was_found_is_kept_for_a_moment_and_looked_at_again_after_it() {
        let (gate, readiness) = (gate(), Readiness::default());
        assert_eq!(readiness.of(&gate).await, Some(Ok(())));
        gate.finish().await.unwrap();
        // However slow the machine is, this moment has not passed, and that one has.
        for (at, found) in [(Instant::now() + KEPT * 1000, Ok(())), (Instant::now() - KEPT, Err(Fault::Closing))] {
            *readiness.0.lock().await = Some((at, Some(Ok(()))));
            assert_eq!(readiness.of(&gate).await, Some(found));
        }
    }
}
