//! What of a value must leave no trace: what its schema marks `x-secret` or `x-personal`.

mod taken_out;

use std::collections::BTreeSet;

use serde_json::Value;

use super::Schema;
use super::graph::{Graph, NodeId};

pub(crate) use taken_out::Hidden;

/// Why a value must leave no trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// It gives a right to whoever knows it.
    Secret,
    /// It tells of a person, and can be erased. What is secret as well is personal first.
    Personal,
}

/// What is made of a marked value.
type Replace<'r> = dyn FnMut(Mark, &Value) -> Value + 'r;

/// What becomes of a value of which the schema says nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unspoken {
    Kept,
    /// It stands where it should not, so it may be anything.
    Replaced,
}

impl Mark {
    /// What stands for a value where no key is at hand.
    pub(crate) fn shown(self) -> &'static str {
        match self {
            Self::Secret => "[secret]",
            Self::Personal => "[personal]",
        }
    }
}

impl Schema {
    /// Whether what stands at `pointer`, or in it, is marked `x-secret` or `x-personal`.
    pub(crate) fn hides(&self, pointer: &str) -> bool {
        let ends = pointer.match_indices('/').map(|(at, _)| at).chain([pointer.len()]);
        let mut above =
            ends.filter_map(|end| pointer.get(..end)).map(|place| self.graph.spread(&self.graph.entries(place)));
        above.any(|spread| self.graph.each(&spread).any(|node| node.secret || node.personal))
            || self.graph.entries(pointer).iter().any(|id| self.leads_to_mark(*id))
    }

    /// The strongest mark of the document.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.graph.nodes.iter().filter_map(|node| mark_of(node.secret, node.personal)).max()
    }

    /// Whether anything of a value could be masked.
    pub(crate) fn has_marks(&self) -> bool {
        self.graph.has_marks()
    }

    /// The value for people: what `"x-secret": true` or `"x-personal": true` marks is replaced.
    pub fn masked(&self, value: &Value) -> Value {
        self.replaced(value, &mut |mark, _| mark.shown().into())
    }

    /// The value with what is marked replaced.
    pub(crate) fn replaced(&self, value: &Value, with: &mut Replace<'_>) -> Value {
        match self.has_marks() {
            true => self.replace(value, &[Graph::ROOT], Unspoken::Kept, with),
            false => value.clone(),
        }
    }

    /// As [`Schema::replaced`], for a value that does not fit: where the schema says nothing, what it marks may have
    /// been put by mistake.
    pub(crate) fn replaced_in_misfit(&self, value: &Value, with: &mut Replace<'_>) -> Value {
        self.replace(value, &[Graph::ROOT], Unspoken::Replaced, with)
    }

    /// Whether some schema declares a member of this name, and none that does marks anything in it.
    pub(crate) fn shows(&self, name: &str) -> bool {
        let root = self.graph.spread(&[Graph::ROOT]);
        let mut declared = self.graph.nodes.iter().filter_map(|node| node.members.get(name)).peekable();
        declared.peek().is_some()
            && !declared.any(|id| self.leads_to_mark(*id))
            && !self.graph.each(&root).any(|node| node.secret || node.personal)
    }

    /// Whether some schema declares a member of this name.
    pub(crate) fn declares(&self, name: &str) -> bool {
        self.graph.nodes.iter().any(|node| node.members.contains_key(name))
    }

    /// What of a value is marked `x-secret` or `x-personal`.
    pub(crate) fn hidden(&self, value: &Value) -> Hidden {
        let mut hidden = Hidden::default();
        self.replaced(value, &mut |_, marked| {
            hidden.add(marked);
            Value::Null
        });
        hidden
    }

    fn replace(&self, value: &Value, entries: &[NodeId], unspoken: Unspoken, with: &mut Replace<'_>) -> Value {
        let spread = self.graph.spread(entries);
        let secret = self.graph.each(&spread).any(|node| node.secret);
        let personal = self.graph.each(&spread).any(|node| node.personal);
        if let Some(mark) = mark_of(secret, personal) {
            return with(mark, value);
        }
        if spread.is_empty() && unspoken == Unspoken::Replaced {
            return with(Mark::Secret, value);
        }
        match value {
            Value::Object(members) => {
                let replaced = members.iter().map(|(name, value)| {
                    (name.clone(), self.replace(value, &self.graph.of_member(&spread, name), unspoken, with))
                });
                Value::Object(replaced.collect())
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let replaced =
                    items.map(|(index, item)| self.replace(item, &self.graph.of_item(&spread, index), unspoken, with));
                Value::Array(replaced.collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }

    /// Whether this schema, or one that it leads to, marks its value.
    fn leads_to_mark(&self, from: NodeId) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(id) = open.pop() {
            let Some(node) = self.graph.node(id).filter(|_| seen.insert(id)) else { continue };
            if node.secret || node.personal {
                return true;
            }
            open.extend(node.edges.iter().map(|(_, to)| *to));
            open.extend(node.members.values());
            open.extend(&node.positions);
            open.extend(node.patterns.iter().map(|(_, to)| *to));
        }
        false
    }
}

fn mark_of(secret: bool, personal: bool) -> Option<Mark> {
    match (secret, personal) {
        (_, true) => Some(Mark::Personal),
        (true, false) => Some(Mark::Secret),
        (false, false) => None,
    }
}
