//! The door for programs in any language: listen, serve, drain.
//!
//! A request passes, in this order: its head under a deadline, the names of host and page, its path, who is asking and
//! for what, its body under bounds, its JSON, and only then the gate.

mod approvals;
mod audit;
mod body;
mod calls;
mod connections;
mod door;
mod grants;
mod guard;
mod heads;
mod health;
mod holder;
mod ledger;
mod lent;
mod mcp;
mod problem;
mod protected;
mod query;
mod sessions;
mod settings;
mod stops;
mod stream;
mod tagged;
#[cfg(test)]
mod tests;
mod tools;
mod traced;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate::fault::Fault;
use toolgate::{Gate, Reply};

use crate::identity::Doorkeeper;

pub(crate) use holder::holder;
pub(crate) use problem::PROBLEMS;
pub use settings::{Bounds, Settings};

use connections::Connections;
use door::{Answering, Door};
use guard::Guard;

/// A door of the network that listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    answering: Answering,
    connections: Arc<Connections>,
    attended: TaskTracker,
    draining: CancellationToken,
}

/// Why a door does not listen.
#[derive(Debug, thiserror::Error)]
pub enum NotListening {
    /// Whoever shows nothing is answered on this machine alone.
    #[error("{0} is reached from other machines, and people that a folder lists are not asked who they are")]
    Exposed(SocketAddr),
    /// The system does not let it.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The operator, who watches a door.
pub trait Watch: Send + Sync + 'static {
    /// A call has its answer.
    fn answered(&self, answer: &Result<Reply, Fault>);

    /// The gate failed, and whoever asked was told no more than that.
    fn failed(&self, fault: &Fault);
}

/// What has to end before a drained door is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// The connections.
    pub connections: usize,
    /// The calls that are running.
    pub calls: usize,
}

/// Where the system has no room for another connection, it may have some in a moment.
const PAUSE: Duration = Duration::from_millis(50);

impl Server {
    /// Opens a door to a gate. It answers once it [runs](Server::run), until `draining` is cancelled.
    ///
    /// INVARIANT (known beyond loopback): a door that other machines reach has a doorkeeper who asks for tokens.
    pub async fn listen(
        gate: Gate,
        doorkeeper: Doorkeeper,
        settings: &Settings,
        draining: CancellationToken,
        watch: impl Watch,
    ) -> Result<Self, NotListening> {
        match doorkeeper {
            Doorkeeper::Local(_) if !settings.listen.ip().is_loopback() => {
                return Err(NotListening::Exposed(settings.listen));
            }
            Doorkeeper::Local(_) | Doorkeeper::Tokens(_) | Doorkeeper::Jwt(_) => {}
        }
        let listener = TcpListener::bind(settings.listen).await?;
        let address = listener.local_addr()?;
        let guard = Guard::new(address, settings);
        let door = Door::new(gate, doorkeeper, guard, settings.bounds, draining.clone(), Box::new(watch));
        Ok(Self {
            listener,
            address,
            answering: Answering::new(Arc::new(door)),
            connections: Arc::new(Connections::new(settings.bounds.connections)),
            attended: TaskTracker::new(),
            draining,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until the door is to be drained; then takes no more connections, lets every request that has begun come to
    /// its end, and waits until what was called is settled and on record. `open` hears what is still open.
    pub async fn run(self, open: impl FnOnce(Open)) -> Result<(), Fault> {
        let Self { listener, answering, connections, attended, draining, .. } = self;
        tokio::select! {
            () = draining.cancelled() => {}
            never = accept(&listener, &answering, &connections, &attended, &draining) => match never {},
        }
        drop(listener);
        let door = answering.door();
        open(Open { connections: attended.len(), calls: door.open_calls() });
        attended.close();
        let bounds = door.bounds();
        let longest = bounds.head_within + 2 * bounds.body_within + door.longest_turn();
        // Whoever is not done by then is beyond every deadline; their calls are waited for all the same.
        let _ = timeout(longest, attended.wait()).await;
        door.gate().finish().await
    }
}

async fn accept(
    listener: &TcpListener,
    answering: &Answering,
    connections: &Arc<Connections>,
    attended: &TaskTracker,
    draining: &CancellationToken,
) -> std::convert::Infallible {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Mostly too many open files: whoever only keeps one open gives way.
            connections.give_way();
            sleep(PAUSE).await;
            continue;
        };
        let place = connections.place().await;
        let (answering, draining) = (answering.clone(), draining.clone());
        attended.spawn(async move { place.attend(stream, &answering, &draining).await });
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}
