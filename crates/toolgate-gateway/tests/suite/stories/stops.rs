//! An operator stops calls, from the shell and over HTTP, and every process on the store goes by it.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::killed::in_doubt;
use super::{refund, tokens, until};
use crate::door::{self, Run, toolgate};
use crate::folder::Folder;
use crate::serve::{Response, Serving, message};

const WHY: &str = "the bank reports doubled transfers";

fn deny(dir: &Path, words: &[&str]) -> Run {
    let words: Vec<&str> = ["deny", dir.to_str().unwrap()].into_iter().chain(words.iter().copied()).collect();
    Run::of(&mut toolgate(&words), "")
}

/// Stops something for an hour: the stop.
fn stopped(dir: &Path, words: &[&str]) -> Value {
    let run = deny(dir, &[words, &["--for", "1h", "--why", WHY, "--json"]].concat());
    assert_eq!(run.exit, Some(0), "{run:?}");
    run.json()
}

fn lifted(dir: &Path, stop: &Value) {
    let run = deny(dir, &["--lift", stop["id"].as_str().unwrap()]);
    assert_eq!(run.exit, Some(0), "{run:?}");
}

fn is_stopped(reply: &Value) -> bool {
    let told = reply["error"]["message"].as_str().unwrap_or_default().contains("An operator has stopped this");
    assert_eq!(told, reply["error"]["code"] == "forbidden", "{reply}");
    assert!(!reply.to_string().contains("bank"), "why is told to nobody: {reply}");
    told
}

