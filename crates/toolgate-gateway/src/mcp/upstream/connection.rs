//! One connection to a running server: requests with ids of our own, and who waits for which answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::BufReader;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use toolgate::contract::Access;
use toolgate::json::{self, Limits};

use super::handshake::{self, Era, ServerInfo};
use super::lines::{Line, Lines};
use super::outgoing::{Outgoing, Ticket, write};
use super::process::{Pipes, Process};
use super::waiting::{Arrived, Hear, Waiting};
use super::{Afterwards, Counts, Mark, NotReady, Program, ToolCall};
use crate::cli::{Said, Say};
use crate::mcp::message::{self, Id, METHOD_NOT_FOUND, Message};
use crate::mcp::shown::one_line;

/// One connection.
pub(super) struct Connection {
    generation: u64,
    started: Instant,
    /// INVARIANT (ids of our own): no id of a caller reaches a server, and nobody can guess the next.
    prefix: String,
    next: AtomicU64,
    wire: Wire,
    /// Asks for the end of the program.
    stop: CancellationToken,
    /// The program has ended.
    ended: CancellationToken,
}

/// What the tasks of a connection share.
#[derive(Clone)]
struct Wire {
    outgoing: mpsc::Sender<Outgoing>,
    waiting: Arc<Waiting>,
    /// How often the server has said that its tools changed.
    changes: Arc<AtomicU64>,
    /// In which revision it is spoken to, once that is agreed.
    agreed: Arc<OnceLock<(Era, ServerInfo)>>,
    counts: Arc<Counts>,
    say: Say,
    /// Asks for the end of the program.
    stop: CancellationToken,
    probe: Arc<Probe>,
}

/// What a server answered to a call.
#[derive(Debug)]
pub(crate) enum Answered {
    /// The raw text of a result.
    Result(Vec<u8>),
    /// A JSON-RPC error.
    Error {
        code: Option<i64>,
        /// The raw text of the error object.
        raw: Vec<u8>,
    },
}

/// Why there is no answer to a call, and with it what is known of the effect.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// It was not sent.
    NotReady(NotReady),
    /// It was not sent in time, or its caller had gone before.
    NotSent { cancelled: bool },
    /// It was sent, and the program ended.
    Died,
    /// It was sent, and there was no answer in time.
    TimedOut,
    /// It was sent, the caller went away, and there was no answer in the time that it had after that.
    Cancelled,
    /// Its answer cannot be read.
    Broken,
}

/// Asks a server that owes an answer whether it is still there, once at a time.
struct Probe {
    id: String,
    running: AtomicBool,
}

/// How long it has to say so.
const PROBED: Duration = Duration::from_secs(5);
/// Bytes of one message.
const MOST_MESSAGE: usize = 16 << 20;
/// Frames that wait for a server which does not read.
const MOST_QUEUED: usize = 256;
/// Characters of a line of noise or of stderr that are shown.
const MOST_STDERR_LINE: usize = 4096;
/// Lines of stderr that are passed on in a minute.
const STDERR_A_MINUTE: u32 = 200;
/// How long the last answers of a program that has ended are read.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long the answer to a read is waited for whose caller has gone away. A write has until its deadline: what became of
/// it is wanted, whoever is there.
const AFTER_CANCEL: Duration = Duration::from_secs(2);

