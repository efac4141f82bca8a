//! Templates: where the values of a call, its session and its facts are put into what the gate sends or shows. What of
//! the session reaches a backend is named by a template, or does not reach it.
//!
//! | placeholder | value |
//! |---|---|
//! | `{member}`, `{/json/pointer}` | a place in the arguments |
//! | `{session.tenant}`, `{session.user}` | who is asking |
//! | `{fact.NAME/pointer}` | a place in a fact that the contract names |
//! | `{idempotency_key}` | the key of the action, the same for all its attempts; only writes have one |
//! | `{ref}` | the name of this attempt |
//! | `{trace.parent}`, `{trace.state}` | `traceparent` and `tracestate` of the caller's trace |
//!
//! `{{` and `}}` stand for the braces themselves. Where a template is one placeholder and nothing else, it keeps the type
//! of its value; what is absent has none.

mod shown;

use serde_json::{Map, Value};

use crate::backend::Context;
use crate::call::TraceContext;
use crate::contract::Contract;
use crate::fields::Problems;
use crate::json::canonical;
use crate::schema::Problem;
use crate::session::Session;

pub(crate) use shown::visible;

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    source: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Hole(Hole),
}

/// What a placeholder names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hole {
    /// A place in the arguments, as a JSON pointer.
    Argument(String),
    /// The tenant of the session.
    Tenant,
    /// The subject of the session's principal.
    User,
    /// A place in a fact.
    Fact {
        /// The name of the fact.
        name: String,
        /// The place in it, as a JSON pointer.
        at: String,
    },
    /// The key of the action that backends see.
    IdempotencyKey,
    /// The name of the attempt.
    Ref,
    /// `traceparent` of the trace that the call belongs to.
    TraceParent,
    /// `tracestate` of it.
    TraceState,
}

/// What the placeholders of one call stand for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) session: &'a Session,
    pub(crate) facts: Option<&'a Map<String, Value>>,
    pub(crate) idempotency_key: Option<&'a str>,
    pub(crate) reference: Option<&'a str>,
    pub(crate) traced: Option<&'a TraceContext>,
}

impl<'a> Scope<'a> {
    /// What is known from the beginning: the arguments, and who is asking.
    pub(crate) fn new(arguments: &'a Map<String, Value>, session: &'a Session) -> Self {
        Self { arguments, session, facts: None, idempotency_key: None, reference: None, traced: None }
    }
}

impl Template {
    /// Parses a template; the error says what is wrong with it.
    pub fn parse(source: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut chars = source.chars().peekable();
        while let Some(next) = chars.next() {
            match next {
                '{' | '}' if chars.peek() == Some(&next) => {
                    chars.next();
                    text.push(next);
                }
                '{' => {
                    let mut name = String::new();
                    loop {
                        match chars.next() {
                            Some('}') => break,
                            Some(other) => name.push(other),
                            None => return Err("a `{` without a `}` after it; write `{{` for the brace itself".into()),
                        }
                    }
                    if !text.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut text)));
                    }
                    parts.push(Part::Hole(Hole::parse(&name)?));
                }
                '}' => return Err("a `}` without a `{` before it; write `}}` for the brace itself".into()),
                other => text.push(other),
            }
        }
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Ok(Self { source: source.to_owned(), parts })
    }

    /// The placeholders, in order.
    pub(crate) fn holes(&self) -> impl Iterator<Item = &Hole> {
        self.parts.iter().filter_map(|part| match part {
            Part::Hole(hole) => Some(hole),
            Part::Text(_) => None,
        })
    }

    /// The text that was parsed.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether this is one placeholder and nothing else.
    pub fn is_bare(&self) -> bool {
        matches!(self.parts.as_slice(), [Part::Hole(_)])
    }

    /// The text, where there is no placeholder in it.
    pub fn constant(&self) -> Option<String> {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Hole(_) => None,
            })
            .collect()
    }

    /// The value for one run: typed for a bare placeholder, text otherwise. `None` where a placeholder has no value.
    pub fn value(&self, context: &Context) -> Option<Value> {
        self.fill(Scope {
            facts: Some(context.facts()),
            idempotency_key: context.idempotency_key(),
            reference: Some(context.reference().as_str()),
            traced: context.trace_context(),
            ..Scope::new(context.arguments(), context.session())
        })
    }

    /// What is wrong with a template that stands at `at` in the `backend` table of a contract.
    pub fn problems(&self, at: &str, contract: &Contract) -> Vec<Problem> {
        let mut problems = Problems::default();
        for hole in self.holes() {
            match hole {
                Hole::Argument(pointer) if contract.input().locate(pointer).is_empty() => {
                    let known = format!("known: {}", contract.input().members().join(", "));
                    let message = format!("`{}` names no argument", self.source);
                    problems.hinted(at, "template", message, Some(known));
                }
                Hole::Fact { name, .. } if !contract.facts.contains_key(name) => {
                    problems.note(at, "template", format!("there is no fact `{name}`"));
                }
                Hole::IdempotencyKey if !contract.is_write() => {
                    problems.note(at, "template", "a read has no {idempotency_key}");
                }
                Hole::Argument(_)
                | Hole::Fact { .. }
                | Hole::IdempotencyKey
                | Hole::Tenant
                | Hole::User
                | Hole::Ref
                | Hole::TraceParent
                | Hole::TraceState => {}
            }
        }
        problems.0
    }

    /// The value: typed for a bare placeholder (absent and null alike are `None`), text otherwise.
    pub(crate) fn fill(&self, scope: Scope<'_>) -> Option<Value> {
        match self.parts.as_slice() {
            [Part::Hole(hole)] => hole.value(scope),
            _ => self.parts.iter().map(|part| part.text(scope)).collect::<Option<String>>().map(Value::String),
        }
    }

    /// The text for people: an absent value shows as `(none)`, values are bounded, and nothing of them hides or passes for
    /// the words around it.
    pub(crate) fn preview(&self, scope: Scope<'_>) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Hole(hole) => match hole.value(scope) {
                None => "(none)".to_owned(),
                Some(value) => shown::value(&plain(&value), value.is_string()),
            },
        };
        shown::line(&self.parts.iter().map(part).collect::<String>())
    }

    /// Whether it begins with words of its own, and not with those of whoever fills it.
    pub(crate) fn has_a_title(&self) -> bool {
        matches!(self.parts.first(), Some(Part::Text(text)) if text.chars().any(char::is_alphanumeric))
    }
}

