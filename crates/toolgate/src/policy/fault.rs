//! What is wrong with a policy text, for the person who wrote it.

use std::fmt;

/// What kind of fault a policy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyCode {
    /// It is not in the Cedar language.
    Syntax,
    /// It names a member that is not there.
    Member,
    /// It names or compares what does not fit.
    Type,
    /// It can never apply, which may follow from another fault.
    Idle,
    /// Its annotations do not say what annotations can say.
    Annotation,
    /// Its head names somebody or something that cannot be.
    Name,
    /// What a contract says makes no policy.
    Contract,
    /// It should not happen, whatever the operator wrote.
    Internal,
    /// A warning: it takes what a model wrote for proof of who is asking.
    Claim,
    /// A warning: it compares a number that may have no exact form.
    Inexact,
    /// A warning: it asks a run for a label that no tool gives.
    Label,
    /// A warning: it asks a run for a call of a tool that is not there.
    Tool,
    /// A warning: it names a role that nobody has whom the folder lists.
    Role,
}

/// A fault of a policy, with its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyFault {
    /// The file that the fault is in.
    pub source: String,
    /// The line, counted from 1; 0 where the fault is in a contract and the message names the key instead.
    pub line: usize,
    /// The column in characters, counted from 1; 0 like the line.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// What kind of fault it is.
    pub code: PolicyCode,
}

impl PolicyFault {
    /// A fault in the contract of `tool`.
    pub(super) fn in_contract(tool: &str, code: PolicyCode, message: impl Into<String>, hint: Option<String>) -> Self {
        Self { code, source: format!("tools/{tool}.toml"), line: 0, column: 0, message: message.into(), hint }
    }

    /// The tool in whose contract the fault is, where it is in one: in the key `approval`, or in a name.
    pub fn tool(&self) -> Option<&str> {
        let file = self.source.strip_prefix("tools/")?.strip_suffix(".toml")?;
        (self.line == 0).then_some(file)
    }

    /// What should not happen, whatever the operator wrote.
    pub(super) fn of_the_gate(message: &str) -> Self {
        let hint = Some("this is a fault of the gate; please report it with the contracts and policies".to_owned());
        let code = PolicyCode::Internal;
        Self { code, source: "policies".into(), line: 0, column: 0, message: message.to_owned(), hint }
    }
}

impl PolicyCode {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 13] = [
        Self::Syntax,
        Self::Member,
        Self::Type,
        Self::Idle,
        Self::Annotation,
        Self::Name,
        Self::Contract,
        Self::Internal,
        Self::Claim,
        Self::Inexact,
        Self::Label,
        Self::Tool,
        Self::Role,
    ];

    /// The code as it stands in findings and documentation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "cedar_syntax",
            Self::Member => "cedar_member",
            Self::Type => "cedar_type",
            Self::Idle => "cedar_idle",
            Self::Annotation => "cedar_annotation",
            Self::Name => "cedar_name",
            Self::Contract => "cedar_contract",
            Self::Internal => "cedar_internal",
            Self::Claim => "cedar_claim",
            Self::Inexact => "cedar_inexact",
            Self::Label => "cedar_label",
            Self::Tool => "cedar_tool",
            Self::Role => "cedar_role",
        }
    }
}

impl fmt::Display for PolicyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// The hint for an unknown `word`: the known one that it resembles or begins, else the known ones if they are few.
pub(super) fn suggest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    const FEW: usize = 12;
    const LONG: usize = 4;
    let mut known: Vec<&str> = known.into_iter().collect();
    known.sort_unstable();
    known.dedup();
    let allowed = 1 + word.chars().count() / 4;
    let nearest = known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min();
    let longer = || known.iter().copied().find(|candidate| word.len() >= LONG && candidate.contains(word));
    match nearest.map(|(_, candidate)| candidate).or_else(longer) {
        Some(candidate) => Some(format!("did you mean `{candidate}`?")),
        None if known.is_empty() || known.len() > FEW => None,
        None => Some(format!("known: {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page() {
        for code in PolicyCode::ALL {
            assert!(crate::refusal::problem_page(code.as_str()).is_some(), "{code:?}");
        }
    }
}
