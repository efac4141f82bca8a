//! The gate: the straight line from a call to a reply. It alone builds the records of what happened.

#[cfg(test)]
mod absence;
mod approvals;
#[cfg(test)]
mod authority;
mod builder;
#[cfg(test)]
mod ended;
mod erasure;
mod guarded;
mod keeper;
mod late;
mod notice;
mod recorder;
mod records;
mod rejudge;
mod rulings;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod sameness;
mod sessions;
mod sought;
mod standing;
#[cfg(test)]
mod steadiness;
mod stops;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::approval::Approval;
use crate::call::Call;
use crate::catalogue::Catalogue;
use crate::clock::{Clock, Millis};
use crate::contract::{Contract, Registry, ToolFault};
use crate::fault::Fault;
use crate::guards::{Refusals, Slot};
use crate::ledger::{self, Asking, Store, StoreError, Whose};
use crate::policy::Policies;
use crate::recovery::Recovery;
use crate::redaction::{Redaction, Redactor};
use crate::refusal::{ApprovalNotice, Code, Effect, Refusal};
use crate::reply::{Answer, Reply};
use crate::session::Session;
use crate::stage::admit::{Admit, Admitted, Named, Unadmitted};
use crate::stage::inform::Inform;
use crate::stage::permit::{Denied, Permit, Permitted};
use crate::stage::reserve::{Reservation, Reserve};
use crate::stage::run::Run;
use crate::stage::settle::{Recorded as Written, Said, Settle, Settled};
use crate::stage::{Halt, Stop, ended};
use crate::stoppage::View;
use crate::trace::{Learned, Trace};
use crate::turn::Seat;
use crate::wire::{Broken, Proposed};

pub use crate::policy::{NamedRole, PolicyCode, PolicyFault};
pub use crate::redaction::Kept;
pub use approvals::NotEdited;
pub use builder::{BuildError, Builder, Prepared, Sound};
pub use erasure::{Erased, InDoubt, NotErased, erase};
use keeper::Keeper;
pub use notice::Notice;
use notice::Teller;
use recorder::Recorder;
use records::Heading;
pub use rejudge::{Decided, Ended, Recorded, Undecided, Unhidden};
pub use rulings::{NotRuled, Ruling};
pub use sessions::{MOST_RUNS, NotBegun};
pub use stops::{LONGEST_STOP, LONGEST_WHY, NotLifted, NotStopped, is_fit, lift, stop, stops, time};
use turns::Taken;

/// Decides whether proposed calls may happen, makes them happen under limits and at most once, and answers.
///
/// Cloning gives another handle of the same gate.
#[derive(Clone)]
pub struct Gate {
    line: Arc<Line>,
    tasks: TaskTracker,
    recorder: Arc<Recorder>,
    keeper: Arc<Keeper>,
    closing: Arc<AtomicBool>,
}

/// The stages with their compiled state, and the words that they share.
struct Line {
    admit: Admit,
    inform: Inform,
    permit: Permit,
    reserve: Reserve,
    run: Run,
    settle: Settle,
    refusals: Refusals,
    registry: Arc<Registry>,
    policies: Arc<Policies>,
    catalogue: Arc<Catalogue>,
    recovery: Recovery,
    redaction: Redaction,
    stops: View,
    store: Store,
    clock: Arc<dyn Clock>,
    granted_for: Duration,
    /// Within which bounds approvals are asked for.
    asking: Asking,
    /// Rings at each answer to an approval that this process takes.
    answered: Notify,
    teller: Teller,
}

/// How often a call may still be informed.
struct Ways(usize);

/// How often a call whose ground moved is informed again.
const WAYS_BACK: usize = 2;

impl Gate {
    /// Starts a gate.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Passes one call down the line. A refusal is a reply; a fault is the gate's own failure, before anything ran.
    ///
    /// The call is a task of the gate's own, so that nobody who goes away leaves an entry open: dropping the future
    /// tells the work that its caller has gone, and what was reserved is settled all the same.
    pub async fn call(&self, call: Call, session: &Session) -> Result<Reply, Fault> {
        self.seated(self.line.admit.named(call, session), session, None).await
    }

