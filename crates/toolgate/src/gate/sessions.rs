//! Clean runs, each under a random handle that its own principal alone can use.

use super::Gate;
use crate::fault::Fault;
use crate::ledger::{HandleKey, StoreError};
use crate::session::Session;
use crate::vault::random;

/// Why no run was begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotBegun {
    /// As many runs of this principal go on as may.
    #[error(
        "{MOST_RUNS} runs of this principal go on already, which is as many as may: end one, or let it rest for a day"
    )]
    TooMany,
    /// The gate failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// How many runs that were begun under a handle may go on at once of one principal in one tenant.
pub const MOST_RUNS: usize = 100;

impl Gate {
    /// Begins a clean run of this principal in this tenant, in which nothing was done or read, and gives its handle: 128
    /// random bits, which nobody else can use. It ends when the run has rested for 24 hours, or by
    /// [`end_run`](Self::end_run). Of one principal in one tenant, at most [`MOST_RUNS`] go on at once.
    pub async fn begin_run(&self, session: &Session) -> Result<String, NotBegun> {
        self.ready()?;
        let bits: [u8; 16] = random().map_err(|error| Fault::Store(StoreError::Broken(error.to_string())))?;
        let handle = format!("ses_{:032x}", u128::from_be_bytes(bits));
        let key = HandleKey::of(&handle, session);
        let begun = self.line.store.begin_run_within(key, HandleKey::holder(session), MOST_RUNS, self.now()).await;
        if begun.map_err(Fault::Store)? { Ok(handle) } else { Err(NotBegun::TooMany) }
    }

    /// The session in the run of this handle. `None` where there is no such run of this principal in this tenant: one of
    /// somebody else, one that ended and one that never was are the same.
    pub async fn in_run(&self, session: Session, handle: &str) -> Result<Option<Session>, Fault> {
        let key = HandleKey::of(handle, &session);
        let goes_on = self.line.store.goes_on(key, &HandleKey::holder(&session), self.now()).await?;
        Ok(goes_on.then(|| session.in_run(key.run())))
    }

    /// Ends the run of this handle; `false` where there is no such run of this principal.
    pub async fn end_run(&self, session: &Session, handle: &str) -> Result<bool, Fault> {
        self.ready()?;
        Ok(self.line.store.end_run(HandleKey::of(handle, session), self.now()).await?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::disallowed_methods, reason = "a test may panic")]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::backend::FakeTool;
    use crate::clock::{ManualClock, Millis};
    use crate::ledger::Store;
    use crate::session::Principal;

    fn alice() -> Session {
        Session::new(Principal::new("local", "alice"), "acme")
    }

    #[tokio::test]
    async fn one_principal_holds_no_more_than_a_hundred_runs_at_once() {
        let clock = Arc::new(ManualClock::at(Millis(1_796_000_000_000)));
        let contract = json!({"description": "Looks.", "effect": "read", "input": {"properties": {}}});
        let tool = FakeTool::fixed(json!({})).tool("look", contract.as_object().unwrap().clone());
        let gate = Gate::builder()
            .tool(tool)
            .policy("permit (principal, action, resource);")
            .clock(Arc::clone(&clock) as _)
            .store(Store::memory())
            .build()
            .unwrap();
        let mut handles = Vec::new();
        for _ in 0..MOST_RUNS {
            handles.push(gate.begin_run(&alice()).await.unwrap());
        }
        assert_eq!(gate.begin_run(&alice()).await, Err(NotBegun::TooMany));
        let others = [
            Session::new(Principal::new("local", "bob"), "acme"),
            Session::new(Principal::new("local", "alice"), "globex"),
        ];
        for other in others {
            assert!(gate.begin_run(&other).await.is_ok(), "each has as many of their own");
        }
        assert!(gate.end_run(&alice(), &handles[0]).await.unwrap());
        assert!(gate.begin_run(&alice()).await.is_ok(), "one that ended makes room");
        // One that is used is renewed, and counts as the one that it was.
        clock.advance(Duration::from_secs(23 * 3600));
        assert!(gate.in_run(alice(), &handles[1]).await.unwrap().is_some());
        assert_eq!(gate.begin_run(&alice()).await, Err(NotBegun::TooMany));
        clock.advance(Duration::from_secs(3600));
        for _ in 1..MOST_RUNS {
            assert!(gate.begin_run(&alice()).await.is_ok(), "those that rested have ended");
        }
        assert_eq!(gate.begin_run(&alice()).await, Err(NotBegun::TooMany));
    }
}
