//! One case: from its line to the line that answers it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use data_encoding::BASE64;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolgate::admission::Admission;
use toolgate::contract::Contract;
use toolgate::fields::nearest;
use toolgate::json::{self, Flaw, Limits};
use toolgate::schema::Problem;
use toolgate::wire::{Dialect, Proposed, WireFault};
use toolgate::{Call, Refusal};

/// Bytes of contracts whose compiled form is kept.
const KEPT: usize = 64 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Answers cases. Compiling a contract costs far more than a call, so what was compiled is kept by its text.
pub(super) struct Cases {
    compiled: HashMap<Vec<u8>, Rc<Compiled>>,
    kept: usize,
}

type Compiled = Result<Admission, Vec<Problem>>;

/// A line that is a case.
struct Case<'a> {
    contracts: Contracts<'a>,
    form: Form,
    input: Cow<'a, [u8]>,
}

/// The raw text of the contracts.
#[derive(Clone, Copy)]
enum Contracts<'a> {
    One(&'a [u8]),
    List(&'a [u8]),
}

/// What an input is.
#[derive(Clone, Copy)]
enum Form {
    /// The arguments of a call of the one contract.
    Arguments,
    /// A message.
    Message(Dialect),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Calls { id: Value, calls: Vec<Judged> },
    Wrong { id: Value, error: Wrong },
}

/// What admission says of one call.
#[derive(Serialize)]
#[serde(untagged)]
enum Judged {
    Admitted { call_id: String, tool: String, arguments: Box<RawValue>, digest: String, leniencies: NoLeniencies },
    Refused { call_id: String, error: Refusal },
}

/// The leniencies that were used: contracts have none yet, so arguments are always taken as they are.
type NoLeniencies = [String; 0];

/// What is wrong with a case, so that no call of it was judged.
#[derive(Serialize)]
struct Wrong {
    code: WrongCode,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Problem>,
}

#[derive(Clone, Copy, Serialize)]
enum WrongCode {
    /// The line is no case.
    #[serde(rename = "invalid_line")]
    Line,
    /// A contract has problems.
    #[serde(rename = "invalid_contract")]
    Contract,
    /// The input is no message of its dialect.
    #[serde(rename = "broken_message")]
    Message,
}

/// The answer to a line of more than `most` bytes.
pub(super) fn too_long(most: usize) -> String {
    let message = format!("a line of more than {} MB", most / (1024 * 1024));
    Answer::Wrong { id: Value::Null, error: Wrong::line(message, "no call of it was judged") }.text()
}

impl Cases {
    pub(super) fn new() -> Self {
        Self { compiled: HashMap::new(), kept: 0 }
    }

    /// The answer to one line, as one line.
    pub(super) fn answer(&mut self, line: &[u8]) -> String {
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        let (id, case) = Case::read(line);
        match case.and_then(|case| self.judge(&case)) {
            Ok(calls) => Answer::Calls { id, calls },
            Err(error) => Answer::Wrong { id, error },
        }
        .text()
    }

    fn judge(&mut self, case: &Case<'_>) -> Result<Vec<Judged>, Wrong> {
        let compiled = self.compile(case.contracts);
        let admission = compiled.as_ref().as_ref().map_err(|problems| Wrong::contract(problems.clone()))?;
        let calls = match case.form {
            Form::Arguments => vec![Proposed::Call(arguments_alone(admission, &case.input)?)],
            Form::Message(dialect) => {
                let limits = Limits { size: case.input.len(), ..Limits::default() };
                let turn = dialect.decode(&case.input, &limits).map_err(|fault| Wrong::message(dialect, &fault))?;
                turn.open().0
            }
        };
        Ok(calls.into_iter().map(|call| judged(admission, call)).collect())
    }

    fn compile(&mut self, contracts: Contracts<'_>) -> Rc<Compiled> {
        // A list and a contract are never written alike: their first bytes differ, or both are wrong.
        let (Contracts::One(text) | Contracts::List(text)) = contracts;
        if let Some(known) = self.compiled.get(text) {
            return Rc::clone(known);
        }
        let compiled = Rc::new(contracts.compile());
        if self.kept + text.len() > KEPT {
            self.compiled.clear();
            self.kept = 0;
        }
        self.kept += text.len();
        self.compiled.insert(text.to_vec(), Rc::clone(&compiled));
        compiled
    }
}

fn arguments_alone(admission: &Admission, input: &[u8]) -> Result<Call, Wrong> {
    let mut contracts = admission.contracts();
    match (contracts.next(), contracts.next()) {
        (Some(contract), None) => Ok(Call::new("", contract.name(), input)),
        _ => Err(Wrong::line(
            "arguments alone do not say which of these contracts they are for",
            "give one contract, or a message of a dialect that names the tool",
        )),
    }
}

fn judged(admission: &Admission, proposed: Proposed) -> Judged {
    let call = match proposed {
        Proposed::Call(call) => call,
        Proposed::Broken(broken) => return Judged::Refused { call_id: broken.call_id, error: broken.refusal },
    };
    let call_id = call.id().to_owned();
    match admission.admit(&call) {
        Ok(arguments) => Judged::Admitted {
            call_id,
            tool: arguments.tool().to_owned(),
            digest: arguments.digest().hex(),
            leniencies: [],
            arguments: RawValue::from_string(arguments.canonical().to_owned()).unwrap_or_default(),
        },
        Err(error) => Judged::Refused { call_id, error },
    }
}

impl<'a> Case<'a> {
    /// The id of a line, as far as it has one, and the case or what is wrong with it.
    fn read(line: &'a [u8]) -> (Value, Result<Self, Wrong>) {
        let members = match json::members(line, &bounds(line)) {
            Ok(members) => members,
            Err(flaw) => return (Value::Null, Err(Wrong::flawed("", &flaw))),
        };
        let get = |wanted: &str| members.iter().find(|(name, _)| name == wanted).map(|(_, raw)| *raw);
        match get("id").map_or(Ok(Value::Null), |raw| value("id", raw)) {
            Ok(id) => (id, Self::of(get)),
            Err(wrong) => (Value::Null, Err(wrong)),
        }
    }

    fn of(get: impl Fn(&str) -> Option<&'a [u8]>) -> Result<Self, Wrong> {
        let contracts = match (get("contract"), get("contracts")) {
            (Some(one), None) => Contracts::One(one),
            (None, Some(list)) => Contracts::List(list),
            (None, None) => return Err(Wrong::line("a case without a contract", "add `contract` or `contracts`")),
            (Some(_), Some(_)) => {
                return Err(Wrong::line("both `contract` and `contracts`", "keep one of the two"));
            }
        };
        let form = get("dialect").map_or(Ok(Form::Arguments), form)?;
        let input = match (get("input"), get("input_base64")) {
            (Some(raw), None) if raw.starts_with(b"\"") => Cow::Owned(string("input", raw)?.into_bytes()),
            (Some(raw), None) => Cow::Borrowed(raw),
            (None, Some(raw)) => {
                let text = string("input_base64", raw)?;
                let bytes = BASE64.decode(text.as_bytes());
                Cow::Owned(bytes.map_err(|_| Wrong::line("`input_base64` is no base64", "write RFC 4648, section 4"))?)
            }
            (None, None) => return Err(Wrong::line("a case without an input", "add `input` or `input_base64`")),
            (Some(_), Some(_)) => {
                return Err(Wrong::line("both `input` and `input_base64`", "keep one of the two"));
            }
        };
        Ok(Self { contracts, form, input })
    }
}

impl Contracts<'_> {
    /// The compiled contracts, or every problem of them. Places are told from the member's value on.
    fn compile(self) -> Compiled {
        let mut admission = Admission::new(Limits::default());
        let mut problems = Vec::new();
        match self {
            Self::One(text) => compile(text, "", &mut admission, &mut problems),
            Self::List(text) => match json::items(text, &bounds(text)) {
                Ok(items) => {
                    for (index, text) in items.into_iter().enumerate() {
                        compile(text, &format!("/{index}"), &mut admission, &mut problems);
                    }
                }
                Err(flaw) => problems.push(no_json("", &flaw)),
            },
        }
        if problems.is_empty() { Ok(admission) } else { Err(problems) }
    }
}