    /// Passes a call down the line, by itself or as one of those of a turn.
    async fn seated(&self, named: Named, session: &Session, seat: Option<Seat>) -> Result<Reply, Fault> {
        self.keeper.begin();
        let seat = seat.map(Arc::new);
        let heading = Arc::new(Heading::of(named.call(), session, &self.line.redaction));
        let gone = CancellationToken::new();
        let _caller = gone.clone().drop_guard();
        let (gate, own) = (self.clone(), Arc::clone(&heading));
        let task = self.tasks.spawn(async move {
            gate.ready()?;
            match gate.pass(named, &own, &gone, seat).await {
                Ok(settled) => Ok(gate.settled(&own, settled).await),
                Err(stop) => gate.left(&own, stop).await,
            }
        });
        match task.await {
            Ok(answer) => answer,
            Err(_) => heading.lost().ok_or(Fault::Lost),
        }
    }

    /// The line, and the guard of the run beside it.
    async fn pass(
        &self,
        named: Named,
        heading: &Heading,
        gone: &CancellationToken,
        seat: Option<Arc<Seat>>,
    ) -> Result<Settled, Stop> {
        let (admitted, redactor, whose) = self.admit(named, heading).await?;
        let (admitted, mut slot) = self.guarded(admitted.seated(seat)).await?;
        match self.walk(admitted, (&redactor, whose), heading, gone, &mut slot).await {
            Ok(settled) => Ok(settled),
            Err(stop) => Err(self.heard(&heading.session(), stop).await),
        }
    }

    /// The line behind the guard. `slot` is the right of the call to be decided: it ends once it is.
    async fn walk(
        &self,
        mut admitted: Admitted,
        (redactor, whose): (&Redactor, Option<Whose>),
        heading: &Heading,
        gone: &CancellationToken,
        slot: &mut Option<Slot>,
    ) -> Result<Settled, Stop> {
        let mut ways = Ways::default();
        loop {
            let permitted = self.weighed(admitted, redactor, gone, &mut ways).await?;
            slot.take();
            if let Some(whose) = whose.as_ref().filter(|_| permitted.informed().runs())
                && let Err(error) = self.line.store.keep(whose).await
            {
                return Err(Stop::fault(error, permitted.withdraw().withdraw().into_trace()));
            }
            match self.line.reserve.enter(permitted, |permitted| heading.intent(permitted, self.now())).await? {
                Reservation::Reserved(reserved) => {
                    let ran = self.line.run.enter(*reserved, gone.clone()).await;
                    let record =
                        |trace: &Trace, answer: &Answer, said| heading.ended_as(said, trace, answer, self.now());
                    return Ok(self.line.settle.enter(ran, record).await);
                }
                Reservation::Moved(permitted) => admitted = permitted.withdraw().withdraw(),
            }
        }
    }

    /// A call that is judged and does not run, and the guard of its run beside it.
    async fn considered(&self, admitted: Admitted, redactor: &Redactor) -> Result<Permitted, Stop> {
        let session = Arc::clone(admitted.session());
        let (admitted, _slot) = self.guarded(admitted).await?;
        match self.weighed(admitted, redactor, &CancellationToken::new(), &mut Ways::default()).await {
            Ok(permitted) if session.has_ended(self.now()) => {
                Err(Stop::refused(ended(), permitted.withdraw().withdraw().into_trace()))
            }
            Ok(permitted) => Ok(permitted),
            Err(stop) => Err(self.heard(&session, stop).await),
        }
    }

    /// What the policies say of a call, on ground that stands.
    async fn weighed(
        &self,
        mut admitted: Admitted,
        redactor: &Redactor,
        gone: &CancellationToken,
        ways: &mut Ways,
    ) -> Result<Permitted, Stop> {
        while ways.take() {
            let informed = self.line.inform.enter(admitted, redactor, gone).await?;
            match self.line.permit.enter(informed) {
                Ok(permitted) => {
                    self.line.teller.hear(permitted.informed().admitted());
                    return Ok(permitted);
                }
                Err(denied) => {
                    self.line.teller.hear(denied.informed().admitted());
                    admitted = self.reconsider(*denied).await?;
                }
            }
        }
        Err(Stop::refused(Refusal::before(Code::InProgress), admitted.into_trace()))
    }

