//! `/mcp`: what the transport adds to the protocol.

use serde_json::{Value, json};

use super::refund;
use crate::folder::Folder;
use crate::serve::Serving;

#[test]
fn the_endpoint_takes_posts_alone_and_knows_no_sessions() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    for method in ["GET", "DELETE"] {
        let head = format!("{method} /mcp HTTP/1.1\r\nHost: {}\r\nLast-Event-ID: s_A:41\r\n\r\n", serving.address());
        let response = serving.connect().answer(&head);
        assert_eq!((response.status, response.header("allow")), (405, Some("POST")), "{response:?}");
    }
    let initialize =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}});
    let response =
        serving.connect().post("/mcp", &[("Mcp-Session-Id", "fixed-123")], &initialize.to_string()).answered();
    assert_eq!((response.status, response.header("mcp-session-id")), (200, None));
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.json()["result"]["protocolVersion"], "2025-11-25");
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let response = serving.connect().post("/mcp", &[], initialized).answered();
    assert_eq!((response.status, response.body.as_str(), response.header("content-type")), (202, "", None));
    serving.stop();
}

#[test]
fn a_host_that_is_not_its_own_and_headers_that_lie_run_nothing() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": "create_refund", "arguments": refund("ord_4821", 100), "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let told = |name: &str| {
        let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", name)];
        let response = serving.connect().post("/mcp", &headers, &body).answered();
        (response.status, response.json()["error"]["code"].clone())
    };
    for name in ["get_order", "=?base64?Z2V0X29yZGVy?=", "=?base64?!?="] {
        assert_eq!(told(name), (400, json!(-32020)), "{name}");
    }
    let foreign = format!(
        "POST /mcp HTTP/1.1\r\nHost: rebind.example.net:8787\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    let refused = serving.raw(&foreign);
    assert!(refused.starts_with("HTTP/1.1 403") || refused.starts_with("HTTP/1.1 421"), "{refused}");
    assert_eq!(folder.number("select count(*) from refunds"), 0);
    assert_eq!(told("=?base64?Y3JlYXRlX3JlZnVuZA==?="), (200, Value::Null));
    assert_eq!(folder.number("select count(*) from refunds"), 1);
    serving.stop();
}
