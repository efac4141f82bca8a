use proptest::strategy::Strategy;
use serde_json::{Value, json};
use toolgate::backend::{Answer as Ran, Backend, Dispatch, Found, Looking, Lookup, Running};
use toolgate::ledger::Store;
use toolgate::refusal::Effect;
use toolgate::session::{Principal, Session};
use toolgate::{Gate, Tool};

use super::*;
use crate::mcp::server::GateFor;

/// Pays, and says how often it has.
struct Payouts(std::sync::atomic::AtomicU64);

impl Backend for Payouts {
    fn run(&self, _dispatch: Dispatch) -> Running<'_> {
        let count = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
        Box::pin(async move { Ran { effect: Effect::Done, outcome: Ok(json!({ "count": count }).to_string().into()) } })
    }

    fn look(&self, _lookup: Lookup) -> Looking<'_> {
        Box::pin(async { Found::Absent })
    }
}

/// A gate with the tool `payout.create`.
fn tools() -> GateFor {
    let contract = json!({
        "description": "Pays.", "effect": "write",
        "input": { "properties": { "amount_minor": { "type": "integer", "minimum": 1 } } },
        "output": { "type": "object", "properties": { "count": { "type": "integer" } }, "required": ["count"] },
    });
    let tool =
        Tool::new("payout.create", contract.as_object().unwrap().clone(), std::sync::Arc::new(Payouts(0.into())));
    let gate = Gate::builder().tool(tool).policy("permit (principal, action, resource);").store(Store::memory());
    GateFor { gate: gate.build().unwrap(), session: Session::new(Principal::new("test", "ann"), "acme") }
}

