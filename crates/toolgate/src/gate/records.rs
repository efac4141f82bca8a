//! The records that the gate writes: who asked for what, what every stage learned, and what became of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use super::erasure::Erased;
use crate::approval::{Approval, Decision};
use crate::audit::{Kind, Record};
use crate::backend::Case;
use crate::call::{Call, Ref};
use crate::clock::Millis;
use crate::contract::Registry;
use crate::json::{Digest, Part, canonical_part};
use crate::ledger::{Entry, Finding};
use crate::recovery::Scribe;
use crate::redaction::{Redaction, Redactor};
use crate::refusal::{Code, Effect, Refusal};
use crate::reply::{Answer, Outcome, Reply};
use crate::schema::Mark;
use crate::session::Session;
use crate::stage::admit::{Admitted, Unadmitted};
use crate::stage::inform::Recalled;
use crate::stage::permit::Permitted;
use crate::stage::settle::{Said, Settled};
use crate::standing::{Granting, NotGranted, StandingGrant};
use crate::trace::{Learned, Trace};

/// What all records of one attempt begin with.
pub(super) struct Heading {
    call_id: String,
    tool: String,
    session: Arc<Session>,
    reference: Ref,
    /// Whether something may have run, should the call end without an answer.
    in_flight: AtomicBool,
    redaction: Redaction,
    /// What is known of the call once it was held to its contract.
    told: OnceLock<Told>,
}

/// What the record tells of a call beside who made it.
enum Told {
    /// It was admitted.
    Admitted {
        contract: Digest,
        policies: Digest,
        args_digest: Digest,
        call_digest: Digest,
        /// The canonical effective arguments, redacted, where they are kept.
        arguments: Option<String>,
        redactor: Arc<Redactor>,
    },
    /// It was not; this was sent.
    Unadmitted { raw: Value },
}

/// What the record tells of an admitted call itself, and not once more of the stage that learned it.
const OF_THE_CALL: [&str; 4] = ["contract", "args_digest", "call_digest", "arguments"];

impl Heading {
    pub(super) fn of(call: &Call, session: &Session, redaction: &Redaction) -> Self {
        Self::new(call.id.clone(), call.tool.clone(), session, redaction)
    }

    pub(super) fn new(call_id: String, tool: String, session: &Session, redaction: &Redaction) -> Self {
        Self {
            call_id,
            tool,
            session: Arc::new(session.clone()),
            reference: Ref::fresh(),
            in_flight: AtomicBool::new(false),
            redaction: redaction.clone(),
            told: OnceLock::new(),
        }
    }

    /// The call was admitted; `policies` is the digest of those that judge it.
    pub(super) fn admitted(&self, admitted: &Admitted, policies: Digest, redactor: &Arc<Redactor>) {
        let contract = &admitted.tool().contract;
        let _ = self.told.set(Told::Admitted {
            contract: contract.digest,
            policies,
            args_digest: redactor.digest(admitted.args_digest()),
            call_digest: redactor.digest(admitted.call_digest()),
            arguments: redactor.arguments(&contract.input, admitted.arguments(), admitted.canonical()),
            redactor: Arc::clone(redactor),
        });
    }

    /// The call was not admitted.
    pub(super) fn unadmitted(&self, unadmitted: &Unadmitted) {
        let tool = unadmitted.tool.as_deref();
        let redactor = self.redaction.of_call(tool.and_then(|tool| tool.mark), None);
        let raw = redactor.unadmitted(tool.map(|tool| &*tool.contract), unadmitted.call.arguments());
        let _ = self.told.set(Told::Unadmitted { raw });
    }

    pub(super) fn session(&self) -> Arc<Session> {
        Arc::clone(&self.session)
    }

    /// The digest of the call as the record has it, where it was admitted.
    pub(super) fn call_digest(&self) -> Option<Digest> {
        match self.told.get() {
            Some(Told::Admitted { call_digest, .. }) => Some(*call_digest),
            Some(Told::Unadmitted { .. }) | None => None,
        }
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
        let trace = || Trace::start(&self.redaction);
        self.in_flight.load(Ordering::SeqCst).then(|| self.reply(Answer::Refused(refusal), trace()))
    }

    /// How a write ended.
    pub(super) fn ended_as(&self, said: Said, trace: &Trace, answer: &Answer, now: Millis) -> Record {
        self.record(kind(said), trace, self.ended(trace, answer), now)
    }

    pub(super) fn read(&self, settled: &Settled, now: Millis) -> Record {
        self.record(Kind::Read, &settled.trace, self.ended(&settled.trace, &settled.answer), now)
    }

    pub(super) fn refused(&self, refusal: &Refusal, trace: &Trace, now: Millis) -> Record {
        self.record(Kind::Refusal, trace, refused(refusal, &self.redaction), now)
    }

