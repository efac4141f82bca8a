//! `toolgate health`: whether a running `toolgate serve` takes calls.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolgate::json::Limits;

use super::color::Style;
use super::failure::FailureCode;
use super::{Exit, Failure, Output};

/// Ask a running `toolgate serve` whether it takes calls.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  toolgate health http://127.0.0.1:8787",
    after_long_help = "It asks for /readyz. A container takes this as its health check: it needs nothing but toolgate."
)]
pub(super) struct Health {
    /// Where it listens, on this machine; http://127.0.0.1:8787 if left out
    #[arg(default_value = "http://127.0.0.1:8787", hide_default_value = true, value_parser = Place::parse)]
    url: Place,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// A door on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    host: String,
    address: SocketAddr,
}

const WITHIN: Duration = Duration::from_secs(5);
/// More than a door says of its health.
const MOST: u64 = 64 * 1024;

impl Health {
    pub(super) async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let asked = tokio::time::timeout(WITHIN, self.url.ask()).await;
        let (status, said) = match asked {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => (None, format!("nobody answers at {}: {error}", self.url.address)),
            Err(_) => (None, format!("nobody answered at {} in time", self.url.address)),
        };
        let ok = status == Some(200);
        match self.json {
            true => output.json(&json!({ "ok": ok, "status": status, "detail": said })),
            false if ok => output.labelled(Style::Good, "ok", &said),
            false => {}
        }
        if ok { Ok(Exit::Ok) } else { Err(Failure::new(FailureCode::NotReady, said)) }
    }
}

impl Place {
    fn parse(url: &str) -> Result<Self, String> {
        let rest = url.strip_prefix("http://").ok_or("it begins with http://")?;
        let host = rest.strip_suffix('/').unwrap_or(rest);
        let (name, port) = host.rsplit_once(':').ok_or("it ends with a port")?;
        let port = port.parse().map_err(|_| "it ends with a port")?;
        let ip = match name {
            "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            "[::1]" => IpAddr::V6(Ipv6Addr::LOCALHOST),
            name => name.parse().map(IpAddr::V4).map_err(|_| "it names this machine: localhost, 127.0.0.1 or [::1]")?,
        };
        if !ip.is_loopback() {
            return Err("only this machine is asked, without encryption: localhost, 127.0.0.1 or [::1]".into());
        }
        Ok(Self { host: host.to_owned(), address: SocketAddr::new(ip, port) })
    }

    /// The status of `/readyz`, and what it says in words.
    async fn ask(&self) -> std::io::Result<(Option<u16>, String)> {
        let mut stream = TcpStream::connect(self.address).await?;
        let request = format!("GET /readyz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.host);
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(MOST).read_to_end(&mut answer).await?;
        Ok(read(&answer))
    }
}

fn read(answer: &[u8]) -> (Option<u16>, String) {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let body = toolgate::json::read(body.as_bytes(), &Limits::default()).unwrap_or_default();
    let said = ["detail", "status"].into_iter().find_map(|name| body.get(name).and_then(Value::as_str));
    (status, said.unwrap_or("it is no door of toolgate").to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn only_a_door_on_this_machine_is_asked() {
        assert_eq!(Place::parse("http://localhost:8787/").unwrap().host, "localhost:8787");
        assert_eq!(Place::parse("http://[::1]:1").unwrap().address, SocketAddr::from((Ipv6Addr::LOCALHOST, 1)));
        for bad in
            ["https://127.0.0.1:1", "http://192.0.2.1:80", "http://example.com:80", "127.0.0.1:80", "http://127.0.0.1"]
        {
            assert!(Place::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_answer_is_its_status_and_what_it_says() {
        let ready = b"HTTP/1.1 200 OK\r\ncontent-length: 18\r\n\r\n{\"status\":\"ready\"}";
        assert_eq!(read(ready), (Some(200), "ready".to_owned()));
        let draining = b"HTTP/1.1 503 Service Unavailable\r\n\r\n{\"status\":503,\"detail\":\"the gate is draining\"}";
        assert_eq!(read(draining), (Some(503), "the gate is draining".to_owned()));
        assert_eq!(read(b"SSH-2.0\r\n"), (None, "it is no door of toolgate".to_owned()));
    }
}
