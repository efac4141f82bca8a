//! One client that stays: its requests run side by side, and each is answered as it ends.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tokio::io::AsyncRead;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use toolgate::json::{self, Limits};
use toolgate::refusal::{Code, Effect, Refusal};
use toolgate::wire::{Broken as BrokenCall, Proposed};

use super::message::{self, Broken, INVALID_REQUEST, Id, Message};
use super::server::{Answer, Ask, Request, Tools, is_request};
use super::stdio::{Closed, FrameWriter, Frames};
use super::version::Envelope;
use crate::cli::{Said, Say};

/// Calls that run at once for one client; those beyond are refused.
pub(crate) const MOST_RUNNING: usize = 128;
/// Requests that are not answered yet, refused ones among them. No more is read until one is.
const MOST_WAITING: usize = 2 * MOST_RUNNING;
/// Once it is to stop: how long a client that does not read is waited for.
const GRACE: Duration = Duration::from_secs(5);

/// A client that stays, and what runs for it.
pub(crate) struct Connection<T> {
    tools: Arc<T>,
    /// Whether client and server have agreed on a revision.
    agreed: bool,
    /// INVARIANT (one id at a time): holds the id of every request that is not answered yet.
    running: HashMap<Id, CancellationToken>,
    /// Whether it was told that requests without an id are not made.
    told: bool,
    say: Say,
}

/// What becomes of a line.
pub(crate) enum Reaction {
    /// Nothing is said to it.
    Nothing,
    /// This is said to it at once.
    Say(String),
    /// It takes its time.
    Work(Work),
}

/// A request that runs.
pub(crate) type Work = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// A request that has ended.
pub(crate) struct Ended {
    id: Id,
    /// `None` for one that was cancelled: nobody waits for it.
    answer: Option<Answer>,
}

impl<T: Tools> Connection<T> {
    pub(crate) fn new(tools: Arc<T>, say: Say) -> Self {
        Self { tools, agreed: false, running: HashMap::new(), told: false, say }
    }

    /// Takes a line in. What it asks for is known to run from here on, so that the next line can cancel it.
    pub(crate) fn take(&mut self, line: &[u8]) -> Reaction {
        let limits = message::limits(line);
        match message::read(line, &limits) {
            Ok(Message::Request { id, method, params }) => match self.request(id, &method, params, &limits) {
                Ok(reaction) => reaction,
                Err(broken) => Reaction::Say(broken.answer()),
            },
            Ok(Message::Notification { method, params }) => self.notification(&method, params, &limits),
            // Nothing is ever asked of a client.
            Ok(Message::Response { .. }) => Reaction::Nothing,
            Err(broken) => Reaction::Say(broken.answer()),
        }
    }

    fn request(&mut self, id: Id, method: &str, params: Option<&[u8]>, limits: &Limits) -> Result<Reaction, Broken> {
        if self.running.contains_key(&id) {
            // Under its own id this would be taken for the answer to the request that runs.
            return Err(Broken::new(INVALID_REQUEST, "a request with this id still runs; this one was not made"));
        }
        // `initialize` belongs to its own era, whatever a client puts around it.
        let envelope = match method {
            "initialize" => None,
            _ => Envelope::of(params, limits).map_err(|broken| broken.to(Some(id.clone())))?,
        };
        let mut request = Request::read(id, method, params, envelope.as_ref(), limits)?;
        let (agreed, stateless) = (self.agreed, request.is_stateless());
        match &mut request.ask {
            Ask::Initialize(_) => self.agreed = true,
            Ask::Ping | Ask::Discover => {}
            Ask::List | Ask::Call(_) if !agreed && !stateless => {
                let message = "send `initialize` first, or a request of 2026-07-28 that names its revision in `_meta`";
                return Err(Broken::new(INVALID_REQUEST, message).to(Some(request.id().clone())));
            }
            Ask::List => {}
            Ask::Call(proposed) if self.running.len() >= MOST_RUNNING => overload(proposed),
            Ask::Call(_) => {}
        }
        Ok(Reaction::Work(self.start(request)))
    }

    fn start(&mut self, request: Request) -> Work {
        let id = request.id().clone();
        let cancelled = CancellationToken::new();
        self.running.insert(id.clone(), cancelled.clone());
        let tools = Arc::clone(&self.tools);
        Box::pin(async move {
            let answer = tokio::select! {
                biased;
                () = cancelled.cancelled() => None,
                answer = request.answer(&*tools) => Some(answer),
            };
            Ended { id, answer }
        })
    }

