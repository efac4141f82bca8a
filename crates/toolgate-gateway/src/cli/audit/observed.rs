//! `toolgate audit observed`: what policies would have refused while they were only observed.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use serde_json::{Value, json};
use toolgate::audit::observed::{Observed as Call, WouldRefuse};
use toolgate::clock::Millis;
use toolgate::ledger::{Store, StoreError};

use super::filtered::Asked;
use crate::cli::{Exit, Failure, Output, told};
use crate::config::{self, LoadError};

/// Count what policies would have refused in observe mode
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  toolgate audit shop observed\n  \
                  toolgate audit shop observed --tool create_refund --since 2026-01-31")]
pub(super) struct Observed {
    #[command(flatten)]
    asked: Asked,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// What makes calls alike: the tool, the code that would have been answered, and the rules.
type Alike = (String, String, Vec<String>);

/// How many records are read at once.
const PAGE: usize = 1000;

/// What was found.
#[derive(Default)]
struct Report {
    /// When the first of the calls was.
    since: Option<Millis>,
    observed: usize,
    /// Whether others were observed than were asked for.
    others: bool,
    /// By tool, code and rules.
    refused: BTreeMap<Alike, Counted>,
}

/// Calls that would have been refused alike.
struct Counted {
    count: usize,
    /// The newest of them.
    last: Millis,
    reference: String,
    /// Why, for the operator: of the newest.
    why: String,
}

impl Observed {
    pub(super) async fn run(self, dir: &Path, output: &mut Output) -> Result<Exit, Failure> {
        let report = match config::open_store(dir) {
            Ok(store) => self.read(&store).await?,
            // Nothing has been called yet, so that nothing was observed.
            Err(LoadError::NoStore) => Report::default(),
            Err(error) => return Err(told(error, dir, output)),
        };
        match self.json {
            true => output.json(&report.shown()),
            false => report.show(output),
        }
        if let Some(counted) = report.refused.values().max_by_key(|counted| counted.count) {
            output.next(&format!("toolgate why {} {}", dir.display(), counted.reference));
        }
        Ok(Exit::Ok)
    }

    async fn read(&self, store: &Store) -> Result<Report, StoreError> {
        let (filter, code) = self.asked.clone().filter_without_code();
        let mut report = Report::default();
        let mut after = 0;
        loop {
            let page = store.records_after(after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(report) };
            after = last.seq;
            for record in &page {
                let Some(call) = Call::of(record) else { continue };
                match filter.takes(record) {
                    true => report.count(call, code.as_deref()),
                    false => report.others = true,
                }
            }
        }
    }
}

impl Report {
    fn count(&mut self, call: Call, code: Option<&str>) {
        let Call { reference, at, tool, would_refuse } = call;
        self.since = Some(self.since.map_or(at, |since| since.min(at)));
        self.observed += 1;
        let Some(WouldRefuse { code: would, rules, why }) = would_refuse else { return };
        if code.is_some_and(|code| code != would) {
            return;
        }
        let alike = (tool, would, rules);
        let counted = Counted { count: 1, last: at, reference, why };
        match self.refused.get_mut(&alike) {
            Some(known) => {
                let count = known.count + 1;
                if counted.last >= known.last {
                    *known = counted;
                }
                known.count = count;
            }
            None => {
                self.refused.insert(alike, counted);
            }
        }
    }

    fn would_refuse(&self) -> usize {
        self.refused.values().map(|counted| counted.count).sum()
    }

    /// Those of which there are the most first.
    fn sorted(&self) -> Vec<(&Alike, &Counted)> {
        let mut sorted: Vec<_> = self.refused.iter().collect();
        sorted.sort_by_key(|(_, counted)| std::cmp::Reverse(counted.count));
        sorted
    }

    fn show(&self, output: &mut Output) {
        for ((tool, code, rules), Counted { count, last, reference, why }) in self.sorted() {
            let told = if rules.is_empty() { why.clone() } else { rules.join(", ") };
            output.line(&format!("{count:6}  {tool}: {code} ({told}), last {last} ref {reference}"));
        }
        let Some(since) = self.since else {
            output.line(match self.others {
                true => "no call that was observed matches",
                false => {
                    "no call was observed: `mode = \"observe\"` in toolgate.toml, or in a contract, begins with it"
                }
            });
            return;
        };
        let calls = if self.observed == 1 { "call was" } else { "calls were" };
        output.line(&format!(
            "{} {calls} observed since {since}, {} would have been refused",
            self.observed,
            self.would_refuse()
        ));
    }

    fn shown(&self) -> Value {
        let summary: Vec<Value> = self
            .sorted()
            .into_iter()
            .map(|((tool, code, rules), Counted { count, last, reference, why })| {
                json!({
                    "tool": tool, "code": code, "rules": rules, "why": why,
                    "count": count, "last": last.to_string(), "ref": reference,
                })
            })
            .collect();
        json!({
            "since": self.since.map(|since| since.to_string()),
            "observed": self.observed,
            "would_refuse": self.would_refuse(),
            "summary": summary,
        })
    }
}
