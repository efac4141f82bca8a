//! A result that is too large, cut so that it still fits its schema, and what was left out.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Schema;
use super::graph::escaped;
use super::inert::below;
use crate::json::canonical;

/// Cuts that are tried on one value.
const MAX_STEPS: usize = 64;
/// Bytes of a string that may lose its end: a shorter one is a name or a number of something, and would name another.
const MIN_TEXT: usize = 64;
/// Members of one object that are told one by one.
const MAX_TOLD: usize = 16;

/// Something that was left out of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncated {
    /// The place, a JSON pointer.
    pub at: String,
    /// How many items of a list, characters of a string or members of an object were kept; 0 for a dropped member.
    pub kept: u64,
    /// Of how many; 1 for a dropped member.
    pub of: u64,
}

/// A result within its bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounded {
    /// What is left.
    pub value: Value,
    /// What is missing; one entry a place, empty if nothing is.
    pub truncated: Vec<Truncated>,
}

/// A result that can't be cut to its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the result has {size} bytes and cannot be cut to {max} bytes")]
pub struct TooLarge {
    /// The bytes of its canonical text.
    pub size: usize,
    /// The bytes that are allowed.
    pub max: usize,
}

impl Schema {
    /// The value in at most `max_bytes` of canonical text: list tails, string ends and optional members are left out,
    /// the largest first, as long as the schema holds. Takes a value that fits the schema.
    pub fn bound(&self, value: Value, max_bytes: usize) -> Result<Bounded, TooLarge> {
        bound(Some(self), value, max_bytes)
    }

    fn least(&self, at: &str, keyword: &str) -> usize {
        let schemas = self.locate(at);
        let least = schemas.iter().filter_map(|schema| schema.get(keyword)?.as_u64()).max().unwrap_or(0);
        usize::try_from(least).unwrap_or(usize::MAX)
    }
}

/// [`Schema::bound`] for a result without a schema.
pub fn bound_free(value: Value, max_bytes: usize) -> Result<Bounded, TooLarge> {
    bound(None, value, max_bytes)
}

fn bound(schema: Option<&Schema>, value: Value, max: usize) -> Result<Bounded, TooLarge> {
    let size = canonical(&value).len();
    let mut cutter = Cutter { schema, value, size, max, steps: 0, truncated: Vec::new(), whole: BTreeSet::new() };
    for kind in [Cut::Tails, Cut::Ends, Cut::Members, Cut::Lists] {
        while cutter.size > max && cutter.steps < MAX_STEPS && cutter.step(kind) {}
    }
    if cutter.size > max {
        return Err(TooLarge { size, max });
    }
    let mut truncated = cutter.truncated;
    truncated.sort_by(|a, b| a.at.cmp(&b.at));
    Ok(Bounded { value: cutter.value, truncated })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cut {
    /// The tail of a list, all but its first item.
    Tails,
    /// The end of a string.
    Ends,
    /// Optional members.
    Members,
    /// A list as a whole.
    Lists,
}

struct Cutter<'s> {
    schema: Option<&'s Schema>,
    value: Value,
    /// INVARIANT (size in step): the bytes of the canonical text of `value`.
    size: usize,
    max: usize,
    steps: usize,
    truncated: Vec<Truncated>,
    /// Places where a cut of this kind is not possible.
    whole: BTreeSet<(Cut, String)>,
}

/// A place that can be cut, and how much it could give at most.
struct Place {
    at: String,
    gives: usize,
}

/// What a cut took away, to be put back if the schema does not hold without it.
enum Taken {
    Items(Vec<Value>),
    Text(String),
    Members(serde_json::Map<String, Value>),
}

