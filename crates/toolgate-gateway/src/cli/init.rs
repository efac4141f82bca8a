//! `toolgate init`: a new gate folder.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::{Exit, Failure, Output};
use crate::init::{FIRST_CALL, NotWritten, WORDS, story};

/// Write a new gate folder: an order desk whose refunds a manager must approve.
#[derive(Debug, Args)]
#[command(after_help = "Example: toolgate init shop")]
pub(super) struct Init {
    /// The folder to write; without it the working folder, which must be empty then
    dir: Option<PathBuf>,
    /// Show what would be written
    #[arg(long)]
    dry_run: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Init {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let dir = self.dir.as_deref().unwrap_or(Path::new("."));
        let folder = story();
        match self.dry_run {
            true => folder.fits(dir)?,
            false => folder.write(dir)?,
        }
        if self.json {
            let files: Vec<&str> = folder.paths().collect();
            output.json(&json!({ "dry_run": self.dry_run, "dir": dir.to_string_lossy(), "files": files }));
            return Ok(Exit::Ok);
        }
        if self.dry_run {
            output.line("dry run: nothing is written; it would be");
        }
        for line in folder.tree(&dir.to_string_lossy()) {
            output.line(&line);
        }
        if !self.dry_run {
            output.line(WORDS);
            let [tool, arguments] = FIRST_CALL;
            output.next(&format!("toolgate call {} {tool} '{arguments}'", dir.display()));
        }
        Ok(Exit::Ok)
    }
}

impl From<NotWritten> for Failure {
    fn from(not: NotWritten) -> Self {
        match &not {
            NotWritten::NotEmpty(_) | NotWritten::NotAFolder(_) => {
                Self::usage(not.to_string()).hint("name a folder that is not there yet: toolgate init NEW")
            }
            NotWritten::Refused { .. } => Self::usage(not.to_string()),
        }
    }
}