fn compile(text: &[u8], at: &str, admission: &mut Admission, problems: &mut Vec<Problem>) {
    let mut keys = match json::read(text, &bounds(text)) {
        Ok(Value::Object(keys)) => keys,
        Ok(_) => {
            problems.push(problem(at, "type", "a contract is an object"));
            return;
        }
        Err(flaw) => {
            problems.push(no_json(at, &flaw));
            return;
        }
    };
    let name = keys.get("name").and_then(Value::as_str).map(str::to_owned);
    if !keys.contains_key("name") {
        problems.push(problem(&format!("{at}/name"), "required", "`name` is missing"));
    }
    describe(&mut keys);
    // Without a name of its own, what else is wrong with the contract is told all the same.
    match Contract::parse(name.as_deref().unwrap_or("unnamed"), &Value::Object(keys)) {
        Ok(contract) => {
            if admission.add(contract).is_err() {
                problems.push(problem(&format!("{at}/name"), "unique", "two tools have this name"));
            }
        }
        Err(wrong) => {
            problems.extend(wrong.into_iter().map(|p| Problem { at: format!("{at}{}", p.at), ..p }));
        }
    }
}

/// What a tool is for is told to models, and no model is here.
fn describe(keys: &mut Map<String, Value>) {
    keys.entry("description").or_insert_with(|| Value::from("Not described: admission alone."));
}

