//! A tool that is called as it was shown: by a short form of its name, with the nulls of strict mode.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs, reason = "a test may panic")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate::backend::Context;
use toolgate::gate::BuildError;
use toolgate::json::Limits;
use toolgate::ledger::Store;
use toolgate::refusal::Code;
use toolgate::session::{Principal, Session};
use toolgate::wire::Dialect;
use toolgate::{Call, Gate, Reply, Tool};

/// A payment.
#[derive(Deserialize, JsonSchema)]
struct Pay {
    cents: i64,
}

#[derive(Serialize, JsonSchema)]
struct Paid {
    cents: i64,
}

const CLERKS: &str = r#"permit (principal in Role::"clerk", action, resource);"#;

/// A name of 77 characters.
fn long() -> String {
    format!("bank.accounts.{}", "payments_".repeat(7))
}

fn pay(name: &str) -> Tool {
    Tool::write(name, |args: Pay, _: &Context| async move { Ok(Paid { cents: args.cents }) })
}

fn gate() -> Gate {
    Gate::builder().tool(pay(&long())).store(Store::memory()).policy(CLERKS).build().unwrap()
}

fn clerk() -> Session {
    Session::new(Principal::new("local", "alice"), "acme").role("clerk")
}

fn guest() -> Session {
    Session::new(Principal::new("local", "bob"), "acme")
}

/// How the gate's one tool is shown to OpenAI.
fn shown(gate: &Gate) -> String {
    let tools = Dialect::OpenaiChat.definitions(&gate.tools(&clerk()));
    tools[0]["function"]["name"].as_str().unwrap().to_owned()
}

/// Everything of a reply but what differs between any two calls.
fn told(reply: &Reply) -> Value {
    let mut told = serde_json::to_value(reply).unwrap();
    told.as_object_mut().unwrap().retain(|name, _| name != "ref" && name != "trace");
    if let Some(Value::Object(error)) = told.get_mut("error") {
        error.remove("ref");
    }
    told
}

#[tokio::test]
async fn a_short_form_of_a_name_is_the_same_tool_and_the_same_action() {
    let gate = gate();
    let short = shown(&gate);
    assert_eq!(short.len(), 64);
    let first = gate.call(Call::new("c", short.clone(), r#"{"cents":5}"#), &clerk()).await.unwrap();
    assert_eq!((first.code(), first.tool()), (None, long().as_str()));
    let again = gate.call(Call::new("c", long(), r#"{"cents":5}"#), &clerk()).await.unwrap();
    assert!(told(&again)["replayed"] == json!(true) && again.tool() == long(), "{again:?}");
    let dry = gate.dry_run(Call::new("c", short, r#"{"cents":6}"#), &clerk()).await.unwrap();
    assert_eq!((dry.code(), dry.tool()), (None, long().as_str()));
}

#[tokio::test]
async fn a_short_form_of_a_hidden_tool_is_as_unknown_as_any_name() {
    let gate = gate();
    let short = shown(&gate);
    let absent = short.replace("-h", "-ha").chars().take(64).collect::<String>();
    for call in [short.clone(), long()] {
        let hidden = gate.call(Call::new("c", call.clone(), "{}"), &guest()).await.unwrap();
        assert_eq!((hidden.code(), hidden.tool()), (Some(Code::UnknownTool), call.as_str()));
        let missing = gate.call(Call::new("c", absent.clone(), "{}"), &guest()).await.unwrap();
        assert_eq!(told(&hidden), told(&missing));
        let dry = gate.dry_run(Call::new("c", call.clone(), "{}"), &guest()).await.unwrap();
        assert_eq!((told(&dry), dry.tool()), (told(&missing), call.as_str()));
    }
}

#[test]
fn a_tool_whose_name_is_the_short_form_of_another_is_a_fault() {
    let short = shown(&gate());
    let built = Gate::builder().tool(pay(&long())).tool(pay(&short)).store(Store::memory()).policy(CLERKS).build();
    let Err(BuildError::Faults { tools, .. }) = built else { panic!("two tools would be shown alike") };
    let at: Vec<_> = tools.iter().map(|fault| (fault.tool.as_str(), fault.problem.at.as_str())).collect();
    assert_eq!(at, [(short.as_str(), "/name")]);
}

#[tokio::test]
async fn the_record_tells_which_members_strict_mode_had_left_out() {
    let input = json!({
        "properties": { "cents": { "type": "integer" }, "note": { "type": "string" } }, "required": ["cents"],
    });
    let tool = Tool::read("look", |args: Pay, _: &Context| async move { Ok(Paid { cents: args.cents }) });
    let builder = Gate::builder().tool(tool.key("input", input)).store(Store::memory());
    let gate = builder.policy("permit (principal, action, resource);").build().unwrap();
    let message = json!({ "role": "assistant", "tool_calls": [{
        "id": "c", "function": { "name": "look", "arguments": r#"{"cents":5,"note":null}"# },
    }] });
    let turn = |dialect: Dialect| dialect.decode(message.to_string().as_bytes(), &Limits::default()).unwrap().open().0;
    let replies = gate.turn(turn(Dialect::OpenaiStrict), &guest()).await;
    let reply = replies[0].as_ref().unwrap();
    let admitted = &reply.trace().stages()[0].learned;
    assert_eq!((reply.code(), admitted.get("absent")), (None, Some(&json!(["/note"]))));
    assert_eq!(admitted.get("arguments"), Some(&json!({ "cents": 5 })));
    let replies = gate.turn(turn(Dialect::OpenaiChat), &guest()).await;
    assert_eq!(replies[0].as_ref().unwrap().code(), Some(Code::InvalidArguments));
}
