//! What stands beside the line: the guard of a run, and what a refusal tells of the run that reads it.

use super::{Gate, records};
use crate::fault::Fault;
use crate::guards::{Crowded, Slot};
use crate::ledger::StoreError;
use crate::policy::requires_id;
use crate::refusal::{Code, Refusal};
use crate::reply::Answer;
use crate::session::Session;
use crate::stage::admit::Admitted;
use crate::stage::inform::{Came, Informed};
use crate::stage::permit::{Denied, Permitted, Unsaid};
use crate::stage::{Halt, Stop};
use crate::trace::{Learned, Trace};

impl Gate {
    /// A denial, once what its words carry is known of the run that reads them.
    pub(super) async fn told(&self, denied: Denied) -> Stop {
        let may_be_told = self.may_be_told(denied.informed(), denied.shown(), denied.refusal()).await;
        let Stop { halt, mut trace } = denied.into_stop();
        match may_be_told {
            Ok(true) => Stop { halt, trace },
            Ok(false) => {
                let refusal = Refusal::before(Code::Forbidden);
                trace.note("rule", Learned::new().with("refused", refusal.code().as_str()));
                Stop::refused(refusal, trace)
            }
            Err(error) => Stop::fault(error, trace),
        }
    }

    /// What a dry run tells of a call that would pass, once what its words carry is known of the run that reads them: where
    /// policies are only observed, it tells what they would have refused.
    pub(super) async fn forecast(&self, permitted: Permitted) -> Result<(Answer, Trace), Fault> {
        let unsaid = match permitted.unsaid() {
            Some(Unsaid { refusal, shown }) => {
                let may_be_told = self.may_be_told(permitted.informed(), shown, Some(refusal.as_ref())).await?;
                Some(if may_be_told { (**refusal).clone() } else { Refusal::before(Code::Forbidden) })
            }
            None => None,
        };
        Ok(records::forecast(permitted, unsaid.as_ref()))
    }

    /// Whether a refusal may be told as it stands. INVARIANT (labelled first): what the facts that it shows carry is known
    /// of the run before anybody reads it. And what must come first and is not there for this session, it learns of from
    /// no rule.
    async fn may_be_told(
        &self,
        informed: &Informed,
        shown: &[String],
        refusal: Option<&Refusal>,
    ) -> Result<bool, StoreError> {
        let admitted = informed.admitted();
        let (contract, session) = (&admitted.tool().contract, admitted.session());
        let labels = self.line.registry.labels_of_facts(contract, shown);
        if let Some(marking) = informed.marking(Came::Refused { labels }) {
            self.line.store.join(marking, self.now()).await?;
        }
        let Some(rule) = refusal.and_then(Refusal::rule_id) else { return Ok(true) };
        let mut unseen = contract.requires.iter().filter(|first| self.line.catalogue.find(first, session).is_none());
        Ok(!unseen.any(|first| requires_id(&contract.name, first) == rule))
    }

    /// A call of a run that was not refused too often, with its right to be decided now. Where there are more calls of a
    /// run at once than it may be refused, some wait, so that what the first come to counts for the rest.
    pub(super) async fn guarded(&self, mut admitted: Admitted) -> Result<(Admitted, Option<Slot>), Stop> {
        let slot = match self.line.refusals.slot(admitted.session(), admitted.patience()).await {
            Ok(slot) => slot,
            Err(Crowded) => return Err(Stop::refused(Refusal::before(Code::InProgress), admitted.into_trace())),
        };
        match self.line.refusals.check(admitted.session()).await {
            Ok(None) => Ok((admitted, slot)),
            Ok(Some(refusal)) => {
                admitted.note("guard", Learned::new().with("refused", refusal.code().as_str()));
                Err(Stop::refused(refusal, admitted.into_trace()))
            }
            Err(error) => Err(Stop::fault(error, admitted.into_trace())),
        }
    }

    /// What is told of a refusal, which the guard of its run has heard.
    pub(super) async fn heard(&self, session: &Session, Stop { halt, mut trace }: Stop) -> Stop {
        let Halt::Refused(refusal) = halt else { return Stop { halt, trace } };
        let code = refusal.code();
        match self.line.refusals.hear(session, *refusal).await {
            Ok(refusal) => {
                if refusal.code() != code {
                    trace.note("guard", Learned::new().with("refused", refusal.code().as_str()));
                }
                Stop::refused(refusal, trace)
            }
            Err(error) => Stop::fault(error, trace),
        }
    }
}
