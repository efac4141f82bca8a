//! `abuse.jsonl`, the surface of approvals: somebody's yes is changed, used again, carried elsewhere, or taken from a model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use toolgate::backend::{FakeTool, Step};
use toolgate::call::Call;
use toolgate::clock::{Clock, ManualClock, Millis};
use toolgate::json::Limits;
use toolgate::ledger::Store;
use toolgate::session::{Principal, Session, Standing};
use toolgate::wire::Dialect;
use toolgate::{Gate, Reply};

use super::{rows, tell};

/// What a row tells of, by its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    OtherArguments,
    UsedAgain,
    AtItsEnd,
    OtherContract,
    OtherFacts,
    OtherTenant,
    SaidByTheModel,
    FloodOfRequests,
    ApproverGone,
}

/// What the row's approval is, and one call that it is for.
const RIGHT: &str = r#"{"account":"acc_71","amount_minor":500}"#;

/// A gate over the contract of a row, with people whose roles can be taken away.
struct Desk {
    runtime: Runtime,
    store: Store,
    clock: Arc<ManualClock>,
    gone: Gone,
    payout: FakeTool,
    vendor: FakeTool,
    gate: Gate,
}

/// People who have lost their roles.
#[derive(Clone, Default)]
struct Gone(Arc<Mutex<BTreeSet<String>>>);

impl Standing for Gone {
    fn roles(&self, principal: &Principal, _: &str) -> Option<BTreeSet<String>> {
        self.0.lock().unwrap().contains(&principal.subject).then(BTreeSet::new)
    }
}

impl Desk {
    fn open(row: &Value, with_facts: bool) -> Self {
        let (store, clock, gone) = (Store::memory(), Arc::new(ManualClock::at(Millis(1_000_000))), Gone::default());
        let (payout, vendor) = (FakeTool::fixed(json!({})), FakeTool::queue([]));
        let vendor = if with_facts { FakeTool::queue(accounts()) } else { vendor };
        let gate = gate(row, &store, &clock, &gone, &payout, with_facts.then_some(&vendor), "version 7");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, store, clock, gone, payout, vendor, gate }
    }

    fn call(&self, who: &Session, arguments: &str, named: Option<&str>) -> Reply {
        let call = Call::new("call_1", "payout.create", arguments);
        let call = named.iter().fold(call, |call, id| call.approval(*id));
        self.runtime.block_on(self.gate.call(call, who)).unwrap()
    }

    /// `u_1` asks for the right call, and `u_2` approves it: the name of the grant.
    fn granted(&self) -> String {
        let asked = self.call(&person("u_1", "t_a"), RIGHT, None);
        let id = asked.refusal().unwrap().approval_notice().unwrap().id.clone();
        self.runtime.block_on(self.gate.approve(&id, &approver())).unwrap();
        id
    }

    fn state(&self, id: &str) -> String {
        let found = self.runtime.block_on(self.gate.approval(id, &person("u_1", "t_a"))).unwrap().unwrap();
        found.state_at(self.clock.now()).to_owned()
    }
}

fn accounts() -> Vec<Step> {
    // It is looked up once to ask, once more by the call that comes after the approval.
    let account = |account: &str| Step::gives(json!({ "bank_account": account }));
    vec![account("XX00TEST01"), account("XX00TEST99")]
}

