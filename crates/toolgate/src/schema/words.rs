//! What a keyword asks of a value, in words.

use jsonschema::JsonType;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use super::hints::listed;
use super::inert::visible;
use super::keywords;

const MAX_PATTERN: usize = 80;

/// What a keyword that bounds a value says: code and message.
pub(super) fn limits(kind: &Kind) -> (String, String) {
    let message = match kind {
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have at least {}", counted(*limit, "character")),
        Kind::MaxLength { limit } => format!("must have at most {}", counted(*limit, "character")),
        Kind::MinItems { limit } => format!("must have at least {}", counted(*limit, "item")),
        Kind::MaxItems { limit } => format!("must have at most {}", counted(*limit, "item")),
        Kind::AdditionalItems { limit } => {
            format!("must have at most {}", counted(u64::try_from(*limit).unwrap_or(u64::MAX), "item"))
        }
        Kind::MinProperties { limit } => format!("must have at least {}", counted(*limit, "member")),
        Kind::MaxProperties { limit } => format!("must have at most {}", counted(*limit, "member")),
        Kind::Pattern { pattern } if pattern.chars().count() <= MAX_PATTERN => {
            format!("must match {}", visible(pattern))
        }
        Kind::Pattern { .. } => "must match the pattern of its schema".to_owned(),
        Kind::UniqueItems => "items must differ from each other".to_owned(),
        Kind::Contains => "lacks items of the kind that the schema wants, or has too many of them".to_owned(),
        Kind::Not { schema } => match meaning(schema) {
            Some(meaning) => format!("must not be {meaning}"),
            None => "must not be of the kind that the schema rules out".to_owned(),
        },
        // The engine stopped, so that nobody knows.
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "takes too many steps to be held to its pattern".to_owned()
        }
        Kind::FalseSchema => "must not be sent".to_owned(),
        Kind::UnevaluatedItems { .. } => "holds items that no schema allows".to_owned(),
        Kind::Type { kind } => format!("expected {}", expected(kind)),
        Kind::Enum { options } => match options.as_array().and_then(listed) {
            Some(list) => format!("one of: {list}"),
            None => "not one of the allowed values".to_owned(),
        },
        Kind::Constant { expected_value } => match listed([expected_value.as_ref()]) {
            Some(value) => format!("must be {value}"),
            None => "not the one value that the schema allows".to_owned(),
        },
        Kind::Format { format } => format!("must be {} {format}", article(format)),
        Kind::ContentEncoding { content_encoding } => format!("is not encoded as {}", visible(content_encoding)),
        Kind::FromUtf8 { .. } => "its decoded bytes are not UTF-8 text".to_owned(),
        Kind::ContentMediaType { content_media_type } => format!("is not {}", visible(content_media_type)),
        _ => "does not fit its schema".to_owned(),
    };
    (snake_case(kind.keyword()), message)
}

/// What fits a schema, where that can be said in a few words.
pub(super) fn meaning(schema: &Value) -> Option<String> {
    let schema = schema.as_object()?;
    let keywords: Vec<&str> = schema.keys().map(String::as_str).filter(|name| !keywords::describes(name)).collect();
    let said = |name: &str| schema.get(name);
    match keywords.as_slice() {
        ["const"] => listed(said("const")),
        ["enum"] => Some(format!("one of: {}", listed(said("enum")?.as_array()?)?)),
        ["type"] => Some(match said("type")? {
            Value::String(kind) => with_article(kind),
            kinds => kinds.as_array()?.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        }),
        ["pattern"] => {
            let pattern = said("pattern")?.as_str()?;
            (pattern.chars().count() <= MAX_PATTERN).then(|| format!("a text that matches {}", visible(pattern)))
        }
        ["format"] => said("format")?.as_str().map(|format| with_article(&visible(format))),
        ["required"] => {
            let names: Vec<String> =
                said("required")?.as_array()?.iter().filter_map(Value::as_str).map(visible).collect();
            let list = names.join(" and ");
            (!names.is_empty() && list.len() <= MAX_PATTERN).then(|| format!("an object with {list}"))
        }
        ["anyOf"] => {
            let branches = said("anyOf")?.as_array()?;
            let meanings: Option<Vec<String>> = branches.iter().map(meaning).collect();
            meanings.map(|meanings| meanings.join(", or ")).filter(|list| list.len() <= 2 * MAX_PATTERN)
        }
        _ => {
            let fixed = said("properties")?.as_object()?;
            let known = ["properties", "required", "type"];
            let pairs: Option<Vec<String>> = fixed
                .iter()
                .map(|(name, member)| {
                    let value = member.get("const").map_or_else(|| meaning(member), |value| listed([value]));
                    Some(format!("{} {}", visible(name), value?))
                })
                .collect();
            let list = pairs?.join(" and ");
            (keywords.iter().all(|name| known.contains(name)) && list.len() <= 2 * MAX_PATTERN)
                .then(|| format!("an object with {list}"))
        }
    }
}

fn with_article(word: &str) -> String {
    if word == "null" { word.to_owned() } else { format!("{} {word}", article(word)) }
}

fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

pub(super) fn article(word: &str) -> &'static str {
    match word {
        "uri" | "uri-reference" | "uri-template" | "uuid" => "a",
        _ if word.starts_with(['a', 'e', 'i', 'o', 'u']) => "an",
        _ => "a",
    }
}

pub(super) fn expected(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => kind.as_str().to_owned(),
        TypeKind::Multiple(kinds) => {
            let mut words: Vec<&str> = kinds.iter().map(JsonType::as_str).collect();
            words.sort_by_key(|word| *word == "null");
            words.join(" or ")
        }
    }
}

fn snake_case(keyword: &str) -> String {
    let mut out = String::with_capacity(keyword.len() + 2);
    for c in keyword.trim_start_matches('$').chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
