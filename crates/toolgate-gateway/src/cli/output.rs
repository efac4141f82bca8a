//! stdout is the answer, stderr everything else. A reader that goes away is no error.

use std::io::{ErrorKind, IsTerminal, Write};

use serde::Serialize;
use serde_json::Value;
use toolgate::schema::inert;

/// Where a command writes.
#[derive(Debug)]
pub(crate) struct Output {
    tty: bool,
    /// Whether the answer could not be written, though its reader was there.
    failed: bool,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self { tty: std::io::stderr().is_terminal(), failed: false }
    }

    /// A line of the answer. What cannot be seen is made visible.
    pub(crate) fn line(&mut self, text: &str) {
        self.raw(&visible(text));
    }

    /// Text of ours as the answer, as it is.
    pub(crate) fn text(&mut self, text: &str) {
        self.raw(text.trim_end());
    }

    /// The answer as one line of JSON.
    pub(crate) fn json<T: Serialize>(&mut self, value: &T) {
        self.raw(&serde_json::to_string(value).unwrap_or_default());
    }

    /// The answer as JSON for people.
    pub(crate) fn pretty<T: Serialize>(&mut self, value: &T) {
        self.raw(&serde_json::to_string_pretty(value).unwrap_or_default());
    }

    /// A line beside the answer.
    pub(crate) fn note(&mut self, text: &str) {
        // There is nowhere left to say that stderr is gone.
        let _ = writeln!(std::io::stderr(), "{}", visible(text));
    }

    /// What to do next, for a person at a terminal.
    pub(crate) fn next(&mut self, text: &str) {
        if self.tty {
            self.note(&format!("next: {text}"));
        }
    }

    fn raw(&mut self, text: &str) {
        let mut stdout = std::io::stdout();
        if let Err(error) = writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
            // A reader that has seen enough, such as `head`, is no error of this command.
            self.failed |= error.kind() != ErrorKind::BrokenPipe;
        }
    }

    /// Whether the answer could not be written.
    pub(crate) fn failed(&self) -> bool {
        self.failed
    }
}

/// The text without what could move the cursor, hide or reorder it.
fn visible(text: &str) -> String {
    match inert(Value::from(text)) {
        Value::String(text) => text,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => String::new(),
    }
}
