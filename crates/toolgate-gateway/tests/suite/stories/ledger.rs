//! An operator looks at the ledger, and says what became of an action when nobody knows.

use std::path::Path;

use serde_json::{Value, json};

use super::killed::in_doubt;
use super::{lock, refund};
use crate::door::{self, Run, toolgate};
use crate::folder::Folder;
use crate::serve::Serving;

fn ledger(dir: &Path, words: &[&str]) -> Run {
    let words: Vec<&str> = ["ledger", dir.to_str().unwrap()].into_iter().chain(words.iter().copied()).collect();
    Run::of(&mut toolgate(&words), "")
}

fn listed(dir: &Path, words: &[&str]) -> Value {
    let run = ledger(dir, &[&["list", "--json"], words].concat());
    assert_eq!(run.exit, Some(0), "{run:?}");
    run.json()
}

/// A shop in which nobody knows whether alice's refund of 1500 was made, and the key of that action.
fn unknown() -> (Folder, String) {
    let folder = in_doubt();
    // Somebody asks, and so its dead owner is noticed.
    let asked = refunded(&folder);
    assert_eq!(asked.exit, Some(5), "{asked:?}");
    let unknown = listed(folder.path(), &["--unknown"]);
    assert_eq!(unknown.as_array().unwrap().len(), 1, "{unknown}");
    let key = unknown[0]["key"].as_str().unwrap().to_owned();
    (folder, key)
}

/// The same refund, asked for again.
fn refunded(folder: &Folder) -> Run {
    door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_4821", 1500))
}

/// How the last ruling stands on the record.
fn ruling(folder: &Folder) -> Value {
    let words = ["audit", folder.path().to_str().unwrap(), "tail", "-n", "100", "--json"];
    let tail = Run::of(&mut toolgate(&words), "");
    let mut records = tail.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.rfind(|record| record["kind"] == "ruling").expect("a ruling is on record")
}

#[test]
fn what_an_operator_found_not_done_runs_when_it_is_asked_again() {
    let (folder, key) = unknown();
    let dir = folder.path();
    let told = ledger(dir, &["list", "--unknown"]);
    assert!(
        told.stdout.starts_with(&key[..12]) && told.stdout.contains("create_refund by alice@acme since "),
        "{told:?}"
    );
    let why = "the orders table shows no refund";
    let dry = ledger(dir, &["resolve", &key[..8], "none", "--why", why, "--dry-run"]);
    assert_eq!((dry.exit, dry.stderr.lines().next()), (Some(0), Some("dry run: nothing is resolved")), "{dry:?}");

    let resolved = ledger(dir, &["resolve", &key[..8], "none", "--why", why, "--json"]);
    assert_eq!(resolved.exit, Some(0), "{resolved:?}");
    assert_eq!((&resolved.json()["state"], &resolved.json()["effect"]), (&json!("failed"), &json!("none")));
    let record = ruling(&folder);
    assert_eq!(
        (&record["why"], &record["effect"], &record["tool"]),
        (&json!(why), &json!("none"), &json!("create_refund"))
    );
    assert_eq!((&record["principal"]["issuer"], &record["requester"]["subject"]), (&json!("os"), &json!("alice")));
    assert!(record["principal"]["subject"].as_str().unwrap().starts_with("operator#"), "{record}");

    let done = refunded(&folder);
    assert_eq!(done.exit, Some(0), "{done:?}");
    assert_eq!(done.json()["replayed"], false);
    assert_eq!(folder.rows("select count(*), sum(amount_cents) from refunds"), json!([[1, 1500]]));
    door::verify(dir).unwrap();
}

#[test]
fn what_an_operator_found_done_with_its_result_is_replayed_and_never_made() {
    let (folder, key) = unknown();
    let dir = folder.path();
    let result = json!({ "refund_id": "re_77", "order_id": "ord_4821", "amount_cents": 1500, "currency": "USD", "status": "paid" });
    let unfit = json!({ "refund_id": "re_77", "status": "gone" }).to_string();
    let refused = ledger(dir, &["resolve", &key, "done", "--why", "seen at the bank", "--result", &unfit]);
    assert_eq!(refused.exit, Some(3), "{refused:?}");
    assert!(refused.stderr.starts_with("error[result_unfit]: "), "{refused:?}");
    assert!(refused.stderr.contains("/amount_cents") && refused.stderr.contains("/status"), "{refused:?}");
    assert_eq!(listed(dir, &["--unknown"])[0]["key"], json!(key), "nothing was ruled");

    let words =
        ["resolve", &key, "done", "--why", "seen at the bank", "--as", "mia@acme", "--result", &result.to_string()];
    let resolved = ledger(dir, &words);
    assert_eq!(resolved.exit, Some(0), "{resolved:?}");
    assert_eq!(ruling(&folder)["principal"], json!({ "issuer": "local", "subject": "mia" }));
    let again = refunded(&folder);
    assert_eq!(again.exit, Some(0), "{again:?}");
    assert_eq!((&again.json()["result"], &again.json()["replayed"]), (&result, &json!(true)));
    assert_eq!(folder.number("select count(*) from refunds"), 0, "nothing was made");
    let more = ledger(dir, &["resolve", &key, "none", "--why", "no"]);
    assert_eq!(more.exit, Some(3), "{more:?}");
    assert!(
        more.stderr.starts_with("error[not_unknown]: it is known what became of the action: it happened"),
        "{more:?}"
    );
}

