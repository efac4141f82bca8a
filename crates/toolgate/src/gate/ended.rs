//! A session that ends while a call of it waits: it is judged again when the call would begin.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::Gate;
use crate::backend::{Answer, Backend, Dispatch, Found, Looking, Lookup, Running};
use crate::call::Call;
use crate::clock::{Clock, ManualClock, Millis};
use crate::contract::Tool;
use crate::ledger::Store;
use crate::refusal::{Code, Effect, Refusal};
use crate::reply::Reply;
use crate::session::{Principal, Session, Standing};
use crate::wire::{Broken, Proposed};

const NOON: Millis = Millis(1_796_000_000_000);
/// What is left of the token when the call comes, and how much later it is accepted all the same.
const LEFT: Duration = Duration::from_secs(10);
const LEEWAY: Duration = Duration::from_secs(30);

/// A backend that counts what it runs and looks up, and waits to be let go on.
#[derive(Default)]
struct Counter {
    begun: AtomicUsize,
    /// Where there is one, whoever begins waits for it.
    hold: Option<Semaphore>,
}

impl Backend for Counter {
    fn run(&self, _: Dispatch) -> Running<'_> {
        Box::pin(async move {
            self.begin().await;
            Answer::done("{}")
        })
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        Box::pin(async move {
            self.begin().await;
            Found::Found(br#"{"left":100}"#.to_vec())
        })
    }
}

impl Counter {
    async fn begin(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        if let Some(hold) = &self.hold {
            let _ = hold.acquire().await;
        }
    }
}

