//! Consent that is given beforehand, through the command and over HTTP.

use serde_json::{Value, json};

use super::{refund, tokens};
use crate::door::{Run, call, toolgate};
use crate::folder::Folder;
use crate::serve::Serving;

fn approvals(folder: &Folder, words: &[&str]) -> Run {
    let dir = folder.path().to_str().unwrap();
    Run::of(&mut toolgate(&[&["approvals", dir], words].concat()), "")
}

const GRANT: [&str; 7] = ["grant", "--tool", "create_refund", "--rule", "create_refund.approval", "--to", "alice"];

fn grant(folder: &Folder, more: &[&str]) -> Run {
    approvals(folder, &[&GRANT[..], &["--for", "1h", "--as", "mia@acme", "--json"], more].concat())
}

/// Gives the order room for two refunds that need consent.
fn roomy(folder: &Folder) {
    folder.edit("shop.sql", "('ord_1001', 'acme',   10000", "('ord_1001', 'acme',   30000");
}

#[test]
fn a_manager_consents_beforehand_to_some_refunds_of_one_person() {
    let folder = Folder::shop();
    roomy(&folder);
    let given = grant(&folder, &["--calls", "1"]);
    assert_eq!(given.exit, Some(0), "{given:?}");
    let id = given.json()["id"].as_str().unwrap().to_owned();

    let done = call(folder.path(), "alice@acme", "create_refund", &refund("ord_1001", 5500));
    assert_eq!(done.exit, Some(0), "{done:?}");
    let waits = call(folder.path(), "alice@acme", "create_refund", &refund("ord_1001", 5200));
    assert_eq!(waits.exit, Some(4), "{waits:?}");
    let listed = approvals(&folder, &["grants", "--json"]).json();
    assert_eq!((&listed[0]["state"], &listed[0]["calls"]), (&json!("used_up"), &json!({ "max": 1, "left": 0 })));

    let why =
        Run::of(&mut toolgate(&["why", folder.path().to_str().unwrap(), done.json()["ref"].as_str().unwrap()]), "");
    assert!(why.stdout.contains(&id) && why.stdout.contains("mia"), "the use names the grant and its giver: {why:?}");
    let revoked = approvals(&folder, &["revoke", &id, "--as", "mia@acme", "--json"]);
    assert_eq!((revoked.exit, &revoked.json()["state"]), (Some(0), &json!("revoked")));
    assert_eq!(approvals(&folder, &["grants", "--json"]).json(), json!([]));
    assert_eq!(approvals(&folder, &["revoke", &id, "--as", "mia@acme"]).exit, Some(3));
}

#[test]
fn what_cannot_be_granted_is_told_with_what_to_add() {
    let folder = Folder::shop();
    for (more, exit, told) in [
        (&[][..], 2, "a bound"),
        (&["--sum", "100"], 2, "/amount_cents"),
        (&["--sum", "100", "--of", "/reason"], 2, "whole numbers"),
        (&["--of", "/amount_cents", "--calls", "1"], 2, "--sum"),
        (&["--calls", "0"], 2, "from 1"),
        (&["--calls", "1", "--for", "31d"], 2, "cannot be used multiple times"),
    ] {
        let run = grant(&folder, more);
        assert_eq!((run.exit, run.stdout.as_str()), (Some(exit), ""), "{more:?}: {run:?}");
        assert!(run.stderr.contains(told), "{more:?}: {run:?}");
    }
    let with = |rule: &str, to: &str, by: &str| {
        let words = ["grant", "--tool", "create_refund", "--rule", rule, "--to", to, "--calls", "1", "--for", "1h"];
        approvals(&folder, &[&words[..], &["--as", by]].concat())
    };
    let rule = "create_refund.approval";
    for (run, exit, told) in [
        (with("create_refund.aproval", "alice", "mia@acme"), 2, "did you mean create_refund.approval?"),
        (with("refund.exceeds_balance", "alice", "mia@acme"), 2, "known: create_refund.approval"),
        (with(rule, "alcie", "mia@acme"), 2, "did you mean alice@acme?"),
        (with(rule, "bob@globex", "mia@acme"), 2, "another tenant"),
        (with(rule, "mia", "mia@acme"), 3, "grant_not_yours"),
        (with(rule, "mia", "alice@acme"), 3, "the role manager"),
    ] {
        assert_eq!((run.exit, run.stdout.as_str()), (Some(exit), ""), "{run:?}");
        assert!(run.stderr.contains(told), "{told}: {run:?}");
    }
    assert_eq!(approvals(&folder, &["grants", "--json"]).json(), json!([]));
    let dry = grant(&folder, &["--calls", "3", "--dry-run"]);
    assert_eq!((dry.exit, &dry.json()["calls"]), (Some(0), &json!({ "max": 3, "left": 3 })), "{dry:?}");
    assert_eq!((&dry.json()["id"], &dry.json()["dry_run"]), (&json!(null), &json!(true)), "it is the id of nothing");
    assert_eq!(approvals(&folder, &["grants", "--json"]).json(), json!([]), "a dry run gives nothing");
}

