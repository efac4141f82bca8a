//! A change of policies is reviewed by the calls that there were, and a recorded call becomes a case.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::refund;
use crate::door::{self, Run, toolgate};
use crate::folder::Folder;

/// Support staff may refund, up to a limit; the first rule of the shop stands as well.
fn stricter(limit: i64) -> String {
    let own =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/shop/policies/refunds.cedar")).unwrap();
    format!(
        "{own}\n@id(\"refund.small\") @message(\"That is too much for one refund.\") @fix(\"user\")\n\
         forbid (principal, action == Action::\"create_refund\", resource) when {{ context.input.amount_cents > {limit} }};\n"
    )
}

/// Another folder of policies beside the shop's own: its reads, and these refunds.
fn reviewed(folder: &Folder, refunds: &str) -> String {
    let new = folder.join("new");
    fs::create_dir_all(&new).unwrap();
    fs::copy(folder.join("policies/reads.cedar"), new.join("reads.cedar")).unwrap();
    fs::write(new.join("refunds.cedar"), refunds).unwrap();
    new.to_str().unwrap().to_owned()
}

fn audit(dir: &Path, words: &[&str]) -> Run {
    let words: Vec<&str> = ["audit", dir.to_str().unwrap()].into_iter().chain(words.iter().copied()).collect();
    Run::of(&mut toolgate(&words), "")
}

/// Makes a call; the name of its attempt.
fn called(folder: &Folder, user: &str, tool: &str, arguments: &Value) -> String {
    let reply = door::call(folder.path(), user, tool, arguments).json();
    let reference = reply.get("ref").or_else(|| reply["error"].get("ref"));
    reference.unwrap_or_else(|| panic!("{reply}")).as_str().unwrap().to_owned()
}

/// A shop in which there were calls of all kinds: the refunds of 1500 and of 600 that were made, and the pending one.
fn traded() -> (Folder, [String; 3]) {
    let folder = Folder::shop();
    let dir = folder.path();
    let large = called(&folder, "alice@acme", "create_refund", &refund("ord_4821", 1500));
    called(&folder, "alice@acme", "create_refund", &refund("ord_1001", 100));
    let other = called(&folder, "mia@acme", "create_refund", &refund("ord_1001", 600));
    called(&folder, "alice@acme", "create_refund", &refund("ord_4821", 4000));
    let pending = called(&folder, "alice@acme", "create_refund", &refund("ord_1001", 9000));
    called(&folder, "alice@acme", "get_order", &json!({ "order_id": "ord_4821" }));
    called(&folder, "alice@acme", "create_refund", &json!({ "order_id": "ord_1001" }));
    called(&folder, "alice@acme", "refund_all", &json!({}));
    let dry = refund("ord_1001", 700).to_string();
    let words = ["call", dir.to_str().unwrap(), "create_refund", &dry, "--as", "alice@acme", "--dry-run"];
    assert_eq!(Run::of(&mut toolgate(&words), "").exit, Some(0));
    (folder, [large, other, pending])
}

#[test]
fn a_review_shows_exactly_the_calls_that_a_stricter_rule_would_refuse() {
    let (folder, [large, other, pending]) = traded();
    let dir = folder.path();
    let before = audit(dir, &["verify", "--json"]).json();
    let new = reviewed(&folder, &stricter(500));
    let review = audit(dir, &["replay", "--policies", &new, "--json"]);
    assert_eq!(review.exit, Some(0), "{review:?}");
    let review = review.json();
    let changed: Vec<(&str, &str, &str)> = review["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            let decision = |side: &str| call[side]["decision"].as_str().unwrap();
            (call["ref"].as_str().unwrap(), decision("was"), decision("would_be"))
        })
        .collect();
    assert_eq!(
        changed,
        [
            (large.as_str(), "permitted", "rule_failed"),
            (other.as_str(), "permitted", "rule_failed"),
            (pending.as_str(), "approval_required", "rule_failed"),
        ],
        "{review}"
    );
    assert_eq!(review["calls"][0]["would_be"]["policies"], json!(["refund.small"]));
    assert_eq!(review["calls"][0]["was"]["policies"], json!(["refund.support"]));
    assert_eq!((&review["decided"], &review["changed"], &review["undecided"]), (&json!(6), &json!(3), &json!([])));
    assert_eq!(
        review["before"],
        json!([{ "code": "invalid_arguments", "count": 1 }, { "code": "unknown_tool", "count": 1 }])
    );
    assert_eq!(audit(dir, &["verify", "--json"]).json(), before, "a review writes nothing");

    let people = audit(dir, &["replay", "--policies", &new]).stdout;
    let line = format!("{large} ");
    assert!(people.starts_with(&line), "{people}");
    assert!(
        people.contains("create_refund by alice@acme: permitted (refund.support) -> rule_failed (refund.small)"),
        "{people}"
    );
    assert!(
        people.contains("     2  create_refund: permitted (refund.support) -> rule_failed (refund.small)"),
        "{people}"
    );
    assert!(people.contains("6 calls decided again, 3 would change, 0 could not be decided"), "{people}");
    assert!(people.contains("1  stay as they were: invalid_arguments"), "{people}");
}

