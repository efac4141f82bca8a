//! Marked values in texts that somebody else wrote: what a tool was given, its failures like to repeat.

use std::collections::BTreeSet;

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD, Encoding};
use serde_json::Value;

use super::Mark;

/// What a value holds that must leave no trace, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hidden(BTreeSet<String>);

/// A shorter one stands in any text, so it is taken out as a word alone.
const SHORTEST: usize = 4;
/// Fewer letters of a longer text in Base64 could stand in any word.
const SHORTEST_WITHIN: usize = 6;

impl Hidden {
    /// All texts and numbers of values of which nobody knows what is marked.
    pub(crate) fn all<'v>(values: impl IntoIterator<Item = &'v Value>) -> Self {
        let mut hidden = Self::default();
        values.into_iter().for_each(|value| hidden.add(value));
        hidden
    }

    /// All texts and numbers in a value.
    pub(super) fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) if text.trim().is_empty() => {}
            Value::String(text) => self.0.extend([text.clone()]),
            Value::Number(number) => self.0.extend([number.to_string()]),
            Value::Object(members) => members.values().for_each(|value| self.add(value)),
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Both.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// A text without what is hidden: as it is, as JSON escapes it, and where it is no short word, with percents or in
    /// Base64.
    pub(crate) fn taken_out_of(&self, text: &str) -> String {
        let is_long = |hidden: &&String| hidden.chars().count() >= SHORTEST;
        let (long, short): (Vec<&String>, Vec<&String>) = self.0.iter().partition(is_long);
        let encoded = long.iter().flat_map(|hidden| percents(hidden).into_iter().chain(base64(hidden)));
        let long: BTreeSet<String> = long.iter().flat_map(|hidden| written(hidden)).chain(encoded).collect();
        let short: BTreeSet<String> = short.iter().flat_map(|hidden| written(hidden)).collect();
        let shown = Mark::Secret.shown();
        let text = longest_first(long).iter().fold(text.to_owned(), |text, hidden| text.replace(hidden, shown));
        longest_first(short).iter().fold(text, |text, hidden| without_word(&text, hidden, shown))
    }
}

/// So that none is torn by one that is a part of it.
fn longest_first(texts: BTreeSet<String>) -> Vec<String> {
    let mut texts: Vec<String> = texts.into_iter().collect();
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    texts
}

/// As it is, and as JSON escapes it: what it must, or all that is not ASCII.
fn written(text: &str) -> Vec<String> {
    let quoted = Value::from(text).to_string();
    let escaped = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    vec![text.to_owned(), escaped.to_owned(), ascii(escaped, false), ascii(escaped, true)]
}

fn ascii(escaped: &str, capital: bool) -> String {
    let mut out = String::with_capacity(escaped.len());
    for c in escaped.chars() {
        if c.is_ascii() {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&if capital { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") });
        }
    }
    out
}

/// As URLs and forms hold it. Which signs stay as they are, and the case of the digits, depend on who wrote it.
fn percents(text: &str) -> Vec<String> {
    const KEPT: [&[u8]; 4] = [b"", b"!'()*", b"!$&'()*+,;=:@", b"!$&'()*+,;=:@/?#"];
    let encoded = KEPT.iter().flat_map(|kept| [true, false].map(|capital| percent(text, kept, capital)));
    encoded.flat_map(|text| [text.replace("%20", "+"), text]).collect()
}

fn percent(text: &str, kept: &[u8], capital: bool) -> String {
    let stays = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.contains(&byte);
    let encoded = text.bytes().map(|byte| match byte {
        byte if stays(byte) => char::from(byte).to_string(),
        byte if capital => format!("%{byte:02X}"),
        byte => format!("%{byte:02x}"),
    });
    encoded.collect()
}

/// In Base64, by itself and within something longer.
fn base64(text: &str) -> Vec<String> {
    let encodings = [BASE64, BASE64URL, BASE64_NOPAD, BASE64URL_NOPAD];
    let whole = encodings.iter().map(|encoding| encoding.encode(text.as_bytes()));
    let within = encodings.iter().flat_map(|encoding| (0..3).filter_map(|before| within_of(text, encoding, before)));
    whole.chain(within).collect()
}

/// What of a text in Base64 nothing has a share in that stands `before` it, or behind it.
fn within_of(text: &str, encoding: &Encoding, before: usize) -> Option<String> {
    let bytes = [vec![0; before].as_slice(), text.as_bytes()].concat();
    let (from, to) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    let inner = encoding.encode(&bytes).get(from..to)?.to_owned();
    (inner.len() >= SHORTEST_WITHIN).then_some(inner)
}

/// The text with something else in place of a word, where no letter and no digit goes on before or behind it.
fn without_word(text: &str, word: &str, shown: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for (at, _) in text.match_indices(word) {
        let after = at + word.len();
        let goes_on = |next: Option<char>| next.is_some_and(char::is_alphanumeric);
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let behind = text.get(after..).and_then(|behind| behind.chars().next());
        if !goes_on(before) && !goes_on(behind) {
            out.push_str(text.get(end..at).unwrap_or_default());
            out.push_str(shown);
            end = after;
        }
    }
    out.push_str(text.get(end..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_taken_out_where_all_that_is_not_ascii_was_escaped() {
        let hidden = Hidden::all([&json!({ "name": "Jörg \"😀\" Persy" })]);
        for repeated in [
            r#"failed with {"name": "J\u00f6rg \"\ud83d\ude00\" Persy"}"#,
            r#"failed with {"name": "J\u00F6rg \"\uD83D\uDE00\" Persy"}"#,
            r#"failed with {"name": "Jörg \"😀\" Persy"}"#,
        ] {
            let left = hidden.taken_out_of(repeated);
            assert!(!left.contains("Persy") && !left.contains("rg"), "{left}");
        }
    }
}
