//! Foundation: the room that fills this in follows.

use serde_json::{Map, Value, json};

use super::definitions::Parameters;
use super::frame::Frame;
use super::{Answered, Turn, WireFault};
use crate::contract::Contract;

pub(super) fn decode(frame: &Frame<'_>) -> Result<Turn, WireFault> {
    Err(frame.fault(frame.bytes(), "a dialect that is not read yet", "wait"))
}

pub(super) fn encode(answers: &[Answered<'_>]) -> Vec<Value> {
    answers.iter().map(|answer| json!({ "content": answer.content() })).collect()
}

pub(super) fn definition(name: &str, contract: &Contract, parameters: Parameters) -> Value {
    let mut function = Map::new();
    function.insert("name".to_owned(), json!(name));
    function.insert("description".to_owned(), json!(contract.description()));
    if let Some((form, schema)) = parameters {
        function.insert(form.to_owned(), schema);
    }
    Value::Object(function)
}
