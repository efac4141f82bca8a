//! Tags bound what is there for a session, and nothing of what the gate does for itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may panic"
)]

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate::backend::{Answer, Backend, Dispatch, Failure, FailureKind, Found, Looking, Lookup, Running};
use toolgate::ledger::Store;
use toolgate::refusal::{Code, Effect};
use toolgate::session::{Principal, Session, Tags};
use toolgate::{Call, Gate, Reply, Tool};

/// Fails as it is told to, and finds what it is asked for.
struct Failing(Effect);

impl Backend for Failing {
    fn run(&self, _: Dispatch) -> Running<'_> {
        let failure = Failure::new(FailureKind::Reported, "declined", "the card was declined");
        Box::pin(std::future::ready(Answer::failed(self.0, failure)))
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        Box::pin(std::future::ready(Found::Found(br#"{"tenant":"acme"}"#.to_vec())))
    }
}

fn keys(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A write of the tag `money` whose fact and whose advice are tools of the tag `desk`.
fn gate(effect: Effect) -> Gate {
    let account = json!({"properties": {"account": {"type": "string"}}, "required": ["account"]});
    let told =
        json!({"declined": {"code": "declined", "message": "Declined.", "effect": effect.as_str(), "instead": "look"}});
    let pay = keys(json!({
        "description": "Pays.", "effect": "write", "tags": ["money"], "input": account,
        "facts": {"account": {"tool": "look", "args": {"account": "{account}"}}},
        "errors": told,
    }));
    let output = json!({"type": "object", "properties": {"tenant": {"type": "string"}}});
    let look = keys(json!({
        "description": "Looks.", "effect": "read", "tags": ["desk"], "input": account, "output": output,
    }));
    let backend: Arc<dyn Backend> = Arc::new(Failing(effect));
    Gate::builder()
        .tool(Tool::new("pay", pay, Arc::clone(&backend)))
        .tool(Tool::new("look", look, backend))
        .policy("permit (principal, action, resource);")
        .store(Store::memory())
        .build()
        .unwrap()
}

fn alice() -> Session {
    Session::new(Principal::new("local", "alice"), "acme")
}

fn within(tag: &str) -> Session {
    alice().only_tags(Tags::of(tag).unwrap())
}

async fn call(gate: &Gate, session: &Session, tool: &str) -> Reply {
    gate.call(Call::new("call_1", tool, r#"{"account":"a"}"#), session).await.unwrap()
}

/// The tool that a refusal advises.
fn advice(reply: &Reply) -> Value {
    serde_json::to_value(reply).unwrap()["error"]["instead"].clone()
}

#[tokio::test]
async fn what_is_outside_is_in_no_list_and_no_answer_and_cannot_be_called() {
    let gate = gate(Effect::None);
    let money = within("money");
    assert_eq!(gate.tools(&money).iter().map(|tool| tool.name()).collect::<Vec<_>>(), ["pay"]);
    for tool in ["look", "lok", "LOOK", "no_such_tool"] {
        let reply = call(&gate, &money, tool).await;
        let refusal = reply.refusal().unwrap();
        assert_eq!(refusal.code(), Code::UnknownTool, "{tool}");
        assert!(!serde_json::to_string(&reply).unwrap().contains("look"), "{tool}");
        let judged = gate.dry_run(Call::new("call_1", tool, "{}"), &money).await.unwrap();
        assert_eq!(judged.refusal(), Some(refusal), "{tool}");
    }
    let nothing = within("money").only_tags(Tags::of("desk").unwrap());
    assert!(gate.tools(&nothing).is_empty());
    assert_eq!(call(&gate, &nothing, "pay").await.code(), Some(Code::UnknownTool));
}

#[tokio::test]
async fn a_fact_is_looked_up_whatever_the_tags_and_a_tool_outside_is_no_advice() {
    let gate = gate(Effect::None);
    let bounded = call(&gate, &within("money"), "pay").await;
    assert_eq!((bounded.code(), advice(&bounded)), (Some(Code::ToolFailed), Value::Null));
    assert_eq!(advice(&call(&gate, &alice(), "pay").await), "look");
}

/// The ledger once kept the answer as the first reader was shown it.
#[tokio::test]
async fn a_stored_answer_advises_each_reader_by_what_is_there_for_them() {
    let gate = gate(Effect::Done);
    let first = call(&gate, &within("money"), "pay").await;
    assert_eq!((first.refusal().map(|no| no.effect()), advice(&first)), (Some(Effect::Done), Value::Null));
    let wide = call(&gate, &alice(), "pay").await;
    assert!(wide.replayed());
    assert_eq!(advice(&wide), "look");
    assert_eq!(advice(&call(&gate, &within("money"), "pay").await), Value::Null);
}
