//! Approvals that are edited, told of, and so many that no more may wait.

use std::time::Duration;

use super::*;

/// Within these bounds, and to be told of.
const TOLD: Asking = Asking { most_of_user: 9, most_of_tenant: 9, tell: true };
const LEASE_OF_TELLING: Duration = Duration::from_secs(30);

async fn ask(store: &Store, approval: Approval, asking: Asking) -> Proposed {
    store.propose(approval, asking, Box::new(|_| record(Kind::Proposal)), NOW).await.unwrap()
}

async fn edit(store: &Store, id: &str, approval: Approval, most_of_user: usize) -> Result<Proposed, NotDecided> {
    let by = Session::new(Principal::new("local", "mia"), "acme").role("manager");
    let (id, asking) = (id.to_owned(), Asking { most_of_user, ..TOLD });
    let edit = Edit { id, by, capacity: Capacity::Any, approval, asking };
    let records = |old: &Approval, new: &Approval| {
        assert_eq!((old.state.clone(), old.instead.as_deref()), (ApprovalState::Denied, Some(new.id.as_str())));
        [record(Kind::Proposal), record(Kind::Decision)]
    };
    store.edit(edit, Box::new(records), NOW).await.unwrap()
}

async fn untold(store: &Store, now: Millis) -> Option<Untold> {
    store.untold(LEASE_OF_TELLING, now).await.unwrap()
}

pub(super) async fn as_many_wait_of_one_tenant_as_may_whoever_asked(store: &Store) {
    let two = Asking { most_of_user: 9, most_of_tenant: 2, tell: false };
    for id in ["ap_1", "ap_2"] {
        assert!(matches!(ask(store, asked(id), two).await, Proposed::Pending(_)));
    }
    let bob = Approval { requester: Principal::new("local", "bob"), ..asked("ap_3") };
    assert!(matches!(ask(store, bob.clone(), two).await, Proposed::TooMany(Full::Tenant)));
    let elsewhere = Approval { tenant: "globex".into(), ..asked("ap_4") };
    assert!(matches!(ask(store, elsewhere, two).await, Proposed::Pending(_)));
    decide(store, "ap_1", "mia").await.unwrap();
    assert!(matches!(ask(store, bob, two).await, Proposed::Pending(_)));
    let alone = Asking { most_of_user: 1, ..two };
    assert!(matches!(ask(store, asked("ap_5"), alone).await, Proposed::TooMany(Full::User)));
}

pub(super) async fn an_edit_takes_the_place_of_what_waited_or_leaves_nothing(store: &Store) {
    propose(store, "ap_1", 9).await.unwrap();
    propose(store, "ap_2", 9).await.unwrap();
    let head = store.head().await.unwrap();
    assert!(matches!(edit(store, "ap_1", asked("ap_3"), 1).await, Ok(Proposed::TooMany(Full::User))));
    assert!(matches!(edit(store, "ap_9", asked("ap_3"), 9).await, Err(NotDecided::Missing)));
    assert_eq!(store.head().await.unwrap(), head);
    assert_eq!(approval(store, "ap_1").await.state, ApprovalState::Pending);
    // Where two may wait and two do, the one that closes makes room.
    assert!(matches!(edit(store, "ap_1", asked("ap_3"), 2).await, Ok(Proposed::Pending(new)) if new.id == "ap_3"));
    assert_eq!(store.head().await.unwrap().seq, head.seq + 2);
    assert_eq!(approval(store, "ap_1").await.instead.as_deref(), Some("ap_3"));
    assert!(matches!(edit(store, "ap_1", asked("ap_4"), 9).await, Err(NotDecided::Closed("denied"))));
}

pub(super) async fn an_edit_to_what_waits_already_asks_nothing_anew(store: &Store) {
    propose(store, "ap_1", 9).await.unwrap();
    propose(store, "ap_2", 9).await.unwrap();
    let same = Approval { id: "ap_3".into(), ..asked("ap_2") };
    assert!(matches!(edit(store, "ap_1", same, 1).await, Ok(Proposed::Pending(standing)) if standing.id == "ap_2"));
    assert_eq!(store.approvals("acme".into()).await.unwrap().len(), 2);
}

pub(super) async fn what_is_to_be_told_is_kept_with_what_is_asked_and_told_by_one_alone(store: &Store) {
    propose(store, "ap_0", 9).await.unwrap();
    assert!(untold(store, NOW).await.is_none(), "nobody is to be told");
    for _ in 0..2 {
        ask(store, asked("ap_1"), TOLD).await;
    }
    let first = untold(store, NOW).await.unwrap();
    assert_eq!((first.approval.id.as_str(), first.attempt), ("ap_1", 1));
    assert!(untold(store, NOW).await.is_none(), "somebody is at it");
    // Whoever had it before a lease ended says nothing of it any more.
    let later = NOW.after(LEASE_OF_TELLING);
    let second = untold(store, later).await.unwrap();
    assert_eq!(second.attempt, 2);
    store.told(&first).await.unwrap();
    store.not_told(&second, Duration::from_secs(2), later).await.unwrap();
    assert!(untold(store, Millis(later.0 + 1_999)).await.is_none());
    let third = untold(store, Millis(later.0 + 2_000)).await.unwrap();
    store.told(&third).await.unwrap();
    assert!(untold(store, Millis(later.0 + 900_000)).await.is_none());
}

pub(super) async fn what_was_answered_or_has_expired_is_told_no_more(store: &Store) {
    ask(store, asked("ap_1"), TOLD).await;
    ask(store, asked("ap_2"), TOLD).await;
    decide(store, "ap_1", "mia").await.unwrap();
    let taken = untold(store, NOW).await.unwrap();
    assert_eq!(taken.approval.id, "ap_2");
    store.not_told(&taken, Duration::ZERO, NOW).await.unwrap();
    assert!(untold(store, taken.approval.expires_at).await.is_none());
}

pub(super) async fn what_is_new_is_told_before_what_nobody_took_in(store: &Store) {
    for id in ["ap_1", "ap_2"] {
        ask(store, asked(id), TOLD).await;
        let taken = untold(store, NOW).await.unwrap();
        assert_eq!(taken.approval.id, id);
        // The first one is to be tried again after the second.
        let again = if id == "ap_1" { Duration::from_millis(20) } else { Duration::from_millis(10) };
        store.not_told(&taken, again, NOW).await.unwrap();
    }
    assert!(untold(store, NOW).await.is_none(), "both failed a while ago");
    ask(store, asked("ap_3"), TOLD).await;
    for id in ["ap_3", "ap_2", "ap_1"] {
        assert_eq!(untold(store, later(20)).await.unwrap().approval.id, id);
    }
}
