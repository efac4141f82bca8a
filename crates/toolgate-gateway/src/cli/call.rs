//! `toolgate call`: one call.

use std::path::PathBuf;

use clap::Args;
use toolgate::call::OperationId;
use toolgate::refusal::Code;
use toolgate::trace::Trace;
use toolgate::{Call as Proposed, Reply};

use super::signals::drain_on_interrupt;
use super::{Exit, Failure, Output, load};
use crate::config::Purpose;
use crate::shown::Shown;

/// Make one call.
#[derive(Debug, Args)]
#[command(after_help = "Example: toolgate call examples/shop get_order '{\"order_id\":\"ord_4821\"}' --as alice@acme")]
pub(super) struct Call {
    /// The gate folder
    dir: PathBuf,
    /// The name of the tool
    tool: String,
    /// The arguments, as the text that a model would send
    #[arg(default_value = "{}")]
    arguments: String,
    /// Who is asking: a user that the folder lists
    #[arg(long = "as", value_name = "USER@TENANT")]
    user: Option<String>,
    /// Name the operation, where the contract says `caller = true`
    #[arg(long, value_name = "ID")]
    operation: Option<String>,
    /// Name the approval that is to be used
    #[arg(long, value_name = "ID")]
    approval: Option<String>,
    /// Judge the call without asking anybody or running anything
    #[arg(long)]
    dry_run: bool,
    /// Show what every stage learned
    #[arg(long)]
    trace: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Call {
    pub(super) async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        drain_on_interrupt();
        let operation = self.operation.as_deref().map(OperationId::parse).transpose();
        let operation = operation.map_err(|error| Failure::usage(error.to_string()))?;
        let loaded = load(&self.dir, Purpose::Run, output)?;
        let session = loaded.identity.session(self.user.as_deref())?;
        let mut call = Proposed::new("call_1", &self.tool, self.arguments.as_bytes());
        if let Some(operation) = operation {
            call = call.operation(operation);
        }
        if let Some(approval) = &self.approval {
            call = call.approval(approval);
        }
        let reply = if self.dry_run {
            output.note("dry run: nobody is asked and nothing is run");
            loaded.gate.dry_run(call, &session).await?
        } else {
            loaded.gate.call(call, &session).await?
        };
        loaded.gate.finish().await?;
        if self.trace && !self.json {
            show_trace(reply.trace(), output);
        }
        let trace = Some(reply.trace()).filter(|_| self.trace && self.json);
        let shown = Shown { dry_run: self.dry_run, reply: &reply, trace };
        match self.json {
            true => output.json(&shown),
            false => output.pretty(&shown),
        }
        if !self.json {
            self.advise(&reply, output);
        }
        Ok(Exit::of(&reply))
    }

    fn advise(&self, reply: &Reply, output: &mut Output) {
        let dir = self.dir.display();
        match reply.code() {
            Some(Code::ApprovalRequired) => {
                if let Some(notice) = reply.refusal().and_then(|refusal| refusal.approval_notice()) {
                    output.next(&format!("toolgate approvals {dir} approve {} --as USER@TENANT", notice.id));
                }
            }
            Some(code) => output.next(&format!("toolgate explain {code}")),
            None => output.next(&format!("toolgate why {dir} {}", reply.reference())),
        }
    }
}

/// A line a stage, on stderr.
pub(super) fn show_trace(trace: &Trace, output: &mut Output) {
    for note in trace.stages() {
        let learned = serde_json::to_string(&note.learned).unwrap_or_default();
        output.note(&format!("{:8} {:>7} us  {learned}", note.stage, note.micros));
    }
}
