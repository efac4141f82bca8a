//! The real gate that the model is held against, and what surrounds it.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::model::{ASKED_FOR, GRANTED_FOR, GUEST_ROLES, LAWS, PEOPLE, Person, Proposal, TENANTS, TOOLS};
use crate::Call;
use crate::backend::{Answer, Backend, Dispatch, Failure, FailureKind, Found, Looking, Lookup, Running};
use crate::clock::{Clock, ManualClock, Millis};
use crate::contract::Tool;
use crate::gate::Gate;
use crate::ledger::Store;
use crate::refusal::{Code, Effect};
use crate::session::{Principal, Session, Standing};

/// The texts of the laws, in their order.
pub(super) const TEXTS: [&str; LAWS.len()] = [
    r#"
    permit (principal in Role::"support", action in Action::"write", resource) when { context.input.cents <= 9000 };
    @id("large") @message("A manager must agree.") @approvers("manager")
    forbid (principal, action in Action::"write", resource) when { context.input.cents > 5000 } unless { context.approved };
    "#,
    // The same in other words, and so other policies.
    r#"
    permit (principal in Role::"support", action in Action::"write", resource) when { context.input.cents <= 9000 };
    @id("large") @message("Ask a manager.") @approvers("manager")
    forbid (principal, action in Action::"write", resource) when { context.input.cents > 5000 } unless { context.approved };
    "#,
    r#"
    permit (principal in Role::"support", action in Action::"write", resource) when { context.input.cents <= 9000 };
    @id("large") @message("A manager must agree.") @approvers("manager")
    forbid (principal, action in Action::"write", resource) when { context.input.cents > 1000 } unless { context.approved };
    @id("huge") @message("An auditor must agree.") @approvers("auditor")
    forbid (principal, action in Action::"write", resource) when { context.input.cents > 5000 && !context.approved };
    "#,
    r#"
    permit (principal in Role::"support", action in Action::"write", resource) when { context.input.cents <= 9000 };
    @id("cap") @message("Nobody pays that much.")
    forbid (principal, action in Action::"write", resource) when { context.input.cents > 8000 };
    @id("large") @message("A manager must agree.") @approvers("manager")
    forbid (principal, action in Action::"write", resource) when { context.input.cents > 5000 } unless { context.approved };
    "#,
    r#"
    permit (principal in Role::"manager", action in Action::"write", resource);
    @id("large") @message("A manager must agree.") @approvers("manager")
    forbid (principal, action in Action::"write", resource) when { context.input.cents > 5000 } unless { context.approved };
    "#,
    r#"
    permit (principal in Role::"support", action in Action::"write", resource) when { context.input.cents <= 9000 };
    @id("large") @message("A manager must agree.") @approvers("manager")
    forbid (principal, action in Action::"write", resource) when { context.input.cents > 5000 } unless { context.approved };
    @id("sure") @message("Are you sure?") @approvers("self")
    forbid (principal, action in Action::"write", resource) when { context.input.cents > 1000 } unless { context.approved };
    "#,
];

/// How many editions of the contracts there are.
pub(super) const EDITIONS: usize = 2;

/// Money that is paid or not, and how often it was tried.
#[derive(Default)]
struct Bank {
    runs: AtomicUsize,
    fails: AtomicBool,
}

impl Backend for Bank {
    fn run(&self, _: Dispatch) -> Running<'_> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let answer = match self.fails.load(Ordering::SeqCst) {
            true => Answer::failed(Effect::None, Failure::new(FailureKind::Reported, "closed", "the bank is closed")),
            false => Answer::done("{}"),
        };
        Box::pin(async move { answer })
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        Box::pin(async { Found::Absent })
    }
}

/// The roles of today, by person and tenant; of a guest nothing is known.
#[derive(Default)]
struct Roles(Mutex<BTreeMap<(Principal, String), BTreeSet<String>>>);

impl Standing for Roles {
    fn roles(&self, principal: &Principal, tenant: &str) -> Option<BTreeSet<String>> {
        self.0.lock().unwrap().get(&(principal.clone(), tenant.to_owned())).cloned()
    }
}

/// Gates of every law and every edition over one store.
pub(super) struct World {
    gates: Vec<Gate>,
    bank: Arc<Bank>,
    clock: Arc<ManualClock>,
    roles: Arc<Roles>,
    law: Cell<usize>,
    edition: Cell<usize>,
    histories: Cell<usize>,
    calls: Cell<usize>,
}

