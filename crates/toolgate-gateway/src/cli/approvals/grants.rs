//! `toolgate approvals grant`, `grants` and `revoke`: consent that is given beforehand.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use toolgate::fields::parse_span;
use toolgate::session::Session;
use toolgate::standing::{Granting, NotGranted, Refused, Standing};

use super::{Common, as_dry};
use crate::cli::failure::FailureCode;
use crate::cli::{Exit, Failure, Output};
use crate::config::Loaded;
use crate::identity::Identity;
use crate::shown;

#[derive(Debug, Args)]
#[command(
    override_usage = "toolgate approvals [DIR] grant --tool NAME --rule ID --to USER --for SPAN",
    after_help = "Example:\n  toolgate approvals shop grant --tool create_refund --rule refund.large \\\n    --calls 5 --for 1h --to alice --as mia@acme"
)]
pub(super) struct Grant {
    /// The tool whose calls it covers
    #[arg(long, value_name = "NAME")]
    tool: String,
    /// The rule that asks for the consent, by its id
    #[arg(long, value_name = "ID")]
    rule: String,
    /// Whose calls it covers: USER or USER@TENANT
    #[arg(long, value_name = "USER")]
    to: String,
    /// How many calls at most
    #[arg(long, value_name = "N")]
    calls: Option<u64>,
    /// How much at most, of all calls together
    #[arg(long, value_name = "N")]
    sum: Option<u64>,
    /// What is summed; what the limits sum if not said
    #[arg(long, value_name = "POINTER", requires = "sum")]
    of: Option<String>,
    /// How long, such as 1h or 7d; at most 30 days
    #[arg(long = "for", value_name = "SPAN", value_parser = read_span)]
    lasts: Duration,
    /// Tell what it would cover, and give nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    common: Common,
}

impl Grant {
    pub(super) fn is_dry(&self) -> bool {
        self.dry_run
    }

    pub(super) async fn run(self, loaded: &Loaded, dir: &Path, output: &mut Output) -> Result<Exit, Failure> {
        let by = self.common.session(loaded)?;
        let to = covered(&self.to, &by, loaded)?;
        let Self { tool, rule, calls, sum, of, lasts, dry_run, common, .. } = self;
        let asked = Granting { tool, rule, to: to.principal().clone(), calls, sum, of, lasts };
        let granted = match dry_run {
            true => loaded.gate.dry_grant(&asked, &by),
            false => loaded.gate.grant_standing(&asked, &by).await,
        };
        loaded.finish().await?;
        let standing = granted.map_err(|not| failed(&not, dir))?;
        if dry_run {
            output.note("dry run: nothing is given");
        }
        match dry_run && common.json {
            true => output.json(&as_dry(shown::standing(&standing))),
            false => tell(&standing, common.json, output),
        }
        if !dry_run {
            output.next(&format!("toolgate approvals {} revoke {}", dir.display(), standing.grant.id));
        }
        Ok(Exit::Ok)
    }
}

pub(super) async fn list(loaded: &Loaded, common: &Common, dir: &Path, output: &mut Output) -> Result<Exit, Failure> {
    let session = common.session(loaded)?;
    let all = loaded.gate.standing_grants(&session).await?;
    match common.json {
        true => output.json(&all.iter().map(shown::standing).collect::<Vec<Value>>()),
        false => all.iter().for_each(|one| output.line(&summary(one))),
    }
    if let Some(one) = all.first() {
        output.next(&format!("toolgate approvals {} revoke {}", dir.display(), one.grant.id));
    }
    Ok(Exit::Ok)
}

pub(super) async fn revoke(
    loaded: &Loaded,
    id: &str,
    common: &Common,
    dir: &Path,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let session = common.session(loaded)?;
    let revoked = loaded.gate.revoke_standing(id, &session).await;
    loaded.finish().await?;
    let standing = revoked.map_err(|not| failed(&not, dir))?;
    tell(&standing, common.json, output);
    Ok(Exit::Ok)
}

/// The person whose calls are to be covered, in the tenant of whoever grants.
fn covered(named: &str, by: &Session, loaded: &Loaded) -> Result<Session, Failure> {
    let whole = match named.contains('@') {
        true => named.to_owned(),
        false => format!("{named}@{}", by.tenant()),
    };
    if matches!(loaded.identity, Identity::Jwt(_)) {
        let message = "--to names nobody here: the people of this folder are known by their issuers alone";
        let hint = "give it over HTTP, with the token of somebody who may: POST /v1/grants";
        return Err(Failure::new(FailureCode::UnknownUser, message).hint(hint));
    }
    // They are only named, and nobody speaks for them.
    let to = loaded.identity.approver(Some(&whole), None, true)?;
    match to.tenant() == by.tenant() {
        true => Ok(to),
        false => Err(Failure::new(FailureCode::UnknownUser, "--to names somebody of another tenant than yours")
            .hint("consent is given within one tenant")),
    }
}

fn tell(standing: &Standing, json: bool, output: &mut Output) {
    match json {
        true => output.json(&shown::standing(standing)),
        false => output.line(&summary(standing)),
    }
}

/// A standing grant in a line. Nothing stands right behind a moment, so that it can be copied.
fn summary(Standing { grant, left, state }: &Standing) -> String {
    let mut rests = Vec::new();
    if let Some((max, left)) = grant.bounds.calls.zip(left.calls) {
        rests.push(format!("{left} of {max} calls"));
    }
    if let Some((sum, left)) = grant.bounds.sum.as_ref().zip(left.sum) {
        rests.push(format!("{left} of {} {}", sum.max, sum.of));
    }
    format!(
        "{}  {:8} {} of {}@{}, rule {}: {} left; given by {} until {}",
        grant.id,
        state.as_str(),
        grant.tool,
        grant.to,
        grant.tenant,
        grant.rule,
        rests.join(" and "),
        grant.given_by.principal,
        grant.expires_at,
    )
}

fn failed(not: &NotGranted, dir: &Path) -> Failure {
    let code = match not.why {
        Refused::Unfit => FailureCode::Usage,
        Refused::NotYours => FailureCode::GrantNotYours,
        Refused::Missing => FailureCode::GrantMissing,
        Refused::TooMany => FailureCode::TooManyGrants,
        Refused::Store => FailureCode::StoreFailed,
    };
    let failure = Failure::new(code, not.to_string());
    match (not.advice(), not.why) {
        (Some(advice), _) => failure.hint(advice),
        (None, Refused::Missing | Refused::TooMany) => {
            failure.hint(format!("toolgate approvals {} grants", dir.display()))
        }
        (None, Refused::Unfit) => failure.hint("toolgate approvals grant -h"),
        (None, Refused::NotYours | Refused::Store) => failure,
    }
}

fn read_span(text: &str) -> Result<Duration, String> {
    let span = parse_span(text).filter(|span| !span.is_zero());
    span.ok_or_else(|| "expected a span of time such as 30m, 1h or 7d".to_owned())
}
