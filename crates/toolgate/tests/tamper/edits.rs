//! Edits of a record, each with the place at which it must be found.

use rusqlite::types::Value;
use rusqlite::{Connection, params};
use tempfile::NamedTempFile;
use toolgate::audit::Sealed;
use toolgate::audit::verify::{Contradiction, Flaw, Part, Report};
use toolgate::json::Digest;

use crate::chance::Chance;
use crate::file;
use crate::log::Log;

/// One edit of one copy.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    /// A bit of a column of a row.
    Flip { seq: u64, column: &'static str, bit: usize, last: u64 },
    /// A row that is gone from the middle, and those behind it up to one.
    Drop { seq: u64, upto: u64 },
    /// Two rows that changed places, with all that they hold.
    Swap { one: u64, other: u64 },
    /// Two rows whose texts changed places.
    SwapTexts { one: u64, other: u64 },
    /// A row that stands at the end as well.
    Double { seq: u64, last: u64 },
    /// What is behind a row, gone.
    Cut { seq: u64, last: u64 },
    /// A row that was sealed by somebody else, in the place of one.
    Forge { seq: u64, last: u64, reference: String, previous: Digest },
    /// The same, between two rows.
    Insert { after: u64, last: u64, reference: String, previous: Digest },
    /// A row with another text, and all behind it sealed anew.
    Anew { seq: u64, records: Vec<Sealed> },
    /// A column that holds a value of another type.
    Type { seq: u64, column: &'static str, value: Value },
    /// A number that no row can have.
    Number { seq: u64, number: i64 },
}

/// What verification says, as far as it matters here.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) broken: Option<(u64, Flaw)>,
    pub(crate) contradictions: Vec<Contradiction>,
    pub(crate) unopened: Option<String>,
}

const COLUMNS: [&str; 5] = ["seq", "ref", "previous", "hash", "body"];

impl Found {
    pub(crate) fn in_report(report: &Result<Report, String>) -> Self {
        match report {
            Ok(report) => Self {
                broken: report.broken.as_ref().map(|broken| (broken.seq, broken.what.clone())),
                contradictions: report.checkpoints.iter().flat_map(|c| c.mismatches.iter().map(|m| m.what)).collect(),
                unopened: None,
            },
            Err(why) => Self { broken: None, contradictions: Vec::new(), unopened: Some(why.clone()) },
        }
    }

    fn is_broken(&self, at: u64, what: impl Fn(&Flaw) -> bool) -> bool {
        self.broken.as_ref().is_some_and(|(seq, flaw)| *seq == at && what(flaw))
    }

    /// The chain alone holds, and the checkpoints say this.
    fn is_told_by_checkpoints(&self, what: impl Fn(&Contradiction) -> bool) -> bool {
        self.broken.is_none() && self.unopened.is_none() && self.contradictions.iter().any(what)
    }
}

impl Edit {
    pub(crate) const NAMES: [&str; 11] =
        ["flip", "drop", "swap", "swap texts", "double", "cut", "forge", "insert", "anew", "type", "number"];

