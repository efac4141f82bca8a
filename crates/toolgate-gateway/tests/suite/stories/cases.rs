//! Cases: the tests that a gate folder holds itself to. Judging them asks nobody, runs nothing and leaves nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::refund;
use crate::door::{self, Run, toolgate};
use crate::folder::Folder;

fn check(folder: &Folder) -> Run {
    Run::of(&mut toolgate(&["check", folder.path().to_str().unwrap()]), "")
}

/// A case of a refund in the shop.
fn case(name: &str, arguments: Value, expect: Value) -> Value {
    json!({ "case": name, "as": "alice@acme", "tool": "create_refund", "arguments": arguments, "expect": expect })
}

/// Every file below a folder, with its bytes.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn the_cases_of_the_examples_hold_and_leave_no_file_behind() {
    for gate in [crate::scenario::GateName::Shop, crate::scenario::GateName::RefundOrder] {
        let folder = Folder::of(gate);
        let before = files(folder.path());
        let run = check(&folder);
        assert_eq!((run.exit, run.stderr.as_str()), (Some(0), ""), "{run:?}");
        assert!(run.stdout.starts_with("ok: ") && !run.stdout.contains(" 0 cases"), "{run:?}");
        assert!(files(folder.path()) == before, "a check writes nothing");
    }
}

#[test]
fn cases_hold_whatever_was_done_since_and_ask_nobody() {
    let folder = Folder::shop();
    let done = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_4821", 1500));
    assert_eq!(done.exit, Some(0), "{done:?}");
    let run = check(&folder);
    assert_eq!(run.exit, Some(0), "the cases speak of the shop as its seed makes it: {run:?}");
    assert_eq!(folder.rows("select count(*), sum(amount_cents) from refunds"), json!([[1, 1500]]));
    let dir = folder.path().to_str().unwrap();
    let approvals = Run::of(&mut toolgate(&["approvals", dir, "list", "--json"]), "").json();
    assert_eq!(approvals, json!([]), "a case that is held for approval asks nobody");
}

#[test]
fn a_database_without_a_seed_is_read_as_it_is() {
    let folder = Folder::shop();
    door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_4821", 1500));
    folder.edit("toolgate.toml", "seed = \"shop.sql\" # makes the data where there is no file yet\n", "");
    let left = case("1500 of 2000 are gone", refund("ord_4821", 600), json!("rule_failed"));
    std::fs::remove_dir_all(folder.join("cases")).unwrap();
    std::fs::create_dir(folder.join("cases")).unwrap();
    folder.write("cases/left.jsonl", &format!("{left}\n"));
    let run = check(&folder);
    assert_eq!((run.exit, run.stdout.as_str()), (Some(0), "ok: 5 tools, 4 policies, 1 case\n"), "{run:?}");
}

