//! The Cedar type of what a JSON Schema describes. One tree serves the generated Cedar schema and the walk that builds
//! the context, so what policies were validated against and what they are evaluated on cannot differ.

use serde_json::{Map, Value};

use super::context::decimal;
use super::text::quoted;

/// What policies see of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Text,
    Long,
    Bool,
    /// A number with at most four decimal places.
    Decimal,
    /// A number that may have more of them than policies can compare. A call with such a value is forbidden.
    Number,
    Set(Box<Shape>),
    /// INVARIANT (unique members): no two fields share a name.
    Record(Vec<Field>),
    /// Something that policies can't see.
    Opaque(Opaque),
}

/// A member of a record.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) required: bool,
}

/// Why policies can't see a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opaque {
    Untyped,
    Union,
    FreeForm,
    Recursive,
    Elsewhere,
    Tuple,
    NullItems,
    TooLarge,
    Wide,
    Inexact,
}

/// Where a path into a shape leads.
#[derive(Debug, PartialEq)]
pub(super) enum Found<'a> {
    /// To a value.
    Here,
    /// Through something that has no members, which the validator words best.
    Beside,
    /// To a member that no record on the way has: its place in the path, and the members that there are.
    Missing(usize, Vec<&'a str>),
    /// Into something that policies can't see: its place in the path, and why.
    Hidden(usize, Opaque),
}

/// What a set of policies reads below one point of the context.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// The value itself is read, and not only tested for presence or looked into.
    whole: bool,
    members: std::collections::BTreeMap<String, Reads>,
}

impl Shape {
    /// The shape of what `schema` describes, and whether it may be null.
    pub(super) fn of(schema: &Value) -> (Self, bool) {
        // As many members as the strict reader lets through in one value.
        const NODES: usize = 10_000;
        let typed = Reader { root: schema, following: Vec::new(), nodes_left: NODES }.read(schema);
        (typed.shape, typed.nullable)
    }

    /// The type in Cedar's schema language, for a place that is indented by `depth` steps.
    pub(super) fn cedar_type(&self, depth: usize) -> String {
        match self {
            Self::Text => "String".into(),
            Self::Long => "Long".into(),
            Self::Bool => "Bool".into(),
            Self::Decimal | Self::Number => "decimal".into(),
            Self::Set(item) => format!("Set<{}>", item.cedar_type(depth)),
            Self::Record(fields) => {
                let mut out = String::from("{");
                for field in fields.iter().filter(|field| !matches!(field.shape, Self::Opaque(_))) {
                    out.push('\n');
                    out.push_str(&"  ".repeat(depth + 1));
                    out.push_str(&quoted(&field.name));
                    out.push_str(if field.required { ": " } else { "?: " });
                    out.push_str(&field.shape.cedar_type(depth + 1));
                    out.push(',');
                }
                if out.len() > 1 {
                    out.push('\n');
                    out.push_str(&"  ".repeat(depth));
                }
                out.push('}');
                out
            }
            Self::Opaque(_) => "{}".into(),
        }
    }

