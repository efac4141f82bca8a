//! Admission alone: whether a call keeps the contract of its tool, without policies, a session or a store.
//!
//! A gate asks the same questions in its first stage, about the tools that a session may see. Here every contract is
//! visible, and nothing can run: an answer says only that the call is one that a gate would go on with.
//!
//! ```
//! use serde_json::json;
//! use toolgate::Call;
//! use toolgate::admission::Admission;
//! use toolgate::contract::Contract;
//! use toolgate::json::Limits;
//!
//! let keys = json!({
//!     "description": "Adds two whole numbers.",
//!     "effect": "read",
//!     "input": { "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } }, "required": ["a", "b"] },
//! });
//! let mut admission = Admission::new(Limits::default());
//! admission.add(Contract::parse("add", &keys).unwrap()).unwrap();
//! let arguments = admission.admit(&Call::new("call_1", "add", r#"{"b": 2.0, "a": 1}"#)).unwrap();
//! assert_eq!(arguments.canonical(), r#"{"a":1,"b":2}"#);
//! let refusal = admission.admit(&Call::new("call_2", "add", r#"{"a": "1"}"#)).unwrap_err();
//! assert_eq!(refusal.problem_list().len(), 2);
//! ```

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::call::Call;
use crate::contract::{Contract, names};
use crate::json::{self, Digest, Flaw, Limits, canonical_pair};
use crate::leniency::{self, Leniency, Used};
use crate::nearness::{nearest_name, only_meant};
use crate::refusal::{Code, Refusal};
use crate::schema::{Problem, Problems};

/// Contracts, and the bounds of argument texts.
#[derive(Debug)]
pub struct Admission {
    contracts: BTreeMap<String, Contract>,
    /// Whose each short form is. INVARIANT (one tool a name): none is the name of a contract.
    short_forms: BTreeMap<String, String>,
    limits: Limits,
}

/// Arguments that keep the schema of their tool: what policies, approvers, digests and backends see. INVARIANT
/// (verbatim): they are the ones that were sent, but where the contract allows otherwise by name. Each place at which
/// they differ is in `leniencies`; nothing else was coerced, repaired, dropped or defaulted. A `null` of strict mode
/// says that nothing was sent, and its place is in `absent`.
#[derive(Clone, Debug)]
pub struct EffectiveArguments {
    tool: String,
    members: Map<String, Value>,
    /// `None` where the contract marks nothing: then there is nothing to mask.
    masked: Option<Value>,
    /// The canonical `[tool, arguments]`.
    identity: String,
    /// Where the arguments begin in it.
    start: usize,
    digest: Digest,
    leniencies: Vec<Used>,
    absent: Vec<String>,
}

/// What is left of effective arguments once they are admitted.
pub(crate) struct Parts {
    pub(crate) members: Map<String, Value>,
    pub(crate) masked: Value,
    pub(crate) canonical: String,
    pub(crate) leniencies: Vec<Used>,
    pub(crate) absent: Vec<String>,
}

/// How a call names its tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// By a name that the tool has.
    Exact,
    /// By one that is near (`near_tool_name`), spelled so.
    Near(String),
}

/// A name that two contracts have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two tools have the name `{0}`")]
pub struct NameTaken(pub String);

impl Admission {
    /// No contracts yet. `limits` bounds the text of a call's arguments.
    pub fn new(limits: Limits) -> Self {
        Self { contracts: BTreeMap::new(), short_forms: BTreeMap::new(), limits }
    }

    /// Takes a contract, unless its name, or a short form by which a dialect shows it, is taken. What it says of other
    /// tools, such as the tool of a fact, is not looked at: admission asks for none of it.
    pub fn add(&mut self, contract: Contract) -> Result<(), NameTaken> {
        let forms = names::short_forms(&contract.name);
        let taken = self.contracts.contains_key(&contract.name) || self.short_forms.contains_key(&contract.name);
        if taken || forms.iter().any(|form| self.contracts.contains_key(form)) {
            return Err(NameTaken(contract.name));
        }
        self.short_forms.extend(forms.into_iter().map(|form| (form, contract.name.clone())));
        self.contracts.insert(contract.name.clone(), contract);
        Ok(())
    }

    /// The contracts, in the order of their names.
    pub fn contracts(&self) -> impl Iterator<Item = &Contract> {
        self.contracts.values()
    }

    /// The effective arguments of a call that its contract admits, or why it does not.
    pub fn admit(&self, call: &Call) -> Result<EffectiveArguments, Refusal> {
        let name = self.short_forms.get(&call.tool).unwrap_or(&call.tool);
        match self.contracts.get(name) {
            Some(contract) => check(contract, call, &Naming::Exact, &self.limits),
            None => {
                let contract = near_tool(&call.tool, self.contracts.values())
                    .ok_or_else(|| unknown_tool(&call.tool, self.contracts.values().map(Contract::name)))?;
                check(contract, call, &Naming::Near(call.tool.clone()), &self.limits)
            }
        }
    }
}

impl EffectiveArguments {
    /// The name of the tool that is called: another than the call's own only where that was a short form of it, or by
    /// `near_tool_name`.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The arguments, by name.
    pub fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    /// Their one spelling, as JSON text.
    pub fn canonical(&self) -> &str {
        let arguments = self.identity.get(self.start..).and_then(|rest| rest.strip_suffix(']'));
        arguments.unwrap_or_default()
    }

    /// `args_digest`: the digest of the canonical `[tool, arguments]`, which makes two calls equal.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The arguments for logs and records, without what the contract marks as secret or personal.
    pub fn masked(&self) -> Value {
        self.masked.clone().unwrap_or_else(|| Value::Object(self.members.clone()))
    }

