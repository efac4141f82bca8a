//! Consent: whether somebody has given it to this call, and what is asked where nobody has.

use serde_json::{Value, json};

use super::{Permit, Verdict};
use crate::approval::{Approval, ApprovalState, Approver, Approvers, Asked, Reason};
use crate::call::Ref;
use crate::json::Digest;
use crate::ledger::Drawing;
use crate::policy::NeedReason;
use crate::refusal::Code;
use crate::session::{Principal, Session};
use crate::stage::Halt;
use crate::stage::inform::Informed;
use crate::trace::Learned;

/// The consent of other people that a call uses.
#[derive(Debug)]
pub(super) struct Consent {
    /// The approval that it uses up, with the digest of the policies that it was given under.
    pub(super) exact: Option<(String, Digest)>,
    pub(super) standing: Vec<Used>,
}

/// A standing grant that covers a reason.
#[derive(Debug)]
pub(super) struct Used {
    pub(super) drawing: Drawing,
    rule: String,
    given_by: Principal,
}

impl Consent {
    /// Adds what the record tells of it.
    pub(super) fn learned(&self, learned: Learned) -> Learned {
        let learned = match &self.exact {
            Some((approval, _)) => learned.with("approval", approval.as_str()),
            None => learned,
        };
        match self.standing.is_empty() {
            true => learned,
            false => learned.with("standing", self.standing.iter().map(Used::told).collect::<Vec<Value>>()),
        }
    }
}

impl Used {
    fn told(&self) -> Value {
        json!({ "id": self.drawing.id, "rule": self.rule, "given_by": self.given_by })
    }
}

impl Permit {
    /// The consent to this call: for each reason of today the approval of this exact call, else a standing grant with
    /// room, under today's policies and today's roles. Where a reason has neither: those that no standing grant covers,
    /// of which a person is to be asked.
    pub(super) fn consent(&self, informed: &Informed, reasons: Vec<NeedReason>) -> Result<Consent, Vec<NeedReason>> {
        let grant = self.exact(informed);
        let requester = informed.admitted().session().principal();
        let (mut used_up, mut standing, mut missing) = (false, Vec::new(), false);
        let mut uncovered = Vec::new();
        for reason in reasons {
            let given = |grant: &&Approval| {
                grant.reasons.iter().any(|given| self.satisfies(given, &reason, requester, &grant.tenant))
            };
            let exact = grant.filter(given).is_some();
            let covers = self.covers(informed, &reason);
            used_up |= exact;
            missing |= !exact && covers.is_none();
            match covers {
                Some(used) if !exact => standing.push(used),
                Some(_) => {}
                None => uncovered.push(reason),
            }
        }
        if missing {
            return Err(uncovered);
        }
        let slice = self.policies.slice_digest(&informed.admitted().tool().contract.name);
        Ok(Consent { exact: grant.filter(|_| used_up).map(|grant| (grant.id.clone(), slice)), standing })
    }

    /// The approval of this exact call, as far as it can be used at all.
    fn exact<'i>(&self, informed: &'i Informed) -> Option<&'i Approval> {
        let admitted = informed.admitted();
        informed.approval().filter(|grant| {
            grant.state == ApprovalState::Granted
                && grant.call_digest == admitted.call_digest()
                && grant.slice == self.policies.slice_digest(&admitted.tool().contract.name)
                && self.clock.now() < grant.expires_at
        })
    }

    /// The first standing grant that satisfies this reason of the call and has room for it.
    fn covers(&self, informed: &Informed, reason: &NeedReason) -> Option<Used> {
        let admitted = informed.admitted();
        let (contract, session) = (&admitted.tool().contract, admitted.session());
        let slice = self.policies.slice_digest(&contract.name);
        informed.standing().iter().find_map(|(grant, left)| {
            let amount = grant.amount(admitted.arguments())?;
            let good = grant.rule == reason.rule
                && grant.tool == contract.name
                && grant.tenant == session.tenant()
                && grant.to == *session.principal()
                && grant.slice == slice
                && grant.contract == contract.digest
                && self.clock.now() < grant.expires_at
                && left.has_room(amount)
                // Nobody confirms beforehand what they will ask for themselves.
                && matches!(&reason.approvers, Approvers::Role(_))
                && self.may_still_answer(&grant.given_by, reason, session.principal(), &grant.tenant);
            let drawing = Drawing { id: grant.id.clone(), slice, contract: contract.digest, amount };
            good.then(|| Used { drawing, rule: grant.rule.clone(), given_by: grant.given_by.principal.clone() })
        })
    }

    /// Whether an answer that was given still counts: for the same rule, by somebody who may still answer it.
    fn satisfies(&self, given: &Reason, asked: &NeedReason, requester: &Principal, tenant: &str) -> bool {
        let approver = given.approved_by.as_ref().filter(|_| given.rule == asked.rule);
        approver.is_some_and(|approver| self.may_still_answer(approver, asked, requester, tenant))
    }

    /// Whether somebody who gave consent could give it today.
    fn may_still_answer(&self, approver: &Approver, asked: &NeedReason, requester: &Principal, tenant: &str) -> bool {
        asked.approvers.include(&approver.principal, requester, |role| self.has_role(approver, role, tenant))
    }

    /// The requester as they stand today: with the roles that the source of people lists, else with those that they had
    /// when they asked.
    pub(crate) fn requester_today(&self, approval: &Approval) -> Session {
        let Approval { requester, tenant, asked, .. } = approval;
        let today = self.standing.as_ref().and_then(|source| source.roles(requester, tenant));
        let session = Session::new(requester.clone(), tenant.as_str()).in_run(asked.run.as_str());
        today.unwrap_or_else(|| asked.roles.clone()).into_iter().fold(session, Session::role)
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
            worded: contract.preview.is_some(),
            arguments: contract.input.masked(&(**admitted.arguments()).clone().into()),
            leniencies: admitted.leniencies().to_vec(),
            call_digest: admitted.call_digest(),
            told_digest: None,
            slice: self.policies.slice_digest(&contract.name),
            reasons: reasons
                .into_iter()
                .map(|NeedReason { rule, message, approvers }| Reason { rule, message, approvers, approved_by: None })
                .collect(),
            state: ApprovalState::Pending,
            created_at: now,
            expires_at: now.after(self.asked_for),
            asked: Asked { run: session.run().to_owned(), roles: session.roles().clone() },
            edited: None,
            instead: None,
        };
        let rules: Vec<&str> = approval.reasons.iter().map(|reason| reason.rule.as_str()).collect();
        let why = format!("asked by {}", rules.join(", "));
        Verdict::No { halt: Halt::Pending(Box::new(approval)), code: Code::ApprovalRequired, why, erring: Vec::new() }
    }
}
