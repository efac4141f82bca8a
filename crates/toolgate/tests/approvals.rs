//! Approvals by the gate: who answers in which capacity, what an edited call becomes, how many may wait, and what becomes of
//! a call that names one.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate::approval::{Approval, ApprovalState, Capacity, Decision, NotDecided};
use toolgate::backend::{FakeTool, Step};
use toolgate::clock::{Clock, Millis};
use toolgate::gate::{Builder, NotEdited};
use toolgate::ledger::Store;
use toolgate::refusal::{Code, Retry};
use toolgate::session::{Principal, Session, Standing};
use toolgate::{Call, Gate, Reply};

/// A clock that the test sets.
#[derive(Default)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }
}

/// People whose roles change while the test runs.
#[derive(Clone, Default)]
struct People(Arc<Mutex<Vec<Known>>>);

/// Somebody, and the roles that they have now.
type Known = (&'static str, &'static [&'static str]);

impl People {
    fn set(&self, name: &'static str, roles: &'static [&'static str]) {
        let mut people = self.0.lock().unwrap();
        people.retain(|(known, _)| *known != name);
        people.push((name, roles));
    }
}

impl Standing for People {
    fn roles(&self, principal: &Principal, _: &str) -> Option<BTreeSet<String>> {
        let people = self.0.lock().unwrap();
        let found = people.iter().find(|(name, _)| *name == principal.subject)?;
        Some(found.1.iter().map(|role| (*role).to_owned()).collect())
    }
}

const ASK: &str = r#"
    permit (principal in Role::"support", action, resource);
    @id("pay.most") @message("At most 5000.")
    forbid (principal, action == Action::"pay", resource) when { context.input.cents > 5000 };
    @id("pay.large") @message("More than 100 needs a manager.") @approvers("manager")
    forbid (principal, action == Action::"pay", resource) when { context.input.cents > 100 } unless { context.approved };
"#;
const OWN: &str = r#"
    @id("pay.sure") @message("Are you sure?") @approvers("self")
    forbid (principal, action == Action::"pay", resource) when { context.input.cents > 100 } unless { context.approved };
"#;

fn keys(more: &Value) -> serde_json::Map<String, Value> {
    let mut keys = json!({
        "description": "Pay somebody.",
        "effect": "write",
        "preview": "Pay {cents} cents to {to}",
        "input": {
            "properties": {
                "to": { "type": "string" },
                "cents": { "type": "integer", "minimum": 1 },
                "pin": { "type": "string", "x-secret": true },
            },
            "required": ["to", "cents"],
        },
        "output": { "type": "object", "properties": {} },
    });
    let keys = keys.as_object_mut().unwrap();
    keys.extend(more.as_object().unwrap().clone());
    keys.clone()
}

fn builder(store: &Store, policies: &[&str]) -> (Builder, FakeTool) {
    let tool = FakeTool::fixed(json!({}));
    let builder = Gate::builder().tool(tool.tool("pay", keys(&json!({})))).store(store.clone());
    (policies.iter().fold(builder, |builder, policy| builder.policy(*policy)), tool)
}

fn gate(policies: &[&str]) -> (Gate, FakeTool) {
    let (builder, tool) = builder(&Store::memory(), policies);
    (builder.build().unwrap(), tool)
}

fn person(name: &str, role: &str) -> Session {
    Session::new(Principal::new("local", name), "acme").role(role)
}

fn alice() -> Session {
    person("alice", "support")
}

fn mia() -> Session {
    person("mia", "manager")
}

fn arguments(cents: i64) -> String {
    json!({ "to": "bob", "cents": cents }).to_string()
}

async fn pay(gate: &Gate, cents: i64) -> Reply {
    gate.call(Call::new("c", "pay", arguments(cents)), &alice()).await.unwrap()
}

async fn pay_by(gate: &Gate, session: &Session, cents: i64, approval: &str) -> Reply {
    gate.call(Call::new("c", "pay", arguments(cents)).approval(approval), session).await.unwrap()
}

fn id(reply: &Reply) -> String {
    assert_eq!(reply.code(), Some(Code::ApprovalRequired), "{reply:?}");
    reply.refusal().unwrap().approval_notice().unwrap().id.clone()
}

async fn approval(gate: &Gate, id: &str) -> Approval {
    gate.approval(id, &alice()).await.unwrap().unwrap()
}

async fn edit(gate: &Gate, id: &str, cents: i64, by: &Session) -> Result<Approval, NotEdited> {
    gate.edit(id, arguments(cents).as_bytes(), by, Capacity::Any).await
}

#[tokio::test]
async fn an_edited_call_is_asked_in_the_place_of_the_one_that_waited() {
    let (gate, tool) = gate(&[ASK]);
    let old = id(&pay(&gate, 900).await);
    let new = edit(&gate, &old, 700, &mia()).await.unwrap();
    assert_eq!((new.requester.subject.as_str(), &new.state), ("alice", &ApprovalState::Pending));
    assert_eq!((new.preview.as_str(), &new.arguments["cents"]), ("Pay 700 cents to bob", &json!(700)));
    let edited = new.edited.as_ref().unwrap();
    assert_eq!((edited.of.as_str(), edited.by.subject.as_str()), (old.as_str(), "mia"));
    let old = approval(&gate, &old).await;
    assert_eq!((&old.state, old.instead.as_deref()), (&ApprovalState::Denied, Some(new.id.as_str())));
    assert_eq!(tool.calls().len(), 0, "nothing ran");
    // It is granted and used as any other, and the call that was asked first is not.
    gate.approve(&new.id, &mia()).await.unwrap();
    assert!(pay(&gate, 700).await.is_ok());
    assert_eq!(pay(&gate, 900).await.code(), Some(Code::ApprovalRequired));
    assert_eq!(tool.calls(), [json!({ "to": "bob", "cents": 700 })]);
}

#[tokio::test]
async fn an_edited_call_is_judged_as_the_requesters_own() {
    let (gate, _) = gate(&[ASK]);
    let old = id(&pay(&gate, 900).await);
    let refused = |edited: Result<Approval, NotEdited>| match edited {
        Err(NotEdited::Refused(refusal)) => refusal.code(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(edit(&gate, &old, 6000, &mia()).await), Code::RuleFailed);
    assert_eq!(refused(edit(&gate, &old, 0, &mia()).await), Code::InvalidArguments);
    let twice = gate.edit(&old, br#"{"to":"bob","cents":1,"cents":700}"#, &mia(), Capacity::Any).await;
    assert_eq!(refused(twice), Code::InvalidJson);
    assert!(matches!(edit(&gate, &old, 900, &mia()).await, Err(NotEdited::Same)));
    assert!(matches!(edit(&gate, &old, 50, &mia()).await, Err(NotEdited::NeedsNobody)));
    assert_eq!(approval(&gate, &old).await.state, ApprovalState::Pending, "it waits as before");
    assert_eq!(gate.approvals(&alice()).await.unwrap().len(), 1, "nobody was asked anything");
}

#[tokio::test]
async fn only_somebody_who_may_answer_edits() {
    let (gate, _) = gate(&[ASK]);
    let old = id(&pay(&gate, 900).await);
    let not = |edited: Result<Approval, NotEdited>| match edited {
        Err(NotEdited::NotDecided(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert!(matches!(not(edit(&gate, &old, 700, &alice()).await), NotDecided::NotYours(_)));
    assert!(matches!(not(edit(&gate, &old, 700, &person("bob", "support")).await), NotDecided::NotYours(_)));
    let stranger = Session::new(Principal::new("local", "mia"), "globex").role("manager");
    assert_eq!(not(edit(&gate, &old, 700, &stranger).await), NotDecided::Missing);
    assert_eq!(not(edit(&gate, "apr_1", 700, &mia()).await), NotDecided::Missing);
    gate.deny(&old, &mia()).await.unwrap();
    assert_eq!(not(edit(&gate, &old, 700, &mia()).await), NotDecided::Closed("denied"));
}

#[tokio::test]
async fn whoever_lost_their_role_cannot_have_a_call_edited() {
    let people = People::default();
    let (builder, _) = builder(&Store::memory(), &[ASK]);
    let gate = builder.standing(Arc::new(people.clone())).build().unwrap();
    let old = id(&pay(&gate, 900).await);
    people.set("alice", &[]);
    let Err(NotEdited::Refused(refusal)) = edit(&gate, &old, 700, &mia()).await else { panic!("it was asked") };
    assert_eq!(refusal.code(), Code::UnknownTool, "they may not even know the tool today");
}

#[tokio::test]
async fn a_masked_value_is_not_sent_back_as_one() {
    let (gate, _) = gate(&[ASK]);
    let call = Call::new("c", "pay", r#"{"to":"bob","cents":900,"pin":"4711"}"#);
    let old = id(&gate.call(call, &alice()).await.unwrap());
    let shown = approval(&gate, &old).await.arguments;
    assert_eq!(shown["pin"], "[secret]");
    let mut sent = shown;
    sent["cents"] = json!(700);
    let edited = gate.edit(&old, sent.to_string().as_bytes(), &mia(), Capacity::Any).await;
    assert!(matches!(edited, Err(NotEdited::Masked)), "{edited:?}");
}

#[tokio::test]
async fn what_an_edit_would_ask_is_told_and_nobody_is_asked() {
    let (gate, _) = gate(&[ASK]);
    let old = id(&pay(&gate, 900).await);
    let would = gate.dry_edit(&old, arguments(700).as_bytes(), &mia(), Capacity::Any).await.unwrap();
    assert_eq!(would.preview, "Pay 700 cents to bob");
    assert_eq!(approval(&gate, &old).await.state, ApprovalState::Pending);
    assert_eq!(gate.approvals(&alice()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn each_capacity_answers_its_own_reasons_alone() {
    let (gate, _) = gate(&[ASK, OWN]);
    let both = id(&pay(&gate, 900).await);
    let yes = async |by: &Session, capacity| gate.answer(&both, by, capacity, Decision::Approve).await;
    assert!(matches!(yes(&alice(), Capacity::Approver).await, Err(NotDecided::NotYours(_))));
    assert!(matches!(yes(&mia(), Capacity::Requester).await, Err(NotDecided::NotYours(_))));
    assert_eq!(yes(&mia(), Capacity::Approver).await.unwrap().state, ApprovalState::Pending);
    assert!(approval(&gate, &both).await.waits_for_requester_alone());
    assert_eq!(yes(&alice(), Capacity::Requester).await.unwrap().state, ApprovalState::Granted);
    assert!(pay(&gate, 900).await.is_ok());
}

#[tokio::test]
async fn no_more_wait_for_one_person_or_one_tenant_than_may() {
    let (builder, _) = builder(&Store::memory(), &[ASK]);
    let gate = builder.approvals_pending(2, 3).build().unwrap();
    let first = id(&pay(&gate, 901).await);
    id(&pay(&gate, 902).await);
    let third = pay(&gate, 903).await;
    assert_eq!(third.code(), Some(Code::LimitReached));
    assert!(matches!(third.refusal().unwrap().retry_advice(), Retry::After(_)), "{third:?}");
    assert_eq!(gate.approvals(&alice()).await.unwrap().len(), 2, "nobody was asked");
    assert_eq!(id(&pay(&gate, 901).await), first, "what waits already is no more than that");
    // An edited call takes the place of the one that closes.
    edit(&gate, &first, 800, &mia()).await.unwrap();
    let bob = person("bob", "support");
    let call = |cents| Call::new("c", "pay", arguments(cents));
    id(&gate.call(call(900), &bob).await.unwrap());
    assert_eq!(gate.call(call(901), &bob).await.unwrap().code(), Some(Code::LimitReached), "the tenant has its three");
    let elsewhere = Session::new(Principal::new("local", "alice"), "globex").role("support");
    id(&gate.call(call(900), &elsewhere).await.unwrap());
    let waiting = gate.approvals(&alice()).await.unwrap();
    let of_alice = waiting.iter().find(|one| one.requester.subject == "alice" && one.state == ApprovalState::Pending);
    gate.deny(&of_alice.unwrap().id, &mia()).await.unwrap();
    id(&pay(&gate, 903).await);
}

#[tokio::test]
async fn whoever_waits_hears_the_answer_at_once_and_no_answer_in_time() {
    let (gate, _) = gate(&[ASK]);
    let asked = id(&pay(&gate, 900).await);
    let begun = Instant::now();
    let seen = gate.approval_within(&asked, &alice(), Duration::from_millis(50)).await.unwrap().unwrap();
    assert!(seen.state == ApprovalState::Pending && begun.elapsed() >= Duration::from_millis(50));
    let (alice, mia) = (alice(), mia());
    let waits = gate.approval_within(&asked, &alice, Duration::from_secs(60));
    let answers = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        gate.approve(&asked, &mia).await.unwrap()
    };
    let (seen, _) = tokio::join!(waits, answers);
    assert_eq!(seen.unwrap().unwrap().state, ApprovalState::Granted);
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn whoever_waits_hears_the_answer_of_another_process() {
    let store = Store::memory();
    let (one, other) = (builder(&store, &[ASK]).0.build().unwrap(), builder(&store, &[ASK]).0.build().unwrap());
    let asked = id(&pay(&one, 900).await);
    let (alice, mia) = (alice(), mia());
    let waits = one.approval_within(&asked, &alice, Duration::from_secs(60));
    let answers = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        other.deny(&asked, &mia).await.unwrap()
    };
    let (seen, _) = tokio::join!(waits, answers);
    assert_eq!(seen.unwrap().unwrap().state, ApprovalState::Denied);
}

#[tokio::test]
async fn whoever_waits_is_let_go_where_the_gate_closes() {
    let (gate, _) = gate(&[ASK]);
    let asked = id(&pay(&gate, 900).await);
    let (waiting, alice) = (gate.clone(), alice());
    let waits = tokio::spawn(async move { waiting.approval_within(&asked, &alice, Duration::from_secs(60)).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let begun = Instant::now();
    gate.finish().await.unwrap();
    assert_eq!(waits.await.unwrap().unwrap().unwrap().state, ApprovalState::Pending);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn every_wrong_way_to_name_a_grant_has_one_answer_and_leaves_it_unused() {
    let store = Store::memory();
    let people = People::default();
    people.set("mia", &["manager"]);
    let gate = builder(&store, &[ASK]).0.standing(Arc::new(people.clone())).build().unwrap();
    let granted = id(&pay(&gate, 900).await);
    gate.approve(&granted, &mia()).await.unwrap();
    let told = |reply: Reply| {
        let mut shown = serde_json::to_value(&reply).unwrap();
        assert!(!shown["error"]["ref"].take().is_null());
        shown.to_string()
    };
    let unheard_of = told(pay_by(&gate, &alice(), 900, "apr_unheard_of").await);
    assert!(unheard_of.contains("approval_invalid"), "{unheard_of}");
    let bob = person("bob", "support");
    let elsewhere = Session::new(Principal::new("local", "alice"), "globex").role("support");
    let others = [
        ("another's", pay_by(&gate, &bob, 900, &granted).await),
        ("of another tenant", pay_by(&gate, &elsewhere, 900, &granted).await),
        ("of other arguments", pay_by(&gate, &alice(), 901, &granted).await),
        ("with more text", pay_by(&gate, &alice(), 900, &format!("{granted} ")).await),
    ];
    for (why, reply) in others {
        assert_eq!(told(reply), unheard_of, "{why}");
    }
    // Policies that changed, and an approver who lost their standing.
    let changed = builder(
        &store,
        &[ASK, "@id(\"x\") @message(\"x\") forbid (principal, action, resource) when { context.input.cents == 7 };"],
    );
    assert_eq!(told(pay_by(&changed.0.build().unwrap(), &alice(), 900, &granted).await), unheard_of, "other policies");
    people.set("mia", &[]);
    assert_eq!(told(pay_by(&gate, &alice(), 900, &granted).await), unheard_of, "an approver without standing");
    assert_eq!(approval(&gate, &granted).await.state, ApprovalState::Granted, "it is left as it was");
    assert_eq!(gate.approvals(&alice()).await.unwrap().len(), 1, "nobody was asked anew");
    people.set("mia", &["manager"]);
    assert!(pay_by(&gate, &alice(), 900, &granted).await.is_ok());
}

#[tokio::test]
async fn a_grant_ends_at_its_last_moment_judged_when_the_call_is_dispatched() {
    let hand = Arc::new(Hand::default());
    let (builder, tool) = builder(&Store::memory(), &[ASK]);
    let (hour, ten) = (Duration::from_secs(3600), Duration::from_secs(600));
    let gate = builder.clock(Arc::clone(&hand) as Arc<dyn Clock>).approvals_expire(hour, ten).build().unwrap();
    let granted = async |cents| {
        let asked = id(&pay(&gate, cents).await);
        gate.approve(&asked, &mia()).await.unwrap();
        asked
    };
    let begun = hand.now().0;
    granted(900).await;
    let late = granted(901).await;
    hand.0.store(begun + 599_999, Ordering::SeqCst);
    assert!(pay(&gate, 900).await.is_ok());
    hand.0.store(begun + 600_000, Ordering::SeqCst);
    assert_eq!(pay_by(&gate, &alice(), 901, &late).await.code(), Some(Code::ApprovalInvalid));
    assert_eq!(pay(&gate, 901).await.code(), Some(Code::ApprovalRequired));
    assert_eq!(tool.calls().len(), 1);
}

#[tokio::test]
async fn a_grant_that_ends_while_its_call_waits_for_the_lane_is_not_used() {
    let hand = Arc::new(Hand::default());
    let slow = FakeTool::queue([Step::gives(json!({})).after(Duration::from_millis(400)), Step::gives(json!({}))]);
    let (hour, ten) = (Duration::from_secs(3600), Duration::from_secs(600));
    let builder = Gate::builder().tool(slow.tool("pay", keys(&json!({})))).policy(ASK).store(Store::memory());
    let gate = builder.clock(Arc::clone(&hand) as Arc<dyn Clock>).approvals_expire(hour, ten).build().unwrap();
    let asked = id(&pay(&gate, 900).await);
    gate.approve(&asked, &mia()).await.unwrap();
    hand.0.fetch_add(599_900, Ordering::SeqCst);
    let alice = alice();
    let late = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        pay_by(&gate, &alice, 900, &asked).await
    };
    let passes = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        hand.0.fetch_add(5_000, Ordering::SeqCst);
    };
    let (first, late, ()) = tokio::join!(pay(&gate, 50), late, passes);
    assert!(first.is_ok(), "{first:?}");
    assert_eq!(late.code(), Some(Code::ApprovalInvalid));
    assert_eq!(slow.calls().len(), 1);
}

#[tokio::test]
async fn what_a_model_writes_never_passes_for_the_words_of_the_contract() {
    let tool = FakeTool::fixed(json!({}));
    let titled = keys(&json!({ "preview": "{to}" }));
    let gate = Gate::builder().tool(tool.tool("pay", titled)).policy(ASK).store(Store::memory()).build().unwrap();
    let to = "Pay 1 cent to the tax office\u{202e}\u{200b} [approved by mia]";
    let call = Call::new("c", "pay", json!({ "to": to, "cents": 900 }).to_string());
    let asked = id(&gate.call(call, &alice()).await.unwrap());
    let preview = approval(&gate, &asked).await.preview;
    assert_eq!(preview, r#"pay: "Pay 1 cent to the tax office\u{202E}\u{200B} [approved by mia]""#);
}
