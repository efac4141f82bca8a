//! Writes of which the gate does not hear the end in time. The server is `tests/upstreams/payments.py`; what it did
//! stands in its book.

use std::path::Path;

use serde_json::Map;
use toolgate::Reply;

use super::*;
use crate::backend::{Databases, Means, make};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/payments.py");

struct Bench {
    folder: tempfile::TempDir,
    gate: Gate,
    upstreams: Upstreams,
}

/// The session of whoever pays.
fn alice() -> Session {
    Session::new(Principal::new("local", "alice"), "acme")
}

impl Bench {
    /// A gate with the tool `pay` of a server that behaves so; `more` are keys of the contract, and of its backend.
    fn new(behaviour: &[&str], more: Value, backend: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let book = folder.path().join("book").to_str().unwrap().to_owned();
        let words = ["python3".to_owned(), SERVER.to_owned()].into_iter();
        let command = words.chain([behaviour[0].to_owned(), book]).chain(behaviour[1..].iter().map(|&w| w.to_owned()));
        let program = Program { command: command.collect(), directory: None, environment: Environment::Inherited };
        let upstream = Upstream::new(program, Arc::new(|_| {}));
        let upstreams = Upstreams::new(BTreeMap::from([("bank".to_owned(), (upstream, Held::Unpinned))]));
        let mut table = json!({ "kind": "mcp", "upstream": "bank" });
        table.as_object_mut().unwrap().extend(object(backend));
        let mut keys = object(json!({
            "description": "Pays.", "effect": "write", "deadline": "1500ms",
            "input": { "properties": { "n": { "type": "integer" } } },
            "output": { "type": "object", "properties": { "paid": { "type": "integer" } } },
            "backend": table,
        }));
        keys.extend(object(more));
        let databases = Databases::new("".as_ref(), []);
        let means = Means { databases, upstreams: upstreams.clone(), contracts: folder.path().to_owned() };
        let backend = make("pay", &keys, &means).unwrap_or_else(|problems| panic!("{problems:?}"));
        let gate = Gate::builder()
            .policy("permit (principal, action, resource);")
            .store(Store::memory())
            .tool(Tool::new("pay", keys, backend))
            .build()
            .unwrap_or_else(|error| panic!("{error}"));
        Self { folder, gate, upstreams }
    }

    async fn pay(&self) -> Reply {
        self.gate.call(Call::new("call_1", "pay", "{}"), &alice()).await.unwrap()
    }

