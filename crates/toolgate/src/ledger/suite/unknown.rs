//! Actions of which nobody knows how they ended.

use super::*;

pub(super) async fn a_call_that_lost_its_lease_closes_while_nobody_knows_more(store: &Store) {
    let refund = Act::new("refund");
    open(store, &refund).await;
    assert_eq!(sweep(store, later(LEASE - 1)).await, 0);
    assert_eq!(sweep(store, later(LEASE)).await, 1);
    assert_eq!(sweep(store, later(LEASE)).await, 0);

    assert!(!close(store, &refund, 1, Verdict::Unknown).await);
    assert!(close(store, &refund, 1, done("1")).await);
    assert!(matches!(entry(store, &refund).await.state, State::Done { .. }));
}

pub(super) async fn a_call_that_learns_late_that_nothing_happened_gives_everything_back(store: &Store) {
    granted(store, "ap_1").await;
    let refund = Act { grant: Some("ap_1"), ..Act::new("refund") }.taking([take("cents", 5, 5)]);
    let mia = Act::new("mia").taking([take("cents", 5, 5)]);
    open(store, &refund).await;
    sweep(store, later(LEASE)).await;
    assert_eq!(open_at(store, &mia, NOW).await, Opened::Moved, "it holds the lane");
    assert!(close(store, &refund, 1, Verdict::Failed).await);
    assert_eq!(entry(store, &refund).await.state, State::Failed { at: NOW });
    assert_eq!(approval(store, "ap_1").await.state, ApprovalState::Granted);
    assert!(ran(&open_at(store, &mia, NOW).await), "lane and limit are free");
}

pub(super) async fn a_call_that_learns_late_is_believed_before_whoever_is_finding_out(store: &Store) {
    let refund = Act::new("refund");
    open(store, &refund).await;
    sweep(store, later(LEASE)).await;
    store.claim(refund.key(), claim("a", LEASE + 1000), later(LEASE)).await.unwrap().unwrap();
    assert!(close_at(store, &refund, 1, done("1"), later(LEASE + 1)).await);
    assert!(!resolve(store, &refund, "a", Finding::NotDone).await);
    assert!(matches!(entry(store, &refund).await.state, State::Done { answer, .. } if answer == "1"));
}

pub(super) async fn a_call_whose_outcome_was_found_out_cannot_close_and_is_recorded(store: &Store) {
    let refund = Act::new("refund");
    open(store, &refund).await;
    assert_eq!(sweep(store, later(LEASE)).await, 1);
    store.claim(refund.key(), claim("token", LEASE + 1000), later(LEASE)).await.unwrap().unwrap();
    assert!(resolve(store, &refund, "token", Finding::NotDone).await);

    let records = store.head().await.unwrap().seq;
    assert!(!close(store, &refund, 1, done("1")).await);
    assert_eq!(store.head().await.unwrap().seq, records + 1);
    assert_eq!(entry(store, &refund).await.state, State::Failed { at: NOW });
}

pub(super) async fn an_unknown_action_is_claimed_and_resolved(store: &Store) {
    let refund = Act::new("refund");
    open(store, &refund).await;
    close(store, &refund, 1, Verdict::Unknown).await;
    assert_eq!(store.open(refund.opening(store).await, NOW).await.unwrap(), Opened::Moved);

    let claimed = store.claim(refund.key(), claim("a", 100), NOW).await.unwrap().unwrap();
    assert_eq!(claimed.action.arguments, json!({"name": "refund"}));
    let found = || Finding::Done { answer: "found".into() };
    assert!(!resolve(store, &refund, "b", found()).await);
    assert!(resolve(store, &refund, "a", found()).await);
    let recall = store.recall(refund.question(), NOW).await.unwrap();
    let State::Done { answer, lane_version, .. } = recall.entry.unwrap().state else { panic!("not done") };
    assert_eq!((answer.as_str(), lane_version), ("found", recall.stamp.lane_version));
    assert!(!resolve(store, &refund, "a", Finding::NotDone).await);
    assert!(store.claim(refund.key(), claim("c", 100), NOW).await.unwrap().is_none());
}

pub(super) async fn an_action_found_undone_can_run_again(store: &Store) {
    let refund = Act::new("refund");
    let first = open(store, &refund).await;
    sweep(store, later(LEASE)).await;
    store.claim(refund.key(), claim("a", 100), NOW).await.unwrap().unwrap();
    assert!(resolve(store, &refund, "a", Finding::NotDone).await);
    let again = store.open(refund.opening(store).await, NOW).await.unwrap();
    assert_eq!(again, Opened::Open { attempt: 2, first });
}

