//! What the door shows to those with more scopes than calls, and what becomes of a message when the gate fails.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use std::sync::{Arc, Mutex};

use axum::response::Response;
use http_body_util::BodyExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolgate::approval::Capacity;
use toolgate::backend::Context;
use toolgate::call::Call;
use toolgate::json::Limits;
use toolgate::ledger::Store;
use toolgate::session::{Principal, Session};
use toolgate::{Gate, Tool};

use super::approvals::Asker;
use super::door::Door;
use super::guard::Guard;
use super::problem::Problem;
use super::*;
use crate::identity::Doorkeeper;

const POLICIES: &str = r#"
    permit (principal, action, resource);
    @id("large") @message("Large payments need a manager.") @approvers("manager")
    forbid (principal, action == Action::"pay", resource)
    when { context.input.cents > 100 } unless { context.approved };
"#;

/// Pays somebody.
#[derive(Deserialize, JsonSchema)]
struct Pay {
    /// To whom.
    to: String,
    cents: i64,
}

#[derive(Serialize, JsonSchema)]
struct Paid {
    paid_to: String,
}

pub(super) fn gate() -> Gate {
    let pay = Tool::write("pay", |pay: Pay, _: &Context| async move {
        assert!(pay.cents > 0);
        Ok(Paid { paid_to: pay.to })
    });
    Gate::builder().tool(pay).policy(POLICIES).store(Store::memory()).build().unwrap()
}

fn alice() -> Session {
    Session::new(Principal::new("test", "alice"), "acme")
}

/// Somebody with all scopes.
fn of(session: Session) -> Asker {
    Asker::whole(session)
}

fn mia() -> Session {
    Session::new(Principal::new("test", "mia"), "acme").role("manager")
}

fn stranger() -> Session {
    Session::new(Principal::new("test", "bob"), "globex").role("manager")
}

fn door(gate: Gate) -> Door {
    let settings = Settings::default();
    let guard = Guard::new(settings.listen, &settings);
    Door::new(
        gate,
        Doorkeeper::Local(alice()),
        guard,
        settings.bounds,
        CancellationToken::new(),
        Box::new(Told::default()),
    )
}

/// Keeps what the operator was told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Watch for Told {
    fn answered(&self, _: &Result<Reply, Fault>) {}

    fn failed(&self, fault: &Fault) {
        self.0.lock().unwrap().push(fault.to_string());
    }
}

async fn pay(door: &Door, cents: i64) -> Value {
    let call = Call::new("call_1", "pay", json!({ "to": "hunter2", "cents": cents }).to_string());
    json!(door.gate().call(call, &alice()).await.unwrap())
}

async fn body(response: Result<Response, Problem>) -> Value {
    let bytes = response.unwrap().into_body().collect().await.unwrap().to_bytes();
    toolgate::json::read(&bytes, &Limits::default()).unwrap()
}

fn code(response: Result<Response, Problem>) -> String {
    let problem = json!(response.err().unwrap());
    format!("{} {}", problem["status"], problem["code"].as_str().unwrap())
}

