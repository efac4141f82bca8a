//! Backends: how a tool runs. A backend gets what only a reserved call yields, and tells what it knows of the effect.

mod fake;
mod function;
mod keyed;
mod late;
mod nothing;
mod recording;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::{Ref, TraceContext};
use crate::contract::Contract;
use crate::refusal::Effect;
use crate::schema::Problem;
use crate::session::Session;

pub use crate::facts::Lookup;
pub use crate::stage::run::Dispatch;
pub use fake::{FakeTool, Seen, Step};
pub(crate) use function::Function;
pub use function::ToolError;
pub(crate) use keyed::Keyed;
pub use late::Late;
pub(crate) use late::{Case, Desk, Place};
pub(crate) use nothing::Nothing;
pub use recording::{Recorded, Recording, RecordingFault};

/// Runs the calls of one tool.
pub trait Backend: Send + Sync + 'static {
    /// Runs the call. It must end at the deadline, and soon after it is cancelled where it can prove what then happened;
    /// it is dropped at the deadline.
    fn run(&self, dispatch: Dispatch) -> Running<'_>;

    /// Looks something up for the gate itself. Only tools with `effect = "read"` are asked.
    fn look(&self, lookup: Lookup) -> Looking<'_>;

    /// Every signal that its failures can have, where it knows them all: `[errors]` and `[retry]` then name no others.
    fn signals(&self) -> Option<Vec<&str>> {
        None
    }

    /// Whether a write that reaches it twice with the same [key](Context::idempotency_key) happens once, so that it may be
    /// sent again where nobody knows whether it happened.
    fn honours_key(&self) -> bool {
        false
    }

    /// What its calls go to, by a name that all tools of it share: when it is down, they spend one budget of repeats. A
    /// tool without one has its own.
    fn upstream(&self) -> Option<&str> {
        None
    }

    /// What is wrong with the contract for this backend, told when the gate is built.
    fn check(&self, contract: &Contract) -> Vec<Problem> {
        let _ = contract;
        Vec::new()
    }
}

/// A call that is running.
pub type Running<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// A look-up that is on its way.
pub type Looking<'a> = Pin<Box<dyn Future<Output = Found> + Send + 'a>>;

/// What a call runs with: nothing in it comes from anywhere but the checked arguments and the session.
#[derive(Clone, Debug)]
pub struct Context {
    pub(crate) session: Arc<Session>,
    pub(crate) arguments: Arc<Map<String, Value>>,
    pub(crate) facts: Arc<Map<String, Value>>,
    pub(crate) reference: Ref,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) deadline: Instant,
    pub(crate) cancelled: CancellationToken,
    /// INVARIANT (it decides nothing): only a run has one; a look-up, which a decision rests on, has none.
    pub(crate) traced: Option<TraceContext>,
    pub(crate) late: Option<Late>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Answer {
    /// What the backend knows of the effect. For a read it does not count.
    pub effect: Effect,
    /// The JSON text of the result, or what failed.
    pub outcome: Result<Vec<u8>, Failure>,
}

/// A failure, as the gate may know it. Its words stay inside; what the model reads comes from the contract's `[errors]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// What the contract's `[errors]` and `[retry]` call it: `connect`, an HTTP status, a name of the backend's own.
    pub signal: String,
    /// When the backend wants to be asked again.
    pub retry_after: Option<Duration>,
    /// What happened, for the operator and the record.
    pub detail: String,
    /// What the tool itself said of it. A model reads it only where the contract lets the tool speak.
    pub said: Option<String>,
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It could not be reached, or has too much to do.
    Unavailable,
    /// It answered that it failed.
    Reported,
    /// It did not answer in time.
    TimedOut,
    /// The caller went away.
    Cancelled,
    /// Its result is beyond every bound.
    TooLarge,
    /// It is switched off until an operator looks at it, and was not asked.
    Off,
    /// It does not do what its contract promises, until an operator mends it.
    Broken,
}

/// What a look-up found.
#[derive(Debug)]
pub enum Found {
    /// The JSON text of it.
    Found(Vec<u8>),
    /// There is no such thing.
    Absent,
    /// It could not be found out; the text is for the operator.
    Failed(String),
}

impl Context {
    /// Who is asking, and for whom.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The effective arguments.
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    /// The facts on which the call was decided, by name.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// The name of this attempt.
    pub fn reference(&self) -> &Ref {
        &self.reference
    }

    /// The key of the action, the same for all its attempts; only writes have one.
    pub fn idempotency_key(&self) -> Option<&str> {
        self.idempotency_key.as_deref()
    }

    /// The trace that the call belongs to, to be passed on where the contract says so. A look-up has none.
    pub fn trace_context(&self) -> Option<&TraceContext> {
        self.traced.as_ref()
    }

    /// How to tell what is learned only once this run has been given up; only a write has it.
    pub fn late(&self) -> Option<Late> {
        self.late.clone()
    }

    /// The moment at which the work is ended.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the caller has gone away.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Ends when the caller has gone away.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl Answer {
    /// It happened, with this result.
    pub fn done(result: impl Into<Vec<u8>>) -> Self {
        Self { effect: Effect::Done, outcome: Ok(result.into()) }
    }

    /// It failed, and this is known of the effect.
    pub fn failed(effect: Effect, failure: Failure) -> Self {
        Self { effect, outcome: Err(failure) }
    }
}

impl Failure {
    /// A failure of a kind that `[errors]` and `[retry]` know as `signal`.
    pub fn new(kind: FailureKind, signal: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind, signal: signal.into(), retry_after: None, detail: detail.into(), said: None }
    }

    /// Adds what the tool itself said.
    #[must_use]
    pub fn said(self, words: impl Into<String>) -> Self {
        Self { said: Some(words.into()), ..self }
    }
}
