//! Approvals: asked for, answered, used up and given back.

use crate::approval::{Approval, ApprovalState, Decision, NotDecided};
use crate::audit::Record;
use crate::clock::Millis;
use crate::json::Digest;
use crate::ledger::rows::{Rows, Stored};
use crate::ledger::transact::append;
use crate::ledger::{Entry, GrantKey, Proposed};
use crate::session::Session;

pub(in crate::ledger) fn propose(
    rows: &mut dyn Rows,
    approval: Approval,
    cap: usize,
    record: impl FnOnce(&Approval) -> Record,
    now: Millis,
) -> Stored<Proposed> {
    let call = GrantKey::of(&approval);
    // One that was asked under other policies, or for other reasons, would grant nothing today.
    let standing = rows.approvals_of_call(&call)?.into_iter().find(|pending| {
        pending.state == ApprovalState::Pending && now < pending.expires_at && pending.asks_what(&approval)
    });
    let approval = match standing {
        Some(standing) => standing,
        None if rows.count_pending(&call.tenant, &call.principal, now)? >= cap => return Ok(Proposed::TooMany),
        None => {
            rows.put_approval(&approval)?;
            approval
        }
    };
    append(rows, &record(&approval))?;
    Ok(Proposed::Pending(approval))
}

/// A person's answer to an approval.
pub(in crate::ledger) struct Answer {
    pub(in crate::ledger) by: Session,
    pub(in crate::ledger) decision: Decision,
    pub(in crate::ledger) granted_until: Millis,
}

pub(in crate::ledger) fn decide(
    rows: &mut dyn Rows,
    id: &str,
    answer: &Answer,
    record: impl FnOnce(&Approval) -> Record,
    now: Millis,
) -> Stored<Result<Approval, NotDecided>> {
    let Some(mut approval) = rows.approval(id)? else { return Ok(Err(NotDecided::Missing)) };
    if let Err(reason) = approval.decide(&answer.by, answer.decision, now, answer.granted_until) {
        return Ok(Err(reason));
    }
    rows.put_approval(&approval)?;
    append(rows, &record(&approval))?;
    Ok(Ok(approval))
}

/// Of approvals that come newest first, the one to go by: a granted one before a pending one.
pub(super) fn newest(approvals: Vec<Approval>, now: Millis) -> Option<Approval> {
    let mut pending = None;
    for approval in approvals.into_iter().filter(|approval| now < approval.expires_at) {
        match approval.state {
            ApprovalState::Granted => return Some(approval),
            ApprovalState::Pending => pending = pending.or(Some(approval)),
            ApprovalState::Denied | ApprovalState::Used { .. } => {}
        }
    }
    pending
}

/// The approval, if it can be used now under policies of this digest.
pub(super) fn usable(rows: &dyn Rows, id: &str, slice: Digest, now: Millis) -> Stored<Option<Approval>> {
    let approval = rows.approval(id)?;
    Ok(approval.filter(|approval| {
        approval.state == ApprovalState::Granted && now < approval.expires_at && approval.slice == slice
    }))
}

pub(super) fn return_grant(rows: &mut dyn Rows, entry: &Entry) -> Stored<()> {
    let Some(id) = &entry.action.grant else { return Ok(()) };
    match rows.approval(id)? {
        Some(approval) if matches!(approval.state, ApprovalState::Used { .. }) => {
            rows.put_approval(&Approval { state: ApprovalState::Granted, ..approval })
        }
        Some(_) | None => Ok(()),
    }
}

impl GrantKey {
    /// Whose approval of which call this is.
    pub(in crate::ledger) fn of(approval: &Approval) -> Self {
        Self {
            tenant: approval.tenant.clone(),
            principal: approval.requester.canonical(),
            call_digest: approval.call_digest,
        }
    }
}
