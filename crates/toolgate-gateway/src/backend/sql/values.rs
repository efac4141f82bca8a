//! What the parameters of a statement stand for. They are bound by type; none becomes a part of the text, and what a
//! statement does not name does not reach the database.
//!
//! | parameter | value |
//! |---|---|
//! | `:session_tenant`, `:session_user` | who is asking |
//! | `:idempotency_key` | the key of the action; only writes have one |
//! | `:ref` | the name of this attempt |
//! | `:trace_parent`, `:trace_state` | the caller's trace; null where there is none, and in a look-up |
//! | any other | the argument of this name; null where it is absent |

use rusqlite::types::Value as Bound;
use serde_json::{Map, Value};
use toolgate::backend::Context;
use toolgate::call::TraceContext;
use toolgate::json::canonical;

use super::trouble::Trouble;

/// What a parameter names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter<'a> {
    Tenant,
    User,
    IdempotencyKey,
    Ref,
    TraceParent,
    TraceState,
    /// A top-level argument.
    Argument(&'a str),
}

/// The values of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a> {
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) tenant: &'a str,
    pub(super) user: &'a str,
    pub(super) idempotency_key: Option<&'a str>,
    pub(super) reference: &'a str,
    pub(super) traced: Option<&'a TraceContext>,
}

/// The parameters that no argument can stand for. INVARIANT (session names): these come from the gate, whatever the
/// arguments are called.
pub(super) const RESERVED: &[(&str, Parameter<'_>)] = &[
    ("session_tenant", Parameter::Tenant),
    ("session_user", Parameter::User),
    ("idempotency_key", Parameter::IdempotencyKey),
    ("ref", Parameter::Ref),
    ("trace_parent", Parameter::TraceParent),
    ("trace_state", Parameter::TraceState),
];

impl<'a> Parameter<'a> {
    /// What `name`, without its colon, names.
    pub(super) fn named(name: &'a str) -> Self {
        let reserved = RESERVED.iter().find(|(reserved, _)| *reserved == name);
        reserved.map_or(Self::Argument(name), |(_, parameter)| *parameter)
    }
}

impl<'a> Values<'a> {
    pub(super) fn of(context: &'a Context) -> Self {
        Self {
            arguments: context.arguments(),
            tenant: context.session().tenant(),
            user: &context.session().principal().subject,
            idempotency_key: context.idempotency_key(),
            reference: context.reference().as_str(),
            traced: context.trace_context(),
        }
    }

    /// What is bound for the parameter `name`, without its colon. What is absent is null.
    pub(super) fn bound(&self, name: &str) -> Result<Bound, Trouble> {
        let text = |text: &str| Bound::Text(text.to_owned());
        Ok(match Parameter::named(name) {
            Parameter::Tenant => text(self.tenant),
            Parameter::User => text(self.user),
            Parameter::IdempotencyKey => self.idempotency_key.map_or(Bound::Null, text),
            Parameter::Ref => text(self.reference),
            Parameter::TraceParent => self.traced.map_or(Bound::Null, |context| text(context.parent())),
            Parameter::TraceState => self.traced.and_then(TraceContext::state).map_or(Bound::Null, text),
            Parameter::Argument(member) => match self.arguments.get(member) {
                None | Some(Value::Null) => Bound::Null,
                Some(Value::Bool(flag)) => Bound::Integer(i64::from(*flag)),
                Some(Value::String(value)) => text(value),
                Some(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
                    (Some(integer), _) => Bound::Integer(integer),
                    (None, Some(double)) if number.is_f64() => Bound::Real(double),
                    _ => return Err(Trouble::Value(format!("the integer in `{member}` is larger than SQL integers"))),
                },
                Some(composed @ (Value::Array(_) | Value::Object(_))) => Bound::Text(canonical(composed)),
            },
        })
    }
}
