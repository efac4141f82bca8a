//! inform: `Admitted -> Informed`. What the ledger knows of this action and its lane, then the resource and the facts,
//! in this order. All waiting happens here.

mod identity;
mod known_run;
mod recalled;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::Stop;
use super::admit::Admitted;
use crate::approval::Approval;
use crate::clock::Clock;
use crate::contract::Contract;
use crate::facts::{self, Asker, Facts, Ground};
use crate::json::canonical;
use crate::lanes::{Lanes, Place};
use crate::ledger::{Covered, Entry, GrantKey, Marking, Question, Recall, Stamp, State, Store, StoreError};
use crate::policy::Policies;
use crate::recovery::{Reconciled, Recovery};
use crate::redaction::Redactor;
use crate::refusal::{Code, Effect, Fix, Refusal, Retry};
use crate::runs::{RunState, Tracked};
use crate::standing::{Left, StandingGrant};
use crate::stoppage::{Spot, Stoppage, View};
use crate::template::{Scope, visible};
use crate::trace::Learned;

pub(crate) use identity::Identity;
pub(crate) use known_run::Came;
use known_run::KnownRun;
pub(crate) use recalled::Recalled;
use recalled::{InLedger, in_ledger};

/// The second stage.
pub(crate) struct Inform {
    store: Store,
    lanes: Lanes,
    facts: Facts,
    recovery: Recovery,
    policies: Arc<Policies>,
    clock: Arc<dyn Clock>,
    stops: View,
    /// What is kept of runs.
    tracked: Tracked,
}

/// A call with everything that deciding it needs.
#[derive(Debug)]
pub(crate) struct Informed {
    admitted: Admitted,
    known: Known,
}

/// What was learned of a call.
#[derive(Debug)]
struct Known {
    /// The action, where the call is a write.
    action: Option<Action>,
    facts: Arc<Map<String, Value>>,
    /// Where they come from, and how old they are; nothing of those that are recorded ones.
    sources: Map<String, Value>,
    /// The id of what is acted on.
    resource: Option<String>,
    approval: Option<Approval>,
    /// INVARIANT (nothing runs): what stops the call, of which no more is known then.
    stopped: Option<Box<Stoppage>>,
    standing: Vec<(StandingGrant, Left)>,
    run: KnownRun,
}

/// A write, and what the ledger knows of it.
#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) identity: Identity,
    pub(crate) recalled: Recalled,
    pub(crate) stamp: Stamp,
    /// The place on the lane; what does not run takes none.
    _place: Option<Place>,
}

/// Why a call gets no further.
enum Trouble {
    Refused { refusal: Box<Refusal>, why: String, sources: Map<String, Value> },
    Store(StoreError),
}

/// How long to wait before the store is asked again about an action of another process.
const POLL: Duration = Duration::from_millis(20);

impl Inform {
    pub(crate) fn new(
        store: Store,
        facts: Facts,
        recovery: Recovery,
        policies: Arc<Policies>,
        clock: Arc<dyn Clock>,
        stops: View,
        tracked: Tracked,
    ) -> Self {
        Self { store, lanes: Lanes::default(), facts, recovery, policies, clock, stops, tracked }
    }

    /// `gone` ends the waiting of a call whose caller has gone away; what is found goes through `redactor` into the trace.
    pub(crate) async fn enter(
        &self,
        mut admitted: Admitted,
        redactor: &Redactor,
        gone: &CancellationToken,
    ) -> Result<Informed, Stop> {
        let learned = tokio::select! {
            biased;
            () = gone.cancelled() => Err(Trouble::refused(Refusal::before(Code::Cancelled), "the caller went away")),
            learned = self.learn(&admitted) => learned,
        };
        match learned {
            Ok(known) => {
                let mut learned = Learned::new();
                if let Some(action) = &known.action {
                    learned = learned.with("recall", action.recalled.name());
                }
                if !known.facts.is_empty() {
                    let contract = &admitted.tool().contract;
                    learned = learned.with("facts", self.facts.redacted(contract, &known.facts, redactor));
                }
                if let Some(told) = known.run.told(&self.policies, &admitted) {
                    learned = learned.with("session", told);
                }
                if !known.sources.is_empty() {
                    learned = learned.with("sources", known.sources.clone());
                }
                admitted.note("inform", learned);
                Ok(Informed { admitted, known })
            }
            Err(Trouble::Refused { refusal, why, sources }) => {
                let mut learned = Learned::new().with("refused", refusal.code().as_str()).with("why", why);
                if !sources.is_empty() {
                    learned = learned.with("sources", sources);
                }
                admitted.note("inform", learned);
                Err(Stop::refused(*refusal, admitted.into_trace()))
            }
            Err(Trouble::Store(error)) => Err(Stop::fault(error, admitted.into_trace())),
        }
    }

