//! When two calls are the same action, and which actions may not overlap.

use serde_json::{Value, json};

use crate::contract::{Lane, OnceScope};
use crate::ledger::{EntryKey, LaneKey};
use crate::stage::admit::Admitted;
use crate::template::{Scope, Template};

/// The identity of a write, and its lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) key: EntryKey,
    pub(crate) lane: LaneKey,
}

impl Identity {
    pub(crate) fn of(admitted: &Admitted) -> Self {
        Self { key: EntryKey::of(&key(admitted)), lane: LaneKey::of(&lane(admitted)) }
    }
}

/// `[tenant, scope, principal or run, tool, "args", key template, [values]]`, or with an operation id of the host
/// `[tenant, principal, tool, "op", id]`. A run belongs to its principal, so both stand in its place.
fn key(admitted: &Admitted) -> Value {
    let (contract, session) = (&admitted.tool().contract, admitted.session());
    let (tenant, principal) = (session.tenant(), session.principal().canonical());
    if let Some(operation) = admitted.operation() {
        return json!([tenant, principal, contract.name, "op", operation.as_str()]);
    }
    let (scope, whose) = match contract.once.scope {
        OnceScope::Run => ("run", json!([principal, session.run()])),
        OnceScope::User => ("user", json!(principal)),
        OnceScope::Tenant => ("tenant", Value::Null),
    };
    let (template, values) = match &contract.once.key {
        Some(key) => {
            let sources: Vec<&str> = key.iter().map(Template::source).collect();
            (json!(sources), values(key, admitted))
        }
        None => (Value::Null, vec![Value::Object((**admitted.arguments()).clone())]),
    };
    json!([tenant, scope, whose, contract.name, "args", template, values])
}

/// The lane that the contract names (a key, or all of the run), else its resource, else the tool within the run.
fn lane(admitted: &Admitted) -> Value {
    let (contract, session) = (&admitted.tool().contract, admitted.session());
    let tenant = session.tenant();
    match &contract.lane {
        Some(Lane::Key(key)) => return json!([tenant, "key", values(key, admitted)]),
        Some(Lane::Run) => return json!([tenant, "run", session.principal().canonical(), session.run()]),
        None => {}
    }
    if let Some(resource) = &contract.resource {
        let id = values(std::slice::from_ref(&resource.id), admitted);
        return json!([tenant, "resource", resource.kind, id]);
    }
    json!([tenant, "tool", [session.principal().canonical(), session.run()], contract.name])
}

/// The values of placeholders, an absent one as null in its place.
fn values(key: &[Template], admitted: &Admitted) -> Vec<Value> {
    let scope = Scope::new(admitted.arguments(), admitted.session());
    key.iter().map(|template| template.fill(scope).unwrap_or(Value::Null)).collect()
}
