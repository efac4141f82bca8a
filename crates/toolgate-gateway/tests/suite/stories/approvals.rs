//! Approvals through the doors: who sees them, who waits for them, who answers them, and who is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{refund, tokens};
use crate::door::{self, Run, toolgate};
use crate::folder::Folder;
use crate::serve::{Response, Serving, message};

/// A refund of 4,000 cents needs the requester's own yes.
const SURE: &str = r#"
@id("refund.sure") @message("Refund for sure?") @approvers("self")
forbid (principal, action == Action::"create_refund", resource)
when { context.input.amount_cents == 4000 } unless { context.approved };
"#;

fn shop() -> Folder {
    let folder = Folder::shop();
    folder.write("policies/sure.cedar", SURE);
    folder
}

/// A folder whose people have tokens, while it serves.
struct Desk {
    folder: Folder,
    serving: Serving,
}

impl Desk {
    fn open() -> Self {
        let folder = tokens::shop();
        folder.write("policies/sure.cedar", SURE);
        let serving = Serving::start(folder.path(), &[]);
        Self { folder, serving }
    }

    fn token(&self, person: &str, scopes: &str, role: &str) -> String {
        let dir = self.folder.path().to_str().unwrap();
        let words = ["token", "new", dir, "--as", person, "--scope", scopes, "--role", role, "--json"];
        Run::of(&mut toolgate(&words), "").json()["token"].as_str().unwrap().to_owned()
    }

    fn get(&self, token: &str, path: &str) -> Response {
        let address = self.serving.address();
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
        self.serving.connect().answer(&head)
    }

    fn post(&self, token: &str, path: &str, body: &Value) -> Response {
        let bearer = format!("Bearer {token}");
        self.serving.connect().post(path, &[("Authorization", &bearer)], &body.to_string()).answered()
    }

    fn refund(&self, token: &str, cents: i64) -> Value {
        self.post(token, "/v1/calls", &message(&[("create_refund", &refund("ord_1001", cents))])).reply()
    }

    /// The path of the approval that a refund waits for.
    fn asked(&self, token: &str, cents: i64) -> String {
        let reply = self.refund(token, cents);
        let id = reply["error"]["approval"]["id"].as_str().unwrap_or_else(|| panic!("it does not wait: {reply}"));
        format!("/v1/approvals/{id}")
    }
}

fn yes() -> Value {
    json!({ "decision": "approve" })
}

#[test]
fn whoever_asked_sees_their_own_and_waits_for_the_answer() {
    let desk = Desk::open();
    let alice = desk.token("alice@acme", "calls", "support");
    let bob = desk.token("bob@acme", "calls", "support");
    let mia = desk.token("mia@acme", "approvals:approve", "manager");
    let path = desk.asked(&alice, 8000);
    assert_eq!(desk.get(&alice, &path).json()["state"], "pending");
    let foreign = desk.get(&bob, &path);
    assert_eq!((foreign.status, foreign.body), (404, desk.get(&bob, "/v1/approvals/apr_never").body));
    assert_eq!(desk.get(&bob, &format!("{path}?wait=60s")).status, 404, "nobody waits for what they may not see");
    assert_eq!(desk.get(&alice, "/v1/approvals").code(), "missing_scope");
    for wrong in ["wait=61s", "wait=soon", "wait=", "wait=-1s"] {
        assert_eq!(desk.get(&alice, &format!("{path}?{wrong}")).code(), "bad_query", "{wrong}");
    }
    let begun = Instant::now();
    assert_eq!(desk.get(&alice, &format!("{path}?wait=200ms")).json()["state"], "pending");
    assert!(begun.elapsed() >= Duration::from_millis(200));
    let answered = std::thread::scope(|scope| {
        let waits = scope.spawn(|| desk.get(&alice, &format!("{path}?wait=60s")));
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(desk.post(&mia, &path, &yes()).json()["state"], "granted");
        waits.join().unwrap()
    });
    assert_eq!(answered.json()["state"], "granted");
    assert_eq!(desk.refund(&alice, 8000)["effect"], "done");
}

