//! Who may do what: the only room that knows Cedar.
//!
//! The contracts become a Cedar schema, the policies are validated against it and sliced by action, and each call is
//! judged by its own slice: a principal `User::"<canonical [issuer, subject]>"` in its `Role`s and its `Tenant`, the
//! action `Action::"<tool>"` in its groups, what the contract acts on (else `Tool::"<tool>"`), and the context
//! `{ input, facts, session, approved }`.
//!
//! ```text
//! contracts -> schema  \
//!                       load -> slices -> judge: permitted | forbidden | a rule | needs approval
//! *.cedar, approval    /
//! ```

mod conditions;
mod context;
// A bench is a crate of its own: what it measures must be public, and is no part of the interface.
#[cfg(feature = "bench")]
pub mod door;
mod doubts;
mod explain;
mod fault;
mod load;
mod mentions;
mod message;
mod schema;
mod shape;
mod slices;
mod source;
mod text;
mod verdict;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use cedar_policy::Authorizer;
use serde_json::{Map, Value};

use crate::approval::Approvers;
use crate::json::Digest;
use crate::refusal::Fix;
use crate::runs::{RunState, Tracked};
use crate::session::Session;

pub(crate) use source::requires_id;

pub use fault::{PolicyCode, PolicyFault};

use doubts::Doubt;
pub use doubts::NamedRole;
use schema::Vocabulary;
use shape::{Field, Shape};
use slices::{Kinds, Slice};
use source::Source;
use verdict::Case;

/// What policies must know of a tool.
#[derive(Debug)]
pub(crate) struct PolicyTool<'a> {
    pub(crate) name: &'a str,
    pub(crate) write: bool,
    pub(crate) tags: &'a [String],
    /// Groups of actions beside `read`, `write` and the tags, by their whole name.
    pub(crate) groups: &'a [String],
    /// The JSON Schema of the arguments.
    pub(crate) input: &'a Value,
    pub(crate) facts: Vec<FactShape<'a>>,
    /// The entity type of what is acted on; without one it is the tool itself.
    pub(crate) resource: Option<&'a str>,
    pub(crate) approval: Option<ApprovalSugar<'a>>,
    /// The tools of which a call must have ended well in the run before.
    pub(crate) requires: &'a [String],
    /// Where its arguments go, which makes a group of actions.
    pub(crate) sink: Option<&'a str>,
    /// The labels that its answers give to a run.
    pub(crate) labels: &'a BTreeSet<String>,
}

/// A fact that a tool looks up.
#[derive(Debug)]
pub(crate) struct FactShape<'a> {
    pub(crate) name: &'a str,
    /// The JSON Schema of what is found.
    pub(crate) output: &'a Value,
    /// Whether no call is judged without it.
    pub(crate) required: bool,
}

/// The `approval` key of a contract: short for a forbid that yields to consent.
#[derive(Debug)]
pub(crate) struct ApprovalSugar<'a> {
    /// When approval is needed, as a condition of Cedar.
    pub(crate) when: &'a str,
    pub(crate) approvers: Approvers,
    /// What the approver is told.
    pub(crate) message: Option<&'a str>,
}

/// A file of policies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicySource<'a> {
    /// The name of the file, for faults.
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

/// Tools that are not among those that policies are held to, though policies may name them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Absent<'a> {
    /// There will be no gate, since their contracts do not hold: what may only come from their absence is not told.
    Faulty(&'a BTreeSet<String>),
    /// The gate does without them: what speaks of them alone goes with them, and all else is held to what is there.
    SetAside(&'a BTreeSet<String>),
}

impl<'a> Absent<'a> {
    /// Their names.
    pub(crate) fn tools(self) -> &'a BTreeSet<String> {
        match self {
            Self::Faulty(tools) | Self::SetAside(tools) => tools,
        }
    }
}

/// A call to be judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) tool: &'a str,
    pub(crate) session: &'a Session,
    /// The effective arguments, valid under the tool's schema.
    pub(crate) arguments: &'a Map<String, Value>,
    /// What was looked up, each valid under the schema of its tool.
    pub(crate) facts: &'a Map<String, Value>,
    /// The id of what is acted on, which has been proved to be the session's tenant's.
    pub(crate) resource: Option<&'a str>,
    /// What the run of the session has done and read.
    pub(crate) run: &'a RunState,
}

impl Ask<'_> {
    /// What stands under a member of the context that is made of values.
    fn values(&self, name: &str) -> Option<&Map<String, Value>> {
        match name {
            "input" => Some(self.arguments),
            "facts" => Some(self.facts),
            _ => None,
        }
    }
}

