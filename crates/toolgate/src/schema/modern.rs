//! A schema of any draft in the words of 2020-12, for whoever shows it: one node at a time, without what is only for
//! references, and without what the draft of the document passes over.

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::compile::Closing;
use super::graph::{Graph, Node};
use super::{Schema, keywords, walk};

/// The top level of an input schema, with what its branches and references say of the arguments.
pub(crate) struct Top<'a> {
    /// The declared arguments, in the order of the document.
    pub(crate) members: Vec<Declared<'a>>,
    /// Whether there can be no others.
    pub(crate) closed: bool,
    /// What others must be, where the top level itself says so.
    pub(crate) others: Option<&'a Value>,
}

/// An argument.
pub(crate) struct Declared<'a> {
    pub(crate) name: String,
    pub(crate) required: bool,
    /// The schemas that name it. INVARIANT (one holds): where `held` is set, a valid value fits one of them; else it may
    /// fit none.
    pub(crate) schemas: Vec<&'a Value>,
    pub(crate) held: bool,
}

impl Schema {
    /// The top level, where arguments may be declared by branches too.
    pub(crate) fn top(&self) -> Top<'_> {
        let spread = self.graph.spread(&[Graph::ROOT]);
        let certain = self.graph.mandatory(&[Graph::ROOT]);
        let root = self.graph.node(Graph::ROOT);
        let said = |keyword| self.document.get(keyword).filter(|_| keywords::shape(keyword, self.draft).is_some());
        let only_own = said("additionalProperties").is_some_and(|others| others == false);
        let open = self.takes_undeclared();
        let of = |nodes: &[super::NodeId], name: &str| -> Vec<&Value> {
            let named = self.graph.each(nodes).filter_map(|node: &Node| node.members.get(name));
            named.filter_map(|id| self.written(*id)).collect()
        };
        let declared = |name: String| {
            let held = of(&certain, &name);
            let required = self.graph.requires(&self.document, Graph::ROOT, &name);
            if let Some(schema) = held.first() {
                return Declared { name, required, schemas: vec![schema], held: true };
            }
            // What only a branch declares is there only where that branch holds, unless others may be there anyway.
            let schemas = of(&spread, &name);
            Declared { name, required, schemas, held: !open && self.closing != Closing::Ours }
        };
        let own = |name: &String| !only_own || root.is_some_and(|root| root.members.contains_key(name));
        let members = self.graph.names(&spread).into_iter().filter(own).map(declared).collect();
        let others = said("additionalProperties").filter(|_| root.is_some_and(|root| root.patterns.is_empty()));
        Top { members, closed: !open, others: others.filter(|others| *others != false) }
    }

    /// The keywords of a schema of the document as 2020-12 has them: all references are `$ref`.
    pub(crate) fn modern(&self, schema: &Map<String, Value>) -> Map<String, Value> {
        let mut modern = Map::new();
        let tuple = self.draft < Draft::Draft202012 && schema.get("items").is_some_and(Value::is_array);
        let silences = self.draft <= Draft::Draft7 && schema.contains_key("$ref");
        for (name, value) in schema {
            if keywords::shape(name, self.draft).is_none() || silences && !keywords::SILENT.contains(&name.as_str()) {
                continue;
            }
            match (name.as_str(), value) {
                (
                    "$schema" | "$id" | "id" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor" | "$comment" | "$defs"
                    | "definitions",
                    _,
                ) => {}
                ("$dynamicRef" | "$recursiveRef", _) => {
                    modern.entry("$ref").or_insert_with(|| value.clone());
                }
                ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) => {}
                ("minimum" | "maximum", limit) => {
                    let exclusive = if name == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
                    let is_exclusive = schema.get(exclusive) == Some(&Value::Bool(true));
                    modern.insert(if is_exclusive { exclusive.to_owned() } else { name.clone() }, limit.clone());
                }
                ("items", _) if tuple => {
                    modern.insert("prefixItems".to_owned(), value.clone());
                }
                ("additionalItems", _) => {
                    if tuple {
                        modern.insert("items".to_owned(), value.clone());
                    }
                }
                // What they say of several members at once is shown by no dialect.
                ("dependencies", _) => {}
                _ => {
                    modern.insert(name.clone(), value.clone());
                }
            }
        }
        modern
    }

    /// The schema that a `$ref` of the document refers to, with its place there.
    pub(crate) fn referred(&self, reference: &str) -> Option<(String, &Value)> {
        let inside = walk::references::decoded(reference.strip_prefix('#')?);
        if inside.is_empty() || inside.starts_with('/') {
            let schema = self.document.pointer(&inside)?;
            return Some((inside, schema));
        }
        let named = |schema: &&Value| {
            let is = |keyword: &str, text: &str| schema.get(keyword).is_some_and(|name| name == text);
            is("$anchor", &inside)
                || is("$dynamicAnchor", &inside)
                || ["$id", "id"].iter().any(|keyword| is(keyword, &format!("#{inside}")))
        };
        let schemas = self.graph.nodes.iter().filter_map(|node| Some((&node.at, self.document.pointer(&node.at)?)));
        schemas.into_iter().find(|(_, schema)| named(schema)).map(|(at, schema)| (at.clone(), schema))
    }
}
