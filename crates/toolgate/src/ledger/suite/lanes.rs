//! Actions that must not overlap.

use super::*;

pub(super) async fn an_unknown_action_keeps_its_lane_where_it_must(store: &Store) {
    let (alice, mia) = (Act::new("alice"), Act::new("mia"));
    open(store, &alice).await;
    let holder = store.recall(mia.question(), NOW).await.unwrap().holder.unwrap();
    assert_eq!(holder.key, alice.key());
    assert_eq!(store.open(mia.opening(store).await, NOW).await.unwrap(), Opened::Moved);

    close(store, &alice, 1, Verdict::Unknown).await;
    assert!(store.recall(mia.question(), NOW).await.unwrap().holder.is_some());
    assert_eq!(store.open(mia.opening(store).await, NOW).await.unwrap(), Opened::Moved);

    store.claim(alice.key(), claim("m", 100), NOW).await.unwrap().unwrap();
    assert!(resolve(store, &alice, "m", Finding::NotDone).await);
    assert!(ran(&store.open(mia.opening(store).await, NOW).await.unwrap()));
}

pub(super) async fn an_unknown_action_without_a_lane_to_keep_frees_only_its_own(store: &Store) {
    let alice = Act { keeps_lane: false, ..Act::new("alice") };
    let (mia, zoe) = (Act::new("mia"), Act::new("zoe"));
    open(store, &alice).await;
    close(store, &alice, 1, Verdict::Unknown).await;
    open(store, &mia).await;
    store.claim(alice.key(), claim("a", 100), NOW).await.unwrap().unwrap();
    assert!(resolve(store, &alice, "a", Finding::NotDone).await);
    // Mia's action still holds it.
    assert_eq!(store.recall(zoe.question(), NOW).await.unwrap().holder.unwrap().key, mia.key());
    assert_eq!(store.open(zoe.opening(store).await, NOW).await.unwrap(), Opened::Moved);
}

pub(super) async fn a_lane_that_moved_moves_the_decision(store: &Store) {
    let (alice, mia) = (Act::new("alice"), Act::new("mia"));
    let based_on_the_past = mia.opening(store).await;
    open(store, &alice).await;
    close(store, &alice, 1, done("1")).await;
    assert_eq!(store.open(based_on_the_past, NOW).await.unwrap(), Opened::Moved);
    assert!(ran(&store.open(mia.opening(store).await, NOW).await.unwrap()));
}
