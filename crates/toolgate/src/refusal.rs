//! Refusals: a no, as data. The one table of codes, and the shape that a model, a user and an operator can act on.
//!
//! A refusal never holds a value that somebody sent, nor any text of a library. The one place where a backend's own words
//! may stand is `tool_said`, where the contract shows the tool's words in any case.

mod pages;
mod table;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::schema::Problem;

pub use pages::{HEADINGS, Pages};
pub use table::{AuditClass, Code, McpForm, Row};

/// What became of the outside world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Proved: nothing happened.
    None,
    /// It happened.
    Done,
    /// Nobody knows yet; it is never run again before it has been reconciled.
    Unknown,
}

/// Who can mend what was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fix {
    /// The model, by another call.
    Model,
    /// The person the model works for.
    User,
    /// Whoever runs the gate or the tool.
    Operator,
    /// Nobody: it is final, or it passes by itself.
    Nobody,
}

/// Whether to send the call again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// No repeat will be answered otherwise.
    Never,
    /// The same call may be sent again.
    Same,
    /// Another call may succeed; the same one won't.
    AfterChange,
    /// The same call may be sent again after this time.
    After(Duration),
}

/// A no, with everything that somebody needs to act on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Wire")]
pub struct Refusal {
    code: Code,
    effect: Effect,
    message: String,
    fix: Fix,
    retry: Retry,
    details: Box<Details>,
}

/// What only some refusals have.
#[derive(Clone, Debug, Default, PartialEq)]
struct Details {
    problems: Vec<Problem>,
    more_problems: usize,
    rule: Option<String>,
    reason: Option<String>,
    tool_said: Option<String>,
    instead: Option<String>,
    approval: Option<ApprovalNotice>,
}

/// Where to find the approval that a call waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalNotice {
    /// The name of the pending approval.
    pub id: String,
    /// From when on it can be neither decided nor used, as RFC 3339.
    pub expires_at: String,
    /// Who may approve: role names, or `self` for the requester's own confirmation.
    pub approvers: Vec<String>,
}

impl Effect {
    /// The effect's name as it stands in answers and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Done => "done",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Refusal {
    /// A refusal with the message, fixer and retry that the table gives to `code` and `effect`.
    pub fn new(code: Code, effect: Effect) -> Self {
        let row = table::row(code, effect);
        Self { code, effect, message: row.text.to_owned(), fix: row.fix, retry: row.retry, details: Box::default() }
    }

    /// A refusal before anything could have happened.
    pub(crate) fn before(code: Code) -> Self {
        Self::new(code, Effect::None)
    }

    pub(crate) fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// The same, of a write that nobody can look up: its contract has no `[reconcile]`. What it cannot do is not promised.
    pub(crate) fn beyond_finding_out(self) -> Self {
        self.message(
            "Whether the action happened is not known, and nothing here can find it out. Do not send it again, in \
             these words or in others: look with a tool that reads whether it happened, or ask the user.",
        )
        .retry(Retry::Never)
    }

    pub(crate) fn fixed_by(mut self, fix: Fix) -> Self {
        self.fix = fix;
        self
    }

    pub(crate) fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    pub(crate) fn problems(mut self, problems: Vec<Problem>, more: usize) -> Self {
        self.details.problems = problems;
        self.details.more_problems = more;
        self
    }

    pub(crate) fn rule(mut self, rule: impl Into<String>) -> Self {
        self.details.rule = Some(rule.into());
        self
    }

    pub(crate) fn reason(mut self, reason: impl Into<String>) -> Self {
        self.details.reason = Some(reason.into());
        self
    }

    /// INVARIANT (data, not advice): these are the tool's words, made inert and bounded; nothing of the gate rests on them.
    pub(crate) fn tool_said(mut self, words: Option<String>) -> Self {
        self.details.tool_said = words;
        self
    }

    pub(crate) fn instead(mut self, tool: Option<String>) -> Self {
        self.details.instead = tool;
        self
    }

    /// The same, without advice to use a tool that is not there for whoever reads it.
    pub(crate) fn advising(mut self, visible: impl FnOnce(&str) -> bool) -> Self {
        self.details.instead.take_if(|tool| !visible(tool));
        self
    }

    pub(crate) fn approval(mut self, notice: ApprovalNotice) -> Self {
        self.details.approval = Some(notice);
        self
    }

    /// The stable code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// What became of the outside world.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// Who can mend it.
    pub fn fix(&self) -> Fix {
        self.fix
    }

    /// Whether to send the call again.
    pub fn retry_advice(&self) -> Retry {
        self.retry
    }

    /// The message for whoever reads the answer.
    pub fn text(&self) -> &str {
        &self.message
    }

    /// What is wrong with the arguments, place by place.
    pub fn problem_list(&self) -> &[Problem] {
        &self.details.problems
    }

    /// How many problems there are beside those of [`problem_list`](Self::problem_list).
    pub fn more_problems(&self) -> usize {
        self.details.more_problems
    }

