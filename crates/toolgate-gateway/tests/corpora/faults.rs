//! `faults.jsonl`: faults of tool calling that users reported.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toolgate::wire::Dialect;

use super::words::{self, Codes, Expected};
use super::{Verdict, admit, reaching, rows, tell, verdicts};

/// Kinds of rows whose verdict differs by design. One that no longer differs fails the run.
const DIFFERENT: [(&str, &str); 1] = [(
    "finish-reason-masked",
    "how many tokens were asked for stands in the request, which a gate never sees; a text that was cut off is no JSON",
)];

/// Kinds of rows that say in words what becomes of each call: the codes of their refusals, empty for one that is admitted.
const PARTLY: [(&str, &[&str]); 1] = [("stream-null-delta", &["invalid_call", ""])];

/// What a row needs that admission does not have.
#[derive(Debug)]
pub(super) enum Reach {
    /// It is a case.
    Case(Value),
    /// The reason why it is none.
    Beyond(&'static str),
}

#[test]
fn every_reported_fault_is_answered_as_it_should_be() {
    let mut counts = BTreeMap::new();
    let (mut checked, mut cases) = (Vec::new(), Vec::new());
    for row in rows("faults.jsonl") {
        match reach(&row) {
            Reach::Case(case) => {
                cases.push(case);
                checked.push(row);
            }
            Reach::Beyond(why) => *counts.entry(format!("beyond admission: {why}")).or_insert(0) += 1,
        }
    }
    let mut wrong = Vec::new();
    let mut reached = 0;
    for ((row, case), answer) in checked.iter().zip(&cases).zip(admit(&cases)) {
        let (id, kind) = (row["id"].as_str().unwrap(), row["kind"].as_str().unwrap());
        let found = verdicts(&answer);
        let outcome = match PARTLY.iter().find(|(known, _)| *known == kind) {
            Some((_, codes)) => partly(codes, &found),
            None => holds(&row["expect"], &answer),
        };
        match reaching(case, &found) {
            Ok(calls) => reached += calls,
            Err(why) => wrong.push(format!("{id} {kind}: {why}")),
        }
        match (outcome, DIFFERENT.iter().find(|(known, _)| *known == kind)) {
            (Ok(()), None) => *counts.entry("checked".to_owned()).or_insert(0) += 1,
            (Err(_), Some((_, why))) => *counts.entry(format!("different: {why}")).or_insert(0) += 1,
            (Ok(()), Some(_)) => wrong.push(format!("{id} {kind}: is listed as different, and is not")),
            (Err(why), None) => wrong.push(format!("{id} {kind}: {why}\n  {answer}")),
        }
    }
    counts.insert("calls reached a tool".to_owned(), reached);
    tell("faults", &counts);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

pub(super) fn reach(row: &Value) -> Reach {
    if row["expect"]["verdict"] == "reject_at_registration" {
        // Two servers with one name for different tools: both contracts in one set.
        let (first, mut second) = (contract(row), contract(row));
        second["description"] = json!("Another tool of the same name.");
        return Reach::Case(json!({ "id": row["id"], "contracts": [first, second], "dialect": "mcp", "input": "{}" }));
    }
    let Some(input) = row.get("input") else {
        return Reach::Beyond("told in steps, of which admission is one: scenarios and stories tell them");
    };
    let format = row["format"].as_str().unwrap();
    let dialect = match Dialect::parse(format) {
        _ if format == "backend" => return Reach::Beyond("results, which a backend gives"),
        _ if row["input_is_raw_text"] == true || input.get("jsonrpc").is_some() => Dialect::Mcp,
        // A call that went around between a model and its program without saying in which dialect.
        None | Some(Dialect::Mcp) => Dialect::OpenaiChat,
        Some(dialect) => dialect,
    };
    Reach::Case(json!({ "id": row["id"], "contract": contract(row), "dialect": dialect.as_str(), "input": input }))
}

fn contract(row: &Value) -> Value {
    let given = &row["contract"];
    let mut contract = json!({
        "name": given["name"], "description": given["description"], "effect": given["effect"],
        "input": given["input_schema"],
    });
    if let Some(output) = given.get("output_schema") {
        contract["output"] = output.clone();
    }
    contract
}

/// Whether each call of a row is admitted, or refused with the code that its row tells in words.
fn partly(codes: &[&str], found: &[Verdict]) -> Result<(), String> {
    let same = |(code, verdict): (&&str, &Verdict)| match *code {
        "" => *verdict == Verdict::Admitted,
        code => verdict.is_refused_as(code),
    };
    let all = codes.len() == found.len() && codes.iter().zip(found).all(same);
    all.then_some(()).ok_or_else(|| format!("expected {codes:?}, got {found:?}"))
}

/// Whether the verdicts on the calls of a row are those that it expects. The leniencies by name are refused by default.
fn holds(expect: &Value, answer: &Value) -> Result<(), String> {
    let found = &verdicts(answer);
    if found.is_empty() {
        return Err("no call was found".to_owned());
    }
    let (verdict, family) = (expect["verdict"].as_str().unwrap(), expect["code_family"].as_str());
    match words::expected(verdict).ok_or_else(|| format!("{verdict} is a verdict that is not known"))? {
        Expected::Accepted { warned } => {
            let all = found.iter().all(|verdict| *verdict == Verdict::Admitted);
            all.then_some(()).ok_or_else(|| format!("expected to be admitted, got {found:?}"))?;
            warns(family.and_then(words::warning), warned, answer)
        }
        Expected::Refused | Expected::RefusedUnlessLenient => {
            let family = family.ok_or("a refusal without a family")?;
            let codes = words::refusal(family).ok_or_else(|| format!("{family} is a family that is not known"))?;
            found.iter().try_for_each(|verdict| refused(&codes, expect["pointer"].as_str(), verdict))
        }
    }
}

/// Whether the warnings about a message are those that a row expects, and those about its contract hold the one.
fn warns(expected: Option<&str>, warned: bool, answer: &Value) -> Result<(), String> {
    let told = answer["warnings"].as_array().cloned().unwrap_or_default();
    let told: BTreeSet<&str> = told.iter().map(|warning| warning["code"].as_str().unwrap()).collect();
    let of_message = |code: &&str| words::OF_MESSAGES.contains(code);
    let (wanted, extra) = (expected.is_none_or(|code| told.contains(code)), told.iter().copied().filter(of_message));
    let right = wanted && (expected.is_some() || !warned) && extra.eq(expected.filter(of_message));
    right.then_some(()).ok_or_else(|| format!("warnings: expected {expected:?}, got {told:?}"))
}

fn refused(codes: &Codes, pointers: Option<&str>, verdict: &Verdict) -> Result<(), String> {
    let Verdict::Refused { code, problems } = verdict else {
        return Err(format!("expected {codes:?}, got {verdict:?}"));
    };
    let hit = codes.problems.is_empty() || problems.iter().any(|(code, _)| codes.problems.contains(code));
    if !codes.refusals.contains(&code.as_str()) || !hit {
        return Err(format!("expected {codes:?}, got {verdict:?}"));
    }
    // Several are joined by commas.
    let wanted: Option<BTreeSet<&str>> = pointers.map(|pointers| pointers.split(',').collect());
    let places: BTreeSet<&str> = problems.iter().map(|(_, at)| at.as_str()).collect();
    let same = wanted.as_ref().is_none_or(|wanted| *wanted == places);
    same.then_some(()).ok_or_else(|| format!("expected problems at {wanted:?}, got {problems:?}"))
}
