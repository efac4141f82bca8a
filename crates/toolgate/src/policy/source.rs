//! Where the text of policies comes from: the files of an operator, and the `approval` key of contracts.

use std::borrow::Cow;
use std::ops::Range;
use std::str::FromStr;

use cedar_policy::Expression;

use super::explain;
use super::fault::{PolicyCode, PolicyFault};
use super::text::{place, quoted};
use super::{ApprovalSugar, PolicySource};
use crate::approval::Approvers;

/// A text of policies.
#[derive(Debug)]
pub(super) struct Source<'a> {
    pub(super) text: Cow<'a, str>,
    origin: Origin<'a>,
}

#[derive(Debug)]
enum Origin<'a> {
    File {
        name: &'a str,
    },
    /// Made of the `approval` of a contract.
    Approval {
        tool: &'a str,
        when: Range<usize>,
    },
    /// Made of the `requires` of a contract.
    Requires {
        tool: &'a str,
    },
}

impl<'a> Source<'a> {
    /// The text of a file.
    pub(super) fn file(file: PolicySource<'a>) -> Self {
        Self { text: Cow::Borrowed(file.text), origin: Origin::File { name: file.name } }
    }

    /// The forbid that stands behind the `approval` of the contract of `tool`.
    pub(super) fn approval(tool: &'a str, approval: &ApprovalSugar<'_>) -> Result<Self, Vec<PolicyFault>> {
        let approvers = String::from(approval.approvers.clone());
        if approvers.is_empty() {
            return Err(vec![PolicyFault::in_contract(
                tool,
                PolicyCode::Contract,
                "approval.role names no role",
                None,
            )]);
        }
        if approval.when.trim().is_empty() {
            return Err(vec![PolicyFault::in_contract(
                tool,
                PolicyCode::Contract,
                "approval.when says nothing",
                Some("write when approval is needed, or `true` for always".to_owned()),
            )]);
        }
        // Alone first: a condition that closes a brace of the policy around it would be a policy of its own.
        if let Err(errors) = Expression::from_str(approval.when) {
            let findings = explain::syntax(approval.when, &errors);
            return Err(findings
                .into_iter()
                .map(|finding| {
                    in_when(tool, approval.when, finding.code, finding.at.start, &finding.message, finding.hint)
                })
                .collect());
        }
        let message = match approval.message {
            Some(message) => format!("@message({})\n", quoted(message)),
            None => String::new(),
        };
        let head = format!(
            "@id({})\n@approvers({})\n{message}forbid (principal, action == Action::{}, resource)\nwhen {{\n",
            quoted(&format!("{tool}.approval")),
            quoted(&approvers),
            quoted(tool),
        );
        let when = head.len()..head.len() + approval.when.len();
        let text = format!("{head}{}\n}}\nunless {{ context.approved }};", approval.when);
        Ok(Self { text: Cow::Owned(text), origin: Origin::Approval { tool, when } })
    }

    /// The forbid that stands behind a name in the `requires` of the contract of `tool`.
    pub(super) fn requires(tool: &'a str, first: &str) -> Self {
        let message = format!(
            "Call {first} first: in this run it has not been called with success yet. Then send this call again."
        );
        let text = format!(
            "@id({})\n@message({})\n@fix(\"model\")\nforbid (principal, action == Action::{}, resource)\n\
             unless {{ context.session.completed.contains({}) }};",
            quoted(&requires_id(tool, first)),
            quoted(&message),
            quoted(tool),
            quoted(first),
        );
        Self { text: Cow::Owned(text), origin: Origin::Requires { tool } }
    }

    /// The name that policies without an id are counted under.
    pub(super) fn stem(&self) -> &str {
        match &self.origin {
            Origin::File { name } => {
                let file = name.rsplit('/').next().unwrap_or(name);
                file.strip_suffix(".cedar").unwrap_or(file)
            }
            Origin::Approval { tool, .. } | Origin::Requires { tool } => tool,
        }
    }

    /// The place of a byte, for a sentence.
    pub(super) fn place_in_words(&self, offset: usize) -> String {
        match &self.origin {
            Origin::File { name } => format!("{name}:{}", place(&self.text, offset).0),
            Origin::Approval { tool, .. } => format!("the approval of tools/{tool}.toml"),
            Origin::Requires { tool } => format!("`requires` of tools/{tool}.toml"),
        }
    }

    /// A fault at a byte of the text.
    pub(super) fn fault(&self, offset: usize, code: PolicyCode, message: &str, hint: Option<String>) -> PolicyFault {
        match &self.origin {
            Origin::File { name } => {
                let (line, column) = place(&self.text, offset);
                PolicyFault { code, source: (*name).to_owned(), line, column, message: message.to_owned(), hint }
            }
            Origin::Approval { tool, when } if when.contains(&offset) => {
                let condition = self.text.get(when.clone()).unwrap_or_default();
                in_when(tool, condition, code, offset - when.start, message, hint)
            }
            Origin::Approval { tool, .. } => PolicyFault::in_contract(tool, code, format!("approval: {message}"), hint),
            Origin::Requires { tool } => PolicyFault::in_contract(tool, code, format!("requires: {message}"), hint),
        }
    }
}

/// The id of the rule that a name in the `requires` of a contract stands for.
pub(crate) fn requires_id(tool: &str, first: &str) -> String {
    format!("{tool}.requires.{first}")
}

/// A fault in the condition of an `approval`. Where the condition stands in its file is not known here, so the message
/// counts within it.
fn in_when(
    tool: &str,
    condition: &str,
    code: PolicyCode,
    offset: usize,
    message: &str,
    hint: Option<String>,
) -> PolicyFault {
    let place = match place(condition, offset) {
        (1, column) => format!("column {column}"),
        (line, column) => format!("line {line}, column {column}"),
    };
    PolicyFault::in_contract(tool, code, format!("approval.when, {place}: {message}"), hint)
}

impl ApprovalSugar<'_> {
    /// Who may answer, for the words of a reason that has no message.
    pub(super) fn words(approvers: &Approvers) -> String {
        match approvers {
            Approvers::Requester => "This needs the user's own confirmation.".to_owned(),
            Approvers::Role(role) => format!("This needs the approval of another person with the role {role}."),
        }
    }
}
