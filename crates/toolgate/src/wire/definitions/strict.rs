//! The strict form of a schema, as OpenAI's strict mode writes it.

use serde_json::{Map, Value, json};

use super::words::Words;
use crate::schema::Schema;
use crate::schema::strict::{Form, Members, PartId, Strict};

/// The schema in strict mode, if it can be said so.
pub(super) fn document(schema: &Schema) -> Option<Value> {
    let strict = schema.strict()?;
    let mut writing = Writing { schema, strict, defined: Vec::new() };
    let mut top = Strict::ROOT;
    // The top level is no reference.
    while let Form::Same(to) = &strict.part(top)?.form {
        top = *to;
    }
    let mut document = writing.part(top);
    let mut definitions = Map::new();
    let mut next = 0;
    while let Some(part) = writing.defined.get(next).copied() {
        definitions.insert(name(next), Value::Object(writing.part(part)));
        next += 1;
    }
    if !definitions.is_empty() {
        document.insert("$defs".to_owned(), Value::Object(definitions));
    }
    Some(Value::Object(document))
}

struct Writing<'s> {
    schema: &'s Schema,
    strict: &'s Strict,
    /// What is referred to, each once.
    defined: Vec<PartId>,
}

impl Writing<'_> {
    fn part(&mut self, id: PartId) -> Map<String, Value> {
        let mut written = self.form(id);
        let said = self.strict.part(id).and_then(|part| self.schema.said_by(part));
        if let Some(said) = said {
            if written.contains_key("$ref") && said.contains_key("description") {
                written = Map::from_iter([("anyOf".to_owned(), json!([written]))]);
            }
            if let Some(description) = said.get("description") {
                written.insert("description".to_owned(), description.clone());
            }
            let mut words = Words::default();
            for (keyword, value) in self.schema.modern(said) {
                if !["const", "enum"].contains(&keyword.as_str()) {
                    words.keyword(&keyword, &value);
                }
            }
            words.told_in(&mut written);
        }
        written
    }

    fn form(&mut self, id: PartId) -> Map<String, Value> {
        let strict = self.strict;
        match strict.part(id).map(|part| &part.form) {
            Some(Form::Scalar { types, values }) => scalar(types, values.as_deref()),
            Some(Form::Object(members)) => self.object(members),
            Some(Form::Array(items)) => {
                let items = self.part(*items);
                Map::from_iter([("type".to_owned(), json!("array")), ("items".to_owned(), Value::Object(items))])
            }
            Some(Form::Union(branches)) => {
                let branches: Vec<Value> = branches
                    .iter()
                    .flat_map(|branch| {
                        let same = strict.is_one_place(id, *branch);
                        let branch = if same { self.form(*branch) } else { self.part(*branch) };
                        flat(branch)
                    })
                    .collect();
                Map::from_iter([("anyOf".to_owned(), Value::Array(branches))])
            }
            Some(Form::Same(to)) => {
                let known = self.defined.iter().position(|defined| defined == to);
                let at = known.unwrap_or_else(|| {
                    self.defined.push(*to);
                    self.defined.len() - 1
                });
                Map::from_iter([("$ref".to_owned(), json!(format!("#/$defs/{}", name(at))))])
            }
            None => Map::new(),
        }
    }

    fn object(&mut self, members: &Members) -> Map<String, Value> {
        let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
        let properties: Map<String, Value> = members
            .iter()
            .map(|member| {
                let mut written = self.part(member.part);
                if !member.required {
                    allow_null(&mut written);
                }
                (member.name.clone(), Value::Object(written))
            })
            .collect();
        Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), Value::Object(properties)),
            ("required".to_owned(), json!(names)),
            ("additionalProperties".to_owned(), json!(false)),
        ])
    }
}

fn name(index: usize) -> String {
    format!("part_{}", index + 1)
}

/// Values of some types: one type, perhaps with `null`, or a union.
fn scalar(types: &[&'static str], values: Option<&[Value]>) -> Map<String, Value> {
    let wide = types.contains(&"number");
    let mut kinds: Vec<(&str, Vec<Value>)> = Vec::new();
    for kind in types.iter().copied().filter(|kind| !(wide && *kind == "integer")) {
        let own = values.into_iter().flatten().filter(|value| is_of(value, kind)).cloned().collect::<Vec<_>>();
        if values.is_none() || !own.is_empty() {
            kinds.push((kind, own));
        }
    }
    let written = |(kind, own): &(&str, Vec<Value>)| {
        let mut written = Map::from_iter([("type".to_owned(), json!(kind))]);
        if values.is_some() && *kind != "null" {
            written.insert("enum".to_owned(), json!(own));
        }
        written
    };
    let null = kinds.iter().any(|(kind, _)| *kind == "null");
    let others: Vec<Map<String, Value>> = kinds.iter().filter(|(kind, _)| *kind != "null").map(written).collect();
    match (others.as_slice(), null) {
        ([], _) => Map::from_iter([("type".to_owned(), json!("null"))]),
        ([one], false) => one.clone(),
        ([one], true) => {
            let mut one = one.clone();
            allow_null(&mut one);
            one
        }
        (several, null) => {
            let null = null.then(|| json!({ "type": "null" }));
            let branches: Vec<Value> = several.iter().cloned().map(Value::Object).chain(null).collect();
            Map::from_iter([("anyOf".to_owned(), Value::Array(branches))])
        }
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match value {
        Value::Number(number) if kind == "integer" => {
            number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        Value::Number(_) => kind == "number",
        other => crate::schema::type_of(other) == kind,
    }
}

/// The branches of a union that says nothing else, or the schema itself.
fn flat(mut schema: Map<String, Value>) -> Vec<Value> {
    match schema.remove("anyOf") {
        Some(Value::Array(branches)) if schema.is_empty() => branches,
        Some(union) => {
            schema.insert("anyOf".to_owned(), union);
            vec![Value::Object(schema)]
        }
        None => vec![Value::Object(schema)],
    }
}

fn allow_null(schema: &mut Map<String, Value>) {
    let nothing = json!({ "type": "null" });
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        if !branches.contains(&nothing) {
            branches.push(nothing);
        }
        return;
    }
    let kind = schema.get("type").and_then(Value::as_str).map(str::to_owned);
    match kind.as_deref() {
        Some(kind @ ("string" | "number" | "integer" | "boolean")) => {
            schema.insert("type".to_owned(), json!([kind, "null"]));
            if let Some(Value::Array(values)) = schema.get_mut("enum") {
                values.push(Value::Null);
            }
        }
        Some("null") => {}
        _ if schema.get("type").is_some_and(Value::is_array) => {}
        _ => {
            let whole = Value::Object(std::mem::take(schema));
            schema.insert("anyOf".to_owned(), json!([whole, nothing]));
        }
    }
}
