//! `faults.jsonl` with every leniency of arguments switched on: what is right stays as it is, what must be refused in
//! every mode still is, and what is taken is on record.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::faults::{Reach, reach};
use super::{admit, rows, tell};

/// The leniencies about a call's arguments. A near name is another question: it is asked before any argument is read.
const ALL: [&str; 7] = [
    "integer_as_string",
    "boolean_as_string",
    "json_as_string",
    "code_fence",
    "null_as_absent",
    "trim",
    "trailing_token",
];

fn lenient(case: &Value) -> Value {
    let mut case = case.clone();
    let write = case["contract"]["effect"] == "write";
    case["contract"]["lenient"] = json!(ALL);
    if write {
        case["contract"]["lenient_for_write"] = json!(ALL);
    }
    case
}

#[test]
fn leniencies_touch_nothing_that_is_right_and_take_nothing_that_is_refused_in_every_mode() {
    let cases = rows("faults.jsonl").into_iter().filter_map(|row| match reach(&row) {
        Reach::Case(case) if case.get("contract").is_some() => Some((row, case)),
        Reach::Case(_) | Reach::Beyond(_) => None,
    });
    let (checked, cases): (Vec<Value>, Vec<Value>) = cases.unzip();
    let lenient: Vec<Value> = cases.iter().map(lenient).collect();
    let mut counts = BTreeMap::new();
    let mut wrong = Vec::new();
    for ((row, strict), lenient) in checked.iter().zip(admit(&cases)).zip(admit(&lenient)) {
        let kind = row["kind"].as_str().unwrap();
        let calls = |answer: &Value| answer["calls"].as_array().cloned().unwrap_or_default();
        for (strict, lenient) in calls(&strict).iter().zip(calls(&lenient)) {
            let optional = row["expect"]["verdict"].as_str().unwrap().contains("optin");
            let used = lenient["leniencies"].as_array().is_some_and(|used| !used.is_empty());
            let what = match (strict.get("error").is_none(), lenient.get("error").is_none()) {
                (true, _) if *strict == lenient => "right, and not touched",
                (false, false) => "refused in both modes",
                (false, true) if used && optional => "taken, and on record",
                _ => {
                    wrong.push(format!("{} {kind}: {strict}\n  {lenient}", row["id"]));
                    continue;
                }
            };
            *counts.entry(what.to_owned()).or_insert(0) += 1;
        }
    }
    tell("leniencies", &counts);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