impl Connection {
    /// Starts the program. The error is for a person.
    pub(super) fn start(program: &Program, generation: u64, say: &Say, counts: &Arc<Counts>) -> Result<Self, String> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| "the system gives no random bytes".to_owned())?;
        let (process, Pipes { stdin, stdout, stderr }) = Process::start(program)?;
        let (outgoing, queue) = mpsc::channel(MOST_QUEUED);
        let wire = Wire {
            outgoing,
            waiting: Arc::default(),
            changes: Arc::default(),
            agreed: Arc::default(),
            counts: Arc::clone(counts),
            say: Arc::clone(say),
            stop: CancellationToken::new(),
            probe: Arc::new(Probe {
                id: format!("{:016x}-probe", u64::from_ne_bytes(random)),
                running: AtomicBool::new(false),
            }),
        };
        let (stop, ended) = (wire.stop.clone(), CancellationToken::new());
        let writer = tokio::spawn(write(stdin, queue, stop.clone()));
        let reader = tokio::spawn(wire.clone().read(stdout, stop.clone()));
        tokio::spawn(drain(stderr, Arc::clone(say), Arc::clone(counts)));
        tokio::spawn(keep(process, [writer, reader], wire.clone(), stop.clone(), ended.clone()));
        Ok(Self {
            generation,
            started: Instant::now(),
            prefix: format!("{:016x}", u64::from_ne_bytes(random)),
            next: AtomicU64::new(1),
            wire,
            stop,
            ended,
        })
    }

    /// The moment that the server's list is in.
    pub(super) fn mark(&self) -> Mark {
        Mark { generation: self.generation, changes: self.wire.changes.load(Ordering::SeqCst) }
    }

    /// Whether requests can still be answered.
    pub(super) fn is_live(&self) -> bool {
        self.wire.waiting.is_open()
    }

    pub(super) fn lived(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn server(&self) -> ServerInfo {
        let unknown = || ServerInfo { name: String::new(), version: String::new(), protocol: String::new() };
        self.wire.agreed.get().map_or_else(unknown, |(_, server)| server.clone())
    }

    /// Fixes in which revision the server is spoken to.
    pub(super) fn agree(&self, agreed: (Era, ServerInfo)) {
        // There is one handshake a connection.
        let _ = self.wire.agreed.set(agreed);
    }

    /// What stands beside the parameters of a request.
    pub(super) fn meta(&self, more: &Map<String, Value>) -> Option<String> {
        handshake::meta(self.wire.agreed.get().map_or(Era::Handshake, |(era, _)| *era), more)
    }

    /// Ends the program and waits until it has ended.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        self.ended.cancelled().await;
    }

    /// Sends a request and waits for what comes. The error is for a person.
    pub(super) async fn request(&self, method: &str, params: &str) -> Result<Arrived, String> {
        let mut flight = self.send(method, params).await.map_err(|Ended| "it ended".to_owned())?;
        flight.arrives().await.map_err(|Ended| "it ended before it answered".to_owned())
    }

    pub(super) async fn notify(&self, method: &str, params: &str) {
        let frame = message::notification(method, params);
        // Whoever has ended needs no word.
        let _ = self.wire.outgoing.send(Outgoing { frame, ticket: None }).await;
    }

    pub(super) async fn call(
        &self,
        call: ToolCall<'_>,
        until: Instant,
        cancelled: impl Future<Output = ()>,
    ) -> Result<Answered, CallFailure> {
        let meta = self.meta(call.meta).map(|meta| format!(r#","_meta":{meta}"#)).unwrap_or_default();
        let params = format!(r#"{{"name":{},"arguments":{}{meta}}}"#, json!(call.tool), call.arguments);
        let mut cancelled = std::pin::pin!(cancelled);
        let mut flight = tokio::select! {
            biased;
            () = &mut cancelled => return Err(CallFailure::NotSent { cancelled: true }),
            sent = timeout_at(until, self.send("tools/call", &params)) => match sent {
                Ok(Ok(mut flight)) => {
                    flight.hear = call.afterwards.map(hear);
                    flight
                }
                Ok(Err(Ended)) => return Err(CallFailure::NotReady(NotReady::new("the server ended"))),
                Err(_) => return Err(CallFailure::NotSent { cancelled: false }),
            },
        };
        let arrived = tokio::select! {
            arrived = timeout_at(until, flight.arrives()) => arrived.map_err(|_| CallFailure::TimedOut),
            () = &mut cancelled => {
                flight.cancel();
                let until = match call.access {
                    Access::Read => until.min(Instant::now() + AFTER_CANCEL),
                    Access::Write => until,
                };
                let soon = timeout_at(until, flight.arrives()).await;
                soon.map_err(|_| CallFailure::Cancelled)
            }
        };
        match arrived {
            Ok(Ok(arrived)) => answered(arrived),
            Ok(Err(Ended)) if flight.never_reached() => Err(CallFailure::NotReady(NotReady::new("the server ended"))),
            Ok(Err(Ended)) => Err(CallFailure::Died),
            Err(failure) if flight.never_reached() => {
                Err(CallFailure::NotSent { cancelled: failure == CallFailure::Cancelled })
            }
            Err(failure) => Err(failure),
        }
    }

    async fn send(&self, method: &str, params: &str) -> Result<Flight<'_>, Ended> {
        let id = format!("{}-{}", self.prefix, self.next.fetch_add(1, Ordering::Relaxed));
        let answer = self.wire.waiting.wait_for(&id).ok_or(Ended)?;
        let ticket = Ticket::queued();
        let ticket_of = Arc::clone(&ticket);
        let flight = Flight { wire: &self.wire, ticket: ticket_of, id, answer, over: false, hear: None };
        let frame = message::request(&Id::Text(flight.id.clone()), method, params);
        self.wire.outgoing.send(Outgoing { frame, ticket: Some(ticket) }).await.map_err(|_| Ended)?;
        Ok(flight)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What an answer says.
fn answered(arrived: Arrived) -> Result<Answered, CallFailure> {
    match arrived {
        Arrived::Result(result) => Ok(Answered::Result(result)),
        Arrived::Error(raw) => Ok(Answered::Error { code: handshake::code(&raw), raw }),
        Arrived::Broken => Err(CallFailure::Broken),
    }
}

fn hear(afterwards: &Afterwards) -> Hear {
    let afterwards = Arc::clone(afterwards);
    Arc::new(move |arrived| afterwards(answered(arrived)))
}

/// The connection has ended.
#[derive(Debug)]
struct Ended;

/// A request that was sent or will be. Dropped before its answer came, it is given up, and the server told.
struct Flight<'a> {
    wire: &'a Wire,
    ticket: Arc<Ticket>,
    id: String,
    answer: oneshot::Receiver<Arrived>,
    over: bool,
    /// Who wants to hear of an answer that comes after it was given up.
    hear: Option<Hear>,
}

impl Flight<'_> {
    async fn arrives(&mut self) -> Result<Arrived, Ended> {
        let arrived = (&mut self.answer).await;
        self.over = true;
        arrived.map_err(|_| Ended)
    }

    /// Tells the server that nobody wants the answer, if it was told of the request.
    fn cancel(&self) {
        if !self.ticket.abandon() {
            let params = json!({ "requestId": self.id }).to_string();
            let frame = message::notification("notifications/cancelled", &params);
            // A server that does not read its pipe would not read this either.
            let _ = self.wire.outgoing.try_send(Outgoing { frame, ticket: None });
        }
    }

    /// Whether the server provably never had the request; from here on it won't.
    fn never_reached(&self) -> bool {
        self.ticket.abandon()
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.over {
            let reached = !self.ticket.abandon();
            match self.hear.take().filter(|_| reached) {
                Some(hear) => self.wire.waiting.leave(&self.id, &mut self.answer, hear),
                None => self.wire.waiting.forget(&self.id),
            }
            self.cancel();
            if reached {
                self.wire.probe();
            }
        }
    }
}

impl Wire {
    /// Reads the server's stdout until it ends, or says something without end.
    async fn read(self, stdout: ChildStdout, stop: CancellationToken) {
        let mut lines = Lines::new(BufReader::with_capacity(64 << 10, stdout), MOST_MESSAGE);
        loop {
            let line = tokio::select! {
                line = lines.next() => line,
                () = stop.cancelled() => return,
            };
            match line {
                Ok(Some(Line::Whole(line))) => self.take(&line),
                Ok(Some(Line::Cut(_))) => {
                    let why = "upstream: it is ended: a line on its stdout is over 16 MB";
                    return (self.say)(Said::Warning(why.into()));
                }
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn take(&self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        // One revision lets a server answer several requests in one array.
        let batches = self.agreed.get().is_some_and(|(_, server)| server.protocol == handshake::BATCHES);
        let batch = line.trim_ascii_start().first().filter(|first| batches && **first == b'[');
        match batch.and_then(|_| json::items(line, &within()).ok()) {
            Some(messages) => messages.into_iter().for_each(|message| self.take_one(message)),
            None => self.take_one(line),
        }
    }

    fn take_one(&self, line: &[u8]) {
        match message::read(line, &within()) {
            Ok(Message::Response { id, outcome }) => {
                let arrived = match outcome {
                    Ok(result) => Arrived::Result(result.to_vec()),
                    Err(error) => Arrived::Error(error.to_vec()),
                };
                if !self.waiting.deliver(&id, arrived) {
                    self.counts.stray();
                }
            }
            Ok(Message::Request { id, method, .. }) => self.asked(&id, &method),
            Ok(Message::Notification { method, .. }) => {
                if method == "notifications/tools/list_changed" {
                    self.changes.fetch_add(1, Ordering::SeqCst);
                }
            }
            Err(broken) => {
                let ids = broken.id.map_or_else(|| self.waiting.named_in(line), |id| vec![id]);
                let delivered = ids.iter().filter(|id| self.waiting.deliver(id, Arrived::Broken)).count();
                let known = delivered > 0;
                if !known && self.counts.noise() {
                    // What it says may repeat what a call carried.
                    let told =
                        format!("upstream: skipped a line on its stdout that is no message ({} bytes)", line.len());
                    (self.say)(Said::Warning(told));
                }
            }
        }
    }

    /// Ends a server that owes an answer and answers nothing any more, so that the next call finds a new one: what hangs is
    /// ended, not left to hold up everybody's calls. Any answer shows that it is there.
    fn probe(&self) {
        if self.stop.is_cancelled() || self.probe.running.swap(true, Ordering::SeqCst) {
            return;
        }
        // Where nothing can run any more, the program ends with this process.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let wire = self.clone();
        runtime.spawn(async move {
            let Probe { id, running } = &*wire.probe;
            let Some(answer) = wire.waiting.wait_for(id) else { return };
            let meta = handshake::meta(wire.agreed.get().map_or(Era::Handshake, |(era, _)| *era), &Map::new());
            let params = meta.map_or_else(|| "{}".to_owned(), |meta| format!(r#"{{"_meta":{meta}}}"#));
            let frame = message::request(&Id::Text(id.clone()), "ping", &params);
            let sent = wire.outgoing.try_send(Outgoing { frame, ticket: None }).is_ok();
            let is_there = sent && timeout(PROBED, answer).await.is_ok_and(|answer| answer.is_ok());
            wire.waiting.forget(id);
            running.store(false, Ordering::SeqCst);
            if !is_there && !wire.stop.is_cancelled() {
                let why = "upstream: it is ended: it owes an answer, and does not answer a ping either";
                (wire.say)(Said::Warning(why.into()));
                wire.stop.cancel();
            }
        });
    }

    /// Answers a request of the server. INVARIANT (nothing was offered): it may ask whether we are there, and nothing else.
    fn asked(&self, id: &Id, method: &str) {
        let frame = if method == "ping" {
            message::response(id, "{}")
        } else {
            self.counts.refused();
            message::error(Some(id), METHOD_NOT_FOUND, "this client offers nothing to a server", None)
        };
        // A server that asks without reading the answers gets none.
        let _ = self.outgoing.try_send(Outgoing { frame, ticket: None });
    }
}

fn within() -> Limits {
    Limits { size: MOST_MESSAGE, members: usize::MAX, ..Limits::default() }
}

/// Reads stderr to its end, whatever comes: a full pipe would stop the server.
async fn drain(stderr: ChildStderr, say: Say, counts: Arc<Counts>) {
    let mut lines = Lines::new(BufReader::new(stderr), MOST_STDERR_LINE);
    let (mut minute, mut told) = (Instant::now(), 0);
    while let Ok(Some(line)) = lines.next().await {
        if minute.elapsed() >= Duration::from_secs(60) {
            (minute, told) = (Instant::now(), 0);
        }
        if told >= STDERR_A_MINUTE {
            counts.untold();
            continue;
        }
        told += 1;
        let (Line::Whole(line) | Line::Cut(line)) = line;
        let line = one_line(&String::from_utf8_lossy(&line), MOST_STDERR_LINE);
        say(Said::Note(format!("upstream: {line}")));
        if told == STDERR_A_MINUTE {
            say(Said::Note("upstream: (more of its stderr is not shown for up to a minute)".into()));
        }
    }
}

/// Waits for the end of a connection, whoever ends it, and sees it through.
async fn keep(
    mut process: Process,
    [writer, mut reader]: [tokio::task::JoinHandle<()>; 2],
    wire: Wire,
    stop: CancellationToken,
    ended: CancellationToken,
) {
    let _told = ended.drop_guard();
    tokio::select! {
        () = stop.cancelled() => {}
        _ = &mut reader => {}
        () = process.ended() => {
            // Its last answers may still be in the pipe.
            let _ = timeout(LAST_WORDS, &mut reader).await;
        }
    }
    stop.cancel();
    // The writer goes first: a frame that it could not finish is known not to have arrived.
    let _ = timeout(LAST_WORDS, writer).await;
    wire.waiting.end();
    process.end().await;
    sleep(Duration::ZERO).await;
}
