//! Bounds where a schema is silent, and how much of a value can be held to a schema at all.

use serde_json::Value;

use super::Schema;
use super::graph::escaped;
use super::inert::{below, is_controlled};

/// Characters of a string of which the schema says no length.
const TEXT: usize = 65_536;
/// The same where somebody else wrote the schema: their tools take files, and nobody here can write a `maxLength`.
const IMPORTED_TEXT: usize = 262_144;
/// Items of a list of which the schema says no count.
const ITEMS: usize = 1_000;

/// Steps of one check: about half a second.
const MAX_STEPS: u64 = 100_000_000;
/// Steps for the bytes of a value in one check: about a third of a second, and as much again twice to say what is wrong.
const MAX_BULK: u64 = 100_000_000;
/// The largest value that a gate reads unless it is configured otherwise. An item of a list takes two bytes, and only the
/// members of objects are counted when a text is read.
const USUAL_PLACES: u64 = USUAL_BYTES / 2 + 1;
const USUAL_BYTES: u64 = 1 << 20;
/// What is wrong with a value is told place by place only where there are few enough: each problem takes memory.
const MAX_EXPLAINED: u64 = 500_000;

/// Something that is longer than may be where the schema does not say.
pub(super) struct Excess {
    pub(super) at: String,
    pub(super) of: Measure,
    pub(super) most: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Characters,
    Items,
}

/// How much there is of a value.
#[derive(Default)]
struct Extent {
    places: u64,
    bytes: u64,
}

impl Extent {
    fn of(value: &Value) -> Self {
        let mut extent = Self::default();
        extent.add(value);
        extent
    }

    fn add(&mut self, value: &Value) {
        let size = |text: &str| u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.places += 1;
        match value {
            Value::String(text) => self.bytes += size(text),
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(members) => members.iter().for_each(|(name, value)| {
                self.bytes += size(name);
                self.add(value);
            }),
            // About as much as it is written with.
            Value::Null | Value::Bool(_) | Value::Number(_) => self.bytes += 8,
        }
    }
}

impl Schema {
    /// Whether a check of this value ends soon. Few schemas are so heavy that it needs a look at the value.
    pub(super) fn affords(&self, value: &Value) -> bool {
        let fits = |extent: &Extent| {
            self.cost.steps.saturating_mul(extent.places) <= MAX_STEPS
                && self.cost.bulk.saturating_mul(extent.bytes) <= MAX_BULK
        };
        fits(&Extent { places: USUAL_PLACES, bytes: USUAL_BYTES }) || fits(&Extent::of(value))
    }

    /// The most that a check of this value can cost.
    pub(super) fn steps_of(&self, value: &Value) -> u64 {
        let extent = Extent::of(value);
        let each = self.cost.steps.saturating_mul(extent.places);
        each.saturating_add(self.cost.bulk.saturating_mul(extent.bytes)).saturating_add(extent.bytes)
    }

    /// Whether all that is wrong with this value can be told.
    pub(super) fn explains(&self, value: &Value) -> bool {
        self.cost.steps.saturating_mul(Extent::of(value).places) <= MAX_EXPLAINED
    }

    /// Whether a value has neither control characters nor anything long, so that nobody need ask what its schema says.
    pub(super) fn is_plain(&self, value: &Value) -> bool {
        fn plain(value: &Value, most: usize) -> bool {
            match value {
                // A character has at least one byte.
                Value::String(text) => text.len() <= most && !is_controlled(text),
                Value::Array(items) => items.len() <= ITEMS && items.iter().all(|item| plain(item, most)),
                Value::Object(members) => {
                    members.iter().all(|(name, value)| !is_controlled(name) && plain(value, most))
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => true,
            }
        }
        plain(value, self.longest_text())
    }

    /// What is too long, where the schema does not say how long it may be.
    pub(super) fn excesses(&self, value: &Value) -> Vec<Excess> {
        let mut found = Vec::new();
        self.measure(value, &mut String::new(), &mut found);
        found
    }

    fn longest_text(&self) -> usize {
        if self.imported { IMPORTED_TEXT } else { TEXT }
    }

    fn measure(&self, value: &Value, at: &mut String, found: &mut Vec<Excess>) {
        let mut exceeds = |at: &str, of: Measure, most: usize| {
            let spread = self.graph.spread(&self.graph.entries(at));
            let said = self.graph.each(&spread).any(|node| match of {
                Measure::Characters => node.bounds_text,
                Measure::Items => node.bounds_items,
            });
            if !said {
                found.push(Excess { at: at.to_owned(), of, most });
            }
        };
        let most = self.longest_text();
        match value {
            Value::String(text) if text.len() > most && text.chars().nth(most).is_some() => {
                exceeds(at, Measure::Characters, most);
            }
            Value::Array(items) => {
                if items.len() > ITEMS {
                    exceeds(at, Measure::Items, ITEMS);
                }
                for (index, item) in items.iter().enumerate() {
                    below(at, &index.to_string(), |at| self.measure(item, at, found));
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    below(at, &escaped(name), |at| self.measure(value, at, found));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
