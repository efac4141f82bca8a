//! The records that the gate writes: who asked for what, what every stage learned, and what became of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};

use crate::approval::{Approval, Decision, NotDecided};
use crate::audit::{Kind, Record};
use crate::backend::Case;
use crate::call::{Call, Ref};
use crate::clock::Millis;
use crate::json::{Digest, Part};
use crate::ledger::{Entry, Finding};
use crate::refusal::{Code, Effect, Refusal};
use crate::reply::{Answer, Outcome, Reply};
use crate::session::Session;
use crate::stage::inform::Recalled;
use crate::stage::permit::Permitted;
use crate::stage::settle::{Said, Settled};
use crate::trace::{Learned, Trace};

/// What all records of one attempt begin with.
pub(super) struct Heading {
    call_id: String,
    tool: String,
    session: Arc<Session>,
    reference: Ref,
    /// Whether something may have run, should the call end without an answer.
    in_flight: AtomicBool,
}

impl Heading {
    pub(super) fn of(call: &Call, session: &Session) -> Self {
        Self::new(call.id.clone(), call.tool.clone(), session)
    }

    pub(super) fn new(call_id: String, tool: String, session: &Session) -> Self {
        let session = Arc::new(session.clone());
        Self { call_id, tool, session, reference: Ref::fresh(), in_flight: AtomicBool::new(false) }
    }

    pub(super) fn session(&self) -> Arc<Session> {
        Arc::clone(&self.session)
    }

    pub(super) fn reference(&self) -> Ref {
        self.reference.clone()
    }

    pub(super) fn reply(&self, answer: Answer, trace: Trace) -> Reply {
        Reply::new(self.call_id.clone(), self.tool.clone(), self.reference.clone(), answer, trace)
    }

    /// The intent of a write, or of a read that uses up an approval.
    pub(super) fn intent(&self, permitted: &Permitted, now: Millis) -> Record {
        let informed = permitted.informed();
        self.in_flight.store(informed.action().is_some(), Ordering::SeqCst);
        self.record(Kind::Intent, informed.admitted().trace(), Vec::new(), now)
    }

    /// The reply where the call ended without an answer, by a panic within the gate or the end of its runtime, after
    /// something may have run. Its entry is found open, and reconciled, by the next call that meets it.
    pub(super) fn lost(&self) -> Option<Reply> {
        let refusal = Refusal::new(Code::OutcomeUnknown, Effect::Unknown);
        self.in_flight.load(Ordering::SeqCst).then(|| self.reply(Answer::Refused(refusal), Trace::start()))
    }

    pub(super) fn outcome(&self, trace: &Trace, answer: &Answer, now: Millis) -> Record {
        self.record(Kind::Outcome, trace, ended(answer), now)
    }

    pub(super) fn read(&self, settled: &Settled, now: Millis) -> Record {
        self.record(Kind::Read, &settled.trace, ended(&settled.answer), now)
    }

    pub(super) fn refused(&self, refusal: &Refusal, trace: &Trace, now: Millis) -> Record {
        self.record(Kind::Refusal, trace, refused(refusal), now)
    }

    pub(super) fn replayed(&self, first: &Ref, trace: &Trace, now: Millis) -> Record {
        self.record(Kind::Replay, trace, vec![("first_ref", Part::from(first.as_str()))], now)
    }

    pub(super) fn dry_run(&self, answer: &Answer, trace: &Trace, now: Millis) -> Record {
        self.record(Kind::DryRun, trace, ended(answer), now)
    }

    /// Writes the record of a proposal, once it is known which approval stands.
    pub(super) fn proposed(&self, trace: &Trace, now: Millis) -> Box<dyn FnOnce(&Approval) -> Record + Send> {
        let mut body = self.body(trace);
        let reference = self.reference.clone();
        Box::new(move |approval| {
            let rules: Vec<&str> = approval.reasons.iter().map(|reason| reason.rule.as_str()).collect();
            body.insert("approval".into(), json!(approval.id));
            body.insert("rules".into(), json!(rules));
            Record::new(Kind::Proposal, now, reference, body)
        })
    }

    fn record<'a>(&'a self, kind: Kind, trace: &'a Trace, told: Vec<(&'a str, Part<'a>)>, now: Millis) -> Record {
        let principal = self.session.principal();
        let mut members = told;
        members.extend([
            ("tool", Part::from(bounded(&self.tool))),
            ("call_id", Part::from(bounded(&self.call_id))),
            ("tenant", Part::from(self.session.tenant())),
            (
                "principal",
                Part::Members(vec![
                    ("issuer", Part::from(principal.issuer.as_str())),
                    ("subject", Part::from(principal.subject.as_str())),
                ]),
            ),
            ("run", Part::from(self.session.run())),
            ("stages", trace.part()),
        ]);
        Record::of(kind, now, &self.reference, members)
    }

    fn body(&self, trace: &Trace) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("tool".into(), json!(bounded(&self.tool)));
        body.insert("call_id".into(), json!(bounded(&self.call_id)));
        body.insert("tenant".into(), json!(self.session.tenant()));
        body.insert("principal".into(), json!(self.session.principal()));
        body.insert("run".into(), json!(self.session.run()));
        body.insert("stages".into(), json!(trace));
        body
    }
}

