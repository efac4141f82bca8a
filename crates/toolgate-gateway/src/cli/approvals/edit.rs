//! `toolgate approvals edit`: another call in the place of the one that waits.

use std::path::Path;

use toolgate::approval::{Capacity, NotDecided};
use toolgate::gate::NotEdited;

use super::{Common, as_dry, missing, summary};
use crate::cli::failure::FailureCode;
use crate::cli::{Exit, Failure, Output};
use crate::config::Loaded;
use crate::shown;

pub(super) async fn edit(
    loaded: &Loaded,
    id: &str,
    arguments: &str,
    dry_run: bool,
    common: &Common,
    dir: &Path,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let session = common.session(loaded)?;
    if dry_run {
        output.note("dry run: nobody is asked and nothing is decided");
    }
    let edited = match dry_run {
        true => loaded.gate.dry_edit(id, arguments.as_bytes(), &session, Capacity::Any).await,
        false => loaded.gate.edit(id, arguments.as_bytes(), &session, Capacity::Any).await,
    };
    loaded.finish().await?;
    let now = loaded.gate.now();
    let approval = match edited {
        Ok(approval) => approval,
        Err(NotEdited::NotDecided(NotDecided::Missing)) => return Err(missing(dir)),
        Err(NotEdited::NotDecided(reason)) => return Err(reason.into()),
        Err(NotEdited::Fault(fault)) => return Err(fault.into()),
        Err(NotEdited::Refused(refusal)) => {
            let mut told = format!("the edited call is refused as {}: {}", refusal.code(), refusal.text());
            for problem in refusal.problem_list() {
                told.push_str(&format!(" {}: {}.", problem.at, problem.message));
            }
            return Err(Failure::new(FailureCode::EditNotAsked, told));
        }
        Err(not @ (NotEdited::Same | NotEdited::Masked | NotEdited::NeedsNobody | NotEdited::Made)) => {
            return Err(Failure::new(FailureCode::EditNotAsked, not.to_string()));
        }
    };
    match common.json {
        true if dry_run => output.json(&as_dry(shown::approval(&approval, now))),
        true => output.json(&shown::approval(&approval, now)),
        false => output.line(&summary(&approval, now)),
    }
    match dry_run {
        true => output.next(&format!("toolgate approvals {} edit {id} --arguments JSON", dir.display())),
        false => output.next(&format!("toolgate approvals {} approve {} --as USER@TENANT", dir.display(), approval.id)),
    }
    Ok(Exit::Ok)
}