#[test]
fn the_policies_that_decided_change_nothing_and_a_review_is_narrowed() {
    let (folder, [large, ..]) = traded();
    let dir = folder.path();
    let own = folder.join("policies");
    let review = |words: &[&str]| audit(dir, &[&["replay", "--json", "--policies"], words].concat()).json();
    let same = review(&[own.to_str().unwrap()]);
    assert_eq!((&same["decided"], &same["changed"], &same["undecided"]), (&json!(6), &json!(0), &json!([])), "{same}");
    let new = reviewed(&folder, &stricter(1000));
    let calls = |words: &[&str]| review(&[&[new.as_str()], words].concat())["calls"].as_array().unwrap().len();
    assert_eq!(calls(&[]), 2);
    assert_eq!(calls(&["--tool", "get_order"]), 0);
    assert_eq!(calls(&["--until", "2001-01-01"]), 0);
    assert_eq!(calls(&["--since", "2001-01-01T00:00:00Z", "--tool", "create_refund"]), 2);
    // What nobody is permitted any more is not there for them.
    let gone = reviewed(&folder, "");
    let review = audit(dir, &["replay", "--policies", &gone, "--json", "--tool", "create_refund"]).json();
    assert_eq!(
        (&review["calls"][0]["ref"], &review["calls"][0]["would_be"]["decision"]),
        (&json!(large), &json!("unknown_tool"))
    );
}

#[test]
fn policies_with_faults_review_nothing() {
    let (folder, _) = traded();
    let dir = folder.path();
    let new = reviewed(&folder, "permit (principal, action == Action::\"create_refnd\", resource);");
    let review = audit(dir, &["replay", "--policies", &new]);
    assert_eq!(review.exit, Some(2), "{review:?}");
    assert!(review.stderr.contains("refunds.cedar:1:") && review.stderr.contains("create_refund"), "{review:?}");
    let blamed = format!("with the policies of {new}; nothing was decided");
    assert!(review.stderr.contains(&blamed) && review.stderr.contains(&format!("hint: mend {new}")), "{review:?}");
    for file in ["reads.cedar", "refunds.cedar"] {
        fs::remove_file(Path::new(&new).join(file)).unwrap();
    }
    let empty = audit(dir, &["replay", "--policies", &new]);
    assert_eq!(empty.exit, Some(2), "{empty:?}");
    assert!(empty.stderr.contains("there is no policy in"), "{empty:?}");
    let missing = audit(dir, &["replay", "--policies", "nowhere"]);
    assert!(missing.stderr.starts_with("error[no_such_folder]: "), "{missing:?}");
}

#[test]
fn digests_alone_cannot_be_decided_again() {
    let folder = Folder::shop();
    folder.edit("toolgate.toml", "[identity]", "[audit]\narguments = \"digest\"\n\n[identity]");
    let reference = called(&folder, "alice@acme", "create_refund", &refund("ord_1001", 100));
    let new = reviewed(&folder, &stricter(50));
    let review = audit(folder.path(), &["replay", "--policies", &new, "--json"]).json();
    assert_eq!((&review["decided"], &review["calls"]), (&json!(0), &json!([])));
    assert_eq!(review["undecided"], json!([{ "why": "the record does not hold its arguments", "count": 1 }]));
    let case = audit(folder.path(), &["case", &reference]);
    assert_eq!(case.exit, Some(3), "{case:?}");
    assert!(case.stderr.starts_with("error[not_kept]: "), "{case:?}");
}

/// The case of a recorded call, put into the folder: it must hold there.
fn kept_as_case(folder: &Folder, reference: &str) -> Value {
    let dir = folder.path();
    let case = audit(dir, &["case", reference]);
    assert_eq!((case.exit, case.stdout.lines().count()), (Some(0), 1), "{case:?}");
    folder.write("cases/seen.jsonl", &case.stdout);
    let checked = Run::of(&mut toolgate(&["check", dir.to_str().unwrap()]), "");
    assert_eq!(checked.exit, Some(0), "{}\n{checked:?}", case.stdout);
    serde_json::from_str(&case.stdout).unwrap()
}

