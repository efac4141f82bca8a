//! How rows are kept.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use super::super::super::rows::{Change, Lane, Rows};
use super::*;
use crate::vault::Subject;

fn row(key: [u8; 32], state: State) -> Entry {
    let action = Action {
        tool: "create_refund".into(),
        tenant: "acme".into(),
        principal: Principal::new("local", "alice"),
        run: "default".into(),
        args_digest: Digest::of(&key),
        arguments: json!({"n": key[31]}),
        facts: json!({}),
        lane: LaneKey(Digest::of(&key)),
        keeps_lane: true,
        retain_ms: RETAIN,
        grant: None,
        holds: Vec::new(),
        subject: None,
    };
    Entry {
        key: EntryKey(Digest::from(key)),
        revision: 1,
        attempt: 1,
        first: Ref::fresh(),
        action,
        state,
        erased: false,
    }
}

/// Two keys with the same first half.
fn twins() -> ([u8; 32], [u8; 32]) {
    let mut other = [7; 32];
    other[31] = 8;
    ([7; 32], other)
}

#[tokio::test]
async fn keys_that_share_their_first_half_are_told_apart() {
    let (_folder, path) = folder();
    let ledger = SqliteLedger::open(&path, None).unwrap();
    let (one, other) = twins();
    let entries = ledger
        .write(move |rows| {
            rows.put_entry(&row(one, State::Failed { at: Millis(3) }), Change::Opened)?;
            let alone = rows.entry(EntryKey(Digest::from(other)))?;
            rows.put_entry(&row(other, State::Failed { at: Millis(3) }), Change::Opened)?;
            let moved = Entry { revision: 2, ..row(one, State::Done { answer: "1".into(), lane_version: 1, at: NOW }) };
            rows.put_entry(&moved, Change::Moved)?;
            let both = [rows.entry(EntryKey(Digest::from(one)))?, rows.entry(EntryKey(Digest::from(other)))?];
            rows.remove_entry(EntryKey(Digest::from(one)))?;
            let left = [rows.entry(EntryKey(Digest::from(one)))?, rows.entry(EntryKey(Digest::from(other)))?];
            Ok((alone, both, left))
        })
        .await
        .unwrap();
    let (alone, [first, second], [gone, stays]) = entries;
    assert!(alone.is_none() && gone.is_none());
    let (first, second) = (first.unwrap(), second.unwrap());
    assert!(matches!(first.state, State::Done { .. }) && matches!(second.state, State::Failed { at: Millis(3) }));
    assert_eq!((first.action.arguments, second.action.arguments), (json!({"n": 7}), json!({"n": 8})));
    assert_eq!(stays.unwrap().key, EntryKey(Digest::from(other)));

    let lanes = ledger
        .write(move |rows| {
            let [one, other] = [one, other].map(|key| LaneKey(Digest::from(key)));
            rows.put_lane(one, Lane { version: 3, needed_until: NOW, holder: None })?;
            rows.put_lane(other, Lane { version: 4, needed_until: later(1), holder: None })?;
            let both = [rows.lane(one)?.version, rows.lane(other)?.version];
            let forgotten = rows.forget_lanes(NOW, 9)?;
            Ok((both, forgotten, [rows.lane(one)?.version, rows.lane(other)?.version]))
        })
        .await
        .unwrap();
    assert_eq!(lanes, ([3, 4], 1, [0, 4]));
}

fn moment() -> impl Strategy<Value = Millis> {
    (0..i64::MAX.unsigned_abs()).prop_map(Millis)
}

