//! Who is asking. A session is made by the host from what it knows of the caller, never from a call.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::json::canonical;

/// A person or a program, known by the pair of who vouches for it and the name it has there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Principal {
    /// Who vouches for the subject: `local`, or the issuer of a token.
    pub issuer: String,
    /// The name of the subject at that issuer.
    pub subject: String,
}

/// Who is asking, for whom, with which roles, and in which run.
#[derive(Clone, Debug)]
pub struct Session {
    principal: Principal,
    tenant: String,
    roles: BTreeSet<String>,
    run: String,
}

/// An identity source that lists people's roles today, so that an approver who lost a role no longer counts.
pub trait Standing: Send + Sync + 'static {
    /// The roles that `principal` has in `tenant` now; `None` where this source does not know the principal.
    fn roles(&self, principal: &Principal, tenant: &str) -> Option<BTreeSet<String>>;
}

impl Principal {
    /// The principal that `issuer` knows as `subject`.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Self {
        Self { issuer: issuer.into(), subject: subject.into() }
    }

    /// The canonical text of `[issuer, subject]`: the identity in policies, keys and records. Never a joined string,
    /// which two different pairs could share.
    pub fn canonical(&self) -> String {
        canonical(&json!([self.issuer, self.subject]))
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.subject)
    }
}

impl Session {
    /// A session of `principal` in `tenant`, with no roles, in a run named `run`.
    pub fn new(principal: Principal, tenant: impl Into<String>) -> Self {
        Self { principal, tenant: tenant.into(), roles: BTreeSet::new(), run: "default".into() }
    }

    /// The same session with one role more.
    #[must_use]
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.roles.insert(role.into());
        self
    }

    /// The same session in another run: a run is one piece of work of one principal.
    #[must_use]
    pub fn in_run(mut self, run: impl Into<String>) -> Self {
        self.run = run.into();
        self
    }

    /// Who is asking.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The tenant that the principal acts for.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// The roles that the principal has in the tenant.
    pub fn roles(&self) -> &BTreeSet<String> {
        &self.roles
    }

    /// The run that the call belongs to.
    pub fn run(&self) -> &str {
        &self.run
    }
}
