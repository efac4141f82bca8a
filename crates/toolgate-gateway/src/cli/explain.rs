//! `toolgate explain` and `toolgate help`.

use clap::Args;
use serde_json::json;
use toolgate::fields::nearest;
use toolgate::refusal::{Code, Pages, problem_codes, problem_page};

use super::failure::FailureCode;
use super::tree::tree;
use super::{Exit, Failure, Output, admit};
use crate::config::FAULTS;
use crate::http::PROBLEMS;

/// Explain a code that you were given.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  toolgate explain rule_failed\n  toolgate explain unknown_key",
    after_long_help = "Codes stand behind `code` in an answer and in its problems, behind `error` on the terminal, and \
                       behind the place of a fault in a gate folder. A code never changes its meaning."
)]
pub(super) struct Explain {
    /// The code
    code: String,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Print help.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  toolgate help approvals list\n  toolgate help exit-codes")]
pub(super) struct Help {
    /// The words of a command, or `exit-codes`
    #[arg(value_name = "TOPIC")]
    topic: Vec<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let page = page(&self.code).ok_or_else(|| unknown(&self.code))?;
        match self.json {
            true => output.json(&json!({ "code": self.code, "page": page })),
            false => output.line(page.trim_end()),
        }
        Ok(Exit::Ok)
    }
}

/// The names by which evidence tells where a call was taken otherwise than it was written.
const LENIENCIES: Pages = Pages::of(include_str!("leniencies.md"));

/// What has short pages of this program alone: codes of folders, of lines of cases and of the door, and leniencies.
const SHORT: [Pages; 4] = [FAULTS, admit::CODES, PROBLEMS, LENIENCIES];

/// The page of any code that this program says.
pub(crate) fn page(code: &str) -> Option<String> {
    let refusal = || Code::parse(code).map(|code| code.page().to_owned());
    let failure = || FailureCode::ALL.iter().find(|known| known.as_str() == code).map(|known| known.page().to_owned());
    let short = || SHORT.iter().find_map(|pages| pages.page(code));
    refusal().or_else(|| problem_page(code)).or_else(short).or_else(failure)
}

/// Every code that this program says: of refusals, of problems, of folders, lines and requests, and of commands.
fn codes() -> impl Iterator<Item = &'static str> {
    let refusals = Code::ALL.iter().map(|code| code.as_str());
    let failures = FailureCode::ALL.iter().map(|code| code.as_str());
    refusals.chain(problem_codes()).chain(SHORT.into_iter().flat_map(Pages::codes)).chain(failures)
}

/// The pages of all codes.
#[cfg(test)]
pub(super) fn pages() -> impl Iterator<Item = String> {
    codes().filter_map(page)
}

fn unknown(code: &str) -> Failure {
    let failure = Failure::new(FailureCode::UnknownCode, "there is no such code");
    match nearest(code, codes()) {
        Some(near) => failure.hint(near),
        None => {
            let all: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
            failure.hint(format!("codes of refusals: {}", all.join(" ")))
        }
    }
}

impl Help {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let words: Vec<&str> = self.topic.iter().map(String::as_str).collect();
        let text = match words.as_slice() {
            ["exit-codes"] => exit_codes(),
            words => manual(words)?,
        };
        match self.json {
            true => output.json(&json!({ "help": text })),
            false => output.line(text.trim_end()),
        }
        Ok(Exit::Ok)
    }
}

/// The manual of a command.
fn manual(words: &[&str]) -> Result<String, Failure> {
    let mut command = tree();
    command.build();
    for word in words {
        let Some(below) = command.find_subcommand(word).cloned() else {
            let names: Vec<&str> =
                command.get_subcommands().map(clap::Command::get_name).chain(["exit-codes"]).collect();
            let failure = Failure::new(FailureCode::UnknownTopic, "there is no such command or topic");
            return Err(match nearest(word, names.into_iter()) {
                Some(near) => failure.hint(near),
                None => failure.hint("toolgate --help"),
            });
        };
        command = below;
    }
    Ok(command.render_long_help().to_string())
}

fn exit_codes() -> String {
    let lines: Vec<String> = Exit::ALL.iter().map(|exit| format!("{}  {}", exit.number(), exit.meaning())).collect();
    lines.join("\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::collections::BTreeSet;

    use toolgate::leniency::Leniency;
    use toolgate::refusal::HEADINGS;

    use super::*;

    #[test]
    fn every_code_is_explained_under_the_four_headings() {
        for code in codes() {
            let page = page(code).unwrap();
            assert!(page.starts_with(&format!("# {code}\n")), "the page of {code} starts with its name");
            for heading in HEADINGS {
                assert!(page.contains(&format!("\n## {heading}\n\n")), "the page of {code} lacks {heading}");
            }
        }
    }

    #[test]
    fn every_leniency_is_explained_by_its_name() {
        for leniency in Leniency::ALL {
            assert!(page(leniency.as_str()).is_some(), "{}", leniency.as_str());
        }
    }

    #[test]
    fn a_code_means_one_thing() {
        let mut seen = BTreeSet::new();
        let twice: Vec<&str> = codes().filter(|code| !seen.insert(*code)).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
