//! What a door of the network is for, and what it is not.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rusqlite::Connection as Database;
use serde_json::{Value, json};

use super::{lock, refund, until};
use crate::door::{Run, toolgate};
use crate::folder::Folder;
use crate::serve::{Connection, Response, Serving, message};

/// A shop with something set in its table `[http]`.
fn shop_with(http: &str) -> Folder {
    let folder = Folder::shop();
    folder.edit("toolgate.toml", "[identity]", &format!("[http]\n{http}\n\n[identity]"));
    folder
}

/// Headers, and the status and code with which they are stopped.
type Stopped<'a> = (&'a [(&'a str, &'a str)], u16, &'a str);

fn refund_body() -> String {
    message(&[("create_refund", &refund("ord_4821", 100))]).to_string()
}

/// A post of a refund, with these headers beside those that it needs; one that is named here is not given twice.
fn post(address: &str, headers: &[(&str, &str)]) -> String {
    let body = refund_body();
    let length = body.len().to_string();
    let own = [("Host", address), ("Content-Type", "application/json"), ("Content-Length", &length)];
    let own = own.into_iter().filter(|(name, _)| !headers.iter().any(|(other, _)| other == name));
    let head: String = own.chain(headers.iter().copied()).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("POST /v1/calls HTTP/1.1\r\n{head}\r\n{body}")
}

fn is_no_door_for_a_browser(response: &Response) {
    for (name, value) in
        [("x-content-type-options", "nosniff"), ("cache-control", "no-store"), ("referrer-policy", "no-referrer")]
    {
        assert_eq!(response.header(name), Some(value), "{response:?}");
    }
    assert_eq!(response.header("access-control-allow-origin"), None, "{response:?}");
}

#[test]
fn whoever_comes_from_elsewhere_is_stopped_before_anything_is_read() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let ours = serving.address().to_string();
    let port = serving.address().port();
    let evil = format!("rebind.example.net:{port}");
    let cases: [Stopped<'_>; 11] = [
        (&[("Host", &evil)], 421, "wrong_host"),
        (&[("Host", "127.0.0.1")], 421, "wrong_host"),
        (&[("Host", &ours), ("Host", &evil)], 400, "ambiguous_request"),
        (&[("Origin", "https://evil.example.net")], 403, "foreign_origin"),
        (&[("Origin", "null")], 403, "foreign_origin"),
        (&[("Sec-Fetch-Site", "cross-site")], 403, "foreign_origin"),
        (&[("Content-Type", "text/plain")], 415, "wrong_content_type"),
        (&[("Content-Type", "application/x-www-form-urlencoded")], 415, "wrong_content_type"),
        (&[("Content-Encoding", "gzip")], 415, "wrong_content_type"),
        (&[("Authorization", "Bearer somebody-else")], 401, "unauthenticated"),
        (&[("Authorization", "Basic YTpi")], 400, "bad_header"),
    ];
    for (headers, status, code) in cases {
        let response = serving.connect().answer(&post(&ours, headers));
        assert_eq!((response.status, response.code().as_str()), (status, code), "{headers:?}");
        is_no_door_for_a_browser(&response);
        assert!(!response.body.contains("evil") && !response.body.contains("somebody"), "no echo: {response:?}");
    }
    for path in ["/healthz", "/readyz", "/v1/tools", "/nowhere"] {
        let response = serving.connect().answer(&format!("GET {path} HTTP/1.1\r\nHost: {evil}\r\n\r\n"));
        assert_eq!(response.status, 421, "{path}");
    }
    let preflight = format!(
        "OPTIONS /v1/calls HTTP/1.1\r\nHost: {ours}\r\nOrigin: http://{ours}\r\nAccess-Control-Request-Method: POST\r\n\r\n"
    );
    let preflight = serving.connect().answer(&preflight);
    assert_eq!((preflight.status, preflight.header("allow")), (405, Some("POST")));
    is_no_door_for_a_browser(&preflight);

    serving.stop();
    assert_eq!(folder.number("select count(*) from refunds"), 0);
}

#[test]
fn a_program_on_this_machine_is_answered_whatever_it_calls_it() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let (ours, port) = (serving.address().to_string(), serving.address().port());
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
        let response =
            serving.connect().answer(&post(&ours, &[("Host", &host), ("Origin", &format!("http://{host}"))]));
        assert_eq!(response.reply()["effect"], "done", "{response:?}");
        is_no_door_for_a_browser(&response);
    }
    assert_eq!(folder.number("select count(*) from refunds"), 1, "the same refund, replayed");
}

