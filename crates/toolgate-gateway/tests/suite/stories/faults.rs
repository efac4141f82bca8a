//! A gate folder with faults: all are told at once, each with its place, and nothing runs.

use serde_json::{Value, json};

use super::refund;
use crate::door::{self, Run, toolgate};
use crate::folder::Folder;

/// A fault to put into a file of the shop.
struct Seeded {
    file: &'static str,
    from: &'static str,
    to: &'static str,
    /// What stands on the line at which it must be told.
    on: &'static str,
}

const fn fault(file: &'static str, from: &'static str, to: &'static str) -> Seeded {
    Seeded { file, from, to, on: to }
}

/// A syntax that is no TOML, and a key that nobody knows.
const FILES: [Seeded; 2] = [
    fault("toolgate.toml", "store = \"sqlite:state/toolgate.db\"", "stroe = \"sqlite:state/toolgate.db\""),
    fault("tools/read_document.toml", "effect = \"read\"", "effect = read"),
];

/// Schema keywords and types that are none, a template and a parameter that nothing stands for, text that is no SQL.
const CONTRACTS: [Seeded; 5] = [
    fault("tools/get_refund_status.toml", "maxLength = 24", "maxLenght = 24"),
    fault("tools/get_refund_status.toml", "amount_cents = { type = \"integer\" }", "amount_cents = { type = \"int\" }"),
    fault("tools/create_refund.toml", "on order {order_id}, reason", "on order {order}, reason"),
    Seeded { on: "statement = ", ..fault("tools/get_order.toml", "where id = :order_id and", "where id = :order and") },
    Seeded { on: "statement = ", ..fault("tools/find_refund.toml", "select id as refund_id", "selec id as refund_id") },
];

/// Policies that are no Cedar, and that compare a text with a number.
const POLICIES: [Seeded; 2] = [
    fault(
        "policies/refunds.cedar",
        "permit (principal in Role::\"support\",",
        "permit principal in Role::\"support\",",
    ),
    fault(
        "policies/reads.cedar",
        "action in Action::\"read\", resource);",
        "action == Action::\"get_order\", resource) when { context.input.order_id > 3 };",
    ),
];

/// The shop with faults in it.
fn faulty<'a>(faults: impl IntoIterator<Item = &'a Seeded>) -> Folder {
    let folder = Folder::shop();
    for Seeded { file, from, to, .. } in faults {
        folder.edit(file, from, to);
    }
    folder
}

/// Every one of the faults is told with its place, whatever is asked, and nothing runs.
fn assert_all_told<'a>(faults: impl IntoIterator<Item = &'a Seeded> + Clone) {
    let folder = faulty(faults.clone());
    let run = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_4821", 100));
    assert_eq!(run.exit, Some(2), "{run:?}");
    assert_eq!(run.stdout, "");
    let untold: Vec<String> = faults
        .into_iter()
        .map(|Seeded { file, on, .. }| format!("{file}:{}:", line_of(&folder, file, on)))
        .filter(|place| !run.stderr.lines().any(|line| has_column(line.strip_prefix(place.as_str()))))
        .collect();
    assert!(untold.is_empty(), "not told: {untold:#?}\nin\n{}", run.stderr);
    assert_nothing_of_the_inside(&run);
    assert!(!folder.join("state/toolgate.db").exists(), "a folder with faults opens no store");
}

/// The line of a file on which a text stands, from 1.
fn line_of(folder: &Folder, file: &str, text: &str) -> usize {
    let content = std::fs::read_to_string(folder.join(file)).unwrap();
    let line = content.lines().position(|line| line.contains(text));
    line.unwrap_or_else(|| panic!("`{text}` is nowhere in {file}")) + 1
}

/// Whether what follows the line is a column and a message.
fn has_column(rest: Option<&str>) -> bool {
    let parts = rest.and_then(|rest| rest.split_once(": "));
    parts.is_some_and(|(column, message)| column.parse::<usize>().is_ok_and(|column| column > 0) && !message.is_empty())
}

/// Words of Rust and of libraries, which say nothing to whoever writes a gate folder.
const INNER_WORDS: [&str; 18] = [
    "::",
    "Some(",
    "None",
    "Option<",
    "Vec<",
    "String(",
    "Error {",
    "Err(",
    "i64",
    "u64",
    "usize",
    "serde",
    "rusqlite",
    "toml_edit",
    "cedar_policy",
    "jsonschema",
    "unwrap",
    "panicked",
];

fn assert_nothing_of_the_inside(run: &Run) {
    for word in INNER_WORDS {
        // Cedar's own names of entities hold `::`, in the lines that show the file.
        let told = run.stderr.lines().filter(|line| !line.starts_with("  | "));
        let found: Vec<&str> = told
            .filter(|line| line.contains(word) && !line.contains("Action::\"") && !line.contains("Role::\""))
            .collect();
        assert!(found.is_empty(), "`{word}` in {found:?}");
    }
}