    /// Where they are other than they were sent, and by what of the contract: what stands around the arguments first,
    /// then by place, and the defaults that were filled in.
    pub fn leniencies(&self) -> &[Used] {
        &self.leniencies
    }

    /// The places of the members that strict mode had the model write `null` for, because they are left out.
    pub fn absent(&self) -> &[String] {
        &self.absent
    }

    pub(crate) fn into_parts(self) -> Parts {
        let mut canonical = self.identity;
        canonical.pop();
        canonical.drain(..self.start.min(canonical.len()));
        let masked = self.masked.unwrap_or_else(|| Value::Object(self.members.clone()));
        Parts { members: self.members, masked, canonical, leniencies: self.leniencies, absent: self.absent }
    }
}

/// Holds a call to the contract of its tool: from the text to a value, to one that fits, to the effective arguments.
pub(crate) fn check(
    contract: &Contract,
    call: &Call,
    naming: &Naming,
    limits: &Limits,
) -> Result<EffectiveArguments, Refusal> {
    if call.operation.is_some() && !contract.once.caller {
        let message = "This tool takes no operation id: its contract does not say `caller = true`.";
        return Err(Refusal::before(Code::InvalidCall).message(message));
    }
    let limits = contract.arguments.over(*limits);
    let mut used = Vec::new();
    match naming {
        Naming::Exact => {}
        Naming::Near(_) => used.push(Used::of_the_call(Leniency::NearToolName)),
    }
    let members = read(contract, &call.arguments, &limits, &mut used)?;
    let mut arguments = Value::Object(members);
    let absent = if call.nulls_for_absent { contract.input.absent_for_null(&mut arguments) } else { Vec::new() };
    let arguments = fitting(contract, arguments, &limits, &mut used)?;
    let (arguments, filled) = contract.filled(arguments);
    used.extend(filled);
    effective(contract, arguments, used, absent)
}

/// The arguments in a text: as strictly as ever, or in what a leniency finds around them.
fn read(
    contract: &Contract,
    text: &[u8],
    limits: &Limits,
    used: &mut Vec<Used>,
) -> Result<Map<String, Value>, Refusal> {
    let flaw = match json::read_arguments(text, limits) {
        Ok(members) => return Ok(members),
        Err(flaw) => flaw,
    };
    let (members, by) =
        leniency::text::read(text, contract.lenient.everywhere, limits).ok_or_else(|| not_json(contract, &flaw))?;
    used.extend(by);
    Ok(members)
}

/// Arguments that keep the schema: as they are, or with what leniencies make of the places that do not.
fn fitting(contract: &Contract, arguments: Value, limits: &Limits, used: &mut Vec<Used>) -> Result<Value, Refusal> {
    let input = &contract.input;
    let arguments = match contract.lenient.is_empty() {
        true => arguments,
        false if input.is_valid(&arguments) => return Ok(arguments),
        false => {
            let (arguments, by) = input.lenient(arguments, contract.lenient, limits);
            used.extend(by);
            arguments
        }
    };
    let problems = input.problems(&arguments);
    if problems.is_empty() { Ok(arguments) } else { Err(not_fitting(contract, problems)) }
}

/// What fits, in its one spelling and with its digest.
fn effective(
    contract: &Contract,
    arguments: Value,
    leniencies: Vec<Used>,
    absent: Vec<String>,
) -> Result<EffectiveArguments, Refusal> {
    let (identity, start) = canonical_pair(&contract.name, &arguments);
    let digest = Digest::of(identity.as_bytes());
    let masked = contract.input.has_marks().then(|| contract.input.masked(&arguments));
    // `read` gives an object; the match only takes it out of the value again.
    let Value::Object(members) = arguments else { return Err(Refusal::before(Code::InvalidJson)) };
    Ok(EffectiveArguments { tool: contract.name.clone(), members, masked, identity, start, digest, leniencies, absent })
}

/// The tool whose name is nearly `name`, where the tool allows that. Every visible tool is looked at, also those that
/// do not: a name that could be of two tools is of none.
pub(crate) fn near_tool<'a>(name: &str, visible: impl Iterator<Item = &'a Contract> + Clone) -> Option<&'a Contract> {
    let meant = only_meant(name, visible.clone().map(Contract::name))?;
    let mut allowing = visible.filter(|contract| contract.name == meant);
    allowing.next().filter(|contract| contract.lenient.everywhere.has(Leniency::NearToolName))
}

/// The same answer for a tool that is hidden and for one that is not there: hints come from visible tools alone.
pub(crate) fn unknown_tool<'a>(name: &str, visible: impl Iterator<Item = &'a str> + Clone) -> Refusal {
    let refusal = Refusal::before(Code::UnknownTool);
    match nearest_name(name, visible) {
        Some(hint) => refusal.message(format!("There is no tool of this name: {hint}")),
        None => refusal,
    }
}

fn not_json(contract: &Contract, flaw: &Flaw) -> Refusal {
    let problem = Problem {
        at: flaw.pointer.clone(),
        code: flaw.code.as_str().to_owned(),
        message: flaw.to_string(),
        hint: flaw.hint().map(str::to_owned),
    };
    let message = format!("The arguments of {} are not strict JSON: {flaw}.", contract.name);
    Refusal::before(Code::InvalidJson).message(message).problems(vec![problem], 0)
}

fn not_fitting(contract: &Contract, problems: Problems) -> Refusal {
    let count = problems.list.len() + problems.more;
    let plural = if count == 1 { "problem" } else { "problems" };
    let message = format!("{count} {plural} in the arguments of {}.", contract.name);
    Refusal::before(Code::InvalidArguments).message(message).problems(problems.list, problems.more)
}
