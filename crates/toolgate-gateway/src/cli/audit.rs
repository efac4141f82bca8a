//! `toolgate audit`: the record, and whether it holds.

mod case;
mod erase;
mod export;
mod filtered;
mod key;
mod observed;
mod replay;
mod tail;
mod verify;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Exit, Failure, Output, find_folder, open_store};

/// Look at the record and verify it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  toolgate audit shop verify\n  toolgate audit shop tail -n 5")]
pub(super) struct Audit {
    /// The gate folder
    dir: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Verify(verify::Verify),
    Tail(tail::Tail),
    Export(export::Export),
    Key(key::Key),
    Replay(replay::Replay),
    Case(case::Case),
    Erase(erase::Erase),
    Observed(observed::Observed),
}

impl Audit {
    pub(super) async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let dir = match &self.action {
            // An export is verified where there is no folder.
            Action::Verify(verify) if verify.is_of_an_export() => find_folder(self.dir).unwrap_or_default(),
            Action::Verify(_)
            | Action::Tail(_)
            | Action::Export(_)
            | Action::Key(_)
            | Action::Replay(_)
            | Action::Case(_)
            | Action::Erase(_)
            | Action::Observed(_) => find_folder(self.dir)?,
        };
        match self.action {
            Action::Verify(verify) => verify.run(&dir, output).await,
            Action::Tail(tail) => tail.run(&dir, output).await,
            Action::Export(export) => export.run(&dir, output).await,
            Action::Key(key) => key.run(&dir, output),
            Action::Replay(replay) => replay.run(&dir, &open_store(&dir, output)?, output).await,
            Action::Case(case) => case.run(&dir, &open_store(&dir, output)?, output).await,
            Action::Erase(erase) => erase.run(&dir, output).await,
            Action::Observed(observed) => observed.run(&dir, output).await,
        }
    }
}
