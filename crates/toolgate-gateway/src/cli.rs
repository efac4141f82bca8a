//! The command line: one tree of commands, its manners, and its exit codes.

mod admit;
mod approvals;
mod audit;
mod call;
mod check;
mod color;
mod completions;
mod confirm;
mod deny;
mod exec;
mod exit;
mod explain;
mod failure;
mod folder;
mod health;
mod init;
mod journal;
mod ledger;
mod man;
mod mcp;
mod observing;
mod output;
mod patience;
mod schema;
mod serve;
mod signals;
mod tagged;
mod token;
mod tools;
mod tree;
mod why;
mod wrap;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use color::ColorChoice;
pub use exit::Exit;
#[cfg(test)]
pub(crate) use explain::page;
pub(crate) use failure::{Failure, FailureCode};
use folder::{find_folder, load, open_store, tell_set_aside, told, warn_of};
pub(crate) use journal::{Said, Say, journal};
pub(crate) use output::Output;
use tree::{Asked, FRONT};

/// The trust boundary for LLM tool calls.
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, about = "The trust boundary for LLM tool calls.", after_help = tree::EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Colour the output: auto, always or never
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    color: ColorChoice,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a new gate folder to start from
    Init(init::Init),
    /// Answer a model's message: its tool calls on stdin become tool messages on stdout
    Exec(exec::Exec),
    /// Answer programs over HTTP
    Serve(serve::Serve),
    /// Make one call
    Call(call::Call),
    /// Admission alone: whether calls keep their contracts, a case a line
    Admit(admit::Admit),
    /// List the tools that somebody may see
    Tools(tools::Tools),
    /// Serve a gate to one MCP client on stdin and stdout
    Mcp(mcp::Mcp),
    /// Check a gate folder: every fault at once
    Check(check::Check),
    /// Look at approvals and answer them
    Approvals(approvals::Approvals),
    /// Look at actions, and say what became of unknown ones
    Ledger(ledger::Ledger),
    /// Stop a tool, a tenant or all calls for a while
    Deny(deny::Deny),
    /// Give out tokens, list them, take them back
    Token(token::Token),
    /// Look at the record and verify it
    Audit(audit::Audit),
    /// Tell what really happened to a call
    Why(why::Why),
    /// Ask a running `toolgate serve` whether it takes calls
    Health(health::Health),
    /// Put one MCP server behind a gate, on stdin and stdout
    Wrap(wrap::Wrap),
    /// Explain a code that you were given
    Explain(explain::Explain),
    /// Print help, of a command or of `exit-codes`
    Help(explain::Help),
    /// Print the JSON Schema of a file or of an answer
    Schema(schema::Schema),
    /// Print the completion script of a shell
    Completions(completions::Completions),
    /// Print the manual page, or write the pages of all commands
    Man(man::Man),
}

/// Runs the command of this process.
pub fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let mut output = Output::asked(ColorChoice::asked_by(&words));
    let ended = match Asked::of(&words) {
        Ok(Asked::Command(cli)) => cli.run(&mut output),
        Ok(Asked::Text(text)) => {
            output.styled(&text);
            Ok(Exit::Ok)
        }
        Ok(Asked::Front) => {
            output.note(FRONT);
            return Exit::Usage.into();
        }
        Err(failure) => Err(failure),
    };
    journal::flush();
    let unwritten =
        || Failure::new(FailureCode::OutputFailed, "the answer could not be written; what was done is done");
    match ended {
        Ok(_) if output.failed() => output.error(&unwritten()).into(),
        Ok(exit) => exit.into(),
        Err(failure) => output.error(&failure).into(),
    }
}

impl Cli {
    fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        // A server has the cores to itself; whoever makes one call would only pay for starting threads.
        let mut runtime = match self.command {
            Command::Serve(_) => tokio::runtime::Builder::new_multi_thread(),
            _ => tokio::runtime::Builder::new_current_thread(),
        };
        let runtime = runtime
            .enable_all()
            .build()
            .map_err(|error| Failure::fault(format!("the runtime cannot be started: {error}")))?;
        runtime.block_on(async {
            match self.command {
                Command::Init(init) => init.run(output).await,
                Command::Exec(exec) => exec.run(output).await,
                Command::Serve(serve) => serve.run(output).await,
                Command::Health(health) => health.run(output).await,
                Command::Call(call) => call.run(output).await,
                Command::Admit(admit) => admit.run(),
                Command::Tools(tools) => tools.run(output),
                Command::Mcp(mcp) => mcp.run(output).await,
                Command::Check(check) => check.run(output).await,
                Command::Approvals(approvals) => approvals.run(output).await,
                Command::Ledger(ledger) => ledger.run(output).await,
                Command::Deny(deny) => deny.run(output).await,
                Command::Token(token) => token.run(output),
                Command::Audit(audit) => audit.run(output).await,
                Command::Why(why) => why.run(output).await,
                Command::Wrap(wrap) => wrap.run(output).await,
                Command::Explain(explain) => explain.run(output),
                Command::Help(help) => help.run(output),
                Command::Schema(schema) => schema.run(output),
                Command::Completions(completions) => completions.run(output),
                Command::Man(man) => man.run(output),
            }
        })
    }
}
