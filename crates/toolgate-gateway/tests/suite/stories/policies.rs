//! Policies of a folder: what a check says of them, who sees which tool, and what an operator hears of.

use serde_json::{Value, json};

use crate::door::{Run, toolgate};
use crate::folder::Folder;

/// A tool of a bank, which opens doors by what it is told.
const OPEN_DOOR: &str = r#"description = "Open a door of the vault. Somebody can walk in."
effect = "write"
input = { properties = { door = { type = "string", maxLength = 10 }, mfa = { type = "boolean" }, weight = { type = "number" } }, required = ["door", "mfa", "weight"] }
backend = { kind = "fixed", result = { open = true } }
"#;

fn run(folder: &Folder, words: &[&str]) -> Run {
    let dir = folder.path().to_str().unwrap();
    let words: Vec<&str> = words.iter().map(|word| if *word == "DIR" { dir } else { word }).collect();
    Run::of(&mut toolgate(&words), "")
}

fn vault(policies: &str) -> Folder {
    let folder = Folder::shop();
    folder.write("tools/open_door.toml", OPEN_DOOR);
    folder.write("policies/vault.cedar", policies);
    folder
}

/// Code, line and column of each thing that a check lists.
fn listed(report: &Value, what: &str) -> Vec<(String, u64, u64)> {
    let number = |found: &Value, name: &str| found[name].as_u64().unwrap();
    let told = |found: &Value| {
        assert_eq!(found["file"], "policies/vault.cedar", "{found}");
        (found["code"].as_str().unwrap().to_owned(), number(found, "line"), number(found, "column"))
    };
    report[what].as_array().unwrap().iter().map(told).collect()
}

#[test]
fn a_check_warns_of_a_policy_that_believes_what_the_model_says_of_its_user() {
    let folder = vault(
        "permit (principal in Role::\"support\", action == Action::\"open_door\", resource)\nwhen { context.input.mfa };\n",
    );
    let checked = run(&folder, &["check", "DIR"]);
    assert_eq!(checked.exit, Some(0), "{checked:?}");
    let told = "warning: policies/vault.cedar:2:22: cedar_claim: `context.input.mfa` is what the model wrote";
    assert!(checked.stdout.contains(told), "{}", checked.stdout);
    folder.edit("tools/open_door.toml", "effect = ", "allow_identity_members = [\"mfa\"]\neffect = ");
    assert_eq!(
        run(&folder, &["check", "DIR", "--json"]).json()["warnings"],
        json!([]),
        "the operator says it is meant"
    );
}

#[test]
fn a_check_says_where_a_policy_reads_what_is_not_there_or_has_no_exact_form() {
    let of = |condition: &str| {
        let head = "forbid (principal, action == Action::\"open_door\", resource)";
        let report = run(&vault(&format!("{head}\nwhen {{ {condition} }};\n")), &["check", "DIR", "--json"]).json();
        (listed(&report, "findings"), listed(&report, "warnings"))
    };
    let at = |code: &str, column| vec![(code.to_owned(), 2, column)];
    assert_eq!(of("context.input has wieght && context.input.door == \"d\"").0, at("cedar_member", 26));
    let inexact = of("context.input.weight.greaterThan(decimal(\"2.5\"))");
    assert_eq!(inexact, (vec![], at("cedar_inexact", 22)));
}

#[test]
fn a_check_warns_of_a_policy_that_asks_a_run_for_what_no_run_has() {
    let of = |condition: &str| {
        let head = "forbid (principal, action == Action::\"open_door\", resource)";
        let folder = vault(&format!("{head}\nwhen {{ {condition} }};\n"));
        folder.edit("tools/get_order.toml", "effect = ", "labels = { result = [\"untrusted\"] }\neffect = ");
        let checked = run(&folder, &["check", "DIR", "--json"]);
        assert_eq!(checked.exit, Some(0), "{checked:?}");
        let report = checked.json();
        (listed(&report, "warnings"), report["warnings"][0]["hint"].clone())
    };
    let at = |code: &str, column| vec![(code.to_owned(), 2, column)];
    let label = of("context.session.labels.contains(\"untrused\")");
    assert_eq!(label, (at("cedar_label", 40), json!("did you mean `untrusted`?")));
    let tool = of("context.session.completed.contains(\"get_ordr\")");
    assert_eq!(tool, (at("cedar_tool", 43), json!("did you mean `get_order`?")));
    let meant = "context.session.labels.contains(\"untrusted\") && context.session.completed.contains(\"get_order\")";
    assert_eq!(of(meant), (vec![], Value::Null));
}

