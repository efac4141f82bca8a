#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use tempfile::TempDir;
use toolgate::audit::verify::{Checkpoints as Kept, Verifier};
use toolgate::backend::FakeTool;
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate};

use super::*;
use crate::config::To;

/// A gate, its keeper, and what the keeper says.
struct Kit {
    folder: TempDir,
    gate: Gate,
    keeper: Keeper,
    said: Arc<Mutex<Vec<String>>>,
    /// The one that the gate's own tasks live in.
    runtime: tokio::runtime::Runtime,
}

impl Kit {
    fn new(to: impl FnOnce(&Path) -> To, every: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let contract = json!({ "description": "Counts.", "effect": "read", "input": { "properties": {} } });
        let tool = FakeTool::fixed(json!(1)).tool("count", contract.as_object().unwrap().clone());
        let permit = "permit (principal, action, resource);";
        let store = Store::sqlite(folder.path().join("gate.db")).unwrap();
        let gate = Gate::builder().tool(tool).policy(permit).store(store).build().unwrap();
        let wanted = Checkpoints { to: to(folder.path()), every, key: folder.path().join("checkpoints.key") };
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&said);
        let say: Say = Arc::new(move |said| heard.lock().unwrap().push(said.text().to_owned()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { folder, gate, keeper: Keeper::new(Some(wanted), say), said, runtime }
    }

    /// Makes a call, and waits until it is on record.
    fn call(&self) {
        self.runtime.block_on(async {
            let session = Session::new(Principal::new("local", "alice"), "acme");
            let before = self.gate.store().tail(1).await.unwrap();
            self.gate.call(Call::new("call_1", "count", "{}"), &session).await.unwrap();
            while self.gate.store().tail(1).await.unwrap() == before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    }

    fn attend(&self) {
        self.keeper.attend(self.gate.store()).unwrap();
    }

    fn said(&self) -> String {
        self.said.lock().unwrap().join("\n")
    }

    /// How many lines the record agrees with; none may be wrong.
    fn agreed(&self, lines: &str) -> u64 {
        let kept = Kept::read(lines.as_bytes(), None).unwrap();
        let report = self.runtime.block_on(self.gate.store().examine(Verifier::new().checkpoints(Some(kept)))).unwrap();
        assert!(report.holds(), "{report:?}\n{lines}");
        report.checkpoints.unwrap().agreed
    }
}

/// A server of the operator's, which may be told to fail.
struct Sink {
    address: SocketAddr,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Sink {
    /// Answers requests with these statuses in turn, and then with 204.
    fn start(address: &str, statuses: &[u16]) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let (address, lines) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let (kept, mut statuses) = (Arc::clone(&lines), Vec::from(statuses).into_iter());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut length = 0;
                let mut heads = Vec::new();
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) < 3 {
                        break;
                    }
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    heads.push(line);
                }
                if heads.is_empty() {
                    continue;
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let status = statuses.next().unwrap_or(204);
                if status == 204 {
                    assert!(heads[0].starts_with("POST /toolgate?of=acme HTTP/1.1"), "{heads:?}");
                    kept.lock().unwrap().push(String::from_utf8(body).unwrap());
                }
                let answer = format!(
                    "HTTP/1.1 {status} X\r\nlocation: /other\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                );
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { address, lines }
    }

    fn lines(&self) -> String {
        self.lines.lock().unwrap().concat()
    }
}

fn url(address: &SocketAddr) -> To {
    To::Url(format!("http://{address}/toolgate?of=acme").parse().unwrap())
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(15), "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn lines_in(folder: &Path) -> PathBuf {
    folder.join("checkpoints.jsonl")
}

fn to_a_file(folder: &Path) -> To {
    To::File(lines_in(folder))
}

const OFTEN: Duration = Duration::from_millis(20);
const SELDOM: Duration = Duration::from_secs(3600);

#[test]
fn the_end_of_the_record_is_kept_whenever_it_moved_and_at_the_end() {
    let kit = Kit::new(to_a_file, OFTEN);
    kit.attend();
    let file = lines_in(kit.folder.path());
    let text = || std::fs::read_to_string(&file).unwrap_or_default();
    for count in 1..=3 {
        kit.call();
        until("each entry has its checkpoint", || text().lines().count() == count);
    }
    kit.call();
    kit.keeper.finish();
    let whole = text();
    assert!(whole.ends_with('\n'));
    assert_eq!(kit.agreed(&whole), 4);
    assert_eq!(kit.said(), "");
    kit.keeper.finish();
    assert_eq!(text(), whole, "what has ended writes nothing");
}

#[test]
fn a_short_command_writes_one_line_and_none_where_nothing_moved() {
    let kit = Kit::new(to_a_file, SELDOM);
    for (calls, lines) in [(2, 1), (0, 1), (1, 2)] {
        kit.attend();
        (0..calls).for_each(|_| kit.call());
        kit.keeper.finish();
        let text = std::fs::read_to_string(lines_in(kit.folder.path())).unwrap();
        assert_eq!((text.lines().count(), kit.agreed(&text)), (lines, lines as u64));
    }
}

#[test]
fn what_a_crash_left_unfinished_is_no_part_of_the_next_line() {
    let kit = Kit::new(to_a_file, SELDOM);
    let file = lines_in(kit.folder.path());
    let once = || {
        kit.call();
        kit.attend();
        kit.keeper.finish();
        std::fs::read_to_string(&file).unwrap()
    };
    let first = once();
    std::fs::write(&file, format!("{first}{}", &first[..40])).unwrap();
    let second = once();
    assert_eq!((second.lines().count(), kit.agreed(&second)), (2, 2));
    // A line that is whole but for its end is kept.
    std::fs::write(&file, second.trim_end()).unwrap();
    assert_eq!(kit.agreed(&once()), 3);
}

#[test]
fn many_processes_append_whole_lines_to_one_file() {
    let kit = Kit::new(to_a_file, SELDOM);
    kit.call();
    let key = SigningKey::in_file(&kit.folder.path().join("checkpoints.key")).unwrap();
    let asked = kit.runtime.block_on(kit.gate.store().checkpoint(&key, None, SystemClock.now())).unwrap();
    let Asked::Moved(checkpoint) = asked else { panic!("{asked:?}") };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let delivery = Delivery::new(&to_a_file(kit.folder.path()));
                (0..25).for_each(|_| delivery.deliver(&checkpoint).unwrap());
            });
        }
    });
    assert_eq!(kit.agreed(&std::fs::read_to_string(lines_in(kit.folder.path())).unwrap()), 100);
}

