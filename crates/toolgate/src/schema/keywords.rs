//! The keywords of JSON Schema: in which drafts each is known, and what may stand behind it.

use jsonschema::Draft;
use serde_json::Value;

/// What may stand behind a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Anything,
    Text,
    Flag,
    Count,
    Number,
    PositiveNumber,
    List,
    Values,
    Types,
    Names,
    NamesByName,
    Pattern,
    Format,
    Identifier,
    Anchor,
    DraftName,
    Reference,
    AnchorReference,
    RootReference,
    Schema(Applies),
    SchemaList(Applies),
    SchemaMap(Applies),
    /// A schema, or (before 2020-12) a list of them by position.
    Items,
    /// A schema, or a list of names, by member (before 2019-09).
    Dependencies,
}

/// To which values a subschema applies, seen from the value of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applies {
    /// To none: it is only kept for references, or an annotation.
    Nowhere,
    /// To the same value, always.
    All,
    /// To the same value, as one branch of `anyOf`.
    Any,
    /// To the same value, as one branch of `oneOf`.
    One,
    /// To the same value, under a condition.
    Sometimes,
    /// To the same value, as a test whose members are no declaration.
    Test,
    /// To the member of its name.
    Member,
    /// To the members whose name fits.
    Pattern,
    /// To the members that nothing else names.
    OtherMembers,
    /// To the names of the members.
    MemberNames,
    /// To the item of its position.
    Position,
    /// To the items after the positions.
    OtherItems,
    /// To every item, as a test.
    EveryItem,
}

struct Keyword {
    name: &'static str,
    shape: Shape,
    from: Draft,
    until: Draft,
}

const OLDEST: Draft = Draft::Draft4;
const NEWEST: Draft = Draft::Draft202012;

const fn known(name: &'static str, shape: Shape, from: Draft, until: Draft) -> Keyword {
    Keyword { name, shape, from, until }
}

