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

use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::contract::{Contract, names};
use crate::fields::nearest;
use crate::json::{self, Digest, Flaw, Limits, canonical};
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
/// (verbatim): they are the ones that were sent; nothing was coerced, repaired, dropped or defaulted. A `null` of strict
/// mode says that nothing was sent.
#[derive(Clone, Debug)]
pub struct EffectiveArguments {
    tool: String,
    members: Map<String, Value>,
    masked: Value,
    canonical: String,
    digest: Digest,
    absent: Vec<String>,
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

    /// Takes a contract, unless its name, or a short form by which a dialect shows it, is taken. What it says of other tools, such as the tool of a fact, is not
    /// looked at: admission asks for none of it.
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
        let names = || self.contracts.keys().map(String::as_str);
        let name = self.short_forms.get(&call.tool).unwrap_or(&call.tool);
        let contract = self.contracts.get(name).ok_or_else(|| unknown_tool(&call.tool, names()))?;
        check(contract, call, &self.limits)
    }
}

impl EffectiveArguments {
    /// The name of the tool, also where it was called by a short form of it.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The arguments, by name.
    pub fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    /// Their one spelling, as JSON text.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// `args_digest`: the digest of the canonical `[tool, arguments]`, which makes two calls equal.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The arguments for logs and records, without what the contract marks as secret or personal.
    pub fn masked(&self) -> &Value {
        &self.masked
    }

    /// The places of the members that strict mode had the model write `null` for, because they are left out.
    pub fn absent(&self) -> &[String] {
        &self.absent
    }

    pub(crate) fn into_parts(self) -> (Map<String, Value>, Value) {
        (self.members, self.masked)
    }
}

/// Holds a call to the contract of its tool.
pub(crate) fn check(contract: &Contract, call: &Call, limits: &Limits) -> Result<EffectiveArguments, Refusal> {
    if call.operation.is_some() && !contract.once.caller {
        let message = "This tool takes no operation id: its contract does not say `caller = true`.";
        return Err(Refusal::before(Code::InvalidCall).message(message));
    }
    let members = json::read_arguments(&call.arguments, limits).map_err(|flaw| not_json(contract, &flaw))?;
    let mut arguments = Value::Object(members);
    let absent = if call.nulls_for_absent { contract.input.absent_for_null(&mut arguments) } else { Vec::new() };
    let problems = contract.input.problems(&arguments);
    if !problems.list.is_empty() {
        return Err(not_fitting(contract, problems));
    }
    let (name, effective) = (canonical(&json!(contract.name)), canonical(&arguments));
    let digest = Digest::of_all(&[b"[", name.as_bytes(), b",", effective.as_bytes(), b"]"]);
    let masked = contract.input.masked(&arguments);
    // `read_arguments` gives an object; the match only takes it out of the value again.
    let Value::Object(members) = arguments else { return Err(Refusal::before(Code::InvalidJson)) };
    Ok(EffectiveArguments { tool: contract.name.clone(), members, masked, canonical: effective, digest, absent })
}

/// The same answer for a tool that is hidden and for one that is not there: hints come from visible tools alone.
pub(crate) fn unknown_tool<'a>(name: &str, visible: impl Iterator<Item = &'a str> + Clone) -> Refusal {
    let refusal = Refusal::before(Code::UnknownTool);
    match nearest(name, visible.clone()).or_else(|| written_otherwise(name, visible)) {
        Some(hint) => refusal.message(format!("There is no tool of this name: {hint}")),
        None => refusal,
    }
}

/// `did you mean X?` for the one tool whose name is this one in other case or with other separators, or with a prefix
/// more or less, such as that of a server.
fn written_otherwise<'a>(name: &str, visible: impl Iterator<Item = &'a str>) -> Option<String> {
    let is_tail = |whole: &str, tail: &str| {
        !tail.is_empty() && whole.strip_suffix(tail).is_some_and(|prefix| prefix.ends_with(['.', '_', '-', ':', '/']))
    };
    let letters = |name: &str| -> String {
        name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let meant = letters(name);
    let is_alike = |known: &&str| is_tail(known, name) || is_tail(name, known) || letters(known) == meant;
    let mut alike = visible.filter(is_alike);
    match (alike.next(), alike.next()) {
        (Some(known), None) => Some(format!("did you mean {known}?")),
        _ => None,
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
