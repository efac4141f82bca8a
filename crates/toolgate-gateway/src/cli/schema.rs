//! `toolgate schema`: the JSON Schemas of what this program reads and answers.

use clap::Args;
use serde_json::Value;
use toolgate::fields::nearest;
use toolgate::json::{self, Limits};

use super::failure::FailureCode;
use super::{Exit, Failure, Output};

/// Print the JSON Schema of a file, or of the answer of a command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  toolgate schema contract\n  toolgate schema output approvals list")]
pub(super) struct Schema {
    /// `contract`, `config`, or `output` and a command
    #[arg(required = true, value_name = "NAME")]
    name: Vec<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// The JSON Schema of a contract file.
pub(super) const CONTRACT: &str = include_str!("../../../../schemas/contract.json");

/// Declares the published schemas: of files by their name, of answers by the words of the command.
macro_rules! published {
    ($($words:literal = $file:literal,)+) => {
        /// What is published, by its words.
        pub(super) const PUBLISHED: &[(&str, &str)] =
            &[$(($words, include_str!(concat!("../../../../schemas/", $file, ".json"))),)+];
    };
}

published! {
    "contract" = "contract",
    "config" = "config",
    "output admit" = "output/admit",
    "output approvals approve" = "output/approvals-approve",
    "output approvals deny" = "output/approvals-deny",
    "output approvals edit" = "output/approvals-edit",
    "output approvals grant" = "output/approvals-grant",
    "output approvals grants" = "output/approvals-grants",
    "output approvals list" = "output/approvals-list",
    "output approvals revoke" = "output/approvals-revoke",
    "output approvals show" = "output/approvals-show",
    "output audit case" = "output/audit-case",
    "output audit erase" = "output/audit-erase",
    "output audit export" = "output/audit-export",
    "output audit key" = "output/audit-key",
    "output audit observed" = "output/audit-observed",
    "output audit replay" = "output/audit-replay",
    "output audit tail" = "output/audit-tail",
    "output audit verify" = "output/audit-verify",
    "output call" = "output/call",
    "output check" = "output/check",
    "output deny" = "output/deny",
    "output completions" = "output/completions",
    "output exec" = "output/exec",
    "output explain" = "output/explain",
    "output health" = "output/health",
    "output help" = "output/help",
    "output init" = "output/init",
    "output ledger list" = "output/ledger-list",
    "output ledger resolve" = "output/ledger-resolve",
    "output ledger show" = "output/ledger-show",
    "output man" = "output/man",
    "output schema" = "output/schema",
    "output serve" = "output/serve",
    "output token list" = "output/token-list",
    "output token new" = "output/token-new",
    "output token revoke" = "output/token-revoke",
    "output tools" = "output/tools",
    "output why" = "output/why",
}

impl Schema {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let name = self.name.join(" ");
        let (_, text) = PUBLISHED.iter().find(|(known, _)| *known == name).ok_or_else(|| unknown(&name))?;
        match self.json {
            true => output.json(&parsed(text)),
            false => output.text(text),
        }
        Ok(Exit::Ok)
    }
}

/// A published schema as JSON.
pub(super) fn parsed(text: &str) -> Value {
    // The files are committed, and a test reads each of them.
    json::read(text.as_bytes(), &Limits::default()).unwrap_or(Value::Null)
}

fn unknown(name: &str) -> Failure {
    let known = || PUBLISHED.iter().map(|(known, _)| *known);
    let failure = Failure::new(FailureCode::UnknownSchema, "there is no such schema");
    match nearest(name, known()) {
        Some(near) => failure.hint(near),
        None => failure.hint(format!("known: {}", known().collect::<Vec<_>>().join(", "))),
    }
}
