//! Colour, which never carries the meaning alone: every word that is coloured says the same without it.

use std::borrow::Cow;
use std::ffi::OsString;

use clap::ValueEnum;

/// Whether to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal that shows it
    #[default]
    Auto,
    /// Whatever reads it
    Always,
    /// Not at all
    Never,
}

/// What a word is, and so how it stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Something was not done.
    Error,
    /// Something was done, but.
    Warning,
    /// What to do.
    Hint,
    /// All is as it should be.
    Good,
    /// A place in a file.
    Place,
}

impl ColorChoice {
    /// What the words of a command line say of colour, known before the rest of them is read. Colour is never mixed
    /// into JSON.
    pub(super) fn asked_by(words: &[OsString]) -> Self {
        let mut choice = Self::Auto;
        let mut words = words.iter().skip(1).map(|word| word.to_string_lossy()).take_while(|word| word != "--");
        while let Some(word) = words.next() {
            let said = match word.as_ref() {
                "--json" => return Self::Never,
                "--color" => words.next().map(Cow::into_owned),
                word => word.strip_prefix("--color=").map(str::to_owned),
            };
            choice = said.and_then(|said| Self::from_str(&said, false).ok()).unwrap_or(choice);
        }
        choice
    }

    /// Whether a stream is coloured. What the command line says stands above the environment, and `NO_COLOR` above
    /// `CLICOLOR_FORCE`.
    pub(super) fn colors(self, terminal: bool) -> bool {
        self.decided(terminal, |name| {
            #[expect(clippy::disallowed_methods, reason = "the command line is the room of the environment")]
            let value = std::env::var_os(name);
            value.map(|value| value.to_string_lossy().into_owned())
        })
    }

    fn decided(self, terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
        let says = |name: &str| variable(name).filter(|value| !value.is_empty());
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if says("NO_COLOR").is_some() => false,
            Self::Auto if says("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
            Self::Auto => terminal && says("TERM").is_none_or(|term| term != "dumb"),
        }
    }
}

impl Style {
    /// The parameters of the escape sequence.
    fn parameters(self) -> &'static str {
        match self {
            Self::Error => "1;31",
            Self::Warning => "1;33",
            Self::Hint => "1;36",
            Self::Good => "1;32",
            Self::Place => "1",
        }
    }
}

/// The text, coloured or as it is.
pub(crate) fn painted(colored: bool, style: Style, text: &str) -> String {
    match colored {
        true => format!("\u{1b}[{}m{text}\u{1b}[0m", style.parameters()),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a stream is coloured under an environment.
    fn decided(choice: ColorChoice, terminal: bool, environment: &[(&str, &str)]) -> bool {
        choice.decided(terminal, |name| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn by_itself_it_is_for_a_terminal_that_shows_it() {
        let auto = |terminal, environment: &[_]| decided(ColorChoice::Auto, terminal, environment);
        assert!(auto(true, &[]) && auto(true, &[("TERM", "xterm")]) && auto(true, &[("NO_COLOR", "")]));
        assert!(!auto(false, &[]) && !auto(true, &[("TERM", "dumb")]) && !auto(true, &[("NO_COLOR", "1")]));
        assert!(auto(false, &[("CLICOLOR_FORCE", "1")]) && !auto(false, &[("CLICOLOR_FORCE", "0")]));
        assert!(!auto(true, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]));
    }

    #[test]
    fn it_is_known_before_the_rest_of_the_words_is_read() {
        let color = |words: &[&str]| ColorChoice::asked_by(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(color(&["toolgate", "check", "--color", "always"]), ColorChoice::Always);
        assert_eq!(color(&["toolgate", "--color=never", "chek"]), ColorChoice::Never);
        assert_eq!(color(&["toolgate", "--color", "always", "check", "--json"]), ColorChoice::Never);
        assert_eq!(color(&["toolgate", "call", "--", "--color=always"]), ColorChoice::Auto);
    }

    #[test]
    fn what_the_command_line_says_stands_above_the_environment() {
        assert!(decided(ColorChoice::Always, false, &[("NO_COLOR", "1"), ("TERM", "dumb")]));
        assert!(!decided(ColorChoice::Never, true, &[("CLICOLOR_FORCE", "1")]));
    }
}
