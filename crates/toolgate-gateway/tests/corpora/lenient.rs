//! `faults.jsonl` with every leniency of arguments switched on: what is right stays as it is, what must be refused in
//! every mode still is, and what is taken is on record.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use toolgate::leniency::Leniency;

use super::faults::{Reach, reach};
use super::words::{self, Expected};
use super::{Verdict, admit, reaching, rows, tell, verdicts};

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

/// Families of rows that a leniency may take, and no leniency that there is does.
const NONE: [(&str, &str); 2] = [
    ("wire.arguments_type", "how arguments are sent is a dialect's own: one that sends objects is named instead"),
    ("schema.enum", "another value is another wish: the hint says which is near, and the model says it"),
];

fn lenient(case: &Value, names: &[&str]) -> Value {
    let mut case = case.clone();
    let write = case["contract"]["effect"] == "write";
    case["contract"]["lenient"] = json!(names);
    if write {
        case["contract"]["lenient_for_write"] = json!(names);
    }
    case
}

/// The rows whose contract is one, and their cases.
fn checked() -> (Vec<Value>, Vec<Value>) {
    let cases = rows("faults.jsonl").into_iter().filter_map(|row| match reach(&row) {
        Reach::Case(case) if case.get("contract").is_some() => Some((row, case)),
        Reach::Case(_) | Reach::Beyond(_) => None,
    });
    cases.unzip()
}

/// A row that a leniency may take is taken by exactly one, with its name on record, and then reaches its tool.
#[test]
fn what_a_leniency_may_take_is_taken_by_the_one_that_is_meant() {
    let (rows, cases) = checked();
    let may = |row: &Value| {
        words::expected(row["expect"]["verdict"].as_str().unwrap()) == Some(Expected::RefusedUnlessLenient)
    };
    let mut counts = BTreeMap::new();
    let mut wrong = Vec::new();
    for (row, case) in rows.iter().zip(&cases).filter(|(row, _)| may(row)) {
        let (kind, family) = (row["kind"].as_str().unwrap(), row["expect"]["code_family"].as_str().unwrap());
        let alone = Leniency::ALL.map(|leniency| (leniency.as_str(), lenient(case, &[leniency.as_str()])));
        let answers = admit(&alone.each_ref().map(|(_, case)| case.clone()));
        let mut taken = Vec::new();
        for ((name, case), answer) in alone.iter().zip(&answers) {
            let found = verdicts(answer);
            match reaching(case, &found) {
                Ok(0) => {}
                Ok(_) if found.iter().all(|verdict| *verdict == Verdict::Taken(vec![(*name).to_owned()])) => {
                    taken.push(*name);
                }
                other => wrong.push(format!("{} {kind} with {name}: {other:?} {found:?}", row["id"])),
            }
        }
        let what = match (&taken[..], NONE.iter().find(|(listed, _)| *listed == family)) {
            ([name], None) => format!("{kind}: {name}"),
            ([], Some((_, why))) => format!("{kind}: none, {why}"),
            (names, listed) => {
                wrong.push(format!("{} {kind}: taken by {names:?}, listed as {listed:?}", row["id"]));
                continue;
            }
        };
        *counts.entry(what).or_insert(0) += 1;
    }
    tell("taken by name", &counts);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn leniencies_touch_nothing_that_is_right_and_take_nothing_that_is_refused_in_every_mode() {
    let (checked, cases) = checked();
    let lenient: Vec<Value> = cases.iter().map(|case| lenient(case, &ALL)).collect();
    let mut counts = BTreeMap::new();
    let mut wrong = Vec::new();
    for ((row, strict), lenient) in checked.iter().zip(admit(&cases)).zip(admit(&lenient)) {
        let kind = row["kind"].as_str().unwrap();
        let calls = |answer: &Value| answer["calls"].as_array().cloned().unwrap_or_default();
        for (strict, lenient) in calls(&strict).iter().zip(calls(&lenient)) {
            let optional =
                words::expected(row["expect"]["verdict"].as_str().unwrap()) == Some(Expected::RefusedUnlessLenient);
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