    /// What the server did.
    fn book(&self) -> Vec<String> {
        let book: &Path = &self.folder.path().join("book");
        std::fs::read_to_string(book).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    async fn history(&self, reply: &Reply) -> Vec<Value> {
        let records = self.gate.store().history(reply.reference().as_str()).await.unwrap();
        records.iter().map(|record| serde_json::from_str(&record.body).unwrap()).collect()
    }

    /// The record of what came late.
    async fn late(&self, reply: &Reply) -> Value {
        for _ in 0..1000 {
            let found = self.history(reply).await.into_iter().find(|record| record["late"] == true);
            if let Some(record) = found {
                return record;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nothing came late");
    }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// The evidence of the run in the record of how it ended.
fn run_of(records: &[Value]) -> Value {
    let outcome = records.iter().find(|record| record["kind"] == "outcome").unwrap();
    let stages = outcome["stages"].as_array().unwrap();
    stages.iter().find(|stage| stage["stage"] == "run").cloned().unwrap()
}

#[tokio::test]
async fn however_the_end_of_a_write_is_lost_it_is_unknown_and_told_with_what_is_known() {
    for (behaviour, code, signal) in [
        ("dies", Code::Unavailable, "died"),
        ("hangs_up", Code::Unavailable, "died"),
        ("silent", Code::TimedOut, "timeout"),
        ("babbles", Code::ToolFailed, "broken"),
    ] {
        let bench = Bench::new(&[behaviour], json!({}), json!({}));
        let reply = bench.pay().await;
        assert_eq!((reply.code(), reply.effect()), (Some(code), Effect::Unknown), "{behaviour}");
        let message = reply.refusal().unwrap().text();
        assert!(message.contains("not known") && message.contains(" It was sent at 2"), "{behaviour}: {message}");
        let run = run_of(&bench.history(&reply).await);
        assert_eq!((&run["signal"], &run["effect"]), (&json!(signal), &json!("unknown")), "{behaviour}");
        assert!(run["sent_at"].is_u64() && run["detail"].as_str().unwrap().contains("MCP server"), "{run}");
        assert_eq!(bench.pay().await.code(), Some(Code::OutcomeUnknown), "{behaviour}");
        assert_eq!(bench.book().len(), 1, "{behaviour}: it is not sent again");
        bench.upstreams.close().await;
    }
}

#[tokio::test]
async fn an_answer_after_the_deadline_is_the_answer_of_the_next_equal_call() {
    let bench = Bench::new(&["late", "3"], json!({}), json!({}));
    let first = bench.pay().await;
    assert_eq!((first.code(), first.effect()), (Some(Code::TimedOut), Effect::Unknown));
    let record = bench.late(&first).await;
    assert_eq!((&record["kind"], &record["effect"]), (&json!("outcome"), &json!("done")));
    let again = bench.pay().await;
    assert_eq!((again.result(), again.replayed()), (Some(r#"{"paid":5}"#), true));
    assert_eq!(bench.book().len(), 1);
    bench.gate.store().verify(None).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_error_after_the_deadline_proves_nothing_and_is_recorded() {
    let bench = Bench::new(&["refuses_late", "3"], json!({}), json!({}));
    let first = bench.pay().await;
    let record = bench.late(&first).await;
    assert_eq!((&record["kind"], &record["effect"]), (&json!("late"), &json!("unknown")));
    assert_eq!(bench.pay().await.code(), Some(Code::OutcomeUnknown));
}

#[tokio::test]
async fn a_server_that_honours_the_key_is_asked_again_after_it_died() {
    let retry = json!({ "deadline": "20s", "retry": { "attempts": 3, "on": ["died", "connect"] } });
    let bench = Bench::new(&["busy"], retry.clone(), json!({ "idempotency_meta": "vendor.example/key" }));
    let reply = bench.pay().await;
    assert_eq!((reply.result(), reply.effect()), (Some(r#"{"paid":5}"#), Effect::Done));
    let (book, run) = (bench.book(), run_of(&bench.history(&reply).await));
    assert_eq!((book.len(), book[0].is_empty()), (1, false), "paid once, under the key of the action");
    assert_eq!((&run["attempts"], &run["failures"][0]["signal"]), (&json!(2), &json!("died")));

    let keyless = Bench::new(&["busy"], retry, json!({}));
    assert_eq!(keyless.pay().await.effect(), Effect::Unknown);
    assert_eq!(keyless.pay().await.code(), Some(Code::OutcomeUnknown));
}

#[test]
fn what_the_key_is_sent_as_is_checked() {
    let faults = |effect: &str, backend: Value| {
        let upstream = Upstream::new(
            Program { command: vec!["cat".into()], directory: None, environment: Environment::Inherited },
            Arc::new(|_| {}),
        );
        let upstreams = Upstreams::new(BTreeMap::from([("bank".to_owned(), (upstream, Held::Unpinned))]));
        let mut table = json!({ "kind": "mcp", "upstream": "bank" });
        table.as_object_mut().unwrap().extend(object(backend));
        let means = Means { databases: Databases::new("".as_ref(), []), upstreams, contracts: "".into() };
        match make("pay", &object(json!({ "effect": effect, "backend": table })), &means) {
            Ok(backend) => {
                assert!(backend.honours_key());
                assert_eq!(backend.upstream(), Some("mcp/bank"));
                Vec::new()
            }
            Err(problems) => problems.into_iter().map(|problem| format!("{} {}", problem.at, problem.code)).collect(),
        }
    };
    let at = "/backend/idempotency_meta";
    let named = |name: &str| json!({ "idempotency_meta": name });
    assert_eq!(faults("write", named("vendor.example/key")), [""; 0]);
    assert_eq!(faults("write", named("")), [format!("{at} min_length")]);
    assert_eq!(faults("write", named("io.modelcontextprotocol/key")), [format!("{at} reserved")]);
    assert_eq!(faults("read", named("key")), [format!("{at} read")]);
    let twice = json!({ "idempotency_meta": "key", "meta": { "key": "{session.tenant}" } });
    assert_eq!(faults("write", twice), [format!("{at} unique")]);
}