#[test]
fn an_answer_at_the_command_line_is_heard_by_whoever_waits_at_the_door() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let asked = serving.call(&[("create_refund", &refund("ord_1001", 8000))]).reply();
    let id = asked["error"]["approval"]["id"].as_str().unwrap();
    let denied = std::thread::scope(|scope| {
        let waits = scope.spawn(|| serving.get(&format!("/v1/approvals/{id}?wait=15s")));
        std::thread::sleep(Duration::from_millis(200));
        let deny = ["approvals", folder.path().to_str().unwrap(), "deny", id, "--as", "mia@acme"];
        assert_eq!(Run::of(&mut toolgate(&deny), "").exit, Some(0));
        waits.join().unwrap()
    });
    assert_eq!(denied.json()["state"], "denied");
}

#[test]
fn whoever_waits_is_answered_when_the_door_is_drained() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let asked = serving.call(&[("create_refund", &refund("ord_1001", 8000))]).reply();
    let path = format!("/v1/approvals/{}?wait=60s", asked["error"]["approval"]["id"].as_str().unwrap());
    let begun = Instant::now();
    let seen = std::thread::scope(|scope| {
        let waits = scope.spawn(|| serving.get(&path));
        std::thread::sleep(Duration::from_millis(300));
        serving.signal("-TERM");
        waits.join().unwrap()
    });
    assert_eq!(seen.json()["state"], "pending");
    assert_eq!(serving.end().0, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(15));
}

#[test]
fn a_role_answers_with_one_scope_and_the_requester_confirms_with_another() {
    let desk = Desk::open();
    let alice = desk.token("alice@acme", "calls", "support");
    let host = desk.token("alice@acme", "calls,approvals:confirm", "support");
    let chief = desk.token("alice@acme", "approvals:approve", "support");
    let mia = desk.token("mia@acme", "approvals:approve", "manager");
    let (own, large) = (desk.asked(&alice, 4000), desk.asked(&alice, 8000));
    assert_eq!(desk.post(&alice, &own, &yes()).code(), "missing_scope");
    let lacks = desk.post(&chief, &own, &yes());
    assert_eq!(lacks.code(), "missing_scope");
    assert!(lacks.body.contains("approvals:confirm"), "{lacks:?}");
    assert_eq!(desk.post(&mia, &own, &yes()).code(), "not_yours");
    assert_eq!(desk.post(&host, &large, &yes()).code(), "not_yours", "no scope makes them another person");
    let other_host = desk.token("mia@acme", "approvals:confirm", "manager");
    assert_eq!(desk.post(&other_host, &large, &yes()).code(), "no_such_approval", "whoever confirms sees their own");
    assert_eq!(desk.get(&other_host, "/v1/approvals").json()["approvals"], json!([]));
    assert_eq!(desk.get(&host, "/v1/approvals").json()["approvals"].as_array().unwrap().len(), 2);
    assert_eq!(desk.get(&mia, &own).json()["state"], "pending", "nothing was decided");
    assert_eq!(desk.post(&host, &own, &yes()).json()["state"], "granted");
    assert_eq!(desk.refund(&alice, 4000)["effect"], "done");
}

