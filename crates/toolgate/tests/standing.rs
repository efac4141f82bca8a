//! Standing grants: consent given beforehand to a bounded set of one person's calls.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test may panic"
)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate::backend::{Answer, Backend, Dispatch, Failure, FailureKind, Found, Looking, Lookup, Running};
use toolgate::clock::{ManualClock, Millis};
use toolgate::ledger::Store;
use toolgate::refusal::{Code, Effect};
use toolgate::session::{Principal, Session, Standing};
use toolgate::standing::{Granting, NotGranted, Refused, StandingState};
use toolgate::{Call, Gate, Reply, Tool};

const HOUR: Duration = Duration::from_secs(3600);

const POLICIES: &str = r#"
    permit (principal, action, resource);
    @id("pay.large") @message("Large payments need a manager.") @approvers("manager")
    forbid (principal, action == Action::"pay", resource)
    when { context.input has cents && context.input.cents > 100 } unless { context.approved };
    @id("pay.abroad") @message("Payments abroad need the treasurer.") @approvers("treasurer")
    forbid (principal, action == Action::"pay", resource)
    when { context.input has to && context.input.to == "abroad" } unless { context.approved };
    @id("pay.odd") @message("Confirm it.") @approvers("self")
    forbid (principal, action == Action::"pay", resource)
    when { context.input has to && context.input.to == "odd" } unless { context.approved };
    @id("pay.look") @message("A manager looks first.") @approvers("manager")
    forbid (principal, action == Action::"look", resource)
    unless { context.approved };
"#;

/// Pays, or says that it did not, or says nothing, by whom it is for.
#[derive(Default)]
struct Bank {
    runs: AtomicUsize,
}

impl Backend for Bank {
    fn run(&self, dispatch: Dispatch) -> Running<'_> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let failed = |effect| Answer::failed(effect, Failure::new(FailureKind::Reported, "lost", "no answer"));
        let answer = match dispatch.context().arguments().get("to").and_then(Value::as_str) {
            Some("nobody") => failed(Effect::None),
            Some("somebody") => failed(Effect::Unknown),
            Some(_) | None => Answer::done("{}"),
        };
        Box::pin(async move { answer })
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        Box::pin(async { Found::Absent })
    }
}

/// Who has which roles today.
#[derive(Default)]
struct People(Mutex<Option<BTreeSet<String>>>);

impl Standing for People {
    fn roles(&self, principal: &Principal, _: &str) -> Option<BTreeSet<String>> {
        if principal.subject == "mia" { self.0.lock().unwrap().clone() } else { None }
    }
}

struct Desk {
    gate: Gate,
    bank: Arc<Bank>,
    clock: Arc<ManualClock>,
    people: Arc<People>,
    store: Store,
}

impl Desk {
    fn new() -> Self {
        Self::over(Store::memory(), POLICIES)
    }

    fn over(store: Store, policies: &str) -> Self {
        let (bank, people) = (Arc::<Bank>::default(), Arc::<People>::default());
        let clock = Arc::new(ManualClock::at(Millis(1_000_000_000)));
        let tool = |name: &str, effect: &str| {
            let contract = json!({
                "description": "Pays. Moves money.",
                "effect": effect,
                "input": {"properties": {
                    "to": {"type": "string"},
                    "cents": {"type": "integer", "minimum": 0},
                    "note": {"type": "string"},
                }},
            });
            Tool::new(name, contract.as_object().unwrap().clone(), Arc::clone(&bank) as Arc<dyn Backend>)
        };
        let builder = Gate::builder().policy(policies).tool(tool("pay", "write")).tool(tool("look", "read"));
        let builder = builder.store(store.clone()).clock(Arc::clone(&clock) as _);
        let gate = builder.standing(Arc::clone(&people) as _).build().unwrap();
        Self { gate, bank, clock, people, store }
    }

    async fn pay(&self, session: &Session, to: &str, cents: u64) -> Reply {
        let arguments = json!({"to": to, "cents": cents}).to_string();
        self.gate.call(Call::new("call_1", "pay", arguments), session).await.unwrap()
    }

