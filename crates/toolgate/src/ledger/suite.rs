//! What every store must do: one set of stories, told to each of them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

use serde_json::{Map, json};

use super::*;
use crate::approval::{Approval, ApprovalState, Approvers, Decision, NotDecided, Reason};
use crate::audit::{Head, Kind, Record};
use crate::session::{Principal, Session};

#[cfg(feature = "sqlite")]
mod on_disk;

const NOW: Millis = Millis(1_000_000);
const LEASE: u64 = 10_000;
const RETAIN: u64 = 60_000;
const DAY: u64 = 24 * 60 * 60 * 1000;

macro_rules! stories {
    ($($story:ident)*) => {
        mod memory {
            use super::*;
            $(#[tokio::test]
            async fn $story() {
                let store = Store::memory();
                super::$story(&store).await;
                verify(&store).await;
            })*
        }

        #[cfg(feature = "sqlite")]
        mod sqlite {
            use super::*;
            $(#[tokio::test]
            async fn $story() {
                let folder = tempfile::tempdir().unwrap();
                let store = Store::sqlite(folder.path().join("ledger.db")).unwrap();
                super::$story(&store).await;
                verify(&store).await;
            })*
        }
    };
}

stories! {
    a_closed_action_is_replayed_byte_for_byte
    a_duplicate_finds_the_action_open
    a_failed_action_reopens_as_the_same_occurrence
    an_action_comes_anew_as_another_occurrence
    a_call_that_lost_its_lease_closes_while_nobody_knows_more
    a_call_whose_outcome_was_found_out_cannot_close_and_is_recorded
    an_earlier_attempt_cannot_close_a_later_one
    an_unknown_action_is_claimed_and_resolved
    an_action_found_undone_can_run_again
    only_one_of_two_claims_is_given_until_it_ends
    an_unknown_action_keeps_its_lane_where_it_must
    an_unknown_action_without_a_lane_to_keep_frees_only_its_own
    a_grant_is_used_once
    a_read_uses_its_grant_once
    a_grant_of_another_slice_or_past_its_time_is_not_used
    a_failed_action_gives_its_grant_back_with_its_time
    a_lane_that_moved_moves_the_decision
    a_refused_opening_leaves_nothing
    a_lapsed_entry_is_as_good_as_absent_and_later_forgotten
    what_is_unfinished_is_never_forgotten
    a_proposal_is_made_once_and_their_number_is_bounded
    a_granted_approval_is_preferred_and_never_proposed
    a_pending_approval_of_other_policies_does_not_stand
    a_decision_that_does_not_count_leaves_nothing
    approvals_are_listed_newest_first_by_tenant
    records_are_found_by_attempt_and_read_in_pages
    actions_are_listed_newest_first_by_tenant
    a_list_of_actions_passes_over_those_of_others_in_pages
    records_are_listed_newest_first_by_tenant
    a_value_is_read_back_as_it_was_written
}

async fn a_closed_action_is_replayed_byte_for_byte(store: &Store) {
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
    assert_eq!(recall.stamp, Stamp { revision: 2, lane_version: 2 });
    assert!(recall.holder.is_none());
}