    /// The first stage, and from it on what the record tells of the call itself.
    async fn admit(&self, named: Named, heading: &Heading) -> Result<(Admitted, Arc<Redactor>, Option<Whose>), Stop> {
        let admitted = self.line.admit.enter(named, heading.session(), heading.reference(), self.now());
        let admitted = admitted.map_err(|unadmitted| {
            heading.unadmitted(&unadmitted);
            let Unadmitted { stop, .. } = *unadmitted;
            stop
        })?;
        let tool = admitted.tool();
        let whose = match admitted.subject() {
            Some(name) => match self.line.store.whose(admitted.session().tenant(), name).await {
                Ok(whose) => Some(whose),
                Err(error) => return Err(Stop::fault(error, admitted.into_trace())),
            },
            None => None,
        };
        let redactor = Arc::new(self.line.redaction.of_call(tool.mark, whose.as_ref().map(Whose::salt)));
        heading.admitted(&admitted, self.line.policies.slice_digest(&tool.contract.name), &redactor);
        Ok((admitted, redactor, whose))
    }

    /// A denial holds only while the ground stands that it rests on.
    async fn reconsider(&self, denied: Denied) -> Result<Admitted, Stop> {
        match self.line.inform.has_moved(denied.informed()).await {
            Ok(true) => Ok(denied.withdraw().withdraw()),
            Ok(false) => Err(self.told(denied).await),
            Err(error) => Err(Stop::fault(error, denied.into_stop().trace)),
        }
    }

    /// The reply to a call that ran.
    async fn settled(&self, heading: &Heading, settled: Settled) -> Reply {
        match &settled.recorded {
            Written::Durable => {}
            Written::Read => self.recorder.put(heading.read(&settled, self.now())).await,
            Written::Lost(error) => {
                let record = heading.ended_as(Said::TooLate, &settled.trace, &settled.answer, self.now());
                self.recorder.put_loudly(record, error.clone()).await;
            }
        }
        self.reply(heading, settled.answer, settled.trace)
    }

    /// The reply to a call that ended before anything ran.
    async fn left(&self, heading: &Arc<Heading>, stop: Stop) -> Result<Reply, Fault> {
        let now = self.line.clock.now();
        let Stop { halt, trace } = or_ended(&heading.session(), stop, now);
        match halt {
            Halt::Refused(refusal) => {
                self.recorder.put(heading.refused(&refusal, &trace, now)).await;
                Ok(heading.reply(Answer::Refused(*refusal), trace))
            }
            Halt::Replayed { answer, first } => {
                self.recorder.put(heading.replayed(&first, &trace, now)).await;
                Ok(self.reply(heading, *answer, trace).replayed_from(first))
            }
            Halt::Pending(approval) => {
                let record = heading.proposed(&trace, now);
                let approval = approval.redacted(&self.line.redaction, heading.call_digest());
                let refusal = match self.line.store.propose(approval, self.line.asking, record, now).await? {
                    ledger::Proposed::Pending(approval) => held(&approval),
                    ledger::Proposed::TooMany(full) => {
                        let refusal = approvals::too_many(full, self.line.asking);
                        self.recorder.put(heading.refused(&refusal, &trace, now)).await;
                        refusal
                    }
                };
                Ok(heading.reply(Answer::Refused(refusal), trace))
            }
            Halt::Fault(fault) => Err(fault),
        }
    }

    /// What the session reads of an answer. A tool that it may not see is no advice.
    fn reply(&self, heading: &Heading, answer: Answer, trace: Trace) -> Reply {
        let session = heading.session();
        let answer = answer.advising(|tool| self.line.catalogue.find(tool, &session).is_some());
        heading.reply(answer, trace)
    }

    /// Passes the calls of one turn, together as their lanes allow. The answers come in the order of the calls.
    pub async fn turn(&self, calls: Vec<Proposed>, session: &Session) -> Vec<Result<Reply, Fault>> {
        let answers = self.taken(calls, session).into_iter().map(|taken| async move {
            match taken {
                Taken::Call(named, seat) => self.seated(*named, session, Some(seat)).await,
                Taken::Broken(broken) => self.broken(broken, session).await,
            }
        });
        futures_util::future::join_all(answers).await
    }