    /// Whether alice's payment goes through; else it must wait for a person.
    async fn pays(&self, to: &str, cents: u64) -> bool {
        let reply = self.pay(&alice(), to, cents).await;
        assert!(reply.is_ok() || reply.code() == Some(Code::ApprovalRequired), "{reply:?}");
        reply.is_ok()
    }

    async fn grant(&self, asked: Granting) -> String {
        self.gate.grant_standing(&asked, &mia()).await.unwrap().grant.id
    }

    async fn left(&self) -> (Option<u64>, Option<u64>, StandingState) {
        let standing = self.gate.standing_grants(&mia()).await.unwrap().remove(0);
        (standing.left.calls, standing.left.sum, standing.state)
    }

    /// The entries of a kind, once there are so many: those of what was refused are gathered for a moment.
    async fn records(&self, kind: &str, count: usize) -> Vec<Value> {
        for _ in 0..500 {
            let records = self.store.tail(100).await.unwrap().into_iter();
            let bodies = records.map(|record| serde_json::from_str::<Value>(&record.body).unwrap());
            let found: Vec<Value> = bodies.filter(|body| body["kind"] == kind).collect();
            if found.len() >= count {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("there are no {count} entries of the kind {kind}");
    }
}

fn person(name: &str) -> Session {
    Session::new(Principal::new("local", name), "acme")
}

fn alice() -> Session {
    person("alice")
}

fn mia() -> Session {
    person("mia").role("manager")
}

/// Large payments of alice's.
fn large(calls: Option<u64>, sum: Option<u64>) -> Granting {
    Granting {
        tool: "pay".into(),
        rule: "pay.large".into(),
        to: Principal::new("local", "alice"),
        calls,
        sum,
        of: sum.map(|_| "/cents".into()),
        lasts: HOUR,
    }
}

#[tokio::test]
async fn a_standing_grant_lets_so_many_calls_run_and_then_a_person_is_asked() {
    let desk = Desk::new();
    assert!(!desk.pays("a", 200).await, "before it is given");
    let id = desk.grant(large(Some(2), None)).await;
    assert!(desk.pays("a", 200).await && desk.pays("b", 300).await);
    assert_eq!(desk.left().await, (Some(0), None, StandingState::UsedUp));
    assert!(!desk.pays("c", 400).await);
    assert_eq!(desk.bank.runs.load(Ordering::SeqCst), 2);
    assert!(desk.pays("a", 200).await, "what is replayed takes nothing");
    let used = desk.records("intent", 2).await;
    let stages = used[0]["stages"].as_array().unwrap();
    let permit = stages.iter().find(|stage| stage["stage"] == "permit").unwrap();
    let mia = json!({"issuer": "local", "subject": "mia"});
    assert_eq!(permit["standing"], json!([{"id": id, "rule": "pay.large", "given_by": mia}]));
}

#[tokio::test]
async fn a_standing_grant_covers_no_larger_sum_than_it_says() {
    let desk = Desk::new();
    desk.grant(large(None, Some(500))).await;
    assert!(desk.pays("a", 300).await);
    assert!(!desk.pays("b", 201).await);
    assert!(desk.pays("b", 200).await);
    assert_eq!(desk.left().await, (None, Some(0), StandingState::UsedUp));
    assert!(desk.pays("c", 100).await, "what no rule holds up needs no consent");
}

/// An absent amount may mean everything that there is.
#[tokio::test]
async fn a_call_that_does_not_say_the_amount_is_not_covered_by_a_sum() {
    let (asked, anyway) = ("context.input has cents && context.input.cents > 100", "context.input.cents > 100");
    assert!(POLICIES.contains(asked));
    let policies = POLICIES.replace(asked, &format!("(if context.input has cents then {anyway} else true)"));
    let desk = Desk::over(Store::memory(), &policies);
    desk.grant(large(None, Some(500))).await;
    let reply = desk.gate.call(Call::new("call_1", "pay", r#"{"to":"a"}"#), &alice()).await.unwrap();
    assert_eq!(reply.code(), Some(Code::ApprovalRequired));
    desk.grant(large(Some(1), None)).await;
    let reply = desk.gate.call(Call::new("call_1", "pay", r#"{"to":"a"}"#), &alice()).await.unwrap();
    assert!(reply.is_ok(), "{reply:?}");
}

#[tokio::test]
async fn nobody_else_and_nothing_else_is_covered() {
    let desk = Desk::new();
    desk.grant(large(Some(9), None)).await;
    let others = [
        (person("bob"), "another user"),
        (Session::new(Principal::new("other", "alice"), "acme"), "the same name of another issuer"),
        (Session::new(Principal::new("local", "alice"), "globex"), "another tenant"),
        (mia(), "whoever gave it"),
    ];
    for (other, who) in others {
        assert_eq!(desk.pay(&other, "a", 200).await.code(), Some(Code::ApprovalRequired), "{who}");
    }
    let look = desk.gate.call(Call::new("call_1", "look", "{}"), &alice()).await.unwrap();
    assert_eq!(look.code(), Some(Code::ApprovalRequired), "another tool");
    assert!(!desk.pays("abroad", 50).await, "another rule");
    assert_eq!(desk.left().await.0, Some(9));
}

#[tokio::test]
async fn each_reason_is_satisfied_by_its_own_consent_and_a_person_is_asked_for_the_rest() {
    let desk = Desk::new();
    desk.grant(large(Some(1), None)).await;
    let both = desk.pay(&alice(), "abroad", 200).await;
    let asked = both.refusal().unwrap().clone();
    let approval = desk.gate.approvals(&mia()).await.unwrap().remove(0);
    let rules: Vec<&str> = approval.reasons.iter().map(|reason| reason.rule.as_str()).collect();
    assert_eq!(rules, ["pay.abroad"], "{asked:?}");
    assert_eq!(desk.left().await.0, Some(1), "to be asked takes nothing");
    desk.gate.approve(&approval.id, &person("tom").role("treasurer")).await.unwrap();
    assert!(desk.pays("abroad", 200).await);
    assert_eq!(desk.left().await.0, Some(0));
    assert_eq!(desk.gate.approval(&approval.id, &mia()).await.unwrap().unwrap().state_at(desk.gate.now()), "used");
}

#[tokio::test]
async fn the_approval_of_the_exact_call_is_used_before_a_standing_grant() {
    let desk = Desk::new();
    assert!(!desk.pays("a", 200).await);
    let approval = desk.gate.approvals(&mia()).await.unwrap().remove(0);
    desk.gate.approve(&approval.id, &mia()).await.unwrap();
    desk.grant(large(Some(1), None)).await;
    assert!(desk.pays("a", 200).await);
    assert_eq!(desk.left().await.0, Some(1));
}

#[tokio::test]
async fn what_did_not_happen_is_given_back_and_what_nobody_knows_is_kept() {
    let desk = Desk::new();
    desk.grant(large(Some(1), Some(500))).await;
    assert_eq!(desk.pay(&alice(), "nobody", 200).await.effect(), Effect::None);
    assert_eq!(desk.left().await, (Some(1), Some(500), StandingState::Active));
    assert_eq!(desk.pay(&alice(), "somebody", 200).await.effect(), Effect::Unknown);
    assert_eq!(desk.left().await, (Some(0), Some(300), StandingState::UsedUp));
}

#[tokio::test]
async fn of_many_calls_at_once_so_many_run_as_it_says() {
    let folder = tempfile::tempdir().unwrap();
    for store in [Store::memory(), Store::sqlite(folder.path().join("ledger.db")).unwrap()] {
        let desk = Desk::over(store, POLICIES);
        desk.grant(large(Some(3), None)).await;
        let calls = (0..12_u64).map(|n| {
            let (gate, arguments) = (desk.gate.clone(), json!({"to": format!("shop {n}"), "cents": 200}).to_string());
            // Each in a run of its own, and so on a lane of its own.
            let session = alice().in_run(format!("run {n}"));
            tokio::spawn(async move { gate.call(Call::new("call_1", "pay", arguments), &session).await.unwrap() })
        });
        let calls: Vec<_> = calls.collect();
        let mut ran = 0;
        for call in calls {
            let reply = call.await.unwrap();
            ran += usize::from(reply.is_ok());
            let turned_down = [Some(Code::ApprovalRequired), Some(Code::InProgress)].contains(&reply.code());
            assert!(reply.is_ok() || turned_down, "{reply:?}");
        }
        assert_eq!((ran, desk.bank.runs.load(Ordering::SeqCst)), (3, 3));
        assert_eq!(desk.left().await.0, Some(0));
    }
}

#[tokio::test]
async fn a_standing_grant_ends_at_its_moment_and_when_it_is_revoked() {
    let desk = Desk::new();
    let id = desk.grant(large(Some(9), None)).await;
    let revoked = desk.gate.revoke_standing(&id, &mia()).await.unwrap();
    assert_eq!((revoked.state, revoked.left.calls), (StandingState::Revoked, Some(9)));
    assert!(!desk.pays("a", 200).await);
    assert_eq!(desk.gate.revoke_standing(&id, &mia()).await.unwrap_err().why, Refused::Missing);
    desk.grant(large(Some(9), None)).await;
    desk.clock.advance(HOUR - Duration::from_millis(1));
    assert!(desk.pays("b", 200).await);
    desk.clock.advance(Duration::from_millis(1));
    assert!(!desk.pays("c", 200).await);
    assert!(desk.gate.standing_grants(&mia()).await.unwrap().is_empty());
    assert_eq!(desk.records("standing_revoked", 2).await.len(), 2, "the one that counted, and the one that did not");
}

#[tokio::test]
async fn a_standing_grant_counts_only_while_whoever_gave_it_could_give_it() {
    let desk = Desk::new();
    desk.grant(large(Some(9), None)).await;
    *desk.people.0.lock().unwrap() = Some(BTreeSet::from(["manager".to_owned()]));
    assert!(desk.pays("a", 200).await);
    *desk.people.0.lock().unwrap() = Some(BTreeSet::new());
    assert!(!desk.pays("b", 200).await);
    assert_eq!(desk.left().await.2, StandingState::GiverWithoutRole);
}

#[tokio::test]
async fn other_policies_and_another_contract_void_it() {
    let store = Store::memory();
    let desk = Desk::over(store.clone(), POLICIES);
    desk.grant(large(Some(9), None)).await;
    assert!(desk.pays("a", 200).await);
    let edited = Desk::over(store.clone(), &POLICIES.replace("cents > 100", "cents > 101"));
    assert!(!edited.pays("b", 200).await);
    assert_eq!(edited.left().await.2, StandingState::OtherPolicies);

    let mut contract = Map::new();
    contract.insert("description".into(), json!("Pays. Moves much money."));
    contract.insert("effect".into(), json!("write"));
    contract.insert(
        "input".into(),
        json!({"properties": {"to": {"type": "string"}, "cents": {"type": "integer", "minimum": 0}}}),
    );
    let pay = Tool::new("pay", contract, Arc::<Bank>::default() as Arc<dyn Backend>);
    let look = json!({"description": "Looks.", "effect": "read", "input": {"properties": {}}});
    let look = Tool::new("look", look.as_object().unwrap().clone(), Arc::<Bank>::default() as Arc<dyn Backend>);
    let clock = Arc::clone(&desk.clock);
    let gate = Gate::builder().policy(POLICIES).tool(pay).tool(look).store(store).clock(clock as _).build().unwrap();
    let reply = gate.call(Call::new("call_1", "pay", r#"{"to":"c","cents":200}"#), &alice()).await.unwrap();
    assert_eq!(reply.code(), Some(Code::ApprovalRequired));
    assert_eq!(gate.standing_grants(&mia()).await.unwrap()[0].state, StandingState::OtherContract);
}

#[tokio::test]
async fn only_another_person_with_the_role_gives_it_and_only_within_bounds() {
    let desk = Desk::new();
    let refused =
        async |asked: Granting, by: Session| -> NotGranted { desk.gate.grant_standing(&asked, &by).await.unwrap_err() };
    let odd = Granting { rule: "pay.odd".into(), ..large(Some(1), None) };
    for (asked, by, why, told) in [
        (large(Some(1), None), person("bob"), Refused::NotYours, "the role manager"),
        (large(Some(1), None), alice().role("manager"), Refused::NotYours, "their own calls"),
        (odd, mia(), Refused::Unfit, "own confirmation"),
        (Granting { rule: "pay.lage".into(), ..large(Some(1), None) }, mia(), Refused::Unfit, "no rule"),
        (Granting { tool: "pai".into(), ..large(Some(1), None) }, mia(), Refused::Unfit, "no tool"),
        (large(None, None), mia(), Refused::Unfit, "a bound"),
        (large(Some(0), None), mia(), Refused::Unfit, "from 1"),
        (large(Some(u64::MAX), None), mia(), Refused::Unfit, "from 1"),
        (Granting { of: Some("/note".into()), ..large(None, Some(1)) }, mia(), Refused::Unfit, "whole numbers"),
        (Granting { of: Some("/nothing".into()), ..large(None, Some(1)) }, mia(), Refused::Unfit, "no argument"),
        (Granting { of: Some("/cents".into()), ..large(Some(1), None) }, mia(), Refused::Unfit, "not how much"),
        (Granting { of: None, ..large(None, Some(1)) }, mia(), Refused::Unfit, "which argument"),
        (Granting { lasts: Duration::ZERO, ..large(Some(1), None) }, mia(), Refused::Unfit, "30 days"),
        (Granting { lasts: HOUR * 24 * 31, ..large(Some(1), None) }, mia(), Refused::Unfit, "30 days"),
    ] {
        let not = refused(asked.clone(), by).await;
        assert_eq!(not.why, why, "{asked:?}: {not}");
        assert!(not.to_string().contains(told), "{asked:?}: {not}");
    }
    assert!(desk.gate.standing_grants(&mia()).await.unwrap().is_empty());
    assert_eq!(desk.records("standing_grant", 14).await.len(), 14, "each is on record");
    let near = refused(Granting { rule: "pay.lage".into(), ..large(Some(1), None) }, mia()).await;
    assert_eq!(near.advice(), Some("did you mean pay.large?"));

    let id = desk.grant(large(Some(1), None)).await;
    let stranger = Session::new(Principal::new("local", "eve"), "globex").role("manager");
    assert_eq!(desk.gate.revoke_standing(&id, &stranger).await.unwrap_err().why, Refused::Missing);
    assert_eq!(desk.gate.revoke_standing(&id, &person("bob")).await.unwrap_err().why, Refused::NotYours);
    assert!(desk.gate.standing_grants(&stranger).await.unwrap().is_empty());
    desk.gate.revoke_standing(&id, &person("max").role("manager")).await.unwrap();
}

#[tokio::test]
async fn a_dry_run_says_that_a_standing_grant_would_be_used_and_takes_nothing() {
    let desk = Desk::new();
    let id = desk.grant(large(Some(1), None)).await;
    let call = Call::new("call_1", "pay", r#"{"to":"a","cents":200}"#);
    let reply = desk.gate.dry_run(call, &alice()).await.unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(reply.result().unwrap()).unwrap(),
        json!({"would": "run", "standing": [id]})
    );
    assert_eq!(desk.left().await.0, Some(1));
}

#[tokio::test]
async fn a_read_draws_on_a_standing_grant_too() {
    let desk = Desk::new();
    desk.grant(Granting { tool: "look".into(), rule: "pay.look".into(), ..large(Some(1), None) }).await;
    let look = async || desk.gate.call(Call::new("call_1", "look", "{}"), &alice()).await.unwrap();
    assert!(look().await.is_ok());
    assert_eq!(look().await.code(), Some(Code::ApprovalRequired));
}

/// A look-up in the middle of which somebody takes the grant back.
#[derive(Default)]
struct Meddler {
    desk: OnceLock<(Gate, String)>,
}

impl Backend for Meddler {
    fn run(&self, _: Dispatch) -> Running<'_> {
        Box::pin(async { Answer::done(r#"{"open":true}"#) })
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        Box::pin(async {
            if let Some((gate, id)) = self.desk.get() {
                let _ = gate.revoke_standing(id, &mia()).await;
            }
            Found::Found(br#"{"open":true}"#.to_vec())
        })
    }
}

#[tokio::test]
async fn a_standing_grant_that_is_revoked_while_the_call_is_decided_covers_it_no_more() {
    let (bank, meddler) = (Arc::<Bank>::default(), Arc::<Meddler>::default());
    let keys = |value: Value| value.as_object().unwrap().clone();
    let pay = keys(json!({
        "description": "Pays. Moves money.", "effect": "write",
        "input": {"properties": {"to": {"type": "string"}, "cents": {"type": "integer", "minimum": 0}}},
        "facts": {"till": {"tool": "till", "args": {}}},
    }));
    let till = keys(json!({
        "description": "Looks whether the till is open.", "effect": "read", "input": {"properties": {}},
        "output": {"type": "object", "properties": {"open": {"type": "boolean"}}, "required": ["open"]},
    }));
    let policies = r#"
        permit (principal, action, resource);
        @id("pay.large") @message("Large payments need a manager.") @approvers("manager")
        forbid (principal, action == Action::"pay", resource)
        when {
            context.input has cents && context.input.cents > 100
            && context.facts has till && context.facts.till has open && context.facts.till.open
        } unless { context.approved };
    "#;
    let gate = Gate::builder()
        .tool(Tool::new("pay", pay, Arc::clone(&bank) as Arc<dyn Backend>))
        .tool(Tool::new("till", till, Arc::clone(&meddler) as Arc<dyn Backend>))
        .policy(policies)
        .store(Store::memory())
        .build()
        .unwrap();
    let id = gate.grant_standing(&large(Some(1), None), &mia()).await.unwrap().grant.id;
    let _ = meddler.desk.set((gate.clone(), id));
    let reply = gate.call(Call::new("call_1", "pay", r#"{"to":"a","cents":200}"#), &alice()).await.unwrap();
    assert_eq!(reply.code(), Some(Code::ApprovalRequired), "{reply:?}");
    assert_eq!(bank.runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_tool_that_the_giver_cannot_see_is_as_absent_and_its_rules_are_no_hint() {
    let desk = Desk::over(
        Store::memory(),
        &format!("{POLICIES}\n@id(\"none\") forbid (principal, action == Action::\"pay\", resource);"),
    );
    let bob = person("bob");
    assert!(desk.gate.tools(&bob).iter().all(|tool| tool.name() != "pay"));
    let not = async |tool: &str, rule: &str, by: &Session| {
        let asked = Granting { tool: tool.into(), rule: rule.into(), ..large(Some(1), None) };
        desk.gate.grant_standing(&asked, by).await.unwrap_err()
    };
    let (hidden, absent) = (not("pay", "pay.large", &bob).await, not("pey", "pay.large", &bob).await);
    assert_eq!((hidden.why, hidden.to_string()), (absent.why, absent.to_string()));
    assert_eq!(hidden.advice(), absent.advice());
    assert!(!format!("{:?}", hidden.advice()).contains("pay"), "{:?}", hidden.advice());
    let odd = not("pay", "pay.lage", &mia()).await;
    assert_eq!(odd.advice(), Some("did you mean pay.large?"), "whoever answers its rules knows them");
}

#[tokio::test]
async fn nothing_is_granted_to_a_name_that_nobody_can_have_or_that_reads_as_another() {
    let desk = Desk::new();
    for name in ["", " ", "ali\u{202e}ce", "alice\n", "al\u{200b}ice", "\u{7}alice"] {
        let asked = Granting { to: Principal::new("local", name), ..large(Some(1), None) };
        let not = desk.gate.grant_standing(&asked, &mia()).await.unwrap_err();
        assert_eq!(not.why, Refused::Unfit, "{name:?}");
    }
}
