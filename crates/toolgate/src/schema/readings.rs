//! Which schemas hold for a value, given what the value is: references followed, and of each union the branch that is
//! meant, where the value tells.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Schema;
use super::graph::NodeId;
use super::keywords::{Applies, type_of};

/// The schemas that speak of one value.
#[derive(Debug, Default)]
pub(super) struct Readings {
    /// Those that hold whatever else does.
    pub(super) certain: Vec<NodeId>,
    /// The unions of which the value does not tell the branch: of each, the branches that a value of its type can have.
    pub(super) open: Vec<Vec<NodeId>>,
}

impl Schema {
    /// What holds for `value`, given the schemas that lead to it. What only a condition adds (`if`, `dependentSchemas`)
    /// is left out: it may hold or not.
    pub(super) fn readings(&self, entries: &[NodeId], value: &Value) -> Readings {
        let mut readings = Readings::default();
        let mut seen = BTreeSet::new();
        let mut next: Vec<NodeId> = entries.iter().rev().copied().collect();
        while let Some(id) = next.pop() {
            if !seen.insert(id) {
                continue;
            }
            readings.certain.push(id);
            let Some(node) = self.graph.node(id) else { continue };
            for union in [Applies::Any, Applies::One] {
                match self.plausible(self.graph.branches(id, union), value).as_slice() {
                    [] => {}
                    [meant] => next.push(*meant),
                    several => readings.open.push(several.to_vec()),
                }
            }
            next.extend(node.edges.iter().rev().filter(|(applies, _)| *applies == Applies::All).map(|(_, to)| *to));
        }
        readings
    }

    /// The schemas that lead to the member `name` of a value for which `certain` holds.
    pub(super) fn entries_of_member(&self, certain: &[NodeId], name: &str) -> Vec<NodeId> {
        let mut entries = self.graph.of_named_member(certain, name);
        // What is left unevaluated is what nobody names.
        let speaks = |id: &NodeId| entries.is_empty() || self.graph.node(*id).is_some_and(|node| !node.unevaluated);
        let speaking: Vec<NodeId> = certain.iter().copied().filter(speaks).collect();
        for id in self.graph.of_member(&speaking, name) {
            if !entries.contains(&id) {
                entries.push(id);
            }
        }
        entries
    }

    /// Whether one of these schemas demands the member `name`.
    pub(super) fn demanded(&self, certain: &[NodeId], name: &str) -> bool {
        certain.iter().any(|id| self.graph.requires(&self.document, *id, name))
    }

    /// Whether no value of a type fits the place that these schemas lead to.
    pub(super) fn excluded(&self, entries: &[NodeId], kind: &str) -> bool {
        entries.iter().any(|id| self.excludes(*id, kind, &mut Vec::new()))
    }

    /// The branches of a union that a value may have: the one of its tag, else those that take its type.
    fn plausible(&self, branches: Vec<NodeId>, value: &Value) -> Vec<NodeId> {
        if let Value::Object(members) = value
            && let Some(tag) = self.tag(&branches)
            && let Some(meant) = members.get(&tag.name).and_then(|sent| tag.branch(sent))
        {
            return branches.get(meant).copied().into_iter().collect();
        }
        let kind = type_of(value);
        branches.into_iter().filter(|branch| !self.excludes(*branch, kind, &mut Vec::new())).collect()
    }

    fn excludes(&self, id: NodeId, kind: &str, above: &mut Vec<NodeId>) -> bool {
        let (Some(node), Some(schema)) = (self.graph.node(id), self.written(id)) else { return false };
        if above.contains(&id) {
            return false;
        }
        let is = |word: &str| word == kind || word == "number" && kind == "integer";
        let of_type = match schema.get("type") {
            Some(Value::String(word)) => is(word),
            Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).any(is),
            _ => *schema != Value::Bool(false),
        };
        let listed = match (schema.get("const"), schema.get("enum")) {
            (Some(value), _) => type_of(value) == kind,
            (None, Some(Value::Array(values))) => values.iter().any(|value| type_of(value) == kind),
            _ => true,
        };
        if !of_type || !listed {
            return true;
        }
        above.push(id);
        let none_of = |union, above: &mut Vec<NodeId>| {
            let branches = self.graph.branches(id, union);
            !branches.is_empty() && branches.iter().all(|branch| self.excludes(*branch, kind, above))
        };
        let excludes =
            node.edges.iter().any(|(applies, to)| *applies == Applies::All && self.excludes(*to, kind, above))
                || none_of(Applies::Any, above)
                || none_of(Applies::One, above);
        above.pop();
        excludes
    }
}