    fn notification(&mut self, method: &str, params: Option<&[u8]>, limits: &Limits) -> Reaction {
        if is_request(method) {
            // JSON-RPC 2.0, section 4.1: what has no id is never answered. A person may wonder all the same.
            if !std::mem::replace(&mut self.told, true) {
                let told = "the client sent a request without an id, which was neither made nor answered";
                (self.say)(Said::Warning(told.into()));
            }
            return Reaction::Nothing;
        }
        if method == "notifications/cancelled"
            && let Some(id) = params.and_then(|params| named(params, limits))
            && let Some(running) = self.running.get(&id)
        {
            running.cancel();
        }
        Reaction::Nothing
    }

    /// The answer of a request that has ended, if somebody waits for it.
    pub(crate) fn ended(&mut self, ended: Ended) -> Option<String> {
        self.running.remove(&ended.id);
        ended.answer.map(|answer| answer.text)
    }
}

/// Serves a client until its input ends, or `stop` says so; what runs then comes to its end and is answered. Whoever does
/// not read then is not waited for.
pub(crate) async fn serve<T: Tools>(
    tools: Arc<T>,
    mut lines: Frames<impl AsyncRead + Unpin>,
    writer: &FrameWriter,
    stop: &CancellationToken,
    say: &Say,
) {
    let mut changes = tools.changes();
    let mut connection = Connection::new(tools, Arc::clone(say));
    let mut works: FuturesUnordered<Work> = FuturesUnordered::new();
    let (mut ends, mut reads) = (false, true);
    while !ends || !works.is_empty() {
        let text = tokio::select! {
            Some(ended) = works.next(), if !works.is_empty() => connection.ended(ended),
            line = lines.next(), if !ends && works.len() < MOST_WAITING => match line {
                Ok(Some(line)) => match connection.take(&line) {
                    Reaction::Nothing => None,
                    Reaction::Say(text) => Some(text),
                    Reaction::Work(work) => {
                        works.push(work);
                        None
                    }
                },
                Ok(None) => {
                    ends = true;
                    None
                }
                Err(too_long) => Some(Broken::new(INVALID_REQUEST, format!("{too_long}, which was not read")).answer()),
            },
            () = stop.cancelled(), if !ends => {
                ends = true;
                None
            }
            Some(()) = changed(&mut changes), if !ends && connection.agreed => {
                Some(message::notification("notifications/tools/list_changed", "{}"))
            }
        };
        // Whoever does not read their answers has gone; what runs for them is settled all the same.
        if let Some(text) = text.filter(|_| reads)
            && !taken(writer.send(text), stop).await
        {
            reads = false;
            ends = true;
        }
    }
    if reads {
        taken(writer.flushed(), stop).await;
    }
}

/// Whether the client takes what is written. INVARIANT (no hold): one that has stopped reading keeps nobody from ending.
async fn taken(written: impl Future<Output = Result<(), Closed>>, stop: &CancellationToken) -> bool {
    let too_long = async {
        stop.cancelled().await;
        sleep(GRACE).await;
    };
    tokio::select! {
        biased;
        written = written => written.is_ok(),
        () = too_long => false,
    }
}

/// Waits for the next change of the list; `None` if there will be none.
async fn changed(changes: &mut Option<tokio::sync::watch::Receiver<()>>) -> Option<()> {
    let changed = changes.as_mut()?.changed().await;
    if changed.is_err() {
        *changes = None;
    }
    changed.ok()
}

/// Makes a call one that is refused as it stands.
fn overload(proposed: &mut Proposed) {
    let (call_id, tool) = match proposed {
        Proposed::Call(call) => (call.id().to_owned(), call.tool().to_owned()),
        Proposed::Broken(_) => return,
    };
    *proposed = Proposed::Broken(BrokenCall { call_id, tool, refusal: Refusal::new(Code::Overloaded, Effect::None) });
}

