//! `toolgate approvals`: what waits for a person, a person's answer, and consent given beforehand.

mod grants;

mod edit;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::Value;
use toolgate::approval::{Approval, Decision, LISTED, NotDecided, Sought, Status};
use toolgate::clock::Millis;
use toolgate::session::Session;

use super::failure::FailureCode;
use super::{Exit, Failure, Output, find_folder, load};
use crate::config::{Loaded, Purpose};
use crate::shown;

/// Look at approvals and answer them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  toolgate approvals shop list\n  toolgate approvals shop approve apr_01J8... --as mia@acme"
)]
pub(super) struct Approvals {
    /// The gate folder
    dir: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

const EDIT_EXAMPLE: &str = "Example:
  toolgate approvals shop edit apr_01J8... --as mia@acme \\
    --arguments '{\"order_id\":\"ord_1\",\"amount_cents\":6000,\"reason\":\"late\"}'";

#[derive(Debug, Subcommand)]
enum Action {
    /// List the approvals of a tenant, newest first
    #[command(after_help = "Example:\n  toolgate approvals shop list --as mia@acme")]
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Show one approval: the exact arguments and who may answer
    #[command(after_help = "Example:\n  toolgate approvals shop show apr_01J8...")]
    Show {
        /// Its id
        id: String,
        #[command(flatten)]
        common: Common,
    },
    /// Say yes; the same call, sent again, then runs
    #[command(after_help = "Example:\n  toolgate approvals shop approve apr_01J8... --as mia@acme")]
    Approve {
        /// Its id
        id: String,
        /// Tell what the answer would make of it, and decide nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Ask for the call with other arguments instead; nothing runs
    #[command(after_help = EDIT_EXAMPLE)]
    Edit {
        /// Its id
        id: String,
        /// The whole arguments, as JSON
        #[arg(long, value_name = "JSON")]
        arguments: String,
        /// Tell what would be asked instead, and ask nobody
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Say no
    #[command(after_help = "Example:\n  toolgate approvals shop deny apr_01J8... --as mia@acme")]
    Deny {
        /// Its id
        id: String,
        /// Tell what the answer would make of it, and decide nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Consent beforehand to so many calls of one person
    Grant(grants::Grant),
    /// List the standing grants of a tenant, with what is left of each
    #[command(after_help = "Example:\n  toolgate approvals shop grants --as mia@acme")]
    Grants {
        #[command(flatten)]
        common: Common,
    },
    /// Take a standing grant back; it covers no call any more
    #[command(after_help = "Example:\n  toolgate approvals shop revoke stg_01J8... --as mia@acme")]
    Revoke {
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
    /// Whose approvals, where people have tokens and the operating-system user is asking
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Approvals {
    pub(super) async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let dir = find_folder(self.dir)?;
        let purpose = match &self.action {
            Action::List { .. } | Action::Show { .. } => Purpose::Read,
            Action::Approve { dry_run: true, .. } | Action::Deny { dry_run: true, .. } => Purpose::Read,
            Action::Grants { .. } => Purpose::Read,
            Action::Grant(grant) if grant.is_dry() => Purpose::Read,
            Action::Grant(_) | Action::Revoke { .. } => Purpose::Run,
            Action::Approve { .. } | Action::Deny { .. } | Action::Edit { .. } => Purpose::Run,
        };
        let loaded = load(&dir, purpose, output)?;
        let now = loaded.gate.now();
        match self.action {
            Action::List { common } => {
                let session = common.session(&loaded)?;
                let approvals = listed(&loaded, &session, now).await?;
                match common.json {
                    true => output.json(&approvals.iter().map(|one| shown::approval(one, now)).collect::<Vec<Value>>()),
                    false => approvals.iter().for_each(|one| output.line(&summary(one, now))),
                }
                if let Some(one) = approvals.iter().find(|one| one.state_at(now) == "pending") {
                    output.next(&format!("toolgate approvals {} show {}", dir.display(), one.id));
                }
                Ok(Exit::Ok)
            }
            Action::Show { id, common } => {
                let session = common.session(&loaded)?;
                let Some(one) = loaded.gate.approval(&id, &session).await? else {
                    return Err(missing(&dir));
                };
                match common.json {
                    true => output.json(&shown::approval(&one, now)),
                    false => show(&one, now, output),
                }
                if one.state_at(now) == "pending" {
                    output.next(&format!("toolgate approvals {} approve {id} --as USER@TENANT", dir.display()));
                }
                Ok(Exit::Ok)
            }
            Action::Approve { id, dry_run, common } => {
                decide(&loaded, &id, Decision::Approve, dry_run, &common, &dir, output).await
            }
            Action::Edit { id, arguments, dry_run, common } => {
                edit::edit(&loaded, &id, &arguments, dry_run, &common, &dir, output).await
            }
            Action::Deny { id, dry_run, common } => {
                decide(&loaded, &id, Decision::Deny, dry_run, &common, &dir, output).await
            }
            Action::Grant(grant) => grant.run(&loaded, &dir, output).await,
            Action::Grants { common } => grants::list(&loaded, &common, &dir, output).await,
            Action::Revoke { id, common } => grants::revoke(&loaded, &id, &common, &dir, output).await,
        }
    }
}

impl Common {
    fn session(&self, loaded: &Loaded) -> Result<Session, Failure> {
        let Loaded { identity, operator_speaks, .. } = loaded;
        Ok(identity.approver(self.user.as_deref(), self.tenant.as_deref(), *operator_speaks)?)
    }
}

/// The newest approvals, and behind them what is older and waits still.
async fn listed(loaded: &Loaded, session: &Session, now: Millis) -> Result<Vec<Approval>, Failure> {
    let mut listed = loaded.gate.approvals_sought(session, Sought::default(), now).await?;
    if listed.len() < LISTED {
        return Ok(listed);
    }
    let waiting = loaded.gate.approvals_sought(session, Sought::of(Status::Pending), now).await?;
    let newest: BTreeSet<String> = listed.iter().map(|one| one.id.clone()).collect();
    listed.extend(waiting.into_iter().filter(|one| !newest.contains(&one.id)));
    Ok(listed)
}

async fn decide(
    loaded: &Loaded,
    id: &str,
    decision: Decision,
    dry_run: bool,
    common: &Common,
    dir: &Path,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let session = common.session(loaded)?;
    if dry_run {
        output.note("dry run: nothing is decided");
    }
    let decided = match decision {
        _ if dry_run => loaded.gate.dry_decide(id, &session, decision).await,
        Decision::Approve => loaded.gate.approve(id, &session).await,
        Decision::Deny => loaded.gate.deny(id, &session).await,
    };
    loaded.finish().await?;
    let now = loaded.gate.now();
    match decided {
        Ok(approval) => {
            match common.json {
                true => output.json(&shown::approval(&approval, now)),
                false => output.line(&summary(&approval, now)),
            }
            if dry_run {
                let answer = if decision == Decision::Approve { "approve" } else { "deny" };
                output.next(&format!("toolgate approvals {} {answer} {id}", dir.display()));
            } else if approval.state_at(now) == "granted" {
                output.next("send the same call again; it uses the grant up");
            }
            Ok(Exit::Ok)
        }
        Err(NotDecided::Missing) => Err(missing(dir)),
        Err(not @ (NotDecided::Closed(_) | NotDecided::Expired | NotDecided::NotYours(_) | NotDecided::Store)) => {
            Err(not.into())
        }
    }
}

/// What a dry run would make: it has no id, since there is nothing to be named.
fn as_dry(shown: Value) -> Value {
    let Value::Object(mut members) = shown else { return shown };
    members.insert("id".to_owned(), Value::Null);
    members.insert("dry_run".to_owned(), Value::Bool(true));
    Value::Object(members)
}

fn missing(dir: &Path) -> Failure {
    Failure::new(FailureCode::ApprovalMissing, NotDecided::Missing.to_string())
        .hint(format!("toolgate approvals {} list", dir.display()))
}

fn summary(approval: &Approval, now: Millis) -> String {
    let altered = match approval.leniencies.len() {
        0 => String::new(),
        1 => " [not as sent: 1 place]".to_owned(),
        several => format!(" [not as sent: {several} places]"),
    };
    let edited = match (&approval.edited, &approval.instead) {
        (_, Some(instead)) => format!(" [instead: {instead}]"),
        (Some(edited), None) => format!(" [edited by {}]", edited.by),
        (None, None) => String::new(),
    };
    format!(
        "{}  {:8} {} by {}@{}: {}{altered}{edited}",
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
    for used in &approval.leniencies {
        output.line(&format!("  not as sent  {used}"));
    }
    if let Some(digest) = &approval.told_digest {
        output.line(&format!("  call digest  {digest}"));
    }
    if let Some(edited) = &approval.edited {
        output.line(&format!("  edited       by {}, in the place of {}", edited.by, edited.of));
    }
    if let Some(instead) = &approval.instead {
        output.line(&format!("  instead      {instead}"));
    }
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
