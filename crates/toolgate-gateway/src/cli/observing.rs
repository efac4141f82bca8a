//! What people are told while policies are only observed.

use toolgate::Reply;
use toolgate::contract::Contract;

use super::Output;

/// How many tools are named.
const NAMED: usize = 5;

/// Says, before anything is done, that the policies of these tools refuse nothing; nothing where there are none.
pub(super) fn tell_observed<'c>(observed: impl Iterator<Item = &'c Contract>, of: usize, output: &mut Output) {
    let names: Vec<&str> = observed.map(Contract::name).collect();
    if names.is_empty() {
        return;
    }
    let whose = match names.len() {
        all if all == of => "policies refuse nothing".to_owned(),
        _ => format!("the policies of {} refuse nothing", listed(&names)),
    };
    output.warning(&format!("observe mode: {whose}; what they would have refused is only on record"));
}

/// Says of a call that went on what its policies would have refused, had they been enforced.
pub(super) fn tell_would_refuse(reply: &Reply, output: &mut Output) {
    let permit = reply.trace().stages().iter().rev().find(|note| note.stage == "permit");
    let Some(would) = permit.and_then(|note| note.learned.get("would_refuse")) else { return };
    let text = |name: &str| would.get(name).and_then(|value| value.as_str()).unwrap_or_default();
    output.note(&format!("observe mode: it would have been refused: {} ({})", text("code"), text("why")));
}

fn listed(names: &[&str]) -> String {
    let shown: Vec<&str> = names.iter().copied().take(NAMED).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