#[test]
fn a_policy_that_was_edited_voids_what_was_given_before() {
    let folder = Folder::shop();
    assert_eq!(grant(&folder, &["--calls", "5"]).exit, Some(0));
    folder.edit("tools/create_refund.toml", "amount_cents > 5000", "amount_cents > 4000");
    let waits = call(folder.path(), "alice@acme", "create_refund", &refund("ord_1001", 8000));
    assert_eq!(waits.exit, Some(4), "{waits:?}");
    let listed = approvals(&folder, &["grants", "--json"]).json();
    assert_eq!(listed[0]["state"], "other_contract");
}

/// A token of somebody with these roles and scopes.
fn token(folder: &Folder, person: &str, roles: &[&str], scopes: &str) -> String {
    let dir = folder.path().to_str().unwrap();
    let mut words = vec!["token", "new", dir, "--as", person, "--scope", scopes, "--json"];
    words.extend(roles.iter().flat_map(|role| ["--role", role]));
    Run::of(&mut toolgate(&words), "").json()["token"].as_str().unwrap().to_owned()
}

#[test]
fn whoever_may_answer_approvals_gives_and_takes_back_over_http() {
    let folder = tokens::shop();
    roomy(&folder);
    let mia = token(&folder, "mia@acme", &["support", "manager"], "approvals:approve");
    let alice = token(&folder, "alice@acme", &["support"], "calls");
    let serving = Serving::start(folder.path(), &[]);
    let ours = serving.address().to_string();
    let ask = |method: &str, path: &str, token: &str, body: &str| {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {ours}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        serving.connect().answer(&request)
    };
    let read = |body: &str| -> Value { serde_json::from_str(body).unwrap() };
    let body = json!({
        "tool": "create_refund", "rule": "create_refund.approval", "to": "alice", "for": "1h",
        "sum": 9000, "of": "/amount_cents",
    });
    assert_eq!(ask("POST", "/v1/grants", &alice, &body.to_string()).code(), "missing_scope");
    assert_eq!(ask("GET", "/v1/grants", &alice, "").code(), "missing_scope");
    let given = ask("POST", "/v1/grants", &mia, &body.to_string());
    assert_eq!(given.status, 200, "{given:?}");
    let id = read(&given.body)["id"].as_str().unwrap().to_owned();
    assert_eq!(read(&given.body)["to"], json!({ "issuer": "tokens", "subject": "alice" }));

    let refunded = |cents| {
        let arguments = refund("ord_1001", cents).to_string();
        let words = ["call", folder.path().to_str().unwrap(), "create_refund", &arguments, "--json"];
        Run::of(toolgate(&words).env("TOOLGATE_TOKEN", &alice), "").exit
    };
    assert_eq!((refunded(5500), refunded(5200)), (Some(0), Some(4)));
    let listed = ask("GET", "/v1/grants", &mia, "");
    assert_eq!(read(&listed.body)["grants"][0]["sum"], json!({ "of": "/amount_cents", "max": 9000, "left": 3500 }));

    for (changed, status, code) in [
        (json!({ "to": "mia" }), 403, "grant_not_yours"),
        (json!({ "to": { "issuer": "tokens", "subject": "mia" } }), 403, "grant_not_yours"),
        (json!({ "rule": "nothing" }), 422, "unfit_grant"),
        (json!({ "for": "31d" }), 422, "unfit_grant"),
        (json!({ "to": 7 }), 400, "broken_envelope"),
        (json!({ "sum": "9000" }), 400, "broken_envelope"),
        (json!({ "more": 1 }), 400, "broken_envelope"),
    ] {
        let mut body = body.as_object().unwrap().clone();
        body.extend(changed.as_object().unwrap().clone());
        let refused = ask("POST", "/v1/grants", &mia, &json!(body).to_string());
        assert_eq!((refused.status, refused.code().as_str()), (status, code), "{changed}: {refused:?}");
    }
    let path = format!("/v1/grants/{id}");
    let revoked = ask("DELETE", &path, &mia, "");
    assert_eq!((revoked.status, &read(&revoked.body)["state"]), (200, &json!("revoked")));
    assert_eq!(ask("DELETE", &path, &mia, "").code(), "grant_missing");
    serving.stop();
}
