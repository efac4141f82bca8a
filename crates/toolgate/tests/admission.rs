//! Admission alone answers as a gate's first stage does: with the same digest, and with the same refusal.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate::admission::{Admission, NameTaken};
use toolgate::backend::Context;
use toolgate::contract::Contract;
use toolgate::json::Limits;
use toolgate::ledger::Store;
use toolgate::refusal::Code;
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Tool};

fn keys() -> Map<String, Value> {
    let input = json!({
        "properties": {
            "name": { "type": "string", "minLength": 1 },
            "count": { "type": "integer", "maximum": 1000 },
            "rate": { "type": "number" },
            "tags": { "type": "array", "items": { "type": ["string", "null", "boolean"] } },
        },
        "required": ["name"],
    });
    Map::from_iter([
        ("description".to_owned(), json!("A tool.")),
        ("effect".to_owned(), json!("read")),
        ("input".to_owned(), input),
    ])
}

fn admission() -> Admission {
    let mut admission = Admission::new(Limits::default());
    admission.add(Contract::parse("shop.tool", &keys().into()).unwrap()).unwrap();
    admission
}

fn gate() -> Gate {
    let mut tool = Tool::read("shop.tool", |arguments: Value, _: &Context| async move { Ok(arguments) });
    for (key, value) in keys() {
        tool = tool.key(key, value);
    }
    Gate::builder().tool(tool).policy("permit (principal, action, resource);").store(Store::memory()).build().unwrap()
}

/// What both say of a call: the digest of its arguments, or the refusal without its ref.
fn both(tool: &str, text: &str) -> (Result<String, Value>, Result<String, Value>) {
    let call = Call::new("call_1", tool, text);
    let alone = admission().admit(&call);
    let alone = alone.map(|a| a.digest().hex()).map_err(|refusal| serde_json::to_value(refusal).unwrap());
    let session = Session::new(Principal::new("local", "alice"), "acme");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let reply = runtime.block_on(gate().call(call, &session)).unwrap();
    let noted =
        reply.trace().stages().iter().find(|note| note.stage == "admit").expect("the stage").learned.get("args_digest");
    let at_the_gate = match noted {
        Some(digest) => Ok(digest.as_str().unwrap().to_owned()),
        None => Err(serde_json::to_value(reply.refusal().unwrap()).unwrap()),
    };
    (alone, at_the_gate)
}

#[test]
fn the_refusals_are_those_of_a_gate() {
    for (tool, text, code) in [
        ("shop.tool", r#"{"name": "a", "n\u0061me": "b"}"#, Code::InvalidJson),
        ("shop.tool", "null", Code::InvalidJson),
        ("shop.tool", "", Code::InvalidArguments),
        ("shop.tool", r#"{"name": "", "count": "7", "color": 1}"#, Code::InvalidArguments),
        ("shop.tol", "{}", Code::UnknownTool),
        ("other", "{}", Code::UnknownTool),
    ] {
        let (alone, at_the_gate) = both(tool, text);
        assert_eq!(alone, at_the_gate, "{tool} {text}");
        assert_eq!(alone.unwrap_err()["code"], json!(code), "{tool} {text}");
    }
}

#[test]
fn one_value_has_one_spelling_and_one_digest() {
    let admission = admission();
    let read = |text: &str| admission.admit(&Call::new("", "shop.tool", text)).unwrap();
    let first = read(r#"{"name":"a","count":1e2,"rate":0.50}"#);
    assert_eq!(first.canonical(), r#"{"count":100,"name":"a","rate":0.5}"#);
    assert_eq!(first.digest(), read(r#"{ "rate": 5e-1, "n\u0061me": "a", "count": 100.0 }"#).digest());
    assert_ne!(first.digest(), read(r#"{"name":"a","count":100}"#).digest());
}

#[test]
fn a_name_is_taken_once() {
    let mut admission = admission();
    let again = Contract::parse("shop.tool", &keys().into()).unwrap();
    assert_eq!(admission.add(again), Err(NameTaken("shop.tool".to_owned())));
    assert_eq!(admission.contracts().count(), 1);
}

#[test]
fn a_name_that_is_written_otherwise_or_has_another_prefix_is_hinted_at_but_never_resolved() {
    let mut admission = Admission::new(Limits::default());
    for name in ["web-fetch", "files.read", "mail.read", "search"] {
        admission.add(Contract::parse(name, &keys().into()).unwrap()).unwrap();
    }
    for (name, hint) in [
        ("fetch", Some("did you mean web-fetch?")),
        ("functions.search", Some("did you mean search?")),
        ("mcp__web-fetch", Some("did you mean web-fetch?")),
        ("search ", Some("did you mean search?")),
        ("WEB_FETCH", Some("did you mean web-fetch?")),
        ("FilesRead", Some("did you mean files.read?")),
        ("read", None),
        ("etch", None),
        ("", None),
    ] {
        let refusal = admission.admit(&Call::new("c", name, r#"{"name":"a"}"#)).unwrap_err();
        assert_eq!(refusal.code(), Code::UnknownTool, "{name}");
        assert_eq!(refusal.text().split_once(": ").map(|(_, hint)| hint), hint, "{name}: {}", refusal.text());
    }
}

/// Arguments of all kinds, also such as the contract refuses.
fn arguments() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1000i64..2000).prop_map(Value::from),
        (-1.0e6f64..1.0e6).prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    let value = prop_oneof![leaf.clone(), proptest::collection::vec(leaf, 0..3).prop_map(Value::from)];
    proptest::collection::btree_map("name|count|rate|tags|other", value, 0..5)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_digest_is_the_one_that_a_gate_notes(arguments in arguments()) {
        let (alone, at_the_gate) = both("shop.tool", &arguments.to_string());
        prop_assert_eq!(alone, at_the_gate);
    }
}
