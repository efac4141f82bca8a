//! admit: `Call -> Admitted`. Looks the name up among what this session may see, lets [`admission`] read the arguments
//! and hold them to the schema, and computes the two digests.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{Stop, ended};
use crate::admission::{self, EffectiveArguments, Naming, Parts};
use crate::call::{Call, OperationId, Ref, TraceContext};
use crate::catalogue::Catalogue;
use crate::clock::Millis;
use crate::contract::{Contract, Registered, subject_of};
use crate::json::{Digest, Limits};
use crate::leniency::Used;
use crate::redaction::Redaction;
use crate::refusal::Refusal;
use crate::session::Session;
use crate::trace::{Learned, Trace};
use crate::turn::Seat;

/// The first stage.
pub(crate) struct Admit {
    catalogue: Arc<Catalogue>,
    limits: Limits,
    redaction: Redaction,
}

/// A call of a known tool whose arguments keep its schema. INVARIANT (verbatim): the arguments are the ones that were
/// sent, but at the places of `leniencies`, where the contract allows otherwise by name. A `null` of strict mode says
/// that nothing was sent.
#[derive(Debug)]
pub(crate) struct Admitted {
    tool: Arc<Registered>,
    session: Arc<Session>,
    reference: Ref,
    arguments: Arc<Map<String, Value>>,
    /// The canonical text of the arguments.
    canonical: String,
    /// Whose personal data the call carries, where it carries any.
    subject: Option<String>,
    args_digest: Digest,
    call_digest: Digest,
    leniencies: Vec<Used>,
    operation: Option<OperationId>,
    named_approval: Option<String>,
    traced: Option<TraceContext>,
    deadline: Instant,
    patience: Instant,
    trace: Trace,
    /// The place of the call among those that the model made with it.
    seat: Option<Arc<Seat>>,
}

/// A call under the name of its tool.
pub(crate) struct Named {
    call: Call,
    naming: Naming,
}

/// A call that is not admitted, as it was sent.
pub(crate) struct Unadmitted {
    pub(crate) stop: Stop,
    /// The tool, where the session may know it.
    pub(crate) tool: Option<Arc<Registered>>,
    pub(crate) call: Call,
}

/// What the checks of this stage found, before it is a proof.
struct Checked {
    tool: Arc<Registered>,
    arguments: EffectiveArguments,
    call_digest: Digest,
}

impl Named {
    pub(crate) fn call(&self) -> &Call {
        &self.call
    }
}

impl Admit {
    pub(crate) fn new(catalogue: Arc<Catalogue>, limits: Limits, redaction: Redaction) -> Self {
        Self { catalogue, limits, redaction }
    }

    /// INVARIANT (first of all): nothing is looked up for a session that has ended at `now`, and no policy judges it.
    pub(crate) fn enter(
        &self,
        named: Named,
        session: Arc<Session>,
        reference: Ref,
        now: Millis,
    ) -> Result<Admitted, Box<Unadmitted>> {
        let started = Instant::now();
        let mut trace = Trace::start(&self.redaction);
        let checked = match self.check(&named, &session, now) {
            Ok(checked) => checked,
            Err(refusal) => {
                let learned = with_spelling(Learned::new(), &named.naming);
                let learned = learned.with("refused", refusal.code().as_str());
                trace.note("admit", asked(learned, &session, named.call.traced.as_ref()));
                let tool = self.catalogue.find(&named.call.tool, &session).cloned();
                return Err(Box::new(Unadmitted { stop: Stop::refused(refusal, trace), tool, call: named.call }));
            }
        };
        let Checked { tool, arguments, call_digest } = checked;
        let Named { call, naming } = named;
        let args_digest = arguments.digest();
        let Parts { members, masked, canonical, leniencies, absent } = arguments.into_parts();
        let learned = learned(&tool.contract, args_digest, call_digest, masked);
        let learned = with_spelling(learned, &naming);
        let learned = if leniencies.is_empty() { learned } else { learned.with("leniencies", json!(leniencies)) };
        let learned = if absent.is_empty() { learned } else { learned.with("absent", absent) };
        trace.note("admit", asked(learned, &session, call.traced.as_ref()));
        let deadline = started + tool.contract.deadline;
        let patience = call.patience.map_or(deadline, |patience| deadline.min(started + patience));
        let subject = subject_of(&tool, &members, &session);
        Ok(Admitted {
            tool,
            session,
            reference,
            arguments: Arc::new(members),
            canonical,
            subject,
            args_digest,
            call_digest,
            leniencies,
            operation: call.operation,
            named_approval: call.approval,
            traced: call.traced,
            deadline,
            patience,
            trace,
            seat: None,
        })
    }

