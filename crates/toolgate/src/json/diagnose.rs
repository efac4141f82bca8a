//! What stands where something else should: the words for a text that is already refused.

use serde_json::Value;

use super::flaw::{Fail, Found};
use super::{Limits, read};

const FENCE: &str = "```";

/// Longer names, and names that do not print, are left out of messages.
const LONGEST_SHOWN_NAME: usize = 64;

#[cold]
pub(super) fn instead_of_value(text: &str, at: usize) -> Fail {
    let rest = rest(text, at);
    let found = match rest.chars().next() {
        None => Found::End,
        Some(',') => after_comma(text, at, Found::ExtraComma, Found::MissingValue),
        Some(']' | '}') => after_comma(text, at, Found::TrailingComma, Found::MissingValue),
        Some('+') => Found::NumberWithPlus,
        Some('.') => Found::NumberWithoutDigit,
        Some(first) => stray(rest, first).unwrap_or_else(|| word(rest).unwrap_or(Found::Character(first))),
    };
    Fail { at, found }
}

#[cold]
pub(super) fn instead_of_name(text: &str, at: usize) -> Fail {
    let rest = rest(text, at);
    let found = match rest.chars().next() {
        None => Found::End,
        Some(',') => after_comma(text, at, Found::ExtraComma, Found::MissingName),
        Some('}') => Found::TrailingComma,
        Some(':') => Found::MissingName,
        Some(first) => stray(rest, first).unwrap_or(match first {
            '{' | '[' | ']' => Found::MissingName,
            _ => Found::UnquotedName,
        }),
    };
    Fail { at, found }
}

#[cold]
pub(super) fn instead_of_colon(text: &str, at: usize) -> Fail {
    let rest = rest(text, at);
    let found = match rest.chars().next() {
        None => Found::End,
        Some(first) => comment(rest).or_else(|| control(first)).unwrap_or(Found::MissingColon),
    };
    Fail { at, found }
}

#[cold]
pub(super) fn instead_of_comma(text: &str, at: usize, open: char) -> Fail {
    let rest = rest(text, at);
    let found = match rest.chars().next() {
        None => Found::End,
        Some(found @ (']' | '}')) => Found::WrongBracket { found, open },
        Some('\\') => Found::Backslash,
        Some(first) => comment(rest).or_else(|| control(first)).unwrap_or_else(|| missing_comma(text, at)),
    };
    Fail { at, found }
}

#[cold]
pub(super) fn instead_of_digit(text: &str, start: usize, at: usize) -> Fail {
    let found = match rest(text, at).chars().next() {
        None => Found::End,
        Some(_) => match word(rest(text, start)) {
            Some(not_finite @ Found::NotFinite(_)) => not_finite,
            _ => Found::NumberWithoutDigit,
        },
    };
    match found {
        Found::End => Fail { at, found },
        _ => Fail { at: start, found },
    }
}

/// A number that goes on where it should have ended.
#[cold]
pub(super) fn in_number(text: &str, start: usize) -> Fail {
    let digits = rest(text, start).trim_start_matches('-');
    let found = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => Found::NumberInHex,
        [b'0', b'0'..=b'9', ..] => Found::NumberWithLeadingZero,
        _ => Found::NumberMalformed,
    };
    Fail { at: start, found }
}

/// Something after the whole value.
#[cold]
pub(super) fn after_value(text: &str, at: usize) -> Fail {
    let rest = rest(text, at);
    let found = match rest.chars().next() {
        _ if rest.starts_with(FENCE) => Found::CodeFence,
        Some('{' | '[' | '"') => Found::SecondValue,
        _ => Found::TrailingText,
    };
    Fail { at, found }
}

/// A syntax error before any bracket: what follows says whether the text is markdown or prose with JSON in it.
#[cold]
pub(super) fn outside_brackets(text: &str, fail: Fail) -> Fail {
    match fail.found {
        Found::Character(_) | Found::UnquotedWord | Found::WordOfAnotherLanguage(_) | Found::QuoteSingle => {}
        _ => return fail,
    }
    if let Some(at) = text.find(FENCE) {
        return Fail { at, found: Found::CodeFence };
    }
    if rest(text, fail.at).contains('{') {
        return Fail { found: Found::TextBefore, ..fail };
    }
    fail
}