    pub(super) fn replayed(&self, first: &Ref, trace: &Trace, now: Millis) -> Record {
        self.record(Kind::Replay, trace, vec![("first_ref", Part::from(first.as_str()))], now)
    }

    pub(super) fn dry_run(&self, answer: &Answer, trace: &Trace, now: Millis) -> Record {
        self.record(Kind::DryRun, trace, self.ended(trace, answer), now)
    }

    /// Writes the record of a proposal, once it is known which approval stands.
    pub(super) fn proposed(
        self: &Arc<Self>,
        trace: &Trace,
        now: Millis,
    ) -> Box<dyn FnOnce(&Approval) -> Record + Send> {
        let heading = Arc::clone(self);
        let stages = canonical_part(trace.part(&OF_THE_CALL));
        Box::new(move |approval| {
            let rules = approval.reasons.iter().map(|reason| Part::from(reason.rule.as_str()));
            let mut told =
                vec![("approval", Part::from(approval.id.as_str())), ("rules", Part::Items(rules.collect()))];
            told.extend(approval.edited.as_ref().map(|edited| ("edited", Part::Own(json!(edited)))));
            heading.written(Kind::Proposal, Part::Written(&stages), told, now)
        })
    }

    fn record<'a>(&'a self, kind: Kind, trace: &'a Trace, mut told: Vec<(&'a str, Part<'a>)>, now: Millis) -> Record {
        if tells_of_the_verdict(kind) {
            let would = trace.last("permit", WOULD_REFUSE);
            told.extend(would.map(|would| (WOULD_REFUSE, Part::Value(would))));
        }
        let above: &[&str] = match self.told.get() {
            Some(Told::Admitted { .. }) => &OF_THE_CALL,
            Some(Told::Unadmitted { .. }) | None => &[],
        };
        self.written(kind, trace.part(above), told, now)
    }

    fn written<'a>(&'a self, kind: Kind, stages: Part<'a>, told: Vec<(&'a str, Part<'a>)>, now: Millis) -> Record {
        let mut members = told;
        self.of_the_call(&mut members);
        let (tool, call_id) = (self.redaction.text(bounded(&self.tool)), self.redaction.text(bounded(&self.call_id)));
        members.extend(asked(&self.session));
        members.extend([
            ("tool", Part::from(&*tool)),
            ("call_id", Part::from(&*call_id)),
            ("roles", Part::Items(self.session.roles().iter().map(|role| Part::from(role.as_str())).collect())),
            ("stages", stages),
        ]);
        Record::of(kind, now, &self.reference, members)
    }

    fn of_the_call<'a>(&'a self, members: &mut Vec<(&'a str, Part<'a>)>) {
        match self.told.get() {
            Some(Told::Admitted { contract, policies, args_digest, call_digest, arguments, redactor: _ }) => {
                members.extend([
                    ("contract", Part::Digest(*contract)),
                    ("policies", Part::Digest(*policies)),
                    ("args_digest", Part::Digest(*args_digest)),
                    ("call_digest", Part::Digest(*call_digest)),
                ]);
                members.extend(arguments.as_deref().map(|text| ("arguments", Part::Written(text))));
            }
            Some(Told::Unadmitted { raw }) => members.push(("raw", Part::Value(raw))),
            None => {}
        }
    }

    fn ended<'a>(&self, trace: &'a Trace, answer: &'a Answer) -> Vec<(&'a str, Part<'a>)> {
        let redactor = match self.told.get() {
            Some(Told::Admitted { redactor, .. }) => Some(&**redactor),
            Some(Told::Unadmitted { .. }) | None => None,
        };
        let mut told = ended(answer, &self.redaction, redactor);
        told.extend(trace.last("run", "attempts").map(|attempts| ("attempts", Part::Value(attempts))));
        told
    }
}

fn ended<'a>(answer: &'a Answer, redaction: &Redaction, redactor: Option<&Redactor>) -> Vec<(&'a str, Part<'a>)> {
    match answer {
        Answer::Result(outcome) => {
            let text = outcome.result.get();
            let digest = Digest::of(text.as_bytes());
            vec![
                ("effect", Part::from(outcome.effect.as_str())),
                ("result_bytes", Part::Count(u64::try_from(text.len()).unwrap_or(u64::MAX))),
                ("result_digest", Part::Digest(redactor.map_or(digest, |redactor| redactor.digest(digest)))),
                ("truncated", Part::Flag(!outcome.truncated.is_empty())),
            ]
        }
        Answer::Refused(refusal) => refused(refusal, redaction),
    }
}

