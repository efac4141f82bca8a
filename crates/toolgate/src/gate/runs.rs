//! What a run has done and read decides what it may do next, and a run that only tries doors is ended.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Builder, Gate};
use crate::backend::{FakeTool, Step};
use crate::call::Call;
use crate::clock::{ManualClock, Millis};
use crate::contract::Tool;
use crate::guards::Guards;
use crate::ledger::{RunKey, Store};
use crate::refusal::{Code, Fix, Retry};
use crate::reply::Reply;
use crate::session::{Principal, Session};
use crate::wire::Proposed;

const OPEN: &str = "permit (principal, action, resource);";
/// Nothing leaves a run that has read somebody else's text.
const SINK: &str = r#"permit (principal, action, resource);
    @id("leak") @message("This run has read text from outside.")
    forbid (principal, action in Action::"sink:external", resource)
    when { context.session.labels.contains("untrusted") };"#;

fn tool(name: &str, keys: Value, fake: &FakeTool) -> Tool {
    let mut table = json!({"description": format!("Does {name}."),
        "input": {"properties": {"id": {"type": "string"}}},
        "output": {"type": "object", "properties": {"n": {"type": "integer"}, "tenant": {"type": "string"}}}});
    table.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    fake.tool(name, table.as_object().unwrap().clone())
}

fn look() -> Tool {
    tool("look", json!({"effect": "read"}), &FakeTool::fixed(json!({"n": 1})))
}

fn act(keys: Value) -> Tool {
    let mut own = json!({"effect": "write"});
    own.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    tool("act", own, &FakeTool::fixed(json!({"n": 1})))
}

/// A page of the web, which is a read whose answers are labelled, and a tool that sends.
fn mailroom() -> Builder {
    let page =
        tool("page", json!({"effect": "read", "labels": {"result": ["untrusted"]}}), &FakeTool::fixed(json!({})));
    let send = tool("send", json!({"effect": "write", "labels": {"sink": "external"}}), &FakeTool::fixed(json!({})));
    Gate::builder().tool(page).tool(send).policy(SINK)
}

fn alice() -> Session {
    Session::new(Principal::new("local", "alice"), "acme").in_run("ticket_7")
}

async fn call(gate: &Gate, tool: &str, id: &str, session: &Session) -> Reply {
    let arguments = json!({ "id": id }).to_string();
    gate.call(Call::new("call_1", tool, arguments), session).await.unwrap()
}

fn refused(reply: &Reply) -> Option<Code> {
    reply.refusal().map(crate::Refusal::code)
}

#[tokio::test]
async fn what_a_tool_requires_must_have_ended_well_in_the_same_run() {
    let looks = FakeTool::queue([
        Step::fails(crate::backend::ToolError::refused("away", "not there")),
        Step::gives(json!({"n": 1})),
    ]);
    let look = tool("look", json!({"effect": "read"}), &looks);
    let gate = Gate::builder().tool(look).tool(act(json!({"requires": ["look"]}))).policy(OPEN);
    let gate = gate.store(Store::memory()).build().unwrap();
    let early = call(&gate, "act", "a", &alice()).await;
    let refusal = early.refusal().unwrap();
    assert_eq!(
        (refusal.code(), refusal.rule_id(), refusal.fix()),
        (Code::RuleFailed, Some("act.requires.look"), Fix::Model)
    );
    assert!(refusal.text().starts_with("Call look first"), "{}", refusal.text());
    assert!(!call(&gate, "look", "a", &alice()).await.is_ok());
    assert_eq!(refused(&call(&gate, "act", "a", &alice()).await), Some(Code::RuleFailed));
    assert!(call(&gate, "look", "a", &alice()).await.is_ok());
    assert!(call(&gate, "act", "a", &alice()).await.is_ok());
    assert_eq!(refused(&call(&gate, "act", "b", &alice().in_run("ticket_8")).await), Some(Code::RuleFailed));
    let bob = Session::new(Principal::new("local", "bob"), "acme").in_run("ticket_7");
    assert_eq!(refused(&call(&gate, "act", "b", &bob).await), Some(Code::RuleFailed));
}

