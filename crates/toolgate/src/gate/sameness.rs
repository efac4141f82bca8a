//! What is not there, what was deleted and what is another tenant's: one answer, for the same work.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use super::Gate;
use crate::backend::{Answer, Backend, Dispatch, Found, Looking, Lookup, Running};
use crate::contract::Tool;
use crate::counted;
use crate::json::Limits;
use crate::ledger::Store;
use crate::session::{Principal, Session};
use crate::wire::Dialect;

/// Orders by their id. It knows the tenant of each, and gives them to whoever asks: the gate must tell them apart.
struct Orders(Mutex<BTreeMap<String, Value>>);

impl Orders {
    fn new() -> Arc<Self> {
        let order = |tenant: &str| json!({"tenant": tenant, "left": 100});
        let orders = [("ord_own", "acme"), ("ord_deleted", "acme"), ("ord_foreign", "globex")];
        Arc::new(Self(Mutex::new(orders.map(|(id, tenant)| (id.to_owned(), order(tenant))).into())))
    }
}

impl Backend for Orders {
    fn run(&self, dispatch: Dispatch) -> Running<'_> {
        counted::count("run");
        let found = self.0.lock().unwrap().get(dispatch.context().arguments()["id"].as_str().unwrap()).cloned();
        Box::pin(async move { Answer::done(found.unwrap_or_default().to_string()) })
    }

    fn look(&self, lookup: Lookup) -> Looking<'_> {
        counted::count("look-up");
        let id = lookup.context().arguments()["id"].as_str().unwrap().to_owned();
        let found = self.0.lock().unwrap().get(&id).cloned();
        Box::pin(async move { found.map_or(Found::Absent, |order| Found::Found(order.to_string().into_bytes())) })
    }
}

fn keys(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn gate(orders: &Arc<Orders>, max_age: &str) -> Gate {
    let contract = |effect: &str, description: &str| {
        keys(json!({
            "description": description, "effect": effect,
            "input": {"properties": {"id": {"type": "string"}}, "required": ["id"]},
            "output": {"type": "object", "properties": {"tenant": {"type": "string"}, "left": {"type": "integer"}},
                       "required": ["tenant"]},
            "facts": {"order": {"tool": "get_order", "args": {"id": "{id}"}, "max_age": max_age}},
            "resource": {"type": "Order", "id": "{id}", "fact": "order", "tenant": "/tenant"},
        }))
    };
    Gate::builder()
        .tool(Tool::new("get_order", contract("read", "Look up an order by its id."), Arc::clone(orders) as _))
        .tool(Tool::new("refund", contract("write", "Give the money of an order back."), Arc::clone(orders) as _))
        .policy("permit (principal, action, resource);")
        .policy("@id(\"left\") @message(\"Nothing is left.\") forbid (principal, action == Action::\"refund\", resource) when { context.facts.order has left && context.facts.order.left < 1 };")
        .store(Store::memory())
        .build()
        .unwrap()
}

fn alice() -> Session {
    Session::new(Principal::new("local", "alice"), "acme")
}

/// The bytes that a model reads of a call, without the name of the attempt, and the work that it took.
async fn asked(gate: &Gate, tool: &str, id: &str) -> (String, BTreeMap<&'static str, usize>) {
    let arguments = json!({"id": id}).to_string();
    let function = json!({"name": tool, "arguments": arguments});
    let message =
        json!({"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": function}]});
    let turn = Dialect::OpenaiChat.decode(message.to_string().as_bytes(), &Limits::default()).unwrap();
    let (calls, asked) = turn.open();
    counted::taken();
    let answers = gate.turn(calls, &alice()).await;
    let done = counted::taken();
    let reference = answers[0].as_ref().unwrap().reference().to_string();
    let bytes = Value::Array(asked.answer(&answers)).to_string().replace(&reference, "REF");
    (bytes, done)
}

#[tokio::test]
async fn absent_deleted_and_foreign_are_refused_in_the_same_bytes_for_the_same_work() {
    for max_age in ["0s", "1h"] {
        let orders = Orders::new();
        let gate = gate(&orders, max_age);
        for tool in ["get_order", "refund"] {
            let (_, own) = asked(&gate, tool, "ord_own").await;
            assert_eq!(own["run"], 1, "its own order is there");
        }
        orders.0.lock().unwrap().remove("ord_deleted");
        for tool in ["get_order", "refund"] {
            let absent = asked(&gate, tool, "ord_never").await;
            assert_eq!(asked(&gate, tool, "ord_deleted").await, absent, "{tool} {max_age}");
            assert_eq!(asked(&gate, tool, "ord_foreign").await, absent, "{tool} {max_age}");
            assert!(absent.0.contains("forbidden") && absent.1["look-up"] == 1, "{absent:?}");
            assert!(!absent.1.contains_key("evaluation") && !absent.1.contains_key("run"), "{absent:?}");
            // A write asks before and behind its place on the lane, and whether anything moved before it is refused.
            assert_eq!(absent.1.get("store read").copied().unwrap_or_default(), 3 * usize::from(tool == "refund"));
            // Once more: what is kept of one is kept of all.
            let absent = asked(&gate, tool, "ord_never").await;
            assert_eq!(asked(&gate, tool, "ord_deleted").await, absent, "{tool} {max_age}");
            assert_eq!(asked(&gate, tool, "ord_foreign").await, absent, "{tool} {max_age}");
            assert_eq!(absent.1.contains_key("look-up"), max_age == "0s");
        }
    }
}

#[tokio::test]
async fn a_call_is_evaluated_once_where_nobody_has_to_be_asked() {
    let gate = gate(&Orders::new(), "0s");
    let (_, done) = asked(&gate, "refund", "ord_own").await;
    assert_eq!((done["evaluation"], done["look-up"]), (1, 1), "{done:?}");
}

#[tokio::test]
async fn an_approval_that_is_not_there_and_one_of_another_tenant_are_one_answer_for_the_same_work() {
    let orders = Orders::new();
    let gate = Gate::builder()
        .tool(Tool::new(
            "erase",
            keys(json!({"description": "Erase an order.", "effect": "write",
                        "input": {"properties": {"id": {"type": "string"}}, "required": ["id"]}})),
            orders as _,
        ))
        .policy("permit (principal, action, resource);")
        .policy(
            "@id(\"ask\") @approvers(\"manager\") forbid (principal, action, resource) unless { context.approved };",
        )
        .store(Store::memory())
        .build()
        .unwrap();
    let globex = Session::new(Principal::new("local", "alice"), "globex");
    let call = || crate::Call::new("call_1", "erase", r#"{"id": "ord_own"}"#);
    let pending = gate.call(call(), &globex).await.unwrap();
    let id = pending.refusal().unwrap().approval_notice().unwrap().id.clone();

    let seen = async |id: &str| {
        counted::taken();
        let shown = gate.approval(id, &alice()).await.unwrap();
        (shown.is_none(), counted::taken())
    };
    assert_eq!(seen(&id).await, seen("apr_0000000000000000000000000000").await);
    assert!(seen(&id).await.0);

    let named = async |id: &str| {
        counted::taken();
        let reply = gate.call(call().approval(id), &alice()).await.unwrap();
        let refusal = reply.refusal().unwrap();
        let told = (refusal.code(), refusal.text().to_owned(), refusal.fix(), refusal.retry_advice(), refusal.effect());
        (told, counted::taken())
    };
    let foreign = named(&id).await;
    assert_eq!(foreign.0.0, crate::refusal::Code::ApprovalInvalid);
    assert_eq!(named("apr_0000000000000000000000000000").await, foreign);
}
