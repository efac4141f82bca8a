//! Over HTTP: for a folder `toolgate serve`, a process for each person who asks; for a gate that no process can be asked to
//! make, the same door in this process.
//!
//! Approvals are answered beside it: over the network the people of a folder have calls alone.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate::Reply;
use toolgate::fault::Fault;
use toolgate_gateway::http::{Server, Settings, Watch};
use toolgate_gateway::identity::Doorkeeper;

use super::{Answer, Asker, Binary, Door, Exchange, InProcess, on_record};
use crate::scenario::{Call, GateName, Runs};
use crate::serve::{self, Serving};

/// Servers of one gate, by who asks.
pub(crate) struct Http(Home);

enum Home {
    Processes { command: Binary, serving: BTreeMap<Option<String>, Serving> },
    Here { gate: InProcess, serving: BTreeMap<Option<String>, Listening> },
}

/// A server in this process.
struct Listening {
    address: SocketAddr,
    draining: CancellationToken,
    ended: tokio::task::JoinHandle<Result<(), Fault>>,
}

struct Nobody;

impl Watch for Nobody {
    fn answered(&self, _: &Result<Reply, Fault>) {}

    fn failed(&self, fault: &Fault) {
        panic!("{fault}");
    }
}

impl Http {
    pub(crate) fn processes(gate: GateName) -> Self {
        Self(Home::Processes { command: Binary::new(gate), serving: BTreeMap::new() })
    }

    pub(crate) fn here(gate: InProcess) -> Self {
        Self(Home::Here { gate, serving: BTreeMap::new() })
    }

    /// Where this person is answered.
    pub(super) fn address(&mut self, user: Option<&str>) -> SocketAddr {
        let key = user.map(str::to_owned);
        match &mut self.0 {
            Home::Processes { command, serving } => {
                let start = || {
                    let options: Vec<&str> = user.into_iter().flat_map(|user| ["--as", user]).collect();
                    Serving::start(command.folder().path(), &options)
                };
                serving.entry(key).or_insert_with(start).address()
            }
            Home::Here { gate, serving } => serving.entry(key).or_insert_with(|| Listening::start(gate, user)).address,
        }
    }

    /// Lets all servers come to their end.
    fn stop(&mut self) {
        match &mut self.0 {
            Home::Processes { serving, .. } => std::mem::take(serving).into_values().for_each(Serving::stop),
            Home::Here { gate, serving } => {
                for Listening { draining, ended, .. } in std::mem::take(serving).into_values() {
                    draining.cancel();
                    gate.runtime().block_on(ended).unwrap().unwrap();
                }
            }
        }
    }

    /// The way to the same gate that is not over HTTP.
    fn beside(&self) -> &dyn Door {
        match &self.0 {
            Home::Processes { command, .. } => command,
            Home::Here { gate, .. } => gate,
        }
    }

    fn beside_mut(&mut self) -> &mut dyn Door {
        match &mut self.0 {
            Home::Processes { command, .. } => command,
            Home::Here { gate, .. } => gate,
        }
    }

    pub(super) fn trace(&self, reference: &str) -> Value {
        match &self.0 {
            Home::Processes { command, .. } => on_record(reference, || command.records(reference)),
            Home::Here { gate, .. } => on_record(reference, || gate.records(reference)),
        }
    }
}

impl Listening {
    fn start(gate: &InProcess, user: Option<&str>) -> Self {
        let draining = CancellationToken::new();
        let settings = Settings { listen: "127.0.0.1:0".parse().unwrap(), ..Settings::default() };
        let keeper = Doorkeeper::Local(gate.session(user));
        let server = Server::listen(gate.gate().clone(), keeper, &settings, draining.clone(), Nobody);
        let server = gate.runtime().block_on(server).unwrap();
        let address = server.address();
        Self { address, draining, ended: gate.runtime().spawn(server.run(|_| {})) }
    }
}

impl Door for Http {
    fn call(&mut self, asker: Asker<'_>, call: &Call) -> Answer {
        let function = json!({ "name": call.tool, "arguments": call.text() });
        let calls = json!([{ "id": "call_1", "type": "function", "function": function }]);
        let body = json!({ "dialect": "openai-chat", "message": { "role": "assistant", "tool_calls": calls } });
        let operation = call.operation.iter().map(|id| ("Toolgate-Operation", id.as_str()));
        let approval = call.approval.iter().map(|id| ("Toolgate-Approval", id.as_str()));
        let headers: Vec<(&str, &str)> = operation.chain(approval).collect();
        let response = serve::post(self.address(asker.user), &asker.query("/v1/calls"), &headers, &body);
        assert_eq!(response.status, 200, "{response:?}");
        let mut both = response.json();
        let text = both["messages"][0]["content"].as_str().unwrap().to_owned();
        assert!(response.body.contains(&format!("\"reply\":{text}}}")), "the outcome is the message: {response:?}");
        let outcome = both["outcomes"][0].take();
        assert_eq!(outcome["status"] == json!(200), outcome["reply"]["ok"] == json!(true), "{outcome}");
        let reply = outcome["reply"].clone();
        let reference = reply.get("ref").or_else(|| reply.pointer("/error/ref")).and_then(Value::as_str).unwrap();
        let trace = self.trace(reference);
        Answer { text, reply, trace, exit: None }
    }

    fn message(&mut self, asker: Asker<'_>, dialect: &str, message: &Value) -> Exchange {
        let body = json!({ "dialect": dialect, "message": message });
        let response = serve::post(self.address(asker.user), &asker.query("/v1/calls"), &[], &body);
        match response.status {
            200 => {
                let mut both = response.json();
                Exchange::Answered { messages: both["messages"].take(), outcomes: both["outcomes"].take() }
            }
            400 => {
                assert_eq!(response.code(), "broken_message");
                let problem = response.json();
                Exchange::Broken(format!("{}: {}", problem["detail"], problem["hint"]))
            }
            _ => panic!("{response:?}"),
        }
    }

    fn approve(&mut self, id: &str, user: Option<&str>) -> Result<String, String> {
        self.beside_mut().approve(id, user)
    }

    fn deny(&mut self, id: &str, user: Option<&str>) -> Result<String, String> {
        self.beside_mut().deny(id, user)
    }

    fn approvals(&mut self, user: &str) -> Value {
        self.beside_mut().approvals(user)
    }

    fn tools(&mut self, asker: Asker<'_>) -> Vec<String> {
        let tools = serve::get(self.address(asker.user), &asker.query("/v1/tools")).json();
        let names = tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn rows(&self, sql: &str) -> Value {
        self.beside().rows(sql)
    }

    fn runs(&self, tool: &str) -> Runs {
        self.beside().runs(tool)
    }

    fn advance(&mut self, span: Duration) {
        self.beside_mut().advance(span);
    }

    fn edit(&mut self, file: &str, from: &str, to: &str) {
        self.stop();
        self.beside_mut().edit(file, from, to);
    }

    fn verify(&mut self) -> Result<(), String> {
        self.stop();
        self.beside_mut().verify()
    }
}
