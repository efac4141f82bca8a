//! A shop begins by observing its policies, sees what they would refuse, and then holds calls to them. Policies to start
//! from are suggested.

use std::fs;

use serde_json::{Value, json};

use super::refund;
use crate::door::{self, Run, toolgate};
use crate::folder::Folder;
use crate::scenario::GateName;
use crate::serve::Serving;

/// A shop whose policies are only observed.
fn observing() -> Folder {
    let folder = Folder::shop();
    folder.edit("toolgate.toml", "store = ", "mode = \"observe\"\nstore = ");
    folder
}

/// The same after a day: a refund that policies permit, one that a manager would have to approve, two of more than is left,
/// which only the database refuses, and a look of somebody without a role.
pub(super) fn watched() -> Folder {
    let folder = observing();
    folder.edit(
        "toolgate.toml",
        "[[identity.user]]\nname = \"bob\"",
        "[[identity.user]]\nname = \"ned\"\ntenant = \"acme\"\n\n[[identity.user]]\nname = \"bob\"",
    );
    for (cents, exit) in [(100, 0), (5100, 0), (6000, 3), (6100, 3)] {
        let run = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_1001", cents));
        assert_eq!(run.exit, Some(exit), "{run:?}");
        assert_eq!(run.json()["error"]["reason"], if exit == 0 { Value::Null } else { json!("order_changed") });
    }
    let looked = door::call(folder.path(), "ned@acme", "get_order", &json!({ "order_id": "ord_1001" }));
    assert_eq!(looked.exit, Some(0), "{looked:?}");
    folder
}

fn run(folder: &Folder, words: &[&str]) -> Run {
    let (command, more) = words.split_first().unwrap();
    let words: Vec<&str> =
        [*command, folder.path().to_str().unwrap()].into_iter().chain(more.iter().copied()).collect();
    Run::of(&mut toolgate(&words), "")
}

