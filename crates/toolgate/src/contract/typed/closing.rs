//! Undeclared members, at every depth. serde drops them, or refuses them, and a schema that does not speak of them lets
//! them pass: a model would believe that they were heard. So every object of the arguments is closed, unless the type
//! says that it takes other members.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// How a subschema stands to the object that it describes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// It says all that is declared of it.
    Whole,
    /// A schema around it declares members of the same object, and alone can tell which are known.
    Shared,
}

/// The references to definitions that describe a part of an object.
type SharedRefs = BTreeSet<String>;

const DEFINITIONS: &str = "$defs";

/// Closes every object.
pub(super) fn close(schema: &mut Value) {
    let Value::Object(root) = schema else { return };
    let mut definitions = match root.remove(DEFINITIONS) {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    let mut shared = SharedRefs::new();
    loop {
        let before = shared.len();
        survey(schema, Part::of("#", &shared), &mut shared);
        for (name, definition) in &mut definitions {
            survey(definition, Part::of(&reference(name), &shared), &mut shared);
        }
        if shared.len() == before {
            break;
        }
    }
    close_one(schema, Part::of("#", &shared), &shared);
    for (name, definition) in &mut definitions {
        close_one(definition, Part::of(&reference(name), &shared), &shared);
    }
    if let Value::Object(root) = schema
        && !definitions.is_empty()
    {
        root.insert(DEFINITIONS.to_owned(), Value::Object(definitions));
    }
}

fn reference(definition: &str) -> String {
    format!("#/{DEFINITIONS}/{}", definition.replace('~', "~0").replace('/', "~1"))
}

/// Finds the definitions that describe a part of an object.
fn survey(schema: &mut Value, part: Part, shared: &mut SharedRefs) {
    let Value::Object(node) = schema else { return };
    let branches = part.of_branches(node);
    if let (Part::Shared, Some(Value::String(reference))) = (branches, node.get("$ref")) {
        shared.insert(reference.clone());
    }
    subschemas(node, branches, &mut |schema, part| survey(schema, part, shared));
}

fn close_one(schema: &mut Value, part: Part, shared: &SharedRefs) {
    let Value::Object(node) = schema else { return };
    let branches = part.of_branches(node);
    subschemas(node, branches, &mut |schema, part| close_one(schema, part, shared));
    if part == Part::Shared || speaks_of_others(node) {
        return;
    }
    let refers_to_part = node.get("$ref").and_then(Value::as_str).is_some_and(|name| shared.contains(name));
    if refers_to_part || (branches == Part::Shared && has_branches(node)) {
        node.insert("unevaluatedProperties".to_owned(), Value::Bool(false));
    } else if node.contains_key("properties") || is_empty_struct(node) {
        node.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        node.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
}

/// Visits the schemas inside of one.
fn subschemas(node: &mut Map<String, Value>, branches: Part, visit: &mut dyn FnMut(&mut Value, Part)) {
    for (keyword, value) in node {
        let part = match keyword.as_str() {
            "anyOf" | "oneOf" | "allOf" => branches,
            // A test says nothing of what is known.
            "not" | "if" | "then" | "else" => Part::Shared,
            _ => Part::Whole,
        };
        match (keyword.as_str(), value) {
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(list)) => {
                list.iter_mut().for_each(|schema| visit(schema, part));
            }
            ("properties" | "patternProperties", Value::Object(named)) => {
                named.values_mut().for_each(|schema| visit(schema, part));
            }
            (
                "not"
                | "if"
                | "then"
                | "else"
                | "items"
                | "contains"
                | "additionalProperties"
                | "unevaluatedProperties",
                schema,
            ) => visit(schema, part),
            _ => {}
        }
    }
}

impl Part {
    fn of(reference: &str, shared: &SharedRefs) -> Self {
        if shared.contains(reference) { Self::Shared } else { Self::Whole }
    }

    /// How the branches of a schema stand to its object.
    fn of_branches(self, node: &Map<String, Value>) -> Self {
        let declares = node.contains_key("properties") || node.contains_key("allOf") || speaks_of_others(node);
        if declares { Self::Shared } else { self }
    }
}

fn speaks_of_others(node: &Map<String, Value>) -> bool {
    node.contains_key("additionalProperties") || node.contains_key("unevaluatedProperties")
}

fn has_branches(node: &Map<String, Value>) -> bool {
    ["$ref", "anyOf", "oneOf", "allOf", "if"].iter().any(|keyword| node.contains_key(*keyword))
}

/// A struct without fields is an object of which nothing more is said; a map says what its values are.
fn is_empty_struct(node: &Map<String, Value>) -> bool {
    node.get("type").is_some_and(|word| word == "object")
        && !has_branches(node)
        && !node.contains_key("patternProperties")
}
