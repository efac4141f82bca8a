//! `toolgate audit replay`: what other policies would have said of the calls that there were.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use toolgate::Gate;
use toolgate::clock::Millis;
use toolgate::gate::{Decided, Ended, Recorded, Undecided};
use toolgate::ledger::Store;

use super::filtered::moment;
use crate::cli::failure::FailureCode;
use crate::cli::folder::told;
use crate::cli::{Exit, Failure, Output};
use crate::config::{self, LoadError};
use crate::shown::with;

/// Decide recorded calls again under other policies.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolgate audit shop replay --policies new/ --since 2026-01-31")]
pub(super) struct Replay {
    /// A folder of policies, to stand in the place of the folder's own
    #[arg(long, value_name = "NEW")]
    policies: PathBuf,
    /// Only calls from this day or moment on, such as 2026-01-31 or 2026-01-31T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Millis>,
    /// Only calls before this day or moment
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<Millis>,
    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// How many records are read at once.
const PAGE: usize = 1000;

/// What came of deciding again.
#[derive(Default)]
struct Report {
    decided: usize,
    /// How many would be decided otherwise, by tool, decision then and decision now.
    changed: BTreeMap<(String, String, String), usize>,
    /// Each call that would be, for programs.
    calls: Vec<Value>,
    undecided: BTreeMap<Undecided, usize>,
    /// Those that no policy was asked about, by code.
    before: BTreeMap<String, usize>,
}

impl Replay {
    pub(super) async fn run(self, dir: &Path, store: &Store, output: &mut Output) -> Result<Exit, Failure> {
        if !self.policies.is_dir() {
            let message = format!("there is no folder {}", self.policies.display());
            return Err(Failure::new(FailureCode::NoSuchFolder, message)
                .hint("copy policies/ of the folder, change the copy, and name it"));
        }
        if !self.holds_policies() {
            let message = format!("there is no policy in {}: every call would be denied", self.policies.display());
            return Err(Failure::new(FailureCode::FolderFaults, message).hint(
                "it stands in the place of all policies: copy policies/ of the folder, change the copy, and name it",
            ));
        }
        let loaded =
            config::load_to_review(dir, &self.policies).map_err(|error| self.not_loaded(error, dir, output))?;
        let mut report = Report::default();
        let mut after = 0;
        loop {
            let page = store.records_after(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            for call in page.iter().filter_map(Recorded::of).filter(|call| self.asks_for(call)) {
                if let Some(line) = report.decide(&call, &loaded.gate, self.json)
                    && !self.json
                {
                    output.line(&line);
                }
            }
        }
        loaded.finish().await?;
        match self.json {
            true => output.json(&report.shown()),
            false => report.show(output),
        }
        if let Some(reference) = report.calls.first().and_then(|call| call.get("ref")?.as_str()) {
            output.next(&format!("toolgate why {} {reference}", dir.display()));
        }
        Ok(Exit::Ok)
    }

    fn holds_policies(&self) -> bool {
        let entries = std::fs::read_dir(&self.policies).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).any(|path| path.extension().is_some_and(|extension| extension == "cedar"))
    }

    /// The faults of the folder as it would be. They are mostly those of what is new in it.
    fn not_loaded(&self, error: LoadError, dir: &Path, output: &mut Output) -> Failure {
        let LoadError::Findings(findings) = error else { return told(error, dir, output) };
        findings.iter().for_each(|finding| output.finding(finding));
        let (dir, policies) = (dir.display(), self.policies.display());
        let faults = if findings.len() == 1 { "fault" } else { "faults" };
        let message =
            format!("{} {faults} in {dir} with the policies of {policies}; nothing was decided", findings.len());
        let hint = format!("mend {policies}; what is wrong in the folder itself tells `toolgate check {dir}`");
        Failure::new(FailureCode::FolderFaults, message).hint(hint)
    }