    /// Whether the ground has moved on which `informed` was decided.
    pub(crate) async fn has_moved(&self, informed: &Informed) -> Result<bool, StoreError> {
        match &informed.known.action {
            Some(action) => self.moved(&informed.admitted, &action.identity, action.stamp).await,
            None => Ok(false),
        }
    }

    async fn learn(&self, admitted: &Admitted) -> Result<Known, Trouble> {
        match admitted.tool().contract.is_write() {
            true => self.learn_of_write(admitted).await,
            false => self.learn_of_read(admitted).await,
        }
    }

    async fn learn_of_read(&self, admitted: &Admitted) -> Result<Known, Trouble> {
        if let Some(stoppage) = self.stops.stops(&spot(admitted), self.clock.now()).await? {
            return Ok(Known::stopped(stoppage));
        }
        let asks = self.policies.may_ask(&admitted.tool().contract.name) || admitted.named_approval().is_some();
        let mut run = KnownRun::begin(self.tracked, admitted);
        let (mut approval, mut standing) = (None, Vec::new());
        if asks || run.is_kept() {
            let recall = self.recall(admitted, None, &run).await?;
            (approval, standing) = (recall.approval.filter(|_| asks), recall.standing);
            run.recalled(recall.run);
        }
        let Seen { facts, sources, resource } = self.look(admitted, None).await?;
        let facts = Arc::new(facts);
        Ok(Known { action: None, facts, sources, resource, approval, standing, stopped: None, run })
    }

    async fn learn_of_write(&self, admitted: &Admitted) -> Result<Known, Trouble> {
        let identity = Identity::of(admitted);
        let mut place = None;
        loop {
            let mut run = KnownRun::begin(self.tracked, admitted);
            let mut recall = self.recall(admitted, Some(&identity), &run).await?;
            if let Some(stoppage) = recall.stopped {
                return Ok(Known::stopped(stoppage));
            }
            run.recalled(std::mem::take(&mut recall.run));
            let stamp = recall.stamp;
            let recalled = match in_ledger(admitted, &recall) {
                InLedger::Busy(entry) => {
                    self.wait_for(admitted, &entry).await?;
                    continue;
                }
                InLedger::InDoubt(entry) => {
                    self.find_out(admitted, &identity, &entry).await?;
                    continue;
                }
                InLedger::Clear(recalled) => recalled,
            };
            if recalled.will_run() && place.is_none() {
                let entered = self.lanes.enter(identity.lane, admitted.patience()).await;
                place = Some(entered.ok_or_else(|| Trouble::in_progress("others of this process are on the lane"))?);
                continue;
            }
            let Seen { facts, sources, resource } = match &recalled {
                Recalled::Replay(past) if !past.erased => Seen {
                    facts: past.facts.as_object().cloned().unwrap_or_default(),
                    sources: Map::new(),
                    resource: resource_id(admitted),
                },
                // Where the facts of its day are gone, it is judged by today's.
                Recalled::Fresh | Recalled::Reopen | Recalled::Anew | Recalled::Conflict | Recalled::Replay(_) => {
                    match self.look(admitted, Some((identity.lane, stamp.lane_version))).await {
                        Ok(found) => found,
                        // A refusal that rests on facts holds only if nothing moved while they were read.
                        Err(Trouble::Refused { .. }) if self.moved(admitted, &identity, stamp).await? => {
                            self.still_patient(admitted)?;
                            continue;
                        }
                        Err(trouble) => return Err(trouble),
                    }
                }
            };
            let action = Action { identity, recalled, stamp, _place: place };
            let Recall { approval, standing, .. } = recall;
            let facts = Arc::new(facts);
            return Ok(Known {
                action: Some(action),
                facts,
                sources,
                resource,
                approval,
                standing,
                stopped: None,
                run,
            });
        }
    }

    async fn recall(
        &self,
        admitted: &Admitted,
        identity: Option<&Identity>,
        run: &KnownRun,
    ) -> Result<Recall, StoreError> {
        let session = admitted.session();
        let grant = GrantKey {
            tenant: session.tenant().to_owned(),
            principal: session.principal().canonical(),
            call_digest: admitted.call_digest(),
        };
        let tool = &admitted.tool().contract.name;
        let covered = self.policies.may_ask(tool).then(|| Covered {
            tenant: grant.tenant.clone(),
            principal: grant.principal.clone(),
            tool: tool.clone(),
        });
        let action = identity.map(|identity| (identity.key, identity.lane));
        let spot = action.map(|_| spot(admitted));
        let question = Question { action, grant: Some(grant), covered, spot, run: run.key() };
        let now = self.clock.now();
        let recall = self.store.recall(question, now).await?;
        if let Some(renewal) = run.renewal(admitted, &recall.run, now) {
            self.store.join(renewal, now).await?;
        }
        Ok(recall)
    }

