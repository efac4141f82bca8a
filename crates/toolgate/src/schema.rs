//! Schemas of arguments and results, compiled: what is wrong with a value, and how to mend it; which members are
//! declared; how a result is cut while it stays valid.
//!
//! The engine is the `jsonschema` crate, offline and with linear patterns. Before it sees a document, our own walk has
//! read it: unknown keywords, references to outside, patterns that backtrack and checks of unbounded cost are faults
//! of the document. After it has refused a value, our own words say why: it never speaks to a model itself.

mod bound;
mod budget;
mod compile;
mod defaults;
mod graph;
mod hidden;
mod hints;
mod inert;
mod keywords;
mod lengths;
mod lenient;
mod linear;
mod lint;
mod modern;
mod pattern;
mod problems;
mod project;
mod readings;
mod sample;
pub(crate) mod strict;
mod unions;
mod walk;
mod weight;
mod without;
mod words;

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

use jsonschema::{Draft, Validator};
use serde_json::Value;

pub(crate) use bound::keep_text;
pub use bound::{Bounded, TooLarge, Truncated, bound_free};
pub(crate) use hidden::{Hidden, Mark};
pub(crate) use inert::acts;
pub use inert::inert;
pub(crate) use keywords::{type_of, types_of};
pub(crate) use modern::Declared;
pub(crate) use problems::pointer as shown_place;
pub use problems::{Problem, Problems};
pub(crate) use without::{LENIENT, without};

use budget::Cost;
use compile::Closing;
use graph::{Graph, Judges, NodeId, Others, segments};
use inert::Control;
use strict::Strict;

/// A JSON Schema that can be used: it has been read whole, and what a check costs is bounded.
pub struct Schema {
    document: Value,
    draft: Draft,
    kind: Kind,
    validator: Validator,
    graph: Graph,
    judges: Judges,
    /// Whether somebody else wrote the document.
    imported: bool,
    closing: Closing,
    cost: Cost,
    warnings: Vec<Problem>,
    /// The schema as strict mode says it, made when it is first asked for.
    strict: OnceLock<Option<Strict>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Input(Undeclared),
    Output,
}

/// What becomes of a member of the arguments that a schema does not speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undeclared {
    /// The call is refused.
    Refused,
    /// It is taken as it is.
    Allowed,
}

/// Who wrote a document. What the operator misspells is a fault, since it would not hold; what an imported document says
/// beyond JSON Schema was never meant to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    Operator,
    SomebodyElse,
}

/// What is wrong with a schema document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFault {
    /// The place in the document, a JSON pointer.
    pub at: String,
    /// What is wrong there.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

impl Schema {
    /// The schema of a call's arguments: an object. A top level that does not speak of undeclared members forbids
    /// them, and one that allows any is a fault; strings hold no control characters (`"x-multiline": true` allows line
    /// feeds and tabs). A string of which the schema says no length has at most 65,536 characters (262,144 where
    /// somebody else wrote the schema), and a list of which it says no count at most 1,000 items.
    ///
    /// Fails with every fault of the document at once.
    pub fn input(document: &Value) -> Result<Self, Vec<SchemaFault>> {
        Self::of_arguments(document, Author::Operator, Undeclared::Refused)
    }

    /// As [`Schema::input`], but members of the top level that the schema does not declare are allowed.
    pub fn open_input(document: &Value) -> Result<Self, Vec<SchemaFault>> {
        Self::of_arguments(document, Author::Operator, Undeclared::Allowed)
    }

    /// The schema of a result: undeclared members are dropped by [`Schema::project`], also where the schema forbids
    /// them; everything else must hold.
    ///
    /// Fails with every fault of the document at once.
    pub fn output(document: &Value) -> Result<Self, Vec<SchemaFault>> {
        Self::of_results(document, Author::Operator)
    }

    /// As [`Schema::input`], for a document that somebody else wrote: keywords and formats that are not known are
    /// annotations, as JSON Schema has it, what it says of undeclared members stands, and strings may hold line feeds,
    /// carriage returns and tabs everywhere. A pattern that backtracks is held to within a bound of steps.
    pub fn imported_input(document: &Value) -> Result<Self, Vec<SchemaFault>> {
        Self::of_arguments(document, Author::SomebodyElse, Undeclared::Refused)
    }

    /// As [`Schema::output`], for a document that somebody else wrote.
    pub fn imported_output(document: &Value) -> Result<Self, Vec<SchemaFault>> {
        Self::of_results(document, Author::SomebodyElse)
    }

    pub(crate) fn of_arguments(
        document: &Value,
        author: Author,
        undeclared: Undeclared,
    ) -> Result<Self, Vec<SchemaFault>> {
        compile::compile(document, Kind::Input(undeclared), author)
    }

    pub(crate) fn of_results(document: &Value, author: Author) -> Result<Self, Vec<SchemaFault>> {
        compile::compile(document, Kind::Output, author)
    }

    /// What of the document holds and is probably not meant: keywords that nothing is held to, parameters of which no
    /// type is told. Each has its place in the document, and a stable code.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The document as it was declared.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Whether `value` fits: arguments as they are, a result without its undeclared members.
    ///
    /// A result that will be projected is best projected first; the answer then holds for what is shown.
    pub fn is_valid(&self, value: &Value) -> bool {
        if !self.affords(value) {
            return false;
        }
        match self.kind {
            Kind::Input(_) => self.holds(value) && (self.is_plain(value) || self.is_admissible(value)),
            Kind::Output => self.holds(value) || self.holds(&self.project(value.clone())),
        }
    }