/// What the policies say of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Judgement {
    /// It may run.
    Permitted {
        /// The permits that say so.
        by: Vec<String>,
    },
    /// It may not, and the caller does not learn why.
    Forbidden(Why),
    /// A business rule is against it, and says so.
    Rule(RuleHit),
    /// It may run with somebody's consent.
    NeedsApproval {
        /// Whose, and why; never empty.
        reasons: Vec<NeedReason>,
        /// The permits that would let it run then.
        by: Vec<String>,
    },
}

/// Why a call is forbidden. For the record alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Some policies could not be evaluated.
    Error { policies: Vec<String> },
    /// No policy permits it.
    NoPermit,
    /// Forbids without a message.
    Silent { policies: Vec<String> },
    /// A value that policies read has no exact form in Cedar.
    Unrepresentable {
        /// Where, as a JSON pointer into the context.
        at: String,
    },
}

/// A business rule that a call breaks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RuleHit {
    /// The first by id, if there are several.
    pub(crate) id: String,
    pub(crate) message: String,
    pub(crate) fix: Fix,
    /// The names of the facts that the message shows.
    pub(crate) shown: Vec<String>,
    /// All rules that the call breaks.
    pub(crate) all: Vec<String>,
}

/// A rule that yields to consent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NeedReason {
    pub(crate) rule: String,
    pub(crate) message: String,
    pub(crate) approvers: Approvers,
}

/// The policies of a gate, valid and sliced.
#[derive(Debug)]
pub(crate) struct Policies {
    schema: String,
    /// INVARIANT (one slice an action): every tool has one, with each policy that could speak of it.
    slices: HashMap<String, Slice>,
    count: usize,
    tracked: Tracked,
    doubts: Vec<Doubt>,
    roles: Vec<NamedRole>,
    kinds: Kinds,
    authorizer: Authorizer,
}

