//! Clean runs, each under a random handle that its own principal alone can use.

use super::Gate;
use crate::fault::Fault;
use crate::ledger::{HandleKey, StoreError};
use crate::session::Session;
use crate::vault::random;

impl Gate {
    /// Begins a clean run of this principal in this tenant, in which nothing was done or read, and gives its handle: 128
    /// random bits, which nobody else can use. It ends when the run has rested for 24 hours, or by
    /// [`end_run`](Self::end_run).
    pub async fn begin_run(&self, session: &Session) -> Result<String, Fault> {
        self.ready()?;
        let bits: [u8; 16] = random().map_err(|error| StoreError::Broken(error.to_string()))?;
        let handle = format!("ses_{:032x}", u128::from_be_bytes(bits));
        let key = HandleKey::of(&handle, session);
        self.line.store.begin_run(key, session.tenant(), self.now()).await?;
        Ok(handle)
    }

    /// The session in the run of this handle. `None` where there is no such run of this principal in this tenant: one of
    /// somebody else, one that ended and one that never was are the same.
    pub async fn in_run(&self, session: Session, handle: &str) -> Result<Option<Session>, Fault> {
        let key = HandleKey::of(handle, &session);
        let goes_on = self.line.store.goes_on(key, session.tenant(), self.now()).await?;
        Ok(goes_on.then(|| session.in_run(key.run())))
    }

    /// Ends the run of this handle; `false` where there is no such run of this principal.
    pub async fn end_run(&self, session: &Session, handle: &str) -> Result<bool, Fault> {
        self.ready()?;
        Ok(self.line.store.end_run(HandleKey::of(handle, session), self.now()).await?)
    }
}