    /// All that is wrong with `value`, sorted by place; empty if it is valid.
    pub fn problems(&self, value: &Value) -> Problems {
        if self.is_valid(value) {
            return Problems::default();
        }
        match self.kind {
            Kind::Input(_) => problems::of(self, value),
            Kind::Output => problems::of(self, &self.project(value.clone())),
        }
    }

    /// The names of the declared top-level members, those of branches and references included, in the order of the
    /// document.
    pub fn members(&self) -> Vec<String> {
        self.graph.names(&self.graph.spread(&[Graph::ROOT]))
    }

    /// Whether the arguments may have members that no schema of the document names: its contract, a pattern of names, or
    /// any schema of the top level lets them.
    pub(crate) fn takes_undeclared(&self) -> bool {
        match self.kind {
            Kind::Input(Undeclared::Allowed) | Kind::Output => true,
            Kind::Input(Undeclared::Refused) => {
                let spread = self.graph.spread(&[Graph::ROOT]);
                self.graph.each(&spread).any(|node| node.others == Others::Allowed || !node.patterns.is_empty())
            }
        }
    }

    /// Whether the document says what its contract takes once its top level says `additionalProperties: false` as well.
    pub(crate) fn is_closed_by_its_contract(&self) -> bool {
        self.closing == Closing::Keyword("additionalProperties")
    }

    /// The schemas of the document that speak of the place `pointer` of a value.
    pub fn locate(&self, pointer: &str) -> Vec<&Value> {
        let spread = self.graph.spread(&self.graph.entries(pointer));
        spread.into_iter().filter_map(|id| self.written(id)).collect()
    }

    /// Those of them that hold of whatever stands there in a valid value.
    pub(crate) fn certain(&self, pointer: &str) -> Vec<&Value> {
        let step = |here: Vec<NodeId>, name: Cow<'_, str>| self.graph.of_member(&self.graph.mandatory(&here), &name);
        let there = segments(pointer).fold(vec![Graph::ROOT], step);
        self.graph.mandatory(&there).into_iter().filter_map(|id| self.written(id)).collect()
    }

    /// Whether every step of `pointer` is a member that a valid value must have.
    pub fn required(&self, pointer: &str) -> bool {
        let mut here = vec![Graph::ROOT];
        for (depth, name) in segments(pointer).enumerate() {
            let certain = self.graph.mandatory(&here);
            let object = depth == 0 && self.kind.is_input()
                || certain
                    .iter()
                    .any(|id| self.written(*id).and_then(|s| s.get("type")).is_some_and(|t| t == "object"));
            if !object || !here.iter().any(|id| self.graph.requires(&self.document, *id, &name)) {
                return false;
            }
            here = self.graph.of_member(&certain, &name);
        }
        true
    }

    /// Whether an object at the place `at` must have the member `name`.
    fn demands(&self, at: &str, name: &str) -> bool {
        self.graph.entries(at).iter().any(|id| self.graph.requires(&self.document, *id, name))
    }

    /// A schema of the graph as it stands in the document.
    fn written(&self, id: NodeId) -> Option<&Value> {
        self.graph.node(id)?.written(&self.document)
    }

    /// Whether `value` fits each of these schemas, taken by themselves.
    fn accepted_all(&self, ids: &[NodeId], value: &Value) -> bool {
        ids.iter().all(|id| self.judges.accept(&self.document, &self.graph, *id, value))
    }

    /// Whether `value` fits one of these schemas, taken by themselves.
    fn accepted(&self, ids: &[NodeId], value: &Value) -> bool {
        ids.iter().any(|id| self.judges.accept(&self.document, &self.graph, *id, value))
    }

    /// Whether what the engine does not look at holds as well: control characters, and lengths of which nothing is said.
    fn is_admissible(&self, value: &Value) -> bool {
        self.controls(value).is_empty() && self.excesses(value).is_empty()
    }

    fn holds(&self, value: &Value) -> bool {
        // A call's arguments are an object, also where the schema forgets to say so.
        (value.is_object() || !self.kind.is_input())
            && self.validator.is_valid(value)
            && self.strangers(value).is_empty()
    }

    /// The top-level members that no schema declares, where the engine was not told to refuse them.
    fn strangers<'v>(&self, value: &'v Value) -> Vec<&'v str> {
        let (Closing::Ours, Value::Object(members)) = (self.closing, value) else { return Vec::new() };
        let spread = self.graph.spread(&[Graph::ROOT]);
        if self.graph.each(&spread).any(|node| node.others == Others::Allowed) {
            return Vec::new();
        }
        members.keys().filter(|name| self.graph.of_named_member(&spread, name).is_empty()).map(String::as_str).collect()
    }

    /// The places of control characters that the schema does not allow there.
    fn controls(&self, value: &Value) -> Vec<String> {
        self.controls_from("", value)
    }

    /// Those in a value that stands at a place.
    fn controls_from(&self, place: &str, value: &Value) -> Vec<String> {
        let mut found = inert::controls(place, value);
        found.retain(|(at, worst)| match worst {
            Control::Break => !self.imported && !self.is_multiline(at),
            Control::Return => !self.imported,
            Control::Other => true,
        });
        found.into_iter().map(|(at, _)| at).collect()
    }

    /// Whether a text at this place may have lines.
    fn takes_lines(&self, at: &str) -> bool {
        self.imported || self.is_multiline(at)
    }

    fn is_multiline(&self, at: &str) -> bool {
        let spread = self.graph.spread(&self.graph.entries(at));
        self.graph.each(&spread).any(|node| node.multiline)
    }
}

impl Kind {
    fn is_input(self) -> bool {
        match self {
            Self::Input(_) => true,
            Self::Output => false,
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("kind", &self.kind).field("document", &self.document).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
