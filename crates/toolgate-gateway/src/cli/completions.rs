//! `toolgate completions`: a script for the shell, from the one tree.

use clap::{Args, ValueEnum};
use clap_complete::{Shell, generate};
use serde_json::json;

use super::tree::tree;
use super::{Exit, Failure, Output};

/// Print the completion script of a shell.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  source <(toolgate completions bash)")]
pub(super) struct Completions {
    /// The shell
    shell: Interpreter,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// The shells that there are scripts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Interpreter {
    Bash,
    Zsh,
    Fish,
    #[value(name = "powershell")]
    PowerShell,
}

impl Completions {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let generator = match self.shell {
            Interpreter::Bash => Shell::Bash,
            Interpreter::Zsh => Shell::Zsh,
            Interpreter::Fish => Shell::Fish,
            Interpreter::PowerShell => Shell::PowerShell,
        };
        let mut script = Vec::new();
        generate(generator, &mut tree(), "toolgate", &mut script);
        let script = String::from_utf8_lossy(&script);
        match self.json {
            true => output.json(&json!({ "shell": generator.to_string(), "script": script })),
            false => output.text(&script),
        }
        Ok(Exit::Ok)
    }
}
