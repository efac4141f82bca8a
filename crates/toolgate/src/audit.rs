//! The record: every attempt leaves entries that are chained by hash, so that a change anywhere in the past shows.
//!
//! The chain gives tamper *evidence*: an edit, a removal or a swap inside it is found ([`verify`]). Whoever can write the
//! store can cut its end off, or make all of it anew; that is seen by whoever kept a [`checkpoint`] elsewhere.

pub mod checkpoint;
pub mod export;
pub mod filter;
pub mod observed;
pub mod verify;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::call::Ref;
use crate::clock::Millis;
use crate::json::{self, Digest, Limits, Part, canonical_object};
use crate::ledger::{Page, Store, StoreError};

/// Declares the kinds of records with their names in one place.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)+) => {
        /// What a record tells of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind { $($(#[$doc])* $kind,)+ }

        /// The names of all kinds of records.
        pub const KINDS: [&str; [$($name),+].len()] = [$($name),+];

        impl Kind {
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $name,)+ }
            }
        }
    };
}

kinds! {
    /// A write, or a read that uses an approval, is about to run; durable before it does.
    Intent = "intent",
    /// How a write ended.
    Outcome = "outcome",
    /// A read that ran.
    Read = "read",
    /// A call that was refused before anything ran.
    Refusal = "refusal",
    /// A call whose stored reply was given again.
    Replay = "replay",
    /// A call that was only judged.
    DryRun = "dry_run",
    /// A call that waits for approval.
    Proposal = "proposal",
    /// A person's answer to a pending approval.
    Decision = "decision",
    /// An action whose owner was lost, and is unknown since.
    Lost = "lost",
    /// What reconciling an unknown action found.
    Reconciled = "reconciled",
    /// What an operator said of an unknown action.
    Ruling = "ruling",
    /// How a write ended that closed no action: its caller was told that it is not known.
    Late = "late",
    /// That somebody's personal data was made unreadable.
    Erasure = "erasure",
    /// That an operator stopped calls for a while.
    Stopped = "stopped",
    /// That a stop was lifted before its end.
    Lifted = "lifted",
    /// Consent that a person gave beforehand to a bounded set of calls, or would have given.
    StandingGrant = "standing_grant",
    /// Such consent, taken back.
    StandingRevoked = "standing_revoked",
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
        json::read(self.body.as_bytes(), &BODY).ok()
    }

    fn says(&self, name: &str, text: &str) -> bool {
        let members = json::members(self.body.as_bytes(), &BODY).unwrap_or_default();
        let said = members.iter().find(|(known, _)| known == name).and_then(|(_, raw)| json::read(raw, &BODY).ok());
        said.as_ref().and_then(Value::as_str) == Some(text)
    }

    /// Whether the hash is that of the rest.
    fn is_sealed(&self) -> bool {
        self.hash == link(self.seq, self.previous, &self.body)
    }
}

impl Head {
    /// The end of an empty chain.
    pub fn empty() -> Self {
        Self { seq: 0, hash: Digest::of(b"") }
    }
}

/// Wide enough for all that a gate writes.
const BODY: Limits = Limits { size: usize::MAX, depth: 512, members: usize::MAX };

/// How much of the record one page of a list looks through, and how much of it is read at once: an entry may be of a
/// megabyte.
const LOOKED_THROUGH: u64 = 1000;
const PAGE: u64 = 100;
/// A page of a list that holds this much is long enough.
const BYTES: usize = 16 << if cfg!(test) { 10 } else { 20 };

impl Store {
    /// The end of the record.
    pub async fn end(&self) -> Result<Head, StoreError> {
        self.head().await
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
        let mut page = Page { items: Vec::new(), next: None };
        let mut last = end.saturating_sub(1);
        let stop = last.saturating_sub(LOOKED_THROUGH);
        let mut bytes = 0;
        while last > stop {
            let after = last.saturating_sub(PAGE).max(stop);
            let mut records = self.records(after, usize::try_from(last - after).unwrap_or(usize::MAX)).await?;
            records.reverse();
            for record in records.into_iter().filter(|record| record.seq <= last && record.tells_of(tenant)) {
                if page.items.len() == limit || bytes >= BYTES {
                    return Ok(page);
                }
                bytes += record.body.len();
                page.next = Some(record.seq);
                page.items.push(record);
            }
            last = after;
        }
        page.next = Some(stop + 1).filter(|_| stop > 0);
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
