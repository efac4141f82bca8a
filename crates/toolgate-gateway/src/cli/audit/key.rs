//! `toolgate audit key`: the public half of the key that signs checkpoints.

use std::path::Path;

use clap::Args;
use serde_json::json;

use crate::cli::failure::FailureCode;
use crate::cli::{Exit, Failure, Output, told};
use crate::config;

/// Print the public key of this folder's checkpoints
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  toolgate audit shop key",
    after_long_help = "Keep it elsewhere. The key is made where `key` of [audit.checkpoints] says if it is not there. What it signed is \
                       verified with `toolgate audit verify --public-key HEX`."
)]
pub(super) struct Key {
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Key {
    pub(super) fn run(self, dir: &Path, output: &mut Output) -> Result<Exit, Failure> {
        let Some(checkpoints) = config::checkpoints(dir).map_err(|error| told(error, dir, output))? else {
            return Err(Failure::new(FailureCode::NoCheckpoints, "this folder keeps no checkpoints")
                .hint("[audit.checkpoints] to = \"/mnt/elsewhere/checkpoints.jsonl\" in toolgate.toml"));
        };
        let key =
            checkpoints.signing_key().map_err(|error| Failure::new(FailureCode::Unwritable, error.to_string()))?;
        match self.json {
            true => output.json(&json!({ "key": key.public() })),
            false => output.line(&key.public().to_string()),
        }
        Ok(Exit::Ok)
    }
}
