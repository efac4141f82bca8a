//! Session attachments: what of a session, of an attempt and of a trace reaches a backend, and how.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs, reason = "a test may panic")]

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolgate::backend::{Answer, Backend, Context, Dispatch, Found, Looking, Lookup, Running};
use toolgate::call::TraceContext;
use toolgate::contract::Contract;
use toolgate::gate::BuildError;
use toolgate::ledger::Store;
use toolgate::schema::Problem;
use toolgate::session::{Principal, Session};
use toolgate::template::Template;
use toolgate::wire::Proposed;
use toolgate::{Call, Gate, Reply, Tool};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// A backend that sends what its contract's `send` templates say, as MCP's `_meta` or HTTP's headers are.
struct Courier {
    sent: Mutex<Vec<Value>>,
}

impl Courier {
    fn new() -> Arc<Self> {
        Arc::new(Self { sent: Mutex::default() })
    }

    fn send(&self, context: &Context, templates: &[(&str, &str)]) {
        let parts = templates.iter().filter_map(|(name, template)| {
            Some((String::from(*name), Template::parse(template).unwrap().value(context)?))
        });
        self.sent.lock().unwrap().push(Value::Object(parts.collect()));
    }

    fn last(&self) -> Value {
        self.sent.lock().unwrap().pop().unwrap()
    }
}

const SENT: [(&str, &str); 6] = [
    ("tenant", "{session.tenant}"),
    ("user", "u:{session.user}"),
    ("ref", "{ref}"),
    ("cents", "{cents}"),
    ("traceparent", "{trace.parent}"),
    ("tracestate", "{trace.state}"),
];

