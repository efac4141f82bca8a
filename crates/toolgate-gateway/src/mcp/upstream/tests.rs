//! What a server does wrong, and what becomes of its calls. The servers are `tests/upstreams/misbehaving.py`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic, and look for what it started"
)]

use std::future::pending;
use std::sync::Mutex;

use super::*;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/misbehaving.py");
/// Long enough for any machine; nothing here waits for it to pass.
const LONG: Duration = Duration::from_secs(60);

struct Bench {
    upstream: Upstream,
    said: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    fn new(arguments: &[&str]) -> Self {
        let mut command = vec!["python3".to_owned(), SERVER.to_owned()];
        command.extend(arguments.iter().map(|&argument| argument.to_owned()));
        Self::of(command)
    }

    fn of(command: Vec<String>) -> Self {
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&said);
        let program = Program { command, directory: None, environment: Environment::Inherited };
        let say: Say = Arc::new(move |said| log.lock().unwrap().push(said.text().to_owned()));
        Self { upstream: Upstream::new(program, say), said }
    }

    async fn call(&self, arguments: &str) -> Result<String, CallFailure> {
        self.call_until(arguments, LONG, pending()).await
    }

    async fn call_until(
        &self,
        arguments: &str,
        within: Duration,
        cancelled: impl Future<Output = ()>,
    ) -> Result<String, CallFailure> {
        self.call_of(Access::Read, arguments, within, cancelled).await
    }

    async fn call_of(
        &self,
        access: Access,
        arguments: &str,
        within: Duration,
        cancelled: impl Future<Output = ()>,
    ) -> Result<String, CallFailure> {
        let meta = Map::new();
        let call = ToolCall { tool: "do", arguments, meta: &meta, access, afterwards: None };
        match self.upstream.call(call, Over::Any, Instant::now() + within, cancelled).await? {
            Answered::Result(result) => {
                let result: Value = serde_json::from_slice(&result).unwrap();
                Ok(result["content"][0]["text"].as_str().unwrap_or("(none)").to_owned())
            }
            Answered::Error { code, .. } => Ok(format!("error {code:?}")),
        }
    }

    fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    fn generation(&self) -> Option<u64> {
        self.upstream.mark().map(|mark| mark.generation)
    }

    fn count(&self, name: &str) -> u64 {
        self.upstream.counts().told()[name].as_u64().unwrap()
    }

    async fn list(&self) -> Result<Listing, NotReady> {
        self.upstream.list(Instant::now() + LONG).await
    }
}

/// Waits for what must come.
async fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} never came");
}

#[tokio::test]
async fn nothing_is_started_before_it_is_needed() {
    let bench = Bench::new(&["well"]);
    assert_eq!(bench.generation(), None);
    assert_eq!(bench.call("{}").await.unwrap(), "{}");
    assert_eq!(bench.generation(), Some(1));
    let server = bench.upstream.server().unwrap();
    assert_eq!((server.name.as_str(), server.protocol.as_str()), ("bad\\u{001B}name", "2025-06-18"));
    bench.upstream.close().await;
    assert_eq!(bench.generation(), None);
}

#[tokio::test]
async fn numbers_reach_the_server_as_they_are() {
    let bench = Bench::new(&["well"]);
    let exact = r#"{"n": 18446744073709551615, "m": -9223372036854775808}"#;
    assert_eq!(bench.call(exact).await.unwrap(), exact);
}

#[tokio::test]
async fn every_known_revision_is_spoken_and_no_other() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let bench = Bench::new(&["version", version]);
        assert_eq!(bench.call("{}").await.unwrap(), "{}");
        assert_eq!(bench.upstream.server().unwrap().protocol, version);
    }
    let Err(CallFailure::NotReady(NotReady { why, .. })) = Bench::new(&["future"]).call("{}").await else { panic!() };
    assert_eq!(why, "it speaks no revision of MCP that is known here");
}

