//! Recovery: finding out what became of actions that nobody knows the outcome of. It never runs anything: it marks the
//! actions of dead owners as unknown, and asks the contract's `[reconcile]` tool what it finds.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::audit::Record;
use crate::call::Ref;
use crate::clock::{Clock, Millis};
use crate::contract::{Reconcile, Registered, Registry};
use crate::facts::{Asker, Facts, Looked};
use crate::ledger::{Claim, Entry, EntryKey, Finding, Pending, State, Store, StoreError};
use crate::refusal::Effect;
use crate::result;
use crate::session::Session;
use crate::template::Scope;

/// Finds out what became of unknown actions.
#[derive(Clone)]
pub(crate) struct Recovery {
    store: Store,
    registry: Arc<Registry>,
    facts: Facts,
    clock: Arc<dyn Clock>,
    scribe: Arc<dyn Scribe>,
    /// When somebody who waits last swept. Whoever sweeps holds it.
    swept: Arc<Mutex<Option<Instant>>>,
}

/// How the records of recovery are written.
pub(crate) trait Scribe: Send + Sync {
    /// The record of an action whose owner is dead or whose lease is over.
    fn lost(&self, entry: &Entry, now: Millis) -> Record;

    /// The record of what reconciling found.
    fn reconciled(&self, entry: &Entry, finding: &Finding, now: Millis) -> Record;
}

/// What came of looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reconciled {
    /// The outcome is known now.
    Known,
    /// It could not be found out.
    StillUnknown,
    /// Somebody else is finding out, or has.
    Elsewhere,
}

/// The longest time that one process alone looks for the outcome of an action.
const CLAIM: Duration = Duration::from_secs(15);

/// How often those who wait sweep, all of them together: many may wait for one, and each asks again and again.
const SWEEP: Duration = Duration::from_millis(250);

/// A claim that was asked for. Whoever is cut off on the way lets go of it at once.
struct Claimed<'r> {
    recovery: &'r Recovery,
    key: EntryKey,
    token: Option<String>,
}

impl<'r> Claimed<'r> {
    /// It is on its way to the store as soon as this is called.
    fn release(&mut self) -> Option<Pending<'r, Option<Entry>>> {
        let claim = Claim { token: self.token.take()?, until: Millis(0) };
        let recovery = self.recovery;
        Some(recovery.store.claim(self.key, claim, recovery.clock.now()))
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        drop(self.release());
    }
}

impl Recovery {
    pub(crate) fn new(
        store: Store,
        registry: Arc<Registry>,
        facts: Facts,
        clock: Arc<dyn Clock>,
        scribe: Arc<dyn Scribe>,
    ) -> Self {
        Self { store, registry, facts, clock, scribe, swept: Arc::default() }
    }

    /// Marks the open actions of dead owners and of ended leases as unknown.
    pub(crate) async fn sweep(&self) -> Result<usize, StoreError> {
        let (scribe, now) = (Arc::clone(&self.scribe), self.clock.now());
        self.store.sweep(Box::new(move |entry| scribe.lost(entry, now)), now).await
    }

    /// As [`sweep`](Self::sweep), for whoever waits: nothing is done while another one does it, nor right after it was
    /// done unless it is known to be `due`.
    pub(crate) async fn sweep_meanwhile(&self, due: bool) -> Result<usize, StoreError> {
        let Ok(mut swept) = self.swept.try_lock() else { return Ok(0) };
        if !due && swept.is_some_and(|swept| swept.elapsed() < SWEEP) {
            return Ok(0);
        }
        *swept = Some(Instant::now());
        self.sweep().await
    }

    /// Looks for the outcome of an unknown action. With what was erased nothing can be asked any more.
    pub(crate) async fn reconcile(&self, entry: &Entry, deadline: Instant) -> Result<Reconciled, StoreError> {
        if entry.erased {
            return Ok(Reconciled::StillUnknown);
        }
        let tool = self.registry.get(&entry.action.tool);
        let Some((tool, reconcile)) = tool.and_then(|tool| Some((tool, tool.contract.reconcile.as_ref()?))) else {
            return Ok(Reconciled::StillUnknown);
        };
        let now = self.clock.now();
        let token = Ref::fresh().to_string();
        let claim = Claim { token: token.clone(), until: now.after(CLAIM) };
        let mut claimed = Claimed { recovery: self, key: entry.key, token: Some(token.clone()) };
        let Some(entry) = self.store.claim(entry.key, claim, now).await? else {
            claimed.token = None;
            return Ok(Reconciled::Elsewhere);
        };
        let Some(finding) = self.look(&entry, tool, reconcile, deadline).await else {
            if let Some(release) = claimed.release() {
                release.await?;
            }
            return Ok(Reconciled::StillUnknown);
        };
        let now = self.clock.now();
        let record = self.scribe.reconciled(&entry, &finding, now);
        let resolved = self.store.resolve(entry.key, token, finding, record, now).await?;
        claimed.token = None;
        match resolved {
            true => Ok(Reconciled::Known),
            false => Ok(Reconciled::Elsewhere),
        }
    }

    /// Asks the contract's tool, with what was recorded when the action was opened and for whoever opened it, whoever's
    /// call leads to it: somebody else might not find what is there.
    async fn look(
        &self,
        entry: &Entry,
        tool: &Registered,
        reconcile: &Reconcile,
        deadline: Instant,
    ) -> Option<Finding> {
        let State::Unknown { lease_end, .. } = entry.state else { return None };
        let session = Session::new(entry.action.principal.clone(), entry.action.tenant.clone());
        let owner = Arc::new(session.in_run(entry.action.run.clone()));
        let key = entry.downstream_key();
        let empty = Map::new();
        let scope = Scope {
            facts: entry.action.facts.as_object(),
            idempotency_key: Some(&key),
            reference: Some(entry.first.as_str()),
            ..Scope::new(entry.action.arguments.as_object().unwrap_or(&empty), &owner)
        };
        let asker = Asker { session: &owner, reference: &entry.first, deadline };
        // INVARIANT (absence): what is not found was not there when it was asked; it may have landed since.
        let asked = self.clock.now();
        match self.facts.look(&reconcile.tool, &reconcile.args, scope, asker).await {
            Looked::Found(value) if value.pointer(&reconcile.done).is_some_and(proves) => {
                let found = value.pointer(&reconcile.result).cloned().unwrap_or(value);
                Some(Finding::Done { answer: result::fit(&tool.contract, found, Effect::Done).to_stored()? })
            }
            Looked::Found(_) | Looked::Absent => {
                let proof_from = lease_end.after(reconcile.absent_after);
                (proof_from <= asked).then_some(Finding::NotDone)
            }
            // What could not be asked proves nothing.
            Looked::Unfit | Looked::Failed(_) => None,
        }
    }
}

/// Whether what stands at the contract's `done` says that it happened. What is there and says no is no proof.
fn proves(found: &Value) -> bool {
    match found {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => true,
    }
}
