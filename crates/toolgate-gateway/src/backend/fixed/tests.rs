#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate::backend::Backend;
use toolgate::ledger::Store;
use toolgate::refusal::Fix;
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Reply, Tool};

use super::*;

/// A folder for recordings.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with(file: &str, text: &str) -> Self {
        let desk = Self::new();
        std::fs::write(desk.0.path().join(file), text).unwrap();
        desk
    }

    /// What runs a table, or what is wrong with it, a line each: place, message, hint.
    fn read(&self, backend: &Value) -> Result<Fixed, Vec<String>> {
        let mut table = Fields::of(backend.as_object().unwrap(), "/backend");
        table.raw("kind");
        let mut problems = Problems::default();
        let fixed = Fixed::read(table, self.0.path(), &mut problems);
        let line = |p: Problem| format!("{}: {} ({})", p.at, p.message, p.hint.unwrap_or_default());
        match fixed {
            Some(fixed) if problems.0.is_empty() => Ok(fixed),
            _ => Err(problems.0.into_iter().map(line).collect()),
        }
    }
}

/// The keys of a contract about an order, as `with` adds to them.
fn keys(effect: &str, with: Value) -> Map<String, Value> {
    let mut keys = json!({
        "description": "About an order.",
        "effect": effect,
        "input": {
            "properties": { "order_id": { "type": "string" }, "cents": { "type": "integer" }, "note": { "type": "string" } },
            "required": ["order_id"],
        },
        "output": {
            "type": "object",
            "properties": { "order_id": { "type": "string" }, "cents": { "type": "integer" }, "note": { "type": "string" } },
            "required": ["order_id"],
        },
    });
    keys.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    keys.as_object().unwrap().clone()
}

/// What is wrong with a backend beside its contract.
fn misfits(desk: &Desk, backend: Value) -> Vec<String> {
    let fixed = desk.read(&backend).unwrap();
    let contract = Contract::parse("about", &Value::Object(keys("read", json!({})))).unwrap();
    fixed.check(&contract).into_iter().map(|problem| format!("{}: {}", problem.at, problem.message)).collect()
}

fn gate(tools: impl IntoIterator<Item = Tool>) -> Gate {
    let builder = Gate::builder().policy("permit (principal, action, resource);").store(Store::memory());
    let builder = tools.into_iter().fold(builder, |builder, tool| builder.tool(tool));
    builder.build().unwrap_or_else(|error| panic!("{error}"))
}

fn tool(name: &str, effect: &str, with: Value, backend: Value) -> Tool {
    Tool::new(name, keys(effect, with), Arc::new(Desk::new().read(&backend).unwrap()))
}

async fn call(gate: &Gate, name: &str, arguments: Value) -> Reply {
    let session = Session::new(Principal::new("local", "alice"), "acme");
    gate.call(Call::new("call_1", name, arguments.to_string()), &session).await.unwrap()
}

