//! The shapes for programs, which commands and doors share.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolgate::Reply;
use toolgate::approval::Approval;
use toolgate::audit::Sealed;
use toolgate::clock::Millis;
use toolgate::contract::{Access, Contract};
use toolgate::fault::Fault;
use toolgate::ledger::{Listed, Store};
use toolgate::standing::Standing;
use toolgate::stoppage::Stoppage;
use toolgate::trace::Trace;
use toolgate::wire::Warning;

/// An object with one member more.
pub(crate) fn with(mut object: Value, name: &str, member: impl Into<Value>) -> Value {
    if let Value::Object(members) = &mut object {
        members.insert(name.to_owned(), member.into());
    }
    object
}

/// A reply.
#[derive(Serialize)]
pub(crate) struct Shown<'a> {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) dry_run: bool,
    #[serde(flatten)]
    pub(crate) reply: &'a Reply,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<&'a Trace>,
}

/// What became of a message.
#[derive(Serialize)]
pub(crate) struct Answered<'a> {
    /// For the model.
    pub(crate) messages: &'a [Value],
    /// For the program.
    pub(crate) outcomes: &'a [Outcome<'a>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) warnings: &'a [Warning],
}

/// What became of one call of a message: the reply, which call it answers, and the status that an HTTP door gives it.
pub(crate) struct Outcome<'a> {
    call_id: &'a str,
    answer: Result<&'a Reply, String>,
    trace: bool,
}

/// A record of the audit, with its place in the chain.
#[derive(Serialize)]
pub(crate) struct Recorded<'a> {
    seq: u64,
    #[serde(rename = "ref")]
    reference: &'a str,
    previous: &'a toolgate::json::Digest,
    hash: &'a toolgate::json::Digest,
    /// INVARIANT (sealed text): exactly what was hashed.
    body: Box<RawValue>,
}

impl<'a> Outcome<'a> {
    /// The outcome of the call that the model gave this id; `tell` says what of a fault whoever reads this may know.
    pub(crate) fn of(
        call_id: &'a str,
        answer: &'a Result<Reply, Fault>,
        trace: bool,
        tell: impl FnOnce(&Fault) -> String,
    ) -> Self {
        Self { call_id, answer: answer.as_ref().map_err(tell), trace }
    }
}

impl Serialize for Outcome<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut outcome = serializer.serialize_struct("Outcome", 4)?;
        outcome.serialize_field("call_id", self.call_id)?;
        match &self.answer {
            Ok(reply) => {
                outcome.serialize_field("tool", reply.tool())?;
                outcome.serialize_field("status", &status(reply))?;
                if self.trace {
                    let shown = Shown { dry_run: false, reply, trace: Some(reply.trace()) };
                    outcome.serialize_field("reply", &shown)?;
                } else {
                    outcome.serialize_field("reply", reply)?;
                }
            }
            Err(told) => {
                outcome.serialize_field("status", &503)?;
                outcome.serialize_field("fault", told)?;
            }
        }
        outcome.end()
    }
}

/// The status that an HTTP door gives to one reply.
fn status(reply: &Reply) -> u16 {
    reply.refusal().map_or(200, |refusal| refusal.code().row(refusal.effect()).status)
}

impl<'a> Recorded<'a> {
    pub(crate) fn of(record: &'a Sealed) -> Self {
        let Sealed { seq, reference, previous, hash, body } = record;
        // A record that somebody damaged is shown as the text that it is.
        let body = RawValue::from_string(body.clone()).or_else(|_| serde_json::value::to_raw_value(body));
        let body = body.unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self { seq: *seq, reference, previous, hash, body }
    }
}

/// A tool that somebody may see.
pub(crate) fn tool(tool: &Contract) -> Value {
    json!({
        "name": tool.name(),
        "effect": effect(tool),
        "description": tool.description(),
        "tags": tool.tags(),
        "input": tool.input().shown(),
        "output": tool.output().map(|output| output.shown()),
    })
}

/// Whether a tool reads or writes, in a word.
pub(crate) fn effect(tool: &Contract) -> &'static str {
    match tool.access() {
        Access::Read => "read",
        Access::Write => "write",
    }
}

/// An approval.
pub(crate) fn approval(approval: &Approval, now: Millis) -> Value {
    let mut shown = json!({
        "id": approval.id,
        "state": approval.state_at(now),
        "tool": approval.tool,
        "requester": approval.requester,
        "tenant": approval.tenant,
        "preview": approval.preview,
        "arguments": approval.arguments,
        "leniencies": approval.leniencies,
        "call_digest": approval.told_digest,
        "reasons": approval.reasons,
        "created_at": approval.created_at.to_string(),
        "expires_at": approval.expires_at.to_string(),
    });
    if let Some(edited) = &approval.edited {
        shown = with(shown, "edited", json!(edited));
    }
    match &approval.instead {
        Some(instead) => with(shown, "instead", instead.as_str()),
        None => shown,
    }
}

/// A stop. What the operator said of one that is not of the reader's own stays with the operator.
pub(crate) fn stoppage(stop: &Stoppage, is_own: bool) -> Value {
    json!({
        "id": stop.id,
        "tool": stop.target.tool,
        "tenant": stop.target.tenant,
        "why": is_own.then_some(&stop.why),
        "by": is_own.then_some(&stop.by),
        "at": stop.at.to_string(),
        "until": stop.until.to_string(),
    })
}

/// A standing grant.
pub(crate) fn standing(Standing { grant, left, state }: &Standing) -> Value {
    let calls = grant.bounds.calls.map(|max| json!({ "max": max, "left": left.calls }));
    let sum = grant.bounds.sum.as_ref().map(|sum| json!({ "of": sum.of, "max": sum.max, "left": left.sum }));
    json!({
        "id": grant.id,
        "state": state.as_str(),
        "tool": grant.tool,
        "rule": grant.rule,
        "role": grant.role,
        "tenant": grant.tenant,
        "to": grant.to,
        "given_by": grant.given_by.principal,
        "calls": calls,
        "sum": sum,
        "created_at": grant.created_at.to_string(),
        "expires_at": grant.expires_at.to_string(),
    })
}

/// What an action is named by for people, and the digest of what it was given. INVARIANT (no plain digest of what is
/// hidden): where the tool marks anything, both would tell its values to whoever tries them. There it is named by the `ref`
/// that opened it, and its digest is keyed.
pub(crate) struct Names {
    pub(crate) key: String,
    /// Nothing where it would have to be keyed and the store is only looked at.
    pub(crate) args_digest: Option<String>,
}

impl Names {
    pub(crate) fn of(action: &Listed, is_marked: bool, store: &Store) -> Self {
        match is_marked {
            true => Self {
                key: action.first.as_str().to_owned(),
                args_digest: store.keyed(action.args_digest).map(|keyed| keyed.hex()),
            },
            false => Self { key: action.key.hex(), args_digest: Some(action.args_digest.hex()) },
        }
    }
}

/// An action of the ledger.
pub(crate) fn action(action: &Listed, names: &Names) -> Value {
    let time = |at: Option<Millis>| at.map(|at| at.to_string());
    json!({
        "key": names.key,
        "tool": action.tool,
        "tenant": action.tenant,
        "principal": action.principal,
        "run": action.run,
        "state": action.state,
        "effect": action.effect,
        "attempt": action.attempt,
        "ref": action.first,
        "args_digest": names.args_digest,
        "approval": action.approval,
        "opened_at": time(action.first.given_at()),
        "at": time(action.at),
        "lease_end": time(action.lease_end),
        "claimed_until": time(action.claimed_until),
    })
}
