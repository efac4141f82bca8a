//! Approvals: how they are asked for, decided, and used up by one action.

use super::*;
use crate::approval::{Sought, Status};

pub(super) async fn a_grant_is_used_once(store: &Store) {
    granted(store, "ap_1").await;
    let one = Act { lane: "one", grant: Some("ap_1"), ..Act::new("one") };
    let two = Act { lane: "two", grant: Some("ap_1"), ..Act::new("two") };
    let reference = Ref::fresh();
    let (first, second) = (one.opening_as(store, &reference).await, two.opening(store).await);
    let (first, second) = tokio::join!(store.open(first, NOW), store.open(second, NOW));
    assert!(ran(&first.unwrap()));
    assert_eq!(second.unwrap(), Opened::Moved);
    assert_eq!(approval(store, "ap_1").await.state, ApprovalState::Used { by: reference });
    assert_eq!(entry(store, &one).await.action.grant.as_deref(), Some("ap_1"));
    assert!(store.recall(two.question(), NOW).await.unwrap().entry.is_none());
    assert!(store.recall(asking("ap_1"), NOW).await.unwrap().approval.is_none());
    // Done stays used.
    close(store, &one, 1, done("1")).await;
    assert_eq!(store.open(two.opening(store).await, NOW).await.unwrap(), Opened::Moved);
}

pub(super) async fn a_read_uses_its_grant_once(store: &Store) {
    granted(store, "ap_1").await;
    let read = |grant: Option<(String, Digest)>| Opening {
        entry: None,
        grant,
        takings: Vec::new(),
        drawings: Vec::new(),
        intent: record(Kind::Intent),
        spot: Spot::default(),
    };
    assert!(ran(&store.open(read(Some(("ap_1".into(), slice()))), NOW).await.unwrap()));
    assert_eq!(store.open(read(Some(("ap_1".into(), slice()))), NOW).await.unwrap(), Opened::Moved);
    let plain = read(None);
    assert!(ran(&store.open(plain, NOW).await.unwrap()));
}

pub(super) async fn a_grant_of_another_slice_or_past_its_time_is_not_used(store: &Store) {
    granted(store, "ap_1").await;
    let act = Act { grant: Some("ap_1"), ..Act::new("refund") };
    let mut other = act.opening(store).await;
    other.grant = Some(("ap_1".into(), Digest::of(b"other policies")));
    assert_eq!(store.open(other, NOW).await.unwrap(), Opened::Moved);
    let mut missing = act.opening(store).await;
    missing.grant = Some(("ap_2".into(), slice()));
    assert_eq!(store.open(missing, NOW).await.unwrap(), Opened::Moved);

    let end = approval(store, "ap_1").await.expires_at;
    assert_eq!(store.open(act.opening(store).await, end).await.unwrap(), Opened::Moved);
    assert!(store.recall(asking("ap_1"), end).await.unwrap().approval.is_none());
    assert!(ran(&store.open(act.opening(store).await, Millis(end.0 - 1)).await.unwrap()));

    propose(store, "ap_3", 9).await;
    let pending = Act { lane: "p", grant: Some("ap_3"), ..Act::new("pending") };
    assert_eq!(store.open(pending.opening(store).await, NOW).await.unwrap(), Opened::Moved);
}

pub(super) async fn a_failed_action_gives_its_grant_back_with_its_time(store: &Store) {
    granted(store, "ap_1").await;
    let end = approval(store, "ap_1").await.expires_at;
    let act = Act { grant: Some("ap_1"), ..Act::new("refund") };
    open(store, &act).await;
    close(store, &act, 1, Verdict::Failed).await;
    let back = approval(store, "ap_1").await;
    assert_eq!((back.state, back.expires_at), (ApprovalState::Granted, end));

    open(store, &act).await;
    close(store, &act, 2, Verdict::Unknown).await;
    assert!(matches!(approval(store, "ap_1").await.state, ApprovalState::Used { .. }));
    store.claim(act.key(), claim("a", 100), NOW).await.unwrap().unwrap();
    resolve(store, &act, "a", Finding::NotDone).await;
    assert_eq!(approval(store, "ap_1").await.state, ApprovalState::Granted);
}

pub(super) async fn a_proposal_is_made_once_and_their_number_is_bounded(store: &Store) {
    assert_eq!(propose(store, "ap_1", 2).await.as_deref(), Some("ap_1"));
    // The same call under another id finds the one that stands.
    let again = Approval { id: "ap_9".into(), ..asked("ap_1") };
    let records = store.head().await.unwrap().seq;
    let Proposed::Pending(standing) =
        store.propose(again.clone(), within(2), Box::new(|_| record(Kind::Proposal)), NOW).await.unwrap()
    else {
        panic!("too many");
    };
    assert_eq!(standing.id, "ap_1");
    assert_eq!(store.head().await.unwrap().seq, records + 1);

    assert_eq!(propose(store, "ap_2", 2).await.as_deref(), Some("ap_2"));
    assert_eq!(propose(store, "ap_3", 2).await, None);
    assert_eq!(store.head().await.unwrap().seq, records + 2);
    let bob = Approval { requester: Principal::new("local", "bob"), ..asked("ap_4") };
    assert!(matches!(
        store.propose(bob, within(2), Box::new(|_| record(Kind::Proposal)), NOW).await.unwrap(),
        Proposed::Pending(approval) if approval.id == "ap_4"
    ));
    // Expired ones do not count, nor do they stand.
    let expiry = asked("ap_1").expires_at;
    let Proposed::Pending(fresh) =
        store.propose(again, within(2), Box::new(|_| record(Kind::Proposal)), expiry).await.unwrap()
    else {
        panic!("too many");
    };
    assert_eq!(fresh.id, "ap_9");
}

