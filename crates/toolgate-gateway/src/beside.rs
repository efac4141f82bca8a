//! What works beside a gate for as long as its store is open, each on a thread of its own: checkpoints of its record, and
//! word of its approvals to somebody outside.

use toolgate::ledger::{Store, StoreError};

use crate::checkpoints::Keeper;
use crate::messenger::Messenger;

/// Both of them.
#[derive(Debug)]
pub(crate) struct Beside {
    keeper: Keeper,
    messenger: Messenger,
}

impl Beside {
    pub(crate) fn new(keeper: Keeper, messenger: Messenger) -> Self {
        Self { keeper, messenger }
    }

    /// Begins with a store.
    pub(crate) fn attend(&self, store: &Store) -> Result<(), StoreError> {
        self.keeper.attend(store)?;
        self.messenger.attend(store)
    }

    /// Comes to an end: what is to be told is told, and the end of the record is kept.
    pub(crate) fn finish(&self) {
        self.messenger.finish();
        self.keeper.finish();
    }
}
