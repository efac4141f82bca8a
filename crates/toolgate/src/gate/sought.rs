//! Approvals that somebody looks for.

use super::Gate;
use crate::approval::{Approval, Sought};
use crate::clock::Millis;
use crate::fault::Fault;
use crate::session::Session;

impl Gate {
    /// The approvals of the session's tenant that are sought, as they stand at `now`, newest first. What waits is found
    /// however much was asked since.
    pub async fn approvals_sought(
        &self,
        session: &Session,
        sought: Sought,
        now: Millis,
    ) -> Result<Vec<Approval>, Fault> {
        Ok(self.line.store.sought(session.tenant().to_owned(), sought, now).await?)
    }
}