fn state() -> impl Strategy<Value = State> {
    let owner = any::<String>().prop_map(Owner);
    let claim = prop::option::of((any::<String>(), moment()).prop_map(|(token, until)| Claim { token, until }));
    let version = 0..i64::MAX.unsigned_abs();
    prop_oneof![
        (owner.clone(), moment(), moment()).prop_map(|(owner, since, lease_end)| State::Open {
            owner,
            since,
            lease_end
        }),
        (any::<String>(), version, moment()).prop_map(|(answer, lane_version, at)| State::Done {
            answer,
            lane_version,
            at
        }),
        Just(State::Failed { at: Millis(3) }),
        (owner, moment(), moment(), claim).prop_map(|(owner, since, lease_end, claim)| State::Unknown {
            owner,
            since,
            lease_end,
            claim
        }),
    ]
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let hold = (any::<[u8; 32]>(), moment(), moment(), any::<u64>()).prop_map(|(counter, window, end, amount)| Hold {
        counter: CounterKey(Digest::from(counter)),
        window,
        end,
        amount,
    });
    let texts = (any::<String>(), any::<String>(), any::<String>(), any::<String>(), any::<String>());
    let rest = (
        prop::option::of(any::<String>()),
        prop::collection::vec(hold, 0..3),
        prop::option::of(any::<[u8; 32]>()),
        prop::collection::btree_map(any::<String>(), any::<i64>(), 0..5),
        any::<(u64, u32, bool, [u8; 32])>(),
    );
    (any::<u8>(), texts, rest, state()).prop_map(|(n, texts, rest, state)| {
        let (tool, tenant, issuer, subject, run) = texts;
        let (grant, holds, whose, members, (retain_ms, attempt, keeps_lane, digest)) = rest;
        let facts = members.values().copied().map(Value::from).collect();
        let arguments = members.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
        // Few keys, so that rows are written over one another.
        let entry = row([n % 4; 32], state);
        let action = Action {
            tool,
            tenant,
            principal: Principal { issuer, subject },
            run,
            args_digest: Digest::from(digest),
            arguments: Value::Object(arguments),
            facts: Value::Array(facts),
            lane: LaneKey(Digest::from(digest)),
            keeps_lane,
            retain_ms,
            grant,
            holds,
            subject: whose.map(Subject::from_bytes),
        };
        Entry { attempt, action, ..entry }
    })
}

#[tokio::test]
async fn what_is_put_is_read_back_equal() {
    let (_folder, path) = folder();
    let ledger = SqliteLedger::open(&path, None).unwrap();
    let mut runner = TestRunner::deterministic();
    for _ in 0..200 {
        let entry = any_entry().new_tree(&mut runner).unwrap().current();
        let moved = Entry { revision: 2, state: state().new_tree(&mut runner).unwrap().current(), ..entry.clone() };
        let (first, second) = (entry.clone(), moved.clone());
        ledger.write(move |rows| rows.put_entry(&first, Change::Opened)).await.unwrap();
        let key = entry.key;
        let read = move |rows: &dyn Rows| Ok((rows.entry(key)?.unwrap(), rows.outline(key)?.unwrap()));
        let (whole, outline) = ledger.read(read).await.unwrap();
        assert_eq!(format!("{whole:?}"), format!("{entry:?}"));
        let mut hidden = entry;
        hidden.erase();
        hidden.erased = false;
        assert_eq!(format!("{outline:?}"), format!("{hidden:?}"));
        ledger.write(move |rows| rows.put_entry(&second, Change::Moved)).await.unwrap();
        assert_eq!(format!("{:?}", ledger.read(read).await.unwrap().0), format!("{moved:?}"));
    }
}

#[tokio::test]
async fn an_action_that_moves_is_not_written_again() {
    let (_folder, path) = folder();
    let store = Store::sqlite(&path).unwrap();
    let refund = Act::new("refund");
    open(&store, &refund).await;
    let contents = || -> Vec<u8> {
        let sql = "SELECT contents FROM entries";
        Connection::open(&path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let before = contents();
    close(&store, &refund, 1, Verdict::Unknown).await;
    store.claim(refund.key(), claim("t", 1000), NOW).await.unwrap().unwrap();
    assert!(resolve(&store, &refund, "t", Finding::NotDone).await);
    assert_eq!(contents(), before);
    open(&store, &refund).await;
    // Sealed anew, with another nonce.
    assert_ne!(contents(), before);
}
