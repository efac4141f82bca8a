//! Reading a table of a configuration file: each key at most once, every problem noted, unknown keys named at the end.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::json::{Bounds, Limits};
pub use crate::nearness::nearest;
use crate::schema::Problem;
use crate::template::Template;

/// The problems of one file, gathered.
#[derive(Debug, Default)]
pub struct Problems(pub Vec<Problem>);

/// One table, and which of its keys have been read.
#[derive(Debug)]
pub struct Fields<'a> {
    table: &'a Map<String, Value>,
    at: String,
    known: Vec<&'static str>,
}

impl Problems {
    /// Notes a problem at a JSON pointer.
    pub fn note(&mut self, at: impl Into<String>, code: &str, message: impl Into<String>) {
        self.hinted(at, code, message, None);
    }

    /// Notes a problem, and what to do.
    pub fn hinted(&mut self, at: impl Into<String>, code: &str, message: impl Into<String>, hint: Option<String>) {
        self.0.push(Problem { at: at.into(), code: code.into(), message: message.into(), hint });
    }
}

impl<'a> Fields<'a> {
    /// The table that stands at a JSON pointer.
    pub fn of(table: &'a Map<String, Value>, at: impl Into<String>) -> Self {
        Self { table, at: at.into(), known: Vec::new() }
    }

    /// The table under `key`, if it is one.
    pub fn table(&mut self, key: &'static str, problems: &mut Problems) -> Option<Fields<'a>> {
        let at = self.place(key);
        match self.raw(key)? {
            Value::Object(table) => Some(Fields::of(table, at)),
            other => {
                problems.note(at, "type", format!("expected a table, got {}", kind(other)));
                None
            }
        }
    }

    /// Whether there is anything under `key`.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The value under `key`, as it is.
    pub fn raw(&mut self, key: &'static str) -> Option<&'a Value> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table.get(key)
    }

    /// The tables under `key` by name, such as those of `[facts.NAME]`. What is no table is a problem.
    pub fn tables(&mut self, key: &'static str, problems: &mut Problems) -> Vec<(&'a String, Fields<'a>)> {
        let Some(named) = self.table(key, problems) else { return Vec::new() };
        let mut tables = Vec::new();
        for (name, value) in named.entries() {
            let at = named.place(name);
            match value {
                Value::Object(table) => tables.push((name, Fields::of(table, at))),
                _ => problems.note(at, "type", "expected a table"),
            }
        }
        tables
    }

    /// All keys and values, for a table whose keys are names.
    pub fn entries(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.table.iter()
    }

    /// The JSON pointer of `key`.
    pub fn place(&self, key: &str) -> String {
        format!("{}/{}", self.at, key.replace('~', "~0").replace('/', "~1"))
    }

    /// The text under `key`, if there is one.
    pub fn text(&mut self, key: &'static str, problems: &mut Problems) -> Option<&'a str> {
        let at = self.place(key);
        match self.raw(key)? {
            Value::String(text) => Some(text),
            other => {
                problems.note(at, "type", format!("expected a text, got {}", kind(other)));
                None
            }
        }
    }

    /// A text that must be there.
    pub fn needed(&mut self, key: &'static str, problems: &mut Problems) -> Option<&'a str> {
        let text = self.text(key, problems);
        if text.is_none() && !self.table.contains_key(key) {
            problems.note(self.place(key), "required", format!("`{key}` is missing"));
        }
        text
    }

    /// One of some words; `default` where it is not given.
    pub fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)], default: T, problems: &mut Problems) -> T {
        let Some(text) = self.text(key, problems) else { return default };
        if let Some((_, meant)) = words.iter().find(|(word, _)| *word == text) {
            return *meant;
        }
        let list: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let message = format!("expected one of: {}", list.join(", "));
        problems.hinted(self.place(key), "enum", message, nearest(text, list.iter().copied()));
        default
    }

