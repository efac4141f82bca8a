//! Consent: whether somebody has given it to this call, and what is asked where nobody has.

use super::{Permit, Verdict};
use crate::approval::{Approval, ApprovalState, Reason};
use crate::call::Ref;
use crate::json::Digest;
use crate::policy::NeedReason;
use crate::refusal::Code;
use crate::session::Principal;
use crate::stage::Halt;
use crate::stage::inform::Informed;

impl Permit {
    /// The grant of this call, if it satisfies every reason of today under today's policies and today's roles.
    pub(super) fn consent(&self, informed: &Informed, reasons: &[NeedReason]) -> Option<(String, Digest)> {
        let grant = informed.approval().filter(|approval| approval.state == ApprovalState::Granted)?;
        let admitted = informed.admitted();
        let slice = self.policies.slice_digest(&admitted.tool().contract.name);
        let requester = admitted.session().principal();
        let good = grant.call_digest == admitted.call_digest()
            && grant.slice == slice
            && self.clock.now() < grant.expires_at
            && reasons.iter().all(|reason| {
                grant.reasons.iter().any(|given| self.satisfies(given, reason, requester, &grant.tenant))
            });
        good.then(|| (grant.id.clone(), slice))
    }

    /// Whether an answer that was given still counts: for the same rule, by somebody who may still answer it.
    fn satisfies(&self, given: &Reason, asked: &NeedReason, requester: &Principal, tenant: &str) -> bool {
        let Some(approver) = given.approved_by.as_ref().filter(|_| given.rule == asked.rule) else { return false };
        let today = self.standing.as_ref().and_then(|source| source.roles(&approver.principal, tenant));
        asked.approvers.include(&approver.principal, requester, |role| match &today {
            Some(roles) => roles.contains(role),
            None => approver.roles.iter().any(|had| had == role),
        })
    }

    /// What a person is asked.
    pub(super) fn ask_for(&self, informed: &Informed, reasons: Vec<NeedReason>) -> Verdict {
        let admitted = informed.admitted();
        let (contract, session) = (&admitted.tool().contract, admitted.session());
        let now = self.clock.now();
        let approval = Approval {
            id: format!("apr_{}", Ref::fresh()),
            tool: contract.name.clone(),
            requester: session.principal().clone(),
            tenant: session.tenant().to_owned(),
            preview: informed.preview(),
            arguments: contract.input.masked(&(**admitted.arguments()).clone().into()),
            leniencies: admitted.leniencies().to_vec(),
            call_digest: admitted.call_digest(),
            slice: self.policies.slice_digest(&contract.name),
            reasons: reasons
                .into_iter()
                .map(|NeedReason { rule, message, approvers }| Reason { rule, message, approvers, approved_by: None })
                .collect(),
            state: ApprovalState::Pending,
            created_at: now,
            expires_at: now.after(self.asked_for),
        };
        let rules: Vec<&str> = approval.reasons.iter().map(|reason| reason.rule.as_str()).collect();
        let why = format!("asked by {}", rules.join(", "));
        Verdict::No { halt: Halt::Pending(Box::new(approval)), code: Code::ApprovalRequired, why, erring: Vec::new() }
    }
}
