//! Whatever comes in whatever order, the machine keeps its promises.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::backend::{Answer, Backend, Dispatch, Found, Looking, Lookup, Running};
use crate::refusal::Code;
use crate::session::Session;
use crate::{Call, Gate, Tool};

/// A command that may or may not fit the state it meets.
fn command() -> impl Strategy<Value = Command> {
    let owner = || (0..2_u8).prop_map(|n| Owner(format!("owner_{n}")));
    let now = || (0..50_u64).prop_map(Millis);
    let token = || (0..2_u8).prop_map(|n| format!("token_{n}"));
    let verdict =
        prop_oneof![Just(Verdict::Done { answer: "done".into() }), Just(Verdict::Failed), Just(Verdict::Unknown)];
    let finding = prop_oneof![Just(Finding::Done { answer: "found".into() }), Just(Finding::NotDone)];
    prop_oneof![
        3 => (owner(), now(), any::<bool>(), any::<bool>()).prop_map(|(owner, lease_end, keeps_lane, anew)| {
            Command::Open { owner, since: Millis(0), lease_end, reference: Ref::fresh(), action: action(keeps_lane), anew }
        }),
        3 => (owner(), 1..4_u32, verdict, now()).prop_map(|(owner, attempt, verdict, now)| {
            Command::Close { owner, attempt, verdict, lane_version: 0, now }
        }),
        1 => now().prop_map(|now| Command::Lose { owner_dead: true, now }),
        2 => (token(), now(), now()).prop_map(|(token, until, now)| {
            Command::Claim { claim: Claim { token, until }, now }
        }),
        2 => (token(), finding, now()).prop_map(|(token, finding, now)| {
            Command::Resolve { token, finding, lane_version: 0, now }
        }),
        1 => (any::<bool>(), now()).prop_map(|(done, now)| {
            let finding = if done { Finding::Done { answer: "ruled".into() } } else { Finding::NotDone };
            Command::Rule { finding, lane_version: 0, now }
        }),
    ]
}

fn action(keeps_lane: bool) -> Action {
    Action {
        tool: "t".into(),
        tenant: "acme".into(),
        principal: Principal::new("local", "p"),
        run: "default".into(),
        args_digest: Digest::of(b"{}"),
        arguments: json!({}),
        facts: json!({}),
        lane: LaneKey::of(&json!(["lane"])),
        keeps_lane,
        retain_ms: 1,
        grant: None,
        holds: Vec::new(),
        subject: None,
    }
}