#[test]
fn faults_of_the_files_themselves_are_told_at_once() {
    assert_all_told(&FILES);
}

#[test]
fn faults_of_contracts_are_told_at_once() {
    assert_all_told(&CONTRACTS);
}

#[test]
fn faults_of_policies_are_told_at_once() {
    assert_all_told(&POLICIES);
}

#[test]
fn faults_of_every_kind_are_told_at_once() {
    assert_all_told(FILES.iter().chain(&CONTRACTS).chain(&POLICIES));
}

/// What is misspelled, and what was meant.
const MISSPELLED: [(Seeded, &str); 3] = [
    (fault("toolgate.toml", "default = \"alice@acme\"", "default = \"alcie@acme\""), "did you mean alice@acme?"),
    (
        fault("tools/create_refund.toml", "instead = \"get_order\"", "instead = \"get_odrer\""),
        "did you mean get_order?",
    ),
    (fault("policies/refunds.cedar", "@fix(\"user\")", "@fxi(\"user\")"), "did you mean `fix`?"),
];

#[test]
fn twelve_faults_are_twelve_findings_each_with_its_place_and_its_code() {
    let faults = || FILES.iter().chain(&CONTRACTS).chain(&POLICIES).chain(MISSPELLED.iter().map(|(fault, _)| fault));
    assert_eq!(faults().count(), 12);
    let folder = faulty(faults());
    let dir = folder.path().to_str().unwrap();
    let run = Run::of(&mut toolgate(&["check", dir]), "");
    let findings: Vec<&str> = run.stdout.lines().filter(|line| !line.starts_with("  ")).collect();
    assert_eq!(findings.len(), 12, "{}", run.stdout);
    let places: Vec<(&str, usize, usize)> = findings.iter().map(|finding| place(finding)).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(run.stderr.lines().next().unwrap(), format!("error[folder_faults]: 12 faults in {dir}"));
    assert!(!run.stdout.contains("upper bound"));
    for (Seeded { file, on, .. }, meant) in &MISSPELLED {
        let line = line_of(&folder, file, on);
        let told = run.stdout.split(&format!("{file}:{line}:")).nth(1).unwrap_or_else(|| panic!("{file}:{line}"));
        let hint = told.lines().find_map(|line| line.strip_prefix("  hint: "));
        assert_eq!(hint, Some(*meant), "{told}");
    }
    for finding in findings {
        let code = finding.split(": ").nth(1).unwrap();
        assert_eq!(Run::of(&mut toolgate(&["explain", code]), "").exit, Some(0), "{finding}");
    }
}

/// The file, the line and the column that a finding begins with.
fn place(finding: &str) -> (&str, usize, usize) {
    let mut parts = finding.split(": ").next().unwrap().splitn(3, ':');
    let file = parts.next().unwrap();
    let mut number = || parts.next().unwrap_or_else(|| panic!("{finding}")).parse().unwrap();
    (file, number(), number())
}

#[test]
fn check_tells_the_same_to_people_and_to_scripts() {
    for faults in [&FILES[..], &CONTRACTS, &POLICIES] {
        let folder = faulty(faults);
        let dir = folder.path().to_str().unwrap();
        let people = Run::of(&mut toolgate(&["check", dir]), "");
        let scripts = Run::of(&mut toolgate(&["check", dir, "--json"]), "");
        assert_eq!((people.exit, scripts.exit), (Some(2), Some(2)));
        let report = scripts.json();
        let findings = report["findings"].as_array().unwrap();
        assert_eq!(report["ok"], false);
        assert!(findings.len() >= faults.len(), "{report}");
        for finding in findings {
            let place = format!("{}:{}:{}: ", finding["file"].as_str().unwrap(), finding["line"], finding["column"]);
            assert!(people.stdout.lines().any(|line| line.starts_with(&place)), "{place} in\n{}", people.stdout);
            assert!(finding["message"].as_str().is_some_and(|message| !message.is_empty()));
        }
    }
}

#[test]
fn a_missing_folder_of_policies_is_a_fault_beside_the_others_and_an_empty_one_denies_all() {
    let folder = Folder::shop();
    folder.edit("tools/get_order.toml", "effect = \"read\"", "effect = \"raed\"");
    std::fs::remove_dir_all(folder.join("policies")).unwrap();
    let look = || door::call(folder.path(), "alice@acme", "get_order", &json!({ "order_id": "ord_4821" }));
    let run = look();
    assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""), "{run:?}");
    assert!(run.stderr.lines().any(|line| line.starts_with("policies:1:1: ")), "{}", run.stderr);
    assert!(run.stderr.lines().any(|line| line.starts_with("tools/get_order.toml:3:1: ")), "{}", run.stderr);
    assert_nothing_of_the_inside(&run);

    folder.edit("tools/get_order.toml", "effect = \"raed\"", "effect = \"read\"");
    std::fs::create_dir(folder.join("policies")).unwrap();
    let denied = look();
    assert_eq!(denied.exit, Some(3), "{denied:?}");
    assert_eq!(denied.json()["error"]["code"], "unknown_tool");
}

