//! stdout is the answer, stderr everything else. A reader that goes away is no error.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use clap::builder::StyledStr;
use serde::Serialize;
use serde_json::Value;
use toolgate::schema::inert;

use super::color::{ColorChoice, Style, painted};
use super::{Exit, Failure};
use crate::config::Finding;

/// Where a command writes.
#[derive(Debug)]
pub(crate) struct Output {
    /// Whether a person reads stderr.
    tty: bool,
    /// Whether stdout and stderr are coloured.
    colored: [bool; 2],
    /// Whether the answer could not be written, though its reader was there.
    failed: bool,
}

/// What the command line says of colour. It holds for all that this process writes.
static ASKED: OnceLock<ColorChoice> = OnceLock::new();

impl Output {
    /// Coloured as the command line asks for, which is known from here on.
    pub(super) fn asked(choice: ColorChoice) -> Self {
        // A process has one command line.
        let _ = ASKED.set(choice);
        Self::new()
    }

    /// Coloured as the command line asked for.
    pub(crate) fn new() -> Self {
        let choice = ASKED.get().copied().unwrap_or_default();
        let (out, err) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        Self { tty: err, colored: [choice.colors(out), choice.colors(err)], failed: false }
    }

    /// A line of the answer. What cannot be seen is made visible.
    pub(crate) fn line(&mut self, text: &str) {
        self.raw(&visible(text));
    }

    /// A line of the answer that begins with a word which stands out.
    pub(crate) fn labelled(&mut self, style: Style, label: &str, text: &str) {
        let [colored, _] = self.colored;
        self.raw(&format!("{}: {}", painted(colored, style, &visible(label)), visible(text)));
    }

    /// The answer as one line of JSON.
    pub(crate) fn json<T: Serialize>(&mut self, value: &T) {
        self.raw(&serde_json::to_string(value).unwrap_or_default());
    }

    /// The answer as JSON for people.
    pub(crate) fn pretty<T: Serialize>(&mut self, value: &T) {
        self.raw(&serde_json::to_string_pretty(value).unwrap_or_default());
    }

    /// The answer as a text that this program made itself, such as a script, to the byte.
    pub(crate) fn text(&mut self, text: &str) {
        self.raw(text.strip_suffix('\n').unwrap_or(text));
    }

    /// A fault of a folder beside the answer.
    pub(super) fn finding(&mut self, finding: &Finding) {
        self.told(Style::Place, &finding.place(), &finding.told());
    }

    /// The answer as help that was styled already.
    pub(super) fn styled(&mut self, text: &StyledStr) {
        let [colored, _] = self.colored;
        let shown = if colored { text.ansi().to_string() } else { text.to_string() };
        self.text(&shown);
    }

    /// A line beside the answer.
    pub(crate) fn note(&mut self, text: &str) {
        self.beside(&visible(text));
    }

    /// What was not done, and what to do: the code stands in the line. The command ends with it.
    pub(crate) fn error(&mut self, failure: &Failure) -> Exit {
        let label = format!("error[{}]", failure.code().as_str());
        self.told(Style::Error, &label, failure.message());
        self.told(Style::Hint, "hint", &failure.advice());
        failure.code().exit()
    }

    /// What is done, and what of it is not as it should be.
    pub(crate) fn warning(&mut self, text: &str) {
        self.told(Style::Warning, "warning", text);
    }

    /// A question, on whose line the answer is written.
    pub(super) fn question(&mut self, text: &str) {
        let mut stderr = std::io::stderr();
        // There is nowhere left to say that stderr is gone.
        let _ = write!(stderr, "{}", visible(text)).and_then(|()| stderr.flush());
    }

    /// What to do next, for a person at a terminal. A command says it once, at its end.
    pub(crate) fn next(&mut self, text: &str) {
        if self.tty {
            self.told(Style::Hint, "next", text);
        }
    }

    /// What takes its time, for a person at a terminal.
    pub(crate) fn patience(&mut self, text: &str) {
        if self.tty {
            self.note(text);
        }
    }

    /// Whether the answer could not be written.
    pub(crate) fn failed(&self) -> bool {
        self.failed
    }

    fn told(&mut self, style: Style, label: &str, text: &str) {
        let [_, colored] = self.colored;
        self.beside(&format!("{}: {}", painted(colored, style, &visible(label)), visible(text)));
    }

    fn raw(&mut self, text: &str) {
        let mut stdout = std::io::stdout();
        if let Err(error) = writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
            // A reader that has seen enough, such as `head`, is no error of this command.
            self.failed |= error.kind() != ErrorKind::BrokenPipe;
        }
    }

    fn beside(&mut self, text: &str) {
        // There is nowhere left to say that stderr is gone.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// The text without what could move the cursor, hide or reorder it.
fn visible(text: &str) -> String {
    match inert(Value::from(text)) {
        Value::String(text) => text,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => String::new(),
    }
}
