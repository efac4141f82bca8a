//! Signed checkpoints: the end of the record at a moment, kept where whoever can write the store cannot.
//!
//! A checkpoint is one line of JSON. Its signature (Ed25519) covers `toolgate checkpoint v1`, a line feed, and the
//! canonical text of all its other members:
//!
//! ```text
//! {"v":1,"store":"HASH","seq":42,"hash":"HASH","at":"2026-01-31T09:30:00.000Z","key":"HEX","sig":"HEX"}
//! ```
//!
//! `store` is the hash of the first entry of the record: it names the store, and cannot be kept when all is made anew.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use data_encoding::{BASE64, HEXLOWER};
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::Head;
use crate::clock::Millis;
use crate::json::{self, Digest, Limits, Part, canonical_object};
use crate::ledger::{Store, StoreError};
use crate::vault::{KeyError, text_in_file};

/// The end of a record at a moment, signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The hash of the first entry of the record.
    pub store: Digest,
    /// The last entry.
    pub head: Head,
    /// When it was signed.
    pub at: Millis,
    /// The key that it says it was signed with.
    pub key: PublicKey,
    signature: [u8; SIGNATURE],
}

/// What signs checkpoints. INVARIANT (no trace): it is printed nowhere.
pub struct SigningKey(Ed25519KeyPair);

/// What verifies them: 32 bytes, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

/// A text that is no public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a public key: expected 64 lowercase hexadecimal digits")]
pub struct NotAKey;

/// Why a line is no checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotACheckpoint {
    /// It is no JSON object in which each member stands once.
    #[error("it is no JSON object")]
    Json,
    /// It is of a version that this program does not know.
    #[error("it is of a version that is not known here")]
    Version,
    /// A member is missing or not of its form, or there is one too many.
    #[error("its members are not those of a checkpoint")]
    Members,
}

/// What came of asking a store for a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The record has moved on: it ends here.
    Moved(Checkpoint),
    /// Nothing was recorded since the one before.
    Unmoved,
    /// The record does not hold the one before any more: it was cut off or made anew, and nothing is signed.
    Contradicted,
}

/// The longest line that is read.
pub const LONGEST_LINE: usize = 4096;

const SIGNATURE: usize = 64;
const DOMAIN: &str = "toolgate checkpoint v1\n";
const PEM: [&str; 2] = ["-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"];

impl Checkpoint {
    /// Signs `head` as the end of the record of `store`.
    pub fn sign(key: &SigningKey, store: Digest, head: Head, at: Millis) -> Self {
        let mut signed = Self { store, head, at, key: key.public(), signature: [0; SIGNATURE] };
        let signature = key.0.sign(signed.covered().as_bytes());
        signed.signature.copy_from_slice(signature.as_ref());
        signed
    }

    /// Reads a line. Whether its signature holds is another question.
    pub fn parse(line: &[u8]) -> Result<Self, NotACheckpoint> {
        let limits = Limits { size: LONGEST_LINE, depth: 1, members: 16 };
        let Ok(Value::Object(mut members)) = json::read(line, &limits) else { return Err(NotACheckpoint::Json) };
        match members.remove("v") {
            Some(Value::Number(version)) if version.as_u64() == Some(1) => {}
            Some(Value::Number(_)) => return Err(NotACheckpoint::Version),
            Some(_) | None => return Err(NotACheckpoint::Members),
        }
        let seq = members.remove("seq").and_then(|seq| seq.as_u64()).filter(|seq| *seq > 0);
        let mut text = |name: &str| match members.remove(name) {
            Some(Value::String(text)) => Ok(text),
            Some(_) | None => Err(NotACheckpoint::Members),
        };
        let [store, hash, at, key, sig] = [text("store")?, text("hash")?, text("at")?, text("key")?, text("sig")?];
        let form = |_| NotACheckpoint::Members;
        let digest = |text: &str| text.parse::<Digest>().map_err(|_| NotACheckpoint::Members);
        let moment: Millis = at.parse().map_err(|_| NotACheckpoint::Members)?;
        let signature = HEXLOWER.decode(sig.as_bytes()).map_err(form)?;
        let read = Self {
            store: digest(&store)?,
            head: Head { seq: seq.ok_or(NotACheckpoint::Members)?, hash: digest(&hash)? },
            at: moment,
            key: key.parse().map_err(|_| NotACheckpoint::Members)?,
            signature: signature.try_into().map_err(|_| NotACheckpoint::Members)?,
        };
        // What the signature covers is made anew from what was read: nothing beside it may stand in the line.
        if members.is_empty() && moment.to_string() == at { Ok(read) } else { Err(NotACheckpoint::Members) }
    }

