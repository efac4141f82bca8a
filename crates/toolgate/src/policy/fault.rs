//! What is wrong with a policy text, for the person who wrote it.

use std::fmt;

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
}

impl PolicyFault {
    /// A fault in the contract of `tool`.
    pub(super) fn in_contract(tool: &str, message: impl Into<String>, hint: Option<String>) -> Self {
        Self { source: format!("tools/{tool}.toml"), line: 0, column: 0, message: message.into(), hint }
    }

    /// The tool whose contract the fault is in.
    pub fn tool(&self) -> Option<&str> {
        self.source.strip_prefix("tools/")?.strip_suffix(".toml")
    }

    /// What should not happen, whatever the operator wrote.
    pub(super) fn of_the_gate(message: &str) -> Self {
        let hint = Some("this is a fault of the gate; please report it with the contracts and policies".to_owned());
        Self { source: "policies".into(), line: 0, column: 0, message: message.to_owned(), hint }
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
