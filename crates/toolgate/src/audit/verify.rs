//! Whether a record holds: the chain itself, and against what was kept of it elsewhere.
//!
//! A [`Verifier`] is shown every row in order, from a store or from an export, and tells at the end what is wrong. What it
//! cannot see is a cut behind the last checkpoint, and what whoever can write the store adds at the end.

mod compare;
mod flaw;

use super::{Head, Sealed, link};
use crate::json::Digest;
use crate::ledger::{Store, StoreError};

pub use compare::{Checkpoints, Compared, Contradiction, Mismatch};
pub use flaw::{Break, Flaw, Part};

/// A row of the record, whatever stands in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// An entry.
    Sealed(Sealed),
    /// Something that can be no entry.
    Unreadable {
        /// The number that it stands under; of a line that is none of an export, the line.
        place: i64,
        /// What of it cannot be read.
        part: Part,
    },
}

/// What is held against the rows of a record.
#[derive(Debug)]
pub struct Verifier {
    /// The end of what holds.
    head: Head,
    first: Option<Digest>,
    /// The highest number of all rows.
    last: u64,
    broken: Option<Break>,
    /// The hash of an entry that somebody kept, until it is met.
    kept: Option<Digest>,
    /// The number of that entry, once it is met.
    kept_at: Option<u64>,
    /// The entries that hold: the first and the last of each run without a gap, in order.
    runs: Vec<(u64, u64)>,
    checkpoints: Option<Checkpoints>,
    /// Whether rows may be missing: it is a part of a record.
    partial: bool,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The end of what holds.
    pub head: Head,
    /// How many entries are there and hold.
    pub seen: u64,
    /// How many of them nothing vouches for: neither they nor an entry that they are linked to, further on and without a
    /// gap, is one that was kept elsewhere. Whoever can write the store can make them anew, hashes and all.
    pub unvouched: u64,
    /// The first place where the chain does not hold.
    pub broken: Option<Break>,
    /// What was kept elsewhere, and whether the record agrees with it.
    pub checkpoints: Option<Compared>,
}

impl Row {
    /// What stands in a row, by its columns.
    pub(crate) fn of(
        place: i64,
        reference: Option<String>,
        previous: Option<[u8; 32]>,
        hash: Option<[u8; 32]>,
        body: Option<String>,
    ) -> Self {
        let unreadable = |part| Self::Unreadable { place, part };
        let Some(seq) = u64::try_from(place).ok().filter(|seq| *seq > 0) else { return unreadable(Part::Place) };
        let Some(reference) = reference else { return unreadable(Part::Reference) };
        let Some(previous) = previous.map(Digest::from) else { return unreadable(Part::Previous) };
        let Some(hash) = hash.map(Digest::from) else { return unreadable(Part::Hash) };
        let Some(body) = body else { return unreadable(Part::Body) };
        Self::Sealed(Sealed { seq, reference, previous, hash, body })
    }

    pub(super) fn place(&self) -> i64 {
        match self {
            Self::Sealed(sealed) => i64::try_from(sealed.seq).unwrap_or(i64::MAX),
            Self::Unreadable { place, .. } => *place,
        }
    }
}

impl Head {
    /// The head after `next`, if `next` truly continues this one.
    #[cfg(test)]
    pub(crate) fn follow(self, next: &Sealed) -> Result<Self, Break> {
        self.joined(next, next.is_sealed(), false)
    }

    /// The head after `next`, whose hash is `sound` or not. Behind this one there may be a gap where `next` is of a part
    /// of a record.
    fn joined(self, next: &Sealed, sound: bool, partial: bool) -> Result<Self, Break> {
        let broken = |what| Err(Break { seq: next.seq, what });
        let wanted = self.seq.saturating_add(1);
        if next.seq < wanted {
            return broken(Flaw::Again);
        }
        if next.seq > wanted && !partial {
            return Err(Break { seq: wanted, what: Flaw::Gap { last: next.seq - 1 } });
        }
        if !sound || !next.names_itself() {
            return broken(Flaw::Altered);
        }
        if next.seq == wanted && next.previous != self.hash {
            return broken(Flaw::Unlinked);
        }
        Ok(Self { seq: next.seq, hash: next.hash })
    }
}

impl Verifier {
    /// Holds a whole record against itself.
    pub fn new() -> Self {
        Self {
            head: Head::empty(),
            first: None,
            last: 0,
            broken: None,
            kept: None,
            kept_at: None,
            runs: Vec::new(),
            checkpoints: None,
            partial: false,
        }
    }

    /// Holds it against the hash of an entry that somebody kept as well.
    #[must_use]
    pub fn kept(mut self, hash: Option<Digest>) -> Self {
        self.kept = hash;
        self
    }

    /// Holds it against checkpoints as well.
    #[must_use]
    pub fn checkpoints(mut self, checkpoints: Option<Checkpoints>) -> Self {
        self.checkpoints = checkpoints;
        self
    }

    /// Takes it for a part of a record: rows may be missing, and each that is there must fit its own hash and those
    /// beside it. That alone shows little: see [`Report::unvouched`].
    #[must_use]
    pub fn partial(mut self, partial: bool) -> Self {
        self.partial = partial;
        self
    }