    /// The id of the business rule that said no.
    pub fn rule_id(&self) -> Option<&str> {
        self.details.rule.as_deref()
    }

    /// What the tool itself said of its failure: data from outside, never advice of the gate.
    pub fn words_of_the_tool(&self) -> Option<&str> {
        self.details.tool_said.as_deref()
    }

    /// The approval that the call waits for.
    pub fn approval_notice(&self) -> Option<&ApprovalNotice> {
        self.details.approval.as_ref()
    }
}

/// The page of every problem code.
const PROBLEMS: Pages = Pages::of(include_str!("refusal/problems.md"));

/// The codes of problems in calls and contracts, in the order of the documentation.
pub fn problem_codes() -> impl Iterator<Item = &'static str> {
    PROBLEMS.codes()
}

/// What the documentation says of a problem code, in Markdown.
pub fn problem_page(code: &str) -> Option<String> {
    PROBLEMS.page(code)
}

/// The shape of a refusal in answers and in the ledger (DESIGN of the answer: code, message, details, fix, retry,
/// effect; a reply adds the ref).
#[derive(Serialize, Deserialize)]
struct Wire {
    code: Code,
    message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Problem>,
    #[serde(default, skip_serializing_if = "is_zero")]
    more_problems: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_said: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approval: Option<ApprovalNotice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instead: Option<String>,
    fix: Fix,
    retry: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after_ms: Option<u64>,
    effect: Effect,
}

impl From<Refusal> for Wire {
    fn from(refusal: Refusal) -> Self {
        let (retry, after_ms) = match refusal.retry {
            Retry::Never => ("never", None),
            Retry::Same => ("same", None),
            Retry::AfterChange => ("after_change", None),
            Retry::After(span) => ("after", Some(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))),
        };
        let details = *refusal.details;
        Self {
            code: refusal.code,
            message: refusal.message,
            problems: details.problems,
            more_problems: details.more_problems,
            rule: details.rule,
            reason: details.reason,
            tool_said: details.tool_said,
            approval: details.approval,
            instead: details.instead,
            fix: refusal.fix,
            retry: Cow::Borrowed(retry),
            after_ms,
            effect: refusal.effect,
        }
    }
}

impl From<Wire> for Refusal {
    fn from(wire: Wire) -> Self {
        let retry = match (&*wire.retry, wire.after_ms) {
            ("same", _) => Retry::Same,
            ("after_change", _) => Retry::AfterChange,
            ("after", after) => Retry::After(Duration::from_millis(after.unwrap_or(0))),
            _ => Retry::Never,
        };
        Self {
            code: wire.code,
            effect: wire.effect,
            message: wire.message,
            fix: wire.fix,
            retry,
            details: Box::new(Details {
                problems: wire.problems,
                more_problems: wire.more_problems,
                rule: wire.rule,
                reason: wire.reason,
                tool_said: wire.tool_said,
                instead: wire.instead,
                approval: wire.approval,
            }),
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn every_code_and_effect_has_a_message_and_survives_its_stored_form() {
        for code in Code::ALL {
            for effect in [Effect::None, Effect::Done, Effect::Unknown] {
                let refusal = Refusal::new(code, effect).retry(Retry::After(Duration::from_millis(70)));
                assert!(!refusal.text().is_empty(), "{code} says nothing");
                let text = serde_json::to_string(&refusal).unwrap();
                assert_eq!(serde_json::from_str::<Refusal>(&text).unwrap(), refusal);
            }
        }
    }

    #[test]
    fn every_code_has_a_page_with_the_four_headings() {
        for code in Code::ALL {
            let page = code.page();
            assert!(page.starts_with(&format!("# {code}\n")), "the page of {code} starts with its name");
            for heading in HEADINGS {
                assert!(page.contains(&format!("\n## {heading}\n")), "the page of {code} lacks {heading}");
            }
        }
    }

    #[test]
    fn every_problem_code_has_a_page_with_the_four_headings() {
        assert!(problem_codes().count() > 40);
        for code in problem_codes() {
            let page = problem_page(code).unwrap();
            assert!(page.starts_with(&format!("# {code}\n")), "the page of {code} starts with its name");
            for heading in HEADINGS {
                let text =
                    page.split_once(&format!("\n## {heading}\n\n")).unwrap_or_else(|| panic!("{heading}: {page}")).1;
                let text = text.split("\n## ").next().unwrap();
                assert!(!text.trim().is_empty(), "the page of {code} says nothing under {heading}");
            }
        }
        assert_eq!(problem_page("no_such_code"), None);
    }

    #[test]
    fn a_write_that_may_have_happened_is_never_advised_to_change() {
        for code in Code::ALL {
            let retry = Refusal::new(code, Effect::Unknown).retry_advice();
            assert_ne!(retry, Retry::AfterChange, "{code}: a changed call would be a second action");
        }
    }
}