/// Two programs that read a request differently disagree on where the next begins.
#[test]
fn a_request_that_can_be_read_in_two_ways_ends_its_connection() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let ours = serving.address().to_string();
    let body = refund_body();
    let length = body.len();
    let smuggled = post(&ours, &[]);
    let head = format!("POST /v1/calls HTTP/1.1\r\nHost: {ours}\r\nContent-Type: application/json\r\n");
    let chunk = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    for request in [
        format!("{head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}"),
        format!("{head}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n{chunk}"),
        format!("{head}Content-Length: {length}\r\nContent-Length: 2\r\n\r\n{body}"),
        format!("{head}Content-Length: {length}\r\nContent-Length: {length}\r\n\r\n{body}"),
        format!("{head}Content-Length: {length}, {length}\r\n\r\n{body}"),
        format!("{head}Transfer-Encoding : chunked\r\n\r\n{chunk}"),
        format!("{head}Content-Length : {length}\r\n\r\n{body}"),
        format!("{head}Transfer-Encoding: chunked, identity\r\n\r\n{chunk}"),
        format!("{head}X: a\r\n Content-Length: 4\r\nContent-Length: {length}\r\n\r\n{body}"),
    ] {
        let said = serving.raw(&format!("{request}{smuggled}"));
        assert!(said.starts_with("HTTP/1.1 400 "), "{request}\n{said}");
        assert_eq!(said.matches("HTTP/1.1").count(), 1, "{request}\n{said}");
    }
    // What comes in chunks is answered, and ends the connection too.
    let said = serving.raw(&format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunk}{smuggled}"));
    assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("connection: close"), "{said}");
    assert_eq!(said.matches("HTTP/1.1").count(), 1, "{said}");
    assert_eq!(folder.number("select count(*) from refunds"), 1);
}

/// The cases of the public corpus that any door of HTTP can be shown: 54 a page with a name of its own for this machine,
/// 58 requests that can be read in two ways.
#[test]
fn the_wire_cases_of_the_corpus_are_refused() {
    let named = std::env::var_os("TOOLGATE_CORPORA").map(PathBuf::from);
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora"));
    let Some(corpora) = named.or_else(|| beside.is_dir().then_some(beside)) else { return };
    let corpus = std::fs::read_to_string(corpora.join("abuse.jsonl")).unwrap();
    let cases: Vec<Value> = corpus.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let input = |id: u64| &cases.iter().find(|case| case["id"] == id).unwrap()["input"];
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let port = format!(":{}", serving.address().port());

    let rebound = &input(54)["http"];
    let (body, headers) = (rebound["body"].as_str().unwrap(), rebound["headers"].as_array().unwrap());
    let headers: String = headers
        .iter()
        .map(|pair| format!("{}: {}\r\n", pair[0].as_str().unwrap(), pair[1].as_str().unwrap()))
        .collect();
    for path in [rebound["path"].as_str().unwrap(), "/v1/calls"] {
        let head = format!("POST {path} HTTP/1.1\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        let said = serving.connect().answer(&format!("{}{body}", head.replace(":8787", &port)));
        assert_eq!(said.status, 421, "{said:?}");
    }
    for variant in input(58)["variants"].as_array().unwrap() {
        let request = variant["wire_raw"].as_str().unwrap().replace(":8787", &port);
        let said = serving.raw(&request);
        assert!(said.starts_with("HTTP/1.1 400 "), "{request}\n{said}");
        assert_eq!(said.matches("HTTP/1.1").count(), 1, "{request}\n{said}");
    }
}

#[test]
fn a_large_body_within_its_bound_is_read_whole() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let order = json!({ "order_id": "ord_4821" });
    let mut body = message(&[("get_order", &order)]);
    body["message"]["content"] = json!("x".repeat(3 << 20));
    assert_eq!(serving.post("/v1/calls", &body).reply()["ok"], json!(true));
    body["message"]["content"] = json!("x".repeat(4 << 20));
    assert_eq!(serving.connect().post("/v1/calls", &[], &body.to_string()).answered().code(), "body_too_large");
}

