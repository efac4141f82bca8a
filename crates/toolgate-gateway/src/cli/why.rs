//! `toolgate why`: what really happened to a call, for the operator.

use clap::Args;
use serde_json::Value;
use toolgate::audit::Sealed;

use super::failure::FailureCode;
use super::folder::Folder;
use super::{Exit, Failure, Output, open_store};

/// Tell what really happened to a call.
#[derive(Debug, Args)]
#[command(
    override_usage = "toolgate why [OPTIONS] [DIR] REF",
    after_help = "Example:\n  toolgate why shop 01J8Z3N0W7Q4V5X6Y7Z8A9B0C1"
)]
pub(super) struct Why {
    /// The gate folder
    dir: Option<String>,
    /// The `ref` of a reply
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Why {
    pub(super) async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let (Folder { path, .. }, [reference, _]) = Folder::of_words([self.dir, self.reference])?;
        let reference = reference.ok_or_else(|| Failure::usage("the `ref` of a reply is missing"))?;
        let records = open_store(&path, output)?.history(&reference).await?;
        if records.is_empty() {
            return Err(Failure::new(FailureCode::UnknownRef, "the record tells of no such call")
                .hint(format!("toolgate audit {} tail", path.display())));
        }
        if self.json {
            output.json(&records.iter().map(body).collect::<Vec<Value>>());
        } else {
            records.iter().for_each(|record| show(record, output));
        }
        let code = records.iter().rev().find_map(|record| Some(body(record).get("code")?.as_str()?.to_owned()));
        if let Some(code) = code {
            output.next(&format!("toolgate explain {code}"));
        }
        Ok(Exit::Ok)
    }
}

/// What a record tells, as JSON.
pub(super) fn body(record: &Sealed) -> Value {
    toolgate::json::read(record.body.as_bytes(), &toolgate::json::Limits { size: usize::MAX, ..Default::default() })
        .unwrap_or(Value::Null)
}

/// The key under which the backend was asked for the action, as a record tells it.
pub(super) fn sent_as(body: &Value) -> Option<&str> {
    let stages = body.get("stages").and_then(Value::as_array).into_iter().flatten();
    let told = stages.rev().find_map(|stage| stage.get("idempotency_key"));
    told.or_else(|| body.get("idempotency_key"))?.as_str()
}

/// A record for people: a line on what it is, and one for each stage.
pub(super) fn show(record: &Sealed, output: &mut Output) {
    let body = body(record);
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or("-").to_owned();
    let at = body.get("at").and_then(Value::as_u64).map(|at| toolgate::clock::Millis(at).to_string());
    let principal = body.pointer("/principal/subject").and_then(Value::as_str).unwrap_or("-").to_owned();
    let who = format!("{principal}@{}", text("tenant"));
    let mut line = format!(
        "#{} {} {} {} by {who} ref {}",
        record.seq,
        at.unwrap_or_default(),
        text("kind"),
        text("tool"),
        record.reference
    );
    for name in ["code", "rule", "effect", "approval", "decision", "state", "first_ref"] {
        if let Some(value) = body.get(name) {
            line.push_str(&format!(" {name}={}", value.as_str().unwrap_or("?")));
        }
    }
    if let Some(would) = body.pointer("/would_refuse/code").and_then(Value::as_str) {
        line.push_str(&format!(" would_refuse={would}"));
    }
    output.line(&line);
    if let Some(sent_as) = sent_as(&body) {
        output.line(&format!("    sent as  {sent_as}"));
    }
    if let Some(why) = body.get("why").and_then(Value::as_str) {
        output.line(&format!("    why      {why}"));
    }
    for stage in body.get("stages").and_then(Value::as_array).into_iter().flatten() {
        let name = stage.get("stage").and_then(Value::as_str).unwrap_or("-");
        output.line(&format!("    {name:8} {stage}"));
    }
}
