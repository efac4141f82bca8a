//! Observing: what the policies would have refused is noted, and the call goes on. Only what they say is observed. What
//! was refused before they were asked (arguments, another tenant's resource, facts that failed) and what comes after them
//! (limits, the ledger) holds as ever.

use serde_json::{Map, Value};

use super::order::{still_running, wait_for};
use super::{Permit, Verdict, forbidden, rule};
use crate::policy::{Ask, Judgement, NeedReason};
use crate::refusal::{Code, Refusal};
use crate::stage::Halt;
use crate::stage::inform::Informed;

/// What would have been answered, were the policies enforced. A dry run tells it.
#[derive(Debug)]
pub(crate) struct Unsaid {
    pub(crate) refusal: Box<Refusal>,
    /// The facts that its words show: nobody reads them before what they carry is known of the run.
    pub(crate) shown: Vec<String>,
}

/// What would have been refused, were the policies enforced.
pub(super) struct Would {
    pub(super) unsaid: Unsaid,
    /// The rules that say no, or that ask for consent.
    rules: Vec<String>,
    /// For the operator.
    why: String,
    /// The policies that could not be evaluated.
    pub(super) erring: Vec<String>,
}

impl Permit {
    /// Whether the policies of this call are only observed.
    pub(super) fn observes(&self, informed: &Informed) -> bool {
        self.modes.observe(&informed.admitted().tool().contract)
    }

    /// What becomes of a call whose policies are only observed. No approval is asked for, and none is used.
    pub(super) fn observed(&self, informed: &Informed, ask: &Ask<'_>, judgement: Judgement) -> Verdict {
        let shown = |rule: &str| self.policies.facts_shown(ask.tool, rule);
        let (verdict, rules, shown) = match judgement {
            Judgement::Permitted { by } => return Verdict::Yes { consent: None, by },
            Judgement::Forbidden(why) => (forbidden(&why), Vec::new(), Vec::new()),
            Judgement::Rule(hit) => {
                let rules = hit.all.clone();
                match still_running(informed, &hit) {
                    Some(first) => (wait_for(first), rules, Vec::new()),
                    None => {
                        let shown = shown(&hit.id);
                        (rule(hit), rules, shown)
                    }
                }
            }
            Judgement::NeedsApproval { reasons, by } => match self.consent(informed, reasons) {
                // Consent that is there would let it run. It is looked at alone: nothing of it is used up.
                Ok(_) => return Verdict::Yes { consent: None, by },
                Err(missing) => {
                    let rules = rules_of(&missing);
                    let shown = rules.iter().flat_map(|rule| shown(rule)).collect();
                    (missing_consent(&missing, &rules), rules, shown)
                }
            },
        };
        match verdict {
            Verdict::No { halt: Halt::Refused(refusal), code: _, why, erring } => {
                // To whoever may not see a tool it would not be there at all.
                let unsaid = match self.policies.visible(ask.tool, ask.session) {
                    true => Unsaid { refusal, shown },
                    false => Unsaid { refusal: Box::new(Refusal::before(Code::UnknownTool)), shown: Vec::new() },
                };
                Verdict::Anyway(Would { unsaid, rules, why, erring })
            }
            other @ (Verdict::Yes { .. } | Verdict::No { .. } | Verdict::Anyway(_)) => other,
        }
    }
}

impl Would {
    /// What the record tells of it.
    pub(super) fn told(&self) -> Value {
        let mut told = Map::from_iter([
            ("code".to_owned(), Value::from(self.unsaid.refusal.code().as_str())),
            ("why".to_owned(), Value::from(self.why.as_str())),
        ]);
        if let Some(rule) = self.unsaid.refusal.rule_id() {
            told.insert("rule".to_owned(), rule.into());
        }
        if !self.rules.is_empty() {
            told.insert("rules".to_owned(), self.rules.clone().into());
        }
        Value::Object(told)
    }
}

fn rules_of(reasons: &[NeedReason]) -> Vec<String> {
    let mut rules: Vec<String> = reasons.iter().map(|reason| reason.rule.clone()).collect();
    rules.sort();
    rules
}

fn missing_consent(reasons: &[NeedReason], rules: &[String]) -> Verdict {
    let messages: Vec<&str> = reasons.iter().map(|reason| reason.message.as_str()).collect();
    let refusal = Refusal::before(Code::ApprovalRequired).message(messages.join(" "));
    Verdict::no(refusal, format!("asked by {}", rules.join(", ")))
}
