//! What was lost, by what killed the gate.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::book::Write;
use crate::folder::Effect;

/// The counts, and what no count is for.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    rows: BTreeMap<&'static str, Row>,
    all: Row,
    /// Entries that are open or unknown when all is over.
    pub(crate) entries_stuck: usize,
    /// What must never be, in words.
    pub(crate) wrong: Vec<String>,
}

/// The writes that one kind of death cut off; some are cut off more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) kills: usize,
    /// Writes whose client was left without an answer.
    pub(crate) cut_off: usize,
    /// Writes that happened more than once.
    pub(crate) duplicates: usize,
    /// Writes that a client was told of and that did not happen so, or are told otherwise later.
    pub(crate) lost: usize,
    /// Writes that never came to an answer.
    pub(crate) stuck: usize,
}

/// The row of the writes that nothing cut off.
pub(crate) const WHOLE: &str = "(not cut off)";

impl Tally {
    pub(crate) fn kills(&mut self, name: &'static str, kills: usize) {
        let kills = Row { kills, ..Row::default() };
        self.row_of(name).add(kills);
        self.all.add(kills);
    }

    /// Counts one write against what happened outside.
    pub(crate) fn write(&mut self, write: &Write, effects: &[Effect]) {
        let happened = |told: &Value| effects.iter().any(|effect| told["receipt"] == effect.receipt);
        let lost = write.told_otherwise || write.told.as_ref().is_some_and(|told| !happened(told));
        let counted = Row {
            kills: 0,
            cut_off: 1,
            duplicates: usize::from(effects.len() > 1),
            lost: usize::from(lost),
            stuck: usize::from(write.told.is_none()),
        };
        self.all.add(counted);
        if write.cut_by.is_empty() {
            self.row_of(WHOLE).add(counted);
        }
        write.cut_by.iter().for_each(|name| self.row_of(name).add(counted));
    }

    /// Adds what another folder counted.
    pub(crate) fn add(&mut self, other: Self) {
        other.rows.iter().for_each(|(name, row)| self.row_of(name).add(*row));
        self.all.add(other.all);
        self.entries_stuck += other.entries_stuck;
        self.wrong.extend(other.wrong);
    }

    pub(crate) fn row(&self, name: &str) -> Row {
        self.rows.get(name).copied().unwrap_or_default()
    }

    /// Each write and each kill once.
    pub(crate) fn all(&self) -> Row {
        self.all
    }

    fn row_of(&mut self, name: &'static str) -> &mut Row {
        self.rows.entry(name).or_default()
    }
}

impl Row {
    fn add(&mut self, other: Self) {
        self.kills += other.kills;
        self.cut_off += other.cut_off;
        self.duplicates += other.duplicates;
        self.lost += other.lost;
        self.stuck += other.stuck;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, name: &str, row: Row| {
            let Row { kills, cut_off, duplicates, lost, stuck } = row;
            writeln!(f, "{name:<16} {kills:>6} {cut_off:>8} {duplicates:>11} {lost:>6} {stuck:>6}")
        };
        writeln!(f, "{:<16} {:>6} {:>8} {:>11} {:>6} {:>6}", "", "kills", "writes", "duplicates", "lost", "stuck")?;
        for (name, row) in &self.rows {
            line(f, name, *row)?;
        }
        line(f, "all", self.all)?;
        write!(f, "entries open or unknown at the end: {}", self.entries_stuck)
    }
}
