//! The one question that this program asks: whether a call may happen that needs nothing but the caller's own yes. It is
//! asked at a terminal alone, of a person who sees exactly what would happen, and a model has no part in it.

use std::io::IsTerminal;

use tokio_util::sync::CancellationToken;
use toolgate::approval::Approval;
use toolgate::session::Session;
use toolgate::{Gate, Reply};

use super::{Failure, Output};

/// What became of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirmed {
    /// They said yes, and the same call now has its grant.
    Yes,
    /// They said no, and the approval is denied.
    No,
    /// It was not asked, or not answered: it waits as before.
    Open,
}

/// Whether there is a person whom this command can ask.
pub(super) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks, where the reply says that only the caller's own yes is missing, and takes the answer to the gate.
pub(super) async fn confirmed(
    gate: &Gate,
    reply: &Reply,
    session: &Session,
    stopped: &CancellationToken,
    output: &mut Output,
) -> Result<Confirmed, Failure> {
    let Some(notice) = reply.refusal().and_then(|refusal| refusal.approval_notice()) else {
        return Ok(Confirmed::Open);
    };
    let found = gate.approval(&notice.id, session).await?;
    let own = |approval: &Approval| approval.requester == *session.principal() && approval.waits_for_requester_alone();
    let Some(approval) = found.filter(own) else { return Ok(Confirmed::Open) };
    show(&approval, output);
    forget_typed();
    output.question("Let it happen? [y/N] ");
    let line = tokio::select! {
        line = line() => line,
        () = stopped.cancelled() => None,
    };
    match line.as_deref().map(meant) {
        Some(Confirmed::Yes) => {
            gate.approve(&approval.id, session).await?;
            Ok(Confirmed::Yes)
        }
        Some(Confirmed::No) => {
            gate.deny(&approval.id, session).await?;
            output.note("denied: nothing was done");
            Ok(Confirmed::No)
        }
        Some(Confirmed::Open) | None => {
            output.note("not answered: it waits, and nothing was done");
            Ok(Confirmed::Open)
        }
    }
}

fn show(approval: &Approval, output: &mut Output) {
    for reason in approval.reasons.iter().filter(|reason| reason.approved_by.is_none()) {
        output.note(&format!("{}: {}", reason.rule, reason.message));
    }
    output.note(&format!("  tool         {} by {}@{}", approval.tool, approval.requester, approval.tenant));
    output.note(&format!("  what         {}", approval.preview));
    output.note(&format!("  arguments    {}", approval.arguments));
    for used in &approval.leniencies {
        output.note(&format!("  not as sent  {used}"));
    }
    if let Some(digest) = &approval.told_digest {
        output.note(&format!("  call digest  {digest}"));
    }
}

/// INVARIANT (no yes beforehand): what was typed before the question was seen answers nothing.
fn forget_typed() {
    // Where it cannot be thrown away the terminal is gone, and nobody answers.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// A yes is said in so many letters; what is neither yes nor no leaves it open.
fn meant(line: &str) -> Confirmed {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Confirmed::Yes,
        "n" | "no" => Confirmed::No,
        _ => Confirmed::Open,
    }
}

/// A line of the person's. It is waited for on a thread of its own, which nothing waits for: the process may end.
async fn line() -> Option<String> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let reads = std::thread::Builder::new().name("confirm".into()).spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line).is_ok_and(|bytes| bytes > 0);
        let _ = tell.send(read.then_some(line));
    });
    reads.ok()?;
    told.await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_is_a_yes() {
        for yes in ["y\n", " Y \r\n", "yes\n", "YES"] {
            assert_eq!(meant(yes), Confirmed::Yes, "{yes:?}");
        }
        for no in ["n\n", "No\n"] {
            assert_eq!(meant(no), Confirmed::No, "{no:?}");
        }
        for open in ["", "\n", "yes please\n", "j\n", "yy\n", "approve\n"] {
            assert_eq!(meant(open), Confirmed::Open, "{open:?}");
        }
    }
}
