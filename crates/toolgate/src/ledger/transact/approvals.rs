//! Approvals: asked for, answered, used up and given back.

use crate::approval::{Approval, ApprovalState, Capacity, Decision, NotDecided};
use crate::audit::Record;
use crate::clock::Millis;
use crate::json::Digest;
use crate::ledger::rows::{NoteKind, Rows, Stored};
use crate::ledger::transact::{append, append_all, untold};
use crate::ledger::{Asking, Edit, Entry, Full, GrantKey, Proposed};
use crate::session::Session;

pub(in crate::ledger) fn propose(
    rows: &mut dyn Rows,
    approval: Approval,
    asking: Asking,
    record: impl FnOnce(&Approval) -> Record,
    now: Millis,
) -> Stored<Proposed> {
    let approval = match standing(rows, &approval, now)? {
        Some(standing) => standing,
        None => match full(rows, &approval, asking, now)? {
            Some(full) => return Ok(Proposed::TooMany(full)),
            None => {
                ask(rows, &approval, asking)?;
                approval
            }
        },
    };
    append(rows, &record(&approval))?;
    Ok(Proposed::Pending(approval))
}

/// The pending approval of the same call, if it would grant the same today: one that was asked under other policies, or
/// for other reasons, would grant nothing.
fn standing(rows: &dyn Rows, approval: &Approval, now: Millis) -> Stored<Option<Approval>> {
    let found = rows.approvals_of_call(&GrantKey::of(approval))?.into_iter().find(|pending| {
        pending.state == ApprovalState::Pending && now < pending.expires_at && pending.asks_what(approval)
    });
    Ok(found)
}

/// Who has as many pending as they may.
fn full(rows: &dyn Rows, approval: &Approval, asking: Asking, now: Millis) -> Stored<Option<Full>> {
    let (tenant, principal) = (&approval.tenant, approval.requester.canonical());
    if rows.count_pending(tenant, &principal, now)? >= asking.most_of_user {
        return Ok(Some(Full::User));
    }
    Ok((rows.count_pending_of_tenant(tenant, now)? >= asking.most_of_tenant).then_some(Full::Tenant))
}

/// INVARIANT (told): an approval and the note that somebody outside is still to be told of it are written together.
fn ask(rows: &mut dyn Rows, approval: &Approval, asking: Asking) -> Stored<()> {
    rows.put_approval(approval)?;
    if asking.tell { rows.put_note(NoteKind::Untold, &untold::note(approval)?) } else { Ok(()) }
}

/// A person's answer to an approval.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) by: Session,
    pub(crate) capacity: Capacity,
    pub(crate) decision: Decision,
    pub(crate) granted_until: Millis,
}

pub(in crate::ledger) fn decide(
    rows: &mut dyn Rows,
    id: &str,
    answer: &Answer,
    record: impl FnOnce(&Approval) -> Record,
    now: Millis,
) -> Stored<Result<Approval, NotDecided>> {
    let Some(mut approval) = rows.approval(id)? else { return Ok(Err(NotDecided::Missing)) };
    let Answer { by, capacity, decision, granted_until } = answer;
    if let Err(reason) = approval.decide(by, *capacity, *decision, now, *granted_until) {
        return Ok(Err(reason));
    }
    rows.put_approval(&approval)?;
    append(rows, &record(&approval))?;
    Ok(Ok(approval))
}

/// Asks for an edited call in the place of an approval, which is denied with it.
pub(in crate::ledger) fn edit(
    rows: &mut dyn Rows,
    edit: Edit,
    records: impl FnOnce(&Approval, &Approval) -> [Record; 2],
    now: Millis,
) -> Stored<Result<Proposed, NotDecided>> {
    let Edit { id, by, capacity, approval, asking } = edit;
    let Some(mut old) = rows.approval(&id)? else { return Ok(Err(NotDecided::Missing)) };
    let standing = standing(rows, &approval, now)?;
    let instead = standing.as_ref().unwrap_or(&approval);
    if let Err(reason) = old.replaced(&by, capacity, &instead.id, now) {
        return Ok(Err(reason));
    }
    let new = match standing {
        Some(standing) => standing,
        // The one that closes makes room for it.
        None => match full(rows, &approval, asking.and_one_more(), now)? {
            Some(full) => return Ok(Ok(Proposed::TooMany(full))),
            None => {
                ask(rows, &approval, asking)?;
                approval
            }
        },
    };
    rows.put_approval(&old)?;
    append_all(rows, &records(&old, &new))?;
    Ok(Ok(Proposed::Pending(new)))
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