    pub(crate) fn name(&self) -> &'static str {
        Self::NAMES[match self {
            Self::Flip { .. } => 0,
            Self::Drop { .. } => 1,
            Self::Swap { .. } => 2,
            Self::SwapTexts { .. } => 3,
            Self::Double { .. } => 4,
            Self::Cut { .. } => 5,
            Self::Forge { .. } => 6,
            Self::Insert { .. } => 7,
            Self::Anew { .. } => 8,
            Self::Type { .. } => 9,
            Self::Number { .. } => 10,
        }]
    }

    /// Any edit; half of them are flipped bits.
    pub(crate) fn any(chance: &mut Chance, log: &Log) -> Self {
        let last = log.records.len() as u64;
        let seq = |chance: &mut Chance| chance.below(log.records.len()) as u64 + 1;
        let at = seq(chance);
        // Two that are not the same, the first one first.
        let mut pair = || loop {
            let (one, other) = (seq(chance), seq(chance));
            if one < other {
                break (one, other);
            }
        };
        let (one, other) = pair();
        let record = &log.records[at as usize - 1];
        match chance.below(20) {
            0 => Self::Drop { seq: at.min(last - 1), upto: (at + chance.below(3) as u64).min(last - 1) },
            1 => Self::Swap { one, other },
            2 => Self::SwapTexts { one, other },
            3 => Self::Double { seq: at, last },
            4 => Self::Cut { seq: at - 1, last },
            5 => {
                let (reference, previous) = (record.reference.clone(), record.previous);
                Self::Forge { seq: at, last, reference, previous }
            }
            6 => {
                let (reference, previous) = (record.reference.clone(), record.hash);
                Self::Insert { after: at, last, reference, previous }
            }
            7 => Self::Anew { seq: at, records: anew(&log.records, at) },
            8 => {
                let column = chance.one_of(&["ref", "previous", "hash", "body"]);
                let blob = column == "previous" || column == "hash";
                let value = match chance.below(4) {
                    0 => Value::Null,
                    1 => Value::Integer(7),
                    2 => Value::Real(0.5),
                    _ if blob => Value::Text("7".repeat(32)),
                    _ => Value::Blob(record.body.clone().into_bytes()),
                };
                Self::Type { seq: at, column, value }
            }
            9 => Self::Number { seq: at, number: -(at as i64) + chance.below(2) as i64 * (at as i64) },
            _ => {
                let column = chance.one_of(&COLUMNS);
                let bits = match column {
                    "seq" => 63,
                    "ref" => record.reference.len() * 8,
                    "body" => record.body.len() * 8,
                    _ => 256,
                };
                Self::Flip { seq: at, column, bit: chance.below(bits), last }
            }
        }
    }

    /// Makes the edit in a copy.
    pub(crate) fn make(&self, copy: &NamedTempFile) {
        let db = file::lax(copy.path());
        let run = |sql: &str, values: &[Value]| {
            db.execute(sql, rusqlite::params_from_iter(values)).unwrap();
        };
        match self {
            Self::Flip { seq, column: "seq", bit, .. } => {
                let flipped = seq ^ (1 << bit);
                // Where there is a row already the two change places.
                run("UPDATE records SET seq = -1 WHERE seq = ?1", &[int(flipped)]);
                run("UPDATE records SET seq = ?2 WHERE seq = ?1", &[int(*seq), int(flipped)]);
                run("UPDATE records SET seq = ?1 WHERE seq = -1", &[int(*seq)]);
            }
            Self::Flip { seq, column, bit, .. } => {
                let of = |column: &str| format!("SELECT CAST({column} AS BLOB) FROM records WHERE seq = ?1");
                let mut bytes: Vec<u8> = db.query_row(&of(column), [int(*seq)], |row| row.get(0)).unwrap();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let kind = if *column == "ref" || *column == "body" { "TEXT" } else { "BLOB" };
                run(
                    &format!("UPDATE records SET {column} = CAST(?2 AS {kind}) WHERE seq = ?1"),
                    &[int(*seq), Value::Blob(bytes)],
                );
            }
            Self::Drop { seq, upto } => {
                run("DELETE FROM records WHERE seq BETWEEN ?1 AND ?2", &[int(*seq), int(*upto)])
            }
            Self::Swap { one, other } => {
                run("UPDATE records SET seq = -1 WHERE seq = ?1", &[int(*one)]);
                run("UPDATE records SET seq = ?2 WHERE seq = ?1", &[int(*other), int(*one)]);
                run("UPDATE records SET seq = ?1 WHERE seq = -1", &[int(*other)]);
            }
            Self::SwapTexts { one, other } => run(
                "UPDATE records SET body = (SELECT body FROM records AS o WHERE o.seq = ?1 + ?2 - records.seq)
                 WHERE seq IN (?1, ?2)",
                &[int(*one), int(*other)],
            ),
            Self::Double { seq, last } => run(
                "INSERT INTO records SELECT ?2 + 1, ref, previous, hash, body FROM records WHERE seq = ?1",
                &[int(*seq), int(*last)],
            ),
            Self::Cut { seq, .. } => run("DELETE FROM records WHERE seq > ?1", &[int(*seq)]),
            Self::Forge { seq, reference, previous, .. } => {
                run("DELETE FROM records WHERE seq = ?1", &[int(*seq)]);
                forge(&db, *seq, reference, *previous);
            }
            Self::Insert { after, reference, previous, .. } => {
                run("UPDATE records SET seq = -seq WHERE seq > ?1", &[int(*after)]);
                run("UPDATE records SET seq = 1 - seq WHERE seq < 0", &[]);
                forge(&db, after + 1, reference, *previous);
            }
            Self::Anew { records, .. } => {
                for Sealed { seq, reference, previous, hash, body } in records {
                    put(&db, *seq, reference, *previous, *hash, body);
                }
            }
            Self::Type { seq, column, value } => {
                run(&format!("UPDATE records SET {column} = ?2 WHERE seq = ?1"), &[int(*seq), value.clone()]);
            }
            Self::Number { seq, number } => {
                run("UPDATE records SET seq = ?2 WHERE seq = ?1", &[int(*seq), Value::Integer(*number)])
            }
        }
    }

    /// Whether it was found where it was made, as what it is.
    pub(crate) fn expects(&self, found: &Found) -> bool {
        let altered = |flaw: &Flaw| matches!(flaw, Flaw::Altered);
        match self {
            Self::Flip { seq, column: "seq", bit, last } => match seq ^ (1 << bit) {
                0 => found.is_broken(0, |flaw| matches!(flaw, Flaw::Unreadable { part: Part::Place, .. })),
                other if other <= *last => {
                    let (one, other) = (*seq.min(&other), *seq.max(&other));
                    found.is_broken(one, |flaw| *flaw == Flaw::Swapped { with: other })
                }
                other if seq == last => found.is_broken(*seq, |flaw| *flaw == Flaw::Gap { last: other - 1 }),
                _ => found.is_broken(*seq, |flaw| *flaw == Flaw::Gap { last: *seq }),
            },
            // What is no text any more cannot be read; all else is not what was sealed.
            Self::Flip { seq, column, .. } => found.is_broken(*seq, |flaw| match flaw {
                Flaw::Altered => true,
                Flaw::Unreadable { part: Part::Reference, .. } => *column == "ref",
                Flaw::Unreadable { part: Part::Body, .. } => *column == "body",
                _ => false,
            }),
            Self::Drop { seq, upto } => found.is_broken(*seq, |flaw| *flaw == Flaw::Gap { last: *upto }),
            Self::Swap { one, other } => found.is_broken(*one, |flaw| *flaw == Flaw::Swapped { with: *other }),
            Self::SwapTexts { one, .. } => found.is_broken(*one, altered),
            Self::Double { last, .. } => found.is_broken(last + 1, altered),
            Self::Cut { seq, last } => {
                found.is_told_by_checkpoints(|told| *told == Contradiction::Missing { seq: *last, last: *seq })
            }
            // The last one has none behind it that would not continue it.
            Self::Forge { seq: 1, .. } => found.is_broken(2, |flaw| *flaw == Flaw::Unlinked),
            Self::Forge { seq, last, .. } if seq == last => {
                found.is_told_by_checkpoints(|told| matches!(told, Contradiction::Rewritten { seq, .. } if seq == last))
            }
            Self::Forge { seq, .. } => found.is_broken(seq + 1, |flaw| *flaw == Flaw::Unlinked),
            // Whoever can write the store can go on with the record: until a checkpoint, that is one entry more.
            Self::Insert { after, last, .. } if after == last => found.broken.is_none() && found.unopened.is_none(),
            Self::Insert { after, .. } => found.is_broken(after + 2, altered),
            Self::Anew { seq: 1, .. } => found.is_told_by_checkpoints(|told| *told == Contradiction::OtherRecord),
            Self::Anew { seq, .. } => found.is_told_by_checkpoints(
                |told| matches!(told, Contradiction::Rewritten { from, seq: upto } if from <= seq && seq <= upto),
            ),
            Self::Type { seq, column, .. } => found.is_broken(*seq, |flaw| match flaw {
                Flaw::Unreadable { part: Part::Reference, .. } => *column == "ref",
                Flaw::Unreadable { part: Part::Previous, .. } => *column == "previous",
                Flaw::Unreadable { part: Part::Hash, .. } => *column == "hash",
                Flaw::Unreadable { part: Part::Body, .. } => *column == "body",
                // A column for texts takes a number as one.
                Flaw::Altered => *column == "ref" || *column == "body",
                _ => false,
            }),
            Self::Number { .. } => {
                found.is_broken(0, |flaw| matches!(flaw, Flaw::Unreadable { part: Part::Place, .. }))
            }
        }
    }
}

