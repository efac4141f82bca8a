//! What the keywords of one schema cost at a place of a value, its subschemas apart.

use serde_json::{Map, Value};

use super::pattern::Survey;

/// Work at a place. INVARIANT (nothing is free): whatever a keyword does there is in one of the two, so that both bound
/// the time of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    /// Steps that take the same time for any value: a few nanoseconds each.
    pub(super) steps: u64,
    /// Steps for each byte of the value, each about that of an atom of a pattern.
    pub(super) bulk: u64,
}

impl Weight {
    /// The least of a pattern: it is looked for in the whole text.
    const PATTERN: u64 = 2;
    /// A pattern on the bounded engine, for which each step may look ahead or back over the whole text.
    const BACKTRACKING: u64 = 1_000;
    const FORMAT: u64 = 4;
    /// Every item is hashed.
    const UNIQUE: u64 = 4;

    pub(super) fn of(keywords: &Map<String, Value>) -> Self {
        let mut weight = Self { steps: 1, bulk: 0 };
        for (name, value) in keywords {
            match name.as_str() {
                "required" => weight.steps += length(value),
                "dependentRequired" | "dependencies" => {
                    weight.steps += value.as_object().map_or(0, |by_name| by_name.values().map(length).sum());
                }
                "enum" => weight.among(value.as_array().map_or(&[], Vec::as_slice)),
                "const" => weight.among(std::slice::from_ref(value)),
                "pattern" => weight.bulk += value.as_str().map_or(0, Self::pattern),
                "patternProperties" => {
                    let patterns = value.as_object().into_iter().flat_map(Map::keys);
                    weight.bulk += patterns.map(|pattern| Self::pattern(pattern)).sum::<u64>();
                }
                "format" => weight.bulk += Self::FORMAT,
                "uniqueItems" if value == true => weight.bulk += Self::UNIQUE,
                _ => {}
            }
        }
        weight
    }

    fn pattern(pattern: &str) -> u64 {
        let survey = Survey::of(pattern);
        if survey.backtracks() { Self::BACKTRACKING } else { survey.size.max(Self::PATTERN) }
    }

    /// Many texts are looked up; other values are compared one by one, and a list or an object to its end.
    fn among(&mut self, options: &[Value]) {
        if options.iter().any(|option| !option.is_string()) {
            self.steps += count(options.len());
        }
        self.bulk += count(options.iter().filter(|option| option.is_array() || option.is_object()).count());
    }
}

fn length(value: &Value) -> u64 {
    value.as_array().map_or(0, |items| count(items.len()))
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
