//! A contract's schema as a provider takes it: what its subset does not have is left out.
//!
//! What is left out may only ever make it weaker. So a keyword whose meaning hangs on others goes with them: `oneOf`
//! becomes `anyOf`, for each branch may have become weaker, and `additionalProperties` goes where a member that it would
//! otherwise apply to cannot be named. `not`, `if` and the like, where weaker inside is stricter outside, are never shown.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::merge::merge;
use super::subset::{References, Subset, TEXTS};
use super::words::Words;
use crate::schema::{Declared, Schema, types_of};

/// Schemas in one definition; after so many, anything is shown. References in their place can double with each level.
const MOST_SCHEMAS: usize = 3_000;

/// What is named when a schema refers to the top level.
const TOP: &str = "arguments";

/// Keywords that apply schemas to the same value, whose members then count as evaluated.
const IN_PLACE: [&str; 6] = ["$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"];

/// Keywords that are shown as they are, or told in words.
const BY_THEMSELVES: [&str; 14] = [
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "format",
];

pub(super) fn weaker(schema: &Schema, subset: &'static Subset) -> Value {
    let mut walk =
        Walk { schema, subset, left: MOST_SCHEMAS, within: Vec::new(), named: BTreeMap::new(), open: Vec::new() };
    let mut top = walk.top();
    let definitions = walk.definitions();
    if !definitions.is_empty() {
        top.insert("$defs".to_owned(), Value::Object(definitions));
    }
    Value::Object(top)
}

struct Walk<'s> {
    schema: &'s Schema,
    subset: &'static Subset,
    left: usize,
    /// The places in the document that are being shown, for references in their place.
    within: Vec<String>,
    /// The names of the places that are referred to, and those of them that are not shown yet.
    named: BTreeMap<String, String>,
    open: Vec<String>,
}

/// Members as they are shown.
struct Members<'n> {
    shown: Map<String, Value>,
    /// The names of those that cannot be.
    unnamed: Vec<&'n str>,
}

impl<'s> Walk<'s> {
    fn top(&mut self) -> Map<String, Value> {
        let top = self.schema.top();
        let (mut shown, mut words) = (Map::new(), Words::default());
        shown.insert("type".to_owned(), json!("object"));
        let may = |keyword: &str| self.subset.top.contains(&keyword);
        for text in TEXTS.iter().filter(|text| may(text)) {
            if let Some(value) = self.schema.document().get(*text) {
                shown.insert((*text).to_owned(), value.clone());
            }
        }
        let (speaks, describes) = (may("additionalProperties"), may("description"));
        let (named, unnamed): (Vec<&Declared<'_>>, Vec<&Declared<'_>>) =
            top.members.iter().partition(|member| self.subset.members.takes(&member.name));
        let members: Map<String, Value> =
            named.iter().map(|member| (member.name.clone(), Value::Object(self.declared(member)))).collect();
        shown.insert("properties".to_owned(), Value::Object(members));
        let required: Vec<&str> =
            named.iter().filter(|member| member.required).map(|member| member.name.as_str()).collect();
        if !required.is_empty() {
            shown.insert("required".to_owned(), json!(required));
        }
        if speaks && unnamed.is_empty() {
            if top.closed {
                shown.insert("additionalProperties".to_owned(), json!(false));
            } else if let Some(others) = top.others {
                let others = self.others(others);
                shown.insert("additionalProperties".to_owned(), others);
            }
        }
        if describes {
            words.members(&unnamed.iter().map(|member| member.name.as_str()).collect::<Vec<_>>());
            words.told_in(&mut shown);
        }
        shown
    }

    /// An argument: what one of its schemas says, where one of them holds; else only what they tell of it.
    fn declared(&mut self, member: &Declared<'_>) -> Map<String, Value> {
        let mut schemas: Vec<Value> = Vec::new();
        for schema in &member.schemas {
            let shown = Value::Object(self.schema(schema));
            if !schemas.contains(&shown) {
                schemas.push(shown);
            }
        }
        let told = |schemas: &[Value]| -> Map<String, Value> {
            let description = schemas.iter().find_map(|schema| schema.get("description"));
            description.map(|text| ("description".to_owned(), text.clone())).into_iter().collect()
        };
        match schemas.as_slice() {
            _ if !member.held => told(&schemas),
            [Value::Object(schema)] => schema.clone(),
            several if several.iter().any(is_anything) => told(several),
            several => Map::from_iter([("anyOf".to_owned(), json!(several))]),
        }
    }

