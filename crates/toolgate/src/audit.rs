//! The record: every attempt leaves entries that are chained by hash, so that a change anywhere in the past shows.
//!
//! The chain gives tamper *evidence*: an edit, a removal or a swap inside it is found. A cut at the very end is seen
//! only by whoever kept an earlier head of the chain.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::call::Ref;
use crate::clock::Millis;
use crate::json::{self, Digest, Limits, Part, canonical_object};
use crate::ledger::{Page, Store, StoreError};

/// What a record tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A write, or a read that uses an approval, is about to run; durable before it does.
    Intent,
    /// How a write ended.
    Outcome,
    /// A read that ran.
    Read,
    /// A call that was refused before anything ran.
    Refusal,
    /// A call whose stored reply was given again.
    Replay,
    /// A call that was only judged.
    DryRun,
    /// A call that waits for approval.
    Proposal,
    /// A person's answer to a pending approval.
    Decision,
    /// An action whose owner was lost, and is unknown since.
    Lost,
    /// What reconciling an unknown action found.
    Reconciled,
    /// What an operator said of an unknown action.
    Ruling,
    /// How a write ended whose caller was told before that it is not known.
    Late,
    /// That somebody's personal data was made unreadable.
    Erasure,
}

/// One entry of the record, before it is chained.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    reference: Ref,
    /// The canonical text of what is told.
    body: String,
}

/// One entry of the record, as it stands in the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sealed {
    /// Its place, counted from 1 without a gap.
    pub seq: u64,
    /// The attempt that it tells of.
    pub reference: String,
    /// The hash of the entry before it; of the first one, the hash of nothing.
    pub previous: Digest,
    /// The hash of this entry: SHA-256 of `seq` (8 bytes, the highest first), `previous` (32 bytes) and the body text.
    pub hash: Digest,
    /// The canonical JSON text of what is told.
    pub body: String,
}

/// The end of a chain: what the next entry continues, and what a verifier should keep elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Head {
    /// The number of entries.
    pub seq: u64,
    /// The hash of the last one.
    pub hash: Digest,
}

/// The first place where a chain does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Break {
    /// The place where it shows.
    pub seq: u64,
    /// What is wrong there.
    pub what: Flaw,
}

/// What can be wrong with a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Entries before this one are missing.
    Gap,
    /// It does not continue the entry before it.
    Unlinked,
    /// Its text or its place is not the one that was sealed.
    Altered,
    /// The record that somebody kept the hash of is not there any more.
    Cut,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Intent => "intent",
            Self::Outcome => "outcome",
            Self::Read => "read",
            Self::Refusal => "refusal",
            Self::Replay => "replay",
            Self::DryRun => "dry_run",
            Self::Proposal => "proposal",
            Self::Decision => "decision",
            Self::Lost => "lost",
            Self::Reconciled => "reconciled",
            Self::Ruling => "ruling",
            Self::Late => "late",
            Self::Erasure => "erasure",
        }
    }
}

impl Record {
    pub(crate) fn new(kind: Kind, at: Millis, reference: Ref, body: Map<String, Value>) -> Self {
        let members = body.iter().map(|(name, value)| (name.as_str(), Part::Value(value)));
        Self::of(kind, at, &reference, members.collect())
    }

    /// The record that tells `members`, written at once.
    pub(crate) fn of<'a>(kind: Kind, at: Millis, reference: &'a Ref, mut members: Vec<(&'a str, Part<'a>)>) -> Self {
        members.push(("kind", Part::Text(kind.as_str())));
        members.push(("at", Part::Count(at.0)));
        members.push(("ref", Part::Text(reference.as_str())));
        Self { reference: reference.clone(), body: canonical_object(members) }
    }

    pub(crate) fn reference(&self) -> &Ref {
        &self.reference
    }

    /// Chains the record after `head`.
    pub(crate) fn seal(&self, head: Head) -> Sealed {
        let seq = head.seq + 1;
        let hash = link(seq, head.hash, &self.body);
        Sealed { seq, reference: self.reference.to_string(), previous: head.hash, hash, body: self.body.clone() }
    }
}

impl Sealed {
    /// Whether the attempt that it is filed under is the one that its text tells of.
    fn names_itself(&self) -> bool {
        self.says("ref", &self.reference)
    }

    fn tells_of(&self, tenant: &str) -> bool {
        self.says("tenant", tenant)
    }

    /// What it tells, where its text is still JSON.
    pub(crate) fn told(&self) -> Option<Value> {
        let limits = Limits { size: usize::MAX, members: usize::MAX, ..Limits::default() };
        json::read(self.body.as_bytes(), &limits).ok()
    }

    fn says(&self, name: &str, text: &str) -> bool {
        let body = self.told();
        body.as_ref().and_then(|body| body.get(name)).and_then(Value::as_str) == Some(text)
    }
}

impl Head {
    /// The end of an empty chain.
    pub fn empty() -> Self {
        Self { seq: 0, hash: Digest::of(b"") }
    }