impl Policies {
    /// The policies of `sources` and of the contracts' approvals over `tools`, or every fault that they have. No policy
    /// at all is valid, and permits nothing.
    pub(crate) fn compile(
        sources: &[PolicySource<'_>],
        tools: &[PolicyTool<'_>],
        absent: Absent<'_>,
    ) -> Result<Self, Vec<PolicyFault>> {
        let (vocabulary, mut faults) = Vocabulary::of(tools);
        // Names that clash make no schema, but the texts can still be read.
        let generated = match faults.is_empty().then(|| vocabulary.generate()).transpose() {
            Ok(generated) => generated,
            Err(fault) => {
                faults.push(fault);
                None
            }
        };
        let mut texts: Vec<Source<'_>> = sources.iter().map(|file| Source::file(*file)).collect();
        for tool in tools {
            match tool.approval.as_ref().map(|approval| Source::approval(tool.name, approval)) {
                Some(Ok(text)) => texts.push(text),
                Some(Err(found)) => faults.extend(found),
                None => {}
            }
            texts.extend(tool.requires.iter().map(|first| Source::requires(tool.name, first)));
        }
        let rules = load::load(&texts, &vocabulary, generated.as_ref(), absent);
        match (rules, generated) {
            (Ok(rules), Some(generated)) if faults.is_empty() => Self::sliced(generated.text, &vocabulary, rules)
                .ok_or_else(|| vec![PolicyFault::of_the_gate("the policies are valid, but cannot be put together")]),
            (rules, _) => {
                faults.extend(rules.err().into_iter().flatten());
                faults.sort();
                faults.dedup();
                Err(faults)
            }
        }
    }

    fn sliced(schema: String, vocabulary: &Vocabulary<'_>, rules: Vec<load::Rule>) -> Option<Self> {
        let count = rules.len();
        let doubts = rules.iter().flat_map(|rule| rule.doubts.iter().cloned()).collect();
        let roles = rules.iter().flat_map(|rule| rule.roles.iter().cloned()).collect();
        let mut chosen: Vec<Vec<Arc<load::Rule>>> = vocabulary.tools.iter().map(|_| Vec::new()).collect();
        for rule in rules.into_iter().map(Arc::new) {
            for place in &rule.tools {
                chosen.get_mut(*place)?.push(Arc::clone(&rule));
            }
        }
        let slices: HashMap<String, Slice> = vocabulary
            .tools
            .iter()
            .zip(chosen)
            .map(|(tool, rules)| Some((tool.name.to_owned(), Slice::new(tool, rules)?)))
            .collect::<Option<_>>()?;
        let tracked = slices.values().map(|slice| slice.tracked).fold(Tracked::default(), Tracked::or);
        Some(Self {
            schema,
            slices,
            count,
            tracked,
            doubts,
            roles,
            kinds: Kinds::new()?,
            authorizer: Authorizer::new(),
        })
    }

    /// The generated schema, in Cedar's own syntax.
    pub(crate) fn cedar_schema(&self) -> &str {
        &self.schema
    }

    /// How many policies there are, those of the contracts' approvals among them.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The roles that the policies name.
    pub(crate) fn roles(&self) -> &[NamedRole] {
        &self.roles
    }

    /// What of the policies holds and is probably not meant.
    pub(crate) fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }

    /// The verdict on a call that would run.
    pub(crate) fn judge(&self, ask: &Ask<'_>) -> Judgement {
        self.case(ask).and_then(|case| case.judge()).unwrap_or_else(Judgement::Forbidden)
    }

    /// The verdict on a call that would be answered from the record: nothing runs, so nobody is asked.
    pub(crate) fn judge_replay(&self, ask: &Ask<'_>) -> Judgement {
        self.case(ask).and_then(|case| case.judge_replay()).unwrap_or_else(Judgement::Forbidden)
    }

    /// Whether some call of `tool` by this session could be permitted, as far as that is known before a call: a permit
    /// may hold, and no silent forbid holds whatever is sent.
    pub(crate) fn visible(&self, tool: &str, session: &Session) -> bool {
        self.slices.get(tool).is_some_and(|slice| slice.visible(session))
    }

    /// The digest of the policies that judge `tool`. Other policies, another digest.
    pub(crate) fn slice_digest(&self, tool: &str) -> Digest {
        self.slices.get(tool).map_or_else(|| Digest::of(&[]), |slice| slice.digest)
    }

    /// Whether some policy of `tool` may ask for consent.
    pub(crate) fn may_ask(&self, tool: &str) -> bool {
        self.slices.get(tool).is_some_and(|slice| slice.may_ask)
    }

    /// The rules of `tool` that ask for consent, by id, with whoever may give it.
    pub(crate) fn asking(&self, tool: &str) -> impl Iterator<Item = (&str, &Approvers)> {
        let rules = self.slices.get(tool).map(|slice| slice.rules.as_slice()).unwrap_or_default();
        rules.iter().filter_map(|rule| Some((rule.id.as_str(), rule.approvers.as_ref()?)))
    }

    /// What some policy of the gate reads of runs.
    pub(crate) fn tracked(&self) -> Tracked {
        self.tracked
    }

    /// What the policies of `tool` read of the run of its caller.
    pub(crate) fn reads_of_run(&self, tool: &str) -> Tracked {
        self.slices.get(tool).map(|slice| slice.tracked).unwrap_or_default()
    }

    /// The facts that the message of a rule of `tool` shows.
    pub(crate) fn facts_shown(&self, tool: &str, rule: &str) -> Vec<String> {
        let rule = self.slices.get(tool).and_then(|slice| slice.rule(rule));
        rule.and_then(|rule| rule.message.as_ref()).map(message::Message::facts).unwrap_or_default()
    }

    /// The first value of a call that the policies of `tool` read and that is hidden from whoever asks: a JSON pointer into
    /// the context.
    pub(crate) fn reads_hidden(&self, ask: &Ask<'_>, hidden: &dyn Fn(&Value) -> bool) -> Option<String> {
        let Shape::Record(fields) = &self.slices.get(ask.tool)?.context else { return None };
        fields.iter().find_map(|Field { name, shape, .. }| {
            let (Shape::Record(members), Some(values)) = (shape, ask.values(name)) else { return None };
            let read = |field: &Field| {
                let found = context::hidden_in(&field.shape, values.get(&field.name)?, hidden)?;
                Some(found.inside(&field.name).inside(name).pointer())
            };
            members.iter().find_map(read)
        })
    }

    /// Whether some policy of `tool` may tell one thing that is acted on from another.
    pub(crate) fn tell_resources_apart(&self, tool: &str) -> bool {
        self.slices.get(tool).is_some_and(|slice| slice.rules.iter().any(|rule| rule.tells_resources_apart()))
    }

    /// The facts that the policies of `tool` read.
    pub(crate) fn facts_read(&self, tool: &str) -> Vec<&str> {
        let Some(Shape::Record(fields)) = self.slices.get(tool).map(|slice| &slice.context) else { return Vec::new() };
        let facts = fields.iter().find(|field| field.name == "facts").map(|field| &field.shape);
        let Some(Shape::Record(facts)) = facts else { return Vec::new() };
        facts.iter().map(|fact| fact.name.as_str()).collect()
    }

    fn case<'a>(&'a self, ask: &'a Ask<'a>) -> Result<Case<'a>, Why> {
        let slice = self.slices.get(ask.tool).ok_or(Why::NoPermit)?;
        Case::new(slice, &self.authorizer, &self.kinds, ask)
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
