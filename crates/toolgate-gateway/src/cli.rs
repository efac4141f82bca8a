//! The command line: one tree of commands, its manners, and its exit codes.

mod admit;
mod approvals;
mod audit;
mod call;
mod check;
mod exec;
mod exit;
mod explain;
mod health;
mod output;
mod serve;
mod signals;
mod tools;
mod why;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use toolgate::ledger::Store;

use crate::config::{self, LoadError, Loaded, Purpose};

pub use exit::Exit;
use output::Output;

/// The trust boundary for LLM tool calls.
#[derive(Debug, Parser)]
#[command(
    name = "toolgate",
    version,
    about = "The trust boundary for LLM tool calls.",
    disable_help_subcommand = true,
    max_term_width = 100
)]
#[command(after_help = "Exit codes: `toolgate help exit-codes`. Codes of refusals: `toolgate explain CODE`.")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
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
    /// Check a gate folder: every fault at once
    Check(check::Check),
    /// Look at approvals and answer them
    Approvals(approvals::Approvals),
    /// Look at the record and verify it
    Audit(audit::Audit),
    /// Tell what really happened to a call
    Why(why::Why),
    /// Ask a running `toolgate serve` whether it takes calls
    Health(health::Health),
    /// Explain the code of a refusal or a problem
    Explain(explain::Explain),
    /// Print help, of a command or of `exit-codes`
    Help(explain::Help),
}

/// What a person reads when a command does not do what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
    hint: Option<String>,
}

/// Runs the command of this process.
pub fn main() -> ExitCode {
    let mut output = Output::new();
    let arguments: Vec<_> = std::env::args_os().collect();
    if arguments.len() < 2 {
        output.note(FRONT);
        return Exit::Usage.into();
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Ok.into(),
                _ => Exit::Usage.into(),
            };
        }
    };
    match cli.run(&mut output) {
        Ok(_) if output.failed() => {
            output.note("error: the answer could not be written; what was done is done");
            Exit::Fault.into()
        }
        Ok(exit) => exit.into(),
        Err(Failure { exit, message, hint }) => {
            output.note(&format!("error: {message}"));
            if let Some(hint) = hint {
                output.note(&format!("hint: {hint}"));
            }
            exit.into()
        }
    }
}

const FRONT: &str = "\
toolgate: the trust boundary for LLM tool calls. The model proposes a call; the gate decides whether it may happen,
makes it happen at most once, and answers with a result or with a reason.

  toolgate call DIR TOOL JSON              make one call
  toolgate exec DIR --from openai-chat     answer a model's message on stdin
  toolgate approvals DIR list              what waits for a person
  toolgate check DIR                       every fault of a gate folder

`toolgate --help` lists all commands, `toolgate COMMAND --help` explains one.";

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
                Command::Exec(exec) => exec.run(output).await,
                Command::Serve(serve) => serve.run(output).await,
                Command::Health(health) => health.run(output).await,
                Command::Call(call) => call.run(output).await,
                Command::Admit(admit) => admit.run(),
                Command::Tools(tools) => tools.run(output),
                Command::Check(check) => check.run(output),
                Command::Approvals(approvals) => approvals.run(output).await,
                Command::Audit(audit) => audit.run(output).await,
                Command::Why(why) => why.run(output).await,
                Command::Explain(explain) => explain.run(output),
                Command::Help(help) => help.run(output, Cli::command()),
            }
        })
    }
}

/// The folder that was named, else `$TOOLGATE_DIR`, else the working folder if it is one.
fn find_folder(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    #[expect(clippy::disallowed_methods, reason = "the command line is the room of the environment")]
    let from_environment = || std::env::var_os("TOOLGATE_DIR").map(PathBuf::from);
    let here = || Path::new("toolgate.toml").is_file().then(|| PathBuf::from("."));
    named.or_else(from_environment).or_else(here).ok_or_else(|| {
        Failure::usage("no gate folder: none was named, and there is no toolgate.toml here")
            .hint("name the folder, or set TOOLGATE_DIR")
    })
}

/// Loads the gate of a folder; its faults go to stderr, all at once.
fn load(dir: &Path, purpose: Purpose, output: &mut Output) -> Result<Loaded, Failure> {
    if !dir.is_dir() {
        return Err(Failure::usage(format!("there is no folder {}", dir.display())));
    }
    config::load(dir, purpose).map_err(|error| told(error, dir, output))
}

/// Opens the store of a folder.
fn open_store(dir: &Path, output: &mut Output) -> Result<Store, Failure> {
    config::open_store(dir).map_err(|error| told(error, dir, output))
}

fn told(error: LoadError, dir: &Path, output: &mut Output) -> Failure {
    match error {
        LoadError::Findings(findings) => {
            for finding in &findings {
                output.note(&finding.to_string());
            }
            let count = findings.len();
            let plural = if count == 1 { "fault" } else { "faults" };
            Failure::usage(format!("{count} {plural} in {}; nothing was run", dir.display()))
        }
        LoadError::Store(error) => Failure::fault(error.to_string()),
    }
}

impl Failure {
    fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    fn fault(message: impl Into<String>) -> Self {
        Self::new(Exit::Fault, message)
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<toolgate::fault::Fault> for Failure {
    fn from(fault: toolgate::fault::Fault) -> Self {
        Self::fault(fault.to_string())
    }
}

impl From<toolgate::ledger::StoreError> for Failure {
    fn from(error: toolgate::ledger::StoreError) -> Self {
        Self::fault(error.to_string())
    }
}

impl From<crate::identity::Unlisted> for Failure {
    fn from(unlisted: crate::identity::Unlisted) -> Self {
        Self { exit: Exit::Usage, message: unlisted.to_string(), hint: unlisted.hint }
    }
}
