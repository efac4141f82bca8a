//! From a document to a compiled schema.

use std::sync::OnceLock;

use jsonschema::{Draft, ValidationError, ValidationOptions};
use serde_json::{Map, Value, json};

use super::graph::{Graph, Judges, Others};
use super::pattern::Matching;
use super::walk::{Read, Walk};
use super::{Author, Kind, Schema, SchemaFault, Undeclared, budget, inert, keywords, lint};

/// How an input schema forbids undeclared members at its top level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// It speaks of them itself, or its contract does.
    Said,
    /// A keyword is added.
    Keyword(&'static str),
    /// We look ourselves: the draft has no keyword for it, or the top level is used again further down, where the
    /// keyword would hold too (and double the cost of each level).
    Ours,
}

pub(super) fn compile(document: &Value, kind: Kind, author: Author) -> Result<Schema, Vec<SchemaFault>> {
    let document = match (document, kind) {
        (Value::Bool(true), Kind::Input(_)) => Value::Object(Map::new()),
        (document, _) => document.clone(),
    };
    let draft = draft(&document).map_err(|fault| vec![fault])?;
    let mut faults = Vec::new();
    if kind.is_input() {
        faults.extend(not_of_an_object(&document));
    }
    let Read { mut graph, patterns, warnings } = match Walk::new(&document, draft, author).run() {
        Ok(read) if faults.is_empty() => read,
        Ok(_) => return Err(faults),
        Err(more) => {
            faults.extend(more);
            return Err(faults);
        }
    };
    let closing = match kind {
        Kind::Input(undeclared) => {
            faults.extend(contradicted(&document, &graph, undeclared, author));
            closing(&document, &graph, draft, undeclared)
        }
        Kind::Output => Closing::Said,
    };
    if !faults.is_empty() {
        return Err(faults);
    }
    if let (Closing::Keyword("unevaluatedProperties"), Some(root)) = (closing, graph.node_mut(Graph::ROOT)) {
        root.unevaluated = true;
    }
    let cost = budget::check(&graph).map_err(|fault| vec![fault])?;
    let matching = patterns.built()?;
    let mut compiled = document.clone();
    if let (Closing::Keyword(keyword), Value::Object(top)) = (closing, &mut compiled) {
        top.insert(keyword.to_owned(), json!(false));
    }
    let engine = Engine { draft, author, matching };
    let validator = engine.options().build(&compiled).map_err(|error| vec![unbuilt(&error)])?;
    let judges = Judges::new(&graph, engine);
    let imported = author == Author::SomebodyElse;
    let strict = OnceLock::new();
    let mut schema =
        Schema { document, draft, kind, validator, graph, judges, imported, closing, cost, warnings, strict };
    schema.warnings.extend(lint::of(&schema));
    Ok(schema)
}

/// The engine: offline, bounded patterns, formats asserted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Engine {
    pub(super) draft: Draft,
    pub(super) author: Author,
    pub(super) matching: Matching,
}

impl Engine {
    pub(super) fn options(self) -> ValidationOptions<'static> {
        let Self { draft, author, matching } = self;
        let mut options = matching
            .set(jsonschema::options())
            .with_draft(draft)
            .offline()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(author == Author::SomebodyElse);
        for name in keywords::formats() {
            if options.is_known_format(draft, name) {
                continue;
            }
            let newest = jsonschema::options()
                .with_draft(Draft::Draft202012)
                .should_validate_formats(true)
                .build(&json!({ "format": name }));
            if let Ok(newest) = newest {
                options = options.with_format(name, move |text: &str| newest.is_valid(&Value::String(text.to_owned())));
            }
        }
        options
    }
}

fn draft(document: &Value) -> Result<Draft, SchemaFault> {
    let fault = |message: &str, hint: &str| SchemaFault {
        at: "/$schema".to_owned(),
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
    };
    match document.get("$schema") {
        None => Ok(Draft::Draft202012),
        Some(Value::String(uri)) => keywords::draft_named(uri).ok_or_else(|| {
            fault(
                "unknown draft of JSON Schema",
                "known: https://json-schema.org/draft/2020-12/schema (the default), 2019-09, draft-07, draft-06, draft-04",
            )
        }),
        Some(_) => Err(fault("expected a string", "leave it out for 2020-12")),
    }
}

