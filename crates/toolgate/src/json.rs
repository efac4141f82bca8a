//! The one strict JSON reader, the canonical form and digests.
//!
//! Everything that arrives as JSON is read here and nowhere else: arguments, results, envelopes, claims and
//! configuration. The reader takes RFC 8259 as it is written and refuses what two readers could understand
//! differently: a member given twice (compared after unescaping), a lone surrogate, anything but UTF-8,
//! anything after the value. Nothing is repaired.
//!
//! Numbers are exact or refused. What is an integer by value (`25`, `25.0`, `1e3`) must fit an `i64` or a
//! `u64`; any other number must be the shortest decimal of its nearest double, so that it prints back as it
//! was sent.
//!
//! [`canonical`] gives the one spelling of a value (RFC 8785 with exact 64-bit integers), and a [`Digest`]
//! of it is the identity of what was asked. A [`Flaw`] says what was found, where, and how to mend it; it
//! never shows a value.

use serde_json::{Map, Value};

use reader::Reader;

pub(crate) use bytes::is_printable_ascii;
pub use canonical::canonical;
pub(crate) use canonical::{Part, canonical_object, canonical_pair, canonical_part};
pub use digest::{Digest, NotADigest};
pub use flaw::{Flaw, FlawCode};

mod bytes;
mod canonical;
mod diagnose;
mod digest;
mod double;
mod flaw;
mod number;
mod place;
mod reader;
mod string;

/// Bounds on a text, kept before and while it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole text; checked before anything is read.
    pub size: usize,
    /// Brackets open at once. More than 512 counts as 512, so that no setting can exhaust the stack.
    pub depth: usize,
    /// Object members in the whole text, at all depths together.
    pub members: usize,
}

/// Bounds that somebody set, in place of those that would hold otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of the whole text.
    pub size: Option<usize>,
    /// Brackets open at once.
    pub depth: Option<usize>,
    /// Object members in the whole text.
    pub members: Option<usize>,
}

impl Limits {
    /// The most that a gate or a contract may set. What a schema costs is reckoned for values of this depth.
    pub const MOST: Self = Self { size: 16 * 1024 * 1024, depth: 64, members: 1_000_000 };
}

impl Bounds {
    /// `limits`, but for what is set here.
    #[must_use]
    pub fn over(self, limits: Limits) -> Limits {
        Limits {
            size: self.size.unwrap_or(limits.size),
            depth: self.depth.unwrap_or(limits.depth),
            members: self.members.unwrap_or(limits.members),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { size: 1_000_000, depth: 64, members: 10_000 }
    }
}

/// Reads a text that holds exactly one value.
pub fn read(bytes: &[u8], limits: &Limits) -> Result<Value, Flaw> {
    Reader::over(bytes, limits, Reader::value)
}

/// Reads the arguments of a call: an object, or blank text for an empty one.
pub fn read_arguments(bytes: &[u8], limits: &Limits) -> Result<Map<String, Value>, Flaw> {
    Reader::over(bytes, limits, |reader| {
        if reader.at_end() {
            return Ok(Map::new());
        }
        let start = reader.at;
        match reader.value()? {
            Value::Object(members) => Ok(members),
            other => Err(diagnose::not_object(start, &other, limits)),
        }
    })
}

/// Splits an object into its members, each with the raw text of its value.
///
/// The object itself is read strictly. Inside the values only the structure is checked (tokens, balance,
/// depth), so that one broken call can be refused without the message around it; whoever uses a value
/// reads it with this module in turn.
pub fn members<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Vec<(String, &'a [u8])>, Flaw> {
    Reader::over(bytes, limits, Reader::members)
}

/// Splits an array into the raw texts of its items, under the rules of [`members`].
pub fn items<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Vec<&'a [u8]>, Flaw> {
    Reader::over(bytes, limits, Reader::items)
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]
mod tests;
