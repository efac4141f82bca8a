//! `toolgate audit tail`: the last records, and those that come.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use toolgate::audit::Sealed;
use toolgate::audit::verify::Row;

use super::filtered::Filtered;
use crate::cli::why::{body, show};
use crate::cli::{Exit, Failure, Output, open_store};

/// Show the last records
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  toolgate audit shop tail -n 5\n  toolgate audit shop tail --follow --effect unknown"
)]
pub(super) struct Tail {
    /// How many
    #[arg(short = 'n', long, default_value_t = 20)]
    count: usize,
    /// Go on with those that come, until it is interrupted
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    filtered: Filtered,
    /// Print a line of JSON for each
    #[arg(long)]
    json: bool,
}

/// How often it is looked whether more was recorded.
const LOOK: Duration = Duration::from_millis(250);

impl Tail {
    pub(super) async fn run(self, dir: &Path, output: &mut Output) -> Result<Exit, Failure> {
        let store = open_store(dir, output)?;
        let filter = self.filtered.filter();
        // Taken first: what is recorded meanwhile is shown once, by one or the other.
        let mut from = store.end().await?.seq.saturating_add(1);
        let records = store.last(self.count, &filter).await?;
        let shown = |record: &Sealed, output: &mut Output| match self.json {
            true => output.json::<Value>(&body(record)),
            false => show(record, output),
        };
        records.iter().filter(|record| record.seq < from).for_each(|record| shown(record, output));
        if !self.follow {
            if let Some(last) = records.last() {
                output.next(&format!("toolgate why {} {}", dir.display(), last.reference));
            }
            return Ok(Exit::Ok);
        }
        loop {
            let (rows, next) = store.page(from).await?;
            for row in rows {
                match row {
                    Row::Sealed(record) if filter.takes(&record) => shown(&record, output),
                    Row::Sealed(_) => {}
                    Row::Unreadable { place, .. } => output.warning(&format!("row {place} holds no record")),
                }
            }
            match next {
                Some(next) => from = next,
                None => tokio::time::sleep(LOOK).await,
            }
        }
    }
}
