//! What `POST /v1/calls` costs beside a bare echo of JSON.
//!
//! The whole is a call of an in-process read tool through the door, its record included. Beside it stands the least that
//! any server of the same kind does: read a JSON body, write it back. Both are asked by the same clients on the same
//! number of connections, in turns within one run, so that what disturbs the machine disturbs them alike. Every round has
//! a new gate: a store in memory keeps every record.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a bench may panic, prints what it finds, and measures the lax reader"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;
use toolgate::backend::Context;
use toolgate::fault::Fault;
use toolgate::ledger::Store;
use toolgate::{Gate, Reply, Tool};
use toolgate_gateway::http::{Server, Settings, Watch};
use toolgate_gateway::identity::Doorkeeper;

const CLIENTS: usize = 16;
const ROUND: Duration = Duration::from_secs(2);
const ROUNDS: usize = 3;

/// Adds two whole numbers.
#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

struct Nobody;

impl Watch for Nobody {
    fn answered(&self, _: &Result<Reply, Fault>) {}

    fn failed(&self, _: &Fault) {}
}

fn main() {
    let runtimes = [("one thread", false), ("a thread a core", true)];
    for (name, cores) in runtimes {
        let mut best = [0.0_f64; 3];
        for _ in 0..ROUNDS {
            let served = [Served::on(cores, echo), Served::on(cores, || gate(Store::memory()))];
            let folder = tempfile::tempdir().unwrap();
            let store = Store::sqlite(folder.path().join("toolgate.db")).unwrap();
            let sqlite = Served::on(cores, || gate(store));
            for (best, served) in best.iter_mut().zip(served.iter().chain([&sqlite])) {
                *best = best.max(served.requests_a_second());
            }
        }
        let [echo, memory, sqlite] = best;
        println!("{name}");
        println!("  a bare echo of JSON                {echo:>9.0} requests/s");
        for (what, rate) in [("in memory", memory), ("in SQLite", sqlite)] {
            println!("  POST /v1/calls, a store {what}  {rate:>9.0} requests/s, {:.2} of the echo", rate / echo);
        }
    }
    println!("(at least 0.4 of the echo is the goal)");
}

/// A server on a runtime of its own.
struct Served {
    address: SocketAddr,
    runtime: Option<std::thread::JoinHandle<()>>,
    over: CancellationToken,
}

impl Served {
    fn on<F: Future<Output = SocketAddr>>(cores: bool, start: impl FnOnce() -> F + Send + 'static) -> Self {
        let mut builder = if cores { Builder::new_multi_thread() } else { Builder::new_current_thread() };
        let runtime = builder.enable_all().build().unwrap();
        let over = CancellationToken::new();
        let until = over.clone();
        let (tell, told) = std::sync::mpsc::channel();
        let runtime = std::thread::spawn(move || {
            tell.send(runtime.block_on(start())).unwrap();
            runtime.block_on(until.cancelled());
        });
        Self { address: told.recv().unwrap(), runtime: Some(runtime), over }
    }

    fn requests_a_second(&self) -> f64 {
        let end = Instant::now() + ROUND;
        let clients: Vec<_> = (0..CLIENTS).map(|_| client(self.address, end)).collect();
        let done: u32 = clients.into_iter().map(|client| client.join().unwrap()).sum();
        f64::from(done) / ROUND.as_secs_f64()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.over.cancel();
        self.runtime.take().unwrap().join().unwrap();
    }
}

async fn echo() -> SocketAddr {
    let answer = |body: Bytes| async move {
        let value: Value = serde_json::from_slice(&body).unwrap();
        ([("content-type", "application/json")], serde_json::to_vec(&value).unwrap())
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Router::new().route("/v1/calls", post(answer));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

async fn gate(store: Store) -> SocketAddr {
    let add = Tool::read("add", |args: Add, _: &Context| async move { Ok(Sum { sum: args.a + args.b }) });
    let policy = "permit (principal, action == Action::\"add\", resource);";
    let gate = Gate::builder().tool(add).policy(policy).store(store).build().unwrap();
    let session = toolgate::session::Session::new(toolgate::session::Principal::new("bench", "ada"), "bench");
    let settings = Settings { listen: "127.0.0.1:0".parse().unwrap(), ..Settings::default() };
    let draining = CancellationToken::new();
    let server = Server::listen(gate, Doorkeeper::Local(session), &settings, draining, Nobody).await.unwrap();
    let address = server.address();
    tokio::spawn(server.run(|_| {}));
    address
}

/// Asks on one connection until `end`, and counts.
fn client(address: SocketAddr, end: Instant) -> std::thread::JoinHandle<u32> {
    std::thread::spawn(move || {
        let function = json!({ "name": "add", "arguments": "{\"a\": 2, \"b\": 3}" });
        let call = json!({ "id": "call_QxUl0Zb1mJtKpW7hVdTn2c4A", "type": "function", "function": function });
        let message = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
        let body = json!({ "dialect": "openai-chat", "message": message }).to_string();
        let request = format!(
            "POST /v1/calls HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut stream = BufReader::new(stream);
        let (mut line, mut answer) = (String::new(), Vec::new());
        let mut done = 0;
        while Instant::now() < end {
            stream.get_mut().write_all(request.as_bytes()).unwrap();
            let mut length = 0;
            let mut first = true;
            loop {
                line.clear();
                stream.read_line(&mut line).unwrap();
                assert!(!std::mem::take(&mut first) || line.starts_with("HTTP/1.1 200"), "{line}");
                if line == "\r\n" {
                    break;
                }
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.trim().parse().unwrap();
                }
            }
            answer.resize(length, 0);
            stream.read_exact(&mut answer).unwrap();
            done += 1;
        }
        done
    })
}
