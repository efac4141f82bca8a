//! Suggested policies are sound whatever tools and people are called.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolgate::Gate;
use toolgate::backend::FakeTool;
use toolgate::ledger::Store;
use toolgate::session::{Principal, Session};

use super::*;

fn people(listed: &[(&str, &[&str])]) -> People {
    listed
        .iter()
        .map(|(tenant, roles)| ((*tenant).to_owned(), roles.iter().map(|role| (*role).to_owned()).collect()))
        .collect()
}

/// A gate of tools by name and effect, with the policies that are suggested for them.
fn gate(tools: &[(&str, &str)], people: &People) -> (Gate, String) {
    let keys = |effect: &str| json!({ "description": "A tool.", "effect": effect, "input": { "properties": {} } });
    let contract = |(name, effect): &(&str, &str)| Contract::parse(name, &keys(effect)).unwrap();
    let contracts: Vec<Contract> = tools.iter().map(contract).collect();
    let text = policies(contracts.iter(), people);
    let mut builder = Gate::builder().policy(text.clone()).store(Store::memory());
    for (name, effect) in tools {
        let Value::Object(keys) = keys(effect) else { panic!("an object") };
        builder = builder.tool(FakeTool::fixed(json!({})).tool(*name, keys));
    }
    (builder.build().unwrap_or_else(|error| panic!("{error}\n{text}")), text)
}

#[test]
fn they_load_whatever_tenants_and_roles_are_called() {
    let tools = [("look", "read"), ("act", "write")];
    let odd = people(&[
        ("a\"b\\c", &["man\"ager"]),
        ("x\n permit (principal, action, resource);", &["{role}"]),
        ("ünï", &[]),
        ("4", &[]),
    ]);
    let (gate, text) = gate(&tools, &odd);
    assert_eq!(gate.policy_count(), 9, "{text}");
    let stranger = Session::new(Principal::new("local", "eve"), "evil");
    assert!(gate.tools(&stranger).is_empty(), "{text}");
    let member = Session::new(Principal::new("local", "ann"), "a\"b\\c");
    assert_eq!(gate.tools(&member).len(), 2);
}

#[test]
fn a_group_without_tools_has_no_policies() {
    let nobody = People::default();
    let counts = |tools: &[(&str, &str)]| gate(tools, &nobody).0.policy_count();
    assert_eq!(counts(&[]), 0);
    assert_eq!(counts(&[("look", "read")]), 1);
    assert_eq!(counts(&[("act", "write")]), 2);
}

#[test]
fn whoever_may_approve_is_the_likeliest_role_the_only_one_or_somebody_yet_to_come() {
    let role = |roles: &[&str]| {
        let people = people(&[("acme", roles)]);
        Approver::among(&people).role.to_owned()
    };
    assert_eq!(role(&["clerk", "shift_manager", "owner"]), "shift_manager");
    assert_eq!(role(&["clerk", "Owner"]), "Owner");
    assert_eq!(role(&["clerk"]), "clerk");
    assert_eq!(role(&["clerk", "reader"]), "approver");
    assert_eq!((role(&[]), role(&["self"])), ("approver".to_owned(), "approver".to_owned()));
}

#[test]
fn whoever_is_alone_is_asked_themselves() {
    let alone = People { is_one: true, ..people(&[("acme", &["manager"])]) };
    let (_, text) = gate(&[("act", "write")], &alone);
    assert!(text.contains("@approvers(\"self\")") && text.contains("until the user has approved"), "{text}");
    assert!(!text.contains("another person"), "{text}");
}

#[test]
fn many_tools_stand_in_lines_that_can_be_read() {
    let names: Vec<String> = (0..60).map(|n| format!("a_tool_with_a_long_name_{n}")).collect();
    let tools: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "read")).collect();
    let (_, text) = gate(&tools, &People::default());
    assert!(text.lines().all(|line| line.len() <= 120), "{text}");
    let named: BTreeSet<&str> = names.iter().map(String::as_str).filter(|name| text.contains(name)).collect();
    assert_eq!(named.len(), names.len());
}
