//! People who are known by a token: `[identity] kind = "tokens"`.
//!
//! ```text
//! new -> tg_ID_SECRET, shown once        admit <- tg_ID_SECRET
//!           | SHA-256                       | SHA-256
//!           v                               v
//!        state/tokens.toml --- Watched ---> list in memory, read again whenever the file is another one
//! ```

mod list;

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use toolgate::clock::{Clock, Millis, SystemClock};
use toolgate::fields::{Fields, Problems};
use toolgate::json::Digest;
use toolgate::session::{Principal, Session, Standing, Tags};

use super::watched::{Kind, Watched};
use super::{Caller, NotAdmitted, Scope, Unlisted, file, parse_person};
use crate::cli::{FailureCode, journal};
use crate::config::{Finding, LoadError};
use list::List;
pub(crate) use list::{ROLE, is_role};

/// The tokens of a folder.
#[derive(Clone)]
pub struct Tokens {
    /// The file, as the folder names it.
    name: PathBuf,
    path: PathBuf,
    watched: Arc<Watched<List>>,
    clock: Arc<dyn Clock>,
}

/// A token that was given out. INVARIANT (digest alone): what its holder shows is nowhere but with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its public part.
    pub id: String,
    /// Who it is given to.
    pub user: String,
    /// The tenant that they act for.
    pub tenant: String,
    /// The roles that they have there.
    pub roles: BTreeSet<String>,
    /// What they may ask for.
    pub scopes: BTreeSet<Scope>,
    /// The tags within which tools are there for them; all tools where not given.
    pub tags: Option<Tags>,
    /// The digest of what they show.
    digest: Digest,
    /// When it was given out.
    pub created_at: Millis,
    /// INVARIANT (exclusive expiry): from this moment on it admits nobody.
    pub expires_at: Option<Millis>,
    /// When it was taken back.
    pub revoked_at: Option<Millis>,
}

/// Whether a token admits somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It does.
    Active,
    /// Its time is over.
    Expired,
    /// It was taken back.
    Revoked,
}

/// What a new token is to be.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Who it is given to.
    pub user: String,
    /// The tenant that they act for.
    pub tenant: String,
    /// The roles that they have there.
    pub roles: BTreeSet<String>,
    /// What they may ask for.
    pub scopes: BTreeSet<Scope>,
    /// The tags within which tools are there for them; all tools where not given.
    pub tags: Option<Tags>,
    /// How long it lasts; until it is revoked where not given.
    pub lasts: Option<Duration>,
}

/// Why the tokens are as they were.
#[derive(Debug)]
pub(crate) enum NotChanged {
    /// The file has faults.
    Faults(Vec<Finding>),
    /// The file cannot be written.
    Unwritable {
        /// As the folder names it.
        file: PathBuf,
        /// What the system says.
        why: ErrorKind,
    },
    /// The system gives no random numbers.
    NoRandom,
}

/// Who vouches for the holders of tokens.
const ISSUER: &str = "tokens";
const DEFAULT_FILE: &str = "state/tokens.toml";
/// What every token begins with, so that one that lies around is known for what it is.
const PREFIX: &str = "tg_";
/// The longest text that is looked at; a token is shorter.
const LONGEST: usize = 256;
const ID_LENGTH: usize = 12;

impl Tokens {
    /// Reads the rest of the table `[identity]` of the folder `dir`.
    pub(super) fn read(dir: &Path, mut fields: Fields<'_>, problems: &mut Problems) -> Self {
        let file = fields.text("file", problems).unwrap_or(DEFAULT_FILE);
        if file.is_empty() || file.ends_with('/') {
            problems.note("/identity/file", "format", "expected the path of a file");
        }
        fields.end(problems);
        Self::at(dir, Path::new(file), Arc::new(SystemClock))
    }

