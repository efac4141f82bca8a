//! Where answers go that come after their calls were given up: their entries are closed with them, if they still may be.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::recorder::Recorder;
use super::records;
use crate::backend::{self, Answer, Case};
use crate::redaction::Redaction;
use crate::stage::settle::Settle;

/// Takes late answers. What it does with one is a task of the gate, which ends within seconds. It holds the store, and
/// neither tools nor backends: whoever waits for an answer may hold it.
pub(super) struct Desk {
    settle: Settle,
    recorder: Arc<Recorder>,
    tasks: TaskTracker,
    redaction: Redaction,
}

impl Desk {
    pub(super) fn new(settle: Settle, recorder: Arc<Recorder>, tasks: TaskTracker, redaction: Redaction) -> Self {
        Self { settle, recorder, tasks, redaction }
    }
}

impl backend::Desk for Desk {
    fn take(&self, case: Arc<Case>, answer: Answer) {
        let (settle, recorder, runtime) = (self.settle.clone(), Arc::clone(&self.recorder), case.runtime.clone());
        let redaction = self.redaction.clone();
        let work = async move {
            case.over.cancelled().await;
            let record = |answer: &_, said, now| records::late(&case, &redaction, answer, said, now);
            // What the store does not take is put where it is not lost in silence.
            if let Err(unwritten) = settle.late(&case, answer, record).await {
                recorder.put(unwritten).await;
            }
        };
        self.tasks.spawn_on(work, &runtime);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::sync::{Mutex, Weak};
    use std::time::Duration;

    use serde_json::{Value, json};
    use tokio::time::sleep;

    use super::*;
    use crate::Call;
    use crate::backend::{Backend, Dispatch, Found, Late, Looking, Lookup, Running};
    use crate::contract::Tool;
    use crate::gate::Gate;
    use crate::ledger::Store;
    use crate::session::{Principal, Session};

    /// A backend that answers nothing in time, and keeps what it could say later.
    #[derive(Default)]
    struct Slow(Mutex<Vec<Late>>);

    impl Backend for Slow {
        fn run(&self, dispatch: Dispatch) -> Running<'_> {
            self.0.lock().unwrap().extend(dispatch.context().late());
            Box::pin(std::future::pending())
        }

        fn look(&self, _: Lookup) -> Looking<'_> {
            Box::pin(async { Found::Absent })
        }
    }

    /// What is left of a gate that made one call, and was dropped.
    async fn dropped(slow: &Arc<Slow>) -> Weak<Recorder> {
        let keys: Value = json!({
            "description": "Pays. Moves money.", "effect": "write", "deadline": "50ms", "once": {"retain": "1h"},
            "input": {"properties": {"cents": {"type": "integer"}}, "required": ["cents"]},
        });
        let gate = Gate::builder()
            .tool(Tool::new("pay", keys.as_object().unwrap().clone(), Arc::clone(slow) as _))
            .policy("permit (principal, action, resource);")
            .store(Store::memory())
            .build()
            .unwrap();
        let alice = Session::new(Principal::new("local", "alice"), "acme");
        gate.call(Call::new("call_1", "pay", r#"{"cents":1}"#), &alice).await.unwrap();
        gate.finish().await.unwrap();
        Arc::downgrade(&gate.recorder)
    }

    #[tokio::test]
    async fn who_waits_for_an_answer_holds_the_store_of_a_dropped_gate_for_a_while_and_no_longer() {
        let slow = Arc::new(Slow::default());
        let left = dropped(&slow).await;
        assert!(left.strong_count() > 0, "an answer could still be taken");
        for _ in 0..500 {
            if left.strong_count() == 0 {
                break;
            }
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!((left.strong_count(), slow.0.lock().unwrap().len()), (0, 1), "whatever is kept");
    }

    #[tokio::test]
    async fn a_dropped_gate_that_nobody_waits_for_holds_nothing() {
        let slow = Arc::new(Slow::default());
        let left = dropped(&slow).await;
        slow.0.lock().unwrap().clear();
        assert_eq!(left.strong_count(), 0);
    }
}
