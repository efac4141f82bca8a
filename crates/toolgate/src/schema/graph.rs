//! A schema document as a graph: which schemas speak of a value, of its members and of its items.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;

use super::compile::Engine;
use super::keywords::Applies;
use super::pattern::{self, Matching};
use super::weight::Weight;
use crate::leniency::Leniencies;

/// A schema of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeId(pub(super) usize);

/// INVARIANT (root first): the first node is the document itself.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
}

#[derive(Debug, Default)]
pub(super) struct Node {
    /// The place in the document, a JSON pointer.
    pub(super) at: String,
    /// The same, step by step.
    steps: Vec<Step>,
    /// The subschemas and references that take part in a check, in the order of the document.
    pub(super) edges: Vec<(Applies, NodeId)>,
    pub(super) members: HashMap<String, NodeId>,
    pub(super) names: Vec<String>,
    pub(super) positions: Vec<NodeId>,
    pub(super) patterns: Vec<(Matcher, NodeId)>,
    /// `properties` stands here, if only an empty one.
    pub(super) declares: bool,
    /// What this schema says of members that it doesn't name.
    pub(super) others: Others,
    /// `unevaluatedProperties` or `unevaluatedItems` stands here.
    pub(super) unevaluated: bool,
    /// This schema says how long a text may be, or what it may be.
    pub(super) bounds_text: bool,
    /// This schema says how many items there may be, or which.
    pub(super) bounds_items: bool,
    /// What its own keywords cost.
    pub(super) weight: Weight,
    pub(super) multiline: bool,
    pub(super) secret: bool,
    pub(super) personal: bool,
    /// What may be written otherwise here (`x-lenient`).
    pub(super) lenient: Leniencies,
}

#[derive(Debug)]
enum Step {
    Member(String),
    /// A position in an array; in an object it is a name all the same.
    Item(usize, String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Others {
    #[default]
    Unsaid,
    Allowed,
    Forbidden,
}

/// A pattern of member names, compiled when a name is first held to it.
#[derive(Debug)]
pub(super) struct Matcher {
    pattern: String,
    made: OnceLock<Option<Validator>>,
}

impl Matcher {
    pub(super) fn new(pattern: &str) -> Self {
        Self { pattern: pattern.to_owned(), made: OnceLock::new() }
    }

    fn fits(&self, name: &str) -> bool {
        let made = self.made.get_or_init(|| {
            pattern::matcher(&self.pattern, Matching::Linear)
                .or_else(|| pattern::matcher(&self.pattern, Matching::Bounded))
        });
        made.as_ref().is_some_and(|made| made.is_valid(&Value::String(name.to_owned())))
    }
}

impl Applies {
    /// Applies to the value that its parent applies to.
    pub(super) fn in_place(self) -> bool {
        matches!(self, Self::All | Self::Any | Self::One | Self::Sometimes | Self::Test)
    }

    /// In place, and its members count as declared.
    fn declares(self) -> bool {
        self.in_place() && self != Self::Test
    }
}

impl Node {
    pub(super) fn at(at: String) -> Self {
        let steps = segments(&at).map(|segment| match segment.parse() {
            Ok(index) => Step::Item(index, segment.into_owned()),
            Err(_) => Step::Member(segment.into_owned()),
        });
        Self { steps: steps.collect(), at, ..Self::default() }
    }

    /// The schema as it stands in the document.
    pub(super) fn written<'v>(&self, document: &'v Value) -> Option<&'v Value> {
        self.steps.iter().try_fold(document, |value, step| match (value, step) {
            (Value::Object(members), Step::Member(name) | Step::Item(_, name)) => members.get(name),
            (Value::Array(items), Step::Item(index, _)) => items.get(*index),
            _ => None,
        })
    }

    fn speaks_of(&self, name: &str) -> impl Iterator<Item = NodeId> {
        let by_pattern = self.patterns.iter().filter(move |(pattern, _)| pattern.fits(name)).map(|(_, to)| *to);
        self.members.get(name).copied().into_iter().chain(by_pattern)
    }
}

impl Graph {
    pub(super) const ROOT: NodeId = NodeId(0);

