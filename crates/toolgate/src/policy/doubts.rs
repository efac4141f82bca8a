//! What of a policy holds and is probably not meant.

use std::collections::BTreeSet;

use super::fault::{PolicyCode, PolicyFault, suggest};
use super::load::{Rule, spelled};
use super::mentions::Asked;
use super::schema::{ROLE, Vocabulary};
use super::source::Source;
use super::text::Statement;
use crate::approval::Approvers;

/// Names of arguments that say who is asking, or what they have proved. A model writes arguments, so a policy that rests on
/// one of these believes whatever the model says. Compared without case, `_` and `-`.
const CLAIMS: &[&str] = &[
    "admin",
    "approved",
    "approvedby",
    "authenticated",
    "authorized",
    "caller",
    "callerid",
    "hasapproval",
    "isadmin",
    "isapproved",
    "isauthenticated",
    "isauthorized",
    "ismanager",
    "isowner",
    "issuperuser",
    "isverified",
    "mfa",
    "mfaverified",
    "permission",
    "permissions",
    "principal",
    "privileged",
    "role",
    "roles",
    "scope",
    "scopes",
    "superuser",
    "tenant",
    "tenantid",
    "twofactor",
    "userrole",
    "verified",
];

/// Something to doubt in a policy.
#[derive(Clone, Debug)]
pub(crate) struct Doubt {
    pub(crate) fault: PolicyFault,
    /// The tools that it is of, and the argument, where a contract may say that the argument means something else.
    pub(crate) unless_meant: Option<(Vec<String>, String)>,
}

/// A role that a policy names, and what is to be said where nobody has it: who the people are is not known here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRole {
    /// The role, letter by letter.
    pub role: String,
    /// The warning, with its place.
    pub nobody: PolicyFault,
}

/// The roles that a rule names: those of its principals, and the one that is asked.
pub(super) fn roles(source: &Source<'_>, statement: &Statement<'_>, rule: &Rule) -> Vec<NamedRole> {
    let named = statement.entities(ROLE).map(|(role, at)| (role.to_owned(), at));
    let asked = rule.approvers.iter().filter_map(|approvers| match approvers {
        Approvers::Role(role) => Some((role.clone(), statement.annotation("approvers"))),
        Approvers::Requester => None,
    });
    let message = "nobody whom the folder lists has this role";
    let nobody = |at| source.fault(at, PolicyCode::Role, message, None);
    named.chain(asked).map(|(role, at)| NamedRole { role, nobody: nobody(at) }).collect()
}

/// What is to be doubted in a rule.
pub(super) fn of(
    source: &Source<'_>,
    statement: &Statement<'_>,
    rule: &Rule,
    vocabulary: &Vocabulary<'_>,
    absent: &BTreeSet<String>,
) -> Vec<Doubt> {
    let mut found = asked(source, statement, rule, vocabulary, absent);
    for path in rule.paths.iter().filter(|path| path.used) {
        let Some((member, above)) = path.members.split_last() else { continue };
        let place = statement.member(above.last().map_or("context", String::as_str), member);
        let whole = spelled(&path.members, path.members.len());
        let shaped = rule.tools.iter().filter_map(|place| vocabulary.tools.get(*place));
        let shaped = shaped.filter_map(|tool| Some((tool.name, tool.context.at(&path.members)?)));
        if let [input, _, ..] = path.members.as_slice()
            && input == "input"
            && is_claim(member)
        {
            let message = format!("{whole} is what the model wrote, and no proof of who is asking");
            let hint = "ask for a role (`principal in Role::\"...\"`) or a fact; if it means something else, list it in \
                        allow_identity_members";
            let tools = shaped.clone().map(|(tool, _)| tool.to_owned()).collect();
            let fault = source.fault(place, PolicyCode::Claim, &message, Some(hint.to_owned()));
            found.push(Doubt { fault, unless_meant: Some((tools, member.clone())) });
        }
        if let Some((tool, _)) = shaped.clone().find(|(_, shape)| shape.may_be_inexact()) {
            let message = format!(
                "{whole} of {tool} may have more than four decimal places, and a call with such a number is forbidden"
            );
            let hint = "say how many it has in the schema, such as `multipleOf = 0.01`";
            let fault = source.fault(place, PolicyCode::Inexact, &message, Some(hint.to_owned()));
            found.push(Doubt { fault, unless_meant: None });
        }
    }
    found.sort_by(|a, b| a.fault.cmp(&b.fault));
    found.dedup_by(|a, b| a.fault == b.fault);
    found
}

/// What a rule asks of a run that no run can have: a label that no tool gives, a call of a tool that is not there. A `forbid`
/// that asks for it forbids nothing.
fn asked(
    source: &Source<'_>,
    statement: &Statement<'_>,
    rule: &Rule,
    vocabulary: &Vocabulary<'_>,
    absent: &BTreeSet<String>,
) -> Vec<Doubt> {
    let tools = || vocabulary.tools.iter();
    let labels: BTreeSet<&str> = tools().flat_map(|tool| tool.labels).map(String::as_str).collect();
    let doubt = |asked: &Asked| {
        let (text, code, message, hint) = match asked {
            // What a tool that is not here gives is not known.
            Asked::Label(label) if labels.contains(label.as_str()) || !absent.is_empty() => return None,
            Asked::Label(label) => {
                let hint = suggest(label, labels.iter().copied());
                let hint = hint.unwrap_or_else(|| "a contract gives it: `[labels]`, `result = [...]`".to_owned());
                (label, PolicyCode::Label, "no tool gives this label to a run", Some(hint))
            }
            Asked::Completed(name) if tools().any(|tool| tool.name == name) || absent.contains(name) => return None,
            Asked::Completed(name) => {
                let hint = suggest(name, tools().map(|tool| tool.name));
                (name, PolicyCode::Tool, "there is no such tool, and no run has called it", hint)
            }
        };
        let fault = source.fault(statement.literal(text), code, message, hint);
        Some(Doubt { fault, unless_meant: None })
    };
    rule.asked.iter().filter_map(doubt).collect()
}

fn is_claim(member: &str) -> bool {
    let plain: String = member.chars().filter(|c| !matches!(c, '_' | '-')).collect();
    CLAIMS.contains(&plain.to_lowercase().as_str())
}
