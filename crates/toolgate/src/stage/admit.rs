//! admit: `Call -> Admitted`. Looks the name up among what this session may see, lets [`admission`] read the arguments
//! and hold them to the schema, and computes the two digests.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::Stop;
use crate::admission::{self, EffectiveArguments};
use crate::call::{Call, OperationId, Ref, TraceContext};
use crate::contract::{Contract, Registered, Registry};
use crate::json::{Digest, Limits};
use crate::policy::Policies;
use crate::refusal::Refusal;
use crate::session::Session;
use crate::trace::{Learned, Trace};

/// The first stage.
pub(crate) struct Admit {
    registry: Arc<Registry>,
    policies: Arc<Policies>,
    limits: Limits,
}

/// A call of a known tool whose arguments keep its schema. INVARIANT (verbatim): the arguments are the ones that were
/// sent; nothing was coerced, repaired, dropped or defaulted. A `null` of strict mode says that nothing was sent.
#[derive(Debug)]
pub(crate) struct Admitted {
    tool: Arc<Registered>,
    session: Arc<Session>,
    reference: Ref,
    arguments: Arc<Map<String, Value>>,
    args_digest: Digest,
    call_digest: Digest,
    operation: Option<OperationId>,
    named_approval: Option<String>,
    traced: Option<TraceContext>,
    deadline: Instant,
    patience: Instant,
    trace: Trace,
}

/// What the checks of this stage found, before it is a proof.
struct Checked {
    tool: Arc<Registered>,
    arguments: EffectiveArguments,
    call_digest: Digest,
}

impl Admit {
    pub(crate) fn new(registry: Arc<Registry>, policies: Arc<Policies>, limits: Limits) -> Self {
        Self { registry, policies, limits }
    }

    pub(crate) fn enter(&self, call: Call, session: Arc<Session>, reference: Ref) -> Result<Admitted, Stop> {
        let started = Instant::now();
        let mut trace = Trace::start();
        let checked = match self.check(&call, &session) {
            Ok(checked) => checked,
            Err(refusal) => {
                let learned = Learned::new().with("refused", refusal.code().as_str());
                trace.note("admit", with_trace(learned, call.traced.as_ref()));
                return Err(Stop::refused(refusal, trace));
            }
        };
        let Checked { tool, arguments, call_digest } = checked;
        let args_digest = arguments.digest();
        let absent = arguments.absent().to_vec();
        let (arguments, masked) = arguments.into_parts();
        let mut learned = learned(&tool.contract, args_digest, call_digest, masked);
        if !absent.is_empty() {
            learned = learned.with("absent", absent);
        }
        trace.note("admit", with_trace(learned, call.traced.as_ref()));
        let deadline = started + tool.contract.deadline;
        let patience = call.patience.map_or(deadline, |patience| deadline.min(started + patience));
        Ok(Admitted {
            tool,
            session,
            reference,
            arguments: Arc::new(arguments),
            args_digest,
            call_digest,
            operation: call.operation,
            named_approval: call.approval,
            traced: call.traced,
            deadline,
            patience,
            trace,
        })
    }

    fn check(&self, call: &Call, session: &Session) -> Result<Checked, Refusal> {
        let tool = self.find(&call.tool, session).ok_or_else(|| self.unknown(&call.tool, session))?;
        let arguments = admission::check(&tool.contract, call, &self.limits)?;
        let (args, own) = (arguments.digest().hex(), tool.contract.digest.hex());
        let call_digest = Digest::of_all(&[b"[\"", args.as_bytes(), b"\",\"", own.as_bytes(), b"\"]"]);
        Ok(Checked { tool, arguments, call_digest })
    }

    /// The call by the name of its tool, where it was made by a short form that this session may know.
    pub(crate) fn named(&self, call: Call, session: &Session) -> Call {
        if self.registry.get(&call.tool).is_some() {
            return call;
        }
        match self.find(&call.tool, session) {
            Some(tool) => Call { tool: tool.contract.name.clone(), ..call },
            None => call,
        }
    }

    fn find(&self, name: &str, session: &Session) -> Option<Arc<Registered>> {
        let tool = self.registry.called(name)?;
        self.policies.visible(&tool.contract.name, session).then(|| Arc::clone(tool))
    }

    fn unknown(&self, name: &str, session: &Session) -> Refusal {
        let names = self.registry.iter().map(|tool| tool.contract.name.as_str());
        admission::unknown_tool(name, names.filter(|known| self.policies.visible(known, session)))
    }
}

fn learned(contract: &Contract, args_digest: Digest, call_digest: Digest, masked: Value) -> Learned {
    Learned::new()
        .with("contract", contract.digest.hex())
        .with("args_digest", args_digest.hex())
        .with("call_digest", call_digest.hex())
        .with("arguments", masked)
}

fn with_trace(learned: Learned, traced: Option<&TraceContext>) -> Learned {
    match traced {
        Some(context) => learned.with("trace_id", context.trace_id()),
        None => learned,
    }
}

impl Admitted {
    pub(crate) fn tool(&self) -> &Arc<Registered> {
        &self.tool
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(crate) fn reference(&self) -> &Ref {
        &self.reference
    }

    pub(crate) fn arguments(&self) -> &Arc<Map<String, Value>> {
        &self.arguments
    }

    pub(crate) fn args_digest(&self) -> Digest {
        self.args_digest
    }

    pub(crate) fn call_digest(&self) -> Digest {
        self.call_digest
    }

    pub(crate) fn operation(&self) -> Option<&OperationId> {
        self.operation.as_ref()
    }

    pub(crate) fn named_approval(&self) -> Option<&str> {
        self.named_approval.as_deref()
    }

    /// The trace that the call belongs to. It decides nothing.
    pub(crate) fn traced(&self) -> Option<&TraceContext> {
        self.traced.as_ref()
    }

    /// The moment at which everything of this call has ended.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Until when the caller is ready to wait for others.
    pub(crate) fn patience(&self) -> Instant {
        self.patience
    }

    pub(crate) fn note(&mut self, stage: &'static str, learned: Learned) {
        self.trace.note(stage, learned);
    }

    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    pub(crate) fn into_trace(self) -> Trace {
        self.trace
    }
}
