#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test may panic, and say what it counted"
)]

mod bounds;
mod documents;
mod imported;
mod refusals;
mod results;
mod suite;
mod warnings;

use serde_json::{Value, json};

use super::*;

fn input(document: Value) -> Schema {
    Schema::input(&document).unwrap()
}

fn output(document: Value) -> Schema {
    Schema::output(&document).unwrap()
}

/// Code and place of each problem.
fn codes(schema: &Schema, value: &Value) -> Vec<(String, String)> {
    let problems = schema.problems(value);
    assert_eq!(problems.is_empty(), schema.is_valid(value), "{value}: {problems:?}");
    problems.list.into_iter().map(|p| (p.code, p.at)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(code, at)| ((*code).to_owned(), (*at).to_owned())).collect()
}

/// The one problem of a value, as message and hint.
fn only(schema: &Schema, value: &Value) -> (String, Option<String>) {
    let mut problems = schema.problems(value).list;
    assert_eq!(problems.len(), 1, "{problems:?}");
    let problem = problems.remove(0);
    (problem.message, problem.hint)
}

fn refund() -> Schema {
    input(json!({
        "type": "object",
        "properties": {
            "order_id": { "type": "string", "pattern": "^ord_[A-Za-z0-9]+$", "description": "The order. It must be paid." },
            "amount_cents": { "type": "integer", "minimum": 1, "maximum": 100000 },
            "currency": { "enum": ["USD"] },
            "reason": { "type": "string", "enum": ["duplicate", "customer_request", "damaged", "other"] },
        },
        "required": ["order_id", "amount_cents", "currency", "reason"],
    }))
}
