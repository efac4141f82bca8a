//! A client of one MCP server that runs as a child process and speaks over its stdin and stdout.
//!
//! ```text
//! call -> live connection? -> else start: process | handshake        (one at a time, with backoff)
//!           Connection: ids of our own -> writer -> stdin
//!                       waiting calls  <- reader <- stdout           noise is skipped and counted
//!                                         drain  <- stderr
//! ```
//!
//! Nothing is started before it is needed. A connection that ends takes its waiting calls with it at once; the next call
//! starts another. What an answer may mean for an effect is told apart here: a call that was never written to the pipe had
//! none.

mod clearance;
mod connection;
mod counts;
mod handshake;
mod lines;
mod listing;
mod outgoing;
mod process;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use toolgate::contract::Access;

pub(crate) use clearance::{Clearance, FRESH, Flight, LONGEST_LIST, MOST_COMPARISONS, Mark};
pub(crate) use connection::{Answered, CallFailure};
pub(crate) use counts::Counts;
pub(crate) use handshake::ServerInfo;
pub(crate) use listing::Listing;
pub(crate) use process::kill_all;

use crate::cli::Say;
use connection::Connection;

/// A program to run, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// Where it runs; where we do, if not set.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) environment: Environment,
}

/// The environment of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Environment {
    /// Ours: whoever started us gave it to us for the program.
    Inherited,
    /// What any program needs, and these variables.
    Listed(BTreeMap<String, String>),
}

/// Whether the program may be started now. It may block; the error is for a person.
pub(crate) type Check = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// One MCP server. Cloning gives another handle of it.
#[derive(Clone)]
pub(crate) struct Upstream(Arc<Inner>);

struct Inner {
    program: Program,
    /// INVARIANT (what was pinned is what runs): it is asked before each start.
    check: Check,
    say: Say,
    counts: Arc<Counts>,
    live: Mutex<Option<Arc<Connection>>>,
    /// INVARIANT (one start at a time): whoever starts the program holds it.
    starter: tokio::sync::Mutex<Starter>,
    /// Nothing is started any more.
    closing: CancellationToken,
}

/// Over which connection a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The one that there is, or a new one.
    Any,
    /// The one whose list was compared, while the server has told of no change since. Nothing is started for it.
    Listed(Mark),
}

/// The memory of starting.
#[derive(Debug, Default)]
struct Starter {
    generation: u64,
    /// Ends in a row, each before a minute had passed.
    ends: u32,
    not_before: Option<Instant>,
}

/// Why there is no connection. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotReady {
    /// For the operator.
    pub(crate) why: String,
    /// When it can be tried again.
    pub(crate) retry_after: Option<Duration>,
}

/// Takes what came of a call that was sent and given up, if it comes within minutes.
pub(crate) type Afterwards = Arc<dyn Fn(Result<Answered, CallFailure>) + Send + Sync>;

/// A call of a tool.
#[derive(Clone, Copy)]
pub(crate) struct ToolCall<'a> {
    pub(crate) tool: &'a str,
    /// The JSON text of the arguments, an object.
    pub(crate) arguments: &'a str,
    /// What goes beside them.
    pub(crate) meta: &'a Map<String, Value>,
    pub(crate) access: Access,
    /// Who wants to hear of an answer that comes too late.
    pub(crate) afterwards: Option<&'a Afterwards>,
}

/// How long a start may take: a package runner fetches the package first.
const LONGEST_START: Duration = Duration::from_secs(60);
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// How long a call waits for a start that is held back; after that it is better told.
const PATIENCE: Duration = Duration::from_secs(2);
/// Whoever lived so long is well.
const HEALTHY: Duration = Duration::from_secs(60);
/// What is left of a call's time to tell that it was not sent: a tenth, within these bounds.
const LEAST_MARGIN: Duration = Duration::from_millis(50);
const MOST_MARGIN: Duration = Duration::from_millis(500);

impl Upstream {
    /// The server that `program` is. Nothing is started.
    pub(crate) fn new(program: Program, say: Say) -> Self {
        Self::checked(program, say, Box::new(|| Ok(())))
    }

    /// The server that `program` is, where `check` lets it be started.
    pub(crate) fn checked(program: Program, say: Say, check: Check) -> Self {
        Self(Arc::new(Inner {
            program,
            check,
            say,
            counts: Arc::default(),
            live: Mutex::default(),
            starter: tokio::sync::Mutex::default(),
            closing: CancellationToken::new(),
        }))
    }

    /// What was skipped, dropped and refused so far.
    pub(crate) fn counts(&self) -> &Counts {
        &self.0.counts
    }

    /// What the server says of itself, while it runs.
    pub(crate) fn server(&self) -> Option<ServerInfo> {
        self.0.live().map(|connection| connection.server())
    }

