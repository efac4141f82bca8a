//! The one tree of commands: what is parsed, and what help, completions and man pages show.

use std::ffi::OsString;
use std::path::Path;

use clap::builder::{Resettable, StyledStr};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches};
use toolgate::fields::nearest;

use super::failure::FailureCode;
use super::{Cli, Failure};

/// How wide help may be.
const WIDTH: usize = 80;

/// Examples come first. A command says them as its `after_help`, and what only the manual says as `after_long_help`.
const TEMPLATE: &str = "{about}\n\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// What `toolgate` alone and `toolgate -h` print.
pub(super) const FRONT: &str = "\
toolgate: the trust boundary for LLM tool calls. The model proposes a call; the
gate decides whether it may happen, makes it happen at most once, and answers
with a result or with a reason.

  toolgate init DIR                        write a folder to start from
  toolgate serve DIR                       answer programs over HTTP and MCP
  toolgate wrap -- COMMAND                 put one MCP server behind a gate
  toolgate call DIR TOOL JSON              make one call
  toolgate exec DIR --from openai-chat     answer a model's message on stdin
  toolgate approvals DIR list              what waits for a person
  toolgate check DIR                       every fault of a gate folder

`toolgate --help` lists all commands, `toolgate COMMAND -h` shows one with an
example, `toolgate explain CODE` explains a code that you were given.";

/// What stands first in the manual.
pub(super) const EXAMPLES: &str = "\
Examples:
  toolgate check shop
  toolgate tools shop --as alice@acme
  toolgate call shop get_order '{\"order_id\":\"ord_4821\"}'
  toolgate approvals shop list";

const FOLDER: &str = "\
DIR is the gate folder, the one that holds toolgate.toml. Where it is not named
it is TOOLGATE_DIR, or else the working folder; `toolgate check -v` says which.";

const EXITS: &str = "Exit codes: `toolgate help exit-codes`. A code in an answer: `toolgate explain CODE`.";

/// What the words of a command line ask for.
#[derive(Debug)]
pub(super) enum Asked {
    /// A command.
    Command(Box<Cli>),
    /// Help or the version, which is the answer.
    Text(StyledStr),
    /// What `toolgate` is, where nothing was asked.
    Front,
}

/// The tree, as everything sees it.
pub(super) fn tree() -> Command {
    dressed(Cli::command().term_width(WIDTH).max_term_width(WIDTH))
}

/// A command and those below it, in the house's form.
fn dressed(command: Command) -> Command {
    let has_folder = |command: &Command| command.get_arguments().any(|argument| argument.get_id() == "dir");
    let mut manual: Vec<String> = command.get_after_long_help().map(StyledStr::to_string).into_iter().collect();
    if has_folder(&command) {
        manual.push(FOLDER.to_owned());
    }
    manual.push(EXITS.to_owned());
    let examples = command.get_after_help().cloned();
    let mut command = command
        .help_template(TEMPLATE)
        .disable_help_subcommand(true)
        .arg_required_else_help(false)
        .after_help(Resettable::Reset)
        .after_long_help(manual.join("\n\n"));
    if let Some(examples) = examples {
        command = command.before_help(examples);
    }
    let names: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, dressed))
}

impl Asked {
    /// What the words ask for, the name of the program first.
    pub(super) fn of(words: &[OsString]) -> Result<Self, Failure> {
        if words.len() < 2 {
            return Ok(Self::Front);
        }
        let mut tree = tree();
        match tree.try_get_matches_from_mut(words) {
            Ok(matches) => Cli::from_arg_matches(&matches)
                .map(|cli| Self::Command(Box::new(cli)))
                .map_err(|error| misused(&tree, words, &error)),
            Err(error) => match error.kind() {
                // The manual lists the commands; this is the one screen.
                ErrorKind::DisplayHelp if !words.contains(&"--help".into()) && leads_nowhere(&tree, words) => {
                    Ok(Self::Text(StyledStr::from(FRONT)))
                }
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(Self::Text(error.render())),
                _ => Err(misused(&tree, words, &error)),
            },
        }
    }
}

/// Whether the words name no command.
fn leads_nowhere(tree: &Command, words: &[OsString]) -> bool {
    words.iter().skip(1).all(|word| tree.find_subcommand(word).is_none())
}

/// What is wrong with a command line, and the one thing to change.
fn misused(tree: &Command, words: &[OsString], error: &clap::Error) -> Failure {
    let rendered = error.render().to_string();
    let first = rendered.split("\n\n").next().unwrap_or_default();
    let said: Vec<&str> = first.split('\n').map(str::trim).collect();
    let said = said.join(" ");
    let message = said.strip_prefix("error: ").unwrap_or(&said);
    let failure = Failure::new(FailureCode::Usage, message);
    match suggested(error).or_else(|| taken_for_a_folder(words, error)) {
        Some(near) => failure.hint(near),
        None => failure.hint(format!("{} -h", command_of(tree, words))),
    }
}

/// The word that was probably meant.
fn suggested(error: &clap::Error) -> Option<String> {
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(word) => Some(format!("did you mean {word}?")),
        // The nearest comes last.
        ContextValue::Strings(words) => words.last().map(|word| format!("did you mean {word}?")),
        _ => None,
    })
}

/// A misspelled action where a folder may stand: `toolgate approvals lst`.
fn taken_for_a_folder(words: &[OsString], error: &clap::Error) -> Option<String> {
    let ContextValue::Strings(known) = error.get(ContextKind::ValidSubcommand)? else { return None };
    let last = words.last()?.to_string_lossy();
    if Path::new(last.as_ref()).is_dir() {
        return None;
    }
    nearest(&last, known.iter().map(String::as_str))
}

/// The command that the words lead to, as far as they do.
fn command_of(tree: &Command, words: &[OsString]) -> String {
    let mut command = tree;
    let mut names = vec![tree.get_name()];
    for word in words.iter().skip(1) {
        if let Some(below) = command.find_subcommand(word) {
            names.push(below.get_name());
            command = below;
        }
    }
    names.join(" ")
}

#[cfg(test)]
mod tests;
