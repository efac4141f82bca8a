//! Answers that come when nobody waits for them any more.

use toolgate::backend::Late;
use toolgate::refusal::Code;

use super::*;

/// A backend that is given up at its deadline, and what it can say later.
fn slow() -> (Arc<Told>, Arc<Mutex<Vec<Late>>>) {
    let kept: Arc<Mutex<Vec<Late>>> = Arc::default();
    let keeps = Arc::clone(&kept);
    let run = move |_, context: Context| -> Running<'static> {
        keeps.lock().unwrap().extend(context.late());
        Box::pin(std::future::pending())
    };
    (Arc::new(Told::new(run)), kept)
}

fn pay(backend: &Arc<Told>) -> Tool {
    tool("pay", "write", json!({ "deadline": "50ms" }), backend)
}

fn paid() -> Answer {
    Answer::done(r#"{"paid":5,"undeclared":1}"#)
}

/// The records of an attempt that tell of what came late.
async fn late_records(gate: &Gate, reply: &Reply) -> Vec<Value> {
    history(gate, reply).await.into_iter().filter(|record| record["late"] == true).collect()
}

#[tokio::test]
async fn a_write_that_answers_late_is_done_and_its_repeat_has_that_answer() {
    let (backend, kept) = slow();
    let gate = gate_of([pay(&backend)], Store::memory(), None);
    let first = call(&gate, "pay", json!({})).await;
    assert_eq!((first.code(), first.effect()), (Some(Code::TimedOut), Effect::Unknown));
    let early = call(&gate, "pay", json!({})).await;
    assert_eq!(early.code(), Some(Code::OutcomeUnknown));
    assert!(early.refusal().unwrap().text().contains(" It is unknown since 2"), "{:?}", early.refusal());

    kept.lock().unwrap()[0].answer(paid());
    eventually("the late answer", async || !late_records(&gate, &first).await.is_empty()).await;
    let again = call(&gate, "pay", json!({})).await;
    assert_eq!((again.result(), again.replayed()), (Some(r#"{"paid":5}"#), true), "as the contract declares it");
    assert_eq!(again.first_reference().unwrap(), first.reference());
    assert_eq!(backend.sends(), 1);
    let records = late_records(&gate, &first).await;
    assert_eq!((&records[0]["kind"], &records[0]["effect"]), (&json!("outcome"), &json!("done")));
    assert!(records[0]["result_digest"].is_string());
    gate.store().verify(None).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_write_that_says_late_that_it_did_nothing_may_run_again() {
    let (backend, kept) = slow();
    let gate = gate_of([pay(&backend)], Store::memory(), None);
    let first = call(&gate, "pay", json!({})).await;
    kept.lock().unwrap()[0].answer(busy());
    eventually("the late answer", async || !late_records(&gate, &first).await.is_empty()).await;
    call(&gate, "pay", json!({})).await;
    assert_eq!(backend.sends(), 2);
}

#[tokio::test]
async fn what_nobody_can_use_any_more_is_only_recorded() {
    let (backend, kept) = slow();
    let clock = clock();
    let find = Arc::new(Told::ends(|_| Answer::done("{}")));
    let reconcile = json!({
        "deadline": "50ms",
        "reconcile": { "tool": "find", "done": "/paid", "absent_after": "10s" },
    });
    let tools = [tool("pay", "write", reconcile, &backend), tool("find", "read", json!({}), &find)];
    let gate = gate_of(tools, Store::memory(), Some(&clock));
    let first = call(&gate, "pay", json!({})).await;
    // Reconciling finds nothing long after the lease: it did not happen, so it runs again.
    clock.advance(Duration::from_secs(60));
    let second = call(&gate, "pay", json!({})).await;
    assert_eq!((backend.sends(), second.effect()), (2, Effect::Unknown));

    kept.lock().unwrap()[0].answer(paid());
    eventually("the late answer", async || !late_records(&gate, &first).await.is_empty()).await;
    let records = late_records(&gate, &first).await;
    assert_eq!((&records[0]["kind"], &records[0]["effect"]), (&json!("late"), &json!("done")));
    let third = call(&gate, "pay", json!({})).await;
    assert_eq!(third.code(), Some(Code::OutcomeUnknown), "the second attempt is another matter");

    kept.lock().unwrap()[0].answer(lost());
    eventually("the other one", async || late_records(&gate, &first).await.len() == 2).await;
}

#[tokio::test]
async fn what_comes_before_the_end_waits_for_it_and_changes_nothing_of_it() {
    let told = Arc::new(Told::new(|_, context| {
        context.late().unwrap().answer(busy());
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            paid()
        })
    }));
    let gate = gate_of([tool("pay", "write", json!({}), &told)], Store::memory(), None);
    let first = call(&gate, "pay", json!({})).await;
    assert_eq!(first.result(), Some(r#"{"paid":5}"#));
    eventually("the record", async || !late_records(&gate, &first).await.is_empty()).await;
    assert_eq!(late_records(&gate, &first).await[0]["kind"], "late");
    assert!(call(&gate, "pay", json!({})).await.replayed());
}

#[tokio::test]
async fn one_of_two_attempts_that_did_nothing_leaves_the_other_in_doubt() {
    let kept: Arc<Mutex<Vec<Late>>> = Arc::default();
    let keeps = Arc::clone(&kept);
    let run = move |_, context: Context| -> Running<'static> {
        keeps.lock().unwrap().extend(context.late());
        Box::pin(async { lost() })
    };
    let backend = Arc::new(Told { keyed: true, ..Told::new(run) });
    let retry = json!({ "retry": { "attempts": 2, "on": ["lost"] } });
    let gate = gate_of([tool("pay", "write", retry, &backend)], Store::memory(), None);
    let first = call(&gate, "pay", json!({})).await;
    assert_eq!(backend.sends(), 2);
    kept.lock().unwrap()[0].answer(busy());
    eventually("the record", async || !late_records(&gate, &first).await.is_empty()).await;
    assert_eq!(late_records(&gate, &first).await[0]["effect"], "unknown");
    assert_eq!(call(&gate, "pay", json!({})).await.code(), Some(Code::OutcomeUnknown));
    kept.lock().unwrap()[1].answer(paid());
    eventually("the answer", async || late_records(&gate, &first).await.len() == 2).await;
    assert!(call(&gate, "pay", json!({})).await.replayed(), "that it is done says more");
}

#[tokio::test]
async fn a_read_has_nothing_to_say_later_and_a_drain_waits_for_what_was_handed_in() {
    let read = Arc::new(Told::new(|_, context| {
        let none = context.late().is_none();
        Box::pin(async move { Answer::done(format!(r#"{{"paid":{}}}"#, u8::from(none))) })
    }));
    let (backend, kept) = slow();
    let gate = gate_of([pay(&backend), tool("look", "read", json!({}), &read)], Store::memory(), None);
    assert_eq!(call(&gate, "look", json!({})).await.result(), Some(r#"{"paid":1}"#));
    let first = call(&gate, "pay", json!({})).await;
    kept.lock().unwrap()[0].answer(paid());
    gate.finish().await.unwrap();
    assert_eq!(late_records(&gate, &first).await.len(), 1);
    drop(gate);
    kept.lock().unwrap()[0].answer(paid());
}

#[tokio::test]
async fn an_answer_for_a_gate_that_was_replaced_meanwhile_closes_its_entry_all_the_same() {
    let (backend, kept) = slow();
    let store = Store::memory();
    let replaced = gate_of([pay(&backend)], store.clone(), None);
    let first = call(&replaced, "pay", json!({})).await;
    replaced.finish().await.unwrap();
    drop(replaced);

    let gate = gate_of([pay(&backend)], store, None);
    kept.lock().unwrap()[0].answer(paid());
    eventually("the late answer", async || !late_records(&gate, &first).await.is_empty()).await;
    assert_eq!(late_records(&gate, &first).await[0]["kind"], "outcome");
    assert!(call(&gate, "pay", json!({})).await.replayed());
    assert_eq!(backend.sends(), 1);
}