impl Cutter<'_> {
    /// Cuts the place that gives most; `false` if there is none left.
    fn step(&mut self, kind: Cut) -> bool {
        self.steps += 1;
        if kind == Cut::Members
            && let Some((at, name)) = self.one_member()
        {
            if !self.cut_members(&at, std::slice::from_ref(&name)) {
                self.whole.insert((kind, format!("{at}/{}", escaped(&name))));
            }
            return true;
        }
        let mut places = Vec::new();
        candidates(&self.value, kind, &mut String::new(), &mut places);
        places.retain(|place| !self.whole.contains(&(kind, place.at.clone())));
        let Some(place) = places.into_iter().max_by_key(|place| place.gives) else { return false };
        let done = match kind {
            Cut::Members => self.cut_members(&place.at, &self.many_members(&place.at)),
            _ => self.cut(kind, &place.at),
        };
        if !done {
            self.whole.insert((kind, place.at));
        }
        true
    }

    fn excess(&self) -> usize {
        self.size.saturating_sub(self.max)
    }

    /// Cuts a list or a string.
    fn cut(&mut self, kind: Cut, at: &str) -> bool {
        let excess = self.excess();
        let least = |keyword| self.schema.map_or(0, |schema| schema.least(at, keyword));
        let (told, taken) = match self.value.pointer_mut(at) {
            Some(Value::Array(items)) => {
                let floor = least("minItems").max(usize::from(kind == Cut::Tails));
                let (keep, before) = (keep_items(items, excess, floor), items.len());
                (entry(at, keep, before), Taken::Items(items.split_off(keep)))
            }
            Some(Value::String(text)) => {
                let (keep, kept, before) = keep_text(text, excess, least("minLength"));
                (entry(at, kept, before), Taken::Text(text.split_off(keep)))
            }
            _ => return false,
        };
        told.kept < told.of && self.keep_if_valid(at, vec![told], taken)
    }

    fn cut_members(&mut self, at: &str, names: &[String]) -> bool {
        let Some(Value::Object(members)) = self.value.pointer_mut(at) else { return false };
        if names.is_empty() {
            return false;
        }
        let before = members.clone();
        let gone: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        members.retain(|name, _| !gone.contains(name.as_str()));
        let told = if names.len() <= MAX_TOLD {
            names.iter().map(|name| entry(&format!("{at}/{}", escaped(name)), 0, 1)).collect()
        } else {
            vec![entry(at, members.len(), before.len())]
        };
        self.keep_if_valid(at, told, Taken::Members(before))
    }

    fn keep_if_valid(&mut self, at: &str, told: Vec<Truncated>, taken: Taken) -> bool {
        if self.schema.is_none_or(|schema| schema.holds(&self.value)) {
            self.size = canonical(&self.value).len();
            self.tell(told);
            return true;
        }
        self.put_back(at, taken);
        false
    }

    /// The smallest optional member of any object that is enough by itself.
    fn one_member(&self) -> Option<(String, String)> {
        let mut members = Vec::new();
        large_members(&self.value, self.excess(), &mut String::new(), &mut members);
        members.sort_by_key(|(size, ..)| *size);
        members.into_iter().map(|(_, at, name)| (at, name)).find(|(at, name)| {
            !self.demanded(at, name) && !self.whole.contains(&(Cut::Members, format!("{at}/{}", escaped(name))))
        })
    }

    /// As many optional members of one object as it takes, the largest first.
    fn many_members(&self, at: &str) -> Vec<String> {
        let Some(Value::Object(members)) = self.value.pointer(at) else { return Vec::new() };
        let optional = members.iter().filter(|(name, _)| !self.demanded(at, name));
        let mut optional: Vec<(usize, &String)> =
            optional.map(|(name, value)| (member_size(name, value), name)).collect();
        optional.sort_by(|a, b| b.cmp(a));
        let mut gone = 0;
        let enough = optional.into_iter().take_while(|(size, _)| {
            let before = gone;
            gone += size;
            before < self.excess()
        });
        enough.map(|(_, name)| name.clone()).collect()
    }

    fn demanded(&self, at: &str, name: &str) -> bool {
        self.schema.is_some_and(|schema| schema.demands(at, name))
    }

    fn put_back(&mut self, at: &str, taken: Taken) {
        match (self.value.pointer_mut(at), taken) {
            (Some(Value::Array(items)), Taken::Items(tail)) => items.extend(tail),
            (Some(Value::String(text)), Taken::Text(end)) => text.push_str(&end),
            (Some(Value::Object(members)), Taken::Members(before)) => *members = before,
            _ => {}
        }
    }

    /// Keeps one entry a place, and none for what is gone as a whole.
    fn tell(&mut self, told: Vec<Truncated>) {
        for mut entry in told {
            if let Some(index) = self.truncated.iter().position(|known| known.at == entry.at) {
                let known = self.truncated.swap_remove(index);
                if (entry.kept, entry.of) != (0, 1) {
                    entry.of = entry.of.max(known.of);
                }
            }
            self.truncated.push(entry);
        }
        let value = &self.value;
        self.truncated.retain(|entry| {
            let gone = (entry.kept, entry.of) == (0, 1);
            let parent = entry.at.rsplit_once('/').map_or("", |(parent, _)| parent);
            value.pointer(if gone { parent } else { &entry.at }).is_some()
        });
    }
}

