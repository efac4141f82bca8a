//! A store that cannot be written is a fault before anything is answered.

use serde_json::json;

use super::refund;
use crate::door::{self, Run, toolgate};
use crate::folder::Folder;

const STORE: &str = "store = \"sqlite:state/toolgate.db\"";
const READ_ONLY: &str = "store = \"sqlite:state/toolgate.db?mode=ro\"";

fn assert_a_fault(run: &Run) {
    assert_eq!(run.exit, Some(1), "{run:?}");
    assert_eq!(run.stdout, "", "a fault is no answer");
    assert!(run.stderr.contains("state/toolgate.db"), "it names the store: {}", run.stderr);
}

#[test]
fn a_read_only_store_stops_reads_and_writes_alike() {
    let folder = Folder::shop();
    let order = json!({ "order_id": "ord_4821" });
    assert_eq!(door::call(folder.path(), "alice@acme", "get_order", &order).exit, Some(0));

    folder.edit("toolgate.toml", STORE, READ_ONLY);
    assert_a_fault(&door::call(folder.path(), "alice@acme", "get_order", &order));
    assert_a_fault(&door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_4821", 100)));
    // A call that would be refused anyway is no exception.
    assert_a_fault(&door::call(folder.path(), "alice@acme", "no_such_tool", &json!({})));
    let dir = folder.path().to_str().unwrap();
    let message = json!({ "role": "assistant", "tool_calls": [
        { "id": "call_1", "type": "function", "function": { "name": "get_order", "arguments": order.to_string() } }
    ] });
    assert_a_fault(&Run::of(&mut toolgate(&["exec", dir, "--from", "openai-chat", "--json"]), &message.to_string()));
    assert_eq!(folder.number("select count(*) from refunds"), 0);

    folder.edit("toolgate.toml", READ_ONLY, STORE);
    assert_eq!(door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_4821", 100)).exit, Some(0));
    door::verify(folder.path()).unwrap();
}

#[test]
fn a_read_only_store_that_is_not_there_yet_is_a_fault_too_and_is_not_made() {
    let folder = Folder::shop();
    folder.edit("toolgate.toml", STORE, READ_ONLY);
    let looked = door::call(folder.path(), "alice@acme", "get_order", &json!({ "order_id": "ord_4821" }));
    assert_a_fault(&looked);
    assert!(!folder.join("state/toolgate.db").exists());
}

#[test]
fn a_store_that_is_no_database_is_a_fault() {
    let folder = Folder::shop();
    std::fs::create_dir(folder.join("state")).unwrap();
    folder.write("state/toolgate.db", &"not a database at all, but longer than a header of one. ".repeat(100));
    assert_a_fault(&door::call(folder.path(), "alice@acme", "get_order", &json!({ "order_id": "ord_4821" })));
}
