//! Who is asking. It comes from here alone, never from a call.

mod file;
mod jwt;
mod local;
mod operator;
mod people;
mod revoked;
mod tokens;
mod watched;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};
use toolgate::clock::Millis;
use toolgate::fields::{Fields, Problems};
use toolgate::session::{Principal, Session, Standing};

use crate::config::Finding;
use local::Local;
pub(crate) use people::People;

pub(crate) use jwt::WELL_KNOWN;
pub use jwt::{Jwt, Protected};
pub use tokens::{Grant, State, Token, Tokens};
pub(crate) use tokens::{NotChanged, ROLE, is_role};

/// Where a folder's people come from.
#[derive(Clone, Debug)]
pub enum Identity {
    /// The folder lists them.
    Local(Local),
    /// They are known by tokens that the folder gave out.
    Tokens(Tokens),
    /// They are known by tokens that issuers sign.
    Jwt(Jwt),
}

/// Who may pass a door of the network, and for what.
#[derive(Clone, Debug)]
pub enum Doorkeeper {
    /// Everybody is the one user that the door was opened as.
    Local(Session),
    /// Everybody shows a token.
    Tokens(Tokens),
    /// Everybody shows a token that an issuer signed.
    Jwt(Jwt),
}

/// Somebody who has passed a door.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who is asking.
    pub session: Session,
    /// What they may ask for.
    pub scopes: BTreeSet<Scope>,
    /// How much longer what they showed is good; `None` where it has no end.
    pub left: Option<Duration>,
}

/// A part of what a gate can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// To list tools and to make calls.
    Calls,
    /// To see the approvals of one's tenant, and to answer what others ask.
    Approve,
    /// To see what was asked in one's own name, and to confirm it: for the program around a model, never for a model.
    Confirm,
    /// To begin a clean run.
    CreateSessions,
    /// To say what the user said themselves.
    Said,
    /// To see the actions of one's tenant.
    Ledger,
    /// To read the record of one's tenant.
    Audit,
    /// To see actions and record, to say what became of an action, and to stop tools.
    Admin,
}

/// Somebody at the command line whom the folder does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unlisted {
    message: String,
    /// What to do.
    pub hint: Option<String>,
    /// Whether it cannot be found out now who they are: they may be somebody.
    pub(crate) unknowable: bool,
}

/// Nobody that this door knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody is known to be asking: send `Authorization: Bearer TOKEN`")]
pub struct Unauthenticated;

/// Why somebody does not pass a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// The door knows nobody by what they show.
    #[error("{Unauthenticated}")]
    Unauthenticated,
    /// It cannot be judged now whether they are known: keys or revocations cannot be had.
    #[error("who is asking cannot be found out now: the keys of an issuer, or who was revoked, cannot be read")]
    Unknowable,
}

/// The kinds of `[identity]`.
#[derive(Clone, Copy)]
enum Kind {
    Local,
    Tokens,
    Jwt,
}

impl Identity {
    /// Reads the table `[identity]` of the folder `dir`.
    pub(crate) fn read(dir: &Path, table: &Map<String, Value>, problems: &mut Problems) -> Self {
        let mut fields = Fields::of(table, "/identity");
        let kinds = [("local", Kind::Local), ("tokens", Kind::Tokens), ("jwt", Kind::Jwt)];
        let kind = fields.word("kind", &kinds, Kind::Local, problems);
        if !table.contains_key("kind") {
            let message = "`kind` is missing: this version has \"local\", \"tokens\" and \"jwt\"";
            problems.note("/identity/kind", "required", message);
        }
        match kind {
            Kind::Local => Self::Local(Local::read(fields, problems)),
            Kind::Tokens => Self::Tokens(Tokens::read(dir, fields, problems)),
            Kind::Jwt => Self::Jwt(Jwt::read(dir, fields, problems)),
        }
    }

    /// What is wrong with the files that it names.
    pub(crate) fn faults(&self) -> Vec<Finding> {
        match self {
            Self::Local(_) => Vec::new(),
            Self::Tokens(tokens) => tokens.faults(),
            Self::Jwt(jwt) => jwt.faults(),
        }
    }

