//! The built-in policy: reads are permitted, writes as the flags say.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What becomes of writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    /// None is offered.
    Off,
    /// These are permitted.
    Named(BTreeSet<String>),
    /// All are permitted.
    All,
    /// Each waits until the person has said yes to exactly this call.
    Asked,
}

impl Writes {
    /// The policy, in the Cedar language. `confirm` is the command that says yes, `known` the tools that there are: a policy
    /// can only speak of those.
    pub(crate) fn policy(&self, confirm: &str, known: Option<&BTreeSet<&str>>) -> String {
        let mut text = "\
// Whoever started this process may have everything looked at.
@id(\"wrap.reads\")
permit (principal, action in Action::\"read\", resource);
"
        .to_owned();
        match self {
            Self::Off => text.push_str("\n// Writes are off: nothing permits them.\n"),
            Self::Named(names) => {
                let is_known = |name: &&String| known.is_none_or(|known| known.contains(name.as_str()));
                let actions: Vec<String> =
                    names.iter().filter(is_known).map(|name| format!("Action::\"{name}\"")).collect();
                if !actions.is_empty() {
                    let actions = actions.join(", ");
                    // Writing to a text cannot fail.
                    let _ = write!(
                        text,
                        "\n// Named by --allow.\n@id(\"wrap.allowed\")\npermit (principal, action in [{actions}], resource);\n"
                    );
                }
            }
            Self::All => text.push_str(WRITES),
            Self::Asked => {
                let message = quoted(&format!(
                    "A write waits until the person who uses this server says yes to exactly this call: `{confirm}`."
                ));
                text.push_str(WRITES);
                let _ = write!(
                    text,
                    "
// Each write is confirmed by the person, by name of the exact call.
@id(\"wrap.ask\")
@approvers(\"self\")
@message({message})
forbid (principal, action in Action::\"write\", resource)
unless {{ context.approved }};
"
                );
            }
        }
        text
    }
}

const WRITES: &str = "
@id(\"wrap.writes\")
permit (principal, action in Action::\"write\", resource);
";

/// A text as a Cedar literal of a message, which would take braces for its own.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '{' | '}' => out.extend([c, c]),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tools_that_there_are_are_named() {
        let writes = Writes::Named(["a".to_owned(), "b".to_owned()].into());
        let known = BTreeSet::from(["b", "c"]);
        assert!(writes.policy("", Some(&known)).contains("action in [Action::\"b\"]"));
        assert!(!writes.policy("", Some(&BTreeSet::from(["c"]))).contains("wrap.allowed"));
        assert!(writes.policy("", None).contains("[Action::\"a\", Action::\"b\"]"));
    }

    #[test]
    fn a_path_stays_a_path_inside_the_message() {
        let policy = Writes::Asked.policy("toolgate approvals '/a \"b\"\\{c}' approve ID", None);
        assert!(policy.contains(r#"approvals '/a \"b\"\\{{c}}' approve ID`.")"#), "{policy}");
    }
}
