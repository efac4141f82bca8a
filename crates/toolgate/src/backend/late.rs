//! What a backend learns of a write after its run was given up. It changes nothing of what the caller was told; it spares
//! the next one from not knowing.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Answer;
use crate::call::Ref;
use crate::contract::Contract;
use crate::ledger::EntryKey;
use crate::schema::{Hidden, Mark};
use crate::session::Session;

/// How a backend tells what became of a write whose run was given up, at its deadline above all.
///
/// A backend that may hear of the end later keeps it, and hands in what it hears. If nobody has found out in between, the
/// action is done, or known not to have happened, from then on; else it is only recorded that it was said.
#[derive(Clone)]
pub struct Late {
    case: Arc<Case>,
}

/// Takes late answers.
pub(crate) trait Desk: Send + Sync + 'static {
    fn take(&self, case: Arc<Case>, answer: Answer);
}

/// The write that a late answer is of.
pub(crate) struct Case {
    pub(crate) key: EntryKey,
    pub(crate) attempt: u32,
    /// INVARIANT (no circle): the tool itself is not held, for its backend holds whatever waits for the answer.
    pub(crate) contract: Arc<Contract>,
    pub(crate) mark: Option<Mark>,
    pub(crate) session: Arc<Session>,
    pub(crate) reference: Ref,
    /// What of the call leaves in nobody's words.
    pub(crate) hidden: Hidden,
    /// How often it was sent.
    pub(crate) sends: AtomicU32,
    /// INVARIANT (settled first): cancelled once the call has been settled, so that nothing late comes before its end.
    pub(crate) over: CancellationToken,
    /// Where the work of the gate runs, wherever the answer comes from.
    pub(crate) runtime: Handle,
    pub(crate) desk: Place,
}

/// Where an answer is taken, while one is of use. The gate may have been replaced by then; its store is held until then.
pub(crate) struct Place(Mutex<Option<Arc<dyn Desk>>>);

/// How long an answer is of use once its call has ended.
const LATEST: Duration = Duration::from_millis(if cfg!(test) { 1000 } else { 300_000 });

impl Late {
    pub(crate) fn new(case: Arc<Case>) -> Self {
        Self { case }
    }

    /// Hands in how the write ended. It returns at once; what follows is a task of the gate, which waits for it when it
    /// drains.
    pub fn answer(&self, answer: Answer) {
        if let Some(desk) = self.case.desk.get() {
            desk.take(Arc::clone(&self.case), answer);
        }
    }
}

impl Place {
    pub(crate) fn at(desk: &Arc<dyn Desk>) -> Self {
        Self(Mutex::new(Some(Arc::clone(desk))))
    }

    fn get(&self) -> Option<Arc<dyn Desk>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn close(&self) {
        let desk = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The store may go with it, which waits for its threads.
        drop(desk);
    }
}

impl Case {
    /// The call has ended. INVARIANT (never alive for ever): whoever keeps its [`Late`] keeps the store for a while only.
    pub(crate) fn ended(case: Arc<Self>) -> DropGuard {
        let over = case.over.clone().drop_guard();
        let left = Arc::downgrade(&case);
        drop(case);
        if left.strong_count() > 0 {
            tokio::spawn(async move {
                sleep(LATEST).await;
                if let Some(case) = left.upgrade() {
                    case.desk.close();
                }
            });
        }
        over
    }

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
