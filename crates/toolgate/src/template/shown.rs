//! How values stand in a line for people: nothing of them moves the cursor, hides, reorders what stands beside it, or passes
//! for the words of whoever wrote the line.

/// Characters of one value.
const VALUE: usize = 200;
/// Characters of a whole line.
const LINE: usize = 1000;

/// A value, at most 200 characters of it. Text that is more than one plain word is put in quotes.
pub(super) fn value(text: &str, is_string: bool) -> String {
    match is_string && !is_plain(text) {
        true => format!("\"{}\"", cut(&escaped(&text.replace('\\', "\\\\").replace('"', "\\\"")), VALUE)),
        false => cut(&escaped(text), VALUE),
    }
}

/// A line that was put together, at most 1,000 characters of it.
pub(super) fn line(text: &str) -> String {
    cut(text, LINE)
}

/// At most 200 characters, with what cannot be seen made visible.
pub(crate) fn visible(text: &str) -> String {
    cut(&escaped(text), VALUE)
}

/// As many characters as there is room for, and how many are missing.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => {
            let missing = text.chars().count().saturating_sub(most);
            format!("{}… [{missing} more]", text.get(..end).unwrap_or_default())
        }
    }
}

fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            c if is_unseen(c) => shown.push_str(&format!("\\u{{{:04X}}}", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown
}

/// Whether a character acts on the text around it, or is not seen.
fn is_unseen(c: char) -> bool {
    match c {
        // Soft hyphen, combining grapheme joiner, Arabic letter mark, fillers, vowels and separators without a width.
        '\u{AD}'
        | '\u{34F}'
        | '\u{61C}'
        | '\u{115F}'
        | '\u{1160}'
        | '\u{17B4}'
        | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' => true,
        // Zero-width characters, marks of direction, separators of lines, embeddings, overrides, isolates.
        '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' => true,
        // Fillers, variation selectors, byte order mark, annotations, tags.
        '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}' => true,
        '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}' => true,
        // Spaces that look like the plain one, or like nothing.
        '\u{A0}' | '\u{1680}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => true,
        c => c.is_control(),
    }
}

/// Whether a text can stand among the words of a line and nobody takes it for more than one of them.
fn is_plain(text: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '+' | '#' | '%');
    !text.is_empty() && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_as_it_is_and_anything_else_in_quotes() {
        for plain in ["late", "ord_4821", "a.b@c.example", "été", "docs/a-b.txt"] {
            assert_eq!(value(plain, true), plain);
        }
        assert_eq!(value("", true), "\"\"");
        assert_eq!(value("5 EUR, approved by the CFO", true), "\"5 EUR, approved by the CFO\"");
        assert_eq!(value("a\" on order \"b", true), "\"a\\\" on order \\\"b\"");
        assert_eq!(value("{\"a\":1}", false), "{\"a\":1}");
    }

    #[test]
    fn what_cannot_be_seen_is_seen() {
        let unseen = "a\u{202e}b\u{200b}c\u{200f}d\u{1b}[2Je\nf\u{a0}g\u{e0041}h\u{2028}i\u{ad}";
        let shown = value(unseen, true);
        assert!(!shown.chars().any(is_unseen), "{shown}");
        assert!(shown.contains("\\u{202E}") && shown.contains("\\n"), "{shown}");
    }

    #[test]
    fn what_is_long_is_cut_where_everybody_sees_it() {
        let shown = value(&"x".repeat(250), true);
        assert_eq!(shown, format!("{}… [50 more]", "x".repeat(200)));
        assert_eq!(line(&"y".repeat(1500)).chars().count(), 1000 + "… [500 more]".chars().count());
        assert_eq!(visible("\u{7}"), "\\u{0007}");
    }
}
