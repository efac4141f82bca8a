//! MCP on stdin and stdout: each user has a client with a `toolgate mcp` of its own, which stays.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use tokio_util::sync::CancellationToken;

use super::binary::{Binary, Run, toolgate};
use super::{Answer, Asker, Door, Exchange, InProcess, on_record};
use crate::scenario::{Call, GateName, Runs, Scenario, Step};

/// The gate of an example behind MCP. What MCP has no words for, a person does with the command.
pub(crate) struct McpStdio {
    home: Home,
    era: Era,
    /// By who asks, and within which tags.
    clients: BTreeMap<(Option<String>, Vec<String>), Client>,
}

/// Where the gate is: what no process can be asked to make is served in this one.
enum Home {
    Process(Binary),
    Here(InProcess),
}

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// It begins with `initialize`.
    Handshake,
    /// Each request stands alone.
    Stateless,
}

/// A client of one process.
pub(crate) struct Client {
    /// `None` where the server is in this process.
    child: Option<Child>,
    /// `None` once there is nothing more to say.
    stdin: Option<Box<dyn Write>>,
    lines: mpsc::Receiver<String>,
    era: Era,
    last_id: u64,
}

/// Longer than any answer takes, on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request has no place for what a host adds to a call, and messages of other dialects never come here.
pub(super) fn carries(step: &Step) -> bool {
    match step {
        Step::Call(step) => {
            let text = step.call.text();
            // Arguments stand in the message as they are: what is no JSON breaks the message, which has no call then.
            let whole = text.trim().is_empty() || serde_json::from_str::<&RawValue>(&text).is_ok();
            whole && step.call.operation.is_none() && step.call.approval.is_none()
        }
        Step::Turn(_) | Step::Message(_) => false,
        Step::Approve(_)
        | Step::Deny(_)
        | Step::Approvals(_)
        | Step::Tools(_)
        | Step::Rows(_)
        | Step::Runs(_)
        | Step::Advance(_)
        | Step::Edit(_) => true,
    }
}

/// Whether a scenario still tells something without the steps that are left out.
pub(crate) fn tells(scenario: &Scenario) -> bool {
    scenario.steps.iter().any(|step| matches!(step, Step::Call(_)) && carries(step))
}

impl McpStdio {
    pub(crate) fn processes(gate: GateName, era: Era) -> Self {
        Self { home: Home::Process(Binary::new(gate)), era, clients: BTreeMap::new() }
    }

    pub(crate) fn here(gate: InProcess, era: Era) -> Self {
        Self { home: Home::Here(gate), era, clients: BTreeMap::new() }
    }

    fn client(&mut self, asker: Asker<'_>) -> &mut Client {
        let (home, era) = (&self.home, self.era);
        let key = (asker.user.map(str::to_owned), asker.tags.to_vec());
        self.clients.entry(key).or_insert_with(|| match home {
            Home::Process(binary) => Client::start(binary.folder().path(), asker, era),
            Home::Here(gate) => Client::here(gate, asker, era),
        })
    }

    /// Ends every process, which must take it well.
    fn close(&mut self) {
        for (_, mut client) in std::mem::take(&mut self.clients) {
            match &self.home {
                Home::Process(_) => {
                    let run = client.close();
                    assert_eq!(run.exit, Some(0), "{}", run.stderr);
                }
                Home::Here(_) => {
                    client.hang_up();
                    client.lines.iter().for_each(drop);
                }
            }
        }
    }

    /// The way to the same gate that is not over MCP.
    fn beside(&self) -> &dyn Door {
        match &self.home {
            Home::Process(binary) => binary,
            Home::Here(gate) => gate,
        }
    }

    fn beside_mut(&mut self) -> &mut dyn Door {
        match &mut self.home {
            Home::Process(binary) => binary,
            Home::Here(gate) => gate,
        }
    }
}

impl Door for McpStdio {
    fn carries(&self, step: &Step) -> bool {
        carries(step)
    }

    fn call(&mut self, asker: Asker<'_>, call: &Call) -> Answer {
        let text = reply_of(&self.client(asker).call(&call.tool, &call.text()));
        let reply: Value = serde_json::from_str(&text).unwrap();
        let reference =
            ["/ref", "/error/ref"].iter().find_map(|at| reply.pointer(at)).expect("a ref").as_str().unwrap();
        let trace = match &self.home {
            Home::Process(binary) => on_record(reference, || binary.records(reference)),
            Home::Here(gate) => on_record(reference, || gate.records(reference)),
        };
        Answer { text, reply, trace, exit: None }
    }

    fn message(&mut self, _asker: Asker<'_>, dialect: &str, _message: &Value) -> Exchange {
        panic!("a message of {dialect} is left out")
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
        let listed = self.client(asker).request("tools/list", "{}");
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        let mut names: Vec<String> = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
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
        // A process goes by the folder that it was started with.
        self.close();
        self.beside_mut().edit(file, from, to);
    }

    fn verify(&mut self) -> Result<(), String> {
        self.close();
        self.beside_mut().verify()
    }
}

impl Client {
    /// Starts a process, and agrees with it on a revision if that is how this client speaks.
    pub(crate) fn start(folder: &Path, asker: Asker<'_>, era: Era) -> Self {
        Self::silent(folder, asker, era).agreed()
    }