    async fn moved(&self, admitted: &Admitted, identity: &Identity, stamp: Stamp) -> Result<bool, StoreError> {
        Ok(self.recall(admitted, Some(identity), &KnownRun::default()).await?.stamp != stamp)
    }

    /// Waits a little for a running action. One whose owner is dead is not waited for: it becomes unknown.
    async fn wait_for(&self, admitted: &Admitted, entry: &Entry) -> Result<(), Trouble> {
        let now = self.clock.now();
        let (ours, is_over) = match &entry.state {
            State::Open { owner, lease_end, .. } => (owner == self.store.owner(), *lease_end <= now),
            State::Done { .. } | State::Failed { .. } | State::Unknown { .. } => (false, false),
        };
        if (is_over || !ours) && self.recovery.sweep_meanwhile(is_over).await? > 0 {
            return Ok(());
        }
        self.still_patient(admitted)?;
        sleep(POLL).await;
        Ok(())
    }

    fn still_patient(&self, admitted: &Admitted) -> Result<(), Trouble> {
        match Instant::now() < admitted.patience() {
            true => Ok(()),
            false => Err(Trouble::in_progress("another action was running until the caller's patience ended")),
        }
    }

    /// Looks for what became of an unknown action: the call's own, or the one that holds its lane.
    async fn find_out(&self, admitted: &Admitted, identity: &Identity, entry: &Entry) -> Result<(), Trouble> {
        match self.recovery.reconcile(entry, admitted.deadline()).await? {
            Reconciled::Known => Ok(()),
            Reconciled::Elsewhere if Instant::now() < admitted.patience() => {
                sleep(POLL).await;
                Ok(())
            }
            Reconciled::Elsewhere | Reconciled::StillUnknown => {
                Err(Trouble::unknown(entry, identity, &admitted.tool().contract))
            }
        }
    }

    /// Reads resource and facts.
    async fn look(&self, admitted: &Admitted, ground: Option<Ground>) -> Result<Seen, Trouble> {
        let contract = &admitted.tool().contract;
        let asker =
            Asker { session: admitted.session(), reference: admitted.reference(), deadline: admitted.deadline() };
        let gathered = self.facts.gather(contract, admitted.arguments(), asker, ground).await;
        let sources = gathered.sources;
        let facts = match gathered.facts {
            facts::Known::Found(facts) => facts,
            facts::Known::Failed { fact, why } => return Err(Trouble::fact(&fact, &why).over(sources)),
        };
        if let Some(resource) = &contract.resource {
            let tenant = facts.get(&resource.fact).and_then(|fact| fact.pointer(&resource.tenant));
            if tenant.and_then(Value::as_str) != Some(admitted.session().tenant()) {
                let why = if tenant.is_some() { "another tenant's resource" } else { "an absent resource" };
                return Err(Trouble::refused(Refusal::before(Code::Forbidden), why).over(sources));
            }
        }
        Ok(Seen { facts, sources, resource: resource_id(admitted) })
    }
}

/// What was looked up for a call.
struct Seen {
    facts: Map<String, Value>,
    sources: Map<String, Value>,
    resource: Option<String>,
}

/// Where the call is made.
fn spot(admitted: &Admitted) -> Spot {
    Spot { tool: admitted.tool().contract.name.clone(), tenant: admitted.session().tenant().to_owned() }
}

fn resource_id(admitted: &Admitted) -> Option<String> {
    let resource = admitted.tool().contract.resource.as_ref()?;
    match resource.id.fill(Scope::new(admitted.arguments(), admitted.session()))? {
        Value::String(id) => Some(id),
        other => Some(other.to_string()),
    }
}

impl Known {
    /// Nothing is looked up for what does not run.
    fn stopped(stoppage: Stoppage) -> Self {
        Self {
            action: None,
            facts: Arc::default(),
            sources: Map::new(),
            resource: None,
            approval: None,
            standing: Vec::new(),
            stopped: Some(Box::new(stoppage)),
            run: KnownRun::default(),
        }
    }
}

impl Trouble {
    fn refused(refusal: Refusal, why: impl Into<String>) -> Self {
        Self::Refused { refusal: Box::new(refusal), why: why.into(), sources: Map::new() }
    }

