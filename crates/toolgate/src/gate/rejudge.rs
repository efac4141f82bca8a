//! Deciding again what the record tells of: what other policies would have said of the calls that there were. It makes no
//! proof, looks nothing up, and writes nothing.
//!
//! A call is judged by what the record holds of it: its effective arguments, the facts of its day, and the roles that its
//! caller had. Where a policy reads a value that the record holds only a digest of, nobody can say what it would have
//! decided, and that is what is answered. A hidden value that no policy reads stands in nobody's way.

mod recorded;
mod unhidden;

use serde_json::{Map, Value};

use super::Gate;
use crate::contract::Contract;
use crate::policy::{Ask, Judgement, Why};
use crate::session::Session;
use crate::template::{Hole, Scope};

pub use recorded::{Ended, Recorded};
pub use unhidden::Unhidden;

use unhidden::{holds_hidden, is_hidden};

/// What policies say of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It may run.
    Permitted {
        /// The permits that say so.
        by: Vec<String>,
    },
    /// It may run with somebody's consent.
    NeedsApproval {
        /// The rules that ask for it; none where the record does not tell them, because consent was given.
        rules: Vec<String>,
    },
    /// A rule is against it, and says so.
    Rule {
        /// The rule that is told.
        rule: String,
    },
    /// It may not run, and nobody is told why.
    Forbidden {
        /// Why, for the operator.
        why: String,
    },
    /// For its caller there would be no such tool.
    Invisible,
}

/// Why a call cannot be decided again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Undecided {
    /// The operator keeps digests, or the record is of an earlier version.
    #[error("the record does not hold its arguments")]
    NoArguments,
    /// The record is of an earlier version.
    #[error("the record does not tell the roles of its caller")]
    NoRoles,
    /// There is no such tool any more.
    #[error("there is no contract of its tool any more")]
    NoTool,
    /// The contract was changed since.
    #[error("the contract of today does not take its arguments (at {at})")]
    Misfit {
        /// The first place, a JSON pointer.
        at: String,
    },
    /// The contract was changed since.
    #[error("policies read the fact {fact}, which was not looked up then")]
    NoFact {
        /// The name of the fact.
        fact: String,
    },
    /// A policy reads what the record holds a digest of.
    #[error("policies read a value that the record hides (at {at})")]
    Hidden {
        /// Where, as a JSON pointer into the context.
        at: String,
    },
    /// A policy names what is acted on, whose name is made of what the record holds a digest of.
    #[error("policies name what is acted on, which the record hides")]
    HiddenResource,
    /// The record is of a time when no policy read it.
    #[error("policies read what the run had done before, which the record does not tell")]
    NoRun,
}

impl Decided {
    /// Whether another decision means another answer to the caller, or another approver. Which permits say yes is none.
    pub fn differs(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Permitted { .. }, Self::Permitted { .. })
            | (Self::Forbidden { .. }, Self::Forbidden { .. })
            | (Self::Invisible, Self::Invisible) => false,
            (Self::NeedsApproval { rules: one }, Self::NeedsApproval { rules: other }) => {
                !one.is_empty() && !other.is_empty() && one != other
            }
            (Self::Rule { rule: one }, Self::Rule { rule: other }) => one != other,
            (
                Self::Permitted { .. }
                | Self::NeedsApproval { .. }
                | Self::Rule { .. }
                | Self::Forbidden { .. }
                | Self::Invisible,
                _,
            ) => true,
        }
    }

    /// The decision in a word: `permitted`, or the code of the refusal.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Permitted { .. } => "permitted",
            Self::NeedsApproval { .. } => "approval_required",
            Self::Rule { .. } => "rule_failed",
            Self::Forbidden { .. } => "forbidden",
            Self::Invisible => "unknown_tool",
        }
    }

    /// The policies that it rests on, where they are known.
    pub fn policies(&self) -> &[String] {
        match self {
            Self::Permitted { by: policies } | Self::NeedsApproval { rules: policies } => policies,
            Self::Rule { rule } => std::slice::from_ref(rule),
            Self::Forbidden { .. } | Self::Invisible => &[],
        }
    }
}