/// The entries of the record of this kind.
fn recorded(folder: &Folder, kind: &str) -> Vec<Value> {
    let words = ["audit", folder.path().to_str().unwrap(), "tail", "-n", "100", "--kind", kind, "--json"];
    let tail = Run::of(&mut toolgate(&words), "");
    assert_eq!(tail.exit, Some(0), "{tail:?}");
    tail.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_running_server_goes_by_a_stop_at_once_for_writes_and_within_a_second_for_reads() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let order = json!({ "order_id": "ord_4821" });
    let write = |cents| serving.call(&[("create_refund", &refund("ord_4821", cents))]).reply();
    let read = || serving.call(&[("get_order", &order)]).reply();
    assert_eq!((write(100)["ok"].clone(), read()["ok"].clone()), (json!(true), json!(true)));

    let stop = stopped(folder.path(), &["all"]);
    let since = Instant::now();
    let refused = write(200);
    assert!(is_stopped(&refused), "{refused}");
    assert_eq!((&refused["error"]["fix"], &refused["error"]["retry"]), (&json!("operator"), &json!("after")));
    assert!(refused["error"]["after_ms"].as_u64().unwrap() > 3_500_000, "{refused}");
    assert!(is_stopped(&write(100)), "nothing is replayed either");
    while !is_stopped(&read()) {
        assert!(since.elapsed() < Duration::from_millis(1500), "a read goes by a stop within a second");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(folder.number("select count(*) from refunds"), 1);

    lifted(folder.path(), &stop);
    assert_eq!(write(200)["effect"], "done");
    serving.stop();
    let (set, lifted) = (&recorded(&folder, "stopped")[0], &recorded(&folder, "lifted")[0]);
    assert_eq!((&set["stop"], &set["why"]), (&stop["id"], &json!(WHY)));
    assert_eq!(lifted["stop"], stop["id"]);
    assert!(set["principal"]["subject"].as_str().unwrap().starts_with("operator#"), "{set}");
    door::verify(folder.path()).unwrap();
}

#[test]
fn a_tool_is_stopped_whatever_is_wrong_with_the_contracts() {
    let folder = Folder::shop();
    folder.edit("tools/create_refund.toml", "effect = \"write\"", "efect = \"write\"");
    let stop = stopped(folder.path(), &["create_refund"]);
    assert_eq!((&stop["tool"], &stop["tenant"]), (&json!("create_refund"), &Value::Null));
    let listed = deny(folder.path(), &["--list", "--json"]);
    assert_eq!(listed.json(), json!([stop]));
    folder.edit("tools/create_refund.toml", "efect = \"write\"", "effect = \"write\"");
    let refused = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_4821", 100));
    assert_eq!(refused.exit, Some(3));
    assert!(is_stopped(&refused.json()));
    let elsewhere = door::call(folder.path(), "alice@acme", "get_order", &json!({ "order_id": "ord_4821" }));
    assert_eq!(elsewhere.exit, Some(0), "another tool");
}

#[test]
fn a_stop_of_a_tenant_is_of_nobody_else() {
    let folder = Folder::shop();
    let stop = stopped(folder.path(), &["acme"]);
    assert_eq!((&stop["tool"], &stop["tenant"]), (&Value::Null, &json!("acme")));
    let look = |person| door::call(folder.path(), person, "get_order", &json!({ "order_id": "ord_4821" })).json();
    assert!(is_stopped(&look("alice@acme")) && is_stopped(&look("mia@acme")));
    assert!(look("bob@globex")["error"]["message"].as_str().is_none_or(|told| !told.contains("operator")));
    let tool = stopped(folder.path(), &["--tool", "get_order", "--tenant", "globex"]);
    lifted(folder.path(), &stop);
    assert!(!is_stopped(&look("alice@acme")));
    assert!(look("bob@globex")["error"]["message"].as_str().unwrap().contains("An operator has stopped this"));
    lifted(folder.path(), &tool);
}

#[test]
fn what_is_misnamed_is_not_stopped_and_the_nearest_name_is_told() {
    let folder = Folder::shop();
    let full = ["--for", "1h", "--why", WHY];
    for (words, told) in [
        (&["create_refnd"][..], "did you mean create_refund?"),
        (&["acmee"][..], "did you mean acme?"),
        (&["--tool", "get_ordr"][..], "did you mean get_order?"),
        (&["--tenant", "globx"][..], "did you mean globex?"),
    ] {
        let run = deny(folder.path(), &[words, &full].concat());
        assert_eq!(run.exit, Some(2), "{run:?}");
        assert!(run.stderr.starts_with("error[unknown_target]: ") && run.stderr.contains(told), "{run:?}");
    }
    for (words, told) in [
        (&["all", "--why", WHY][..], "--for"),
        (&["all", "--for", "1h"][..], "--why"),
        (&["all", "--for", "31d", "--why", WHY][..], "30 days"),
        (&["all", "--for", "1h", "--why", " "][..], "say why"),
        (&["--for", "1h", "--why", WHY][..], "a tool, a tenant, or `all`"),
        (&["all", "--tool", "get_order", "--for", "1h", "--why", WHY][..], "twice"),
    ] {
        let run = deny(folder.path(), words);
        assert_eq!(run.exit, Some(2), "{run:?}");
        assert!(run.stderr.starts_with("error[usage]: ") && run.stderr.contains(told), "{run:?}");
    }
    let missing = deny(folder.path(), &["--lift", "stop_1"]);
    assert_eq!(missing.exit, Some(2), "{missing:?}");
    assert!(missing.stderr.starts_with("error[unknown_stop]: "), "{missing:?}");
    let dry = deny(folder.path(), &["all", "--for", "1h", "--why", WHY, "--dry-run"]);
    assert_eq!(dry.exit, Some(0), "{dry:?}");
    assert_eq!(deny(folder.path(), &["--list", "--json"]).json(), json!([]));
}

/// A tool that has the name of a tenant.
#[test]
fn a_name_that_is_both_must_be_told_apart() {
    let folder = Folder::shop();
    std::fs::rename(folder.join("tools/get_refund_status.toml"), folder.join("tools/acme.toml")).unwrap();
    let both = deny(folder.path(), &["acme", "--for", "1h", "--why", WHY]);
    assert_eq!(both.exit, Some(2), "{both:?}");
    assert!(both.stderr.contains("--tool acme or --tenant acme"), "{both:?}");
    assert_eq!(stopped(folder.path(), &["--tool", "acme"])["tool"], json!("acme"));
}

#[test]
fn a_tenant_that_nobody_can_be_of_is_not_stopped_and_an_unknown_one_is_told() {
    let folder = tokens::shop();
    for name in ["ACME", "", "ac me"] {
        let run = deny(folder.path(), &["--tenant", name, "--for", "1h", "--why", WHY]);
        assert_eq!(run.exit, Some(2), "{run:?}");
        assert!(run.stderr.starts_with("error[unknown_target]: "), "{run:?}");
    }
    // Of an issuer that may speak for any tenant nobody knows which there are.
    let settings = std::fs::read_to_string(folder.path().join("toolgate.toml")).unwrap();
    let (head, _) = settings.split_once("[identity]").unwrap();
    let identity = "[identity]\nkind = \"jwt\"\n\n[[identity.issuer]]\nissuer = \"https://id.example.com\"\n\
        audience = \"https://gate.example.com\"\njwks = \"https://id.example.com/keys\"\ntenant = \"/org\"\n";
    std::fs::write(folder.path().join("toolgate.toml"), format!("{head}{identity}")).unwrap();
    let run = deny(folder.path(), &["--tenant", "acmee", "--for", "1h", "--why", WHY]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    assert!(run.stderr.contains("not all tenants are known here"), "{run:?}");
}

#[test]
fn a_dry_run_of_a_stop_checks_how_long_and_why() {
    let folder = Folder::shop();
    for (lasts, why, told) in [("31d", WHY, "30 days"), ("1h", " ", "say why")] {
        let run = deny(folder.path(), &["all", "--for", lasts, "--why", why, "--dry-run"]);
        assert_eq!(run.exit, Some(2), "{run:?}");
        assert!(run.stderr.starts_with("error[usage]: ") && run.stderr.contains(told), "{run:?}");
    }
}

struct Bearer<'a> {
    serving: &'a Serving,
    token: String,
}

impl Bearer<'_> {
    fn new<'a>(serving: &'a Serving, folder: &Folder, person: &str, scope: &str) -> Bearer<'a> {
        let dir = folder.path().to_str().unwrap();
        let words = ["token", "new", dir, "--as", person, "--role", "support", "--scope", scope, "--json"];
        let given = Run::of(&mut toolgate(&words), "").json();
        Bearer { serving, token: format!("Bearer {}", given["token"].as_str().unwrap()) }
    }

    fn ask(&self, method: &str, path: &str) -> Response {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.serving.address());
        self.serving.connect().answer(&format!("{head}Authorization: {}\r\n\r\n", self.token))
    }

    fn post(&self, path: &str, body: &Value) -> Response {
        crate::serve::post(self.serving.address(), path, &[("Authorization", self.token.as_str())], body)
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.post("/v1/calls", &message(&[(tool, arguments)])).reply()
    }
}

