//! Warnings: what of a folder or a contract holds and is probably not meant. Nothing is refused for one.

use serde_json::{Value, json};

use crate::door::{Run, toolgate};
use crate::folder::Folder;
use crate::scenario::GateName;

const LINKS: &str = r#"description = "Scan links."
effect = "read"

[input]
required = ["limit", "reason"]

[input.properties]
limit = {}
reason = { enum = ["spam", "broken"] }

[output]
type = "object"
properties = { found = { type = "integer" } }

[backend]
kind = "sql"
database = "shop"
statement = "select count(*) as found from orders where id <> :reason and total_cents > :limit"
"#;

fn check(folder: &Folder, more: &[&str]) -> Run {
    let words = [&["check", folder.path().to_str().unwrap()], more].concat();
    Run::of(&mut toolgate(&words), "")
}

#[test]
fn a_check_shows_each_warning_at_its_line_and_ends_well() {
    let folder = Folder::shop();
    std::fs::write(folder.path().join("tools/scan_links.toml"), LINKS).unwrap();
    let run = check(&folder, &[]);
    assert_eq!((run.exit, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    for told in [
        "warning: tools/scan_links.toml:1:1: thin_description: description: says no more than the name of the tool",
        "warning: tools/scan_links.toml:8:1: untyped_parameter: input.properties.limit: no type is said",
        "warning: tools/scan_links.toml:9:12: enum_without_way_out: input.properties.reason.enum: ",
        "  hint: say what it does, what it gives, and when to use it",
    ] {
        assert!(run.stdout.contains(told), "{told} is not in {}", run.stdout);
    }
    let report = check(&folder, &["--json"]).json();
    assert_eq!((&report["ok"], &report["findings"]), (&json!(true), &json!([])));
    let codes: Vec<&Value> = report["warnings"].as_array().unwrap().iter().map(|warning| &warning["code"]).collect();
    assert_eq!(codes, ["thin_description", "untyped_parameter", "enum_without_way_out"]);
    assert_eq!(report["warnings"][1]["line"], 8);
}

#[test]
fn the_examples_have_nothing_to_be_warned_of() {
    for gate in [GateName::Shop, GateName::RefundOrder] {
        let report = check(&Folder::of(gate), &["--json"]).json();
        assert_eq!((&report["ok"], &report["warnings"]), (&json!(true), &json!([])));
    }
}

#[test]
fn a_line_of_admission_has_the_warnings_of_its_contracts_where_there_are_any() {
    let contract =
        |limit: Value| json!({ "name": "scan", "effect": "read", "input": { "properties": { "limit": limit } } });
    let case = |contract: Value| json!({ "id": 1, "contract": contract, "input": { "limit": "75" } }).to_string();
    let both =
        json!({ "id": 2, "contracts": [contract(json!(true)), contract(json!({}))], "dialect": "mcp", "input": "{}" });
    let lines = format!("{}\n{}\n{both}\n", case(contract(json!({}))), case(contract(json!({ "type": "string" }))));
    let run = Run::of(&mut toolgate(&["admit", "--jsonl"]), &lines);
    let answers: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let warning = &answers[0]["warnings"][0];
    assert_eq!((&warning["code"], &warning["at"]), (&json!("untyped_parameter"), &json!("/input/properties/limit")));
    assert_eq!(answers[0]["calls"][0]["arguments"], json!({ "limit": "75" }), "the call is admitted all the same");
    assert_eq!(answers[1].get("warnings"), None);
    assert_eq!(answers[2]["error"]["code"], "invalid_contract", "two tools of one name");
}
