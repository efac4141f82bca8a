//! What is wrong with a gate folder, each with its file and place.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// One fault of a gate folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// The file, relative to the folder.
    #[serde(serialize_with = "as_shown")]
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// The text of the line, to show the place.
    #[serde(skip)]
    pub source: Option<String>,
}

impl Finding {
    /// A fault of a file as a whole.
    pub(crate) fn of_file(file: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self { file: file.into(), line: 1, column: 1, message: message.into(), hint: None, source: None }
    }

    /// A fault at a byte of a text.
    pub(crate) fn at_offset(file: &Path, text: &str, offset: usize, message: impl Into<String>) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before.get(line_start..).map_or(0, |part| part.chars().count()) + 1;
        Self::at(file, text, line, column, message)
    }

    /// A fault at a line and a column of a text.
    pub(crate) fn at(file: &Path, text: &str, line: usize, column: usize, message: impl Into<String>) -> Self {
        let source = text.lines().nth(line.saturating_sub(1)).map(str::to_owned);
        Self { file: file.to_owned(), line, column, message: message.into(), hint: None, source }
    }

    /// Without the line itself, which may hold what is nobody's business.
    pub(crate) fn unshown(self) -> Self {
        Self { source: None, ..self }
    }

    pub(crate) fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

/// How much of a line is shown, in characters.
const WIDTH: usize = 100;

impl Finding {
    /// The part of the line around the column, and the column in it.
    fn cut(&self, source: &str) -> (String, usize) {
        let skipped = if self.column > WIDTH { self.column - WIDTH / 2 } else { 0 };
        let mut rest = source.chars().skip(skipped).map(|c| if c.is_control() { ' ' } else { c });
        let mut shown: String = if skipped > 0 { "…".to_owned() } else { String::new() };
        shown.extend(rest.by_ref().take(WIDTH));
        if rest.next().is_some() {
            shown.push('…');
        }
        (shown, self.column - skipped + usize::from(skipped > 0))
    }
}

impl fmt::Display for Finding {
    /// `path:line:column: message`, the line with a caret, and the hint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file.display(), self.line, self.column, self.message)?;
        if let Some(source) = self.source.as_deref().filter(|source| !source.trim().is_empty()) {
            let (shown, at) = self.cut(source);
            write!(f, "\n  | {shown}\n  | {:>at$}", "^")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

/// A path as people see it: one that is not UTF-8 has no other form in JSON.
fn as_shown<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;

    /// The character that the caret stands under.
    fn pointed_at(finding: &Finding) -> (String, char) {
        let told = finding.to_string();
        let lines: Vec<&str> = told.lines().collect();
        let column = lines[2].chars().count() - 1;
        (lines[1].to_owned(), lines[1].chars().nth(column).unwrap())
    }

    #[test]
    fn the_caret_stands_under_the_place_in_lines_of_any_length() {
        let text = format!("{}✗{}", "é".repeat(5000), "ü".repeat(5000));
        for (from, to) in [(0, 5001), (4950, 5100), (5000, 10_001), (4000, 5001), (4901, 5001), (4900, 5001)] {
            let line: String = text.chars().skip(from).take(to - from).collect();
            let offset = line.find('✗').unwrap();
            let (shown, at) = pointed_at(&Finding::at_offset("x.toml".as_ref(), &line, offset, "wrong"));
            assert_eq!(at, '✗', "{from}..{to}: {shown}");
            assert!(shown.chars().count() <= WIDTH + 6, "{shown}");
            assert_eq!(shown.starts_with("  | …"), 5000 - from >= WIDTH, "{from}");
        }
    }

    #[test]
    fn what_was_cut_away_is_marked() {
        let line = "a".repeat(300);
        let (shown, _) = pointed_at(&Finding::at("x.toml".as_ref(), &line, 1, 1, "wrong"));
        assert_eq!(shown, format!("  | {}…", "a".repeat(WIDTH)));
        let (shown, _) = pointed_at(&Finding::at("x.toml".as_ref(), &line, 1, 200, "wrong"));
        assert_eq!(shown, format!("  | …{}…", "a".repeat(WIDTH)));
        let end = Finding::at("x.toml".as_ref(), &line, 1, 301, "too early").to_string();
        assert!(end.lines().nth(2).unwrap().ends_with('^'));
    }
}
