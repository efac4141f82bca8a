//! `toolgate check`: every fault of a gate folder at once.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::{Exit, Failure, Output, find_folder};
use crate::config::{self, Finding, LoadError, Purpose};

/// Check a gate folder.
#[derive(Debug, Args)]
#[command(after_help = "Example: toolgate check examples/shop")]
pub(super) struct Check {
    /// The gate folder
    dir: Option<PathBuf>,
    /// Print the schema, in the Cedar language, that the policies are held to
    #[arg(long)]
    print_cedar_schema: bool,
    /// Say which folder is checked
    #[arg(short, long)]
    verbose: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let dir = find_folder(self.dir)?;
        if !dir.is_dir() {
            return Err(Failure::usage(format!("there is no folder {}", dir.display())));
        }
        if self.verbose {
            output.note(&format!("checking {}", dir.display()));
        }
        let findings = match config::load(&dir, Purpose::Look) {
            Ok(loaded) if self.print_cedar_schema => {
                match self.json {
                    true => output.json(&json!({ "cedar_schema": loaded.gate.cedar_schema() })),
                    false => output.line(loaded.gate.cedar_schema()),
                }
                return Ok(Exit::Ok);
            }
            Ok(_) => Vec::new(),
            Err(LoadError::Findings(findings)) => findings,
            Err(LoadError::Store(error)) => return Err(Failure::fault(error.to_string())),
        };
        if self.json {
            let list: Vec<Value> = findings.iter().map(described).collect();
            output.json(&json!({ "ok": findings.is_empty(), "findings": list }));
        } else if findings.is_empty() {
            output.line(&format!("ok: no faults in {}", dir.display()));
        } else {
            for finding in &findings {
                output.line(&finding.to_string());
            }
            let plural = if findings.len() == 1 { "fault" } else { "faults" };
            output.note(&format!("error: {} {plural} in {}", findings.len(), dir.display()));
        }
        Ok(if findings.is_empty() { Exit::Ok } else { Exit::Usage })
    }
}

fn described(finding: &Finding) -> Value {
    json!({
        "file": finding.file,
        "line": finding.line,
        "column": finding.column,
        "message": finding.message,
        "hint": finding.hint,
    })
}