#[tokio::test]
async fn a_server_without_a_handshake_is_told_everything_with_each_request() {
    for answer in ["unknown", "unsupported"] {
        let bench = Bench::new(&["stateless", answer]);
        assert_eq!(bench.call(r#"{"a": 1}"#).await.unwrap(), r#"{"a": 1}"#);
        assert_eq!(bench.list().await.unwrap().definitions.len(), 1);
        let server = bench.upstream.server().unwrap();
        assert_eq!((server.name.as_str(), server.protocol.as_str()), ("stateless", "2026-07-28"));
    }
}

#[tokio::test]
async fn noise_is_skipped_and_counted_and_its_first_line_told_once() {
    let bench = Bench::new(&["noise"]);
    for _ in 0..3 {
        assert_eq!(bench.call("{}").await.unwrap(), "{}");
    }
    assert_eq!(bench.count("noise_lines"), 12, "four lines a call; a blank one is none");
    assert_eq!(bench.said(), ["upstream: skipped a line on its stdout that is no message (13 bytes)"]);
}

#[tokio::test]
async fn a_message_may_come_byte_by_byte() {
    assert_eq!(Bench::new(&["bytes"]).call("{}").await.unwrap(), "{}");
}

#[tokio::test]
async fn a_line_without_end_ends_the_server_and_its_calls() {
    let bench = Bench::new(&["endless"]);
    assert_eq!(bench.call("{}").await.unwrap_err(), CallFailure::Died);
    assert_eq!(bench.said(), ["upstream: it is ended: a line on its stdout is over 16 MB"]);
}

#[tokio::test]
async fn stderr_is_read_whatever_comes_and_shown_in_part() {
    let bench = Bench::new(&["stderr"]);
    assert_eq!(bench.call("{}").await.unwrap(), "{}");
    eventually("the rest of stderr", || bench.count("dropped_stderr_lines") == 20_000 - 200).await;
    let said = bench.said();
    assert_eq!(said.len(), 201);
    assert_eq!(said[1], "upstream: line 1 \\u{001B}[2J");
}

#[tokio::test]
async fn calls_of_a_server_that_dies_end_at_once_and_the_next_starts_another() {
    let folder = tempfile::tempdir().unwrap();
    let flag = folder.path().join("died");
    let bench = Bench::new(&["dies", flag.to_str().unwrap()]);
    assert_eq!(bench.call("{}").await.unwrap_err(), CallFailure::Died);
    assert_eq!(bench.call("{}").await.unwrap(), "alive");
    assert_eq!((bench.count("restarts"), bench.generation()), (1, Some(2)));
}

#[tokio::test]
async fn a_server_that_always_dies_is_held_back_longer_each_time() {
    let bench = Bench::new(&["dies"]);
    let mut held_back = None;
    for _ in 0..8 {
        match bench.call("{}").await.unwrap_err() {
            CallFailure::Died => {}
            CallFailure::NotReady(NotReady { retry_after, .. }) => {
                held_back = retry_after;
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(held_back.unwrap() > PATIENCE, "a call waits for a short while only");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_and_nothing_was_sent() {
    let bench = Bench::of(vec!["no-such-program-anywhere".into()]);
    let Err(CallFailure::NotReady(NotReady { why, .. })) = bench.call("{}").await else { panic!() };
    assert_eq!(why, "there is no such program");
}

#[tokio::test]
async fn answers_that_nobody_waits_for_are_dropped() {
    let bench = Bench::new(&["strays"]);
    assert_eq!(bench.call("{}").await.unwrap(), "first");
    assert_eq!(bench.call("{}").await.unwrap(), "first");
    assert!(bench.count("stray_answers") >= 5, "an id of another type, one of nobody, and the second answers");
}

#[tokio::test]
async fn two_calls_at_once_get_their_own_answers_in_whatever_order() {
    let bench = Bench::new(&["swapped"]);
    let (one, two) = tokio::join!(bench.call(r#"{"n": 1}"#), bench.call(r#"{"n": 2}"#));
    assert_eq!((one.unwrap().as_str(), two.unwrap().as_str()), (r#"{"n": 1}"#, r#"{"n": 2}"#));
}

#[tokio::test]
async fn a_server_may_ask_whether_we_are_there_and_nothing_else() {
    let bench = Bench::new(&["asks"]);
    assert_eq!(bench.call("{}").await.unwrap(), r#"{"\"q1\"": {}, "2": -32601, "3": -32601}"#);
    assert_eq!(bench.count("refused_requests"), 2);
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_fails_its_call_alone() {
    let bench = Bench::new(&["broken"]);
    assert_eq!(bench.call("{}").await.unwrap_err(), CallFailure::Broken);
    assert_eq!(bench.generation(), Some(1), "the server goes on");
}

#[tokio::test]
async fn a_server_that_hangs_costs_a_call_its_time_and_no_more() {
    let bench = Bench::new(&["hangs"]);
    bench.list().await.unwrap();
    let failure = bench.call_until("{}", Duration::from_millis(300), pending()).await.unwrap_err();
    assert_eq!(failure, CallFailure::TimedOut);
}

#[tokio::test]
async fn a_server_that_is_stuck_is_ended_and_the_next_call_finds_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new(&["stuck", folder.path().join("once").to_str().unwrap()]);
    bench.list().await.unwrap();
    let failure = bench.call_until("{}", Duration::from_millis(300), pending()).await.unwrap_err();
    assert_eq!(failure, CallFailure::TimedOut);
    // A call that went to the same process ends with it, long before its own deadline.
    assert_eq!(bench.call("{}").await.unwrap_err(), CallFailure::Died);
    assert_eq!(bench.call("{}").await.unwrap(), "alive");
    assert!(bench.said().iter().any(|line| line.contains("does not answer a ping")), "{:?}", bench.said());
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_known_by_the_id_in_it() {
    for members in [r#""result":{"n":NaN}"#, r#""result":{},"result":{}"#, r#""result":{"n":1"#] {
        let bench = Bench::new(&["unreadable", members]);
        bench.list().await.unwrap();
        assert_eq!(bench.call("{}").await.unwrap_err(), CallFailure::Broken, "{members}");
    }
}

#[tokio::test]
async fn a_call_whose_caller_goes_away_is_cancelled_and_may_still_be_answered() {
    let bench = Bench::new(&["cancel"]);
    bench.list().await.unwrap();
    let gone = tokio::time::sleep(Duration::from_millis(200));
    assert_eq!(bench.call_until("{}", LONG, gone).await.unwrap(), "cancelled in time");
    let deaf = Bench::new(&["hangs"]);
    deaf.list().await.unwrap();
    let gone = tokio::time::sleep(Duration::from_millis(200));
    assert_eq!(deaf.call_until("{}", LONG, gone).await.unwrap_err(), CallFailure::Cancelled);
    let before = deaf.call_until("{}", LONG, std::future::ready(())).await.unwrap_err();
    assert_eq!(before, CallFailure::NotSent { cancelled: true });
}

#[tokio::test]
async fn a_write_whose_caller_goes_away_has_until_its_deadline() {
    let bench = Bench::new(&["slow", "3"]);
    bench.list().await.unwrap();
    let gone = || tokio::time::sleep(Duration::from_millis(100));
    let read = bench.call_of(Access::Read, "{}", LONG, gone()).await;
    assert_eq!(read.unwrap_err(), CallFailure::Cancelled, "nobody needs it any more");
    assert_eq!(bench.call_of(Access::Write, "{}", LONG, gone()).await.unwrap(), "{}");
}

#[tokio::test]
async fn one_revision_answers_in_arrays_and_no_other() {
    let batched = Bench::new(&["batches", "2025-03-26"]);
    let (one, two) = tokio::join!(batched.call(r#"{"n": 1}"#), batched.call(r#"{"n": 2}"#));
    assert_eq!((one.unwrap().as_str(), two.unwrap().as_str()), (r#"{"n": 1}"#, r#"{"n": 2}"#));
    assert_eq!(batched.count("noise_lines"), 0);
    let other = Bench::new(&["batches", "2025-06-18"]);
    other.list().await.unwrap();
    let (one, two) = tokio::join!(other.call("{}"), other.call("{}"));
    assert_eq!((one.unwrap_err(), two.unwrap_err()), (CallFailure::Broken, CallFailure::Broken));
}

#[tokio::test]
async fn a_close_ends_a_start_that_is_on_its_way_and_nothing_starts_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let bench = Bench::new(&["mute", file.to_str().unwrap()]);
    let upstream = bench.upstream.clone();
    let list = tokio::spawn(async move { upstream.list(Instant::now() + LONG).await });
    eventually("the start", || std::fs::read_to_string(&file).is_ok_and(|pid| !pid.is_empty())).await;
    bench.upstream.close().await;
    assert_eq!(list.await.unwrap().unwrap_err().why, "it is closed");
    let pid = std::fs::read_to_string(&file).unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(bench.list().await.unwrap_err().why, "it is closed");
}

#[tokio::test]
async fn a_program_that_may_not_be_started_is_not() {
    let program = Program { command: vec!["cat".into()], directory: None, environment: Environment::Inherited };
    let check = || Err("it is another one".to_owned());
    let upstream = Upstream::checked(program, Arc::new(|_| {}), Box::new(check));
    for _ in 0..3 {
        assert_eq!(upstream.list(Instant::now() + LONG).await.unwrap_err().why, "it is another one");
    }
}

#[tokio::test]
async fn a_change_of_the_list_moves_its_mark_and_a_later_list_has_that() {
    let bench = Bench::new(&["changes"]);
    let before = bench.list().await.unwrap().mark;
    assert_eq!(bench.upstream.mark(), Some(before));
    bench.call("{}").await.unwrap();
    assert_ne!(bench.upstream.mark(), Some(before));
    let after = bench.list().await.unwrap().mark;
    assert_eq!(bench.upstream.mark(), Some(after));
}

#[tokio::test]
async fn a_list_that_changes_while_it_is_listed_is_listed_again() {
    let once = Bench::new(&["restless", "1"]);
    let listing = once.list().await.unwrap();
    assert_eq!(once.upstream.mark(), Some(listing.mark));
    let why = Bench::new(&["restless", "1000"]).list().await.unwrap_err().why;
    assert_eq!(why, "its list of tools changes each time that it is listed");
}

#[tokio::test]
async fn a_list_has_bounds() {
    assert_eq!(Bench::new(&["pages", "98"]).list().await.unwrap().definitions.len(), 99);
    for (mode, reason) in [
        (["pages", "200"].as_slice(), "its list of tools has more than 100 pages"),
        (&["circle"], "its list of tools comes back to a page that it had"),
        (&["many"], "it lists more than 1000 tools"),
        (&["huge"], "it ended before it answered"),
    ] {
        assert_eq!(Bench::new(mode).list().await.unwrap_err().why, reason);
    }
}

#[tokio::test]
async fn a_call_that_wants_one_connection_goes_over_no_other() {
    let bench = Bench::new(&["well"]);
    let over = async |mark| {
        let meta = Map::new();
        let call = ToolCall { tool: "do", arguments: "{}", meta: &meta, access: Access::Read, afterwards: None };
        bench.upstream.call(call, Over::Listed(mark), Instant::now() + LONG, pending()).await
    };
    let first = Mark { generation: 1, changes: 0 };
    assert!(matches!(over(first).await, Err(CallFailure::NotReady(_))), "nothing is started for it");
    assert_eq!(bench.list().await.unwrap().mark, first);
    assert!(over(first).await.is_ok());
    assert!(matches!(over(Mark { generation: 2, ..first }).await, Err(CallFailure::NotReady(_))));
    assert!(matches!(over(Mark { changes: 1, ..first }).await, Err(CallFailure::NotReady(_))));
}

#[tokio::test]
async fn an_error_of_the_server_is_an_answer() {
    let bench = Bench::new(&["error", "-32602"]);
    assert_eq!(bench.call("{}").await.unwrap(), "error Some(-32602)");
}

#[tokio::test]
async fn whatever_the_program_started_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let bench = Bench::new(&["family", file.to_str().unwrap()]);
    bench.list().await.unwrap();
    let pid = std::fs::read_to_string(&file).unwrap();
    let alive = || {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !state.is_empty() && !state.contains(") Z ")
    };
    assert!(alive());
    bench.upstream.close().await;
    eventually("the end of the grandchild", || !alive()).await;
}

#[tokio::test]
async fn a_program_that_does_not_end_by_itself_is_ended() {
    let bench = Bench::new(&["stays"]);
    bench.list().await.unwrap();
    bench.upstream.close().await;
    assert_eq!(bench.generation(), None);
}

#[tokio::test]
async fn a_program_of_a_folder_sees_what_it_needs_and_what_was_listed_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("environment");
    let program = Program {
        command: ["sh", "-c", "env > \"$0\"; cat", file.to_str().unwrap()].map(str::to_owned).to_vec(),
        directory: None,
        environment: Environment::Listed(BTreeMap::from([("TOKEN".to_owned(), "t".to_owned())])),
    };
    let upstream = Upstream::new(program, Arc::new(|_| {}));
    // It says our own words back, which are no answer.
    let _ = upstream.list(Instant::now() + Duration::from_millis(200)).await;
    eventually("the environment", || std::fs::read_to_string(&file).is_ok_and(|text| text.contains("TOKEN=t"))).await;
    let text = std::fs::read_to_string(&file).unwrap();
    for name in text.lines().filter_map(|line| line.split('=').next()) {
        let by_the_shell = ["PWD", "SHLVL", "_", "OLDPWD"].contains(&name);
        assert!(by_the_shell || ["PATH", "HOME", "LANG", "TMPDIR", "TZ", "TOKEN"].contains(&name), "{name}");
    }
}