#[test]
fn a_check_warns_of_a_role_that_nobody_has() {
    let head = "@id(\"a\") permit (principal in Role::\"suport\", action == Action::\"open_door\", resource);";
    let ask = "@id(\"b\") @approvers(\"manger\") forbid (principal, action == Action::\"open_door\", resource)";
    let folder = vault(&format!("{head}\n{ask}\nunless {{ context.approved }};\n"));
    let checked = run(&folder, &["check", "DIR", "--json"]);
    assert_eq!(checked.exit, Some(0), "{checked:?}");
    let report = checked.json();
    let at = |line, column| ("cedar_role".to_owned(), line, column);
    assert_eq!(listed(&report, "warnings"), [at(1, 31), at(2, 10)]);
    let hints = [&report["warnings"][0]["hint"], &report["warnings"][1]["hint"]];
    assert_eq!(hints, ["did you mean support?", "did you mean manager?"]);
}

#[test]
fn two_policies_with_one_id_are_a_fault_that_names_both_places() {
    let rule = "@id(\"vault.shut\") forbid (principal, action == Action::\"open_door\", resource);\n";
    let checked = run(&vault(&format!("{rule}{rule}")), &["check", "DIR"]);
    assert_eq!(checked.exit, Some(2), "{checked:?}");
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert!(
        said.contains("policies/vault.cedar:2:1: cedar_annotation: another policy has the id `vault.shut`"),
        "{said}"
    );
    assert!(said.contains("the other one stands in policies/vault.cedar:1"), "{said}");
}

#[test]
fn a_tool_that_a_condition_keeps_from_somebody_is_not_there_for_them_byte_for_byte() {
    let folder = vault(
        "permit (principal, action == Action::\"open_door\", resource)\nwhen { principal in Role::\"manager\" && context.input.door == \"d1\" };\n",
    );
    let names = |user: &str| {
        let report = run(&folder, &["tools", "DIR", "--as", user, "--json"]).json();
        let tools = report.as_array().unwrap().clone();
        tools.into_iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(names("mia@acme").contains(&"open_door".to_owned()), "{:?}", names("mia@acme"));
    assert!(!names("alice@acme").contains(&"open_door".to_owned()));
    let answer = |tool: &str| {
        let arguments = r#"{"door": "d1", "mfa": true, "weight": 1}"#;
        let called = run(&folder, &["call", "DIR", tool, arguments, "--as", "alice@acme", "--json"]);
        let reference = called.json()["error"]["ref"].as_str().unwrap().to_owned();
        called.stdout.replace(&reference, "REF").replace(tool, "TOOL")
    };
    let hidden = answer("open_door");
    assert!(hidden.contains("unknown_tool"), "{hidden}");
    assert_eq!(hidden, answer("open_dyyr"));
}

#[test]
fn the_operator_hears_of_a_policy_that_cannot_be_evaluated_and_the_caller_does_not() {
    let folder = vault(
        "permit (principal in Role::\"support\", action == Action::\"open_door\", resource);\n\
         @id(\"vault.heavy\") forbid (principal, action == Action::\"open_door\", resource)\n\
         when { context.input.weight.greaterThan(decimal(\"922337203685477.0\")) || context.session.run == \"x\" };\n\
         @id(\"vault.sum\") forbid (principal, action == Action::\"create_refund\", resource)\n\
         when { context.input.amount_cents * 9000000000000000 > 5 && context.input.amount_cents == 7 };\n",
    );
    let refund = r#"{"order_id": "ord_4821", "amount_cents": 1500, "currency": "USD", "reason": "damaged"}"#;
    let called = run(&folder, &["call", "DIR", "create_refund", refund, "--as", "alice@acme", "--json"]);
    assert_eq!(called.json()["error"]["code"], "forbidden", "{called:?}");
    assert!(!called.stdout.contains("vault.sum"), "{}", called.stdout);
    let told =
        "warning: the policy vault.sum could not be evaluated for a call of create_refund, which counts as a no (ref ";
    assert!(called.stderr.contains(told), "{}", called.stderr);
    assert_eq!(folder.number("select count(*) from refunds"), 0, "nothing was done");
}

#[test]
fn a_policy_may_speak_of_all_tools_of_one_server() {
    let folder = vault("permit (principal in Role::\"support\", action in Action::\"upstream:bank\", resource);\n");
    let upstream = "[upstreams.bank]\ncommand = [\"no-such-program\"]\npinned = false\n\n[identity]\n";
    folder.edit("toolgate.toml", "[identity]\n", upstream);
    folder.write(
        "tools/list_accounts.toml",
        "description = \"List the accounts of the bank that somebody holds.\"\neffect = \"read\"\ntags = [\"bank\"]\n\
         input = { properties = {} }\nbackend = { kind = \"mcp\", upstream = \"bank\" }\n",
    );
    let schema = run(&folder, &["check", "DIR", "--print-cedar-schema"]).stdout;
    assert!(
        schema.contains(r#"action "list_accounts" in ["read", "tag:bank", "upstream:bank"] appliesTo"#),
        "{schema}"
    );
    let listed = run(&folder, &["tools", "DIR", "--as", "alice@acme", "--json"]).stdout;
    assert!(listed.contains("list_accounts") && !listed.contains("open_door"), "{listed}");
}
