//! A folder whose people are known by what issuers sign, through the command and over HTTP.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::refund;
use crate::door::{Run, toolgate};
use crate::folder::Folder;
use crate::issuer::Issuer;
use crate::serve::{Response, Serving, message};

const ISSUER: &str = "https://id.example.com";
const GATE: &str = "https://gate.example.com/mcp";

/// The shop, whose people an issuer vouches for.
struct Shop {
    folder: Folder,
    issuer: Issuer,
}

impl Shop {
    fn new() -> Self {
        let (folder, issuer) = (Folder::shop(), Issuer::new());
        let settings = std::fs::read_to_string(folder.join("toolgate.toml")).unwrap();
        let (head, _) = settings.split_once("[identity]").unwrap();
        let identity = format!(
            "[identity]\nkind = \"jwt\"\n\n[[identity.issuer]]\nissuer = \"{ISSUER}\"\naudience = \"{GATE}\"\n\
             jwks = \"keys.json\"\ntenant = \"/org\"\ntenants = [\"acme\", \"globex\"]\nroles = \"/roles\"\n\
             scopes = \"/scope\"\n"
        );
        folder.write("toolgate.toml", &format!("{head}{identity}"));
        folder.write("keys.json", &issuer.keys().to_string());
        Self { folder, issuer }
    }

