//! A folder whose people are known by tokens, through the command.

use std::process::Stdio;

use serde_json::{Value, json};

use super::refund;
use crate::door::{Run, toolgate};
use crate::folder::Folder;

/// The shop, whose people have tokens.
pub(super) fn shop() -> Folder {
    let folder = Folder::shop();
    let settings = std::fs::read_to_string(folder.join("toolgate.toml")).unwrap();
    let (head, _) = settings.split_once("[identity]").unwrap();
    folder.write("toolgate.toml", &format!("{head}[identity]\nkind = \"tokens\"\n"));
    folder
}

fn dir(folder: &Folder) -> &str {
    folder.path().to_str().unwrap()
}

/// Runs a command whose environment holds `token`.
fn run(words: &[&str], token: Option<&str>) -> Run {
    let mut command = toolgate(words);
    command.envs(token.map(|token| ("TOOLGATE_TOKEN", token)));
    Run::of(&mut command, "")
}

/// A new token: all of what `token new --json` tells.
fn issue(folder: &Folder, person: &str, more: &[&str]) -> Value {
    let run = run(&[&["token", "new", dir(folder), "--as", person, "--json"], more].concat(), None);
    assert_eq!(run.exit, Some(0), "{run:?}");
    run.json()
}

fn refunded(folder: &Folder, cents: i64, token: Option<&str>) -> Run {
    run(&["call", dir(folder), "create_refund", &refund("ord_1001", cents).to_string(), "--json"], token)
}

#[test]
fn a_token_is_who_is_asking_until_it_is_taken_back() {
    let folder = shop();
    let alice = issue(&folder, "alice@acme", &["--role", "support", "--for", "90d"]);
    let token = alice["token"].as_str().unwrap();
    let done = refunded(&folder, 100, Some(token));
    assert_eq!(done.exit, Some(0), "{done:?}");
    assert_eq!(folder.rows("select requested_by, tenant from refunds"), json!([["alice", "acme"]]));
    let tools = run(&["tools", dir(&folder), "--json"], Some(token));
    assert!(tools.json().as_array().unwrap().len() > 1);
    let revoked = run(&["token", "revoke", dir(&folder), alice["id"].as_str().unwrap(), "--json"], None);
    assert_eq!((revoked.exit, &revoked.json()["state"]), (Some(0), &json!("revoked")));
    let refused = refunded(&folder, 200, Some(token));
    assert_eq!((refused.exit, refused.stdout.as_str()), (Some(2), ""));
    assert_eq!(folder.number("select count(*) from refunds"), 1);
}

#[test]
fn without_a_token_nobody_is_asking_and_names_are_no_proof() {
    let folder = shop();
    issue(&folder, "alice@acme", &["--role", "support"]);
    let look = ["call", dir(&folder), "get_order", r#"{"order_id":"ord_1001"}"#];
    for (words, token) in [
        (look.to_vec(), None),
        (look.to_vec(), Some("tg_000000000000_aaaa")),
        ([&look[..], &["--as", "alice@acme"]].concat(), None),
        (vec!["tools", dir(&folder), "--as", "alice@acme"], None),
        (vec!["exec", dir(&folder), "--from", "openai-chat"], None),
    ] {
        let run = run(&words, token);
        assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""), "{words:?}: {run:?}");
        assert!(run.stderr.contains("TOOLGATE_TOKEN"), "{run:?}");
    }
}

#[test]
fn a_token_is_shown_once_and_never_again() {
    let folder = shop();
    let shown = run(&["token", "new", dir(&folder), "--as", "alice@acme"], None);
    let token = shown.stdout.trim_end();
    assert!(token.starts_with("tg_") && !token.contains('\n'), "{shown:?}");
    assert!(!shown.stderr.contains(token), "{shown:?}");
    let other =
        issue(&folder, "mia@acme", &["--scope", "calls,approvals:approve", "--role", "manager", "--for", "12h"]);
    assert_eq!(other["principal"], json!({ "issuer": "tokens", "subject": "mia" }));
    assert_eq!(
        (&other["tenant"], &other["roles"], &other["scopes"]),
        (&json!("acme"), &json!(["manager"]), &json!(["calls", "approvals:approve"]))
    );
    let secrets = [token, other["token"].as_str().unwrap()].map(|token| token.rsplit('_').next().unwrap().to_owned());
    let file = std::fs::read_to_string(folder.join("state/tokens.toml")).unwrap();
    let digests: Vec<&str> = file.lines().filter_map(|line| line.strip_prefix("sha256 = ")).collect();
    assert_eq!(digests.len(), 2);
    for words in [&["token", "list", dir(&folder)][..], &["token", "list", dir(&folder), "--json"]] {
        let run = run(words, None);
        assert_eq!(run.exit, Some(0));
        assert!(run.stdout.contains("alice") && run.stdout.contains("mia"), "{run:?}");
        let leaks = |text: &str| [&run.stdout, &run.stderr, &file].iter().any(|place| place.contains(text));
        assert!(!secrets.iter().any(|secret| leaks(secret)));
        assert!(!digests.iter().any(|digest| run.stdout.contains(digest.trim_matches('"'))), "{run:?}");
    }
}

