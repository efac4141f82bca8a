//! A value without what its schema doesn't declare, and without what must leave no trace.

use serde_json::Value;

use super::Schema;
use super::graph::{Graph, NodeId, Others};

/// What hides nothing when it is taken out of a text: it would stand in any.
const SHORTEST_HIDDEN: usize = 4;

/// What a value holds that must leave no trace, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// The longest first, so that none is torn by one that is a part of it.
    texts: Vec<String>,
}

const SECRET: &str = "[secret]";
const PERSONAL: &str = "[personal]";

impl Schema {
    /// Keeps the declared members, at every level that declares some and does not allow others. What branches and
    /// references declare counts; an object of which no members are declared is kept whole.
    pub fn project(&self, value: Value) -> Value {
        self.keep(value, &[Graph::ROOT])
    }

    /// Whether what stands at `pointer`, or in it, is marked `x-secret` or `x-personal`.
    pub(crate) fn hides(&self, pointer: &str) -> bool {
        fn marked(schema: &Value) -> bool {
            match schema {
                Value::Object(node) => {
                    let is = |mark: &str| node.get(mark) == Some(&Value::Bool(true));
                    is("x-secret") || is("x-personal") || node.values().any(marked)
                }
                Value::Array(items) => items.iter().any(marked),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            }
        }
        self.locate(pointer).into_iter().any(marked)
    }

    /// Whether anything of a value could be masked.
    pub(crate) fn has_marks(&self) -> bool {
        self.graph.has_marks()
    }

    /// The value for logs and records: what `"x-secret": true` or `"x-personal": true` marks is replaced.
    pub fn masked(&self, value: &Value) -> Value {
        if self.graph.has_marks() { self.mask(value, &[Graph::ROOT]) } else { value.clone() }
    }

    /// What of a value is marked `x-secret` or `x-personal`.
    pub(crate) fn hidden(&self, value: &Value) -> Hidden {
        let mut texts = Vec::new();
        if self.graph.has_marks() {
            self.gather(value, &[Graph::ROOT], &mut texts);
        }
        texts.retain(|text| text.chars().count() >= SHORTEST_HIDDEN);
        let escaped: Vec<String> = texts.iter().map(|text| Value::from(text.as_str()).to_string()).collect();
        texts.extend(escaped.iter().filter_map(|text| text.strip_prefix('"')?.strip_suffix('"').map(str::to_owned)));
        texts.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        texts.dedup();
        Hidden { texts }
    }

    fn keep(&self, value: Value, entries: &[NodeId]) -> Value {
        if !value.is_object() && !value.is_array() {
            return value;
        }
        let spread = self.graph.spread(entries);
        match value {
            Value::Object(mut members) => {
                if self.drops_undeclared(&spread) {
                    members.retain(|name, _| !self.graph.of_named_member(&spread, name).is_empty());
                }
                for (name, value) in members.iter_mut().filter(|(_, value)| value.is_object() || value.is_array()) {
                    *value = self.keep(value.take(), &self.graph.of_member(&spread, name));
                }
                Value::Object(members)
            }
            Value::Array(items) => {
                let items = items.into_iter().enumerate();
                Value::Array(items.map(|(index, item)| self.keep(item, &self.graph.of_item(&spread, index))).collect())
            }
            other => other,
        }
    }

    /// Whether these schemas say all that an object may hold.
    fn drops_undeclared(&self, spread: &[NodeId]) -> bool {
        let mut says = false;
        for node in self.graph.each(spread) {
            match node.others {
                Others::Allowed => return false,
                Others::Forbidden => says = true,
                Others::Unsaid => says |= node.declares,
            }
        }
        says
    }

    fn gather(&self, value: &Value, entries: &[NodeId], texts: &mut Vec<String>) {
        let spread = self.graph.spread(entries);
        if self.graph.each(&spread).any(|node| node.secret || node.personal) {
            return every_text(value, texts);
        }
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    self.gather(value, &self.graph.of_member(&spread, name), texts);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.gather(item, &self.graph.of_item(&spread, index), texts);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn mask(&self, value: &Value, entries: &[NodeId]) -> Value {
        let spread = self.graph.spread(entries);
        if self.graph.each(&spread).any(|node| node.secret) {
            return Value::String(SECRET.to_owned());
        }
        if self.graph.each(&spread).any(|node| node.personal) {
            return Value::String(PERSONAL.to_owned());
        }
        match value {
            Value::Object(members) => {
                let masked = members
                    .iter()
                    .map(|(name, value)| (name.clone(), self.mask(value, &self.graph.of_member(&spread, name))));
                Value::Object(masked.collect())
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                Value::Array(items.map(|(index, item)| self.mask(item, &self.graph.of_item(&spread, index))).collect())
            }
            other => other.clone(),
        }
    }
}

impl Hidden {
    /// A text that somebody else wrote, without what is hidden, as it is or as JSON escapes it.
    pub(crate) fn taken_out_of(&self, text: &str) -> String {
        self.texts.iter().fold(text.to_owned(), |text, hidden| text.replace(hidden.as_str(), SECRET))
    }
}

/// The texts and numbers in a value.
fn every_text(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Number(number) => texts.push(number.to_string()),
        Value::Object(members) => members.values().for_each(|value| every_text(value, texts)),
        Value::Array(items) => items.iter().for_each(|item| every_text(item, texts)),
        Value::Null | Value::Bool(_) => {}
    }
}
