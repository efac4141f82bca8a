//! `toolgate approvals`: what waits for a person, and a person's answer.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;
use toolgate::approval::{Approval, NotDecided};
use toolgate::clock::Millis;

use super::{Exit, Failure, Output, load};
use crate::config::Purpose;
use crate::shown;

/// Look at approvals and answer them.
#[derive(Debug, Args)]
#[command(after_help = "Example: toolgate approvals examples/shop approve apr_01J8... --as mia@acme")]
pub(super) struct Approvals {
    /// The gate folder
    dir: PathBuf,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the approvals of a tenant, newest first
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Show one approval: the exact arguments and who may answer
    Show {
        /// Its id
        id: String,
        #[command(flatten)]
        common: Common,
    },
    /// Say yes; the same call, sent again, then runs
    Approve {
        /// Its id
        id: String,
        #[command(flatten)]
        common: Common,
    },
    /// Say no
    Deny {
        /// Its id
        id: String,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Args)]
struct Common {
    /// Who is asking or answering: a user that the folder lists
    #[arg(long = "as", value_name = "USER@TENANT")]
    user: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Approvals {
    pub(super) async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let loaded = load(&self.dir, Purpose::Run, output)?;
        let now = loaded.gate.now();
        match self.action {
            Action::List { common } => {
                let session = loaded.identity.session(common.user.as_deref())?;
                let approvals = loaded.gate.approvals(&session).await?;
                match common.json {
                    true => output.json(&approvals.iter().map(|one| shown::approval(one, now)).collect::<Vec<Value>>()),
                    false => approvals.iter().for_each(|one| output.line(&summary(one, now))),
                }
                Ok(Exit::Ok)
            }
            Action::Show { id, common } => {
                let session = loaded.identity.session(common.user.as_deref())?;
                let approvals = loaded.gate.approvals(&session).await?;
                let Some(one) = approvals.iter().find(|one| one.id == id) else {
                    return Err(Failure::new(Exit::Refused, NotDecided::Missing.to_string()));
                };
                match common.json {
                    true => output.json(&shown::approval(one, now)),
                    false => show(one, now, output),
                }
                Ok(Exit::Ok)
            }
            Action::Approve { id, common } => {
                let session = loaded.identity.session(common.user.as_deref())?;
                let decided = loaded.gate.approve(&id, &session).await;
                loaded.gate.finish().await?;
                answer(decided, &common, now, output)
            }
            Action::Deny { id, common } => {
                let session = loaded.identity.session(common.user.as_deref())?;
                let decided = loaded.gate.deny(&id, &session).await;
                loaded.gate.finish().await?;
                answer(decided, &common, now, output)
            }
        }
    }
}

fn answer(
    decided: Result<Approval, NotDecided>,
    common: &Common,
    now: Millis,
    output: &mut Output,
) -> Result<Exit, Failure> {
    match decided {
        Ok(approval) => {
            match common.json {
                true => output.json(&shown::approval(&approval, now)),
                false => output.line(&summary(&approval, now)),
            }
            if approval.state_at(now) == "granted" {
                output.next("send the same call again; it uses the grant up");
            }
            Ok(Exit::Ok)
        }
        Err(NotDecided::Store) => Err(Failure::fault(NotDecided::Store.to_string())),
        Err(not @ (NotDecided::Missing | NotDecided::Closed(_) | NotDecided::Expired | NotDecided::NotYours(_))) => {
            Err(Failure::new(Exit::Refused, not.to_string()).hint("toolgate explain approval_required"))
        }
    }
}

fn summary(approval: &Approval, now: Millis) -> String {
    format!(
        "{}  {:8} {} by {}@{}: {}",
        approval.id,
        approval.state_at(now),
        approval.tool,
        approval.requester,
        approval.tenant,
        approval.preview
    )
}

fn show(approval: &Approval, now: Millis, output: &mut Output) {
    output.line(&summary(approval, now));
    output.line(&format!("  arguments    {}", approval.arguments));
    output.line(&format!("  call digest  {}", approval.call_digest));
    output.line(&format!("  asked        {}", approval.created_at));
    output.line(&format!("  until        {}", approval.expires_at));
    for reason in &approval.reasons {
        let answered = match &reason.approved_by {
            Some(approver) => format!("approved by {}", approver.principal),
            None => "open".to_owned(),
        };
        let who: String = reason.approvers.clone().into();
        output.line(&format!("  {} ({who}): {} [{answered}]", reason.rule, reason.message));
    }
}
