//! A `toolgate serve` that may die at any moment, and what a client hears of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A process that serves a folder, until it is killed or dropped.
pub(crate) struct Gateway {
    child: Child,
    address: SocketAddr,
}

/// What a client hears of one call.
#[derive(Debug)]
pub(crate) enum Heard {
    /// The reply of the gate.
    Reply(Value),
    /// A problem of the whole gate, which is no reply.
    Problem(Value),
    /// Nothing, or not all of it: the gate is gone.
    Nothing,
}

/// Milliseconds that a client lets a call wait for another one.
const WAITING: u64 = 300;
/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(60);

impl Gateway {
    /// Serves the folder; in a debug build it dies at `point`.
    pub(crate) fn start(folder: &Path, point: Option<&str>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        command.args(["serve", folder.to_str().unwrap(), "--port", "0", "--json"]).env_remove("TOOLGATE_DIR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        match point {
            Some(point) => command.env("TOOLGATE_CRASH_AT", point),
            None => command.env_remove("TOOLGATE_CRASH_AT"),
        };
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("it listens: {error}: {line:?}"));
        let address = told["listening"].as_str().unwrap().trim_start_matches("http://").parse().unwrap();
        Self { child, address }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// SIGKILL: it can do nothing about it.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        assert_eq!(self.child.wait().unwrap().code(), None, "it ended by itself before it was killed");
    }

    /// Waits until it has died of its crash point.
    pub(crate) fn dies(mut self) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            match self.child.try_wait().unwrap() {
                Some(status) => return assert_eq!(status.code(), None, "it ended by itself"),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        }
        panic!("it never passed its crash point: is this a debug build?");
    }

    /// Lets it drain.
    pub(crate) fn stop(mut self) {
        send_signal("-TERM", self.child.id());
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "it drains");
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn send_signal(name: &str, process: u32) {
    // A process that ended meanwhile needs no signal.
    let _ = Command::new("kill").args([name, &process.to_string()]).stderr(Stdio::null()).status().unwrap();
}

/// Makes one call over a connection of its own.
pub(crate) fn call(address: SocketAddr, tool: &str, arguments: &Value) -> Heard {
    let function = json!({ "name": tool, "arguments": arguments.to_string() });
    let message =
        json!({ "role": "assistant", "tool_calls": [{ "id": "c", "type": "function", "function": function }] });
    let body = json!({ "dialect": "openai-chat", "message": message }).to_string();
    let request = format!(
        "POST /v1/calls HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Toolgate-Patience: {WAITING}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let Some(answer) = exchange(address, &request) else { return Heard::Nothing };
    let Ok(mut answer) = serde_json::from_str::<Value>(&answer) else { return Heard::Nothing };
    match answer.pointer_mut("/outcomes/0/reply") {
        Some(reply) => Heard::Reply(reply.take()),
        None => Heard::Problem(answer),
    }
}

/// The body of a whole response.
fn exchange(address: SocketAddr, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    })?;
    (body.len() == length).then(|| body.to_owned())
}
