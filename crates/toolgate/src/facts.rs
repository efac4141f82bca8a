//! Facts: what the gate looks up for itself, under its own right, before it decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::backend::{Context, Found};
use crate::call::Ref;
use crate::caught::{Panicked, caught};
use crate::contract::{Contract, Registered, Registry};
use crate::json::{self, Limits};
use crate::redaction::Redactor;
use crate::session::Session;
use crate::template::{Scope, Template};

/// Looks things up with the read tools of the gate.
#[derive(Clone)]
pub(crate) struct Facts {
    registry: Arc<Registry>,
}

/// What a look-up runs with. Only this room makes one, from arguments that fit the tool's schema, and only for a tool
/// that does not act.
#[derive(Debug)]
pub struct Lookup {
    context: Context,
}

/// For whom and until when something is looked up.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) reference: &'a Ref,
    pub(crate) deadline: Instant,
}

/// What was looked up.
#[derive(Debug)]
pub(crate) enum Looked {
    Found(Value),
    Absent,
    /// The arguments cannot be of any such thing, so nobody was asked.
    Unfit,
    /// It could not be found out; the text is for the operator.
    Failed(String),
}

/// The facts of a call.
#[derive(Debug)]
pub(crate) enum Gathered {
    /// What was found, by name; what is absent is left out.
    Known(Map<String, Value>),
    /// One could not be found out: its name, and why, for the operator.
    Failed { fact: String, why: String },
}

impl Lookup {
    /// What the look-up runs with.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// What the look-up runs with.
    pub fn into_context(self) -> Context {
        self.context
    }
}

impl Facts {
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        Self { registry }
    }

    /// Looks up every fact that a contract names, all at once.
    pub(crate) async fn gather(
        &self,
        contract: &Contract,
        arguments: &Map<String, Value>,
        asker: Asker<'_>,
    ) -> Gathered {
        let scope = Scope::new(arguments, asker.session);
        let looks = contract
            .facts
            .iter()
            .map(|(name, fact)| async move { (name, self.look(&fact.tool, &fact.args, scope, asker).await) });
        let mut known = Map::new();
        for (name, looked) in futures_util::future::join_all(looks).await {
            match looked {
                Looked::Found(value) => {
                    known.insert(name.clone(), value);
                }
                // An id of the wrong form, which the model wrote, is of nothing that is there.
                Looked::Absent | Looked::Unfit => {}
                Looked::Failed(why) => {
                    // Whoever was asked may repeat what it was asked with.
                    let hidden = contract.input.hidden(&Value::Object(arguments.clone()));
                    return Gathered::Failed { fact: name.clone(), why: hidden.taken_out_of(&why) };
                }
            }
        }
        Gathered::Known(known)
    }

    /// The facts as they may stand in a record.
    pub(crate) fn redacted(&self, contract: &Contract, facts: &Map<String, Value>, redactor: &Redactor) -> Value {
        let redacted = facts.iter().map(|(name, value)| {
            let tool = contract.facts.get(name).and_then(|fact| self.registry.get(&fact.tool));
            let output = tool.and_then(|tool| tool.contract.output.as_ref());
            (name.clone(), redactor.fact(output, value))
        });
        Value::Object(redacted.collect())
    }

    /// Asks one read tool. Its answer passes the tool's own output schema, and no policy: the gate asks for itself.
    pub(crate) async fn look(
        &self,
        tool: &str,
        args: &BTreeMap<String, Template>,
        scope: Scope<'_>,
        asker: Asker<'_>,
    ) -> Looked {
        let Some(tool) = self.registry.get(tool).filter(|tool| !tool.contract.is_write()) else {
            return Looked::Failed("the tool that looks it up is not there, or acts".into());
        };
        let arguments: Map<String, Value> =
            args.iter().filter_map(|(name, template)| Some((name.clone(), template.fill(scope)?))).collect();
        let arguments = Value::Object(arguments);
        if !tool.contract.input.is_valid(&arguments) {
            return Looked::Unfit;
        }
        let (arguments, _) = tool.contract.filled(arguments);
        let Value::Object(arguments) = arguments else {
            return Looked::Failed("the arguments of the look-up are no object".into());
        };
        let deadline = asker.deadline.min(Instant::now() + tool.contract.deadline);
        let cancelled = CancellationToken::new();
        let _ended = cancelled.clone().drop_guard();
        let lookup = Lookup {
            context: Context {
                session: Arc::clone(asker.session),
                arguments: Arc::new(arguments),
                facts: Arc::default(),
                reference: asker.reference.clone(),
                idempotency_key: None,
                deadline,
                cancelled,
                traced: None,
                late: None,
            },
        };
        match timeout_at(deadline, caught(|| tool.backend.look(lookup))).await {
            Ok(Ok(Found::Found(text))) => read_answer(tool, &text),
            Ok(Ok(Found::Absent)) => Looked::Absent,
            Ok(Ok(Found::Failed(why))) => Looked::Failed(why),
            Ok(Err(Panicked)) => Looked::Failed("the look-up panicked".into()),
            Err(_) => Looked::Failed("the look-up did not end in time".into()),
        }
    }
}

/// The answer of a look-up, held to the contract of the tool that gave it.
fn read_answer(tool: &Registered, text: &[u8]) -> Looked {
    if text.len() > tool.contract.max_result {
        return Looked::Failed(format!("the answer of {} is larger than its bound", tool.contract.name));
    }
    let limits = Limits { size: tool.contract.max_result, ..Limits::default() };
    let value = match json::read(text, &limits) {
        Ok(value) => value,
        Err(flaw) => return Looked::Failed(format!("the answer of {} is no strict JSON: {flaw}", tool.contract.name)),
    };
    let Some(output) = &tool.contract.output else { return Looked::Found(value) };
    let value = output.project(value);
    if output.is_valid(&value) {
        Looked::Found(value)
    } else {
        Looked::Failed(format!("the answer of {} does not keep its output schema", tool.contract.name))
    }
}