impl Part {
    fn text(&self, scope: Scope<'_>) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Hole(hole) => hole.value(scope).map(|value| plain(&value)),
        }
    }
}

impl Hole {
    fn parse(name: &str) -> Result<Self, String> {
        let known = match name {
            "session.tenant" => Self::Tenant,
            "session.user" => Self::User,
            "idempotency_key" => Self::IdempotencyKey,
            "ref" => Self::Ref,
            "trace.parent" => Self::TraceParent,
            "trace.state" => Self::TraceState,
            _ => match name.strip_prefix("fact.") {
                Some(place) => {
                    let (name, at) = match place.find('/') {
                        Some(slash) => place.split_at(slash),
                        None => (place, ""),
                    };
                    Self::Fact { name: name.to_owned(), at: at.to_owned() }
                }
                None if name.starts_with('/') => Self::Argument(name.to_owned()),
                None if is_member(name) => Self::Argument(format!("/{name}")),
                None => {
                    return Err(format!(
                        "`{{{name}}}` names nothing; write {{member}}, {{/json/pointer}}, {{session.tenant}}, \
                         {{session.user}}, {{fact.NAME/pointer}}, {{idempotency_key}}, {{ref}}, {{trace.parent}} or \
                         {{trace.state}}"
                    ));
                }
            },
        };
        Ok(known)
    }

    fn value(&self, scope: Scope<'_>) -> Option<Value> {
        let found = match self {
            Self::Argument(at) => at_pointer(scope.arguments, at).cloned(),
            Self::Tenant => Some(Value::from(scope.session.tenant())),
            Self::User => Some(Value::from(scope.session.principal().subject.as_str())),
            Self::Fact { name, at } => scope.facts?.get(name)?.pointer(at).cloned(),
            Self::IdempotencyKey => scope.idempotency_key.map(Value::from),
            Self::Ref => scope.reference.map(Value::from),
            Self::TraceParent => scope.traced.map(|context| Value::from(context.parent())),
            Self::TraceState => scope.traced?.state().map(Value::from),
        };
        found.filter(|value| !value.is_null())
    }
}

/// The value at a JSON pointer (RFC 6901) into an object that is not wrapped as a value.
pub(crate) fn at_pointer<'a>(map: &'a Map<String, Value>, pointer: &str) -> Option<&'a Value> {
    let path = pointer.strip_prefix('/')?;
    let (first, rest) = match path.find('/') {
        Some(slash) => path.split_at(slash),
        None => (path, ""),
    };
    map.get(&first.replace("~1", "/").replace("~0", "~"))?.pointer(rest)
}

fn is_member(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// A string as it is, anything else as its canonical JSON text.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => canonical(other),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::session::Principal;

    fn with<T>(arguments: Value, use_it: impl FnOnce(Scope<'_>) -> T) -> T {
        let session = Session::new(Principal::new("local", "alice"), "acme");
        let facts = json!({"order": {"left": {"cents": 2000}}});
        use_it(Scope {
            facts: facts.as_object(),
            idempotency_key: Some("k"),
            ..Scope::new(arguments.as_object().unwrap(), &session)
        })
    }

    #[test]
    fn a_bare_placeholder_keeps_the_type_of_its_value() {
        let template = Template::parse("{amount}").unwrap();
        assert_eq!(with(json!({"amount": 5}), |scope| template.fill(scope)), Some(json!(5)));
        assert_eq!(with(json!({"amount": null}), |scope| template.fill(scope)), None);
        assert_eq!(with(json!({}), |scope| template.fill(scope)), None);
    }

    #[test]
    fn a_text_with_placeholders_is_text() {
        let template = Template::parse("{session.tenant}/{{{/a/0}}} {fact.order/left/cents}").unwrap();
        assert_eq!(with(json!({"a": ["x"]}), |scope| template.fill(scope)), Some(json!("acme/{x} 2000")));
    }

    #[test]
    fn a_preview_shows_what_is_absent_and_what_cannot_be_seen() {
        let template = Template::parse("pay {amount} to {name}").unwrap();
        let shown = with(json!({"name": "a\u{202e}b\n"}), |scope| template.preview(scope));
        assert_eq!(shown, "pay (none) to \"a\\u{202E}b\\n\"");
    }

    #[test]
    fn a_placeholder_that_names_nothing_is_a_fault() {
        for wrong in ["{}", "{a b}", "{session.role}", "}", "pay {amount"] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }
}
