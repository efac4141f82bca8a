//! Approvals: a person's consent to one exact call, bound to it and used up by it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::Ref;
use crate::clock::Millis;
use crate::json::Digest;
use crate::leniency::Used;
use crate::redaction::Redaction;
use crate::session::{Principal, Session};

/// A pending or decided approval of one exact call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Approval {
    /// Its name.
    pub id: String,
    /// The name of the tool.
    pub tool: String,
    /// Who asked.
    pub requester: Principal,
    /// The tenant in which it was asked.
    pub tenant: String,
    /// One line that says what would happen, rendered from the contract.
    pub preview: String,
    /// The effective arguments, with secret and personal values masked.
    pub arguments: Value,
    /// Where they are other than the model sent them, by what the contract allows by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leniencies: Vec<Used>,
    /// The digest of the exact arguments and the contract. INVARIANT (one approval, one action): only a call with this
    /// digest can use it.
    pub call_digest: Digest,
    /// The digest of the policies that judged the call; other policies void the approval.
    pub slice: Digest,
    /// Why it is asked, each with whoever may answer.
    pub reasons: Vec<Reason>,
    /// How far it is.
    pub state: ApprovalState,
    /// When it was asked.
    pub created_at: Millis,
    /// INVARIANT (exclusive expiry): from this moment on it can neither be decided nor used.
    pub expires_at: Millis,
}

/// One rule that asks for consent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The id of the rule.
    pub rule: String,
    /// What the rule tells the approver.
    pub message: String,
    /// Who may answer.
    pub approvers: Approvers,
    /// Who did, with the roles that they had then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<Approver>,
}

/// Who may answer a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Approvers {
    /// The requester's own confirmation, given through the host and never by the model.
    Requester,
    /// Another person of the tenant who has this role.
    Role(String),
}

/// Who approved, and with which standing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approver {
    /// The person.
    pub principal: Principal,
    /// The roles of the person when they approved.
    pub roles: Vec<String>,
}

/// How far an approval is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Waiting for somebody.
    Pending,
    /// All reasons are satisfied; the next equal call uses it up.
    Granted,
    /// Somebody said no.
    Denied,
    /// A call has used it up.
    Used {
        /// The attempt that used it.
        by: Ref,
    },
}

/// A person's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes to everything that this person may answer.
    Approve,
    /// No.
    Deny,
}

/// Why a person's answer does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDecided {
    /// There is no such approval in the approver's tenant.
    #[error("there is no approval of this id")]
    Missing,
    /// It is not pending any more.
    #[error("the approval is already {0}")]
    Closed(&'static str),
    /// It expired.
    #[error("the approval has expired; the same call asks for a new one")]
    Expired,
    /// This person may not answer it.
    #[error("this needs {0}")]
    NotYours(String),
    /// The store failed.
    #[error("the store failed, so nothing was decided")]
    Store,
}

impl Approval {
    /// The same, without what looks like a secret in it: it is kept, and shown to whoever may answer.
    pub(crate) fn redacted(mut self, redaction: &Redaction) -> Self {
        self.preview = redaction.text(&self.preview).into_owned();
        redaction.scrub(&mut self.arguments);
        self
    }

    /// The name of the state at `now`, expiry included.
    pub fn state_at(&self, now: Millis) -> &'static str {
        match &self.state {
            ApprovalState::Pending | ApprovalState::Granted if self.expires_at <= now => "expired",
            ApprovalState::Pending => "pending",
            ApprovalState::Granted => "granted",
            ApprovalState::Denied => "denied",
            ApprovalState::Used { .. } => "used",
        }
    }

    /// Whether this asks the same as `other`, under the same policies.
    pub(crate) fn asks_what(&self, other: &Self) -> bool {
        let asked = |approval: &Self| -> Vec<(String, Approvers)> {
            approval.reasons.iter().map(|reason| (reason.rule.clone(), reason.approvers.clone())).collect()
        };
        self.slice == other.slice && asked(self) == asked(other)
    }

    /// Takes a person's answer. The grant exists when every reason has its approver; `granted_until` is then its end.
    pub(crate) fn decide(
        &mut self,
        by: &Session,
        decision: Decision,
        now: Millis,
        granted_until: Millis,
    ) -> Result<(), NotDecided> {
        if by.tenant() != self.tenant {
            return Err(NotDecided::Missing);
        }
        match self.state {
            ApprovalState::Pending => {}
            ApprovalState::Granted => return Err(NotDecided::Closed("granted")),
            ApprovalState::Denied => return Err(NotDecided::Closed("denied")),
            ApprovalState::Used { .. } => return Err(NotDecided::Closed("used")),
        }
        if self.expires_at <= now {
            return Err(NotDecided::Expired);
        }
        let requester = &self.requester;
        let may =
            |reason: &Reason| reason.approvers.include(by.principal(), requester, |role| by.roles().contains(role));
        if !self.reasons.iter().any(|reason| reason.approved_by.is_none() && may(reason)) {
            return Err(NotDecided::NotYours(self.who_is_missing()));
        }
        match decision {
            Decision::Deny => self.state = ApprovalState::Denied,
            Decision::Approve => {
                let approver =
                    Approver { principal: by.principal().clone(), roles: by.roles().iter().cloned().collect() };
                for reason in &mut self.reasons {
                    let fits =
                        reason.approvers.include(by.principal(), &self.requester, |role| by.roles().contains(role));
                    if reason.approved_by.is_none() && fits {
                        reason.approved_by = Some(approver.clone());
                    }
                }
                if self.reasons.iter().all(|reason| reason.approved_by.is_some()) {
                    self.state = ApprovalState::Granted;
                    self.expires_at = granted_until;
                }
            }
        }
        Ok(())
    }

    /// Who must still answer, in words.
    pub fn who_is_missing(&self) -> String {
        let mut missing: Vec<String> =
            self.reasons.iter().filter(|reason| reason.approved_by.is_none()).map(|r| r.approvers.in_words()).collect();
        missing.sort();
        missing.dedup();
        missing.join(" and ")
    }
}

