//! Stopping calls for a while, and lifting a stop. The word is an operator's: it stands on the record as theirs.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Gate;
use crate::audit::{Kind, Record};
use crate::call::Ref;
use crate::clock::{Given, Millis, SystemClock};
use crate::contract::Contract;
use crate::fault::Fault;
use crate::fields::nearest;
use crate::ledger::{Stopped, Store, StoreError};
use crate::redaction::{Kept, Redaction};
use crate::session::{Principal, Session};
use crate::stoppage::{Stoppage, Target};

/// Why nothing was stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStopped {
    /// The reason is empty or too long.
    #[error("say why, in 1 to {LONGEST_WHY} characters: it stands on the record")]
    NoReason,
    /// It would last no time, or too long.
    #[error("a stop lasts for at least a second and for at most 30 days")]
    Span,
    /// The gate has no tool of this name.
    #[error("there is no such tool")]
    UnknownTool {
        /// The nearest name that there is.
        near: Option<String>,
    },
    /// Too many stand already.
    #[error("{CAP} stops stand already that were set by the same: lift some first")]
    TooMany,
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// Why no stop was lifted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotLifted {
    /// None of this id stands.
    #[error("no stop of this id stands")]
    Missing,
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// Characters of an operator's reason.
pub const LONGEST_WHY: usize = 1_000;
/// How long a stop may last.
pub const LONGEST_STOP: Duration = Duration::from_secs(30 * 24 * 3600);
const SHORTEST_STOP: Duration = Duration::from_secs(1);
/// How many stops may stand that one tenant's administrators have set, and how many that the operator has.
const CAP: usize = 100;

/// Stops the calls of `target` from now on for `lasts`, in every process that shares the store. Whoever needs no gate for
/// it, because its contracts are faulty, needs only the store; no name is held to anything then. It is the operator's stop.
pub async fn stop(
    store: &Store,
    target: Target,
    lasts: Duration,
    why: &str,
    by: &Principal,
    now: Millis,
) -> Result<Stoppage, NotStopped> {
    set(store, Words { target, lasts, why, by, set_in: None }, now).await
}

/// What somebody says who stops calls.
struct Words<'a> {
    target: Target,
    lasts: Duration,
    why: &'a str,
    by: &'a Principal,
    set_in: Option<&'a str>,
}

/// Whether a stop may be set that lasts so long, for this reason.
pub fn is_fit(lasts: Duration, why: &str) -> Result<(), NotStopped> {
    let why = why.trim();
    if why.is_empty() || why.chars().count() > LONGEST_WHY {
        return Err(NotStopped::NoReason);
    }
    match (SHORTEST_STOP..=LONGEST_STOP).contains(&lasts) {
        true => Ok(()),
        false => Err(NotStopped::Span),
    }
}

async fn set(store: &Store, words: Words<'_>, now: Millis) -> Result<Stoppage, NotStopped> {
    let Words { target, lasts, why, by, set_in } = words;
    let why = Redaction::new(store.key().clone(), Kept::default()).text(why.trim()).into_owned();
    is_fit(lasts, &why)?;
    let reference = Ref::fresh();
    let (id, until, set_in) = (format!("stop_{reference}"), now.after(lasts), set_in.map(str::to_owned));
    let stop = Stoppage { id, target, why, by: by.clone(), set_in, at: now, until, reference };
    let speaker = by.clone();
    let record = move |stop: &Stoppage, now| record(Kind::Stopped, stop, &speaker, now);
    match store.stop(stop, lasts, CAP, Box::new(record), now).await? {
        Stopped::Stands(stop) => Ok(*stop),
        Stopped::TooMany => Err(NotStopped::TooMany),
    }
}

/// Lifts a stop before its end. With `tenant` said it must be one that was set in that tenant.
pub async fn lift(
    store: &Store,
    id: &str,
    tenant: Option<&str>,
    by: &Principal,
    now: Millis,
) -> Result<Stoppage, NotLifted> {
    let speaker = by.clone();
    let record = move |stop: &Stoppage, now| record(Kind::Lifted, stop, &speaker, now);
    let lifted = store.lift(id.to_owned(), tenant.map(str::to_owned), Box::new(record), now).await?;
    lifted.ok_or(NotLifted::Missing)
}

/// The moment that it is for whoever stops or lifts without a gate: the time of the store, by the clock of the system.
/// It waits for the store on this very thread, as opening it does.
pub fn time(store: &Store) -> Result<Millis, StoreError> {
    Ok(Given::wall(Arc::new(SystemClock)).over(store.water()?).now())
}

/// The stops that stand at `now`, the oldest first.
pub async fn stops(store: &Store, now: Millis) -> Result<Vec<Stoppage>, StoreError> {
    store.stops(now).await
}

impl Gate {
    /// Stops the calls of `target` from now on for `lasts`: writes at once, reads within a second, in every process that
    /// shares the store. What runs already runs on. Of `why` nothing is told to whoever calls.
    pub async fn stop(
        &self,
        target: Target,
        lasts: Duration,
        why: &str,
        by: &Principal,
    ) -> Result<Stoppage, NotStopped> {
        if let Some(tool) = target.tool.as_deref().filter(|tool| self.line.registry.get(tool).is_none()) {
            let near = nearest(tool, self.contracts().map(Contract::name));
            return Err(NotStopped::UnknownTool { near });
        }
        let stopped = stop(&self.line.store, target, lasts, why, by, self.now()).await;
        self.line.stops.forget();
        stopped
    }

    /// As [`Gate::stop`], by somebody who speaks for their tenant: the calls of one tool in it, and no others. It is the
    /// tenant's stop, not the operator's. INVARIANT (no hint of what is hidden): a name that is no tool's is told the
    /// nearest one that `by` may see.
    pub async fn stop_in_tenant(
        &self,
        tool: &str,
        lasts: Duration,
        why: &str,
        by: &Session,
    ) -> Result<Stoppage, NotStopped> {
        if self.line.registry.get(tool).is_none() {
            let near = nearest(tool, self.tools(by).into_iter().map(Contract::name));
            return Err(NotStopped::UnknownTool { near });
        }
        let target = Target::tool(tool).within(by.tenant());
        let words = Words { target, lasts, why, by: by.principal(), set_in: Some(by.tenant()) };
        let stopped = set(&self.line.store, words, self.now()).await;
        self.line.stops.forget();
        stopped
    }

    /// Lifts a stop before its end. With `tenant` said it must be one that was set in that tenant.
    pub async fn lift(&self, id: &str, tenant: Option<&str>, by: &Principal) -> Result<Stoppage, NotLifted> {
        let lifted = lift(&self.line.store, id, tenant, by, self.now()).await;
        self.line.stops.forget();
        lifted
    }

    /// The stops that stand, the oldest first.
    pub async fn stops(&self) -> Result<Vec<Stoppage>, Fault> {
        Ok(stops(&self.line.store, self.now()).await?)
    }
}

/// A stop and its lifting are told under one `ref`, which is the end of its id.
fn record(kind: Kind, stop: &Stoppage, by: &Principal, now: Millis) -> Record {
    let mut body = Map::new();
    let mut tell = |name: &str, value: Value| body.insert(name.to_owned(), value);
    tell("stop", json!(stop.id));
    tell("principal", json!(by));
    tell("why", json!(stop.why));
    tell("until", json!(stop.until));
    if let Some(tool) = &stop.target.tool {
        tell("tool", json!(tool));
    }
    if let Some(tenant) = &stop.target.tenant {
        tell("tenant", json!(tenant));
    }
    Record::new(kind, now, stop.reference.clone(), body)
}