fn refused<'a>(refusal: &'a Refusal, redaction: &Redaction) -> Vec<(&'a str, Part<'a>)> {
    let row = refusal.code().row(refusal.effect());
    let mut told = vec![
        ("code", Part::from(refusal.code().as_str())),
        ("effect", Part::from(refusal.effect().as_str())),
        ("class", Part::Own(json!(row.class))),
    ];
    if !refusal.problem_list().is_empty() {
        // A place in the arguments is made of names that a model wrote.
        let mut problems = json!(refusal.problem_list());
        redaction.scrub(&mut problems);
        told.push(("problems", Part::Own(problems)));
    }
    if let Some(rule) = refusal.rule_id() {
        told.push(("rule", Part::from(rule)));
    }
    told
}

/// What policies would have refused, had they not only been observed: the name of it in a record and in its trace.
const WOULD_REFUSE: &str = "would_refuse";

/// Whether a record is the one of its call that tells what policies said.
fn tells_of_the_verdict(kind: Kind) -> bool {
    matches!(kind, Kind::Intent | Kind::Read | Kind::Refusal | Kind::Replay | Kind::DryRun)
}

/// Who asked, for whom, and in which run.
fn asked(session: &Session) -> [(&'static str, Part<'_>); 3] {
    let principal = session.principal();
    let members =
        vec![("issuer", Part::from(principal.issuer.as_str())), ("subject", Part::from(principal.subject.as_str()))];
    [
        ("tenant", Part::from(session.tenant())),
        ("principal", Part::Members(members)),
        ("run", Part::from(session.run())),
    ]
}

/// What a dry run tells of a call that would pass. The preview is for people: it goes into the trace, not to a model.
/// `unsaid` is what it may be told that the policies would have refused, where they are only observed.
pub(super) fn forecast(permitted: Permitted, unsaid: Option<&Refusal>) -> (Answer, Trace) {
    let informed = permitted.informed();
    let would = match informed.action().map(|action| &action.recalled) {
        Some(Recalled::Replay(_)) => Ok("replay"),
        Some(Recalled::Conflict) => Err(Refusal::before(Code::KeyConflict)),
        Some(Recalled::Fresh | Recalled::Reopen | Recalled::Anew) | None => Ok("run"),
    };
    let preview = informed.preview();
    let would_refuse = unsaid.map(enforced);
    let answer = would.and_then(|would| {
        let mut told = Map::from_iter([("would".to_owned(), json!(would))]);
        told.extend(would_refuse.map(|would| (WOULD_REFUSE.to_owned(), would)));
        if let Some(Value::Array(used)) = informed.admitted().trace().last("permit", "standing") {
            let ids = used.iter().filter_map(|used| used.get("id")).cloned().collect();
            told.insert("standing".to_owned(), Value::Array(ids));
        }
        let outcome = Outcome::of(&Value::Object(told), Effect::None, Vec::new());
        outcome.ok_or_else(|| Refusal::before(Code::InvalidResult))
    });
    let mut trace = permitted.withdraw().withdraw().into_trace();
    trace.note("forecast", Learned::new().with("preview", preview));
    (answer.map_or_else(Answer::Refused, Answer::Result), trace)
}

/// What would have been answered, were the policies enforced; nothing that only the operator may know.
fn enforced(refusal: &Refusal) -> Value {
    let rule = refusal.rule_id().map(|rule| ("rule", rule));
    let told = [("code", refusal.code().as_str()), ("message", refusal.text())].into_iter().chain(rule);
    Value::Object(told.map(|(name, text)| (name.to_owned(), text.into())).collect())
}

/// Writes the record of a person's answer, once it counts.
pub(super) fn decision(by: Session, decision: Decision, now: Millis) -> Box<dyn FnOnce(&Approval) -> Record + Send> {
    Box::new(move |approval| {
        let body = json!({
            "approval": approval.id,
            "tool": approval.tool,
            "tenant": approval.tenant,
            "principal": by.principal(),
            "decision": said(decision),
            "state": approval.state_at(now),
        });
        Record::new(Kind::Decision, now, Ref::fresh(), into_map(body))
    })
}

/// Writes the record of an approval that was denied because an edited call is asked instead.
pub(super) fn edited(by: Session, now: Millis) -> Box<dyn FnOnce(&Approval) -> Record + Send> {
    Box::new(move |approval| {
        let body = json!({
            "approval": approval.id,
            "tool": approval.tool,
            "tenant": approval.tenant,
            "principal": by.principal(),
            "decision": EDIT,
            "state": approval.state_at(now),
            "instead": approval.instead,
        });
        Record::new(Kind::Decision, now, Ref::fresh(), into_map(body))
    })
}

/// The record of a person's answer that does not count.
pub(super) fn not_decided(id: &str, by: &Session, decision: &str, why: &str, now: Millis) -> Record {
    let body = json!({
        "approval": bounded(id),
        "tenant": by.tenant(),
        "principal": by.principal(),
        "decision": decision,
        "state": "refused",
        "why": why,
    });
    Record::new(Kind::Decision, now, Ref::fresh(), into_map(body))
}