    /// A client of a server in this process.
    fn here(gate: &InProcess, asker: Asker<'_>, era: Era) -> Self {
        let (said, heard) = UnixStream::pair().unwrap();
        let (answers, output) = UnixStream::pair().unwrap();
        heard.set_nonblocking(true).unwrap();
        let (served, session) = (gate.gate().clone(), gate.within(asker));
        gate.runtime().spawn(async move {
            let input = tokio::net::UnixStream::from_std(heard).unwrap();
            toolgate_gateway::mcp::serve(served, session, input, output, &CancellationToken::new()).await
        });
        Self { child: None, stdin: Some(Box::new(said)), lines: lines_of(answers), era, last_id: 0 }.agreed()
    }

    /// The same, once it has agreed on a revision if that is how this client speaks.
    fn agreed(self) -> Self {
        let mut client = self;
        match client.era {
            Era::Handshake => {
                let params = json!({
                    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "suite", "version": "1" },
                });
                let answer = client.request("initialize", &params.to_string());
                assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
                client.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
            }
            Era::Stateless => {}
        }
        client
    }

    /// Starts a process and says nothing.
    pub(crate) fn silent(folder: &Path, asker: Asker<'_>, era: Era) -> Self {
        let mut words = vec!["mcp", folder.to_str().unwrap()];
        words.extend(asker.options());
        let mut command = toolgate(&words);
        command.env("RUST_LOG", "trace").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let lines = lines_of(child.stdout.take().unwrap());
        let stdin = child.stdin.take().map(|stdin| Box::new(stdin) as Box<dyn Write>);
        Self { stdin, child: Some(child), lines, era, last_id: 0 }
    }

    /// Says a line.
    pub(crate) fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).expect("the process reads");
    }

    /// The next message, which must be one.
    pub(crate) fn hear(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("a message");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    /// Whether nothing is said for a while.
    pub(crate) fn is_quiet(&self, span: Duration) -> bool {
        self.lines.recv_timeout(span).is_err()
    }

    /// Makes a request with the raw text of its parameters, and waits for the answer.
    pub(crate) fn request(&mut self, method: &str, params: &str) -> Value {
        let id = self.ask(method, params);
        let answer = self.hear();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Makes a request, and gives its id.
    pub(crate) fn ask(&mut self, method: &str, params: &str) -> u64 {
        self.last_id += 1;
        let (id, params) = (self.last_id, self.era.enveloped(params));
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        id
    }

    /// Asks for a call with the raw text of its arguments, and gives the id.
    pub(crate) fn ask_call(&mut self, tool: &str, arguments: &str) -> u64 {
        self.ask("tools/call", &call_params(tool, arguments))
    }

    /// Makes a call with the raw text of its arguments.
    pub(crate) fn call(&mut self, tool: &str, arguments: &str) -> Value {
        self.request("tools/call", &call_params(tool, arguments))
    }

    /// Sends the process a signal.
    pub(crate) fn signal(&self, name: &str) {
        let sent = std::process::Command::new("kill")
            .args([name, &self.child.as_ref().unwrap().id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Says nothing more.
    pub(crate) fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// How the process ended.
    pub(crate) fn ended(mut self) -> Run {
        let mut child = self.child.take().unwrap();
        let exit = child.wait().unwrap().code();
        let stdout = self.lines.iter().map(|line| line + "\n").collect();
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Run { stdout, stderr, exit }
    }

    /// Says nothing more, and waits for the end.
    pub(crate) fn close(mut self) -> Run {
        self.hang_up();
        self.ended()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A test that fails leaves no process behind.
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn lines_of(stdout: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        // Nobody may be left who wants to read them.
        BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    lines
}

impl Era {
    /// The parameters with what a request of this era says of itself.
    pub(super) fn enveloped(self, params: &str) -> String {
        const ENVELOPE: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"suite","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
        match self {
            Self::Handshake => params.to_owned(),
            Self::Stateless => match params.strip_suffix('}').expect("an object") {
                "{" => format!("{{{ENVELOPE}}}"),
                members => format!("{members},{ENVELOPE}}}"),
            },
        }
    }
}

pub(super) fn call_params(tool: &str, arguments: &str) -> String {
    format!(r#"{{"name":{},"arguments":{arguments}}}"#, json!(tool))
}

/// The text of the reply that an answer brought, as every other door writes it.
pub(crate) fn reply_of(answer: &Value) -> String {
    if let Some(error) = answer.get("error") {
        return error["data"].to_string();
    }
    let result = &answer["result"];
    let first = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"));
    if result["isError"] == true {
        return first.to_owned();
    }
    let note = &result["_meta"]["toolgate/reply"];
    let raw: Box<RawValue> = serde_json::from_str(first).expect("the text of a result is JSON");
    assert_eq!(serde_json::from_str::<Value>(first).unwrap(), result["structuredContent"], "{answer}");
    let mut text = format!(r#"{{"ok":true,"result":{raw}"#);
    for member in ["truncated", "effect", "replayed", "ref", "first_ref"] {
        if let Some(value) = note.get(member) {
            text.push_str(&format!(r#","{member}":{value}"#));
        }
    }
    // What a model reads beside the result stands in a block of its own.
    if let Some(aside) = result["content"][1]["text"].as_str() {
        let aside: Value = serde_json::from_str(aside).expect("the text of what is said beside a result is JSON");
        text.push_str(&aside.get("note").map(|note| format!(r#","note":{note}"#)).unwrap_or_default());
    }
    text + "}"
}
