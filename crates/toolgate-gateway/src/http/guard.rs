//! What is looked at before anything else of a request: for whom it is, from where it comes, and what its body is.
//!
//! A page in somebody's browser can send requests to loopback, and a name of its own can be made to point there. Neither
//! is stopped by listening on loopback alone; both are stopped here.

use std::net::SocketAddr;

use axum::http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, TRANSFER_ENCODING,
};
use axum::http::{Method, Request};

use super::Settings;
use super::problem::{Kind, Problem};

/// The hosts that a door answers for, and the pages that it answers.
#[derive(Debug)]
pub(crate) struct Guard {
    /// INVARIANT (exact names): compared as a whole; no pattern and no suffix.
    hosts: Vec<String>,
    origins: Vec<String>,
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

impl Guard {
    /// The guard of a door that listens at `bound`.
    pub(crate) fn new(bound: SocketAddr, settings: &Settings) -> Self {
        let mut hosts = Vec::new();
        if bound.ip().is_loopback() {
            let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
            let own = SocketAddr::new(bound.ip(), 0).to_string();
            names.extend(own.strip_suffix(":0").map(str::to_owned).filter(|own| !names.contains(own)));
            hosts.extend(names.iter().map(|name| format!("{name}:{}", bound.port())));
            if bound.port() == 80 {
                hosts.extend(names);
            }
        }
        let mut origins: Vec<String> = hosts.iter().map(|host| format!("http://{host}")).collect();
        hosts.extend(settings.hosts.iter().cloned());
        origins.extend(settings.origins.iter().cloned());
        Self { hosts, origins }
    }

    /// Whether the request may be looked at any further.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        let headers = request.headers();
        let host = match only(headers, &HOST) {
            Ok(Some(host)) => host,
            Ok(None) | Err(Twice) => {
                return Err(Problem::new(Kind::AmbiguousRequest, "a request has exactly one header Host"));
            }
        };
        // A target may name a host as well; it must then be one of ours too.
        let target = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        for host in [Some(host.as_bytes()), target].into_iter().flatten() {
            if !is_listed(&self.hosts, host) {
                let detail = "the header Host names no host that this door answers for";
                return Err(Problem::new(Kind::WrongHost, detail)
                    .hint("use the address that `toolgate serve` printed, or list the name under `hosts` in [http]"));
            }
        }
        self.check_origin(headers)?;
        let says_all = needs_no_body(request.uri().path()) && has_no_body(headers);
        if request.method() == Method::POST && !says_all { check_body(headers) } else { Ok(()) }
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let foreign = |detail| {
            let hint = "programs send no Origin; a page of your own is listed under `origins` in [http]";
            Err(Problem::new(Kind::ForeignOrigin, detail).hint(hint))
        };
        match only(headers, &ORIGIN) {
            Ok(None) => {}
            // A page of another site says so, and is answered if it is listed.
            Ok(Some(origin)) if is_listed(&self.origins, origin.as_bytes()) => return Ok(()),
            Ok(Some(_)) => return foreign("the header Origin names a page that this door does not answer"),
            Err(Twice) => return foreign("there is more than one header Origin"),
        }
        if headers.get_all(SEC_FETCH_SITE).iter().any(|site| site.as_bytes() == b"cross-site") {
            return foreign("the browser says that the request crosses sites");
        }
        Ok(())
    }
}

/// A header that is there more than once.
pub(super) struct Twice;

/// The only value of a header, if it is there.
pub(super) fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, Twice> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(Twice),
    }
}

/// Names of hosts have no case.
fn is_listed(list: &[String], name: &[u8]) -> bool {
    list.iter().any(|listed| listed.as_bytes().eq_ignore_ascii_case(name))
}

/// Whether a request to this path says all with its line and its headers.
fn needs_no_body(path: &str) -> bool {
    path == "/v1/sessions"
}

/// Whether no body comes, and nothing is said of one.
fn has_no_body(headers: &HeaderMap) -> bool {
    let is_empty = headers.get(CONTENT_LENGTH).is_none_or(|length| length.as_bytes() == b"0");
    let said = [CONTENT_TYPE, CONTENT_ENCODING, TRANSFER_ENCODING];
    is_empty && !said.iter().any(|name| headers.contains_key(name))
}

/// A page can send a form to any place without asking; it cannot send JSON as such.
fn check_body(headers: &HeaderMap) -> Result<(), Problem> {
    let wrong = |detail| Err(Problem::new(Kind::WrongContentType, detail).hint("Content-Type: application/json"));
    if headers.contains_key(CONTENT_ENCODING) {
        return wrong("the body has a Content-Encoding; send it as it is");
    }
    match only(headers, &CONTENT_TYPE) {
        Ok(Some(kind)) if is_json(kind.as_bytes()) => Ok(()),
        Ok(Some(_)) => wrong("the body is of another type than application/json"),
        Ok(None) => wrong("the header Content-Type is missing"),
        Err(Twice) => wrong("there is more than one header Content-Type"),
    }
}

