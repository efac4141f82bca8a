//! `toolgate serve`: a gate for programs in any language, over HTTP.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolgate::Reply;
use toolgate::fault::Fault;

use super::failure::FailureCode;
use super::journal::{self, journal};
use super::observing::{tell_observed, would_refuse_in_brief};
use super::signals::Interrupts;
use super::{Exit, Failure, Output, Said, Say, find_folder, load, tell_set_aside, warn_of};
use crate::config::{Loaded, Purpose, keep_the_end};
use crate::http::{NotListening, Open, Server, Settings, Watch, holder};
use crate::identity::Doorkeeper;

/// Answer programs over HTTP.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  toolgate serve shop --dev\n  toolgate serve shop --listen 127.0.0.1:9000",
    after_long_help = "The first SIGINT or SIGTERM takes no more calls and lets those that run come to their end; the \
                       second stops."
)]
pub(super) struct Serve {
    /// The gate folder
    dir: Option<PathBuf>,
    /// Where to listen; else as `listen` in toolgate.toml says, or 127.0.0.1:8787
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// The port alone; 0 takes one that is free
    #[arg(long, conflicts_with = "listen")]
    port: Option<u16>,
    /// Who is asking, where the folder lists its users
    #[arg(long = "as", value_name = "USER@TENANT")]
    user: Option<String>,
    /// For development, on this machine alone: a line on stderr for each call
    #[arg(long)]
    dev: bool,
    /// Serve nothing while a tool has faults
    #[arg(long)]
    strict: bool,
    /// Print where it listens as JSON
    #[arg(long)]
    json: bool,
}

impl Serve {
    pub(super) async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        // Before anything is opened: an interrupt from here on is one that drains.
        let interrupts = Interrupts::listen()
            .map_err(|error| Failure::fault(format!("interrupts cannot be waited for: {error}")))?;
        let dir = find_folder(self.dir.clone())?;
        let purpose = if self.strict { Purpose::Run } else { Purpose::Serve };
        let Loaded { gate, identity, http, set_aside, upstreams, keeper, .. } = load(&dir, purpose, output)?;
        tell_set_aside(&set_aside, output);
        tell_observed(gate.observed(), gate.contracts().count(), output);
        warn_of(&identity, output);
        let settings = self.settings(http);
        let doorkeeper = identity.doorkeeper(self.user.as_deref())?;
        self.allow(&doorkeeper, &settings)?;
        if self.dev {
            output.warning("for development only: whoever reaches this port is the one user it was started as");
        }
        journal::keep(&gate);
        let draining = CancellationToken::new();
        let watch = OnStderr { calls: self.dev, say: journal() };
        let server = Server::listen(gate, doorkeeper, &settings, draining.clone(), watch).await;
        let server = server.map_err(|error| not_listening(&error, settings.listen))?;
        drain_then_stop(interrupts, draining);
        let url = format!("http://{}", server.address());
        match self.json {
            true => output.json(&json!({ "listening": url })),
            false => output.line(&format!("listening on {url}")),
        }
        let drained = server.run(|open| journal()(Said::Note(still_open(open)))).await;
        upstreams.close().await;
        keep_the_end(&keeper).await;
        journal::flush();
        drained?;
        journal()(Said::Note("drained: every call has its answer, and all of it is on record".into()));
        Ok(Exit::Ok)
    }

    fn settings(&self, folder: Settings) -> Settings {
        let mut listen = self.listen.unwrap_or(folder.listen);
        if let Some(port) = self.port {
            listen.set_port(port);
        }
        Settings { listen, ..folder }
    }

    /// Whoever shows nothing is answered on this machine alone.
    fn allow(&self, doorkeeper: &Doorkeeper, settings: &Settings) -> Result<(), Failure> {
        let listen = settings.listen;
        let local = matches!(doorkeeper, Doorkeeper::Local(_));
        if !listen.ip().is_loopback() && (local || self.dev) {
            let why = if self.dev { "--dev" } else { "identity of kind \"local\"" };
            let message = format!("{listen} is reached from other machines, and {why} asks nobody who they are");
            return Err(Failure::new(FailureCode::NotLoopback, message)
                .hint("listen on 127.0.0.1, or set `kind = \"tokens\"` or `\"jwt\"` under [identity]"));
        }
        if self.dev && !local {
            return Err(Failure::usage("--dev is for the people that a folder lists (`kind = \"local\"`)")
                .hint("leave --dev out"));
        }
        if !listen.ip().is_loopback() && settings.hosts.is_empty() {
            let message = format!("nobody could be answered at {listen}: no host is named");
            return Err(Failure::new(FailureCode::NoHosts, message)
                .hint("hosts = [\"gate.example.com\"] under [http]: the names under which it is reached"));
        }
        Ok(())
    }
}

/// Lets the door drain at the first interrupt; the second ends the process.
fn drain_then_stop(mut interrupts: Interrupts, draining: CancellationToken) {
    tokio::spawn(async move {
        interrupts.next().await;
        draining.cancel();
        interrupts.stop().await
    });
}

fn still_open(Open { connections, calls }: Open) -> String {
    let calls = if calls == 1 { "1 call runs".to_owned() } else { format!("{calls} calls run") };
    let connections = match connections {
        1 => "1 connection is open".to_owned(),
        _ => format!("{connections} connections are open"),
    };
    format!(
        "interrupted: no new connections; {calls} and {connections}, which come to their end within their deadlines; \
         again to stop"
    )
}

fn not_listening(error: &NotListening, listen: SocketAddr) -> Failure {
    match error {
        NotListening::Io(error) if error.kind() == io::ErrorKind::AddrInUse => {}
        NotListening::Io(error) => {
            return Failure::new(FailureCode::CannotListen, format!("it cannot listen at {listen}: {error}"));
        }
        NotListening::Exposed(_) => return Failure::new(FailureCode::NotLoopback, error.to_string()),
    }
    let holder = match holder(listen) {
        Some((id, name)) => format!("process {id} ({name}) listens there"),
        None => "another process listens there".to_owned(),
    };
    let message = format!("the port of {listen} is in use: {holder}");
    Failure::new(FailureCode::PortInUse, message).hint("--port 0 takes one that is free")
}

/// What is said on stderr while it serves.
struct OnStderr {
    /// A line for each call.
    calls: bool,
    say: Say,
}

impl Watch for OnStderr {
    fn answered(&self, answer: &Result<Reply, Fault>) {
        if let (true, Ok(reply)) = (self.calls, answer) {
            (self.say)(Said::Note(line(reply)));
        }
    }

    fn failed(&self, fault: &Fault) {
        (self.say)(Said::Failure(fault.into()));
    }
}

/// A call in a line, without anything that was sent or answered.
fn line(reply: &Reply) -> String {
    let code = reply.code().map_or("ok", |code| code.as_str());
    let replayed = if reply.replayed() { " replayed" } else { "" };
    // A name that a model made up may be of any length.
    let tool: String = reply.tool().chars().take(64).collect();
    let would = would_refuse_in_brief(reply);
    format!("{tool:24} {code:18} effect {}{replayed}{would} ref {}", reply.effect(), reply.reference())
}