impl Gate {
    /// What the policies of this gate say of a call that the record tells of.
    pub fn rejudge(&self, call: &Recorded) -> Result<Decided, Undecided> {
        let session = call.session().ok_or(Undecided::NoRoles)?;
        let arguments = call.arguments().ok_or(Undecided::NoArguments)?;
        let tool = self.line.registry.get(call.tool()).ok_or(Undecided::NoTool)?;
        let contract = &tool.contract;
        if !self.line.policies.visible(&contract.name, &session) {
            return Ok(Decided::Invisible);
        }
        admit(contract, arguments)?;
        if call.contract() != Some(contract.digest) {
            let absent = |fact: &&str| !call.facts().contains_key(*fact);
            if let Some(fact) = self.line.policies.facts_read(&contract.name).into_iter().find(absent) {
                return Err(Undecided::NoFact { fact: fact.to_owned() });
            }
        }
        let resource = match resource(contract, arguments, &session) {
            Err(Undecided::HiddenResource) if !self.line.policies.tell_resources_apart(&contract.name) => {
                // It was the session's tenant's, and that is all that these policies could know of it.
                Some(String::new())
            }
            resource => resource?,
        };
        let reads = self.line.policies.reads_of_run(&contract.name);
        let run = call.run(reads).ok_or(Undecided::NoRun)?;
        let ask = Ask {
            tool: &contract.name,
            session: &session,
            arguments,
            facts: call.facts(),
            resource: resource.as_deref(),
            run: &run,
        };
        match self.line.policies.reads_hidden(&ask, &is_hidden) {
            Some(at) => Err(Undecided::Hidden { at }),
            None => Ok(self.line.permit.judge(&ask, call.would_run()).into()),
        }
    }
}

/// Holds recorded arguments to the contract of today. What is hidden in them is taken to fit.
fn admit(contract: &Contract, arguments: &Map<String, Value>) -> Result<(), Undecided> {
    let Unhidden { value, places, .. } = Unhidden::of(&Value::Object(arguments.clone()), &contract.input);
    if contract.input.is_valid(&value) {
        return Ok(());
    }
    let hides = |at: &str| places.iter().any(|place| at == place || at.starts_with(&format!("{place}/")));
    let problems = contract.input.problems(&value);
    match problems.list.into_iter().find(|problem| !hides(&problem.at)) {
        Some(problem) => Err(Undecided::Misfit { at: problem.at }),
        None => Ok(()),
    }
}

/// The id of what a call acts on.
fn resource(
    contract: &Contract,
    arguments: &Map<String, Value>,
    session: &Session,
) -> Result<Option<String>, Undecided> {
    let Some(resource) = &contract.resource else { return Ok(None) };
    let whole = Value::Object(arguments.clone());
    let hidden = |hole: &Hole| match hole {
        Hole::Argument(at) => whole.pointer(at).is_some_and(holds_hidden),
        Hole::Tenant
        | Hole::User
        | Hole::Fact { .. }
        | Hole::IdempotencyKey
        | Hole::Ref
        | Hole::TraceParent
        | Hole::TraceState => false,
    };
    if resource.id.holes().any(hidden) {
        return Err(Undecided::HiddenResource);
    }
    Ok(resource.id.fill(Scope::new(arguments, session)).map(|id| match id {
        Value::String(id) => id,
        other => other.to_string(),
    }))
}

impl From<Judgement> for Decided {
    fn from(judgement: Judgement) -> Self {
        match judgement {
            Judgement::Permitted { by } => Self::Permitted { by },
            Judgement::NeedsApproval { reasons, by: _ } => {
                let mut rules: Vec<String> = reasons.into_iter().map(|reason| reason.rule).collect();
                rules.sort();
                Self::NeedsApproval { rules }
            }
            Judgement::Rule(hit) => Self::Rule { rule: hit.id },
            Judgement::Forbidden(why) => Self::Forbidden {
                why: match why {
                    Why::Error { policies } => format!("a policy could not be evaluated: {}", policies.join(", ")),
                    Why::NoPermit => "no policy permits it".to_owned(),
                    Why::Silent { policies } => format!("forbidden by {}", policies.join(", ")),
                    Why::Unrepresentable { at } => format!("policies cannot judge the value at {at}"),
                },
            },
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]
mod tests;
