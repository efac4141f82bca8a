//! Absent members and their defaults, for a contract that wants them filled in.

use std::collections::BTreeSet;

use serde_json::Value;

use super::graph::{Graph, NodeId, escaped};
use super::inert::{self, below};
use super::problems::by_place;
use super::{Schema, SchemaFault};
use crate::leniency::{Allowance, Used};

/// Checks that fail in one round, where all defaults together do not fit. What is left then is not filled in.
const MOST_FAILED: usize = 64;
/// Rounds in which something is filled in: a default may tell the branch of a union, and with it more defaults.
const MOST_ROUNDS: usize = 32;
/// Bytes of the places of all defaults of one round.
const MOST_OF_PLACES: usize = 4 << 20;

/// A member that is absent, and its default.
struct Gap<'s> {
    /// The place of the object.
    parent: String,
    name: &'s str,
    default: &'s Value,
}

/// The gaps of one value.
#[derive(Default)]
struct Gaps<'s> {
    found: Vec<Gap<'s>>,
    /// What all their places take; beyond the bound no more are noted.
    bytes: usize,
}

impl Schema {
    /// A value that fits, with the defaults of the optional members that are absent in it, and where. An object that is
    /// absent itself is not made, but by a default of its own. No default is filled in with which the value would not
    /// fit any more.
    ///
    /// INVARIANT (one action): what is made of a value, sent again, is left as it is. Each round depends on the value
    /// alone, and the last one fills nothing in. Where that does not come about, no default is filled in.
    pub(crate) fn with_defaults(&self, value: Value) -> (Value, Vec<Used>) {
        let (mut filled, mut used) = (value.clone(), Vec::new());
        for _ in 0..=MOST_ROUNDS {
            let mut gaps = Gaps::default();
            self.find_gaps(&filled, &[Graph::ROOT], &mut String::new(), &mut gaps);
            if gaps.bytes > MOST_OF_PLACES {
                break;
            }
            let mut round = Round { schema: self, value: filled, used: Vec::new(), failed: 0 };
            round.fill(&gaps.found);
            filled = round.value;
            if round.used.is_empty() {
                used.sort_by(|one: &Used, other| by_place(&one.at, &other.at));
                return (filled, used);
            }
            used.append(&mut round.used);
        }
        (value, Vec::new())
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
        let mut gaps = Gaps::default();
        self.find_gaps(default, &[of], &mut String::new(), &mut gaps);
        !gaps.found.is_empty()
    }

