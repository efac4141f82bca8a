//! Values that do not fit, read otherwise where a leniency is named for their place.
//!
//! Each place is judged by all schemas that hold for it. A value that fits is left alone, and what replaces one that
//! does not must fit. Below a union whose branch the value does not tell, a reading counts only if it is the only one.

use serde_json::{Map, Value};

use super::Schema;
use super::graph::{Graph, NodeId, escaped};
use super::problems::by_place;
use super::readings::Readings;
use crate::json::{self, Limits};
use crate::leniency::{Granted, Leniencies, Leniency, Used};

/// Work of one reading: every place that is looked at, copied or held to a schema, each time anew, and bytes of texts,
/// 8 that are parsed or 64 that are held to a schema for one step. Beyond it, nothing is read otherwise. It is well
/// under a second, and more than an argument text of the default size takes where no branch is tried.
const MOST_STEPS: usize = 1_000_000;
/// Bytes of the places of one reading: beyond it, nothing is read otherwise either.
const MOST_OF_PLACES: usize = 4 << 20;

impl Schema {
    /// A value that does not fit, with what its leniencies make of it, and where. It may still not fit. `limits` are
    /// those of the text that it came from; they hold for texts inside of it as well.
    pub(crate) fn lenient(&self, value: Value, granted: Granted, limits: &Limits) -> (Value, Vec<Used>) {
        let members = limits.members.saturating_sub(count_members(&value));
        let limits = Limits { members, ..*limits };
        let mut reading =
            Reading { schema: self, granted, limits, used: Vec::new(), steps: 0, noted: 0, at: String::new() };
        let read = reading.value(value.clone(), &[Graph::ROOT], 0);
        if reading.is_over() {
            return (value, Vec::new());
        }
        reading.used.sort_by(|one, other| by_place(&one.at, &other.at));
        (read, reading.used)
    }

    /// The leniencies that schemas of the document name for the places they speak of.
    pub(crate) fn lenient_members(&self) -> Leniencies {
        self.graph.nodes.iter().fold(Leniencies::default(), |set, node| set.or(node.lenient))
    }
}

/// The value that a text is otherwise, if it is written in the one way that a leniency takes.
type Scalar = fn(&str) -> Option<Value>;

/// No text is written in two of these ways.
const SCALARS: [(Leniency, Scalar); 3] = [
    (Leniency::IntegerAsString, spelled_integer),
    (Leniency::BooleanAsString, spelled_boolean),
    (Leniency::Trim, trimmed),
];

struct Reading<'s> {
    schema: &'s Schema,
    granted: Granted,
    /// What is left for texts inside of the value.
    limits: Limits,
    used: Vec<Used>,
    steps: usize,
    /// Bytes of the places that were noted, those of branches that were given up too.
    noted: usize,
    /// The place that is looked at.
    at: String,
}

