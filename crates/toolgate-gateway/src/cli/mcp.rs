//! `toolgate mcp`: the gate of a folder, as an MCP server on stdin and stdout.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use toolgate::clock::Millis;
use toolgate::fault::Fault;
use toolgate::gate::Prepared;
use toolgate::ledger::StoreError;
use toolgate::session::Session;
use toolgate::wire::Proposed;
use toolgate::wire::mcp::definition;
use toolgate::{Gate, Reply};

use super::failure::FailureCode;
use super::observing::tell_observed;
use super::signals::stop_on_interrupt;
use super::tagged::Tagged;
use super::{Exit, Failure, Output, Said, find_folder, journal, tell_set_aside, told, warn_of};
use crate::config::{self, Ready, keep_the_end};
use crate::identity::{Caller, Identity};
use crate::mcp::connection;
use crate::mcp::server::{GateFor, Tools};
use crate::mcp::stdio::{self, FrameWriter, Frames};

/// Serve a gate to one MCP client on stdin and stdout.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolgate mcp shop --as alice@acme --print-config")]
pub(super) struct Mcp {
    /// The gate folder
    dir: Option<PathBuf>,
    /// Who is asking: a user that the folder lists
    #[arg(long = "as", value_name = "USER@TENANT")]
    user: Option<String>,
    #[command(flatten)]
    tagged: Tagged,
    /// Serve nothing while a tool has faults
    #[arg(long)]
    strict: bool,
    /// Print the entry that a client's `mcpServers` takes, and serve nothing
    #[arg(long)]
    print_config: bool,
}

/// A gate that is opened by its first call. Clients start servers only to look at them, and that leaves no trace.
struct AtFirstCall {
    prepared: Arc<Prepared>,
    identity: Identity,
    user: Option<String>,
    /// Who was asking when it was started, within its tags.
    session: Session,
    gate: OnceCell<Gate>,
}

impl Mcp {
    pub(super) async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let dir = find_folder(self.dir.clone())?;
        if self.print_config {
            output.pretty(&self.entry(&dir)?);
            return Ok(Exit::Ok);
        }
        let stop = stop_on_interrupt();
        let ready = config::ready(&dir, self.strict).map_err(|error| told(error, &dir, output))?;
        let Ready { gate, identity, set_aside, upstreams, keeper, .. } = ready;
        tell_set_aside(&set_aside, output);
        tell_observed(gate.observed(), gate.contracts().count(), output);
        warn_of(&identity, output);
        let session = identity.session(self.user.as_deref())?;
        let session = match set_aside.is_empty() {
            true => self.tagged.bound(session, gate.contracts())?,
            false => self.tagged.bound_without_some(session, gate.contracts(), output),
        };
        let unserved = |error| Failure::fault(format!("stdin and stdout cannot be served: {error}"));
        let stdin = stdio::stdin().map_err(unserved)?;
        let writer = FrameWriter::stdout().map_err(unserved)?;
        let (prepared, user) = (Arc::new(gate), self.user);
        let tools = Arc::new(AtFirstCall { prepared, identity, user, session, gate: OnceCell::new() });
        let lines = Frames::new(stdin, stdio::LONGEST_LINE);
        connection::serve(Arc::clone(&tools), lines, &writer, &stop, &journal()).await;
        let finished = match tools.gate.get() {
            Some(gate) => gate.finish().await,
            None => Ok(()),
        };
        upstreams.close().await;
        keep_the_end(&keeper).await;
        finished?;
        Ok(Exit::Ok)
    }

    /// `{"mcpServers": {NAME: ...}}`, which starts this very program.
    fn entry(&self, dir: &std::path::Path) -> Result<Value, Failure> {
        let unfound =
            |error: std::io::Error| Failure::new(FailureCode::NoSuchFolder, format!("{}: {error}", dir.display()));
        let dir = dir.canonicalize().map_err(unfound)?;
        let program = std::env::current_exe()
            .map_err(|error| Failure::fault(format!("where this program is cannot be found out: {error}")))?;
        let name = dir.file_name().map_or_else(|| "toolgate".into(), |name| name.to_string_lossy());
        let mut arguments = vec!["mcp".to_owned(), dir.to_string_lossy().into_owned()];
        arguments.extend(self.strict.then(|| "--strict".to_owned()));
        arguments.extend(self.user.iter().flat_map(|user| ["--as".to_owned(), user.clone()]));
        arguments.extend(self.tagged.words());
        Ok(json!({ "mcpServers": { name: { "command": program.to_string_lossy(), "args": arguments } } }))
    }
}

impl AtFirstCall {
    async fn open(&self) -> Result<&Gate, StoreError> {
        let opened = self.gate.get_or_try_init(|| async {
            let prepared = Arc::clone(&self.prepared);
            // It waits for a disk, and perhaps for another process.
            let opened = tokio::task::spawn_blocking(move || prepared.open()).await;
            let gate: Gate = opened.unwrap_or_else(|lost| Err(StoreError::Broken(lost.to_string())))?;
            journal::keep(&gate);
            Ok(gate)
        });
        opened.await.inspect_err(|error: &StoreError| journal()(Said::Failure(error.into())))
    }

    /// Who is asking, if they may still. INVARIANT (judged anew): what admitted somebody at the start is held against the
    /// folder of this moment, so that who was revoked, or whose token has ended, sees and begins nothing more.
    async fn caller_now(&self) -> Option<Caller> {
        self.identity.caller_again(self.user.as_deref()).await.ok()
    }

    /// The session of a call.
    async fn session_now(&self, gate: &Gate) -> Session {
        match self.caller_now().await {
            Some(caller) => self.within_tags(caller.session_from(gate.now())),
            None => self.session.clone().until(Millis(0)),
        }
    }

    fn within_tags(&self, session: Session) -> Session {
        self.session.bounds().cloned().fold(session, Session::only_tags)
    }
}

impl Tools for AtFirstCall {
    async fn list(&self) -> Result<Vec<Value>, Fault> {
        // For whoever may not ask any more there are no tools.
        let Some(caller) = self.caller_now().await else { return Ok(Vec::new()) };
        Ok(self.prepared.tools(&self.within_tags(caller.session)).into_iter().map(definition).collect())
    }

    async fn call(&self, proposed: Proposed) -> Result<Reply, Fault> {
        let gate = self.open().await?.clone();
        let session = self.session_now(&gate).await;
        let outcome = GateFor { gate, session }.call(proposed).await;
        outcome.inspect_err(|fault| journal()(Said::Failure(fault.into())))
    }
}
