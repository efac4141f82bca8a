//! What of a schema of arguments holds and is probably not meant.

use jsonschema::Draft;
use serde_json::Value;

use super::graph::NodeId;
use super::inert::visible;
use super::keywords::{self, Applies};
use super::{Problem, Schema};

const MAX_WARNINGS: usize = 50;
/// The last word of a name that asks which of some kinds a matter is of.
const SORTS: &[&str] = &["reason", "category", "cause", "topic", "intent", "classification"];
/// What a model can choose where none of the others is true.
const WAYS_OUT: &[&str] = &[
    "other",
    "others",
    "unknown",
    "none",
    "unspecified",
    "undefined",
    "misc",
    "miscellaneous",
    "general",
    "na",
    "any",
    "unclear",
    "notapplicable",
    "notsure",
    "default",
];

/// The warnings of a schema that was compiled; those of single keywords were found when it was read.
pub(super) fn of(schema: &Schema) -> Vec<Problem> {
    if !schema.kind.is_input() {
        return Vec::new();
    }
    let mut found: Vec<Problem> = older_draft(schema).into_iter().collect();
    for (parent, node) in schema.graph.nodes.iter().enumerate() {
        for (name, member) in node.names.iter().filter_map(|name| Some((name, *node.members.get(name)?))) {
            if found.len() >= MAX_WARNINGS {
                return found;
            }
            found.extend(untyped(schema, member));
            found.extend(no_way_out(schema, NodeId(parent), name, member));
        }
    }
    found
}

fn problem(at: &str, code: &str, message: &str, hint: &str) -> Problem {
    Problem { at: visible(at), code: code.to_owned(), message: message.to_owned(), hint: Some(hint.to_owned()) }
}

/// The document says that it is of another draft than the one that everybody writes today.
fn older_draft(schema: &Schema) -> Option<Problem> {
    let draft = schema.document.get("$schema")?.as_str().and_then(keywords::draft_named)?;
    (!schema.imported && draft != Draft::Draft202012).then(|| {
        problem(
            "/$schema",
            "older_draft",
            "an older draft of JSON Schema, and values are held to it as that draft has it",
            "leave $schema out for 2020-12, if the keywords mean the same there",
        )
    })
}

/// A parameter that takes a value of any type, and does not say so by `true`.
fn untyped(schema: &Schema, member: NodeId) -> Option<Problem> {
    let silent = schema.written(member).is_some_and(Value::is_object) && !says_type(schema, member);
    let at = silent.then(|| schema.graph.node(member))??.at.as_str();
    Some(problem(
        at,
        "untyped_parameter",
        "no type is said, so a value of any type is taken",
        "write \"type\": ..., or true in place of the schema where any value is meant",
    ))
}

fn says_type(schema: &Schema, id: NodeId) -> bool {
    let own = |name: &str| schema.written(id).is_some_and(|written| written.get(name).is_some());
    if ["type", "enum", "const"].into_iter().any(own) {
        return true;
    }
    let Some(node) = schema.graph.node(id) else { return false };
    let mut below = node.edges.iter().filter(|(applies, _)| *applies == Applies::All);
    let every = |union| {
        let branches = schema.graph.branches(id, union);
        !branches.is_empty() && branches.iter().all(|branch| says_type(schema, *branch) || denies(schema, *branch))
    };
    below.any(|(_, to)| says_type(schema, *to)) || every(Applies::Any) || every(Applies::One)
}

fn denies(schema: &Schema, id: NodeId) -> bool {
    schema.written(id) == Some(&Value::Bool(false))
}

/// A model that must choose one of some reasons, and has none, makes one up.
fn no_way_out(schema: &Schema, parent: NodeId, name: &str, member: NodeId) -> Option<Problem> {
    let last = name.rsplit(['_', '-', '.']).next()?;
    let sorts = SORTS.iter().any(|word| last.to_lowercase().ends_with(word));
    if schema.imported || !sorts || !schema.graph.requires(&schema.document, parent, name) {
        return None;
    }
    let values = schema.written(member)?.get("enum")?.as_array()?;
    let leads_out = |value: &Value| match value {
        Value::Null => true,
        Value::String(word) => {
            let plain: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
            WAYS_OUT.contains(&plain.to_lowercase().as_str())
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    };
    if values.len() < 2 || values.iter().any(leads_out) {
        return None;
    }
    let at = schema.graph.node(member)?.at.as_str();
    Some(problem(
        &format!("{at}/enum"),
        "enum_without_way_out",
        "a model must choose one of these, even where none is true",
        "add a value such as other, or do not require the member",
    ))
}
