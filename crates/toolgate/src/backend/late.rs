//! What a backend learns of a write after its run was given up. It changes nothing of what the caller was told; it spares
//! the next one from not knowing.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::Answer;
use crate::call::Ref;
use crate::contract::Registered;
use crate::ledger::EntryKey;
use crate::session::Session;

/// How a backend tells what became of a write whose run was given up, at its deadline above all.
///
/// A backend that may hear of the end later keeps it, and hands in what it hears. If nobody has found out in between, the
/// action is done, or known not to have happened, from then on; else it is only recorded that it was said.
#[derive(Clone)]
pub struct Late {
    case: Arc<Case>,
    /// The gate may be gone by then, and its store with it.
    desk: Weak<dyn Desk>,
}

/// Takes late answers.
pub(crate) trait Desk: Send + Sync + 'static {
    fn take(&self, case: Arc<Case>, answer: Answer);
}

/// The write that a late answer is of.
pub(crate) struct Case {
    pub(crate) key: EntryKey,
    pub(crate) attempt: u32,
    /// Not held: the backend of the tool holds whatever waits for the answer.
    pub(crate) tool: Weak<Registered>,
    pub(crate) session: Arc<Session>,
    pub(crate) reference: Ref,
    pub(crate) arguments: Arc<Map<String, Value>>,
    pub(crate) facts: Arc<Map<String, Value>>,
    /// How often it was sent.
    pub(crate) sends: AtomicU32,
    /// INVARIANT (settled first): cancelled once the call has been settled, so that nothing late comes before its end.
    pub(crate) over: CancellationToken,
    /// Where the work of the gate runs, wherever the answer comes from.
    pub(crate) runtime: Handle,
}

impl Late {
    pub(crate) fn new(case: Arc<Case>, desk: &Arc<dyn Desk>) -> Self {
        Self { case, desk: Arc::downgrade(desk) }
    }

    /// Hands in how the write ended. It returns at once; what follows is a task of the gate, which waits for it when it
    /// drains.
    pub fn answer(&self, answer: Answer) {
        if let Some(desk) = self.desk.upgrade() {
            desk.take(Arc::clone(&self.case), answer);
        }
    }
}

impl Case {
    /// Whether what one attempt proves leaves another in doubt.
    pub(crate) fn was_sent_again(&self) -> bool {
        self.sends.load(Ordering::SeqCst) > 1
    }
}

impl fmt::Debug for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Late").field("reference", &self.case.reference).finish_non_exhaustive()
    }
}
