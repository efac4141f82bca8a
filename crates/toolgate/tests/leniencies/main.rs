//! Leniencies: what each takes, what it never takes, and that a right call is never touched.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

mod contracts;
mod defaults;
mod names;
mod properties;
mod values;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate::admission::{Admission, EffectiveArguments};
use toolgate::backend::Context;
use toolgate::contract::Contract;
use toolgate::gate::BuildError;
use toolgate::json::Limits;
use toolgate::ledger::Store;
use toolgate::refusal::{Code, Refusal};
use toolgate::schema::Problem;
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Tool};

/// A read tool with these leniencies, whose arguments have these members, none of them required.
fn keys(lenient: &[&str], properties: Value) -> Value {
    json!({
        "description": "A tool.", "effect": "read", "lenient": lenient,
        "input": { "properties": properties },
    })
}

fn with(mut keys: Value, more: Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        keys[key] = value.clone();
    }
    keys
}

fn admission(keys: &Value) -> Admission {
    let mut admission = Admission::new(Limits::default());
    admission.add(Contract::parse("tool", keys).unwrap_or_else(|problems| panic!("{problems:?}"))).unwrap();
    admission
}

fn admit(keys: &Value, text: &str) -> Result<EffectiveArguments, Refusal> {
    admission(keys).admit(&Call::new("", "tool", text))
}

/// The effective arguments and what was used for them.
fn taken(keys: &Value, arguments: Value) -> (Value, Vec<String>) {
    let taken = admit(keys, &arguments.to_string()).unwrap_or_else(|refusal| panic!("{arguments}: {refusal:?}"));
    (Value::Object(taken.members().clone()), taken.leniencies().iter().map(ToString::to_string).collect())
}

#[track_caller]
fn assert_taken(keys: &Value, sent: Value, meant: Value, used: &[&str]) {
    assert_eq!(taken(keys, sent.clone()), (meant.clone(), used.iter().map(|u| (*u).to_owned()).collect()), "{sent}");
    // The same call, written right, is the same call.
    let (sent, right) = (admit(keys, &sent.to_string()).unwrap(), admit(keys, &meant.to_string()).unwrap());
    assert_eq!(sent.digest(), right.digest());
    assert!(right.leniencies().is_empty(), "{meant} is right as it stands");
}

/// The places of the problems for which a call is refused.
#[track_caller]
fn refused(keys: &Value, sent: Value) -> Vec<String> {
    let refusal = admit(keys, &sent.to_string()).expect_err(&sent.to_string());
    assert_eq!(refusal.code(), Code::InvalidArguments, "{sent}");
    refusal.problem_list().iter().map(|problem| problem.at.clone()).collect()
}

/// The faults of a contract: place and hint.
fn faults(keys: &Value) -> Vec<(String, String)> {
    let told = |problem: &Problem| (problem.at.clone(), problem.hint.clone().unwrap_or_default());
    Contract::parse("tool", keys).expect_err("a fault").iter().map(told).collect()
}