fn keys(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A source that has taken everything back once it is set.
#[derive(Default)]
struct Source(AtomicBool);

impl Standing for Source {
    fn roles(&self, _: &Principal, _: &str) -> Option<BTreeSet<String>> {
        None
    }

    fn vouches_for(&self, _: &Principal, _: &str) -> bool {
        !self.0.load(Ordering::SeqCst)
    }
}

fn gate(clock: &Arc<ManualClock>, counter: &Arc<Counter>) -> Gate {
    gate_of(clock, counter, Arc::default())
}

fn gate_of(clock: &Arc<ManualClock>, counter: &Arc<Counter>, source: Arc<Source>) -> Gate {
    let input =
        json!({"properties": {"account": {"type": "string"}, "amount": {"type": "integer"}}, "required": ["account"]});
    let pay = keys(json!({
        "description": "Pays. Moves money.", "effect": "write", "deadline": "60s", "input": input,
        "lane": {"key": ["{account}"]},
    }));
    let look = keys(json!({"description": "Looks.", "effect": "read", "input": input}));
    Gate::builder()
        .tool(Tool::new("pay", pay, Arc::clone(counter) as _))
        .tool(Tool::new("look", look, Arc::clone(counter) as _))
        .policy("permit (principal, action, resource);")
        .standing(source)
        .clock(Arc::clone(clock) as _)
        .store(Store::memory())
        .build()
        .unwrap()
}

fn alice() -> Session {
    Session::new(Principal::new("https://id.example.com", "u_1"), "acme")
}

fn pay(amount: i64) -> Call {
    Call::new(format!("call_{amount}"), "pay", json!({"account": "acc_71", "amount": amount}).to_string())
}

fn is_over(reply: &Reply) {
    assert_eq!((reply.code(), reply.effect()), (Some(Code::Unauthenticated), Effect::None), "{reply:?}");
}

#[tokio::test]
async fn a_call_that_waited_in_its_lane_until_the_token_ended_was_run() {
    let clock = Arc::new(ManualClock::at(NOON));
    let counter = Arc::new(Counter { hold: Some(Semaphore::new(0)), ..Counter::default() });
    let gate = gate(&clock, &counter);
    let (ahead, behind) = (gate.clone(), gate.clone());
    let ahead = tokio::spawn(async move { ahead.call(pay(1), &alice()).await.unwrap() });
    while counter.begun.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let ends = alice().until(NOON.after(LEFT + LEEWAY));
    let behind = tokio::spawn(async move { behind.call(pay(500), &ends).await.unwrap() });
    // It has its place in the lane, and 120 s go by.
    tokio::time::sleep(Duration::from_millis(50)).await;
    clock.advance(Duration::from_secs(120));
    counter.hold.as_ref().unwrap().close();
    assert_eq!(ahead.await.unwrap().code(), None);
    is_over(&behind.await.unwrap());
    assert_eq!(counter.begun.load(Ordering::SeqCst), 1, "the second one was never sent");
}

/// A gate whose tool `move` rests on what `look` finds: more than is left is against a rule, any other one waits.
fn resting_on_a_fact(clock: &Arc<ManualClock>, looks: Arc<Counter>) -> Gate {
    let input =
        json!({"properties": {"account": {"type": "string"}, "amount": {"type": "integer"}}, "required": ["account"]});
    let look = keys(json!({
        "description": "Looks.", "effect": "read", "deadline": "60s", "input": input,
        "output": {"type": "object", "properties": {"left": {"type": "integer"}}, "required": ["left"]},
    }));
    let moved = json!({"properties": input["properties"], "required": ["account", "amount"]});
    let moves = keys(json!({
        "description": "Moves money.", "effect": "write", "deadline": "60s", "input": moved,
        "facts": {"seen": {"tool": "look", "args": {"account": "{account}"}}},
    }));
    Gate::builder()
        .tool(Tool::new("look", look, looks as _))
        .tool(Tool::new("move", moves, Arc::new(Counter::default()) as _))
        .policy(
            r#"permit (principal, action, resource);
            @id("most") @message("Above the limit of the account.")
            forbid (principal, action == Action::"move", resource)
            unless { context.facts has seen && context.input.amount <= context.facts.seen.left };
            @id("sure") @message("Somebody must look at it.") @approvers("manager")
            forbid (principal, action == Action::"move", resource)
            when { context.input.amount > 0 } unless { context.approved };"#,
        )
        .clock(Arc::clone(clock) as _)
        .store(Store::memory())
        .build()
        .unwrap()
}

fn moving(amount: i64) -> Call {
    Call::new("c", "move", json!({"account": "acc_71", "amount": amount}).to_string())
}

fn learned(reply: &Reply) -> Vec<&str> {
    reply.trace().stages().iter().map(|note| note.stage).collect()
}

#[tokio::test]
async fn a_call_of_a_session_that_had_ended_before_was_judged_and_asked_for_an_approval() {
    let clock = Arc::new(ManualClock::at(NOON));
    let looks = Arc::new(Counter::default());
    let gate = resting_on_a_fact(&clock, Arc::clone(&looks));
    let over = alice().until(Millis(0));
    for call in [moving(1), moving(500), Call::new("c", "move", "{"), Call::new("c", "nothing", "{}")] {
        for reply in [gate.dry_run(call.clone(), &over).await.unwrap(), gate.call(call, &over).await.unwrap()] {
            is_over(&reply);
            assert_eq!(learned(&reply), ["admit"], "{reply:?}");
        }
    }
    let broken = Broken { call_id: "c".into(), tool: "move".into(), refusal: Refusal::before(Code::InvalidCall) };
    let turned = gate.turn(vec![Proposed::Call(moving(1)), Proposed::Broken(broken)], &over).await;
    turned.into_iter().for_each(|reply| is_over(&reply.unwrap()));
    assert_eq!(looks.begun.load(Ordering::SeqCst), 0, "nothing was looked up");
    assert!(gate.approvals(&alice()).await.unwrap().is_empty(), "nobody was asked");
    assert_eq!(gate.call(moving(1), &alice()).await.unwrap().code(), Some(Code::ApprovalRequired));
    assert_ne!(looks.begun.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_session_that_ended_while_its_call_was_judged_asked_for_an_approval_and_was_told_of_the_rule() {
    for (amount, dry) in [(1, false), (500, false), (1, true), (500, true)] {
        let clock = Arc::new(ManualClock::at(NOON));
        let looks = Arc::new(Counter { hold: Some(Semaphore::new(0)), ..Counter::default() });
        let gate = resting_on_a_fact(&clock, Arc::clone(&looks));
        let session = alice().until(NOON.after(LEFT));
        let judged = async {
            match dry {
                true => gate.dry_run(moving(amount), &session).await.unwrap(),
                false => gate.call(moving(amount), &session).await.unwrap(),
            }
        };
        let ends = async {
            while looks.begun.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            clock.advance(LEFT);
            looks.hold.as_ref().unwrap().close();
        };
        let (reply, ()) = tokio::join!(judged, ends);
        is_over(&reply);
        assert!(!serde_json::to_string(&reply).unwrap().contains("limit of the account"), "{reply:?}");
        assert!(gate.approvals(&alice()).await.unwrap().is_empty(), "nobody was asked");
    }
}

#[tokio::test]
async fn a_call_that_waited_in_its_lane_until_its_caller_was_revoked_was_run() {
    let clock = Arc::new(ManualClock::at(NOON));
    let counter = Arc::new(Counter { hold: Some(Semaphore::new(0)), ..Counter::default() });
    let source: Arc<Source> = Arc::default();
    let gate = gate_of(&clock, &counter, Arc::clone(&source));
    let (ahead, behind) = (gate.clone(), gate.clone());
    let ahead = tokio::spawn(async move { ahead.call(pay(1), &alice()).await.unwrap() });
    while counter.begun.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let behind = tokio::spawn(async move { behind.call(pay(500), &alice()).await.unwrap() });
    tokio::time::sleep(Duration::from_millis(50)).await;
    source.0.store(true, Ordering::SeqCst);
    counter.hold.as_ref().unwrap().close();
    assert_eq!(ahead.await.unwrap().code(), None);
    is_over(&behind.await.unwrap());
    assert_eq!(counter.begun.load(Ordering::SeqCst), 1, "the second one was never sent");
}

#[tokio::test]
async fn a_session_is_good_until_the_moment_in_which_it_ends() {
    let clock = Arc::new(ManualClock::at(NOON));
    let counter = Arc::new(Counter::default());
    let gate = gate(&clock, &counter);
    let end = NOON.after(LEFT);
    let session = alice().until(end);
    assert_eq!(gate.call(pay(1), &session).await.unwrap().code(), None);
    clock.set(Millis(end.0 - 1));
    assert!(gate.call(pay(1), &session).await.unwrap().replayed());
    clock.set(end);
    is_over(&gate.call(pay(1), &session).await.unwrap());
    is_over(&gate.call(pay(2), &session).await.unwrap());
    is_over(&gate.call(Call::new("c", "look", json!({"account": "acc_71"}).to_string()), &session).await.unwrap());
    assert_eq!((clock.now(), counter.begun.load(Ordering::SeqCst)), (end, 1));
}
