//! `toolgate audit export`: the record as lines of JSON, to be kept and verified elsewhere.

use std::path::Path;

use clap::Args;
use toolgate::audit::verify::Row;

use super::filtered::Filtered;
use crate::cli::failure::FailureCode;
use crate::cli::{Exit, Failure, Output, open_store};

/// Write the record as lines of JSON, each with its hash
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  toolgate audit shop export > record.jsonl\n  \
                  toolgate audit shop export --since 2026-01-31 --tool create_refund",
    after_long_help = "The text of a record stands in its line as it was sealed, so that `toolgate audit verify --export \
                       FILE` verifies the lines like the store. Where a filter leaves some out, it is verified with \
                       --filtered."
)]
pub(super) struct Export {
    /// A line of JSON for each record, which is the one form there is
    #[arg(long, visible_alias = "jsonl")]
    json: bool,
    #[command(flatten)]
    filtered: Filtered,
}

impl Export {
    pub(super) async fn run(self, dir: &Path, output: &mut Output) -> Result<Exit, Failure> {
        let store = open_store(dir, output)?;
        let filter = self.filtered.filter();
        let mut unreadable: Option<i64> = None;
        let mut next = Some(0);
        while let Some(from) = next {
            let (rows, after) = store.page(from).await?;
            for row in rows {
                match row {
                    Row::Sealed(record) if filter.takes(&record) => output.text(&record.line()),
                    Row::Sealed(_) => {}
                    Row::Unreadable { place, .. } => {
                        unreadable.get_or_insert(place);
                    }
                }
            }
            // Nobody reads on, so that nobody waits for the rest.
            next = after.filter(|_| !output.failed());
        }
        match unreadable {
            None => Ok(Exit::Ok),
            Some(place) => {
                let message = format!("row {place} holds no record, and is not in the export");
                let hint = format!("toolgate audit {} verify", dir.display());
                Err(Failure::new(FailureCode::RecordBroken, message).hint(hint))
            }
        }
    }
}
