//! What every stage learned of a call, in running order. Evidence flows out of the line; nothing reads it to decide.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::json::Part;
use crate::redaction::Redaction;

/// The evidence of one attempt.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Trace {
    stages: Vec<Note>,
    #[serde(skip)]
    since: Instant,
    /// INVARIANT (no trace): what is noted went through it.
    #[serde(skip)]
    redaction: Redaction,
}

/// What one stage learned.
#[derive(Debug, Serialize)]
pub struct Note {
    /// The name of the stage.
    pub stage: &'static str,
    /// How long it took, in microseconds.
    pub micros: u64,
    /// What it learned, by name.
    #[serde(flatten)]
    pub learned: Learned,
}

/// Facts for the record, by name, in the order in which they were learned.
#[derive(Debug, Default)]
pub struct Learned(Vec<(&'static str, Value)>);

impl Trace {
    pub(crate) fn start(redaction: &Redaction) -> Self {
        Self { stages: Vec::with_capacity(6), since: Instant::now(), redaction: redaction.clone() }
    }

    /// Ends a stage: its time runs from the end of the one before.
    pub(crate) fn note(&mut self, stage: &'static str, mut learned: Learned) {
        learned.0.iter_mut().for_each(|(_, value)| self.redaction.scrub(value));
        let now = Instant::now();
        self.stages.push(Note { stage, micros: micros(now - self.since), learned });
        self.since = now;
    }

    /// The stages as they stand in a record, without what it tells by these names itself.
    pub(crate) fn part(&self, told: &[&str]) -> Part<'_> {
        fn part<'a>(note: &'a Note, told: &[&str]) -> Part<'a> {
            let own = [("stage", Part::Text(note.stage)), ("micros", Part::Count(note.micros))];
            let learned = note.learned.0.iter().filter(|(name, _)| !told.contains(name));
            let learned = learned.map(|(name, value)| (*name, Part::Value(value)));
            Part::Members(own.into_iter().chain(learned).collect())
        }
        Part::Items(self.stages.iter().map(|note| part(note, told)).collect())
    }

    /// What a stage learned last under `name`.
    pub(crate) fn last(&self, stage: &str, name: &str) -> Option<&Value> {
        self.stages.iter().rev().find(|note| note.stage == stage)?.learned.get(name)
    }

    /// What each stage learned, in running order.
    pub fn stages(&self) -> &[Note] {
        &self.stages
    }
}

impl Learned {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    /// What was learned under `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

impl Serialize for Learned {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (*name, value)))
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