    /// What whoever starts a gate must be told of it.
    pub(crate) fn warning(&self) -> Option<&'static str> {
        match self {
            Self::Local(_) | Self::Tokens(_) => None,
            Self::Jwt(jwt) => jwt.warning(),
        }
    }

    /// The session of somebody at the command line: of `USER@TENANT` or the default user where the folder lists its
    /// users, else of whoever `TOOLGATE_TOKEN` belongs to. It has no end: for what makes calls there is
    /// [`Identity::caller`].
    pub fn session(&self, named: Option<&str>) -> Result<Session, Unlisted> {
        self.caller(named).map(|caller| caller.session)
    }

    /// Somebody at the command line who makes calls.
    pub fn caller(&self, named: Option<&str>) -> Result<Caller, Unlisted> {
        match self {
            Self::Local(local) => {
                let scopes = BTreeSet::from([Scope::Calls]);
                local.session(named).map(|session| Caller { session, scopes, left: None })
            }
            Self::Tokens(tokens) => tokens.caller(named, token_at_hand().as_deref()),
            Self::Jwt(jwt) => jwt.caller(named, token_at_hand().as_deref()),
        }
    }

    /// As [`Identity::caller`], for a program that goes on: it holds up nobody else while keys are fetched.
    pub(crate) async fn caller_again(&self, named: Option<&str>) -> Result<Caller, Unlisted> {
        if let (Self::Jwt(jwt), Some(token)) = (self, token_at_hand()) {
            jwt.prepare(&token).await;
        }
        self.caller(named)
    }

    /// The session of somebody at the command line who looks at approvals and answers them. Without a list of users it
    /// is whoever the operating system says; another person only where the folder lets its operator speak for others.
    pub fn approver(
        &self,
        named: Option<&str>,
        tenant: Option<&str>,
        operator_speaks: bool,
    ) -> Result<Session, Unlisted> {
        match (self, named, tenant) {
            (Self::Local(local), named, None) => local.session(named),
            (Self::Local(_), _, Some(_)) => {
                Err(Unlisted::new("--tenant is for a folder whose people have tokens; this one lists its users")
                    .hint("say --as USER@TENANT"))
            }
            (Self::Tokens(_) | Self::Jwt(_), None, tenant) => operator::session(tenant),
            // Nobody here lists the people of an issuer, so that nobody can say which roles they have.
            (Self::Jwt(_), Some(_), _) => {
                Err(Unlisted::new("--as names nobody here: the people of this folder are known by their issuers alone")
                    .hint(
                        "people of issuers answer over HTTP, with their tokens; say --tenant TENANT to act as yourself",
                    ))
            }
            (Self::Tokens(_), Some(_), Some(_)) => {
                Err(Unlisted::new("--as names the tenant already").hint("leave --tenant away"))
            }
            (Self::Tokens(_), Some(_), None) if !operator_speaks => {
                Err(Unlisted::new("this folder does not let its operator speak for other people")
                    .hint("say --tenant TENANT to act as yourself, or set `operator = true` under [approvals]"))
            }
            (Self::Tokens(tokens), Some(named), None) => tokens.person(named),
        }
    }

    /// The session of somebody at the command line who says what became of an action of `tenant`: whoever the operating
    /// system says, or somebody whom they name and for whom the folder lets them speak.
    pub fn speaker(&self, named: Option<&str>, tenant: &str, operator_speaks: bool) -> Result<Session, Unlisted> {
        let session = match named {
            None => return operator::session(Some(tenant)),
            Some(_) if matches!(self, Self::Tokens(_)) && !operator_speaks => {
                return Err(Unlisted::new("this folder does not let its operator speak for other people")
                    .hint("leave --as away to speak as yourself, or set `operator = true` under [approvals]"));
            }
            Some(named) => self.approver(Some(named), None, operator_speaks)?,
        };
        match session.tenant() == tenant {
            true => Ok(session),
            false => Err(Unlisted::new("--as names somebody of another tenant than the action is of")
                .hint("leave --as away to speak as yourself")),
        }
    }

    /// The session of whoever the operating system says is at the command line, in a tenant: the one that is named, or
    /// the only one that the folder lists people of.
    pub(crate) fn operator_in(&self, tenant: Option<&str>) -> Result<Session, Unlisted> {
        let only = match self {
            Self::Local(local) => local.only_tenant().map(str::to_owned),
            Self::Tokens(_) => None,
            Self::Jwt(jwt) => jwt.only_tenant(),
        };
        match tenant.or(only.as_deref()) {
            Some(tenant) => operator::session(Some(tenant)),
            None => Err(Unlisted::new("of which tenant? the folder does not list people of one tenant alone")
                .hint("say --tenant TENANT")),
        }
    }

    /// Whoever the operating system says is at the command line.
    pub(crate) fn operator() -> Result<Principal, Unlisted> {
        operator::principal()
    }

    /// The tenants that people of the folder are of, sorted; `None` where nobody can tell all of them.
    pub(crate) fn tenants(&self) -> Option<BTreeSet<String>> {
        match self {
            Self::Local(local) => Some(local.tenants().map(str::to_owned).collect()),
            Self::Tokens(tokens) => tokens.all().ok().map(|(all, _)| all.into_iter().map(|one| one.tenant).collect()),
            Self::Jwt(jwt) => jwt.tenants(),
        }
    }

    /// The keeper of a door of the network. Where the folder lists its users, the door is that of `named`, or of the
    /// default user.
    pub fn doorkeeper(&self, named: Option<&str>) -> Result<Doorkeeper, Unlisted> {
        match (self, named) {
            (Self::Local(local), named) => local.session(named).map(Doorkeeper::Local),
            (Self::Tokens(tokens), None) => Ok(Doorkeeper::Tokens(tokens.clone())),
            (Self::Jwt(jwt), None) => Ok(Doorkeeper::Jwt(jwt.clone())),
            (Self::Tokens(_) | Self::Jwt(_), Some(_)) => Err(Unlisted::nobody_by_name()),
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
            Self::Tokens(tokens) => tokens.roles(principal, tenant),
            Self::Jwt(jwt) => jwt.roles(principal, tenant),
        }
    }

    fn vouches_for(&self, principal: &Principal, tenant: &str) -> bool {
        match self {
            // Whom the folder lists is known when it is read.
            Self::Local(_) => true,
            Self::Tokens(tokens) => tokens.vouches_for(principal, tenant),
            Self::Jwt(jwt) => jwt.vouches_for(principal, tenant),
        }
    }
}

