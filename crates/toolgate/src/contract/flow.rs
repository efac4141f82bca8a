//! What a contract says of the run around a call: which tools come first, what its answer carries into the run, and where
//! its arguments go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Contract, Registered, is_tag};
use crate::fields::{Fields, Problems, nearest};
use crate::policy::requires_id;

/// What a run carries after it has read an answer of this tool, and where the arguments of a call go.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// The labels of its answers.
    pub(crate) result: BTreeSet<String>,
    /// The kind of place where its arguments go.
    pub(crate) sink: Option<String>,
}

/// The label of answers that are somebody else's text as it came.
const UNTRUSTED: &str = "untrusted";
/// How long the id of a rule may be.
const LONGEST_ID: usize = 128;

impl Labels {
    /// `content` tells that the answers are somebody else's text, which is labelled though the contract is silent.
    pub(super) fn read(top: &mut Fields<'_>, content: bool, problems: &mut Problems) -> Self {
        let silent = || Self { result: content.then(|| UNTRUSTED.to_owned()).into_iter().collect(), sink: None };
        let Some(mut table) = top.table("labels", problems) else { return silent() };
        let said = table.has("result");
        let result = table.texts("result", problems);
        let result = if said { result } else { silent().result.into_iter().collect() };
        let sink = table.text("sink", problems).map(str::to_owned);
        let places = result.iter().enumerate();
        let places = places.map(|(index, label)| (format!("{}/{index}", table.place("result")), label));
        let places: Vec<_> = places.chain(sink.iter().map(|sink| (table.place("sink"), sink))).collect();
        for (place, name) in places {
            if !is_tag(name) {
                problems.note(place, "pattern", "a label is made of A-Z a-z 0-9 _ -");
            }
        }
        table.end(problems);
        Self { result: result.into_iter().collect(), sink }
    }
}

/// The tools of which a call must have ended well before one of the tool `name` may run.
pub(super) fn read_requires(name: &str, top: &mut Fields<'_>, problems: &mut Problems) -> Vec<String> {
    let requires = top.texts("requires", problems);
    for (index, first) in requires.iter().enumerate() {
        let at = format!("/requires/{index}");
        if first == name {
            problems.note(at, "requires", "a tool cannot come before itself");
        } else if requires.iter().take(index).any(|other| other == first) {
            problems.note(at, "unique", "this tool is named twice");
        } else if requires_id(name, first).len() > LONGEST_ID {
            let message = "the names of the two tools are too long together to name a rule by";
            problems.note(at, "max_length", message);
        }
    }
    requires
}

/// Holds what a contract requires to the other contracts. `broken` are tools that have faults of their own.
pub(super) fn check_requires(
    contract: &Contract,
    tools: &BTreeMap<String, Arc<Registered>>,
    broken: &BTreeSet<String>,
    problems: &mut Problems,
) {
    for (index, first) in contract.requires.iter().enumerate() {
        let at = format!("/requires/{index}");
        if !tools.contains_key(first) {
            if !broken.contains(first) {
                let hint = nearest(first, tools.keys().map(String::as_str));
                problems.hinted(at, "tool", "there is no such tool", hint);
            }
        } else if *first != contract.name && comes_after(first, &contract.name, tools) {
            let message = format!("`{first}` must come after this tool itself, so neither could ever be called");
            problems.note(at, "requires", message);
        }
    }
}

/// Whether `tool` requires `other`, by itself or by what it requires.
fn comes_after(tool: &str, other: &str, tools: &BTreeMap<String, Arc<Registered>>) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![tool];
    while let Some(name) = waiting.pop() {
        if name == other {
            return true;
        }
        if seen.insert(name)
            && let Some(tool) = tools.get(name)
        {
            waiting.extend(tool.contract.requires.iter().map(String::as_str));
        }
    }
    false
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::disallowed_methods, reason = "a test may panic")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::contract::{Registry, Tool};

    fn tool(name: &str, keys: Value) -> Tool {
        let mut table = json!({"description": "Look.", "effect": "read", "input": {"properties": {}}});
        table.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        Tool::broken(name, table.as_object().unwrap().clone(), Vec::new())
    }

    fn faults(tools: Vec<Tool>) -> Vec<String> {
        let (_, faults) = Registry::build(tools, &["unread".to_owned()]);
        let told = faults.iter().map(|fault| format!("{}{} {}", fault.tool, fault.problem.at, fault.problem.code));
        told.collect()
    }

    #[test]
    fn what_must_come_first_is_a_tool_that_is_there_and_not_the_tool_itself() {
        let requires = json!({"requires": ["look", "lok", "act", "look", "unread"]});
        assert_eq!(
            faults(vec![tool("look", json!({})), tool("act", requires)]),
            ["act/requires/2 requires", "act/requires/3 unique", "act/requires/1 tool"]
        );
    }

    #[test]
    fn tools_that_wait_for_each_other_are_a_fault() {
        let first = |name: &str, first: &str| tool(name, json!({"requires": [first]}));
        assert_eq!(
            faults(vec![first("a", "b"), first("b", "c"), first("c", "a"), first("d", "a")]),
            ["a/requires/0 requires", "b/requires/0 requires", "c/requires/0 requires"]
        );
    }

    #[test]
    fn labels_are_names_and_the_text_of_others_is_untrusted_where_nothing_is_said() {
        let read = |keys: Value, content| {
            let (mut problems, table) = (Problems::default(), keys.as_object().unwrap().clone());
            let labels = Labels::read(&mut Fields::of(&table, ""), content, &mut problems);
            let told: Vec<String> = problems.0.iter().map(|problem| problem.at.clone()).collect();
            (labels.result.into_iter().collect::<Vec<_>>(), labels.sink, told)
        };
        assert_eq!(read(json!({}), false), (vec![], None, vec![]));
        assert_eq!(read(json!({}), true).0, ["untrusted"]);
        assert_eq!(read(json!({"labels": {"sink": "external"}}), true).0, ["untrusted"]);
        assert_eq!(read(json!({"labels": {"result": []}}), true).0, Vec::<String>::new());
        let (_, _, told) = read(json!({"labels": {"result": ["ok", "not ok"], "sink": "", "sunk": 1}}), false);
        assert_eq!(told, ["/labels/result/1", "/labels/sink", "/labels/sunk"]);
        let (_, _, told) = read(json!({"labels": {"results": ["untrusted"]}}), false);
        assert_eq!(told, ["/labels/results"]);
        let (table, mut problems) = (json!({"labels": {"results": []}}), Problems::default());
        Labels::read(&mut Fields::of(table.as_object().unwrap(), ""), false, &mut problems);
        let hints: Vec<_> = problems.0.into_iter().filter_map(|problem| problem.hint).collect();
        assert_eq!(hints, ["did you mean result?"], "a key that is read where it is said is known where it is not");
    }
}
