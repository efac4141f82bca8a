//! Absent members and their defaults, for a contract that wants them filled in.

use std::collections::BTreeSet;

use serde_json::Value;

use super::graph::{Graph, NodeId, escaped};
use super::inert::{self, below};
use super::problems::pointer;
use super::{Schema, SchemaFault};
use crate::leniency::{Allowance, Used};

/// Defaults that are tried one by one, where all of them together do not fit.
const MOST_TRIED: usize = 64;

/// A member that is absent, and its default.
struct Gap<'s> {
    /// The place of the object.
    parent: String,
    name: &'s str,
    default: &'s Value,
}

impl Schema {
    /// A value that fits, with the defaults of the optional members that are absent in it, and where. An object that is
    /// absent itself is not made, but by a default of its own, which is taken as it is written. No default is filled in
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
            return (filled, gaps.iter().map(Gap::used).collect());
        }
        let (mut filled, mut used) = (value, Vec::new());
        for gap in gaps.iter().take(MOST_TRIED) {
            let mut with = filled.clone();
            gap.fill(&mut with);
            if self.is_valid(&with) {
                filled = with;
                used.push(gap.used());
            }
        }
        (filled, used)
    }

    /// The defaults of the document that their own schemas refuse.
    pub(crate) fn unfit_defaults(&self) -> Vec<SchemaFault> {
        let mut faults = Vec::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let Some(default) = self.written(NodeId(index)).and_then(|schema| schema.get("default")) else { continue };
            let controlled = !self.imported && !node.multiline && inert::has_control(default);
            if controlled || !self.accepted(&[NodeId(index)], default) {
                faults.push(SchemaFault {
                    at: format!("{}/default", node.at),
                    message: "a default that its own schema refuses".to_owned(),
                    hint: Some("with fill_defaults it would be an argument".to_owned()),
                });
            }
        }
        faults
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
