//! For tests: schemas of all kinds, and values that they take.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    reason = "a test may panic, and count by the size of its machine"
)]

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::Schema;

/// Values that `schema` takes, made by what it says; fewer than `count`, or none, where that is hard to follow.
pub(crate) fn values(schema: &Schema, seed: u64, count: usize) -> Vec<Value> {
    let mut dice = Dice(seed.wrapping_mul(2).wrapping_add(1));
    let mut found: Vec<Value> = Vec::new();
    for _ in 0..count * 8 {
        let value = Maker { schema, dice: &mut dice }.value(schema.document(), 0);
        if found.len() < count && value.is_object() && !found.contains(&value) && schema.is_valid(&value) {
            found.push(value);
        }
    }
    found
}

/// The schema of a document, as somebody else's where it is none of ours.
pub(crate) fn load(document: &Value) -> Option<Schema> {
    Schema::input(document).or_else(|_| Schema::imported_input(document)).ok()
}

/// Input schemas, of which some do not load.
pub(crate) fn documents() -> impl Strategy<Value = Value> {
    let definitions = prop::collection::vec(subschema(), 3);
    let drafts = select(vec!["draft-07/schema#", "draft-04/schema#", "draft/2019-09/schema"]);
    let draft = prop::option::weighted(0.3, drafts);
    let branch = prop::option::of(subschema());
    (object(subschema()), definitions, branch, draft).prop_map(|(mut top, definitions, branch, draft)| {
        let names = ["one", "two", "three"];
        top["$defs"] = names.into_iter().zip(definitions).map(|(name, schema)| (name.to_owned(), schema)).collect();
        if let Some(branch) = branch {
            top["anyOf"] = json!([branch, { "properties": { "c": true } }, { "required": ["a"] }]);
        }
        if let Some(draft) = draft {
            top["$schema"] = json!(format!("https://json-schema.org/{draft}"));
        }
        top
    })
}

fn subschema() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        6 => select(leaves()),
        1 => select(vec![json!(true), json!({}), json!({ "$ref": "#/$defs/one" }), json!({ "$ref": "#" })]),
        1 => select(vec![json!({ "$ref": "#/$defs/two", "description": "The second." }), json!({ "allOf": [{ "$ref": "#/$defs/three" }] })]),
    ];
    let nested = leaf.prop_recursive(3, 24, 4, |inner| {
        let two = prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            4 => object(inner.clone()),
            1 => object(inner.clone()).prop_map(|mut object| {
                object["type"] = json!(["object", "null"]);
                object
            }),
            2 => (inner.clone(), prop::option::of(0..3_u8)).prop_map(|(items, least)| match least {
                Some(least) => json!({ "type": "array", "items": items, "minItems": least }),
                None => json!({ "type": "array", "items": items }),
            }),
            1 => (two.clone(), any::<bool>()).prop_map(|(first, open)| match open {
                true => json!({ "type": "array", "prefixItems": first }),
                false => json!({ "type": "array", "prefixItems": first, "items": false }),
            }),
            2 => two.clone().prop_map(|branches| json!({ "anyOf": branches })),
            1 => two.clone().prop_map(|branches| json!({ "oneOf": branches })),
            1 => two.clone().prop_map(|parts| json!({ "allOf": parts })),
            1 => inner.clone().prop_map(|schema| json!({ "anyOf": [schema, { "type": "null" }] })),
            1 => inner.clone().prop_map(|schema| json!({ "not": schema })),
            1 => (inner.clone(), inner.clone()).prop_map(|(test, then)| json!({ "if": test, "then": then, "type": ["object", "string"] })),
            1 => (inner.clone(), inner).prop_map(|(first, other)| json!({
                "type": "object", "patternProperties": { "^a": first }, "additionalProperties": other,
            })),
        ]
    });
    nested.boxed()
}

