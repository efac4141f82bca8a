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

impl fmt::Display for Finding {
    /// `path:line:column: message`, the line with a caret, and the hint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file.display(), self.line, self.column, self.message)?;
        if let Some(source) = self.source.as_deref().filter(|source| !source.trim().is_empty()) {
            const WIDTH: usize = 100;
            // Of a long line the part around the place.
            let skipped = if self.column <= WIDTH { 0 } else { self.column - WIDTH / 2 };
            let part = source.chars().skip(skipped).take(WIDTH);
            let shown: String = part.map(|c| if c.is_control() { ' ' } else { c }).collect();
            write!(f, "\n  | {shown}\n  | {:>column$}", "^", column = self.column - skipped)?;
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
