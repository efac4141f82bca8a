//! `toolgate tools`: what somebody may see.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use toolgate::wire::Dialect;

use super::exec::parse_dialect;
use super::tagged::Tagged;
use super::{Exit, Failure, Output, find_folder, load};
use crate::config::Purpose;
use crate::shown;

/// List the tools that somebody may see.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolgate tools shop --for openai-chat --as alice@acme")]
pub(super) struct Tools {
    /// The gate folder
    dir: Option<PathBuf>,
    /// Print the definitions as this dialect takes them, for `tools` of a request
    #[arg(long = "for", value_name = "DIALECT", value_parser = parse_dialect)]
    dialect: Option<Dialect>,
    /// Who is asking: a user that the folder lists
    #[arg(long = "as", value_name = "USER@TENANT")]
    user: Option<String>,
    #[command(flatten)]
    tagged: Tagged,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Tools {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let dir = find_folder(self.dir)?;
        let loaded = load(&dir, Purpose::Look, output)?;
        let session = loaded.identity.session(self.user.as_deref())?;
        let session = self.tagged.bound(session, loaded.gate.contracts())?;
        let tools = loaded.gate.tools(&session);
        if let Some(dialect) = self.dialect {
            let definitions = dialect.definitions(&tools);
            match self.json {
                true => output.json(&definitions),
                false => output.pretty(&definitions),
            }
            return Ok(Exit::Ok);
        }
        match self.json {
            true => output.json(&tools.iter().map(|tool| shown::tool(tool)).collect::<Vec<Value>>()),
            false => {
                for tool in &tools {
                    let first = tool.description().split(". ").next().unwrap_or_default();
                    output.line(&format!("{:5}  {:24} {first}", shown::effect(tool), tool.name()));
                }
            }
        }
        if let Some(tool) = tools.first() {
            output.next(&format!("toolgate call {} {} JSON", dir.display(), tool.name()));
        }
        Ok(Exit::Ok)
    }
}
