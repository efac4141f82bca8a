//! `toolgate man`: the manual pages, from the one tree.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man as Roff;
use serde_json::{Value, json};

use super::failure::FailureCode;
use super::tree::tree;
use super::{Exit, Failure, Output};

/// Print the manual page, or write the pages of all commands.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  toolgate man | man -l -\n  toolgate man --out ~/.local/share/man/man1")]
pub(super) struct Man {
    /// Write a page for each command into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Name the pages and write none
    #[arg(long, requires = "out")]
    dry_run: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// The page of one command.
struct Page {
    file: String,
    text: String,
}

impl Man {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let pages = pages().map_err(|error| Failure::fault(format!("a page cannot be made: {error}")))?;
        if self.dry_run {
            output.note("dry run: nothing is written");
        }
        let dir = self.out.as_deref();
        if let Some(dir) = dir.filter(|_| !self.dry_run) {
            write(dir, &pages)?;
        }
        let path = |page: &Page| dir.map_or_else(|| page.file.clone().into(), |dir| dir.join(&page.file));
        if self.json {
            let shown: Vec<Value> = pages
                .iter()
                .map(|page| json!({ "file": path(page).display().to_string(), "page": page.text }))
                .collect();
            output.json(&json!({ "written": dir.is_some() && !self.dry_run, "pages": shown }));
        } else if dir.is_some() {
            pages.iter().for_each(|page| output.line(&path(page).display().to_string()));
        } else if let Some(first) = pages.first() {
            output.text(&first.text);
        }
        Ok(Exit::Ok)
    }
}

fn write(dir: &Path, pages: &[Page]) -> Result<(), Failure> {
    let unwritable = |path: &Path, error: io::Error| {
        Failure::new(FailureCode::Unwritable, format!("{} cannot be written: {error}", path.display()))
    };
    std::fs::create_dir_all(dir).map_err(|error| unwritable(dir, error))?;
    for page in pages {
        let path = dir.join(&page.file);
        std::fs::write(&path, &page.text).map_err(|error| unwritable(&path, error))?;
    }
    Ok(())
}

/// The pages of all commands, the one of `toolgate` itself first.
fn pages() -> io::Result<Vec<Page>> {
    let mut tree = tree();
    tree.build();
    let mut pages = Vec::new();
    add(tree, &mut pages)?;
    Ok(pages)
}

fn add(command: Command, pages: &mut Vec<Page>) -> io::Result<()> {
    let below: Vec<Command> = command.get_subcommands().cloned().collect();
    let examples = command.get_before_help().map(ToString::to_string);
    let manual = command.get_after_long_help().map(ToString::to_string);
    let extra: Vec<String> = examples.into_iter().chain(manual).collect();
    let roff = Roff::new(command.after_long_help(extra.join("\n\n")));
    let mut text = Vec::new();
    roff.render(&mut text)?;
    pages.push(Page { file: roff.get_filename(), text: String::from_utf8_lossy(&text).into_owned() });
    below.into_iter().try_for_each(|command| add(command, pages))
}