async fn a_duplicate_finds_the_action_open(store: &Store) {
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

async fn a_failed_action_reopens_as_the_same_occurrence(store: &Store) {
    let refund = Act::new("refund");
    let first = open(store, &refund).await;
    assert!(close(store, &refund, 1, Verdict::Failed).await);
    let again = store.open(refund.opening(store).await, NOW).await.unwrap();
    assert_eq!(again, Opened::Open { attempt: 2, first });
}

async fn an_action_comes_anew_as_another_occurrence(store: &Store) {
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

async fn a_call_that_lost_its_lease_closes_while_nobody_knows_more(store: &Store) {
    let refund = Act::new("refund");
    open(store, &refund).await;
    assert_eq!(sweep(store, later(LEASE - 1)).await, 0);
    assert_eq!(sweep(store, later(LEASE)).await, 1);
    assert_eq!(sweep(store, later(LEASE)).await, 0);

    assert!(!close(store, &refund, 1, Verdict::Unknown).await);
    assert!(close(store, &refund, 1, done("1")).await);
    assert!(matches!(entry(store, &refund).await.state, State::Done { .. }));
}

async fn a_call_whose_outcome_was_found_out_cannot_close_and_is_recorded(store: &Store) {
    let refund = Act::new("refund");
    open(store, &refund).await;
    assert_eq!(sweep(store, later(LEASE)).await, 1);
    store.claim(refund.key(), claim("token", LEASE + 1000), later(LEASE)).await.unwrap().unwrap();
    assert!(resolve(store, &refund, "token", Finding::NotDone).await);

    let records = store.head().await.unwrap().seq;
    assert!(!close(store, &refund, 1, done("1")).await);
    assert_eq!(store.head().await.unwrap().seq, records + 1);
    assert_eq!(entry(store, &refund).await.state, State::Failed);
}

async fn an_earlier_attempt_cannot_close_a_later_one(store: &Store) {
    let refund = Act::new("refund");
    open(store, &refund).await;
    close(store, &refund, 1, Verdict::Failed).await;
    open(store, &refund).await;
    assert!(!close(store, &refund, 1, done("1")).await);
    let stranger = Closing { key: refund.key(), owner: Owner("somebody".into()), attempt: 2, verdict: done("2") };
    assert!(!store.close(stranger, record(Kind::Outcome), NOW).await.unwrap());
    assert!(matches!(entry(store, &refund).await.state, State::Open { .. }));
    assert!(close(store, &refund, 2, done("2")).await);
}

async fn an_unknown_action_is_claimed_and_resolved(store: &Store) {
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

async fn an_action_found_undone_can_run_again(store: &Store) {
    let refund = Act::new("refund");
    let first = open(store, &refund).await;
    sweep(store, later(LEASE)).await;
    store.claim(refund.key(), claim("a", 100), NOW).await.unwrap().unwrap();
    assert!(resolve(store, &refund, "a", Finding::NotDone).await);
    let again = store.open(refund.opening(store).await, NOW).await.unwrap();
    assert_eq!(again, Opened::Open { attempt: 2, first });
}

async fn only_one_of_two_claims_is_given_until_it_ends(store: &Store) {
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

async fn an_unknown_action_keeps_its_lane_where_it_must(store: &Store) {
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

async fn an_unknown_action_without_a_lane_to_keep_frees_only_its_own(store: &Store) {
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

async fn a_grant_is_used_once(store: &Store) {
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

async fn a_read_uses_its_grant_once(store: &Store) {
    granted(store, "ap_1").await;
    let read = || Opening {
        entry: None,
        grant: Some(("ap_1".into(), slice())),
        takings: Vec::new(),
        intent: record(Kind::Intent),
    };
    assert!(ran(&store.open(read(), NOW).await.unwrap()));
    assert_eq!(store.open(read(), NOW).await.unwrap(), Opened::Moved);
    let plain = Opening { entry: None, grant: None, takings: Vec::new(), intent: record(Kind::Intent) };
    assert!(ran(&store.open(plain, NOW).await.unwrap()));
}

async fn a_grant_of_another_slice_or_past_its_time_is_not_used(store: &Store) {
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

async fn a_failed_action_gives_its_grant_back_with_its_time(store: &Store) {
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

async fn a_lane_that_moved_moves_the_decision(store: &Store) {
    let (alice, mia) = (Act::new("alice"), Act::new("mia"));
    let based_on_the_past = mia.opening(store).await;
    open(store, &alice).await;
    close(store, &alice, 1, done("1")).await;
    assert_eq!(store.open(based_on_the_past, NOW).await.unwrap(), Opened::Moved);
    assert!(ran(&store.open(mia.opening(store).await, NOW).await.unwrap()));
}

async fn a_refused_opening_leaves_nothing(store: &Store) {
    granted(store, "ap_1").await;
    let (alice, mia) = (Act::new("alice"), Act { grant: Some("ap_1"), ..Act::new("mia") });
    open(store, &alice).await;
    let head = store.head().await.unwrap();
    assert_eq!(store.open(mia.opening(store).await, NOW).await.unwrap(), Opened::Moved);
    assert_eq!(store.head().await.unwrap(), head);
    assert_eq!(approval(store, "ap_1").await.state, ApprovalState::Granted);
    assert!(store.recall(mia.question(), NOW).await.unwrap().entry.is_none());
}

async fn a_lapsed_entry_is_as_good_as_absent_and_later_forgotten(store: &Store) {
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

async fn what_is_unfinished_is_never_forgotten(store: &Store) {
    let (unknown, failed) = (Act::new("unknown"), Act { lane: "f", ..Act::new("failed") });
    open(store, &unknown).await;
    open(store, &failed).await;
    close(store, &failed, 1, Verdict::Failed).await;
    let end = Millis(u64::MAX);
    assert_eq!(sweep(store, end).await, 1);
    assert_eq!(sweep(store, end).await, 0);
    assert!(entry_at(store, &unknown, end).await.is_some());
    assert!(entry_at(store, &failed, end).await.is_some());
}

async fn a_proposal_is_made_once_and_their_number_is_bounded(store: &Store) {
    assert_eq!(propose(store, "ap_1", 2).await.as_deref(), Some("ap_1"));
    // The same call under another id finds the one that stands.
    let again = Approval { id: "ap_9".into(), ..asked("ap_1") };
    let records = store.head().await.unwrap().seq;
    let Proposed::Pending(standing) =
        store.propose(again.clone(), 2, Box::new(|_| record(Kind::Proposal)), NOW).await.unwrap()
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
        store.propose(bob, 2, Box::new(|_| record(Kind::Proposal)), NOW).await.unwrap(),
        Proposed::Pending(approval) if approval.id == "ap_4"
    ));
    // Expired ones do not count, nor do they stand.
    let expiry = asked("ap_1").expires_at;
    let Proposed::Pending(fresh) = store.propose(again, 2, Box::new(|_| record(Kind::Proposal)), expiry).await.unwrap()
    else {
        panic!("too many");
    };
    assert_eq!(fresh.id, "ap_9");
}

async fn a_granted_approval_is_preferred_and_never_proposed(store: &Store) {
    granted(store, "ap_1").await;
    let other_slice = Approval { id: "ap_2".into(), slice: Digest::of(b"new"), ..asked("ap_1") };
    let Proposed::Pending(proposed) =
        store.propose(other_slice, 9, Box::new(|_| record(Kind::Proposal)), NOW).await.unwrap()
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

async fn a_pending_approval_of_other_policies_does_not_stand(store: &Store) {
    propose(store, "ap_1", 9).await.unwrap();
    let other_slice = Approval { id: "ap_2".into(), slice: Digest::of(b"new"), ..asked("ap_1") };
    let Proposed::Pending(proposed) =
        store.propose(other_slice, 9, Box::new(|_| record(Kind::Proposal)), NOW).await.unwrap()
    else {
        panic!("too many");
    };
    assert_eq!(proposed.id, "ap_2");
}

async fn a_decision_that_does_not_count_leaves_nothing(store: &Store) {
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

async fn approvals_are_listed_newest_first_by_tenant(store: &Store) {
    for id in ["ap_2", "ap_1", "ap_3"] {
        propose(store, id, 9).await;
    }
    decide(store, "ap_2", "mia").await.unwrap();
    let other = Approval { tenant: "globex".into(), ..asked("ap_4") };
    store.propose(other, 9, Box::new(|_| record(Kind::Proposal)), NOW).await.unwrap();
    let listed = store.approvals("acme".into()).await.unwrap();
    assert_eq!(listed.iter().map(|approval| approval.id.as_str()).collect::<Vec<_>>(), ["ap_3", "ap_1", "ap_2"]);
}

async fn records_are_found_by_attempt_and_read_in_pages(store: &Store) {
    let mine = Ref::fresh();
    let of = |reference: &Ref| Record::new(Kind::Read, NOW, reference.clone(), Map::new());
    assert_eq!(store.head().await.unwrap(), Head::empty());
    store.append(vec![of(&mine), of(&Ref::fresh()), of(&mine)]).await.unwrap();
    store.append(Vec::new()).await.unwrap();
    let found = store.find(mine.to_string()).await.unwrap();
    assert_eq!(found.iter().map(|record| record.seq).collect::<Vec<_>>(), [1, 3]);
    let page = store.records(1, 1).await.unwrap();
    assert_eq!(page.iter().map(|record| record.seq).collect::<Vec<_>>(), [2]);
    assert!(store.records(3, 10).await.unwrap().is_empty());
    let last = store.records(2, 10).await.unwrap();
    assert_eq!(store.head().await.unwrap(), Head { seq: 3, hash: last[0].hash });
}

async fn actions_are_listed_newest_first_by_tenant(store: &Store) {
    let acts = ["a", "b", "c", "d"].map(|name| Act { lane: name, ..Act::new(name) });
    let other = Act { tenant: "globex", lane: "e", ..Act::new("e") };
    for act in acts.iter().chain([&other]) {
        open(store, act).await;
    }
    close(store, &acts[0], 1, done("{\"secret\":1}")).await;
    close(store, &acts[1], 1, Verdict::Failed).await;
    close(store, &acts[2], 1, Verdict::Unknown).await;

    let page = store.actions("acme", None, 9).await.unwrap();
    let told: Vec<_> = page.items.iter().map(|listed| (listed.state, listed.effect, listed.at)).collect();
    let expected = [
        ("open", None, None),
        ("unknown", Some(Effect::Unknown), Some(NOW)),
        ("failed", Some(Effect::None), None),
        ("done", Some(Effect::Done), Some(NOW)),
    ];
    assert_eq!(told, expected);
    assert_eq!(page.next, None);
    assert_eq!(page.items[3].args_digest, Digest::of(b"a"));

    let first = store.actions("acme", None, 3).await.unwrap();
    assert_eq!(first.items, page.items[..3]);
    let rest = store.actions("acme", first.next, 3).await.unwrap();
    assert_eq!((rest.items, rest.next), (page.items[3..].to_vec(), None));
    assert_eq!(store.actions("globex", None, 9).await.unwrap().items[0].key, other.key().0);
    assert!(store.actions("nobody", None, 9).await.unwrap().items.is_empty());
}

async fn a_list_of_actions_passes_over_those_of_others_in_pages(store: &Store) {
    open(store, &Act::new("mine")).await;
    for _ in 0..1000 {
        let name: &'static str = Box::leak(Ref::fresh().to_string().into_boxed_str());
        open(store, &Act { tenant: "globex", lane: name, ..Act::new(name) }).await;
    }
    let first = store.actions("acme", None, 9).await.unwrap();
    assert!(first.items.is_empty());
    let rest = store.actions("acme", first.next, 9).await.unwrap();
    assert_eq!((rest.items.len(), rest.next), (1, None));
}

async fn records_are_listed_newest_first_by_tenant(store: &Store) {
    let of = |tenant: &str| {
        let body = Map::from_iter([("tenant".to_owned(), json!(tenant))]);
        Record::new(Kind::Read, NOW, Ref::fresh(), body)
    };
    store.append(vec![of("acme"), of("globex"), of("acme"), of("acme"), of("globex")]).await.unwrap();
    let seqs = |page: &Page<crate::audit::Sealed>| page.items.iter().map(|record| record.seq).collect::<Vec<_>>();
    let all = store.records_of_tenant("acme", None, 9).await.unwrap();
    assert_eq!((seqs(&all), all.next), (vec![4, 3, 1], None));
    let first = store.records_of_tenant("acme", None, 2).await.unwrap();
    assert_eq!((seqs(&first), first.next), (vec![4, 3], Some(3)));
    let rest = store.records_of_tenant("acme", first.next, 2).await.unwrap();
    assert_eq!((seqs(&rest), rest.next), (vec![1], None));
}

async fn a_value_is_read_back_as_it_was_written(store: &Store) {
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

/// One action of a test.
#[derive(Clone)]
struct Act {
    name: &'static str,
    tenant: &'static str,
    lane: &'static str,
    keeps_lane: bool,
    grant: Option<&'static str>,
    anew: bool,
}

impl Act {
    fn new(name: &'static str) -> Self {
        Self { name, tenant: "acme", lane: "ord_1", keeps_lane: true, grant: None, anew: false }
    }

    fn key(&self) -> EntryKey {
        EntryKey::of(&json!([self.tenant, self.name]))
    }

    fn question(&self) -> Question {
        Question { action: Some((self.key(), LaneKey::of(&json!([self.lane])))), grant: None }
    }

    /// What opens the action on the ground of what the store knows now.
    async fn opening(&self, store: &Store) -> Opening {
        self.opening_as(store, &Ref::fresh()).await
    }

    async fn opening_as(&self, store: &Store, reference: &Ref) -> Opening {
        let stamp = store.recall(self.question(), NOW).await.unwrap().stamp;
        let action = Action {
            tool: "create_refund".into(),
            tenant: self.tenant.into(),
            principal: Principal::new("local", "alice"),
            run: "default".into(),
            args_digest: Digest::of(self.name.as_bytes()),
            arguments: json!({"name": self.name}),
            facts: json!({}),
            lane: LaneKey::of(&json!([self.lane])),
            keeps_lane: self.keeps_lane,
            retain_ms: RETAIN,
            grant: self.grant.map(str::to_owned),
            holds: Vec::new(),
            subject: None,
        };
        let entry = NewEntry {
            key: self.key(),
            action,
            owner: store.owner().clone(),
            lease_end: later(LEASE),
            reference: reference.clone(),
            anew: self.anew,
            stamp,
        };
        Opening {
            entry: Some(entry),
            grant: self.grant.map(|id| (id.to_owned(), slice())),
            takings: Vec::new(),
            intent: Record::new(Kind::Intent, NOW, reference.clone(), Map::new()),
        }
    }
}

async fn open(store: &Store, act: &Act) -> Ref {
    match store.open(act.opening(store).await, NOW).await.unwrap() {
        Opened::Open { first, .. } => first,
        Opened::Moved | Opened::Limited { .. } => panic!("{} did not open", act.name),
    }
}

async fn close(store: &Store, act: &Act, attempt: u32, verdict: Verdict) -> bool {
    let closing = Closing { key: act.key(), owner: store.owner().clone(), attempt, verdict };
    store.close(closing, record(Kind::Outcome), NOW).await.unwrap()
}

async fn sweep(store: &Store, now: Millis) -> usize {
    store.sweep(Box::new(|entry| Record::new(Kind::Lost, NOW, entry.first.clone(), Map::new())), now).await.unwrap()
}

async fn resolve(store: &Store, act: &Act, token: &str, finding: Finding) -> bool {
    store.resolve(act.key(), token.into(), finding, record(Kind::Reconciled), NOW).await.unwrap()
}

async fn entry(store: &Store, act: &Act) -> Entry {
    entry_at(store, act, NOW).await.unwrap()
}

async fn entry_at(store: &Store, act: &Act, now: Millis) -> Option<Entry> {
    store.recall(act.question(), now).await.unwrap().entry
}

/// Proposes an approval that lives for an hour; the id of the one that stands.
async fn propose(store: &Store, id: &str, cap: usize) -> Option<String> {
    match store.propose(asked(id), cap, Box::new(|_| record(Kind::Proposal)), NOW).await.unwrap() {
        Proposed::Pending(approval) => Some(approval.id),
        Proposed::TooMany => None,
    }
}

async fn decide(store: &Store, id: &str, by: &str) -> Result<Approval, NotDecided> {
    let by = Session::new(Principal::new("local", by), "acme").role("manager");
    let record = |approval: &Approval| {
        assert_ne!(approval.state, ApprovalState::Pending);
        record(Kind::Decision)
    };
    store.decide(id.into(), by, Decision::Approve, later(7_200_000), Box::new(record), NOW).await.unwrap()
}

async fn granted(store: &Store, id: &str) {
    propose(store, id, 9).await.unwrap();
    decide(store, id, "mia").await.unwrap();
}

async fn approval(store: &Store, id: &str) -> Approval {
    store.approvals("acme".into()).await.unwrap().into_iter().find(|approval| approval.id == id).unwrap()
}

/// Follows the whole chain and compares its end.
async fn verify(store: &Store) {
    let records = store.records(0, usize::MAX).await.unwrap();
    let end = records.iter().try_fold(Head::empty(), Head::follow).unwrap();
    assert_eq!(end, store.head().await.unwrap());
}

fn asked(id: &str) -> Approval {
    let manager = Reason {
        rule: "big".into(),
        message: "m".into(),
        approvers: Approvers::Role("manager".into()),
        approved_by: None,
    };
    Approval {
        id: id.into(),
        tool: "create_refund".into(),
        requester: Principal::new("local", "alice"),
        tenant: "acme".into(),
        preview: "Refund".into(),
        arguments: "{}".into(),
        leniencies: Vec::new(),
        call_digest: Digest::of(id.as_bytes()),
        slice: slice(),
        reasons: vec![manager],
        state: ApprovalState::Pending,
        created_at: NOW,
        expires_at: later(3_600_000),
    }
}

/// The question for the approval that `asked` made.
fn asking(id: &str) -> Question {
    Question { action: None, grant: Some(GrantKey::of(&asked(id))) }
}

fn slice() -> Digest {
    Digest::of(b"policies")
}

fn record(kind: Kind) -> Record {
    Record::new(kind, NOW, Ref::fresh(), Map::new())
}

fn claim(token: &str, until: u64) -> Claim {
    Claim { token: token.into(), until: later(until) }
}

fn done(answer: &str) -> Verdict {
    Verdict::Done { answer: answer.into() }
}

fn later(ms: u64) -> Millis {
    Millis(NOW.0 + ms)
}

fn ran(opened: &Opened) -> bool {
    matches!(opened, Opened::Open { .. })
}