fn form(raw: &[u8]) -> Result<Form, Wrong> {
    const ARGUMENTS: &str = "arguments";
    let name = string("dialect", raw)?;
    if name == ARGUMENTS {
        return Ok(Form::Arguments);
    }
    let names = || std::iter::once(ARGUMENTS).chain(Dialect::ALL.into_iter().map(Dialect::as_str));
    Dialect::parse(&name).map(Form::Message).ok_or_else(|| {
        let known = || format!("known: {}", names().collect::<Vec<_>>().join(", "));
        Wrong::line("there is no such dialect", nearest(&name, names()).unwrap_or_else(known))
    })
}

fn string(member: &str, raw: &[u8]) -> Result<String, Wrong> {
    match value(member, raw)? {
        Value::String(text) => Ok(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(Wrong::line(format!("`{member}` is not a string"), "write it as a string"))
        }
    }
}

fn value(member: &str, raw: &[u8]) -> Result<Value, Wrong> {
    json::read(raw, &bounds(raw)).map_err(|flaw| Wrong::flawed(&format!("`{member}`: "), &flaw))
}

/// A line is bounded before it is read, and so is whatever stands in it.
fn bounds(text: &[u8]) -> Limits {
    Limits { size: text.len(), depth: usize::MAX, members: usize::MAX }
}

fn no_json(at: &str, flaw: &Flaw) -> Problem {
    let hint = flaw.hint().map(str::to_owned);
    Problem { hint, ..problem(&format!("{at}{}", flaw.pointer), flaw.code.as_str(), &flaw.to_string()) }
}

fn problem(at: &str, code: &str, message: &str) -> Problem {
    Problem { at: at.to_owned(), code: code.to_owned(), message: message.to_owned(), hint: None }
}

impl Wrong {
    fn line(message: impl Into<String>, hint: impl Into<String>) -> Self {
        let hint = Some(hint.into());
        Self { code: WrongCode::Line, message: message.into(), hint, problems: Vec::new() }
    }

    fn flawed(what: &str, flaw: &Flaw) -> Self {
        Self::line(format!("{what}{flaw}"), flaw.hint().unwrap_or("write one JSON object in a line"))
    }

    fn contract(problems: Vec<Problem>) -> Self {
        let plural = if problems.len() == 1 { "problem" } else { "problems" };
        let message = format!("{} {plural} in the contract", problems.len());
        Self { code: WrongCode::Contract, message, hint: None, problems }
    }

    fn message(dialect: Dialect, fault: &WireFault) -> Self {
        let message =
            format!("no message of {dialect}: {} at line {} column {}", fault.message, fault.line, fault.column);
        let hint = Some(fault.hint.to_string());
        Self { code: WrongCode::Message, message, hint, problems: Vec::new() }
    }
}

impl Answer {
    fn text(&self) -> String {
        // An answer is made of strings, numbers and JSON text, which always print.
        serde_json::to_string(self).unwrap_or_default()
    }
}
