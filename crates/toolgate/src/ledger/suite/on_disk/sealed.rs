//! What calls carry is sealed, and what was erased is gone.

use super::*;
use crate::vault::{GateKey, Subject};

const ARGUMENT: &str = "4111-1111-1111-1111";
const FACT: &str = "owes 5.12 EUR to nobody";
const ANSWER: &str = "the code is 7714";

fn subject(name: &str) -> Subject {
    Subject::from_bytes(*Digest::of(name.as_bytes()).as_bytes())
}

/// Opens an action whose arguments and facts tell something, of somebody or of nobody.
async fn tell(store: &Store, act: &Act, whose: Option<Subject>) {
    let mut opening = act.opening(store).await;
    let action = &mut opening.entry.as_mut().unwrap().action;
    action.arguments = json!({"card": ARGUMENT});
    action.facts = json!({"customer": {"note": FACT}});
    action.subject = whose;
    assert!(ran(&store.open(opening, NOW).await.unwrap()));
}

fn answer() -> Verdict {
    done(&json!({"text": ANSWER}).to_string())
}

/// What of an entry can be read.
fn told(entry: &Entry) -> (bool, bool, bool) {
    let answer = match &entry.state {
        State::Done { answer, .. } => answer.contains(ANSWER),
        State::Open { .. } | State::Failed { .. } | State::Unknown { .. } => false,
    };
    (entry.action.arguments["card"] == ARGUMENT, entry.action.facts["customer"]["note"] == FACT, answer)
}

async fn erase(ledger: &SqliteLedger, whose: Subject) -> bool {
    ledger.write(move |rows| rows.erase_salt(whose)).await.unwrap()
}

async fn salt(ledger: &SqliteLedger, whose: Subject) -> Option<[u8; 32]> {
    ledger.read(move |rows| rows.salt(whose)).await.unwrap().map(|salt| salt.0)
}

#[tokio::test]
async fn a_search_of_all_files_for_what_calls_carry_finds_nothing() {
    let (folder, path) = folder();
    let (plain, personal) = (Act { lane: "a", ..Act::new("a") }, Act { lane: "b", ..Act::new("b") });
    let store = Store::sqlite(&path).unwrap();
    for (act, whose) in [(&plain, None), (&personal, Some(subject("alice")))] {
        tell(&store, act, whose).await;
        assert_eq!(told(&entry(&store, act).await), (true, true, false));
        close(&store, act, 1, answer()).await;
        assert_eq!(told(&entry(&store, act).await), (true, true, true));
    }
    let search = || [ARGUMENT, FACT, ANSWER].map(|secret| stands_in(folder.path(), secret.as_bytes()));
    assert_eq!(search(), [false; 3]);
    // The search itself finds what stands there in plain.
    assert!(stands_in(folder.path(), b"create_refund"));
    drop(store);
    assert_eq!(search(), [false; 3]);
    let store = Store::sqlite(&path).unwrap();
    assert_eq!(told(&entry(&store, &plain).await), (true, true, true));
    assert_eq!(told(&entry(&store, &personal).await), (true, true, true));
}

#[tokio::test]
async fn what_was_erased_is_gone_from_every_file_and_all_else_stays() {
    let (folder, path) = folder();
    let (alices, bobs) = (Act { lane: "a", ..Act::new("a") }, Act { lane: "b", ..Act::new("b") });
    let store = Store::sqlite(&path).unwrap();
    for (act, whose) in [(&alices, "alice"), (&bobs, "bob")] {
        tell(&store, act, Some(subject(whose))).await;
        close(&store, act, 1, answer()).await;
    }
    let ledger = SqliteLedger::open(&path, None).unwrap();
    let [alice, bob] = [salt(&ledger, subject("alice")).await.unwrap(), salt(&ledger, subject("bob")).await.unwrap()];
    assert!(stands_in(folder.path(), &alice));
    assert!(erase(&ledger, subject("alice")).await);
    assert!(!stands_in(folder.path(), &alice) && stands_in(folder.path(), &bob));
    assert!(!erase(&ledger, subject("alice")).await);
    assert_eq!(salt(&ledger, subject("alice")).await, None);

    let erased = entry(&store, &alices).await;
    assert!(erased.erased && matches!(erased.state, State::Done { .. }));
    assert_eq!(told(&erased), (false, false, false));
    assert_eq!(erased.action.tool, "create_refund");
    let kept = entry(&store, &bobs).await;
    assert!(!kept.erased);
    assert_eq!(told(&kept), (true, true, true));
}