    /// The head after `next`, if `next` truly continues this one.
    pub fn follow(self, next: &Sealed) -> Result<Self, Break> {
        let broken = |what| Err(Break { seq: next.seq, what });
        if next.seq != self.seq + 1 {
            return broken(Flaw::Gap);
        }
        if next.previous != self.hash {
            return broken(Flaw::Unlinked);
        }
        if next.hash != link(next.seq, next.previous, &next.body) || !next.names_itself() {
            return broken(Flaw::Altered);
        }
        Ok(Self { seq: next.seq, hash: next.hash })
    }
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            Flaw::Gap => write!(f, "entries are missing before entry {}", self.seq),
            Flaw::Unlinked => write!(f, "entry {} does not continue the entry before it", self.seq),
            Flaw::Altered => write!(f, "entry {} was altered after it was written", self.seq),
            Flaw::Cut => {
                write!(f, "the kept head is not in the record: from entry {} on it was cut off or made anew", self.seq)
            }
        }
    }
}

/// How much of the record is read at once.
const PAGE: usize = 1000;

impl Store {
    /// Follows the chain of the record from its first entry, and tells where it first does not hold.
    ///
    /// `kept` is the hash of a head that somebody kept: a chain that does not hold it any more was cut off or made anew.
    pub async fn verify(&self, kept: Option<Digest>) -> Result<Result<Head, Break>, StoreError> {
        let mut head = Head::empty();
        let mut kept = kept;
        loop {
            let page = self.records(head.seq, PAGE).await?;
            if page.is_empty() {
                return Ok(match kept {
                    Some(_) => Err(Break { seq: head.seq + 1, what: Flaw::Cut }),
                    None => Ok(head),
                });
            }
            for sealed in &page {
                match head.follow(sealed) {
                    Ok(next) => {
                        kept = kept.filter(|kept| *kept != next.hash);
                        head = next;
                    }
                    Err(broken) => return Ok(Err(broken)),
                }
            }
        }
    }

    /// The last entries of the record, oldest first.
    pub async fn tail(&self, count: usize) -> Result<Vec<Sealed>, StoreError> {
        let head = self.head().await?;
        let after = head.seq.saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
        self.records(after, count).await
    }

    /// The newest entries of the record before the one at `before` that tell of a tenant, at most `limit`. One page looks
    /// through a bounded part of the record: it may be empty and yet not the last.
    pub async fn records_of_tenant(
        &self,
        tenant: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Page<Sealed>, StoreError> {
        let end = self.head().await?.seq.saturating_add(1).min(before.unwrap_or(u64::MAX));
        let after = end.saturating_sub(1).saturating_sub(u64::try_from(PAGE).unwrap_or(u64::MAX));
        let mut records = self.records(after, PAGE).await?;
        let mut page = Page { items: Vec::new(), next: None };
        records.reverse();
        for record in records.into_iter().filter(|record| record.seq < end && record.tells_of(tenant)) {
            if page.items.len() == limit {
                return Ok(page);
            }
            page.next = Some(record.seq);
            page.items.push(record);
        }
        page.next = Some(after + 1).filter(|_| after > 0);
        Ok(page)
    }

    /// The entries of the record that tell of one attempt, in order.
    pub async fn history(&self, reference: &str) -> Result<Vec<Sealed>, StoreError> {
        self.find(reference.to_owned()).await
    }
}

fn link(seq: u64, previous: Digest, body: &str) -> Digest {
    // The first two have a fixed length, so no two entries run into the same bytes.
    Digest::of_all(&[&seq.to_be_bytes(), previous.as_bytes(), body.as_bytes()])
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    fn chain(length: u64) -> Vec<Sealed> {
        let mut head = Head::empty();
        (0..length)
            .map(|n| {
                let body = Map::from_iter([("n".to_owned(), json!(n))]);
                let sealed = Record::new(Kind::Read, Millis(n), Ref::fresh(), body).seal(head);
                head = head.follow(&sealed).unwrap();
                sealed
            })
            .collect()
    }

    fn verify(chain: &[Sealed]) -> Result<Head, Break> {
        chain.iter().try_fold(Head::empty(), Head::follow)
    }

    #[test]
    fn an_honest_chain_holds() {
        assert_eq!(verify(&chain(5)).unwrap().seq, 5);
    }

    #[test]
    fn an_edit_is_named_where_it_was_made() {
        let mut edited = chain(5);
        edited[2].body = edited[2].body.replace("\"n\":2", "\"n\":3");
        assert_eq!(verify(&edited), Err(Break { seq: 3, what: Flaw::Altered }));
    }

    #[test]
    fn an_edit_with_a_new_hash_breaks_the_next_link() {
        let mut edited = chain(5);
        edited[2].body = edited[2].body.replace("\"n\":2", "\"n\":3");
        edited[2].hash = link(3, edited[2].previous, &edited[2].body);
        assert_eq!(verify(&edited), Err(Break { seq: 4, what: Flaw::Unlinked }));
    }

    #[test]
    fn an_entry_cannot_be_filed_under_another_attempt() {
        let mut edited = chain(5);
        edited[2].reference = edited[1].reference.clone();
        assert_eq!(verify(&edited), Err(Break { seq: 3, what: Flaw::Altered }));
    }

    #[test]
    fn a_removed_and_a_swapped_entry_show() {
        let mut cut = chain(5);
        cut.remove(1);
        assert_eq!(verify(&cut), Err(Break { seq: 3, what: Flaw::Gap }));
        let mut swapped = chain(5);
        swapped.swap(1, 2);
        assert_eq!(verify(&swapped), Err(Break { seq: 3, what: Flaw::Gap }));
    }
}
