//! What the model proposed: a call id, the name of a tool, and the raw text of the arguments. Nothing here is trusted.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Millis;

/// A proposed call, with what the host (never the model) adds to it.
#[derive(Clone, Debug)]
pub struct Call {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) arguments: Box<[u8]>,
    pub(crate) operation: Option<OperationId>,
    pub(crate) approval: Option<String>,
    pub(crate) patience: Option<Duration>,
}

/// An id that the host gives to one intended operation, so that a repeat is known whatever the model wrote.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OperationId(String);

/// An operation id that is empty, longer than 255 characters or not made of visible ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an operation id is 1 to 255 visible ASCII characters; this one is not, and it is never shortened")]
pub struct BadOperationId;

/// The name of one attempt, for people and records: a ULID, which sorts by time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ref(String);

impl Call {
    /// A call of `tool` with the raw text of its arguments; `id` is the one the model gave to the call.
    pub fn new(id: impl Into<String>, tool: impl Into<String>, arguments: impl Into<Vec<u8>>) -> Self {
        Self {
            id: id.into(),
            tool: tool.into(),
            arguments: arguments.into().into_boxed_slice(),
            operation: None,
            approval: None,
            patience: None,
        }
    }

    /// Names the operation, for a contract with `caller = true` in `[once]`.
    #[must_use]
    pub fn operation(mut self, id: OperationId) -> Self {
        self.operation = Some(id);
        self
    }

    /// Names the approval that the host expects to be used; a wrong one is refused as `approval_invalid`.
    #[must_use]
    pub fn approval(mut self, id: impl Into<String>) -> Self {
        self.approval = Some(id.into());
        self
    }

    /// How long the caller is ready to wait for an equal call or for the lane; the call's deadline if not set.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// The id that the model gave to the call.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name of the tool, as the model wrote it.
    pub fn tool(&self) -> &str {
        &self.tool
    }
}

impl OperationId {
    /// The id, if it is 1 to 255 visible ASCII characters (0x21 to 0x7E).
    pub fn parse(text: &str) -> Result<Self, BadOperationId> {
        let fits = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(Self(text.to_owned())) } else { Err(BadOperationId) }
    }

    /// The text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Ref {
    /// A new, unique name.
    pub(crate) fn fresh() -> Self {
        Self(ulid::Ulid::generate().to_string())
    }

    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// When the name was given, by the clock of the process that gave it.
    pub fn given_at(&self) -> Option<Millis> {
        ulid::Ulid::from_string(&self.0).ok().map(|ulid| Millis(ulid.timestamp_ms()))
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
