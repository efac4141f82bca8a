//! What a folder says of its door of the network: `listen` and the table `[http]` of `toolgate.toml`.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use toolgate::fields::{Fields, Problems};

/// Where a door listens, whom it answers, and how much it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The values of `Host` that it answers, beside the names of loopback where it listens there.
    pub hosts: Vec<String>,
    /// The pages that it answers, beside those of its own hosts of loopback. No answer has a CORS header: a browser lets
    /// a page of another site read none, so that such a page asks through a proxy of its own site.
    pub origins: Vec<String>,
    /// How much it takes.
    pub bounds: Bounds,
}

/// How much a door takes at once, and how long it waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The bytes of a body.
    pub body: usize,
    /// The connections that are open at once; fewer where the process may not have so many files open.
    pub connections: usize,
    /// The calls that run at once.
    pub calls: usize,
    /// How long the head of a request may take.
    pub head_within: Duration,
    /// How long the body of a request may take, and the reading of a response.
    pub body_within: Duration,
}

const PORT: u16 = 8787;

impl Settings {
    /// Reads `listen` and `[http]`.
    pub(crate) fn read(top: &mut Fields<'_>, problems: &mut Problems) -> Self {
        let mut settings = Self::default();
        if let Some(text) = top.text("listen", problems) {
            match text.parse() {
                Ok(listen) => settings.listen = listen,
                Err(_) => {
                    let hint = format!("listen = \"{}\"", settings.listen);
                    problems.hinted("/listen", "format", "expected an address and a port", Some(hint));
                }
            }
        }
        let Some(mut table) = top.table("http", problems) else { return settings };
        settings.hosts = table.texts("hosts", problems);
        settings.origins = table.texts("origins", problems);
        for (key, list, fits, expected) in [
            ("hosts", &settings.hosts, is_host as fn(&str) -> bool, "expected a name such as gate.example.com:8443"),
            ("origins", &settings.origins, is_origin, "expected an origin such as https://app.example.com"),
        ] {
            for (index, text) in list.iter().enumerate().filter(|(_, text)| !fits(text)) {
                let at = format!("{}/{index}", table.place(key));
                let hint = text.ends_with('/').then(|| "without the / at the end".to_owned());
                problems.hinted(at, "format", expected, hint);
            }
        }
        let bounds = &mut settings.bounds;
        bounds.body = table.bytes("max_body", bounds.body, problems).max(1);
        bounds.connections = count(&mut table, "connections", bounds.connections, problems);
        bounds.calls = count(&mut table, "calls", bounds.calls, problems);
        bounds.head_within = table.span("head_within", bounds.head_within, problems);
        bounds.body_within = table.span("body_within", bounds.body_within, problems);
        table.end(problems);
        settings
    }
}

impl Default for Settings {
    fn default() -> Self {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
        Self { listen, hosts: Vec::new(), origins: Vec::new(), bounds: Bounds::default() }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            body: 4 << 20,
            connections: 1024,
            calls: 256,
            head_within: Duration::from_secs(10),
            body_within: Duration::from_secs(30),
        }
    }
}

fn count(table: &mut Fields<'_>, key: &'static str, default: usize, problems: &mut Problems) -> usize {
    let default = u32::try_from(default).unwrap_or(u32::MAX);
    usize::try_from(table.count(key, default, problems)).unwrap_or(usize::MAX)
}

/// Whether this can be the value of `Host`: a name or an address, and perhaps a port.
fn is_host(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    !text.is_empty() && text.chars().all(plain) && text.parse::<axum::http::uri::Authority>().is_ok()
}

/// Whether this can be the value of `Origin`.
fn is_origin(text: &str) -> bool {
    text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).is_some_and(is_host)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(table: &Value) -> (Settings, Vec<String>) {
        let mut problems = Problems::default();
        let mut top = Fields::of(table.as_object().unwrap(), "");
        let settings = Settings::read(&mut top, &mut problems);
        top.end(&mut problems);
        (settings, problems.0.into_iter().map(|problem| format!("{}: {}", problem.at, problem.message)).collect())
    }

    #[test]
    fn a_folder_that_says_nothing_listens_on_loopback() {
        let (settings, problems) = read(&json!({}));
        assert_eq!((settings.listen.to_string().as_str(), problems.len()), ("127.0.0.1:8787", 0));
        assert_eq!(settings.bounds, Bounds::default());
    }

    #[test]
    fn every_bound_can_be_set() {
        let (settings, problems) = read(&json!({"listen": "[::1]:9000", "http": {
            "hosts": ["gate.example.com", "gate.example.com:8443"], "origins": ["https://app.example.com"],
            "max_body": "1MB", "connections": 10, "calls": 4, "head_within": "1s", "body_within": "2s",
        }}));
        assert_eq!(problems, [""; 0]);
        assert_eq!(settings.listen.to_string(), "[::1]:9000");
        let seconds = Duration::from_secs;
        let expected =
            Bounds { body: 1 << 20, connections: 10, calls: 4, head_within: seconds(1), body_within: seconds(2) };
        assert_eq!(settings.bounds, expected);
    }

    #[test]
    fn what_could_never_match_is_a_fault() {
        let (_, problems) = read(&json!({"listen": "localhost", "http": {
            "hosts": ["https://gate.example.com", "*"], "origins": ["https://app.example.com/", "app.example.com"],
            "calls": 0, "maxbody": "1MB",
        }}));
        assert_eq!(
            problems,
            [
                "/listen: expected an address and a port",
                "/http/hosts/0: expected a name such as gate.example.com:8443",
                "/http/hosts/1: expected a name such as gate.example.com:8443",
                "/http/origins/0: expected an origin such as https://app.example.com",
                "/http/origins/1: expected an origin such as https://app.example.com",
                "/http/calls: expected a whole number from 1, got less",
                "/http/maxbody: unknown key",
            ]
        );
    }
}
