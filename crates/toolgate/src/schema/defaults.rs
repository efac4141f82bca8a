//! Absent members and their defaults, for a contract that wants them filled in.

use std::collections::BTreeSet;

use serde_json::Value;

use super::graph::{Graph, NodeId, escaped};
use super::inert::{self, below};
use super::problems::{by_place, pointer};
use super::{Schema, SchemaFault};
use crate::leniency::{Allowance, Used};

/// Checks that are made where all defaults together do not fit.
const MOST_TRIED: usize = 32;

/// A member that is absent, and its default.
struct Gap<'s> {
    /// The place of the object.
    parent: String,
    name: &'s str,
    default: &'s Value,
}

impl Schema {
    /// A value that fits, with the defaults of the optional members that are absent in it, and where. An object that is
    /// absent itself is not made, but by a default of its own. No default is filled in
    /// with which the value would not fit any more.
    pub(crate) fn with_defaults(&self, value: Value) -> (Value, Vec<Used>) {
        let mut gaps = Vec::new();
        self.find_gaps(&value, &[Graph::ROOT], &mut String::new(), &mut gaps);
        if gaps.is_empty() {
            return (value, Vec::new());
        }
        let mut filled = value.clone();
        gaps.iter().for_each(|gap| gap.fill(&mut filled));
        if self.is_valid(&filled) {
            return in_order(filled, gaps.iter().map(Gap::used).collect());
        }
        // One may hold only beside another, so all that are left are tried again after each that does.
        let (mut filled, mut used, mut tried) = (value, Vec::new(), 0);
        while let Some(next) = gaps.iter().position(|gap| {
            tried += 1;
            let mut with = filled.clone();
            gap.fill(&mut with);
            tried <= MOST_TRIED && self.is_valid(&with)
        }) {
            let gap = gaps.remove(next);
            gap.fill(&mut filled);
            used.push(gap.used());
        }
        in_order(filled, used)
    }

    /// The defaults of the document that their own schemas refuse, or that lack defaults of their own.
    pub(crate) fn unfit_defaults(&self) -> Vec<SchemaFault> {
        let mut faults = Vec::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let Some(default) = self.written(NodeId(index)).and_then(|schema| schema.get("default")) else { continue };
            let controlled = !self.imported && !node.multiline && !inert::controls("", default).is_empty();
            let (message, hint) = if controlled || !self.accepted(&[NodeId(index)], default) {
                ("a default that its own schema refuses", "with fill_defaults it would be an argument")
            } else if self.lacks_defaults(default, NodeId(index)) {
                // Else the arguments as they were made would, sent again, be others.
                ("a default without the defaults of its own members", "write the whole value")
            } else {
                continue;
            };
            let at = format!("{}/default", node.at);
            faults.push(SchemaFault { at, message: message.to_owned(), hint: Some(hint.to_owned()) });
        }
        faults
    }

    fn lacks_defaults(&self, default: &Value, of: NodeId) -> bool {
        let mut gaps = Vec::new();
        self.find_gaps(default, &[of], &mut String::new(), &mut gaps);
        !gaps.is_empty()
    }

    fn find_gaps<'s>(&'s self, value: &Value, entries: &[NodeId], at: &mut String, gaps: &mut Vec<Gap<'s>>) {
        match value {
            Value::Object(members) => {
                let certain = self.readings(entries, value).certain;
                let mut seen = BTreeSet::new();
                let names = certain.iter().filter_map(|id| self.graph.node(*id)).flat_map(|node| &node.names);
                for name in names.filter(|name| seen.insert(name.as_str()) && !members.contains_key(name.as_str())) {
                    if !self.demanded(&certain, name)
                        && let Some(default) = self.default_of(&certain, name)
                    {
                        gaps.push(Gap { parent: at.clone(), name, default });
                    }
                }
                for (name, value) in members.iter().filter(|(_, value)| value.is_object() || value.is_array()) {
                    let inner = self.entries_of_member(&certain, name);
                    below(at, &escaped(name), |at| self.find_gaps(value, &inner, at, gaps));
                }
            }
            Value::Array(items) => {
                let certain = self.readings(entries, value).certain;
                for (index, item) in items.iter().enumerate().filter(|(_, item)| item.is_object() || item.is_array()) {
                    let inner = self.graph.of_item(&certain, index);
                    below(at, &index.to_string(), |at| self.find_gaps(item, &inner, at, gaps));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// The default of a member, unless schemas that hold for it together name several.
    fn default_of(&self, certain: &[NodeId], name: &str) -> Option<&Value> {
        let speaking = self.graph.mandatory(&self.graph.of_named_member(certain, name));
        let mut defaults = speaking.into_iter().filter_map(|id| self.written(id)?.get("default"));
        let first = defaults.next()?;
        defaults.all(|other| other == first).then_some(first)
    }
}

/// Uses in the order of their places.
fn in_order(value: Value, mut used: Vec<Used>) -> (Value, Vec<Used>) {
    used.sort_by(|one, other| by_place(&one.at, &other.at));
    (value, used)
}

impl Gap<'_> {
    fn fill(&self, value: &mut Value) {
        if let Some(Value::Object(members)) = value.pointer_mut(&self.parent) {
            members.insert(self.name.to_owned(), self.default.clone());
        }
    }

    fn used(&self) -> Used {
        Used { by: Allowance::FillDefaults, at: pointer(&format!("{}/{}", self.parent, escaped(self.name))) }
    }
}
