//! What an operator stops for a while.

use std::time::Duration;

use super::*;
use crate::ledger::Stopped;
use crate::ledger::rows::NoteKind;

/// A stop of these calls that lasts for so many milliseconds.
async fn stop(store: &Store, target: Target, lasts: u64) -> Stopped {
    set(store, None, target, lasts).await
}

/// As [`stop`], set by a tenant's administrator.
async fn set(store: &Store, set_in: Option<&str>, target: Target, lasts: u64) -> Stopped {
    let set_in = set_in.map(str::to_owned);
    let (reference, by) = (Ref::fresh(), Principal::new("os", "operator#1"));
    let id = format!("stop_{reference}");
    let stop = Stoppage { id, target, why: "a leak".into(), by, set_in, at: Millis(0), until: Millis(0), reference };
    let told = Box::new(|_: &Stoppage, _| record(Kind::Stopped));
    store.stop(stop, Duration::from_millis(lasts), 2, told, NOW).await.unwrap()
}

fn stood(stopped: Stopped) -> Stoppage {
    match stopped {
        Stopped::Stands(stop) => *stop,
        Stopped::TooMany => panic!("too many stand"),
    }
}

async fn lift(store: &Store, id: &str, tenant: Option<&str>) -> bool {
    let told = Box::new(|_: &Stoppage, _| record(Kind::Lifted));
    store.lift(id.into(), tenant.map(str::to_owned), told, NOW).await.unwrap().is_some()
}

async fn records(store: &Store) -> u64 {
    store.head().await.unwrap().seq
}

pub(super) async fn nothing_opens_where_an_operator_has_stopped_it(store: &Store) {
    let act = Act::new("a");
    let decided = act.opening(store).await;
    let stop = stood(stop(store, Target::tool("create_refund").within("acme"), 5_000).await);
    assert_eq!((stop.at, stop.until), (NOW, later(5_000)));
    let before = records(store).await;
    assert_eq!(store.open(decided, NOW).await.unwrap(), Opened::Stopped(Box::new(stop.clone())));
    assert_eq!(records(store).await, before, "nothing was written");
    let spot = || Some(Spot { tool: "create_refund".into(), tenant: "acme".into() });
    let recalled = store.recall(Question { spot: spot(), ..act.question() }, NOW).await.unwrap();
    assert_eq!(recalled.stopped.as_ref(), Some(&stop));
    let elsewhere = Act { tenant: "globex", lane: "ord_2", ..Act::new("b") };
    assert!(matches!(store.open(elsewhere.opening(store).await, NOW).await.unwrap(), Opened::Open { .. }));
    let over = store.recall(Question { spot: spot(), ..act.question() }, later(5_000)).await.unwrap();
    assert_eq!(over.stopped, None, "its end is exclusive");
    assert!(matches!(store.open(act.opening(store).await, later(5_000)).await.unwrap(), Opened::Open { .. }));
}

pub(super) async fn a_stop_is_lifted_once_and_only_by_whom_it_concerns(store: &Store) {
    let whole = stood(stop(store, Target::all(), 5_000).await);
    let own = stood(set(store, Some("acme"), Target::tool("pay").within("acme"), 5_000).await);
    let operators = stood(stop(store, Target::tenant("acme"), 5_000).await);
    assert_eq!(store.stops(NOW).await.unwrap(), [whole.clone(), own.clone(), operators.clone()]);
    let before = records(store).await;
    for (id, tenant) in [
        (&whole.id, Some("acme")),
        (&operators.id, Some("acme")),
        (&own.id, Some("globex")),
        (&"stop_".to_owned(), None),
    ] {
        assert!(!lift(store, id, tenant).await, "{id} {tenant:?}");
    }
    assert_eq!(records(store).await, before);
    assert!(lift(store, &own.id, Some("acme")).await && !lift(store, &own.id, Some("acme")).await);
    assert!(lift(store, &whole.id, None).await && lift(store, &operators.id, None).await);
    assert_eq!((store.stops(NOW).await.unwrap(), records(store).await), (Vec::new(), before + 3));
}

pub(super) async fn the_stops_of_one_tenant_leave_room_for_those_of_others(store: &Store) {
    let full = |stopped| matches!(stopped, Stopped::TooMany);
    for _ in 0..2 {
        stood(set(store, Some("acme"), Target::tool("create_refund").within("acme"), 5_000).await);
    }
    let before = records(store).await;
    assert!(full(set(store, Some("acme"), Target::tool("pay").within("acme"), 5_000).await));
    assert_eq!(records(store).await, before);
    assert!(!full(set(store, Some("globex"), Target::tool("pay").within("globex"), 5_000).await));
    assert!(!full(stop(store, Target::tenant("acme"), 5_000).await), "the operator stops just whoever sets many");
    assert!(!full(stop(store, Target::all(), 5_000).await));
    assert!(full(stop(store, Target::tenant("globex"), 5_000).await), "the operator's own are bounded as well");
}

pub(super) async fn a_call_looks_at_no_stop_of_another_tenant(store: &Store) {
    let (globex, whole) = (Target::tenant("globex"), Target::tool("pay"));
    let (globex, whole) = (stood(stop(store, globex, 5_000).await), stood(stop(store, whole, 5_000).await));
    let ids = async |scope: &'static str| {
        let notes = store.read(move |rows| rows.notes(NoteKind::Stop, scope, 10)).await.unwrap();
        notes.into_iter().map(|note| note.key).collect::<Vec<_>>()
    };
    assert_eq!(ids("").await, [whole.id.as_str()]);
    assert_eq!((ids("acme").await, ids("globex").await), (Vec::new(), vec![globex.id.clone()]));
    assert!(ran(&store.open(Act::new("a").opening(store).await, NOW).await.unwrap()));
    let theirs = Act { tenant: "globex", lane: "ord_2", ..Act::new("b") };
    assert_eq!(store.open(theirs.opening(store).await, NOW).await.unwrap(), Opened::Stopped(Box::new(globex.clone())));
    assert_eq!(store.stops(NOW).await.unwrap(), [globex, whole], "the operator sees all of them");
}
