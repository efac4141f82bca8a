//! Small pieces of state with an end.

use super::*;
use crate::ledger::rows::{Note, NoteKind};

fn note(key: &str, scope: &str, until: u64) -> Note {
    Note::new(key, scope, Millis(until), &json!({"of": key})).unwrap()
}

async fn put(store: &Store, kind: NoteKind, note: Note) {
    store.write(move |rows| rows.put_note(kind, &note)).await.unwrap();
}

async fn keys(store: &Store, kind: NoteKind, scope: &'static str) -> Vec<String> {
    let notes = store.read(move |rows| rows.notes(kind, scope, 10)).await.unwrap();
    notes.into_iter().map(|note| note.key).collect()
}

pub(super) async fn a_note_is_found_by_its_kind_and_key_and_listed_by_its_scope(store: &Store) {
    for (kind, key, scope) in [
        (NoteKind::Standing, "b", "acme"),
        (NoteKind::Standing, "a", "acme"),
        (NoteKind::Standing, "c", "globex"),
        (NoteKind::Stop, "a", "acme"),
    ] {
        put(store, kind, note(key, scope, 9_000_000)).await;
    }
    put(store, NoteKind::Standing, note("b", "acme", 8_000_000)).await;
    assert_eq!(keys(store, NoteKind::Standing, "acme").await, ["b", "a"]);
    assert_eq!(keys(store, NoteKind::Stop, "acme").await, ["a"]);
    let found = store.read(|rows| rows.note(NoteKind::Standing, "b")).await.unwrap().unwrap();
    assert_eq!((found.until, found.read::<Value>().unwrap()), (Millis(8_000_000), json!({"of": "b"})));
    store.write(|rows| rows.remove_note(NoteKind::Standing, "b")).await.unwrap();
    assert_eq!(keys(store, NoteKind::Standing, "acme").await, ["a"]);
    assert_eq!(store.read(|rows| rows.note(NoteKind::Run, "a")).await.unwrap(), None);
}

pub(super) async fn a_note_is_forgotten_from_its_end_on(store: &Store) {
    put(store, NoteKind::Run, note("a", "", NOW.0)).await;
    put(store, NoteKind::Run, note("b", "", NOW.0 + 1)).await;
    assert!(store.is_overdue(NOW).await.unwrap());
    sweep(store, NOW).await;
    assert_eq!(keys(store, NoteKind::Run, "").await, ["b"]);
    assert!(!store.is_overdue(NOW).await.unwrap());
}
