//! `toolgate call`: one call.

use std::path::Path;

use clap::Args;
use toolgate::call::OperationId;
use toolgate::refusal::Code;
use toolgate::trace::Trace;
use toolgate::{Call as Proposed, Reply};

use super::confirm::{Confirmed, can_ask, confirmed};
use super::failure::FailureCode;
use super::folder::Folder;
use super::observing::{tell_observed, tell_would_refuse};
use super::patience::patiently;
use super::signals::stop_on_interrupt;
use super::tagged::Tagged;
use super::{Exit, Failure, Output, load, warn_of};
use crate::config::Purpose;
use crate::shown::Shown;

/// Make one call.
#[derive(Debug, Args)]
#[command(
    override_usage = "toolgate call [OPTIONS] [DIR] TOOL [JSON]",
    after_help = "Example:\n  toolgate call shop get_order '{\"order_id\":\"ord_1\"}' --as alice@acme",
    after_long_help = "Of two words the first is DIR if it is a folder that holds toolgate.toml, and else TOOL."
)]
pub(super) struct Call {
    /// The gate folder
    dir: Option<String>,
    /// The name of the tool
    tool: Option<String>,
    /// The arguments, as the text that a model would send; `{}` if left out
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    /// Who is asking: a user that the folder lists
    #[arg(long = "as", value_name = "USER@TENANT")]
    user: Option<String>,
    #[command(flatten)]
    tagged: Tagged,
    /// Name the operation; the contract says `caller = true`
    #[arg(long, value_name = "ID")]
    operation: Option<String>,
    /// Name the approval that is to be used
    #[arg(long, value_name = "ID")]
    approval: Option<String>,
    /// Judge the call; ask nobody and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Ask nothing at the terminal, not even for your own yes
    #[arg(long)]
    no_input: bool,
    /// Show what every stage learned
    #[arg(long)]
    trace: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Call {
    pub(super) async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let stopped = stop_on_interrupt();
        let operation = self.operation.as_deref().map(OperationId::parse).transpose();
        let operation = operation.map_err(|error| Failure::new(FailureCode::InvalidOperation, error.to_string()))?;
        let (Folder { path: dir, .. }, [tool, arguments, _]) = Folder::of_words([self.dir, self.tool, self.arguments])?;
        let tool = tool.ok_or_else(|| {
            Failure::usage("the name of a tool is missing").hint(format!("toolgate tools {}", dir.display()))
        })?;
        let loaded = load(&dir, Purpose::Run, output)?;
        warn_of(&loaded.identity, output);
        let session = loaded.identity.caller(self.user.as_deref())?.session_from(loaded.gate.now());
        let session = self.tagged.bound(session, loaded.gate.contracts())?;
        tell_observed(loaded.gate.observed(), loaded.gate.contracts().count(), output);
        let call = || {
            let call = Proposed::new("call_1", &tool, arguments.as_deref().unwrap_or("{}").as_bytes());
            let call = operation.iter().fold(call, |call, operation| call.operation(operation.clone()));
            self.approval.iter().fold(call, |call, approval| call.approval(approval))
        };
        let mut denied = false;
        let reply = if self.dry_run {
            output.note("dry run: nobody is asked and nothing is run");
            loaded.gate.dry_run(call(), &session).await?
        } else {
            let reply = patiently("the call is running", loaded.gate.call(call(), &session), output).await?;
            let asks = !self.json && !self.no_input && can_ask();
            let answered = match asks {
                true => confirmed(&loaded.gate, &reply, &session, &stopped, output).await?,
                false => Confirmed::Open,
            };
            denied = answered == Confirmed::No;
            match answered {
                Confirmed::Yes => patiently("the call is running", loaded.gate.call(call(), &session), output).await?,
                Confirmed::No | Confirmed::Open => reply,
            }
        };
        loaded.finish().await?;
        if self.trace && !self.json {
            show_trace(reply.trace(), output);
        }
        if denied {
            // The reply was made before the answer, and still says that the call waits.
            return Ok(Exit::Refused);
        }
        let trace = Some(reply.trace()).filter(|_| self.trace && self.json);
        let shown = Shown { dry_run: self.dry_run, reply: &reply, trace };
        match self.json {
            true => output.json(&shown),
            false => output.pretty(&shown),
        }
        tell_would_refuse(&reply, output);
        advise(&reply, &dir, output);
        Ok(Exit::of(&reply))
    }
}

fn advise(reply: &Reply, dir: &Path, output: &mut Output) {
    let dir = dir.display();
    let notice = reply.refusal().and_then(|refusal| refusal.approval_notice());
    match (reply.code(), notice) {
        (Some(Code::ApprovalRequired), Some(notice)) => {
            output.next(&format!("toolgate approvals {dir} approve {} --as USER@TENANT", notice.id));
        }
        (Some(code), _) => output.next(&format!("toolgate explain {code}")),
        (None, _) => output.next(&format!("toolgate why {dir} {}", reply.reference())),
    }
}

/// A line a stage, on stderr.
pub(super) fn show_trace(trace: &Trace, output: &mut Output) {
    for note in trace.stages() {
        let learned = serde_json::to_string(&note.learned).unwrap_or_default();
        output.note(&format!("{:8} {:>7} us  {learned}", note.stage, note.micros));
    }
}