    /// Where `path` leads.
    pub(super) fn find<'a>(&'a self, path: &[String]) -> Found<'a> {
        let mut shape = self;
        for (depth, name) in path.iter().enumerate() {
            let Self::Record(fields) = shape else {
                return Found::Beside;
            };
            match fields.iter().find(|field| field.name == *name) {
                Some(Field { shape: Self::Opaque(why), .. }) => return Found::Hidden(depth, *why),
                Some(field) => shape = &field.shape,
                None => return Found::Missing(depth, fields.iter().map(|field| field.name.as_str()).collect()),
            }
        }
        Found::Here
    }

    /// What stands at `path`, if it is something that policies can see.
    pub(super) fn at(&self, path: &[String]) -> Option<&Self> {
        path.iter().try_fold(self, |shape, name| match shape {
            Self::Record(fields) => fields.iter().find(|field| field.name == *name).map(|field| &field.shape),
            _ => None,
        })
    }

    /// Whether it is, or holds, a number that policies may not be able to compare.
    pub(super) fn may_be_inexact(&self) -> bool {
        match self {
            Self::Number => true,
            Self::Set(item) => item.may_be_inexact(),
            Self::Record(fields) => fields.iter().any(|field| field.shape.may_be_inexact()),
            Self::Text | Self::Long | Self::Bool | Self::Decimal | Self::Opaque(_) => false,
        }
    }

    /// The part of the shape that `reads` can tell from the whole.
    pub(super) fn pruned(&self, reads: &Reads) -> Self {
        match self {
            Self::Record(fields) => Self::Record(
                fields
                    .iter()
                    .filter(|field| !matches!(field.shape, Self::Opaque(_)))
                    .filter_map(|field| {
                        let shape = match reads.members.get(&field.name) {
                            _ if reads.whole => field.shape.pruned(&Reads { whole: true, ..Reads::default() }),
                            Some(reads) => field.shape.pruned(reads),
                            None => return None,
                        };
                        Some(Field { name: field.name.clone(), shape, required: field.required })
                    })
                    .collect(),
            ),
            Self::Set(item) => Self::Set(Box::new(item.pruned(&Reads { whole: true, ..Reads::default() }))),
            shape => shape.clone(),
        }
    }
}

impl Reads {
    /// Adds that `path` is read, or with `whole = false` only asked for.
    pub(super) fn add(&mut self, path: &[String], whole: bool) {
        let mut at = self;
        for name in path {
            at = at.members.entry(name.clone()).or_default();
        }
        at.whole |= whole;
    }
}

impl Opaque {
    /// The reason in words, to follow "because".
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Untyped => "its schema names no type",
            Self::Union => "its schema allows several types",
            Self::FreeForm => "it is an object whose members are not declared",
            Self::Recursive => "its schema contains itself",
            Self::Elsewhere => "its schema refers to something that is not there",
            Self::Tuple => "it is a list whose items have different schemas",
            Self::NullItems => "it is a list whose items may be null",
            Self::TooLarge => "its schema is too large",
            Self::Wide => "it may be an integer beyond 9223372036854775807, which no policy can compare",
            Self::Inexact => "one of its values has more than four decimal places, which no policy can compare",
        }
    }
}

struct Typed {
    shape: Shape,
    nullable: bool,
}

/// Reads one schema document.
struct Reader<'a> {
    root: &'a Value,
    /// The references that are being followed.
    following: Vec<&'a str>,
    /// References to references can double a schema at each step.
    nodes_left: usize,
}

impl<'a> Reader<'a> {
    fn read(&mut self, node: &'a Value) -> Typed {
        let Some(left) = self.nodes_left.checked_sub(1) else {
            return Opaque::TooLarge.into();
        };
        self.nodes_left = left;
        let Value::Object(node) = node else {
            return Opaque::Untyped.into();
        };
        if let Some(Value::String(target)) = node.get("$ref") {
            return self.follow(target);
        }
        if let Some(value) = node.get("const") {
            return listed(std::slice::from_ref(value));
        }
        if let Some(Value::Array(values)) = node.get("enum") {
            return listed(values);
        }
        match node.get("type") {
            Some(Value::String(name)) => self.named(name, node).into(),
            Some(Value::Array(names)) => {
                let nullable = names.iter().any(|name| name == "null");
                let mut rest = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
                let shape = match (rest.next(), rest.next()) {
                    (Some(name), None) => self.named(name, node),
                    _ => Shape::Opaque(Opaque::Union),
                };
                Typed { shape, nullable }
            }
            _ if node.contains_key("properties") => self.named("object", node).into(),
            _ if node.contains_key("items") => self.named("array", node).into(),
            _ => self.combined(node),
        }
    }

