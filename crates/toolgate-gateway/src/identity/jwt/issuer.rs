//! An issuer that a folder trusts: for whom, for which tenants, and what its claims mean here.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value};
use toolgate::clock::Millis;
use toolgate::session::Principal;

use super::super::tokens::is_role;
use super::super::{Scope, is_tenant};
use super::source::Source;

/// An issuer. INVARIANT (its own keys): what it signed is verified with these keys alone, and no other issuer's tokens
/// are.
pub(super) struct Issuer {
    /// The claim `iss`, letter by letter.
    pub(super) name: String,
    /// INVARIANT (for this gate): a token that names none of them was made for somebody else.
    pub(super) audience: Vec<String>,
    pub(super) tenants: Tenants,
    /// The place of the roles in the claims.
    pub(super) roles: Option<String>,
    /// The place of the scopes; without one everybody may make calls, and nothing else.
    pub(super) scopes: Option<String>,
    pub(super) leeway: Duration,
    pub(super) keys: Source,
}

/// The tenants that an issuer may speak for. INVARIANT (said here): where they are listed, no claim adds one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tenants {
    pub(super) claim: Option<String>,
    pub(super) listed: BTreeSet<String>,
}

/// Whom a token is about, and until when.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) principal: Principal,
    pub(super) tenant: String,
    pub(super) roles: BTreeSet<String>,
    pub(super) scopes: BTreeSet<Scope>,
    /// From this moment on it admits nobody, by the clock on the wall: that is what an issuer's are of.
    pub(super) ends: Millis,
}

/// The longest subject, in bytes.
const SUBJECT: usize = 256;
/// The last second that has a date of four digits.
const LAST: u64 = 253_402_300_799;

impl Issuer {
    /// What the claims of a token say that this issuer signed. INVARIANT (malformed is no absence): a claim of another
    /// type than it must have admits nobody.
    pub(super) fn judge(&self, claims: &Map<String, Value>, now: Millis) -> Option<Judged> {
        let issued_by = claims.get("iss")?.as_str()?;
        let subject = claims.get("sub")?.as_str()?;
        let fits = (1..=SUBJECT).contains(&subject.len()) && !subject.chars().any(char::is_control);
        let audience = texts(claims.get("aud")?)?;
        let for_us = audience.iter().any(|said| self.audience.iter().any(|known| known == said));
        let ends = moment(claims.get("exp")?)?.after(self.leeway);
        let begins = claims.get("nbf").map(moment).unwrap_or(Some(Millis(0)))?;
        let issued = claims.get("iat").map(moment).unwrap_or(Some(Millis(0)))?;
        let soon = now.after(self.leeway);
        if issued_by != self.name || !fits || !for_us || ends <= now || soon < begins || soon < issued {
            return None;
        }
        let tenant = self.tenants.of(claims)?;
        let roles: BTreeSet<String> =
            at(claims, self.roles.as_deref()).map_or(Some(Vec::new()), words)?.into_iter().collect();
        let scopes = match self.scopes.as_deref() {
            None => BTreeSet::from([Scope::Calls]),
            // Scopes of other programs stand there as well.
            Some(place) => {
                let said = at(claims, Some(place)).map_or(Some(Vec::new()), words)?;
                said.iter().filter_map(|name| Scope::parse(name)).collect()
            }
        };
        let principal = Principal::new(self.name.as_str(), subject);
        // A role that is left out could be one that a policy forbids.
        roles.iter().all(|role| is_role(role)).then_some(Judged { principal, tenant, roles, scopes, ends })
    }
}

impl Tenants {
    fn of(&self, claims: &Map<String, Value>) -> Option<String> {
        let said = match at(claims, self.claim.as_deref()) {
            Some(Value::String(tenant)) => tenant,
            Some(_) => return None,
            None => {
                let mut listed = self.listed.iter();
                return listed.next().filter(|_| listed.next().is_none()).cloned();
            }
        };
        self.may_be(said).then(|| said.clone())
    }

    /// Whether it may speak for this tenant.
    pub(super) fn may_be(&self, tenant: &str) -> bool {
        is_tenant(tenant) && (self.listed.is_empty() || self.listed.contains(tenant))
    }
}

/// What stands at a place of the claims.
fn at<'c>(claims: &'c Map<String, Value>, place: Option<&str>) -> Option<&'c Value> {
    let mut names = place?.strip_prefix('/')?.split('/').map(|name| name.replace("~1", "/").replace("~0", "~"));
    let first = claims.get(&names.next()?)?;
    names.try_fold(first, |value, name| value.get(&name))
}

/// A text, or a list of texts.
fn texts(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(text) => Some(vec![text]),
        Value::Array(items) => items.iter().map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// A list of texts, or words with spaces between them.
fn words(value: &Value) -> Option<Vec<String>> {
    let words: Vec<&str> = match value {
        Value::String(text) => text.split(' ').filter(|word| !word.is_empty()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => texts(value)?,
    };
    Some(words.into_iter().map(str::to_owned).collect())
}

/// A date of RFC 7519: seconds since 1970, perhaps with a fraction, which is left out.
fn moment(value: &Value) -> Option<Millis> {
    let seconds = match value.as_u64() {
        Some(seconds) => seconds,
        None => {
            let seconds = value.as_f64().filter(|seconds| (0.0..1e12).contains(seconds))?;
            format!("{:.0}", seconds.floor()).parse().ok()?
        }
    };
    (seconds <= LAST).then(|| Millis(seconds.saturating_mul(1000)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_date_is_a_number_of_seconds_that_there_are() {
        for (said, millis) in [(json!(1), 1000), (json!(1.9), 1000), (json!(LAST), LAST * 1000), (json!(0), 0)] {
            assert_eq!(moment(&said), Some(Millis(millis)), "{said}");
        }
        for none in
            [json!("1"), json!(null), json!(-1), json!(-0.5), json!(1e30), json!(LAST + 1), json!([1]), json!(true)]
        {
            assert_eq!(moment(&none), None, "{none}");
        }
    }

    #[test]
    fn a_place_leads_into_the_claims_and_through_names_with_slashes() {
        let claims = json!({"a": {"b": ["x", "y"]}, "https://acme.example/roles": "p q", "": 1});
        let claims = claims.as_object().unwrap();
        let found = |place: &str| at(claims, Some(place)).and_then(words);
        assert_eq!(found("/a/b").unwrap(), ["x", "y"]);
        assert_eq!(found("/https:~1~1acme.example~1roles").unwrap(), ["p", "q"]);
        assert_eq!((found("/a"), found("/a/c"), found("/b"), found("/")), (None, None, None, None));
    }
}
