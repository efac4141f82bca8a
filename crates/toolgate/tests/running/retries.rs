//! What is sent again, and what never is.

use toolgate::refusal::Code;

use super::*;

const OFTEN: u32 = 5;

fn retry(on: &[&str]) -> Value {
    json!({ "retry": { "attempts": OFTEN, "on": on } })
}

fn gate(tools: impl IntoIterator<Item = Tool>) -> Gate {
    gate_of(tools, Store::memory(), None)
}

#[tokio::test]
async fn a_write_that_was_never_sent_is_sent_again_with_the_same_key_and_each_attempt_is_told() {
    let backend = Arc::new(Told::ends(|n| if n < 2 { busy() } else { Answer::done(r#"{"paid":1}"#) }));
    let gate = gate([tool("pay", "write", retry(&["503"]), &backend)]);
    let reply = call(&gate, "pay", json!({})).await;
    assert_eq!((reply.result(), reply.effect()), (Some(r#"{"paid":1}"#), Effect::Done));
    let keys = backend.keys.lock().unwrap().clone();
    assert_eq!((backend.sends(), keys[0] == keys[2]), (3, true));
    assert_eq!(noted(&reply, "run", "attempts"), 3);
    let failures = noted(&reply, "run", "failures");
    let told: Vec<(&Value, &Value, bool)> = failures
        .as_array()
        .unwrap()
        .iter()
        .map(|failure| (&failure["signal"], &failure["effect"], failure["wait_ms"].as_u64().unwrap() <= 200))
        .collect();
    assert_eq!(told, [(&json!("503"), &json!("none"), true), (&json!("503"), &json!("none"), true)]);
    let outcome = history(&gate, &reply).await.pop().unwrap();
    assert!(outcome["stages"].to_string().contains(r#""attempts":3"#), "the record counts them too: {outcome}");
}

#[tokio::test]
async fn a_write_in_doubt_is_sent_again_only_to_a_backend_that_honours_its_key() {
    let keyless = Arc::new(Told::ends(|_| lost()));
    let gate_of_keyless = gate([tool("pay", "write", retry(&["lost"]), &keyless)]);
    let reply = call(&gate_of_keyless, "pay", json!({})).await;
    assert_eq!((reply.effect(), keyless.sends()), (Effect::Unknown, 1));
    assert_eq!(noted(&reply, "run", "retry"), "effect");

    let answers = |n| if n == 0 { lost() } else { Answer::done(r#"{"paid":1}"#) };
    let keyed = Arc::new(Told { keyed: true, ..Told::ends(answers) });
    let reply = call(&gate([tool("pay", "write", retry(&["lost"]), &keyed)]), "pay", json!({})).await;
    assert_eq!((reply.result(), keyed.sends()), (Some(r#"{"paid":1}"#), 2));
    let keys = keyed.keys.lock().unwrap().clone();
    assert_eq!(keys[0], keys[1]);

    // The same, promised for a tool that says nothing of it itself.
    let promised = Arc::new(Told::ends(answers));
    let gate = gate([tool("pay", "write", retry(&["lost"]), &promised).honours_key()]);
    assert_eq!((call(&gate, "pay", json!({})).await.effect(), promised.sends()), (Effect::Done, 2));
}

#[tokio::test]
async fn what_may_have_happened_once_is_not_made_undone_by_an_attempt_that_was_never_sent() {
    let backend = Arc::new(Told { keyed: true, ..Told::ends(|n| if n == 0 { lost() } else { busy() }) });
    let mapped = json!({
        "retry": { "attempts": 2, "on": ["lost", "503"] },
        "errors": { "503": { "code": "busy", "message": "It is busy.", "effect": "none" } },
    });
    let gate = gate([tool("pay", "write", mapped, &backend)]);
    let reply = call(&gate, "pay", json!({})).await;
    assert_eq!((backend.sends(), reply.effect()), (2, Effect::Unknown));
    assert_eq!(call(&gate, "pay", json!({})).await.code(), Some(Code::OutcomeUnknown));
    assert_eq!(backend.sends(), 2, "the entry is unknown too");
}

#[tokio::test]
async fn what_the_contract_says_of_a_failure_is_what_a_repeat_rests_on() {
    let may_have = json!({
        "retry": { "attempts": 3, "on": ["503"] },
        "errors": { "503": { "code": "busy", "message": "It is busy.", "effect": "unknown" } },
    });
    let backend = Arc::new(Told::ends(|_| busy()));
    let reply = call(&gate([tool("pay", "write", may_have, &backend)]), "pay", json!({})).await;
    assert_eq!((backend.sends(), reply.effect()), (1, Effect::Unknown));
}

#[tokio::test]
async fn a_failure_that_is_not_listed_is_told_at_once() {
    let backend = Arc::new(Told::ends(|_| lost()));
    let reply = call(&gate([tool("look", "read", retry(&["503"]), &backend)]), "look", json!({})).await;
    assert_eq!((backend.sends(), reply.effect()), (1, Effect::None));
    assert_eq!(noted(&reply, "run", "retry"), "signal");
}

#[tokio::test]
async fn a_wait_that_the_backend_asks_for_is_kept_and_one_beyond_the_deadline_ends_the_call_at_once() {
    let asking = |wait: Duration| {
        move |n| match (n, busy()) {
            (0, Answer { effect, outcome: Err(failure) }) => {
                Answer { effect, outcome: Err(Failure { retry_after: Some(wait), ..failure }) }
            }
            _ => Answer::done(r#"{"paid":1}"#),
        }
    };
    let soon = Arc::new(Told::ends(asking(Duration::from_millis(300))));
    let started = std::time::Instant::now();
    let reply = call(&gate([tool("look", "read", retry(&["503"]), &soon)]), "look", json!({})).await;
    assert!(reply.is_ok() && started.elapsed() >= Duration::from_millis(300), "{:?}", started.elapsed());
    assert_eq!(noted(&reply, "run", "failures")[0]["wait_ms"], 300);

    let late = Arc::new(Told::ends(asking(Duration::from_secs(60))));
    let started = std::time::Instant::now();
    let reply = call(&gate([tool("look", "read", retry(&["503"]), &late)]), "look", json!({})).await;
    assert!(started.elapsed() < Duration::from_secs(5), "the deadline of 10 s is not waited for");
    assert_eq!((reply.code(), late.sends()), (Some(Code::Unavailable), 1));
    assert_eq!(noted(&reply, "run", "retry"), "deadline");
}

#[tokio::test]
async fn nothing_is_sent_once_the_lease_is_over_for_others() {
    let clock = clock();
    let jump = Arc::clone(&clock);
    let backend = Arc::new(Told::ends(move |_| {
        // As on a machine that sleeps for an hour: the deadline of the process is not over.
        jump.advance(Duration::from_secs(3600));
        busy()
    }));
    let gate = gate_of([tool("pay", "write", retry(&["503"]), &backend)], Store::memory(), Some(&clock));
    let reply = call(&gate, "pay", json!({})).await;
    assert_eq!((backend.sends(), noted(&reply, "run", "retry")), (1, json!("lease")));
}

#[tokio::test]
async fn a_thousand_calls_of_what_is_down_make_few_repeats() {
    let down = Arc::new(Told { upstream: Some("desk"), ..Told::ends(|_| busy()) });
    let tools = ["one", "two"].map(|name| tool(name, "read", json!({ "retry": { "attempts": 3 } }), &down));
    let own = Arc::new(Told::ends(|n| if n == 0 { busy() } else { Answer::done("{}") }));
    let gate = gate(tools.into_iter().chain([tool("other", "read", retry(&["503"]), &own)]));
    let mut denied = 0;
    for _ in 0..20 {
        let calls = (0..50).map(|n| call(&gate, if n % 2 == 0 { "one" } else { "two" }, json!({ "n": n })));
        for reply in futures_util::future::join_all(calls).await {
            assert_eq!(reply.code(), Some(Code::Unavailable));
            denied += usize::from(noted(&reply, "run", "retry") == "budget");
        }
    }
    // Ten to begin with, and one for every ten calls.
    assert!((1050..=1110).contains(&down.sends()), "{}", down.sends());
    assert!(denied > 800, "{denied} were told why");
    assert!(call(&gate, "other", json!({})).await.is_ok(), "what is up has a budget of its own");
}

#[test]
fn a_no_cannot_be_listed_to_be_tried_again() {
    let faults = |on: &[&str]| {
        let backend = Arc::new(Told::ends(|_| busy()));
        let builder = Gate::builder().policy("permit (principal, action, resource);").store(Store::memory());
        match builder.tool(tool("look", "read", retry(on), &backend)).build() {
            Ok(_) => 0,
            Err(error) => error.to_string().lines().filter(|line| line.contains("/retry/on/")).count(),
        }
    };
    assert_eq!(faults(&["connect", "408", "425", "429", "500", "502", "503", "died", "timeout"]), 0);
    assert_eq!(faults(&["401", "403", "404", "409", "422", "constraint", "pin", "503"]), 7);
}
