//! permit: `Informed -> Permitted`. One verdict over permissions, rules and approvals. It touches no store.

mod consent;
mod observe;
mod order;

use std::sync::Arc;
use std::time::Duration;

use consent::Consent;

use super::inform::Informed;
use super::{Halt, Stop};
use crate::approval::{ApprovalState, Approver};
use crate::clock::Clock;
use crate::json::Digest;
use crate::ledger::Drawing;
use crate::modes::Modes;
use crate::policy::{Ask, Judgement, Policies, RuleHit, Why};
use crate::refusal::{Code, Refusal};
use crate::session::Standing;
use crate::template::visible;
use crate::trace::Learned;

pub(crate) use observe::Unsaid;
use observe::Would;

/// The third stage.
pub(crate) struct Permit {
    policies: Arc<Policies>,
    standing: Option<Arc<dyn Standing>>,
    clock: Arc<dyn Clock>,
    /// How long a pending approval can be answered.
    asked_for: Duration,
    modes: Modes,
}

/// A call that may run, or whose stored answer may be given again.
#[derive(Debug)]
pub(crate) struct Permitted {
    informed: Informed,
    /// What of other people's consent it uses.
    consent: Option<Consent>,
    /// What would have been answered, where the policies are only observed and were against it.
    unsaid: Option<Unsaid>,
}

/// A call that may not run. The proof comes along, so that it can be decided again where the ground has moved.
#[derive(Debug)]
pub(crate) struct Denied {
    informed: Informed,
    halt: Halt,
    /// The facts that its words show.
    shown: Vec<String>,
}

impl Permit {
    pub(crate) fn new(
        policies: Arc<Policies>,
        standing: Option<Arc<dyn Standing>>,
        clock: Arc<dyn Clock>,
        asked_for: Duration,
        modes: Modes,
    ) -> Self {
        Self { policies, standing, clock, asked_for, modes }
    }

    pub(crate) fn enter(&self, mut informed: Informed) -> Result<Permitted, Box<Denied>> {
        // An operator's stop goes before every other word.
        if let Some(stoppage) = informed.stopped() {
            let (refusal, learned) = (stoppage.refusal(self.clock.now()), stoppage.learned());
            informed.note("permit", learned);
            let halt = Halt::Refused(Box::new(refusal));
            return Err(Box::new(Denied { informed, halt, shown: Vec::new() }));
        }
        let verdict = self.decide(&informed);
        let learned = verdict.learned();
        let learned = if self.observes(&informed) { learned.with("mode", "observe") } else { learned };
        let learned = match informed.admitted().named_approval() {
            Some(named) => learned.with("named_approval", visible(named)),
            None => learned,
        };
        informed.note("permit", learned);
        match verdict {
            Verdict::Yes { consent, .. } => Ok(Permitted { informed, consent, unsaid: None }),
            Verdict::Anyway(Would { unsaid, .. }) => Ok(Permitted { informed, consent: None, unsaid: Some(unsaid) }),
            Verdict::No { halt, .. } => {
                let shown = self.shown(&informed, &halt);
                Err(Box::new(Denied { informed, halt, shown }))
            }
        }
    }

    /// What the policies say of a call of which only words are left. It proves nothing, and nothing can follow from it.
    pub(crate) fn judge(&self, ask: &Ask<'_>, would_run: bool) -> Judgement {
        if would_run { self.policies.judge(ask) } else { self.policies.judge_replay(ask) }
    }

    /// Whether somebody has a role today, as far as that is known: else by those that they had.
    pub(crate) fn has_role(&self, person: &Approver, role: &str, tenant: &str) -> bool {
        match self.standing.as_ref().and_then(|source| source.roles(&person.principal, tenant)) {
            Some(roles) => roles.contains(role),
            None => person.roles.iter().any(|had| had == role),
        }
    }

    /// The facts that the words of a refusal show: those in the messages of the rules that it tells.
    fn shown(&self, informed: &Informed, halt: &Halt) -> Vec<String> {
        let tool = &informed.admitted().tool().contract.name;
        let shown = |rule: &str| self.policies.facts_shown(tool, rule);
        match halt {
            Halt::Refused(refusal) => refusal.rule_id().map(shown).unwrap_or_default(),
            Halt::Pending(approval) => approval.reasons.iter().flat_map(|reason| shown(&reason.rule)).collect(),
            Halt::Replayed { .. } | Halt::Fault(_) => Vec::new(),
        }
    }