    /// True or false; false where it is not given.
    pub fn flag(&mut self, key: &'static str, problems: &mut Problems) -> bool {
        let at = self.place(key);
        match self.raw(key) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                problems.note(at, "type", format!("expected true or false, got {}", kind(other)));
                false
            }
        }
    }

    /// A whole number from 1; `default` where it is not given.
    pub fn count(&mut self, key: &'static str, default: u32, problems: &mut Problems) -> u32 {
        let at = self.place(key);
        match self.raw(key) {
            None => default,
            Some(value) => {
                match value.as_u64().and_then(|count| u32::try_from(count).ok()).filter(|count| *count > 0) {
                    Some(count) => count,
                    None => {
                        let (code, got) = match value.as_i64() {
                            Some(..1) => ("minimum", "less"),
                            Some(_) | None => ("type", kind(value)),
                        };
                        problems.note(at, code, format!("expected a whole number from 1, got {got}"));
                        default
                    }
                }
            }
        }
    }

    /// A span of time, `300ms`, `5s`, `30m`, `1h` or `7d`.
    pub fn span(&mut self, key: &'static str, default: Duration, problems: &mut Problems) -> Duration {
        let Some(text) = self.text(key, problems) else { return default };
        parse_span(text).unwrap_or_else(|| {
            problems.note(self.place(key), "format", "expected a span of time such as 300ms, 5s, 30m, 1h or 7d");
            default
        })
    }

    /// A number of bytes, `16KB` or `1MB` (powers of 1024), or plain bytes.
    pub fn bytes(&mut self, key: &'static str, default: usize, problems: &mut Problems) -> usize {
        let Some(text) = self.text(key, problems) else { return default };
        parse_bytes(text).unwrap_or_else(|| {
            problems.note(self.place(key), "format", "expected a size such as 800B, 16KB or 1MB");
            default
        })
    }

    /// The bounds of argument texts: `{ size = "1MB", depth = 64, members = 10000 }`, each if it is said.
    pub fn bounds(&mut self, key: &'static str, problems: &mut Problems) -> Bounds {
        let Some(mut table) = self.table(key, problems) else { return Bounds::default() };
        let most = Limits::MOST;
        let size = table.bytes("size", most.size, problems);
        let [depth, members] = ["depth", "members"].map(|key| table.count(key, 1, problems));
        let [depth, members] = [depth, members].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let mut set = |key, value: usize, most: usize| {
            if value > most {
                problems.note(table.place(key), "maximum", format!("at most {most}"));
            }
            table.has(key).then_some(value)
        };
        let bounds = Bounds {
            size: set("size", size, most.size),
            depth: set("depth", depth, most.depth),
            members: set("members", members, most.members),
        };
        table.end(problems);
        bounds
    }

    /// A list of texts; empty where it is not given.
    pub fn texts(&mut self, key: &'static str, problems: &mut Problems) -> Vec<String> {
        let at = self.place(key);
        let Some(value) = self.raw(key) else { return Vec::new() };
        let Value::Array(items) = value else {
            problems.note(at, "type", format!("expected a list of texts, got {}", kind(value)));
            return Vec::new();
        };
        let mut texts = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text.clone()),
                other => {
                    problems.note(format!("{at}/{index}"), "type", format!("expected a text, got {}", kind(other)))
                }
            }
        }
        texts
    }

    pub(crate) fn template(&mut self, key: &'static str, problems: &mut Problems) -> Option<Template> {
        let text = self.text(key, problems)?;
        parse_template(text, &self.place(key), problems)
    }

    /// A list of bare placeholders: values, never joined strings.
    pub(crate) fn key(&mut self, key: &'static str, problems: &mut Problems) -> Option<Vec<Template>> {
        let given = self.raw(key)?;
        let at = self.place(key);
        if !given.is_array() {
            self.texts(key, problems);
            return None;
        }
        let templates: Vec<Template> = self
            .texts(key, problems)
            .iter()
            .enumerate()
            .filter_map(|(index, text)| parse_template(text, &format!("{at}/{index}"), problems))
            .collect();
        for (index, template) in templates.iter().enumerate() {
            if !template.is_bare() {
                let message = "expected one placeholder and nothing else: a key is made of values, never a joined text";
                problems.note(format!("{at}/{index}"), "template", message);
            }
        }
        if templates.is_empty() {
            problems.note(at, "min_items", "expected at least one placeholder");
        }
        Some(templates)
    }

    /// A table of templates by name.
    pub(crate) fn templates(&mut self, key: &'static str, problems: &mut Problems) -> BTreeMap<String, Template> {
        let mut templates = BTreeMap::new();
        let Some(table) = self.table(key, problems) else { return templates };
        for (name, value) in table.entries() {
            let at = table.place(name);
            match value {
                Value::String(text) => {
                    if let Some(template) = parse_template(text, &at, problems) {
                        templates.insert(name.clone(), template);
                    }
                }
                other => problems.note(at, "type", format!("expected a template, got {}", kind(other))),
            }
        }
        templates
    }

    /// Names every key that nobody asked for.
    pub fn end(self, problems: &mut Problems) {
        for key in self.table.keys() {
            if self.known.contains(&key.as_str()) {
                continue;
            }
            let near = nearest(key, self.known.iter().copied());
            // A misspelled key is one mistake, and not a missing one besides.
            let meant = self.known.iter().find(|known| near.as_deref() == Some(&format!("did you mean {known}?")));
            if let Some(meant) = meant {
                let place = self.place(meant);
                problems.0.retain(|problem| problem.code != "required" || problem.at != place);
            }
            let hint = near.or_else(|| Some(format!("known: {}", self.known.join(", "))));
            problems.hinted(self.place(key), "unknown_key", "unknown key", hint);
        }
    }
}

fn parse_template(text: &str, at: &str, problems: &mut Problems) -> Option<Template> {
    match Template::parse(text) {
        Ok(template) => Some(template),
        Err(message) => {
            problems.note(at, "template", message);
            None
        }
    }
}

/// What a value is, in the words of the file.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

/// A span of time, `300ms`, `5s`, `30m`, `1h` or `7d`.
pub fn parse_span(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = text.split_at(digits);
    let count: u64 = count.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    count.checked_mul(millis).map(Duration::from_millis)
}

fn parse_bytes(text: &str) -> Option<usize> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (count, unit) = text.split_at(digits);
    let count: usize = count.parse().ok()?;
    let factor = match unit {
        "" | "B" => 1,
        "KB" => 1024,
        "MB" => 1024 * 1024,
        _ => return None,
    };
    count.checked_mul(factor).filter(|bytes| *bytes > 0)
}