#[test]
fn an_administrator_stops_tools_within_their_own_tenant_alone() {
    let folder = tokens::shop();
    let serving = Serving::start(folder.path(), &[]);
    let bearer = |person, scope| Bearer::new(&serving, &folder, person, scope);
    let (admin, other) = (bearer("ann@acme", "admin"), bearer("gus@globex", "admin"));
    let (alice, bob) = (bearer("alice@acme", "calls"), bearer("bob@globex", "calls"));
    for (method, path) in [("GET", "/v1/stops"), ("DELETE", "/v1/stops/stop_1")] {
        assert_eq!(alice.ask(method, path).code(), "missing_scope", "{method}");
    }
    let body = json!({ "tool": "create_refund", "for": "1h", "why": WHY });
    assert_eq!(alice.post("/v1/stops", &body).code(), "missing_scope");

    let set = admin.post("/v1/stops", &body);
    assert_eq!(set.status, 200, "{set:?}");
    let stop = set.json();
    assert_eq!((&stop["tool"], &stop["tenant"]), (&json!("create_refund"), &json!("acme")));
    assert_eq!(stop["by"]["subject"], "ann");
    assert!(is_stopped(&alice.call("create_refund", &refund("ord_4821", 100))));
    let theirs = bob.call("create_refund", &refund("ord_7001", 100));
    assert!(!theirs.to_string().contains("An operator has stopped"), "{theirs}");

    let id = stop["id"].as_str().unwrap();
    assert_eq!(other.ask("GET", "/v1/stops").json(), json!({ "stops": [] }));
    assert_eq!(other.ask("DELETE", &format!("/v1/stops/{id}")).code(), "no_such_stop");
    let whole = stopped(folder.path(), &["--tool", "read_document"]);
    let listed = admin.ask("GET", "/v1/stops").json();
    assert_eq!(listed["stops"][0], stop);
    assert_eq!((&listed["stops"][1]["id"], &listed["stops"][1]["why"]), (&whole["id"], &Value::Null));
    assert_eq!(admin.ask("DELETE", &format!("/v1/stops/{}", whole["id"].as_str().unwrap())).code(), "no_such_stop");
    assert_eq!(admin.ask("DELETE", &format!("/v1/stops/{id}")).json(), stop);
    assert_eq!(admin.ask("DELETE", &format!("/v1/stops/{id}")).code(), "no_such_stop");
    assert!(!is_stopped(&alice.call("create_refund", &refund("ord_4821", 100))));

    for (body, at) in [
        (json!({ "tool": "create_refnd", "for": "1h", "why": WHY }), "/tool"),
        (json!({ "tool": "create_refund", "for": "31d", "why": WHY }), "/for"),
        (json!({ "tool": "create_refund", "for": "long", "why": WHY }), "/for"),
        (json!({ "tool": "create_refund", "for": "1h", "why": "" }), "/why"),
        (json!({ "tool": "create_refund", "for": "1h" }), "/why"),
        (json!({ "for": "1h", "why": WHY }), "/tool"),
    ] {
        let refused = admin.post("/v1/stops", &body);
        assert_eq!(refused.code(), "broken_envelope", "{body}");
        assert!(refused.json()["detail"].as_str().unwrap().starts_with(at), "{refused:?}");
    }
    let tenant = json!({ "tool": "create_refund", "tenant": "globex", "for": "1h", "why": WHY });
    assert_eq!(admin.post("/v1/stops", &tenant).code(), "broken_envelope", "no tenant but their own is named");
    serving.stop();
}

