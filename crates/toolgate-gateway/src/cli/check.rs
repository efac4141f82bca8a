//! `toolgate check`: every fault of a gate folder at once, and whether its cases hold.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::color::Style;
use super::failure::FailureCode;
use super::folder::{Folder, SETTINGS, counted as faults_of};
use super::schema::{self, CONTRACT};
use super::{Exit, Failure, Output};
use crate::cases::Cases;
use crate::config::{self, Finding, LoadError, Loaded, Purpose};
use crate::suggest;

/// Check a gate folder: contracts, policies, and the cases that they must hold.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolgate check shop")]
pub(super) struct Check {
    /// The gate folder
    dir: Option<PathBuf>,
    /// Print the JSON Schema of a contract file, for an editor
    #[arg(long, conflicts_with = "print_cedar_schema")]
    print_schema: bool,
    /// Print the schema, in the Cedar language, that the policies are held to
    #[arg(long)]
    print_cedar_schema: bool,
    /// Print policies to start from, for the tools and the people of the folder
    #[arg(long, conflicts_with_all = ["print_schema", "print_cedar_schema"])]
    suggest_policies: bool,
    /// Say which folder is checked, and what named it
    #[arg(short, long)]
    verbose: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// What was found, for scripts.
#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    findings: Vec<Finding>,
    /// What holds and is probably not meant. A folder with warnings is sound.
    warnings: Vec<Finding>,
    /// How much a sound folder has.
    #[serde(flatten)]
    counts: Option<Counts>,
    cases: Judged,
}

#[derive(Debug, Serialize)]
struct Counts {
    tools: usize,
    policies: usize,
}

/// The cases of a folder. They are judged only where the folder has no other faults.
#[derive(Debug, Serialize)]
struct Judged {
    judged: usize,
    failed: usize,
}

impl Check {
    pub(super) async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        // It is the same for every folder, and of use before there is one.
        if self.print_schema {
            match self.json {
                true => output.json(&json!({ "contract_schema": schema::parsed(CONTRACT) })),
                false => output.text(CONTRACT),
            }
            return Ok(Exit::Ok);
        }
        let Folder { path: dir, found } = Folder::find(self.dir)?;
        if self.verbose {
            output.note(&format!("checking {}{}", dir.display(), found.in_brackets()));
        }
        let loaded = match self.suggest_policies {
            true => outcome(config::load_without_policies(&dir))?,
            false => loaded(&dir, Purpose::Look)?,
        };
        if let (true, Ok(loaded)) = (self.suggest_policies, &loaded) {
            let policies = suggest::policies(loaded.gate.contracts(), &loaded.identity.people());
            match self.json {
                true => output.json(&json!({ "policies": policies })),
                false => output.text(&policies),
            }
            output.next(&format!("toolgate check {}", dir.display()));
            return Ok(Exit::Ok);
        }
        if let (true, Ok(loaded)) = (self.print_cedar_schema, &loaded) {
            match self.json {
                true => output.json(&json!({ "cedar_schema": loaded.gate.cedar_schema() })),
                false => output.line(loaded.gate.cedar_schema()),
            }
            return Ok(Exit::Ok);
        }
        let report = examined(&dir, loaded).await?;
        match self.json {
            true => output.json(&report),
            false => report.show(output),
        }
        match report.findings.first() {
            None => {
                output.next(&format!("toolgate tools {}", dir.display()));
                Ok(Exit::Ok)
            }
            // A folder without settings is none yet.
            Some(_) if !dir.join(SETTINGS).exists() => Err(Failure::new(report.code(), report.in_words(&dir))
                .hint(format!("toolgate init {} makes a gate folder to start from", dir.display()))),
            Some(first) => {
                Err(Failure::new(report.code(), report.in_words(&dir)).hint(format!("toolgate explain {}", first.code)))
            }
        }
    }
}

/// The gate of the folder, or its faults.
fn loaded(dir: &Path, purpose: Purpose) -> Result<Result<Loaded, Vec<Finding>>, Failure> {
    outcome(config::load(dir, purpose))
}

fn outcome(loaded: Result<Loaded, LoadError>) -> Result<Result<Loaded, Vec<Finding>>, Failure> {
    match loaded {
        Ok(loaded) => Ok(Ok(loaded)),
        Err(LoadError::Findings(findings)) => Ok(Err(findings)),
        Err(LoadError::NoStore) => Ok(Err(Vec::new())),
        Err(LoadError::Store(error)) => Err(error.into()),
    }
}

/// The folder was sound a moment ago.
fn changed(dir: &Path) -> Failure {
    Failure::new(FailureCode::FolderFaults, format!("{} was changed while its cases were judged", dir.display()))
}

/// Everything that is wrong with the folder and, if nothing is, the cases that do not hold.
async fn examined(dir: &Path, loaded: Result<Loaded, Vec<Finding>>) -> Result<Report, Failure> {
    let (cases, mut findings) = Cases::read(dir);
    let (counts, warnings) = match loaded {
        Ok(Loaded { gate, warnings, .. }) => {
            (Some(Counts { tools: gate.contracts().count(), policies: gate.policy_count() }), warnings)
        }
        Err(wrong) => {
            findings.extend(wrong);
            (None, Vec::new())
        }
    };
    findings.extend(config::webhook_fault(dir));
    let mut judged = Judged { judged: 0, failed: 0 };
    if findings.is_empty() && cases.count() > 0 {
        match self::loaded(dir, Purpose::Rehearse)? {
            Ok(rehearsal) => {
                let anew = || self::loaded(dir, Purpose::Rehearse)?.map_err(|_| changed(dir));
                findings = cases.judge(&rehearsal, anew).await?;
                rehearsal.finish().await?;
                judged = Judged { judged: cases.count(), failed: findings.len() };
            }
            Err(wrong) => findings = wrong,
        }
    }
    findings.sort();
    Ok(Report { ok: findings.is_empty(), findings, warnings, counts, cases: judged })
}

impl Report {
    fn show(&self, output: &mut Output) {
        let Judged { judged, .. } = self.cases;
        if let (true, Some(Counts { tools, policies })) = (self.ok, &self.counts) {
            let tools = counted(*tools, "tool", "tools");
            let policies = counted(*policies, "policy", "policies");
            output.labelled(Style::Good, "ok", &format!("{tools}, {policies}, {}", counted(judged, "case", "cases")));
        }
        for finding in &self.findings {
            output.labelled(Style::Place, &finding.place(), &finding.told());
        }
        for warning in &self.warnings {
            output.labelled(Style::Warning, "warning", &warning.to_string());
        }
    }

    /// What it comes to. Cases are judged only where the folder has no other faults.
    fn code(&self) -> FailureCode {
        if self.cases.failed > 0 { FailureCode::CaseFailed } else { FailureCode::FolderFaults }
    }

    /// How much is wrong.
    fn in_words(&self, dir: &Path) -> String {
        let Judged { judged, failed } = self.cases;
        match failed {
            0 => faults_of(self.findings.len(), dir),
            failed => format!("{failed} of {} in {} failed", counted(judged, "case", "cases"), dir.display()),
        }
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