    fn asks_for(&self, call: &Recorded) -> bool {
        self.since.is_none_or(|since| since <= call.at())
            && self.until.is_none_or(|until| call.at() < until)
            && self.tool.as_deref().is_none_or(|tool| tool == call.tool())
    }
}

impl Report {
    /// Decides a call again; a line about it where the answer would be another.
    fn decide(&mut self, call: &Recorded, gate: &Gate, json: bool) -> Option<String> {
        let was = match call.ended() {
            Ended::Decided(was) => was,
            Ended::Before(code) => {
                *self.before.entry(code.clone()).or_default() += 1;
                return None;
            }
            Ended::Unasked => {
                *self.before.entry("approval_invalid".to_owned()).or_default() += 1;
                return None;
            }
        };
        let would = match gate.rejudge(call) {
            Ok(would) => would,
            Err(why) => {
                *self.undecided.entry(why).or_default() += 1;
                return None;
            }
        };
        self.decided += 1;
        if !was.differs(&would) {
            return None;
        }
        *self.changed.entry((call.tool().to_owned(), in_words(was), in_words(&would))).or_default() += 1;
        let who = call.principal();
        if json || self.calls.is_empty() {
            self.calls.push(json!({
                "ref": call.reference(),
                "at": call.at().to_string(),
                "tool": call.tool(),
                "tenant": call.tenant(),
                "principal": who,
                "was": shown(was),
                "would_be": shown(&would),
            }));
        }
        Some(format!(
            "{} {} {} by {}@{}: {} -> {}",
            call.reference(),
            call.at(),
            call.tool(),
            who.subject,
            call.tenant(),
            in_words(was),
            in_words(&would)
        ))
    }

    fn count_changed(&self) -> usize {
        self.changed.values().sum()
    }

    fn show(&self, output: &mut Output) {
        for ((tool, was, would), count) in &self.changed {
            output.line(&format!("{count:6}  {tool}: {was} -> {would}"));
        }
        let undecided: usize = self.undecided.values().sum();
        output.line(&format!(
            "{} decided again, {} would change, {undecided} could not be decided",
            calls(self.decided),
            self.count_changed()
        ));
        for (why, count) in &self.undecided {
            output.line(&format!("{count:6}  not decided: {why}"));
        }
        for (code, count) in &self.before {
            output.line(&format!("{count:6}  stay as they were: {code}, before any policy was asked"));
        }
    }

    fn shown(&self) -> Value {
        let summary: Vec<Value> = self
            .changed
            .iter()
            .map(|((tool, was, would), count)| json!({ "tool": tool, "was": was, "would_be": would, "count": count }))
            .collect();
        let undecided: Vec<Value> =
            self.undecided.iter().map(|(why, count)| json!({ "why": why.to_string(), "count": count })).collect();
        let before: Vec<Value> =
            self.before.iter().map(|(code, count)| json!({ "code": code, "count": count })).collect();
        json!({
            "decided": self.decided,
            "changed": self.count_changed(),
            "undecided": undecided,
            "before": before,
            "summary": summary,
            "calls": self.calls,
        })
    }
}

fn calls(count: usize) -> String {
    format!("{count} {}", if count == 1 { "call" } else { "calls" })
}

/// A decision for people: the word, and what it rests on.
fn in_words(decided: &Decided) -> String {
    match (decided, decided.policies()) {
        (Decided::Forbidden { why }, _) => format!("forbidden ({why})"),
        (_, []) => decided.word().to_owned(),
        (_, policies) => format!("{} ({})", decided.word(), policies.join(", ")),
    }
}

/// A decision for programs.
fn shown(decided: &Decided) -> Value {
    let shown = json!({ "decision": decided.word(), "policies": decided.policies() });
    match decided {
        Decided::Forbidden { why } => with(shown, "why", json!(why)),
        Decided::Permitted { .. } | Decided::NeedsApproval { .. } | Decided::Rule { .. } | Decided::Invisible => shown,
    }
}