#[test]
fn a_sound_folder_has_no_faults() {
    let folder = Folder::shop();
    let run = Run::of(&mut toolgate(&["check", folder.path().to_str().unwrap(), "--json"]), "");
    assert_eq!(run.exit, Some(0), "{run:?}");
    let cases = json!({ "judged": 30, "failed": 0 });
    let found = json!({ "ok": true, "findings": [], "warnings": [], "tools": 5, "policies": 4, "cases": cases });
    assert_eq!(run.json(), found);
    assert!(!folder.join("state/toolgate.db").exists(), "a look opens no store");
}

#[test]
fn somebody_whom_the_folder_does_not_list_is_a_mistake_of_the_command_line() {
    let folder = Folder::shop();
    for user in ["bob@acme", "alice@globex", "alice", "@acme", "mallory@acme"] {
        let run = door::call(folder.path(), user, "get_order", &json!({ "order_id": "ord_4821" }));
        assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""), "{user}: {run:?}");
    }
    let rows: Value = folder.rows("select count(*) from refunds");
    assert_eq!(rows, json!([[0]]));
}

#[test]
fn a_database_that_cannot_be_opened_is_told_once_where_it_is_declared() {
    let told = |folder: &Folder| -> Vec<String> {
        let run = Run::of(&mut toolgate(&["check", folder.path().to_str().unwrap(), "--json"]), "");
        assert_eq!(run.exit, Some(2), "{run:?}");
        assert_nothing_of_the_inside(&run);
        let findings = run.json()["findings"].as_array().unwrap().clone();
        let text = |finding: &Value| {
            let message = finding["message"].as_str().unwrap();
            format!(
                "{}:{}: {}",
                finding["file"].as_str().unwrap(),
                finding["line"],
                message.split(':').next_back().unwrap()
            )
        };
        findings.iter().map(text).collect()
    };
    let folder = Folder::shop();
    let (path, seed) = (line_of(&folder, "toolgate.toml", "path ="), line_of(&folder, "toolgate.toml", "seed ="));
    folder.edit("shop.sql", "create table orders", "create tabel orders");
    assert_eq!(told(&folder), [format!("toolgate.toml:{seed}:  it is no SQL from `tabel` on")]);
    std::fs::remove_file(folder.join("shop.sql")).unwrap();
    assert_eq!(told(&folder), [format!("toolgate.toml:{seed}:  there is no seed file")]);
    std::fs::create_dir_all(folder.join("state")).unwrap();
    folder.write("state/shop.db", &"this is no database ".repeat(100));
    assert_eq!(told(&folder).len(), 1);
    assert!(told(&folder)[0].starts_with(&format!("toolgate.toml:{path}:")), "{:?}", told(&folder));
}

#[test]
fn errors_and_retries_name_failures_that_the_backend_has() {
    let folder = Folder::shop();
    folder.edit("tools/find_refund.toml", "no_row = {", "no_rows = {");
    folder.edit(
        "tools/find_refund.toml",
        "[backend]",
        "404 = { code = \"gone\", message = \"Gone.\" }\n\n[retry]\non = [\"503\", \"429\"]\n\n[backend]",
    );
    let run = Run::of(&mut toolgate(&["check", folder.path().to_str().unwrap()]), "");
    assert_eq!(run.exit, Some(2));
    let place = |text: &str| format!("tools/find_refund.toml:{}:", line_of(&folder, "tools/find_refund.toml", text));
    for (at, told) in [
        (place("no_rows ="), "errors.no_rows: no failure of this backend is called that"),
        (place("404 ="), "errors.404: no failure of this backend is called that"),
        (place("on = ["), "retry.on.1: no failure of this backend is called that"),
    ] {
        assert!(run.stdout.lines().any(|line| line.starts_with(&at) && line.ends_with(told)), "{told}: {}", run.stdout);
    }
    assert!(run.stdout.contains("did you mean no_row?") && run.stderr.contains("3 faults"), "{run:?}");
}

#[test]
fn an_editor_has_the_schema_of_contracts_before_there_is_a_folder() {
    let nowhere = tempfile::tempdir().unwrap();
    let printed = |args: &[&str]| Run::of(toolgate(args).current_dir(nowhere.path()), "");
    let schema = printed(&["check", "--print-schema"]);
    assert_eq!(schema.exit, Some(0), "{schema:?}");
    assert_eq!(schema.stdout, printed(&["schema", "contract"]).stdout);
    let of_contracts = printed(&["check", "--print-schema", "--json"]).json();
    assert_eq!(of_contracts["contract_schema"]["properties"]["effect"]["enum"], json!(["read", "write"]));
}
