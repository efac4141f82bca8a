//! What runs have done and read, and how often they were refused.

use std::time::Duration;

use super::*;
use crate::runs::{Joining, RunState};

fn session(name: &str, tenant: &str) -> Session {
    Session::new(Principal::new("local", name), tenant).in_run("ticket_7")
}

fn marking(run: RunKey, labels: &[&str]) -> Marking {
    let labels = labels.iter().map(|label| (*label).to_owned()).collect();
    let joining = Joining { completed: Some("get_order".into()), counts: true, labels };
    Marking { run, tenant: "acme".into(), joining }
}

async fn run(store: &Store, run: RunKey, now: Millis) -> RunState {
    store.recall(Question { run: Some(run), ..Question::default() }, now).await.unwrap().run
}

pub(super) async fn a_run_grows_with_each_call_and_only_its_own_principal_has_it(store: &Store) {
    let alices = RunKey::of(&session("alice", "acme"));
    store.join(marking(alices, &["untrusted"]), NOW).await.unwrap();
    store.join(marking(alices, &["internal"]), NOW).await.unwrap();
    let state = run(store, alices, NOW).await;
    assert_eq!((state.calls, state.labels.into_iter().collect::<Vec<_>>().join(" ")), (2, "internal untrusted".into()));
    assert!(state.completed.contains("get_order"));
    for other in [session("bob", "acme"), session("alice", "globex"), session("alice", "acme").in_run("ticket_8")] {
        assert_eq!(run(store, RunKey::of(&other), NOW).await, RunState::default());
    }
}

pub(super) async fn a_run_that_rests_for_a_day_is_as_good_as_new(store: &Store) {
    let key = RunKey::of(&session("alice", "acme"));
    store.join(marking(key, &[]), NOW).await.unwrap();
    assert_eq!(run(store, key, Millis(NOW.0 + DAY - 1)).await.calls, 1);
    store.join(marking(key, &[]), Millis(NOW.0 + DAY - 1)).await.unwrap();
    assert_eq!(run(store, key, Millis(NOW.0 + DAY)).await.calls, 2);
    let rested = Millis(NOW.0 + 2 * DAY - 1);
    assert_eq!(run(store, key, rested).await, RunState::default());
    sweep(store, rested).await;
    let notes = store.read(|rows| rows.notes(rows::NoteKind::Run, "acme", 10)).await.unwrap();
    assert_eq!(notes, []);
}

pub(super) async fn what_a_call_adds_to_its_run_is_written_with_its_outcome_or_not_at_all(store: &Store) {
    let (key, refund) = (RunKey::of(&session("alice", "acme")), Act::new("refund"));
    open(store, &refund).await;
    let closing = |attempt| Closing {
        key: refund.key(),
        owner: store.owner().clone(),
        attempt,
        verdict: Verdict::Done { answer: "1".into() },
        marking: Some(marking(key, &["untrusted"])),
    };
    let close = |closing| store.close(closing, record(Kind::Outcome), record(Kind::Late), NOW);
    assert!(!close(closing(2)).await.unwrap());
    assert_eq!(run(store, key, NOW).await, RunState::default());
    assert!(close(closing(1)).await.unwrap());
    assert!(run(store, key, NOW).await.labels.contains("untrusted"));
}

pub(super) async fn a_write_that_is_found_out_later_is_completed_in_its_run(store: &Store) {
    let own = RunKey::of(&Session::new(Principal::new("local", "alice"), "acme").in_run("default"));
    let acts = ["resolved", "ruled", "late", "undone"].map(|name| Act { lane: name, ..Act::new(name) });
    let [resolved, ruled, late, undone] = &acts;
    let completed = async || run(store, own, NOW).await.completed;
    let forget = async || store.write(move |rows| rows.remove_note(rows::NoteKind::Run, &own.hex())).await.unwrap();
    for act in &acts {
        open(store, act).await;
        assert!(close(store, act, 1, Verdict::Unknown).await);
    }
    assert!(completed().await.is_empty(), "nobody knows yet");

    store.claim(undone.key(), claim("t", 100), NOW).await.unwrap().unwrap();
    assert!(resolve(store, undone, "t", Finding::NotDone).await);
    assert!(completed().await.is_empty(), "it was not done");

    let found = || Finding::Done { answer: "1".into() };
    store.claim(resolved.key(), claim("t", 100), NOW).await.unwrap().unwrap();
    assert!(resolve(store, resolved, "t", found()).await);
    assert!(completed().await.contains("create_refund"), "somebody looked it up");

    forget().await;
    store.rule(ruled.key(), found(), Box::new(|_| record(Kind::Ruling)), NOW).await.unwrap().unwrap();
    assert!(completed().await.contains("create_refund"), "an operator said so");

    forget().await;
    assert!(close(store, late, 1, done("1")).await);
    assert!(completed().await.contains("create_refund"), "its call learned it late");
}

pub(super) async fn a_run_that_was_ended_is_not_renewed_by_who_saw_it_before(store: &Store) {
    let key = HandleKey::of("ses_1", &session("alice", "acme"));
    assert!(store.begin_run(key, "acme".into(), 1, NOW).await.unwrap());
    let later = Millis(NOW.0 + DAY / 2);
    assert!(store.renew_run(key, "acme".into(), later).await.unwrap());
    assert!(store.goes_on(key, "acme", Millis(NOW.0 + DAY)).await.unwrap(), "it was renewed");
    // Between the look of one call and its renewal another one ends the run.
    assert!(store.end_run(key, later).await.unwrap());
    assert!(!store.renew_run(key, "acme".into(), later).await.unwrap());
    assert!(!store.goes_on(key, "acme", later).await.unwrap());
}

pub(super) async fn a_refusal_is_counted_in_its_window_alone(store: &Store) {
    let (key, per) = (RunKey::of(&session("alice", "acme")), Duration::from_secs(60));
    let window = Window::of(NOW, per);
    assert!(window.begin <= NOW && NOW < window.end && window.end.0 - window.begin.0 == 60_000);
    assert_eq!(store.count_refused(key, window).await.unwrap(), 1);
    assert_eq!(store.count_refused(key, window).await.unwrap(), 2);
    assert_eq!(store.refused(key, window).await.unwrap(), 2);
    assert_eq!(store.refused(key, Window::of(window.end, per)).await.unwrap(), 0);
    assert_eq!(store.refused(RunKey::of(&session("bob", "acme")), window).await.unwrap(), 0);
    assert_eq!(store.refused(key, Window::of(NOW, Duration::from_secs(600))).await.unwrap(), 0);
    sweep(store, Millis(window.end.0 + DAY)).await;
    assert_eq!(store.refused(key, window).await.unwrap(), 0);
}
