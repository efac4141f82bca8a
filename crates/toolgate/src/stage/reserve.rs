//! reserve: `Permitted -> Reserved`. Identity, limits, lane, grant and the intent of the record become durable in one
//! transaction. It is the point of no return: after it nothing leaves the line but through `settle`.

mod takings;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::inform::{Action, Came, Recalled};
use super::permit::Permitted;
use super::{Halt, Stop, ended};
use crate::audit::Record;
use crate::call::Ref;
use crate::clock::{Clock, Millis};
use crate::crash::{self, Point};
use crate::ledger::{self, EntryKey, NewEntry, Opened, Opening, Store, Taking, downstream_key};
use crate::redaction::Redaction;
use crate::refusal::{Code, Effect, Refusal};
use crate::reply::Answer;
use crate::session::{Session, Standing};
use crate::stoppage::Stoppage;
use crate::trace::{Learned, Trace};

/// The fourth stage.
pub(crate) struct Reserve {
    store: Store,
    standing: Option<Arc<dyn Standing>>,
    clock: Arc<dyn Clock>,
    redaction: Redaction,
}

/// A call that runs now. INVARIANT (run once): it is not `Clone`, and running it takes it whole.
#[derive(Debug)]
pub(crate) struct Reserved {
    permitted: Permitted,
    entry: Option<OpenEntry>,
}

/// The open entry of a write.
#[derive(Clone, Debug)]
pub(crate) struct OpenEntry {
    pub(crate) key: EntryKey,
    pub(crate) attempt: u32,
    /// The attempt that first opened this occurrence.
    pub(crate) first: Ref,
    /// The end of the lease on this process's own clock, which nobody can move.
    pub(crate) lease_ends: Instant,
    /// The end of the lease as others read it.
    pub(crate) lease_end: Millis,
}

/// What came of reserving.
#[derive(Debug)]
pub(crate) enum Reservation {
    /// The call runs.
    Reserved(Box<Reserved>),
    /// What it was decided on has moved; nothing was written.
    Moved(Box<Permitted>),
}

/// What a lease outlasts the deadline by.
const GRACE: Duration = Duration::from_secs(5);

impl Reserve {
    pub(crate) fn new(
        store: Store,
        standing: Option<Arc<dyn Standing>>,
        clock: Arc<dyn Clock>,
        redaction: Redaction,
    ) -> Self {
        Self { store, standing, clock, redaction }
    }

    /// Whether nothing may begin in the name of this session any more: it ended, or was taken back.
    fn has_ended(&self, session: &Session) -> bool {
        let vouches = |source: &Arc<dyn Standing>| source.vouches_for(session.principal(), session.tenant());
        session.has_ended(self.clock.now()) || !self.standing.as_ref().is_none_or(vouches)
    }