/// A sound value that is no object, where arguments should be.
#[cold]
pub(super) fn not_object(at: usize, value: &Value, limits: &Limits) -> Fail {
    let found = match value {
        Value::String(text) if matches!(read(text.as_bytes(), limits), Ok(Value::Object(_))) => Found::DoubleEncoded,
        Value::String(_) => Found::NotObject("a string"),
        Value::Array(_) => Found::NotObject("an array"),
        Value::Number(_) => Found::NotObject("a number"),
        Value::Bool(_) => Found::NotObject("a boolean"),
        Value::Null => Found::NotObject("null"),
        Value::Object(_) => Found::NotObject("an object"),
    };
    Fail { at, found }
}

#[cold]
pub(super) fn duplicate(at: usize, name: &str) -> Fail {
    let prints = name.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\');
    let shown = prints && name.len() <= LONGEST_SHOWN_NAME;
    Fail { at, found: Found::Duplicate(shown.then(|| name.into())) }
}

/// The kind of a sound value, by its first byte.
pub(super) fn kind(text: &str, at: usize) -> &'static str {
    match text.as_bytes().get(at) {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

fn rest(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

fn before(text: &str, at: usize) -> &str {
    text.get(..at).unwrap_or_default().trim_end()
}

fn after_comma(text: &str, at: usize, yes: Found, no: Found) -> Found {
    if before(text, at).ends_with(',') { yes } else { no }
}

/// A string that ends before a word has most often lost the backslash of a quotation mark.
fn missing_comma(text: &str, at: usize) -> Found {
    let next = rest(text, at).chars().next();
    if before(text, at).ends_with('"') && next.is_some_and(char::is_alphanumeric) {
        Found::MissingCommaOrEscape
    } else {
        Found::MissingComma
    }
}

/// What is out of place anywhere outside a string.
fn stray(rest: &str, first: char) -> Option<Found> {
    if rest.starts_with(FENCE) {
        return Some(Found::CodeFence);
    }
    let found = match first {
        '\\' => Found::Backslash,
        '\'' => Found::QuoteSingle,
        '\u{201C}' | '\u{201D}' | '\u{2018}' | '\u{2019}' => Found::QuoteCurly,
        '\u{FEFF}' => Found::ByteOrderMark,
        _ => return comment(rest).or_else(|| control(first)),
    };
    Some(found)
}

fn comment(rest: &str) -> Option<Found> {
    let starts = ["//", "/*", "#", "<!--"];
    starts.iter().any(|start| rest.starts_with(start)).then_some(Found::Comment)
}

fn control(first: char) -> Option<Found> {
    first.is_control().then_some(Found::Character(first))
}

/// An unquoted word where a value should be, or the beginning of a good one that the end cut off.
fn word(rest: &str) -> Option<Found> {
    const OTHERS: [&str; 8] = ["None", "True", "False", "Null", "TRUE", "FALSE", "NULL", "undefined"];
    const NOT_FINITE: [&str; 5] = ["NaN", "nan", "Infinity", "inf", "Inf"];

    let unsigned = rest.strip_prefix('-').unwrap_or(rest);
    let end =
        unsigned.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(unsigned.len());
    let word = unsigned.get(..end).filter(|word| !word.is_empty())?;
    let is = |candidate: &&&str| **candidate == word;
    if end == unsigned.len() && ["true", "false", "null"].iter().any(|good| good.starts_with(word)) {
        return Some(Found::End);
    }
    if let Some(word) = NOT_FINITE.iter().find(is) {
        return Some(Found::NotFinite(word));
    }
    if let Some(word) = OTHERS.iter().find(is) {
        return Some(Found::WordOfAnotherLanguage(word));
    }
    Some(Found::UnquotedWord)
}
