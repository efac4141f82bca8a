//! The canonical form: RFC 8785, but integers of 64 bits keep every digit.

use std::fmt::Write;

use serde_json::{Map, Number, Value};

use super::bytes::plain_length;
use super::{Digest, double};

/// The one spelling of a value: no space, members by UTF-16 code units, doubles as ECMAScript prints them.
///
/// Two texts have equal canonical forms exactly if [`read`](super::read) makes equal values of them.
/// Recursive: a value deeper than the reader's largest depth may exhaust the stack.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut writer = Writer { out: String::with_capacity(256), sorted: Vec::new() };
    writer.value(value);
    writer.out
}

/// The canonical form of the list of a text and a value, and where in it the value begins.
pub(crate) fn canonical_pair(text: &str, value: &Value) -> (String, usize) {
    let mut writer = Writer { out: String::with_capacity(256), sorted: Vec::new() };
    writer.out.push('[');
    writer.string(text);
    writer.out.push(',');
    let start = writer.out.len();
    writer.value(value);
    writer.out.push(']');
    (writer.out, start)
}

/// Something that has a canonical form without being a [`Value`].
#[derive(Debug)]
pub(crate) enum Part<'a> {
    Value(&'a Value),
    Text(&'a str),
    Count(u64),
    Flag(bool),
    Own(Value),
    /// What has its canonical form already.
    Written(&'a str),
    Digest(Digest),
    Items(Vec<Part<'a>>),
    Members(Vec<(&'a str, Part<'a>)>),
}

impl<'a> From<&'a str> for Part<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

/// The canonical form of a part by itself.
pub(crate) fn canonical_part(part: Part<'_>) -> String {
    let mut writer = Writer { out: String::with_capacity(1024), sorted: Vec::new() };
    writer.part(part);
    writer.out
}

/// The canonical form of an object of these members. A name must not come twice.
pub(crate) fn canonical_object(members: Vec<(&str, Part<'_>)>) -> String {
    let mut writer = Writer { out: String::with_capacity(2048), sorted: Vec::new() };
    writer.part(Part::Members(members));
    // A store may keep the text for long, and most texts are shorter than what was set aside.
    writer.out.shrink_to_fit();
    writer.out
}

struct Writer<'a> {
    out: String,
    /// Members of the objects being written, the innermost last: one memory for all of them.
    sorted: Vec<(&'a str, &'a Value)>,
}

impl<'a> Writer<'a> {
    fn value(&mut self, value: &'a Value) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(true) => self.out.push_str("true"),
            Value::Bool(false) => self.out.push_str("false"),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.string(text),
            Value::Array(items) => self.array(items),
            Value::Object(members) => self.object(members),
        }
    }

    fn part(&mut self, part: Part<'a>) {
        match part {
            Part::Value(value) => self.value(value),
            Part::Text(text) => self.string(text),
            Part::Count(count) => {
                let _ = write!(self.out, "{count}");
            }
            Part::Flag(flag) => self.out.push_str(if flag { "true" } else { "false" }),
            Part::Own(value) => self.out.push_str(&canonical(&value)),
            Part::Written(text) => self.out.push_str(text),
            Part::Digest(digest) => {
                let _ = write!(self.out, "\"{digest}\"");
            }
            Part::Items(items) => {
                self.out.push('[');
                for (index, item) in items.into_iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.part(item);
                }
                self.out.push(']');
            }
            Part::Members(mut members) => {
                sort(&mut members);
                self.out.push('{');
                for (index, (name, part)) in members.into_iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.string(name);
                    self.out.push(':');
                    self.part(part);
                }
                self.out.push('}');
            }
        }
    }

    fn array(&mut self, items: &'a [Value]) {
        self.out.push('[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.value(item);
        }
        self.out.push(']');
    }

    fn object(&mut self, members: &'a Map<String, Value>) {
        let start = self.sorted.len();
        self.sorted.extend(members.iter().map(|(name, value)| (name.as_str(), value)));
        sort(self.sorted.get_mut(start..).unwrap_or_default());
        self.out.push('{');
        for index in start..start + members.len() {
            let Some(&(name, value)) = self.sorted.get(index) else {
                break;
            };
            if index > start {
                self.out.push(',');
            }
            self.string(name);
            self.out.push(':');
            self.value(value);
        }
        self.out.push('}');
        self.sorted.truncate(start);
    }

    fn number(&mut self, number: &Number) {
        match number.as_f64() {
            Some(double) if number.is_f64() => double::print(&mut self.out, double),
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(self.out, "{number}");
            }
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        let mut rest = text;
        while let Some((plain, special, after)) = next_special(rest) {
            self.out.push_str(plain);
            self.escape(special);
            rest = after;
        }
        self.out.push_str(rest);
        self.out.push('"');
    }

    fn escape(&mut self, special: u8) {
        let short = match special {
            b'"' => '"',
            b'\\' => '\\',
            0x08 => 'b',
            b'\t' => 't',
            b'\n' => 'n',
            0x0C => 'f',
            b'\r' => 'r',
            _ => {
                let _ = write!(self.out, "\\u{special:04x}");
                return;
            }
        };
        self.out.push('\\');
        self.out.push(short);
    }
}

/// By UTF-16 code units, an order that differs from that of bytes only beyond ASCII.
fn sort<T>(members: &mut [(&str, T)]) {
    if members.iter().all(|(name, _)| name.is_ascii()) {
        members.sort_unstable_by_key(|(name, _)| *name);
    } else {
        members.sort_unstable_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    }
}

/// Splits at the first byte that must be escaped; all of these are ASCII.
fn next_special(text: &str) -> Option<(&str, u8, &str)> {
    let at = plain_length(text.as_bytes());
    let special = *text.as_bytes().get(at)?;
    Some((text.get(..at)?, special, text.get(at + 1..)?))
}
