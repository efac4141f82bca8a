//! What can be wrong with a chain, and where.

use std::fmt;

/// The first place where a chain does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Break {
    /// The place where it shows.
    pub seq: u64,
    /// What is wrong there.
    pub what: Flaw,
}

/// What can be wrong with a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The entries from this one on are missing.
    Gap {
        /// The last that is missing.
        last: u64,
    },
    /// A place comes a second time, or after a later one.
    Again,
    /// It is sound in itself and does not continue the entry before it: one of the two is not the one that was sealed.
    Unlinked,
    /// Its text or its place is not the one that was sealed.
    Altered,
    /// Another stands in its place.
    Swapped {
        /// Where the entry of this place stands.
        with: u64,
    },
    /// Its row holds what can be no entry.
    Unreadable {
        /// The number of the row, or of the line.
        place: i64,
        /// What of it.
        part: Part,
    },
    /// From here on the store cannot be read, or what lies beneath the rows is damaged.
    Damaged(String),
    /// The record that somebody kept the hash of is not there any more.
    Cut,
}

/// A part of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its number.
    Place,
    /// The attempt that it tells of.
    Reference,
    /// The hash of the entry before it.
    Previous,
    /// Its own hash.
    Hash,
    /// Its text.
    Body,
    /// The form of its line in an export.
    Line,
}

impl Flaw {
    /// A word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Gap { .. } => "gap",
            Self::Again => "again",
            Self::Unlinked => "unlinked",
            Self::Altered => "altered",
            Self::Swapped { .. } => "swapped",
            Self::Unreadable { .. } => "unreadable",
            Self::Damaged(_) => "damaged",
            Self::Cut => "cut",
        }
    }
}

impl Part {
    fn told(self) -> &'static str {
        match self {
            Self::Place => "an entry counts from 1",
            Self::Reference => "its `ref` is no text",
            Self::Previous => "its `previous` is no hash",
            Self::Hash => "its `hash` is no hash",
            Self::Body => "its `body` is no text",
            Self::Line => "its members are others",
        }
    }
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seq = self.seq;
        match &self.what {
            Flaw::Gap { last } if *last == seq => write!(f, "entry {seq} is missing"),
            Flaw::Gap { last } => write!(f, "the entries {seq} to {last} are missing"),
            Flaw::Again => write!(f, "entry {seq} stands after a later one, or a second time"),
            Flaw::Unlinked => write!(
                f,
                "entry {seq} does not continue the entry before it: one of the two was made anew after it was written"
            ),
            Flaw::Altered => write!(f, "entry {seq} was altered after it was written"),
            Flaw::Swapped { with } => {
                write!(f, "another entry stands in the place of entry {seq}, which stands in place {with}")
            }
            Flaw::Unreadable { place, part: Part::Line } => write!(f, "line {place} is no entry of an export"),
            Flaw::Unreadable { place, part } => write!(f, "row {place} holds no entry: {}", part.told()),
            Flaw::Damaged(why) => write!(f, "what is kept of entry {seq} and those after it is damaged: {why}"),
            Flaw::Cut => {
                write!(f, "the kept head is not in the record: from entry {seq} on it was cut off or made anew")
            }
        }
    }
}
