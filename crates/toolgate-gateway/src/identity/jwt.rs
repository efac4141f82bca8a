//! People who are known by tokens that issuers sign: `[identity] kind = "jwt"`.
//!
//! ```text
//! HEADER.CLAIMS.SIGNATURE -> Shown, strictly -> iss: one Issuer -> its Keys verify -> its claims are judged
//!                                                                        |                  |
//!                                             a file, or fetched and kept for ten minutes   revoked? -> Caller
//! ```
//!
//! An identity is the pair of issuer and subject, never an address of mail: those are given to other people in time.

mod crypto;
mod issuer;
mod keys;
mod protected;
mod read;
mod shown;
mod source;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use toolgate::clock::{Clock, Millis, SystemClock};
use toolgate::fields::{Fields, Problems, nearest};
use toolgate::session::{Principal, Session, Standing};

use super::revoked::Revocations;
use super::tokens::NotChanged;
use super::{Caller, NotAdmitted, Scope, Unlisted, operator};
use crate::cli::{Say, journal};
use crate::config::{Finding, LoadError};
use issuer::{Issuer, Judged};
pub use protected::Protected;
pub(crate) use protected::WELL_KNOWN;
use shown::Shown;

/// The issuers that a folder trusts.
#[derive(Clone)]
pub struct Jwt(Arc<Trusted>);

struct Trusted {
    issuers: Vec<Issuer>,
    revoked: Revocations,
    protected: Option<Protected>,
    /// Whether issuers of this machine are taken without TLS.
    development: bool,
    clock: Arc<dyn Clock>,
}

/// What is said of a gate that takes tokens without knowing who sends their keys.
const DEVELOPMENT: &str = "for development only: `development = true` under [identity] takes issuers on this machine without \
                           TLS; the record names whoever they vouch for with an issuer that begins with http://";

impl Jwt {
    /// Reads the rest of the table `[identity]` of the folder `dir`.
    pub(super) fn read(dir: &Path, fields: Fields<'_>, problems: &mut Problems) -> Self {
        Self::made(dir, fields, problems, &journal(), Arc::new(SystemClock))
    }

    fn made(dir: &Path, fields: Fields<'_>, problems: &mut Problems, say: &Say, clock: Arc<dyn Clock>) -> Self {
        let read::Said { issuers, resource, development, revocations } = read::table(dir, fields, say, problems);
        let scoped = issuers.iter().any(|issuer| issuer.scopes.is_some());
        let names = issuers.iter().map(|issuer| issuer.name.clone()).collect();
        let protected = resource.and_then(|resource| Protected::new(&resource, names, scoped));
        let revoked = Revocations::at(dir, Path::new(&revocations), Arc::clone(say));
        Self(Arc::new(Trusted { issuers, revoked, protected, development, clock }))
    }

    /// Who shows a token. What is malformed, forged, foreign, expired or revoked has one answer.
    pub(super) fn admit(&self, token: &str) -> Result<Caller, NotAdmitted> {
        let (shown, issuer) = self.of(token).ok_or(NotAdmitted::Unauthenticated)?;
        let keys = issuer.keys.at_hand().ok_or(NotAdmitted::Unknowable)?;
        if !keys.verify(&shown) {
            return Err(NotAdmitted::Unauthenticated);
        }
        let now = self.0.clock.now();
        let judged = issuer.judge(&shown.claims, now).ok_or(NotAdmitted::Unauthenticated)?;
        match self.0.revoked.has(&judged.principal) {
            None => Err(NotAdmitted::Unknowable),
            Some(true) => Err(NotAdmitted::Unauthenticated),
            Some(false) => Ok(judged.caller(now)),
        }
    }

    /// Gets the keys that a token is verified with, where they are not at hand.
    pub(super) async fn prepare(&self, token: &str) {
        if let Some((shown, issuer)) = self.of(token) {
            issuer.keys.prepare(&shown.wanted).await;
        }
    }

