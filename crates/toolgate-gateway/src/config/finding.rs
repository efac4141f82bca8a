//! What is wrong with a gate folder, each with its file and place.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use toolgate::refusal::Pages;

/// The pages of the codes that are only of folders. What a contract says is explained by the gate itself.
pub(crate) const FAULTS: Pages = Pages::of(include_str!("faults.md"));

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
    /// The stable code of what is wrong: `toolgate explain CODE` has a page on it.
    pub code: Cow<'static, str>,
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
    pub(crate) fn of_file(
        file: impl Into<PathBuf>,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        let (code, message) = (code.into(), message.into());
        Self { file: file.into(), line: 1, column: 1, code, message, hint: None, source: None }
    }

    /// A fault at a byte of a text.
    pub(crate) fn at_offset(
        file: &Path,
        code: impl Into<Cow<'static, str>>,
        text: &str,
        offset: usize,
        message: impl Into<String>,
    ) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before.get(line_start..).map_or(0, |part| part.chars().count()) + 1;
        Self::at(file, code, text, line, column, message)
    }

    /// A fault at a line and a column of a text.
    pub(crate) fn at(
        file: &Path,
        code: impl Into<Cow<'static, str>>,
        text: &str,
        line: usize,
        column: usize,
        message: impl Into<String>,
    ) -> Self {
        let source = text.lines().nth(line.saturating_sub(1)).map(str::to_owned);
        Self { line, column, source, ..Self::of_file(file, code, message) }
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
    /// Where it is: `path:line:column`.
    pub fn place(&self) -> String {
        format!("{}:{}:{}", self.file.display(), self.line, self.column)
    }

    /// What is wrong: `code: message`, the line with a caret, and the hint.
    pub fn told(&self) -> String {
        let mut told = format!("{}: {}", self.code, self.message);
        if let Some(source) = self.source.as_deref().filter(|source| !source.trim().is_empty()) {
            let (shown, at) = self.cut(source);
            told.push_str(&format!("\n  | {shown}\n  | {:>at$}", "^"));
        }
        if let Some(hint) = &self.hint {
            told.push_str(&format!("\n  hint: {hint}"));
        }
        told
    }
}

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
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.told())
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
            let (shown, at) = pointed_at(&Finding::at_offset("x.toml".as_ref(), "x", &line, offset, "wrong"));
            assert_eq!(at, '✗', "{from}..{to}: {shown}");
            assert!(shown.chars().count() <= WIDTH + 6, "{shown}");
            assert_eq!(shown.starts_with("  | …"), 5000 - from >= WIDTH, "{from}");
        }
    }

    #[test]
    fn what_was_cut_away_is_marked() {
        let line = "a".repeat(300);
        let (shown, _) = pointed_at(&Finding::at("x.toml".as_ref(), "x", &line, 1, 1, "wrong"));
        assert_eq!(shown, format!("  | {}…", "a".repeat(WIDTH)));
        let (shown, _) = pointed_at(&Finding::at("x.toml".as_ref(), "x", &line, 1, 200, "wrong"));
        assert_eq!(shown, format!("  | …{}…", "a".repeat(WIDTH)));
        let end = Finding::at("x.toml".as_ref(), "x", &line, 1, 301, "too early").to_string();
        assert!(end.lines().nth(2).unwrap().ends_with('^'));
    }
}