#[tokio::test]
async fn the_first_answer_whose_arguments_are_equal_is_given_with_its_texts_filled_in() {
    let backend = json!({ "results": [
        { "when": { "order_id": "ord_1", "cents": 5 }, "result": { "order_id": "{order_id}", "cents": "{cents}", "note": "for {session.user}" } },
        { "when": { "order_id": "ord_1" }, "result": { "order_id": "ord_1", "note": "{note}" } },
        { "when": { "order_id": "ord_2" }, "error": "gone" },
    ] });
    let errors = json!({ "errors": { "gone": { "code": "gone", "message": "It is gone." } } });
    let gate = gate([tool("about", "read", errors, backend)]);
    let first = call(&gate, "about", json!({ "order_id": "ord_1", "cents": 5.0 })).await;
    assert_eq!(first.result(), Some(r#"{"cents":5,"note":"for alice","order_id":"ord_1"}"#));
    let second = call(&gate, "about", json!({ "order_id": "ord_1", "cents": 6 })).await;
    assert_eq!(second.result(), Some(r#"{"order_id":"ord_1"}"#), "what is absent is left out");
    let gone = call(&gate, "about", json!({ "order_id": "ord_2" })).await;
    assert_eq!(gone.refusal().unwrap().text(), "It is gone.");
    let none = call(&gate, "about", json!({ "order_id": "ord_3" })).await;
    let refusal = none.refusal().unwrap();
    assert_eq!(
        (refusal.code().as_str(), refusal.effect(), refusal.fix()),
        ("tool_failed", Effect::None, Fix::Operator)
    );
}

#[tokio::test]
async fn a_write_is_done_once_and_its_repeat_is_replayed() {
    let gate =
        gate([tool("pay", "write", json!({}), json!({ "result": { "order_id": "{order_id}", "note": "{ref}" } }))]);
    let first = call(&gate, "pay", json!({ "order_id": "ord_1" })).await;
    let again = call(&gate, "pay", json!({ "order_id": "ord_1" })).await;
    assert_eq!(first.effect(), Effect::Done);
    assert!(again.replayed());
    assert_eq!(first.result(), again.result());
    let other = call(&gate, "pay", json!({ "order_id": "ord_2" })).await;
    assert!(!other.replayed() && other.result() != first.result());
}

#[tokio::test]
async fn a_failure_of_a_write_has_the_effect_that_it_says() {
    for (error, effect) in [
        (json!("declined"), Effect::None),
        (json!({ "signal": "lost", "effect": "unknown" }), Effect::Unknown),
        (json!({ "signal": "late", "effect": "done" }), Effect::Done),
    ] {
        let gate = gate([tool("pay", "write", json!({}), json!({ "error": error }))]);
        assert_eq!(call(&gate, "pay", json!({ "order_id": "ord_1" })).await.effect(), effect);
    }
}

#[tokio::test]
async fn what_a_look_up_has_no_answer_for_is_not_there() {
    let orders =
        json!({ "results": [{ "when": { "order_id": "ord_1" }, "result": { "order_id": "ord_1", "note": "acme" } }] });
    let facts = json!({
        "facts": { "order": { "tool": "about", "args": { "order_id": "{order_id}" } } },
        "resource": { "type": "Order", "id": "{order_id}", "fact": "order", "tenant": "/note" },
    });
    let gate = gate([
        tool("about", "read", json!({}), orders),
        tool("pay", "write", facts, json!({ "result": { "order_id": "{order_id}" } })),
    ]);
    assert!(call(&gate, "pay", json!({ "order_id": "ord_1" })).await.is_ok());
    let absent = call(&gate, "pay", json!({ "order_id": "ord_2" })).await;
    assert_eq!(absent.code().unwrap().as_str(), "forbidden");
}

#[tokio::test]
async fn an_answer_may_take_its_time_and_the_deadline_holds() {
    let slow = json!({ "result": { "order_id": "x" }, "delay": "200ms" });
    let gate = gate([
        tool("slow", "read", json!({}), slow.clone()),
        tool("late", "read", json!({ "deadline": "50ms" }), slow),
    ]);
    let begun = std::time::Instant::now();
    assert!(call(&gate, "slow", json!({ "order_id": "x" })).await.is_ok());
    assert!(begun.elapsed() >= Duration::from_millis(200));
    let late = call(&gate, "late", json!({ "order_id": "x" })).await;
    assert_eq!(late.code().unwrap().as_str(), "timed_out");
}

#[tokio::test]
async fn a_recording_answers_equal_arguments_and_nothing_in_it_is_a_template() {
    let lines = "{\"arguments\": {\"order_id\": \"ord_1\", \"cents\": 1e1}, \"result\": {\"order_id\": \"{x}\", \"cents\": 9007199254740993}}\n";
    let desk = Desk::with("orders.jsonl", lines);
    let fixed = desk.read(&json!({ "file": "orders.jsonl" })).unwrap();
    let gate = gate([Tool::new("about", keys("read", json!({})), Arc::new(fixed))]);
    let found = call(&gate, "about", json!({ "cents": 10, "order_id": "ord_1" })).await;
    assert_eq!(found.result(), Some(r#"{"cents":9007199254740993,"order_id":"{x}"}"#));
    assert!(!call(&gate, "about", json!({ "order_id": "ord_1" })).await.is_ok());
}

#[test]
fn the_failures_that_it_names_are_the_ones_that_the_contract_may_speak_of() {
    let fixed = Desk::new().read(&json!({ "results": [{ "when": {}, "result": {} }, { "error": "gone" }] })).unwrap();
    assert_eq!(fixed.signals().unwrap(), ["cancelled", "gone", "no_answer", "timeout"]);
}

#[test]
fn everything_that_is_wrong_with_the_table_is_told() {
    let desk = Desk::with("bad.jsonl", "{\"arguments\": {}}\n\n7\n");
    let faults = |backend: Value| desk.read(&backend).unwrap_err();
    assert_eq!(
        faults(json!({}))[0].split(" (").next().unwrap(),
        "/backend/result: `result` is missing: there is no answer"
    );
    assert_eq!(
        faults(json!({ "result": {}, "file": "x" })),
        ["/backend/file: the answers are said twice: as `result` and as `file` ()"]
    );
    assert_eq!(
        faults(
            json!({ "results": [{ "when": 3, "result": { "a": ["{a b}"] } }, { "whn": {}, "error": 7 }, 5, {}], "dealy": "1s" })
        ),
        [
            "/backend/results/0/when: expected a table, got a number ()",
            "/backend/results/0/result/a/0: `{a b}` names nothing; write {member}, {/json/pointer}, {session.tenant}, {session.user}, {fact.NAME/pointer}, {idempotency_key}, {ref}, {trace.parent} or {trace.state} ()",
            "/backend/results/1/error: expected a signal, or a table of `signal` and `effect` ()",
            "/backend/results/1/whn: unknown key (did you mean when?)",
            "/backend/results/2: expected a table such as { when = { id = 1 }, result = { ... } } ()",
            "/backend/results/3/result: `result` is missing, and there is no `error` ()",
            "/backend/dealy: unknown key (did you mean delay?)",
        ]
    );
    assert_eq!(
        faults(json!({ "file": "bad.jsonl" })),
        [
            "/backend/file: bad.jsonl, line 1: /result: `result` is missing, and there is no `error` ()",
            "/backend/file: bad.jsonl, line 3: a recorded answer is an object ()",
        ]
    );
    assert!(faults(json!({ "file": "../x.jsonl" }))[0].contains("in the same folder or below"));
    assert!(faults(json!({ "file": "none.jsonl" }))[0].contains("cannot be read"));
}

#[test]
fn a_result_that_does_not_fit_the_output_is_a_fault_with_its_place() {
    let desk = Desk::with("recorded.jsonl", "{\"arguments\": {}, \"result\": {\"order_id\": 7}}\n");
    assert_eq!(
        misfits(
            &desk,
            json!({ "results": [
            { "when": { "ordr": 1 }, "result": { "order_id": "{order_id}", "cents": "{cents}" } },
            { "result": { "note": "{order_id}" } },
            { "result": { "order_id": "{oder_id}", "cents": "five" } },
        ] })
        ),
        [
            "/backend/results/0/when/ordr: the contract has no such argument, so this fits no call",
            "/backend/results/1/result: /order_id does not fit the output schema: missing member",
            "/backend/results/2/result/order_id: `{oder_id}` names no argument",
            "/backend/results/2/result: /cents does not fit the output schema: expected integer, got string",
        ]
    );
    assert_eq!(
        misfits(&desk, json!({ "file": "recorded.jsonl" })),
        ["/backend/file: /order_id does not fit the output schema: expected string, got integer"]
    );
}
