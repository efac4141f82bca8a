//! Reads a schema document once: every fault with its place, and the graph that all else works on.

use std::collections::{BTreeSet, HashMap, VecDeque};

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::graph::{Graph, Matcher, Node, NodeId, Others, escaped};
use super::hints::near;
use super::keywords::{self, Applies, Shape};
use super::pattern::Patterns;
use super::{Author, SchemaFault, compile};

const MAX_SCHEMAS: usize = 10_000;
/// JSON arrays and objects inside one another.
const MAX_NESTING: usize = 64;
const MAX_FAULTS: usize = 200;

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
}

struct Reference {
    from: NodeId,
    at: String,
    to: String,
    dynamic: bool,
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
            patterns: Patterns::default(),
            faults: Vec::new(),
        }
    }

    /// The graph of the document, or all of its faults.
    pub(super) fn run(mut self) -> Result<Graph, Vec<SchemaFault>> {
        self.schema(String::new(), self.document, 0);
        self.follow();
        if self.faults.is_empty() {
            return Ok(self.graph);
        }
        self.faults.sort_by(|a, b| a.at.cmp(&b.at));
        Err(self.faults)
    }

    fn fault(&mut self, at: &str, message: impl Into<String>, hint: Option<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(SchemaFault { at: super::inert::visible(at), message: message.into(), hint });
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
        self.graph.nodes.push(Node { at: at.clone(), ..Node::default() });
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
            let Some(shape) = keywords::shape(name, self.draft) else {
                self.unknown(&place, name);
                continue;
            };
            if silences && !keywords::SILENT.contains(&name.as_str()) {
                self.fault(
                    &place,
                    "ignored beside $ref in this draft",
                    Some("put the reference and this keyword under allOf".to_owned()),
                );
                continue;
            }
            self.keyword(id, &place, name, shape, value, nesting + 1);
        }
        let draft = self.draft;
        let said = |name: &str| keywords.get(name).filter(|_| keywords::shape(name, draft).is_some());
        let shut = |name| said(name).map(|v| if v == false { Others::Forbidden } else { Others::Allowed });
        if let Some(node) = self.graph.node_mut(id) {
            node.declares = keywords.contains_key("properties");
            node.others = shut("additionalProperties").or_else(|| shut("unevaluatedProperties")).unwrap_or_default();
            node.unevaluated = said("unevaluatedProperties").is_some() || said("unevaluatedItems").is_some();
        }
        self.undeclared_required(id, at, keywords);
    }

    fn extension(&mut self, id: NodeId, place: &str, name: &str, value: &Value) {
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

    fn unknown(&mut self, place: &str, name: &str) {
        if self.author == Author::SomebodyElse {
            return;
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
                // One that does not compile has its fault already.
                Applies::Pattern => node.patterns.extend(compile::matcher(name).map(|fits| (Matcher(fits), child))),
                _ => {}
            }
        }
    }

    fn values(&mut self, place: &str, value: &Value) {
        match value {
            Value::Array(values) if values.is_empty() => {
                self.fault(place, "no value is allowed by an empty list", Some("list the allowed values".to_owned()));
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

    fn pattern(&mut self, place: &str, text: &str) {
        if let Err(fault) = self.patterns.check(text) {
            self.fault(place, fault.message, Some(fault.hint));
        }
    }

    fn format(&mut self, place: &str, value: &Value) {
        let Value::String(name) = value else { return self.wrong(place, "the name of a format", value) };
        if self.author == Author::SomebodyElse || keywords::formats().any(|known| known == name) {
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

    fn identifier(&mut self, id: NodeId, place: &str, value: &'a Value) {
        match value {
            Value::String(text) if self.draft <= Draft::Draft7 && text.starts_with('#') => {
                self.name(id, place, text.trim_start_matches('#'));
            }
            Value::String(text) if id == Graph::ROOT && !text.contains('#') => {}
            Value::String(_) => self.fault(
                place,
                "a schema inside the document has no address of its own",
                Some("leave it out and refer by #/$defs/...".to_owned()),
            ),
            other => self.wrong(place, "a string", other),
        }
    }

    fn anchor(&mut self, id: NodeId, place: &str, dynamic: bool, value: &Value) {
        match value {
            Value::String(name) if dynamic => {
                self.dynamic.entry(name.clone()).or_default().push(id);
                self.name(id, place, name);
            }
            Value::String(name) => self.name(id, place, name),
            other => self.wrong(place, "a name", other),
        }
    }

    fn name(&mut self, id: NodeId, place: &str, name: &str) {
        if self.anchors.insert(name.to_owned(), id).is_some_and(|before| before != id) {
            self.fault(place, "this anchor stands in the document twice", None);
        }
    }

    fn reference(&mut self, from: NodeId, place: &str, shape: Shape, value: &Value) {
        let Value::String(to) = value else { return self.wrong(place, "a reference such as #/$defs/name", value) };
        let Some(inside) = to.strip_prefix('#') else {
            let hint = "copy the schema under $defs and refer to #/$defs/...";
            return self.fault(place, "refers to outside of this document", Some(hint.to_owned()));
        };
        if shape == Shape::RootReference && !inside.is_empty() {
            return self.fault(place, "may only be #", Some("use $ref".to_owned()));
        }
        let dynamic = shape == Shape::AnchorReference;
        self.references.push_back(Reference { from, at: place.to_owned(), to: decoded(inside), dynamic });
    }

    /// Follows every reference: pointers first, for what they lead to may hold more references and anchors.
    fn follow(&mut self) {
        let mut by_name = Vec::new();
        while let Some(reference) = self.references.pop_front() {
            if !reference.to.is_empty() && !reference.to.starts_with('/') {
                by_name.push(reference);
                continue;
            }
            match self.document.pointer(&reference.to) {
                Some(target @ (Value::Object(_) | Value::Bool(_))) => {
                    let nesting = reference.to.matches('/').count();
                    if let Some(to) = self.schema(reference.to, target, nesting) {
                        self.link(reference.from, Applies::All, to);
                    }
                }
                Some(other) => {
                    self.fault(
                        &reference.at,
                        format!("refers to {}, not to a schema", article(keywords::type_of(other))),
                        None,
                    );
                }
                None => {
                    let hint = self.definition_like(&reference.to);
                    self.fault(&reference.at, "refers to nothing in this document", hint);
                }
            }
        }
        for reference in by_name {
            let targets = match self.anchors.get(&reference.to) {
                Some(_) if reference.dynamic && self.dynamic.contains_key(&reference.to) => {
                    self.dynamic.get(&reference.to).cloned().unwrap_or_default()
                }
                found => found.copied().into_iter().collect(),
            };
            if targets.is_empty() {
                let hint = near(&reference.to, self.anchors.keys().map(String::as_str));
                let hint = hint.map(|known| format!("did you mean #{known}?"));
                self.fault(&reference.at, "refers to an anchor that is nowhere in this document", hint);
            }
            for to in targets {
                self.link(reference.from, Applies::All, to);
            }
        }
    }

    fn definition_like(&self, pointer: &str) -> Option<String> {
        let wanted = pointer.rsplit('/').next()?;
        let known = ["$defs", "definitions"]
            .iter()
            .filter_map(|holder| Some((*holder, self.document.get(holder)?.as_object()?)));
        let names = known.flat_map(|(holder, map)| map.keys().map(move |name| (holder, name.as_str())));
        let names: Vec<(&str, &str)> = names.collect();
        let like = near(wanted, names.iter().map(|(_, name)| *name))?;
        let (holder, _) = names.iter().find(|(_, name)| *name == like)?;
        Some(format!("did you mean #/{holder}/{like}?"))
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

/// The fragment of a URI without its percent escapes.
pub(super) fn decoded(fragment: &str) -> String {
    let mut bytes = fragment.bytes();
    let mut out = Vec::with_capacity(fragment.len());
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        let code = match (byte, ahead.next(), ahead.next()) {
            (b'%', Some(high), Some(low)) => {
                let digit = |b: u8| char::from(b).to_digit(16);
                digit(high).zip(digit(low)).and_then(|(h, l)| u8::try_from(h * 16 + l).ok())
            }
            _ => None,
        };
        match code {
            Some(code) => {
                out.push(code);
                bytes = ahead;
            }
            None => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
