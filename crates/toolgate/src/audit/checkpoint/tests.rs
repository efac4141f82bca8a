#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::audit::{Kind, Record};
use crate::call::Ref;

/// Made by `openssl genpkey -algorithm ed25519`, and what `openssl pkey -pubout` says of it.
const FROM_OPENSSL: &str = "-----BEGIN PRIVATE KEY-----\n\
                            MC4CAQAwBQYDK2VwBCIEILQN9UtobpydmEhy+ruA8x0rTsV4II4SAV4mfrpXM4jh\n\
                            -----END PRIVATE KEY-----\n";

const ITS_PUBLIC_HALF: &str = "35254bdfa58a48040011c2db1a4edc108d1b419c686cb34000064bc5548b9504";

fn key() -> SigningKey {
    SigningKey::parse(FROM_OPENSSL).unwrap()
}

fn checkpoint() -> Checkpoint {
    let head = Head { seq: 42, hash: Digest::of(b"42") };
    Checkpoint::sign(&key(), Digest::of(b"1"), head, Millis(1_769_851_800_000))
}

async fn record(store: &Store, count: usize) {
    let records: Vec<Record> =
        (0..count).map(|_| Record::new(Kind::Read, Millis(1), Ref::fresh(), Map::new())).collect();
    store.append(records).await.unwrap();
}

#[test]
fn a_line_reads_back_as_what_was_signed() {
    let signed = checkpoint();
    let line = signed.to_string();
    assert!(line.starts_with(r#"{"v":1,"store":""#) && line.contains(r#""at":"2026-01-31T09:30:00.000Z""#), "{line}");
    let read = Checkpoint::parse(line.as_bytes()).unwrap();
    assert_eq!(read, signed);
    assert!(read.is_genuine());
}

#[test]
fn the_signature_covers_every_other_member() {
    let others = SigningKey::in_file(&tempfile::tempdir().unwrap().path().join("key")).unwrap();
    let signed = checkpoint();
    let changed = [
        Checkpoint { store: Digest::of(b"2"), ..signed.clone() },
        Checkpoint { head: Head { seq: 43, ..signed.head }, ..signed.clone() },
        Checkpoint { head: Head { hash: Digest::of(b"43"), ..signed.head }, ..signed.clone() },
        Checkpoint { at: Millis(signed.at.0 + 1), ..signed.clone() },
        Checkpoint { key: others.public(), ..signed.clone() },
    ];
    for changed in changed {
        assert!(!changed.is_genuine(), "{changed}");
    }
    let bare = key().0.sign(signed.covered().strip_prefix(DOMAIN).unwrap().as_bytes());
    let mut elsewhere = signed;
    elsewhere.signature.copy_from_slice(bare.as_ref());
    assert!(!elsewhere.is_genuine(), "what was signed for something else is no checkpoint");
}

#[test]
fn what_is_no_checkpoint_is_told_apart() {
    let line = checkpoint().to_string();
    let why = |line: &str| Checkpoint::parse(line.as_bytes()).unwrap_err();
    assert_eq!(why("no"), NotACheckpoint::Json);
    assert_eq!(why(&line[..line.len() - 1]), NotACheckpoint::Json);
    assert_eq!(why(&line.replace("\"seq\":42", "\"seq\":42,\"seq\":42")), NotACheckpoint::Json);
    assert_eq!(why(&line.replace("\"v\":1", "\"v\":2")), NotACheckpoint::Version);
    for (from, to) in [
        ("\"v\":1,", ""),
        ("\"v\":1", "\"v\":\"1\""),
        ("\"seq\":42", "\"seq\":0"),
        ("\"seq\":42", "\"seq\":\"42\""),
        ("\"seq\":42", "\"seq\":42,\"note\":\"x\""),
        (".000Z", "Z"),
        ("\"sig\":\"", "\"sig\":\"0"),
        ("\"key\":\"", "\"key\":\"00"),
    ] {
        let edited = line.replace(from, to);
        assert_ne!(edited, line);
        assert_eq!(why(&edited), NotACheckpoint::Members, "{from} -> {to}");
    }
}

#[test]
fn a_key_is_made_once_and_one_of_another_program_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoints.key");
    let made = SigningKey::in_file(&path).unwrap();
    assert_eq!(SigningKey::in_file(&path).unwrap().public(), made.public());
    assert_eq!(key().public(), ITS_PUBLIC_HALF.parse().unwrap());
    assert_eq!(key().public().to_string(), ITS_PUBLIC_HALF);
    std::fs::write(&path, "-----BEGIN PRIVATE KEY-----\nbeef\n-----END PRIVATE KEY-----\n").unwrap();
    assert!(matches!(SigningKey::in_file(&path), Err(KeyError::Signing(_))));
}

#[tokio::test]
async fn a_store_is_signed_where_it_moved_and_holds_what_was_signed_before() {
    let (store, key, now) = (Store::memory(), key(), Millis(7));
    assert_eq!(store.checkpoint(&key, None, now).await.unwrap(), Asked::Unmoved, "nothing was recorded yet");
    record(&store, 2).await;
    let Asked::Moved(first) = store.checkpoint(&key, None, now).await.unwrap() else { panic!("it moved") };
    assert!(first.is_genuine() && first.head == store.head().await.unwrap());
    assert_eq!(store.checkpoint(&key, Some(&first), now).await.unwrap(), Asked::Unmoved);
    record(&store, 3).await;
    let Asked::Moved(second) = store.checkpoint(&key, Some(&first), now).await.unwrap() else { panic!("it moved") };
    assert_eq!((second.head.seq, second.store), (5, first.store));
    let anew = Store::memory();
    assert_eq!(anew.checkpoint(&key, Some(&second), now).await.unwrap(), Asked::Contradicted);
    record(&anew, 9).await;
    assert_eq!(anew.checkpoint(&key, Some(&second), now).await.unwrap(), Asked::Contradicted);
}

#[test]
fn a_value_of_a_member_that_is_of_another_type_is_refused() {
    for name in ["v", "store", "seq", "hash", "at", "key", "sig"] {
        let mut line: Value = crate::json::read(checkpoint().to_string().as_bytes(), &Limits::default()).unwrap();
        for wrong in [json!(null), json!(1.5), json!(-1), json!(["x"]), json!("x")] {
            line[name] = wrong;
            assert!(Checkpoint::parse(line.to_string().as_bytes()).is_err(), "{line}");
        }
    }
}

proptest! {
    #[test]
    fn any_checkpoint_reads_back(seq in 1..u64::MAX, store: [u8; 32], hash: [u8; 32], at in 0..200_000_000_000_000_u64) {
        let head = Head { seq, hash: Digest::from(hash) };
        let signed = Checkpoint::sign(&key(), Digest::from(store), head, Millis(at));
        let read = Checkpoint::parse(signed.to_string().as_bytes()).unwrap();
        prop_assert!(read == signed && read.is_genuine());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        prop_assert!(Checkpoint::parse(&bytes).is_err());
    }

    /// No line but the one that was signed is genuine, however little was changed.
    #[test]
    fn a_line_with_any_byte_changed_is_no_genuine_one(at: prop::sample::Index, byte: u8) {
        let mut line = checkpoint().to_string().into_bytes();
        let at = at.index(line.len());
        prop_assume!(line[at] != byte);
        line[at] = byte;
        prop_assert!(!Checkpoint::parse(&line).is_ok_and(|read| read.is_genuine()));
    }
}
