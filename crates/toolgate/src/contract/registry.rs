//! All tools of a gate, and what their contracts say of each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::parse::SHOWN_AND_KEPT;
use super::{Access, Contract, Fact, Tool, flow, lint, names};
use crate::backend::Backend;
use crate::fields::Problems;
use crate::nearness::nearest;
use crate::runs::Tracked;
use crate::schema::{Hidden, Mark, Problem, Schema};
use crate::template::{Hole, Template};

/// A tool that may be called: its contract holds by itself and beside the others.
pub(crate) struct Registered {
    pub(crate) contract: Arc<Contract>,
    pub(crate) backend: Arc<dyn Backend>,
    /// The strongest mark of what a call carries: its arguments, its result, the facts that it rests on.
    pub(crate) mark: Option<Mark>,
    /// The groups of actions that it is in, beside those of its contract.
    pub(crate) groups: Vec<String>,
}

/// All tools of a gate, by name. A name is looked up here and nowhere else.
pub(crate) struct Registry {
    tools: BTreeMap<String, Arc<Registered>>,
    /// Whose each short form is. INVARIANT (one tool a name): none is the name of a tool.
    short_forms: BTreeMap<String, String>,
}

/// One problem of one contract, or one warning.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolFault {
    /// The name of the tool; empty for what is of the gate as a whole.
    pub tool: String,
    /// What is wrong, with its place as a JSON pointer.
    pub problem: Problem,
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered").field("name", &self.contract.name).finish_non_exhaustive()
    }
}

impl Registry {
    /// Parses every contract and checks it beside the others: the contracts that hold, and every problem of the rest.
    /// `unread` names tools whose contracts could not even be read; that they are missing is not told again.
    pub(crate) fn build(tools: Vec<Tool>, unread: &[String]) -> (Self, Vec<ToolFault>) {
        let mut faults = Vec::new();
        let mut broken: BTreeSet<String> = unread.iter().cloned().collect();
        let mut registered: BTreeMap<String, Arc<Registered>> = BTreeMap::new();
        for Tool { name, keys, backend, groups, problems } in tools {
            let mut problems = Problems(problems);
            check_groups(&groups, &mut problems);
            let says_output = keys.contains_key("output");
            let says_on = keys.get("retry").is_some_and(|retry| retry.get("on").is_some());
            let (contract, wrong) = Contract::read(&name, &keys.into());
            problems.0.extend(wrong);
            match contract {
                Some(contract) => {
                    if says_output && contract.output.is_none() {
                        broken.insert(name.clone());
                    }
                    problems.0.extend(contract.idle.iter().cloned());
                    problems.0.extend(backend.check(&contract));
                    if let Some(signals) = backend.signals() {
                        check_signals(&contract, says_on, &signals, &mut problems);
                    }
                    let mark = contract.mark();
                    let known = Arc::new(Registered { contract: Arc::new(contract), backend, mark, groups });
                    if registered.insert(name.clone(), known).is_some() {
                        problems.note("/name", "unique", "two tools have this name");
                    }
                }
                None => {
                    broken.insert(name.clone());
                }
            }
            faults.extend(problems.0.into_iter().map(|problem| ToolFault { tool: name.clone(), problem }));
        }
        let forms =
            registered.keys().flat_map(|name| names::short_forms(name).into_iter().map(move |form| (form, name)));
        let (taken, free): (Vec<_>, Vec<_>) = forms.partition(|(form, _)| registered.contains_key(form));
        faults.extend(taken.into_iter().map(|(form, name)| {
            let message = format!("where names are short, `{name}` is shown by this name");
            let hint = Some("give one of the two another name".to_owned());
            ToolFault { tool: form, problem: Problem { at: "/name".to_owned(), code: "unique".into(), message, hint } }
        }));
        let short_forms = free.into_iter().map(|(form, name)| (form, name.clone())).collect();
        let mut registry = Self { tools: registered, short_forms };
        registry.mark_by_facts();
        for tool in registry.tools.values() {
            let mut problems = Problems::default();
            registry.check(&tool.contract, &broken, &mut problems);
            let name = &tool.contract.name;
            faults.extend(problems.0.into_iter().map(|problem| ToolFault { tool: name.clone(), problem }));
        }
        (registry, faults)
    }

