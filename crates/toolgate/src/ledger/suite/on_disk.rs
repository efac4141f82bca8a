//! What only a file can do: outlive a process, be shared by several, and be something else than a ledger.

use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use rusqlite::Connection;
use tempfile::TempDir;

use super::super::rows::Transact;
use super::super::sqlite::SqliteLedger;
use super::super::store::Pending;
use super::*;

mod full;
mod layout;
mod sealed;

const CHILD: &str = "TOOLGATE_TEST_LEDGER";
const HOLDER: &str = "TOOLGATE_TEST_HELD";
const OPENER: &str = "TOOLGATE_TEST_OPENED";

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    (folder, path)
}

fn why_not(path: impl AsRef<Path>) -> String {
    match Store::sqlite(path) {
        Err(StoreError::Broken(text)) => text,
        Err(StoreError::Busy) => panic!("only busy"),
        Ok(_) => panic!("it opened"),
    }
}

/// Whether these bytes stand in any file of a folder.
fn stands_in(folder: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).any(|path| {
        if path.is_dir() {
            return stands_in(&path, bytes);
        }
        let found = std::fs::read(&path).unwrap();
        found.windows(bytes.len()).any(|window| window == bytes)
    })
}

fn owner_files(path: &Path) -> usize {
    std::fs::read_dir(format!("{}.owners", path.display())).unwrap().count()
}

/// Holds the writer up in the middle of a transaction, so that what comes next has to wait, until the first half of what
/// is returned is used or dropped.
async fn hold(ledger: &SqliteLedger) -> (Sender<()>, Pending<'_, ()>) {
    let (go, wait) = channel();
    let (begin, begun) = tokio::sync::oneshot::channel();
    let held = ledger.write(move |_| {
        begin.send(()).unwrap();
        let _ = wait.recv();
        Ok(())
    });
    begun.await.unwrap();
    (go, held)
}

#[tokio::test]
async fn it_survives_reopening_under_any_name() {
    let (_folder, path) = folder();
    let refund = Act::new("refund");
    let store = Store::sqlite(&path).unwrap();
    granted(&store, "ap_1").await;
    open(&store, &refund).await;
    close(&store, &refund, 1, done("1")).await;
    let stamp = store.recall(refund.question(), NOW).await.unwrap().stamp;
    drop(store);

    let store = Store::sqlite(format!("file:{}", path.display())).unwrap();
    let recall = store.recall(refund.question(), NOW).await.unwrap();
    assert!(matches!(recall.entry.unwrap().state, State::Done { .. }));
    assert_eq!(recall.stamp, stamp);
    assert_eq!(approval(&store, "ap_1").await.state, ApprovalState::Granted);
    assert_eq!(owner_files(&path), 1);
    store.append(vec![record(Kind::Read)]).await.unwrap();
    verify(&store).await;
}

#[tokio::test]
async fn what_is_not_a_writable_ledger_fails_at_open_and_says_why() {
    let (folder, path) = folder();
    let read_only = format!("file:{}?mode=ro", path.display());
    assert!(why_not(&read_only).contains("cannot be opened"));
    drop(Store::sqlite(&path).unwrap());
    let text = why_not(&read_only);
    assert!(text.contains(&read_only) && text.contains("without mode=ro"), "{text}");
    // Nothing is made beside a file that is only to be read.
    let copy = folder.path().join("copy.db");
    std::fs::copy(&path, &copy).unwrap();
    why_not(format!("file:{}?mode=ro", copy.display()));
    assert!(!folder.path().join("copy.db.owners").exists());

    assert!(why_not(folder.path()).contains("must name a file"));
    assert!(why_not(folder.path().join("no/such/folder.db")).contains("in a folder that exists"));
    assert!(why_not(":memory:").contains("not in memory"));

    let garbage = folder.path().join("garbage.db");
    std::fs::write(&garbage, "not a database, but long enough to look for a header".repeat(40)).unwrap();
    assert!(why_not(&garbage).contains("not a database"));
}

/// Takes the right to write away from a folder, and gives it back when it falls.
struct ReadOnly(PathBuf);

