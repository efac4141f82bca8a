//! The host names an operation: by a header, or in `_meta`.

use serde_json::{Value, json};

use super::{lock, refund};
use crate::folder::Folder;
use crate::serve::{Response, Serving, message, post};

/// A shop whose host may name refunds.
fn shop() -> Folder {
    let folder = Folder::shop();
    folder.edit(
        "tools/create_refund.toml",
        "# Equal arguments of one user",
        "once = { caller = true }\n# Equal arguments",
    );
    folder
}

fn refunded(serving: &Serving, headers: &[(&str, &str)], amount_cents: i64) -> Response {
    post(serving.address(), "/v1/calls", headers, &message(&[("create_refund", &refund("ord_4821", amount_cents))]))
}

/// The status and the code of the only outcome.
fn outcome(response: &Response) -> (u64, String) {
    let outcome = &response.json()["outcomes"][0];
    let code = outcome["reply"]["error"]["code"].as_str().unwrap_or("ok");
    (outcome["status"].as_u64().unwrap(), code.to_owned())
}

#[test]
fn an_operation_happens_once_whatever_header_names_it_and_stands_for_nothing_else() {
    let folder = shop();
    let serving = Serving::start(folder.path(), &[]);
    let key = ("Idempotency-Key", "order-77/refund");
    let first = refunded(&serving, &[key], 100);
    assert_eq!((outcome(&first), &first.reply()["replayed"]), ((200, "ok".to_owned()), &json!(false)));
    for headers in [[key], [("Toolgate-Operation", key.1)]] {
        let again = refunded(&serving, &headers, 100);
        assert_eq!((&again.reply()["result"], &again.reply()["replayed"]), (&first.reply()["result"], &json!(true)));
    }
    let other = refunded(&serving, &[key], 200);
    assert_eq!(outcome(&other), (422, "key_conflict".to_owned()));
    assert_eq!(other.reply()["error"]["effect"], "none");
    // Another operation with the same arguments is meant as another one.
    let second = refunded(&serving, &[("Idempotency-Key", "order-77/refund-2")], 100);
    assert_eq!((outcome(&second), &second.reply()["replayed"]), ((200, "ok".to_owned()), &json!(false)));

    // The same operation, named over MCP.
    let mcp = |id: Value| {
        let params = json!({ "name": "create_refund", "arguments": refund("ord_4821", 100),
            "_meta": { "toolgate/operation": id } });
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        serving.post("/mcp", &request).json()["result"].clone()
    };
    let again = mcp(json!("order-77/refund"));
    assert_eq!(again["_meta"]["toolgate/reply"]["replayed"], true, "{again}");
    assert_eq!(again["structuredContent"], first.reply()["result"]);
    for bad in [json!("x".repeat(256)), json!("a b"), json!(""), json!(7)] {
        let refused = mcp(bad.clone());
        let text = refused["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{bad}: {refused}"));
        assert!(text.contains("invalid_call") && text.contains("1 to 255 visible ASCII"), "{bad}: {text}");
    }
    serving.stop();
    assert_eq!(folder.number("select count(*) from refunds where amount_cents = 100"), 2);
}

#[test]
fn a_header_that_named_an_operation_over_mcp_was_passed_over_in_silence() {
    let folder = shop();
    let serving = Serving::start(folder.path(), &[]);
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "create_refund", "arguments": refund("ord_4821", 100) },
    });
    for header in ["Idempotency-Key", "Toolgate-Operation"] {
        let headers = [(header, "op-1"), ("Accept", "application/json, text/event-stream")];
        let response = post(serving.address(), "/mcp", &headers, &call);
        assert_eq!((response.status, response.code().as_str()), (400, "bad_header"), "{header}");
        assert!(response.json()["hint"].as_str().unwrap().contains("_meta"), "{}", response.body);
    }
    assert_eq!(folder.number("select count(*) from refunds"), 0);
    serving.stop();
}

#[test]
fn what_is_no_operation_id_is_refused_before_anything_runs() {
    let folder = shop();
    let serving = Serving::start(folder.path(), &[]);
    let (longest, longer) = ("x".repeat(255), "x".repeat(256));
    for bad in [longer.as_str(), "a b", ""] {
        let response = refunded(&serving, &[("Idempotency-Key", bad)], 100);
        assert_eq!((response.status, response.code().as_str()), (400, "bad_header"), "{bad:?}");
        let problem = response.json();
        assert!(problem["detail"].as_str().unwrap().contains("1 to 255"), "{problem}");
        assert!(bad.is_empty() || !response.body.contains(bad), "no echo");
    }
    let two = message(&[("create_refund", &refund("ord_4821", 100)), ("create_refund", &refund("ord_1001", 100))]);
    let both = post(serving.address(), "/v1/calls", &[("Idempotency-Key", "op-1")], &two);
    assert_eq!((both.status, both.code().as_str()), (400, "bad_header"));
    let twice = [("Idempotency-Key", "op-1"), ("Toolgate-Operation", "op-1")];
    assert_eq!(refunded(&serving, &twice, 100).status, 400);
    // A tool whose contract says nothing of it takes none, and the refusal says why.
    let order = message(&[("get_order", &json!({ "order_id": "ord_4821" }))]);
    let read = post(serving.address(), "/v1/calls", &[("Idempotency-Key", "op-1")], &order);
    assert_eq!(outcome(&read), (400, "invalid_call".to_owned()));
    assert!(read.reply()["error"]["message"].as_str().unwrap().contains("caller = true"));
    assert_eq!(folder.number("select count(*) from refunds"), 0);
    assert_eq!(outcome(&refunded(&serving, &[("Idempotency-Key", &longest)], 100)), (200, "ok".to_owned()));
    serving.stop();
}

#[test]
fn while_it_runs_it_is_in_progress_and_whoever_waits_is_answered_with_its_reply() {
    let folder = shop();
    let serving = Serving::start(folder.path(), &[]);
    serving.call(&[("get_order", &json!({ "order_id": "ord_4821" }))]);
    let database = lock(&folder.join("state/shop.db"));
    let key = ("Idempotency-Key", "op-1");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| refunded(&serving, &[key], 100));
        let waiting = scope.spawn(|| refunded(&serving, &[key], 100));
        std::thread::sleep(std::time::Duration::from_millis(500));
        let impatient = refunded(&serving, &[key, ("Toolgate-Patience", "100")], 100);
        assert_eq!(outcome(&impatient), (409, "in_progress".to_owned()));
        assert_eq!(impatient.reply()["error"]["retry"], "after");
        drop(database);
        let replies = [first, waiting].map(|thread| thread.join().unwrap().reply());
        assert_eq!(replies[0]["result"], replies[1]["result"]);
        let replayed = replies.iter().filter(|reply| reply["replayed"] == true).count();
        assert_eq!(replayed, 1, "{replies:?}");
    });
    serving.stop();
    assert_eq!(folder.number("select count(*) from refunds"), 1);
}
