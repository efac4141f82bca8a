//! What a call takes of the limits of its contract, and what is said of one that has no room for it.

use std::time::Duration;

use serde_json::json;

use crate::clock::Millis;
use crate::contract::{Counts, Limit, LimitScope};
use crate::ledger::{CounterKey, Taking};
use crate::refusal::{Code, Refusal, Retry};
use crate::session::Session;
use crate::stage::admit::Admitted;

/// In the order of the contract's limits.
pub(super) fn of(admitted: &Admitted) -> Vec<Taking> {
    let (contract, session) = (&admitted.tool().contract, admitted.session());
    let taking = |limit: &Limit| Taking {
        counter: counter(&contract.name, limit, session),
        amount: limit.amount(admitted.arguments()),
        max: limit.max_for(session.roles()),
        per: limit.per,
    };
    contract.limits.iter().map(taking).collect()
}

/// `[tenant, tool, "limit", [what is counted, the length of its windows, scope], whose]`. Neither its place among the
/// limits nor its maximum is part of it, so that an edited contract forgets nothing that was taken.
fn counter(tool: &str, limit: &Limit, session: &Session) -> CounterKey {
    let counts = match &limit.counts {
        Counts::Calls => json!("calls"),
        Counts::Sum(pointer) => json!(["sum", pointer]),
    };
    let per = u64::try_from(limit.per.as_millis()).unwrap_or(u64::MAX);
    let (tenant, scope, whose) = match limit.scope {
        LimitScope::Run => (json!(session.tenant()), "run", json!([session.principal().canonical(), session.run()])),
        LimitScope::User => (json!(session.tenant()), "user", json!(session.principal().canonical())),
        LimitScope::Tenant => (json!(session.tenant()), "tenant", json!(null)),
        LimitScope::Tool => (json!(null), "tool", json!(null)),
    };
    CounterKey::of(&json!([tenant, tool, "limit", [counts, per, scope], whose]))
}

/// The refusal of a call for which a limit has no room: what is left of it, and when it begins anew.
pub(super) fn refusal(limit: &Limit, taking: &Taking, left: u64, until: Millis, now: Millis) -> Refusal {
    let whose = match limit.scope {
        LimitScope::Run => "of this run",
        LimitScope::User => "of this user",
        LimitScope::Tenant => "of this tenant",
        LimitScope::Tool => "of everybody",
    };
    let what = match &limit.counts {
        Counts::Calls => format!("No call {whose} is left"),
        // How much others took is not told beyond their own tenant.
        Counts::Sum(pointer) if limit.scope == LimitScope::Tool => {
            format!("Not so much of {pointer} is left for the calls {whose} together")
        }
        Counts::Sum(pointer) => format!("{left} of {pointer} is left for the calls {whose} together"),
    };
    let begun = format!("A limit of this tool has no room for this call. {what} until {until}; then it begins anew.");
    let refusal = Refusal::before(Code::LimitReached);
    match taking.amount > taking.max {
        true => refusal.message(format!(
            "{begun} This call takes more than there ever is, so waiting does not help. Nothing was done. Do not split \
             it to get past the limit: tell the user."
        )),
        false => refusal
            .message(format!(
                "{begun} Nothing was done. Do not split it or use another tool to get past the limit: tell the user."
            ))
            .retry(Retry::After(Duration::from_millis(until.0.saturating_sub(now.0)))),
    }
}
