//! Where in a value a flaw stands, as a JSON pointer. Only a text that is refused is walked for it.

use serde_json::Value;

use super::{Limits, read};

/// Longer names, and names that do not print, are left out of pointers.
const LONGEST_SHOWN_NAME: usize = 64;

/// An open bracket, and how far its content was walked.
enum Level {
    Object {
        /// The raw text of the name of the member whose value comes or has come.
        name: Option<(usize, usize)>,
    },
    Array {
        index: usize,
    },
}

/// The pointer of the value, or of the repeated name, that stands at `offset`. The text before it has a sound structure.
///
/// INVARIANT (no echo): a member's name is shown only if it is short and printable; else the pointer ends before it.
#[cold]
pub(super) fn pointer(text: &[u8], offset: usize) -> String {
    let mut open = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at).filter(|_| at <= offset) {
        let mut next = at + 1;
        match byte {
            b'{' => open.push(Level::Object { name: None }),
            b'[' => open.push(Level::Array { index: 0 }),
            b'}' | b']' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(Level::Object { name }) => *name = None,
                Some(Level::Array { index }) => *index += 1,
                None => {}
            },
            b'"' => {
                next = end_of_string(text, at);
                if let Some(Level::Object { name: name @ None }) = open.last_mut()
                    && (next <= offset || at == offset)
                {
                    *name = Some((at, next));
                }
            }
            _ => {}
        }
        // What stands at the offset itself opens or ends nothing any more.
        if at == offset && *byte != b'"' {
            break;
        }
        at = next;
    }
    written(text, &open)
}

fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn written(text: &[u8], open: &[Level]) -> String {
    let mut pointer = String::new();
    for level in open {
        match level {
            Level::Array { index } => pointer.push_str(&format!("/{index}")),
            Level::Object { name: None } => break,
            Level::Object { name: Some((start, end)) } => {
                let Some(name) = text.get(*start..*end).and_then(shown) else { break };
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
        }
    }
    pointer
}

fn shown(name: &[u8]) -> Option<String> {
    match read(name, &Limits::default()) {
        Ok(Value::String(name)) => {
            let prints = name.len() <= LONGEST_SHOWN_NAME && name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
            prints.then_some(name)
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    /// Where the reader finds the flaw of a text.
    fn place(text: &str) -> String {
        read(text.as_bytes(), &Limits::default()).unwrap_err().pointer
    }

    #[test]
    fn a_flaw_in_a_value_is_told_at_the_member_or_item_that_holds_it() {
        for (text, expected) in [
            (r#"{"a":1,"b":12345678901234567890123}"#, "/b"),
            (r#"{"a":{"x":{}},"b":[true,{"c":[0,1e400]}]}"#, "/b/1/c/1"),
            (r#"{"a":"\ud800"}"#, "/a"),
            (r#"["\"]}{,:", ["x", "\udc00"]]"#, "/1/1"),
            ("{\"a\":[\"x\ny\"]}", "/a/0"),
            ("12345678901234567890123", ""),
        ] {
            assert_eq!(place(text), expected, "{text}");
        }
    }

    #[test]
    fn a_repeated_name_is_told_with_its_name_as_it_is_meant() {
        for (text, expected) in [
            (r#"{"cents":100,"c\u0065nts":990000}"#, "/cents"),
            (r#"{"payee":{"iban":"x","\u0069ban":"y"}}"#, "/payee/iban"),
            (r#"[{"a/b":1,"c~d":{"e":1,"e":2}}]"#, "/0/c~0d/e"),
            (r#"{"a":{},"a":1}"#, "/a"),
        ] {
            assert_eq!(place(text), expected, "{text}");
        }
    }

    #[test]
    fn a_name_that_is_itself_at_fault_or_does_not_print_is_not_told() {
        let long = "n".repeat(65);
        for (text, expected) in [
            (r#"{"a":{"\ud800":1}}"#, "/a"),
            (&format!(r#"{{"a":{{"{long}":1e400}}}}"#), "/a"),
            (r#"{"a":{"b\u200b":{"c":1e400}}}"#, "/a"),
        ] {
            assert_eq!(place(text), expected, "{text}");
        }
    }

    #[test]
    fn a_text_whose_structure_is_broken_has_the_place_of_the_whole() {
        for text in [r#"{"a":{"b":NaN}}"#, r#"{"a":["#, r#"{"a":1}}"#, r#"{"a":{"b":'x'}}"#] {
            assert_eq!(place(text), "", "{text}");
        }
    }
}
