//! Facts: what the gate looks up for itself, under its own right, before it decides.
//!
//! A fact is looked up anew for each decision, unless its contract lets it be a little old (`max_age`). Then an answer is
//! kept in the process for the same question of the same caller, and given again while it is young enough and nothing was
//! written on the lane of the call since: two refunds of one order never share a balance.

mod kept;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::backend::{Context, Found};
use crate::call::Ref;
use crate::caught::{Panicked, caught};
use crate::clock::Clock;
use crate::contract::{Contract, Fact, Registered, Registry};
use crate::json::{self, Limits};
use crate::redaction::Redactor;
use crate::session::Session;
use crate::template::{Scope, Template};

pub(crate) use kept::Ground;
use kept::{Kept, Key, Moment};

/// Looks things up with the read tools of the gate.
#[derive(Clone)]
pub(crate) struct Facts {
    registry: Arc<Registry>,
    clock: Arc<dyn Clock>,
    kept: Arc<Kept>,
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
pub(crate) struct Gathered {
    pub(crate) facts: Known,
    /// Of each fact, for the record: the tool that was asked, whether it was `found`, `absent` or `failed`, and how many
    /// milliseconds old the answer was when the last of them was there.
    pub(crate) sources: Map<String, Value>,
}

/// What is known of the facts of a call.
#[derive(Debug)]
pub(crate) enum Known {
    /// What was found, by name; what is absent is left out.
    Found(Map<String, Value>),
    /// One could not be found out: its name, and why, for the operator.
    Failed { fact: String, why: String },
}

/// An answer, and when it was asked for.
struct Dated {
    looked: Looked,
    at: Moment,
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
    pub(crate) fn new(registry: Arc<Registry>, clock: Arc<dyn Clock>) -> Self {
        Self { registry, clock, kept: Arc::default() }
    }

    /// Looks up every fact that a contract names, all at once. `ground` is the lane of the call, where it is a write.
    pub(crate) async fn gather(
        &self,
        contract: &Contract,
        arguments: &Map<String, Value>,
        asker: Asker<'_>,
        ground: Option<Ground>,
    ) -> Gathered {
        let scope = Scope::new(arguments, asker.session);
        let looks = contract.facts.values().map(|fact| self.dated(fact, scope, asker, ground));
        let mut dated = futures_util::future::join_all(looks).await;
        // What was kept may have come of age while the others were looked up.
        let now = Moment::now(&*self.clock);
        for (fact, dated) in contract.facts.values().zip(&mut dated) {
            if dated.is_too_old_for(fact, now) {
                *dated = self.dated(fact, scope, asker, ground).await;
            }
        }
        let now = Moment::now(&*self.clock);
        let (mut known, mut failed, mut sources) = (Map::new(), None, Map::new());
        for ((name, fact), dated) in contract.facts.iter().zip(dated) {
            let is_too_old = dated.is_too_old_for(fact, now);
            let age = u64::try_from(dated.at.age(now).as_millis()).unwrap_or(u64::MAX);
            let (state, why) = match dated.looked {
                Looked::Found(_) | Looked::Absent if is_too_old => {
                    ("failed", Some(format!("it was {age} ms old, and may be {} ms", fact.max_age.as_millis())))
                }
                Looked::Found(value) => {
                    known.insert(name.clone(), value);
                    ("found", None)
                }
                // An id of the wrong form, which the model wrote, is of nothing that is there.
                Looked::Absent | Looked::Unfit => ("absent", None),
                Looked::Failed(why) => ("failed", Some(why)),
            };
            sources.insert(name.clone(), json!({ "tool": fact.tool, "state": state, "age_ms": age }));
            failed = failed.or(why.map(|why| (name, why)));
        }
        let facts = match failed {
            None => Known::Found(known),
            Some((fact, why)) => {
                // Whoever was asked may repeat what it was asked with.
                let hidden = contract.input.hidden(&Value::Object(arguments.clone()));
                Known::Failed { fact: fact.clone(), why: hidden.taken_out_of(&why) }
            }
        };
        Gathered { facts, sources }
    }

    /// The answer to the question of a fact: a kept one, if there is one that is young enough, or a new one.
    async fn dated(&self, fact: &Fact, scope: Scope<'_>, asker: Asker<'_>, ground: Option<Ground>) -> Dated {
        let at = Moment::now(&*self.clock);
        let (tool, arguments) = match self.question(&fact.tool, &fact.args, scope) {
            Ok(question) => question,
            Err(looked) => return Dated { looked, at },
        };
        if fact.max_age == Duration::ZERO {
            return Dated { looked: self.ask(tool, arguments, asker).await, at };
        }
        let key = Key::of(&tool.contract, asker.session, &Value::Object(arguments.clone()), ground);
        if let Some((found, at)) = self.kept.get(key, fact.max_age, at) {
            return Dated { looked: found.map_or(Looked::Absent, Looked::Found), at };
        }
        let looked = self.ask(tool, arguments, asker).await;
        let answer = match &looked {
            Looked::Found(value) => Some(Some(value.clone())),
            // That something is not there is an answer too: kept or not, it costs the same as one about another tenant's.
            Looked::Absent => Some(None),
            Looked::Unfit | Looked::Failed(_) => None,
        };
        if let Some(found) = answer {
            self.kept.put(key, found, fact.max_age, at, Moment::now(&*self.clock));
        }
        Dated { looked, at }
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

    /// Asks one read tool, anew. Its answer passes the tool's own output schema, and no policy: the gate asks for itself.
    pub(crate) async fn look(
        &self,
        tool: &str,
        args: &BTreeMap<String, Template>,
        scope: Scope<'_>,
        asker: Asker<'_>,
    ) -> Looked {
        match self.question(tool, args, scope) {
            Ok((tool, arguments)) => self.ask(tool, arguments, asker).await,
            Err(looked) => looked,
        }
    }

    /// Whom to ask, and with which arguments; or what is known without asking.
    fn question(
        &self,
        tool: &str,
        args: &BTreeMap<String, Template>,
        scope: Scope<'_>,
    ) -> Result<(&Arc<Registered>, Map<String, Value>), Looked> {
        let Some(tool) = self.registry.get(tool).filter(|tool| !tool.contract.is_write()) else {
            return Err(Looked::Failed("the tool that looks it up is not there, or acts".into()));
        };
        let arguments: Map<String, Value> =
            args.iter().filter_map(|(name, template)| Some((name.clone(), template.fill(scope)?))).collect();
        let arguments = Value::Object(arguments);
        if !tool.contract.input.is_valid(&arguments) {
            return Err(Looked::Unfit);
        }
        let (arguments, _) = tool.contract.filled(arguments);
        match arguments {
            Value::Object(arguments) => Ok((tool, arguments)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(Looked::Failed("the arguments of the look-up are no object".into()))
            }
        }
    }

    async fn ask(&self, tool: &Registered, arguments: Map<String, Value>, asker: Asker<'_>) -> Looked {
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

impl Dated {
    /// Whether it is older than the contract lets it be. One that is looked up for this decision alone has no age.
    fn is_too_old_for(&self, fact: &Fact, now: Moment) -> bool {
        fact.max_age > Duration::ZERO && self.at.age(now) > fact.max_age
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