    /// INVARIANT (judged at dispatch): whoever has waited until their session ended begins nothing, and is shown nothing
    /// of what was done before.
    ///
    /// `intent` writes the record that becomes durable with the reservation. Only a read that uses no consent and takes
    /// of no limit needs none: nothing of it has to be known afterwards before it is safe to go on.
    pub(crate) async fn enter(
        &self,
        mut permitted: Permitted,
        intent: impl FnOnce(&Permitted) -> Record,
    ) -> Result<Reservation, Stop> {
        if self.has_ended(permitted.informed().admitted().session()) {
            return Err(refuse(permitted, ended()));
        }
        match permitted.informed().action().map(|action| &action.recalled) {
            Some(Recalled::Replay(_)) => return Err(self.replay(permitted).await),
            Some(Recalled::Conflict) => return Err(refuse(permitted, Refusal::before(Code::KeyConflict))),
            Some(Recalled::Fresh | Recalled::Reopen | Recalled::Anew) | None => {}
        }
        let left = permitted.informed().admitted().deadline().saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(refuse(permitted, Refusal::before(Code::TimedOut)));
        }
        let takings = takings::of(permitted.informed().admitted());
        let drawings = permitted.drawings();
        let takes_nothing = permitted.consent().is_none() && takings.is_empty() && drawings.is_empty();
        if permitted.informed().action().is_none() && takes_nothing {
            return Ok(Reservation::Reserved(Box::new(Reserved { permitted, entry: None })));
        }
        let now = self.clock.now();
        let lease_end = now.after(left + GRACE);
        let lease_ends = Instant::now() + left + GRACE;
        let opening = Opening {
            entry: permitted.informed().action().map(|action| self.new_entry(&permitted, action, now, lease_end)),
            grant: permitted.consent().cloned(),
            takings: takings.clone(),
            drawings,
            intent: intent(&permitted),
            spot: permitted.informed().spot(),
        };
        let key = permitted.informed().action().map(|action| action.identity.key);
        crash::at(Point::BeforeOpen);
        match self.store.open(opening, now).await {
            Ok(Opened::Open { attempt, first }) => {
                crash::at(Point::AfterOpen);
                let mut learned = Learned::new().with("attempt", attempt).with("first_ref", first.as_str());
                if let Some(key) = key {
                    let mark = permitted.informed().admitted().tool().mark;
                    let shown = self.redaction.key_of_action(mark, downstream_key(key, &first));
                    learned = learned.with("idempotency_key", shown);
                }
                permitted.note("reserve", learned);
                let entry = key.map(|key| OpenEntry { key, attempt, first, lease_ends, lease_end });
                Ok(Reservation::Reserved(Box::new(Reserved { permitted, entry })))
            }
            Ok(Opened::Limited { which, left, until }) => {
                Err(limited(permitted, takings.get(which), which, (left, until), now))
            }
            Ok(Opened::Stopped(stoppage)) => Err(stopped(permitted, &stoppage, now)),
            Ok(Opened::Moved) => Ok(Reservation::Moved(Box::new(permitted))),
            Err(error) => Err(Stop::fault(error, into_trace(permitted))),
        }
    }

    /// What a call would be told of limits, were it made now. Nothing is taken, so another one may be first.
    pub(crate) async fn foresee(&self, permitted: Permitted) -> Result<Permitted, Stop> {
        if !permitted.informed().runs() {
            return Ok(permitted);
        }
        let takings = takings::of(permitted.informed().admitted());
        if takings.is_empty() {
            return Ok(permitted);
        }
        let now = self.clock.now();
        match self.store.foresee(takings.clone(), now).await {
            Ok(Some(Opened::Limited { which, left, until })) => {
                Err(limited(permitted, takings.get(which), which, (left, until), now))
            }
            Ok(Some(Opened::Open { .. } | Opened::Moved | Opened::Stopped(_)) | None) => Ok(permitted),
            Err(error) => Err(Stop::fault(error, into_trace(permitted))),
        }
    }

    /// The stored answer, once what it carries is known of the run.
    async fn replay(&self, permitted: Permitted) -> Stop {
        let halt = replay(&permitted);
        let now = self.clock.now();
        if let Halt::Replayed { answer, .. } = &halt
            && let Some(marking) = permitted.informed().marking(came(answer))
            && let Err(error) = self.store.join(marking, now).await
        {
            return Stop::fault(error, into_trace(permitted));
        }
        match halt {
            Halt::Refused(refusal) => refuse(permitted, *refusal),
            Halt::Replayed { .. } | Halt::Pending(_) | Halt::Fault(_) => Stop { halt, trace: into_trace(permitted) },
        }
    }

    fn new_entry(&self, permitted: &Permitted, action: &Action, since: Millis, lease_end: Millis) -> NewEntry {
        let informed = permitted.informed();
        let admitted = informed.admitted();
        let contract = &admitted.tool().contract;
        NewEntry {
            key: action.identity.key,
            action: ledger::Action {
                tool: contract.name.clone(),
                tenant: admitted.session().tenant().to_owned(),
                principal: admitted.session().principal().clone(),
                run: admitted.session().run().to_owned(),
                args_digest: admitted.args_digest(),
                arguments: Value::Object((**admitted.arguments()).clone()),
                facts: Value::Object((**informed.facts()).clone()),
                lane: action.identity.lane,
                keeps_lane: contract.keeps_lane(),
                retain_ms: u64::try_from(contract.once.retain.as_millis()).unwrap_or(u64::MAX),
                // What it uses up and takes is told by the opening.
                grant: None,
                holds: Vec::new(),
                subject: admitted.subject().map(|name| self.store.key().subject(admitted.session().tenant(), name)),
            },
            owner: self.store.owner().clone(),
            since,
            lease_end,
            reference: admitted.reference().clone(),
            anew: matches!(action.recalled, Recalled::Anew),
            stamp: action.stamp,
        }
    }
}

