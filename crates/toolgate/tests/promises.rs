//! The promises of SECURITY.md, each with the test that bears its name.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate::backend::{Context, ToolError};
use toolgate::ledger::Store;
use toolgate::refusal::{Code, Effect};
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Reply, Tool};

/// Moves money.
#[derive(Deserialize, JsonSchema)]
struct Pay {
    #[schemars(range(min = 1, max = 1000))]
    cents: i64,
}

#[derive(Serialize, JsonSchema)]
struct Paid {
    cents: i64,
    by: String,
}

/// A gate with one write, and how often it really ran.
fn paying(store: Store, policies: &[&str]) -> (Gate, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let pay = Tool::write("pay", move |args: Pay, context: &Context| {
        counted.fetch_add(1, Ordering::SeqCst);
        let by = context.session().principal().subject.clone();
        async move { Ok(Paid { cents: args.cents, by }) }
    });
    let builder = Gate::builder().tool(pay).store(store);
    let gate = policies.iter().fold(builder, |builder, policy| builder.policy(*policy)).build().unwrap();
    (gate, runs)
}

const PERMIT: &str = "permit (principal, action, resource);";

fn person(name: &str) -> Session {
    Session::new(Principal::new("local", name), "acme")
}

async fn call(gate: &Gate, session: &Session, tool: &str, arguments: &str) -> Reply {
    gate.call(Call::new("call_1", tool, arguments), session).await.unwrap()
}