#[tokio::test]
async fn an_approval_is_found_answered_once_and_by_whom_it_asks_for() {
    let door = door(gate());
    let held = pay(&door, 900).await;
    let id = held["error"]["approval"]["id"].as_str().unwrap().to_owned();
    let pending = body(approvals::listed(&door, &of(mia()), Some("state=pending")).await).await;
    assert_eq!(pending["approvals"][0]["id"], *id);
    assert_eq!(pending["approvals"][0]["arguments"], json!({ "to": "hunter2", "cents": 900 }));
    assert_eq!(body(approvals::shown_by(&door, &of(mia()), &id, None).await).await, pending["approvals"][0]);

    let approve = br#"{"decision":"approve"}"#;
    assert_eq!(code(approvals::shown_by(&door, &of(stranger()), &id, None).await), "404 no_such_approval");
    assert_eq!(
        code(approvals::decided(&door, &of(stranger()), Capacity::Any, &id, approve).await),
        "404 no_such_approval"
    );
    assert_eq!(code(approvals::decided(&door, &of(alice()), Capacity::Any, &id, approve).await), "403 not_yours");
    for bad in [&b"{}"[..], br#"{"decision":"yes"}"#, br#"{"decision":"approve","all":true}"#, b"approve"] {
        assert_eq!(code(approvals::decided(&door, &of(mia()), Capacity::Any, &id, bad).await), "400 broken_envelope");
    }
    assert_eq!(pay(&door, 900).await["error"]["code"], "approval_required", "nothing is approved yet");

    assert_eq!(
        body(approvals::decided(&door, &of(mia()), Capacity::Any, &id, approve).await).await["state"],
        "granted"
    );
    assert_eq!(code(approvals::decided(&door, &of(mia()), Capacity::Any, &id, approve).await), "409 approval_closed");
    assert_eq!(pay(&door, 900).await["effect"], "done");
    let none = body(approvals::listed(&door, &of(mia()), Some("state=pending")).await).await;
    assert_eq!(none, json!({ "approvals": [] }));
    let used = body(approvals::listed(&door, &of(mia()), None).await).await;
    assert_eq!(used["approvals"][0]["state"], "used");
    assert_eq!(code(approvals::listed(&door, &of(mia()), Some("state=open")).await), "400 bad_query");
    let newest = pay(&door, 901).await["error"]["approval"]["id"].clone();
    let one = body(approvals::listed(&door, &of(mia()), Some("limit=1")).await).await;
    assert_eq!((one["approvals"].as_array().unwrap().len(), &one["approvals"][0]["id"]), (1, &newest));
    assert_eq!(code(approvals::listed(&door, &of(mia()), Some("limit=1001")).await), "400 bad_query");
}

