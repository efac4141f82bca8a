//! Runs a scenario through a door, and tells the first thing that does not hold.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::door::{Answer, Asker, Door, Exchange};
use crate::pattern::{Saved, differences, resolved};
use crate::scenario::{CallStep, DecisionStep, MessageStep, Scenario, Step, TurnStep, span};

/// What does not hold, in words.
type Wrong = String;

/// Runs every step; afterwards the record of the gate must hold.
pub(crate) fn run(scenario: &Scenario, door: &mut impl Door) -> Result<(), Wrong> {
    let mut saved = Saved::new();
    for (index, step) in scenario.steps.iter().enumerate() {
        if !door.carries(step) {
            continue;
        }
        take(step, door, &mut saved).map_err(|wrong| format!("step {} ({}): {wrong}", index + 1, step.in_words()))?;
    }
    door.verify().map_err(|broken| format!("the record does not hold: {broken}"))
}

fn take(step: &Step, door: &mut impl Door, saved: &mut Saved) -> Result<(), Wrong> {
    match step {
        Step::Call(step) => call(step, door, saved),
        Step::Turn(step) => turn(step, door, saved),
        Step::Message(step) => message(step, door, saved),
        Step::Approve(step) => decided(step, door.approve(&resolved(&step.id, saved), step.user.as_deref())),
        Step::Deny(step) => decided(step, door.deny(&resolved(&step.id, saved), step.user.as_deref())),
        Step::Approvals(step) => fits(&step.expect_approvals, &door.approvals(&step.approvals_as), saved),
        Step::Tools(step) => {
            equal(&json!(step.expect_tools), &json!(door.tools(Asker { user: Some(&step.tools_as), tags: &step.tags })))
        }
        Step::Rows(step) => equal(&step.expect, &door.rows(&step.rows)),
        Step::Runs(step) => {
            let found = door.runs(&step.runs.tool);
            if found == step.runs { Ok(()) } else { Err(format!("expected {:?}, found {found:?}", step.runs)) }
        }
        Step::Advance(step) => {
            door.advance(span(&step.advance));
            Ok(())
        }
        Step::Edit(step) => {
            door.edit(&step.edit.file, &step.edit.replace.0, &step.edit.replace.1);
            Ok(())
        }
    }
}

/// An answer, and how long it took. Where it is too long it is asked for again, twice at most: a machine that was busy
/// for a moment is not what is tested.
fn in_time(limit: Option<Duration>, mut ask: impl FnMut() -> Answer) -> (Answer, Duration) {
    const TRIES: usize = 3;
    let mut tries = 0;
    loop {
        tries += 1;
        let started = Instant::now();
        let answer = ask();
        let took = started.elapsed();
        if tries == TRIES || limit.is_none_or(|limit| took < limit) {
            return (answer, took);
        }
    }
}

fn call(step: &CallStep, door: &mut impl Door, saved: &mut Saved) -> Result<(), Wrong> {
    let mut call = step.call.clone();
    call.approval = call.approval.map(|named| resolved(&named, saved));
    let limit = step.within_ms.map(Duration::from_millis);
    let (answer, took) = in_time(limit, || door.call(Asker { user: step.user.as_deref(), tags: &step.tags }, &call));
    let Answer { text, reply, trace, exit } = &answer;
    fits(&step.expect, reply, saved).map_err(|wrong| format!("{wrong}\n  in {text}"))?;
    if let Some(limit) = limit
        && took >= limit
    {
        return Err(format!("it took {took:?}, and was to end within {limit:?}"));
    }
    if let Some(limit) = step.result_at_most
        && reply["result"].to_string().len() > limit
    {
        return Err(format!("the result has more than {limit} bytes: {text}"));
    }
    for (stage, wanted) in step.expect_trace.iter().flatten() {
        let stages = trace.as_array().expect("a trace is a list");
        let note = stages.iter().find(|note| note["stage"] == *stage);
        fits(wanted, note.unwrap_or(&Value::Null), saved)
            .map_err(|wrong| format!("in the trace of {stage}: {wrong}"))?;
    }
    let shown = without_refs(text, reply);
    if let Some(told) = step.never.iter().find(|secret| shown.contains(*secret)) {
        return Err(format!("the reply tells `{told}`: {text}"));
    }
    if let Some(name) = &step.same_as {
        let other = resolved(&format!("${name}"), saved);
        if shown != other {
            return Err(format!("not the same but for the ref:\n  {other}\n  {shown}"));
        }
    }
    for (name, pointer) in &step.save {
        let kept = match pointer.as_str() {
            "" => Value::from(shown.as_str()),
            pointer => reply.pointer(pointer).cloned().ok_or_else(|| format!("nothing at {pointer} in {text}"))?,
        };
        saved.insert(name.clone(), kept);
    }
    let wanted = step.exit.unwrap_or_else(|| exit_of(reply));
    match exit {
        Some(exit) if *exit != wanted => Err(format!("expected exit code {wanted}, found {exit}")),
        Some(_) | None => Ok(()),
    }
}