fn envelope(version: &str) -> Value {
    json!({ "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {} })
}

fn call(arguments: &Value, meta: Option<Value>) -> Value {
    let mut params = json!({ "name": "payout.create", "arguments": arguments });
    if let Some(meta) = meta {
        params["_meta"] = meta;
    }
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

/// The headers of a client, with these beside them.
fn with<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a [u8])> {
    let common = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    common.iter().chain(more).map(|(name, value)| (*name, value.as_bytes())).collect()
}

async fn post(tools: &GateFor, headers: Vec<(&str, &[u8])>, body: &str) -> (u16, Value) {
    let answer = handle(tools, &Headers::of(headers), body.as_bytes()).await;
    match answer.content_type {
        None => {
            assert_eq!(answer.body, "");
            (answer.status, Value::Null)
        }
        Some(kind) => {
            assert_eq!(kind, "application/json");
            (answer.status, serde_json::from_str(&answer.body).unwrap())
        }
    }
}

/// The status and the code of the error, or 0.
fn told((status, body): &(u16, Value)) -> (u16, i64) {
    (*status, body["error"]["code"].as_i64().unwrap_or(0))
}

#[tokio::test]
async fn a_client_that_begins_with_a_handshake_is_served_without_a_session() {
    let tools = tools();
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
    let fixed = with(&[("mcp-session-id", "fixed-123"), ("last-event-id", "s_A:41")]);
    let (status, body) = post(&tools, fixed, initialize).await;
    assert_eq!((status, &body["result"]["protocolVersion"]), (200, &json!("2025-06-18")));

    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let version = [("mcp-protocol-version", "2025-06-18")];
    assert_eq!(post(&tools, with(&version), initialized).await, (202, Value::Null));
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    for headers in [with(&version), with(&[])] {
        let (status, body) = post(&tools, headers, list).await;
        assert_eq!((status, &body["result"]["tools"][0]["name"]), (200, &json!("payout.create")));
    }
    let (status, body) = post(&tools, with(&version), &call(&json!({"amount_minor": 5}), None).to_string()).await;
    assert_eq!((status, &body["result"]["structuredContent"]), (200, &json!({"count": 1})));
    assert_eq!(body["result"].get("resultType"), None);
    // An error is an answer like any other.
    let unknown = call(&json!({}), None).to_string().replace("payout.create", "payout.delete");
    assert_eq!(told(&post(&tools, with(&version), &unknown).await), (200, -32602));
    let method = list.replace("tools/list", "resources/list");
    assert_eq!(told(&post(&tools, with(&version), &method).await), (200, -32601));
}

#[tokio::test]
async fn a_request_that_stands_alone_is_made_if_its_headers_say_what_it_says() {
    let tools = tools();
    let version = ("mcp-protocol-version", "2026-07-28");
    let discover =
        json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": envelope("2026-07-28")}});
    let (status, body) = post(&tools, with(&[version, ("mcp-method", "server/discover")]), &discover.to_string()).await;
    assert_eq!(status, 200, "{body}");
    let result = &body["result"];
    assert_eq!((&result["supportedVersions"], &result["resultType"]), (&json!(["2026-07-28"]), &json!("complete")));
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolgate");

    let method = ("mcp-method", "tools/call");
    let body = call(&json!({"amount_minor": 5}), Some(envelope("2026-07-28"))).to_string();
    for name in ["payout.create", "  payout.create ", "=?base64?cGF5b3V0LmNyZWF0ZQ==?="] {
        let (status, body) = post(&tools, with(&[version, method, ("mcp-name", name)]), &body).await;
        assert_eq!((status, &body["result"]["structuredContent"]), (200, &json!({"count": 1})), "{body}");
        assert_eq!(body["result"]["resultType"], "complete");
    }
}

#[tokio::test]
async fn headers_that_say_something_else_than_the_body_are_refused_and_nothing_runs() {
    let tools = tools();
    let version = ("mcp-protocol-version", "2026-07-28");
    let method = ("mcp-method", "tools/call");
    let name = ("mcp-name", "payout.create");
    let body = call(&json!({"amount_minor": 5}), Some(envelope("2026-07-28"))).to_string();
    for headers in [
        vec![method, name],
        vec![version, name],
        vec![version, method],
        vec![("mcp-protocol-version", "2025-11-25"), method, name],
        vec![version, ("mcp-method", "tools/list"), name],
        vec![version, ("mcp-method", "TOOLS/CALL"), name],
        vec![version, method, ("mcp-name", "notes.read")],
        vec![version, method, ("mcp-name", "=?base64?bm90ZXMucmVhZA==?=")],
        // No base64, and another spelling of it.
        vec![version, method, ("mcp-name", "=?base64?cGF5b3V0LmNyZWF0ZQ=?=")],
        vec![version, method, ("mcp-name", "=?base64?cGF5b3V0LmNyZWF0ZR==?=")],
        vec![version, method, ("mcp-name", "=?base64?payout.create?=")],
        vec![version, version, method, name],
        vec![version, method, method, name],
        vec![version, method, name, name],
    ] {
        let answer = post(&tools, with(&headers), &body).await;
        assert_eq!(told(&answer), (400, -32020), "{headers:?}");
        assert_eq!(answer.1["id"], 1);
    }
    // What looks like the encoded form is never taken as plain.
    let literal = body.replace("payout.create", "=?base64?eA==?=");
    let headers = with(&[version, method, ("mcp-name", "=?base64?eA==?=")]);
    assert_eq!(told(&post(&tools, headers, &literal).await), (400, -32020));

    let whole = with(&[version, method, name]);
    let (_, first) = post(&tools, whole, &body).await;
    assert_eq!(first["result"]["structuredContent"], json!({"count": 1}), "none of the others ran");
}

#[tokio::test]
async fn a_revision_that_is_not_spoken_or_not_told_whole_is_refused() {
    let tools = tools();
    let list = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"});
    for version in ["2099-01-01", "invalid-protocol-version", "2000-01-01", ""] {
        let (status, body) = post(&tools, with(&[("mcp-protocol-version", version)]), &list.to_string()).await;
        assert_eq!((status, &body["error"]["code"], &body["id"]), (400, &json!(-32022), &json!(3)));
        assert_eq!(body["error"]["data"], json!({"supported": ["2026-07-28"], "requested": version}));
    }
    let stateless = with(&[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")]);
    assert_eq!(told(&post(&tools, stateless.clone(), &list.to_string()).await), (400, -32602));
    let mut half = json!({"_meta": envelope("2026-07-28")});
    half["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    let half = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": half});
    assert_eq!(told(&post(&tools, stateless, &half.to_string()).await), (400, -32602));
}

#[tokio::test]
async fn errors_of_requests_that_stand_alone_have_a_status_of_their_own() {
    let tools = tools();
    let version = ("mcp-protocol-version", "2026-07-28");
    let asked = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    };
    let meta = json!({ "_meta": envelope("2026-07-28") });
    for method in ["resources/list", "ping", "initialize"] {
        let params = json!({ "_meta": envelope("2026-07-28"), "protocolVersion": "2025-11-25" });
        let answer = post(&tools, with(&[version, ("mcp-method", method)]), &asked(method, params)).await;
        assert_eq!(told(&answer), (404, -32601), "{method}");
    }
    let page = json!({ "_meta": meta["_meta"], "cursor": "2" });
    let answer = post(&tools, with(&[version, ("mcp-method", "tools/list")]), &asked("tools/list", page)).await;
    assert_eq!(told(&answer), (400, -32602));
    let unknown = call(&json!({}), Some(envelope("2026-07-28"))).to_string().replace("payout.create", "nothing");
    let answer = post(&tools, with(&[version, ("mcp-method", "tools/call"), ("mcp-name", "nothing")]), &unknown).await;
    assert_eq!(told(&answer), (400, -32602));
    assert_eq!(answer.1["error"]["data"]["error"]["code"], "unknown_tool");
    // Without a name there is nothing that a header could name, and the call is refused as it stands.
    let answer = post(&tools, with(&[version, ("mcp-method", "tools/call")]), &asked("tools/call", meta)).await;
    assert_eq!((answer.0, &answer.1["result"]["isError"]), (200, &json!(true)));
}

#[tokio::test]
async fn what_cannot_be_answered_is_refused_and_runs_nothing() {
    let tools = tools();
    let one = call(&json!({"amount_minor": 5}), None).to_string();
    for (body, expected) in [
        (format!("[{one},{one}]"), -32600),
        (one.replace(r#""id":1"#, r#""id":null"#), -32600),
        (one.replace(r#""id":1,"#, ""), -32600),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), -32600),
        (one.replace(r#""id":1"#, r#""id":1,"id":2"#), -32700),
        ("{".to_owned(), -32700),
        (String::new(), -32700),
    ] {
        assert_eq!(told(&post(&tools, with(&[]), &body).await), (400, expected), "{body}");
    }
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(post(&tools, with(&[]), cancel).await, (202, Value::Null));
    assert_eq!(told(&post(&tools, with(&[("mcp-protocol-version", "2099-01-01")]), cancel).await), (400, -32022));
    let (_, first) = post(&tools, with(&[]), &one).await;
    assert_eq!(first["result"]["structuredContent"], json!({"count": 1}), "none of the others ran");
}

#[tokio::test]
async fn a_body_is_json_and_so_is_the_answer() {
    let tools = tools();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let json = ("content-type", "application/json");
    for (headers, expected) in [
        (vec![json], 200),
        (vec![json, ("accept", "*/*")], 200),
        (vec![json, ("accept", "text/html, application/*;q=0.8")], 200),
        (vec![json, ("accept", "text/event-stream"), ("accept", "application/json")], 200),
        (vec![("content-type", "Application/JSON; charset=utf-8")], 200),
        (vec![json, ("accept", "text/event-stream")], 406),
        (vec![json, ("accept", "")], 406),
        (vec![], 415),
        (vec![("content-type", "text/plain")], 415),
        (vec![("content-type", "application/jsonx")], 415),
        (vec![json, json], 415),
    ] {
        let bytes = headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        assert_eq!(post(&tools, bytes, ping).await.0, expected, "{headers:?}");
    }
}

proptest::proptest! {
    #[test]
    fn whatever_is_posted_has_an_answer_that_is_json_or_empty(
        headers in proptest::collection::vec((
            proptest::sample::select(vec!["mcp-protocol-version", "mcp-method", "mcp-name", "accept", "x-other"]),
            proptest::prop_oneof![
                proptest::sample::select(vec!["2026-07-28", "2025-11-25", "tools/call", "=?base64?cA==?=", "=?base64?", "*/*"])
                    .prop_map(|text| text.as_bytes().to_vec()),
                proptest::collection::vec(proptest::prelude::any::<u8>(), 0..20),
            ],
        ), 0..6),
        cut in proptest::prelude::any::<proptest::sample::Index>(),
        byte in proptest::prelude::any::<u8>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut body = call(&json!({}), Some(envelope("2026-07-28"))).to_string().into_bytes();
        let at = cut.index(body.len());
        body[at] = byte;
        let headers = headers.iter().map(|(name, value)| (*name, value.as_slice()));
        let headers = Headers::of(headers.chain([("content-type", &b"application/json"[..])]));
        let answer = runtime.block_on(async { handle(&tools(), &headers, &body).await });
        proptest::prop_assert!((200..500).contains(&answer.status));
        proptest::prop_assert!(answer.body.is_empty() || serde_json::from_str::<Value>(&answer.body).is_ok());
    }
}
