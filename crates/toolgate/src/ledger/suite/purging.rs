//! What is forgotten, and when.

use super::*;

pub(super) async fn a_lapsed_entry_is_as_good_as_absent_and_later_forgotten(store: &Store) {
    let refund = Act::new("refund");
    open(store, &refund).await;
    close(store, &refund, 1, done("1")).await;
    assert!(store.recall(refund.question(), later(RETAIN - 1)).await.unwrap().entry.is_some());
    let recall = store.recall(refund.question(), later(RETAIN)).await.unwrap();
    assert!(recall.entry.is_none());
    assert_eq!(recall.stamp.revision, 0);

    // The fence goes on.
    let mut opening = refund.opening(store).await;
    opening.entry.as_mut().unwrap().stamp = recall.stamp;
    let opened = store.open(opening, later(RETAIN)).await.unwrap();
    assert!(matches!(opened, Opened::Open { attempt: 2, .. }));
    assert!(!close(store, &refund, 1, done("stale")).await);
    assert!(close(store, &refund, 2, done("2")).await);

    assert_eq!(sweep(store, later(RETAIN + DAY - 1)).await, 0);
    assert_eq!(entry_at(store, &refund, NOW).await.unwrap().attempt, 2);
    assert_eq!(sweep(store, later(RETAIN + DAY)).await, 0);
    assert!(entry_at(store, &refund, NOW).await.is_none());
}

pub(super) async fn a_failed_entry_is_forgotten_in_its_time_too(store: &Store) {
    let refund = Act::new("refund");
    let first = open(store, &refund).await;
    close(store, &refund, 1, Verdict::Failed).await;
    // It binds nothing, but while it is there its attempts go on.
    let again = open_at(store, &refund, later(RETAIN)).await;
    assert_eq!(again, Opened::Open { attempt: 2, first: first.clone() });
    assert!(close_at(store, &refund, 2, Verdict::Failed, later(RETAIN)).await);

    sweep(store, later(2 * RETAIN + DAY - 1)).await;
    assert_eq!(entry(store, &refund).await.attempt, 2);
    sweep(store, later(2 * RETAIN + DAY)).await;
    assert!(entry_at(store, &refund, NOW).await.is_none());
    let anew = open_at(store, &refund, later(2 * RETAIN + DAY)).await;
    assert!(matches!(anew, Opened::Open { attempt: 1, first: another } if another != first));
}

pub(super) async fn what_is_open_or_unknown_is_never_forgotten(store: &Store) {
    let unknown = Act { takings: vec![take("cents", 5, 5)], ..Act::new("unknown") };
    open(store, &unknown).await;
    let end = Millis(u64::MAX);
    assert_eq!(sweep(store, end).await, 1);
    assert_eq!(sweep(store, end).await, 0);
    let recall = store.recall(Act::new("other").question(), end).await.unwrap();
    assert_eq!(recall.holder.unwrap().key, unknown.key(), "nor is its lane");
    assert!(matches!(entry_at(store, &unknown, end).await.unwrap().state, State::Unknown { .. }));
}

pub(super) async fn a_lane_is_forgotten_with_its_last_entry_and_never_has_a_version_twice(store: &Store) {
    let (alice, mia) = (Act::new("alice"), Act::new("mia"));
    let version = async |now| store.recall(Act::new("zoe").question(), now).await.unwrap().stamp.lane_version;
    open(store, &alice).await;
    close(store, &alice, 1, done("1")).await;
    assert!(ran(&open_at(store, &mia, later(RETAIN / 2)).await));
    assert!(close_at(store, &mia, 1, Verdict::Failed, later(RETAIN / 2)).await);
    let last = version(NOW).await;

    let end = later(RETAIN / 2 + RETAIN + DAY);
    sweep(store, Millis(end.0 - 1)).await;
    assert_eq!(version(end).await, last, "an entry may still compare itself with it");
    sweep(store, end).await;
    assert_eq!(version(end).await, 0);
    assert!(ran(&open_at(store, &alice, end).await));
    assert!(version(end).await > last, "whoever decided by the old version decides again");
}

pub(super) async fn a_count_is_forgotten_after_its_window_and_what_comes_back_later_is_nothing(store: &Store) {
    let pay = |name, amount| Act { lane: name, ..Act::new(name) }.taking([take("cents", amount, 100)]);
    let (paid, unknown) = (pay("paid", 60), pay("unknown", 30));
    open(store, &paid).await;
    open(store, &unknown).await;
    close(store, &paid, 1, done("1")).await;
    close(store, &unknown, 1, Verdict::Unknown).await;

    let hour = DAY / 24;
    let left = async |name| match open_at(store, &pay(name, 101), NOW).await {
        Opened::Limited { left, .. } => left,
        other => panic!("{other:?}"),
    };
    sweep(store, Millis(DAY + hour - 1)).await;
    assert_eq!(left("a").await, 10);
    sweep(store, Millis(DAY + hour)).await;
    assert_eq!(left("b").await, 100);

    // Nobody takes in that window any more, and nothing is made of what comes back to it.
    assert!(close_at(store, &unknown, 1, Verdict::Failed, Millis(2 * DAY)).await);
    assert_eq!(left("c").await, 100);
    assert!(ran(&open_at(store, &pay("d", 100), Millis(2 * DAY)).await));
}

pub(super) async fn approvals_are_forgotten_some_days_after_their_time(store: &Store) {
    propose(store, "ap_1", 9).await;
    granted(store, "ap_2").await;
    let act = Act { grant: Some("ap_2"), ..Act::new("refund") };
    open(store, &act).await;
    close(store, &act, 1, Verdict::Unknown).await;
    granted(store, "ap_3").await;
    let ids = async || {
        let listed = store.approvals("acme".into()).await.unwrap();
        listed.into_iter().map(|approval| approval.id).collect::<Vec<_>>()
    };
    // One waited for an hour, the others were good for two.
    let (asked, decided) = (3_600_000 + 7 * DAY, 7_200_000 + 7 * DAY);
    sweep(store, later(asked - 1)).await;
    assert_eq!(ids().await, ["ap_3", "ap_2", "ap_1"]);
    sweep(store, later(asked)).await;
    assert_eq!(ids().await, ["ap_3", "ap_2"]);
    sweep(store, later(decided)).await;
    assert!(ids().await.is_empty());
    // What used it up still ends, and has nothing to give back.
    assert!(close_at(store, &act, 1, Verdict::Failed, later(decided)).await);
    assert!(ids().await.is_empty());
}

pub(super) async fn a_sweep_forgets_a_bounded_part_at_a_time(store: &Store) {
    for number in 0..300 {
        propose(store, &format!("ap_{number}"), 1000).await.unwrap();
    }
    let end = later(3_600_000 + 7 * DAY);
    let left = async || store.approvals("acme".into()).await.unwrap().len();
    sweep(store, end).await;
    assert_eq!(left().await, 300 - 256);
    sweep(store, end).await;
    assert_eq!(left().await, 0);
}
