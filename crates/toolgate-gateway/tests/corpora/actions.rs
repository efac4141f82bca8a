//! Rows about actions, done as they are told: `abuse.jsonl` where it is about identity and evidence, `faults.jsonl` where
//! something was done twice, or was not known.

use std::collections::BTreeMap;

use serde_json::Value;

use super::acts::{self, Act, Arguments, Given, Told, Who};
use super::workshop::{Behind, Came, Workshop};
use super::{rows, tell};

/// Why a row is not done here that needs a clock on the wall which is set: a test from outside can move only a gate's whole
/// time. The stories of `gate/steadiness.rs` in the library set the one and not the other.
const NEEDS_A_CLOCK_ON_THE_WALL: &str = "not done: nothing here sets the clock on the wall alone";

/// One variant of a row of `abuse.jsonl`.
struct Try {
    name: String,
    contract: Value,
    given: Given,
    acts: Vec<Act>,
    outcome: String,
    backend_calls: usize,
}

#[test]
fn every_abuse_of_identity_and_evidence_ends_as_it_should() {
    let mut counts = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in rows("abuse.jsonl").iter().filter(|row| row["surface"] == "idempotency" || row["surface"] == "audit") {
        let alone = [row["input"].clone()];
        let variants = row["input"]["variants"].as_array().map_or(&alone[..], Vec::as_slice);
        for (index, variant) in variants.iter().enumerate() {
            let Some(one) = read(row, index, variant) else {
                *counts.entry("not done: told in words that nothing here builds".to_owned()).or_insert(0) += 1;
                continue;
            };
            if one.needs_a_clock_on_the_wall() {
                *counts.entry(NEEDS_A_CLOCK_ON_THE_WALL.to_owned()).or_insert(0) += 1;
                continue;
            }
            *counts.entry(format!("done: {}", one.outcome)).or_insert(0) += 1;
            wrong.extend(one.done().err().map(|why| format!("{}: {why}", one.name)));
        }
    }
    tell("abuse", &counts);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn read(row: &Value, index: usize, variant: &Value) -> Option<Try> {
    let of = |member: &str| row["expect"][member].get(index).unwrap_or(&row["expect"][member]).clone();
    let steps = match (variant["steps"].as_array(), variant.get("call")) {
        (Some(steps), _) => steps.iter().map(|step| acts::step(step.as_str()?)).collect::<Option<Vec<_>>>()?.concat(),
        (None, Some(call)) => vec![Act::Call(decoded(call)?)],
        (None, None) => return None,
    };
    Some(Try {
        name: format!("{} {} variant {index}", row["id"], row["threat"]),
        contract: row["contract"].clone(),
        given: Given::read(row["given"].as_str()?)?,
        acts: steps,
        outcome: of("outcome").as_str()?.to_owned(),
        backend_calls: usize::try_from(of("backend_calls").as_u64()?).ok()?,
    })
}

/// A call that is not told but written.
fn decoded(call: &Value) -> Option<Told> {
    let text = call["args_raw"].as_str().map(str::to_owned).or_else(|| call.get("args").map(Value::to_string));
    Some(Told {
        who: call["as"].as_str().map_or(Some(Who::anybody()), Who::read)?,
        key: call["key"].as_str().map(str::to_owned),
        arguments: text.map_or(Arguments::Some(0), Arguments::Text),
    })
}

impl Try {
    fn needs_a_clock_on_the_wall(&self) -> bool {
        self.acts.iter().any(|act| matches!(act, Act::SetAheadAndBack(_)))
    }

    /// Does it, and tells what is wrong with what came of it.
    fn done(&self) -> Result<(), String> {
        let all = [&self.given.acts[..], &self.acts].concat();
        let mut workshop = Workshop::open(&self.contract, &self.given, Behind::Database, &all)?;
        let before = workshop.act(&self.given.acts);
        let had = workshop.effects();
        let full = self.given.is_full.then(|| workshop.fill_the_volume());
        let came = workshop.act(&self.acts);
        drop(full);
        let effects = workshop.effects() - had;
        let last = came.last().ok_or("nothing came of it")?;
        let is_right = |came: &Came| self.outcome.split('|').any(|outcome| is_outcome(outcome, came));
        // Of calls at the same moment one comes to this, and which one is chance.
        if !last.iter().any(is_right) || !last.iter().all(|came| is_right(came) || is_outcome("ok", came)) {
            return Err(format!("expected {}, got {came:?}", self.outcome));
        }
        if effects > self.backend_calls || self.outcome == "ok" && effects != self.backend_calls {
            return Err(format!("{effects} effects, not {}", self.backend_calls));
        }
        if let (Some(first), "replayed") = (before.last(), self.outcome.as_str()) {
            same_answer(&first[0], &last[0])?;
        }
        workshop.verify()
    }
}

/// Whether an outcome of `abuse.jsonl` is what came. A word that is not known is none.
fn is_outcome(outcome: &str, came: &Came) -> bool {
    let reply = match came {
        Came::Reply(reply) => reply,
        Came::Fault => return outcome == "unavailable",
    };
    let code = match outcome {
        "ok" => return reply["ok"] == true,
        "replayed" => return reply["ok"] == true && reply["replayed"] == true,
        "conflict" => "key_conflict",
        "unknown_outcome" => "outcome_unknown",
        "budget_exceeded" => "limit_reached",
        "timeout" => "timed_out",
        "invalid_args" => "invalid_arguments",
        same => same,
    };
    reply["error"]["code"] == code
}

/// Whether an answer is that of an earlier one, and says so.
fn same_answer(first: &Came, again: &Came) -> Result<(), String> {
    let (Came::Reply(first), Came::Reply(again)) = (first, again) else { return Err("a fault".to_owned()) };
    let same = first["result"] == again["result"];
    let marked = again["replayed"] == true && again["first_ref"] == first["ref"] && again["ref"] != first["ref"];
    (same && marked).then_some(()).ok_or_else(|| format!("not the answer of {first}: {again}"))
}

#[test]
fn every_reported_duplicate_is_one_effect_now() {
    let mut counts = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in rows("faults.jsonl") {
        let family = row["expect"]["code_family"].as_str().unwrap_or_default();
        if row["group"] != "idempotency" && !family.starts_with("idempotency.") {
            continue;
        }
        let tool = row["contract"]["name"].as_str().unwrap();
        let told = row["steps"]
            .as_array()
            .and_then(|steps| steps.iter().map(|step| acts::attempt(step.as_str()?, tool)).collect::<Option<Vec<_>>>());
        let Some(acts) = told.map(|steps| steps.concat()).filter(|acts| !acts.is_empty()) else {
            *counts.entry("not done: told in words that nothing here builds".to_owned()).or_insert(0) += 1;
            continue;
        };
        let verdict = row["expect"]["verdict"].as_str().unwrap();
        *counts.entry(format!("done: {verdict}")).or_insert(0) += 1;
        let outcome = if acts.contains(&Act::CutOff) { cut_off(&row, &acts) } else { repeated(&row, &acts) };
        wrong.extend(outcome.err().map(|why| format!("{} {}: {why}", row["id"], row["kind"])));
    }
    tell("faults", &counts);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Calls, some of which are repeated: each is judged by those before it, and the last by what its row expects.
fn repeated(row: &Value, acts: &[Act]) -> Result<(), String> {
    let mut workshop = Workshop::open(&row["contract"], &Given::default(), Behind::Database, acts)?;
    let mut seen: Vec<(&Told, Came)> = Vec::new();
    let mut last = "";
    for act in acts {
        let Act::Call(told) = act else { return Err(format!("no call: {act:?}")) };
        let came = workshop.act(std::slice::from_ref(act)).concat().remove(0);
        let same = |(known, _): &&(&Told, Came)| match &told.key {
            Some(_) => known.key == told.key,
            None => known.key.is_none() && known.arguments == told.arguments,
        };
        last = match seen.iter().find(same) {
            None if is_outcome("ok", &came) && !is_outcome("replayed", &came) => "accept",
            Some((known, first)) if known.arguments == told.arguments => {
                same_answer(first, &came)?;
                "replay"
            }
            Some(_) if is_outcome("conflict", &came) => "reject",
            None | Some(_) => return Err(format!("{told:?}: {came:?}")),
        };
        if last == "accept" {
            seen.push((told, came));
        }
    }
    let expected = row["expect"]["verdict"].as_str().unwrap();
    if last != expected || workshop.effects() != seen.len() {
        return Err(format!("expected {expected}, got {last} with {} effects", workshop.effects()));
    }
    workshop.verify()
}

/// A call whose backend is lost after it had it: nobody knows, and nobody asks for it a second time.
fn cut_off(row: &Value, acts: &[Act]) -> Result<(), String> {
    let mut workshop = Workshop::open(&row["contract"], &Given::default(), Behind::Dying, acts)?;
    let call = acts.iter().find(|act| matches!(act, Act::Call(_))).ok_or("no call")?.clone();
    let first = workshop.act(std::slice::from_ref(&call)).concat().remove(0);
    let again = workshop.act(&[call]).concat().remove(0);
    let effect = |came: &Came| match came {
        Came::Reply(reply) => reply["error"]["effect"].clone(),
        Came::Fault => Value::Null,
    };
    if effect(&first) != "unknown" || !is_outcome("unknown_outcome", &again) || effect(&again) != "unknown" {
        return Err(format!("expected it not to be known, got {first:?} and {again:?}"));
    }
    match row["expect"]["code_family"].as_str() {
        Some("idempotency.unknown_outcome") => workshop.verify(),
        other => Err(format!("{other:?} is not what a lost call comes to")),
    }
}
