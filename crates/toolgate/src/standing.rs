//! Standing grants: consent that a person gave beforehand to a bounded set of another person's calls.
//!
//! An approval is for one exact call. A standing grant is for one rule of one tool, for one person, for a while, and for
//! no more calls, or no larger sum, than it says. Each use is taken of it like of a limit.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::approval::Approver;
use crate::clock::Millis;
use crate::json::{Digest, canonical};
use crate::session::{Principal, Session};
use crate::template::at_pointer;

/// What is asked for: consent to the calls of one person that one rule would hold up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granting {
    /// The name of the tool.
    pub tool: String,
    /// The id of the rule that asks for consent.
    pub rule: String,
    /// Whose calls, in the tenant of whoever grants.
    pub to: Principal,
    /// How many calls at most.
    pub calls: Option<u64>,
    /// How much at most, of all calls together.
    pub sum: Option<u64>,
    /// The argument that is summed, as a JSON pointer; the one that the tool's limits sum where nothing is said.
    pub of: Option<String>,
    /// How long, at most 30 days.
    pub lasts: Duration,
}

/// Consent that somebody gave beforehand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StandingGrant {
    /// Its name.
    pub id: String,
    /// The name of the tool.
    pub tool: String,
    /// The id of the rule that it satisfies, and of no other.
    pub rule: String,
    /// The role with which the rule is answered.
    pub role: String,
    /// The tenant in which it holds.
    pub tenant: String,
    /// Whose calls it covers.
    pub to: Principal,
    /// Who gave it, with the roles that they had then.
    pub given_by: Approver,
    /// How much it covers.
    #[serde(flatten)]
    pub bounds: Bounds,
    /// The digest of the policies that it was given under; other policies void it.
    pub slice: Digest,
    /// The digest of the contract that it was given for; another contract voids it.
    pub contract: Digest,
    /// When it was given.
    pub created_at: Millis,
    /// INVARIANT (exclusive expiry): from this moment on it covers nothing.
    pub expires_at: Millis,
}

/// How much a standing grant covers. INVARIANT (bounded): at least one of the two is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// How many calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// How much of an argument, of all calls together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<Sum>,
}

/// A bound on what calls take together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// The argument that is summed, as a JSON pointer.
    pub of: String,
    /// How much of it.
    pub max: u64,
}

/// What is left of a standing grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Calls; `None` where they are not counted.
    pub calls: Option<u64>,
    /// Of the sum; `None` where nothing is summed.
    pub sum: Option<u64>,
}

/// A standing grant as it stands now.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The grant.
    pub grant: StandingGrant,
    /// What is left of it.
    pub left: Left,
    /// Whether it covers anything.
    pub state: StandingState,
}

/// Whether a standing grant covers anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandingState {
    /// It does.
    Active,
    /// Nothing is left of it.
    UsedUp,
    /// Its time is over.
    Expired,
    /// The policies of the tool are others than those it was given under.
    OtherPolicies,
    /// The contract of the tool is another than the one it was given for.
    OtherContract,
    /// Whoever gave it may not give it any more.
    GiverWithoutRole,
    /// It was taken back.
    Revoked,
}

/// Why a standing grant was not given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NotGranted {
    /// What kind of reason it is.
    pub why: Refused,
    message: String,
    hint: Option<String>,
}

/// The kinds of reasons for which no standing grant is given or revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// What was asked for cannot be.
    Unfit,
    /// This person may not give it, or not to this one.
    NotYours,
    /// There is no such grant in the tenant.
    Missing,
    /// There are too many already.
    TooMany,
    /// The store failed.
    Store,
}

/// The longest that consent is given beforehand.
pub const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The most that can be counted.
pub const MOST: u64 = i64::MAX.unsigned_abs();

impl NotGranted {
    pub(crate) fn new(why: Refused, message: impl Into<String>) -> Self {
        Self { why, message: message.into(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<Option<String>>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// What to do about it.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(crate) fn missing() -> Self {
        Self::new(Refused::Missing, "there is no standing grant of this id")
    }

    pub(crate) fn store() -> Self {
        Self::new(Refused::Store, "the store failed, so nothing was decided")
    }
}

impl StandingGrant {
    /// What a call with these arguments takes of the sum; 0 where nothing is summed. `None`: it cannot be told, so the
    /// grant does not cover the call.
    pub(crate) fn amount(&self, arguments: &Map<String, Value>) -> Option<u64> {
        let Some(sum) = &self.bounds.sum else { return Some(0) };
        // Read as a limit reads it. But where a limit takes nothing of an absent argument, consent to a sum is no consent to
        // a call that does not say how much.
        at_pointer(arguments, &sum.of).and_then(|value| canonical(value).parse().ok())
    }

    /// Whether `by` may take it back: whoever gave it, and everybody else who could have.
    pub(crate) fn is_revoked_by(&self, by: &Session) -> bool {
        by.principal() == &self.given_by.principal || (by.principal() != &self.to && by.roles().contains(&self.role))
    }
}

impl Left {
    /// Whether a call that takes `amount` of the sum has room.
    pub(crate) fn has_room(self, amount: u64) -> bool {
        self.calls.is_none_or(|calls| calls > 0) && self.sum.is_none_or(|sum| amount <= sum)
    }

    /// Whether no call has room that takes anything.
    pub(crate) fn is_nothing(self) -> bool {
        self.calls == Some(0) || self.sum == Some(0)
    }
}

impl Standing {
    /// The same, in another state where it is active.
    pub(crate) fn but(self, state: StandingState) -> Self {
        match self.state {
            StandingState::Active => Self { state, ..self },
            StandingState::UsedUp
            | StandingState::Expired
            | StandingState::OtherPolicies
            | StandingState::OtherContract
            | StandingState::GiverWithoutRole
            | StandingState::Revoked => self,
        }
    }
}

impl StandingState {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::UsedUp => "used_up",
            Self::Expired => "expired",
            Self::OtherPolicies => "other_policies",
            Self::OtherContract => "other_contract",
            Self::GiverWithoutRole => "giver_without_role",
            Self::Revoked => "revoked",
        }
    }
}