/// Nothing was written, so the record of the refusal is all that tells of it.
fn limited(
    mut permitted: Permitted,
    taking: Option<&Taking>,
    which: usize,
    (left, until): (u64, Millis),
    now: Millis,
) -> Stop {
    let limit = permitted.informed().admitted().tool().contract.limits.get(which);
    let refusal = match limit.zip(taking) {
        Some((limit, taking)) => takings::refusal(limit, taking, left, until, now),
        None => Refusal::before(Code::LimitReached),
    };
    let told = json!({"at": format!("/limits/{which}"), "left": left, "until": until.to_string()});
    permitted.note("reserve", Learned::new().with("refused", refusal.code().as_str()).with("limit", told));
    Stop::refused(refusal, into_trace(permitted))
}

/// An operator stopped it after it was decided; nothing was written.
fn stopped(mut permitted: Permitted, stoppage: &Stoppage, now: Millis) -> Stop {
    permitted.note("reserve", stoppage.learned());
    Stop::refused(stoppage.refusal(now), into_trace(permitted))
}

/// The stored answer, for whoever the action was; anybody else only learns that it was done.
fn replay(permitted: &Permitted) -> Halt {
    let refuse = |refusal| Halt::Refused(Box::new(refusal));
    let Some(Recalled::Replay(past)) = permitted.informed().action().map(|action| &action.recalled) else {
        return refuse(Refusal::before(Code::InProgress));
    };
    if past.principal != *permitted.informed().admitted().session().principal() {
        return refuse(Refusal::new(Code::AlreadyDone, Effect::Done));
    }
    if past.erased {
        return refuse(Refusal::new(Code::AlreadyDone, Effect::Done).message(
            "This action was already done, and was not done again. Its answer was erased since, so it cannot be shown.",
        ));
    }
    let answer = Answer::from_stored(&past.answer)
        .unwrap_or_else(|| Answer::Refused(Refusal::new(Code::InvalidResult, Effect::Done)));
    Halt::Replayed { answer: Box::new(answer), first: past.first.clone() }
}

/// What a stored answer comes to for the run that is shown it.
fn came(answer: &Answer) -> Came {
    let shows = match answer {
        Answer::Result(_) => true,
        Answer::Refused(refusal) => refusal.words_of_the_tool().is_some(),
    };
    Came::Ended { well: answer.effect() == Effect::Done, shows }
}

fn refuse(mut permitted: Permitted, refusal: Refusal) -> Stop {
    permitted.note("reserve", Learned::new().with("refused", refusal.code().as_str()));
    Stop::refused(refusal, into_trace(permitted))
}

fn into_trace(permitted: Permitted) -> Trace {
    permitted.withdraw().withdraw().into_trace()
}

impl Reserved {
    pub(crate) fn permitted(&self) -> &Permitted {
        &self.permitted
    }

    pub(crate) fn entry(&self) -> Option<&OpenEntry> {
        self.entry.as_ref()
    }

    /// The key that is sent downstream.
    pub(crate) fn idempotency_key(&self) -> Option<String> {
        self.entry.as_ref().map(|entry| downstream_key(entry.key, &entry.first))
    }

    pub(crate) fn note(&mut self, stage: &'static str, learned: Learned) {
        self.permitted.note(stage, learned);
    }

    pub(crate) fn into_trace(self) -> Trace {
        into_trace(self.permitted)
    }
}
