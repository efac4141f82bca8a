//! What a shown schema cannot say of a value, said in its description, so that a model need not find it out by refusals.

use serde_json::{Map, Value};

/// Characters that are added to a description.
const MOST_CHARACTERS: usize = 240;
/// Values and names that are listed.
const MOST_LISTED: usize = 20;

/// What is said of one value.
#[derive(Debug, Default)]
pub(super) struct Words(Vec<String>);

impl Words {
    /// Says what a keyword demands, if that can be said in a few words.
    pub(super) fn keyword(&mut self, keyword: &str, value: &Value) {
        let words = match (keyword, value) {
            ("pattern", Value::String(pattern)) => format!("pattern: {pattern}"),
            ("format", Value::String(format)) => format!("format: {format}"),
            ("const", value) => format!("always {value}"),
            ("enum", Value::Array(values)) if values.len() <= MOST_LISTED => format!("one of {}", listed(values)),
            ("minLength", length) => format!("at least {length} characters"),
            ("maxLength", length) => format!("at most {length} characters"),
            ("minimum", bound) => format!("at least {bound}"),
            ("maximum", bound) => format!("at most {bound}"),
            ("exclusiveMinimum", bound) => format!("more than {bound}"),
            ("exclusiveMaximum", bound) => format!("less than {bound}"),
            ("multipleOf", step) => format!("a multiple of {step}"),
            ("minItems", count) => format!("at least {count} items"),
            ("maxItems", count) => format!("at most {count} items"),
            ("uniqueItems", Value::Bool(true)) => "no item twice".to_owned(),
            ("minProperties", count) => format!("at least {count} members"),
            ("maxProperties", count) => format!("at most {count} members"),
            _ => return,
        };
        self.0.push(words);
    }

    /// Says that there are members that cannot be named in the schema.
    pub(super) fn members(&mut self, names: &[&str]) {
        if !names.is_empty() {
            let names: Vec<Value> = names.iter().take(MOST_LISTED).map(|name| Value::from(*name)).collect();
            self.0.push(format!("it also takes {}", listed(&names)));
        }
    }

    /// Adds the words to the description of a schema. What is too long is left out.
    pub(super) fn told_in(self, schema: &mut Map<String, Value>) {
        let mut told = String::new();
        for words in self.0 {
            if told.chars().count() + words.chars().count() + 2 <= MOST_CHARACTERS {
                told = if told.is_empty() { words } else { format!("{told}; {words}") };
            }
        }
        if told.is_empty() {
            return;
        }
        let description =
            schema.get("description").and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let description = match description {
            Some(description) => format!("{description} ({told})"),
            None => told,
        };
        schema.insert("description".to_owned(), Value::String(description));
    }
}

fn listed(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}
