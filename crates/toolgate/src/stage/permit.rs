//! permit: `Informed -> Permitted`. One verdict over permissions, rules and approvals. It touches no store.

mod consent;

use std::sync::Arc;
use std::time::Duration;

use super::inform::Informed;
use super::{Halt, Stop};
use crate::clock::Clock;
use crate::json::Digest;
use crate::policy::{Ask, Judgement, Policies, RuleHit, Why};
use crate::refusal::{Code, Refusal};
use crate::session::Standing;
use crate::trace::Learned;

/// The third stage.
pub(crate) struct Permit {
    policies: Arc<Policies>,
    standing: Option<Arc<dyn Standing>>,
    clock: Arc<dyn Clock>,
    /// How long a pending approval can be answered.
    asked_for: Duration,
}

/// A call that may run, or whose stored answer may be given again.
#[derive(Debug)]
pub(crate) struct Permitted {
    informed: Informed,
    /// The approval that it uses up, with the digest of the policies that it was given under.
    consent: Option<(String, Digest)>,
}

/// A call that may not run. The proof comes along, so that it can be decided again where the ground has moved.
#[derive(Debug)]
pub(crate) struct Denied {
    informed: Informed,
    halt: Halt,
}

impl Permit {
    pub(crate) fn new(
        policies: Arc<Policies>,
        standing: Option<Arc<dyn Standing>>,
        clock: Arc<dyn Clock>,
        asked_for: Duration,
    ) -> Self {
        Self { policies, standing, clock, asked_for }
    }

    pub(crate) fn enter(&self, mut informed: Informed) -> Result<Permitted, Box<Denied>> {
        let verdict = self.decide(&informed);
        informed.note("permit", verdict.learned());
        match verdict {
            Verdict::Yes { consent, .. } => Ok(Permitted { informed, consent }),
            Verdict::No { halt, .. } => Err(Box::new(Denied { informed, halt })),
        }
    }

    /// What the policies say of a call of which only words are left. It proves nothing, and nothing can follow from it.
    pub(crate) fn judge(&self, ask: &Ask<'_>, would_run: bool) -> Judgement {
        if would_run { self.policies.judge(ask) } else { self.policies.judge_replay(ask) }
    }

    fn decide(&self, informed: &Informed) -> Verdict {
        let admitted = informed.admitted();
        let ask = Ask {
            tool: &admitted.tool().contract.name,
            session: admitted.session(),
            arguments: admitted.arguments(),
            facts: informed.facts(),
            resource: informed.resource(),
        };
        if informed.action().is_some_and(|action| !action.recalled.will_run()) {
            // Nothing runs, so nobody is asked.
            return match self.policies.judge_replay(&ask) {
                Judgement::Permitted { by } => Verdict::Yes { consent: None, by },
                Judgement::Forbidden(why) => forbidden(&why),
                Judgement::Rule(hit) => rule(hit),
                Judgement::NeedsApproval { .. } => {
                    Verdict::no(Refusal::before(Code::Forbidden), "it needs approval even where approval is given")
                }
            };
        }
        if let Some(named) = admitted.named_approval()
            && informed.approval().is_none_or(|approval| approval.id != named)
        {
            return Verdict::no(Refusal::before(Code::ApprovalInvalid), "the named approval is not one of this call");
        }
        match self.policies.judge(&ask) {
            Judgement::Permitted { by } => Verdict::Yes { consent: None, by },
            Judgement::Forbidden(why) => forbidden(&why),
            Judgement::Rule(hit) => rule(hit),
            Judgement::NeedsApproval { reasons, by } => match self.consent(informed, &reasons) {
                Some(consent) => Verdict::Yes { consent: Some(consent), by },
                None => self.ask_for(informed, reasons),
            },
        }
    }
}

/// What was decided, with what the record tells of it.
enum Verdict {
    Yes { consent: Option<(String, Digest)>, by: Vec<String> },
    No { halt: Halt, code: Code, why: String, erring: Vec<String> },
}

impl Verdict {
    fn no(refusal: Refusal, why: impl Into<String>) -> Self {
        let code = refusal.code();
        Self::No { halt: Halt::Refused(Box::new(refusal)), code, why: why.into(), erring: Vec::new() }
    }

    /// The same, for policies that could not be evaluated: their operator must hear of it.
    fn for_want_of(self, policies: &[String]) -> Self {
        match self {
            Self::No { halt, code, why, .. } => Self::No { halt, code, why, erring: policies.to_vec() },
            Self::Yes { .. } => self,
        }
    }

    fn learned(&self) -> Learned {
        match self {
            Self::Yes { consent, by } => {
                let learned = Learned::new().with("permitted_by", by.clone());
                match consent {
                    Some((approval, _)) => learned.with("approval", approval.as_str()),
                    None => learned,
                }
            }
            Self::No { code, why, erring, .. } => {
                let learned = Learned::new().with("refused", code.as_str()).with("why", why.as_str());
                if erring.is_empty() { learned } else { learned.with("erring", erring.clone()) }
            }
        }
    }
}

fn forbidden(why: &Why) -> Verdict {
    let told = match why {
        Why::Error { policies } => format!("a policy could not be evaluated: {}", policies.join(", ")),
        Why::NoPermit => "no policy permits it".to_owned(),
        Why::Silent { policies } => format!("forbidden by {}", policies.join(", ")),
        Why::Unrepresentable { at } => format!("policies cannot judge the value at {at}"),
    };
    let verdict = Verdict::no(Refusal::before(Code::Forbidden), told);
    match why {
        Why::Error { policies } => verdict.for_want_of(policies),
        Why::NoPermit | Why::Silent { .. } | Why::Unrepresentable { .. } => verdict,
    }
}

fn rule(hit: RuleHit) -> Verdict {
    let why = format!("rules that say no: {}", hit.all.join(", "));
    Verdict::no(Refusal::before(Code::RuleFailed).message(hit.message).rule(hit.id).fixed_by(hit.fix), why)
}

impl Denied {
    pub(crate) fn informed(&self) -> &Informed {
        &self.informed
    }

    /// Gives the refusal up.
    pub(crate) fn withdraw(self) -> Informed {
        self.informed
    }

    pub(crate) fn into_stop(self) -> Stop {
        Stop { halt: self.halt, trace: self.informed.withdraw().into_trace() }
    }
}

impl Permitted {
    pub(crate) fn informed(&self) -> &Informed {
        &self.informed
    }

    pub(crate) fn consent(&self) -> Option<&(String, Digest)> {
        self.consent.as_ref()
    }

    pub(crate) fn note(&mut self, stage: &'static str, learned: Learned) {
        self.informed.note(stage, learned);
    }

    /// Gives the proof up.
    pub(crate) fn withdraw(self) -> Informed {
        self.informed
    }
}