    /// The same, with what was looked up before it.
    fn over(self, looked: Map<String, Value>) -> Self {
        match self {
            Self::Refused { refusal, why, .. } => Self::Refused { refusal, why, sources: looked },
            Self::Store(error) => Self::Store(error),
        }
    }

    fn in_progress(why: &str) -> Self {
        Self::refused(Refusal::before(Code::InProgress), why)
    }

    /// A fact that is not known makes every rule over it unknown, and unknown refuses.
    fn fact(fact: &str, why: &str) -> Self {
        let refusal = Refusal::before(Code::RuleFailed)
            .message("What this decision rests on could not be looked up, so nothing was done.")
            .fixed_by(Fix::Operator)
            .retry(Retry::After(Duration::from_secs(5)));
        Self::refused(refusal, format!("the fact {fact}: {why}"))
    }

    /// The unknown action is this call's own, or it holds the lane: then this call had no effect.
    fn unknown(entry: &Entry, identity: &Identity, contract: &Contract) -> Self {
        let refusal = match entry.key == identity.key {
            true if contract.reconcile.is_none() || entry.erased => {
                Refusal::new(Code::OutcomeUnknown, Effect::Unknown).beyond_finding_out()
            }
            true => Refusal::new(Code::OutcomeUnknown, Effect::Unknown),
            false => Refusal::new(Code::OutcomeUnknown, Effect::None),
        };
        // Whoever looks for it elsewhere needs to know when.
        let refusal = match &entry.state {
            State::Unknown { since, .. } => {
                let message = format!("{} It is unknown since {since}.", refusal.text());
                refusal.message(message)
            }
            State::Open { .. } | State::Done { .. } | State::Failed { .. } => refusal,
        };
        let why = format!("the outcome of {} is not known", entry.first);
        Self::refused(refusal, why)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Informed {
    pub(crate) fn admitted(&self) -> &Admitted {
        &self.admitted
    }

    pub(crate) fn action(&self) -> Option<&Action> {
        self.known.action.as_ref()
    }

    /// Whether it runs next if nothing is against it: it was not done already.
    pub(crate) fn runs(&self) -> bool {
        match self.known.action.as_ref().map(|action| &action.recalled) {
            Some(Recalled::Fresh | Recalled::Reopen | Recalled::Anew) | None => true,
            Some(Recalled::Replay(_) | Recalled::Conflict) => false,
        }
    }

    pub(crate) fn facts(&self) -> &Arc<Map<String, Value>> {
        &self.known.facts
    }

    pub(crate) fn resource(&self) -> Option<&str> {
        self.known.resource.as_deref()
    }

    /// What would happen, in one line for people.
    pub(crate) fn preview(&self) -> String {
        let contract = &self.admitted.tool().contract;
        let scope = Scope {
            facts: Some(&self.known.facts),
            reference: Some(self.admitted.reference().as_str()),
            ..Scope::new(self.admitted.arguments(), self.admitted.session())
        };
        match &contract.preview {
            Some(preview) if preview.has_a_title() => preview.preview(scope),
            // What a model writes is never the title of what it asks for.
            Some(preview) => format!("{}: {}", contract.name, preview.preview(scope)),
            // Nobody says yes to a name alone.
            None => {
                let arguments = contract.input.masked(&Value::Object(self.admitted.arguments().as_ref().clone()));
                format!("{} {}", contract.name, visible(&canonical(&arguments)))
            }
        }
    }

    pub(crate) fn approval(&self) -> Option<&Approval> {
        self.known.approval.as_ref()
    }

    /// What an operator has stopped it by.
    pub(crate) fn stopped(&self) -> Option<&Stoppage> {
        self.known.stopped.as_deref()
    }

    /// Where the call is made.
    pub(crate) fn spot(&self) -> Spot {
        spot(&self.admitted)
    }

    /// The standing grants that may cover it, with what is left of each.
    pub(crate) fn standing(&self) -> &[(StandingGrant, Left)] {
        &self.known.standing
    }

    /// What the run had done and read before.
    pub(crate) fn run(&self) -> &RunState {
        self.known.run.state()
    }

    /// The other tools of the turn that had not ended when the run was looked up.
    pub(crate) fn awaited(&self) -> &BTreeSet<String> {
        self.known.run.awaited()
    }

    /// What the call adds to its run, having come to this; nothing where nothing of it is kept or new.
    pub(crate) fn marking(&self, came: Came) -> Option<Marking> {
        self.known.run.marking(&self.admitted, came)
    }

    pub(crate) fn note(&mut self, stage: &'static str, learned: Learned) {
        self.admitted.note(stage, learned);
    }

    /// Gives the proof up, and with it the place on the lane.
    pub(crate) fn withdraw(self) -> Admitted {
        self.admitted
    }
}