const KEYWORDS: &[Keyword] = &[
    known("$schema", Shape::DraftName, OLDEST, NEWEST),
    known("$id", Shape::Identifier, Draft::Draft6, NEWEST),
    known("id", Shape::Identifier, OLDEST, Draft::Draft4),
    known("$ref", Shape::Reference, OLDEST, NEWEST),
    known("$anchor", Shape::Anchor, Draft::Draft201909, NEWEST),
    known("$dynamicRef", Shape::AnchorReference, NEWEST, NEWEST),
    known("$dynamicAnchor", Shape::Anchor, NEWEST, NEWEST),
    known("$recursiveRef", Shape::RootReference, Draft::Draft201909, Draft::Draft201909),
    known("$recursiveAnchor", Shape::Flag, Draft::Draft201909, Draft::Draft201909),
    known("$comment", Shape::Text, OLDEST, NEWEST),
    known("$defs", Shape::SchemaMap(Applies::Nowhere), OLDEST, NEWEST),
    known("definitions", Shape::SchemaMap(Applies::Nowhere), OLDEST, NEWEST),
    known("title", Shape::Text, OLDEST, NEWEST),
    known("description", Shape::Text, OLDEST, NEWEST),
    known("default", Shape::Anything, OLDEST, NEWEST),
    known("examples", Shape::List, OLDEST, NEWEST),
    known("deprecated", Shape::Flag, OLDEST, NEWEST),
    known("readOnly", Shape::Flag, OLDEST, NEWEST),
    known("writeOnly", Shape::Flag, OLDEST, NEWEST),
    known("type", Shape::Types, OLDEST, NEWEST),
    known("enum", Shape::Values, OLDEST, NEWEST),
    known("const", Shape::Anything, Draft::Draft6, NEWEST),
    known("multipleOf", Shape::PositiveNumber, OLDEST, NEWEST),
    known("maximum", Shape::Number, OLDEST, NEWEST),
    known("minimum", Shape::Number, OLDEST, NEWEST),
    known("exclusiveMaximum", Shape::Flag, OLDEST, Draft::Draft4),
    known("exclusiveMinimum", Shape::Flag, OLDEST, Draft::Draft4),
    known("exclusiveMaximum", Shape::Number, Draft::Draft6, NEWEST),
    known("exclusiveMinimum", Shape::Number, Draft::Draft6, NEWEST),
    known("maxLength", Shape::Count, OLDEST, NEWEST),
    known("minLength", Shape::Count, OLDEST, NEWEST),
    known("pattern", Shape::Pattern, OLDEST, NEWEST),
    known("format", Shape::Format, OLDEST, NEWEST),
    known("contentEncoding", Shape::Text, Draft::Draft6, NEWEST),
    known("contentMediaType", Shape::Text, Draft::Draft6, NEWEST),
    known("contentSchema", Shape::Schema(Applies::Nowhere), Draft::Draft201909, NEWEST),
    known("properties", Shape::SchemaMap(Applies::Member), OLDEST, NEWEST),
    known("patternProperties", Shape::SchemaMap(Applies::Pattern), OLDEST, NEWEST),
    known("additionalProperties", Shape::Schema(Applies::OtherMembers), OLDEST, NEWEST),
    known("unevaluatedProperties", Shape::Schema(Applies::OtherMembers), Draft::Draft201909, NEWEST),
    known("propertyNames", Shape::Schema(Applies::MemberNames), Draft::Draft6, NEWEST),
    known("required", Shape::Names, OLDEST, NEWEST),
    known("dependentRequired", Shape::NamesByName, Draft::Draft201909, NEWEST),
    known("dependentSchemas", Shape::SchemaMap(Applies::Sometimes), Draft::Draft201909, NEWEST),
    known("dependencies", Shape::Dependencies, OLDEST, Draft::Draft7),
    known("maxProperties", Shape::Count, OLDEST, NEWEST),
    known("minProperties", Shape::Count, OLDEST, NEWEST),
    known("items", Shape::Items, OLDEST, Draft::Draft201909),
    known("items", Shape::Schema(Applies::OtherItems), NEWEST, NEWEST),
    known("prefixItems", Shape::SchemaList(Applies::Position), NEWEST, NEWEST),
    known("additionalItems", Shape::Schema(Applies::OtherItems), OLDEST, Draft::Draft201909),
    known("unevaluatedItems", Shape::Schema(Applies::OtherItems), Draft::Draft201909, NEWEST),
    known("contains", Shape::Schema(Applies::EveryItem), Draft::Draft6, NEWEST),
    known("maxContains", Shape::Count, Draft::Draft201909, NEWEST),
    known("minContains", Shape::Count, Draft::Draft201909, NEWEST),
    known("maxItems", Shape::Count, OLDEST, NEWEST),
    known("minItems", Shape::Count, OLDEST, NEWEST),
    known("uniqueItems", Shape::Flag, OLDEST, NEWEST),
    known("allOf", Shape::SchemaList(Applies::All), OLDEST, NEWEST),
    known("anyOf", Shape::SchemaList(Applies::Any), OLDEST, NEWEST),
    known("oneOf", Shape::SchemaList(Applies::One), OLDEST, NEWEST),
    known("not", Shape::Schema(Applies::Test), OLDEST, NEWEST),
    known("if", Shape::Schema(Applies::Sometimes), Draft::Draft7, NEWEST),
    known("then", Shape::Schema(Applies::Sometimes), Draft::Draft7, NEWEST),
    known("else", Shape::Schema(Applies::Sometimes), Draft::Draft7, NEWEST),
];

