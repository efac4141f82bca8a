//! Foundation: the room that fills this in follows.

use serde_json::{Value, json};

use super::frame::Frame;
use super::{Answered, Turn, WireFault};
use crate::contract::Contract;

pub(super) fn decode(frame: &Frame<'_>) -> Result<Turn, WireFault> {
    Err(frame.fault(frame.bytes(), "a dialect that is not read yet", "wait"))
}

pub(super) fn encode(answers: &[Answered<'_>]) -> Vec<Value> {
    answers.iter().map(|answer| json!({ "content": answer.content() })).collect()
}

pub(super) fn definition(name: &str, contract: &Contract, schema: Value) -> Value {
    json!({ "type": "function", "function": { "name": name, "description": contract.description(), "parameters": schema } })
}