#[tokio::test]
async fn no_copy_of_a_salt_is_left_in_the_corner_of_a_page() {
    let (folder, path) = folder();
    let ledger = SqliteLedger::open(&path, None).unwrap();
    let subjects: Vec<Subject> = (0..400).map(|n| subject(&n.to_string())).collect();
    let all = subjects.clone();
    let salts = ledger
        .write(move |rows| {
            for (n, whose) in all.iter().enumerate() {
                rows.put_salt(*whose, &crate::vault::Salt([u8::try_from(n % 250).unwrap() + 1; 32]))?;
                let salt = crate::vault::Salt(*Digest::of(&n.to_be_bytes()).as_bytes());
                rows.erase_salt(*whose)?;
                rows.put_salt(*whose, &salt)?;
            }
            all.iter().map(|whose| Ok(rows.salt(*whose)?.unwrap().0)).collect::<Result<Vec<_>, _>>()
        })
        .await
        .unwrap();
    for whose in subjects.iter().step_by(7) {
        assert!(erase(&ledger, *whose).await);
    }
    let files: Vec<u8> = ["", "-wal"]
        .iter()
        .flat_map(|end| std::fs::read(format!("{}{end}", path.display())).unwrap_or_default())
        .collect();
    drop(folder);
    let stands = |salt: &[u8; 32]| files.windows(32).any(|window| window == salt);
    for (n, salt) in salts.iter().enumerate() {
        assert_eq!(stands(salt), n % 7 != 0, "{n}");
    }
}