    fn dir(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    /// A token of somebody with these scopes.
    fn token(&self, subject: &str, scopes: &str) -> String {
        self.issuer.token(&json!({
            "iss": ISSUER, "aud": [GATE], "sub": subject, "exp": 4_102_444_800_u64, "org": "acme", "roles": ["support"],
            "scope": scopes,
        }))
    }

    fn run(&self, words: &[&str], token: Option<&str>) -> Run {
        let mut command = toolgate(&[&words[..1], &[self.dir()], &words[1..]].concat());
        command.envs(token.map(|token| ("TOOLGATE_TOKEN", token)));
        Run::of(&mut command, "")
    }

    fn revoke(&self, words: &[&str]) -> Run {
        Run::of(&mut toolgate(&[&["token", "revoke", self.dir()], words].concat()), "")
    }
}

fn call(serving: &Serving, token: &str) -> Response {
    let body = message(&[("create_refund", &refund("ord_4821", 100))]).to_string();
    let authorization = format!("Bearer {token}");
    serving.connect().post("/v1/calls", &[("Authorization", &authorization)], &body).answered()
}

fn get(serving: &Serving, path: &str, token: Option<&str>) -> Response {
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    serving.connect().answer(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{authorization}\r\n", serving.address()))
}

fn challenge(response: &Response) -> &str {
    response.header("www-authenticate").unwrap_or_default()
}

#[test]
fn whoever_is_not_known_is_told_where_to_log_in_and_what_for() {
    let shop = Shop::new();
    let serving = Serving::start(shop.folder.path(), &[]);
    let place = "resource_metadata=\"https://gate.example.com/.well-known/oauth-protected-resource/mcp\"";
    let nobody = get(&serving, "/v1/tools", None);
    assert_eq!((nobody.status, nobody.code().as_str()), (401, "unauthenticated"));
    assert_eq!(challenge(&nobody), format!("Bearer {place}, scope=\"calls\""));
    for wrong in ["tg_000000000000_aaaa", "a.b.c", &Issuer::new().token(&json!({ "iss": ISSUER }))] {
        let unknown = call(&serving, wrong);
        assert_eq!((unknown.status, unknown.code().as_str()), (401, "unauthenticated"));
        assert_eq!(challenge(&unknown), format!("Bearer error=\"invalid_token\", {place}, scope=\"calls\""));
    }
    for path in ["", "/mcp", "/mcp/tags/refunds"] {
        let document = get(&serving, &format!("/.well-known/oauth-protected-resource{path}"), None);
        assert_eq!(document.status, 200, "{document:?}");
        let told = document.json();
        assert_eq!((&told["resource"], &told["authorization_servers"]), (&json!(GATE), &json!([ISSUER])));
        assert_eq!(told["scopes_supported"][1], "approvals:approve");
    }
    assert_eq!(get(&serving, "/.well-known/oauth-protected-resource/other", None).code(), "not_found");
    let narrow = get(&serving, "/v1/ledger", Some(&shop.token("u_1", "openid calls")));
    assert_eq!((narrow.status, narrow.code().as_str()), (403, "missing_scope"));
    assert_eq!(challenge(&narrow), format!("Bearer error=\"insufficient_scope\", scope=\"ledger\", {place}"));
    assert_eq!(get(&serving, "/v1/ledger", Some(&shop.token("u_1", "admin"))).status, 200);
    serving.stop();
    assert_eq!(shop.folder.number("select count(*) from refunds"), 0);
}

#[test]
fn a_gate_without_issuers_has_nothing_to_tell_of_them() {
    let serving = Serving::start(Folder::shop().path(), &[]);
    assert_eq!(get(&serving, "/.well-known/oauth-protected-resource", None).code(), "not_found");
    let unknown = call(&serving, "somebody");
    assert_eq!((unknown.status, challenge(&unknown)), (401, "Bearer error=\"invalid_token\""));
}

#[test]
fn whoever_is_vouched_for_is_on_record_by_issuer_and_subject_until_they_are_revoked() {
    let shop = Shop::new();
    let serving = Serving::start(shop.folder.path(), &[]);
    let (token, other) = (shop.token("u_1", "calls audit"), shop.token("u_2", "calls"));
    assert_eq!(call(&serving, &token).reply()["effect"], "done");
    assert_eq!(shop.folder.rows("select requested_by, tenant from refunds"), json!([["u_1", "acme"]]));
    let record = get(&serving, "/v1/audit?limit=1", Some(&token)).json();
    let body = record["records"][0]["body"].to_string();
    assert!(body.contains(ISSUER) && body.contains("u_1"), "{body}");
    // At the command line it is the same person, and so the same refund.
    let again = shop.run(&["call", "create_refund", &refund("ord_4821", 100).to_string(), "--json"], Some(&token));
    assert_eq!((again.exit, &again.json()["replayed"]), (Some(0), &json!(true)), "{again:?}");
    assert_eq!(call(&serving, &other).reply()["effect"], "done");

    let nobody = shop.revoke(&["--subject", "u_1", "--issuer", "https://id.exmaple.com"]);
    assert_eq!(nobody.exit, Some(2), "{nobody:?}");
    let revoked = shop.revoke(&["--subject", "u_1", "--json"]);
    assert_eq!((revoked.exit, &revoked.json()["state"]), (Some(0), &json!("revoked")), "{revoked:?}");
    assert_eq!(call(&serving, &token).status, 401, "the running server goes by it at once");
    assert_eq!(shop.run(&["call", "get_order", "{}"], Some(&token)).exit, Some(2));
    assert_eq!(call(&serving, &other).reply()["replayed"], true);
    let listed = Run::of(&mut toolgate(&["token", "list", shop.dir(), "--json"]), "").json();
    assert_eq!(listed[0]["principal"], json!({ "issuer": ISSUER, "subject": "u_1" }));
    assert_eq!(listed.as_array().unwrap().len(), 1);
    for (command, answer) in [("list", &listed), ("revoke", &revoked.json())] {
        let schema = Run::of(&mut toolgate(&["schema", "output", "token", command, "--json"]), "").json();
        assert!(jsonschema::is_valid(&schema, answer), "token {command}: {answer}");
    }
    let kinds = Run::of(&mut toolgate(&["token", "new", shop.dir(), "--as", "alice@acme"]), "");
    assert_eq!((kinds.exit, kinds.stdout.as_str()), (Some(2), ""));
}

#[test]
fn keys_that_cannot_be_read_turn_away_everybody_and_call_nobody_a_stranger() {
    let shop = Shop::new();
    let serving = Serving::start(shop.folder.path(), &[]);
    let token = shop.token("u_1", "calls");
    assert_eq!(call(&serving, &token).status, 200);
    shop.folder.write("keys.json", "{\"keys\": []}");
    let unavailable = call(&serving, &token);
    assert_eq!((unavailable.status, unavailable.code().as_str()), (503, "unavailable"));
    shop.folder.write("keys.json", &shop.issuer.keys().to_string());
    assert_eq!(call(&serving, &token).status, 200);
    serving.signal("-TERM");
    let (_, told) = serving.end();
    assert!(told.contains("keys_unavailable") && told.contains("can be read again"), "{told}");
}

#[test]
fn at_the_command_line_keys_that_cannot_be_had_make_nobody_a_stranger_either() {
    let shop = Shop::new();
    // Nobody listens there.
    shop.folder.edit("toolgate.toml", "jwks = \"keys.json\"", "jwks = \"https://127.0.0.1:1/keys\"");
    let call = shop.run(&["call", "get_order", "{}"], Some(&shop.token("u_1", "calls")));
    assert_eq!(call.exit, Some(1), "{call:?}");
    assert!(call.stderr.contains("error[keys_unavailable]"), "{call:?}");
}

#[test]
fn a_key_in_pem_is_told_as_what_it_is() {
    let shop = Shop::new();
    shop.folder.write("keys.json", "-----BEGIN PUBLIC KEY-----\nMCow\n-----END PUBLIC KEY-----\n");
    let checked = shop.run(&["check"], None);
    assert_eq!(checked.exit, Some(2), "{checked:?}");
    assert!(checked.stdout.contains("expected a JWK set") && checked.stdout.contains("PEM"), "{checked:?}");
}

#[test]
fn a_grant_to_somebody_of_an_issuer_is_said_to_be_given_over_http() {
    let shop = Shop::new();
    let words = ["approvals", "grant", "--tool", "create_refund", "--rule", "create_refund.approval"];
    let more = ["--calls", "1", "--for", "1h", "--to", "u_1", "--tenant", "acme"];
    let given = shop.run(&[&words[..], &more].concat(), None);
    assert_eq!(given.exit, Some(2), "{given:?}");
    assert!(given.stderr.contains("--to names nobody here") && given.stderr.contains("POST /v1/grants"), "{given:?}");
}

#[test]
fn the_operator_speaks_for_nobody_whom_an_issuer_vouches_for() {
    let shop = Shop::new();
    for (words, exit) in [
        (&["approvals", "list", "--tenant", "acme"][..], 0),
        (&["approvals", "list", "--as", "u_1@acme"], 2),
        (&["call", "get_order", "{}", "--as", "u_1@acme"], 2),
        (&["call", "get_order", "{}"], 2),
        (&["serve", "--dev"], 2),
    ] {
        let run = shop.run(words, None);
        assert_eq!(run.exit, Some(exit), "{words:?}: {run:?}");
    }
    shop.folder.edit("toolgate.toml", "[identity]", "[approvals]\noperator = true\n\n[identity]");
    let check: Value = shop.run(&["check", "--json"], None).json();
    assert!(check.to_string().contains("/approvals") || check.to_string().contains("operator"), "{check}");
}

#[test]
fn a_folder_for_development_says_so_at_each_start() {
    let shop = Shop::new();
    shop.folder.edit("toolgate.toml", "kind = \"jwt\"", "kind = \"jwt\"\ndevelopment = true");
    let told = |run: &Run| run.stderr.contains("for development only") || run.stdout.contains("for development only");
    let check = shop.run(&["check"], None);
    assert!(told(&check), "{check:?}");
    let call = shop.run(&["call", "get_order", r#"{"order_id":"ord_4821"}"#], Some(&shop.token("u_1", "calls")));
    assert!(call.exit == Some(0) && told(&call), "{call:?}");
    let serving = Serving::start(shop.folder.path(), &[]);
    serving.signal("-TERM");
    let (_, told) = serving.end();
    assert!(told.contains("for development only"), "{told}");
}

/// A client of `toolgate mcp` that shows a token.
struct Client {
    child: Child,
    stdin: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Client {
    fn start(shop: &Shop, token: &str) -> Self {
        let mut command = toolgate(&["mcp", shop.dir()]);
        command.env("TOOLGATE_TOKEN", token).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut client = Self { child, stdin, answers: BufReader::new(stdout).lines() };
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
        client.ask("initialize", &params);
        writeln!(client.stdin, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
        client
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.stdin, "{line}").unwrap();
        serde_json::from_str(&self.answers.next().unwrap().unwrap()).unwrap()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    fn tools(&mut self) -> usize {
        self.ask("tools/list", &json!({}))["result"]["tools"].as_array().unwrap().len()
    }

    fn end(mut self) {
        drop(self.stdin);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn a_client_of_mcp_whose_person_was_revoked_meanwhile_went_on_calling() {
    let shop = Shop::new();
    let mut client = Client::start(&shop, &shop.token("u_1", "calls"));
    let order = json!({"order_id": "ord_4821"});
    let found = client.call("get_order", &order);
    assert_eq!(found["result"]["structuredContent"]["left_cents"], 2000, "{found}");
    assert_eq!(shop.revoke(&["--subject", "u_1"]).exit, Some(0));
    let refused = client.call("get_order", &order);
    assert!(refused.to_string().contains("unauthenticated"), "{refused}");
    client.end();
}

#[test]
fn a_revoked_caller_over_stdio_left_an_approval_read_a_fact_and_saw_the_tools() {
    let shop = Shop::new();
    let mut client = Client::start(&shop, &shop.token("u_1", "calls"));
    let (waits, above) = (refund("ord_1001", 8000), refund("ord_4821", 4999));
    assert!(client.call("create_refund", &waits).to_string().contains("approval_required"));
    assert!(client.call("create_refund", &above).to_string().contains("2000"), "the rule tells what is left");
    assert!(client.tools() > 1);
    let list = || shop.run(&["approvals", "list", "--tenant", "acme", "--json"], None).json();
    assert_eq!(list().as_array().unwrap().len(), 1);
    assert_eq!(shop.revoke(&["--subject", "u_1"]).exit, Some(0));

    for arguments in [refund("ord_1001", 9000), above, json!({})] {
        let refused = client.call("create_refund", &arguments).to_string();
        assert!(refused.contains("unauthenticated") && !refused.contains("2000"), "{refused}");
    }
    assert_eq!(client.tools(), 0, "there is nothing for them");
    client.end();
    assert_eq!(list().as_array().unwrap().len(), 1, "nobody is asked in their name");
    let record = rusqlite::Connection::open(shop.folder.join("state/toolgate.db")).unwrap();
    let told: Vec<String> = {
        let mut rows = record.prepare("select body from records where body like '%unauthenticated%'").unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.iter().all(|body| !body.contains("\"inform\"") && !body.contains("\"permit\"")), "{told:?}");
}
