//! A number means the same to the backend, to the audit and to the digest, whatever its spelling.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs, reason = "a test may panic")]

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolgate::backend::Context;
use toolgate::json::{Limits, read};
use toolgate::ledger::Store;
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Tool};

/// What a backend was given for the number, and what the records say of it: its arguments and their digest.
async fn told(number: &str) -> (String, String, String) {
    let given = Arc::new(Mutex::new(Value::Null));
    let taken = Arc::clone(&given);
    let tool = Tool::read("measure", move |arguments: Value, _: &Context| {
        *taken.lock().unwrap() = arguments["number"].clone();
        async move { Ok(json!({})) }
    });
    let tool =
        tool.description("Takes a number.").key("input", json!({ "properties": { "number": { "type": "number" } } }));
    let builder = Gate::builder().tool(tool).policy("permit (principal, action, resource);").store(Store::memory());
    let gate = builder.build().unwrap();
    let session = Session::new(Principal::new("local", "alice"), "acme");
    let text = format!(r#"{{"number":{number}}}"#);
    assert!(gate.call(Call::new("call_1", "measure", text), &session).await.unwrap().is_ok(), "{number}");
    gate.finish().await.unwrap();
    let records = gate.store().tail(10).await.unwrap();
    let bodies = records.iter().map(|record| read(record.body.as_bytes(), &Limits::default()).unwrap());
    let learned = bodies.filter_map(|body| find(&body, "args_digest")).next().unwrap();
    let backend = given.lock().unwrap().to_string();
    (backend, learned["arguments"]["number"].to_string(), learned["args_digest"].to_string())
}

/// The object that has a member of this name.
fn find(value: &Value, name: &str) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(name) => Some(value.clone()),
        Value::Object(members) => members.values().find_map(|value| find(value, name)),
        Value::Array(items) => items.iter().find_map(|value| find(value, name)),
        _ => None,
    }
}

#[tokio::test]
async fn every_digit_of_a_64_bit_integer_reaches_the_backend_the_audit_and_the_digest() {
    let mut digests = Vec::new();
    for number in [
        "9007199254740992",
        "9007199254740993",
        "9007199254740994",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551614",
        "18446744073709551615",
        "-9223372036854775807",
        "-9223372036854775808",
    ] {
        let (backend, audit, digest) = told(number).await;
        assert_eq!((backend.as_str(), audit.as_str()), (number, number));
        assert!(!digests.contains(&digest), "{number} has the digest of another");
        digests.push(digest);
    }
}

#[tokio::test]
async fn all_spellings_of_a_number_are_one_to_the_backend_the_audit_and_the_digest() {
    for (kept, spellings) in [
        ("25", ["25.0", "2.5e1", "250E-1"]),
        ("1000", ["1e3", "1E+3", "1000.000"]),
        ("0", ["-0", "-0.0", "0e7"]),
        ("0.1", ["1e-1", "0.10", "100e-3"]),
        ("9007199254740993", ["9007199254740993.0", "9007199254740.993e3", "90071992547409930e-1"]),
    ] {
        let wanted = told(kept).await;
        assert_eq!((wanted.0.as_str(), wanted.1.as_str()), (kept, kept));
        for spelling in spellings {
            assert_eq!(told(spelling).await, wanted, "{spelling}");
        }
    }
}
