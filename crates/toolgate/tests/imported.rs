//! Tools of somebody else's server: what their contracts say that a gate's own do not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may panic"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate::backend::{Answer, Backend, Dispatch, Failure, FailureKind, Found, Looking, Lookup, Running};
use toolgate::clock::{ManualClock, Millis};
use toolgate::ledger::Store;
use toolgate::refusal::{Code, Effect};
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Reply, Tool};

/// A file that is written, by several tools.
#[derive(Default)]
struct File {
    text: Mutex<String>,
    writes: AtomicUsize,
    at_once: AtomicUsize,
}

impl Backend for File {
    fn run(&self, dispatch: Dispatch) -> Running<'_> {
        let text = dispatch.context().arguments()["text"].as_str().unwrap().to_owned();
        Box::pin(async move {
            assert_eq!(self.at_once.fetch_add(1, Ordering::SeqCst), 0, "two writes of the run overlap");
            tokio::time::sleep(Duration::from_millis(2)).await;
            self.at_once.fetch_sub(1, Ordering::SeqCst);
            if text == "fail" {
                let failure = Failure::new(FailureKind::Reported, "tool_error", "it said so");
                return Answer::failed(Effect::Unknown, failure.said("no room \u{202E}left\n"));
            }
            *self.text.lock().unwrap() = text;
            self.writes.fetch_add(1, Ordering::SeqCst);
            Answer::done(r#"{"content":[{"type":"text","text":"written"}]}"#)
        })
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        Box::pin(async { Found::Absent })
    }
}

fn write(name: &str, more: Value, file: &Arc<File>) -> Tool {
    let mut contract: Map<String, Value> = json!({
        "description": "Writes the file.", "effect": "write", "imported": true,
        "input": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "once": {"scope": "run", "repeat": "after_other", "retain": "2m"},
        "lane": {"scope": "run"},
        "backend": {"kind": "mcp", "upstream": "files"},
    })
    .as_object()
    .unwrap()
    .clone();
    contract.extend(more.as_object().unwrap().clone());
    Tool::new(name, contract, Arc::clone(file) as Arc<dyn Backend>)
}

struct Desk {
    gate: Gate,
    file: Arc<File>,
    clock: Arc<ManualClock>,
}

impl Desk {
    fn new(more: Value) -> Self {
        let (file, clock) = (Arc::<File>::default(), Arc::new(ManualClock::at(Millis(1_000_000))));
        let gate = Gate::builder()
            .policy("permit (principal, action, resource);")
            .store(Store::memory())
            .clock(Arc::clone(&clock) as _)
            .tool(write("write_file", more.clone(), &file))
            .tool(write("edit_file", more, &file))
            .build()
            .unwrap();
        Self { gate, file, clock }
    }

    async fn call(&self, run: &str, tool: &str, text: &str) -> Reply {
        let session = Session::new(Principal::new("local", "local"), "local").in_run(run);
        let arguments = json!({ "text": text }).to_string();
        self.gate.call(Call::new("c", tool, arguments), &session).await.unwrap()
    }

    fn writes(&self) -> usize {
        self.file.writes.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn what_is_written_again_after_something_else_was_written_is_written() {
    let desk = Desk::new(json!({}));
    for text in ["v1", "v2", "v1"] {
        assert!(!desk.call("r", "write_file", text).await.replayed());
    }
    assert_eq!(*desk.file.text.lock().unwrap(), "v1");
    assert!(desk.call("r", "write_file", "v1").await.replayed(), "nothing came between");
    assert!(!desk.call("r", "edit_file", "v3").await.replayed());
    assert!(!desk.call("r", "write_file", "v1").await.replayed(), "another tool of the lane came between");
    assert_eq!(desk.writes(), 5);
}

#[tokio::test]
async fn an_equal_write_is_new_once_the_first_is_no_longer_retained() {
    let desk = Desk::new(json!({}));
    desk.call("r", "write_file", "v1").await;
    desk.clock.advance(Duration::from_secs(119));
    assert!(desk.call("r", "write_file", "v1").await.replayed());
    desk.clock.advance(Duration::from_secs(2));
    assert!(!desk.call("r", "write_file", "v1").await.replayed());
    assert!(desk.call("r", "write_file", "v1").await.replayed());
    assert_eq!(desk.writes(), 2);
}

#[tokio::test]
async fn another_run_is_another_desk() {
    let desk = Desk::new(json!({}));
    desk.call("r1", "write_file", "v1").await;
    assert!(!desk.call("r2", "write_file", "v1").await.replayed());
    assert!(desk.call("r1", "write_file", "v1").await.replayed(), "what r2 wrote is not on r1's lane");
}

#[tokio::test]
async fn the_writes_of_a_run_come_one_after_the_other() {
    let desk = Desk::new(json!({}));
    let calls =
        ["a", "b", "c", "d"].map(|text| desk.call("r", if text < "c" { "write_file" } else { "edit_file" }, text));
    for reply in futures_util::future::join_all(calls).await {
        assert!(reply.is_ok(), "{:?}", reply.refusal());
    }
    assert_eq!(desk.writes(), 4);
}

#[tokio::test]
async fn an_unknown_write_does_not_hold_the_lane_of_its_run() {
    let desk = Desk::new(json!({}));
    assert_eq!(desk.call("r", "write_file", "fail").await.effect(), Effect::Unknown);
    assert!(desk.call("r", "write_file", "v1").await.is_ok());
    let again = desk.call("r", "write_file", "fail").await;
    assert_eq!((again.code(), again.effect()), (Some(Code::OutcomeUnknown), Effect::Unknown), "it is never run again");
}

#[tokio::test]
async fn a_tool_that_speaks_for_itself_says_why_it_failed() {
    let desk = Desk::new(json!({}));
    let reply = desk.call("r", "write_file", "fail").await;
    let text = serde_json::to_string(&reply).unwrap();
    assert_eq!(reply.code(), Some(Code::ToolFailed));
    assert!(text.contains(r#""tool_said":"no room \\u{202E}left""#), "{text}");
    assert!(!text.contains("it said so"), "{text}");
}

#[tokio::test]
async fn a_contract_with_words_of_its_own_lets_no_tool_speak() {
    let mapped = json!({ "errors": {"tool_error": {"code": "full", "message": "The disk is full."}} });
    let elsewhere = json!({ "errors": {"other": {"code": "other", "message": "Something else."}} });
    let own = json!({ "imported": false, "output": {"type": "object", "properties": {}} });
    for more in [mapped, elsewhere, own] {
        let reply = Desk::new(more).call("r", "write_file", "fail").await;
        assert_eq!(reply.refusal().unwrap().words_of_the_tool(), None);
    }
}

#[test]
fn a_lane_is_that_of_its_key_or_that_of_the_run() {
    let fault = |lane: Value| {
        let tool = write("write_file", json!({ "lane": lane }), &Arc::default());
        let built =
            Gate::builder().policy("permit (principal, action, resource);").store(Store::memory()).tool(tool).build();
        built.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(fault(json!({ "scope": "run" })), "");
    assert!(fault(json!({})).contains("`key` is missing"));
    assert!(fault(json!({ "scope": "run", "key": ["{text}"] })).contains("one of the two"));
    assert!(fault(json!({ "scope": "user" })).contains("/lane/scope"));
}
