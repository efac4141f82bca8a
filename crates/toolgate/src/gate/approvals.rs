//! What waits for a person: to see it, to wait for it, to answer it, and to ask for another call in its place.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::Gate;
use super::records::{self, Heading};
use crate::approval::{Approval, Capacity, Decision, Edited, NotDecided};
use crate::audit::Record;
use crate::call::Call;
use crate::fault::Fault;
use crate::ledger::{Answer, Asking, Edit, Full, Proposed};
use crate::refusal::{Code, Refusal, Retry};
use crate::schema::Mark;
use crate::session::Session;
use crate::stage::admit::Admitted;
use crate::stage::{Halt, Stop};

/// Why there is no approval of an edited call. What was asked is as it was.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotEdited {
    /// This person cannot answer the approval, or nobody can any more.
    #[error(transparent)]
    NotDecided(#[from] NotDecided),
    /// The call is the one that is asked already.
    #[error("these are the arguments that wait already: approve them, deny them, or write others")]
    Same,
    /// Where the arguments are shown masked, nobody wrote a value.
    #[error("a masked value of the arguments was not replaced: write the whole arguments, with every value in them")]
    Masked,
    /// The call is refused, as it would be if the requester had sent it.
    #[error("the edited call is refused as {}: {}", .0.code(), .0.text())]
    Refused(Box<Refusal>),
    /// The call needs nobody's approval, or has it.
    #[error("the edited call waits for nobody: deny this one, and let the requester send the call as it should be")]
    NeedsNobody,
    /// The call was made before, and would be answered from the ledger.
    #[error("the edited call was made already, so there is nothing to approve")]
    Made,
    /// The gate failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// An edited call that was judged and can be asked for.
struct Judged {
    approval: Approval,
    record: Box<dyn FnOnce(&Approval) -> Record + Send>,
}

/// An edited call that cannot, and what the record tells of it as a call.
struct Unfit {
    reason: NotEdited,
    record: Option<Record>,
}

/// How often the store is looked at for an answer that another process took.
const LOOK: Duration = Duration::from_millis(500);
/// When somebody may have made room for another approval.
const ROOM: Duration = Duration::from_secs(60);
/// What a secret is masked by begins with this; a digest may follow.
const SECRET: &str = "[secret";

impl Gate {
    /// The newest approvals of the session's tenant, a thousand at most, newest first.
    pub async fn approvals(&self, session: &Session) -> Result<Vec<Approval>, Fault> {
        Ok(self.line.store.approvals(session.tenant().to_owned()).await?)
    }

    /// The approval with this id, where it is of the session's tenant.
    pub async fn approval(&self, id: &str, session: &Session) -> Result<Option<Approval>, Fault> {
        Ok(self.line.store.approval(id.to_owned(), session.tenant().to_owned()).await?)
    }

    /// As [`approval`](Self::approval), once it is not pending any more, or when `wait` is over. An answer that this
    /// process takes is seen at once, one of another process on the store within half a second.
    pub async fn approval_within(
        &self,
        id: &str,
        session: &Session,
        wait: Duration,
    ) -> Result<Option<Approval>, Fault> {
        let end = Instant::now() + wait;
        loop {
            let answered = self.line.answered.notified();
            let found = self.approval(id, session).await?;
            let waits = found.as_ref().is_some_and(|one| one.state_at(self.now()) == "pending");
            let now = Instant::now();
            if !waits || end <= now || self.closing.load(Ordering::SeqCst) {
                return Ok(found);
            }
            tokio::select! {
                () = answered => {}
                () = sleep_until(end.min(now + LOOK)) => {}
            }
        }
    }

    /// Says yes to everything that this person may answer of a pending approval. It runs nothing: the same call, sent
    /// again, uses the grant.
    pub async fn approve(&self, id: &str, by: &Session) -> Result<Approval, NotDecided> {
        self.answer(id, by, Capacity::Any, Decision::Approve).await
    }

    /// Says no to a pending approval.
    pub async fn deny(&self, id: &str, by: &Session) -> Result<Approval, NotDecided> {
        self.answer(id, by, Capacity::Any, Decision::Deny).await
    }

    /// What a person's answer would make of a pending approval. Nothing is decided.
    pub async fn dry_decide(&self, id: &str, by: &Session, decision: Decision) -> Result<Approval, NotDecided> {
        let (now, mut approval) = (self.now(), self.sought(id, by).await?);
        approval.decide(by, Capacity::Any, decision, now, now.after(self.line.granted_for))?;
        Ok(approval)
    }

    /// A person's answer to a pending approval, in one of the capacities that they have.
    pub async fn answer(
        &self,
        id: &str,
        by: &Session,
        capacity: Capacity,
        decision: Decision,
    ) -> Result<Approval, NotDecided> {
        let now = self.now();
        let answer = Answer { by: by.clone(), capacity, decision, granted_until: now.after(self.line.granted_for) };
        let record = records::decision(by.clone(), decision, now);
        let decided = self.line.store.decide(id.to_owned(), answer, record, now).await;
        let decided = decided.unwrap_or(Err(NotDecided::Store));
        match &decided {
            Ok(_) => self.line.answered.notify_waiters(),
            Err(reason) => {
                let why = reason.to_string();
                self.recorder.put(records::not_decided(id, by, records::said(decision), &why, now)).await;
            }
        }
        decided
    }

    /// Asks for the call with other arguments in the place of a pending approval, by somebody who may answer it. The call
    /// is admitted and judged as the requester's own, with the roles that they have today, and it does not run: the
    /// answer is the approval that waits now, and the one before it is denied. The arguments are the text that a model
    /// would send.
    pub async fn edit(
        &self,
        id: &str,
        arguments: &[u8],
        by: &Session,
        capacity: Capacity,
    ) -> Result<Approval, NotEdited> {
        let _running = self.tasks.token();
        self.ready()?;
        let now = self.now();
        let edited = match self.judged(id, arguments, by, capacity).await {
            Ok(judged) => self.exchange(id, judged, by, capacity).await,
            Err(Unfit { reason, record }) => {
                if let Some(record) = record {
                    self.recorder.put(record).await;
                }
                Err(reason)
            }
        };
        match &edited {
            Ok(_) => self.line.answered.notify_waiters(),
            // That a call is refused stands on record as theirs who asked; that it was tried, as theirs who edited.
            Err(reason) => {
                let why = match reason {
                    NotEdited::Refused(refusal) => format!("the edited call is refused as {}", refusal.code()),
                    NotEdited::NotDecided(_)
                    | NotEdited::Same
                    | NotEdited::Masked
                    | NotEdited::NeedsNobody
                    | NotEdited::Made
                    | NotEdited::Fault(_) => reason.to_string(),
                };
                self.recorder.put(records::not_decided(id, by, records::EDIT, &why, now)).await;
            }
        }
        edited
    }

    /// What would be asked instead. Nothing is asked.
    pub async fn dry_edit(
        &self,
        id: &str,
        arguments: &[u8],
        by: &Session,
        capacity: Capacity,
    ) -> Result<Approval, NotEdited> {
        let _running = self.tasks.token();
        self.ready()?;
        match self.judged(id, arguments, by, capacity).await {
            Ok(judged) => Ok(judged.approval),
            Err(unfit) => Err(unfit.reason),
        }
    }

    async fn sought(&self, id: &str, by: &Session) -> Result<Approval, NotDecided> {
        let found = self.line.store.approval(id.to_owned(), by.tenant().to_owned()).await;
        found.map_err(|_| NotDecided::Store)?.ok_or(NotDecided::Missing)
    }

    /// The edited call passes the stages that a call passes before it runs, and must come out as one that waits.
    async fn judged(&self, id: &str, arguments: &[u8], by: &Session, capacity: Capacity) -> Result<Judged, Unfit> {
        let old = self.sought(id, by).await?;
        old.is_open_to(by, capacity, self.now())?;
        let call = Call::new(format!("edit of {}", old.id), old.tool.as_str(), arguments);
        let session = self.line.permit.requester_today(&old);
        let named = self.line.admit.named(call, &session);
        let heading = Arc::new(Heading::of(named.call(), &session, &self.line.redaction));
        let stop = match self.admit(named, &heading).await {
            Err(stop) => stop,
            Ok((admitted, redactor, _)) => {
                // The tool may be gone or hidden today, and a contract may let another one be called by its name.
                if admitted.tool().contract.name != old.tool {
                    Stop::refused(Refusal::before(Code::UnknownTool), admitted.into_trace())
                } else if admitted.call_digest() == old.call_digest {
                    return Err(NotEdited::Same.into());
                } else if is_masked(&admitted, &old) {
                    return Err(NotEdited::Masked.into());
                } else {
                    match self.considered(admitted, &redactor).await {
                        Err(stop) => stop,
                        Ok(permitted) if permitted.informed().runs() => return Err(NotEdited::NeedsNobody.into()),
                        Ok(_) => return Err(NotEdited::Made.into()),
                    }
                }
            }
        };
        let now = self.now();
        match stop.halt {
            Halt::Pending(approval) => {
                let edited = Some(Edited { of: old.id, by: by.principal().clone() });
                let approval = Approval { edited, ..approval.redacted(&self.line.redaction, heading.call_digest()) };
                Ok(Judged { approval, record: heading.proposed(&stop.trace, now) })
            }
            Halt::Refused(refusal) => {
                let record = Some(heading.refused(&refusal, &stop.trace, now));
                Err(Unfit { reason: NotEdited::Refused(refusal), record })
            }
            Halt::Replayed { .. } => Err(NotEdited::Made.into()),
            Halt::Fault(fault) => Err(NotEdited::Fault(fault).into()),
        }
    }

    async fn exchange(
        &self,
        id: &str,
        judged: Judged,
        by: &Session,
        capacity: Capacity,
    ) -> Result<Approval, NotEdited> {
        let Judged { approval, record } = judged;
        let (now, asking) = (self.now(), self.line.asking);
        let decision = records::edited(by.clone(), now);
        let edit = Edit { id: id.to_owned(), by: by.clone(), capacity, approval, asking };
        let records = Box::new(move |old: &Approval, new: &Approval| [record(new), decision(old)]);
        match self.line.store.edit(edit, records, now).await {
            Ok(Ok(Proposed::Pending(approval))) => Ok(approval),
            Ok(Ok(Proposed::TooMany(full))) => Err(NotEdited::Refused(Box::new(too_many(full, asking)))),
            Ok(Err(reason)) => Err(NotEdited::NotDecided(reason)),
            Err(error) => Err(NotEdited::Fault(Fault::Store(error))),
        }
    }
}

impl From<NotEdited> for Unfit {
    fn from(reason: NotEdited) -> Self {
        Self { reason, record: None }
    }
}

impl From<NotDecided> for Unfit {
    fn from(reason: NotDecided) -> Self {
        NotEdited::NotDecided(reason).into()
    }
}

/// Whether somebody sent back what stands where a value of the old arguments is masked.
fn is_masked(admitted: &Admitted, old: &Approval) -> bool {
    fn holds(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains(SECRET) || text.contains(Mark::Personal.shown()),
            Value::Array(items) => items.iter().any(holds),
            Value::Object(members) => members.values().any(holds),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    holds(&old.arguments) && admitted.arguments().values().any(holds)
}

/// The refusal where too many calls wait for a person.
pub(super) fn too_many(full: Full, asking: Asking) -> Refusal {
    let (whose, most) = match full {
        Full::User => ("this user", asking.most_of_user),
        Full::Tenant => ("this tenant", asking.most_of_tenant),
    };
    let message = format!(
        "{most} calls of {whose} wait for approval already, which is as many as may. Nothing was done, and nobody was \
         asked. Ask the user to have them answered before you send more."
    );
    Refusal::before(Code::LimitReached).message(message).retry(Retry::After(ROOM))
}