impl Backend for Courier {
    fn run(&self, dispatch: Dispatch) -> Running<'_> {
        self.send(dispatch.context(), &SENT);
        Box::pin(async { Answer::done(r#"{"left": 5}"#) })
    }

    fn look(&self, lookup: Lookup) -> Looking<'_> {
        self.send(lookup.context(), &SENT);
        Box::pin(async { Found::Found(br#"{"left": 5}"#.to_vec()) })
    }

    fn check(&self, contract: &Contract) -> Vec<Problem> {
        let templates = contract.backend().get("send").and_then(Value::as_object).into_iter().flatten();
        let problems = templates.flat_map(|(name, text)| {
            let template = Template::parse(text.as_str().unwrap()).unwrap();
            template.problems(&format!("/backend/send/{name}"), contract)
        });
        problems.collect()
    }
}

fn tool(name: &str, courier: &Arc<Courier>, more: Value) -> Tool {
    let mut keys = json!({
        "description": "Carries.",
        "effect": "write",
        "input": {"properties": {"cents": {"type": "integer"}}},
        "output": {"properties": {"left": {"type": "integer"}}},
    });
    keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Tool::new(name, keys.as_object().unwrap().clone(), Arc::clone(courier) as Arc<dyn Backend>)
}

fn gate(tools: impl IntoIterator<Item = Tool>, policies: &str) -> Result<Gate, BuildError> {
    let builder = tools.into_iter().fold(Gate::builder(), |builder, tool| builder.tool(tool));
    builder.policy(policies).store(Store::memory()).build()
}

const PERMIT_ALL: &str = "permit (principal, action, resource);";

fn alice() -> Session {
    Session::new(Principal::new("local", "alice"), "acme").role("secret-role").in_run("secret-run")
}

fn trace(parent: &str) -> TraceContext {
    TraceContext::parse(parent, Some("rojo=1")).unwrap()
}

fn pay(cents: i64) -> Call {
    Call::new("call_1", "pay", json!({ "cents": cents }).to_string())
}

async fn passed(gate: &Gate, call: Call) -> Reply {
    gate.call(call, &alice()).await.unwrap()
}

/// The id of the trace that the reply's own trace notes.
fn noted(reply: &Reply) -> Option<&str> {
    reply.trace().stages()[0].learned.get("trace_id").and_then(Value::as_str)
}

#[tokio::test]
async fn a_backend_sends_what_its_templates_name_and_no_more() {
    let courier = Courier::new();
    let gate = gate([tool("pay", &courier, json!({}))], PERMIT_ALL).unwrap();
    let reply = passed(&gate, pay(1).traced(trace(PARENT))).await;
    assert_eq!(noted(&reply), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
    assert_eq!(
        courier.last(),
        json!({
            "tenant": "acme", "user": "u:alice", "ref": reply.reference().as_str(), "cents": 1,
            "traceparent": PARENT, "tracestate": "rojo=1",
        })
    );
}

#[tokio::test]
async fn what_is_absent_is_left_out() {
    let courier = Courier::new();
    let gate = gate([tool("pay", &courier, json!({}))], PERMIT_ALL).unwrap();
    let reply = passed(&gate, Call::new("call_1", "pay", "{}")).await;
    assert_eq!(noted(&reply), None);
    assert_eq!(courier.last(), json!({"tenant": "acme", "user": "u:alice", "ref": reply.reference().as_str()}));
}

#[tokio::test]
async fn a_trace_makes_no_other_action_and_needs_no_other_approval() {
    let courier = Courier::new();
    let policies = r#"
        permit (principal, action, resource);
        @id("ask") @message("Somebody must agree.") @approvers("manager")
        forbid (principal, action, resource) when { !context.approved };
    "#;
    let gate = gate([tool("pay", &courier, json!({}))], policies).unwrap();
    let pending = passed(&gate, pay(1).traced(trace(PARENT))).await;
    let id = pending.refusal().unwrap().approval_notice().unwrap().id.clone();
    let asked_again = passed(&gate, pay(1).traced(trace(OTHER))).await;
    assert_eq!(asked_again.refusal().unwrap().approval_notice().unwrap().id, id);
    let mia = Session::new(Principal::new("local", "mia"), "acme").role("manager");
    let approval = gate.approve(&id, &mia).await.unwrap();
    assert!(!serde_json::to_string(&approval).unwrap().contains("4bf92f35"), "{approval:?}");

    let first = passed(&gate, pay(1).traced(trace(OTHER))).await;
    let again = passed(&gate, pay(1).traced(trace(PARENT))).await;
    let untraced = passed(&gate, pay(1)).await;
    assert!(first.is_ok() && !first.replayed(), "{first:?}");
    for replay in [&again, &untraced] {
        assert!(replay.replayed(), "{replay:?}");
        assert_eq!(replay.result(), first.result());
    }
    for name in ["args_digest", "call_digest"] {
        let digest = |reply: &Reply| reply.trace().stages()[0].learned.get(name).cloned().unwrap();
        assert_eq!(digest(&first), digest(&again));
        assert_eq!(digest(&first), digest(&untraced));
    }
    assert_eq!(courier.sent.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_a_decision_rests_on_knows_nothing_of_the_trace() {
    let (reads, writes) = (Courier::new(), Courier::new());
    let look = tool("look", &reads, json!({"effect": "read"}));
    let write = tool("pay", &writes, json!({"facts": {"left": {"tool": "look", "args": {"cents": "{cents}"}}}}));
    let gate = gate([look, write], PERMIT_ALL).unwrap();
    let reply = passed(&gate, pay(1).traced(trace(PARENT))).await;
    assert!(reply.is_ok(), "{reply:?}");
    let looked = reads.last();
    assert_eq!((&looked["tenant"], looked.get("traceparent"), looked.get("tracestate")), (&json!("acme"), None, None));
    assert_eq!(writes.last()["traceparent"], PARENT);
}

#[tokio::test]
async fn a_refused_call_and_a_whole_turn_note_their_trace_too() {
    let gate = gate([tool("pay", &Courier::new(), json!({}))], PERMIT_ALL).unwrap();
    let refused = passed(&gate, Call::new("call_1", "nothing", "{}").traced(trace(OTHER))).await;
    assert_eq!(noted(&refused), Some("0af7651916cd43dd8448eb211c80319c"));
    let turn = [pay(1), pay(2)].map(|call| Proposed::Call(call).traced(&trace(OTHER)));
    for reply in gate.turn(turn.into(), &alice()).await {
        assert_eq!(noted(&reply.unwrap()), Some("0af7651916cd43dd8448eb211c80319c"));
    }
}

/// What is wrong with a gate of this one contract, beside a read tool.
fn faults(more: Value) -> Vec<String> {
    let look = tool("look", &Courier::new(), json!({"effect": "read"}));
    match gate([look, tool("pay", &Courier::new(), more)], PERMIT_ALL) {
        Ok(_) => Vec::new(),
        Err(BuildError::Faults { tools, .. }) => tools.into_iter().map(|fault| fault.problem.at).collect(),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn what_decides_names_neither_the_attempt_nor_the_trace() {
    for hole in ["{ref}", "{trace.parent}", "{trace.state}"] {
        assert_eq!(faults(json!({"once": {"key": [hole]}})), ["/once/key/0"], "{hole}");
        assert_eq!(faults(json!({"lane": {"key": ["{cents}", hole]}})), ["/lane/key/1"], "{hole}");
        let look = json!({"tool": "look", "args": {"cents": hole}});
        assert_eq!(faults(json!({"facts": {"left": look}})), ["/facts/left/args/cents"], "{hole}");
        let reconcile = json!({"tool": "look", "args": {"cents": hole}, "done": "/left"});
        assert_eq!(faults(json!({ "reconcile": reconcile })), ["/reconcile/args/cents"], "{hole}");
        let resource = json!({"type": "Order", "id": hole, "fact": "left", "tenant": "/left"});
        let facts = json!({"left": {"tool": "look", "args": {}}});
        assert_eq!(faults(json!({"resource": resource, "facts": facts})), ["/resource/id"], "{hole}");
    }
    assert_eq!(faults(json!({"preview": "pay {cents} in {trace.parent}"})), ["/preview"]);
    assert_eq!(faults(json!({"preview": "pay {cents} in {ref}"})), [""; 0]);
}

#[test]
fn a_backend_is_told_what_is_wrong_with_its_templates() {
    let send = |template: &str, more: Value| {
        let mut keys = more;
        keys["backend"] = json!({"send": {"x": template}});
        faults(keys)
    };
    let fine = ["{cents}", "{/cents}", "{session.tenant}", "{session.user}", "{ref}", "{trace.parent} {trace.state}"];
    for template in fine {
        assert_eq!(send(template, json!({})), [""; 0], "{template}");
    }
    for (template, more) in
        [("{amount}", json!({})), ("{fact.left/left}", json!({})), ("{idempotency_key}", json!({"effect": "read"}))]
    {
        assert_eq!(send(template, more), ["/backend/send/x"], "{template}");
    }
    assert_eq!(send("{idempotency_key}", json!({})), [""; 0]);
    let facts = json!({"facts": {"left": {"tool": "look", "args": {}}}});
    assert_eq!(send("{fact.left/left}", facts), [""; 0]);
}