#[test]
fn an_edited_call_waits_in_the_place_of_the_other() {
    let desk = Desk::open();
    let alice = desk.token("alice@acme", "calls", "support");
    let mia = desk.token("mia@acme", "approvals:approve", "manager");
    let old = desk.asked(&alice, 8000);
    let edit = |cents| json!({ "arguments": refund("ord_1001", cents) });
    assert_eq!(desk.post(&alice, &old, &edit(7000)).code(), "missing_scope");
    let refused = desk.post(&mia, &old, &json!({ "arguments": { "order_id": "ord_1001" } }));
    assert_eq!((refused.status, refused.code().as_str()), (422, "edit_refused"));
    assert!(refused.json()["problems"].as_array().unwrap().len() > 1, "{refused:?}");
    let beyond = desk.post(&mia, &old, &edit(9_000_000));
    assert_eq!(beyond.code(), "edit_refused");
    let both = json!({ "arguments": refund("ord_1001", 7000), "decision": "approve" });
    assert_eq!(desk.post(&mia, &old, &both).code(), "broken_envelope");
    let new = desk.post(&mia, &old, &edit(7000)).json();
    assert_eq!((&new["state"], &new["requester"]["subject"]), (&json!("pending"), &json!("alice")), "{new}");
    assert_eq!(new["edited"]["by"]["subject"], "mia");
    let seen = desk.get(&alice, &old).json();
    assert_eq!((&seen["state"], &seen["instead"]), (&json!("denied"), &new["id"]));
    let new = format!("/v1/approvals/{}", new["id"].as_str().unwrap());
    assert_eq!(desk.post(&mia, &new, &yes()).json()["state"], "granted");
    assert_eq!(desk.refund(&alice, 7000)["effect"], "done");
    assert_eq!(desk.folder.number("select count(*) from refunds"), 1);
    let dir = desk.folder.path().to_str().unwrap();
    let decisions = Run::of(&mut toolgate(&["audit", dir, "tail", "--json"]), "").stdout;
    assert!(decisions.contains("the edited call is refused as invalid_arguments"), "{decisions}");
    assert!(decisions.contains(r#""decision":"edit""#) && decisions.contains(r#""instead":"apr_"#), "{decisions}");
}

#[test]
fn an_edit_at_the_command_line_tells_what_it_would_ask_and_asks_it() {
    let folder = Folder::shop();
    let dir = folder.path().to_str().unwrap();
    let asked = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_1001", 8000)).json();
    let id = asked["error"]["approval"]["id"].as_str().unwrap();
    let arguments = |cents| refund("ord_1001", cents).to_string();
    let edit = |cents, more: &[&str]| {
        let arguments = arguments(cents);
        let words = ["approvals", dir, "edit", id, "--arguments", &arguments, "--as", "mia@acme", "--json"];
        Run::of(&mut toolgate(&[&words, more].concat()), "")
    };
    let would = edit(7000, &["--dry-run"]);
    assert_eq!(
        (&would.json()["id"], &would.json()["dry_run"]),
        (&json!(null), &json!(true)),
        "it is the id of nothing"
    );
    assert_eq!((would.exit, &would.json()["arguments"]["amount_cents"]), (Some(0), &json!(7000)), "{would:?}");
    let same = edit(8000, &[]);
    assert_eq!(same.exit, Some(3));
    assert!(same.stderr.contains("edit_not_asked"), "{same:?}");
    let new = edit(7000, &[]);
    assert_eq!((new.exit, &new.json()["state"]), (Some(0), &json!("pending")));
    let listed = Run::of(&mut toolgate(&["approvals", dir, "list", "--as", "mia@acme"]), "").stdout;
    assert!(listed.contains("[edited by mia]") && listed.contains("[instead: apr_"), "{listed}");
    assert_eq!(folder.number("select count(*) from refunds"), 0);
}

#[test]
fn as_many_wait_as_the_folder_says() {
    let folder = Folder::shop();
    let settings = std::fs::read_to_string(folder.join("toolgate.toml")).unwrap();
    folder.write("toolgate.toml", &format!("{settings}\n[approvals]\npending = 1\n"));
    let asks = |cents| door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_1001", cents)).json();
    assert_eq!(asks(8000)["error"]["code"], "approval_required");
    let full = asks(8001);
    assert_eq!((&full["error"]["code"], &full["error"]["fix"]), (&json!("limit_reached"), &json!("user")), "{full}");
    assert_eq!(asks(8000)["error"]["code"], "approval_required");
}

/// Runs `toolgate call` at a terminal, where a person types this line when they are asked.
fn at_terminal(folder: &Folder, line: &str, cents: i64, more: &[&str]) -> Run {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/at_terminal.py");
    let arguments = refund("ord_1001", cents).to_string();
    let call = ["call", folder.path().to_str().unwrap(), "create_refund", &arguments, "--as", "alice@acme"];
    let mut command = Command::new("python3");
    command.env("NO_COLOR", "1").args([script, line, env!("CARGO_BIN_EXE_toolgate")]).args(call).args(more);
    Run::of(&mut command, "")
}

#[test]
fn a_person_confirms_their_own_call_at_the_terminal() {
    let folder = shop();
    let done = at_terminal(&folder, "y", 4000, &[]);
    assert_eq!(done.exit, Some(0), "{done:?}");
    for told in
        ["Refund for sure?", "Refund 4000 cents", "\"amount_cents\":4000", "call digest", "\"effect\": \"done\""]
    {
        assert!(done.stdout.contains(told), "{told}: {done:?}");
    }
    assert_eq!(folder.number("select count(*) from refunds"), 1);
}

#[test]
fn what_is_not_a_yes_at_the_terminal_lets_nothing_happen() {
    for (line, exit, state) in [("n", 3, "denied"), ("", 4, "pending"), ("sure", 4, "pending")] {
        let folder = shop();
        let run = at_terminal(&folder, line, 4000, &[]);
        assert_eq!(run.exit, Some(exit), "{line:?}: {run:?}");
        let waits = run.stdout.contains("send the same call again once it is approved");
        assert_eq!(waits, state == "pending", "what was denied is not told to wait: {line:?}: {run:?}");
        let dir = folder.path().to_str().unwrap();
        let listed = Run::of(&mut toolgate(&["approvals", dir, "list", "--as", "alice@acme", "--json"]), "").json();
        assert_eq!(listed[0]["state"], state, "{line:?}");
        assert_eq!(folder.number("select count(*) from refunds"), 0);
    }
}

#[test]
fn nobody_is_asked_at_the_terminal_what_they_cannot_answer_or_where_they_said_so() {
    let folder = shop();
    for (cents, more) in [(8000, &[][..]), (4000, &["--no-input"]), (4000, &["--json"]), (4000, &["--dry-run"])] {
        let run = at_terminal(&folder, "y", cents, more);
        assert_eq!(run.exit, Some(4), "{more:?}: {run:?}");
        assert!(!run.stdout.contains("[y/N]"), "{more:?}: {run:?}");
    }
    let piped = Run::of(
        &mut toolgate(&[
            "call",
            folder.path().to_str().unwrap(),
            "create_refund",
            &refund("ord_1001", 4000).to_string(),
        ]),
        "y\n",
    );
    assert_eq!(piped.exit, Some(4), "{piped:?}");
    assert_eq!(folder.number("select count(*) from refunds"), 0);
}

#[test]
fn whoever_listens_is_told_before_a_command_ends_and_a_missing_secret_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = Folder::shop();
    let settings = std::fs::read_to_string(folder.join("toolgate.toml")).unwrap();
    let hook = format!("http://{}/approvals", listener.local_addr().unwrap());
    let table = format!("[approvals.webhook]\nurl = \"{hook}\"\nsecret = \"env:SHOP_WEBHOOK\"\n");
    folder.write("toolgate.toml", &format!("{settings}\n{table}"));
    let dir = folder.path().to_str().unwrap();
    let arguments = refund("ord_1001", 8000).to_string();
    let words = ["call", dir, "create_refund", &arguments, "--as", "alice@acme", "--json"];
    let checked = Run::of(&mut toolgate(&["check", dir, "--json"]), "");
    assert_eq!(checked.exit, Some(2), "{checked:?}");
    let found = &checked.json()["findings"][0];
    assert_eq!((&found["file"], &found["code"]), (&json!("toolgate.toml"), &json!("no_secret")), "{found}");
    let line = settings.lines().count() + 4;
    assert_eq!(found["line"], json!(line), "{found}");
    let without = Run::of(&mut toolgate(&words), "");
    assert_eq!(without.exit, Some(2));
    assert!(without.stderr.contains("SHOP_WEBHOOK") && without.stderr.contains("folder_faults"), "{without:?}");
    for look in [&["tools", dir, "--as", "alice@acme"][..], &["approvals", dir, "list", "--as", "mia@acme"]] {
        assert_eq!(Run::of(&mut toolgate(look), "").exit, Some(0), "whoever only looks tells nobody: {look:?}");
    }
    let heard = std::thread::spawn(move || {
        let mut stream = BufReader::new(listener.accept().unwrap().0);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            if let Some(said) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = said.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        stream.get_mut().write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
        (head, serde_json::from_slice::<Value>(&body).unwrap())
    });
    let secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let asked = Run::of(toolgate(&words).env("SHOP_WEBHOOK", secret), "");
    assert_eq!(asked.exit, Some(4), "{asked:?}");
    let (head, body) = heard.join().unwrap();
    assert_eq!(body["data"]["id"], asked.json()["error"]["approval"]["id"]);
    assert!(head.to_ascii_lowercase().contains("webhook-signature: v1,"), "{head}");
    assert!(!body.to_string().contains("damaged") || body["data"]["preview"].to_string().contains("damaged"), "{body}");
    assert_eq!(body["data"]["arguments"], Value::Null);
}