impl ReadOnly {
    fn new(folder: &Path) -> Self {
        allow(folder, 0o555);
        Self(folder.to_owned())
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        allow(&self.0, 0o755);
    }
}

fn allow(folder: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_look_verifies_a_copy_where_nothing_can_be_written() {
    let (folder, path) = folder();
    let store = Store::sqlite(&path).unwrap();
    store.append(vec![record(Kind::Read), record(Kind::Read)]).await.unwrap();
    drop(store);
    let shelf = folder.path().join("a shelf?");
    std::fs::create_dir(&shelf).unwrap();
    let copy = shelf.join("copy.db");
    std::fs::copy(&path, &copy).unwrap();
    let _read_only = ReadOnly::new(&shelf);

    let look = Store::sqlite_to_read(&copy).unwrap();
    assert_eq!(look.verify(None).await.unwrap().unwrap().seq, 2);
    assert_eq!(look.tail(5).await.unwrap().len(), 2);
    let StoreError::Broken(why) = look.append(vec![record(Kind::Read)]).await.unwrap_err() else { panic!("busy") };
    assert!(why.contains("to be looked at"), "{why}");
}

#[tokio::test]
async fn a_look_sees_what_a_running_gate_has_written() {
    let (_folder, path) = folder();
    let store = Store::sqlite(&path).unwrap();
    store.append(vec![record(Kind::Read)]).await.unwrap();
    let look = Store::sqlite_to_read(&path).unwrap();
    assert_eq!(look.verify(None).await.unwrap().unwrap().seq, 1);
    store.append(vec![record(Kind::Read)]).await.unwrap();
    assert_eq!(look.verify(None).await.unwrap().unwrap().seq, 2);
    assert_eq!(owner_files(&path), 1);
}

#[tokio::test]
async fn a_copy_whose_log_is_not_with_it_is_never_taken_for_whole() {
    let (folder, path) = folder();
    let store = Store::sqlite(&path).unwrap();
    store.append(vec![record(Kind::Read)]).await.unwrap();
    let shelf = folder.path().join("shelf");
    std::fs::create_dir(&shelf).unwrap();
    // A copy of a running gate's files: what was written stands in the log, and only there.
    for end in ["", "-wal"] {
        std::fs::copy(format!("{}{end}", path.display()), shelf.join(format!("copy.db{end}"))).unwrap();
    }
    let copy = shelf.join("copy.db");
    assert_eq!(Store::sqlite_to_read(&copy).unwrap().verify(None).await.unwrap().unwrap().seq, 1);
    assert!(Store::sqlite_to_read(folder.path().join("none.db")).is_err());
}

#[tokio::test]
async fn a_store_that_stays_locked_names_the_process_that_holds_it() {
    let (_folder, path) = folder();
    drop(Store::sqlite(&path).unwrap());
    let mut holder = Process::new(std::env::current_exe().unwrap())
        .args(["--exact", "ledger::suite::on_disk::holds_the_lock_for_its_parent", "--nocapture"])
        .env(HOLDER, &path)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut held = std::io::BufReader::new(holder.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("held") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut held, &mut line).unwrap() > 0, "it ended before it held the lock");
    }
    let why = why_not(&path);
    assert!(why.contains(&format!("locked by process {}", holder.id())), "{why}");
    drop(holder.stdin.take());
    holder.wait().unwrap();
}

#[test]
fn holds_the_lock_for_its_parent() {
    let Ok(path) = std::env::var(HOLDER) else { return };
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::io::Write::write_all(&mut std::io::stdout(), b"\nheld\n").unwrap();
    // Until the parent has seen enough.
    std::io::Read::read(&mut std::io::stdin(), &mut [0]).unwrap();
}