    /// The moment that the list of the server is in, while it runs.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.0.live().map(|connection| connection.mark())
    }

    /// The tools that the server lists, all pages of them.
    pub(crate) async fn list(&self, until: Instant) -> Result<Listing, NotReady> {
        let connection = self.connection(until).await?;
        listing::list(&connection, until).await.map_err(|why| NotReady { why, retry_after: None })
    }

    /// Calls a tool. When `cancelled` ends the server is told, and has a moment to answer, for a write until the deadline;
    /// dropping the future tells it too.
    pub(crate) async fn call(
        &self,
        call: ToolCall<'_>,
        over: Over,
        deadline: Instant,
        cancelled: impl Future<Output = ()>,
    ) -> Result<Answered, CallFailure> {
        let until = in_time(deadline);
        let connection = match over {
            Over::Any => self.connection(until).await.map_err(CallFailure::NotReady)?,
            Over::Listed(wanted) => {
                let connection = self.0.live().filter(|connection| connection.mark() == wanted);
                let why = "the server ended, or told of a change, after its tools were compared";
                connection.ok_or_else(|| CallFailure::NotReady(NotReady::new(why)))?
            }
        };
        connection.call(call, until, cancelled).await
    }

    /// Ends the program and waits until it has ended. It is not started again.
    pub(crate) async fn close(&self) {
        self.0.closing.cancel();
        // A start that is on its way gives up, and has ended the program when it lets go.
        let _starter = self.0.starter.lock().await;
        let live = self.0.live.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(connection) = live {
            connection.close().await;
        }
    }

    async fn connection(&self, until: Instant) -> Result<Arc<Connection>, NotReady> {
        if let Some(connection) = self.0.live() {
            return Ok(connection);
        }
        // Whoever stops waiting does not stop the start: the next caller needs it too.
        let inner = Arc::clone(&self.0);
        let start = tokio::spawn(async move { inner.start(until).await });
        match timeout_at(until, start).await {
            Ok(Ok(started)) => started,
            Ok(Err(_)) => Err(NotReady::new("the start of the server was given up")),
            Err(_) => Err(NotReady::new("the server was not ready in time")),
        }
    }
}

impl Inner {
    fn live(&self) -> Option<Arc<Connection>> {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.as_ref().filter(|connection| connection.is_live()).cloned()
    }

    async fn start(self: &Arc<Self>, until: Instant) -> Result<Arc<Connection>, NotReady> {
        let mut starter = self.starter.lock().await;
        if let Some(connection) = self.live() {
            return Ok(connection);
        }
        let closed = || NotReady::new("it is closed");
        if self.closing.is_cancelled() {
            return Err(closed());
        }
        let ended = self.live.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ended) = ended {
            ended.close().await;
            starter.ended(ended.lived());
        }
        if let Some(not_before) = starter.not_before {
            let wait = not_before.saturating_duration_since(Instant::now());
            if wait > PATIENCE || not_before >= until {
                let why = "the server ended, and is not started again yet".to_owned();
                return Err(NotReady { why, retry_after: Some(wait) });
            }
            tokio::select! {
                () = sleep_until(not_before) => {}
                () = self.closing.cancelled() => return Err(closed()),
            }
        }
        let inner = Arc::clone(self);
        let checked = tokio::task::spawn_blocking(move || (inner.check)()).await;
        checked.unwrap_or_else(|lost| Err(lost.to_string())).map_err(|why| NotReady { why, retry_after: None })?;
        starter.generation += 1;
        if starter.generation > 1 {
            self.counts.restarted();
        }
        let connection = Connection::start(&self.program, starter.generation, &self.say, &self.counts);
        let connection = match connection {
            Ok(connection) => connection,
            Err(why) => return Err(starter.failed(why)),
        };
        let greeted = tokio::select! {
            greeted = timeout_at(Instant::now() + LONGEST_START, handshake::greet(&connection)) => {
                greeted.unwrap_or_else(|_| Err("it did not answer the handshake in time".to_owned()))
            }
            () = self.closing.cancelled() => Err("it is closed".to_owned()),
        };
        match greeted {
            Ok(()) => {
                let connection = Arc::new(connection);
                *self.live.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(why) => {
                connection.close().await;
                Err(starter.failed(why))
            }
        }
    }
}

impl Starter {
    /// A connection ended after it had lived so long.
    fn ended(&mut self, lived: Duration) {
        if lived >= HEALTHY {
            self.ends = 0;
        }
        self.hold_back();
    }

    fn failed(&mut self, why: String) -> NotReady {
        let wait = self.hold_back();
        NotReady { why, retry_after: Some(wait) }
    }

    fn hold_back(&mut self) -> Duration {
        let wait = FIRST_BACKOFF.saturating_mul(1 << self.ends.min(10)).min(LONGEST_BACKOFF);
        self.ends = self.ends.saturating_add(1);
        self.not_before = Some(Instant::now() + wait);
        wait
    }
}

/// Until when there is time to send, so that whoever waits can still be told that nothing was sent.
pub(crate) fn in_time(deadline: Instant) -> Instant {
    let margin = deadline.saturating_duration_since(Instant::now()) / 10;
    deadline.checked_sub(margin.clamp(LEAST_MARGIN, MOST_MARGIN)).unwrap_or(deadline)
}

impl NotReady {
    pub(crate) fn new(why: &str) -> Self {
        Self { why: why.to_owned(), retry_after: None }
    }
}