impl Reading<'_> {
    /// The value at a place that these schemas lead to, `depth` brackets deep.
    fn value(&mut self, value: Value, entries: &[NodeId], depth: usize) -> Value {
        self.take(entries.len().max(1));
        if entries.is_empty() || self.is_over() {
            return value;
        }
        match value {
            Value::String(text) => self.text(text, entries, depth),
            Value::Array(_) | Value::Object(_) => {
                let Readings { certain, open } = self.schema.readings(entries, &value);
                self.take(certain.len() + open.iter().map(Vec::len).sum::<usize>());
                let value = self.inside(value, &certain, depth);
                open.into_iter().fold(value, |value, branches| self.only_reading(value, &branches, depth))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    fn text(&mut self, text: String, entries: &[NodeId], depth: usize) -> Value {
        let allowed = self.allowed(entries);
        let sent = Value::String(text);
        if allowed.is_empty() || self.fits(entries, &sent) {
            return sent;
        }
        let text = sent.as_str().unwrap_or_default();
        for (leniency, read) in SCALARS {
            if allowed.has(leniency)
                && let Some(meant) = read(text)
                && self.fits(entries, &meant)
            {
                self.note(leniency);
                return meant;
            }
        }
        if allowed.has(Leniency::JsonAsString)
            && self.schema.excluded(entries, "string")
            && let Some(held) = self.held(text, depth)
        {
            let mark = self.used.len();
            self.note(Leniency::JsonAsString);
            let meant = self.value(held, entries, depth);
            if self.fits(entries, &meant) {
                return meant;
            }
            self.used.truncate(mark);
        }
        sent
    }

    /// The object or array that a text holds.
    fn held(&mut self, text: &str, depth: usize) -> Option<Value> {
        // A byte may be half a place.
        self.take(text.len() / 8);
        if self.is_over() {
            return None;
        }
        let limits = Limits { depth: self.limits.depth.saturating_sub(depth), ..self.limits };
        let held = json::read(text.as_bytes(), &limits).ok().filter(|value| value.is_object() || value.is_array())?;
        self.limits.members = self.limits.members.saturating_sub(count_members(&held));
        Some(held)
    }

    /// What stands in a value for which `certain` holds.
    fn inside(&mut self, value: Value, certain: &[NodeId], depth: usize) -> Value {
        match value {
            Value::Object(members) => {
                let mut read = Map::new();
                for (name, value) in members {
                    let entries = self.schema.entries_of_member(certain, &name);
                    let value = self.below(&escaped(&name), |own| {
                        if value.is_null() && own.is_absent(certain, &name, &entries) {
                            own.note(Leniency::NullAsAbsent);
                            return None;
                        }
                        Some(own.value(value, &entries, depth + 1))
                    });
                    if let Some(value) = value {
                        read.insert(name, value);
                    }
                }
                Value::Object(read)
            }
            Value::Array(items) => {
                let items = items.into_iter().enumerate().map(|(index, item)| {
                    let entries = self.schema.graph.of_item(certain, index);
                    self.below(&index.to_string(), |own| own.value(item, &entries, depth + 1))
                });
                Value::Array(items.collect())
            }
            scalar => scalar,
        }
    }

    /// Whether `null` for this member means that it is not there.
    fn is_absent(&mut self, certain: &[NodeId], name: &str, entries: &[NodeId]) -> bool {
        self.allowed(entries).has(Leniency::NullAsAbsent)
            && !self.schema.graph.of_named_member(certain, name).is_empty()
            && !self.schema.demanded(certain, name)
            && !self.fits(entries, &Value::Null)
    }

    /// The value as the one branch reads it that can; as it is where it fits, or where more than one could be meant.
    fn only_reading(&mut self, value: Value, branches: &[NodeId], depth: usize) -> Value {
        self.take(extent(&value).saturating_mul(branches.len()));
        if self.is_over() || branches.iter().any(|branch| self.fits(&[*branch], &value)) {
            return value;
        }
        let mark = self.used.len();
        let mut only: Option<(Value, Vec<Used>)> = None;
        for branch in branches {
            if self.is_over() {
                return value;
            }
            let read = self.value(value.clone(), &[*branch], depth);
            let used = self.used.split_off(mark);
            if !self.fits(&[*branch], &read) {
                continue;
            }
            match &only {
                Some((other, _)) if *other != read => return value,
                Some(_) => {}
                None => only = Some((read, used)),
            }
        }
        let Some((read, used)) = only else { return value };
        self.used.extend(used);
        read
    }

    /// The leniencies that are named for a place.
    fn allowed(&self, entries: &[NodeId]) -> Leniencies {
        if self.granted.where_said.is_empty() {
            return self.granted.everywhere;
        }
        let spread = self.schema.graph.spread(entries);
        let said = self.schema.graph.each(&spread).fold(Leniencies::default(), |set, node| set.or(node.lenient));
        self.granted.everywhere.or(said.and(self.granted.where_said))
    }

    /// Whether a value fits everything that is said of the place.
    fn fits(&mut self, entries: &[NodeId], value: &Value) -> bool {
        let Schema { document, graph, judges, .. } = self.schema;
        self.take(extent(value).saturating_mul(entries.len().max(1)));
        if self.is_over() {
            return false;
        }
        entries.iter().all(|id| judges.accept(document, graph, *id, value))
            && self.schema.controls_from(&self.at, value).is_empty()
    }

    fn note(&mut self, leniency: Leniency) {
        self.noted = self.noted.saturating_add(self.at.len());
        if !self.is_over() {
            self.used.push(Used::at(leniency, self.at.as_str()));
        }
    }

    fn take(&mut self, steps: usize) {
        self.steps = self.steps.saturating_add(steps);
    }

    /// Whether this reading is given up.
    fn is_over(&self) -> bool {
        self.steps > MOST_STEPS || self.noted > MOST_OF_PLACES
    }

    /// One segment further down.
    fn below<T>(&mut self, segment: &str, look: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.at.len();
        self.at.push('/');
        self.at.push_str(segment);
        let found = look(self);
        self.at.truncate(length);
        found
    }
}

/// The integer that a text is the JSON spelling of: no blanks, no sign but `-`, no leading zeros, within 64 bits.
fn spelled_integer(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let spelled = match digits.as_bytes() {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !spelled {
        return None;
    }
    text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<u64>().map(Value::from)).ok()
}

fn spelled_boolean(text: &str) -> Option<Value> {
    match text {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        _ => None,
    }
}

fn trimmed(text: &str) -> Option<Value> {
    let inside = text.trim();
    (inside.len() < text.len()).then(|| Value::from(inside))
}

fn count_members(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.len() + members.values().map(count_members).sum::<usize>(),
        Value::Array(items) => items.iter().map(count_members).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The places of a value, and what its texts weigh.
fn extent(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.iter().map(|(name, value)| size(name) + extent(value)).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(extent).sum::<usize>(),
        Value::String(text) => 1 + size(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

/// What a text costs beside the place that it stands at.
fn size(text: &str) -> usize {
    text.len() / 64
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    /// Levels of three variants each, all of which lead to the next level, above a list of integers.
    fn variants(levels: usize) -> Schema {
        let variant = |tag: &str, next: usize| {
            json!({ "type": "object", "properties": {
                tag: { "type": "integer" }, "next": { "$ref": format!("#/$defs/d{next}") } } })
        };
        let level = |next| json!({ "anyOf": [variant("a", next), variant("b", next), variant("c", next)] });
        let mut definitions: Map<String, Value> = (0..levels).map(|n| (format!("d{n}"), level(n + 1))).collect();
        definitions.insert(format!("d{levels}"), json!({ "type": "array", "items": { "type": "integer" } }));
        let document = json!({ "$defs": definitions, "properties": { "top": { "$ref": "#/$defs/d0" } } });
        Schema::input(&document).unwrap()
    }

    fn read(schema: &Schema, value: Value) -> (Value, Vec<Used>) {
        let everywhere = [Leniency::IntegerAsString].into_iter().collect();
        schema.lenient(value, Granted { everywhere, ..Granted::default() }, &Limits::default())
    }

    #[test]
    fn a_value_that_takes_too_many_steps_is_left_as_it_is() {
        let sent = |levels: usize, items: usize| {
            let list = json!(vec!["1"; items]);
            let wrap = |inner: Value, _| json!({ "a": "x", "b": "x", "c": 1, "next": inner });
            json!({ "top": (0..levels).fold(list, wrap) })
        };
        // A few are read: of the three variants two are wrong in themselves.
        let (small, used) = read(&variants(2), sent(2, 2));
        assert_eq!((&small["top"]["next"]["next"], used.len()), (&json!([1, 1]), 2));
        for large in [sent(7, 20_000), sent(7, 200)] {
            given_up(&variants(7), large, Leniency::IntegerAsString);
        }
    }

    #[test]
    fn a_text_of_a_megabyte_is_not_parsed_in_every_branch() {
        let text = format!("[{}\"x\"]", "1,".repeat(400_000));
        let wrap = |inner: Value, _| json!({ "a": 1, "b": 1, "c": 1, "next": inner });
        let sent = json!({ "top": (0..7).fold(Value::from(text), wrap) });
        given_up(&variants(7), sent, Leniency::JsonAsString);
    }

    #[test]
    fn a_long_name_above_many_places_is_not_written_out_for_each() {
        let items = json!({ "type": "array", "items": { "type": "integer" }, "maxItems": 200_000 });
        let schema = Schema::input(&json!({ "properties": {}, "additionalProperties": items }));
        let schema = schema.or_else(|_| Schema::open_input(&json!({ "additionalProperties": items }))).unwrap();
        let name = "n".repeat(100_000);
        given_up(&schema, json!({ name.clone(): vec!["1"; 50_000] }), Leniency::IntegerAsString);
        let (_, used) = read(&schema, json!({ name.clone(): ["1"] }));
        assert_eq!(used[0].at, format!("/{name}/0"), "evidence keeps the whole place");
    }

    /// Bounded in time for a build without optimisation, too.
    fn given_up(schema: &Schema, sent: Value, leniency: Leniency) {
        let granted = Granted { everywhere: [leniency].into_iter().collect(), ..Granted::default() };
        let begun = std::time::Instant::now();
        let (read, used) = schema.lenient(sent.clone(), granted, &Limits::default());
        assert!(begun.elapsed().as_secs() < 2, "{:?}", begun.elapsed());
        assert!(read == sent && used.is_empty());
    }
}