    /// A token, and the issuer that it says it is of.
    fn of<'t>(&self, token: &'t str) -> Option<(Shown<'t>, &Issuer)> {
        let shown = Shown::read(token)?;
        let said = shown.claims.get("iss")?.as_str()?;
        let issuer = self.0.issuers.iter().find(|issuer| issuer.name == said)?;
        Some((shown, issuer))
    }

    /// Whoever makes calls at the command line, by the token that the environment holds.
    pub(super) fn caller(&self, named: Option<&str>, token: Option<&str>) -> Result<Caller, Unlisted> {
        const HINT: &str = "set TOOLGATE_TOKEN to a token that an issuer of this folder signed for it";
        if named.is_some() {
            return Err(Unlisted::nobody_by_name());
        }
        let Some(token) = token else {
            return Err(
                Unlisted::new("nobody is asking: the people of this folder are known by their issuers").hint(HINT)
            );
        };
        if let Some((shown, issuer)) = self.of(token) {
            issuer.keys.prepare_here(&shown.wanted);
        }
        let caller = self.admit(token).map_err(|not| match not {
            NotAdmitted::Unauthenticated => {
                Unlisted::new("TOOLGATE_TOKEN admits nobody: it is of no issuer here, expired or revoked").hint(HINT)
            }
            NotAdmitted::Unknowable => Unlisted::unknowable(),
        })?;
        match caller.scopes.contains(&Scope::Calls) {
            true => Ok(caller),
            false => Err(Unlisted::new("the token in TOOLGATE_TOKEN is not for calls")
                .hint("ask its issuer for one with the scope calls")),
        }
    }

    /// The tenants that its issuers may speak for; `None` where one of them may speak for any.
    pub(super) fn tenants(&self) -> Option<BTreeSet<String>> {
        let issuers = &self.0.issuers;
        let bounded = issuers.iter().all(|issuer| !issuer.tenants.listed.is_empty());
        bounded.then(|| issuers.iter().flat_map(|issuer| &issuer.tenants.listed).cloned().collect())
    }

    /// The tenant, where all issuers speak for the same.
    pub(super) fn only_tenant(&self) -> Option<String> {
        let tenants = self.tenants()?;
        let mut all = tenants.into_iter();
        all.next().filter(|_| all.next().is_none())
    }

    /// What clients are told of where to log in.
    pub(super) fn protected(&self) -> Option<&Protected> {
        self.0.protected.as_ref()
    }

    /// What is wrong with the files that it names.
    pub(super) fn faults(&self) -> Vec<Finding> {
        let keys = self.0.issuers.iter().flat_map(|issuer| issuer.keys.faults());
        keys.chain(self.0.revoked.faults()).collect()
    }

    pub(super) fn warning(&self) -> Option<&'static str> {
        self.0.development.then_some(DEVELOPMENT)
    }

    /// Who is revoked, and since when.
    pub(crate) fn revoked(&self) -> Result<Vec<(Principal, Millis)>, LoadError> {
        self.0.revoked.all().map_err(LoadError::Findings)
    }

    /// Whom an issuer knows as `subject`; without a name of one, the only issuer.
    pub(crate) fn principal(&self, issuer: Option<&str>, subject: &str) -> Result<Principal, Unlisted> {
        let names = || self.0.issuers.iter().map(|issuer| issuer.name.as_str());
        let listed = || format!("listed: {}", names().collect::<Vec<_>>().join(", "));
        let known = match issuer {
            Some(named) => names().find(|name| *name == named),
            None => names().next().filter(|_| self.0.issuers.len() == 1),
        };
        match (known, issuer) {
            (Some(known), _) => Ok(Principal::new(known, subject)),
            (None, None) => {
                Err(Unlisted::new("of which issuer? the folder trusts several")
                    .hint(format!("say --issuer; {}", listed())))
            }
            (None, Some(named)) => {
                Err(Unlisted::new("the folder trusts no such issuer")
                    .hint(nearest(named, names()).unwrap_or_else(listed)))
            }
        }
    }

    /// Takes all tokens of somebody back, those that are yet to be signed among them; it tells since when.
    pub(crate) fn revoke(&self, principal: Principal) -> Result<Millis, NotChanged> {
        self.0.revoked.add(principal, self.0.clock.now())
    }
}

impl Judged {
    fn caller(self, now: Millis) -> Caller {
        let left = Duration::from_millis(self.ends.0.saturating_sub(now.0));
        let session = Session::new(self.principal, self.tenant);
        let session = self.roles.into_iter().fold(session, Session::role);
        Caller { session, scopes: self.scopes, left: Some(left) }
    }
}

impl Standing for Jwt {
    /// What roles an issuer gives somebody today is not known here, but for these: who is revoked has none, and neither
    /// has anybody of an issuer that the folder does not trust, or not for this tenant. INVARIANT (fails closed): where
    /// it cannot be read who is revoked, nobody has any.
    fn roles(&self, principal: &Principal, tenant: &str) -> Option<BTreeSet<String>> {
        if principal.issuer == operator::ISSUER {
            return None;
        }
        let issuer = self.0.issuers.iter().find(|issuer| issuer.name == principal.issuer);
        let trusted = issuer.is_some_and(|issuer| issuer.tenants.may_be(tenant));
        match self.0.revoked.has(principal) {
            Some(false) if trusted => None,
            Some(_) | None => Some(BTreeSet::new()),
        }
    }

    fn vouches_for(&self, principal: &Principal, tenant: &str) -> bool {
        self.roles(principal, tenant).is_none()
    }
}

impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let issuers: Vec<&str> = self.0.issuers.iter().map(|issuer| issuer.name.as_str()).collect();
        f.debug_struct("Jwt").field("issuers", &issuers).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod abuse;
#[cfg(test)]
mod forge;
#[cfg(test)]
mod tests;
