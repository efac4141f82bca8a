//! A door for benches: one verdict, and nothing of the line around it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Absent, ApprovalSugar, Ask, FactShape, Judgement, Policies, PolicySource, PolicyTool};
use crate::runs::RunState;
use crate::session::Session;

/// A tool, as far as policies know of it.
#[derive(Clone, Copy, Debug)]
pub struct Declared<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it writes.
    pub write: bool,
    /// The groups of its tags.
    pub tags: &'a [String],
    /// The JSON Schema of its arguments.
    pub input: &'a Value,
    /// The one fact that it looks up, and the JSON Schema of it.
    pub fact: Option<(&'a str, &'a Value)>,
    /// The entity type of what it acts on.
    pub resource: Option<&'a str>,
    /// When it needs approval, and the role that gives it.
    pub approval: Option<(&'a str, &'a str)>,
}

/// What was said of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It may run.
    Permitted,
    /// It may run with somebody's consent.
    NeedsApproval,
    /// A rule is against it.
    Rule,
    /// It may not run.
    Forbidden,
}

/// A call to be judged.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Who asks.
    pub session: &'a Session,
    /// The arguments, valid under the tool's schema.
    pub arguments: &'a Map<String, Value>,
    /// The facts, valid under their schemas.
    pub facts: &'a Map<String, Value>,
    /// The id of what is acted on.
    pub resource: Option<&'a str>,
}

/// The policies of a gate that is not there.
#[derive(Debug)]
pub struct Judge(Policies);

impl Judge {
    /// The policies of one text over `tools`, or their faults as an operator reads them.
    pub fn new(text: &str, tools: &[Declared<'_>]) -> Result<Self, String> {
        let tools: Vec<PolicyTool<'_>> = tools.iter().map(Declared::tool).collect();
        let files = [PolicySource { name: "bench.cedar", text }];
        let policies = Policies::compile(&files, &tools, Absent::Faulty(&BTreeSet::new()));
        policies.map(Self).map_err(|faults| faults.iter().map(|fault| format!("{fault}\n")).collect())
    }

    /// The verdict on a call that would run.
    pub fn judge(&self, question: &Question<'_>) -> Said {
        let Question { tool, session, arguments, facts, resource } = *question;
        match self.0.judge(&Ask { tool, session, arguments, facts, resource, run: &RunState::default() }) {
            Judgement::Permitted { .. } => Said::Permitted,
            Judgement::NeedsApproval { .. } => Said::NeedsApproval,
            Judgement::Rule(_) => Said::Rule,
            Judgement::Forbidden(_) => Said::Forbidden,
        }
    }

    /// How many policies there are.
    pub fn count(&self) -> usize {
        self.0.count()
    }
}

impl<'a> Declared<'a> {
    fn tool(&self) -> PolicyTool<'a> {
        static NO_LABELS: BTreeSet<String> = BTreeSet::new();
        PolicyTool {
            name: self.name,
            write: self.write,
            tags: self.tags,
            groups: &[],
            input: self.input,
            facts: self.fact.iter().map(|(name, output)| FactShape { name, output, required: true }).collect(),
            resource: self.resource,
            approval: self.approval.map(|(when, role)| ApprovalSugar {
                when,
                approvers: role.to_owned().into(),
                message: None,
            }),
            requires: &[],
            sink: None,
            labels: &NO_LABELS,
        }
    }
}
