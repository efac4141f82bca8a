//! Numbers and texts. schemars names the Rust type of a number in its `format` (`int32`, `double`), which JSON Schema
//! does not know, and leaves most bounds of the type unsaid.

use schemars::Schema;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Value, json};

/// Turns the names of Rust types into what JSON Schema knows, and says the bounds of the types.
pub(super) struct Bounds;

/// Turns the names of Rust types into what JSON Schema knows.
pub(super) struct Formats;

/// The bounds of a type. `None` where the strict reader gives no number beyond: its integers are those of `i64` and
/// `u64`, and no decimal of it is larger.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    least: Option<i64>,
    most: Option<i64>,
}

impl Transform for Bounds {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(range) = number_format(schema).map(Range::of) {
            range.narrow(schema);
        }
        narrow_span(schema);
        Formats::mend(schema);
        transform_subschemas(self, schema);
    }
}

impl Transform for Formats {
    fn transform(&mut self, schema: &mut Schema) {
        Self::mend(schema);
        transform_subschemas(self, schema);
    }
}

impl Formats {
    fn mend(schema: &mut Schema) {
        if number_format(schema).is_some() {
            schema.remove("format");
        }
        // An address of either family; JSON Schema has a format for each.
        if schema.get("format").is_some_and(|format| format == "ip") {
            schema.remove("format");
            schema.insert("anyOf".to_owned(), json!([{ "format": "ipv4" }, { "format": "ipv6" }]));
        }
    }
}

impl Range {
    /// The bounds of the Rust type that schemars names so.
    fn of(format: &str) -> Self {
        let (least, most) = match format {
            "int8" => (Some(i8::MIN.into()), Some(i8::MAX.into())),
            "int16" => (Some(i16::MIN.into()), Some(i16::MAX.into())),
            "int32" => (Some(i32::MIN.into()), Some(i32::MAX.into())),
            "int64" | "int" => (None, Some(i64::MAX)),
            "uint8" => (Some(0), Some(u8::MAX.into())),
            "uint16" => (Some(0), Some(u16::MAX.into())),
            "uint32" => (Some(0), Some(u32::MAX.into())),
            "uint64" | "uint" => (Some(0), None),
            _ => (None, None),
        };
        Self { least, most }
    }

    /// Says the bounds, unless narrower ones are said already.
    fn narrow(self, schema: &mut Schema) {
        if let Some(least) = self.least
            && said(schema, "minimum").is_none_or(|bound| bound < i128::from(least))
        {
            schema.insert("minimum".to_owned(), json!(least));
        }
        if let Some(most) = self.most
            && said(schema, "maximum").is_none_or(|bound| bound > i128::from(most))
        {
            schema.insert("maximum".to_owned(), json!(most));
        }
    }
}

/// The integer bound that stands in a schema. One with a fraction is not kept: the type's own takes its place, and the
/// decoder reads what it admits.
fn said(schema: &Schema, keyword: &str) -> Option<i128> {
    schema.get(keyword)?.as_number()?.as_i128()
}

/// The Rust type of a number, as schemars names it.
fn number_format(schema: &Schema) -> Option<&str> {
    let is_number = |word: &Value| matches!(word.as_str(), Some("integer" | "number"));
    let numeric = match schema.get("type")? {
        Value::Array(words) => words.iter().any(is_number),
        word => is_number(word),
    };
    schema.get("format").and_then(Value::as_str).filter(|_| numeric)
}

/// `std::time` adds nanoseconds to seconds and refuses what overflows; a moment has fewer seconds than a span.
fn narrow_span(schema: &mut Schema) {
    const NANOS: i64 = 999_999_999;
    let times: [(&str, &[(&str, i64)]); 2] = [
        ("secs", &[("nanos", NANOS)]),
        ("secs_since_epoch", &[("nanos_since_epoch", NANOS), ("secs_since_epoch", i64::MAX)]),
    ];
    let Some(Value::Object(members)) = schema.get_mut("properties") else { return };
    for (seconds, bounds) in times {
        let is_it = members.contains_key(seconds) && members.len() == 2;
        for (member, most) in bounds.iter().filter(|_| is_it) {
            if let Some(Value::Object(member)) = members.get_mut(*member) {
                member.insert("maximum".to_owned(), json!(most));
            }
        }
    }
}
