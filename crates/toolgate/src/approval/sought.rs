//! Which approvals somebody wants to see. A store looks for them: what waits is found however much was asked since.

use super::{Approval, ApprovalState};
use crate::clock::Millis;
use crate::session::Principal;

/// Which approvals of a tenant are sought.
///
/// ```
/// use toolgate::approval::{Sought, Status};
/// use toolgate::session::Principal;
///
/// let own = Sought::of(Status::Pending).by(Principal::new("local", "alice"));
/// assert_eq!(own.status, Some(Status::Pending));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sought {
    /// Those in this state alone.
    pub status: Option<Status>,
    /// What this person asked alone.
    pub requester: Option<Principal>,
    /// The newest so many of them, [`LISTED`] where nothing else is said.
    pub most: usize,
}

/// How far an approval is at a moment, expiry included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Somebody is waited for.
    Pending,
    /// The next equal call uses it up.
    Granted,
    /// Somebody said no.
    Denied,
    /// A call has used it up.
    Used,
    /// Its time was over before it was answered or used.
    Expired,
}

/// How many are listed at once: each holds the arguments of a call.
pub const LISTED: usize = 1000;

impl Sought {
    /// Those that are so far.
    pub fn of(status: Status) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// Of them, what this person asked.
    #[must_use]
    pub fn by(self, requester: Principal) -> Self {
        Self { requester: Some(requester), ..self }
    }

    /// Of them, the newest so many.
    #[must_use]
    pub fn most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    pub(crate) fn fits(&self, approval: &Approval, now: Millis) -> bool {
        self.status.is_none_or(|status| approval.status_at(now) == status)
            && self.requester.as_ref().is_none_or(|requester| approval.requester == *requester)
    }
}

impl Default for Sought {
    fn default() -> Self {
        Self { status: None, requester: None, most: LISTED }
    }
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Granted, Self::Denied, Self::Used, Self::Expired];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Granted => "granted",
            Self::Denied => "denied",
            Self::Used => "used",
            Self::Expired => "expired",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

impl Approval {
    /// How far it is at `now`, expiry included.
    pub fn status_at(&self, now: Millis) -> Status {
        match &self.state {
            ApprovalState::Pending | ApprovalState::Granted if self.expires_at <= now => Status::Expired,
            ApprovalState::Pending => Status::Pending,
            ApprovalState::Granted => Status::Granted,
            ApprovalState::Denied => Status::Denied,
            ApprovalState::Used { .. } => Status::Used,
        }
    }
}