proptest! {
    #[test]
    fn an_action_runs_once_at_a_time_and_what_happened_stays(commands in vec(command(), 0..60)) {
        let key = EntryKey::of(&json!(["action"]));
        let mut entry: Option<Entry> = None;
        let mut holds_lane = false;
        let mut spent = false;
        let mut counted = false;
        for command in commands {
            let Ok((next, consequences)) = step(key, entry.as_ref(), command.clone()) else { continue };
            let before = entry.as_ref().map(|entry| &entry.state);
            let opens = matches!(command, Command::Open { .. });

            // The revision strictly grows, and the attempts count the openings.
            prop_assert_eq!(next.revision, entry.as_ref().map_or(0, |entry| entry.revision) + 1);
            prop_assert_eq!(next.attempt, entry.as_ref().map_or(0, |entry| entry.attempt) + u32::from(opens));

            // It runs only where it is absent or failed, or anew where it is done.
            if let Command::Open { anew, reference, .. } = &command {
                match before {
                    None => prop_assert_eq!(&next.first, reference),
                    Some(State::Failed { .. }) => prop_assert_eq!(Some(&next.first), entry.as_ref().map(|entry| &entry.first)),
                    Some(State::Done { .. }) => prop_assert!(*anew && next.first == *reference),
                    Some(State::Open { .. } | State::Unknown { .. }) => prop_assert!(false, "it ran twice"),
                }
            } else {
                let runs = matches!(next.state, State::Open { .. });
                prop_assert!(!runs, "it ran without an opening");
            }

            // What is done is left only by an opening; what is open is closed only by its owner or lost; what is
            // unknown is resolved by its claimant, by whoever ran it, or by an operator whom nobody precedes.
            let fits = match (before, &command) {
                (Some(State::Open { owner, .. }), Command::Close { owner: closer, attempt, .. }) => {
                    owner == closer && *attempt == next.attempt
                }
                (Some(State::Open { .. }), command) => matches!(command, Command::Lose { .. }),
                (Some(State::Unknown { claim: Some(claim), .. }), Command::Resolve { token, .. }) => {
                    claim.token == *token
                }
                (Some(State::Unknown { owner, .. }), Command::Close { owner: closer, attempt, .. }) => {
                    owner == closer && *attempt == next.attempt
                }
                (Some(State::Unknown { claim, .. }), Command::Rule { now, .. }) => {
                    claim.as_ref().is_none_or(|claim| claim.until <= *now)
                }
                (Some(State::Unknown { .. }), command) => matches!(command, Command::Claim { .. }),
                (None | Some(State::Failed { .. } | State::Done { .. }), _) => opens,
            };
            prop_assert!(fits, "{:?} after {:?}", command, before);

            // The lane is held exactly while it may be running, and approval and limits are used unless nothing happened.
            for consequence in consequences {
                match consequence {
                    Consequence::TakeLane => holds_lane = true,
                    Consequence::FreeLane => holds_lane = false,
                    Consequence::MoveLane => prop_assert!(holds_lane),
                    Consequence::SpendGrant => spent = true,
                    Consequence::ReturnGrant => spent = false,
                    Consequence::TakeHolds => counted = true,
                    Consequence::ReturnHolds => counted = false,
                }
            }
            match next.state {
                State::Open { .. } => prop_assert!(holds_lane && spent && counted),
                State::Done { .. } => prop_assert!(!holds_lane && spent && counted),
                State::Failed { .. } => prop_assert!(!holds_lane && !spent && !counted),
                State::Unknown { .. } => prop_assert!(holds_lane == next.action.keeps_lane && spent && counted),
            }
            entry = Some(next);
        }
    }
}

#[test]
fn a_living_owner_whose_lease_a_clock_ended_early_has_the_whole_of_it_from_then_on() {
    let key = EntryKey::of(&json!(["action"]));
    let open = Command::Open {
        owner: Owner("o".into()),
        since: Millis(2),
        lease_end: Millis(10),
        reference: Ref::fresh(),
        action: action(true),
        anew: false,
    };
    let (entry, _) = step(key, None, open).unwrap();
    let lease_end_after = |owner_dead| {
        let lose = Command::Lose { owner_dead, now: Millis(5000) };
        match step(key, Some(&entry), lose).unwrap().0.state {
            State::Unknown { lease_end, .. } => lease_end,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(lease_end_after(false), Millis(5008));
    assert_eq!(lease_end_after(true), Millis(10));
}

/// A backend that pays whenever it is asked.
struct Pays(Arc<AtomicUsize>);

impl Backend for Pays {
    fn run(&self, _: Dispatch) -> Running<'_> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Answer::done("{\"to\":\"alice\"}") })
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        Box::pin(async { Found::Absent })
    }
}

#[tokio::test]
async fn an_action_whose_contents_were_erased_stays_done_and_shows_nothing() {
    let (store, runs) = (Store::memory(), Arc::<AtomicUsize>::default());
    let keys = json!({"description": "Pays. Moves money.", "effect": "write", "input": {"properties": {}}});
    let tool = Tool::new("pay", keys.as_object().unwrap().clone(), Arc::new(Pays(Arc::clone(&runs))));
    let gate = Gate::builder().policy("permit (principal, action, resource);").tool(tool).store(store.clone());
    let gate = gate.build().unwrap();
    let alice = Session::new(Principal::new("local", "alice"), "acme");
    let pay = async || gate.call(Call::new("call_1", "pay", "{}"), &alice).await.unwrap();
    assert!(pay().await.is_ok());
    assert!(pay().await.replayed());

    let page = store.actions("acme", None, 1).await.unwrap();
    let key = EntryKey(page.items[0].key);
    let erased = store.write(move |rows| {
        let mut entry = rows.entry(key)?.unwrap();
        entry.erase();
        rows.put_entry(&entry, rows::Change::Moved)
    });
    erased.await.unwrap();
    let after = pay().await;
    assert_eq!((after.code(), after.effect(), after.result()), (Some(Code::AlreadyDone), Effect::Done, None));
    assert!(after.refusal().unwrap().text().contains("erased"));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}