#[test]
fn a_body_beyond_its_bound_is_refused_announced_or_not() {
    let folder = shop_with("max_body = \"1KB\"");
    let serving = Serving::start(folder.path(), &[]);
    let ours = serving.address().to_string();
    let head = format!("POST /v1/calls HTTP/1.1\r\nHost: {ours}\r\nContent-Type: application/json\r\n");
    let announced = serving.raw(&format!("{head}Content-Length: 1000000000000\r\n\r\n{{"));
    assert!(announced.starts_with("HTTP/1.1 413 ") && announced.contains("body_too_large"), "{announced}");
    let chunk = format!("400\r\n{}\r\n", "x".repeat(1024));
    let streamed = serving.raw(&format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunk}{chunk}"));
    assert!(streamed.starts_with("HTTP/1.1 413 "), "{streamed}");
    // The head has a bound of its own.
    let head = serving.raw(&format!("GET / HTTP/1.1\r\nHost: {ours}\r\nX: {}\r\n\r\n", "x".repeat(1 << 20)));
    assert!(head.starts_with("HTTP/1.1 431 ") || head.is_empty(), "{head}");
    assert_eq!(serving.get("/healthz").status, 200);
}

#[test]
fn whoever_is_slow_is_not_waited_for_and_keeps_nobody_out() {
    let folder = shop_with("head_within = \"400ms\"\nbody_within = \"400ms\"\nconnections = 8");
    let serving = Serving::start(folder.path(), &[]);
    let ours = serving.address().to_string();
    let half = post(&ours, &[]);
    let half = &half[..half.len() - 10];
    let body = serving.raw(half);
    assert!(body.starts_with("HTTP/1.1 408 ") && body.contains("body_too_slow"), "{body}");
    let head = serving.raw("GET /healthz HTTP/1.1\r\nHost: ");
    assert_eq!(head, "");

    let folder = shop_with("head_within = \"1h\"\nconnections = 8");
    let serving = Serving::start(folder.path(), &[]);
    let mut slow: Vec<Connection> = (0..40).map(|_| serving.connect()).collect();
    slow.iter_mut().for_each(|connection| {
        // One that has given way already cannot be written to any more.
        let _ = connection.send("GET /healthz HTTP/1.1\r\n");
    });
    assert_eq!(serving.get("/healthz").status, 200, "it is answered though others hold every place");
    assert_eq!(serving.call(&[("get_order", &json!({ "order_id": "ord_4821" }))]).reply()["ok"], json!(true));
}

#[test]
fn a_broken_envelope_is_told_with_its_place_and_nothing_runs() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let refunds = message(&[("create_refund", &refund("ord_4821", 100))])["message"].to_string();
    let cases = [
        ("{".to_owned(), "broken_envelope"),
        (format!("{{\"dialect\":\"openai-chat\",\"message\":{refunds},}}"), "broken_envelope"),
        (format!("{{\"dialect\":\"openai-chat\",\"message\":{refunds},\"message\":{refunds}}}"), "broken_envelope"),
        (format!("{{\"dialect\":\"openai-chat\",\"message\":{refunds},\"as\":\"mia@acme\"}}"), "broken_envelope"),
        (json!({ "dialect": "openai-chat", "message": refunds }).to_string(), "broken_envelope"),
        (format!("{{\"dialect\":\"open-ai\",\"message\":{refunds}}}"), "broken_envelope"),
        ("{\"dialect\":\"openai-chat\",\"message\":{\"role\":\"user\"}}".to_owned(), "broken_message"),
    ];
    for (body, code) in cases {
        let response = serving.connect().post("/v1/calls", &[], &body).answered();
        assert_eq!((response.status, response.code().as_str()), (400, code), "{body}");
        assert!(!response.body.contains("mia") && !response.body.contains("ord_4821"), "no echo: {response:?}");
    }
    let many: Vec<(&str, Value)> = (0..5000).map(|_| ("create_refund", refund("ord_4821", 100))).collect();
    let many: Vec<(&str, &Value)> = many.iter().map(|(name, arguments)| (*name, arguments)).collect();
    assert_eq!(serving.call(&many).code(), "broken_message", "5000 calls in one message");
    serving.stop();
    assert_eq!(folder.number("select count(*) from refunds"), 0);
}

#[test]
fn a_path_or_a_method_that_is_not_there_is_a_problem() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    assert_eq!(serving.get("/v1/nowhere").code(), "not_found");
    assert_eq!(serving.get("/").code(), "not_found");
    let wrong = serving.get("/v1/calls");
    assert_eq!((wrong.status, wrong.code().as_str(), wrong.header("allow")), (405, "method_not_allowed", Some("POST")));
    assert_eq!(serving.get("/v1/tools?dialect=open-ai").code(), "bad_query");
    assert_eq!(serving.get("/v1/tools?dialects=mcp").code(), "bad_query");
    assert_eq!(serving.get("/v1/tools?tag=refunds").json()["tools"].as_array().unwrap().len(), 3);
    let declared = serving.get("/v1/tools?dialect=anthropic").json();
    assert!(declared["tools"][0]["input_schema"].is_object(), "{declared}");
}