    /// Whether the key that it names signed it.
    pub fn is_genuine(&self) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, self.key.0);
        key.verify(self.covered().as_bytes(), &self.signature).is_ok()
    }

    fn covered(&self) -> String {
        let own = |text: String| Part::Own(Value::String(text));
        let members = vec![
            ("v", Part::Count(1)),
            ("store", own(self.store.hex())),
            ("seq", Part::Count(self.head.seq)),
            ("hash", own(self.head.hash.hex())),
            ("at", own(self.at.to_string())),
            ("key", own(self.key.to_string())),
        ];
        format!("{DOMAIN}{}", canonical_object(members))
    }
}

impl fmt::Display for Checkpoint {
    /// The line, without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, head: Head { seq, hash }, at, key, signature } = self;
        let signature = HEXLOWER.encode(signature);
        write!(
            f,
            r#"{{"v":1,"store":"{store}","seq":{seq},"hash":"{hash}","at":"{at}","key":"{key}","sig":"{signature}"}}"#
        )
    }
}

impl SigningKey {
    /// The key in a file (Ed25519, PKCS#8, PEM), which is made, for this user alone, if it is not there.
    pub fn in_file(path: &Path) -> Result<Self, KeyError> {
        let text = text_in_file(path, || {
            let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| KeyError::Random)?;
            let [begin, end] = PEM;
            Ok(format!("{begin}\n{}\n{end}\n", BASE64.encode(document.as_ref())))
        })?;
        Self::parse(&text).ok_or_else(|| KeyError::Signing(path.display().to_string()))
    }

    fn parse(text: &str) -> Option<Self> {
        let [begin, end] = PEM;
        let body = text.trim().strip_prefix(begin)?.strip_suffix(end)?;
        let body: String = body.split_ascii_whitespace().collect();
        let document = BASE64.decode(body.as_bytes()).ok()?;
        // Other programs write the form without the public key, which follows from the private one.
        Ed25519KeyPair::from_pkcs8_maybe_unchecked(&document).ok().map(Self)
    }

    /// What verifies its signatures.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.public_key().as_ref());
        PublicKey(bytes)
    }
}

impl Store {
    /// Signs the end of the record. `before` is the last checkpoint that was signed: a record that does not hold it any
    /// more is not signed again.
    pub async fn checkpoint(
        &self,
        key: &SigningKey,
        before: Option<&Checkpoint>,
        now: Millis,
    ) -> Result<Asked, StoreError> {
        let head = self.head().await?;
        let first = self.records(0, 1).await?.into_iter().next().filter(|first| first.seq == 1);
        let Some(first) = first.filter(|_| head.seq > 0) else {
            return Ok(if before.is_some() || head.seq > 0 { Asked::Contradicted } else { Asked::Unmoved });
        };
        if let Some(before) = before {
            let there = match before.head.seq.checked_sub(1) {
                Some(after) => self.records(after, 1).await?.into_iter().next(),
                None => None,
            };
            let holds = there.is_some_and(|there| before.head == Head { seq: there.seq, hash: there.hash });
            if !holds || before.store != first.hash || before.head.seq > head.seq {
                return Ok(Asked::Contradicted);
            }
            if before.head.seq == head.seq {
                return Ok(Asked::Unmoved);
            }
        }
        Ok(Asked::Moved(Checkpoint::sign(key, first.hash, head, now)))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let bytes = HEXLOWER.decode(text.as_bytes()).map_err(|_| NotAKey)?;
        bytes.try_into().map(Self).map_err(|_| NotAKey)
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
    }
}

#[cfg(test)]
mod tests;