    /// The reply to a call that its dialect refuses as it stands: it is recorded like any other.
    async fn broken(&self, broken: Broken, session: &Session) -> Result<Reply, Fault> {
        let _running = self.tasks.token();
        self.ready()?;
        let heading = Arc::new(Heading::new(broken.call_id, broken.tool, session, &self.line.redaction));
        let mut trace = Trace::start(&self.line.redaction);
        trace.note("decode", Learned::new().with("refused", broken.refusal.code().as_str()));
        self.left(&heading, Stop::refused(broken.refusal, trace)).await
    }

    /// Judges a call without asking anybody and without running anything. The reply tells what would become of it: stops
    /// and limits are looked at as they stand now, and nothing is taken of a limit.
    pub async fn dry_run(&self, call: Call, session: &Session) -> Result<Reply, Fault> {
        self.tried(self.line.admit.named(call, session), session, None).await
    }

    /// Judges a call, by itself or as one of those of a turn.
    async fn tried(&self, named: Named, session: &Session, seat: Option<Seat>) -> Result<Reply, Fault> {
        let _running = self.tasks.token();
        self.ready()?;
        let heading = Heading::of(named.call(), session, &self.line.redaction);
        let judged = match self.admit(named, &heading).await {
            Ok((admitted, redactor, _)) => {
                match self.considered(admitted.seated(seat.map(Arc::new)), &redactor).await {
                    Ok(permitted) => self.line.reserve.foresee(permitted).await,
                    Err(stop) => Err(stop),
                }
            }
            Err(stop) => Err(stop),
        };
        let judged = judged.map_err(|stop| or_ended(session, stop, self.now()));
        let (answer, trace) = match judged {
            Ok(permitted) => self.forecast(permitted).await?,
            Err(Stop { halt, trace }) => match halt {
                Halt::Refused(refusal) => (Answer::Refused(*refusal), trace),
                Halt::Replayed { answer, .. } => (*answer, trace),
                Halt::Pending(approval) => (Answer::Refused(would_ask(&approval)), trace),
                Halt::Fault(fault) => return Err(fault),
            },
        };
        self.recorder.put(heading.dry_run(&answer, &trace, self.line.clock.now())).await;
        Ok(self.reply(&heading, answer, trace))
    }

    /// Judges the calls of one turn, as [`Gate::dry_run`] does.
    pub async fn dry_turn(&self, calls: Vec<Proposed>, session: &Session) -> Vec<Result<Reply, Fault>> {
        let answers = self.taken(calls, session).into_iter().map(|taken| async move {
            match taken {
                Taken::Call(named, seat) => self.tried(*named, session, Some(seat)).await,
                Taken::Broken(broken) => self.broken(broken, session).await,
            }
        });
        futures_util::future::join_all(answers).await
    }

    /// The tools that this session may see, by name.
    pub fn tools(&self, session: &Session) -> Vec<&Contract> {
        self.line.catalogue.of(session).collect()
    }

    /// Whether a plain digest of what this tool was given could be tried until it fits: it marks something as secret or
    /// personal, or the gate does not know it any more.
    pub fn is_marked(&self, tool: &str) -> bool {
        self.line.registry.get(tool).is_none_or(|tool| tool.mark.is_some())
    }

    /// All contracts, by name, whoever may see them.
    pub fn contracts(&self) -> impl Iterator<Item = &Contract> {
        self.line.registry.iter().map(|tool| &*tool.contract)
    }

    /// The tools whose policies are only observed, by name: what those would refuse is on record, and refused is nothing.
    pub fn observed(&self) -> impl Iterator<Item = &Contract> {
        self.line.catalogue.observed()
    }

    /// What of its contracts holds and is probably not meant, each by itself and beside the others.
    pub fn warnings(&self) -> Vec<ToolFault> {
        self.line.registry.warnings()
    }

    /// What of its policies holds and is probably not meant, each in its file and line.
    pub fn policy_warnings(&self) -> Vec<PolicyFault> {
        builder::doubted(&self.line.registry, &self.line.policies)
    }

    /// How many policies judge its calls, those that contracts stand for among them.
    pub fn policy_count(&self) -> usize {
        self.line.policies.count()
    }

