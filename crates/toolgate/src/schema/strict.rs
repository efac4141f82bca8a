//! A schema as a strict mode says it: every object is closed and has all of its members, and `null` stands where an
//! optional one is left out.
//!
//! Only a schema that can be said so without refusing anything that it allows has such a form: every object forbids
//! members that it does not declare, no member may be both absent and `null`, every place has its types, and of two values
//! no one is written like another.

mod absent;
mod exact;
mod limits;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::Schema;
use super::graph::{Graph, Node, NodeId, Others};
use super::keywords::{self, Applies};
use crate::json::canonical;

/// A whole schema in strict form. INVARIANT (root first): its first part is the top level.
#[derive(Debug, Default)]
pub(crate) struct Strict {
    parts: Vec<Part>,
}

/// A schema of the form, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartId(usize);

#[derive(Debug)]
pub(crate) struct Part {
    /// The schema of the document that it says.
    node: NodeId,
    pub(crate) form: Form,
}

/// What a value must be.
#[derive(Debug)]
pub(crate) enum Form {
    /// A value of one of these types, or one of these values.
    Scalar { types: Vec<&'static str>, values: Option<Vec<Value>> },
    /// An object with exactly these members.
    Object(Members),
    /// An array of such items.
    Array(PartId),
    /// One of these.
    Union(Vec<PartId>),
    /// What another part says, by reference.
    Same(PartId),
}

/// The members of an object, in the order of the document, each name once.
#[derive(Debug)]
pub(crate) struct Members {
    each: Vec<Member>,
    places: HashMap<String, usize>,
}

/// A member of an object.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) part: PartId,
    /// INVARIANT (null is absent): what is not required takes no `null`, so that `null` says that it is left out.
    pub(crate) required: bool,
}

impl Members {
    fn new(each: Vec<Member>) -> Self {
        let places = each.iter().enumerate().map(|(place, member)| (member.name.clone(), place)).collect();
        Self { each, places }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.each.iter()
    }

    fn len(&self) -> usize {
        self.each.len()
    }

    fn named(&self, name: &str) -> Option<&Member> {
        self.each.get(*self.places.get(name)?)
    }
}

/// Schemas of one form; one with more is not said.
const MOST_PARTS: usize = 5_000;

impl Schema {
    /// The schema in strict form, if it has one.
    pub(crate) fn strict(&self) -> Option<&Strict> {
        let made = self.strict.get_or_init(|| {
            let mut making = Making { schema: self, strict: Strict::default(), made: BTreeMap::new() };
            making.part(Graph::ROOT, true)?;
            let strict = making.strict;
            (strict.is_exact() && strict.keeps_limits()).then_some(strict)
        });
        made.as_ref()
    }

    /// The schema of the document that a part of its strict form says.
    pub(crate) fn said_by(&self, part: &Part) -> Option<&Map<String, Value>> {
        self.written(part.node)?.as_object()
    }
}

impl Strict {
    pub(crate) const ROOT: PartId = PartId(0);

    pub(crate) fn part(&self, id: PartId) -> Option<&Part> {
        self.parts.get(id.0)
    }

    /// Whether two parts say the same schema of the document, as the branches for its types do.
    pub(crate) fn is_one_place(&self, one: PartId, other: PartId) -> bool {
        self.part(one).map(|part| part.node) == self.part(other).map(|part| part.node)
    }

    fn form(&self, id: PartId) -> Option<&Form> {
        self.part(id).map(|part| &part.form)
    }

    /// The values that a part lists, in their canonical form: of `1` and `1.0` one fits where the other does.
    fn listed(&self, id: PartId) -> Option<BTreeSet<String>> {
        match self.form(id)? {
            Form::Scalar { values, .. } => Some(values.as_ref()?.iter().map(canonical).collect()),
            Form::Object(_) | Form::Array(_) | Form::Union(_) | Form::Same(_) => None,
        }
    }

    /// The forms that a value at this part may have, references and unions followed.
    fn leaves(&self, id: PartId) -> BTreeSet<PartId> {
        let (mut leaves, mut seen, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![id]);
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            match self.form(id) {
                Some(Form::Same(to)) => open.push(*to),
                Some(Form::Union(branches)) => open.extend(branches),
                Some(Form::Scalar { .. } | Form::Object(_) | Form::Array(_)) => {
                    leaves.insert(id);
                }
                None => {}
            }
        }
        leaves
    }
}

/// A form while it is made; `None` anywhere in it means that the schema has none.
struct Making<'s> {
    schema: &'s Schema,
    strict: Strict,
    /// A schema is closed by the contract only where it is the top level.
    made: BTreeMap<(NodeId, bool), PartId>,
}