pub(super) async fn only_one_of_two_claims_is_given_until_it_ends(store: &Store) {
    let refund = Act::new("refund");
    assert!(store.claim(refund.key(), claim("a", 100), NOW).await.unwrap().is_none());
    open(store, &refund).await;
    close(store, &refund, 1, Verdict::Unknown).await;
    let (a, b) =
        tokio::join!(store.claim(refund.key(), claim("a", 100), NOW), store.claim(refund.key(), claim("b", 100), NOW));
    assert_eq!((a.unwrap().is_some(), b.unwrap().is_some()), (true, false));
    assert!(store.claim(refund.key(), claim("c", 300), later(99)).await.unwrap().is_none());
    assert!(store.claim(refund.key(), claim("c", 300), later(100)).await.unwrap().is_some());
    // Who holds it may extend it, or let it end early.
    assert!(store.claim(refund.key(), claim("c", 400), later(150)).await.unwrap().is_some());
    assert!(!resolve(store, &refund, "a", Finding::NotDone).await);
    assert!(resolve(store, &refund, "c", Finding::NotDone).await);
}

pub(super) async fn an_operator_says_what_became_of_an_unknown_action(store: &Store) {
    let (paid, unpaid) = (Act { lane: "a", ..Act::new("paid") }, Act { lane: "b", ..Act::new("unpaid") });
    let unpaid = unpaid.taking([take("cents", 5, 5)]);
    let first = open(store, &unpaid).await;
    open(store, &paid).await;
    close(store, &paid, 1, Verdict::Unknown).await;
    close(store, &unpaid, 1, Verdict::Unknown).await;
    let records = store.head().await.unwrap().seq;

    let found = Finding::Done { answer: "looked up".into() };
    let entry = rule(store, &paid, found, NOW).await.unwrap();
    let State::Done { answer, lane_version, .. } = entry.state else { panic!("{:?}", entry.state) };
    let recall = store.recall(paid.question(), NOW).await.unwrap();
    assert_eq!((answer.as_str(), lane_version), ("looked up", recall.stamp.lane_version));

    let entry = rule(store, &unpaid, Finding::NotDone, NOW).await.unwrap();
    assert_eq!(entry.state, State::Failed { at: NOW });
    assert_eq!(store.head().await.unwrap().seq, records + 2, "each is on the record");
    let again = open_at(store, &unpaid, NOW).await;
    assert_eq!(again, Opened::Open { attempt: 2, first }, "the limit has room for it again");
    assert!(!close(store, &unpaid, 1, done("late")).await, "whoever ran it before is too late");
}

pub(super) async fn an_operator_says_nothing_of_what_is_known_or_runs_or_is_being_found_out(store: &Store) {
    let refund = Act::new("refund");
    let found = || Finding::Done { answer: "ruled".into() };
    assert_eq!(rule(store, &refund, found(), NOW).await.unwrap_err(), Rejected::Stale);
    open(store, &refund).await;
    let records = store.head().await.unwrap();
    assert_eq!(rule(store, &refund, found(), NOW).await.unwrap_err(), Rejected::Running);
    sweep(store, later(LEASE)).await;
    store.claim(refund.key(), claim("a", LEASE + 100), later(LEASE)).await.unwrap().unwrap();
    assert_eq!(rule(store, &refund, found(), later(LEASE + 99)).await.unwrap_err(), Rejected::Running);
    assert_eq!(store.head().await.unwrap().seq, records.seq + 1, "only the loss is on the record");
    assert!(rule(store, &refund, found(), later(LEASE + 100)).await.is_ok());
    assert!(!resolve(store, &refund, "a", Finding::NotDone).await);
    assert_eq!(rule(store, &refund, Finding::NotDone, later(LEASE + 200)).await.unwrap_err(), Rejected::AlreadyDone);
}

pub(super) async fn nothing_is_decided_by_a_clock_that_is_behind_what_the_store_has_seen(store: &Store) {
    let reached = later(7_200_000);
    let (lost, unknown) = (Act { lane: "a", ..Act::new("lost") }, Act { lane: "b", ..Act::new("unknown") });
    open(store, &lost).await;
    open(store, &unknown).await;
    close(store, &unknown, 1, Verdict::Unknown).await;
    propose(store, "ap_1", 1).await.unwrap();
    store.claim(unknown.key(), claim("a", 1000), NOW).await.unwrap().unwrap();
    let mark = rows::Mark { at: reached, ..rows::Mark::default() };
    store.write(move |rows| rows.put_high_water(&mark)).await.unwrap();

    assert_eq!(sweep(store, NOW).await, 1, "its lease is over");
    assert!(matches!(entry(store, &lost).await.state, State::Unknown { since, .. } if since == reached));
    assert_eq!(decide(store, "ap_1", "mia").await.unwrap_err(), NotDecided::Expired);
    assert!(propose(store, "ap_2", 1).await.is_some(), "the one that expired waits for nobody");
    assert!(store.claim(unknown.key(), claim("b", 9_000_000), NOW).await.unwrap().is_some(), "the first has ended");
    rule(store, &lost, Finding::NotDone, NOW).await.unwrap();
    assert_eq!(entry(store, &lost).await.state, State::Failed { at: reached });
}

async fn rule(store: &Store, act: &Act, finding: Finding, now: Millis) -> Result<Entry, Rejected> {
    store.rule(act.key(), finding, Box::new(|_| record(Kind::Ruling)), now).await.unwrap()
}