/// The calls of one model message, in the form of a chat completion.
fn turn(step: &TurnStep, door: &mut impl Door, saved: &Saved) -> Result<(), Wrong> {
    let calls: Vec<Value> = step
        .turn
        .iter()
        .enumerate()
        .map(|(index, call)| {
            let function = json!({ "name": call.tool, "arguments": call.text() });
            json!({ "id": format!("call_{}", index + 1), "type": "function", "function": function })
        })
        .collect();
    let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
    let asker = Asker { user: step.user.as_deref(), tags: &step.tags };
    match door.message(asker, "openai-chat", &message) {
        Exchange::Answered { outcomes, .. } => fits(&step.expect, &outcomes, saved),
        Exchange::Broken(why) => Err(format!("the message was not understood: {why}")),
    }
}

fn message(step: &MessageStep, door: &mut impl Door, saved: &Saved) -> Result<(), Wrong> {
    let asker = Asker { user: step.user.as_deref(), tags: &step.tags };
    match (door.message(asker, &step.dialect, &step.message), &step.expect_broken) {
        (Exchange::Broken(why), Some(part)) if why.contains(part) => Ok(()),
        (Exchange::Broken(why), _) => Err(format!("the message was not understood: {why}")),
        (Exchange::Answered { outcomes, .. }, Some(_)) => Err(format!("the message was answered: {outcomes}")),
        (Exchange::Answered { messages, outcomes }, None) => {
            if let Some(wanted) = &step.expect {
                fits(wanted, &outcomes, saved).map_err(|wrong| format!("in the outcomes: {wrong}"))?;
            }
            if let Some(wanted) = &step.expect_messages {
                fits(wanted, &messages, saved).map_err(|wrong| format!("in the messages: {wrong}"))?;
            }
            Ok(())
        }
    }
}

fn decided(step: &DecisionStep, decision: Result<String, String>) -> Result<(), Wrong> {
    match (&step.expect_state, &step.expect_refused, decision) {
        (Some(wanted), None, Ok(state)) if *wanted == state => Ok(()),
        (None, Some(part), Err(why)) if why.contains(part) => Ok(()),
        (_, _, Ok(state)) => Err(format!("it is now {state}")),
        (_, _, Err(why)) => Err(format!("it was refused: {why}")),
    }
}

fn fits(pattern: &Value, found: &Value, saved: &Saved) -> Result<(), Wrong> {
    let differences = differences(pattern, found, saved);
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n  ")) }
}

fn equal(wanted: &Value, found: &Value) -> Result<(), Wrong> {
    if wanted == found { Ok(()) } else { Err(format!("expected {wanted}, found {found}")) }
}

/// The text of a reply without the names of attempts, which differ each time.
fn without_refs(text: &str, reply: &Value) -> String {
    let refs = ["/ref", "/first_ref", "/error/ref"].iter().filter_map(|at| reply.pointer(at)?.as_str());
    refs.fold(text.to_owned(), |text, reference| text.replace(reference, "REF"))
}

/// What a script learns of a reply without reading it.
fn exit_of(reply: &Value) -> i32 {
    let effect = reply.get("effect").or_else(|| reply.pointer("/error/effect"));
    match (effect.and_then(Value::as_str), reply.pointer("/error/code").and_then(Value::as_str)) {
        (Some("unknown"), _) => 5,
        (_, None) => 0,
        (_, Some("approval_required")) => 4,
        (_, Some(_)) => 3,
    }
}