#[test]
fn a_shop_observes_its_policies_sees_what_they_would_refuse_and_then_holds_to_them() {
    let folder = watched();
    assert_eq!(folder.number("select count(*) from refunds"), 2, "every refund that could be was made");
    assert_eq!(run(&folder, &["approvals", "list", "--json"]).json(), json!([]), "nobody was asked");

    let observed = run(&folder, &["audit", "observed", "--json"]);
    assert_eq!(observed.exit, Some(0), "{observed:?}");
    let observed = observed.json();
    assert_eq!((&observed["observed"], &observed["would_refuse"]), (&json!(5), &json!(4)), "{observed}");
    let told: Vec<(&str, &str, &Value, &Value)> = observed["summary"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["tool"].as_str().unwrap(), row["code"].as_str().unwrap(), &row["rules"], &row["count"]))
        .collect();
    let [consent, rule] = ["create_refund.approval", "refund.exceeds_balance"].map(|rule| json!([rule]));
    assert_eq!(
        told,
        [
            ("create_refund", "rule_failed", &rule, &json!(2)),
            ("create_refund", "approval_required", &consent, &json!(1)),
            ("get_order", "unknown_tool", &json!([]), &json!(1)),
        ]
    );
    let people = run(&folder, &["audit", "observed"]).stdout;
    assert!(people.contains("     2  create_refund: rule_failed (refund.exceeds_balance), last "), "{people}");
    assert!(people.contains("     1  get_order: unknown_tool (no policy permits it), last "), "{people}");
    assert!(
        people.contains("5 calls were observed since ") && people.contains(", 4 would have been refused"),
        "{people}"
    );
    let narrowed = |words: &[&str]| {
        let report = run(&folder, &[&["audit", "observed", "--json"], words].concat()).json();
        (report["observed"].as_u64().unwrap(), report["would_refuse"].as_u64().unwrap())
    };
    assert_eq!(narrowed(&["--tool", "create_refund"]), (4, 3));
    assert_eq!(narrowed(&["--principal", "ned"]), (1, 1));
    assert_eq!(narrowed(&["--code", "unknown_tool"]), (5, 1));
    assert_eq!(narrowed(&["--until", "2020-01-01"]), (0, 0));
    let none = run(&folder, &["audit", "observed", "--tenant", "globex"]).stdout;
    assert_eq!(none, "no call that was observed matches\n");

    let policies = folder.join("policies");
    let replayed = run(&folder, &["audit", "replay", "--policies", policies.to_str().unwrap(), "--json"]).json();
    assert_eq!((&replayed["decided"], &replayed["changed"]), (&json!(5), &json!(0)), "{replayed}");
    let reference = observed["summary"][1]["ref"].as_str().unwrap();
    let case = run(&folder, &["audit", "case", reference]);
    assert!(case.stdout.contains(r#""expect": "approval_required""#), "{case:?}");
    assert!(!case.stderr.contains("does not hold"), "{case:?}");
    let why = run(&folder, &["why", reference]).stdout;
    assert!(why.contains(" would_refuse=approval_required"), "{why}");

    folder.edit("toolgate.toml", "mode = \"observe\"", "mode = \"enforce\"");
    let held = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_1001", 6000));
    assert_eq!((held.exit, &held.json()["error"]["code"]), (Some(3), &json!("rule_failed")), "{held:?}");
    let hidden = door::call(folder.path(), "ned@acme", "get_order", &json!({ "order_id": "ord_1001" }));
    assert_eq!((hidden.exit, &hidden.json()["error"]["code"]), (Some(3), &json!("unknown_tool")), "{hidden:?}");
    assert_eq!(run(&folder, &["audit", "observed", "--json"]).json(), observed, "what holds is not counted");
}

#[test]
fn before_the_first_call_nothing_was_observed_and_that_is_no_fault() {
    let folder = Folder::shop();
    let observed = run(&folder, &["audit", "observed"]);
    assert_eq!(observed.exit, Some(0), "{observed:?}");
    assert!(observed.stdout.starts_with("no call was observed: "), "{observed:?}");
    let report = run(&folder, &["audit", "observed", "--json"]).json();
    assert_eq!((&report["observed"], &report["since"]), (&json!(0), &Value::Null), "{report}");
}

#[test]
fn nobody_can_overlook_that_policies_are_only_observed() {
    let folder = observing();
    let loud = "warning: observe mode: policies refuse nothing; what they would have refused is only on record\n";
    let call = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_1001", 8000));
    assert!(call.stderr.starts_with(loud), "{call:?}");
    let why = "observe mode: it would have been refused: approval_required (asked by create_refund.approval)";
    assert!(call.stderr.contains(why), "{call:?}");
    assert!(!call.stdout.contains("observe"), "nothing of it is for the model: {call:?}");
    let message = fs::read_to_string(folder.join("message.json")).unwrap();
    let words = ["exec", folder.path().to_str().unwrap(), "--from", "openai-chat"];
    let exec = Run::of(&mut toolgate(&words), &message);
    assert!(exec.stderr.starts_with(loud), "{exec:?}");
    let mcp = run(&folder, &["mcp"]);
    assert!(mcp.stderr.starts_with(loud), "{mcp:?}");
    let serving = Serving::start(folder.path(), &[]);
    serving.signal("-TERM");
    let (_, told) = serving.end();
    assert!(told.contains(loud), "{told}");
    let checked = run(&folder, &["check"]);
    assert_eq!(checked.exit, Some(0), "{checked:?}");
    assert!(
        checked.stdout.contains("warning: toolgate.toml:2:1: observed: mode: policies refuse no call"),
        "{checked:?}"
    );

    let one = Folder::shop();
    one.edit("tools/create_refund.toml", "effect = \"write\"", "effect = \"write\"\nmode = \"observe\"");
    let call = door::call(one.path(), "alice@acme", "get_order", &json!({ "order_id": "ord_1001" }));
    assert!(call.stderr.contains("observe mode: the policies of create_refund refuse nothing"), "{call:?}");
    let checked = run(&one, &["check"]);
    assert!(checked.stdout.contains("warning: tools/create_refund.toml:4:1: observed: mode: "), "{checked:?}");
    let quiet = Folder::shop();
    let call = door::call(quiet.path(), "alice@acme", "get_order", &json!({ "order_id": "ord_1001" }));
    assert!(!call.stderr.contains("observe"), "{call:?}");
}

#[test]
fn cases_are_judged_by_policies_that_hold() {
    let folder = observing();
    let checked = run(&folder, &["check"]);
    assert_eq!(checked.exit, Some(0), "the cases of the shop say what its policies refuse: {checked:?}");
}

#[test]
fn another_tenants_order_is_not_there_in_observe_mode_either() {
    let folder = observing();
    let run = door::call(folder.path(), "bob@globex", "create_refund", &refund("ord_1001", 100));
    assert_eq!((run.exit, &run.json()["error"]["code"]), (Some(3), &json!("forbidden")), "{run:?}");
    assert_eq!(folder.number("select count(*) from refunds"), 0);
}

#[test]
fn suggested_policies_hold_for_every_example_whatever_became_of_its_own() {
    for gate in [GateName::Shop, GateName::RefundOrder] {
        let folder = Folder::of(gate);
        fs::remove_dir_all(folder.join("cases")).unwrap();
        let suggested = run(&folder, &["check", "--suggest-policies"]);
        assert_eq!(suggested.exit, Some(0), "{suggested:?}");
        fs::remove_dir_all(folder.join("policies")).unwrap();
        assert_eq!(run(&folder, &["check"]).exit, Some(2), "there are none");
        let again = run(&folder, &["check", "--suggest-policies"]);
        assert_eq!((again.exit, &again.stdout), (Some(0), &suggested.stdout), "{again:?}");
        fs::create_dir(folder.join("policies")).unwrap();
        folder.write("policies/broken.cedar", "permit (principal, action == Action::\"nothing\", resource);");
        assert_eq!(run(&folder, &["check", "--suggest-policies"]).stdout, suggested.stdout, "they are faulty");
        fs::remove_file(folder.join("policies/broken.cedar")).unwrap();
        folder.write("policies/suggested.cedar", &suggested.stdout);
        let checked = run(&folder, &["check"]);
        assert_eq!(checked.exit, Some(0), "{checked:?}\n{}", suggested.stdout);
    }
}

#[test]
fn by_suggested_policies_people_read_and_a_manager_approves_what_they_write() {
    let folder = Folder::shop();
    let suggested = run(&folder, &["check", "--suggest-policies"]).stdout;
    for told in [
        "//   find_refund, get_order, get_refund_status, read_document\n@id(\"suggested.reads.acme\")\n",
        "permit (principal in Tenant::\"globex\", action in Action::\"write\", resource);",
        "@approvers(\"manager\")",
    ] {
        assert!(suggested.contains(told), "`{told}` is not in\n{suggested}");
    }
    fs::remove_dir_all(folder.join("policies")).unwrap();
    fs::create_dir(folder.join("policies")).unwrap();
    folder.write("policies/suggested.cedar", &suggested);
    let order = json!({ "order_id": "ord_1001" });
    assert_eq!(door::call(folder.path(), "alice@acme", "get_order", &order).exit, Some(0));
    let asked = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_1001", 100));
    assert_eq!(asked.exit, Some(4), "{asked:?}");
    let id = asked.json()["error"]["approval"]["id"].as_str().unwrap().to_owned();
    assert_eq!(run(&folder, &["approvals", "approve", &id, "--as", "mia@acme"]).exit, Some(0));
    assert_eq!(door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_1001", 100)).exit, Some(0));
}

#[test]
fn where_nobody_is_listed_policies_are_suggested_for_everybody_and_say_who_is_missing() {
    let folder = super::tokens::shop();
    let suggested = run(&folder, &["check", "--suggest-policies"]).stdout;
    assert!(suggested.contains("permit (principal, action in Action::\"read\", resource);"), "{suggested}");
    assert!(suggested.contains("Nobody has the role") && suggested.contains("@approvers(\"approver\")"), "{suggested}");
    let words = ["token", "new", folder.path().to_str().unwrap(), "--as", "mia@acme", "--role", "shift_lead"];
    assert_eq!(Run::of(&mut toolgate(&words), "").exit, Some(0));
    let suggested = run(&folder, &["check", "--suggest-policies"]).stdout;
    assert!(suggested.contains("principal in Tenant::\"acme\"") && suggested.contains("@approvers(\"shift_lead\")"));
}
