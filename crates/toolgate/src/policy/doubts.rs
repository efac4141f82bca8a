//! What of a policy holds and is probably not meant.

use super::fault::{PolicyCode, PolicyFault};
use super::load::{Rule, spelled};
use super::schema::Vocabulary;
use super::source::Source;
use super::text::Statement;

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

/// What is to be doubted in a rule.
pub(super) fn of(
    source: &Source<'_>,
    statement: &Statement<'_>,
    rule: &Rule,
    vocabulary: &Vocabulary<'_>,
) -> Vec<Doubt> {
    let mut found: Vec<Doubt> = Vec::new();
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

fn is_claim(member: &str) -> bool {
    let plain: String = member.chars().filter(|c| !matches!(c, '_' | '-')).collect();
    CLAIMS.contains(&plain.to_lowercase().as_str())
}
