//! What is wrong with a gate folder, each with its file and place.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use toolgate::refusal::Pages;

/// The pages of the codes that are only of folders. What a contract says is explained by the gate itself.
pub(crate) const FAULTS: Pages = Pages::of(include_str!("faults.md"));

/// One fault of a gate folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the folder.
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

    pub(crate) fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl Finding {
    /// Where it is: `path:line:column`.
    pub fn place(&self) -> String {
        format!("{}:{}:{}", self.file.display(), self.line, self.column)
    }

    /// What is wrong: `code: message`, the line with a caret, and the hint.
    pub fn told(&self) -> String {
        let mut told = format!("{}: {}", self.code, self.message);
        if let Some(source) = self.source.as_deref().filter(|source| !source.trim().is_empty()) {
            const WIDTH: usize = 100;
            if self.column <= WIDTH {
                let shown: String = source.chars().take(WIDTH).map(|c| if c.is_control() { ' ' } else { c }).collect();
                told.push_str(&format!("\n  | {shown}\n  | {:>column$}", "^", column = self.column));
            }
        }
        if let Some(hint) = &self.hint {
            told.push_str(&format!("\n  hint: {hint}"));
        }
        told
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.told())
    }
}
