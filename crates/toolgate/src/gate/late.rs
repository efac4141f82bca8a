//! Where answers go that come after their calls were given up: their entries are closed with them, if they still may be.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::recorder::Recorder;
use super::records;
use crate::backend::{self, Answer, Case};
use crate::contract::Registry;
use crate::redaction::Redaction;
use crate::stage::settle::Settle;

/// Takes late answers. What it does with one is a task of the gate, which ends within seconds.
pub(super) struct Desk {
    settle: Settle,
    recorder: Arc<Recorder>,
    tasks: TaskTracker,
    redaction: Redaction,
    registry: Arc<Registry>,
}

impl Desk {
    pub(super) fn new(
        settle: Settle,
        recorder: Arc<Recorder>,
        tasks: TaskTracker,
        redaction: Redaction,
        registry: Arc<Registry>,
    ) -> Self {
        Self { settle, recorder, tasks, redaction, registry }
    }
}

impl backend::Desk for Desk {
    fn take(&self, case: Arc<Case>, answer: Answer) {
        let Some(tool) = case.tool.upgrade() else { return };
        let (settle, recorder, runtime) = (self.settle.clone(), Arc::clone(&self.recorder), case.runtime.clone());
        let (redaction, registry) = (self.redaction.clone(), Arc::clone(&self.registry));
        let work = async move {
            case.over.cancelled().await;
            let contract = &tool.contract;
            let record = |answer: &_, said, now| records::late(&case, &tool, &redaction, answer, said, now);
            let hidden = || registry.hidden(contract, &case.arguments, &case.facts);
            if let Err(unwritten) = settle.late(&case, contract, answer, hidden, record).await {
                // What the store does not take is put where it is not lost in silence.
                recorder.put(unwritten).await;
            }
        };
        self.tasks.spawn_on(work, &runtime);
    }
}
