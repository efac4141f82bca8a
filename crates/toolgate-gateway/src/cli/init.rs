//! `toolgate init`: a new gate folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::json;
use tokio::time::Instant;
use toolgate::contract::Access;

use super::failure::FailureCode;
use super::journal::journal;
use super::patience::patiently;
use super::{Exit, Failure, Output};
use crate::import::{Import, import};
use crate::init::{FIRST_CALL, NewFolder, NotWritten, Server, WORDS, imported, left_out, review, story};
use crate::mcp::upstream::{Environment, Program, Upstream};

/// Write a new gate folder: the story of a refund, or the tools of a server.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  toolgate init shop\n  \
                        toolgate init repo --from mcp -- uvx mcp-server-git --repository .")]
pub(super) struct Init {
    /// The folder to write, new or empty; the working folder if left out
    #[arg(value_name = "DIR")]
    new: Option<PathBuf>,
    /// Take the tools of a server that is started for this: mcp
    #[arg(long, value_name = "KIND", requires = "command", hide_possible_values = true)]
    from: Option<Source>,
    /// What the folder calls the server; else what it calls itself
    #[arg(long, value_name = "NAME", requires = "from", value_parser = parse_name)]
    name: Option<String>,
    /// Print every text of the server that a model would read
    #[arg(long, requires = "from")]
    review: bool,
    /// Show what would be written
    #[arg(long)]
    dry_run: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    /// The command that starts the server
    #[arg(last = true, value_name = "CMD", requires = "from")]
    command: Vec<String>,
}

/// Where tools come from.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Source {
    /// An MCP server that speaks over its stdin and stdout
    Mcp,
}

/// How long a server may take to start and to list its tools: a package runner fetches the package first.
const LONGEST_LIST: Duration = Duration::from_secs(90);
/// What a server is called that calls itself nothing that could be a name here.
const NAMELESS: &str = "server";

impl Init {
    pub(super) async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let dir = self.new.as_deref().unwrap_or(Path::new("."));
        // Before a server is started for nothing.
        NewFolder::fits(dir)?;
        match self.from {
            None => self.write(dir, &story(), None, output),
            Some(Source::Mcp) => {
                let directory = std::env::current_dir()
                    .map_err(|error| Failure::new(FailureCode::NoSuchFolder, format!("the working folder: {error}")))?;
                let (import, named) =
                    patiently("the server is asked for its tools", self.ask(&directory), output).await?;
                let name = self.name.clone().unwrap_or(named);
                let server = Server { name: &name, command: &self.command, directory: &directory };
                self.write(dir, &imported(server, &import), Some(&import), output)
            }
        }
    }

    /// Starts the server, and takes what it lists and how it calls itself.
    async fn ask(&self, directory: &Path) -> Result<(Import, String), Failure> {
        let program = Program {
            command: self.command.clone(),
            directory: Some(directory.to_owned()),
            environment: Environment::Inherited,
        };
        let upstream = Upstream::new(program, journal());
        let listed = upstream.list(Instant::now() + LONGEST_LIST).await;
        let name = upstream.server().map(|server| server.name).and_then(|name| parse_name(&name).ok());
        upstream.close().await;
        let listing = listed.map_err(|not| {
            let message = format!("the tools of the server cannot be had: {}; nothing was written", not.why);
            Failure::new(FailureCode::ServerFailed, message)
        })?;
        Ok((import(&listing.definitions, &[]), name.unwrap_or_else(|| NAMELESS.to_owned())))
    }

    fn write(
        &self,
        dir: &Path,
        folder: &NewFolder,
        import: Option<&Import>,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        match self.dry_run {
            true => output.note("dry run: nothing is written"),
            false => folder.write(dir)?,
        }
        if self.json {
            let files: Vec<&str> = folder.paths().collect();
            let mut said = json!({ "dry_run": self.dry_run, "dir": dir.to_string_lossy(), "files": files });
            if let (Some(import), Some(said)) = (import, said.as_object_mut()) {
                said.insert("left_out".to_owned(), json!(left_out(import)));
                if self.review {
                    said.insert("review".to_owned(), json!(review(import)));
                }
            }
            output.json(&said);
            return Ok(Exit::Ok);
        }
        for line in folder.tree(&dir.to_string_lossy()) {
            output.line(&line);
        }
        let dir = dir.display();
        match import {
            None if self.dry_run => {}
            None => {
                output.line(WORDS);
                let [tool, arguments] = FIRST_CALL;
                output.next(&format!("toolgate call {dir} {tool} '{arguments}'"));
            }
            Some(import) => {
                let lines = if self.review { review(import) } else { left_out(import) };
                lines.iter().for_each(|line| output.line(line));
                output.line(&summary(import));
                output.next(&format!("toolgate tools {dir}"));
            }
        }
        Ok(Exit::Ok)
    }
}

fn summary(import: &Import) -> String {
    let reads = import.tools.iter().filter(|tool| tool.access == Access::Read).count();
    let writes = import.tools.len() - reads;
    format!("reads: {reads}, which local@local may call; writes: {writes}, which wait for a policy of yours.")
}

/// A name that can stand as a key of TOML and in a policy as it is.
fn parse_name(name: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match (1..=64).contains(&name.len()) && name.bytes().all(plain) {
        true => Ok(name.to_owned()),
        false => Err("a name is made of 1 to 64 of the characters A-Z a-z 0-9 _ -".to_owned()),
    }
}

impl From<NotWritten> for Failure {
    fn from(not: NotWritten) -> Self {
        match &not {
            NotWritten::NotEmpty(_) | NotWritten::NotAFolder(_) => {
                Self::new(FailureCode::FolderNotEmpty, not.to_string())
                    .hint("name a folder that is not there yet: toolgate init NEW")
            }
            NotWritten::Refused { .. } => Self::new(FailureCode::Unwritable, not.to_string()),
        }
    }
}