    /// What a fact is marked with, the call that rests on it carries as well.
    fn mark_by_facts(&mut self) {
        let own: BTreeMap<String, Option<Mark>> =
            self.tools.iter().map(|(name, tool)| (name.clone(), tool.contract.output_mark())).collect();
        for tool in self.tools.values_mut().filter_map(Arc::get_mut) {
            let facts = tool.contract.facts.values().filter_map(|fact| *own.get(&fact.tool)?);
            tool.mark = facts.chain(tool.mark).max();
        }
    }

    /// Adds to `aside` each tool that rests on one of them, which is a fault of it.
    pub(crate) fn rest_on(&self, aside: &mut BTreeSet<String>, faults: &mut Vec<ToolFault>) {
        loop {
            let mut more = Vec::new();
            for tool in self.tools.values().filter(|tool| !aside.contains(&tool.contract.name)) {
                let contract = &tool.contract;
                let looks = contract.facts.iter().map(|(name, fact)| (format!("/facts/{name}/tool"), &fact.tool));
                let finds = contract.reconcile.iter().map(|reconcile| ("/reconcile/tool".to_owned(), &reconcile.tool));
                let waits = contract.requires.iter().enumerate();
                let waits = waits.map(|(index, first)| (format!("/requires/{index}"), first));
                more.extend(looks.chain(finds).chain(waits).filter(|(_, other)| aside.contains(*other)).map(
                    |(at, other)| {
                        let message = format!("this tool rests on `{other}`, which has faults and is set aside");
                        let problem = Problem { at, code: "set_aside".into(), message, hint: None };
                        ToolFault { tool: contract.name.clone(), problem }
                    },
                ));
            }
            if more.is_empty() {
                return;
            }
            aside.extend(more.iter().map(|fault| fault.tool.clone()));
            faults.extend(more);
        }
    }

