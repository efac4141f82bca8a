//! `toolgate exec`: a model's message on stdin, its tool messages on stdout.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use toolgate::Reply;
use toolgate::fault::Fault;
use toolgate::fields::nearest;
use toolgate::json::Limits;
use toolgate::wire::{Dialect, Warning};

use super::call::show_trace;
use super::failure::FailureCode;
use super::observing::{tell_observed, tell_would_refuse};
use super::patience::patiently;
use super::signals::drain_on_interrupt;
use super::tagged::Tagged;
use super::{Exit, Failure, Output, find_folder, load, warn_of};
use crate::config::Purpose;
use crate::shown::{Answered, Outcome};

/// Answer a model's message.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  echo '{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t1\",
    \"name\":\"get_order\",\"input\":{\"order_id\":\"ord_1\"}}]}' | toolgate exec shop --from anthropic")]
pub(super) struct Exec {
    /// The gate folder
    dir: Option<PathBuf>,
    /// The dialect of the message
    #[arg(long, value_name = "DIALECT", value_parser = parse_dialect)]
    from: Dialect,
    /// Who is asking: a user that the folder lists
    #[arg(long = "as", value_name = "USER@TENANT")]
    user: Option<String>,
    #[command(flatten)]
    tagged: Tagged,
    /// Judge the calls without asking anybody or running anything
    #[arg(long)]
    dry_run: bool,
    /// Show what every stage learned of every call
    #[arg(long)]
    trace: bool,
    /// Print messages and outcomes as one line of JSON
    #[arg(long)]
    json: bool,
}

/// The largest message that is read, in bytes.
const MESSAGE_SIZE: u64 = 16 * 1024 * 1024;

impl Exec {
    pub(super) async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        drain_on_interrupt();
        let dir = find_folder(self.dir.clone())?;
        let loaded = load(&dir, Purpose::Run, output)?;
        warn_of(&loaded.identity, output);
        let session = loaded.identity.caller(self.user.as_deref())?.session_from(loaded.gate.now());
        let session = self.tagged.bound(session, loaded.gate.contracts())?;
        tell_observed(loaded.gate.observed(), loaded.gate.contracts().count(), output);
        let message = read_message()?;
        let limits = Limits { size: message.len(), ..Limits::default() };
        let turn = self.from.decode(&message, &limits).map_err(|fault| {
            Failure::new(
                FailureCode::InvalidMessage,
                format!("this is no message of {}: {fault}; nothing was run", self.from),
            )
        })?;
        let warnings = turn.warnings().to_vec();
        for Warning { at, message, .. } in &warnings {
            output.warning(&format!("{}{message}", if at.is_empty() { String::new() } else { format!("call {at}: ") }));
        }
        let (calls, asked) = turn.open();
        let ids: Vec<String> = calls.iter().map(|call| call.call_id().to_owned()).collect();
        if self.dry_run {
            output.note("dry run: nobody is asked and nothing is run");
        }
        let answers = match self.dry_run {
            true => loaded.gate.dry_turn(calls, &session).await,
            false => patiently("the calls are running", loaded.gate.turn(calls, &session), output).await,
        };
        let finished = loaded.finish().await;
        let messages = asked.answer(&answers);
        self.show(&ids, &answers, &messages, &warnings, output);
        answers.iter().flatten().for_each(|reply| tell_would_refuse(reply, output));
        finished?;
        match answers.into_iter().find_map(Result::err) {
            Some(fault) => Err(fault.into()),
            None => {
                output.next(&format!("toolgate audit {} tail", dir.display()));
                Ok(Exit::Ok)
            }
        }
    }

    fn show(
        &self,
        ids: &[String],
        answers: &[Result<Reply, Fault>],
        messages: &[Value],
        warnings: &[Warning],
        output: &mut Output,
    ) {
        if self.json {
            let outcome = |(id, answer)| Outcome::of(id, answer, self.trace, Fault::to_string);
            let outcomes: Vec<Outcome<'_>> = ids.iter().map(String::as_str).zip(answers).map(outcome).collect();
            output.json(&Answered { messages, outcomes: &outcomes, warnings });
            return;
        }
        if self.trace {
            for reply in answers.iter().flatten() {
                output.note(&format!("{} {}", reply.call_id(), reply.tool()));
                show_trace(reply.trace(), output);
            }
        }
        output.pretty(&messages);
    }
}

fn read_message() -> Result<Vec<u8>, Failure> {
    let mut message = Vec::new();
    let read = std::io::stdin().lock().take(MESSAGE_SIZE + 1).read_to_end(&mut message);
    let unreadable = |message: String| Failure::new(FailureCode::UnreadableInput, message);
    read.map_err(|error| unreadable(format!("stdin cannot be read: {error}")))?;
    if u64::try_from(message.len()).unwrap_or(u64::MAX) > MESSAGE_SIZE {
        return Err(unreadable("the message is larger than 16 MB".into()));
    }
    Ok(message)
}

pub(super) fn parse_dialect(name: &str) -> Result<Dialect, String> {
    let names = || Dialect::ALL.iter().map(|dialect| dialect.as_str());
    Dialect::parse(name).ok_or_else(|| {
        let all: Vec<&str> = names().collect();
        nearest(name, names()).unwrap_or_else(|| format!("known: {}", all.join(", ")))
    })
}
