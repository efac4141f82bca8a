//! A disk without room.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;
use crate::backend::Context;
use crate::{Call, Gate, Tool};

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "its size is what matters")]
struct Pay {
    note: String,
}

#[derive(Serialize, JsonSchema)]
struct Paid {
    id: String,
}

/// Much more than fits in what is left of a page.
fn long() -> String {
    "x".repeat(20_000)
}

#[tokio::test]
async fn an_opening_that_finds_no_room_says_so_leaves_nothing_and_goes_on_when_there_is() {
    let (_folder, path) = folder();
    let store = Store::sqlite(&path).unwrap();
    let (before, refund) = (Act { lane: "b", ..Act::new("before") }, Act::new("refund"));
    open(&store, &before).await;
    store.fill_disk(true).await;
    let mut opening = refund.opening(&store).await;
    opening.entry.as_mut().unwrap().action.arguments = json!({"note": long()});
    let Err(StoreError::Broken(why)) = store.open(opening, NOW).await else { panic!("it opened") };
    assert!(why.contains("disk is full, so nothing was written") && why.contains("ledger.db"), "{why}");

    let recall = store.recall(refund.question(), NOW).await.unwrap();
    assert!(recall.entry.is_none() && recall.holder.is_none());
    assert_eq!(recall.stamp, Stamp { revision: 0, lane_version: 0 });
    assert_eq!(store.head().await.unwrap().seq, 1);
    let answer = long();
    let closing = || Closing {
        key: before.key(),
        owner: store.owner().clone(),
        attempt: 1,
        verdict: done(&answer),
        marking: None,
    };
    assert!(store.close(closing(), record(Kind::Outcome), record(Kind::Late), NOW).await.is_err());
    assert!(matches!(entry(&store, &before).await.state, State::Open { .. }));

    store.fill_disk(false).await;
    assert!(store.close(closing(), record(Kind::Outcome), record(Kind::Late), NOW).await.unwrap());
    open(&store, &refund).await;
    verify(&store).await;
}

#[tokio::test]
async fn nothing_runs_while_the_disk_is_full() {
    let (_folder, path) = folder();
    let store = Store::sqlite(&path).unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let pay = move |_: Pay, _: &Context| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Ok(Paid { id: "pay_1".into() }) }
    };
    let gate = Gate::builder()
        .tool(Tool::write("pay", pay).description("Pays."))
        .policy("permit (principal, action == Action::\"pay\", resource);")
        .store(store.clone())
        .build()
        .unwrap();
    let alice = Session::new(Principal::new("local", "alice"), "acme");
    let call = || Call::new("call_1", "pay", json!({"note": long()}).to_string());

    store.fill_disk(true).await;
    assert!(gate.call(call(), &alice).await.is_err());
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    store.fill_disk(false).await;
    assert!(gate.call(call(), &alice).await.unwrap().is_ok());
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}