    /// Takes tools out.
    pub(crate) fn set_aside(&mut self, aside: &BTreeSet<String>) {
        self.tools.retain(|name, _| !aside.contains(name));
        let tools = self.tools.values_mut().filter_map(Arc::get_mut);
        for contract in tools.filter_map(|tool| Arc::get_mut(&mut tool.contract)) {
            // Nobody is sent to a tool that is not there.
            for error in contract.errors.values_mut() {
                error.instead.take_if(|other| aside.contains(other));
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Registered>> {
        self.tools.get(name)
    }

    /// What of a call leaves in nobody's words: what is marked of its arguments, and of the facts that it rests on.
    pub(crate) fn hidden(
        &self,
        contract: &Contract,
        arguments: &Map<String, Value>,
        facts: &Map<String, Value>,
    ) -> Hidden {
        let of_arguments = contract.input.hidden(&Value::Object(arguments.clone()));
        let of_facts = facts.iter().filter_map(|(name, fact)| Some(self.fact_output(contract, name)?.hidden(fact)));
        of_facts.fold(of_arguments, Hidden::and)
    }

    /// The labels of these facts of a contract: those of the answers that they are.
    pub(crate) fn labels_of_facts(&self, contract: &Contract, facts: &[String]) -> BTreeSet<String> {
        let tools = facts.iter().filter_map(|name| self.get(&contract.facts.get(name)?.tool));
        tools.flat_map(|tool| tool.contract.labels.result.iter().cloned()).collect()
    }

    /// What of runs is kept whatever policies read: labels, where answers of a tool carry any. A policy that asks for them
    /// tomorrow must know what was read today.
    pub(crate) fn tracked(&self) -> Tracked {
        let labels = self.iter().any(|tool| !tool.contract.labels.result.is_empty());
        Tracked { labels, ..Tracked::default() }
    }

    /// The tool that a call names: by its name, or by a short form of it.
    pub(crate) fn called(&self, name: &str) -> Option<&Arc<Registered>> {
        self.get(name).or_else(|| self.get(self.short_forms.get(name)?))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Registered> + Clone {
        self.tools.values().map(|tool| &**tool)
    }

    /// What of the contracts holds and is probably not meant.
    pub(crate) fn warnings(&self) -> Vec<ToolFault> {
        let contracts = self.iter().map(|tool| &*tool.contract);
        let own = contracts.flat_map(|contract| contract.warnings.iter().map(|problem| (&contract.name, problem)));
        let own = own.map(|(tool, problem)| ToolFault { tool: tool.clone(), problem: problem.clone() });
        own.chain(lint::beside(self.iter())).collect()
    }

    /// What one contract says of other tools.
    fn check(&self, contract: &Contract, broken: &BTreeSet<String>, problems: &mut Problems) {
        for (name, fact) in &contract.facts {
            let at = format!("/facts/{name}");
            let Some(tool) = self.lookup_tool(&fact.tool, broken, &at, problems) else { continue };
            check_arguments(tool, contract, &fact.args, &at, problems);
            if tool.output.is_none() && !broken.contains(&fact.tool) {
                let message = format!("`{}` has no output schema, so nothing can be known of its answer", fact.tool);
                problems.note(format!("{at}/tool"), "output", message);
            }
        }
        if let Some(resource) = &contract.resource
            && let Some(output) = self.fact_output(contract, &resource.fact)
            && output.locate(&resource.tenant).is_empty()
        {
            let message = format!("the fact `{}` has no such member", resource.fact);
            problems.hinted("/resource/tenant", "template", message, Some(known(&output.members())));
        }
        if let Some(reconcile) = &contract.reconcile
            && let Some(tool) = self.lookup_tool(&reconcile.tool, broken, "/reconcile", problems)
        {
            check_arguments(tool, contract, &reconcile.args, "/reconcile", problems);
            for (key, pointer) in [("done", &reconcile.done), ("result", &reconcile.result)] {
                let unknown = tool.output.as_ref().is_some_and(|o| !pointer.is_empty() && o.locate(pointer).is_empty());
                if unknown {
                    let message = format!("the answer of `{}` has no such member", reconcile.tool);
                    problems.note(format!("/reconcile/{key}"), "template", message);
                }
            }
        }
        for (signal, error) in &contract.errors {
            if let Some(instead) = &error.instead
                && !self.tools.contains_key(instead)
                && !broken.contains(instead)
            {
                let hint = nearest(instead, self.tools.keys().map(String::as_str));
                problems.hinted(format!("/errors/{signal}/instead"), "tool", "there is no such tool", hint);
            }
        }
        flow::check_requires(contract, &self.tools, broken, problems);
        let seen_by_people = contract.preview.iter().map(|template| ("/preview", template));
        for (at, template) in seen_by_people {
            self.check_fact_holes(contract, template, at, problems);
        }
    }

    /// The read tool that a fact or a reconciliation names. Anything but a read would act before it is decided.
    fn lookup_tool(
        &self,
        name: &str,
        broken: &BTreeSet<String>,
        at: &str,
        problems: &mut Problems,
    ) -> Option<&Contract> {
        let Some(tool) = self.tools.get(name) else {
            if broken.contains(name) {
                return None;
            }
            let hint = nearest(name, self.tools.keys().map(String::as_str));
            problems.hinted(format!("{at}/tool"), "tool", "there is no such tool", hint);
            return None;
        };
        if tool.contract.access == Access::Write {
            problems.note(
                format!("{at}/tool"),
                "tool",
                "this tool acts; only a tool with effect = \"read\" can look up",
            );
            return None;
        }
        Some(&tool.contract)
    }

    fn fact_output(&self, contract: &Contract, fact: &str) -> Option<&Schema> {
        let fact: &Fact = contract.facts.get(fact)?;
        self.tools.get(&fact.tool)?.contract.output.as_ref()
    }

    fn check_fact_holes(&self, contract: &Contract, template: &Template, at: &str, problems: &mut Problems) {
        for hole in template.holes() {
            if let Hole::Fact { name, at: pointer } = hole
                && let Some(output) = self.fact_output(contract, name)
            {
                if !pointer.is_empty() && output.locate(pointer).is_empty() {
                    let message = format!("the fact `{name}` has no member `{pointer}`");
                    problems.hinted(at, "template", message, Some(known(&output.members())));
                } else if output.hides(pointer) {
                    problems.note(at, "template", SHOWN_AND_KEPT);
                }
            }
        }
    }
}

/// A group is named so that it can be taken neither for a tool nor for one of those that contracts make.
fn check_groups(groups: &[String], problems: &mut Problems) {
    for group in groups {
        let (kind, name) = group.split_once(':').unwrap_or_default();
        let plain = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase());
        if !plain || matches!(kind, "tag" | "sink") || name.is_empty() {
            let message = "a group of actions is named like `upstream:payments`, and not `tag:` or `sink:`";
            problems.note("", "pattern", message);
        }
    }
}

/// What a contract says of failures speaks of failures that there are; `says_on` tells whether it says what is retried.
fn check_signals(contract: &Contract, says_on: bool, signals: &[&str], problems: &mut Problems) {
    let mut check = |at: String, signal: &str| {
        if !signals.contains(&signal) {
            let known = || format!("known: {}", signals.join(", "));
            let hint = nearest(signal, signals.iter().copied()).unwrap_or_else(known);
            problems.hinted(at, "signal", "no failure of this backend is called that", Some(hint));
        }
    };
    for signal in contract.errors.keys() {
        check(format!("/errors/{}", signal.replace('~', "~0").replace('/', "~1")), signal);
    }
    for (index, signal) in contract.retry.on.iter().enumerate().filter(|_| says_on) {
        check(format!("/retry/on/{index}"), signal);
    }
}

/// The arguments of a look-up fit the tool that is asked: all that it needs, never absent, and nothing that it does not
/// know. What could not be asked could not be known.
fn check_arguments(
    tool: &Contract,
    contract: &Contract,
    args: &BTreeMap<String, Template>,
    at: &str,
    problems: &mut Problems,
) {
    let members = tool.input.members();
    for (arg, template) in args {
        let place = format!("{at}/args/{arg}");
        if !members.contains(arg) {
            let message = format!("`{}` has no such argument", tool.name);
            problems.hinted(place, "unknown_key", message, Some(known(&members)));
        } else if tool.input.required(&format!("/{arg}")) && template.holes().any(|hole| may_be_absent(contract, hole))
        {
            let message = "the look-up needs this argument, and it may be absent";
            problems.hinted(place, "template", message, Some("list the argument of the call under `required`".into()));
        }
    }
    for member in &members {
        if tool.input.required(&format!("/{member}")) && !args.contains_key(member) {
            let message = format!("`{}` needs the argument `{member}`", tool.name);
            problems.note(format!("{at}/args"), "required", message);
        }
    }
}

fn may_be_absent(contract: &Contract, hole: &Hole) -> bool {
    match hole {
        Hole::Argument(pointer) => !contract.input.required(pointer),
        // A fact that is not the resource's own may be absent, and its members with it.
        Hole::Fact { name, .. } => contract.resource.as_ref().is_none_or(|resource| resource.fact != *name),
        Hole::TraceParent | Hole::TraceState => true,
        Hole::Tenant | Hole::User | Hole::IdempotencyKey | Hole::Ref => false,
    }
}

fn known(members: &[String]) -> String {
    format!("known: {}", members.join(", "))
}