/// `application/json`, alone or in UTF-8.
fn is_json(kind: &[u8]) -> bool {
    let mut parts = kind.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let is_type = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/json"));
    let utf_8 = |part: &[u8]| {
        [&b"charset=utf-8"[..], b"charset=\"utf-8\""].iter().any(|known| part.eq_ignore_ascii_case(known))
    };
    is_type && parts.all(utf_8)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    fn guard(bound: &str) -> Guard {
        let settings = Settings {
            hosts: vec!["gate.example.com".into()],
            origins: vec!["https://app.example.com".into()],
            ..Settings::default()
        };
        Guard::new(bound.parse().unwrap(), &settings)
    }

    /// The status with which a request of these headers is stopped, 0 where it is not.
    fn stopped(guard: &Guard, method: Method, target: &str, headers: &[(&str, &str)]) -> u64 {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let problem = guard.check(&request.body(()).unwrap()).err();
        problem.map_or(0, |problem| json!(problem)["status"].as_u64().unwrap())
    }

    #[test]
    fn only_the_names_of_loopback_with_the_bound_port_are_answered() {
        let guard = guard("127.0.0.1:8787");
        for ours in ["127.0.0.1:8787", "localhost:8787", "LocalHost:8787", "[::1]:8787", "gate.example.com"] {
            assert_eq!(stopped(&guard, Method::GET, "/", &[("host", ours)]), 0, "{ours}");
        }
        for theirs in [
            "rebind.example.net:8787",
            "127.0.0.1",
            "127.0.0.1:8788",
            "127.0.0.1.nip.io:8787",
            "localhost.:8787",
            "a.localhost:8787",
            "user@127.0.0.1:8787",
            "127.1:8787",
            "0.0.0.0:8787",
            "gate.example.com:8787",
            "x.gate.example.com",
        ] {
            assert_eq!(stopped(&guard, Method::GET, "/", &[("host", theirs)]), 421, "{theirs}");
        }
    }

    #[test]
    fn a_door_beyond_loopback_answers_for_configured_names_alone() {
        let guard = guard("192.0.2.1:443");
        assert_eq!(stopped(&guard, Method::GET, "/", &[("host", "gate.example.com")]), 0);
        for other in ["192.0.2.1:443", "localhost:443", "127.0.0.1:443"] {
            assert_eq!(stopped(&guard, Method::GET, "/", &[("host", other)]), 421, "{other}");
        }
    }

    #[test]
    fn a_host_is_named_once_and_the_target_names_no_other() {
        let guard = guard("127.0.0.1:8787");
        let ours = ("host", "127.0.0.1:8787");
        assert_eq!(stopped(&guard, Method::GET, "/", &[]), 400);
        assert_eq!(stopped(&guard, Method::GET, "/", &[ours, ours]), 400);
        assert_eq!(stopped(&guard, Method::GET, "http://127.0.0.1:8787/", &[ours]), 0);
        assert_eq!(stopped(&guard, Method::GET, "http://evil.example.net/", &[ours]), 421);
    }

    #[test]
    fn a_foreign_page_is_stopped_and_a_program_is_not() {
        let guard = guard("127.0.0.1:8787");
        let get =
            |more: &[(&str, &str)]| stopped(&guard, Method::GET, "/", &[&[("host", "127.0.0.1:8787")], more].concat());
        for ours in ["http://127.0.0.1:8787", "http://localhost:8787", "https://app.example.com"] {
            assert_eq!(get(&[("origin", ours)]), 0, "{ours}");
        }
        for theirs in [
            "https://evil.example.net",
            "null",
            "",
            "http://127.0.0.1:3000",
            "https://127.0.0.1:8787",
            "http://localhost",
        ] {
            assert_eq!(get(&[("origin", theirs)]), 403, "{theirs}");
        }
        assert_eq!(get(&[("origin", "http://localhost:8787"), ("origin", "http://localhost:8787")]), 403);
        assert_eq!(get(&[("sec-fetch-site", "cross-site")]), 403);
        assert_eq!(get(&[("sec-fetch-site", "none")]), 0);
        let crossing = ("sec-fetch-site", "cross-site");
        assert_eq!(get(&[("origin", "https://app.example.com"), crossing]), 0);
        assert_eq!(get(&[("origin", "https://evil.example.net"), crossing]), 403);
    }

    #[test]
    fn a_body_is_plain_json_or_nothing() {
        let guard = guard("127.0.0.1:8787");
        let post =
            |more: &[(&str, &str)]| stopped(&guard, Method::POST, "/", &[&[("host", "127.0.0.1:8787")], more].concat());
        for json in ["application/json", "Application/JSON; charset=UTF-8", "application/json;charset=\"utf-8\""] {
            assert_eq!(post(&[("content-type", json)]), 0, "{json}");
        }
        for other in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/json; charset=utf-16",
            "application/jsonp",
            "text/plain, application/json",
            "application/json; boundary=x",
        ] {
            assert_eq!(post(&[("content-type", other)]), 415, "{other}");
        }
        let json = ("content-type", "application/json");
        assert_eq!(post(&[]), 415);
        assert_eq!(post(&[json, json]), 415);
        assert_eq!(post(&[json, ("content-encoding", "gzip")]), 415);
    }
}