fn object(member: impl Strategy<Value = Value> + Clone + 'static) -> impl Strategy<Value = Value> {
    let names = prop::sample::subsequence(vec!["a", "b", "c", "x y"], 0..4);
    let others = prop_oneof![
        4 => Just(None),
        5 => Just(Some(("additionalProperties", json!(false)))),
        1 => Just(Some(("unevaluatedProperties", json!(false)))),
        1 => Just(Some(("additionalProperties", json!({ "type": "integer" })))),
    ];
    (names, prop::collection::vec((member, any::<bool>()), 4), others).prop_map(|(names, members, others)| {
        let mut object = json!({ "type": "object", "properties": {}, "required": [] });
        for (name, (schema, required)) in names.into_iter().zip(members) {
            object["properties"][name] = schema;
            if required {
                object["required"].as_array_mut().unwrap().push(json!(name));
            }
        }
        if let Some((keyword, schema)) = others {
            object[keyword] = schema;
        }
        object
    })
}

fn leaves() -> Vec<Value> {
    vec![
        json!({ "type": "string" }),
        json!({ "type": "string", "description": "A word.", "pattern": "^[a-z]+$", "maxLength": 9 }),
        json!({ "type": "string", "format": "date" }),
        json!({ "type": "string", "format": "date-time" }),
        json!({ "type": "integer", "minimum": 1, "maximum": 5 }),
        json!({ "type": "number", "exclusiveMinimum": 0 }),
        json!({ "type": "boolean" }),
        json!({ "type": "null" }),
        json!({ "type": ["string", "null"] }),
        json!({ "type": ["integer", "string"], "maxLength": 3 }),
        json!({ "enum": ["red", "green"] }),
        json!({ "enum": ["red", 1, null] }),
        json!({ "type": "string", "enum": ["red", "", "blue"] }),
        json!({ "type": ["string", "null"], "enum": ["red", null] }),
        json!({ "enum": [1, 2, 3] }),
        json!({ "enum": [{ "a": 1 }, "red"] }),
        json!({ "const": "on" }),
        json!({ "const": 7 }),
        json!({ "type": "array" }),
        json!({ "type": "object" }),
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
    ]
}

/// A few values of each kind.
fn anything(dice: &mut Dice) -> Value {
    dice.pick(&[
        json!(null),
        json!(true),
        json!(1),
        json!(2.5),
        json!("red"),
        json!(""),
        json!([]),
        json!(["on", 1]),
        json!({}),
        json!({ "a": null }),
        json!({ "a": 1, "z": "red" }),
    ])
}

/// Numbers that look random, the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides.max(1)
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        let index = self.roll(of.len());
        of[index].clone()
    }
}

struct Maker<'s> {
    schema: &'s Schema,
    dice: &'s mut Dice,
}

