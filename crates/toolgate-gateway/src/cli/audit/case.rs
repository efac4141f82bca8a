//! `toolgate audit case`: a recorded call as a line for `cases/`.

use std::path::Path;

use clap::Args;
use serde_json::{Map, Value, json};
use toolgate::contract::Contract;
use toolgate::gate::Unhidden;
use toolgate::json::{self, Limits};
use toolgate::ledger::Store;
use toolgate::refusal::Code;

use crate::cases;
use crate::cli::failure::FailureCode;
use crate::cli::why::body;
use crate::cli::{Exit, Failure, Output, load};
use crate::config::{Loaded, Purpose};

/// Print a recorded call as a case, for the folder's cases/.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolgate audit shop case 01J8Z3N0W7Q4V5X6Y7Z8A9B0C1 >> shop/cases/seen.jsonl")]
pub(super) struct Case {
    /// The `ref` of a reply
    #[arg(value_name = "REF")]
    reference: String,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// What a case is made of.
struct Made {
    name: String,
    user: Option<String>,
    tool: String,
    sent: Sent,
    expect: Value,
    /// What is to be known of it.
    notes: Vec<String>,
}

/// The arguments of a case.
enum Sent {
    Arguments(Value),
    Text(String),
    /// None are needed.
    Nothing,
}

/// Codes that a call is refused with for what it is. All others rest on what was before or beside it, and a case has
/// neither.
const OF_THE_CALL: [Code; 6] = [
    Code::UnknownTool,
    Code::InvalidJson,
    Code::InvalidArguments,
    Code::Forbidden,
    Code::RuleFailed,
    Code::ApprovalRequired,
];

impl Case {
    pub(super) async fn run(self, dir: &Path, store: &Store, output: &mut Output) -> Result<Exit, Failure> {
        let records = store.history(&self.reference).await?;
        let told: Vec<Value> = records.iter().map(body).collect();
        if told.is_empty() {
            return Err(Failure::new(FailureCode::UnknownRef, "the record tells of no such call")
                .hint(format!("toolgate audit {} tail", dir.display())));
        }
        // What was replayed rests on what its first call rested on.
        let first = told.iter().rev().find_map(|record| text(record, "first_ref"));
        let first = match first.filter(|first| *first != self.reference) {
            Some(first) => store.history(first).await?.iter().map(body).collect(),
            None => Vec::new(),
        };
        let approved = told.iter().chain(&first).any(by_consent);
        let loaded = load(dir, Purpose::Rehearse, output)?;
        let made = match Made::of(&self.reference, &told, approved, &loaded) {
            Ok(made) => made.rehearsed(&loaded).await,
            Err(failure) => Err(failure),
        };
        loaded.finish().await?;
        let made = made?;
        match self.json {
            true => output.json(&json!({ "line": made.line(), "notes": made.notes })),
            false => {
                output.text(&made.line());
                made.notes.iter().for_each(|note| output.note(note));
            }
        }
        output.next(&format!("toolgate check {}", dir.display()));
        Ok(Exit::Ok)
    }
}

impl Made {
    /// The case of the call that these records tell of.
    fn of(reference: &str, told: &[Value], approved: bool, loaded: &Loaded) -> Result<Self, Failure> {
        let kind = |record: &&Value| text(record, "kind").is_some_and(|kind| KINDS.contains(&kind));
        let record = told.iter().rev().find(kind).ok_or_else(|| not_a_case("the record of it tells of no call"))?;
        if stage(record, "decode").is_some() {
            return Err(not_a_case("the message around the call was malformed, and a case holds only a call"));
        }
        let tool = text(record, "tool").unwrap_or_default().to_owned();
        let contract = loaded.gate.contracts().find(|contract| contract.name() == tool);
        let mut notes = Vec::new();
        let sent = sent(record, contract, &mut notes)?;
        let expect = match told.iter().find_map(|record| record.get("would_refuse")) {
            Some(would) => observed(would, &mut notes),
            None => expected(record, approved, &mut notes),
        };
        let user = user(record, loaded, &mut notes);
        let what = expect.get("code").unwrap_or(&expect).as_str().unwrap_or_default().to_owned();
        if contract.is_some() && stage(record, "inform").and_then(|inform| inform.get("facts")).is_some() {
            notes.push(
                "it was decided by what was looked up then; the case looks it up in the data of this folder".into(),
            );
        }
        Ok(Self { name: format!("{what}: {tool}, as recorded in {reference}"), user, tool, sent, expect, notes })
    }