impl Approvers {
    /// Whether `person` may answer what `requester` asked; `has` tells the person's roles.
    pub(crate) fn include(&self, person: &Principal, requester: &Principal, has: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Requester => person == requester,
            Self::Role(role) => person != requester && has(role),
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Requester => "the requester's own confirmation".into(),
            Self::Role(role) => format!("another person with the role {role}"),
        }
    }
}

impl From<String> for Approvers {
    fn from(name: String) -> Self {
        if name == "self" { Self::Requester } else { Self::Role(name) }
    }
}

impl From<Approvers> for String {
    fn from(approvers: Approvers) -> Self {
        match approvers {
            Approvers::Requester => "self".into(),
            Approvers::Role(role) => role,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;

    const HOUR: Millis = Millis(3_600_000);

    fn person(name: &str, roles: &[&str]) -> Session {
        roles.iter().fold(Session::new(Principal::new("local", name), "acme"), |session, role| session.role(*role))
    }

    fn asked(approvers: &[Approvers]) -> Approval {
        Approval {
            id: "ap_1".into(),
            tool: "create_refund".into(),
            requester: Principal::new("local", "alice"),
            tenant: "acme".into(),
            preview: String::new(),
            arguments: Value::Null,
            leniencies: Vec::new(),
            call_digest: Digest::of(b"call"),
            slice: Digest::of(b"slice"),
            reasons: approvers
                .iter()
                .map(|who| Reason {
                    rule: "r".into(),
                    message: String::new(),
                    approvers: who.clone(),
                    approved_by: None,
                })
                .collect(),
            state: ApprovalState::Pending,
            created_at: Millis(0),
            expires_at: HOUR,
        }
    }

    fn manager() -> Approvers {
        Approvers::Role("manager".into())
    }

    #[test]
    fn nobody_approves_their_own_call() {
        let mut approval = asked(&[manager()]);
        let alice = person("alice", &["support", "manager"]);
        let said = approval.decide(&alice, Decision::Approve, Millis(1), HOUR);
        assert!(matches!(said, Err(NotDecided::NotYours(_))));
        assert_eq!(approval.state, ApprovalState::Pending);
    }

    #[test]
    fn another_person_with_the_role_grants_it() {
        let mut approval = asked(&[manager()]);
        approval.decide(&person("mia", &["manager"]), Decision::Approve, Millis(1), Millis(99)).unwrap();
        assert_eq!(approval.state, ApprovalState::Granted);
        assert_eq!(approval.expires_at, Millis(99));
    }

    #[test]
    fn a_grant_exists_only_when_every_reason_has_its_approver() {
        let mut approval = asked(&[manager(), Approvers::Requester]);
        approval.decide(&person("mia", &["manager"]), Decision::Approve, Millis(1), HOUR).unwrap();
        assert_eq!(approval.state, ApprovalState::Pending);
        assert_eq!(approval.who_is_missing(), "the requester's own confirmation");
        approval.decide(&person("alice", &[]), Decision::Approve, Millis(2), HOUR).unwrap();
        assert_eq!(approval.state, ApprovalState::Granted);
    }

    #[test]
    fn a_stranger_of_another_tenant_does_not_learn_that_it_exists() {
        let mut approval = asked(&[manager()]);
        let stranger = Session::new(Principal::new("local", "bob"), "globex").role("manager");
        assert_eq!(approval.decide(&stranger, Decision::Approve, Millis(1), HOUR), Err(NotDecided::Missing));
    }

    #[test]
    fn it_cannot_be_decided_twice_nor_from_its_expiry_on() {
        let mut approval = asked(&[manager()]);
        let mia = person("mia", &["manager"]);
        assert_eq!(approval.decide(&mia, Decision::Approve, HOUR, HOUR), Err(NotDecided::Expired));
        approval.decide(&mia, Decision::Deny, Millis(1), HOUR).unwrap();
        assert_eq!(approval.decide(&mia, Decision::Approve, Millis(2), HOUR), Err(NotDecided::Closed("denied")));
    }
}