impl World {
    pub(super) fn new() -> Self {
        let (store, bank, roles) = (Store::memory(), Arc::<Bank>::default(), Arc::<Roles>::default());
        let clock = Arc::new(ManualClock::at(Millis(1_000_000_000_000)));
        let gates = (0..LAWS.len() * EDITIONS).map(|place| {
            let (law, edition) = (place / EDITIONS, place % EDITIONS);
            let tools = (0..TOOLS).map(|tool| {
                let keys = json!({
                    "description": format!("Pays, in edition {edition}. Moves money."), "effect": "write",
                    "once": {"retain": "60d"},
                    "input": {"properties": {"cents": {"type": "integer"}}, "required": ["cents"]},
                });
                Tool::new(format!("pay_{tool}"), object(keys), Arc::clone(&bank) as Arc<dyn Backend>)
            });
            let builder = tools.fold(Gate::builder(), |builder, tool| builder.tool(tool));
            let built = builder
                .policy(TEXTS[law])
                .store(store.clone())
                .clock(Arc::clone(&clock) as Arc<dyn Clock>)
                .standing(Arc::clone(&roles) as Arc<dyn Standing>)
                .approvals_expire(Duration::from_millis(ASKED_FOR), Duration::from_millis(GRANTED_FOR))
                .build();
            built.unwrap_or_else(|error| panic!("{error}"))
        });
        Self {
            gates: gates.collect(),
            bank,
            clock,
            roles,
            law: Cell::new(0),
            edition: Cell::new(0),
            histories: Cell::new(0),
            calls: Cell::new(0),
        }
    }

    /// Begins a history in tenants of its own, with the roles that everybody has at first.
    pub(super) fn begin(&self) -> [String; TENANTS] {
        let number = self.histories.get();
        self.histories.set(number + 1);
        self.law.set(0);
        self.edition.set(0);
        self.set_fails(false);
        let tenants = std::array::from_fn(|tenant| format!("tenant_{number}_{tenant}"));
        for tenant in &tenants {
            for who in PEOPLE {
                for role in who.first_roles() {
                    self.set_role(who, tenant, role, true);
                }
            }
        }
        tenants
    }

    /// Whether another history fits.
    pub(super) fn has_room(&self) -> bool {
        self.histories.get() < 30
    }

    /// The gate of the law and the edition that hold.
    pub(super) fn gate(&self) -> &Gate {
        &self.gates[self.law.get() * EDITIONS + self.edition.get()]
    }

    pub(super) fn set_law(&self, law: usize) {
        self.law.set(law);
    }

    pub(super) fn set_edition(&self, edition: usize) {
        self.edition.set(edition);
    }

    pub(super) fn set_fails(&self, fails: bool) {
        self.bank.fails.store(fails, Ordering::SeqCst);
    }

    pub(super) fn set_role(&self, who: Person, tenant: &str, role: &str, has: bool) {
        if who == Person::Guest {
            return;
        }
        let mut all = self.roles.0.lock().unwrap();
        let roles = all.entry((principal(who), tenant.to_owned())).or_default();
        if has {
            roles.insert(role.to_owned());
        } else {
            roles.remove(role);
        }
    }

    pub(super) fn wait(&self, span: Duration) {
        self.clock.advance(span);
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.now().0
    }

    /// How often something was tried at the bank.
    pub(super) fn runs(&self) -> usize {
        self.bank.runs.load(Ordering::SeqCst)
    }

    /// The session of a person with the roles of today, or those that a guest's token says.
    pub(super) fn session(&self, who: Person, tenants: &[String; TENANTS], tenant: usize) -> Session {
        let principal = principal(who);
        let roles = self.roles.roles(&principal, &tenants[tenant]);
        let roles = roles.unwrap_or_else(|| GUEST_ROLES.iter().map(ToString::to_string).collect());
        roles.into_iter().fold(Session::new(principal, tenants[tenant].clone()), Session::role)
    }

    /// What becomes of a call, in the model's words, and the approval that it waits for.
    pub(super) async fn call(
        &self,
        proposal: Proposal,
        approval: Option<&str>,
        tenants: &[String; TENANTS],
    ) -> (&'static str, Option<String>) {
        // Each in a run of its own, so that nobody is taken for one who tries the locks.
        self.calls.set(self.calls.get() + 1);
        let session = self.session(proposal.who, tenants, proposal.tenant).in_run(format!("run_{}", self.calls.get()));
        let arguments = json!({"cents": proposal.cents}).to_string();
        let call = Call::new("call_1", format!("pay_{}", proposal.tool), arguments);
        let call = match approval {
            Some(id) => call.approval(id),
            None => call,
        };
        let reply = self.gate().call(call, &session).await.unwrap();
        let name = match reply.code() {
            None if reply.replayed() => "replayed",
            None => "ran",
            Some(Code::ToolFailed) => "failed",
            Some(Code::Forbidden | Code::UnknownTool) => "denied",
            Some(Code::RuleFailed) => "rule",
            Some(Code::ApprovalRequired) => "asked",
            Some(Code::ApprovalInvalid) => "approval invalid",
            Some(code) => code.as_str(),
        };
        let waits = reply.refusal().and_then(|refusal| refusal.approval_notice()).map(|notice| notice.id.clone());
        (name, waits)
    }
}

fn principal(who: Person) -> Principal {
    match who {
        Person::Alice => Principal::new("local", "alice"),
        Person::Bob => Principal::new("local", "bob"),
        Person::Mia => Principal::new("local", "mia"),
        Person::Guest => Principal::new("https://elsewhere.example", "guest"),
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => panic!("an object"),
    }
}