#[tokio::test]
async fn a_database_of_another_program_or_a_newer_version_is_left_as_it_is() {
    let (folder, path) = folder();
    let foreign = folder.path().join("notes.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE notes (text TEXT)").unwrap();
    let before = std::fs::read(&foreign).unwrap();
    assert!(why_not(&foreign).contains("another program"));
    assert_eq!(std::fs::read(&foreign).unwrap(), before);

    drop(Store::sqlite(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(why_not(&path).contains("newer version"));
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 1).unwrap();
    assert!(why_not(&path).contains("before the first release"));
}

#[tokio::test]
async fn a_row_that_was_damaged_is_an_error_and_not_an_absence() {
    let (_folder, path) = folder();
    let refund = Act::new("refund");
    let store = Store::sqlite(&path).unwrap();
    open(&store, &refund).await;
    Connection::open(&path).unwrap().execute("UPDATE entries SET contents = x'00'", []).unwrap();
    let Err(StoreError::Broken(text)) = store.recall(refund.question(), NOW).await else { panic!("it was read") };
    assert!(text.contains("ledger.db"), "{text}");
}

#[test]
fn many_open_a_new_file_at_once() {
    let (_folder, path) = folder();
    let open = || Store::sqlite(&path).map(drop);
    thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        for one in all {
            one.join().unwrap().unwrap();
        }
    });
    assert_eq!(owner_files(&path), 0);
}

#[test]
fn many_processes_open_a_new_file_at_once_and_share_its_key() {
    let (_folder, path) = folder();
    let start = || {
        Process::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "ledger::suite::on_disk::a_process_that_opens_a_file_among_many"])
            .env(OPENER, &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut all: Vec<_> = (0..6).map(|_| start()).collect();
    for child in &mut all {
        assert!(child.wait().unwrap().success());
    }
    drop(Store::sqlite(&path).unwrap());
    assert_eq!(owner_files(&path), 0);
}

#[tokio::test]
#[ignore = "runs only as a child of the story above"]
async fn a_process_that_opens_a_file_among_many() {
    let Ok(path) = std::env::var(OPENER) else { return };
    let name: &'static str = Box::leak(Ref::fresh().to_string().into_boxed_str());
    let refund = Act { lane: name, ..Act::new(name) };
    let store = Store::sqlite(path).unwrap();
    open(&store, &refund).await;
    assert!(close(&store, &refund, 1, done("1")).await);
    assert_eq!(entry(&store, &refund).await.action.arguments, json!({"name": name}));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_stores_that_race_for_one_action_one_wins() {
    let (_folder, path) = folder();
    let (one, two) = (Store::sqlite(&path).unwrap(), Store::sqlite(&path).unwrap());
    for round in 0..200_u32 {
        let refund = Act { anew: true, ..Act::new("refund") };
        let (first, second) = (refund.opening(&one).await, refund.opening(&two).await);
        let (first, second) = tokio::join!(one.open(first, NOW), two.open(second, NOW));
        let (first, second) = (ran(&first.unwrap()), ran(&second.unwrap()));
        assert!(first != second, "round {round}: {first} and {second}");
        let winner = if first { &one } else { &two };
        assert!(close(winner, &refund, round + 1, done("1")).await);
    }
    verify(&one).await;
    assert_eq!(one.head().await.unwrap().seq, 400);
}

#[tokio::test]
async fn an_entry_of_an_ended_store_is_unknown_and_of_a_living_one_is_not() {
    let (_folder, path) = folder();
    let (lost, held) = (Act { lane: "a", ..Act::new("lost") }, Act { lane: "b", ..Act::new("held") });
    let (ended, living) = (Store::sqlite(&path).unwrap(), Store::sqlite(&path).unwrap());
    open(&ended, &lost).await;
    open(&living, &held).await;
    let store = Store::sqlite(&path).unwrap();
    assert_eq!(sweep(&store, NOW).await, 0);
    drop(ended);
    assert_eq!(sweep(&store, NOW).await, 1);
    assert!(matches!(entry(&store, &lost).await.state, State::Unknown { .. }));
    assert!(matches!(entry(&store, &held).await.state, State::Open { .. }));
    assert!(close(&living, &held, 1, done("1")).await);
}

#[tokio::test]
async fn an_entry_of_a_killed_process_is_unknown() {
    let (_folder, path) = folder();
    let store = Store::sqlite(&path).unwrap();
    let child = Process::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "ledger::suite::on_disk::a_process_that_is_killed_in_the_middle"])
        .env(CHILD, &path)
        .output()
        .unwrap();
    assert!(!child.status.success());
    let refund = Act::new("refund");
    assert!(matches!(entry(&store, &refund).await.state, State::Open { .. }), "the child did not come far enough");
    assert_eq!(owner_files(&path), 2);

    assert_eq!(sweep(&store, NOW).await, 1);
    assert!(matches!(entry(&store, &refund).await.state, State::Unknown { .. }));
    // Nothing is open under its name now: whoever opens next forgets it.
    let next = Store::sqlite(&path).unwrap();
    assert_eq!(owner_files(&path), 2);
    verify(&next).await;
}