    /// The call by the name of its tool, where it was made by a short form, or by a name that is near, of one that this
    /// session may know. All that is said of the call from here on is said of that tool.
    pub(crate) fn named(&self, call: Call, session: &Session) -> Named {
        let called = |tool: &Contract, call: Call| Call { tool: tool.name.clone(), ..call };
        if let Some(tool) = self.catalogue.find(&call.tool, session) {
            return Named { call: called(&tool.contract, call), naming: Naming::Exact };
        }
        match admission::near_tool(&call.tool, self.catalogue.of(session)) {
            Some(tool) => Named { naming: Naming::Near(call.tool.clone()), call: called(tool, call) },
            None => Named { call, naming: Naming::Exact },
        }
    }

    fn check(&self, Named { call, naming }: &Named, session: &Session, now: Millis) -> Result<Checked, Refusal> {
        if session.has_ended(now) {
            return Err(ended());
        }
        let unknown = || admission::unknown_tool(&call.tool, self.catalogue.of(session).map(Contract::name));
        let tool = self.catalogue.find(&call.tool, session).ok_or_else(unknown)?;
        let arguments = admission::check(&tool.contract, call, naming, &self.limits)?;
        let (args, own) = (arguments.digest().hex(), tool.contract.digest.hex());
        let call_digest = Digest::of_all(&[b"[\"", args.as_bytes(), b"\",\"", own.as_bytes(), b"\"]"]);
        Ok(Checked { tool: Arc::clone(tool), arguments, call_digest })
    }
}

fn learned(contract: &Contract, args_digest: Digest, call_digest: Digest, masked: Value) -> Learned {
    Learned::new()
        .with("contract", contract.digest.hex())
        .with("args_digest", args_digest.hex())
        .with("call_digest", call_digest.hex())
        .with("arguments", masked)
}

/// The name that was said, where it is not the tool's own: the record is under the name of the tool.
fn with_spelling(learned: Learned, naming: &Naming) -> Learned {
    match naming {
        Naming::Exact => learned,
        Naming::Near(spelled) => learned.with("spelled", spelled.as_str()),
    }
}

/// What the call came with, beside what the model wrote: without the tags nobody could tell why a tool was not there.
fn asked(learned: Learned, session: &Session, traced: Option<&TraceContext>) -> Learned {
    let learned = match session.bounds().len() {
        0 => learned,
        _ => learned.with("tags", json!(session.bounds().collect::<Vec<_>>())),
    };
    match traced {
        Some(context) => learned.with("trace_id", context.trace_id()),
        None => learned,
    }
}

impl Admitted {
    /// The same call, as one of those of a turn.
    pub(crate) fn seated(self, seat: Option<Arc<Seat>>) -> Self {
        Self { seat, ..self }
    }

    /// The place of the call in its turn.
    pub(crate) fn seat(&self) -> Option<&Seat> {
        self.seat.as_deref()
    }

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

    /// The arguments as canonical JSON text.
    pub(crate) fn canonical(&self) -> &str {
        &self.canonical
    }

    /// The name of whoever's personal data the call carries.
    pub(crate) fn subject(&self) -> Option<&str> {
        self.subject.as_deref()
    }

    pub(crate) fn args_digest(&self) -> Digest {
        self.args_digest
    }

    pub(crate) fn call_digest(&self) -> Digest {
        self.call_digest
    }

    /// Where the call is taken otherwise than it was sent.
    pub(crate) fn leniencies(&self) -> &[Used] {
        &self.leniencies
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