#[test]
fn a_record_that_was_changed_under_a_running_gate_is_told_and_signed_no_more() {
    let kit = Kit::new(to_a_file, SELDOM);
    kit.call();
    kit.attend();
    kit.keeper.finish();
    let store = rusqlite::Connection::open(kit.folder.path().join("gate.db")).unwrap();
    store.execute("UPDATE records SET hash = zeroblob(32) WHERE seq = 1", []).unwrap();
    kit.call();
    kit.attend();
    kit.keeper.finish();
    assert_eq!(std::fs::read_to_string(lines_in(kit.folder.path())).unwrap().lines().count(), 1);
    assert!(kit.said().contains("does not hold entry 1 as it was signed"), "{}", kit.said());
}

#[test]
fn a_server_gets_a_line_a_request() {
    let sink = Sink::start("127.0.0.1:0", &[]);
    let kit = Kit::new(|_| url(&sink.address), OFTEN);
    kit.attend();
    for count in 1..=2 {
        kit.call();
        until("it was delivered", || sink.lines().lines().count() == count);
    }
    kit.call();
    kit.keeper.finish();
    assert_eq!(kit.agreed(&sink.lines()), 3);
    assert_eq!(kit.said(), "");
}

#[test]
fn a_server_that_fails_for_a_while_holds_up_nothing_and_the_next_line_covers_what_it_missed() {
    let sink = Sink::start("127.0.0.1:0", &[500, 302]);
    let kit = Kit::new(|_| url(&sink.address), OFTEN);
    kit.attend();
    kit.call();
    until("the failure is told", || kit.said().contains("(2 in a row)"));
    let begun = Instant::now();
    kit.call();
    assert!(begun.elapsed() < Duration::from_secs(5), "no call waits for it");
    until("it was delivered", || !sink.lines().is_empty());
    kit.keeper.finish();
    assert_eq!(kit.agreed(&sink.lines()), 1);
    let said = kit.said();
    assert!(said.contains("status 500") && said.contains("status 302"), "a redirect is not followed: {said}");
    assert!(said.contains("kept again, after 2"), "{said}");
    assert!(!said.contains("of=acme"), "what stands behind the host is told to nobody: {said}");
}

#[test]
fn a_server_that_is_down_is_asked_again_until_it_is_there() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let kit = Kit::new(|_| url(&free), OFTEN);
    kit.attend();
    kit.call();
    until("the failure is told", || kit.said().contains("no checkpoint was kept (1 in a row)"));
    let sink = Sink::start(&free.to_string(), &[]);
    until("it was delivered", || !sink.lines().is_empty());
    kit.keeper.finish();
    assert_eq!(kit.agreed(&sink.lines()), 1);
}

#[test]
fn the_end_of_a_gate_waits_for_a_server_that_says_nothing_no_longer_than_it_must() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let kit = Kit::new(|_| url(&silent.local_addr().unwrap()), SELDOM);
    kit.attend();
    kit.call();
    let begun = Instant::now();
    kit.keeper.finish();
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert!(kit.said().contains("no checkpoint was kept"), "{}", kit.said());
}
