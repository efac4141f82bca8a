//! `toolgate audit`: the record, and whether it holds.

mod case;
mod erase;
mod replay;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolgate::json::Digest;

use super::color::Style;
use super::failure::FailureCode;
use super::patience::patiently;
use super::why::{body, show};
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
    /// Follow the chain of the record and name the first place where it does not hold
    #[command(after_help = "Example:\n  toolgate audit shop verify")]
    Verify {
        /// A head that was kept elsewhere: the record must still hold it, so that a cut at the end shows
        #[arg(long, value_name = "HASH")]
        head: Option<Digest>,
        /// Print one line of JSON
        #[arg(long)]
        json: bool,
    },
    Replay(replay::Replay),
    Case(case::Case),
    Erase(erase::Erase),
    /// Show the last records
    #[command(after_help = "Example:\n  toolgate audit shop tail -n 5")]
    Tail {
        /// How many
        #[arg(short = 'n', long, default_value_t = 20)]
        count: usize,
        /// Print a line of JSON for each
        #[arg(long)]
        json: bool,
    },
}

impl Audit {
    pub(super) async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let dir = find_folder(self.dir)?;
        match self.action {
            Action::Erase(erase) => erase.run(&dir, output).await,
            Action::Verify { head, json } => {
                let store = open_store(&dir, output)?;
                match patiently("following the chain", store.verify(head), output).await? {
                    Ok(head) => {
                        if json {
                            output.json(&json!({ "ok": true, "records": head.seq, "head": head.hash }));
                        } else {
                            output.labelled(Style::Good, "ok", &format!("{} records, head {}", head.seq, head.hash));
                            output.note(
                                "keep the head elsewhere: `verify --head HASH` later shows whether the end was cut off",
                            );
                        }
                        output.next(&format!("toolgate audit {} verify --head {}", dir.display(), head.hash));
                        Ok(Exit::Ok)
                    }
                    Err(broken) if json => {
                        output.json(&json!({ "ok": false, "record": broken.seq, "problem": broken.to_string() }));
                        Ok(Exit::Refused)
                    }
                    Err(broken) => {
                        Err(Failure::new(FailureCode::RecordBroken, format!("the record does not hold: {broken}")))
                    }
                }
            }
            Action::Replay(replay) => replay.run(&dir, &open_store(&dir, output)?, output).await,
            Action::Case(case) => case.run(&dir, &open_store(&dir, output)?, output).await,
            Action::Tail { count, json } => {
                let store = open_store(&dir, output)?;
                let records = store.tail(count).await?;
                for record in &records {
                    match json {
                        true => output.json::<Value>(&body(record)),
                        false => show(record, output),
                    }
                }
                if let Some(last) = records.last() {
                    output.next(&format!("toolgate why {} {}", dir.display(), last.reference));
                }
                Ok(Exit::Ok)
            }
        }
    }
}