impl Making<'_> {
    fn part(&mut self, node: NodeId, top: bool) -> Option<PartId> {
        if let Some(made) = self.made.get(&(node, top)) {
            return Some(*made);
        }
        let id = self.add(node, Form::Union(Vec::new()))?;
        self.made.insert((node, top), id);
        let form = self.form(node, top)?;
        self.strict.parts.get_mut(id.0)?.form = form;
        Some(id)
    }

    fn add(&mut self, node: NodeId, form: Form) -> Option<PartId> {
        let id = PartId(self.strict.parts.len());
        self.strict.parts.push(Part { node, form });
        (id.0 < MOST_PARTS).then_some(id)
    }

    fn form(&mut self, id: NodeId, top: bool) -> Option<Form> {
        let (graph, schema) = (&self.schema.graph, self.schema);
        let written = schema.modern(schema.written(id)?.as_object()?);
        let node = graph.node(id)?;
        let same: Vec<NodeId> = graph.branches(id, Applies::All);
        if let [to] = same.as_slice() {
            let alone = written.keys().all(|word| matches!(word.as_str(), "$ref" | "allOf") || says_nothing(word));
            return if alone { Some(Form::Same(self.part(*to, top)?)) } else { None };
        }
        if !same.is_empty() {
            return None;
        }
        let values = values(&written);
        let types = match (written.get("type"), &values) {
            _ if top => vec!["object"],
            (Some(types), _) => listed(types),
            (None, Some(values)) => keywords::types_of(values),
            (None, None) => {
                let unions = [Applies::Any, Applies::One].map(|union| graph.branches(id, union));
                let branches = unions.into_iter().find(|branches| !branches.is_empty())?;
                let parts: Option<Vec<PartId>> = branches.into_iter().map(|branch| self.part(branch, false)).collect();
                return Some(Form::Union(parts?));
            }
        };
        let mut forms = Vec::new();
        let scalars: Vec<&'static str> =
            types.iter().copied().filter(|kind| !matches!(*kind, "object" | "array")).collect();
        if types.contains(&"object") {
            forms.push(Form::Object(self.members(id, node.others, top)?));
        }
        if types.contains(&"array") {
            forms.push(Form::Array(self.items(id, &written)?));
        }
        if !scalars.is_empty() {
            let values = values.map(|values| values.into_iter().filter(is_scalar).collect());
            forms.push(Form::Scalar { types: scalars, values });
        }
        if forms.len() <= 1 {
            return forms.pop();
        }
        let parts: Option<Vec<PartId>> = forms.into_iter().map(|form| self.add(id, form)).collect();
        Some(Form::Union(parts?))
    }

    /// The members of an object that has no others.
    fn members(&mut self, id: NodeId, others: Others, top: bool) -> Option<Members> {
        let (graph, schema) = (&self.schema.graph, self.schema);
        let spread = graph.spread(&[id]);
        let closed = match top {
            true => !schema.takes_undeclared(),
            false => {
                let open = |node: &Node| node.others == Others::Allowed || !node.patterns.is_empty();
                others == Others::Forbidden && !graph.each(&spread).any(open)
            }
        };
        let own = &graph.node(id)?.members;
        let needed = schema.written(id)?.get("required").and_then(Value::as_array).into_iter().flatten();
        let mut named =
            graph.names(&spread).into_iter().chain(needed.filter_map(|name| Some(name.as_str()?.to_owned())));
        if !closed || !named.all(|name| own.contains_key(&name)) {
            return None;
        }
        let mut members = Vec::new();
        for name in &graph.node(id)?.names {
            let schemas = [*own.get(name)?];
            let part = self.part(schemas.first().copied()?, false)?;
            let required = graph.requires(&schema.document, id, name);
            if !required && schema.accepted(&schemas, &Value::Null) {
                return None;
            }
            members.push(Member { name: name.clone(), part, required });
        }
        Some(Members::new(members))
    }

    fn items(&mut self, id: NodeId, written: &Map<String, Value>) -> Option<PartId> {
        if written.contains_key("prefixItems") || written.contains_key("unevaluatedItems") {
            return None;
        }
        match self.schema.graph.branches(id, Applies::OtherItems).as_slice() {
            [items] => self.part(*items, false),
            _ => None,
        }
    }
}

/// Whether a keyword only tells something.
fn says_nothing(word: &str) -> bool {
    keywords::SILENT.contains(&word)
}

fn values(written: &Map<String, Value>) -> Option<Vec<Value>> {
    match (written.get("const"), written.get("enum")) {
        (Some(value), _) => Some(vec![value.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    }
}

fn listed(types: &Value) -> Vec<&'static str> {
    let known = |word: &str| keywords::TYPES.iter().copied().find(|kind| *kind == word);
    match types {
        Value::String(word) => known(word).into_iter().collect(),
        Value::Array(words) => words.iter().filter_map(|word| known(word.as_str()?)).collect(),
        _ => Vec::new(),
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::image;
