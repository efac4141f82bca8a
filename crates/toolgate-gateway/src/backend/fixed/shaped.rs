//! A result as a contract says it: JSON whose texts are templates.

use serde_json::{Map, Value};
use toolgate::backend::Context;
use toolgate::contract::Contract;
use toolgate::fields::Problems;
use toolgate::schema::{Problem, Schema};
use toolgate::template::Template;

/// A value whose texts are filled in for each call.
#[derive(Debug)]
pub(super) enum Shaped {
    /// The same for each call.
    Plain(Value),
    Text(Template),
    List(Vec<Shaped>),
    Table(Vec<(String, Shaped)>),
}

impl Shaped {
    /// Reads the value that stands at `at`, and notes what is no template.
    pub(super) fn read(value: &Value, at: &str, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Some(Self::Plain(value.clone())),
            Value::String(text) => match Template::parse(text) {
                Ok(template) => Some(Self::Text(template)),
                Err(message) => {
                    problems.note(at, "template", message);
                    None
                }
            },
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let items: Vec<Option<Self>> =
                    items.map(|(index, item)| Self::read(item, &format!("{at}/{index}"), problems)).collect();
                items.into_iter().collect::<Option<_>>().map(Self::List)
            }
            Value::Object(members) => {
                let members: Vec<Option<(String, Self)>> = members
                    .iter()
                    .map(|(name, value)| Some((name.clone(), Self::read(value, &below(at, name), problems)?)))
                    .collect();
                members.into_iter().collect::<Option<_>>().map(Self::Table)
            }
        }
    }

    /// The value for one call; what names something that is absent is left out.
    pub(super) fn fill(&self, context: &Context) -> Option<Value> {
        Some(match self {
            Self::Plain(value) => value.clone(),
            Self::Text(template) => template.value(context)?,
            Self::List(items) => items.iter().filter_map(|item| item.fill(context)).collect(),
            Self::Table(members) => {
                let filled = members.iter().filter_map(|(name, member)| Some((name.clone(), member.fill(context)?)));
                Value::Object(filled.collect::<Map<_, _>>())
            }
        })
    }

    /// What is wrong with the placeholders.
    pub(super) fn template_problems(&self, at: &str, contract: &Contract) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.each_text(at, &mut |at, template| problems.extend(template.problems(at, contract)));
        problems
    }

    /// What does not fit a schema, whatever the placeholders stand for.
    pub(super) fn misfits(&self, output: &Schema) -> Vec<Problem> {
        let mut open = Vec::new();
        self.each_text("", &mut |at, template| {
            if template.constant().is_none() {
                open.push(at.to_owned());
            }
        });
        // A schema that does not fit one place may refuse those around it, and speaks of what is inside of it.
        let is_open = |at: &str| open.iter().any(|open| is_within(open, at) || is_within(at, open));
        let mut problems = output.problems(&self.sample()).list;
        problems.retain(|problem| problem.code == "required" || !is_open(&problem.at));
        problems
    }

    /// The value with its texts as they are written.
    fn sample(&self) -> Value {
        match self {
            Self::Plain(value) => value.clone(),
            Self::Text(template) => Value::from(template.constant().unwrap_or_else(|| template.source().to_owned())),
            Self::List(items) => items.iter().map(Self::sample).collect(),
            Self::Table(members) => {
                Value::Object(members.iter().map(|(name, member)| (name.clone(), member.sample())).collect())
            }
        }
    }

    fn each_text(&self, at: &str, visit: &mut dyn FnMut(&str, &Template)) {
        match self {
            Self::Plain(_) => {}
            Self::Text(template) => visit(at, template),
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.each_text(&format!("{at}/{index}"), visit);
                }
            }
            Self::Table(members) => {
                for (name, member) in members {
                    member.each_text(&below(at, name), visit);
                }
            }
        }
    }
}

fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Whether the place `at` is `whole` or in it.
fn is_within(at: &str, whole: &str) -> bool {
    at.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
