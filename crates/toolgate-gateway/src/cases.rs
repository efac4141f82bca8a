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
//! | `after` | calls that are made before it, each `{"as", "tool", "arguments"}`; all of them must succeed |
//! | `run` | `true`: the call is made, and its backend asked |
//! | `expect` | `"ok"`, the code of a refusal, `{"code", "at", "rule", "message", "problems"}` or `{"result"}` |
//!
//! In the long form of a refusal, `message` is a part of its message, and each of the `problems`, a place `at`, a `code`
//! or both, must be among those that are told; `at` by itself is a list of places. A `result`, which only a case with `run`
//! has, names the members that the result must have.
//!
//! A case is judged as [`Gate::dry_run`](toolgate::Gate::dry_run) judges a call: nobody is asked and nothing runs. Facts
//! are really looked up, in data that the seed of a database makes anew, so that a case holds whatever was done since; a
//! database without a seed is read as it is. A case that says `run` or `after` has such data, and a ledger, of its own;
//! a write to a database without a seed is not made.

mod expect;
mod line;

use std::path::Path;

use toolgate::fault::Fault;
use toolgate::fields::nearest;
use toolgate::refusal::Code;
use toolgate::session::Session;
use toolgate::{Call, Gate, Reply};

use crate::config::{self, Finding, Loaded};

use expect::Difference;
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

    /// Judges every case, and tells each that does not hold: by a gate that was loaded to rehearse or, where the case
    /// changes data, by one that is loaded anew.
    pub(crate) async fn judge<E: From<Fault>>(
        &self,
        loaded: &Loaded,
        load_anew: impl Fn() -> Result<Loaded, E>,
    ) -> Result<Vec<Finding>, E> {
        let mut findings = Vec::new();
        for case in &self.0 {
            let finding = match case.acts() {
                false => case.judge(loaded).await?,
                true => {
                    let anew = load_anew()?;
                    let finding = case.judge(&anew).await;
                    anew.finish().await?;
                    finding?
                }
            };
            findings.extend(finding);
        }
        Ok(findings)
    }
}

/// What is told of the case in a line, where it does not hold or is none: by a gate that was loaded to rehearse.
pub(crate) async fn tried(line: &str, loaded: &Loaded) -> Result<Vec<Finding>, Fault> {
    match Case::read(Path::new("a case"), 1, line) {
        Ok(case) => Ok(case.judge(loaded).await?.into_iter().collect()),
        Err(wrong) => Ok(wrong),
    }
}

impl Case {
    /// What is told of a case that does not hold.
    async fn judge(&self, loaded: &Loaded) -> Result<Option<Finding>, Fault> {
        for (index, earlier) in self.after.iter().enumerate() {
            let session = match self.session(earlier.user.as_deref(), "after", loaded) {
                Ok(session) => session,
                Err(unlisted) => return Ok(Some(*unlisted)),
            };
            let call = Call::new("before", earlier.tool.as_str(), earlier.arguments.as_slice());
            let reply = loaded.gate.call(call, &session).await?;
            if let Some(refusal) = reply.refusal() {
                let message =
                    format!("\"{}\": call {} before it was refused: {}", self.name, index + 1, refusal.code());
                let hint = advice(&earlier.tool, &reply, &loaded.gate, &session);
                return Ok(Some(self.place.finding("after", "case_failed", message).hint(hint)));
            }
        }
        let session = match self.session(self.user.as_deref(), "as", loaded) {
            Ok(session) => session,
            Err(unlisted) => return Ok(Some(*unlisted)),
        };
        let call = Call::new("case", self.tool.as_str(), self.arguments.as_slice());
        let reply = match self.runs {
            true => loaded.gate.call(call, &session).await?,
            false => loaded.gate.dry_run(call, &session).await?,
        };
        Ok(self.expect.difference(&reply).map(|Difference { summary, details }| {
            let finding = self.place.finding("expect", "case_failed", format!("\"{}\": {summary}", self.name));
            let details = (!details.is_empty()).then(|| details.join("; "));
            finding.hint(advice(&self.tool, &reply, &loaded.gate, &session).or(details))
        }))
    }

    /// Who asks, or what is told of somebody whom the folder does not list.
    fn session(&self, user: Option<&str>, member: &str, loaded: &Loaded) -> Result<Session, Box<Finding>> {
        loaded.identity.session(user).map_err(|unlisted| {
            let finding = self.place.finding(member, "unknown_user", unlisted.to_string());
            Box::new(finding.hint(unlisted.hint))
        })
    }
}

/// What may be meant where a tool is not there, or not for this person.
fn advice(tool: &str, reply: &Reply, gate: &Gate, session: &Session) -> Option<String> {
    if reply.code() != Some(Code::UnknownTool) {
        return None;
    }
    let names = || gate.contracts().map(|contract| contract.name());
    if names().any(|name| name == tool) {
        let who = &session.principal().subject;
        return Some(format!("there is such a tool, but no policy could permit it to {who}@{}", session.tenant()));
    }
    nearest(tool, names()).or_else(|| Some(format!("known: {}", names().collect::<Vec<_>>().join(", "))))
}