    fn at(dir: &Path, name: &Path, clock: Arc<dyn Clock>) -> Self {
        let path = dir.join(name);
        let kind = Kind {
            parse: List::parse,
            absent: Some(List::default),
            code: FailureCode::TokensUnreadable,
            without: "nobody is admitted by token",
            again: "the tokens can be read again",
        };
        Self { name: name.to_owned(), watched: Arc::new(Watched::new(name, &path, kind, journal())), path, clock }
    }

    /// Who shows `token`. What is unknown, wrong, expired or revoked has one answer.
    pub(super) fn admit(&self, token: &str) -> Result<Caller, NotAdmitted> {
        let token = self.find(token).ok_or(NotAdmitted::Unauthenticated)?;
        let left = token.expires_at.map(|end| Duration::from_millis(end.0.saturating_sub(self.clock.now().0)));
        Ok(Caller { session: token.session(), scopes: token.scopes, left })
    }

    fn find(&self, shown: &str) -> Option<Token> {
        if shown.len() > LONGEST {
            return None;
        }
        let digest = Digest::of(shown.as_bytes());
        let id = shown.strip_prefix(PREFIX)?.split('_').next()?;
        let list = self.watched.now()?;
        let token = list.find(id)?;
        let active = token.state_at(self.clock.now()) == State::Active;
        (same(&token.digest, &digest) && active).then(|| token.clone())
    }

    /// Whoever makes calls at the command line, by the token that the environment holds.
    pub(super) fn caller(&self, named: Option<&str>, shown: Option<&str>) -> Result<Caller, Unlisted> {
        const HINT: &str = "set TOOLGATE_TOKEN to a token of this folder; `toolgate token new` makes one";
        if named.is_some() {
            return Err(Unlisted::nobody_by_name());
        }
        let Some(shown) = shown else {
            return Err(
                Unlisted::new("nobody is asking: the people of this folder are known by their tokens").hint(HINT)
            );
        };
        let caller = self
            .admit(shown)
            .map_err(|_| Unlisted::new("TOOLGATE_TOKEN admits nobody: it is unknown, expired or revoked").hint(HINT))?;
        match caller.scopes.contains(&Scope::Calls) {
            true => Ok(caller),
            false => Err(Unlisted::new("the token in TOOLGATE_TOKEN is not for calls")
                .hint("`toolgate token new` takes --scope calls")),
        }
    }

    /// The session of `USER@TENANT`, for an operator who may speak for others.
    pub(super) fn person(&self, named: &str) -> Result<Session, Unlisted> {
        let (user, tenant) = parse_person(named).ok_or_else(|| Unlisted::new("expected USER@TENANT"))?;
        let principal = Principal::new(ISSUER, user);
        let active = self.active(&principal, tenant);
        if active.is_empty() {
            return Err(Unlisted::new("no token that is still good belongs to this person")
                .hint("`toolgate token list` shows who has one"));
        }
        let session = Session::new(principal, tenant);
        Ok(active.into_iter().flat_map(|token| token.roles).fold(session, Session::role))
    }

    /// The tokens of a person that are neither expired nor revoked.
    fn active(&self, principal: &Principal, tenant: &str) -> Vec<Token> {
        let now = self.clock.now();
        let theirs = |token: &&Token| {
            token.user == principal.subject && token.tenant == tenant && token.state_at(now) == State::Active
        };
        let list = self.watched.now();
        list.iter().flat_map(|list| list.iter()).filter(theirs).cloned().collect()
    }

    /// Gives a token out: what its holder shows, and what is kept of it.
    pub(crate) fn issue(&self, grant: Grant) -> Result<(String, Token), NotChanged> {
        self.change(|list, now| {
            let (id, shown) = loop {
                let (id, shown) = mint().map_err(|_| NotChanged::NoRandom)?;
                if list.find(&id).is_none() {
                    break (id, shown);
                }
            };
            let token = Token {
                digest: Digest::of(shown.as_bytes()),
                id,
                user: grant.user,
                tenant: grant.tenant,
                roles: grant.roles,
                scopes: grant.scopes,
                tags: grant.tags,
                created_at: now,
                expires_at: grant.lasts.map(|lasts| now.after(lasts)),
                revoked_at: None,
            };
            list.add(token.clone());
            Ok((shown, token))
        })
    }