/// The record of a standing grant that was given or taken back, by `by`.
pub(super) fn standing(kind: Kind, grant: &StandingGrant, by: &Session, now: Millis) -> Record {
    let mut body = into_map(json!(grant));
    // The moments and the person stand there under other names.
    body.retain(|name, _| !["id", "given_by", "created_at", "expires_at"].contains(&name.as_str()));
    body.insert("standing".into(), json!(grant.id));
    body.insert("principal".into(), json!(by.principal()));
    body.insert("given_by".into(), json!(grant.given_by.principal));
    body.insert("until".into(), json!(grant.expires_at.to_string()));
    Record::new(kind, now, Ref::fresh(), body)
}

/// The record of a standing grant that was not given.
pub(super) fn not_granted(asked: &Granting, by: &Session, not: &NotGranted, now: Millis) -> Record {
    let body = json!({
        "tool": bounded(&asked.tool),
        "rule": bounded(&asked.rule),
        "to": asked.to,
        "tenant": by.tenant(),
        "principal": by.principal(),
        "state": "refused",
        "why": not.to_string(),
    });
    Record::new(Kind::StandingGrant, now, Ref::fresh(), into_map(body))
}

/// The record of a standing grant that was not taken back.
pub(super) fn not_revoked(id: &str, by: &Session, not: &NotGranted, now: Millis) -> Record {
    let body = json!({
        "standing": bounded(id),
        "tenant": by.tenant(),
        "principal": by.principal(),
        "state": "refused",
        "why": not.to_string(),
    });
    Record::new(Kind::StandingRevoked, now, Ref::fresh(), into_map(body))
}

/// What is said where somebody wrote other arguments.
pub(super) const EDIT: &str = "edit";

pub(super) fn said(decision: Decision) -> &'static str {
    match decision {
        Decision::Approve => "approve",
        Decision::Deny => "deny",
    }
}

/// The record of an erasure. It names whom it was by a keyed digest alone.
pub(super) fn erased(erased: &Erased, by: &Session, now: Millis) -> Record {
    let body = json!({
        "tenant": by.tenant(),
        "principal": by.principal(),
        "subject": erased.subject,
        "actions": erased.actions,
    });
    Record::new(Kind::Erasure, now, Ref::fresh(), into_map(body))
}

/// Writes the records of actions that no call is at hand of.
#[derive(Clone)]
pub(super) struct Entries {
    registry: Arc<Registry>,
    redaction: Redaction,
}

impl Entries {
    pub(super) fn new(registry: &Arc<Registry>, redaction: &Redaction) -> Self {
        Self { registry: Arc::clone(registry), redaction: redaction.clone() }
    }

    /// What stands on record for the key of the action.
    pub(super) fn key(&self, entry: &Entry) -> String {
        // What a tool marked that is not there any more, nobody knows.
        let mark = self.registry.get(&entry.action.tool).map_or(Some(Mark::Secret), |tool| tool.mark);
        self.redaction.key_of_action(mark, entry.downstream_key())
    }

    fn about(&self, entry: &Entry) -> Map<String, Value> {
        into_map(json!({
            "tool": entry.action.tool,
            "tenant": entry.action.tenant,
            "principal": entry.action.principal,
            "attempt": entry.attempt,
            "idempotency_key": self.key(entry),
            "effect": "unknown",
        }))
    }
}

impl Scribe for Entries {
    fn lost(&self, entry: &Entry, now: Millis) -> Record {
        Record::new(Kind::Lost, now, entry.first.clone(), self.about(entry))
    }

    fn reconciled(&self, entry: &Entry, finding: &Finding, now: Millis) -> Record {
        let mut body = self.about(entry);
        let found = match finding {
            Finding::Done { .. } => "done",
            Finding::NotDone => "none",
        };
        body.insert("effect".into(), json!(found));
        Record::new(Kind::Reconciled, now, entry.first.clone(), body)
    }
}

/// The record of an answer that came after its call was given up.
pub(super) fn late(case: &Case, redaction: &Redaction, answer: &Answer, said: Said, now: Millis) -> Record {
    let redactor = redaction.of_call(case.mark, None);
    let mut members = ended(answer, redaction, Some(&redactor));
    members.extend(asked(&case.session));
    members.extend([
        ("late", Part::Flag(true)),
        ("tool", Part::from(case.contract.name())),
        ("attempt", Part::Count(u64::from(case.attempt))),
    ]);
    Record::of(kind(said), now, &case.reference, members)
}

fn kind(said: Said) -> Kind {
    match said {
        Said::Outcome => Kind::Outcome,
        Said::TooLate => Kind::Late,
    }
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
