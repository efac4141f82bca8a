//! Text of other programs, as it may stand in a line of ours.

use serde_json::Value;
use toolgate::schema::inert;

/// The text on one line, at most `most` characters of it, with everything visible that would hide, reorder or move.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(most).collect();
    let Value::String(head) = inert(Value::from(head)) else { return String::new() };
    let mut out = String::with_capacity(head.len());
    for c in head.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    if chars.next().is_some() {
        out.push_str("...");
    }
    out
}

/// Whether a text is a name of 1 to 128 of the characters A-Z a-z 0-9 _ . - and so nothing that reads as words to anybody.
pub(crate) fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=128).contains(&name.len()) && name.bytes().all(plain)
}

/// A name that another program chose, as a model may read it: one that is not plain is not shown.
pub(crate) fn plain(name: &str) -> &str {
    if is_plain(name) { name } else { NOT_SHOWN }
}

/// What stands for a name that is not plain.
pub(crate) const NOT_SHOWN: &str = "(not shown)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_act_on_a_terminal_is_seen_instead() {
        assert_eq!(one_line("a\u{1b}[2J\r\nb\u{202E}c\td", 40), "a\\u{001B}[2J\\r\\nb\\u{202E}c\\td");
        assert_eq!(one_line("123456", 6), "123456");
        assert_eq!(one_line("1234567", 6), "123456...");
    }
}