    fn find_gaps<'s>(&'s self, value: &Value, entries: &[NodeId], at: &mut String, gaps: &mut Gaps<'s>) {
        match value {
            Value::Object(members) => {
                let certain = self.readings(entries, value).certain;
                let mut seen = BTreeSet::new();
                let names = certain.iter().filter_map(|id| self.graph.node(*id)).flat_map(|node| &node.names);
                for name in names.filter(|name| seen.insert(name.as_str()) && !members.contains_key(name.as_str())) {
                    if !self.demanded(&certain, name)
                        && let Some(default) = self.default_of(&certain, name)
                    {
                        gaps.note(at, name, default);
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

/// What is filled into one value.
struct Round<'s> {
    schema: &'s Schema,
    value: Value,
    used: Vec<Used>,
    failed: usize,
}

impl Round<'_> {
    /// All of these that fit beside what is there: together, else half by half.
    fn fill(&mut self, gaps: &[Gap<'_>]) {
        if gaps.is_empty() || self.failed > MOST_FAILED {
            return;
        }
        let mut with = self.value.clone();
        gaps.iter().for_each(|gap| gap.fill(&mut with));
        if self.schema.is_valid(&with) {
            self.value = with;
            self.used.extend(gaps.iter().map(Gap::used));
            return;
        }
        self.failed += 1;
        if gaps.len() > 1 {
            let (first, second) = gaps.split_at(gaps.len() / 2);
            self.fill(first);
            self.fill(second);
        }
    }
}

impl<'s> Gaps<'s> {
    fn note(&mut self, parent: &str, name: &'s str, default: &'s Value) {
        self.bytes = self.bytes.saturating_add(parent.len() + name.len());
        if self.bytes <= MOST_OF_PLACES {
            self.found.push(Gap { parent: parent.to_owned(), name, default });
        }
    }
}

impl Gap<'_> {
    fn fill(&self, value: &mut Value) {
        if let Some(Value::Object(members)) = value.pointer_mut(&self.parent) {
            members.insert(self.name.to_owned(), self.default.clone());
        }
    }

    fn used(&self) -> Used {
        Used { by: Allowance::FillDefaults, at: format!("{}/{}", self.parent, escaped(self.name)) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::disallowed_methods, reason = "a test may panic")]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    fn filled(schema: &Schema, value: Value) -> Value {
        let (filled, used) = schema.with_defaults(value.clone());
        assert_eq!(used.is_empty(), filled == value);
        let (again, used) = schema.with_defaults(filled.clone());
        assert_eq!((again, used), (filled.clone(), Vec::new()), "{value}");
        filled
    }

    #[test]
    fn a_default_that_tells_the_branch_of_a_union_brings_the_defaults_of_that_branch() {
        let schema = Schema::input(&json!({
            "properties": { "kind": { "enum": ["a", "b"], "default": "a" }, "n": {} },
            "anyOf": [
                { "properties": { "kind": { "const": "a" }, "n": { "type": "integer", "default": 5 } } },
                { "properties": { "kind": { "const": "b" } } },
            ],
        }))
        .unwrap();
        assert_eq!(filled(&schema, json!({})), json!({ "kind": "a", "n": 5 }));
        assert_eq!(filled(&schema, json!({ "kind": "a" })), json!({ "kind": "a", "n": 5 }));
        assert_eq!(filled(&schema, json!({ "kind": "b" })), json!({ "kind": "b" }));
    }

    #[test]
    fn two_defaults_that_cannot_both_be_do_not_leave_the_thirty_third_out() {
        let mut properties: Map<String, Value> =
            (0..100).map(|n| (format!("m{n:03}"), json!({ "type": "integer", "default": n }))).collect();
        properties.extend(["y", "z"].map(|name| (name.to_owned(), json!({ "default": name }))));
        let schema = Schema::input(&json!({ "properties": properties, "not": { "required": ["y", "z"] } })).unwrap();
        let filled = filled(&schema, json!({}));
        assert_eq!((filled.as_object().unwrap().len(), &filled["y"], filled.get("z")), (101, &json!("y"), None));
    }

    #[test]
    fn defaults_that_never_end_are_not_filled_in() {
        let schema = Schema::input(&json!({
            "properties": { "next": { "type": "object", "default": {} } },
            "allOf": [{ "$ref": "#/$defs/link" }],
            "$defs": { "link": { "properties": { "next": { "$ref": "#/$defs/deeper" } } },
                "deeper": { "properties": { "next": { "type": "object", "default": {} } },
                    "allOf": [{ "$ref": "#/$defs/link" }] } },
        }))
        .unwrap();
        assert_eq!(filled(&schema, json!({})), json!({}));
    }

    proptest! {
        #[test]
        fn what_is_made_of_a_value_is_left_as_it_is_when_it_is_sent_again(
            defaults in proptest::collection::vec(proptest::option::of(0..3_i64), 8),
            tags in proptest::collection::vec((0..8_usize, 0..3_i64, 0..8_usize), 0..4),
            apart in proptest::collection::vec((0..8_usize, 0..8_usize), 0..4),
            sent in proptest::collection::vec(proptest::option::of(0..3_i64), 8),
        ) {
            let name = |n: usize| format!("m{n}");
            let properties: Map<String, Value> = defaults.iter().enumerate().map(|(n, default)| {
                let schema = default.map_or(json!({ "type": "integer", "description": "n" }), |d| json!({ "type": "integer", "default": d }));
                (name(n), schema)
            }).collect();
            let unions = tags.iter().map(|(tag, value, other)| json!({ "anyOf": [
                { "properties": { name(*tag): { "const": value }, name(*other): { "default": 1 } }, "required": [name(*tag)] },
                { "properties": { name(*tag): { "const": 9 } }, "required": [name(*tag)] },
                { "not": { "required": [name(*tag)] } },
            ] }));
            let apart = apart.iter().filter(|(a, b)| a != b).map(|(a, b)| json!({ "not": { "required": [name(*a), name(*b)] } }));
            let rules: Vec<Value> = unions.chain(apart).collect();
            let mut document = json!({ "properties": properties });
            if !rules.is_empty() { document["allOf"] = json!(rules); }
            let schema = Schema::input(&document).map_err(|faults| TestCaseError::fail(format!("{document}: {faults:?}")))?;
            let sent: Map<String, Value> = sent.iter().enumerate()
                .filter_map(|(n, value)| value.map(|value| (name(n), json!(value)))).collect();
            let sent = Value::Object(sent);
            if schema.is_valid(&sent) {
                let made = filled(&schema, sent);
                prop_assert!(schema.is_valid(&made));
            }
        }
    }
}