    fn follow(&mut self, target: &'a str) -> Typed {
        // A chain of references costs stack.
        const DEEP: usize = 64;
        if self.following.contains(&target) {
            return Opaque::Recursive.into();
        }
        if self.following.len() >= DEEP {
            return Opaque::TooLarge.into();
        }
        let Some(node) = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) else {
            return Opaque::Elsewhere.into();
        };
        self.following.push(target);
        let typed = self.read(node);
        self.following.pop();
        typed
    }

    fn named(&mut self, name: &str, node: &'a Map<String, Value>) -> Shape {
        match name {
            "string" => Shape::Text,
            "integer" if ["minimum", "maximum"].iter().any(|bound| node.get(*bound).is_some_and(is_wide)) => {
                Shape::Opaque(Opaque::Wide)
            }
            "integer" => Shape::Long,
            "number" if node.get("multipleOf").is_some_and(has_few_places) => Shape::Decimal,
            "number" => Shape::Number,
            "boolean" => Shape::Bool,
            "array" => self.array(node),
            "object" => self.object(node),
            _ => Shape::Opaque(Opaque::Untyped),
        }
    }

    fn array(&mut self, node: &'a Map<String, Value>) -> Shape {
        if node.contains_key("prefixItems") {
            return Shape::Opaque(Opaque::Tuple);
        }
        let Some(items) = node.get("items") else {
            return Shape::Opaque(Opaque::Untyped);
        };
        match self.read(items) {
            Typed { nullable: true, .. } => Shape::Opaque(Opaque::NullItems),
            Typed { shape: Shape::Opaque(why), .. } => Shape::Opaque(why),
            Typed { shape, .. } => Shape::Set(Box::new(shape)),
        }
    }

    fn object(&mut self, node: &'a Map<String, Value>) -> Shape {
        let closed = node.get("additionalProperties") == Some(&Value::Bool(false));
        let declared =
            node.get("properties").and_then(Value::as_object).filter(|members| closed || !members.is_empty());
        let required = |name: &str| {
            let names = node.get("required").and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|required| required == name))
        };
        let Some(members) = declared else {
            return if closed { Shape::Record(Vec::new()) } else { Shape::Opaque(Opaque::FreeForm) };
        };
        let mut fields: Vec<Field> = members
            .iter()
            .map(|(name, member)| {
                let typed = self.read(member);
                Field { name: name.clone(), shape: typed.shape, required: required(name) && !typed.nullable }
            })
            .collect();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        Shape::Record(fields)
    }

    /// `anyOf` and `oneOf` of one type, perhaps beside null, as generators write optional members and enums; `allOf` of
    /// one schema.
    fn combined(&mut self, node: &'a Map<String, Value>) -> Typed {
        if let Some(Value::Array(all)) = node.get("allOf") {
            return match all.as_slice() {
                [one] => self.read(one),
                _ => Opaque::Untyped.into(),
            };
        }
        let Some(Value::Array(branches)) = node.get("anyOf").or_else(|| node.get("oneOf")) else {
            return Opaque::Untyped.into();
        };
        let mut nullable = false;
        let mut shape = None;
        for branch in branches {
            if branch.get("type").is_some_and(|name| name == "null") {
                nullable = true;
                continue;
            }
            let typed = self.read(branch);
            nullable |= typed.nullable;
            match &shape {
                None => shape = Some(typed.shape),
                Some(shape) if *shape == typed.shape => {}
                Some(_) => shape = Some(Shape::Opaque(Opaque::Union)),
            }
        }
        Typed { shape: shape.unwrap_or(Shape::Opaque(Opaque::Untyped)), nullable }
    }
}

/// Whether every multiple of a number has a form that policies can compare.
fn has_few_places(number: &Value) -> bool {
    matches!(number, Value::Number(number) if decimal(number).is_some())
}

