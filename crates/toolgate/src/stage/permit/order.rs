//! Calls of one turn that a model made together though one must come before the other.

use super::Verdict;
use crate::policy::{RuleHit, requires_id};
use crate::refusal::{Code, Refusal};
use crate::stage::inform::Informed;

/// The tool that must come first, where nothing else is against the call than that it has not ended in this very turn.
pub(super) fn still_running<'a>(informed: &'a Informed, hit: &RuleHit) -> Option<&'a str> {
    let contract = &informed.admitted().tool().contract;
    let awaited: Vec<&str> = contract
        .requires
        .iter()
        .map(String::as_str)
        .filter(|first| informed.awaited().contains(*first) && hit.all.contains(&requires_id(&contract.name, first)))
        .collect();
    let others = hit.all.len() - awaited.len().min(hit.all.len());
    awaited.first().copied().filter(|_| others == 0)
}

/// It is no denial: the same call may pass a moment later.
pub(super) fn wait_for(first: &str) -> Verdict {
    let message = format!(
        "{first} must come first, and is still running in this turn. Nothing was done; send the same call again once it has \
         answered."
    );
    Verdict::no(Refusal::before(Code::InProgress).message(message), format!("{first} is still running in this turn"))
}
