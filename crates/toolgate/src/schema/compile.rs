//! From a document to a compiled schema.

use std::sync::OnceLock;

use jsonschema::{Draft, PatternOptions, ValidationError, ValidationOptions, Validator};
use serde_json::{Map, Value, json};

use super::graph::{Graph, Judges, Others};
use super::walk::Walk;
use super::{Author, Kind, Schema, SchemaFault, budget, inert, keywords};

/// Bytes of one compiled pattern.
const PATTERN_BYTES: usize = 1 << 20;

/// How an input schema forbids undeclared members at its top level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    /// It speaks of them itself.
    Said,
    /// A keyword is added.
    Keyword(&'static str),
    /// We look ourselves: the draft has no keyword for it, or the top level is used again further down, where the
    /// keyword would hold too (and double the cost of each level).
    Ours,
}

pub(super) fn compile(document: &Value, kind: Kind, author: Author) -> Result<Schema, Vec<SchemaFault>> {
    let document = match (document, kind) {
        (Value::Bool(true), Kind::Input) => Value::Object(Map::new()),
        (document, _) => document.clone(),
    };
    let draft = draft(&document).map_err(|fault| vec![fault])?;
    let mut faults = Vec::new();
    if kind == Kind::Input {
        faults.extend(not_of_an_object(&document));
    }
    let mut graph = match Walk::new(&document, draft, author).run() {
        Ok(graph) if faults.is_empty() => graph,
        Ok(_) => return Err(faults),
        Err(more) => {
            faults.extend(more);
            return Err(faults);
        }
    };
    let closing = match kind {
        Kind::Input => closing(&document, &graph, draft),
        Kind::Output => Closing::Said,
    };
    if let (Closing::Keyword("unevaluatedProperties"), Some(root)) = (closing, graph.node_mut(Graph::ROOT)) {
        root.unevaluated = true;
    }
    budget::check(&graph).map_err(|fault| vec![fault])?;
    let mut compiled = document.clone();
    if let (Kind::Input, Value::Object(top)) = (kind, &mut compiled) {
        // Before 2019-09 a `$ref` silences what stands beside it; a call's arguments are an object in any case.
        top.entry("type").or_insert_with(|| json!("object"));
        if let Closing::Keyword(keyword) = closing {
            top.insert(keyword.to_owned(), json!(false));
        }
    }
    let validator = engine(draft, author).build(&compiled).map_err(|error| vec![unbuilt(&error)])?;
    let judges = Judges::new(&graph, draft, author);
    let imported = author == Author::SomebodyElse;
    let closed = closing == Closing::Ours;
    Ok(Schema { document, draft, kind, validator, graph, judges, imported, closed, strict: OnceLock::new() })
}

/// The engine: offline, linear patterns, formats asserted.
pub(super) fn engine(draft: Draft, author: Author) -> ValidationOptions<'static> {
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    let mut options = jsonschema::options()
        .with_draft(draft)
        .offline()
        .with_pattern_options(patterns)
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

/// A matcher of names; `None` where the pattern does not compile.
pub(super) fn matcher(pattern: &str) -> Option<Validator> {
    engine(Draft::Draft202012, Author::Operator).build(&json!({ "pattern": pattern })).ok()
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

fn closing(document: &Value, graph: &Graph, draft: Draft) -> Closing {
    let (Some(top), Some(root)) = (document.as_object(), graph.node(Graph::ROOT)) else { return Closing::Said };
    if root.others != Others::Unsaid {
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
