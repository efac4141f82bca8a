//! `toolgate audit`: the record, and whether it holds.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolgate::json::Digest;

use super::why::{body, show};
use super::{Exit, Failure, Output, open_store};

/// Look at the record and verify it.
#[derive(Debug, Args)]
#[command(after_help = "Example: toolgate audit examples/shop verify")]
pub(super) struct Audit {
    /// The gate folder
    dir: PathBuf,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Follow the chain of the record and name the first place where it does not hold
    Verify {
        /// A head that was kept elsewhere: the record must still hold it, so that a cut at the end shows
        #[arg(long, value_name = "HASH")]
        head: Option<Digest>,
        /// Print one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the last records
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
        let store = open_store(&self.dir, output)?;
        match self.action {
            Action::Verify { head, json } => match store.verify(head).await? {
                Ok(head) => {
                    if json {
                        output.json(&json!({ "ok": true, "records": head.seq, "head": head.hash }));
                    } else {
                        output.line(&format!("ok: {} records, head {}", head.seq, head.hash));
                        output.note(
                            "keep the head elsewhere: `verify --head HASH` later shows whether the end was cut off",
                        );
                    }
                    Ok(Exit::Ok)
                }
                Err(broken) if json => {
                    output.json(&json!({ "ok": false, "record": broken.seq, "problem": broken.to_string() }));
                    Ok(Exit::Refused)
                }
                Err(broken) => Err(Failure::new(Exit::Refused, format!("the record does not hold: {broken}"))),
            },
            Action::Tail { count, json } => {
                for record in store.tail(count).await? {
                    match json {
                        true => output.json::<Value>(&body(&record)),
                        false => show(&record, output),
                    }
                }
                Ok(Exit::Ok)
            }
        }
    }
}
