//! Contracts: what the operator declares about a tool. Parsed once, with every problem at once, into types that the
//! stages can trust.

mod allowances;
pub(crate) mod content;
mod flow;
mod limits;
mod lint;
mod mode;
pub(crate) mod names;
mod parse;
mod registry;
mod subject;
mod tool;
mod typed;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::approval::Approvers;
use crate::json::{Bounds, Digest};
use crate::leniency::{Granted, Used};
use crate::schema::{Problem, Schema};
use crate::template::Template;

pub(crate) use limits::{Counts, Limit, LimitScope, unsummable};
pub use mode::Mode;
pub use registry::ToolFault;
pub(crate) use registry::{Registered, Registry};
pub(crate) use subject::subject_of;
pub use tool::Tool;

/// What the operator declares about a tool.
#[derive(Debug)]
pub struct Contract {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) access: Access,
    pub(crate) tags: Vec<String>,
    pub(crate) deadline: Duration,
    pub(crate) preview: Option<Template>,
    /// Whose personal data a call carries; the principal's where not given.
    pub(crate) subject: Option<Template>,
    pub(crate) max_result: usize,
    pub(crate) input: Schema,
    pub(crate) output: Option<Schema>,
    /// What its calls may be otherwise than its schema wants.
    pub(crate) lenient: Granted,
    pub(crate) fill_defaults: bool,
    /// The bounds of argument texts, where they are not those of the gate.
    pub(crate) arguments: Bounds,
    /// What it says of leniencies that never applies: a fault for a gate. Admission alone holds calls to the rest.
    pub(crate) idle: Vec<Problem>,
    pub(crate) approval: Option<ApprovalRule>,
    pub(crate) resource: Option<Resource>,
    pub(crate) facts: BTreeMap<String, Fact>,
    pub(crate) once: Once,
    pub(crate) lane: Option<Lane>,
    pub(crate) reconcile: Option<Reconcile>,
    pub(crate) retry: Retry,
    pub(crate) limits: Vec<Limit>,
    /// The tools of which a call must have ended well in the run before.
    pub(crate) requires: Vec<String>,
    pub(crate) labels: flow::Labels,
    pub(crate) errors: BTreeMap<String, MappedError>,
    pub(crate) backend: Value,
    /// INVARIANT (blocks are checked): where it is set, `output` is the schema of content blocks.
    pub(crate) content: bool,
    /// Whether somebody else's server wrote description and schemas.
    pub(crate) imported: bool,
    /// Whether its policies hold; as the gate says where not given.
    pub(crate) mode: Option<Mode>,
    pub(crate) digest: Digest,
    pub(crate) warnings: Vec<Problem>,
    /// Arguments whose names say who is asking, and which mean something else.
    pub(crate) meant_otherwise: Vec<String>,
}

/// Whether a tool changes the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It only looks.
    Read,
    /// It acts.
    Write,
}

/// The sugar for a forbid that asks for approval.
#[derive(Debug)]
pub(crate) struct ApprovalRule {
    pub(crate) when: String,
    pub(crate) approvers: Approvers,
    pub(crate) message: Option<String>,
}

/// What a call acts on. INVARIANT (own tenant): its tenant, as the fact tells it, is the session's, or it does not exist.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) kind: String,
    pub(crate) id: Template,
    pub(crate) fact: String,
    /// Where the fact tells the tenant, as a JSON pointer.
    pub(crate) tenant: String,
}

/// Something that the gate looks up for itself before it decides.
#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) tool: String,
    pub(crate) args: BTreeMap<String, Template>,
    /// How old an answer may be; none at all where it is zero: it is looked up anew for each decision.
    pub(crate) max_age: Duration,
}

/// When two calls are the same action.
#[derive(Debug)]
pub(crate) struct Once {
    /// The values that make the identity; equal arguments where not given.
    pub(crate) key: Option<Vec<Template>>,
    pub(crate) scope: OnceScope,
    pub(crate) repeat: Repeat,
    pub(crate) retain: Duration,
    /// Whether the host may name the operation.
    pub(crate) caller: bool,
}

