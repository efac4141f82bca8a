//! Reads a schema document once: every fault with its place, and the graph that all else works on.

pub(super) mod references;

use std::collections::{BTreeSet, HashMap, VecDeque};

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::graph::{Graph, Matcher, Node, NodeId, Others, escaped};
use super::hints::near;
use super::inert::visible;
use super::keywords::{self, Applies, Shape};
use super::pattern::{Matching, Patterns};
use super::weight::Weight;
use super::{Author, LENIENT, Problem, SchemaFault};
use crate::leniency::Leniency;
use references::Reference;

const MAX_SCHEMAS: usize = 10_000;
/// JSON arrays and objects inside one another.
const MAX_NESTING: usize = 64;
/// Values of one enum.
const MAX_VALUES: usize = 10_000;
const MAX_FAULTS: usize = 200;
const MAX_WARNINGS: usize = 50;

/// A document that was read, and has no fault that shows before it is weighed and compiled.
pub(super) struct Read {
    pub(super) graph: Graph,
    pub(super) patterns: Patterns,
    pub(super) warnings: Vec<Problem>,
}

pub(super) struct Walk<'a> {
    document: &'a Value,
    draft: Draft,
    author: Author,
    graph: Graph,
    seen: HashMap<String, NodeId>,
    anchors: HashMap<String, NodeId>,
    dynamic: HashMap<String, Vec<NodeId>>,
    references: VecDeque<Reference>,
    patterns: Patterns,
    faults: Vec<SchemaFault>,
    warnings: Vec<Problem>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(document: &'a Value, draft: Draft, author: Author) -> Self {
        Self {
            document,
            draft,
            author,
            graph: Graph::default(),
            seen: HashMap::new(),
            anchors: HashMap::new(),
            dynamic: HashMap::new(),
            references: VecDeque::new(),
            patterns: Patterns::new(author),
            faults: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The document as it was read, or all of its faults.
    pub(super) fn run(mut self) -> Result<Read, Vec<SchemaFault>> {
        self.schema(String::new(), self.document, 0);
        self.follow();
        if self.faults.is_empty() {
            return Ok(Read { graph: self.graph, patterns: self.patterns, warnings: self.warnings });
        }
        self.faults.extend(self.patterns.built().err().into_iter().flatten());
        self.faults.sort_by(|a, b| a.at.cmp(&b.at));
        Err(self.faults)
    }

    fn fault(&mut self, at: &str, message: impl Into<String>, hint: Option<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(SchemaFault { at: visible(at), message: message.into(), hint });
        }
    }

    fn warn(&mut self, at: &str, code: &str, message: &str, hint: Option<&str>) {
        if self.warnings.len() < MAX_WARNINGS {
            let (code, message, hint) = (code.to_owned(), message.to_owned(), hint.map(str::to_owned));
            self.warnings.push(Problem { at: visible(at), code, message, hint });
        }
    }

    fn schema(&mut self, at: String, value: &'a Value, nesting: usize) -> Option<NodeId> {
        if let Some(id) = self.seen.get(&at) {
            return Some(*id);
        }
        if nesting > MAX_NESTING {
            self.fault(&at, "nested more than 64 levels deep", Some("flatten it, or recurse through $ref".to_owned()));
            return None;
        }
        if self.graph.nodes.len() >= MAX_SCHEMAS {
            if self.graph.nodes.len() == MAX_SCHEMAS {
                self.fault(&at, "more than 10,000 schemas in one document", None);
                self.graph.nodes.push(Node::default());
            }
            return None;
        }
        let id = NodeId(self.graph.nodes.len());
        self.seen.insert(at.clone(), id);
        self.graph.nodes.push(Node::at(at.clone()));
        match value {
            Value::Bool(_) => {}
            Value::Object(keywords) => self.keywords(id, &at, keywords, nesting),
            other => {
                let message =
                    format!("a schema is an object, true or false, not {}", article(keywords::type_of(other)));
                let hint = other.as_str().map(|_| "write { \"type\": ... }".to_owned());
                self.fault(&at, message, hint);
            }
        }
        Some(id)
    }

    fn keywords(&mut self, id: NodeId, at: &str, keywords: &'a Map<String, Value>, nesting: usize) {
        let silences = self.draft <= Draft::Draft7 && keywords.contains_key("$ref");
        for (name, value) in keywords {
            let place = format!("{at}/{}", escaped(name));
            if name.starts_with("x-") {
                self.extension(id, &place, name, value);
                continue;
            }
            let known = keywords::shape(name, self.draft);
            let dropped = match self.author {
                Author::Operator => None,
                Author::SomebodyElse => keywords::dropped(name, self.draft),
            };
            let Some(shape) = known.or(dropped) else {
                self.unknown(&place, name);
                continue;
            };
            if silences && !keywords::SILENT.contains(&name.as_str()) {
                self.silenced(&place);
                continue;
            }
            if known.is_none() {
                let message = "a keyword that this draft has dropped; values are held to it all the same";
                self.warn(&place, "older_keyword", message, keywords::instead(name, self.draft));
            }
            self.keyword(id, &place, name, shape, value, nesting + 1);
        }
        let weight = Weight::of(keywords);
        let draft = self.draft;
        let said = |name: &str| keywords.get(name).filter(|_| keywords::shape(name, draft).is_some());
        let shut = |name| said(name).map(|v| if v == false { Others::Forbidden } else { Others::Allowed });
        let Some(node) = self.graph.node_mut(id).filter(|_| !silences) else { return };
        node.weight = weight;
        node.declares = keywords.contains_key("properties");
        node.others = shut("additionalProperties").or_else(|| shut("unevaluatedProperties")).unwrap_or_default();
        node.unevaluated = said("unevaluatedProperties").is_some() || said("unevaluatedItems").is_some();
        node.bounds_text = ["maxLength", "enum", "const"].iter().any(|name| keywords.contains_key(*name));
        node.bounds_items = ["maxItems", "enum", "const"].iter().any(|name| keywords.contains_key(*name));
        self.undeclared_required(id, at, keywords);
    }

    fn silenced(&mut self, place: &str) {
        let (message, hint) = ("ignored beside $ref in this draft", "put the reference and this keyword under allOf");
        match self.author {
            Author::Operator => self.fault(place, message, Some(hint.to_owned())),
            Author::SomebodyElse => self.warn(place, "ignored_keyword", message, Some(hint)),
        }
    }

    fn extension(&mut self, id: NodeId, place: &str, name: &str, value: &Value) {
        if name == LENIENT {
            return self.lenient(id, place, value);
        }
        let Some(node) = self.graph.node_mut(id) else { return };
        let flag = match name {
            "x-multiline" => &mut node.multiline,
            "x-secret" => &mut node.secret,
            "x-personal" => &mut node.personal,
            _ => return,
        };
        match value {
            Value::Bool(on) => *flag = *on,
            other => self.wrong(place, "true or false", other),
        }
    }

    /// What somebody else wrote loosens nothing here.
    fn lenient(&mut self, id: NodeId, place: &str, value: &Value) {
        if self.author == Author::SomebodyElse {
            return;
        }
        let Value::Array(names) = value else { return self.wrong(place, "a list of leniencies", value) };
        for (index, name) in names.iter().enumerate() {
            let place = format!("{place}/{index}");
            let Value::String(name) = name else {
                self.wrong(&place, "the name of a leniency", name);
                continue;
            };
            let in_the_contract = || Some("name it under `lenient` of the contract".to_owned());
            match Leniency::parse(name) {
                None => self.fault(&place, "there is no such leniency", Some(Leniency::instead_of(name))),
                Some(named) if named.is_of_the_call() => {
                    self.fault(&place, "this leniency is about a call as a whole", in_the_contract());
                }
                Some(_) if id == Graph::ROOT => {
                    self.fault(&place, "the top level is no member", in_the_contract());
                }
                Some(named) => {
                    if let Some(node) = self.graph.node_mut(id) {
                        node.lenient.insert(named);
                    }
                }
            }
        }
    }

    fn unknown(&mut self, place: &str, name: &str) {
        if self.author == Author::SomebodyElse {
            let message = "JSON Schema has no such keyword, so nothing is held to it";
            return self.warn(place, "unknown_keyword", message, None);
        }
        let hint = match keywords::instead(name, self.draft) {
            Some(instead) => instead.to_owned(),
            None => match near(name, keywords::names(self.draft)) {
                Some(known) => format!("did you mean {known}?"),
                None => "a keyword of your own begins with x-".to_owned(),
            },
        };
        self.fault(place, "unknown keyword", Some(hint));
    }

    fn wrong(&mut self, place: &str, wanted: &str, got: &Value) {
        self.fault(place, format!("expected {wanted}, got {}", article(keywords::type_of(got))), None);
    }

    fn keyword(&mut self, id: NodeId, place: &str, name: &str, shape: Shape, value: &'a Value, nesting: usize) {
        match shape {
            Shape::Anything => {}
            Shape::Text if value.is_string() => {}
            Shape::Text => self.wrong(place, "a string", value),
            Shape::Flag if value.is_boolean() => {}
            Shape::Flag => self.wrong(place, "true or false", value),
            Shape::Count if is_count(value) => {}
            Shape::Count => self.wrong(place, "a whole number of at least 0", value),
            Shape::Number if value.is_number() => {}
            Shape::Number => self.wrong(place, "a number", value),
            Shape::PositiveNumber if value.as_f64().is_some_and(|n| n > 0.0) => {}
            Shape::PositiveNumber => self.wrong(place, "a number above 0", value),
            Shape::List if value.is_array() => {}
            Shape::List => self.wrong(place, "a list", value),
            Shape::Values => self.values(place, value),
            Shape::Types => self.types(place, value),
            Shape::Names => self.names(place, value),
            Shape::NamesByName => match value {
                Value::Object(map) => {
                    for (member, names) in map {
                        self.names(&format!("{place}/{}", escaped(member)), names);
                    }
                }
                other => self.wrong(place, "an object of lists of member names", other),
            },
            Shape::Pattern => match value {
                Value::String(text) => self.pattern(place, text),
                other => self.wrong(place, "a string", other),
            },
            Shape::Format => self.format(place, value),
            Shape::DraftName => self.draft_name(place, value),
            Shape::Identifier => self.identifier(id, place, value),
            Shape::Anchor => self.anchor(id, place, name == "$dynamicAnchor", value),
            Shape::Reference | Shape::AnchorReference | Shape::RootReference => self.reference(id, place, shape, value),
            Shape::Schema(applies) => self.child(id, applies, place.to_owned(), value, nesting),
            Shape::Items if value.is_array() => {
                self.list(id, Applies::Position, place, value, nesting);
            }
            Shape::Items => self.child(id, Applies::OtherItems, place.to_owned(), value, nesting),
            Shape::SchemaList(applies) => {
                self.list(id, applies, place, value, nesting);
                if value.as_array().is_some_and(Vec::is_empty) {
                    self.fault(place, "an empty list", Some("leave the keyword out".to_owned()));
                }
            }
            Shape::SchemaMap(applies) => self.map(id, applies, place, value, nesting),
            Shape::Dependencies => match value {
                Value::Object(map) => {
                    for (member, value) in map {
                        let place = format!("{place}/{}", escaped(member));
                        match value {
                            Value::Array(_) => self.names(&place, value),
                            schema => self.child(id, Applies::Sometimes, place, schema, nesting + 1),
                        }
                    }
                }
                other => self.wrong(place, "an object", other),
            },
        }
    }

    fn child(&mut self, parent: NodeId, applies: Applies, at: String, value: &'a Value, nesting: usize) {
        let Some(child) = self.schema(at, value, nesting) else { return };
        self.link(parent, applies, child);
    }

    fn link(&mut self, parent: NodeId, applies: Applies, child: NodeId) {
        let Some(node) = self.graph.node_mut(parent) else { return };
        if applies != Applies::Nowhere {
            node.edges.push((applies, child));
        }
        if applies == Applies::Position {
            node.positions.push(child);
        }
    }

    fn list(&mut self, id: NodeId, applies: Applies, place: &str, value: &'a Value, nesting: usize) {
        let Value::Array(schemas) = value else {
            let hint = value.as_object().map(|_| "put the schema into a list".to_owned());
            self.fault(place, format!("expected a list of schemas, got {}", article(keywords::type_of(value))), hint);
            return;
        };
        for (index, schema) in schemas.iter().enumerate() {
            self.child(id, applies, format!("{place}/{index}"), schema, nesting + 1);
        }
    }

    fn map(&mut self, id: NodeId, applies: Applies, place: &str, value: &'a Value, nesting: usize) {
        let Value::Object(schemas) = value else {
            return self.wrong(place, "an object of schemas", value);
        };
        for (name, schema) in schemas {
            let at = format!("{place}/{}", escaped(name));
            if applies == Applies::Pattern {
                self.pattern(&at, name);
            }
            let Some(child) = self.schema(at, schema, nesting + 1) else { continue };
            self.link(id, applies, child);
            let Some(node) = self.graph.node_mut(id) else { continue };
            match applies {
                Applies::Member => {
                    node.members.insert(name.clone(), child);
                    node.names.push(name.clone());
                }
                Applies::Pattern => node.patterns.push((Matcher::new(name), child)),
                _ => {}
            }
        }
    }

    fn values(&mut self, place: &str, value: &Value) {
        match value {
            Value::Array(values) if values.is_empty() => {
                self.fault(place, "no value is allowed by an empty list", Some("list the allowed values".to_owned()));
            }
            Value::Array(values) if values.len() > MAX_VALUES => {
                let hint = "say what they have in common with a pattern or a format".to_owned();
                self.fault(place, "more than 10,000 values in one list", Some(hint));
            }
            Value::Array(values) => {
                let mut seen = BTreeSet::new();
                for (index, value) in values.iter().enumerate() {
                    if !seen.insert(crate::json::canonical(value)) {
                        self.fault(&format!("{place}/{index}"), "listed twice", None);
                    }
                }
            }
            other => self.wrong(place, "a list of values", other),
        }
    }

    fn types(&mut self, place: &str, value: &Value) {
        match value {
            Value::String(word) => self.type_word(place, word),
            Value::Array(words) if !words.is_empty() => {
                let mut seen = BTreeSet::new();
                for (index, word) in words.iter().enumerate() {
                    let place = format!("{place}/{index}");
                    match word {
                        Value::String(word) if !seen.insert(word) => self.fault(&place, "listed twice", None),
                        Value::String(word) => self.type_word(&place, word),
                        other => self.wrong(&place, "the name of a type", other),
                    }
                }
            }
            other => self.wrong(place, "the name of a type or a list of them", other),
        }
    }

    fn type_word(&mut self, place: &str, word: &str) {
        if keywords::TYPES.contains(&word) {
            return;
        }
        let hint = match keywords::type_for(word).or_else(|| near(word, keywords::TYPES.iter().copied())) {
            Some(known) => format!("did you mean {known}?"),
            None if word == "any" => "leave type out to allow any value".to_owned(),
            None => format!("known: {}", keywords::TYPES.join(", ")),
        };
        self.fault(place, "unknown type", Some(hint));
    }

    fn names(&mut self, place: &str, value: &Value) {
        let Value::Array(names) = value else {
            let hint = value.as_bool().map(|_| "list the required members beside properties".to_owned());
            let message = format!("expected a list of member names, got {}", article(keywords::type_of(value)));
            return self.fault(place, message, hint);
        };
        let mut seen = BTreeSet::new();
        for (index, name) in names.iter().enumerate() {
            let place = format!("{place}/{index}");
            match name {
                Value::String(name) if !seen.insert(name) => self.fault(&place, "listed twice", None),
                Value::String(_) => {}
                other => self.wrong(&place, "a member name", other),
            }
        }
    }

    /// A required member that is declared nowhere and forbidden could never be sent.
    fn undeclared_required(&mut self, id: NodeId, at: &str, keywords: &'a Map<String, Value>) {
        let Some(node) = self.graph.node(id) else { return };
        let allows = node.others != Others::Forbidden || keywords.contains_key("patternProperties");
        let Some(Value::Array(required)) = keywords.get("required") else { return };
        // The top level forbids what it does not declare when it says nothing; what its branches declare counts.
        let root = id == Graph::ROOT
            && node.others == Others::Unsaid
            && node.declares
            && !keywords.contains_key("patternProperties")
            && !keywords::APPLICATORS.iter().any(|name| keywords.contains_key(*name));
        if allows && !root || keywords.contains_key("unevaluatedProperties") {
            return;
        }
        let missing: Vec<(usize, Option<String>)> = required
            .iter()
            .enumerate()
            .filter_map(|(index, name)| Some((index, name.as_str()?)))
            .filter(|(_, name)| !node.members.contains_key(*name))
            .map(|(index, name)| (index, near(name, node.names.iter().map(String::as_str)).map(str::to_owned)))
            .collect();
        for (index, known) in missing {
            let hint = known.map(|known| format!("did you mean {known}?"));
            self.fault(&format!("{at}/required/{index}"), "no member of this name is declared", hint);
        }
    }

    fn pattern(&mut self, place: &str, text: &'a str) {
        match self.patterns.survey(place, text) {
            Ok(Matching::Linear) => {}
            Ok(Matching::Bounded) => {
                let message = "this pattern backtracks: a text that takes it too many steps is refused";
                self.warn(place, "bounded_pattern", message, None);
            }
            Err(fault) => self.fault(place, fault.message, Some(fault.hint)),
        }
    }

    fn format(&mut self, place: &str, value: &Value) {
        let Value::String(name) = value else { return self.wrong(place, "the name of a format", value) };
        if keywords::formats().any(|known| known == name) {
            return;
        }
        if self.author == Author::SomebodyElse {
            if !keywords::is_width(name) {
                self.warn(
                    place,
                    "unknown_format",
                    "a format that the gate cannot check, so nothing is held to it",
                    None,
                );
            }
            return;
        }
        let hint = match (keywords::instead_of_format(name), near(name, keywords::formats())) {
            (Some(instead), _) => instead.to_owned(),
            (None, Some(known)) => format!("did you mean {known}?"),
            (None, None) => format!("known: {}", keywords::formats().collect::<Vec<_>>().join(", ")),
        };
        self.fault(place, "unknown format", Some(hint));
    }

    fn draft_name(&mut self, place: &str, value: &Value) {
        if place != "/$schema" && value.as_str().and_then(keywords::draft_named) != Some(self.draft) {
            self.fault(place, "another draft than that of the document", Some("leave it out".to_owned()));
        }
    }
}

fn is_count(value: &Value) -> bool {
    value.as_u64().is_some() || value.as_f64().is_some_and(|n| n >= 0.0 && n.fract() == 0.0)
}

fn article(kind: &str) -> String {
    match kind {
        "null" => "null".to_owned(),
        "array" | "integer" | "object" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}
