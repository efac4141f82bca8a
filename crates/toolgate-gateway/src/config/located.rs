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
                message: format!("not TOML: {}", error.message()),
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
    fn every_fault_of_the_syntax_is_told() {
        let faults = Located::parse("a = \nb = 1\nc = 1979-05-27\nd = = 2\n").unwrap_err();
        assert!(faults.len() >= 3, "{faults:?}");
    }
}
