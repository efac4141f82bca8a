//! What a call costs over HTTP and over MCP on HTTP, beside a bare echo of JSON.
//!
//! The whole is a call of an in-process read tool through the door, its record included. Beside it stands the least that
//! any server of the same kind does: read a JSON body, write it back. Both are asked by `wrk` with the same connections,
//! in turns within one run, so that what disturbs the machine disturbs them alike.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a bench may panic, prints what it finds, starts wrk, and measures the lax reader"
)]

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use toolgate::backend::Context;
use toolgate::fault::Fault;
use toolgate::ledger::Store;
use toolgate::session::{Principal, Session};
use toolgate::{Gate, Reply, Tool};
use toolgate_gateway::http::{Server, Settings, Watch};
use toolgate_gateway::identity::Doorkeeper;

/// That of the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CONNECTIONS: &str = "-c16";
const ROUND: &str = "-d2s";
const ROUNDS: usize = 5;

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
    let folder = tempfile::tempdir().unwrap();
    let function = json!({ "name": "add", "arguments": "{\"a\": 2, \"b\": 3}" });
    let call = json!({ "id": "call_QxUl0Zb1mJtKpW7hVdTn2c4A", "type": "function", "function": function });
    let message = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    let calls = json!({ "dialect": "openai-chat", "message": message });
    let params = json!({ "name": "add", "arguments": { "a": 2, "b": 3 } });
    let mcp = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let asked = [("/v1/calls", script(folder.path(), "calls", &calls)), ("/mcp", script(folder.path(), "mcp", &mcp))];

    let echo = Served::on(|runtime| runtime.block_on(echo()));
    let memory = Served::on(|runtime| runtime.block_on(gate(Store::memory())));
    let store = Store::sqlite(folder.path().join("gate.db")).unwrap();
    let sqlite = Served::on(|runtime| runtime.block_on(gate(store)));
    for (path, script) in &asked {
        let mut rates = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            for (rates, served) in rates.iter_mut().zip([&echo, &memory, &sqlite]) {
                rates.push(requests_a_second(served.address, path, script));
            }
        }
        let [echo, memory, sqlite] = rates.map(median);
        println!("POST {path}");
        println!("  a bare echo of JSON  {echo:>9.0} requests/s");
        for (what, rate) in [("in memory", memory), ("in SQLite", sqlite)] {
            println!("  a store {what}    {rate:>9.0} requests/s, {:.2} of the echo", rate / echo);
        }
    }
    println!("(the goal is 0.4 of the echo for /v1/calls, 0.35 for /mcp)");
}

/// What `wrk` is told to post.
fn script(folder: &Path, name: &str, body: &Value) -> String {
    let path = folder.join(format!("{name}.lua"));
    let lines = format!(
        "wrk.method = \"POST\"\nwrk.body = [==[{body}]==]\nwrk.headers[\"Content-Type\"] = \"application/json\"\n\
         wrk.headers[\"Accept\"] = \"application/json, text/event-stream\"\n\
         function response(status) if status ~= 200 then wrk.thread:stop() error(status) end end\n"
    );
    std::fs::write(&path, lines).unwrap();
    path.to_str().unwrap().to_owned()
}

fn requests_a_second(address: SocketAddr, path: &str, script: &str) -> f64 {
    let url = format!("http://{address}{path}");
    let output = Command::new("wrk").args(["-t1", CONNECTIONS, ROUND, "-s", script, &url]).output();
    let output = output.expect("wrk is there (Debian's package wrk)");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("Non-2xx"), "{text}");
    let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    rate.unwrap_or_else(|| panic!("{text}")).trim().parse().unwrap()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap()
}

/// A server on a runtime of its own, with a thread a core.
struct Served {
    address: SocketAddr,
    runtime: Option<std::thread::JoinHandle<()>>,
    over: CancellationToken,
}

impl Served {
    fn on(start: impl FnOnce(&Runtime) -> SocketAddr + Send + 'static) -> Self {
        let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
        let over = CancellationToken::new();
        let until = over.clone();
        let (tell, told) = std::sync::mpsc::channel();
        let runtime = std::thread::spawn(move || {
            tell.send(start(&runtime)).unwrap();
            runtime.block_on(until.cancelled());
        });
        Self { address: told.recv().unwrap(), runtime: Some(runtime), over }
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
    let routes = Router::new().route("/v1/calls", post(answer)).route("/mcp", post(answer));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

async fn gate(store: Store) -> SocketAddr {
    let add = Tool::read("add", |args: Add, _: &Context| async move { Ok(Sum { sum: args.a + args.b }) });
    let policy = "permit (principal, action == Action::\"add\", resource);";
    let gate = Gate::builder().tool(add).policy(policy).store(store).build().unwrap();
    let session = Session::new(Principal::new("bench", "ada"), "bench");
    let settings = Settings { listen: "127.0.0.1:0".parse().unwrap(), ..Settings::default() };
    let draining = CancellationToken::new();
    let server = Server::listen(gate, Doorkeeper::Local(session), &settings, draining, Nobody).await.unwrap();
    let address = server.address();
    tokio::spawn(server.run(|_| {}));
    address
}
