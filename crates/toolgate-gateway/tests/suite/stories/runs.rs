//! What a run has done, over several processes of one store and over the network.

use serde_json::{Value, json};

use super::refund;
use super::tokens;
use crate::door::{Run, call, toolgate};
use crate::folder::Folder;
use crate::serve::{Serving, message};

/// A shop in which an order is looked at before it is refunded.
fn careful(folder: Folder) -> Folder {
    folder.edit("tools/create_refund.toml", "tags = [\"refunds\"]", "tags = [\"refunds\"]\nrequires = [\"get_order\"]");
    folder
}

#[test]
fn a_tool_that_must_come_first_may_be_called_by_another_process() {
    let folder = careful(Folder::shop());
    let refunded = || call(folder.path(), "alice@acme", "create_refund", &refund("ord_1001", 100));
    let early = refunded();
    assert_eq!(early.exit, Some(3), "{early:?}");
    let error = &early.json()["error"];
    assert_eq!((&error["code"], &error["rule"]), (&json!("rule_failed"), &json!("create_refund.requires.get_order")));
    assert_eq!((&error["fix"], &error["retry"]), (&json!("model"), &json!("after_change")));
    let looked = call(folder.path(), "alice@acme", "get_order", &json!({"order_id": "ord_1001"}));
    assert_eq!(looked.exit, Some(0), "{looked:?}");
    let done = refunded();
    assert_eq!(done.exit, Some(0), "{done:?}");
}

#[test]
fn a_run_that_tries_foreign_orders_is_ended_for_every_process_and_for_nobody_else() {
    let folder = Folder::shop();
    folder.edit("toolgate.toml", "[identity]", "[guards]\nrefused = 3\nper = \"1d\"\n\n[identity]");
    let tried = |user, order: &str| call(folder.path(), user, "get_order", &json!({ "order_id": order }));
    for order in ["ord_a", "ord_b", "ord_c"] {
        assert_eq!(tried("alice@acme", order).json()["error"]["code"], "forbidden");
    }
    for order in ["ord_d", "ord_1001"] {
        let ended = tried("alice@acme", order);
        let error = &ended.json()["error"];
        assert_eq!((ended.exit, &error["code"], &error["retry"]), (Some(3), &json!("loop_detected"), &json!("after")));
        assert!(error["message"].as_str().unwrap().contains("asked 3 times"), "{ended:?}");
    }
    assert_eq!(tried("mia@acme", "ord_1001").exit, Some(0));
}

#[test]
fn a_session_begun_over_the_network_is_a_clean_run_of_its_caller() {
    let folder = careful(tokens::shop());
    let dir = folder.path().to_str().unwrap();
    let issue = |scopes: &[&str]| {
        let words = [&["token", "new", dir, "--as", "alice@acme", "--role", "support", "--json"], scopes].concat();
        let run = Run::of(&mut toolgate(&words), "");
        assert_eq!(run.exit, Some(0), "{run:?}");
        format!("Bearer {}", run.json()["token"].as_str().unwrap())
    };
    let host = issue(&["--scope", "calls", "--scope", "sessions:create"]);
    let caller = issue(&["--scope", "calls"]);
    let serving = Serving::start(folder.path(), &[]);
    let post =
        |path: &str, headers: &[(&str, &str)], body: &Value| crate::serve::post(serving.address(), path, headers, body);
    let refused = post("/v1/sessions", &[("Authorization", &caller)], &json!({}));
    assert_eq!((refused.status, refused.code().as_str()), (403, "missing_scope"));
    let begun = post("/v1/sessions", &[("Authorization", &host)], &json!({}));
    assert_eq!(begun.status, 201, "{begun:?}");
    let handle = begun.json()["session"].as_str().unwrap().to_owned();

    let within = |session: &[(&str, &str)], tool: &str, arguments: &Value| {
        let headers = [&[("Authorization", host.as_str())], session].concat();
        post("/v1/calls", &headers, &message(&[(tool, arguments)]))
    };
    let named = [("Toolgate-Session", handle.as_str())];
    let looked = within(&named, "get_order", &json!({"order_id": "ord_1001"}));
    assert_eq!(looked.status, 200, "{looked:?}");
    let elsewhere = within(&[], "create_refund", &refund("ord_1001", 100));
    assert_eq!(elsewhere.reply()["error"]["code"], "rule_failed", "another run has looked at nothing");
    let done = within(&named, "create_refund", &refund("ord_1001", 100));
    assert_eq!(done.reply()["ok"], true, "{done:?}");
    let unknown = within(&[("Toolgate-Session", "ses_0")], "get_order", &json!({"order_id": "ord_1001"}));
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "no_such_session"));
    let end = |query: &str| {
        let address = serving.address();
        format!("DELETE /v1/sessions/{handle}{query} HTTP/1.1\r\nHost: {address}\r\nAuthorization: {host}\r\n\r\n")
    };
    let strict = serving.connect().answer(&end("?keep=yes"));
    assert_eq!((strict.status, strict.code().as_str()), (400, "bad_query"), "what is not known is not passed over");
    assert_eq!(serving.connect().answer(&end("")).status, 204);
    assert_eq!(within(&named, "get_order", &json!({"order_id": "ord_1001"})).code(), "no_such_session");
    serving.stop();
}