pub(super) async fn a_granted_approval_is_preferred_and_never_proposed(store: &Store) {
    granted(store, "ap_1").await;
    let other_slice = Approval { id: "ap_2".into(), slice: Digest::of(b"new"), ..asked("ap_1") };
    let Proposed::Pending(proposed) =
        store.propose(other_slice, within(9), Box::new(|_| record(Kind::Proposal)), NOW).await.unwrap()
    else {
        panic!("too many");
    };
    assert_eq!((proposed.id.as_str(), proposed.state), ("ap_2", ApprovalState::Pending));
    let recalled = store.recall(asking("ap_1"), NOW).await.unwrap().approval.unwrap();
    assert_eq!(recalled.id, "ap_1");
    decide(store, "ap_2", "mia").await.unwrap();
    let recalled = store.recall(asking("ap_1"), NOW).await.unwrap().approval.unwrap();
    assert_eq!(recalled.id, "ap_2");
}

pub(super) async fn a_pending_approval_of_other_policies_does_not_stand(store: &Store) {
    propose(store, "ap_1", 9).await.unwrap();
    let other_slice = Approval { id: "ap_2".into(), slice: Digest::of(b"new"), ..asked("ap_1") };
    let Proposed::Pending(proposed) =
        store.propose(other_slice, within(9), Box::new(|_| record(Kind::Proposal)), NOW).await.unwrap()
    else {
        panic!("too many");
    };
    assert_eq!(proposed.id, "ap_2");
}

pub(super) async fn a_decision_that_does_not_count_leaves_nothing(store: &Store) {
    propose(store, "ap_1", 9).await;
    let head = store.head().await.unwrap();
    assert!(matches!(decide(store, "ap_1", "alice").await, Err(NotDecided::NotYours(_))));
    assert!(matches!(decide(store, "ap_7", "mia").await, Err(NotDecided::Missing)));
    assert_eq!(store.head().await.unwrap(), head);
    assert_eq!(approval(store, "ap_1").await.state, ApprovalState::Pending);

    let decided = decide(store, "ap_1", "mia").await.unwrap();
    assert_eq!(decided.state, ApprovalState::Granted);
    assert_eq!(store.head().await.unwrap().seq, head.seq + 1);
    assert!(matches!(decide(store, "ap_1", "mia").await, Err(NotDecided::Closed("granted"))));
}

pub(super) async fn approvals_are_listed_newest_first_by_tenant(store: &Store) {
    for id in ["ap_2", "ap_1", "ap_3"] {
        propose(store, id, 9).await;
    }
    decide(store, "ap_2", "mia").await.unwrap();
    let other = Approval { tenant: "globex".into(), ..asked("ap_4") };
    store.propose(other, within(9), Box::new(|_| record(Kind::Proposal)), NOW).await.unwrap();
    let listed = store.approvals("acme".into()).await.unwrap();
    assert_eq!(listed.iter().map(|approval| approval.id.as_str()).collect::<Vec<_>>(), ["ap_3", "ap_1", "ap_2"]);
    let newest = store.sought("acme".into(), Sought::default().most(2), NOW).await.unwrap();
    assert_eq!(newest.len(), 2, "a list is bounded");
    let found = async |id: &str| store.approval(id.into(), "acme".into()).await.unwrap().map(|approval| approval.id);
    assert_eq!((found("ap_2").await.as_deref(), found("ap_4").await), (Some("ap_2"), None), "of the tenant alone");
}

pub(super) async fn what_waits_is_found_however_much_was_asked_since(store: &Store) {
    let bob = Principal::new("local", "bob");
    for (id, by) in [("ap_1", "bob"), ("ap_2", "alice"), ("ap_3", "alice"), ("ap_4", "alice"), ("ap_5", "alice")] {
        let approval = Approval { requester: Principal::new("local", by), ..asked(id) };
        store.propose(approval, within(9), Box::new(|_| record(Kind::Proposal)), NOW).await.unwrap();
    }
    decide(store, "ap_3", "mia").await.unwrap();
    open(store, &Act { grant: Some("ap_3"), ..Act::new("a") }).await;
    decide(store, "ap_4", "mia").await.unwrap();
    let ids = async |sought: Sought, now: Millis| {
        let found = store.sought("acme".into(), sought, now).await.unwrap();
        found.into_iter().map(|approval| approval.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(Sought::of(Status::Pending).most(2), NOW).await, ["ap_5", "ap_2"]);
    assert_eq!(ids(Sought::of(Status::Pending).by(bob.clone()).most(1), NOW).await, ["ap_1"]);
    assert_eq!(ids(Sought::default().by(bob.clone()).most(1), NOW).await, ["ap_1"]);
    assert_eq!(ids(Sought::of(Status::Used), NOW).await, ["ap_3"]);
    assert_eq!(ids(Sought::of(Status::Granted), NOW).await, ["ap_4"]);
    assert!(ids(Sought::of(Status::Denied), NOW).await.is_empty());
    let expired = later(3_600_000);
    assert!(ids(Sought::of(Status::Pending), expired).await.is_empty(), "its end is exclusive");
    assert_eq!(ids(Sought::of(Status::Expired), expired).await, ["ap_5", "ap_2", "ap_1"]);
    assert!(store.sought("globex".into(), Sought::default(), NOW).await.unwrap().is_empty());
}
