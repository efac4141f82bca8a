//! `toolgate audit erase`: what is personal to somebody becomes unreadable.

use std::path::Path;

use clap::Args;
use serde_json::json;
use toolgate::clock::{Clock, SystemClock};
use toolgate::gate::{InDoubt, NotErased, erase};

use crate::cli::color::Style;
use crate::cli::failure::FailureCode;
use crate::cli::folder::open_store_to_write;
use crate::cli::{Exit, Failure, Output};
use crate::config;

/// Make what is personal to somebody unreadable
///
/// Everything that contracts mark `x-personal` is sealed and digested under a key of whoever it is of. This deletes that
/// key. What is sealed in the ledger cannot be read any more, and nobody can tell from the record whether two values of
/// theirs were equal. That they called, and which tools, stays, and the
/// chain of the record still holds.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolgate audit shop erase --subject cus_17 --tenant acme")]
pub(crate) struct Erase {
    /// Whose: what the contract's `subject` says of a call, or else the name of whoever asked
    #[arg(long, value_name = "NAME")]
    subject: String,
    /// The tenant that they belong to; not needed where the folder lists users of one tenant alone
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Erase also what may be running, or may have happened: it cannot be looked up afterwards
    #[arg(long)]
    even_unknown: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Erase {
    pub(super) async fn run(self, dir: &Path, output: &mut Output) -> Result<Exit, Failure> {
        let store = open_store_to_write(dir, output)?;
        let identity = config::identity(dir).map_err(|error| crate::cli::folder::told(error, dir, output))?;
        let operator = identity.operator_in(self.tenant.as_deref())?;
        let in_doubt = if self.even_unknown { InDoubt::Erased } else { InDoubt::Spared };
        match erase(&store, &self.subject, &operator, in_doubt, SystemClock.now()).await {
            Ok(erased) if self.json => {
                output.json(&json!({
                    "ok": true,
                    "subject": erased.subject,
                    "actions": erased.actions,
                    "in_log": erased.in_log,
                }));
                Ok(Exit::Ok)
            }
            Ok(erased) => {
                let actions = if erased.actions == 1 { "action" } else { "actions" };
                let done = format!(
                    "their key is deleted: what was sealed or digested under it can be read or compared no more, in {} \
                     {actions} of the ledger and on the record",
                    erased.actions
                );
                output.labelled(Style::Good, "erased", &done);
                output.line(&format!(
                    "stays: digests that nobody can make again, and who called what; they are {}",
                    erased.subject
                ));
                if erased.in_log {
                    output.warning(
                        "a copy of the deleted key is still in the log beside the store (-wal): another program reads an \
                         old moment of it. End that program, and run any command that writes to the store; until then \
                         whoever has the files can read what was erased",
                    );
                }
                output.next(&format!("toolgate audit {} verify", dir.display()));
                Ok(Exit::Ok)
            }
            Err(nobody @ NotErased::Nobody) => Err(Failure::new(FailureCode::UnknownSubject, nobody.to_string())),
            Err(doubt @ NotErased::InDoubt(_)) => Err(Failure::new(FailureCode::SubjectInDoubt, doubt.to_string())
                .hint("find out how they ended, or say --even-unknown")),
            Err(NotErased::Store(error)) => Err(error.into()),
        }
    }
}