impl Doorkeeper {
    /// Who is asking, by the token that they show.
    ///
    /// INVARIANT (calls alone): whoever shows nothing may make calls and nothing else, so that a model's own program
    /// cannot approve what the model proposed.
    pub fn admit(&self, token: Option<&str>) -> Result<Caller, NotAdmitted> {
        match (self, token) {
            (Self::Local(session), None) => {
                Ok(Caller { session: session.clone(), scopes: BTreeSet::from([Scope::Calls]), left: None })
            }
            // Somebody who shows a token believes to be somebody else.
            (Self::Local(_), Some(_)) | (Self::Tokens(_) | Self::Jwt(_), None) => Err(NotAdmitted::Unauthenticated),
            (Self::Tokens(tokens), Some(token)) => tokens.admit(token),
            (Self::Jwt(jwt), Some(token)) => jwt.admit(token),
        }
    }

    /// Gets what is needed to judge a token and is not at hand: the keys of its issuer. It admits nobody.
    pub async fn prepare(&self, token: Option<&str>) {
        match (self, token) {
            (Self::Jwt(jwt), Some(token)) => jwt.prepare(token).await,
            (Self::Local(_) | Self::Tokens(_), _) | (Self::Jwt(_), None) => {}
        }
    }

    /// What clients are told of where to log in; `None` where there is no such place.
    pub fn protected(&self) -> Option<&Protected> {
        match self {
            Self::Local(_) | Self::Tokens(_) => None,
            Self::Jwt(jwt) => jwt.protected(),
        }
    }
}

impl Caller {
    /// Their session, where it is `now` for the gate that they ask: it ends when what they showed does.
    pub fn session_from(self, now: Millis) -> Session {
        self.left.into_iter().fold(self.session, |session, left| session.until(now.after(left)))
    }

    /// Whether they may ask for this.
    pub fn may(&self, scope: Scope) -> bool {
        let within_admin = matches!(scope, Scope::Ledger | Scope::Audit) && self.scopes.contains(&Scope::Admin);
        within_admin || self.scopes.contains(&scope)
    }
}

impl Scope {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Calls,
        Self::Approve,
        Self::Confirm,
        Self::CreateSessions,
        Self::Said,
        Self::Ledger,
        Self::Audit,
        Self::Admin,
    ];

    /// The scope's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Approve => "approvals:approve",
            Self::Confirm => "approvals:confirm",
            Self::CreateSessions => "sessions:create",
            Self::Said => "sessions:said",
            Self::Ledger => "ledger",
            Self::Audit => "audit",
            Self::Admin => "admin",
        }
    }

    /// The scope of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name)
    }
}

impl Unlisted {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, unknowable: false }
    }

    /// Somebody of whom it cannot be found out now who they are.
    fn unknowable() -> Self {
        Self { unknowable: true, ..Self::new(NotAdmitted::Unknowable.to_string()) }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// `--as` where people are known by their tokens.
    fn nobody_by_name() -> Self {
        Self::new("--as names nobody here: the people of this folder are known by their tokens")
            .hint("leave --as away; a command that makes calls takes the caller's token from TOOLGATE_TOKEN")
    }
}

/// What a name of a user is made of.
const NAME: &str = "expected 1 to 128 letters, digits and `_ . -`";

/// What a name of a tenant is made of.
const TENANT: &str = "expected 1 to 64 of a-z, 0-9, `_` and `-`: a tenant's name is part of no path and of no pattern";

/// Whether this can be the name of a tenant. INVARIANT (one spelling): no two names look alike, and none means more than
/// itself where it is compared, listed or made part of something else.
pub(crate) fn is_tenant(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&text.len()) && text.bytes().all(plain)
}

/// Whether `USER@TENANT` is read in one way only with this in it, and shown as it is.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    (1..=128).contains(&text.len()) && text.chars().all(plain)
}

/// The user and the tenant of `USER@TENANT`.
pub(crate) fn parse_person(named: &str) -> Option<(&str, &str)> {
    named.split_once('@').filter(|(user, tenant)| is_name(user) && is_tenant(tenant))
}

/// The token of whoever is at the command line.
#[expect(clippy::disallowed_methods, reason = "a token as an argument would show in the list of processes")]
fn token_at_hand() -> Option<String> {
    std::env::var("TOOLGATE_TOKEN").ok()
}