#[test]
fn what_is_done_and_not_seen_is_told_so_and_never_made() {
    let (folder, key) = unknown();
    let dir = folder.path();
    let resolved = ledger(dir, &["resolve", &key, "done", "--why", "the customer has the money"]);
    assert_eq!(resolved.exit, Some(0), "{resolved:?}");
    let again = refunded(&folder).json();
    assert_eq!(
        (&again["error"]["code"], &again["error"]["effect"]),
        (&json!("already_done"), &json!("done")),
        "{again}"
    );
    let message = again["error"]["message"].as_str().unwrap();
    assert!(message.contains("operator") && message.contains("Its result is not known"), "{message}");
    assert_eq!(again["replayed"], true);
    assert_eq!(folder.number("select count(*) from refunds"), 0);
    // The order is free again.
    let other = door::call(dir, "mia@acme", "create_refund", &refund("ord_4821", 100));
    assert_eq!(other.exit, Some(0), "{other:?}");
}

#[test]
fn an_operator_speaks_while_a_server_runs_on_the_folder() {
    let (folder, key) = unknown();
    let dir = folder.path();
    let serving = Serving::start(dir, &[]);
    let resolved = ledger(dir, &["resolve", &key, "none", "--why", "the orders table shows no refund"]);
    assert_eq!(resolved.exit, Some(0), "{resolved:?}");
    let answered = serving.call(&[("create_refund", &refund("ord_4821", 1500))]).reply();
    assert_eq!((&answered["effect"], &answered["replayed"]), (&json!("done"), &json!(false)), "{answered}");
    assert_eq!(folder.number("select count(*) from refunds"), 1);
}

#[test]
fn an_action_is_shown_with_all_that_came_of_it() {
    let (folder, key) = unknown();
    let dir = folder.path();
    let reference = listed(dir, &["--unknown"])[0]["ref"].as_str().unwrap().to_owned();
    ledger(dir, &["resolve", &key, "none", "--why", "no such row"]);
    let done = refunded(&folder).json();
    refunded(&folder);
    let shown = ledger(dir, &["show", &key[..10], "--json"]).json();
    let kinds: Vec<&str> =
        shown["records"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["intent", "lost", "refusal", "ruling", "intent", "outcome", "replay"]);
    assert_eq!((&shown["state"], &shown["attempt"], &shown["ref"]), (&json!("done"), &json!(2), &json!(reference)));
    for named in [reference.as_str(), done["ref"].as_str().unwrap()] {
        assert_eq!(ledger(dir, &["show", named, "--json"]).json()["key"], json!(key), "{named}");
    }
    let people = ledger(dir, &["show", &reference]).stdout;
    assert!(people.contains("first ref") && people.contains(" ruling create_refund by operator#"), "{people}");
}

#[test]
fn the_list_goes_across_tenants_and_is_narrowed() {
    let folder = Folder::shop();
    let dir = folder.path();
    for (user, order) in [("alice@acme", "ord_1001"), ("bob@globex", "ord_9001")] {
        door::call(dir, user, "create_refund", &refund(order, 100));
    }
    let tenants = |list: Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one["tenant"].as_str().unwrap().to_owned()).collect()
    };
    let all = tenants(listed(dir, &[]));
    assert!(all.contains(&"acme".to_owned()), "{all:?}");
    assert_eq!(tenants(listed(dir, &["--tenant", "acme", "--state", "done"])), ["acme"]);
    assert_eq!(tenants(listed(dir, &["--tool", "get_order"])), [""; 0], "a read is no action");
    assert_eq!(tenants(listed(dir, &["--unknown"])), [""; 0]);
    assert_eq!(listed(dir, &["-n", "1"]).as_array().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_ruled_is_refused_in_words() {
    let folder = Folder::shop();
    let dir = folder.path();
    door::call(dir, "alice@acme", "get_order", &json!({ "order_id": "ord_4821" }));
    let usage = |words: &[&str], code: &str| {
        let run = ledger(dir, words);
        assert_eq!(run.exit, Some(2), "{run:?}");
        assert!(run.stderr.starts_with(&format!("error[{code}]: ")), "{run:?}");
    };
    usage(&["resolve", "0000000000", "none", "--why", "x"], "unknown_action");
    usage(&["show", "0000000000"], "unknown_action");
    usage(&["resolve", "0000000000", "none"], "usage");
    usage(&["resolve", "0000000000", "none", "--why", " "], "usage");
    usage(&["resolve", "0000000000", "gone", "--why", "x"], "usage");
    usage(&["resolve", "0000000000", "none", "--why", "x", "--result", "{}"], "usage");
    usage(&["resolve", "0000000000", "done", "--why", "x", "--result", "{\"a\":1,}"], "usage");
    usage(&["list", "--state", "lost"], "usage");
    usage(&["list", "--open", "--unknown"], "usage");
}

#[test]
fn an_action_that_runs_is_nobody_elses_to_speak_of() {
    let folder = Folder::shop();
    let dir = folder.path();
    door::call(dir, "alice@acme", "get_order", &json!({ "order_id": "ord_4821" }));
    let database = lock(&folder.join("state/shop.db"));
    let arguments = refund("ord_4821", 1500).to_string();
    let words = ["call", dir.to_str().unwrap(), "create_refund", &arguments, "--as", "alice@acme", "--json"];
    let mut child = toolgate(&words).stdout(std::process::Stdio::null()).spawn().unwrap();
    super::until("the action is open", || !listed(dir, &["--open"]).as_array().unwrap().is_empty());
    let key = listed(dir, &["--open"])[0]["key"].as_str().unwrap().to_owned();
    let refused = ledger(dir, &["resolve", &key, "none", "--why", "I want it gone"]);
    assert_eq!(refused.exit, Some(3), "{refused:?}");
    assert!(refused.stderr.starts_with("error[not_unknown]: the action is running since "), "{refused:?}");
    drop(database);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
