//! `toolgate check`: every fault of a gate folder at once.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::color::Style;
use super::failure::FailureCode;
use super::folder::{Folder, counted};
use super::{Exit, Failure, Output};
use crate::config::{self, Finding, LoadError, Purpose};

/// Check a gate folder.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolgate check shop")]
pub(super) struct Check {
    /// The gate folder
    dir: Option<PathBuf>,
    /// Print the schema, in the Cedar language, that the policies are held to
    #[arg(long)]
    print_cedar_schema: bool,
    /// Say which folder is checked, and what named it
    #[arg(short, long)]
    verbose: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let Folder { path: dir, found } = Folder::find(self.dir)?;
        if self.verbose {
            output.note(&format!("checking {}{}", dir.display(), found.in_brackets()));
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
            Err(LoadError::NoStore) => Vec::new(),
            Err(LoadError::Store(error)) => return Err(error.into()),
        };
        if self.json {
            let list: Vec<Value> = findings.iter().map(described).collect();
            output.json(&json!({ "ok": findings.is_empty(), "findings": list }));
        } else if findings.is_empty() {
            output.labelled(Style::Good, "ok", &format!("no faults in {}", dir.display()));
        } else {
            for finding in &findings {
                output.labelled(Style::Place, &finding.place(), &finding.told());
            }
        }
        match findings.first() {
            None => {
                output.next(&format!("toolgate tools {}", dir.display()));
                Ok(Exit::Ok)
            }
            Some(first) => Err(Failure::new(FailureCode::FolderFaults, counted(findings.len(), &dir))
                .hint(format!("toolgate explain {}", first.code))),
        }
    }
}

fn described(finding: &Finding) -> Value {
    json!({
        "file": finding.file,
        "line": finding.line,
        "column": finding.column,
        "code": finding.code,
        "message": finding.message,
        "hint": finding.hint,
    })
}