#[test]
fn the_people_of_a_folder_have_calls_alone() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &["--as", "mia@acme"]);
    for path in ["/v1/approvals", "/v1/ledger", "/v1/audit"] {
        let response = serving.get(path);
        assert_eq!((response.status, response.code().as_str()), (403, "missing_scope"), "{path}");
    }
    let approve = serving.post("/v1/approvals/apr_1", &json!({ "decision": "approve" }));
    assert_eq!((approve.status, approve.code().as_str()), (403, "missing_scope"));
    assert_eq!(
        serving.get("/v1/approvals/apr_1").code(),
        "no_such_approval",
        "what they asked themselves they may see"
    );
}

#[test]
fn what_the_host_says_of_a_call_is_said_of_one_call() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let order = json!({ "order_id": "ord_4821" });
    let two = message(&[("get_order", &order), ("get_order", &order)]).to_string();
    let one = message(&[("create_refund", &refund("ord_4821", 100))]).to_string();
    let headers = [("Toolgate-Approval", "apr_1")];
    assert_eq!(serving.connect().post("/v1/calls", &headers, &two).answered().code(), "bad_header");
    let named = serving.connect().post("/v1/calls", &headers, &one).answered().reply();
    assert_eq!(named["error"]["code"], "approval_invalid");
    let slow = serving.connect().post("/v1/calls", &[("Toolgate-Patience", "soon")], &one).answered();
    assert_eq!(slow.code(), "bad_header");
    let dry = format!("{{\"dry_run\":true,{}", &one[1..]);
    let dry = serving.connect().post("/v1/calls", &[], &dry).answered().reply();
    assert_eq!(dry["result"]["would"], "run");
    serving.stop();
    assert_eq!(folder.number("select count(*) from refunds"), 0);
}

#[test]
fn more_calls_than_there_is_room_for_are_told_to_come_again() {
    let folder = shop_with("calls = 1");
    let serving = Serving::start(folder.path(), &[]);
    let held = held_refund(&folder, &serving);
    let turned_away = serving.call(&[("get_order", &json!({ "order_id": "ord_4821" }))]);
    assert_eq!((turned_away.status, turned_away.code().as_str()), (503, "overloaded"));
    assert_eq!(turned_away.header("retry-after"), Some("1"));
    assert_eq!(serving.get("/readyz").status, 200, "its health is no call");
    let (mut waiting, database) = held;
    drop(database);
    assert_eq!(waiting.receive().answered().reply()["effect"], "done");
    assert_eq!(serving.call(&[("get_order", &json!({ "order_id": "ord_4821" }))]).status, 200);
}

/// A refund that waits for the database, and what holds it.
fn held_refund(folder: &Folder, serving: &Serving) -> (Connection, Database) {
    assert_eq!(serving.call(&[("get_order", &json!({ "order_id": "ord_4821" }))]).status, 200);
    let database = lock(&folder.join("state/shop.db"));
    let mut waiting = serving.connect();
    waiting.send(&post(&serving.address().to_string(), &[])).unwrap();
    let ledger = Database::open(folder.join("state/toolgate.db")).unwrap();
    until("the refund is open", || {
        ledger.query_row("select count(*) from entries where state = 'open'", [], |row| row.get(0)).ok() == Some(1)
    });
    (waiting, database)
}

#[test]
fn a_client_that_goes_away_leaves_no_refund_open() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let (waiting, database) = held_refund(&folder, &serving);
    drop(waiting);
    drop(database);
    serving.stop();
    let ledger = Database::open(folder.join("state/toolgate.db")).unwrap();
    let open: i64 =
        ledger.query_row("select count(*) from entries where state = 'open'", [], |row| row.get(0)).unwrap();
    assert_eq!(open, 0);

    let serving = Serving::start(folder.path(), &[]);
    let again = serving.call(&[("create_refund", &refund("ord_4821", 100))]).reply();
    assert_eq!(again["effect"], "done", "{again}");
    serving.stop();
    assert_eq!(folder.number("select count(*) from refunds"), 1);
    crate::door::verify(folder.path()).unwrap();
}

