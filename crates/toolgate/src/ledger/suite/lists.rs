//! What is listed for people.

use super::*;

pub(super) async fn records_are_found_by_attempt_and_read_in_pages(store: &Store) {
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

pub(super) async fn actions_are_listed_newest_first_by_tenant(store: &Store) {
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
        (ActionState::Open, None, None),
        (ActionState::Unknown, Some(Effect::Unknown), Some(NOW)),
        (ActionState::Failed, Some(Effect::None), Some(NOW)),
        (ActionState::Done, Some(Effect::Done), Some(NOW)),
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

pub(super) async fn a_list_of_actions_passes_over_those_of_others_in_pages(store: &Store) {
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

pub(super) async fn a_list_of_what_failed_looks_through_a_bounded_part_at_once(store: &Store) {
    let failed = Act::new("mine");
    open(store, &failed).await;
    close(store, &failed, 1, Verdict::Failed).await;
    for _ in 0..1000 {
        let name: &'static str = Box::leak(Ref::fresh().to_string().into_boxed_str());
        open(store, &Act { lane: name, ..Act::new(name) }).await;
    }
    let wanted = crate::ledger::Wanted { state: Some(crate::ledger::ActionState::Failed), ..Default::default() };
    let first = store.ledger(wanted.clone(), None, 9).await.unwrap();
    assert!(first.items.is_empty() && first.next.is_some());
    let rest = store.ledger(wanted, first.next, 9).await.unwrap();
    assert_eq!((rest.items.len(), rest.items[0].state, rest.next), (1, ActionState::Failed, None));
}

pub(super) async fn records_are_listed_newest_first_by_tenant(store: &Store) {
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

    // One page looks through a thousand entries, a hundred at a time.
    store.append((0..1095).map(|_| of("globex")).collect::<Vec<_>>()).await.unwrap();
    let none = store.records_of_tenant("acme", None, 9).await.unwrap();
    assert_eq!((seqs(&none), none.next), (vec![], Some(101)));
    let all = store.records_of_tenant("acme", none.next, 9).await.unwrap();
    assert_eq!((seqs(&all), all.next), (vec![4, 3, 1], None));
}

pub(super) async fn a_page_of_large_records_is_short(store: &Store) {
    let large = || {
        let text = "x".repeat(6 << 10);
        let body = Map::from_iter([("tenant".to_owned(), json!("acme")), ("text".to_owned(), json!(text))]);
        Record::new(Kind::Read, NOW, Ref::fresh(), body)
    };
    store.append((0..5).map(|_| large()).collect::<Vec<_>>()).await.unwrap();
    let first = store.records_of_tenant("acme", None, 9).await.unwrap();
    assert_eq!((first.items.len(), first.next), (3, Some(3)));
    let rest = store.records_of_tenant("acme", first.next, 9).await.unwrap();
    assert_eq!((rest.items.len(), rest.next), (2, None));
}
