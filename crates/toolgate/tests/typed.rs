//! Tools that are made of Rust types and functions, and fakes of them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs, reason = "a test may panic")]

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};
use toolgate::backend::{Context, FakeTool, Seen, Step, ToolError};
use toolgate::gate::BuildError;
use toolgate::ledger::Store;
use toolgate::refusal::{Code, Effect, Fix, Retry};
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Reply, Tool};

/// Looks an order up.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "fakes read nothing of it")]
struct Find {
    /// The id, such as `ord_1`.
    order_id: String,
}

#[derive(Serialize, JsonSchema)]
struct Order {
    order_id: String,
    tenant: String,
    note: Option<String>,
}

/// Pays something.
#[derive(Deserialize, JsonSchema)]
struct Pay {
    cents: Even,
}

/// An even number, which only its decoder knows.
#[derive(JsonSchema)]
struct Even(u32);

impl<'de> Deserialize<'de> for Even {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(from)?;
        if number % 2 == 0 { Ok(Self(number)) } else { Err(serde::de::Error::custom("odd")) }
    }
}

#[derive(JsonSchema)]
struct Unprintable {}

impl Serialize for Unprintable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("no form"))
    }
}

#[derive(Serialize, JsonSchema)]
struct Paid {
    cents: u32,
}

fn builder(tools: impl IntoIterator<Item = Tool>) -> toolgate::gate::Builder {
    let builder = Gate::builder().policy("permit (principal, action, resource);").store(Store::memory());
    tools.into_iter().fold(builder, |builder, tool| builder.tool(tool))
}

fn gate(tools: impl IntoIterator<Item = Tool>) -> Gate {
    builder(tools).build().unwrap()
}

async fn call(gate: &Gate, tool: &str, arguments: Value) -> Reply {
    let session = Session::new(Principal::new("local", "alice"), "acme");
    gate.call(Call::new("call_1", tool, arguments.to_string()), &session).await.unwrap()
}

fn pay() -> Tool {
    Tool::write("pay", |args: Pay, _: &Context| async move { Ok(Paid { cents: args.cents.0 }) })
}

#[test]
fn two_tools_of_one_name_are_an_error_that_says_which() {
    let find = || FakeTool::fixed(Value::Null).read::<Find, Option<Order>>("find");
    let Err(BuildError::Faults { tools, .. }) = builder([find(), pay(), find()]).build() else {
        panic!("it was built")
    };
    let told: Vec<(&str, &str)> =
        tools.iter().map(|fault| (fault.tool.as_str(), fault.problem.code.as_str())).collect();
    assert_eq!(told, [("find", "unique")]);
    let text = builder([find(), find()]).build().err().unwrap().to_string();
    assert!(text.contains("find") && text.contains("two tools have this name"), "{text}");
}

#[tokio::test]
async fn arguments_that_only_the_decoder_refuses_are_the_operators_to_mend_and_nothing_was_done() {
    let gate = gate([pay()]);
    assert!(call(&gate, "pay", json!({ "cents": 4 })).await.is_ok());
    let odd = call(&gate, "pay", json!({ "cents": 5 })).await;
    let refusal = odd.refusal().unwrap();
    assert_eq!((refusal.code(), refusal.effect()), (Code::ToolFailed, Effect::None));
    assert_eq!((refusal.fix(), refusal.retry_advice()), (Fix::Operator, Retry::Never));
    assert!(!refusal.text().contains("odd"), "the model does not read what serde says: {}", refusal.text());
    let trace = serde_json::to_value(odd.trace()).unwrap().to_string();
    assert!(trace.contains("decode") && trace.contains("odd"), "the operator does: {trace}");
}

#[tokio::test]
async fn a_contract_may_have_words_for_what_only_the_decoder_knows() {
    let words = json!({ "decode": { "code": "odd", "message": "Pay an even number of cents." } });
    let gate = gate([pay().key("errors", words)]);
    let odd = call(&gate, "pay", json!({ "cents": 5 })).await;
    let refusal = odd.refusal().unwrap();
    assert_eq!((refusal.text(), refusal.fix()), ("Pay an even number of cents.", Fix::Model));
}

#[tokio::test]
async fn what_a_function_did_is_done_even_if_its_result_cannot_be_printed() {
    let act = Tool::write("act", |_: Find, _: &Context| async move { Ok(Unprintable {}) }).description("Acts.");
    let gate = gate([act]);
    let reply = call(&gate, "act", json!({ "order_id": "ord_1" })).await;
    assert_eq!((reply.code(), reply.effect()), (Some(Code::ToolFailed), Effect::Done));
    let again = call(&gate, "act", json!({ "order_id": "ord_1" })).await;
    assert!(again.replayed(), "and is not done again");
}

