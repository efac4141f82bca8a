//! `toolgate explain` and `toolgate help`.

use clap::Args;
use serde_json::json;
use toolgate::fields::nearest;
use toolgate::refusal::{Code, problem_codes, problem_page};

use super::{Exit, Failure, Output};

/// Explain the code of a refusal or a problem.
#[derive(Debug, Args)]
#[command(after_help = "Example: toolgate explain rule_failed")]
pub(super) struct Explain {
    /// The code
    code: String,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Print help.
#[derive(Debug, Args)]
pub(super) struct Help {
    /// A command, or `exit-codes`
    topic: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let page = match Code::parse(&self.code) {
            Some(code) => code.page().to_owned(),
            None => {
                let page = problem_page(&self.code).or_else(|| crate::http::page(&self.code));
                page.ok_or_else(|| unknown(&self.code))?
            }
        };
        match self.json {
            true => output.json(&json!({ "code": self.code, "page": page })),
            false => output.line(page.trim_end()),
        }
        Ok(Exit::Ok)
    }
}

fn unknown(code: &str) -> Failure {
    let codes = Code::ALL.iter().map(|code| code.as_str()).chain(problem_codes());
    let failure = Failure::usage("there is no such code");
    match nearest(code, codes) {
        Some(near) => failure.hint(near),
        None => {
            let all: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
            failure.hint(format!("codes of refusals: {}", all.join(" ")))
        }
    }
}

impl Help {
    pub(super) fn run(self, output: &mut Output, mut tree: clap::Command) -> Result<Exit, Failure> {
        let text = match self.topic.as_deref() {
            None => tree.render_long_help().to_string(),
            Some("exit-codes") => exit_codes(),
            Some(topic) => match tree.find_subcommand_mut(topic) {
                Some(command) => command.render_long_help().to_string(),
                None => {
                    let names: Vec<String> = tree.get_subcommands().map(|c| c.get_name().to_owned()).collect();
                    let names = names.iter().map(String::as_str).chain(["exit-codes"]);
                    let failure = Failure::usage("there is no such command or topic");
                    return Err(match nearest(topic, names) {
                        Some(near) => failure.hint(near),
                        None => failure.hint("toolgate --help lists the commands"),
                    });
                }
            },
        };
        match self.json {
            true => output.json(&json!({ "help": text })),
            false => output.line(text.trim_end()),
        }
        Ok(Exit::Ok)
    }
}

fn exit_codes() -> String {
    let lines: Vec<String> = Exit::ALL.iter().map(|exit| format!("{}  {}", exit.number(), exit.meaning())).collect();
    lines.join("\n")
}