#[test]
fn an_administrator_does_not_lift_what_the_operator_stopped_in_their_tenant_nor_read_why() {
    let folder = tokens::shop();
    let serving = Serving::start(folder.path(), &[]);
    let admin = Bearer::new(&serving, &folder, "ann@acme", "admin");
    let alice = Bearer::new(&serving, &folder, "alice@acme", "calls");
    let operators = stopped(folder.path(), &["--tool", "create_refund", "--tenant", "acme"]);
    let listed = admin.ask("GET", "/v1/stops").json();
    assert_eq!(listed["stops"][0]["id"], operators["id"]);
    assert_eq!((&listed["stops"][0]["why"], &listed["stops"][0]["by"]), (&Value::Null, &Value::Null), "{listed}");
    let path = format!("/v1/stops/{}", operators["id"].as_str().unwrap());
    let refused = admin.ask("DELETE", &path);
    assert_eq!((refused.status, refused.code().as_str()), (404, "no_such_stop"));
    assert!(is_stopped(&alice.call("create_refund", &refund("ord_4821", 100))), "it stands");
    serving.stop();
}

#[test]
fn a_tenant_that_set_as_many_stops_as_may_stand_is_still_stopped_by_the_operator() {
    let folder = tokens::shop();
    let serving = Serving::start(folder.path(), &[]);
    let admin = Bearer::new(&serving, &folder, "ann@acme", "admin");
    let body = json!({ "tool": "create_refund", "for": "1h", "why": WHY });
    for _ in 0..100 {
        let set = admin.post("/v1/stops", &body);
        assert_eq!(set.status, 200, "{set:?}");
    }
    assert_eq!(admin.post("/v1/stops", &body).code(), "too_many_stops");
    let stop = stopped(folder.path(), &["--tenant", "acme"]);
    assert_eq!(stop["tenant"], json!("acme"));
    serving.stop();
}

#[test]
fn an_administrator_says_over_http_what_became_of_an_action_of_their_tenant() {
    let folder = in_doubt();
    let settings = std::fs::read_to_string(folder.join("toolgate.toml")).unwrap();
    let (head, _) = settings.split_once("[identity]").unwrap();
    folder.write("toolgate.toml", &format!("{head}[identity]\nkind = \"tokens\"\n"));
    let serving = Serving::start(folder.path(), &[]);
    let bearer = |person, scope| Bearer::new(&serving, &folder, person, scope);
    let (admin, other, reader) =
        (bearer("ann@acme", "admin"), bearer("gus@globex", "admin"), bearer("lea@acme", "ledger"));
    let key = admin.ask("GET", "/v1/ledger").json()["entries"][0]["key"].as_str().unwrap().to_owned();
    let path = format!("/v1/ledger/{key}");
    let none = json!({ "outcome": "none", "why": "the orders table shows no refund" });
    assert_eq!(reader.post(&path, &none).code(), "missing_scope");
    assert_eq!(other.post(&path, &none).code(), "no_such_action");
    assert_eq!(admin.post(&format!("/v1/ledger/{}", &key[..12]), &none).code(), "no_such_action");
    for (body, at) in [
        (json!({ "outcome": "maybe", "why": "seen" }), "/outcome"),
        (json!({ "outcome": "none", "why": " " }), "/why"),
        (json!({ "outcome": "none", "why": "seen", "result": {} }), "/result"),
    ] {
        let refused = admin.post(&path, &body);
        assert_eq!(refused.code(), "broken_envelope", "{body}");
        assert!(refused.json()["detail"].as_str().unwrap().starts_with(at), "{refused:?}");
    }
    // The server looks for it too, now and then.
    let say = |body: &Value| {
        let mut said = admin.post(&path, body);
        until("nobody else looks for it", || {
            let looks = said.status == 409 && said.code() == "being_reconciled";
            if looks {
                said = admin.post(&path, body);
            }
            !looks
        });
        said
    };
    let unfit = say(&json!({ "outcome": "done", "why": "seen", "result": { "refund": 1 } }));
    assert_eq!((unfit.status, unfit.code().as_str()), (422, "result_unfit"));
    let dry = say(&json!({ "outcome": "none", "why": "seen", "dry_run": true }));
    assert_eq!(dry.json()["state"], "unknown");

    let ruled = say(&none);
    assert_eq!((ruled.status, &ruled.json()["state"]), (200, &json!("failed")), "{ruled:?}");
    let again = admin.post(&path, &none);
    assert_eq!((again.status, again.code().as_str()), (409, "not_unknown"));
    serving.stop();
    let record = &recorded(&folder, "ruling")[0];
    assert_eq!((&record["why"], &record["principal"]["subject"]), (&none["why"], &json!("ann")));
    assert_eq!((&record["effect"], &record["tenant"]), (&json!("none"), &json!("acme")));
}