/// The id of the request that is to be cancelled.
fn named(params: &[u8], limits: &Limits) -> Option<Id> {
    let members = json::read_arguments(params, limits).ok()?;
    match members.get("requestId")? {
        Value::String(text) => Some(Id::Text(text.clone())),
        Value::Number(number) => Some(Id::Number(number.clone())),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic, and it reads JSON that was written here"
)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
    use tokio::net::unix::pipe::Receiver;
    use tokio::sync::{Notify, watch};
    use toolgate::Reply;
    use toolgate::fault::Fault;

    use super::*;

    /// Tools whose list changes, and whose one call ends when it is told to.
    struct Fake {
        changes: watch::Receiver<()>,
        go_on: Arc<Notify>,
    }

    impl Tools for Fake {
        async fn list(&self) -> Result<Vec<Value>, Fault> {
            Ok(vec![json!({ "name": "x" })])
        }

        async fn call(&self, _proposed: Proposed) -> Result<Reply, Fault> {
            self.go_on.notified().await;
            Err(Fault::Lost)
        }

        fn changes(&self) -> Option<watch::Receiver<()>> {
            Some(self.changes.clone())
        }
    }

    struct Client {
        say: DuplexStream,
        hear: Lines<BufReader<Receiver>>,
        change: watch::Sender<()>,
        go_on: Arc<Notify>,
        stop: CancellationToken,
        said: Arc<Mutex<Vec<String>>>,
        served: tokio::task::JoinHandle<()>,
    }

    impl Client {
        fn new() -> Self {
            let ((say, stdin), (hear, stdout)) = (tokio::io::duplex(1 << 16), std::io::pipe().unwrap());
            let (hear, writer) = (Receiver::from_owned_fd(hear.into()).unwrap(), FrameWriter::to(|| stdout).unwrap());
            let ((change, changes), go_on) = (watch::channel(()), Arc::new(Notify::new()));
            let tools = Arc::new(Fake { changes, go_on: Arc::clone(&go_on) });
            let (stop, said) = (CancellationToken::new(), Arc::new(Mutex::new(Vec::new())));
            let (stopping, heard) = (stop.clone(), Arc::clone(&said));
            let telling: Say = Arc::new(move |line: Said| heard.lock().unwrap().push(line.text().to_owned()));
            let served =
                tokio::spawn(async move { serve(tools, Frames::new(stdin, 1000), &writer, &stopping, &telling).await });
            Self { say, hear: BufReader::new(hear).lines(), change, go_on, stop, said, served }
        }

        async fn say(&mut self, message: Value) {
            self.say.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        }

        async fn hear(&mut self) -> Value {
            serde_json::from_str(&self.hear.next_line().await.unwrap().unwrap()).unwrap()
        }
    }

    #[tokio::test]
    async fn a_client_is_told_that_the_list_has_changed_once_it_can_have_seen_it() {
        let mut client = Client::new();
        client.say(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
        client.change.send(()).unwrap();
        assert_eq!(client.hear().await["id"], 1);
        let initialize =
            json!({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}});
        client.say(initialize).await;
        let mut heard = [client.hear().await, client.hear().await];
        heard.sort_by_key(|message| message.get("id").is_none());
        assert_eq!(heard[0]["result"]["capabilities"], json!({"tools": {"listChanged": true}}));
        assert_eq!(heard[1]["method"], "notifications/tools/list_changed");
        client.change.send(()).unwrap();
        assert_eq!(client.hear().await["method"], "notifications/tools/list_changed");
        // Tools that can no longer change are tools all the same.
        drop(client.change);
        client.say.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"}\n").await.unwrap();
        let listed = client.hear.next_line().await.unwrap().unwrap();
        assert!(listed.contains("\"tools\":[{\"name\":\"x\"}]"), "{listed}");
        drop(client.say);
        client.served.await.unwrap();
    }

    #[tokio::test]
    async fn for_a_client_that_no_longer_reads_what_runs_comes_to_its_end() {
        let mut client = Client::new();
        client.say(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": ""}})).await;
        client.hear().await;
        client.say(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "x"}})).await;
        client.say(json!({"jsonrpc": "2.0", "id": 3, "method": "ping"})).await;
        assert_eq!(client.hear().await["id"], 3);
        let Client { mut say, hear, change, go_on, served, .. } = client;
        drop(hear);
        for id in [4, 5] {
            // Its process may have noticed already.
            let _ =
                say.write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").as_bytes()).await;
            tokio::task::yield_now().await;
        }
        assert!(!served.is_finished());
        go_on.notify_one();
        served.await.unwrap();
        drop((say, change));
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_does_not_keep_the_server_from_ending() {
        let mut client = Client::new();
        // The answers fill the pipe, and then what waits to be written.
        let name = "x".repeat(900);
        let asked = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{name}\",\"method\":\"ping\"}}\n");
        let unread = async { while client.say.write_all(asked.as_bytes()).await.is_ok() {} };
        let _ = tokio::time::timeout(Duration::from_millis(500), unread).await;
        assert!(!client.served.is_finished());
        client.stop.cancel();
        client.served.await.unwrap();
        drop((client.hear, client.change));
    }

    #[tokio::test]
    async fn a_request_without_an_id_is_not_answered_and_told_once() {
        let mut client = Client::new();
        for method in ["tools/call", "ping"] {
            client.say(json!({"jsonrpc": "2.0", "method": method, "params": {"name": "x"}})).await;
        }
        client.say(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
        assert_eq!(client.hear().await["id"], 1);
        assert_eq!(client.said.lock().unwrap().len(), 1);
    }
}
