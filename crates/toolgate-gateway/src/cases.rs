//! The cases of a gate folder: calls and what must become of them, the contracts' own tests.
//!
//! Each line of `cases/*.jsonl` is one case, a JSON object; blank lines part groups:
//!
//! ```json
//! {"case": "a large refund waits for a manager", "as": "alice@acme", "tool": "create_refund", "arguments": {"order_id": "ord_1", "amount_cents": 9000, "reason": "damaged"}, "expect": "approval_required"}
//! ```
//!
//! | member | what it says |
//! |---|---|
//! | `case` | what is shown, in words |
//! | `as` | who asks, as `USER@TENANT`; without it the folder's default user |
//! | `tool` | the name of the tool |
//! | `arguments` | its arguments; without them, and without `text`, there are none |
//! | `text` | instead of `arguments`, their raw text, which need not be JSON |
//! | `expect` | `"run"`, the code of a refusal, or `{"code", "rule", "message", "problems"}` |
//!
//! In the long form of `expect`, `message` is a part of the refusal's message, and each of the `problems`, a place `at`, a
//! `code` or both, must be among those that are told.
//!
//! A case is judged as [`Gate::dry_run`](toolgate::Gate::dry_run) judges a call: nobody is asked and nothing runs. Facts
//! are really looked up, in data that the seed of a database makes anew, so that a case holds whatever was done since; a
//! database without a seed is read as it is.

mod expect;
mod line;

use std::path::Path;

use toolgate::fault::Fault;
use toolgate::fields::nearest;
use toolgate::refusal::Code;
use toolgate::session::Session;
use toolgate::{Call, Gate, Reply};

use crate::config::{self, Finding, Loaded};

use line::Case;

/// The cases of a folder.
#[derive(Debug)]
pub(crate) struct Cases(Vec<Case>);

impl Cases {
    /// Reads all cases of the folder `dir`, and tells every line that is none.
    pub(crate) fn read(dir: &Path) -> (Self, Vec<Finding>) {
        let (files, mut findings) = config::cases(dir);
        let mut cases = Vec::new();
        for (file, text) in &files {
            for (index, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
                match Case::read(file, index + 1, text) {
                    Ok(case) => cases.push(case),
                    Err(wrong) => findings.extend(wrong),
                }
            }
        }
        (Self(cases), findings)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Judges every case by a gate that was loaded to rehearse, and tells each that does not hold.
    pub(crate) async fn judge(&self, loaded: &Loaded) -> Result<Vec<Finding>, Fault> {
        let mut findings = Vec::new();
        for case in &self.0 {
            let session = match loaded.identity.session(case.user.as_deref()) {
                Ok(session) => session,
                Err(unlisted) => {
                    findings.push(case.place.finding("as", "unknown_user", unlisted.to_string()).hint(unlisted.hint));
                    continue;
                }
            };
            let call = Call::new("case", case.tool.as_str(), case.arguments.as_slice());
            let reply = loaded.gate.dry_run(call, &session).await?;
            if let Some(difference) = case.expect.difference(&reply) {
                let finding = case.place.finding("expect", "case_failed", format!("\"{}\": {difference}", case.name));
                findings.push(finding.hint(advice(case, &reply, &loaded.gate, &session)));
            }
        }
        Ok(findings)
    }
}

/// What may be meant where a tool is not there, or not for this person.
fn advice(case: &Case, reply: &Reply, gate: &Gate, session: &Session) -> Option<String> {
    if reply.code() != Some(Code::UnknownTool) {
        return None;
    }
    let names = || gate.contracts().map(|contract| contract.name());
    if names().any(|name| name == case.tool) {
        let who = &session.principal().subject;
        return Some(format!("there is such a tool, but no policy could permit it to {who}@{}", session.tenant()));
    }
    nearest(&case.tool, names()).or_else(|| Some(format!("known: {}", names().collect::<Vec<_>>().join(", "))))
}