#[tokio::test]
async fn what_was_erased_leaves_the_log_once_nobody_reads_an_old_moment() {
    let (folder, path) = folder();
    let ledger = SqliteLedger::open(&path, None).unwrap();
    ledger.write(|rows| rows.put_salt(subject("alice"), &crate::vault::Salt([0xa5; 32]))).await.unwrap();
    let (go, going) = channel::<()>();
    let (begin, begun) = tokio::sync::oneshot::channel();
    let listed = ledger.list(move |rows| {
        let before = rows.salt(subject("alice"))?.is_some();
        begin.send(()).unwrap();
        going.recv().unwrap();
        Ok(before && rows.salt(subject("alice"))?.is_some())
    });
    begun.await.unwrap();
    assert!(erase(&ledger, subject("alice")).await);
    assert!(ledger.is_stained() && stands_in(folder.path(), &[0xa5; 32]), "and whoever erased can be told");
    go.send(()).unwrap();
    assert!(listed.await.unwrap(), "a list sees one moment");
    for _ in 0..100 {
        if !ledger.is_stained() {
            assert!(!stands_in(folder.path(), &[0xa5; 32]));
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("it still stands there");
}

#[tokio::test]
async fn a_log_that_a_killed_process_left_is_cut_by_whoever_opens_next() {
    let (folder, path) = folder();
    drop(SqliteLedger::open(&path, None).unwrap());
    let killed = Connection::open(&path).unwrap();
    killed.execute("INSERT INTO salts (subject, salt) VALUES (x'00', ?1)", [[0xa5; 32]]).unwrap();
    killed.execute("UPDATE salts SET salt = zeroblob(32)", []).unwrap();
    // As when it is killed: it does not tidy up.
    std::mem::forget(killed);
    assert!(stands_in(folder.path(), &[0xa5; 32]));
    let _ledger = SqliteLedger::open(&path, None).unwrap();
    assert!(!stands_in(folder.path(), &[0xa5; 32]));
}

#[tokio::test]
async fn what_comes_of_an_action_erased_in_the_middle_is_not_kept_and_the_next_one_is() {
    let (folder, path) = folder();
    let store = Store::sqlite(&path).unwrap();
    let ledger = SqliteLedger::open(&path, None).unwrap();
    let refund = Act { anew: true, ..Act::new("refund") };
    tell(&store, &refund, Some(subject("alice"))).await;
    assert!(erase(&ledger, subject("alice")).await);
    assert!(entry(&store, &refund).await.erased);
    assert!(close(&store, &refund, 1, answer()).await);
    let erased = entry(&store, &refund).await;
    assert!(erased.erased && matches!(erased.state, State::Done { .. }));
    assert_eq!(told(&erased), (false, false, false));

    tell(&store, &refund, Some(subject("alice"))).await;
    close(&store, &refund, 2, answer()).await;
    assert_eq!(told(&entry(&store, &refund).await), (true, true, true));
    assert!(!stands_in(folder.path(), ANSWER.as_bytes()));
}

#[tokio::test]
async fn without_its_key_a_store_is_refused_and_the_file_to_bring_back_is_named() {
    let (folder, path) = folder();
    let key_file = folder.path().join("ledger.db.key");
    drop(Store::sqlite(&path).unwrap());
    let kept = std::fs::read(&key_file).unwrap();

    std::fs::remove_file(&key_file).unwrap();
    let why = why_not(&path);
    assert!(why.contains("ledger.db.key is not there") && why.contains("bring that file back"), "{why}");
    assert!(!key_file.exists(), "no key is made for what it cannot read");

    GateKey::in_file(&key_file).unwrap();
    let why = why_not(&path);
    assert!(why.contains("holds another key") && why.contains("ledger.db.key back"), "{why}");

    std::fs::write(&key_file, &kept).unwrap();
    let given = Store::sqlite_with_key(&path, GateKey::generate().unwrap());
    assert!(matches!(given, Err(StoreError::Broken(why)) if why.contains("another key than the one that is given")));
    drop(Store::sqlite(&path).unwrap());
    allow(&key_file, 0o644);
    assert!(why_not(&path).contains("chmod 600"));
}

#[tokio::test]
async fn a_key_that_is_given_leaves_no_file() {
    let (folder, path) = folder();
    let key = GateKey::generate().unwrap();
    let store = Store::sqlite_with_key(&path, key.clone()).unwrap();
    assert_eq!(store.key().fingerprint(), key.fingerprint());
    let refund = Act::new("refund");
    tell(&store, &refund, None).await;
    drop(store);
    assert!(!folder.path().join("ledger.db.key").exists());
    let store = Store::sqlite_with_key(&path, key).unwrap();
    assert_eq!(told(&entry(&store, &refund).await), (true, true, false));
}

#[tokio::test]
async fn a_look_needs_no_key_and_shows_nothing_that_is_sealed() {
    let (folder, path) = folder();
    let store = Store::sqlite(&path).unwrap();
    let refund = Act::new("refund");
    tell(&store, &refund, None).await;
    close(&store, &refund, 1, answer()).await;
    drop(store);
    std::fs::remove_file(folder.path().join("ledger.db.key")).unwrap();
    let look = Store::sqlite_to_read(&path).unwrap();
    assert_eq!(told(&entry(&look, &refund).await), (false, false, false));
    assert_eq!(look.actions("acme", None, 9).await.unwrap().items[0].state, ActionState::Done);
    assert!(look.verify(None).await.unwrap().is_ok());
    assert!(!folder.path().join("ledger.db.key").exists());
}

#[tokio::test]
async fn what_is_sealed_for_one_attempt_is_not_taken_for_another() {
    let (_folder, path) = folder();
    let store = Store::sqlite(&path).unwrap();
    let (one, other) = (Act { lane: "a", ..Act::new("one") }, Act { lane: "b", ..Act::new("other") });
    for act in [&one, &other] {
        tell(&store, act, None).await;
        close(&store, act, 1, answer()).await;
    }
    let swap = "UPDATE answers SET sealed = (SELECT sealed FROM answers WHERE id = 2) WHERE id = 1";
    Connection::open(&path).unwrap().execute(swap, []).unwrap();
    assert!(store.recall(one.question(), NOW).await.is_err());
    assert_eq!(told(&entry(&store, &other).await), (true, true, true));
}