/// Whose equal calls are the same action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnceScope {
    Run,
    User,
    Tenant,
}

/// Whether an equal call that comes after the action is the action again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Never: it is replayed.
    Never,
    /// It is replayed only while no other write of its lane came between.
    AfterOther,
    /// It runs again: the tool is naturally idempotent.
    Free,
}

/// Which actions must not overlap with this one.
#[derive(Debug)]
pub(crate) enum Lane {
    /// Those whose keys have the same values.
    Key(Vec<Template>),
    /// All of the run that say so.
    Run,
}

/// How to learn what happened when nobody knows.
#[derive(Debug)]
pub(crate) struct Reconcile {
    pub(crate) tool: String,
    pub(crate) args: BTreeMap<String, Template>,
    /// Present in what was found: proof that it happened.
    pub(crate) done: String,
    /// The part of what was found that becomes the reply.
    pub(crate) result: String,
    /// Not found is proof only this long after the end of the lease.
    pub(crate) absent_after: Duration,
}

/// Which failures are tried again, where that is provably safe.
#[derive(Debug)]
pub(crate) struct Retry {
    pub(crate) attempts: u32,
    pub(crate) on: Vec<String>,
}

/// What of a backend's failure the model may know.
#[derive(Debug)]
pub(crate) struct MappedError {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) effect: Option<crate::refusal::Effect>,
    pub(crate) instead: Option<String>,
}

impl Contract {
    /// The name of the tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the tool does and when to use it, for the model.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Whether it changes the world.
    pub fn access(&self) -> Access {
        self.access
    }

    /// The tags by which it is grouped.
    pub fn tags(&self) -> &[String] {
        &self.tags
    }

    /// The schema of its arguments.
    pub fn input(&self) -> &Schema {
        &self.input
    }

    /// The schema of its results, if it has one.
    pub fn output(&self) -> Option<&Schema> {
        self.output.as_ref()
    }

    /// What its backend is, as the contract says it.
    pub fn backend(&self) -> &Value {
        &self.backend
    }

    /// What of the contract's schemas holds and is probably not meant, each with a place, a stable code and what to do. A
    /// contract with warnings is used all the same. What a gate is warned of besides, such as descriptions that models
    /// cannot tell apart, [`Gate::warnings`](crate::Gate::warnings) tells.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// Whether its results are MCP's content blocks: those of an `mcp` backend whose tool declares no output schema.
    pub fn yields_content(&self) -> bool {
        self.content
    }

    /// Arguments that fit, with the defaults of absent members where the contract says so, and their places.
    pub(crate) fn filled(&self, arguments: Value) -> (Value, Vec<Used>) {
        if self.fill_defaults { self.input.with_defaults(arguments) } else { (arguments, Vec::new()) }
    }

    pub(crate) fn is_write(&self) -> bool {
        self.access == Access::Write
    }

    /// Whether description and schemas come from somebody else's server, as it wrote them.
    pub fn is_imported(&self) -> bool {
        self.imported
    }

    /// Whether a model may read what the tool itself says of its failure: where its results are the tool's own words too,
    /// and the contract has no words for its failures.
    pub(crate) fn lets_tool_speak(&self) -> bool {
        (self.content || self.imported) && self.errors.is_empty()
    }

    /// Whether an unknown outcome keeps others off the lane: only where something is shared that could be spent twice. The
    /// lane of a run is an order of its writes, and nothing that they share.
    pub(crate) fn keeps_lane(&self) -> bool {
        let shared = match &self.lane {
            Some(Lane::Key(_)) => true,
            Some(Lane::Run) | None => false,
        };
        shared || self.resource.is_some() || !self.facts.is_empty()
    }
}

/// What a tag is made of: the letters and digits of ASCII, `_` and `-`.
pub(crate) fn is_tag(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