#[test]
fn a_case_that_does_not_hold_is_told_with_its_place_and_no_values() {
    let folder = Folder::shop();
    let pending = json!({ "code": "invalid_arguments", "problems": [{ "at": "/reason", "code": "required" }] });
    let lines = [
        case("first", refund("ord_4821", 2001), json!("ok")),
        case("second", refund("ord_1001", 5001), json!("forbidden")),
        case("third", json!({ "order_id": "secret", "amount_cents": 1, "currency": "USD" }), pending.clone()),
        case("fourth", json!({ "order_id": "secret", "amount_cents": 1, "reason": "damaged" }), pending),
        case("fifth", refund("ord_4821", 2001), json!({ "code": "rule_failed", "message": "Only 3000" })),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    folder.write("cases/wrong.jsonl", &text);
    let run = check(&folder);
    assert_eq!(run.exit, Some(2), "{run:?}");
    let place = |line: usize| {
        let text = lines[line - 1].to_string();
        format!("cases/wrong.jsonl:{line}:{}: ", text.find("\"expect\":").unwrap() + "\"expect\":".len() + 1)
    };
    let told: Vec<&str> = run.stdout.lines().filter(|line| line.starts_with("cases/")).collect();
    let problems = "required at /currency, pattern at /order_id";
    assert_eq!(
        told,
        [
            format!(
                "{}case_failed: \"first\": expected ok, came rule_failed by the rule refund.exceeds_balance",
                place(1)
            ),
            format!("{}case_failed: \"second\": expected forbidden, came approval_required", place(2)),
            format!(
                "{}case_failed: \"fourth\": expected invalid_arguments (required at /reason), came invalid_arguments ({problems})",
                place(4)
            ),
            format!(
                "{}case_failed: \"fifth\": expected rule_failed with the expected part in its message, came rule_failed by the rule refund.exceeds_balance",
                place(5)
            ),
        ],
        "the third holds: others may be told beside what it names"
    );
    let hints: Vec<&str> = run.stdout.lines().filter(|line| line.starts_with("  hint: ")).collect();
    assert_eq!(
        hints,
        ["  hint: not told: required at /reason", "  hint: the message does not hold the expected part"],
        "each thing that is otherwise, where the code is right"
    );
    let dir = folder.path().display();
    let ending = format!("error[case_failed]: 4 of 35 cases in {dir} failed\nhint: toolgate explain case_failed\n");
    assert_eq!(run.stderr, ending);
    let report = Run::of(&mut toolgate(&["check", folder.path().to_str().unwrap(), "--json"]), "").json();
    assert_eq!(report["cases"], json!({ "judged": 35, "failed": 4 }));
    assert_eq!(report["findings"][0]["file"], "cases/wrong.jsonl");
}

#[test]
fn nobody_and_nothing_that_is_not_there_passes_for_a_refusal() {
    let folder = Folder::shop();
    let named = |tool: &str, user: &str, expect: &str| {
        json!({ "case": "c", "as": user, "tool": tool, "expect": expect }).to_string()
    };
    let lines = [
        named("get_order", "alcie@acme", "forbidden"),
        named("get_ordre", "alice@acme", "forbidden"),
        named("get_ordre", "alice@acme", "unknown_tool"),
        named("create_refund", "zoe@acme", "ok"),
    ];
    folder.write("cases/absent.jsonl", &lines.join("\n"));
    folder.edit(
        "toolgate.toml",
        "[[identity.user]]\nname = \"bob\"",
        "[[identity.user]]\nname = \"zoe\"\ntenant = \"acme\"\n\n[[identity.user]]\nname = \"bob\"",
    );
    let run = check(&folder);
    assert_eq!(run.exit, Some(2), "{run:?}");
    for told in [
        "cases/absent.jsonl:1:18: unknown_user: the folder lists no such user; it takes USER@TENANT",
        "hint: did you mean alice@acme?",
        "\"c\": expected forbidden, came unknown_tool",
        "hint: did you mean get_order?",
        "\"c\": expected ok, came unknown_tool",
        "hint: there is such a tool, but no policy could permit it to zoe@acme",
    ] {
        assert!(run.stdout.contains(told), "`{told}` in\n{}", run.stdout);
    }
    assert!(
        run.stderr.starts_with("error[case_failed]: 3 of 34 cases"),
        "a tool that is not there is unknown: {run:?}"
    );
}

#[test]
fn lines_that_are_no_cases_are_told_beside_the_other_faults_and_nothing_is_judged() {
    let folder = Folder::shop();
    folder.edit("tools/get_order.toml", "maxLength = 40", "maxLenght = 40");
    folder.write(
        "cases/broken.jsonl",
        "{\"case\": \"c\", \"tool\": \"t\", \"expcet\": \"run\"}\n\n{\"case\": \"c\", \"case\": \"d\"}\n",
    );
    folder.write("cases/notes.txt", "not read");
    let run = check(&folder);
    assert_eq!(run.exit, Some(2), "{run:?}");
    let places: Vec<&str> = run
        .stdout
        .lines()
        .filter(|line| !line.starts_with("  "))
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        places,
        ["cases/broken.jsonl:1:38", "cases/broken.jsonl:3:15", "cases/notes.txt:1:1", "tools/get_order.toml:10:63"],
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("hint: did you mean expect?"), "{}", run.stdout);
    assert!(run.stderr.starts_with("error[folder_faults]: 4 faults in "), "{run:?}");
}

