//! Whose data is made unreadable, and what stands in the way.

use super::*;
use crate::vault::Subject;

/// Opens an action whose data is somebody's.
async fn open_of(store: &Store, act: &Act, whose: Subject) {
    let mut opening = act.opening(store).await;
    opening.entry.as_mut().unwrap().action.subject = Some(whose);
    assert!(ran(&store.open(opening, NOW).await.unwrap()));
}

async fn erase(store: &Store, whose: Subject, spares: bool) -> Erasing {
    store.erase(whose, spares, record(Kind::Erasure)).await.unwrap()
}

pub(super) async fn nothing_is_erased_while_an_action_of_theirs_is_in_doubt_unless_that_is_said(store: &Store) {
    let [alice, mia] = ["alice", "mia"].map(|name| store.key().subject("acme", name));
    assert_eq!(erase(store, alice, true).await, Erasing::Nobody);
    assert_eq!(store.actions_of(alice).await.unwrap(), None);
    let acts = ["done", "open", "unknown"].map(|name| Act { lane: name, ..Act::new(name) });
    for act in &acts {
        open_of(store, act, alice).await;
    }
    open_of(store, &Act { lane: "other", ..Act::new("other") }, mia).await;
    close(store, &acts[0], 1, done("1")).await;
    close(store, &acts[2], 1, Verdict::Unknown).await;

    let records = store.head().await.unwrap();
    assert_eq!(erase(store, alice, true).await, Erasing::InDoubt(2));
    assert_eq!(store.actions_of(alice).await.unwrap(), Some(3));
    assert_eq!(store.head().await.unwrap(), records, "nothing is on the record");
    assert!(!entry(store, &acts[0]).await.erased);

    assert_eq!(erase(store, alice, false).await, Erasing::Erased);
    assert_eq!(store.head().await.unwrap().seq, records.seq + 1);
    for act in &acts {
        assert!(entry(store, act).await.erased);
    }
    assert_eq!(erase(store, alice, false).await, Erasing::Nobody);
    assert_eq!(store.actions_of(mia).await.unwrap(), Some(1));
    // What is theirs from now on is kept as something new, and what was erased is not counted with it.
    open_of(store, &Act { lane: "later", ..Act::new("later") }, alice).await;
    assert_eq!(store.actions_of(alice).await.unwrap(), Some(1));
    assert_eq!(erase(store, alice, true).await, Erasing::InDoubt(1));
}

pub(super) async fn what_comes_of_an_action_that_was_erased_while_it_ran_is_not_kept(store: &Store) {
    let alice = store.key().subject("acme", "alice");
    let [runs, looked_for, ruled] = ["runs", "looked for", "ruled"].map(|name| Act { lane: name, ..Act::new(name) });
    for act in [&runs, &looked_for, &ruled] {
        open_of(store, act, alice).await;
    }
    close(store, &looked_for, 1, Verdict::Unknown).await;
    close(store, &ruled, 1, Verdict::Unknown).await;
    store.claim(looked_for.key(), claim("a", 100), NOW).await.unwrap().unwrap();
    assert_eq!(erase(store, alice, false).await, Erasing::Erased);

    assert!(close(store, &runs, 1, done("the code is 7714")).await);
    assert!(resolve(store, &looked_for, "a", Finding::Done { answer: "the code is 7715".into() }).await);
    let said = Finding::Done { answer: "the code is 7716".into() };
    store.rule(ruled.key(), said, Box::new(|_| record(Kind::Ruling)), NOW).await.unwrap().unwrap();
    for act in [&runs, &looked_for, &ruled] {
        let kept = entry(store, act).await;
        assert!(kept.erased && kept.action.arguments.is_null());
        assert!(matches!(&kept.state, State::Done { answer, .. } if answer.is_empty()), "{:?}", kept.state);
    }
}