    /// Takes a token back; `None` where there is none of this id. One that was taken back before stays as it is.
    pub(crate) fn revoke(&self, id: &str) -> Result<Option<Token>, NotChanged> {
        self.change(|list, now| {
            Ok(list.find_mut(id).map(|token| {
                token.revoked_at.get_or_insert(now);
                token.clone()
            }))
        })
    }

    /// All tokens, in the order in which they were given out, and the moment that it is.
    pub(crate) fn all(&self) -> Result<(Vec<Token>, Millis), LoadError> {
        let list = List::load(&self.name, &self.path).map_err(LoadError::Findings)?;
        Ok((list.iter().cloned().collect(), self.clock.now()))
    }

    /// What is wrong with the file.
    pub(crate) fn faults(&self) -> Vec<Finding> {
        List::load(&self.name, &self.path).err().unwrap_or_default()
    }

    /// Changes the file, one after the other with all that change it. INVARIANT (nothing lost): what is written is what
    /// was read under the same lock, and the change.
    fn change<T>(&self, change: impl FnOnce(&mut List, Millis) -> Result<T, NotChanged>) -> Result<T, NotChanged> {
        let unwritable = |error: io::Error| NotChanged::Unwritable { file: self.name.clone(), why: error.kind() };
        let _lock = file::lock(&self.path).map_err(unwritable)?;
        let mut list = List::load(&self.name, &self.path).map_err(NotChanged::Faults)?;
        let before = list.clone();
        let changed = change(&mut list, self.clock.now())?;
        if list != before {
            file::replace(&self.path, &list.text()).map_err(unwritable)?;
        }
        Ok(changed)
    }
}

impl Standing for Tokens {
    /// INVARIANT (fails closed): who has no good token has no roles, and where the file cannot be read nobody has any.
    fn roles(&self, principal: &Principal, tenant: &str) -> Option<BTreeSet<String>> {
        let known = || self.active(principal, tenant).into_iter().flat_map(|token| token.roles).collect();
        (principal.issuer == ISSUER).then(known)
    }

    fn vouches_for(&self, principal: &Principal, tenant: &str) -> bool {
        principal.issuer != ISSUER || !self.active(principal, tenant).is_empty()
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Token {
    /// Whether it admits somebody at `now`.
    pub fn state_at(&self, now: Millis) -> State {
        if self.revoked_at.is_some() {
            State::Revoked
        } else if self.expires_at.is_some_and(|end| end <= now) {
            State::Expired
        } else {
            State::Active
        }
    }

    /// Who it is given to.
    pub fn principal(&self) -> Principal {
        Principal::new(ISSUER, self.user.as_str())
    }

    fn session(&self) -> Session {
        let session = Session::new(self.principal(), self.tenant.as_str());
        let session = self.roles.iter().fold(session, Session::role);
        self.tags.iter().cloned().fold(session, Session::only_tags)
    }
}

impl State {
    /// The state's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

/// A new id, and the token `tg_ID_SECRET` with 256 random bits.
fn mint() -> Result<(String, String), getrandom::Error> {
    let mut bits = [[0; 32]; 2];
    for bits in &mut bits {
        getrandom::fill(bits)?;
    }
    let [id, secret] = bits.map(Digest::from);
    let id: String = id.hex().chars().take(ID_LENGTH).collect();
    let shown = format!("{PREFIX}{id}_{}", secret.base32());
    Ok((id, shown))
}

/// Whether two digests are the same, in a time that does not tell how much of them is.
fn same(one: &Digest, other: &Digest) -> bool {
    let differing = one.as_bytes().iter().zip(other.as_bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
    std::hint::black_box(differing) == 0
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]
mod tests;
