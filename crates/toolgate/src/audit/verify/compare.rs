//! Checkpoints against the record that they were signed of.

use std::fmt;
use std::io::{self, BufRead};

use crate::audit::Head;
use crate::audit::checkpoint::{Checkpoint, LONGEST_LINE, NotACheckpoint, PublicKey};
use crate::clock::Millis;
use crate::json::Digest;

/// What was kept elsewhere: the lines of a file, each read and its signature verified.
#[derive(Debug)]
pub struct Checkpoints {
    lines: u64,
    wrong: Vec<Mismatch>,
    /// INVARIANT (in order): by entry, then by line.
    signed: Vec<Signed>,
    /// Whose they are: stores and keys, as the lines name them.
    origins: Vec<Origin>,
    expected: Option<PublicKey>,
    /// How many are of entries that were met or passed.
    met: usize,
}

/// A genuine line, in few bytes: a file of years has a million of them.
#[derive(Debug)]
struct Signed {
    head: Head,
    at: Millis,
    line: u64,
    origin: usize,
    met: Meeting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meeting {
    NotYet,
    Agrees,
    Differs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin {
    store: Digest,
    key: PublicKey,
}

/// What the checkpoints say of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// How many lines there are.
    pub lines: u64,
    /// How many the record agrees with.
    pub agreed: u64,
    /// How many are of other stores, and signed by other keys.
    pub others: u64,
    /// The last one that the record agrees with, and when it was signed.
    pub last: Option<(Head, Millis)>,
    /// The key of this record's checkpoints.
    pub key: Option<PublicKey>,
    /// Whether somebody said which key it must be.
    pub key_was_expected: bool,
    /// What is wrong, about a hundred lines at most, in the order of the lines.
    pub mismatches: Vec<Mismatch>,
}

/// Something wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The line, counted from 1; 0 where it is all of them.
    pub line: u64,
    /// What is wrong.
    pub what: Contradiction,
}

/// What can be wrong with a checkpoint, or with the record before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// The line cannot be read.
    Unreadable(NotACheckpoint),
    /// The key that it names did not sign it.
    Forged,
    /// It was signed by another key than the one that signs for this store.
    OtherKey,
    /// The key of this store signed it for a record with another first entry.
    OtherRecord,
    /// The record has another entry in its place.
    Rewritten {
        /// The first entry that may have been made anew.
        from: u64,
        /// The entry that differs.
        seq: u64,
    },
    /// Its entry was cut off, or is missing in the middle.
    Missing {
        /// Its entry.
        seq: u64,
        /// The last entry that is there.
        last: u64,
    },
    /// No line is of this record.
    None,
}

/// How much is told.
const MOST: usize = 100;

impl Checkpoints {
    /// Reads the lines of a file. `expected` is the key that signs for this store, where it is known.
    pub fn read(mut file: impl BufRead, expected: Option<PublicKey>) -> io::Result<Self> {
        let (signed, origins, wrong) = (Vec::new(), Vec::new(), Vec::new());
        let mut all = Self { lines: 0, wrong, signed, origins, expected, met: 0 };
        while let Some(line) = next_line(&mut file)? {
            all.lines += 1;
            if !line.trim_ascii().is_empty() {
                all.line(&line);
            }
        }
        all.signed.sort_by_key(|signed| (signed.head.seq, signed.line));
        Ok(all)
    }

    fn line(&mut self, line: &[u8]) {
        let number = self.lines;
        let checkpoint = match Checkpoint::parse(line) {
            Ok(checkpoint) if checkpoint.is_genuine() => checkpoint,
            Ok(_) => return self.wrong(number, Contradiction::Forged),
            Err(error) => return self.wrong(number, Contradiction::Unreadable(error)),
        };
        let origin = Origin { store: checkpoint.store, key: checkpoint.key };
        let place = self.origins.iter().position(|known| *known == origin).unwrap_or_else(|| {
            self.origins.push(origin);
            self.origins.len() - 1
        });
        let Checkpoint { head, at, .. } = checkpoint;
        self.signed.push(Signed { head, at, line: number, origin: place, met: Meeting::NotYet });
    }

    fn wrong(&mut self, line: u64, what: Contradiction) {
        if self.wrong.len() < MOST {
            self.wrong.push(Mismatch { line, what });
        }
    }

    /// Notes what the record holds at a place. Entries come in order; where they do not, the first one counts.
    pub(super) fn meet(&mut self, head: Head) {
        for signed in self.signed.iter_mut().skip(self.met) {
            if signed.head.seq > head.seq {
                break;
            }
            self.met += 1;
            if signed.head.seq == head.seq {
                signed.met = if signed.head.hash == head.hash { Meeting::Agrees } else { Meeting::Differs };
            }
        }
    }