/// What a dry run tells of a call that would pass. The preview is for people: it goes into the trace, not to a model.
pub(super) fn forecast(permitted: Permitted) -> (Answer, Trace) {
    let informed = permitted.informed();
    let would = match informed.action().map(|action| &action.recalled) {
        Some(Recalled::Replay(_)) => Ok("replay"),
        Some(Recalled::Conflict) => Err(Refusal::before(Code::KeyConflict)),
        Some(Recalled::Fresh | Recalled::Reopen | Recalled::Anew) | None => Ok("run"),
    };
    let preview = informed.preview();
    let answer = would.and_then(|would| {
        let outcome = Outcome::of(&json!({ "would": would }), Effect::None, Vec::new());
        outcome.ok_or_else(|| Refusal::before(Code::InvalidResult))
    });
    let mut trace = permitted.withdraw().withdraw().into_trace();
    trace.note("forecast", Learned::new().with("preview", preview));
    (answer.map_or_else(Answer::Refused, Answer::Result), trace)
}

/// Writes the record of a person's answer, once it counts.
pub(super) fn decision(by: Session, decision: Decision, now: Millis) -> Box<dyn FnOnce(&Approval) -> Record + Send> {
    Box::new(move |approval| {
        let body = json!({
            "approval": approval.id,
            "tool": approval.tool,
            "tenant": approval.tenant,
            "principal": by.principal(),
            "call_digest": approval.call_digest,
            "decision": said(decision),
            "state": approval.state_at(now),
        });
        Record::new(Kind::Decision, now, Ref::fresh(), into_map(body))
    })
}

/// The record of a person's answer that does not count.
pub(super) fn not_decided(id: &str, by: &Session, decision: Decision, reason: &NotDecided, now: Millis) -> Record {
    let body = json!({
        "approval": bounded(id),
        "tenant": by.tenant(),
        "principal": by.principal(),
        "decision": said(decision),
        "state": "refused",
        "why": reason.to_string(),
    });
    Record::new(Kind::Decision, now, Ref::fresh(), into_map(body))
}

fn said(decision: Decision) -> &'static str {
    match decision {
        Decision::Approve => "approve",
        Decision::Deny => "deny",
    }
}

/// The record of an action whose owner is dead or whose lease is over.
pub(super) fn lost(entry: &Entry, now: Millis) -> Record {
    Record::new(Kind::Lost, now, entry.first.clone(), about(entry))
}

/// The record of what reconciling found.
pub(super) fn reconciled(entry: &Entry, finding: &Finding, now: Millis) -> Record {
    let mut body = about(entry);
    let found = match finding {
        Finding::Done { .. } => "done",
        Finding::NotDone => "none",
    };
    body.insert("effect".into(), json!(found));
    Record::new(Kind::Reconciled, now, entry.first.clone(), body)
}

/// The record of an answer that came after its call was given up.
pub(super) fn late(case: &Case, tool: &str, answer: &Answer, said: Said, now: Millis) -> Record {
    let kind = match said {
        Said::Outcome => Kind::Outcome,
        Said::TooLate => Kind::Late,
    };
    let principal = case.session.principal();
    let mut members = ended(answer);
    members.extend([
        ("late", Part::Flag(true)),
        ("tool", Part::from(tool)),
        ("tenant", Part::from(case.session.tenant())),
        (
            "principal",
            Part::Members(vec![
                ("issuer", Part::from(principal.issuer.as_str())),
                ("subject", Part::from(principal.subject.as_str())),
            ]),
        ),
        ("run", Part::from(case.session.run())),
        ("attempt", Part::Count(u64::from(case.attempt))),
    ]);
    Record::of(kind, now, &case.reference, members)
}

fn about(entry: &Entry) -> Map<String, Value> {
    into_map(json!({
        "tool": entry.action.tool,
        "tenant": entry.action.tenant,
        "principal": entry.action.principal,
        "attempt": entry.attempt,
        "idempotency_key": entry.downstream_key(),
        "args_digest": entry.action.args_digest,
        "effect": "unknown",
    }))
}

fn ended(answer: &Answer) -> Vec<(&'static str, Part<'_>)> {
    match answer {
        Answer::Result(outcome) => {
            let text = outcome.result.get();
            vec![
                ("effect", Part::from(outcome.effect.as_str())),
                ("result_bytes", Part::Count(u64::try_from(text.len()).unwrap_or(u64::MAX))),
                ("result_digest", Part::Own(Digest::of(text.as_bytes()).hex().into())),
                ("truncated", Part::Flag(!outcome.truncated.is_empty())),
            ]
        }
        Answer::Refused(refusal) => refused(refusal),
    }
}

fn refused(refusal: &Refusal) -> Vec<(&'static str, Part<'_>)> {
    let row = refusal.code().row(refusal.effect());
    let mut told = vec![
        ("code", Part::from(refusal.code().as_str())),
        ("effect", Part::from(refusal.effect().as_str())),
        ("class", Part::Own(json!(row.class))),
    ];
    if !refusal.problem_list().is_empty() {
        told.push(("problems", Part::Own(json!(refusal.problem_list()))));
    }
    if let Some(rule) = refusal.rule_id() {
        told.push(("rule", Part::from(rule)));
    }
    told
}

fn into_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

/// What a model wrote is kept, but not without bound.
fn bounded(text: &str) -> &str {
    const BOUND: usize = 256;
    text.char_indices().nth(BOUND).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}
