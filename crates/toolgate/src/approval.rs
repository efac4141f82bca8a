//! Approvals: a person's consent to one exact call, bound to it and used up by it.

mod sought;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::Ref;
use crate::clock::Millis;
use crate::json::Digest;
use crate::leniency::Used;
use crate::redaction::Redaction;
use crate::session::{Principal, Session};

pub use sought::{LISTED, Sought, Status};

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
    /// Whether the contract has words for the preview; else it holds the arguments.
    #[serde(default)]
    pub worded: bool,
    /// The effective arguments, with secret and personal values masked.
    pub arguments: Value,
    /// Where they are other than the model sent them, by what the contract allows by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leniencies: Vec<Used>,
    /// The digest of the exact arguments and the contract. INVARIANT (one approval, one action): only a call with this
    /// digest can use it.
    pub call_digest: Digest,
    /// The digest of the call as it stands on the record, which is what people are shown. INVARIANT (no plain digest of what
    /// is hidden): it is keyed where the tool marks anything, so that nobody tries values until a digest fits. Nothing
    /// where it was asked before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_digest: Option<Digest>,
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
    /// In whose standing it was asked: what an edited call is judged in.
    #[serde(default)]
    pub asked: Asked,
    /// Where the arguments come from, if they are not the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Edited>,
    /// The approval of the edited call that stands in the place of this one, which was denied with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// What is kept of the session that asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The run in which it was asked.
    pub run: String,
    /// The roles that the requester had then.
    pub roles: BTreeSet<String>,
}

/// That somebody who may answer an approval wrote other arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edited {
    /// The id of the approval whose arguments these were.
    pub of: String,
    /// Who wrote them.
    pub by: Principal,
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

