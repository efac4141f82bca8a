//! Standing grants: taken like limits over their whole life, by one person's calls of one tool.

use super::*;
use crate::approval::Approver;
use crate::standing::{Bounds, Left, NotGranted, Refused, StandingGrant, Sum};

const HOUR: u64 = 3_600_000;

fn grant(id: &str, calls: Option<u64>, sum: Option<u64>) -> StandingGrant {
    StandingGrant {
        id: id.into(),
        tool: "create_refund".into(),
        rule: "big".into(),
        role: "manager".into(),
        tenant: "acme".into(),
        to: Principal::new("local", "alice"),
        given_by: Approver { principal: Principal::new("local", "mia"), roles: vec!["manager".into()] },
        bounds: Bounds { calls, sum: sum.map(|max| Sum { of: "/cents".into(), max }) },
        slice: slice(),
        contract: contract(),
        created_at: NOW,
        expires_at: later(HOUR),
    }
}

fn contract() -> Digest {
    Digest::of(b"contract")
}

async fn give(store: &Store, grant: StandingGrant) -> Result<StandingGrant, NotGranted> {
    store.grant(grant, record(Kind::StandingGrant), NOW).await.unwrap()
}

async fn revoke(store: &Store, id: &str) -> Result<(StandingGrant, Left), NotGranted> {
    let record = Box::new(|_: &StandingGrant| record(Kind::StandingRevoked));
    store.revoke(id.into(), Box::new(|_| Ok(())), record, NOW).await.unwrap()
}

fn draw(id: &str, amount: u64) -> Drawing {
    Drawing { id: id.into(), slice: slice(), contract: contract(), amount }
}

/// An action on a lane of its own, which draws on a grant.
fn pay(name: &'static str, id: &str, amount: u64) -> Act {
    Act { lane: name, drawings: vec![draw(id, amount)], ..Act::new(name) }
}

fn covered() -> Covered {
    Covered {
        tenant: "acme".into(),
        principal: Principal::new("local", "alice").canonical(),
        tool: "create_refund".into(),
    }
}

async fn recalled(store: &Store, covered: Covered, now: Millis) -> Vec<(String, Left)> {
    let question = Question { covered: Some(covered), ..Question::default() };
    let standing = store.recall(question, now).await.unwrap().standing;
    standing.into_iter().map(|(grant, left)| (grant.id, left)).collect()
}

async fn left(store: &Store, id: &str) -> (Option<u64>, Option<u64>) {
    let grants = store.grants("acme".into(), NOW).await.unwrap();
    let (_, left) = grants.into_iter().find(|(grant, _)| grant.id == id).unwrap();
    (left.calls, left.sum)
}

pub(super) async fn a_standing_grant_covers_no_more_than_it_says(store: &Store) {
    give(store, grant("g", Some(2), Some(100))).await.unwrap();
    assert_eq!(open_at(store, &pay("a", "g", 101), NOW).await, Opened::Moved, "more than the sum");
    assert_eq!(left(store, "g").await, (Some(2), Some(100)), "what is turned down takes nothing");
    assert!(ran(&open_at(store, &pay("a", "g", 60), NOW).await));
    assert_eq!(left(store, "g").await, (Some(1), Some(40)));
    assert_eq!(open_at(store, &pay("b", "g", 41), NOW).await, Opened::Moved);
    assert!(ran(&open_at(store, &pay("b", "g", 1), NOW).await));
    assert_eq!(open_at(store, &pay("c", "g", 1), NOW).await, Opened::Moved, "no call is left");
    assert_eq!(left(store, "g").await, (Some(0), Some(39)));
    close(store, &pay("a", "g", 60), 1, done("1")).await;
    assert_eq!(left(store, "g").await, (Some(0), Some(39)), "done stays taken");
}

pub(super) async fn what_did_not_happen_is_given_back_to_a_standing_grant_and_what_is_unknown_is_not(store: &Store) {
    give(store, grant("g", Some(1), Some(100))).await.unwrap();
    let refund = pay("refund", "g", 70);
    assert!(ran(&open_at(store, &refund, NOW).await));
    close(store, &refund, 1, Verdict::Failed).await;
    assert_eq!(left(store, "g").await, (Some(1), Some(100)));

    assert!(ran(&open_at(store, &refund, NOW).await));
    close(store, &refund, 2, Verdict::Unknown).await;
    assert_eq!(left(store, "g").await, (Some(0), Some(30)));
    store.claim(refund.key(), claim("a", 100), NOW).await.unwrap().unwrap();
    assert_eq!(left(store, "g").await, (Some(0), Some(30)));
    assert!(resolve(store, &refund, "a", Finding::NotDone).await);
    assert_eq!(left(store, "g").await, (Some(1), Some(100)));
}

