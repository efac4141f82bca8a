//! Emergency stops: what an operator lets nobody call for a while.
//!
//! A stop is no policy. It stands in the store, so that every process that shares it goes by it from the next call on: a
//! write looks at it in the transaction that would open it, a read in a view that is at most a second old.

mod view;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::call::Ref;
use crate::clock::Millis;
use crate::refusal::{Code, Fix, Refusal, Retry};
use crate::session::Principal;
use crate::trace::Learned;

pub(crate) use view::View;

/// Which calls a stop is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Those of this tool; of all tools where nothing is said.
    pub tool: Option<String>,
    /// Those made in this tenant; in all tenants where nothing is said.
    pub tenant: Option<String>,
}

/// Calls that an operator lets nobody make for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stoppage {
    /// By which it is lifted.
    pub id: String,
    /// Which calls it is of.
    pub target: Target,
    /// Why, in the operator's words. INVARIANT (never told): no model and no user reads them.
    pub why: String,
    /// Who said so.
    pub by: Principal,
    /// The tenant whose administrator said so; the operator of the gate did where nothing is said. INVARIANT (setter
    /// alone): whoever speaks for a tenant reads the reason of no other stop, and lifts no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_in: Option<String>,
    /// Since when.
    pub at: Millis,
    /// From this moment on it stops nothing.
    pub until: Millis,
    /// By which the record tells of it.
    pub(crate) reference: Ref,
}

/// Where a call is made: of which tool, in which tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) tool: String,
    pub(crate) tenant: String,
}

impl Target {
    /// All calls.
    pub fn all() -> Self {
        Self::default()
    }

    /// The calls of one tool, in all tenants.
    pub fn tool(name: impl Into<String>) -> Self {
        Self { tool: Some(name.into()), tenant: None }
    }

    /// The calls made in one tenant, of all tools.
    pub fn tenant(name: impl Into<String>) -> Self {
        Self { tool: None, tenant: Some(name.into()) }
    }

    /// The same calls, those of one tenant alone.
    #[must_use]
    pub fn within(self, tenant: impl Into<String>) -> Self {
        Self { tenant: Some(tenant.into()), ..self }
    }

    fn covers(&self, spot: &Spot) -> bool {
        self.tool.as_ref().is_none_or(|tool| *tool == spot.tool)
            && self.tenant.as_ref().is_none_or(|tenant| *tenant == spot.tenant)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.tool, &self.tenant) {
            (None, None) => f.write_str("all calls"),
            (Some(tool), None) => write!(f, "the tool {tool}"),
            (None, Some(tenant)) => write!(f, "the tenant {tenant}"),
            (Some(tool), Some(tenant)) => write!(f, "the tool {tool} in the tenant {tenant}"),
        }
    }
}

impl Stoppage {
    /// The one of these that stops a call made there at `now`; of several the one that ends last, since the call runs no
    /// sooner.
    pub(crate) fn of(standing: &[Self], spot: &Spot, now: Millis) -> Option<Self> {
        let stopping = standing.iter().filter(|stop| now < stop.until && stop.target.covers(spot));
        stopping.max_by_key(|stop| stop.until).cloned()
    }

    /// What whoever called is told. That it is a stop, and until when; nothing of why.
    pub(crate) fn refusal(&self, now: Millis) -> Refusal {
        let message = format!(
            "An operator has stopped this for now, until {} at the latest. This call did nothing. Do not use another \
             tool to get past it: tell the user.",
            self.until
        );
        let left = Duration::from_millis(self.until.0.saturating_sub(now.0));
        Refusal::before(Code::Forbidden).message(message).fixed_by(Fix::Operator).retry(Retry::After(left))
    }

    /// What the record tells of a call that was stopped.
    pub(crate) fn learned(&self) -> Learned {
        Learned::new()
            .with("refused", Code::Forbidden.as_str())
            .with("stop", self.id.as_str())
            .with("why", format!("stopped by {}: {}", self.by, self.why))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn spot(tool: &str, tenant: &str) -> Spot {
        Spot { tool: tool.into(), tenant: tenant.into() }
    }

    fn stop(id: &str, target: Target, until: u64) -> Stoppage {
        let by = Principal::new("os", "operator#1");
        Stoppage {
            id: id.into(),
            target,
            why: "a leak".into(),
            by,
            set_in: None,
            at: Millis(1),
            until: Millis(until),
            reference: Ref::fresh(),
        }
    }

    #[test]
    fn a_stop_is_of_the_calls_that_it_names_and_of_no_other() {
        let here = spot("refund", "acme");
        for target in
            [Target::all(), Target::tool("refund"), Target::tenant("acme"), Target::tool("refund").within("acme")]
        {
            assert!(target.covers(&here), "{target}");
        }
        for target in [
            Target::tool("refun"),
            Target::tool("refunds"),
            Target::tenant("acme2"),
            Target::tool("refund").within("globex"),
            Target::tool("look").within("acme"),
        ] {
            assert!(!target.covers(&here), "{target}");
        }
    }

    #[test]
    fn of_several_stops_the_one_that_ends_last_is_told() {
        let standing =
            [stop("a", Target::all(), 20), stop("b", Target::tenant("acme"), 30), stop("c", Target::all(), 10)];
        let found = |now| Stoppage::of(&standing, &spot("refund", "acme"), Millis(now)).map(|stop| stop.id);
        assert_eq!(found(5).as_deref(), Some("b"));
        assert_eq!(Stoppage::of(&standing, &spot("refund", "globex"), Millis(5)).unwrap().id, "a");
        assert_eq!(found(30), None, "the end itself is free");
    }

    #[test]
    fn what_is_told_of_a_stop_is_when_it_ends_and_never_why() {
        let refusal = stop("a", Target::all(), 61_000).refusal(Millis(1_000));
        assert_eq!((refusal.code(), refusal.fix()), (Code::Forbidden, Fix::Operator));
        assert_eq!(refusal.retry_advice(), Retry::After(Duration::from_secs(60)));
        assert!(!refusal.text().contains("leak") && !refusal.text().contains("operator#1"), "{}", refusal.text());
    }
}