/// In which capacity somebody answers. A door lets a person answer as what their credential is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Capacity {
    /// As whatever they are.
    #[default]
    Any,
    /// As the requester, who confirms their own call; what needs a role is left open.
    Requester,
    /// As somebody with a role, who answers what others ask.
    Approver,
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
    pub(crate) fn redacted(mut self, redaction: &Redaction, told_digest: Option<Digest>) -> Self {
        self.told_digest = told_digest;
        self.preview = redaction.text(&self.preview).into_owned();
        redaction.scrub(&mut self.arguments);
        self
    }

    /// The name of the state at `now`, expiry included.
    pub fn state_at(&self, now: Millis) -> &'static str {
        self.status_at(now).as_str()
    }

    /// Whether this asks the same as `other`, under the same policies.
    pub(crate) fn asks_what(&self, other: &Self) -> bool {
        let asked = |approval: &Self| -> Vec<(String, Approvers)> {
            approval.reasons.iter().map(|reason| (reason.rule.clone(), reason.approvers.clone())).collect()
        };
        self.slice == other.slice && asked(self) == asked(other)
    }

    /// Whether this person can answer at `now`, in this capacity.
    pub(crate) fn is_open_to(&self, by: &Session, capacity: Capacity, now: Millis) -> Result<(), NotDecided> {
        if by.tenant() != self.tenant {
            return Err(NotDecided::Missing);
        }
        if by.has_ended(now) {
            return Err(NotDecided::NotYours("a sign-in that has not ended".into()));
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
        match self.reasons.iter().any(|reason| self.may_answer(reason, by, capacity)) {
            true => Ok(()),
            false => Err(NotDecided::NotYours(self.who_is_missing())),
        }
    }

    fn may_answer(&self, reason: &Reason, by: &Session, capacity: Capacity) -> bool {
        let fits = match (capacity, &reason.approvers) {
            (Capacity::Any, Approvers::Requester | Approvers::Role(_))
            | (Capacity::Requester, Approvers::Requester)
            | (Capacity::Approver, Approvers::Role(_)) => true,
            (Capacity::Requester, Approvers::Role(_)) | (Capacity::Approver, Approvers::Requester) => false,
        };
        let has = |role: &str| by.roles().contains(role);
        fits && reason.approved_by.is_none() && reason.approvers.include(by.principal(), &self.requester, has)
    }

    /// Takes a person's answer. The grant exists when every reason has its approver; `granted_until` is then its end.
    pub(crate) fn decide(
        &mut self,
        by: &Session,
        capacity: Capacity,
        decision: Decision,
        now: Millis,
        granted_until: Millis,
    ) -> Result<(), NotDecided> {
        self.is_open_to(by, capacity, now)?;
        match decision {
            Decision::Deny => self.state = ApprovalState::Denied,
            Decision::Approve => {
                let roles = by.roles().iter().cloned().collect();
                let approver = Approver { principal: by.principal().clone(), roles };
                let answered: Vec<bool> =
                    self.reasons.iter().map(|reason| self.may_answer(reason, by, capacity)).collect();
                for (reason, _) in self.reasons.iter_mut().zip(answered).filter(|(_, answered)| *answered) {
                    reason.approved_by = Some(approver.clone());
                }
                if self.reasons.iter().all(|reason| reason.approved_by.is_some()) {
                    self.state = ApprovalState::Granted;
                    self.expires_at = granted_until;
                }
            }
        }
        Ok(())
    }

    /// Denies it, because the call of another approval is asked instead.
    pub(crate) fn replaced(
        &mut self,
        by: &Session,
        capacity: Capacity,
        instead: &str,
        now: Millis,
    ) -> Result<(), NotDecided> {
        self.is_open_to(by, capacity, now)?;
        self.state = ApprovalState::Denied;
        self.instead = Some(instead.to_owned());
        Ok(())
    }

    /// Whether nothing is missing but the requester's own yes.
    pub fn waits_for_requester_alone(&self) -> bool {
        let mut missing = self.reasons.iter().filter(|reason| reason.approved_by.is_none()).peekable();
        missing.peek().is_some() && missing.all(|reason| reason.approvers == Approvers::Requester)
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
            worded: false,
            arguments: Value::Null,
            leniencies: Vec::new(),
            call_digest: Digest::of(b"call"),
            told_digest: None,
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
            asked: Asked::default(),
            edited: None,
            instead: None,
        }
    }

    fn manager() -> Approvers {
        Approvers::Role("manager".into())
    }

    #[test]
    fn nobody_approves_their_own_call() {
        let mut approval = asked(&[manager()]);
        let alice = person("alice", &["support", "manager"]);
        let said = approval.decide(&alice, Capacity::Any, Decision::Approve, Millis(1), HOUR);
        assert!(matches!(said, Err(NotDecided::NotYours(_))));
        assert_eq!(approval.state, ApprovalState::Pending);
    }

    #[test]
    fn another_person_with_the_role_grants_it() {
        let mut approval = asked(&[manager()]);
        approval.decide(&person("mia", &["manager"]), Capacity::Any, Decision::Approve, Millis(1), Millis(99)).unwrap();
        assert_eq!(approval.state, ApprovalState::Granted);
        assert_eq!(approval.expires_at, Millis(99));
    }

    #[test]
    fn a_grant_exists_only_when_every_reason_has_its_approver() {
        let mut approval = asked(&[manager(), Approvers::Requester]);
        approval.decide(&person("mia", &["manager"]), Capacity::Any, Decision::Approve, Millis(1), HOUR).unwrap();
        assert_eq!(approval.state, ApprovalState::Pending);
        assert_eq!(approval.who_is_missing(), "the requester's own confirmation");
        approval.decide(&person("alice", &[]), Capacity::Any, Decision::Approve, Millis(2), HOUR).unwrap();
        assert_eq!(approval.state, ApprovalState::Granted);
    }

    #[test]
    fn a_stranger_of_another_tenant_does_not_learn_that_it_exists() {
        let mut approval = asked(&[manager()]);
        let stranger = Session::new(Principal::new("local", "bob"), "globex").role("manager");
        assert_eq!(
            approval.decide(&stranger, Capacity::Any, Decision::Approve, Millis(1), HOUR),
            Err(NotDecided::Missing)
        );
    }

    #[test]
    fn it_cannot_be_decided_twice_nor_from_its_expiry_on() {
        let mut approval = asked(&[manager()]);
        let mia = person("mia", &["manager"]);
        assert_eq!(approval.decide(&mia, Capacity::Any, Decision::Approve, HOUR, HOUR), Err(NotDecided::Expired));
        approval.decide(&mia, Capacity::Any, Decision::Deny, Millis(1), HOUR).unwrap();
        assert_eq!(
            approval.decide(&mia, Capacity::Any, Decision::Approve, Millis(2), HOUR),
            Err(NotDecided::Closed("denied"))
        );
    }
}