/// Whether a number is beyond the integers of policies.
fn is_wide(number: &Value) -> bool {
    const END: f64 = 9_223_372_036_854_775_808.0;
    let Value::Number(number) = number else { return false };
    number.as_i64().is_none() && number.as_f64().is_some_and(|number| !(-END..END).contains(&number))
}

/// The type of a value that is one of `values`.
fn listed(values: &[Value]) -> Typed {
    let mut nullable = false;
    let mut shape: Option<Shape> = None;
    for value in values {
        let next = match value {
            Value::Null => {
                nullable = true;
                continue;
            }
            Value::String(_) => Shape::Text,
            Value::Bool(_) => Shape::Bool,
            Value::Number(number) if number.is_f64() => match has_few_places(value) {
                true => Shape::Decimal,
                false => Shape::Opaque(Opaque::Inexact),
            },
            Value::Number(_) if is_wide(value) => Shape::Opaque(Opaque::Wide),
            Value::Number(_) => Shape::Long,
            Value::Array(_) | Value::Object(_) => Shape::Opaque(Opaque::Union),
        };
        shape = match (shape, next) {
            (None, next) => Some(next),
            (Some(shape), next) if shape == next => Some(next),
            (Some(Shape::Long | Shape::Decimal), Shape::Long | Shape::Decimal) => Some(Shape::Decimal),
            _ => Some(Shape::Opaque(Opaque::Union)),
        };
    }
    Typed { shape: shape.unwrap_or(Shape::Opaque(Opaque::Untyped)), nullable }
}

impl From<Shape> for Typed {
    fn from(shape: Shape) -> Self {
        Self { shape, nullable: false }
    }
}

impl From<Opaque> for Typed {
    fn from(why: Opaque) -> Self {
        Shape::Opaque(why).into()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    fn shape(schema: Value) -> Shape {
        Shape::of(&schema).0
    }

    fn cedar(schema: Value) -> String {
        shape(schema).cedar_type(0).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn scalars_lists_and_objects_have_cedar_types() {
        let schema = json!({
            "type": "object",
            "properties": {
                "id": {"type": "string"}, "amount": {"type": "integer"}, "rate": {"type": "number"},
                "rush": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}},
                "to": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            },
            "required": ["id", "amount"],
        });
        assert_eq!(
            cedar(schema),
            r#"{ "amount": Long, "id": String, "rate"?: decimal, "rush"?: Bool, "tags"?: Set<String>, "to"?: { "city": String, }, }"#
        );
    }