fn gate(
    row: &Value,
    store: &Store,
    clock: &Arc<ManualClock>,
    gone: &Gone,
    payout: &FakeTool,
    vendor: Option<&FakeTool>,
    version: &str,
) -> Gate {
    let mut keys = json!({
        "description": format!("Pays out, {version}."), "effect": "write", "input": row["contract"]["schema"],
        "output": { "type": "object", "properties": {} },
        "approval": { "when": "true", "role": "approver", "message": "Payouts need another person." },
    });
    if vendor.is_some() {
        keys["facts"] = json!({ "vendor": { "tool": "vendor", "args": { "account": "{account}" } } });
    }
    let object = |keys: Value| -> Map<String, Value> { keys.as_object().unwrap().clone() };
    let ttl = Duration::from_secs(row["contract"]["approval"]["ttl_s"].as_u64().unwrap());
    let mut builder = Gate::builder().tool(payout.tool("payout.create", object(keys))).store(store.clone());
    if let Some(vendor) = vendor {
        let keys = json!({
            "description": "A vendor.", "effect": "read",
            "input": { "properties": { "account": { "type": "string", "maxLength": 12 } }, "required": ["account"] },
            "output": { "type": "object", "required": ["bank_account"],
                "properties": { "bank_account": { "type": "string", "maxLength": 20 } } },
        });
        let rule = "@id(\"payout.vendor\") @message(\"The account of the vendor is another one.\")
            forbid (principal, action == Action::\"payout.create\", resource)
            unless { context.facts has vendor && context.facts.vendor.bank_account == \"XX00TEST01\" };";
        builder = builder.tool(vendor.tool("vendor", object(keys))).policy(rule);
    }
    let builder = builder.policy("permit (principal, action, resource);").standing(Arc::new(gone.clone()));
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    builder.clock(clock).approvals_expire(ttl, ttl).build().unwrap_or_else(|error| panic!("{error}"))
}

fn person(name: &str, tenant: &str) -> Session {
    Session::new(Principal::new("local", name), tenant)
}

fn approver() -> Session {
    person("u_2", "t_a").role("approver")
}

fn kind(row: &Value) -> Option<Kind> {
    let text = format!("{} {} {}", row["given"], row["must"], row["input"]);
    let kinds = [
        ("used successfully once", Kind::UsedAgain),
        ("expiry is judged at dispatch", Kind::AtItsEnd),
        ("contract version 7", Kind::OtherContract),
        ("facts are fetched again", Kind::OtherFacts),
        ("belongs to tenant t_a", Kind::OtherTenant),
        ("_meta has no authority", Kind::SaidByTheModel),
        ("asks for 400 approvals", Kind::FloodOfRequests),
        ("approver standing is checked again", Kind::ApproverGone),
        ("digest differs", Kind::OtherArguments),
    ];
    kinds.into_iter().find(|(words, _)| text.contains(words)).map(|(_, kind)| kind)
}

/// An outcome of the corpus as the code that it is here.
fn code(outcome: &Value) -> Option<&str> {
    match outcome.as_str().unwrap() {
        "ok" => None,
        "invalid_args" => Some("invalid_arguments"),
        "budget_exceeded" => Some("limit_reached"),
        same => Some(same),
    }
}

fn came(reply: &Reply) -> Option<&'static str> {
    reply.code().map(toolgate::refusal::Code::as_str)
}

#[test]
fn every_abuse_of_an_approval_ends_as_it_should() {
    let mut counts = BTreeMap::new();
    for row in rows("abuse.jsonl").iter().filter(|row| row["surface"] == "approval") {
        let Some(kind) = kind(row) else { panic!("nothing here does row {}", row["id"]) };
        *counts.entry(format!("done: {kind:?}")).or_insert(0) += 1;
        done(row, kind);
    }
    tell("abuse, approvals", &counts);
}

fn done(row: &Value, kind: Kind) {
    let expected = &row["expect"]["outcome"];
    let (alice, id) = (person("u_1", "t_a"), &row["id"]);
    let desk = Desk::open(row, kind == Kind::OtherFacts);
    match kind {
        Kind::OtherArguments => {
            let granted = desk.granted();
            let reply = desk.call(&alice, &row["input"]["call"]["args"].to_string(), Some(&granted));
            assert_eq!(came(&reply), code(expected), "{id}");
            assert_eq!(desk.state(&granted), "granted", "{id}: it is left unused");
        }
        Kind::UsedAgain => {
            let granted = desk.granted();
            assert!(desk.call(&alice, RIGHT, Some(&granted)).is_ok());
            // The same call is the same action, which is answered from the ledger and not done again.
            let again = desk.call(&alice, RIGHT, Some(&granted));
            assert!(again.replayed(), "{id}: {again:?}");
            assert_eq!(desk.payout.calls().len(), 1, "{id}");
            let other = desk.call(&alice, r#"{"account":"acc_71","amount_minor":501}"#, Some(&granted));
            assert_eq!(came(&other), code(expected), "{id}");
        }
        Kind::AtItsEnd => {
            for (index, passed) in [599_900, 600_000, 599_900 + 5_000].into_iter().enumerate() {
                let desk = Desk::open(row, false);
                let granted = desk.granted();
                desk.clock.advance(Duration::from_millis(passed));
                let reply = desk.call(&alice, RIGHT, Some(&granted));
                assert_eq!(came(&reply), code(&expected[index]), "{id} variant {index}");
                let calls = usize::try_from(row["expect"]["backend_calls"][index].as_u64().unwrap()).unwrap();
                assert_eq!(desk.payout.calls().len(), calls, "{id} variant {index}");
            }
        }
        Kind::OtherContract => {
            let granted = desk.granted();
            let Desk { runtime, store, clock, gone, payout, .. } = desk;
            let gate = gate(row, &store, &clock, &gone, &payout, None, "version 8");
            let call = Call::new("call_1", "payout.create", RIGHT).approval(granted.as_str());
            let reply = runtime.block_on(gate.call(call, &alice)).unwrap();
            assert_eq!(came(&reply), code(expected), "{id}");
            assert!(payout.calls().is_empty(), "{id}");
        }
        Kind::OtherFacts => {
            let granted = desk.granted();
            let reply = desk.call(&alice, RIGHT, Some(&granted));
            assert_eq!(came(&reply), code(expected), "{id}");
            assert_eq!(desk.vendor.seen().len(), 2, "{id}: it is looked up again");
            assert!(desk.payout.calls().is_empty(), "{id}");
        }
        Kind::OtherTenant => {
            let granted = desk.granted();
            let foreign = person("u_1", "t_b");
            let told = |named: &str| {
                let mut shown = json!(desk.call(&foreign, RIGHT, Some(named)));
                assert!(!shown["error"]["ref"].take().is_null());
                shown.to_string()
            };
            let never = told("apr_01AAAAAAAAAAAAAAAAAAAAAAAA");
            assert!(never.contains(code(expected).unwrap()), "{id}: {never}");
            assert_eq!(told(&granted), never, "{id}");
            let read = |named: &str| desk.runtime.block_on(desk.gate.approval(named, &foreign)).unwrap().is_none();
            assert!(read(&granted) && read("apr_01AAAAAAAAAAAAAAAAAAAAAAAA"), "{id}");
        }
        Kind::SaidByTheModel => {
            let asked = desk.call(&alice, RIGHT, None);
            let pending = asked.refusal().unwrap().approval_notice().unwrap().id.clone();
            for (index, variant) in row["input"]["variants"].as_array().unwrap().iter().enumerate() {
                let call = &variant["call"];
                let mut params = json!({ "name": "payout.create", "arguments": call["args"] });
                if let Some(meta) = call.get("_meta") {
                    params["_meta"] = meta.clone();
                }
                let message =
                    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
                let dialect = Dialect::parse("mcp").unwrap();
                let turn = dialect.decode(message.as_bytes(), &Limits::default()).unwrap();
                let replies = desk.runtime.block_on(desk.gate.turn(turn.open().0, &alice));
                let reply = replies.into_iter().next().unwrap().unwrap();
                assert_eq!(came(&reply), code(&expected[index]), "{id} variant {index}");
                assert_eq!(desk.state(&pending), "pending", "{id} variant {index}");
            }
            assert!(desk.payout.calls().is_empty(), "{id}");
        }
        Kind::FloodOfRequests => {
            let asks = |amount: u32| {
                came(&desk.call(&alice, &json!({ "account": "acc_71", "amount_minor": amount }).to_string(), None))
            };
            let (asked, turned_away): (Vec<_>, Vec<_>) =
                (1..=400).map(asks).partition(|came| *came == Some("approval_required"));
            assert_eq!((asked.len(), turned_away.len()), (20, 380), "{id}");
            assert!(turned_away.iter().all(|came| *came == code(expected)), "{id}");
            let queue = desk.runtime.block_on(desk.gate.approvals(&approver())).unwrap();
            assert_eq!(queue.len(), 20, "{id}: the queue is what was asked");
        }
        Kind::ApproverGone => {
            let granted = desk.granted();
            desk.gone.0.lock().unwrap().insert("u_2".to_owned());
            assert_eq!(came(&desk.call(&alice, RIGHT, Some(&granted))), code(expected), "{id}");
            assert_eq!(came(&desk.call(&alice, RIGHT, None)), Some("approval_required"), "{id}: it is asked anew");
            assert!(desk.payout.calls().is_empty(), "{id}");
        }
    }
}