    fn schema(&mut self, schema: &Value) -> Map<String, Value> {
        let Value::Object(written) = schema else { return Map::new() };
        if self.left == 0 {
            return Map::new();
        }
        self.left -= 1;
        let node = self.schema.modern(written);
        let (mut shown, mut words) = (Map::new(), Words::default());
        for (keyword, value) in &node {
            match keyword.as_str() {
                word if TEXTS.contains(&word) && self.subset.takes(word) => {
                    shown.insert(keyword.clone(), value.clone());
                }
                word if BY_THEMSELVES.contains(&word) => {
                    let format =
                        word != "format" || value.as_str().is_some_and(|format| self.subset.takes_format(format));
                    if self.subset.takes(word) && format {
                        shown.insert(keyword.clone(), value.clone());
                    } else {
                        words.keyword(word, value);
                    }
                }
                "type" => {
                    let one = value.as_array().filter(|types| types.len() == 1).and_then(|types| types.first());
                    shown.insert(keyword.clone(), one.unwrap_or(value).clone());
                }
                _ => {}
            }
        }
        self.values(&node, &mut shown, &mut words);
        self.object(&node, &mut shown, &mut words);
        self.array(&node, &mut shown);
        self.union(&node, &mut shown);
        words.told_in(&mut shown);
        if let Some(Value::String(reference)) = node.get("$ref") {
            self.reference(reference, &mut shown);
        }
        for schema in node.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            let schema = self.schema(schema);
            merge(&mut shown, schema);
        }
        shown
    }

    /// `enum` and `const`, with the types of their values.
    fn values(&self, node: &Map<String, Value>, shown: &mut Map<String, Value>, words: &mut Words) {
        let (keyword, values) = match (node.get("const"), node.get("enum").and_then(Value::as_array)) {
            (Some(value), _) => ("const", std::slice::from_ref(value)),
            (None, Some(values)) => ("enum", values.as_slice()),
            (None, None) => return,
        };
        let is_text = |value: &Value| value.is_null() || value.as_str().is_some_and(|text| !text.is_empty());
        if self.subset.only_texts_listed && !values.iter().all(is_text) {
            words.keyword(keyword, node.get(keyword).unwrap_or(&Value::Null));
        } else if keyword == "const" && self.subset.takes("const") {
            shown.insert(keyword.to_owned(), json!(values.first()));
        } else {
            shown.insert("enum".to_owned(), json!(values));
        }
        let types = types_of(values);
        shown.entry("type").or_insert_with(|| match types.as_slice() {
            [one] => json!(one),
            several => json!(several),
        });
    }

    fn object(&mut self, node: &Map<String, Value>, shown: &mut Map<String, Value>, words: &mut Words) {
        let mut members = Members { shown: Map::new(), unnamed: Vec::new() };
        if let Some(Value::Object(schemas)) = node.get("properties") {
            for (name, schema) in schemas {
                if self.subset.members.takes(name) {
                    members.shown.insert(name.clone(), Value::Object(self.schema(schema)));
                } else {
                    members.unnamed.push(name);
                }
            }
            shown.insert("properties".to_owned(), Value::Object(members.shown));
        }
        if let Some(Value::Array(names)) = node.get("required") {
            let named = |name: &&Value| name.as_str().is_some_and(|name| self.subset.members.takes(name));
            let names: Vec<&Value> = names.iter().filter(named).collect();
            if !names.is_empty() {
                shown.insert("required".to_owned(), json!(names));
            }
        }
        words.members(&members.unnamed);
        let all_named = members.unnamed.is_empty() && !node.contains_key("patternProperties");
        if !self.subset.takes("additionalProperties") || !all_named {
            return;
        }
        let alone = !IN_PLACE.iter().any(|keyword| node.contains_key(*keyword));
        match (node.get("additionalProperties"), node.get("unevaluatedProperties")) {
            (Some(others), _) => {
                let others = self.others(others);
                shown.insert("additionalProperties".to_owned(), others);
            }
            (None, Some(Value::Bool(false))) if alone => {
                shown.insert("additionalProperties".to_owned(), json!(false));
            }
            (None, _) => {}
        }
    }

    /// What members without a name of their own must be.
    fn others(&mut self, schema: &Value) -> Value {
        match schema {
            Value::Bool(allowed) => json!(allowed),
            schema => Value::Object(self.schema(schema)),
        }
    }

    /// The items of an array; each array is shown with some, which several providers demand.
    fn array(&mut self, node: &Map<String, Value>, shown: &mut Map<String, Value>) {
        let (first, rest) = (node.get("prefixItems").and_then(Value::as_array), node.get("items"));
        let is_array = shown.get("type").is_some_and(|types| {
            types == "array" || types.as_array().is_some_and(|types| types.contains(&json!("array")))
        });
        if first.is_none() && rest.is_none() && !is_array {
            return;
        }
        let first: Vec<Value> = first.into_iter().flatten().map(|schema| Value::Object(self.schema(schema))).collect();
        let ends = rest.is_some_and(|rest| rest == false);
        let rest = rest.filter(|_| !ends).map(|rest| Value::Object(self.schema(rest)));
        if ends && self.subset.takes("maxItems") {
            let most = shown.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX);
            let positions = u64::try_from(first.len()).unwrap_or(u64::MAX);
            shown.insert("maxItems".to_owned(), json!(most.min(positions)));
        }
        let anything = || json!({});
        if first.is_empty() || self.subset.takes("prefixItems") {
            shown.insert("items".to_owned(), rest.unwrap_or_else(anything));
            if !first.is_empty() {
                shown.insert("prefixItems".to_owned(), Value::Array(first));
            }
            return;
        }
        // Without positions, an item is what any of them is.
        let mut any: Vec<Value> = Vec::new();
        for schema in first.into_iter().chain(if ends { None } else { Some(rest.unwrap_or_else(anything)) }) {
            if !any.contains(&schema) {
                any.push(schema);
            }
        }
        let items = match any.as_slice() {
            [one] => one.clone(),
            several if several.iter().any(is_anything) => anything(),
            several => json!({ "anyOf": several }),
        };
        shown.insert("items".to_owned(), items);
    }

    fn union(&mut self, node: &Map<String, Value>, shown: &mut Map<String, Value>) {
        let union = ["anyOf", "oneOf"].iter().find_map(|keyword| node.get(*keyword)?.as_array());
        let branches = union.into_iter().flatten().filter(|branch| *branch != false);
        let branches: Vec<Value> = branches.map(|branch| Value::Object(self.schema(branch))).collect();
        if !branches.is_empty() && !branches.iter().any(is_anything) {
            shown.insert("anyOf".to_owned(), Value::Array(branches));
        }
    }

    fn reference(&mut self, reference: &str, shown: &mut Map<String, Value>) {
        let schema = self.schema;
        let Some((at, referred)) = schema.referred(reference) else { return };
        match self.subset.references {
            References::Defined => {
                let name = self.name(&at);
                shown.insert("$ref".to_owned(), json!(format!("#/$defs/{name}")));
            }
            References::InPlace if self.within.contains(&at) => {}
            References::InPlace => {
                self.within.push(at);
                let referred = self.schema(referred);
                self.within.pop();
                merge(shown, referred);
            }
        }
    }

    /// The name under which a place of the document is defined.
    fn name(&mut self, at: &str) -> String {
        if let Some(name) = self.named.get(at) {
            return name.clone();
        }
        let last = at.rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or(TOP);
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
        let base: String = last.chars().map(plain).collect();
        let taken = |name: &String| self.named.values().any(|known| known == name);
        let numbered = (2_usize..).map(|number| format!("{base}_{number}"));
        let name = std::iter::once(base.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(base);
        self.named.insert(at.to_owned(), name.clone());
        self.open.push(at.to_owned());
        name
    }

    /// All that is referred to, by its name.
    fn definitions(&mut self) -> Map<String, Value> {
        let (schema, mut definitions) = (self.schema, Map::new());
        while let Some(at) = self.open.pop() {
            let (Some(referred), Some(name)) = (schema.document().pointer(&at), self.named.get(&at).cloned()) else {
                continue;
            };
            definitions.insert(name, Value::Object(self.schema(referred)));
        }
        definitions
    }
}

/// Whether a shown schema bounds nothing.
fn is_anything(schema: &Value) -> bool {
    schema.as_object().is_none_or(|schema| schema.keys().all(|keyword| TEXTS.contains(&keyword.as_str())))
}