#[test]
fn every_malformed_call_becomes_a_case_that_holds() {
    let folder = Folder::shop();
    for (text, expect) in [
        (r#"{"order_id": "ord_1001", "amount_cents": 100,}"#, "invalid_json"),
        ("{\"order_id\": \"ord_1001\",\n \"amount_cents\": NaN}", "invalid_json"),
        (r#"{"order_id": "ord_1001", "order_id": "ord_1002"}"#, "invalid_json"),
        ("", "invalid_arguments"),
        (r#"{"order_id": "1001", "amount_cents": "100", "extra": 1}"#, "invalid_arguments"),
    ] {
        let words = ["call", folder.path().to_str().unwrap(), "create_refund", text, "--as", "alice@acme", "--json"];
        let refused = Run::of(&mut toolgate(&words), "").json();
        assert_eq!(refused["error"]["code"], expect, "{text}");
        let case = kept_as_case(&folder, refused["error"]["ref"].as_str().unwrap());
        assert_eq!((&case["expect"]["code"], &case["as"]), (&json!(expect), &json!("alice@acme")), "{case}");
        let sent = case.get("text").cloned().unwrap_or_else(|| json!(case["arguments"].to_string()));
        assert!(expect != "invalid_json" || sent == json!(text), "{case}");
        assert!(!case["expect"]["problems"].as_array().unwrap().is_empty(), "{case}");
    }
}

#[test]
fn calls_that_were_decided_become_cases_that_hold() {
    let (folder, [large, _, pending]) = traded();
    let done = kept_as_case(&folder, &large);
    assert_eq!((&done["expect"], &done["arguments"]), (&json!("ok"), &refund("ord_4821", 1500)));
    assert_eq!(kept_as_case(&folder, &pending)["expect"], "approval_required");
    let over = called(&folder, "alice@acme", "create_refund", &refund("ord_4821", 4500));
    let case = kept_as_case(&folder, &over);
    assert_eq!(case["expect"], json!({ "code": "rule_failed", "rule": "refund.exceeds_balance" }));
    let unknown = called(&folder, "alice@acme", "refund_all", &json!({ "all": true }));
    assert_eq!(kept_as_case(&folder, &unknown)["expect"], "unknown_tool");
    let replayed = called(&folder, "alice@acme", "create_refund", &refund("ord_4821", 1500));
    assert_eq!(kept_as_case(&folder, &replayed)["expect"], "ok");
    let none = audit(folder.path(), &["case", "01J8Z3N0W7Q4V5X6Y7Z8A9B0C1"]);
    assert!(none.stderr.starts_with("error[unknown_ref]: "), "{none:?}");
}

#[test]
fn a_replay_of_an_approved_call_is_the_case_of_its_first_call() {
    let (folder, _) = traded();
    let dir = folder.path().to_str().unwrap();
    let waiting = Run::of(&mut toolgate(&["approvals", dir, "list", "--json", "--as", "mia@acme"]), "").json();
    let id = waiting[0]["id"].as_str().unwrap();
    let granted = Run::of(&mut toolgate(&["approvals", dir, "approve", id, "--as", "mia@acme"]), "");
    assert_eq!(granted.exit, Some(0), "{granted:?}");
    for _ in ["first", "again"] {
        let made = called(&folder, "alice@acme", "create_refund", &refund("ord_1001", 9000));
        assert_eq!(kept_as_case(&folder, &made)["expect"], "approval_required");
    }
}

#[test]
fn what_the_record_hides_is_a_sample_in_a_case() {
    let folder = Folder::shop();
    let preview = "preview = \"Refund {amount_cents} cents ({currency}) on order {order_id}, reason: {reason}\"\n";
    folder.edit("tools/create_refund.toml", preview, "");
    folder.edit(
        "tools/create_refund.toml",
        "order_id = { type = \"string\", ",
        "order_id = { type = \"string\", x-personal = true, ",
    );
    let reference = called(
        &folder,
        "alice@acme",
        "create_refund",
        &json!({ "order_id": "ord_1001", "amount_cents": -5, "currency": "USD", "reason": "damaged" }),
    );
    called(&folder, "alice@acme", "create_refund", &refund("ord_1001", 100));
    let review = |policies: &str| {
        let new = reviewed(&folder, policies);
        audit(folder.path(), &["replay", "--json", "--policies", &new]).json()
    };
    let same = review(&stricter(100));
    assert_eq!((&same["decided"], &same["changed"], &same["undecided"]), (&json!(1), &json!(0), &json!([])), "{same}");
    let named = "forbid (principal, action == Action::\"create_refund\", resource == Order::\"ord_1001\");";
    let names = review(&format!("{}\n{named}", stricter(100)));
    let why = "policies name what is acted on, which the record hides";
    assert_eq!((&names["decided"], &names["undecided"]), (&json!(0), &json!([{ "why": why, "count": 1 }])), "{names}");
    let told = audit(folder.path(), &["case", &reference]);
    assert!(told.stderr.contains("the record hides what stood at /order_id"), "{told:?}");
    let case = kept_as_case(&folder, &reference);
    assert_ne!(case["arguments"]["order_id"], "ord_1001");
    assert_eq!(case["expect"]["problems"], json!([{ "at": "/amount_cents", "code": "minimum" }]));
}