/// Keywords that may stand beside a `$ref` before 2019-09, where it silences its siblings: they constrain nothing.
pub(super) const SILENT: &[&str] = &[
    "$ref",
    "$schema",
    "$id",
    "id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// Keywords of the top level that can declare members besides `properties`.
pub(super) const APPLICATORS: &[&str] =
    &["$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "dependencies"];

/// The seven types.
pub(super) const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

const FORMATS: &[&str] = &[
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// What may stand behind `name` in this draft; `None` where the draft does not know it.
pub(super) fn shape(name: &str, draft: Draft) -> Option<Shape> {
    KEYWORDS.iter().find(|k| k.name == name && k.from <= draft && draft <= k.until).map(|k| k.shape)
}

/// What may stand behind a keyword that this draft has dropped, where the engine holds values to it even so.
pub(super) fn dropped(name: &str, draft: Draft) -> Option<Shape> {
    match name {
        "dependencies" if draft > Draft::Draft7 => shape(name, Draft::Draft7),
        "additionalItems" if draft > Draft::Draft201909 => shape(name, Draft::Draft201909),
        _ => None,
    }
}

/// Whether a keyword only describes: whatever it says, the same values fit.
pub(super) fn describes(name: &str) -> bool {
    name.starts_with("x-") || name != "$ref" && SILENT.contains(&name)
}

/// The names that this draft knows.
pub(super) fn names(draft: Draft) -> impl Iterator<Item = &'static str> {
    KEYWORDS.iter().filter(move |k| k.from <= draft && draft <= k.until).map(|k| k.name)
}

/// The formats that can be checked. A draft that does not know one yet gets it as 2020-12 defines it.
pub(super) fn formats() -> impl Iterator<Item = &'static str> {
    let options = jsonschema::options();
    FORMATS.iter().copied().filter(move |name| options.is_known_format(NEWEST, name))
}

/// The word of the other drafts and of OpenAPI for what this draft says otherwise.
pub(super) fn instead(name: &str, draft: Draft) -> Option<&'static str> {
    Some(match name {
        "nullable" => "write \"type\": [..., \"null\"]",
        "example" => "write examples, a list",
        "optional" => "leave the name out of required",
        "discriminator" => "give each branch its tag as a const",
        "dependencies" => "write dependentRequired or dependentSchemas",
        "additionalItems" => "write items beside prefixItems",
        "prefixItems" => "write items as a list in this draft",
        "$vocabulary" => "leave it out: the vocabularies are those of the draft",
        "id" if draft > Draft::Draft4 => "write $id",
        "const" => "write enum with one value in this draft",
        "if" | "then" | "else" => "say \"$schema\": \"https://json-schema.org/draft/2020-12/schema\"",
        _ => return None,
    })
}

/// What says the same as a format of OpenAPI that can't be checked.
pub(super) fn instead_of_format(name: &str) -> Option<&'static str> {
    match name {
        "int32" | "int64" | "float" | "double" => Some("leave it out and bound the number with minimum and maximum"),
        "byte" | "binary" | "base64" => Some("leave it out; contentEncoding says how bytes are written"),
        "password" => Some("leave it out and write \"x-secret\": true"),
        "json" => Some("leave it out; contentMediaType says what a text holds"),
        _ => None,
    }
}

/// Whether a format of OpenAPI only says how a value is stored, so that there is nothing to check in a text.
pub(super) fn is_width(name: &str) -> bool {
    let number = name.trim_start_matches('u');
    matches!(number, "int" | "int8" | "int16" | "int32" | "int64" | "int128") || instead_of_format(name).is_some()
}

/// The type that a word of a programming language means.
pub(super) fn type_for(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "int" | "int32" | "int64" | "long" | "short" | "bigint" => "integer",
        "float" | "double" | "decimal" | "num" => "number",
        "str" | "text" | "char" | "varchar" => "string",
        "bool" => "boolean",
        "dict" | "map" | "hashmap" | "record" | "struct" => "object",
        "list" | "tuple" | "arraylist" | "set" | "vec" => "array",
        "none" | "nil" | "nulltype" => "null",
        _ => return None,
    })
}

/// The draft that a `$schema` names, with or without the empty fragment.
pub(super) fn draft_named(uri: &str) -> Option<Draft> {
    let bare = uri.trim_end_matches('#');
    let bare = bare.strip_prefix("https://").or_else(|| bare.strip_prefix("http://"))?;
    Some(match bare {
        "json-schema.org/draft/2020-12/schema" => Draft::Draft202012,
        "json-schema.org/draft/2019-09/schema" => Draft::Draft201909,
        "json-schema.org/draft-07/schema" => Draft::Draft7,
        "json-schema.org/draft-06/schema" => Draft::Draft6,
        "json-schema.org/draft-04/schema" => Draft::Draft4,
        _ => return None,
    })
}

/// The types of some values, each once.
pub(crate) fn types_of(values: &[Value]) -> Vec<&'static str> {
    let mut types = Vec::new();
    for kind in values.iter().map(type_of) {
        if !types.contains(&kind) {
            types.push(kind);
        }
    }
    types
}

/// The type of a value as JSON Schema calls it.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_i64() || n.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
