//! Policies to start from: reads for the people that a folder lists, writes with somebody's approval. It is made for the
//! tools that there are, and meant to be read and changed.

use std::fmt::Write as _;

use toolgate::contract::{Access, Contract};

use crate::identity::People;

/// What a role is called that may say yes, the likeliest first.
const APPROVING: [&str; 7] = ["manager", "approver", "supervisor", "admin", "owner", "lead", "head"];
/// The role that may say yes, where the folder lists none that could.
const NOBODY_YET: &str = "approver";
/// The requester's own yes.
const OWN: &str = "self";
/// How wide a comment is.
const WIDTH: usize = 110;

const HEAD: &str = "\
// Policies to start from, made for the tools and the people of this folder. Read them before you use them: they say who
// may do what. A file of the folder policies/ holds them; `toolgate check` tells whether all of it is sound.
";

/// Who may say yes to a write.
struct Approver<'a> {
    role: &'a str,
    /// What is to be known of the role.
    remark: &'static str,
}

/// The policies, in the Cedar language.
pub(crate) fn policies<'c>(contracts: impl Iterator<Item = &'c Contract>, people: &People) -> String {
    let (reads, writes): (Vec<&Contract>, Vec<&Contract>) =
        contracts.partition(|contract| contract.access() == Access::Read);
    let mut text = HEAD.to_owned();
    if !reads.is_empty() {
        permits(&mut text, "reads", &reads, people);
    }
    if !writes.is_empty() {
        permits(&mut text, "writes", &writes, people);
        approval(&mut text, &Approver::among(people));
    }
    if reads.is_empty() && writes.is_empty() {
        text.push_str("\n// There are no tools, so there is nothing to permit.\n");
    }
    text
}

/// A permit of a group for each tenant, or for everybody who is signed in. Writing to a text cannot fail.
fn permits(text: &mut String, group: &str, tools: &[&Contract], people: &People) {
    let action = group.trim_end_matches('s');
    let mut permit = |whom: &str, id: &str, principal: &str| {
        let _ = writeln!(text, "\n// {} for {whom}:", capital(group));
        names(text, tools);
        let _ = writeln!(text, "@id({})\npermit ({principal}, action in Action::\"{action}\", resource);", quoted(id));
    };
    if people.tenants.is_empty() {
        permit("everybody who is signed in", &format!("suggested.{group}"), "principal");
    }
    for (place, tenant) in people.tenants.iter().enumerate() {
        // What an id of a policy cannot hold has a number, which no tenant is called.
        let is_plain =
            tenant.len() <= 64 && tenant.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-'));
        let name = if is_plain { tenant.clone() } else { format!(":{}", place + 1) };
        let principal = format!("principal in Tenant::{}", quoted(tenant));
        permit(&format!("the people of {}", plain(tenant)), &format!("suggested.{group}.{name}"), &principal);
    }
}

/// The forbid that each write waits for.
fn approval(text: &mut String, approver: &Approver<'_>) {
    let whom = if approver.role == OWN { "the user" } else { "another person" };
    let _ = write!(
        text,
        "
// Each write waits until {whom} has said yes to exactly this call. {}
@id(\"suggested.writes.approved\")
@message(\"A write waits until {whom} has approved exactly this call.\")
@approvers({})
forbid (principal, action in Action::\"write\", resource)
unless {{ context.approved }};
",
        approver.remark,
        quoted(approver.role)
    );
}

/// The names of tools, in comments that are no wider than they may be.
fn names(text: &mut String, tools: &[&Contract]) {
    let mut line = String::new();
    for name in tools.iter().map(|tool| tool.name()) {
        if !line.is_empty() && line.len() + name.len() + 2 > WIDTH {
            let _ = writeln!(text, "//   {line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push_str(", ");
        }
        line.push_str(name);
    }
    let _ = writeln!(text, "//   {line}");
}

impl<'a> Approver<'a> {
    /// The role that sounds like it, else the only one, else one that nobody has yet.
    fn among(people: &'a People) -> Self {
        if people.is_one {
            return Self { role: OWN, remark: "There is\n// nobody else: the folder lists one person." };
        }
        let roles = || people.roles.iter().map(String::as_str).filter(|role| *role != OWN);
        let sounds = |word: &&str| roles().find(|role| role.to_lowercase().contains(*word));
        if let Some(role) = APPROVING.iter().find_map(sounds) {
            return Self { role, remark: "Whoever has the role\n// below may." };
        }
        let mut all = roles();
        match (all.next(), all.next()) {
            (Some(role), None) => Self { role, remark: "It is the only role\n// that the folder lists." },
            (Some(_) | None, _) => Self {
                role: NOBODY_YET,
                remark: "Nobody has the role\n// below yet: give it to whoever may, or name another one here.",
            },
        }
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A text in a comment, which ends with its line.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A text as a literal of Cedar.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
mod tests;
