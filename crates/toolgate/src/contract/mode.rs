//! Whether what policies say of a tool's calls holds, or is only written down.

/// Whether what policies say of a tool's calls holds, or is only written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// What they refuse is refused.
    Enforce,
    /// What they would refuse is on record, and the call goes on.
    Observe,
}

impl Mode {
    /// The words for both, as settings and contracts write them.
    pub const WORDS: [(&'static str, Self); 2] = [("enforce", Self::Enforce), ("observe", Self::Observe)];
}