#[tokio::test]
#[ignore = "runs only as the child of the story above"]
async fn a_process_that_is_killed_in_the_middle() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let store = Store::sqlite(path).unwrap();
    open(&store, &Act::new("refund")).await;
    std::process::abort();
}

#[tokio::test]
async fn a_failing_transaction_among_many_leaves_the_others() {
    let (_folder, path) = folder();
    let ledger = SqliteLedger::open(&path, None).unwrap();
    let (go, held) = hold(&ledger).await;
    let mut answers = Vec::new();
    for n in 0..20_u64 {
        answers.push(ledger.write(move |rows| {
            let body = serde_json::Map::from_iter([("n".to_owned(), n.into())]);
            let record = Record::new(Kind::Read, NOW, Ref::fresh(), body);
            rows.push_record(record.seal(rows.head()?))?;
            match n {
                7 => Err(StoreError::Broken("seven".into())),
                11 => panic!("eleven"),
                _ => Ok(()),
            }
        }));
    }
    go.send(()).unwrap();
    held.await.unwrap();
    for (n, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.await.is_err(), n == 7 || n == 11, "{n}");
    }
    let records = ledger.read(|rows| rows.records(0, 100)).await.unwrap();
    assert!(records.iter().try_fold(Head::empty(), Head::follow).is_ok());
    assert_eq!(records.len(), 18);
    assert!(!records.iter().any(|record| record.body.contains("\"n\":7,") || record.body.contains("\"n\":11,")));
}

#[tokio::test]
async fn too_much_waiting_work_is_turned_away_and_what_waits_is_done() {
    let (_folder, path) = folder();
    let ledger = SqliteLedger::open(&path, None).unwrap();
    let (go, held) = hold(&ledger).await;
    let push = || {
        ledger.write(|rows| {
            let sealed = record(Kind::Read).seal(rows.head()?);
            rows.push_record(sealed)
        })
    };
    let answers: Vec<_> = (0..1100).map(|_| push()).collect();
    let last = push();
    assert_eq!(last.await, Err(StoreError::Busy));
    go.send(()).unwrap();
    held.await.unwrap();
    let mut done = 0;
    for answer in answers {
        match answer.await {
            Ok(()) => done += 1,
            Err(error) => assert_eq!(error, StoreError::Busy),
        }
    }
    // Those that fit the queue, and of a batch that had begun perhaps some more.
    assert!((1024..1100).contains(&done), "{done}");
    assert_eq!(ledger.read(|rows| rows.head()).await.unwrap().seq, done);
}

#[tokio::test]
async fn what_was_asked_is_done_though_nobody_waits() {
    let (_folder, path) = folder();
    let store = Store::sqlite(&path).unwrap();
    drop(store.append(vec![record(Kind::Read)]));
    drop(store);
    assert_eq!(Store::sqlite(&path).unwrap().head().await.unwrap().seq, 1);
}

#[tokio::test]
async fn a_list_that_takes_its_time_holds_up_no_call() {
    let (_folder, path) = folder();
    let ledger = SqliteLedger::open(&path, None).unwrap();
    let (go, going) = std::sync::mpsc::channel::<()>();
    let listed = ledger.list(move |rows| {
        going.recv().unwrap();
        rows.records(0, 100)
    });
    let read = tokio::time::timeout(std::time::Duration::from_secs(20), ledger.read(|rows| rows.head()));
    assert_eq!(read.await.unwrap().unwrap(), Head::empty());
    go.send(()).unwrap();
    assert_eq!(listed.await.unwrap(), []);
}