    #[test]
    fn what_may_be_null_is_optional_however_it_is_written() {
        let schema = json!({
            "properties": {
                "a": {"type": ["string", "null"]}, "b": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]},
                "c": {"enum": ["x", null]},
            },
            "required": ["a", "b", "c"],
            "$defs": {"n": {"type": "integer"}},
        });
        assert_eq!(cedar(schema), r#"{ "a"?: String, "b"?: Long, "c"?: String, }"#);
    }

    #[test]
    fn constants_and_enums_have_the_type_of_their_values() {
        assert_eq!(shape(json!({"const": "USD"})), Shape::Text);
        assert_eq!(shape(json!({"enum": [1, 2]})), Shape::Long);
        assert_eq!(shape(json!({"enum": [1, 2.5]})), Shape::Decimal);
        assert_eq!(shape(json!({"oneOf": [{"const": "a"}, {"const": "b"}]})), Shape::Text);
        assert_eq!(shape(json!({"enum": [1, 0.00001]})), Shape::Opaque(Opaque::Union));
        assert_eq!(shape(json!({"enum": [0.00001]})), Shape::Opaque(Opaque::Inexact));
        assert_eq!(shape(json!({"const": u64::MAX})), Shape::Opaque(Opaque::Wide));
        assert_eq!(shape(json!({"enum": [1, "one"]})), Shape::Opaque(Opaque::Union));
    }

    #[test]
    fn a_number_is_exact_where_its_schema_bounds_its_places() {
        assert_eq!(shape(json!({"type": "number", "multipleOf": 0.01})), Shape::Decimal);
        assert_eq!(shape(json!({"type": "number", "multipleOf": 5})), Shape::Decimal);
        assert_eq!(shape(json!({"type": "number", "multipleOf": 0.00001})), Shape::Number);
        assert_eq!(shape(json!({"type": "number", "maximum": 1})), Shape::Number);
        assert_eq!(shape(json!({"type": "integer", "maximum": i64::MAX})), Shape::Long);
        assert_eq!(shape(json!({"type": "integer", "maximum": u64::MAX})), Shape::Opaque(Opaque::Wide));
        assert_eq!(shape(json!({"type": "integer", "minimum": -1e30})), Shape::Opaque(Opaque::Wide));
        assert!(shape(json!({"type": "array", "items": {"type": "number"}})).may_be_inexact());
    }

    #[test]
    fn what_has_no_single_type_is_left_out_with_its_reason() {
        for (schema, why) in [
            (json!({"type": ["string", "integer"]}), Opaque::Union),
            (json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), Opaque::Union),
            (json!({"type": "object"}), Opaque::FreeForm),
            (json!({}), Opaque::Untyped),
            (json!(true), Opaque::Untyped),
            (json!({"type": "array", "prefixItems": [{"type": "string"}]}), Opaque::Tuple),
            (json!({"type": "array", "items": {"type": ["string", "null"]}}), Opaque::NullItems),
            (json!({"$ref": "https://example.com/x"}), Opaque::Elsewhere),
        ] {
            assert_eq!(shape(schema.clone()), Shape::Opaque(why), "{schema}");
        }
        let schema = json!({"properties": {"blob": {}, "id": {"type": "string"}}});
        assert_eq!(cedar(schema.clone()), r#"{ "id"?: String, }"#);
        assert_eq!(shape(schema).find(&["blob".into()]), Found::Hidden(0, Opaque::Untyped));
    }

    #[test]
    fn a_schema_that_contains_itself_is_cut_where_it_does() {
        let schema = json!({
            "properties": {"name": {"type": "string"}, "parent": {"$ref": "#"}, "kids": {"type": "array", "items": {"$ref": "#"}}},
        });
        let shape = shape(schema);
        let parents = ["parent".to_owned(), "parent".to_owned()];
        assert_eq!(shape.find(&parents), Found::Hidden(1, Opaque::Recursive));
    }

    #[test]
    fn a_schema_of_doubling_references_is_given_up_in_time() {
        let mut defs = Map::new();
        for n in 0..40 {
            let next = format!("#/$defs/d{}", n + 1);
            defs.insert(format!("d{n}"), json!({"properties": {"a": {"$ref": next}, "b": {"$ref": next}}}));
        }
        defs.insert("d40".into(), json!({"type": "string"}));
        let (shape, _) = Shape::of(&json!({"$ref": "#/$defs/d0", "$defs": defs}));
        assert_eq!(shape.find(&["b".to_owned()]), Found::Hidden(0, Opaque::TooLarge));
    }

    #[test]
    fn pruning_keeps_what_is_read_and_nothing_else() {
        let shape = shape(json!({"properties": {
            "note": {"type": "string"},
            "to": {"properties": {"city": {"type": "string"}, "zip": {"type": "string"}}},
        }}));
        let mut reads = Reads::default();
        reads.add(&["to".to_owned()], false);
        reads.add(&["to".to_owned(), "city".to_owned()], true);
        let Shape::Record(fields) = shape.pruned(&reads) else { panic!("a record") };
        assert_eq!(fields.len(), 1);
        assert_eq!(fields.first().unwrap().shape.cedar_type(0), "{\n  \"city\"?: String,\n}");
        reads.add(&["to".to_owned()], true);
        assert_ne!(shape.pruned(&reads), Shape::Record(fields));
    }
}