#[test]
fn two_doors_to_one_gate_make_one_refund() {
    let folder = Folder::shop();
    let doors = [Serving::start(folder.path(), &[]), Serving::start(folder.path(), &[])];
    let same = &refund("ord_4821", 100);
    let replies: Vec<Value> = std::thread::scope(|scope| {
        let call = |door| scope.spawn(move || Serving::call(door, &[("create_refund", same)]).reply());
        doors.iter().map(call).collect::<Vec<_>>().into_iter().map(|reply| reply.join().unwrap()).collect()
    });
    assert!(replies.iter().all(|reply| reply["effect"] == "done"), "{replies:?}");
    assert_eq!(replies[0]["result"], replies[1]["result"]);
    assert_eq!(doors[1].call(&[("create_refund", same)]).reply()["replayed"], json!(true));
    doors.into_iter().for_each(Serving::stop);
    assert_eq!(folder.number("select count(*) from refunds"), 1);
    crate::door::verify(folder.path()).unwrap();
}

#[test]
fn a_port_in_use_is_told_with_its_holder() {
    let folder = Folder::shop();
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap().to_string();
    let run = Run::of(&mut toolgate(&["serve", folder.path().to_str().unwrap(), "--listen", &address]), "");
    assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""), "{run:?}");
    assert!(run.stderr.contains(&format!("process {} ", std::process::id())), "{run:?}");
}

#[test]
fn a_program_that_starts_it_reads_where_it_listens() {
    let folder = Folder::shop();
    let dir = folder.path().to_str().unwrap();
    let mut command = toolgate(&["serve", dir, "--port", "0", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    let address = told["listening"].as_str().unwrap().strip_prefix("http://").unwrap();
    assert!(Connection::open(address.parse().unwrap()).is_ok());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn whoever_shows_nothing_is_answered_on_this_machine_alone() {
    let folder = Folder::shop();
    let dir = folder.path().to_str().unwrap();
    for options in [&["--listen", "0.0.0.0:0"][..], &["--listen", "[::]:0", "--dev"], &["--listen", "192.0.2.1:80"]] {
        let run = Run::of(&mut toolgate(&[&["serve", dir], options].concat()), "");
        assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""), "{run:?}");
        assert!(run.stderr.contains("hint:"), "{run:?}");
    }
    let unlisted = Run::of(&mut toolgate(&["serve", dir, "--port", "0", "--as", "eve@acme"]), "");
    assert_eq!(unlisted.exit, Some(2), "{unlisted:?}");
}

#[test]
fn for_development_each_call_is_a_line_without_what_was_said() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &["--dev"]);
    serving.call(&[
        ("get_order", &json!({ "order_id": "ord_4821" })),
        ("create_refund", &json!({ "order_id": "ord_77" })),
    ]);
    let long = "x".repeat(10_000);
    serving.call(&[(&long, &json!({ "secret": "hunter2" }))]);
    serving.signal("-TERM");
    let (exit, told) = serving.end();
    assert_eq!(exit, Some(0), "{told}");
    assert!(told.starts_with("warning: for development only"), "{told}");
    for part in ["get_order ", " ok ", "create_refund ", " invalid_arguments ", " unknown_tool ", " effect none ref 01"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("ord_") && !told.contains("hunter2") && told.len() < 2000, "{told}");
}

#[test]
fn its_health_is_asked_by_a_command() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let url = format!("http://{}", serving.address());
    let healthy = Run::of(&mut toolgate(&["health", &url, "--json"]), "");
    assert_eq!((healthy.exit, healthy.json()), (Some(0), json!({ "ok": true, "status": 200, "detail": "ready" })));
    serving.stop();
    let gone = Run::of(&mut toolgate(&["health", &url, "--json"]), "");
    assert_eq!((gone.exit, gone.json()["ok"].clone()), (Some(1), json!(false)));
    let elsewhere = Run::of(&mut toolgate(&["health", "http://192.0.2.1:80"]), "");
    assert_eq!(elsewhere.exit, Some(2), "{elsewhere:?}");
}

/// A store that cannot be written makes a door that is not ready, and no call is lost in it.
#[test]
fn a_door_whose_store_is_held_is_not_ready() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    assert_eq!(serving.get("/readyz").status, 200);
    let store = lock(&folder.join("state/toolgate.db"));
    // What was found before is kept for a moment.
    until("the store is asked again", || serving.get("/readyz").status != 200);
    let unready = serving.get("/readyz");
    assert_eq!((unready.status, unready.code().as_str()), (503, "unavailable"));
    assert_eq!(serving.get("/healthz").status, 200, "the process lives");
    drop(store);
    let begun = Instant::now();
    while serving.get("/readyz").status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
