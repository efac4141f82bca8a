//! Who is asking, and within which tags. A session is made by the host from what it knows of the caller, never from a
//! call.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::clock::Millis;
use crate::contract::is_tag;
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
    /// From this moment on nothing begins in its name.
    ends_at: Option<Millis>,
    /// INVARIANT (narrowing alone): each was added by somebody who bounds the session, and none is ever taken out.
    bounds: BTreeSet<Tags>,
}

/// Tags that bound what somebody may see: a tool is within them if it has at least one. That no tool has any of them is
/// no error; nothing is within then.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Tags(
    /// INVARIANT (never none): an empty list would be read as everything by one and as nothing by another.
    BTreeSet<String>,
);

/// A text that can be the tag of no tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a tag is made of A-Z a-z 0-9 _ -")]
pub struct BadTag;

/// An identity source that lists people's roles today, so that an approver who lost a role no longer counts.
pub trait Standing: Send + Sync + 'static {
    /// The roles that `principal` has in `tenant` now; `None` where this source does not know the principal.
    fn roles(&self, principal: &Principal, tenant: &str) -> Option<BTreeSet<String>>;

    /// Whether something may still begin in the name of `principal` in `tenant`: asked again when a call would begin, which
    /// may have waited since its caller was let in. Where a source cannot tell, it may.
    fn vouches_for(&self, principal: &Principal, tenant: &str) -> bool {
        let _ = (principal, tenant);
        true
    }
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
        let (roles, bounds) = (BTreeSet::new(), BTreeSet::new());
        Self { principal, tenant: tenant.into(), roles, run: "default".into(), ends_at: None, bounds }
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

    /// The same session, in whose name nothing begins from this moment on: the end of the credential that vouches for it.
    /// A call that came before and has waited until then is refused.
    #[must_use]
    pub fn until(mut self, end: Millis) -> Self {
        self.ends_at = Some(self.ends_at.map_or(end, |before| before.min(end)));
        self
    }

    /// The same session, for which only the tools within these tags are there: it sees no other in a list, can call no
    /// other, and is told of no other. Said again it narrows further: a tool must be within each bound.
    ///
    /// What the gate looks up for itself is not bound, and neither are approvals: a tag is no permission.
    ///
    /// ```
    /// use toolgate::session::{Principal, Session, Tags};
    ///
    /// let alice = Session::new(Principal::new("local", "alice"), "acme");
    /// let desk = alice.only_tags(Tags::of("orders")?.or(Tags::of("refunds")?));
    /// assert_eq!(desk.bounds().len(), 1);
    /// # Ok::<(), toolgate::session::BadTag>(())
    /// ```
    #[must_use]
    pub fn only_tags(mut self, tags: Tags) -> Self {
        self.bounds.insert(tags);
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

    /// Whether it has ended at `now`.
    pub fn has_ended(&self, now: Millis) -> bool {
        self.ends_at.is_some_and(|end| end <= now)
    }

    /// The tags that bound it, each of which a tool must be within; nothing where all tools may be there.
    pub fn bounds(&self) -> impl ExactSizeIterator<Item = &Tags> {
        self.bounds.iter()
    }

    /// Whether a tool with these tags may be there for this session.
    pub(crate) fn is_open_to(&self, tags: &[String]) -> bool {
        self.bounds.iter().all(|bound| bound.hold(tags))
    }
}

impl Tags {
    /// This tag alone.
    pub fn of(tag: impl Into<String>) -> Result<Self, BadTag> {
        let tag = tag.into();
        if is_tag(&tag) { Ok(Self(BTreeSet::from([tag]))) } else { Err(BadTag) }
    }

    /// These tags and those: a tool is within if it has any of them all.
    #[must_use]
    pub fn or(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// The tags, sorted.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    fn hold(&self, tags: &[String]) -> bool {
        tags.iter().any(|tag| self.0.contains(tag))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn session() -> Session {
        Session::new(Principal::new("local", "alice"), "acme")
    }

    fn bound<T: Into<String>>(tags: impl IntoIterator<Item = T>) -> Tags {
        tags.into_iter().map(|tag| Tags::of(tag).unwrap()).reduce(Tags::or).unwrap()
    }

    fn tags(of_tool: &[&str]) -> Vec<String> {
        of_tool.iter().copied().map(str::to_owned).collect()
    }

    #[test]
    fn a_tag_is_what_a_contract_can_say() {
        for malformed in ["", " ", "a b", "a,b", "a.b", "a/b", "a%62", "ä", "a\n"] {
            assert_eq!(Tags::of(malformed), Err(BadTag), "{malformed:?}");
        }
        assert!(Tags::of("Refunds_2-b").is_ok());
    }

    #[test]
    fn a_tool_is_within_a_bound_by_any_of_its_tags_and_must_be_within_every_bound() {
        assert!(session().is_open_to(&[]));
        let desk = session().only_tags(bound(["orders", "refunds"]));
        assert!(desk.is_open_to(&tags(&["orders"])) && desk.is_open_to(&tags(&["money", "refunds"])));
        assert!(!desk.is_open_to(&tags(&["Orders"])) && !desk.is_open_to(&[]));
        let narrower = desk.only_tags(bound(["money"]));
        assert!(narrower.is_open_to(&tags(&["money", "refunds"])));
        assert!(!narrower.is_open_to(&tags(&["orders"])) && !narrower.is_open_to(&tags(&["money"])));
    }

    proptest! {
        #[test]
        fn a_bound_never_widens_a_session(
            bounds in prop::collection::vec(prop::collection::btree_set("[a-d]", 1..4), 0..4),
            more in prop::collection::btree_set("[a-d]", 1..4),
            tool in prop::collection::vec("[a-d]", 0..4),
        ) {
            let wide = bounds.into_iter().fold(session(), |session, tags| session.only_tags(bound(tags)));
            let narrow = wide.clone().only_tags(bound(more.clone()));
            let has_more = tool.iter().any(|tag| more.contains(tag));
            prop_assert_eq!(narrow.is_open_to(&tool), wide.is_open_to(&tool) && has_more);
        }
    }
}
