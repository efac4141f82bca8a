//! The gate's own failures. A fault stops the call before anything ran, fails closed and is for the operator.

use crate::ledger::StoreError;

/// The gate itself failed; nothing ran.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The store failed.
    #[error("the store failed, so nothing ran: {0}")]
    Store(#[from] StoreError),
    /// The record of earlier calls cannot be written now; it is kept and tried again.
    #[error("the record of earlier calls could not be written, so nothing runs until it is: {0}")]
    Record(StoreError),
    /// The gate is closing.
    #[error("the gate is closing and takes no more calls")]
    Closing,
    /// The task of a call ended without an answer, by a panic in the gate or the end of its runtime.
    #[error("a call ended without an answer before anything was changed; this is a fault of the gate")]
    Lost,
}
