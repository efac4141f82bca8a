//! What stands beside the line: the guard of a run, and what a refusal tells of the run that reads it.

use std::sync::Arc;

use super::Gate;
use crate::guards::{Crowded, Slot};
use crate::policy::requires_id;
use crate::refusal::{Code, Refusal};
use crate::session::Session;
use crate::stage::admit::Admitted;
use crate::stage::inform::Came;
use crate::stage::permit::Denied;
use crate::stage::{Halt, Stop};
use crate::trace::Learned;

impl Gate {
    /// A denial, once what its words carry is known of the run that reads them.
    pub(super) async fn told(&self, denied: Denied) -> Stop {
        let (informed, now) = (denied.informed(), self.now());
        let admitted = informed.admitted();
        let (contract, session) = (&admitted.tool().contract, Arc::clone(admitted.session()));
        let labels = self.line.registry.labels_of_facts(contract, denied.shown());
        let marking = informed.marking(Came::Refused { labels });
        let unseen = |first: &&String| self.line.catalogue.find(first, &session).is_none();
        let unseen: Vec<String> =
            contract.requires.iter().filter(unseen).map(|first| requires_id(&contract.name, first)).collect();
        let joined = match marking {
            Some(marking) => self.line.store.join(marking, now).await,
            None => Ok(()),
        };
        let Stop { halt, mut trace } = denied.into_stop();
        match (joined, halt) {
            (Err(error), _) => Stop::fault(error, trace),
            // What must come first is not there for this session: it learns of it from no rule.
            (Ok(()), Halt::Refused(refusal)) if unseen.iter().any(|rule| refusal.rule_id() == Some(rule)) => {
                let refusal = Refusal::before(Code::Forbidden);
                trace.note("rule", Learned::new().with("refused", refusal.code().as_str()));
                Stop::refused(refusal, trace)
            }
            (Ok(()), halt) => Stop { halt, trace },
        }
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
