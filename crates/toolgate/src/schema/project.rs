//! A value without what its schema doesn't declare.

use serde_json::Value;

use super::Schema;
use super::graph::{Graph, NodeId, Others};

impl Schema {
    /// Keeps the declared members, at every level that declares some and does not allow others. What branches and
    /// references declare counts; an object of which no members are declared is kept whole.
    pub fn project(&self, value: Value) -> Value {
        self.keep(value, &[Graph::ROOT])
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
}