#[tokio::test]
async fn a_fake_of_rust_types_answers_and_remembers_what_it_was_asked() {
    let orders = FakeTool::fixed(json!({ "order_id": "ord_1", "tenant": "acme", "note": null, "secret": 7 }));
    let gate = gate([orders.read::<Find, Order>("find")]);
    let found = call(&gate, "find", json!({ "order_id": "ord_1" })).await;
    assert_eq!(found.result(), Some(r#"{"note":null,"order_id":"ord_1","tenant":"acme"}"#), "only what is declared");
    assert_eq!(call(&gate, "find", json!({})).await.code(), Some(Code::InvalidArguments));
    assert_eq!(orders.calls(), [json!({ "order_id": "ord_1" })], "a call that is refused does not reach it");
}

#[tokio::test]
async fn a_fake_ends_its_calls_one_after_the_other_and_fails_loudly_when_it_has_no_more() {
    let steps = [
        Step::fails(ToolError::unavailable("busy")),
        Step::gives(json!({ "cents": 2 })),
        Step::fails(ToolError::failed("lost")),
    ];
    let payments = FakeTool::queue(steps);
    let tool = payments.write::<Pay, Paid>("pay").attempts(2);
    let gate = gate([tool]);
    let retried = call(&gate, "pay", json!({ "cents": 2 })).await;
    assert_eq!(retried.result(), Some(r#"{"cents":2}"#), "the gate tried again");
    assert_eq!(call(&gate, "pay", json!({ "cents": 4 })).await.effect(), Effect::Unknown);
    let over = call(&gate, "pay", json!({ "cents": 6 })).await;
    assert_eq!((over.code(), over.effect()), (Some(Code::ToolFailed), Effect::None));
    assert_eq!(over.refusal().unwrap().fix(), Fix::Operator);
    let keys: Vec<Option<String>> = payments.seen().into_iter().map(|seen| seen.idempotency_key).collect();
    assert_eq!(keys.len(), 4);
    assert_eq!(keys[0], keys[1], "both attempts of one action have its key");
    assert_ne!(keys[1], keys[2]);
}

#[tokio::test]
async fn a_fake_may_take_longer_than_the_deadline() {
    let slow = FakeTool::queue([Step::gives(json!({ "cents": 2 })).after(Duration::from_secs(60))]);
    let gate = gate([slow.write::<Pay, Paid>("pay").deadline(Duration::from_millis(50))]);
    let late = call(&gate, "pay", json!({ "cents": 2 })).await;
    assert_eq!((late.code(), late.effect()), (Some(Code::TimedOut), Effect::Unknown));
}

#[tokio::test]
async fn a_fake_answers_as_it_was_recorded_in_calls_and_in_look_ups() {
    let lines = r#"
{"arguments": {"order_id": "ord_1"}, "result": {"order_id": "ord_1", "tenant": "acme", "note": null}}
{"arguments": {"order_id": "ord_2"}, "error": {"signal": "gone", "effect": "none"}}
"#;
    let orders = FakeTool::recorded(lines).unwrap();
    let acts = FakeTool::fixed(json!({}));
    let keys = json!({
        "description": "Acts on an order.",
        "effect": "write",
        "input": { "properties": { "order_id": { "type": "string" } }, "required": ["order_id"] },
        "facts": { "order": { "tool": "find", "args": { "order_id": "{order_id}" } } },
        "resource": { "type": "Order", "id": "{order_id}", "fact": "order", "tenant": "/tenant" },
    });
    let keys: Map<String, Value> = keys.as_object().unwrap().clone();
    let gone = json!({ "gone": { "code": "gone", "message": "It is gone." } });
    let gate = gate([orders.read::<Find, Order>("find").key("errors", gone), acts.tool("act", keys)]);

    assert!(call(&gate, "act", json!({ "order_id": "ord_1" })).await.is_ok());
    assert_eq!(call(&gate, "act", json!({ "order_id": "ord_3" })).await.code(), Some(Code::Forbidden), "not recorded");
    assert_eq!(call(&gate, "find", json!({ "order_id": "ord_2" })).await.refusal().unwrap().text(), "It is gone.");
    assert_eq!(call(&gate, "find", json!({ "order_id": "ord_3" })).await.refusal().unwrap().fix(), Fix::Operator);

    let asked = |seen: &Seen| (seen.looked_up, seen.arguments["order_id"].as_str().unwrap().to_owned());
    let asked: Vec<(bool, String)> = orders.seen().iter().map(asked).collect();
    let wanted = [(true, "ord_1"), (true, "ord_3"), (false, "ord_2"), (false, "ord_3")];
    assert_eq!(asked, wanted.map(|(looked_up, id)| (looked_up, id.to_owned())));
    assert_eq!(acts.calls(), [json!({ "order_id": "ord_1" })]);
    assert_eq!((&*orders.seen()[0].user, &*orders.seen()[0].tenant), ("alice", "acme"));
}
