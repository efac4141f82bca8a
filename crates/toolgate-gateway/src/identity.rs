//! Who is asking. It comes from here alone, never from a call.

mod local;

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use toolgate::fields::{Fields, Problems};
use toolgate::session::{Principal, Session, Standing};

use local::Local;

/// Where a folder's people come from.
#[derive(Clone, Debug)]
pub enum Identity {
    /// The folder lists them.
    Local(Local),
}

/// Who may pass a door of the network, and for what.
#[derive(Clone, Debug)]
pub enum Doorkeeper {
    /// Everybody is the one user that the door was opened as.
    Local(Session),
}

/// Somebody who has passed a door.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who is asking.
    pub session: Session,
    /// What they may ask for.
    pub scopes: BTreeSet<Scope>,
}

/// A part of what a gate can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// To list tools and to make calls.
    Calls,
    /// To see the approvals of one's tenant, and to answer them.
    Approvals,
    /// To see the actions of one's tenant.
    Ledger,
    /// To read the record of one's tenant.
    Audit,
}

/// A person that the folder does not list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unlisted {
    message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// Nobody that this door knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody is known to be asking: send `Authorization: Bearer TOKEN`")]
pub struct Unauthenticated;

impl Identity {
    /// Reads the table `[identity]`.
    pub(crate) fn read(table: &Map<String, Value>, problems: &mut Problems) -> Self {
        let mut fields = Fields::of(table, "/identity");
        fields.word("kind", &[("local", ())], (), problems);
        if !table.contains_key("kind") {
            problems.note("/identity/kind", "required", "`kind` is missing: this version has \"local\"");
        }
        Self::Local(Local::read(fields, problems))
    }

    /// The session of `USER@TENANT`, or of the default user, for somebody at the command line.
    pub fn session(&self, named: Option<&str>) -> Result<Session, Unlisted> {
        match self {
            Self::Local(local) => local.session(named),
        }
    }

    /// The keeper of a door of the network that `named`, or the default user, opens.
    pub fn doorkeeper(&self, named: Option<&str>) -> Result<Doorkeeper, Unlisted> {
        match self {
            Self::Local(local) => local.session(named).map(Doorkeeper::Local),
        }
    }
}

impl Default for Identity {
    fn default() -> Self {
        Self::Local(Local::default())
    }
}

impl Standing for Identity {
    fn roles(&self, principal: &Principal, tenant: &str) -> Option<BTreeSet<String>> {
        match self {
            Self::Local(local) => local.roles(principal, tenant),
        }
    }
}

impl Doorkeeper {
    /// Who is asking, by the token that they show.
    ///
    /// INVARIANT (calls alone): whoever shows nothing may make calls and nothing else, so that a model's own program
    /// cannot approve what the model proposed.
    pub fn admit(&self, token: Option<&str>) -> Result<Caller, Unauthenticated> {
        match self {
            Self::Local(session) => match token {
                None => Ok(Caller { session: session.clone(), scopes: BTreeSet::from([Scope::Calls]) }),
                // Somebody who shows a token believes to be somebody else.
                Some(_) => Err(Unauthenticated),
            },
        }
    }
}

impl Scope {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Calls, Self::Approvals, Self::Ledger, Self::Audit];

    /// The scope's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Approvals => "approvals",
            Self::Ledger => "ledger",
            Self::Audit => "audit",
        }
    }
}