#[tokio::test]
async fn what_waits_is_listed_however_much_was_asked_since() {
    let door = door(gate());
    let first = pay(&door, 900).await["error"]["approval"]["id"].clone();
    for cents in 901..904 {
        let id = pay(&door, cents).await["error"]["approval"]["id"].as_str().unwrap().to_owned();
        let deny = br#"{"decision":"deny"}"#;
        assert!(approvals::decided(&door, &of(mia()), Capacity::Any, &id, deny).await.is_ok());
    }
    let waiting = body(approvals::listed(&door, &of(mia()), Some("state=pending&limit=1")).await).await;
    assert_eq!(waiting["approvals"][0]["id"], first);
    let denied = body(approvals::listed(&door, &of(mia()), Some("state=denied")).await).await;
    assert_eq!(denied["approvals"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_caller_who_holds_as_many_sessions_as_may_go_on_is_told_so() {
    let door = door(gate());
    for _ in 0..toolgate::gate::MOST_RUNS {
        assert!(sessions::begun(&door, &alice(), b"").await.is_ok());
    }
    assert_eq!(code(sessions::begun(&door, &alice(), b"").await), "409 too_many_sessions");
    assert!(sessions::begun(&door, &mia(), b"").await.is_ok());
}

#[tokio::test]
async fn the_ledger_tells_what_became_of_actions_and_not_what_they_were() {
    let door = door(gate());
    let first = pay(&door, 1).await;
    pay(&door, 2).await;
    let listed = body(ledger::listed(&door, &alice(), None).await).await;
    let entries = listed["entries"].as_array().unwrap();
    assert_eq!((entries.len(), &listed["next"]), (2, &Value::Null));
    let oldest = &entries[1];
    assert_eq!((&oldest["tool"], &oldest["state"], &oldest["effect"]), (&json!("pay"), &json!("done"), &json!("done")));
    assert_eq!((&oldest["ref"], &oldest["attempt"]), (&first["ref"], &json!(1)));
    assert_eq!(oldest["principal"], json!({ "issuer": "test", "subject": "alice" }));
    assert!(!listed.to_string().contains("hunter2"), "neither arguments nor results: {listed}");

    let newest = body(ledger::listed(&door, &alice(), Some("limit=1")).await).await;
    let rest = format!("limit=1&before={}", newest["next"]);
    let rest = body(ledger::listed(&door, &alice(), Some(&rest)).await).await;
    assert_eq!((&newest["entries"][0], &rest["entries"][0]), (&entries[0], &entries[1]));
    assert_eq!(body(ledger::listed(&door, &stranger(), None).await).await["entries"], json!([]));
    assert_eq!(code(ledger::listed(&door, &alice(), Some("limit=0")).await), "400 bad_query");
}

#[tokio::test]
async fn the_record_is_shown_to_its_own_tenant_as_it_was_sealed() {
    let door = door(gate());
    let paid = pay(&door, 1).await;
    let sealed = door.gate().store().tail(1).await.unwrap().remove(0);
    let listed = body(audit::listed(&door, &alice(), Some("limit=1")).await).await;
    let record = &listed["records"][0];
    assert_eq!((&record["ref"], &record["seq"]), (&paid["ref"], &json!(sealed.seq)));
    assert_eq!(record["hash"], json!(sealed.hash));
    assert_eq!(toolgate::json::canonical(&record["body"]), sealed.body);
    assert_eq!(body(audit::listed(&door, &stranger(), None).await).await["records"], json!([]));
}

#[tokio::test]
async fn nobody_listens_to_other_machines_without_asking_who_they_are() {
    for everywhere in ["0.0.0.0:0", "[::]:0"] {
        let settings = Settings { listen: everywhere.parse().unwrap(), ..Settings::default() };
        let keeper = Doorkeeper::Local(alice());
        let listening = Server::listen(gate(), keeper, &settings, CancellationToken::new(), Told::default()).await;
        assert!(matches!(listening, Err(NotListening::Exposed(at)) if at == settings.listen), "{everywhere}");
    }
}

#[tokio::test]
async fn a_gate_that_fails_is_a_problem_that_keeps_what_was_answered() {
    let gate = gate();
    let told = Told::default();
    let settings = Settings { listen: "127.0.0.1:0".parse().unwrap(), ..Settings::default() };
    let draining = CancellationToken::new();
    let keeper = Doorkeeper::Local(alice());
    let server = Server::listen(gate.clone(), keeper, &settings, draining.clone(), told.clone()).await.unwrap();
    let address = server.address();
    let serving = tokio::spawn(server.run(|_| {}));

    gate.finish().await.unwrap();
    let call = json!({ "id": "c_1", "type": "function", "function": { "name": "pay", "arguments": "{}" } });
    let message = json!({ "role": "assistant", "tool_calls": [call] });
    let request = json!({ "dialect": "openai-chat", "message": message }).to_string();
    let request = format!(
        "POST /v1/calls HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{request}",
        request.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 503 ") && said.contains("retry-after: 1"), "{said}");
    let (_, said) = said.split_once("\r\n\r\n").unwrap();
    let said = toolgate::json::read(said.as_bytes(), &Limits::default()).unwrap();
    assert_eq!((&said["code"], &said["status"]), (&json!("unavailable"), &json!(503)));
    let fault = "the gate is closing and takes no more calls";
    assert_eq!(said["outcomes"], json!([{ "call_id": "c_1", "status": 503, "fault": fault }]));
    assert_eq!(said["messages"][0]["tool_call_id"], "c_1");
    assert_eq!(*told.0.lock().unwrap(), [fault]);

    draining.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_session_is_begun_used_and_ended_by_its_own_caller_and_nobody_else_learns_that_it_is_there() {
    let door = door(gate());
    let begun = body(sessions::begun(&door, &alice(), b"").await).await;
    let handle = begun["session"].as_str().unwrap().to_owned();
    let shown = |handle: &str| axum::http::HeaderMap::from_iter([(sessions::SESSION, handle.parse().unwrap())]);
    let within = sessions::within(&door, alice(), &shown(&handle)).await.unwrap();
    assert_ne!(within.run(), alice().run());
    let foreign = sessions::within(&door, mia(), &shown(&handle)).await.err();
    let unknown = sessions::within(&door, mia(), &shown("ses_00000000000000000000000000000000")).await.err();
    assert_eq!(json!(foreign.unwrap()), json!(unknown.unwrap()));
    assert_eq!(code(sessions::ended(&door, &mia(), &handle).await), "404 no_such_session");
    assert!(sessions::ended(&door, &alice(), &handle).await.is_ok());
    let ended = sessions::within(&door, alice(), &shown(&handle)).await.err();
    assert_eq!(json!(ended.unwrap())["code"], "no_such_session");
    assert_eq!(code(sessions::begun(&door, &alice(), br#"{"run":"mine"}"#).await), "400 broken_envelope");
    assert_eq!(sessions::within(&door, alice(), &Default::default()).await.unwrap().run(), alice().run());
}