fn entry(at: &str, kept: usize, of: usize) -> Truncated {
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    Truncated { at: at.to_owned(), kept: count(kept), of: count(of) }
}

fn candidates(value: &Value, kind: Cut, at: &mut String, found: &mut Vec<Place>) {
    let gives = match (kind, value) {
        (Cut::Tails, Value::Array(items)) if items.len() > 1 => items.iter().skip(1).map(rough).sum(),
        (Cut::Lists, Value::Array(items)) if !items.is_empty() => items.iter().map(rough).sum(),
        (Cut::Ends, Value::String(text)) if text.len() >= MIN_TEXT => text.len(),
        (Cut::Members, Value::Object(members)) => members.values().map(rough).sum(),
        _ => 0,
    };
    if gives > 0 {
        found.push(Place { at: at.clone(), gives });
    }
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                below(at, &index.to_string(), |at| candidates(item, kind, at, found));
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                below(at, &escaped(name), |at| candidates(value, kind, at, found));
            }
        }
        _ => {}
    }
}

/// About the bytes of a value's text, without writing it.
fn rough(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 3,
        Value::Array(items) => items.iter().map(rough).sum::<usize>() + 3,
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + 4 + rough(value)).sum::<usize>() + 3,
        _ => 6,
    }
}

/// The number of items to keep so that the tail has at least `excess` bytes.
fn keep_items(items: &[Value], excess: usize, floor: usize) -> usize {
    let mut keep = items.len();
    let mut gone = 0;
    for item in items.iter().rev() {
        if gone >= excess || keep <= floor {
            break;
        }
        // Its comma goes with it.
        gone += canonical(item).len() + usize::from(keep > 1);
        keep -= 1;
    }
    keep
}

/// The bytes and characters to keep so that the end has at least `excess` bytes as JSON, and the characters there are.
pub(crate) fn keep_text(text: &str, excess: usize, floor: usize) -> (usize, usize, usize) {
    let count = text.chars().count();
    let (mut keep, mut kept, mut gone) = (text.len(), count, 0);
    for (at, c) in text.char_indices().rev() {
        if gone >= excess || kept <= floor {
            break;
        }
        gone += written(c);
        (keep, kept) = (at, kept - 1);
    }
    (keep, kept, count)
}

/// The bytes of a character inside a JSON string.
fn written(c: char) -> usize {
    match c {
        '"' | '\\' | '\u{8}' | '\t' | '\n' | '\u{C}' | '\r' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

/// The members with at least `excess` bytes: size, place of the object, name.
fn large_members(value: &Value, excess: usize, at: &mut String, found: &mut Vec<(usize, String, String)>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                below(at, &index.to_string(), |at| large_members(item, excess, at, found));
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                let size = member_size(name, value);
                if size >= excess {
                    found.push((size, at.clone(), name.clone()));
                    below(at, &escaped(name), |at| large_members(value, excess, at, found));
                }
            }
        }
        _ => {}
    }
}

/// The bytes of a member with its name, colon and comma.
fn member_size(name: &str, value: &Value) -> usize {
    let name: usize = name.chars().map(written).sum();
    name + 4 + canonical(value).len()
}