#[test]
fn commands_that_give_tokens_out_at_once_lose_none() {
    let folder = shop();
    let start = |number: usize| {
        let person = format!("user{number}@acme");
        toolgate(&["token", "new", dir(&folder), "--as", &person])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let running: Vec<_> = (0..12).map(start).collect();
    let shown: Vec<String> = running
        .into_iter()
        .map(|child| String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim_end().to_owned())
        .collect();
    assert_eq!(run(&["token", "list", dir(&folder), "--json"], None).json().as_array().unwrap().len(), 12);
    for token in shown {
        assert_eq!(run(&["tools", dir(&folder), "--json"], Some(&token)).exit, Some(0));
    }
}

#[test]
fn mistakes_at_the_command_line_change_nothing() {
    let folder = shop();
    let new = |more: &[&str]| run(&[&["token", "new", dir(&folder)], more].concat(), None);
    for (wrong, told) in [
        (&["--as", "alice"][..], "USER@TENANT"),
        (&["--as", "a b@acme"], "USER@TENANT"),
        (&[], "--as"),
        (&["--as", "alice@acme", "--scope", "cals"], "did you mean calls?"),
        (&["--as", "alice@acme", "--for", "90"], "90d"),
        (&["--as", "alice@acme", "--for", "0s"], "90d"),
        (&["--as", "alice@acme", "--role", " "], "role"),
    ] {
        let run = new(wrong);
        assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""), "{wrong:?}: {run:?}");
        assert!(run.stderr.contains(told), "{wrong:?}: {run:?}");
    }
    let unknown = run(&["token", "revoke", dir(&folder), "000000000000"], None);
    assert_eq!((unknown.exit, unknown.stdout.as_str()), (Some(2), ""));
    assert!(!folder.join("state/tokens.toml").exists());
    let listed = Folder::shop();
    let local = run(&["token", "new", dir(&listed), "--as", "alice@acme"], None);
    assert_eq!(local.exit, Some(2));
    assert!(local.stderr.contains("kind = \"tokens\""), "{local:?}");
}

#[test]
fn a_broken_file_of_tokens_is_a_fault_with_a_place_and_is_not_written_over() {
    let folder = shop();
    let alice = issue(&folder, "alice@acme", &["--role", "support"]);
    let text = std::fs::read_to_string(folder.join("state/tokens.toml")).unwrap();
    let broken = text.replace("sha256 =", "sha256");
    folder.write("state/tokens.toml", &broken);
    for words in [
        &["check", dir(&folder)][..],
        &["tools", dir(&folder)],
        &["token", "list", dir(&folder)],
        &["token", "new", dir(&folder), "--as", "bob@acme"],
        &["token", "revoke", dir(&folder), alice["id"].as_str().unwrap()],
    ] {
        let run = run(words, alice["token"].as_str());
        assert_eq!(run.exit, Some(2), "{words:?}: {run:?}");
        let told = format!("{}{}", run.stdout, run.stderr);
        assert!(told.contains("state/tokens.toml:9:"), "{words:?}: {run:?}");
    }
    assert_eq!(std::fs::read_to_string(folder.join("state/tokens.toml")).unwrap(), broken);
}

#[test]
fn at_the_command_line_the_operator_looks_and_speaks_for_others_only_where_the_folder_says_so() {
    let folder = shop();
    let alice = issue(&folder, "alice@acme", &["--role", "support"]);
    issue(&folder, "mia@acme", &["--role", "support", "--role", "manager"]);
    let pending = refunded(&folder, 8000, alice["token"].as_str());
    assert_eq!(pending.exit, Some(4), "{pending:?}");
    let id = pending.json()["error"]["approval"]["id"].as_str().unwrap().to_owned();
    let approvals = |more: &[&str]| run(&[&["approvals", dir(&folder)], more].concat(), alice["token"].as_str());

    let list = approvals(&["list", "--tenant", "acme", "--json"]);
    assert_eq!(list.json()[0]["id"], json!(id), "{list:?}");
    assert_eq!(approvals(&["list", "--tenant", "globex", "--json"]).json(), json!([]));
    assert_eq!(approvals(&["list"]).exit, Some(2));
    let own = approvals(&["approve", &id, "--tenant", "acme"]);
    assert_eq!(own.exit, Some(3), "the operator has no role: {own:?}");
    let as_mia = ["approve", &id, "--as", "mia@acme", "--json"];
    let refused = approvals(&as_mia);
    assert_eq!((refused.exit, refused.stdout.as_str()), (Some(2), ""));
    assert!(refused.stderr.contains("operator = true"), "{refused:?}");

    let settings = std::fs::read_to_string(folder.join("toolgate.toml")).unwrap();
    folder.write("toolgate.toml", &format!("{settings}\n[approvals]\noperator = true\n"));
    assert_eq!(approvals(&["approve", &id, "--as", "nobody@acme"]).exit, Some(2));
    assert_eq!(approvals(&["approve", &id, "--as", "mia@acme", "--tenant", "acme"]).exit, Some(2));
    let granted = approvals(&as_mia);
    assert_eq!((granted.exit, &granted.json()["state"]), (Some(0), &json!("granted")));
    let done = refunded(&folder, 8000, alice["token"].as_str());
    assert_eq!(done.exit, Some(0), "{done:?}");
}

#[test]
fn an_approval_does_not_outlive_the_tokens_of_its_approver() {
    let folder = shop();
    let settings = std::fs::read_to_string(folder.join("toolgate.toml")).unwrap();
    folder.write("toolgate.toml", &format!("{settings}\n[approvals]\noperator = true\n"));
    let alice = issue(&folder, "alice@acme", &["--role", "support"]);
    let mia = issue(&folder, "mia@acme", &["--role", "manager"]);
    let pending = refunded(&folder, 8000, alice["token"].as_str()).json();
    let id = pending["error"]["approval"]["id"].as_str().unwrap();
    let granted = run(&["approvals", dir(&folder), "approve", id, "--as", "mia@acme", "--json"], None);
    assert_eq!(granted.json()["state"], json!("granted"));
    run(&["token", "revoke", dir(&folder), mia["id"].as_str().unwrap()], None);
    let again = refunded(&folder, 8000, alice["token"].as_str());
    assert_eq!(again.exit, Some(4), "{again:?}");
    assert_eq!(folder.number("select count(*) from refunds"), 0);
}