    /// What they say of a record with this first entry, whose last row has the number `last`. Of a part of a record,
    /// entries may be missing. Beside it the entries that the record agrees with them on.
    pub(super) fn compare(mut self, first: Option<Digest>, last: u64, partial: bool) -> (Compared, Vec<u64>) {
        let key = self.expected.or_else(|| self.key_of(first));
        let mut compared = Compared {
            lines: self.lines,
            agreed: 0,
            others: 0,
            last: None,
            key,
            key_was_expected: self.expected.is_some(),
            mismatches: Vec::new(),
        };
        let signed = std::mem::take(&mut self.signed);
        let mut from = 1;
        let mut own = 0_u64;
        let mut vouched = Vec::new();
        // Of these one is enough: what comes before or after it follows from it.
        let (mut other_record, mut rewritten, mut cut) = (None, None, None);
        for Signed { head: Head { seq, hash }, at, line, origin, met } in signed {
            let Some(Origin { store, key: by }) = self.origins.get(origin).copied() else { continue };
            let by_this = key == Some(by);
            let of_this = first.map_or(by_this, |first| first == store);
            if !by_this {
                compared.others += u64::from(!of_this);
                if of_this {
                    self.wrong(line, Contradiction::OtherKey);
                }
                continue;
            }
            own += 1;
            if !of_this {
                other_record.get_or_insert((line, Contradiction::OtherRecord));
                continue;
            }
            match met {
                Meeting::Agrees => {
                    from = seq.saturating_add(1);
                    compared.agreed += 1;
                    vouched.push(seq);
                    compared.last = Some((Head { seq, hash }, at));
                }
                Meeting::Differs => {
                    rewritten.get_or_insert((line, Contradiction::Rewritten { from, seq }));
                }
                Meeting::NotYet if partial => {}
                Meeting::NotYet if seq > last => cut = Some((line, Contradiction::Missing { seq, last })),
                Meeting::NotYet => self.wrong(line, Contradiction::Missing { seq, last }),
            }
        }
        let none = (own == 0).then_some((0, Contradiction::None));
        for (line, what) in [other_record, rewritten, cut, none].into_iter().flatten() {
            self.wrong.push(Mismatch { line, what });
        }
        self.wrong.sort_by_key(|mismatch| mismatch.line);
        (Compared { mismatches: self.wrong, ..compared }, vouched)
    }

    /// The key of the first line of a record: where nobody says which it must be, the file is believed.
    fn key_of(&self, first: Option<Digest>) -> Option<PublicKey> {
        self.origins.iter().find(|origin| first.is_none_or(|first| first == origin.store)).map(|origin| origin.key)
    }
}

/// The next line, without its end; of one that is too long only the beginning.
fn next_line(file: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut any = false;
    loop {
        let piece = match file.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if piece.is_empty() {
            return Ok(any.then_some(line));
        }
        any = true;
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = piece.get(..end.unwrap_or(piece.len())).unwrap_or_default();
        // One byte more than may be read, so that it shows.
        let room = (LONGEST_LINE + 1).saturating_sub(line.len());
        line.extend_from_slice(taken.get(..room.min(taken.len())).unwrap_or_default());
        let used = taken.len() + usize::from(end.is_some());
        file.consume(used);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

impl Contradiction {
    /// A word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "line_unreadable",
            Self::Forged => "bad_signature",
            Self::OtherKey => "other_key",
            Self::OtherRecord => "other_record",
            Self::Rewritten { .. } => "rewritten",
            Self::Missing { .. } => "truncated",
            Self::None => "no_checkpoint",
        }
    }

    /// The entry of the record that it is about.
    pub fn seq(&self) -> Option<u64> {
        match self {
            Self::Rewritten { seq, .. } | Self::Missing { seq, .. } => Some(*seq),
            Self::OtherRecord => Some(1),
            Self::Unreadable(_) | Self::Forged | Self::OtherKey | Self::None => None,
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line;
        match self.what {
            Contradiction::Unreadable(why) => write!(f, "line {line} of the checkpoints cannot be read: {why}"),
            Contradiction::Forged => {
                write!(f, "the signature in line {line} of the checkpoints is not that of the key that it names")
            }
            Contradiction::OtherKey => {
                write!(f, "line {line} of the checkpoints was signed by another key than this store's")
            }
            Contradiction::OtherRecord => write!(
                f,
                "line {line} of the checkpoints was signed for a record with another first entry: all of it was made anew"
            ),
            Contradiction::Rewritten { from, seq } if from == seq => {
                write!(f, "entry {seq} is not the one of line {line} of the checkpoints: it was made anew")
            }
            Contradiction::Rewritten { from, seq } => write!(
                f,
                "entry {seq} is not the one of line {line} of the checkpoints: the record was made anew from an entry \
                 between {from} and {seq} on"
            ),
            Contradiction::Missing { seq, last } if seq > last => write!(
                f,
                "the record ends with entry {last}, and line {line} of the checkpoints is of entry {seq}: at least {} \
                 were cut off",
                seq - last
            ),
            Contradiction::Missing { seq, .. } => {
                write!(f, "entry {seq}, which line {line} of the checkpoints is of, is not there as it was sealed")
            }
            Contradiction::None => f.write_str(
                "none of the checkpoints is of this record: they are another store's, or all of it was made anew",
            ),
        }
    }
}
