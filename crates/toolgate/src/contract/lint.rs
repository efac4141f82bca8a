//! What of contracts holds and is probably not meant: each by itself, and beside the others.

use std::collections::BTreeSet;

use super::{Contract, Lane, Mode, Registered, ToolFault};
use crate::schema::{Problem, Schema};

/// Tools that a model sees at once before it begins to choose the wrong one.
const MANY: usize = 30;
/// Of the words of two descriptions together, those that both have, in percent.
const NEAR: usize = 85;
/// Words that a description needs before it can be near another one.
const FEW: usize = 4;

/// Words that say nothing of a tool.
const EMPTY: &[&str] = &[
    "a", "an", "the", "of", "to", "for", "in", "on", "by", "with", "and", "or", "this", "that", "it", "tool",
    "function", "use", "used", "will", "can", "is",
];

/// The warnings of one contract: those of its schemas.
pub(super) fn of(contract: &Contract) -> Vec<Problem> {
    let of_schema = |key: &'static str, schema: &Schema| -> Vec<Problem> {
        let warnings = schema.warnings().iter().cloned();
        warnings.map(|warning| Problem { at: format!("/{key}{}", warning.at), ..warning }).collect()
    };
    let mut found = of_schema("input", &contract.input);
    found.extend(observed(contract));
    found.extend(kept_facts(contract));
    // The schema of content blocks is the gate's own.
    found.extend(contract.output.iter().filter(|_| !contract.content).flat_map(|output| of_schema("output", output)));
    found
}

/// The warnings of what models read, for all tools together. The name of the tool is empty where it is of the gate as a whole.
pub(super) fn beside<'r>(tools: impl Iterator<Item = &'r Registered>) -> Vec<ToolFault> {
    let contracts: Vec<&Contract> = tools.map(|tool| &*tool.contract).collect();
    let mut found = Vec::new();
    if contracts.len() > MANY {
        let message = format!("{} tools: a model that sees more than {MANY} at once chooses worse", contracts.len());
        let hint = "give them tags, and show each agent those of its task".to_owned();
        let problem = Problem { at: String::new(), code: "many_tools".into(), message, hint: Some(hint) };
        found.push(ToolFault { tool: String::new(), problem });
    }
    found.extend(
        contracts.iter().filter_map(|contract| {
            Some(ToolFault { tool: contract.name.clone(), problem: thin_description(contract)? })
        }),
    );
    let described: Vec<(&Contract, BTreeSet<String>)> =
        contracts.iter().map(|contract| (*contract, telling(&contract.description))).collect();
    for (index, (contract, words)) in described.iter().enumerate() {
        // What servers say of their own tools is not the operator's to mend.
        let twin = described
            .iter()
            .take(index)
            .find(|(other, others)| !(contract.imported && other.imported) && are_near(words, others));
        found.extend(twin.map(|(other, _)| {
            let message =
                format!("says nearly the same as that of `{}`, so a model cannot tell them apart", other.name);
            let hint = Some("say in each when to use it, and when the other one".to_owned());
            let problem = Problem { at: "/description".into(), code: "near_descriptions".into(), message, hint };
            ToolFault { tool: contract.name.clone(), problem }
        }));
    }
    found
}

/// A description that says no more than the name: a model learns from it neither what the tool does nor when to use it.
fn thin_description(contract: &Contract) -> Option<Problem> {
    if contract.imported {
        return None;
    }
    let named = words(&contract.name);
    let more = telling(&contract.description);
    let thin = more.iter().all(|word| named.iter().any(|name| is_form_of(word, name)));
    thin.then(|| Problem {
        at: "/description".into(),
        code: "thin_description".into(),
        message: "says no more than the name of the tool".into(),
        hint: Some("say what it does, what it gives, and when to use it".into()),
    })
}

/// A write that may be decided over an old answer, and shares no lane with what changes it: calls of other runs are then
/// decided over the same answer, each as if it were alone.
fn kept_facts(contract: &Contract) -> Option<Problem> {
    let shares = contract.resource.is_some() || matches!(contract.lane, Some(Lane::Key(_)));
    let kept =
        contract.facts.iter().find(|(_, fact)| !fact.max_age.is_zero()).filter(|_| contract.is_write() && !shares);
    kept.map(|(name, _)| Problem {
        at: format!("/facts/{name}/max_age"),
        code: "kept_fact".into(),
        message: "calls of other runs may be decided over the same old answer, each as if it were alone".into(),
        hint: Some("name what they share: [resource], or [lane] key = [...]; or leave max_age away".into()),
    })
}

/// A contract whose policies refuse nothing: it was meant for a while.
fn observed(contract: &Contract) -> Option<Problem> {
    match contract.mode {
        Some(Mode::Observe) => Some(Problem {
            at: "/mode".into(),
            code: "observed".into(),
            message: "policies refuse none of its calls: what they would have refused is only on record".into(),
            hint: Some("say mode = \"enforce\" once `toolgate audit DIR observed` shows what is meant".into()),
        }),
        Some(Mode::Enforce) | None => None,
    }
}

/// Whether a word is a name's, or another form of it: `orders` of `order`, `looks` of `look`.
fn is_form_of(word: &str, name: &str) -> bool {
    let (short, long) = if word.len() < name.len() { (word, name) } else { (name, word) };
    short == long || short.len() >= 3 && long.len() <= short.len() + 2 && long.starts_with(short)
}

fn are_near(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    let shared = one.intersection(other).count();
    let together = one.len() + other.len() - shared;
    one.len().min(other.len()) >= FEW && shared * 100 >= together * NEAR || one == other && !one.is_empty()
}

/// The words of a text that say something, each once.
fn telling(text: &str) -> BTreeSet<String> {
    words(text).into_iter().filter(|word| !EMPTY.contains(&word.as_str())).collect()
}

/// The words of a text or of a name, `getOrder` being two.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in text.chars() {
        if !c.is_alphanumeric() || was_small && c.is_uppercase() {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        was_small = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}