#[test]
fn a_case_that_runs_has_data_of_its_own_and_leaves_those_of_the_shop_alone() {
    let folder = Folder::shop();
    let made = json!([{ "as": "alice@acme", "tool": "create_refund", "arguments": refund("ord_4821", 1500) }]);
    let status = |name: &str, with: Value, expect: Value| {
        let mut case = json!({ "case": name, "tool": "get_refund_status", "arguments": { "refund_id": "re_1" } });
        case.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        case["expect"] = expect;
        case
    };
    let mut again = case("a refund that was made is replayed", refund("ord_4821", 1500), json!("ok"));
    again["after"] = made.clone();
    again["run"] = json!(true);
    let lines = [
        status("made before", json!({ "after": made, "run": true }), json!({ "result": { "amount_cents": 1500 } })),
        status("not made for the next one", json!({}), json!("forbidden")),
        again,
        status(
            "another",
            json!({ "after": made, "run": true }),
            json!({ "result": { "amount_cents": "1500", "x": 1 } }),
        ),
        status("refused", json!({ "after": [{ "tool": "create_refund", "arguments": {} }] }), json!("ok")),
        status("no run", json!({ "after": made }), json!("ok")),
    ];
    folder.write("cases/run.jsonl", &lines.map(|line| format!("{line}\n")).concat());
    let before = files(folder.path());
    let run = check(&folder);
    assert!(files(folder.path()) == before, "a check writes nothing");
    let told: Vec<&str> =
        run.stdout.lines().filter(|line| line.starts_with("cases/") || line.starts_with("  hint")).collect();
    assert_eq!(told.len(), 3, "{}", run.stdout);
    assert!(told[0].contains("case_failed: \"another\": expected ok with a result, came ok"), "{}", told[0]);
    assert_eq!(told[1], "  hint: /amount_cents is number and not string; /x is not there");
    assert!(told[2].contains("\"refused\": call 1 before it was refused: invalid_arguments"), "{}", told[2]);
}

#[test]
fn a_write_to_a_database_without_a_seed_is_not_made_for_a_case() {
    let folder = Folder::shop();
    let paid = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_4821", 100));
    assert_eq!(paid.exit, Some(0), "{paid:?}");
    folder.edit("toolgate.toml", "seed = \"shop.sql\" # makes the data where there is no file yet\n", "");
    std::fs::remove_dir_all(folder.join("cases")).unwrap();
    std::fs::create_dir(folder.join("cases")).unwrap();
    let mut case = case("not rehearsed", refund("ord_4821", 200), json!("unavailable"));
    case["run"] = json!(true);
    folder.write("cases/run.jsonl", &case.to_string());
    let run = check(&folder);
    assert_eq!(run.exit, Some(0), "{run:?}");
    assert_eq!(folder.number("select count(*) from refunds"), 1);
}

#[test]
fn a_result_is_for_a_case_that_runs() {
    let folder = Folder::shop();
    folder.write(
        "cases/asked.jsonl",
        "{\"case\": \"c\", \"tool\": \"get_order\", \"after\": [{\"tol\": \"x\"}, 3], \"expect\": {\"result\": {}}}\n",
    );
    let run = check(&folder);
    for told in [
        "after.0.tol: unknown key",
        "hint: did you mean tool?",
        "after.1: expected a call such as",
        "expect.result: only a case that runs has a result",
        "hint: write \"run\": true beside it",
    ] {
        assert!(run.stdout.contains(told), "`{told}` in\n{}", run.stdout);
    }
}