impl Maker<'_> {
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let Value::Object(written) = schema else { return anything(self.dice) };
        let node = self.schema.modern(written);
        if let Some(value) = node.get("const") {
            return value.clone();
        }
        if let Some(values) = node.get("enum").and_then(Value::as_array) {
            return self.dice.pick(values);
        }
        let mut made = match node.get("type") {
            Some(Value::String(kind)) => Some(self.of_type(kind, &node, depth)),
            Some(Value::Array(kinds)) => {
                let kind = self.dice.pick(kinds);
                Some(self.of_type(kind.as_str().unwrap_or_default(), &node, depth))
            }
            _ if node.contains_key("properties") => Some(self.of_type("object", &node, depth)),
            _ => None,
        };
        let branches = ["anyOf", "oneOf"].iter().filter_map(|union| node.get(*union)?.as_array());
        let mut also: Vec<Value> = branches.map(|branches| self.dice.pick(branches)).collect();
        also.extend(node.get("allOf").and_then(Value::as_array).into_iter().flatten().cloned());
        also.extend(node.get("then").cloned().filter(|_| self.dice.roll(2) == 0));
        if let Some((_, referred)) = node.get("$ref").and_then(|to| self.schema.referred(to.as_str()?)) {
            also.push(referred.clone());
        }
        for schema in also.iter().filter(|_| depth < 12) {
            let more = self.value(schema, depth + 1);
            made = Some(match (made, more) {
                (Some(Value::Object(mut members)), Value::Object(more)) => {
                    for (name, value) in more {
                        members.entry(name).or_insert(value);
                    }
                    Value::Object(members)
                }
                (Some(made), _) => made,
                (None, more) => more,
            });
        }
        made.unwrap_or_else(|| anything(self.dice))
    }

    fn of_type(&mut self, kind: &str, node: &Map<String, Value>, depth: usize) -> Value {
        let number = |keyword: &str| node.get(keyword).and_then(Value::as_f64);
        let count = |keyword: &str| node.get(keyword).and_then(Value::as_u64).map(|count| count as usize);
        match kind {
            "string" => self.text(node, count("minLength").unwrap_or(0), count("maxLength").unwrap_or(40)),
            "integer" | "number" => {
                let least = number("minimum").or(number("exclusiveMinimum").map(|least| least + 1.0));
                let most = number("maximum").or(number("exclusiveMaximum").map(|most| most - 1.0));
                let step = number("multipleOf").unwrap_or(1.0);
                let start = least.unwrap_or(most.map_or(0.0, |most| most.min(0.0)));
                let value = start + step * self.dice.roll(4) as f64;
                if value.fract() == 0.0 { json!(value as i64) } else { json!(value) }
            }
            "boolean" => json!(self.dice.roll(2) == 0),
            "array" => {
                let first = node.get("prefixItems").and_then(Value::as_array).cloned().unwrap_or_default();
                let rest = node.get("items").filter(|_| depth < 12).cloned();
                let least = count("minItems").unwrap_or(0);
                let mut items: Vec<Value> = first.iter().map(|schema| self.value(schema, depth + 1)).collect();
                items.truncate(least.max(self.dice.roll(items.len() + 2)));
                let more = least.max(self.dice.roll(3)).min(count("maxItems").unwrap_or(9));
                while items.len() < more && rest.as_ref().is_none_or(|rest| rest != false) {
                    let item = self.value(rest.as_ref().unwrap_or(&Value::Bool(true)), depth + 1);
                    items.push(item);
                }
                Value::Array(items)
            }
            "object" => {
                let mut members = Map::new();
                let none = Map::new();
                let declared = node.get("properties").and_then(Value::as_object).unwrap_or(&none);
                let required = |name: &str| {
                    node.get("required")
                        .is_some_and(|names| names.as_array().is_some_and(|names| names.contains(&json!(name))))
                };
                for (name, schema) in declared {
                    if required(name) || depth < 8 && self.dice.roll(2) == 0 {
                        members.insert(name.clone(), self.value(schema, depth + 1));
                    }
                }
                let more =
                    ["additionalProperties", "unevaluatedProperties"].iter().find_map(|keyword| node.get(*keyword));
                for name in ["a", "more"].iter().filter(|_| more.is_none_or(|more| more != false)) {
                    if !members.contains_key(*name) && self.dice.roll(4) == 0 && depth > 0 {
                        let value = self.value(more.unwrap_or(&Value::Bool(true)), depth + 1);
                        members.insert((*name).to_owned(), value);
                    }
                }
                Value::Object(members)
            }
            _ => Value::Null,
        }
    }

    fn text(&mut self, node: &Map<String, Value>, least: usize, most: usize) -> Value {
        let words = ["", "red", "a", "ord_1", "doc-a", "re_1", "2024", "on", "x@example.org", "abc123"];
        let text = match node.get("format").and_then(Value::as_str) {
            Some("date") => "2024-02-29",
            Some("date-time") => "2024-02-29T12:00:00Z",
            Some("time") => "12:00:00Z",
            Some("uri" | "iri" | "uri-reference") => "https://example.org/a",
            Some("email") => "x@example.org",
            Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
            Some("ipv4") => "192.0.2.1",
            _ => self.dice.pick(&words),
        };
        let text: String = text.chars().take(most).collect();
        json!(format!("{text}{}", "a".repeat(least.saturating_sub(text.chars().count()))))
    }
}