    /// The same, once it was judged as `check` would. What samples made otherwise is not expected any more.
    async fn rehearsed(mut self, loaded: &Loaded) -> Result<Self, Failure> {
        let Some(otherwise) = difference(&self, loaded).await? else { return Ok(self) };
        let whole = self.expect.clone();
        if let Some(code) = whole.get("code") {
            self.expect = match whole.get("rule") {
                Some(rule) => json!({ "code": code, "rule": rule }),
                None => code.clone(),
            };
            if difference(&self, loaded).await?.is_none() {
                self.notes.push("the places of its problems are left out: the folder of today tells others".into());
                return Ok(self);
            }
            self.expect = whole;
        }
        self.notes
            .push(format!("as it stands the case does not hold: the folder of today answers otherwise ({otherwise})"));
        Ok(self)
    }

    /// The line of a file of cases, its members in the order in which people write them.
    fn line(&self) -> String {
        let mut members = vec![("case", json!(self.name).to_string())];
        members.extend(self.user.as_ref().map(|user| ("as", json!(user).to_string())));
        members.push(("tool", json!(self.tool).to_string()));
        match &self.sent {
            Sent::Arguments(arguments) => members.push(("arguments", arguments.to_string())),
            Sent::Text(text) if is_one_line_of_json(text) => members.push(("arguments", text.clone())),
            Sent::Text(text) => members.push(("text", json!(text).to_string())),
            Sent::Nothing => {}
        }
        members.push(("expect", self.expect.to_string()));
        let members: Vec<String> = members.into_iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
        format!("{{{}}}", members.join(", "))
    }
}

/// The kinds of record that tell how a call ended.
const KINDS: [&str; 7] = ["intent", "outcome", "read", "refusal", "replay", "dry_run", "proposal"];

/// How today's folder answers the case otherwise, if it does.
async fn difference(made: &Made, loaded: &Loaded) -> Result<Option<String>, Failure> {
    let findings = cases::tried(&made.line(), loaded).await?;
    Ok(findings.into_iter().next().map(|finding| finding.message))
}

/// The arguments as they were sent, as far as the record holds them.
fn sent(record: &Value, contract: Option<&Contract>, notes: &mut Vec<String>) -> Result<Sent, Failure> {
    if let Some(arguments) = record.get("arguments").filter(|arguments| arguments.is_object()) {
        return shown(arguments, contract, notes).map(Sent::Arguments);
    }
    let raw = record.get("raw").and_then(Value::as_object);
    let flag = |name: &str| raw.and_then(|raw| raw.get(name)) == Some(&json!(true));
    if text(record, "code") == Some("unknown_tool") {
        return Ok(Sent::Nothing);
    }
    if flag("cut") || flag("lossy") {
        return Err(not_kept("the record holds only a part of the text that was sent, so it cannot be sent again"));
    }
    if let Some(value) = raw.and_then(|raw| raw.get("value")) {
        return shown(value, contract, notes).map(Sent::Arguments);
    }
    let sent = record.get("raw").and_then(|raw| raw.get("text").unwrap_or(raw).as_str());
    match sent {
        Some(sent) => {
            if flag("redacted") {
                notes.push("the text is not as it was sent: what is secret in it was replaced".into());
            }
            Ok(Sent::Text(sent.to_owned()))
        }
        None => Err(not_kept("the record does not hold what was sent, only a digest of it")),
    }
}

/// Recorded arguments, with samples in place of what is hidden in them.
fn shown(value: &Value, contract: Option<&Contract>, notes: &mut Vec<String>) -> Result<Value, Failure> {
    let Some(contract) = contract else { return Ok(value.clone()) };
    let Unhidden { value, places, left } = Unhidden::of(value, contract.input());
    if let Some(place) = left.first() {
        return Err(not_kept(format!("the record hides what stood at {place}, and no sample of it can be made")));
    }
    if !places.is_empty() {
        notes.push(format!("the record hides what stood at {}: samples stand there", places.join(", ")));
    }
    Ok(value)
}

/// What became of the call, as far as a case can say it.
fn expected(record: &Value, approved: bool, notes: &mut Vec<String>) -> Value {
    let code = match text(record, "kind") {
        Some("proposal") => Some("approval_required"),
        _ if approved => {
            notes.push("it was permitted by an approval; a case has none, and is asked for one".into());
            Some("approval_required")
        }
        _ => text(record, "code"),
    };
    match code {
        None => json!("ok"),
        Some(code) if !Code::parse(code).is_some_and(|code| OF_THE_CALL.contains(&code)) => {
            notes.push(format!(
                "it ended as {code}, which rests on what was before or beside it; the case is the call alone"
            ));
            json!("ok")
        }
        Some(code) => {
            let mut expect = Map::from_iter([("code".to_owned(), json!(code))]);
            if let Some(rule) = text(record, "rule") {
                expect.insert("rule".into(), json!(rule));
            }
            let problems = record.get("problems").and_then(Value::as_array).into_iter().flatten();
            let problems: Vec<Value> =
                problems.map(|problem| json!({ "at": problem["at"], "code": problem["code"] })).collect();
            if !problems.is_empty() {
                expect.insert("problems".into(), problems.into());
            }
            if expect.len() == 1 { json!(code) } else { Value::Object(expect) }
        }
    }
}

/// What policies would have made of a call that went on because they were only observed: a case is judged by policies
/// that hold.
fn observed(would: &Value, notes: &mut Vec<String>) -> Value {
    notes.push("it went on because policies were only observed; the case says what they would have refused".into());
    let code = would.get("code").cloned().unwrap_or_default();
    match would.get("rule") {
        Some(rule) => json!({ "code": code, "rule": rule }),
        None => code,
    }
}

/// Whether somebody's approval permitted it.
fn by_consent(record: &Value) -> bool {
    stage(record, "permit").is_some_and(|permit| permit.get("approval").is_some())
}

/// Who asked, where the folder lists them.
fn user(record: &Value, loaded: &Loaded, notes: &mut Vec<String>) -> Option<String> {
    let subject = record.pointer("/principal/subject").and_then(Value::as_str)?;
    let named = format!("{subject}@{}", text(record, "tenant")?);
    match loaded.identity.session(Some(&named)) {
        Ok(_) => Some(named),
        Err(_) => {
            notes.push("the folder does not list who asked: the case is of its default user".into());
            None
        }
    }
}

fn text<'r>(record: &'r Value, name: &str) -> Option<&'r str> {
    record.get(name).and_then(Value::as_str)
}

/// What a stage told, the last time that it was passed.
fn stage<'r>(record: &'r Value, name: &str) -> Option<&'r Value> {
    let stages = record.get("stages").and_then(Value::as_array)?;
    stages.iter().rev().find(|stage| text(stage, "stage") == Some(name))
}

/// Whether a text can stand in a line as the JSON that it is.
fn is_one_line_of_json(text: &str) -> bool {
    !text.contains(['\n', '\r']) && json::read(text.as_bytes(), &Limits::default()).is_ok()
}

fn not_kept(why: impl Into<String>) -> Failure {
    Failure::new(FailureCode::NotKept, why)
}

fn not_a_case(why: impl Into<String>) -> Failure {
    Failure::new(FailureCode::NotACase, why)
}