#[tokio::test]
async fn what_still_runs_in_the_same_turn_is_waited_for_and_not_denied() {
    let slow = FakeTool::queue([Step::gives(json!({"n": 1})).after(Duration::from_millis(200))]);
    let look = tool("look", json!({"effect": "read"}), &slow);
    let gate = Gate::builder().tool(look).tool(act(json!({"requires": ["look"]}))).policy(OPEN);
    let gate = gate.store(Store::memory()).build().unwrap();
    // The one that must wait stands before the one that it waits for.
    let turn = ["act", "look"].map(|tool| Proposed::Call(Call::new(tool, tool, "{}")));
    let replies = gate.turn(turn.into(), &alice()).await;
    let [early, looked] = &replies[..] else { panic!() };
    let refusal = early.as_ref().unwrap().refusal().unwrap().clone();
    assert_eq!((refusal.code(), refusal.fix()), (Code::InProgress, Fix::Nobody));
    assert!(matches!(refusal.retry_advice(), Retry::After(_)) && refusal.text().contains("look must come first"));
    assert!(looked.as_ref().unwrap().is_ok());
    assert!(call(&gate, "act", "", &alice()).await.is_ok());
    // Alone, nothing is on its way.
    let alone =
        gate.turn(vec![Proposed::Call(Call::new("1", "act", r#"{"id": "x"}"#))], &alice().in_run("other")).await;
    assert_eq!(refused(alone[0].as_ref().unwrap()), Some(Code::RuleFailed));
}

#[tokio::test]
async fn a_tool_that_must_come_first_is_not_told_to_whom_it_is_not_there_for() {
    let policy = r#"permit (principal, action == Action::"act", resource);
        permit (principal in Role::"clerk", action == Action::"look", resource);"#;
    let gate = Gate::builder().tool(look()).tool(act(json!({"requires": ["look"]}))).policy(policy);
    let gate = gate.store(Store::memory()).build().unwrap();
    let reply = call(&gate, "act", "a", &alice()).await;
    let refusal = reply.refusal().unwrap();
    assert_eq!((refusal.code(), refusal.rule_id()), (Code::Forbidden, None));
    assert!(!refusal.text().contains("look"));
    assert_eq!(refused(&call(&gate, "act", "a", &alice().role("clerk")).await), Some(Code::RuleFailed));
}

#[tokio::test]
async fn a_run_that_has_read_text_from_outside_sends_nothing_out() {
    let gate = mailroom().store(Store::memory()).build().unwrap();
    assert!(call(&gate, "send", "a", &alice()).await.is_ok());
    assert!(call(&gate, "page", "a", &alice()).await.is_ok());
    let leak = call(&gate, "send", "b", &alice()).await;
    assert_eq!(leak.refusal().unwrap().rule_id(), Some("leak"));
    assert!(call(&gate, "send", "b", &alice().in_run("clean")).await.is_ok());
}

#[tokio::test]
async fn a_run_is_forgotten_after_a_day_of_rest_and_not_before() {
    let clock = Arc::new(ManualClock::at(Millis(1_796_000_000_000)));
    let gate = mailroom().clock(Arc::clone(&clock) as _).store(Store::memory()).build().unwrap();
    call(&gate, "page", "a", &alice()).await;
    // A call an hour before the end keeps it, though it adds nothing.
    clock.advance(Duration::from_secs(23 * 3600 + 1));
    call(&gate, "page", "a", &alice()).await;
    clock.advance(Duration::from_secs(23 * 3600));
    assert!(!call(&gate, "send", "a", &alice()).await.is_ok());
    clock.advance(Duration::from_secs(24 * 3600));
    assert!(call(&gate, "send", "a", &alice()).await.is_ok());
}

#[tokio::test]
async fn a_run_whose_calls_add_nothing_keeps_its_labels_for_as_long_as_it_goes_on() {
    let clock = Arc::new(ManualClock::at(Millis(1_796_000_000_000)));
    let gate = mailroom().tool(look()).clock(Arc::clone(&clock) as _).store(Store::memory()).build().unwrap();
    call(&gate, "page", "a", &alice()).await;
    for _ in 0..5 {
        clock.advance(Duration::from_secs(5 * 3600));
        assert!(call(&gate, "look", "a", &alice()).await.is_ok());
    }
    assert_eq!(refused(&call(&gate, "send", "a", &alice()).await), Some(Code::RuleFailed));
}

#[tokio::test]
async fn a_stored_answer_labels_the_run_that_is_shown_it_again() {
    let fetch =
        tool("fetch", json!({"effect": "write", "labels": {"result": ["untrusted"]}}), &FakeTool::fixed(json!({})));
    let gate = mailroom().tool(fetch).store(Store::memory()).build().unwrap();
    assert!(call(&gate, "fetch", "a", &alice()).await.is_ok());
    let other = alice().in_run("another");
    assert!(call(&gate, "send", "a", &other).await.is_ok());
    assert!(call(&gate, "fetch", "a", &other).await.replayed());
    assert_eq!(refused(&call(&gate, "send", "b", &other).await), Some(Code::RuleFailed));
}

#[tokio::test]
async fn a_rule_that_shows_a_fact_labels_the_run_that_reads_it() {
    let count = tool(
        "count",
        json!({"effect": "read", "labels": {"result": ["untrusted"]}}),
        &FakeTool::fixed(json!({"n": 3})),
    );
    let shown = act(json!({"facts": {"count": {"tool": "count"}}}));
    let rule = r#"@id("cap") @message("There are {fact.count/n} already.")
        forbid (principal, action == Action::"act", resource) when { context.facts has count };"#;
    let gate = mailroom().tool(count).tool(shown).policy(rule).store(Store::memory()).build().unwrap();
    assert!(call(&gate, "send", "a", &alice()).await.is_ok());
    assert_eq!(call(&gate, "act", "a", &alice()).await.refusal().unwrap().text(), "There are 3 already.");
    assert_eq!(refused(&call(&gate, "send", "b", &alice()).await), Some(Code::RuleFailed));
}

#[tokio::test]
async fn a_dry_run_that_tells_what_would_be_refused_labels_the_run_that_reads_it() {
    let count = tool(
        "count",
        json!({"effect": "read", "labels": {"result": ["untrusted"]}}),
        &FakeTool::fixed(json!({"n": 3})),
    );
    let shown = act(json!({"facts": {"count": {"tool": "count"}}, "mode": "observe"}));
    let rule = r#"@id("cap") @message("There are {fact.count/n} already.")
        forbid (principal, action == Action::"act", resource) when { context.facts has count };"#;
    let gate = mailroom().tool(count).tool(shown).policy(rule).store(Store::memory()).build().unwrap();
    assert!(call(&gate, "act", "a", &alice()).await.is_ok());
    assert!(call(&gate, "send", "a", &alice()).await.is_ok(), "what is only on record is read by no model");
    let dry = gate.dry_run(Call::new("1", "act", r#"{"id": "b"}"#), &alice()).await.unwrap();
    assert!(dry.result().unwrap().contains("There are 3 already."), "{:?}", dry.result());
    assert_eq!(refused(&call(&gate, "send", "b", &alice()).await), Some(Code::RuleFailed));
}

#[tokio::test]
async fn a_dry_run_in_observe_mode_names_no_tool_that_is_not_there_for_whoever_asks() {
    let policy = r#"permit (principal, action == Action::"act", resource);
        permit (principal in Role::"clerk", action == Action::"look", resource);"#;
    let gate = Gate::builder().tool(look()).tool(act(json!({"requires": ["look"], "mode": "observe"}))).policy(policy);
    let gate = gate.store(Store::memory()).build().unwrap();
    let told = async |session: Session| {
        let dry = gate.dry_run(Call::new("1", "act", "{}"), &session).await.unwrap();
        serde_json::from_str::<Value>(dry.result().unwrap()).unwrap()["would_refuse"].clone()
    };
    let (unseen, seen) = (told(alice()).await, told(alice().role("clerk")).await);
    assert_eq!((&unseen["code"], unseen.get("rule")), (&json!("forbidden"), None));
    assert!(!unseen.to_string().contains("look"), "{unseen}");
    assert_eq!((&seen["code"], &seen["rule"]), (&json!("rule_failed"), &json!("act.requires.look")));
}

#[tokio::test]
async fn what_was_read_before_a_policy_asked_for_labels_is_known_to_the_one_that_does() {
    let store = Store::memory();
    let page =
        || tool("page", json!({"effect": "read", "labels": {"result": ["untrusted"]}}), &FakeTool::fixed(json!({})));
    let before = Gate::builder().tool(page()).policy(OPEN).store(store.clone()).build().unwrap();
    assert!(call(&before, "page", "a", &alice()).await.is_ok());
    let after = mailroom().store(store).build().unwrap();
    assert_eq!(refused(&call(&after, "send", "a", &alice()).await), Some(Code::RuleFailed));
}

#[tokio::test]
async fn calls_of_a_run_are_counted() {
    let policy = r#"permit (principal, action, resource) when { context.session.calls < 2 };"#;
    let gate = Gate::builder().tool(look()).policy(policy).store(Store::memory()).build().unwrap();
    for _ in 0..2 {
        assert!(call(&gate, "look", "a", &alice()).await.is_ok());
    }
    assert_eq!(refused(&call(&gate, "look", "a", &alice()).await), Some(Code::Forbidden));
}

#[tokio::test]
async fn nothing_is_kept_of_runs_where_no_policy_reads_them_and_no_tool_is_labelled() {
    let store = Store::memory();
    let page = tool("page", json!({"effect": "read"}), &FakeTool::fixed(json!({})));
    let gate = Gate::builder().tool(page).tool(act(json!({}))).policy(OPEN).store(store.clone()).build().unwrap();
    assert!(call(&gate, "page", "a", &alice()).await.is_ok());
    assert!(call(&gate, "act", "a", &alice()).await.is_ok());
    let run = RunKey::of(&alice());
    let question = crate::ledger::Question { run: Some(run), ..Default::default() };
    assert_eq!(store.recall(question, gate.now()).await.unwrap().run, crate::runs::RunState::default());
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn an_answer_whose_labels_cannot_be_kept_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ledger.db");
    let writable = mailroom().store(Store::sqlite(&file).unwrap()).build().unwrap();
    let unwritable = mailroom().store(Store::sqlite_to_read(&file).unwrap()).build().unwrap();
    let reply = call(&unwritable, "page", "a", &alice()).await;
    let refusal = reply.refusal().unwrap();
    assert_eq!((refusal.code(), refusal.fix(), reply.result()), (Code::Unavailable, Fix::Operator, None));
    assert!(call(&writable, "send", "a", &alice()).await.is_ok(), "what was not shown was not read");
}

/// A shop where only orders of one tenant are there, and how often they are looked up.
fn orders(guards: Guards, clock: &Arc<ManualClock>, store: &Store) -> (Gate, FakeTool) {
    let book = FakeTool::fixed(json!({"tenant": "globex"}));
    let keys = json!({"effect": "read", "facts": {"order": {"tool": "order", "args": {"id": "{id}"}}},
        "resource": {"type": "Order", "id": "{id}", "fact": "order", "tenant": "/tenant"},
        "input": {"properties": {"id": {"type": "string"}}, "required": ["id"]}});
    let gate = Gate::builder().tool(tool("order", keys, &book)).tool(look()).policy(OPEN).guards(guards);
    (gate.clock(Arc::clone(clock) as _).store(store.clone()).build().unwrap(), book)
}

#[tokio::test]
async fn a_run_that_tries_foreign_orders_is_ended_until_the_window_is_over() {
    let (clock, store) = (Arc::new(ManualClock::at(Millis(1_796_000_000_000))), Store::memory());
    let (gate, book) = orders(Guards::default(), &clock, &store);
    for n in 0..20 {
        assert_eq!(refused(&call(&gate, "order", &format!("ord_{n}"), &alice()).await), Some(Code::Forbidden));
    }
    let (looked, end) = (book.calls().len(), crate::ledger::Window::of(gate.now(), Guards::PER).end);
    for name in ["order", "look"] {
        let reply = call(&gate, name, "ord_21", &alice()).await;
        let refusal = reply.refusal().unwrap();
        assert_eq!((refusal.code(), refusal.fix()), (Code::LoopDetected, Fix::User));
        assert_eq!(refusal.retry_advice(), Retry::After(Duration::from_millis(end.0 - gate.now().0)));
        assert!(refusal.text().contains("asked 20 times"), "{}", refusal.text());
    }
    assert_eq!(book.calls().len(), looked, "nothing is looked up for a run that is over");
    assert!(call(&gate, "look", "a", &alice().in_run("another")).await.is_ok());
    clock.advance(Guards::PER);
    assert!(call(&gate, "look", "a", &alice()).await.is_ok());
}

#[tokio::test]
async fn two_hundred_foreign_orders_in_one_turn_are_not_tried_at_once() {
    let (clock, store) = (Arc::new(ManualClock::at(Millis(1_796_000_000_000))), Store::memory());
    let (gate, book) = orders(Guards::default(), &clock, &store);
    let one =
        |n: usize| Proposed::Call(Call::new(format!("c{n}"), "order", json!({"id": format!("o{n}")}).to_string()));
    let replies = gate.turn((0..200).map(one).collect(), &alice()).await;
    let count = |code| replies.iter().filter(|reply| refused(reply.as_ref().unwrap()) == Some(code)).count();
    assert_eq!((count(Code::Forbidden), count(Code::LoopDetected)), (20, 180));
    assert!(book.calls().len() < 40, "{} orders were looked up", book.calls().len());
}

#[tokio::test]
async fn two_hundred_foreign_orders_that_each_come_by_themselves_are_not_tried_at_once_either() {
    let (clock, store) = (Arc::new(ManualClock::at(Millis(1_796_000_000_000))), Store::memory());
    let (gate, book) = orders(Guards::default(), &clock, &store);
    let session = alice();
    let ids: Vec<String> = (0..200).map(|n| format!("o{n}")).collect();
    let replies = futures_util::future::join_all(ids.iter().map(|id| call(&gate, "order", id, &session))).await;
    let count = |code| replies.iter().filter(|reply| refused(reply) == Some(code)).count();
    assert_eq!((count(Code::Forbidden), count(Code::LoopDetected)), (20, 180));
    assert!(book.calls().len() < 40, "{} orders were looked up", book.calls().len());
}

#[tokio::test]
async fn an_approval_that_is_guessed_and_a_dry_run_count_as_well_and_all_processes_count_together() {
    let (clock, store) = (Arc::new(ManualClock::at(Millis(1_796_000_000_000))), Store::memory());
    let guards = Guards::default().refused(3, Duration::from_secs(60));
    let ((one, _), (other, _)) = (orders(guards, &clock, &store), orders(guards, &clock, &store));
    let guess = Call::new("1", "look", "{}").approval("apr_1");
    assert_eq!(refused(&one.call(guess, &alice()).await.unwrap()), Some(Code::ApprovalInvalid));
    let dry = one.dry_run(Call::new("1", "order", r#"{"id": "a"}"#), &alice()).await.unwrap();
    assert_eq!(refused(&dry), Some(Code::Forbidden));
    assert_eq!(refused(&call(&other, "order", "b", &alice()).await), Some(Code::Forbidden));
    assert_eq!(refused(&call(&other, "look", "b", &alice()).await), Some(Code::LoopDetected));
    // It may take a second until a process hears of what others counted, but it counts with them at once.
    assert_eq!(refused(&call(&one, "order", "c", &alice()).await), Some(Code::LoopDetected));
}

#[tokio::test]
async fn without_guards_nobody_counts() {
    let (clock, store) = (Arc::new(ManualClock::at(Millis(1_796_000_000_000))), Store::memory());
    let (gate, _) = orders(Guards::off(), &clock, &store);
    for n in 0..30 {
        assert_eq!(refused(&call(&gate, "order", &format!("o{n}"), &alice()).await), Some(Code::Forbidden));
    }
}

#[tokio::test]
async fn a_handle_begins_a_clean_run_that_its_own_principal_alone_can_use_until_it_rests_or_ends() {
    let clock = Arc::new(ManualClock::at(Millis(1_796_000_000_000)));
    let gate = mailroom().clock(Arc::clone(&clock) as _).store(Store::memory()).build().unwrap();
    let host = Session::new(Principal::new("local", "alice"), "acme");
    call(&gate, "page", "a", &host).await;
    assert!(!call(&gate, "send", "a", &host).await.is_ok());
    let handle = gate.begin_run(&host).await.unwrap();
    assert_eq!((handle.len(), handle.starts_with("ses_")), (36, true));
    let clean = gate.in_run(host.clone(), &handle).await.unwrap().unwrap();
    assert!(!clean.run().contains(&handle["ses_".len()..]), "a record does not tell the handle");
    assert!(call(&gate, "send", "a", &clean).await.is_ok());
    let others = [
        Session::new(Principal::new("local", "bob"), "acme"),
        Session::new(Principal::new("local", "alice"), "globex"),
    ];
    for other in others {
        assert!(gate.in_run(other.clone(), &handle).await.unwrap().is_none());
        assert!(!gate.end_run(&other, &handle).await.unwrap());
    }
    assert!(gate.in_run(host.clone(), "ses_0").await.unwrap().is_none());
    // It rests anew with each use.
    for _ in 0..3 {
        clock.advance(Duration::from_secs(20 * 3600));
        assert!(gate.in_run(host.clone(), &handle).await.unwrap().is_some());
    }
    clock.advance(Duration::from_secs(24 * 3600));
    assert!(gate.in_run(host.clone(), &handle).await.unwrap().is_none());
    let second = gate.begin_run(&host).await.unwrap();
    assert!(gate.end_run(&host, &second).await.unwrap());
    assert!(gate.in_run(host.clone(), &second).await.unwrap().is_none());
    assert!(!gate.end_run(&host, &second).await.unwrap());
}
