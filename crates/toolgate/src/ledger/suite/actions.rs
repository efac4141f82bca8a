//! What an action goes through while all goes well.

use super::*;

pub(super) async fn a_closed_action_is_replayed_byte_for_byte(store: &Store) {
    let refund = Act::new("refund");
    let recall = store.recall(refund.question(), NOW).await.unwrap();
    assert!(recall.entry.is_none() && recall.holder.is_none());
    assert_eq!(recall.stamp, Stamp { revision: 0, lane_version: 0 });

    let reference = Ref::fresh();
    let opened = store.open(refund.opening_as(store, &reference).await, NOW).await.unwrap();
    assert_eq!(opened, Opened::Open { attempt: 1, first: reference });
    let answer = "{\"id\":\"re_1\",  \"odd\":1.0}";
    assert!(close(store, &refund, 1, done(answer)).await);

    let recall = store.recall(refund.question(), NOW).await.unwrap();
    let entry = recall.entry.unwrap();
    let State::Done { answer: stored, lane_version, at } = &entry.state else { panic!("{:?}", entry.state) };
    assert_eq!((stored.as_str(), *at), (answer, NOW));
    assert_eq!(*lane_version, recall.stamp.lane_version);
    assert_eq!(recall.stamp.revision, 2);
    assert!(recall.holder.is_none());
}

pub(super) async fn a_duplicate_finds_the_action_open(store: &Store) {
    let refund = Act::new("refund");
    let first = refund.opening(store).await;
    let second = refund.opening(store).await;
    assert!(ran(&store.open(first, NOW).await.unwrap()));
    assert_eq!(store.open(second, NOW).await.unwrap(), Opened::Moved);
    // Nor with what is known now: it runs.
    assert_eq!(store.open(refund.opening(store).await, NOW).await.unwrap(), Opened::Moved);
    let entry = store.recall(refund.question(), NOW).await.unwrap().entry.unwrap();
    assert!(matches!(entry.state, State::Open { .. }));
}

pub(super) async fn a_failed_action_reopens_as_the_same_occurrence(store: &Store) {
    let refund = Act::new("refund");
    let first = open(store, &refund).await;
    assert!(close(store, &refund, 1, Verdict::Failed).await);
    let again = store.open(refund.opening(store).await, NOW).await.unwrap();
    assert_eq!(again, Opened::Open { attempt: 2, first });
}

pub(super) async fn a_failed_action_may_be_taken_over_by_another_call_as_another_occurrence(store: &Store) {
    let refund = Act::new("refund");
    let first = open(store, &refund).await;
    close(store, &refund, 1, Verdict::Failed).await;
    let mut opening = refund.opening(store).await;
    opening.entry.as_mut().unwrap().action.args_digest = Digest::of(b"other arguments");
    let Opened::Open { attempt: 2, first: second } = store.open(opening, NOW).await.unwrap() else {
        panic!("it did not open");
    };
    assert_ne!(first, second, "what was sent for the first call stands for no other");
}

pub(super) async fn an_action_comes_anew_as_another_occurrence(store: &Store) {
    let refund = Act::new("refund");
    let first = open(store, &refund).await;
    close(store, &refund, 1, done("1")).await;
    let key_before = entry(store, &refund).await.downstream_key();

    assert_eq!(store.open(refund.opening(store).await, NOW).await.unwrap(), Opened::Moved);
    let anew = Act { anew: true, ..refund.clone() };
    let Opened::Open { attempt: 2, first: second } = store.open(anew.opening(store).await, NOW).await.unwrap() else {
        panic!("it did not open");
    };
    assert_ne!(first, second);
    assert_ne!(entry(store, &refund).await.downstream_key(), key_before);
}

pub(super) async fn an_earlier_attempt_cannot_close_a_later_one(store: &Store) {
    let refund = Act::new("refund");
    open(store, &refund).await;
    close(store, &refund, 1, Verdict::Failed).await;
    open(store, &refund).await;
    assert!(!close(store, &refund, 1, done("1")).await);
    let stranger = Closing { key: refund.key(), owner: Owner("somebody".into()), attempt: 2, verdict: done("2"), marking: None };
    assert!(!store.close(stranger, record(Kind::Outcome), record(Kind::Late), NOW).await.unwrap());
    assert!(matches!(entry(store, &refund).await.state, State::Open { .. }));
    assert!(close(store, &refund, 2, done("2")).await);
}

pub(super) async fn a_refused_opening_leaves_nothing(store: &Store) {
    granted(store, "ap_1").await;
    let (alice, mia) = (Act::new("alice"), Act { grant: Some("ap_1"), ..Act::new("mia") });
    open(store, &alice).await;
    let head = store.head().await.unwrap();
    assert_eq!(store.open(mia.opening(store).await, NOW).await.unwrap(), Opened::Moved);
    assert_eq!(store.head().await.unwrap(), head);
    assert_eq!(approval(store, "ap_1").await.state, ApprovalState::Granted);
    assert!(store.recall(mia.question(), NOW).await.unwrap().entry.is_none());
}

pub(super) async fn a_value_is_read_back_as_it_was_written(store: &Store) {
    let refund = Act::new("refund");
    let mut opening = refund.opening(store).await;
    let new = opening.entry.as_mut().unwrap();
    new.action.arguments = json!({"b": u64::MAX, "a": [i64::MIN, 0.1, 1e-9, -2.5e200, "\u{0}\u{2028}\u{1f600}"]});
    new.action.retain_ms = u64::MAX;
    new.lease_end = Millis(u64::MAX);
    let sent = new.action.arguments.clone();
    let opened = store.open(opening, NOW).await;
    if opened.is_err() {
        // A store may refuse what it could not read back, but then it has nothing of it.
        assert!(entry_at(store, &refund, NOW).await.is_none());
        return;
    }
    assert_eq!(entry(store, &refund).await.action.arguments, sent);
    close(store, &refund, 1, done("1")).await;
    assert!(!entry(store, &refund).await.lapsed(Millis(u64::MAX - 1)));
}