/// Puts an entry that is sound in itself.
fn forge(db: &Connection, seq: u64, reference: &str, previous: Digest) {
    let body = format!(r#"{{"kind":"read","ref":"{reference}"}}"#);
    let hash = sealed(seq, previous, &body);
    put(db, seq, reference, previous, hash, &body);
}

fn put(db: &Connection, seq: u64, reference: &str, previous: Digest, hash: Digest, body: &str) {
    let values = params![int(seq), reference, previous.as_bytes(), hash.as_bytes(), body];
    db.execute("REPLACE INTO records (seq, ref, previous, hash, body) VALUES (?1, ?2, ?3, ?4, ?5)", values).unwrap();
}

fn int(number: u64) -> Value {
    Value::Integer(number.cast_signed())
}

/// The records from one on, the first of them with another text, as if they had been sealed so.
fn anew(records: &[Sealed], from: u64) -> Vec<Sealed> {
    let mut previous = records[from as usize - 1].previous;
    let mut anew = records[from as usize - 1..].to_vec();
    anew[0].body = anew[0].body.replace("\"at\":1", "\"at\":2");
    for record in &mut anew {
        record.previous = previous;
        record.hash = sealed(record.seq, previous, &record.body);
        previous = record.hash;
    }
    anew
}

/// The hash as it is documented.
fn sealed(seq: u64, previous: Digest, body: &str) -> Digest {
    Digest::of(&[seq.to_be_bytes().as_slice(), previous.as_bytes(), body.as_bytes()].concat())
}
