//! `toolgate wrap`: one MCP server behind a gate, with nothing to configure.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::failure::FailureCode;
use super::journal::{self, journal};
use super::signals::stop_on_interrupt;
use super::{Exit, Failure, Output};
use crate::mcp::connection;
use crate::mcp::stdio::{self, FrameWriter, Frames};
use crate::mcp::upstream::{Environment, Program};
use crate::wrap::{Options, State, Wrapped, Writes};

/// Put one MCP server behind a gate: its tools pinned, its reads permitted, its writes as you say.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  toolgate wrap --ask -- uvx mcp-server-git --repository .\n  \
                  toolgate wrap --allow write_file --print-config -- ./server",
    after_long_help = "Without a flag only tools that say they read are offered. The model's tool `toolgate_status` \
                       tells what is off and why."
)]
pub(super) struct Wrap {
    /// Permit these tools that write
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', group = "writes")]
    allow: Vec<String>,
    /// Permit all tools that write
    #[arg(long, group = "writes")]
    allow_writes: bool,
    /// Offer all that write; each such call waits until you say yes
    #[arg(long, group = "writes")]
    ask: bool,
    /// Accept the tools and files of the server as they are now
    #[arg(long)]
    repin: bool,
    /// Keep the state here; each command has a folder of its own
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print the policy of these flags, and serve nothing
    #[arg(long)]
    print_policy: bool,
    /// Print the entry for a client's `mcpServers`
    #[arg(long)]
    print_config: bool,
    /// The server: a program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Wrap {
    pub(super) async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let state = State::new(self.dir()?);
        if self.print_config {
            output.pretty(&self.entry()?);
            return Ok(Exit::Ok);
        }
        let writes = self.writes()?;
        if self.print_policy {
            output.text(&writes.policy(&state.confirm("ID"), None));
            return Ok(Exit::Ok);
        }
        let stop = stop_on_interrupt();
        let program = Program { command: self.command, directory: None, environment: Environment::Inherited };
        let options = Options { writes, repin: self.repin };
        let wrapped = Wrapped::new(program, state, options, journal())?;
        let unserved = |error| Failure::fault(format!("stdin and stdout cannot be served: {error}"));
        let stdin = stdio::stdin().map_err(unserved)?;
        let writer = FrameWriter::stdout().map_err(unserved)?;
        let lines = Frames::new(stdin, stdio::LONGEST_LINE);
        connection::serve(Arc::clone(&wrapped), lines, &writer, &stop, &journal()).await;
        let closed = wrapped.close().await;
        journal::flush();
        closed?;
        Ok(Exit::Ok)
    }

    fn dir(&self) -> Result<PathBuf, Failure> {
        let dir = self.state.clone().or_else(|| State::default_dir(&self.command)).ok_or_else(|| {
            let message = "there is no place for the state: neither XDG_STATE_HOME nor HOME is set";
            Failure::new(FailureCode::NoStateFolder, message).hint("name one with --state DIR")
        })?;
        let unplaced = |error| Failure::new(FailureCode::NoStateFolder, format!("{}: {error}", dir.display()));
        std::path::absolute(&dir).map_err(unplaced)
    }

    fn writes(&self) -> Result<Writes, Failure> {
        let names: BTreeSet<String> = self.allow.iter().map(|name| name.trim().to_owned()).collect();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if names.iter().any(|name| name.is_empty() || name.len() > 128 || !name.chars().all(plain)) {
            return Err(Failure::usage("--allow takes names of tools, with commas between them"));
        }
        Ok(match (self.ask, self.allow_writes, names.is_empty()) {
            (true, _, _) => Writes::Asked,
            (false, true, _) => Writes::All,
            (false, false, false) => Writes::Named(names),
            (false, false, true) => Writes::Off,
        })
    }

    /// `{"mcpServers": {NAME: ...}}`, which starts this very program.
    fn entry(&self) -> Result<Value, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::fault(format!("where this program is cannot be found out: {error}")))?;
        let mut arguments = vec!["wrap".to_owned()];
        if !self.allow.is_empty() {
            arguments.extend(["--allow".to_owned(), self.allow.join(",")]);
        }
        arguments.extend(self.allow_writes.then(|| "--allow-writes".to_owned()));
        arguments.extend(self.ask.then(|| "--ask".to_owned()));
        if self.state.is_some() {
            arguments.extend(["--state".to_owned(), self.dir()?.to_string_lossy().into_owned()]);
        }
        arguments.push("--".to_owned());
        arguments.extend(self.command.iter().cloned());
        let name = server_name(&self.command);
        Ok(json!({ "mcpServers": { name: { "command": program.to_string_lossy(), "args": arguments } } }))
    }
}

/// What a client may call the server: the last part of its program, or of the package that a runner is given.
fn server_name(command: &[String]) -> String {
    const RUNNERS: [&str; 9] = ["npx", "uvx", "bunx", "pnpx", "node", "python", "python3", "uv", "docker"];
    let last_part = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let program = command.first().map(|program| last_part(program)).unwrap_or_default();
    let package = command.iter().skip(1).find(|word| !word.starts_with('-'));
    let name = match package {
        Some(package) if RUNNERS.contains(&program.as_str()) => last_part(package),
        Some(_) | None => program,
    };
    // Without a version, and without the ending of a script.
    let name = name.split('@').next().unwrap_or_default();
    let name = name.split('.').next().unwrap_or_default();
    if name.is_empty() { "wrapped".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_after_its_package_or_program() {
        for (command, name) in [
            (&["npx", "-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "/tmp"][..], "server-filesystem"),
            (&["/opt/bin/mcp-server-git", "--repository", "."], "mcp-server-git"),
            (&["node", "dist/index.js"], "index"),
            (&["uvx", "mcp-server-time"], "mcp-server-time"),
        ] {
            assert_eq!(server_name(&command.iter().map(|&word| word.to_owned()).collect::<Vec<_>>()), name);
        }
    }
}
