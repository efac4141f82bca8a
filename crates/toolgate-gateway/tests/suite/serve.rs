//! A running `toolgate serve`, and a client that is as small as the tests need it: it must be able to send what no good
//! client would.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::door::toolgate;

/// A process that serves a folder, until it is dropped.
pub(crate) struct Serving {
    child: Child,
    address: SocketAddr,
    announced: String,
    stderr: Option<JoinHandle<String>>,
}

/// One connection, on which requests follow each other.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// What comes of a request.
#[derive(Debug)]
pub(crate) enum Exchange {
    Answered(Response),
    /// The connection was closed before anything of a response came.
    Closed,
}

/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(20);

impl Serving {
    /// Serves the folder, and waits until it listens.
    pub(crate) fn start(folder: &Path, options: &[&str]) -> Self {
        let words = [&["serve", folder.to_str().unwrap(), "--port", "0"], options].concat();
        let mut command = toolgate(&words);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut told = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = told.read_to_string(&mut text);
            text
        });
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_once("http://").map(|(_, url)| url.trim_end_matches(['"', '}', '\n']));
        let Some(address) = url else {
            panic!("it does not listen: {line:?} {}", stderr.join().unwrap());
        };
        Self { address: address.parse().unwrap(), announced: line, child, stderr: Some(stderr) }
    }

    /// What it said of where it listens.
    pub(crate) fn announced(&self) -> &str {
        &self.announced
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.address).expect("it takes the connection")
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        get(self.address, path)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        post(self.address, path, &[], body)
    }

    /// Makes calls, as an OpenAI message has them: name and text of the arguments.
    pub(crate) fn call(&self, calls: &[(&str, &Value)]) -> Response {
        self.post("/v1/calls", &message(calls))
    }

    /// Sends bytes as they are, and reads until the connection is closed.
    pub(crate) fn raw(&self, bytes: &str) -> String {
        let mut connection = self.connect();
        // A door that has seen enough closes while it is still being talked to.
        let _ = connection.send(bytes);
        connection.rest()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for the end of the process: its exit code, and what it said on stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let exit = self.child.wait().unwrap().code();
        (exit, self.stderr.take().unwrap().join().unwrap())
    }

    /// Lets it drain.
    pub(crate) fn stop(self) {
        self.signal("-TERM");
        let (exit, told) = self.end();
        assert_eq!(exit, Some(0), "{told}");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Response {
    let mut connection = Connection::open(address).expect("it takes the connection");
    connection.answer(&format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"))
}

pub(crate) fn post(address: SocketAddr, path: &str, headers: &[(&str, &str)], body: &Value) -> Response {
    let mut connection = Connection::open(address).expect("it takes the connection");
    connection.post(path, headers, &body.to_string()).answered()
}

/// The body of a request for calls.
pub(crate) fn message(calls: &[(&str, &Value)]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            json!({ "id": format!("call_{}", index + 1), "type": "function", "function": function })
        })
        .collect();
    json!({ "dialect": "openai-chat", "message": { "role": "assistant", "content": null, "tool_calls": calls } })
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), host: address.to_string() })
    }

    pub(crate) fn send(&mut self, text: &str) -> std::io::Result<()> {
        self.stream.get_mut().write_all(text.as_bytes())
    }

    pub(crate) fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &str) -> Exchange {
        let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        self.exchange(&format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{more}\r\n{body}",
            self.host,
            body.len(),
        ))
    }

    pub(crate) fn answer(&mut self, request: &str) -> Response {
        self.exchange(request).answered()
    }

    pub(crate) fn exchange(&mut self, request: &str) -> Exchange {
        // A door may answer before it has read everything, and close.
        let _ = self.send(request);
        self.receive()
    }

    /// Reads one response. One that breaks off is no response, and fails the test.
    pub(crate) fn receive(&mut self) -> Exchange {
        let mut head = String::new();
        loop {
            match self.stream.read_line(&mut head) {
                Ok(0) if head.is_empty() => return Exchange::Closed,
                Err(error) if head.is_empty() && is_closed(error.kind()) => return Exchange::Closed,
                Ok(0) | Err(_) => panic!("a response broke off: {head:?}"),
                Ok(_) if head.ends_with("\r\n\r\n") => break,
                Ok(_) => {}
            }
        }
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap())
            .collect();
        let mut response = Response { status, headers, body: String::new() };
        let mut body = vec![0; response.header("content-length").map_or(0, |length| length.parse().unwrap())];
        self.stream.read_exact(&mut body).unwrap_or_else(|error| panic!("a response broke off: {error} {head}"));
        response.body = String::from_utf8(body).unwrap();
        Exchange::Answered(response)
    }

    /// Everything that still comes, until the connection is closed.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert!(is_closed(error.kind()), "it is not closed: {error}"),
        }
        String::from_utf8(rest).unwrap()
    }
}

fn is_closed(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe)
}

impl Exchange {
    pub(crate) fn answered(self) -> Response {
        match self {
            Self::Answered(response) => response,
            Self::Closed => panic!("the connection was closed without a response"),
        }
    }
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The reply to the only call.
    pub(crate) fn reply(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()["outcomes"][0]["reply"].take()
    }

    /// The code of the problem.
    pub(crate) fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{problem}");
        problem["code"].as_str().unwrap().to_owned()
    }
}