pub(super) async fn of_two_calls_one_draws_the_last_of_a_standing_grant(store: &Store) {
    give(store, grant("g", Some(1), None)).await.unwrap();
    let (one, two) = (pay("one", "g", 0), pay("two", "g", 0));
    let (first, second) = (one.opening(store).await, two.opening(store).await);
    let (first, second) = tokio::join!(store.open(first, NOW), store.open(second, NOW));
    assert!(ran(&first.unwrap()));
    assert_eq!(second.unwrap(), Opened::Moved);
    assert!(entry_at(store, &two, NOW).await.is_none(), "what was turned down left nothing");
}

pub(super) async fn a_standing_grant_that_is_over_or_revoked_or_of_other_policies_covers_nothing(store: &Store) {
    give(store, grant("g", Some(5), None)).await.unwrap();
    for voided in [
        Drawing { slice: Digest::of(b"other"), ..draw("g", 0) },
        Drawing { contract: Digest::of(b"other"), ..draw("g", 0) },
    ] {
        let act = Act { drawings: vec![voided], ..Act::new("other") };
        assert_eq!(open_at(store, &act, NOW).await, Opened::Moved);
    }
    let end = later(HOUR);
    assert_eq!(open_at(store, &pay("late", "g", 0), end).await, Opened::Moved);
    assert!(recalled(store, covered(), end).await.is_empty());
    assert!(store.grants("acme".into(), end).await.unwrap().is_empty());
    assert!(ran(&open_at(store, &pay("in time", "g", 0), Millis(end.0 - 1)).await));

    give(store, grant("h", Some(5), None)).await.unwrap();
    let opening = pay("meanwhile", "h", 0).opening(store).await;
    let head = store.head().await.unwrap().seq;
    assert_eq!(revoke(store, "h").await.unwrap().0.id, "h");
    assert_eq!(store.head().await.unwrap().seq, head + 1);
    assert_eq!(store.open(opening, NOW).await.unwrap(), Opened::Moved, "revoked after it was looked at");
    assert_eq!(revoke(store, "h").await.unwrap_err(), NotGranted::missing());
}

pub(super) async fn a_standing_grant_is_found_by_whose_calls_it_covers(store: &Store) {
    give(store, grant("later", Some(5), None)).await.unwrap();
    give(store, StandingGrant { expires_at: later(HOUR / 2), ..grant("sooner", None, Some(7)) }).await.unwrap();
    let ids =
        async |covered| -> Vec<String> { recalled(store, covered, NOW).await.into_iter().map(|(id, _)| id).collect() };
    assert_eq!(ids(covered()).await, ["sooner", "later"], "the one that ends first comes first");
    assert!(ids(Covered { tenant: "globex".into(), ..covered() }).await.is_empty());
    assert!(ids(Covered { tool: "pay".into(), ..covered() }).await.is_empty());
    let bob = Principal::new("local", "bob").canonical();
    assert!(ids(Covered { principal: bob, ..covered() }).await.is_empty());
}

pub(super) async fn the_number_of_standing_grants_is_bounded(store: &Store) {
    for n in 0..20 {
        give(store, grant(&format!("g{n}"), Some(1), None)).await.unwrap();
    }
    let head = store.head().await.unwrap();
    assert_eq!(give(store, grant("more", Some(1), None)).await.unwrap_err().why, Refused::TooMany);
    assert_eq!(store.head().await.unwrap(), head);
    let bob = StandingGrant { to: Principal::new("local", "bob"), ..grant("bob", Some(1), None) };
    give(store, bob).await.unwrap();
}

pub(super) async fn a_read_draws_for_good(store: &Store) {
    give(store, grant("g", Some(1), None)).await.unwrap();
    let read = || Opening {
        entry: None,
        grant: None,
        takings: Vec::new(),
        drawings: vec![draw("g", 0)],
        intent: record(Kind::Intent),
        spot: Spot::default(),
    };
    assert!(ran(&store.open(read(), NOW).await.unwrap()));
    assert_eq!(store.open(read(), NOW).await.unwrap(), Opened::Moved);
}