    /// Looks at the next row.
    pub fn row(&mut self, row: &Row) {
        let sealed = match row {
            Row::Sealed(sealed) => sealed,
            Row::Unreadable { place, part } => return self.unreadable(*place, *part),
        };
        self.last = self.last.max(sealed.seq);
        let sound = sealed.is_sealed();
        if sound {
            self.first = self.first.or(Some(sealed.hash).filter(|_| sealed.seq == 1));
            if self.kept.take_if(|kept| *kept == sealed.hash).is_some() {
                self.kept_at = Some(sealed.seq);
            }
            if let Some(checkpoints) = &mut self.checkpoints {
                checkpoints.meet(Head { seq: sealed.seq, hash: sealed.hash });
            }
        }
        match &mut self.broken {
            None => match self.head.joined(sealed, sound, self.partial) {
                Ok(head) => self.holds(head),
                Err(broken) => self.broke(broken),
            },
            // The entry of the broken place may stand elsewhere.
            Some(Break { seq, what }) if *what == Flaw::Altered => {
                let is_it = || sealed.hash == link(*seq, sealed.previous, &sealed.body);
                if sealed.previous == self.head.hash && is_it() {
                    *what = Flaw::Swapped { with: sealed.seq };
                }
            }
            Some(_) => {}
        }
    }

    fn holds(&mut self, head: Head) {
        self.head = head;
        match self.runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(head.seq) => *last = head.seq,
            Some(_) | None => self.runs.push((head.seq, head.seq)),
        }
    }

    fn unreadable(&mut self, place: i64, part: Part) {
        let wanted = self.head.seq.saturating_add(1);
        let what = Flaw::Unreadable { place, part };
        let seq = match part {
            // It could be any entry.
            Part::Line => wanted,
            Part::Place | Part::Reference | Part::Previous | Part::Hash | Part::Body => {
                u64::try_from(place).unwrap_or_default()
            }
        };
        self.last = self.last.max(seq);
        match wanted < seq && !self.partial {
            // What is missing before it comes first.
            true => self.broke(Break { seq: wanted, what: Flaw::Gap { last: seq - 1 } }),
            false => self.broke(Break { seq, what }),
        }
    }

    /// Says that nothing more can be read, for a reason that people are told.
    pub fn damaged(&mut self, why: String) {
        self.broke(Break { seq: self.head.seq.saturating_add(1), what: Flaw::Damaged(why) });
    }

    /// What was found, once there are no more rows.
    pub fn end(self) -> Report {
        let cut = || Break { seq: self.head.seq.saturating_add(1), what: Flaw::Cut };
        let broken = self.broken.or_else(|| self.kept.map(|_| cut()));
        let compared = self.checkpoints.map(|checkpoints| checkpoints.compare(self.first, self.last, self.partial));
        let (checkpoints, mut vouched) = compared.map_or_else(|| (None, Vec::new()), |(told, seqs)| (Some(told), seqs));
        vouched.extend(self.kept_at);
        vouched.sort_unstable();
        let seen = self.runs.iter().map(|(first, last)| last - first + 1).sum();
        let unvouched = self.runs.iter().map(|(first, last)| {
            let up_to = vouched.partition_point(|seq| seq <= last).checked_sub(1).and_then(|at| vouched.get(at));
            last - up_to.map_or(first - 1, |seq| (first - 1).max(*seq))
        });
        Report { head: self.head, seen, unvouched: unvouched.sum(), broken, checkpoints }
    }

    /// INVARIANT (the first place): later ones rest on what is broken already.
    fn broke(&mut self, broken: Break) {
        self.broken.get_or_insert(broken);
    }
}

impl Default for Verifier {
    fn default() -> Self {
        Self::new()
    }
}

impl Report {
    /// Whether nothing is wrong.
    pub fn holds(&self) -> bool {
        self.broken.is_none() && self.checkpoints.as_ref().is_none_or(|compared| compared.mismatches.is_empty())
    }
}

/// How many rows are read at once: each may hold a megabyte.
const PAGE: usize = 200;

impl Store {
    /// Follows the chain of the record from its first entry, and tells where it first does not hold.
    ///
    /// `kept` is the hash of a head that somebody kept: a chain that does not hold it any more was cut off or made anew.
    pub async fn verify(&self, kept: Option<Digest>) -> Result<Result<Head, Break>, StoreError> {
        let Report { head, broken, .. } = self.examine(Verifier::new().kept(kept)).await?;
        Ok(broken.map_or(Ok(head), Err))
    }

    /// Shows every row of the record to a verifier, and looks at how the rows are kept.
    pub async fn examine(&self, mut verifier: Verifier) -> Result<Report, StoreError> {
        let mut from = i64::MIN;
        loop {
            let rows = match self.rows(from, PAGE).await {
                Ok(rows) => rows,
                Err(StoreError::Broken(why)) => {
                    verifier.damaged(why);
                    break;
                }
                Err(error @ StoreError::Busy) => return Err(error),
            };
            let Some(last) = rows.last().map(Row::place) else { break };
            rows.iter().for_each(|row| verifier.row(row));
            // A damaged file may hand out rows in any order: what does not lead on is not followed.
            match last.checked_add(1).filter(|next| *next > from) {
                Some(next) => from = next,
                None => break,
            }
        }
        match self.damage().await {
            Ok(None) => {}
            Ok(Some(why)) | Err(StoreError::Broken(why)) => verifier.damaged(why),
            Err(error @ StoreError::Busy) => return Err(error),
        }
        Ok(verifier.end())
    }
}

#[cfg(test)]
mod tests;
