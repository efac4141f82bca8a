//! Stories of the messenger, with a desk that listens on this machine.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic, and waits for a thread"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use data_encoding::BASE64;
use ring::hmac;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use toolgate::Gate;
use toolgate::backend::FakeTool;
use toolgate::call::Call;
use toolgate::session::{Principal, Session};

use super::*;

const KEY: [u8; 32] = [7; 32];
const PATIENCE: Duration = Duration::from_secs(20);

/// A request that came.
#[derive(Clone, Debug)]
struct Heard {
    headers: Vec<(String, String)>,
    body: String,
}

impl Heard {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(given, _)| given == name);
        &found.unwrap_or_else(|| panic!("{name} is not there: {self:?}")).1
    }

    fn data(&self) -> Value {
        serde_json::from_str::<Value>(&self.body).unwrap()["data"].clone()
    }
}

/// Somebody who listens, and answers with these statuses in turn; the last one from then on.
struct Listener {
    url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Listener {
    fn answering(statuses: &'static [&'static str]) -> Self {
        Self::answering_after(Duration::ZERO, statuses)
    }

    /// One that takes its time for each answer.
    fn answering_after(time: Duration, statuses: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook?key=own", listener.local_addr().unwrap());
        let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
        let told = Arc::clone(&heard);
        thread::spawn(move || {
            for (count, stream) in listener.incoming().enumerate() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut lines = Vec::new();
                loop {
                    let mut line = String::new();
                    stream.read_line(&mut line).unwrap();
                    if line.trim().is_empty() {
                        break;
                    }
                    lines.push(line.trim().to_owned());
                }
                let headers: Vec<(String, String)> = lines
                    .iter()
                    .filter_map(|line| line.split_once(": "))
                    .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                    .collect();
                let length = headers.iter().find(|(name, _)| name == "content-length").unwrap().1.parse().unwrap();
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                told.lock().unwrap().push(Heard { headers, body: String::from_utf8(body).unwrap() });
                thread::sleep(time);
                let status = statuses.get(count).or(statuses.last()).unwrap();
                let answer =
                    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\nlocation: /there\r\n\r\n");
                stream.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { url, heard }
    }

    fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// Waits until so many requests came.
    fn wait_for(&self, count: usize) -> Vec<Heard> {
        let begun = Instant::now();
        while self.heard().len() < count {
            assert!(begun.elapsed() < PATIENCE, "only {:?} came", self.heard());
            thread::sleep(Duration::from_millis(10));
        }
        self.heard()
    }
}

/// What the operator heard.
type Told = Arc<Mutex<Vec<String>>>;

/// A messenger, what the operator hears of it, and the file of its secret.
fn messenger(listener: &Listener) -> (Messenger, Told, NamedTempFile) {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("whsec_{}\n", BASE64.encode(&KEY))).unwrap();
    let wanted = Webhook::of(&listener.url, file.path());
    let told = Told::default();
    let say = Arc::clone(&told);
    let say: Say = Arc::new(move |said| say.lock().unwrap().push(format!("{said:?}")));
    (Messenger::new(Some(wanted), say), told, file)
}

fn gate(store: &Store) -> Gate {
    let contract = json!({
        "description": "Pay somebody.",
        "effect": "write",
        "preview": "Pay {cents} cents to {to}",
        "input": {
            "properties": {
                "to": { "type": "string" },
                "cents": { "type": "integer" },
                "why": { "type": "string" },
            },
            "required": ["to", "cents"],
        },
        "approval": { "when": "true", "role": "manager", "message": "Payments need a manager." },
    });
    let tool = FakeTool::fixed(json!({ "paid": true })).tool("pay", contract.as_object().unwrap().clone());
    let gate = Gate::builder().tool(tool).policy("permit (principal, action, resource);");
    gate.store(store.clone()).approvals_are_told().build().unwrap()
}

fn person(name: &str, role: &str) -> Session {
    Session::new(Principal::new("local", name), "acme").role(role)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Asks for an approval: its id.
fn ask(gate: &Gate, cents: i64) -> String {
    let arguments = json!({ "to": "hunter2", "cents": cents, "why": "between us" }).to_string();
    let call = Call::new("c", "pay", arguments.into_bytes());
    let reply = runtime().block_on(gate.call(call, &person("alice", "support"))).unwrap();
    reply.refusal().unwrap().approval_notice().unwrap().id.clone()
}

#[test]
fn whoever_listens_is_told_once_in_a_signed_request_without_the_arguments() {
    let (store, listener) = (Store::memory(), Listener::answering(&["204 No Content"]));
    let gate = gate(&store);
    let (messenger, told, _secret) = messenger(&listener);
    messenger.attend(&store).unwrap();
    let id = ask(&gate, 900);
    assert_eq!(ask(&gate, 900), id, "the same call asks nobody twice");
    let heard = listener.wait_for(1)[0].clone();
    let data = heard.data();
    assert_eq!((&data["id"], &data["tool"], &data["tenant"]), (&json!(id), &json!("pay"), &json!("acme")));
    assert_eq!(data["preview"], "Pay 900 cents to hunter2");
    assert_eq!(data["requester"], json!({ "issuer": "local", "subject": "alice" }));
    assert_eq!(data["reasons"][0]["message"], "Payments need a manager.");
    assert!(!heard.body.contains("between us") && data["arguments"].is_null(), "{heard:?}");
    let signed = format!("{}.{}.{}", heard.header("webhook-id"), heard.header("webhook-timestamp"), heard.body);
    let signature = BASE64.decode(heard.header("webhook-signature").strip_prefix("v1,").unwrap().as_bytes()).unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &KEY);
    assert!(hmac::verify(&key, signed.as_bytes(), &signature).is_ok());
    messenger.finish();
    assert_eq!(listener.heard().len(), 1, "it is told once");
    assert_eq!(*told.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn what_was_not_taken_is_told_again_under_its_id_and_no_redirect_is_followed() {
    let (store, listener) = (Store::memory(), Listener::answering(&["503 Busy", "302 Found", "200 OK"]));
    let gate = gate(&store);
    let (messenger, told, _secret) = messenger(&listener);
    messenger.attend(&store).unwrap();
    ask(&gate, 900);
    let heard = listener.wait_for(3);
    assert!(heard.iter().all(|one| one.header("webhook-id") == heard[0].header("webhook-id")), "{heard:?}");
    messenger.finish();
    let told = told.lock().unwrap();
    assert!(told.len() == 2 && told[0].contains("503") && told[1].contains("again"), "{told:?}");
    assert!(!told[0].contains("key=own"), "{told:?}");
}

#[test]
fn what_a_process_left_untold_the_next_one_tells_unless_it_was_answered() {
    let store = Store::memory();
    let gate = gate(&store);
    let (left, answered) = (ask(&gate, 900), ask(&gate, 901));
    runtime().block_on(gate.approve(&answered, &person("mia", "manager"))).unwrap();
    let listener = Listener::answering(&["200 OK"]);
    let (messenger, _, _secret) = messenger(&listener);
    messenger.attend(&store).unwrap();
    messenger.finish();
    let heard = listener.heard();
    assert_eq!(heard.iter().map(|one| one.data()["id"].clone()).collect::<Vec<_>>(), [json!(left)]);
}

#[test]
fn two_processes_do_not_both_tell_of_one() {
    let store = Store::memory();
    let gate = gate(&store);
    let listener = Listener::answering(&["200 OK"]);
    let ((one, _, _one), (two, _, _two)) = (messenger(&listener), messenger(&listener));
    one.attend(&store).unwrap();
    two.attend(&store).unwrap();
    let ids: std::collections::BTreeSet<String> = (0..8).map(|cents| ask(&gate, 900 + cents)).collect();
    listener.wait_for(ids.len());
    one.finish();
    two.finish();
    let heard: Vec<String> = listener.heard().iter().map(|one| one.data()["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!((heard.len(), heard.into_iter().collect()), (ids.len(), ids));
}

#[test]
fn an_end_does_not_wait_for_all_that_is_still_to_be_told() {
    let store = Store::memory();
    let gate = gate(&store);
    let all: std::collections::BTreeSet<String> = (0..8).map(|cents| ask(&gate, 900 + cents)).collect();
    let slow = Listener::answering_after(Duration::from_millis(300), &["200 OK"]);
    let (telling, _, _secret) = messenger(&slow);
    telling.attend(&store).unwrap();
    slow.wait_for(1);
    telling.finish_within(Duration::ZERO);
    let heard = slow.heard();
    assert!(heard.len() <= 2, "a round that is under way ends too: {}", heard.len());
    // What is left, the next process tells.
    let next = Listener::answering(&["200 OK"]);
    let (telling, _, _secret) = messenger(&next);
    telling.attend(&store).unwrap();
    telling.finish();
    let heard = heard.iter().chain(&next.heard()).map(|one| one.data()["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(all, heard);
}

#[test]
fn nobody_who_does_not_answer_is_asked_twice_a_second() {
    let store = Store::memory();
    let gate = gate(&store);
    for cents in 0..8 {
        ask(&gate, 900 + cents);
    }
    let listener = Listener::answering(&["503 Busy"]);
    let (messenger, _, _secret) = messenger(&listener);
    messenger.attend(&store).unwrap();
    listener.wait_for(1);
    // One second after the first, and two after the second.
    thread::sleep(Duration::from_millis(2_500));
    assert!(listener.heard().len() <= 2, "{}", listener.heard().len());
    let mut pause = LOOK;
    let pauses: Vec<u128> = std::iter::repeat_with(|| {
        pause = seldomer(pause);
        pause.as_millis()
    })
    .take(6)
    .collect();
    assert_eq!(pauses, [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
}

#[test]
fn a_retry_waits_longer_each_time_and_never_longer_than_five_minutes() {
    let waits: Vec<u64> = (1..=9).map(|attempts| backoff(attempts).as_secs()).collect();
    assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 256, 300]);
    assert_eq!(backoff(u32::MAX), LONGEST_RETRY);
}
