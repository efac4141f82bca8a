//! What calls may take in a window of time.

use super::*;

/// The end of the day in which the stories play.
const MIDNIGHT: Millis = Millis(DAY);

fn limited(which: usize, left: u64) -> Opened {
    Opened::Limited { which, left, until: MIDNIGHT }
}

/// An action on a lane of its own.
fn pay(name: &'static str, amount: u64, max: u64) -> Act {
    Act { lane: name, ..Act::new(name) }.taking([take("cents", amount, max)])
}

pub(super) async fn what_is_counted_never_exceeds_its_limit(store: &Store) {
    assert!(ran(&open_at(store, &pay("a", 60, 100), NOW).await));
    let head = store.head().await.unwrap();
    assert_eq!(open_at(store, &pay("b", 41, 100), NOW).await, limited(0, 40));
    assert_eq!(store.head().await.unwrap(), head, "a refusal writes nothing");
    assert!(entry_at(store, &pay("b", 41, 100), NOW).await.is_none());
    assert!(ran(&open_at(store, &pay("c", 40, 100), NOW).await));
    assert_eq!(open_at(store, &pay("d", 1, 100), NOW).await, limited(0, 0));

    // Another maximum, such as that of a role, is of the same count.
    assert_eq!(open_at(store, &pay("e", 101, 200), NOW).await, limited(0, 100));
    assert!(ran(&open_at(store, &pay("f", 100, 200), NOW).await));
    assert_eq!(open_at(store, &pay("g", u64::MAX, 200), NOW).await, limited(0, 0));

    // What is done stays taken until the window ends.
    assert!(close(store, &pay("a", 60, 100), 1, done("1")).await);
    assert_eq!(open_at(store, &pay("h", 1, 200), Millis(DAY - 1)).await, limited(0, 0));
    assert!(ran(&open_at(store, &pay("h", 100, 100), MIDNIGHT).await));
}

pub(super) async fn what_did_not_happen_gives_its_part_back_and_what_is_unknown_keeps_it(store: &Store) {
    let (a, b) = (pay("a", 60, 100), pay("b", 60, 100));
    open(store, &a).await;
    close(store, &a, 1, Verdict::Failed).await;
    assert!(ran(&open_at(store, &b, NOW).await));
    assert_eq!(open_at(store, &a, NOW).await, limited(0, 40), "it takes its part anew");

    assert!(close(store, &b, 1, Verdict::Unknown).await);
    assert_eq!(open_at(store, &a, NOW).await, limited(0, 40));
    store.claim(b.key(), claim("b", 100), NOW).await.unwrap().unwrap();
    assert_eq!(open_at(store, &a, NOW).await, limited(0, 40));
    assert!(resolve(store, &b, "b", Finding::NotDone).await);
    assert!(ran(&open_at(store, &a, NOW).await));
}

pub(super) async fn a_part_goes_back_into_the_window_that_it_was_taken_from(store: &Store) {
    let (a, b) = (pay("a", 60, 100), pay("b", 100, 100));
    let evening = Millis(DAY - 10);
    assert!(ran(&open_at(store, &a, evening).await));
    assert!(ran(&open_at(store, &b, MIDNIGHT).await));
    assert!(close_at(store, &a, 1, Verdict::Failed, Millis(DAY + 10)).await);
    let next_midnight = Millis(2 * DAY);
    let full = Opened::Limited { which: 0, left: 0, until: next_midnight };
    assert_eq!(open_at(store, &pay("c", 1, 100), Millis(DAY + 20)).await, full);
}

pub(super) async fn several_limits_are_taken_together_or_not_at_all(store: &Store) {
    let both = |name, cents| Act { lane: name, ..Act::new(name) }.taking([take("cents", cents, 100), take("calls", 1, 2)]);
    assert!(ran(&open_at(store, &both("a", 10), NOW).await));
    assert!(ran(&open_at(store, &both("b", 10), NOW).await));
    assert_eq!(open_at(store, &both("c", 10), NOW).await, limited(1, 0));
    assert!(ran(&open_at(store, &pay("d", 80, 100), NOW).await), "nothing was taken of the other limit");

    // Two limits on one count are one count.
    let twice = Act { lane: "e", ..Act::new("e") }.taking([take("twice", 6, 10), take("twice", 6, 20)]);
    assert!(ran(&open_at(store, &twice, NOW).await));
    let third = Act { lane: "f", ..Act::new("f") }.taking([take("twice", 9, 20)]);
    assert_eq!(open_at(store, &third, NOW).await, limited(0, 8));
}

pub(super) async fn a_limit_refuses_nothing_whose_ground_has_moved(store: &Store) {
    let refund = Act::new("refund").taking([take("calls", 1, 1)]);
    let duplicate = refund.opening(store).await;
    open(store, &refund).await;
    close(store, &refund, 1, done("1")).await;
    assert_eq!(store.open(duplicate, NOW).await.unwrap(), Opened::Moved, "it is to be replayed, which takes nothing");
}

pub(super) async fn a_read_takes_its_part_for_good(store: &Store) {
    let read = || Opening {
        entry: None,
        grant: None,
        takings: vec![take("reads", 1, 2)],
        drawings: Vec::new(),
        intent: record(Kind::Intent),
        spot: Spot::default(),
    };
    assert!(ran(&store.open(read(), NOW).await.unwrap()));
    assert!(ran(&store.open(read(), NOW).await.unwrap()));
    assert_eq!(store.open(read(), NOW).await.unwrap(), limited(0, 0));
    assert!(ran(&store.open(read(), MIDNIGHT).await.unwrap()));
}

pub(super) async fn what_takes_nothing_fits_a_limit_that_was_lowered(store: &Store) {
    assert!(ran(&open_at(store, &pay("a", 60, 100), NOW).await));
    assert!(ran(&open_at(store, &pay("b", 0, 50), NOW).await));
    assert_eq!(open_at(store, &pay("c", 1, 50), NOW).await, limited(0, 0));
}
