//! `faults.jsonl`: faults of tool calling that users reported.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toolgate::wire::Dialect;

use super::{Verdict, admit, rows, tell, verdicts};

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
    for (row, answer) in checked.iter().zip(admit(&cases)) {
        let (id, kind) = (row["id"].as_str().unwrap(), row["kind"].as_str().unwrap());
        let outcome = match PARTLY.iter().find(|(known, _)| *known == kind) {
            Some((_, codes)) => partly(codes, &verdicts(&answer)),
            None => holds(&row["expect"], &answer),
        };
        match (outcome, DIFFERENT.iter().find(|(known, _)| *known == kind)) {
            (Ok(()), None) => *counts.entry("checked".to_owned()).or_insert(0) += 1,
            (Err(_), Some((_, why))) => *counts.entry(format!("different: {why}")).or_insert(0) += 1,
            (Ok(()), Some(_)) => wrong.push(format!("{id} {kind}: is listed as different, and is not")),
            (Err(why), None) => wrong.push(format!("{id} {kind}: {why}\n  {answer}")),
        }
    }
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
    let same = codes.iter().copied().eq(found.iter().map(Verdict::code));
    same.then_some(()).ok_or_else(|| format!("expected {codes:?}, got {found:?}"))
}

/// Whether the verdicts on the calls of a row are those that it expects.
fn holds(expect: &Value, answer: &Value) -> Result<(), String> {
    let found = &verdicts(answer);
    let family = expect["code_family"].as_str();
    match expect["verdict"].as_str().unwrap() {
        "accept" | "accept_with_warning" => {
            let all = !found.is_empty() && found.iter().all(|verdict| *verdict == Verdict::Admitted);
            all.then_some(()).ok_or_else(|| format!("expected to be admitted, got {found:?}"))?;
            // A family says that the oddity itself is one of the stream.
            let warned = answer["warnings"]
                .as_array()
                .is_some_and(|warnings| warnings.iter().all(|warning| warning["code"] == "stream"));
            let expected = family == Some("wire.stream");
            (warned == expected).then_some(()).ok_or_else(|| format!("warnings: expected {expected}, got {warned}"))
        }
        // The leniencies by name are refused by default.
        "reject"
        | "reject_or_optin_coerce"
        | "reject_or_optin_repair"
        | "reject_or_warn"
        | "reject_at_registration" => {
            let family = family.ok_or("a refusal without a family")?;
            let (codes, problems) = ours(family).ok_or_else(|| format!("{family} is a family that is not known"))?;
            for verdict in found {
                let Verdict::Refused { code, problems: told } = verdict else {
                    return Err(format!("expected {family}, got admitted"));
                };
                if !codes.contains(&code.as_str()) {
                    return Err(format!("expected {codes:?}, got {code}"));
                }
                let hit = told.iter().any(|(code, _)| problems.contains(&code.as_str()));
                if !hit && !problems.is_empty() {
                    return Err(format!("expected one of {problems:?}, got {told:?}"));
                }
                if let Some(pointers) = expect["pointer"].as_str() {
                    let wanted: BTreeSet<&str> = pointers.split(',').collect();
                    let places: BTreeSet<&str> = told.iter().map(|(_, at)| at.as_str()).collect();
                    if wanted != places {
                        return Err(format!("expected problems at {wanted:?}, got {told:?}"));
                    }
                }
            }
            (!found.is_empty()).then_some(()).ok_or_else(|| "no call was found".to_owned())
        }
        other => Err(format!("{other} is a verdict that is not known")),
    }
}

/// The codes of a refusal, and of its problems, that a family of the corpus means.
fn ours(family: &str) -> Option<(Vec<&str>, Vec<&str>)> {
    let (room, kind) = family.split_once('.')?;
    Some(match (room, kind) {
        ("parse", "syntax") => {
            (vec!["invalid_json"], vec!["syntax", "truncated", "control_character", "lone_surrogate"])
        }
        ("parse", "limit" | "too_large" | "too_deep") => (vec!["invalid_json"], vec!["depth", "size", "members"]),
        ("parse", kind) if kind.starts_with("number") => (vec!["invalid_json"], vec!["number"]),
        ("parse", kind) => (vec!["invalid_json", "broken_message"], vec![kind]),
        ("schema", "range") => (
            vec!["invalid_arguments"],
            vec!["minimum", "maximum", "exclusive_minimum", "exclusive_maximum", "multiple_of"],
        ),
        ("schema", kind) => (vec!["invalid_arguments"], vec![kind]),
        ("registry", "unknown_tool") => (vec!["unknown_tool"], vec![]),
        ("registry", "duplicate_name") => (vec!["invalid_contract"], vec!["unique"]),
        ("wire", "stream") => (vec!["invalid_call"], vec!["stream"]),
        ("wire", _) => (vec!["invalid_call", "broken_message"], vec![]),
        ("loop", "turn_truncated") => (vec!["turn_truncated"], vec![]),
        _ => return None,
    })
}