#[tokio::test]
async fn declared() {
    let (gate, runs) = paying(Store::memory(), &[PERMIT]);
    for name in ["delete_all", "__import__('os').remove", "PAY", "pay "] {
        assert_eq!(call(&gate, &person("alice"), name, r#"{"cents":5}"#).await.code(), Some(Code::UnknownTool));
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn verbatim() {
    let (gate, runs) = paying(Store::memory(), &[PERMIT]);
    for arguments in [r#"{"cents":"5"}"#, r#"{"cents":5.5}"#, r#"{"cents":5,"to":"me"}"#, "{}", r#"{"cents":5,}"#] {
        let reply = call(&gate, &person("alice"), "pay", arguments).await;
        assert!(matches!(reply.code(), Some(Code::InvalidArguments | Code::InvalidJson)), "{arguments}");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn server_side_identity() {
    let (gate, _) =
        paying(Store::memory(), &[r#"permit (principal == User::"[\"local\",\"alice\"]", action, resource);"#]);
    let alice = call(&gate, &person("alice"), "pay", r#"{"cents":5}"#).await;
    assert!(alice.result().unwrap().contains(r#""by":"alice""#));
    // Hidden and absent look the same.
    let said = |reply: &Reply| {
        let mut shown = serde_json::to_value(reply).unwrap();
        shown["error"]["ref"] = Value::Null;
        shown
    };
    let hidden = call(&gate, &person("bob"), "pay", r#"{"cents":5}"#).await;
    let absent = call(&gate, &person("bob"), "nothing", r#"{"cents":5}"#).await;
    assert_eq!(said(&hidden), said(&absent));
}

#[tokio::test]
async fn straight_line() {
    // That no other order can be written is proved by `tests/proofs.rs`. Here: each stage that says no is the last one.
    let rule = r#"@id("small") @message("At most 100.") forbid (principal, action, resource) when { context.input.cents > 100 };"#;
    let (gate, runs) = paying(Store::memory(), &[PERMIT, rule]);
    let last = |reply: &Reply| reply.trace().stages().last().unwrap().stage;
    assert_eq!(last(&call(&gate, &person("alice"), "pay", "[]").await), "admit");
    assert_eq!(last(&call(&gate, &person("alice"), "pay", r#"{"cents":200}"#).await), "permit");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    assert_eq!(last(&call(&gate, &person("alice"), "pay", r#"{"cents":50}"#).await), "settle");
}

#[tokio::test]
async fn one_approval_one_action() {
    let ask = r#"@id("ask") @approvers("manager") forbid (principal, action, resource) unless { context.approved };"#;
    let (gate, runs) = paying(Store::memory(), &[PERMIT, ask]);
    let (alice, mia) = (person("alice").role("manager"), person("mia").role("manager"));
    let pending = call(&gate, &alice, "pay", r#"{"cents":5}"#).await;
    let id = pending.refusal().unwrap().approval_notice().unwrap().id.clone();
    gate.approve(&id, &alice).await.unwrap_err();
    gate.approve(&id, &mia).await.unwrap();
    assert_eq!(call(&gate, &alice, "pay", r#"{"cents":6}"#).await.code(), Some(Code::ApprovalRequired));
    assert_eq!(call(&gate, &mia, "pay", r#"{"cents":5}"#).await.code(), Some(Code::ApprovalRequired));
    assert!(call(&gate, &alice, "pay", r#"{"cents":5}"#).await.is_ok());
    let other_run = alice.clone().in_run("another");
    assert!(call(&gate, &other_run, "pay", r#"{"cents":5}"#).await.replayed());
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn at_most_once() {
    let folder = tempfile::tempdir().unwrap();
    let (gate, runs) = paying(Store::sqlite(folder.path().join("gate.db")).unwrap(), &[PERMIT]);
    let alice = person("alice");
    let calls = (0..20).map(|_| call(&gate, &alice, "pay", r#"{"cents":5}"#));
    let replies = futures_util::future::join_all(calls).await;
    assert!(replies.iter().all(|reply| reply.is_ok() && reply.effect() == Effect::Done));
    assert_eq!(replies.iter().filter(|reply| !reply.replayed()).count(), 1);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn deadline() {
    let slow = Tool::write("pay", |_: Pay, _: &Context| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(Paid { cents: 0, by: String::new() })
    });
    let tool = slow.deadline(Duration::from_millis(100));
    let gate = Gate::builder().tool(tool).policy(PERMIT).store(Store::memory()).build().unwrap();
    let begun = Instant::now();
    let reply = call(&gate, &person("alice"), "pay", r#"{"cents":5}"#).await;
    assert_eq!((reply.code(), reply.effect()), (Some(Code::TimedOut), Effect::Unknown));
    gate.finish().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10), "the work was ended, not abandoned");
}

#[tokio::test]
async fn result_contract() {
    let read = Tool::read("look", |_: Nothing, _: &Context| async {
        Ok(json!({"rows": ["x".repeat(100), "y\u{202e}"], "internal_cost": 7}))
    });
    let output = json!({"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "string"}}}});
    let tool = read.description("Looks.").key("output", output).key("max_result", json!("60B"));
    let gate = Gate::builder().tool(tool).policy(PERMIT).store(Store::memory()).build().unwrap();
    let reply = call(&gate, &person("alice"), "look", "{}").await;
    let shown = reply.result().unwrap();
    assert!(shown.len() <= 60 && !shown.contains("internal_cost") && !shown.contains('\u{202e}'), "{shown}");
    assert!(!reply.truncated().is_empty());
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn refusals_are_data() {
    let fails = Tool::read("look", |_: Nothing, _: &Context| async {
        Err::<u8, _>(ToolError::failed("password=hunter2 at 10.0.0.7"))
    });
    let gate = Gate::builder().tool(fails.description("Looks.")).policy(PERMIT).store(Store::memory()).build().unwrap();
    let reply = call(&gate, &person("alice"), "look", "{}").await;
    let said = serde_json::to_value(&reply).unwrap();
    assert!(!said.to_string().contains("hunter2"));
    for member in ["code", "message", "fix", "retry", "effect", "ref"] {
        assert!(said["error"][member].is_string(), "{member}: {said}");
    }
    // The operator is told all the same, but for the secret in it.
    let told = serde_json::to_string(reply.trace()).unwrap();
    assert!(told.contains("password=[secret ") && told.contains("at 10.0.0.7") && !told.contains("hunter2"), "{told}");
}

#[tokio::test]
async fn evidence() {
    let folder = tempfile::tempdir().unwrap();
    let (gate, _) = paying(Store::sqlite(folder.path().join("gate.db")).unwrap(), &[PERMIT]);
    let alice = person("alice");
    let mut kinds = Vec::new();
    for (tool, arguments) in [("pay", r#"{"cents":5}"#), ("pay", r#"{"cents":5}"#), ("pay", "{}"), ("nothing", "{}")] {
        let reply = call(&gate, &alice, tool, arguments).await;
        gate.store().verify(None).await.unwrap().unwrap();
        kinds.push(reply.reference().clone());
    }
    gate.finish().await.unwrap();
    let mut told = Vec::new();
    for reference in kinds {
        for record in gate.store().history(reference.as_str()).await.unwrap() {
            let body: Value = toolgate::json::read(record.body.as_bytes(), &Default::default()).unwrap();
            told.push(body["kind"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(told, ["intent", "outcome", "replay", "refusal", "refusal"]);
    gate.store().verify(None).await.unwrap().unwrap();
}
