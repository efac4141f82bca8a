//! Characters that a reader does not see or that act on what shows them.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::graph::escaped;
use crate::json::is_printable_ascii;

/// Makes invisible and controlling characters of every string and member name harmless: each is shown as an escape
/// such as `\u{202E}`. Line breaks, tabs, emoji and text that runs from right to left stay as they are.
pub fn inert(value: Value) -> Value {
    if has(&value, acts) { made_inert(value) } else { value }
}

fn made_inert(value: Value) -> Value {
    match value {
        Value::String(text) if text.chars().any(acts) => Value::String(shown(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(made_inert).collect()),
        Value::Object(members) => {
            let mut out = Map::new();
            for (name, value) in members {
                let mut name = if name.chars().any(acts) { shown(&name) } else { name };
                // Two names may differ in what is not seen alone; neither value is lost.
                while out.contains_key(&name) {
                    name.push('_');
                }
                out.insert(name, made_inert(value));
            }
            Value::Object(out)
        }
        other => other,
    }
}

/// A name or pointer for a message: as `inert`, and on one line.
pub(super) fn visible(text: &str) -> String {
    if !is_printable_ascii(text) && text.chars().any(|c| acts(c) || c.is_control()) {
        escape(text, |c| acts(c) || c.is_control())
    } else {
        text.to_owned()
    }
}

fn shown(text: &str) -> String {
    escape(text, acts)
}

fn escape(text: &str, which: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if which(c) {
            out.push_str(&format!("\\u{{{:04X}}}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a character changes how the others are read, and is not seen.
pub(crate) fn acts(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        // Zero-width space, word joiner and invisible operators, byte order mark.
        '\u{200B}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' => true,
        // Line and paragraph separator, embeddings and overrides, isolates, their deprecated kin.
        '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{206F}' => true,
        // Interlinear annotation, tags.
        '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}' => true,
        c => c.is_control(),
    }
}

/// Whether any string or member name holds one of these characters; none of them is printable ASCII.
fn has(value: &Value, which: fn(char) -> bool) -> bool {
    let held = |text: &str| !is_printable_ascii(text) && text.chars().any(which);
    match value {
        Value::String(text) => held(text),
        Value::Array(items) => items.iter().any(|item| has(item, which)),
        Value::Object(members) => members.iter().any(|(name, value)| held(name) || has(value, which)),
        _ => false,
    }
}

/// The worst control character of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Control {
    /// A line feed or a tab, which multi-line text has.
    Break,
    /// A carriage return, which some people's multi-line text has.
    Return,
    /// Any other, which no text has.
    Other,
}

impl Control {
    fn of(c: char) -> Option<Self> {
        match c {
            '\n' | '\t' => Some(Self::Break),
            '\r' => Some(Self::Return),
            c if controls_text(c) => Some(Self::Other),
            _ => None,
        }
    }
}

/// The places of these characters in a value that stands at `place`: the pointer, and the worst that stands there.
pub(super) fn controls(place: &str, value: &Value) -> Vec<(String, Control)> {
    let mut found = Vec::new();
    gather(value, &mut place.to_owned(), &mut found);
    found
}

fn gather(value: &Value, at: &mut String, found: &mut Vec<(String, Control)>) {
    match value {
        Value::String(text) if is_controlled(text) => {
            found.extend(text.chars().filter_map(Control::of).max().map(|worst| (at.clone(), worst)));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let length = at.len();
                // Writing to a String cannot fail.
                let _ = write!(at, "/{index}");
                gather(item, at, found);
                at.truncate(length);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                below(at, &escaped(name), |at| {
                    if is_controlled(name) {
                        found.push((at.clone(), Control::Other));
                    }
                    gather(value, at, found);
                });
            }
        }
        _ => {}
    }
}

/// Calls with the pointer lengthened by one segment.
pub(super) fn below<T>(at: &mut String, segment: &str, call: impl FnOnce(&mut String) -> T) -> T {
    let length = at.len();
    at.push('/');
    at.push_str(segment);
    let answer = call(at);
    at.truncate(length);
    answer
}

fn controls_text(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// ASCII first: most text needs one look.
pub(super) fn is_controlled(text: &str) -> bool {
    !is_printable_ascii(text) && text.chars().any(controls_text)
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_hides_or_reorders_text_becomes_visible() {
        let tags: String = "ignore".chars().map(|c| char::from_u32(0xE0000 + u32::from(c)).unwrap()).collect();
        for (hostile, seen) in [
            ("pay \u{202E}drawer", "pay \\u{202E}drawer"),
            ("\u{2066}a\u{2069}", "\\u{2066}a\\u{2069}"),
            ("a\u{200B}b\u{FEFF}", "a\\u{200B}b\\u{FEFF}"),
            ("bell\u{7}\u{1b}[2J", "bell\\u{0007}\\u{001B}[2J"),
            ("a\u{85}b\u{7f}", "a\\u{0085}b\\u{007F}"),
            ("a\u{2028}b", "a\\u{2028}b"),
        ] {
            assert_eq!(inert(json!({ "t": [hostile] })), json!({ "t": [seen] }));
        }
        let Value::String(seen) = inert(json!(tags)) else { panic!() };
        assert!(seen.starts_with("\\u{E0069}") && !seen.chars().any(acts));
        assert_eq!(inert(json!({ "na\u{200B}me": 1, "na\\u{200B}me": 2 })).as_object().unwrap().len(), 2);
    }

    #[test]
    fn honest_text_is_left_alone() {
        for text in ["👩‍👩‍👧‍👦 ❤️", "שלום\u{200F} עולם", "می‌خواهم", "line\r\n\tnext", "Ω naïve 漢字"]
        {
            assert_eq!(inert(json!(text)), json!(text));
        }
    }
}
