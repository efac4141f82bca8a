//! TOML with places: the values as JSON, and where each stands in the text.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

/// A parsed TOML text that knows where everything stands.
#[derive(Debug)]
pub(crate) struct Located {
    pub(crate) table: Map<String, Value>,
    places: HashMap<String, usize>,
}

/// A fault of the syntax, and the byte at which it stands.
#[derive(Debug)]
pub(crate) struct SyntaxFault {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

impl Located {
    pub(crate) fn parse(text: &str) -> Result<Self, Vec<SyntaxFault>> {
        let (root, errors) = DeTable::parse_recoverable(text);
        let mut faults: Vec<SyntaxFault> = errors
            .iter()
            .map(|error| SyntaxFault {
                offset: error.span().map_or(0, |span| span.start),
                message: format!("not TOML: {}", in_our_words(error.message())),
            })
            .collect();
        let mut reader = Reader { places: HashMap::new(), faults: Vec::new() };
        let table = reader.table(root.get_ref(), "");
        faults.append(&mut reader.faults);
        if faults.is_empty() { Ok(Self { table, places: reader.places }) } else { Err(faults) }
    }

    /// The byte at which the value of a JSON pointer stands; where there is no such value, the nearest table around it.
    pub(crate) fn offset(&self, pointer: &str) -> usize {
        let mut pointer = pointer;
        loop {
            if let Some(offset) = self.places.get(pointer) {
                return *offset;
            }
            match pointer.rfind('/') {
                Some(slash) => pointer = pointer.get(..slash).unwrap_or_default(),
                None => return 0,
            }
        }
    }
}

/// What is wrong with a syntax, for whoever wrote it, by what the parser calls it.
fn in_our_words(said: &str) -> &'static str {
    const WORDS: [(&str, &str); 21] = [
        ("duplicate key", "this name stands here twice"),
        ("cannot extend", "this name has a value already, so nothing can stand below it"),
        ("unclosed array table", "the heading of this table does not end; write [[name]]"),
        ("unclosed table", "the heading of this table does not end; write [name]"),
        ("missing table open", "the heading of this table does not begin; write [name]"),
        ("unclosed array", "this list does not end; close it with ]"),
        ("unclosed inline table", "this table does not end; close it with }"),
        ("array", "this list is wrong; write [a, b]"),
        ("between key-value pairs", "this table is wrong; write { a = 1, b = 2 }"),
        ("inline table", "this table is wrong; write { a = 1, b = 2 }"),
        ("must be quoted", "a value is missing, or a text that stands in no quotes"),
        (
            "string",
            "this text is wrong; it stands between two quotes of one kind, on one line unless there are three of each",
        ),
        ("escaped", "there is no such escape; write \\\\ for a backslash, or take single quotes"),
        ("unicode value", "there is no such escape; write \\u and four hexadecimal digits"),
        ("key with no value", "a key needs a value; write key = value"),
        ("missing value", "a key needs a value; write key = value"),
        ("unquoted key", "this is no name of a key; write it in quotes"),
        ("comment", "a character that cannot be seen has no place in a comment"),
        ("recurs", "this is nested too deeply"),
        ("date-time", "this is neither a number nor a date; a text stands in quotes"),
        ("number", "this is no number"),
    ];
    let found = WORDS.iter().find(|(word, _)| said.contains(word));
    found.map_or("this is no `key = value` and no `[table]`", |(_, ours)| ours)
}

struct Reader {
    places: HashMap<String, usize>,
    faults: Vec<SyntaxFault>,
}

impl Reader {
    /// A key stands where its name does: that is what a reader of the file looks for.
    fn table(&mut self, table: &DeTable<'_>, at: &str) -> Map<String, Value> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut map = Map::new();
        for (key, value) in entries {
            let name = key.get_ref().as_ref();
            let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            self.places.insert(place.clone(), key.span().start);
            if let Some(value) = self.value(value.get_ref(), value.span(), &place) {
                map.insert(name.to_owned(), value);
            }
        }
        map
    }

    fn value(&mut self, value: &DeValue<'_>, span: Range<usize>, at: &str) -> Option<Value> {
        Some(match value {
            DeValue::String(text) => Value::String(text.as_ref().to_owned()),
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Integer(integer) => {
                let parsed = i64::from_str_radix(integer.as_str(), integer.radix());
                match parsed {
                    Ok(number) => Value::Number(Number::from(number)),
                    Err(_) => return self.fault(span, "a whole number of at most 64 bits was expected"),
                }
            }
            DeValue::Float(float) => match float.as_str().parse::<f64>().ok().and_then(Number::from_f64) {
                Some(number) => Value::Number(number),
                None => return self.fault(span, "a finite number was expected"),
            },
            DeValue::Datetime(_) => return self.fault(span, "a date has no place here; write it as a text in quotes"),
            DeValue::Array(items) => {
                let mut list = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    let place = format!("{at}/{index}");
                    self.places.insert(place.clone(), item.span().start);
                    list.extend(self.value(item.get_ref(), item.span(), &place));
                }
                Value::Array(list)
            }
            DeValue::Table(table) => Value::Object(self.table(table, at)),
        })
    }

    fn fault(&mut self, span: Range<usize>, message: &str) -> Option<Value> {
        self.faults.push(SyntaxFault { offset: span.start, message: message.to_owned() });
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_keep_their_order_and_their_place() {
        let text = "b = 1\n[a.c]\nd = [true, \"x\"]\n";
        let located = Located::parse(text).unwrap();
        assert_eq!(Value::Object(located.table.clone()), json!({"b": 1, "a": {"c": {"d": [true, "x"]}}}));
        assert_eq!(located.table.keys().collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(located.offset("/a/c/d"), text.find('d').unwrap());
        assert_eq!(located.offset("/a/c/missing"), text.find("c]").unwrap());
    }

    #[test]
    fn a_fault_of_the_syntax_is_told_in_our_words() {
        let mut wrong = Vec::new();
        for (text, told) in [
            ("a = 1\na = 2", "this name stands here twice"),
            ("[a]\n[a]", "this name stands here twice"),
            ("a = 1\na.b = 2", "this name has a value already, so nothing can stand below it"),
            ("[[a", "the heading of this table does not end; write [[name]]"),
            ("[a", "the heading of this table does not end; write [name]"),
            ("a = [1, 2", "this list does not end; close it with ]"),
            ("a = [1,, 2]", "this list is wrong; write [a, b]"),
            ("a = { b = 1", "this table does not end; close it with }"),
            ("a = { b 1 }", "this table is wrong; write { a = 1, b = 2 }"),
            ("a = read", "a value is missing, or a text that stands in no quotes"),
            (
                "a = \"x",
                "this text is wrong; it stands between two quotes of one kind, on one line unless there are three of each",
            ),
            ("a = \"\\d\"", "there is no such escape; write \\\\ for a backslash, or take single quotes"),
            ("a", "a key needs a value; write key = value"),
            ("a =", "a value is missing, or a text that stands in no quotes"),
            ("a = 1 b = 2", "this is no `key = value` and no `[table]`"),
        ] {
            let faults = Located::parse(text).unwrap_err();
            let messages: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
            if !messages.contains(&format!("not TOML: {told}").as_str()) {
                wrong.push(format!("{text}: {messages:?}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn every_fault_of_the_syntax_is_told() {
        let faults = Located::parse("a = \nb = 1\nc = 1979-05-27\nd = = 2\n").unwrap_err();
        assert!(faults.len() >= 3, "{faults:?}");
    }
}
