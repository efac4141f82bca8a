//! What people are told while policies are only observed.

use serde_json::Value;
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
    let Some(would) = would_refuse(reply) else { return };
    let text = |name: &str| would.get(name).and_then(Value::as_str).unwrap_or_default();
    output.note(&format!("observe mode: it would have been refused: {} ({})", text("code"), text("why")));
}

/// What policies would have refused of a call that went on.
fn would_refuse(reply: &Reply) -> Option<&Value> {
    let permit = reply.trace().stages().iter().rev().find(|note| note.stage == "permit");
    permit?.learned.get("would_refuse")
}

/// The code of it, behind a line about the call; nothing where policies permitted it.
pub(super) fn would_refuse_in_brief(reply: &Reply) -> String {
    let code = would_refuse(reply).and_then(|would| would.get("code")?.as_str());
    code.map(|code| format!(" would_refuse {code}")).unwrap_or_default()
}

fn listed(names: &[&str]) -> String {
    let shown: Vec<&str> = names.iter().copied().take(NAMED).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
