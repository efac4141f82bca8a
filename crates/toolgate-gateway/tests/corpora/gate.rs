//! A case once more, in a gate of this process whose tools are fakes: how many of its calls reach a tool.

use serde_json::{Value, json};
use toolgate::backend::FakeTool;
use toolgate::gate::BuildError;
use toolgate::json::Limits;
use toolgate::ledger::Store;
use toolgate::session::{Principal, Session};
use toolgate::wire::{Dialect, Proposed};
use toolgate::{Call, Gate};

use super::input;

/// How many calls of a case reached the tools of its contracts, in a gate that permits everything. Fails if the
/// contracts make no gate.
pub(super) fn backend_calls(case: &Value) -> Result<usize, BuildError> {
    let contracts = case["contracts"].as_array().cloned().unwrap_or_else(|| vec![case["contract"].clone()]);
    let mut builder = Gate::builder().policy("permit (principal, action, resource);").store(Store::memory());
    let fakes: Vec<FakeTool> = contracts.iter().map(|_| FakeTool::fixed(json!({}))).collect();
    for (contract, fake) in contracts.iter().zip(&fakes) {
        let mut keys = contract.as_object().unwrap().clone();
        let name = keys.remove("name").unwrap();
        keys.entry("description").or_insert_with(|| json!("A tool."));
        builder = builder.tool(fake.tool(name.as_str().unwrap(), keys));
    }
    let gate = builder.build()?;
    let session = Session::new(Principal::new("local", "alice"), "acme");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        gate.turn(proposed(case, &contracts[0]), &session).await;
        gate.finish().await.unwrap();
    });
    Ok(fakes.iter().map(|fake| fake.calls().len()).sum())
}

/// The calls of a message, none if it is no message of its dialect; without a dialect, the one call of the one contract.
fn proposed(case: &Value, contract: &Value) -> Vec<Proposed> {
    let text = input(case);
    match case.get("dialect") {
        None => vec![Proposed::Call(Call::new("call_1", contract["name"].as_str().unwrap(), text))],
        Some(dialect) => {
            let limits = Limits { size: text.len(), ..Limits::default() };
            let dialect = Dialect::parse(dialect.as_str().unwrap()).unwrap();
            dialect.decode(&text, &limits).map(|turn| turn.open().0).unwrap_or_default()
        }
    }
}
