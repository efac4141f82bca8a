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
