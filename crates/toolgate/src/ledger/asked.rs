//! Approvals as a store keeps them: each method is one transaction.

use super::Store;
use super::store::Pending;
use super::transact::{self, Answer};
use crate::approval::{Approval, Capacity, NotDecided, Sought};
use crate::audit::Record;
use crate::clock::Millis;
use crate::session::Session;

/// What became of a proposal.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time, handed over and gone")]
pub(crate) enum Proposed {
    /// It stands: this one, or the pending one that was there for the same call.
    Pending(Approval),
    /// There are too many pending already.
    TooMany(Full),
}

/// Who has too many pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    User,
    Tenant,
}

/// Within which bounds approvals are asked for, and whether somebody outside is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asking {
    /// INVARIANT (never over): so many may be pending of one person.
    pub(crate) most_of_user: usize,
    /// INVARIANT (never over): so many may be pending of one tenant.
    pub(crate) most_of_tenant: usize,
    pub(crate) tell: bool,
}

/// An edited call that is asked in the place of another.
#[derive(Debug)]
pub(crate) struct Edit {
    /// The approval that it takes the place of.
    pub(crate) id: String,
    /// Who edited it.
    pub(crate) by: Session,
    pub(crate) capacity: Capacity,
    pub(crate) approval: Approval,
    pub(crate) asking: Asking,
}

impl Asking {
    /// With room for one more of each.
    pub(super) fn and_one_more(self) -> Self {
        let Self { most_of_user, most_of_tenant, tell } = self;
        Self { most_of_user: most_of_user.saturating_add(1), most_of_tenant: most_of_tenant.saturating_add(1), tell }
    }
}

/// The records of an approval that another one takes the place of, and of that other one.
pub(crate) type Exchange = Box<dyn FnOnce(&Approval, &Approval) -> [Record; 2] + Send>;

impl Store {
    /// Asks for approval; one a call.
    pub(crate) fn propose(
        &self,
        approval: Approval,
        asking: Asking,
        record: Box<dyn FnOnce(&Approval) -> Record + Send>,
        now: Millis,
    ) -> Pending<'_, Proposed> {
        self.write_at(now, move |rows, now| transact::propose(rows, approval, asking, record, now))
    }

    /// A person's answer. A record is written only where it counts.
    pub(crate) fn decide(
        &self,
        id: String,
        answer: Answer,
        record: Box<dyn FnOnce(&Approval) -> Record + Send>,
        now: Millis,
    ) -> Pending<'_, Result<Approval, NotDecided>> {
        self.write_at(now, move |rows, now| transact::decide(rows, &id, &answer, record, now))
    }

    /// Asks for an edited call in the place of an approval. The records, of the old one and of the new one, are written
    /// only where it counts.
    pub(crate) fn edit(&self, edit: Edit, records: Exchange, now: Millis) -> Pending<'_, Result<Proposed, NotDecided>> {
        self.write_at(now, move |rows, now| transact::edit(rows, edit, records, now))
    }

    /// The newest approvals of a tenant, newest first, as many as are listed at once.
    pub(crate) fn approvals(&self, tenant: String) -> Pending<'_, Vec<Approval>> {
        self.sought(tenant, Sought::default(), Millis(0))
    }

    /// The approvals of a tenant that are sought, as they stand at `now`, newest first.
    pub(crate) fn sought(&self, tenant: String, sought: Sought, now: Millis) -> Pending<'_, Vec<Approval>> {
        self.list(move |rows| rows.approvals_of_tenant(&tenant, &sought, now))
    }

    /// The approval with this id, where it is the tenant's.
    pub(crate) fn approval(&self, id: String, tenant: String) -> Pending<'_, Option<Approval>> {
        self.list(move |rows| Ok(rows.approval(&id)?.filter(|approval| approval.tenant == tenant)))
    }
}