    fn decide(&self, informed: &Informed) -> Verdict {
        let admitted = informed.admitted();
        let ask = Ask {
            tool: &admitted.tool().contract.name,
            session: admitted.session(),
            arguments: admitted.arguments(),
            facts: informed.facts(),
            resource: informed.resource(),
            run: informed.run(),
        };
        if informed.action().is_some_and(|action| !action.recalled.will_run()) {
            // Nothing runs, so nobody is asked.
            let judgement = self.policies.judge_replay(&ask);
            if self.observes(informed) {
                return self.observed(informed, &ask, judgement);
            }
            return match judgement {
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
            return invalid("the named approval is not one of this call that could be used");
        }
        let judgement = self.policies.judge(&ask);
        if self.observes(informed) {
            return self.observed(informed, &ask, judgement);
        }
        match judgement {
            Judgement::Permitted { by } => Verdict::Yes { consent: None, by },
            Judgement::Forbidden(why) => forbidden(&why),
            Judgement::Rule(hit) => match order::still_running(informed, &hit) {
                Some(first) => order::wait_for(first),
                None => rule(hit),
            },
            Judgement::NeedsApproval { reasons, by } => match self.consent(informed, reasons) {
                Ok(consent) => Verdict::Yes { consent: Some(consent), by },
                // Whoever names a grant means that one, so nobody is asked anew behind their back.
                Err(_) if names_a_grant(informed) => invalid("the named approval does not hold any more"),
                Err(missing) => self.ask_for(informed, missing),
            },
        }
    }
}

/// What was decided, with what the record tells of it.
enum Verdict {
    Yes {
        consent: Option<Consent>,
        by: Vec<String>,
    },
    No {
        halt: Halt,
        code: Code,
        why: String,
        /// The policies that could not be evaluated.
        erring: Vec<String>,
    },
    /// The policies are only observed: they say no, and the call goes on.
    Anyway(Would),
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
            Self::Yes { .. } | Self::Anyway(_) => self,
        }
    }

    fn learned(&self) -> Learned {
        match self {
            Self::Yes { consent, by } => {
                let learned = Learned::new().with("permitted_by", by.clone());
                match consent {
                    Some(consent) => consent.learned(learned),
                    None => learned,
                }
            }
            Self::No { code, why, erring, .. } => {
                told_of_errors(Learned::new().with("refused", code.as_str()).with("why", why.as_str()), erring)
            }
            Self::Anyway(would) => told_of_errors(Learned::new().with("would_refuse", would.told()), &would.erring),
        }
    }
}

/// INVARIANT (one answer): whatever is wrong with the approval that a call names, it is told the same.
fn invalid(why: &str) -> Verdict {
    Verdict::no(Refusal::before(Code::ApprovalInvalid), why)
}

/// Whether the call names the grant that was found for it.
fn names_a_grant(informed: &Informed) -> bool {
    let granted = informed.approval().filter(|approval| approval.state == ApprovalState::Granted);
    granted.is_some() && informed.admitted().named_approval().is_some()
}

fn told_of_errors(learned: Learned, erring: &[String]) -> Learned {
    if erring.is_empty() { learned } else { learned.with("erring", erring.to_vec()) }
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

    /// What is answered, where it is a refusal.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        match &self.halt {
            Halt::Refused(refusal) => Some(refusal),
            Halt::Replayed { .. } | Halt::Pending(_) | Halt::Fault(_) => None,
        }
    }

    /// The facts that its words show: nobody reads them before what they carry is known of the run.
    pub(crate) fn shown(&self) -> &[String] {
        &self.shown
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

    /// The approval that it uses up, with the digest of the policies that it was given under.
    pub(crate) fn consent(&self) -> Option<&(String, Digest)> {
        self.consent.as_ref().and_then(|consent| consent.exact.as_ref())
    }

    /// What it takes of standing grants.
    pub(crate) fn drawings(&self) -> Vec<Drawing> {
        self.consent.iter().flat_map(|consent| &consent.standing).map(|used| used.drawing.clone()).collect()
    }

    /// What would have been answered, were the policies enforced.
    pub(crate) fn unsaid(&self) -> Option<&Unsaid> {
        self.unsaid.as_ref()
    }

    pub(crate) fn note(&mut self, stage: &'static str, learned: Learned) {
        self.informed.note(stage, learned);
    }

    /// Gives the proof up.
    pub(crate) fn withdraw(self) -> Informed {
        self.informed
    }
}