    /// Whether a call could be taken now: the gate is not closing, what was called is on record, and the store takes
    /// transactions.
    pub async fn is_ready(&self) -> Result<(), Fault> {
        self.ready()?;
        Ok(self.line.store.probe().await?)
    }

    /// The longest deadline of all tools: a call that takes longer than this is not waiting for a tool.
    pub fn longest_deadline(&self) -> Duration {
        self.line.registry.iter().map(|tool| tool.contract.deadline).max().unwrap_or_default()
    }

    /// The moment that it is for this gate, by which approvals and entries are dated.
    pub fn now(&self) -> Millis {
        self.line.clock.now()
    }

    /// The schema, in the Cedar language, that the contracts make and the policies are held to.
    pub fn cedar_schema(&self) -> &str {
        self.line.policies.cedar_schema()
    }

    /// The store of this gate.
    pub fn store(&self) -> &Store {
        &self.line.store
    }

    /// Looks after the ledger from now on, for a gate that is to stand for a while: the actions of dead processes and of
    /// ended leases are marked as unknown, what became of unknown ones is looked for where their contracts say how, and
    /// what is past its time is forgotten. It begins at once; without it, it begins a while after the first call. It ends
    /// with the gate. `tell` hears when the store fails in this, once until it is well again.
    ///
    /// Called on a runtime, which it then runs on.
    pub fn keep(&self, tell: impl Fn(&StoreError) + Send + Sync + 'static) {
        self.keeper.begin_at_once(tell);
    }

    /// Marks the actions of dead processes and of ended leases as unknown. It also happens by itself where a call meets
    /// one, and every few seconds.
    pub async fn sweep(&self) -> Result<usize, Fault> {
        Ok(self.line.recovery.sweep().await?)
    }

    /// Takes no more calls, waits for those that run, and until their records are durable. A store that fails meanwhile
    /// is given up after a few seconds: the fault says how many records are lost.
    pub async fn finish(&self) -> Result<(), Fault> {
        self.closing.store(true, Ordering::SeqCst);
        self.line.answered.notify_waiters();
        self.recorder.finishing();
        self.tasks.close();
        self.tasks.wait().await;
        self.keeper.end().await;
        self.recorder.finish().await
    }

    fn ready(&self) -> Result<(), Fault> {
        if self.closing.load(Ordering::SeqCst) {
            return Err(Fault::Closing);
        }
        self.recorder.ready()
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

impl Ways {
    fn take(&mut self) -> bool {
        let left = self.0.checked_sub(1);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

impl Default for Ways {
    fn default() -> Self {
        Self(WAYS_BACK + 1)
    }
}

/// INVARIANT (judged at dispatch): whoever's session ended while their call was judged learns that alone, and nobody is
/// asked in their name.
fn or_ended(session: &Session, Stop { halt, mut trace }: Stop, now: Millis) -> Stop {
    let tells = match &halt {
        Halt::Refused(refusal) => refusal.effect() == Effect::None && refusal.code() != Code::Unauthenticated,
        Halt::Pending(_) => true,
        Halt::Replayed { .. } | Halt::Fault(_) => false,
    };
    if tells && session.has_ended(now) {
        let refusal = ended();
        trace.note("session", Learned::new().with("refused", refusal.code().as_str()));
        return Stop::refused(refusal, trace);
    }
    Stop { halt, trace }
}

/// The refusal of a call that waits for a person.
fn held(approval: &Approval) -> Refusal {
    let notice = ApprovalNotice {
        id: approval.id.clone(),
        expires_at: approval.expires_at.to_string(),
        approvers: approval.reasons.iter().map(|reason| reason.approvers.clone().into()).collect(),
    };
    let message = format!(
        "{} It waits as approval {} for {}. Nothing was done; send the same call again once it is approved.",
        asks(approval),
        approval.id,
        approval.who_is_missing()
    );
    Refusal::before(Code::ApprovalRequired).message(message).approval(notice)
}

fn would_ask(approval: &Approval) -> Refusal {
    let message = format!("{} It would wait for {}.", asks(approval), approval.who_is_missing());
    Refusal::before(Code::ApprovalRequired).message(message)
}

fn asks(approval: &Approval) -> String {
    let messages: Vec<&str> = approval.reasons.iter().map(|reason| reason.message.as_str()).collect();
    messages.join(" ")
}
