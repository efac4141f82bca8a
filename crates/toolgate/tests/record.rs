//! What the record tells of a call, and what it does not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test may panic"
)]

use serde_json::{Map, Value, json};
use toolgate::backend::{FakeTool, Step, ToolError};
use toolgate::gate::{BuildError, InDoubt, Kept, NotErased};
use toolgate::ledger::Store;
use toolgate::refusal::Code;
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Reply, Tool};

const PERMIT: &str = "@id(\"all\") permit (principal, action, resource);";

fn alice() -> Session {
    Session::new(Principal::new("local", "alice"), "acme").role("support").role("desk").in_run("run_1")
}

fn keys(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn tool(name: &str, effect: &str, properties: Value, more: Value) -> Tool {
    let mut contract = json!({ "description": "A tool.", "effect": effect, "input": { "properties": properties } });
    contract.as_object_mut().unwrap().extend(keys(more));
    FakeTool::fixed(json!({ "ok": true })).tool(name, keys(contract))
}

fn gate(tools: Vec<Tool>, policies: &[&str], kept: Kept) -> Gate {
    let builder = Gate::builder().store(Store::memory()).kept(kept);
    let builder = tools.into_iter().fold(builder, toolgate::gate::Builder::tool);
    policies.iter().fold(builder, |builder, policy| builder.policy(*policy)).build().unwrap()
}

async fn call(gate: &Gate, tool: &str, arguments: &str) -> Reply {
    gate.call(Call::new("call_1", tool, arguments), &alice()).await.unwrap()
}

/// Everything on record, in order. Nothing can be called afterwards.
async fn records(gate: &Gate) -> Vec<Value> {
    gate.finish().await.unwrap();
    let sealed = gate.store().tail(1000).await.unwrap();
    sealed.iter().map(|sealed| serde_json::from_str(&sealed.body).unwrap()).collect()
}

fn note() -> Value {
    json!({ "note": { "type": "string" } })
}

#[tokio::test]
async fn each_record_of_an_admitted_call_tells_who_asked_for_what_and_by_which_contract_and_policies() {
    let gate = gate(vec![tool("write_note", "write", note(), json!({}))], &[PERMIT], Kept::Values);
    let done = call(&gate, "write_note", r#"{ "note" : "hello" }"#).await;
    assert!(done.is_ok() && call(&gate, "write_note", r#"{"note":"hello"}"#).await.replayed());
    let records = records(&gate).await;
    let kinds: Vec<&str> = records.iter().map(|record| record["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["intent", "outcome", "replay"]);
    for record in &records {
        assert_eq!(record["principal"], json!({ "issuer": "local", "subject": "alice" }));
        assert_eq!((&record["tenant"], &record["run"]), (&json!("acme"), &json!("run_1")));
        assert_eq!(record["roles"], json!(["desk", "support"]));
        assert_eq!(record["arguments"], json!({ "note": "hello" }));
        for digest in ["contract", "policies", "args_digest", "call_digest"] {
            assert_eq!(record[digest].as_str().map(str::len), Some(64), "{digest}: {record}");
            assert_eq!(record[digest], records[0][digest], "{digest}");
            assert!(record["stages"][0].get(digest).is_none(), "it stands in one place: {record}");
        }
        let permit = record["stages"].as_array().unwrap().iter().find(|stage| stage["stage"] == "permit").unwrap();
        assert_eq!(permit["permitted_by"], json!(["all"]));
        assert!(record["stages"].as_array().unwrap().iter().all(|stage| stage["micros"].is_u64()));
    }
    let outcome = &records[1];
    assert_eq!((&outcome["effect"], &outcome["attempts"]), (&json!("done"), &json!(1)));
    assert_eq!(outcome["result_bytes"], json!(done.result().unwrap().len()));
    assert_eq!(outcome["result_digest"].as_str().map(str::len), Some(64));
    assert!(!outcome.to_string().contains("\"ok\""), "a result is told by its size and digest alone");
}

#[tokio::test]
async fn a_refusal_tells_which_policies_it_came_from_and_what_was_asked() {
    let forbid = "@id(\"no-shouting\") forbid (principal, action, resource) when { context.input.note == \"HEY\" };";
    let required = json!({ "input": { "properties": note(), "required": ["note"] } });
    let gate = gate(vec![tool("look", "read", note(), required)], &[PERMIT, forbid], Kept::Values);
    assert_eq!(call(&gate, "look", r#"{"note":"HEY"}"#).await.code(), Some(Code::Forbidden));
    let records = records(&gate).await;
    let refusal = &records[0];
    assert_eq!(
        (&refusal["kind"], &refusal["code"], &refusal["effect"]),
        (&json!("refusal"), &json!("forbidden"), &json!("none"))
    );
    assert_eq!(refusal["arguments"], json!({ "note": "HEY" }));
    assert!(refusal["class"].is_string() && refusal["policies"].is_string(), "{refusal}");
    let permit = refusal["stages"].as_array().unwrap().last().unwrap();
    assert!(permit["why"].as_str().unwrap().contains("no-shouting"), "{permit}");
}

#[tokio::test]
async fn what_was_not_admitted_is_kept_as_it_was_sent_where_nothing_is_secret() {
    let gate = gate(vec![tool("look", "read", note(), json!({}))], &[PERMIT], Kept::Values);
    let sent = r#"{"note": "a", "note": "b"}"#;
    assert_eq!(call(&gate, "look", sent).await.code(), Some(Code::InvalidJson));
    assert_eq!(call(&gate, "lock", sent).await.code(), Some(Code::UnknownTool));
    let records = records(&gate).await;
    assert_eq!(records[0]["raw"]["text"], json!(sent));
    assert!(records[0].get("arguments").is_none() && records[0].get("args_digest").is_none());
    let unknown = &records[1]["raw"];
    assert!(unknown.get("text").is_none() && unknown["bytes"] == json!(sent.len()), "{unknown}");
}

#[tokio::test]
async fn a_tool_that_hides_something_has_no_digest_on_record_by_which_values_could_be_tried() {
    let hiding = json!({ "pin": { "type": "string", "x-secret": true } });
    let plain = json!({ "pin": { "type": "string" } });
    let mut digests = Vec::new();
    for properties in [hiding, plain] {
        let gate = gate(vec![tool("look", "read", properties, json!({}))], &[PERMIT], Kept::Values);
        let reply = call(&gate, "look", r#"{"pin":"1234"}"#).await;
        let known = reply.trace().stages()[0].learned.get("args_digest").cloned().unwrap();
        let record = records(&gate).await.remove(0);
        digests.push(record["args_digest"] == known);
        let shown = record["arguments"]["pin"].clone();
        assert_eq!(shown == json!("1234"), record["args_digest"] == known, "{record}");
    }
    assert_eq!(digests, [false, true]);
}

#[tokio::test]
async fn the_operator_may_have_digests_alone() {
    let gate = gate(vec![tool("look", "read", note(), json!({}))], &[PERMIT], Kept::Digests);
    assert!(call(&gate, "look", r#"{"note":"hello"}"#).await.is_ok());
    assert_eq!(call(&gate, "look", r#"{"note":"hello""#).await.code(), Some(Code::InvalidJson));
    for record in records(&gate).await {
        assert!(!record.to_string().contains("hello"), "{record}");
        assert!(record["args_digest"].is_string() || record["raw"]["digest"].is_string(), "{record}");
    }
}

#[tokio::test]
async fn an_attempt_that_failed_is_told_without_the_secret_that_the_backend_repeated() {
    let token = format!("gh{}_{}", 'p', "aB3xZ9q0".repeat(5));
    let said = format!("no such note: {token}");
    let failing = FakeTool::queue([Step::fails(ToolError::refused("404", said))]);
    let contract = json!({ "description": "A tool.", "effect": "read", "input": { "properties": note() } });
    let gate = gate(vec![failing.tool("look", keys(contract))], &[PERMIT], Kept::Values);
    let reply = call(&gate, "look", &json!({ "note": token }).to_string()).await;
    assert!(!serde_json::to_string(reply.trace()).unwrap().contains(&token));
    let record = records(&gate).await.remove(0);
    assert!(!record.to_string().contains(&token), "{record}");
    assert!(record.to_string().contains("no such note: [secret "), "{record}");
}

#[tokio::test]
async fn a_look_up_that_repeats_a_secret_brings_it_into_no_record() {
    let card = json!({ "card": { "type": "string", "x-secret": true } });
    let asking = json!({ "facts": { "bank": { "tool": "find", "args": { "number": "{card}" } } } });
    let failing = FakeTool::queue([Step::fails(ToolError::unavailable("nobody knows 4000 0027"))]);
    let found = json!({
        "description": "A tool.", "effect": "read", "output": { "type": "object" },
        "input": { "properties": { "number": { "type": "string" } } },
    });
    let gate =
        gate(vec![tool("look", "read", card, asking), failing.tool("find", keys(found))], &[PERMIT], Kept::Values);
    assert_eq!(call(&gate, "look", r#"{"card":"4000 0027"}"#).await.code(), Some(Code::RuleFailed));
    let record = records(&gate).await.remove(0).to_string();
    assert!(record.contains("nobody knows [secret]") && !record.contains("4000 0027"), "{record}");
}

/// A tool that finds whose an order is, and a contract that rests on it.
fn of_a_customer(preview: &str) -> (Tool, Map<String, Value>) {
    let email = json!({ "type": "object", "properties": {
        "email": { "type": "string", "x-personal": true }, "city": { "type": "string" },
    } });
    let find = FakeTool::fixed(json!({ "email": "ada@example.com", "city": "Ulm" })).tool(
        "find",
        keys(json!({
            "description": "A tool.", "effect": "read", "output": email,
            "input": { "properties": { "order": { "type": "string" } } },
        })),
    );
    let contract = json!({
        "description": "A tool.", "effect": "write", "preview": preview,
        "input": { "properties": { "order": { "type": "string" } } },
        "facts": { "customer": { "tool": "find", "args": { "order": "{order}" } } },
    });
    (find, keys(contract))
}

#[test]
fn a_preview_could_name_a_personal_member_of_a_fact() {
    let faults = |preview: &str| {
        let (find, contract) = of_a_customer(preview);
        let send = FakeTool::fixed(json!({})).tool("send", contract);
        let built = Gate::builder().store(Store::memory()).tool(find).tool(send).policy(PERMIT).build();
        match built {
            Err(BuildError::Faults { tools, .. }) => tools.into_iter().map(|fault| fault.problem.message).collect(),
            Err(other) => panic!("{other}"),
            Ok(_) => Vec::new(),
        }
    };
    assert_eq!(faults("To a customer in {fact.customer/city}"), [""; 0]);
    for preview in ["To {fact.customer/email}", "To {fact.customer}"] {
        let told = "a preview is shown and kept, so it cannot name a secret or personal value";
        assert_eq!(faults(preview), [told], "{preview}");
    }
}

#[tokio::test]
async fn a_backend_that_repeated_the_marked_value_of_a_fact_brought_it_into_the_record() {
    let (find, contract) = of_a_customer("To a customer");
    let failing = FakeTool::queue([Step::fails(ToolError::refused("404", "no mailbox ada%40example.com"))]);
    let gate = gate(vec![find, failing.tool("send", contract)], &[PERMIT], Kept::Values);
    let reply = call(&gate, "send", r#"{"order":"o1"}"#).await;
    assert!(serde_json::to_string(reply.trace()).unwrap().contains("no mailbox [secret]"), "{:?}", reply.trace());
    let records = Value::from(records(&gate).await).to_string();
    assert!(records.contains("no mailbox [secret]") && !records.contains("ada%40"), "{records}");
}

#[tokio::test]
async fn a_number_and_a_list_under_the_name_of_a_secret_stood_on_the_record() {
    let open = json!({ "password": {}, "note": { "type": "string" } });
    let gate = gate(vec![tool("look", "read", open, json!({}))], &[PERMIT], Kept::Values);
    for password in [json!(4711), json!(["hunter2x"]), json!({ "now": "hunter2x", "then": [4711, true] })] {
        assert!(call(&gate, "look", &json!({ "password": password, "note": "n" }).to_string()).await.is_ok());
    }
    for record in records(&gate).await {
        let shown = record["arguments"].to_string();
        assert!(!shown.contains("4711") && !shown.contains("hunter2x") && shown.contains("[secret "), "{shown}");
        assert_eq!(record["arguments"]["note"], "n");
    }
}

#[tokio::test]
async fn a_person_is_erased_within_their_tenant_alone() {
    let personal = json!({ "name": { "type": "string", "x-personal": true }, "id": { "type": "string" } });
    let more = json!({ "input": { "properties": personal, "required": ["id"] }, "subject": "{id}" });
    let gate = gate(vec![tool("look", "read", json!({}), more)], &[PERMIT], Kept::Values);
    let erase = |tenant: &str| {
        let (gate, by) = (gate.clone(), Session::new(Principal::new("os", "operator#1"), tenant));
        async move { gate.erase("c1", &by, InDoubt::Spared).await }
    };
    assert_eq!(erase("acme").await, Err(NotErased::Nobody));
    for _ in 0..2 {
        assert!(call(&gate, "look", r#"{"name":"Ada","id":"c1"}"#).await.is_ok());
    }
    assert_eq!(erase("globex").await, Err(NotErased::Nobody));
    assert_eq!(erase("acme").await.unwrap().actions, 0);
    assert!(call(&gate, "look", r#"{"name":"Ada","id":"c1"}"#).await.is_ok());
    let records = records(&gate).await;
    let reads: Vec<&Value> = records.iter().filter(|record| record["kind"] == "read").collect();
    let name = |index: usize| &reads[index]["arguments"]["name"];
    assert!(name(0) == name(1) && name(1) != name(2), "{reads:?}");
    assert_ne!(reads[1]["args_digest"], reads[2]["args_digest"]);
    assert!(gate.store().verify(None).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_name_that_a_model_wrote_left_a_key_behind_though_nothing_ran() {
    let personal = json!({ "name": { "type": "string", "x-personal": true }, "id": { "type": "string" } });
    let more = json!({ "input": { "properties": personal, "required": ["id"] }, "subject": "{id}" });
    let never = "@id(\"never\") forbid (principal, action, resource) when { context.input.id == \"c2\" };";
    let gate = gate(vec![tool("note", "write", json!({}), more)], &[PERMIT, never], Kept::Values);
    let by = Session::new(Principal::new("os", "operator#1"), "acme");
    let dry = Call::new("call_1", "note", r#"{"name":"Ada","id":"c1"}"#);
    assert!(gate.dry_run(dry, &alice()).await.unwrap().is_ok());
    for _ in 0..2 {
        assert_eq!(call(&gate, "note", r#"{"name":"Ada","id":"c2"}"#).await.code(), Some(Code::Forbidden));
    }
    for id in ["c1", "c2"] {
        assert_eq!(gate.erase(id, &by, InDoubt::Spared).await, Err(NotErased::Nobody), "{id}");
    }
    assert!(call(&gate, "note", r#"{"name":"Ada","id":"c1"}"#).await.is_ok());
    assert_eq!(gate.erase("c1", &by, InDoubt::Spared).await.unwrap().actions, 1);
    assert_eq!(call(&gate, "note", r#"{"name":"Ada","id":"c1"}"#).await.code(), Some(Code::AlreadyDone));
    assert_eq!(gate.erase("c1", &by, InDoubt::Spared).await, Err(NotErased::Nobody), "it ran no more");
    let records = records(&gate).await;
    let refused: Vec<&Value> = records.iter().filter(|record| record["kind"] == "refusal").collect();
    assert_ne!(refused[0]["arguments"]["name"], refused[1]["arguments"]["name"]);
    let of_one =
        |kind: &str| records.iter().find(|record| record["kind"] == kind).unwrap()["arguments"]["name"].clone();
    assert_eq!(of_one("intent"), of_one("outcome"));
}

#[test]
fn a_subject_that_may_be_absent_or_names_no_argument_is_a_fault_of_the_contract() {
    for (subject, told) in [("{nobody}", "names no argument"), ("{id}", "may be absent"), ("{fact.x/y}", "facts")] {
        let properties = json!({ "id": { "type": "string" } });
        let tool = tool("look", "read", properties, json!({ "subject": subject }));
        let error = Gate::builder().tool(tool).policy(PERMIT).store(Store::memory()).build().unwrap_err().to_string();
        assert!(error.contains("/subject") && error.contains(told), "{error}");
    }
}
