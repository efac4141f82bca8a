//! Pending approvals of which somebody outside is still to be told: what a messenger works through.

use std::time::Duration;

use super::{Store, StoreError, transact};
use crate::approval::Approval;
use crate::clock::Millis;

/// A pending approval that is to be told of. Until its lease ends nobody else tells of it.
#[derive(Clone, Debug)]
pub struct Untold {
    /// The approval.
    pub approval: Approval,
    /// Which try this is, from 1. INVARIANT (fence): whoever has another number says nothing of this one any more.
    pub attempt: u32,
}

impl Store {
    /// The next pending approval to tell of, taken for the time of the lease; `None` where there is nothing to tell now.
    /// One that is pending no more is told of no more.
    pub async fn untold(&self, lease: Duration, now: Millis) -> Result<Option<Untold>, StoreError> {
        if !self.read_at(now, transact::is_untold).await? {
            return Ok(None);
        }
        self.write_at(now, move |rows, now| transact::take_untold(rows, now.after(lease), now)).await
    }

    /// It was told of.
    pub async fn told(&self, untold: &Untold) -> Result<(), StoreError> {
        let (id, attempt) = (untold.approval.id.clone(), untold.attempt);
        self.write(move |rows| transact::told(rows, &id, attempt)).await
    }

    /// It was not told of, and is to be tried again after a while.
    pub async fn not_told(&self, untold: &Untold, again_in: Duration, now: Millis) -> Result<(), StoreError> {
        let (id, attempt) = (untold.approval.id.clone(), untold.attempt);
        self.write_at(now, move |rows, now| transact::put_off(rows, &id, attempt, now.after(again_in))).await
    }
}
