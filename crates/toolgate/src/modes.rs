//! Of which tools the policies are only observed. One question, asked where a tool is looked for and where its calls are
//! judged.

use crate::contract::{Contract, Mode};

/// What holds for the tools of a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Modes {
    /// The policies of each tool hold, unless its contract says that they are observed.
    #[default]
    Enforced,
    /// The policies of each tool are observed, unless its contract says that they hold.
    Observed,
    /// All policies hold, whatever contracts say.
    AlwaysEnforced,
}

impl Modes {
    /// Whether the policies of this tool are only observed.
    pub(crate) fn observe(self, contract: &Contract) -> bool {
        match (self, contract.mode) {
            (Self::AlwaysEnforced, _) | (_, Some(Mode::Enforce)) | (Self::Enforced, None) => false,
            (Self::Enforced | Self::Observed, Some(Mode::Observe)) | (Self::Observed, None) => true,
        }
    }
}