    pub(super) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0)
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id.0)
    }

    /// Whether any schema marks its value as secret or personal.
    pub(super) fn has_marks(&self) -> bool {
        self.nodes.iter().any(|node| node.secret || node.personal)
    }

    pub(super) fn each<'a>(&'a self, ids: &'a [NodeId]) -> impl Iterator<Item = &'a Node> {
        ids.iter().filter_map(|id| self.node(*id))
    }

    /// These schemas and all that they apply in place.
    pub(super) fn spread(&self, from: &[NodeId]) -> Vec<NodeId> {
        self.closure(from, Applies::declares)
    }

    /// These schemas and all that hold whenever these hold.
    pub(super) fn mandatory(&self, from: &[NodeId]) -> Vec<NodeId> {
        self.closure(from, |applies| applies == Applies::All)
    }

    fn closure(&self, from: &[NodeId], follow: impl Fn(Applies) -> bool) -> Vec<NodeId> {
        // Most schemas apply nothing in place.
        if self.each(from).all(|node| !node.edges.iter().any(|(applies, _)| follow(*applies))) {
            return from.to_vec();
        }
        let mut seen = BTreeSet::new();
        let mut order = Vec::with_capacity(from.len());
        let mut open: Vec<NodeId> = from.iter().rev().copied().collect();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            order.push(id);
            let Some(node) = self.node(id) else { continue };
            open.extend(node.edges.iter().rev().filter(|(applies, _)| follow(*applies)).map(|(_, to)| *to));
        }
        order
    }

    /// The branches that a schema lists under `anyOf` or `oneOf`.
    pub(super) fn branches(&self, id: NodeId, union: Applies) -> Vec<NodeId> {
        let edges = self.node(id).map_or(&[][..], |node| &node.edges);
        edges.iter().filter(|(applies, _)| *applies == union).map(|(_, to)| *to).collect()
    }

    /// The schemas that speak of the member `name` of a value, given those that speak of the value.
    pub(super) fn of_member(&self, spread: &[NodeId], name: &str) -> Vec<NodeId> {
        let mut found = Vec::new();
        for node in self.each(spread) {
            let before = found.len();
            found.extend(node.speaks_of(name));
            if found.len() == before {
                let others = node.edges.iter().filter(|(applies, _)| *applies == Applies::OtherMembers);
                found.extend(others.map(|(_, to)| *to));
            }
        }
        distinct(found)
    }

    /// Those of them that name it, or a pattern that it fits.
    pub(super) fn of_named_member(&self, spread: &[NodeId], name: &str) -> Vec<NodeId> {
        distinct(self.each(spread).flat_map(|node| node.speaks_of(name)).collect())
    }

    /// The schemas that speak of the item at `index` of a value.
    pub(super) fn of_item(&self, spread: &[NodeId], index: usize) -> Vec<NodeId> {
        let mut found = Vec::new();
        for node in self.each(spread) {
            match node.positions.get(index) {
                Some(to) => found.push(*to),
                None => found.extend(
                    node.edges.iter().filter(|(applies, _)| *applies == Applies::OtherItems).map(|(_, to)| *to),
                ),
            }
        }
        distinct(found)
    }

    /// The schemas that a pointer into a value leads to, before `$ref` and the like are followed.
    pub(super) fn entries(&self, pointer: &str) -> Vec<NodeId> {
        let mut here = vec![Self::ROOT];
        for segment in segments(pointer) {
            let spread = self.spread(&here);
            here = self.of_member(&spread, &segment);
            if let Ok(index) = segment.parse() {
                here.extend(self.of_item(&spread, index));
                here = distinct(here);
            }
        }
        here
    }

    /// The member names that these schemas declare, in the order of the document.
    pub(super) fn names(&self, spread: &[NodeId]) -> Vec<String> {
        let mut seen = BTreeSet::new();
        self.each(spread).flat_map(|node| &node.names).filter(|name| seen.insert(name.as_str())).cloned().collect()
    }

    /// Whether a value that fits `id` has the member `name`.
    pub(super) fn requires(&self, document: &Value, id: NodeId, name: &str) -> bool {
        let Some(node) = self.node(id) else { return false };
        let own = node.written(document).and_then(|schema| schema.get("required")).and_then(Value::as_array);
        if own.is_some_and(|names| names.iter().any(|n| n == name)) {
            return true;
        }
        let every = |union| {
            let branches = self.branches(id, union);
            !branches.is_empty() && branches.iter().all(|branch| self.requires(document, *branch, name))
        };
        node.edges.iter().any(|(applies, to)| *applies == Applies::All && self.requires(document, *to, name))
            || every(Applies::Any)
            || every(Applies::One)
    }
}

/// A validator for each schema of the document by itself, made when a hint first needs it.
pub(super) struct Judges {
    made: Vec<OnceLock<Option<Box<Validator>>>>,
    engine: Engine,
}

impl Judges {
    const DOCUMENT: &str = "toolgate:schema";

    pub(super) fn new(graph: &Graph, engine: Engine) -> Self {
        Self { made: graph.nodes.iter().map(|_| OnceLock::new()).collect(), engine }
    }

    /// Whether `value` fits the schema `id` of the document.
    pub(super) fn accept(&self, document: &Value, graph: &Graph, id: NodeId, value: &Value) -> bool {
        let Some(slot) = self.made.get(id.0) else { return false };
        let judge = slot.get_or_init(|| self.make(document, &graph.node(id)?.at));
        judge.as_ref().is_some_and(|judge| judge.is_valid(value))
    }

    fn make(&self, document: &Value, at: &str) -> Option<Box<Validator>> {
        let registry =
            jsonschema::Registry::new().draft(self.engine.draft).add(Self::DOCUMENT, document).ok()?.prepare().ok()?;
        let entry = serde_json::json!({ "$ref": format!("{}#{}", Self::DOCUMENT, fragment(at)) });
        self.engine.options().with_registry(&registry).build(&entry).ok().map(Box::new)
    }
}

/// The segments of a JSON pointer, unescaped.
pub(super) fn segments(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    pointer.split('/').skip(1).map(|segment| match segment.contains('~') {
        true => Cow::Owned(segment.replace("~1", "/").replace("~0", "~")),
        false => Cow::Borrowed(segment),
    })
}

/// A name as a segment of a JSON pointer.
pub(super) fn escaped(name: &str) -> Cow<'_, str> {
    match name.contains(['~', '/']) {
        true => Cow::Owned(name.replace('~', "~0").replace('/', "~1")),
        false => Cow::Borrowed(name),
    }
}

/// A JSON pointer as the fragment of a URI.
fn fragment(pointer: &str) -> String {
    let mut out = String::with_capacity(pointer.len());
    for byte in pointer.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~$".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// In their order, each once.
fn distinct(mut ids: Vec<NodeId>) -> Vec<NodeId> {
    if ids.len() > 1 {
        let mut seen = BTreeSet::new();
        ids.retain(|id| seen.insert(*id));
    }
    ids
}