fn not_of_an_object(document: &Value) -> Option<SchemaFault> {
    let fault = |at: &str| SchemaFault {
        at: at.to_owned(),
        message: "the arguments of a call are an object".to_owned(),
        hint: Some("write \"type\": \"object\" and name the arguments under properties".to_owned()),
    };
    match document {
        Value::Bool(false) => return Some(fault("")),
        Value::Object(_) => {}
        // The walk says what it is instead.
        _ => return None,
    }
    match document.get("type") {
        Some(Value::String(word)) if keywords::TYPES.contains(&word.as_str()) && word != "object" => {
            Some(fault("/type"))
        }
        Some(Value::Array(words)) if !words.is_empty() && words.iter().all(|word| word != "object") => {
            Some(fault("/type"))
        }
        _ => None,
    }
}

/// What a schema says of undeclared members against what its contract says. One that somebody else wrote may allow them.
fn contradicted(document: &Value, graph: &Graph, undeclared: Undeclared, author: Author) -> Vec<SchemaFault> {
    const SAY: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];
    let fault = |at: String, message: &str, hint: &str| SchemaFault {
        at: inert::visible(&at),
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
    };
    match (undeclared, author) {
        (Undeclared::Refused, Author::SomebodyElse) => Vec::new(),
        (Undeclared::Allowed, _) => {
            let forbids = |name: &&str| document.get(*name) == Some(&Value::Bool(false));
            let message = "forbids undeclared members, and the contract says `open = true`";
            let said = SAY.into_iter().filter(forbids);
            said.map(|name| fault(format!("/{name}"), message, "leave one of the two out")).collect()
        }
        (Undeclared::Refused, Author::Operator) => {
            let spread = graph.spread(&[Graph::ROOT]);
            let places = spread.iter().filter_map(|id| {
                let at = &graph.node(*id)?.at;
                let schema = document.pointer(at)?;
                let allows = |name: &&str| schema.get(*name).is_some_and(allows_anything);
                Some(format!("{at}/{}", SAY.into_iter().find(allows)?))
            });
            let message = "allows undeclared members of the arguments, and the contract does not";
            let hint = "say `open = true` in the contract, or leave this out and declare the members";
            places.map(|at| fault(at, message, hint)).collect()
        }
    }
}

/// Whether a schema is one that says nothing.
fn allows_anything(schema: &Value) -> bool {
    match schema {
        Value::Bool(allowed) => *allowed,
        Value::Object(keywords) => keywords.keys().all(|name| keywords::describes(name)),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

fn closing(document: &Value, graph: &Graph, draft: Draft, undeclared: Undeclared) -> Closing {
    let (Some(top), Some(root)) = (document.as_object(), graph.node(Graph::ROOT)) else { return Closing::Said };
    if root.others != Others::Unsaid || undeclared == Undeclared::Allowed {
        return Closing::Said;
    }
    let branches = keywords::APPLICATORS.iter().any(|name| top.contains_key(*name));
    let used_again = graph.nodes.iter().flat_map(|node| &node.edges).any(|(_, to)| *to == Graph::ROOT);
    match (branches, used_again || draft <= Draft::Draft7) {
        (false, _) if !used_again => Closing::Keyword("additionalProperties"),
        (true, false) => Closing::Keyword("unevaluatedProperties"),
        _ => Closing::Ours,
    }
}

/// What our own walk let pass and the engine does not: said in our words.
fn unbuilt(error: &ValidationError<'_>) -> SchemaFault {
    let at = inert::visible(error.instance_path().as_str());
    let keyword = at.rsplit('/').find(|segment| !segment.is_empty() && segment.parse::<usize>().is_err());
    SchemaFault {
        message: match keyword {
            Some(keyword) => format!("the engine does not accept this value of {keyword}"),
            None => "the engine does not accept this schema".to_owned(),
        },
        hint: None,
        at,
    }
}
