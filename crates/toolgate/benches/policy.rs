//! How much one verdict costs beside the bare calls of `cedar-policy` for the same, and whether it costs more among many.
//!
//! The verdict is that on the shop's refund, with four policies in its slice: entities, context, request, evaluation and
//! what Cedar says of it. The bare calls make the same entities, the same context and the same request by Cedar's own
//! interface, of values that are known by name beforehand, and read the same diagnostics. All take turns in one run.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench may panic, and prints what it finds"
)]

mod turns;

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::hint::black_box;
use std::str::FromStr;
use std::time::Duration;

use cedar_policy::{
    Authorizer, Context, Decision, Entities, Entity, EntityId, EntityTypeName, EntityUid, PolicySet, Request,
    RestrictedExpression,
};
use criterion::Criterion;
use serde_json::{Map, Value, json};
use toolgate::policy_door::{Declared, Judge, Question, Said};
use toolgate::session::{Principal, Session};
use turns::{Work, each, medians};

/// What a verdict may cost, in bare verdicts.
const GOAL: f64 = 1.3;
/// What a verdict among two thousand policies may cost, in verdicts among four.
const FLAT: f64 = 1.2;
/// Tools of the large gate, with four policies each.
const MANY: usize = 500;
const APPROVAL: &str = "context.input.amount_cents > 5000";

/// One thing that is measured.
struct Part {
    name: &'static str,
    run: Work,
}

fn main() {
    let mut parts = parts();
    // With a filter, as a test or under a profiler only criterion is asked.
    let measured =
        std::env::args().skip(1).eq(["--bench"]).then(|| medians(parts.iter_mut().map(|part| &mut part.run)));
    let mut criterion = Criterion::default().without_plots().configure_from_args();
    let mut group = criterion.benchmark_group("policy");
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for part in &mut parts {
        group.bench_function(part.name, |bencher| bencher.iter_custom(|times| (part.run)(times)));
    }
    group.finish();
    criterion.final_summary();
    if let Some(nanos) = measured {
        report(&parts, &nanos);
    }
}

const VERDICT: &str = "verdict";
const BARE: &str = "bare: all entities made";
const BARE_ADDED: &str = "bare: entities added to made ones";
const BARE_MADE: &str = "bare: entities ready made";
const ASKED: &str = "verdict: needs approval";
const BARE_ASKED: &str = "bare: two evaluations";
const SAME_OF_MANY: &str = "verdict: one of 500 tools";
const EACH_OF_MANY: &str = "verdict: each of 500 tools in turn";
const BARE_EACH_OF_MANY: &str = "bare: each of 500 sets of policies in turn";

fn report(parts: &[Part], nanos: &[f64]) {
    println!("\n{:<44}{:>10}", "median of interleaved batches", "us");
    for (part, nanos) in parts.iter().zip(nanos) {
        println!("{:<44}{:>10.2}", part.name, nanos / 1e3);
    }
    let of = |name: &str| parts.iter().zip(nanos).find(|(part, _)| part.name == name).map(|(_, nanos)| *nanos).unwrap();
    // The cheaper way to make the entities is the one that is held against.
    let bare = of(BARE).min(of(BARE_ADDED));
    println!();
    println!("verdict / bare calls: {:.2} (at most {GOAL} is the goal)", of(VERDICT) / bare);
    println!("verdict that needs approval / two bare evaluations: {:.2}", of(ASKED) / of(BARE_ASKED));
    println!("among 2,000 policies / among 4: {:.2} (at most {FLAT} is the goal)", of(SAME_OF_MANY) / of(VERDICT));
    println!("each of 500 tools in turn / bare calls of the same: {:.2}", of(EACH_OF_MANY) / of(BARE_EACH_OF_MANY));
}

fn parts() -> Vec<Part> {
    let shop: &'static Shop = Box::leak(Box::new(Shop::new()));
    let bare: &'static Bare = Box::leak(Box::new(Bare::new(shop, "create_refund")));
    let one: &'static Judge = Box::leak(Box::new(judge(&["create_refund".to_owned()])));
    let names: &'static [String] = Box::leak((0..MANY).map(|n| format!("create_refund_{n:03}")).collect());
    let many: &'static Judge = Box::leak(Box::new(judge(names)));
    assert_eq!((one.count(), many.count()), (4, 4 * MANY));
    let named: &'static str = names.get(321).unwrap();
    let bares: &'static [Bare] = Box::leak(names.iter().map(|name| Bare::new(shop, name)).collect());
    let (turn, bare_turn) = (Cell::new(0), Cell::new(0));
    let small = &shop.small;
    vec![
        part(VERDICT, move || shop.permitted(one, "create_refund")),
        part(BARE, || bare.permits(small, &bare.all_entities())),
        part(BARE_ADDED, || bare.permits(small, &bare.added_entities())),
        part(BARE_MADE, || bare.permits(small, &bare.made)),
        part(ASKED, move || {
            assert_eq!(one.judge(&shop.question("create_refund", &shop.large)), Said::NeedsApproval);
        }),
        part(BARE_ASKED, || bare.asks(&shop.large)),
        part(SAME_OF_MANY, move || shop.permitted(many, named)),
        part(EACH_OF_MANY, move || {
            turn.set((turn.get() + 1) % MANY);
            shop.permitted(many, names.get(turn.get()).unwrap());
        }),
        part(BARE_EACH_OF_MANY, move || {
            bare_turn.set((bare_turn.get() + 1) % MANY);
            let bare = bares.get(bare_turn.get()).unwrap();
            bare.permits(small, &bare.added_entities())
        }),
    ]
}

fn part<T>(name: &'static str, work: impl Fn() -> T + 'static) -> Part {
    Part { name, run: each(work) }
}

// What is judged.

/// The call, the session and the facts.
struct Shop {
    session: Session,
    small: Map<String, Value>,
    large: Map<String, Value>,
    facts: Map<String, Value>,
}

impl Shop {
    fn new() -> Self {
        let refund = |cents: i64| {
            object(json!({"order_id": "ord_1001", "amount_cents": cents, "currency": "USD", "reason": "damaged"}))
        };
        Self {
            session: Session::new(Principal::new("local", "alice"), "acme").role("support"),
            small: refund(1500),
            large: refund(8000),
            facts: object(json!({"order": {"id": "ord_1001", "tenant": "acme", "total_cents": 12_000,
                "refunded_cents": 2000, "left_cents": 10_000, "currency": "USD"}})),
        }
    }

    fn question<'a>(&'a self, tool: &'a str, arguments: &'a Map<String, Value>) -> Question<'a> {
        Question { tool, session: &self.session, arguments, facts: &self.facts, resource: Some("ord_1001") }
    }

    fn permitted(&self, judge: &Judge, tool: &str) {
        let said = judge.judge(&black_box(self.question(tool, &self.small)));
        assert_eq!(said, Said::Permitted, "the call that is measured is permitted");
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => panic!("an object"),
    }
}

/// The policies of the shop that judge refunds, without the contract's `approval`.
fn policies(tool: &str) -> String {
    format!(
        r#"
        @id("{tool}.support")
        permit (principal in Role::"support", action == Action::"{tool}", resource);
        @id("{tool}.exceeds_balance")
        @message("Only {{fact.order/left_cents}} of the {{fact.order/total_cents}} cents of this order are left to refund.")
        @fix("user")
        forbid (principal, action == Action::"{tool}", resource)
        when {{ context.input.amount_cents > context.facts.order.left_cents }};
        @id("{tool}.currency")
        @message("A refund is paid in the currency of its order.")
        forbid (principal, action == Action::"{tool}", resource)
        when {{ context.input.currency != context.facts.order.currency }};
        "#
    )
}

/// What the contract's `approval` is short for.
fn approval(tool: &str) -> String {
    format!(
        r#"@id("{tool}.approval") @approvers("manager")
        forbid (principal, action == Action::"{tool}", resource) when {{ {APPROVAL} }} unless {{ context.approved }};"#
    )
}

fn judge(names: &[String]) -> Judge {
    let text = names.iter().fold(String::new(), |mut text, name| {
        let _ = write!(text, "{}", policies(name));
        text
    });
    let input = json!({
        "type": "object",
        "properties": {
            "order_id": { "type": "string", "pattern": "^ord_[A-Za-z0-9]+$", "maxLength": 40 },
            "amount_cents": { "type": "integer", "minimum": 1, "maximum": 100_000 },
            "currency": { "enum": ["USD"] },
            "reason": { "enum": ["duplicate", "customer_request", "damaged", "other"] },
        },
        "required": ["order_id", "amount_cents", "currency", "reason"],
    });
    let order = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string" }, "tenant": { "type": "string" }, "total_cents": { "type": "integer" },
            "refunded_cents": { "type": "integer" }, "left_cents": { "type": "integer" }, "currency": { "enum": ["USD"] },
        },
        "required": ["id", "tenant", "total_cents", "refunded_cents", "left_cents", "currency"],
    });
    let tags = ["refunds".to_owned()];
    let tools: Vec<Declared<'_>> = names
        .iter()
        .map(|name| Declared {
            name,
            write: true,
            tags: &tags,
            input: &input,
            fact: Some(("order", &order)),
            resource: Some("Order"),
            approval: Some((APPROVAL, "manager")),
        })
        .collect();
    Judge::new(&text, &tools).unwrap_or_else(|faults| panic!("{faults}"))
}

// The bare calls.

struct Bare {
    facts: Map<String, Value>,
    kinds: [EntityTypeName; 4],
    user: String,
    action: EntityUid,
    groups: HashSet<EntityUid>,
    policies: PolicySet,
    /// The action in its groups.
    fixed: Entities,
    /// All entities of the request.
    made: Entities,
    authorizer: Authorizer,
}

impl Bare {
    fn new(shop: &Shop, tool: &str) -> Self {
        let kind = |name: &str| EntityTypeName::from_str(name).unwrap();
        let action = |name: &str| EntityUid::from_type_name_and_id(kind("Action"), EntityId::new(name));
        let groups: HashSet<EntityUid> = [action("write"), action("tag:refunds")].into();
        let text = format!("{}{}", policies(tool), approval(tool));
        let fixed = Entities::from_entities([Entity::new_no_attrs(action(tool), groups.clone())], None);
        let mut bare = Self {
            facts: shop.facts.clone(),
            kinds: ["User", "Role", "Tenant", "Order"].map(kind),
            user: Principal::new("local", "alice").canonical(),
            action: action(tool),
            groups,
            policies: PolicySet::from_str(&text).unwrap(),
            fixed: fixed.unwrap(),
            made: Entities::empty(),
            authorizer: Authorizer::new(),
        };
        bare.made = bare.all_entities();
        bare
    }

    /// The user in a role and a tenant, and the order in its tenant.
    fn own_entities(&self) -> [Entity; 2] {
        let [user, role, tenant, order] = &self.kinds;
        let one = |kind: &EntityTypeName, id: &str| EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id));
        let tenant = one(tenant, "acme");
        [
            Entity::new_no_attrs(one(user, &self.user), [one(role, "support"), tenant.clone()].into()),
            Entity::new_no_attrs(one(order, "ord_1001"), [tenant].into()),
        ]
    }

    fn all_entities(&self) -> Entities {
        let action = Entity::new_no_attrs(self.action.clone(), self.groups.clone());
        Entities::from_entities(self.own_entities().into_iter().chain([action]), None).unwrap()
    }

    fn added_entities(&self) -> Entities {
        self.fixed.clone().add_entities(self.own_entities(), None).unwrap()
    }

    /// The members that the policies read, as the gate passes them.
    fn context(&self, arguments: &Map<String, Value>, approved: bool) -> Context {
        let record = |pairs: Vec<(String, RestrictedExpression)>| RestrictedExpression::new_record(pairs).unwrap();
        let long = |value: &Value| RestrictedExpression::new_long(value.as_i64().unwrap());
        let text = |value: &Value| RestrictedExpression::new_string(value.as_str().unwrap().to_owned());
        let order = self.facts.get("order").and_then(Value::as_object).unwrap();
        let order = record(vec![
            ("currency".to_owned(), text(order.get("currency").unwrap())),
            ("left_cents".to_owned(), long(order.get("left_cents").unwrap())),
        ]);
        let input = record(vec![
            ("amount_cents".to_owned(), long(arguments.get("amount_cents").unwrap())),
            ("currency".to_owned(), text(arguments.get("currency").unwrap())),
        ]);
        Context::from_pairs([
            ("approved".to_owned(), RestrictedExpression::new_bool(approved)),
            ("facts".to_owned(), record(vec![("order".to_owned(), order)])),
            ("input".to_owned(), input),
        ])
        .unwrap()
    }

    fn request(&self, arguments: &Map<String, Value>, approved: bool) -> Request {
        let [user, _, _, order] = &self.kinds;
        let one = |kind: &EntityTypeName, id: &str| EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id));
        let context = self.context(arguments, approved);
        Request::new(one(user, &self.user), self.action.clone(), one(order, "ord_1001"), context, None).unwrap()
    }

    /// The decision, and the policies that made it.
    fn decide(&self, arguments: &Map<String, Value>, approved: bool, entities: &Entities) -> (Decision, Vec<String>) {
        let request = self.request(black_box(arguments), approved);
        let response = self.authorizer.is_authorized(&request, &self.policies, entities);
        assert_eq!(response.diagnostics().errors().count(), 0);
        (response.decision(), response.diagnostics().reason().map(ToString::to_string).collect())
    }

    fn permits(&self, arguments: &Map<String, Value>, entities: &Entities) -> Vec<String> {
        let (decision, reasons) = self.decide(arguments, false, entities);
        assert_eq!(decision, Decision::Allow, "the bare calls decide as the gate does");
        reasons
    }

    fn asks(&self, arguments: &Map<String, Value>) -> [Vec<String>; 2] {
        let entities = self.all_entities();
        let (denied, because) = self.decide(arguments, false, &entities);
        let (allowed, by) = self.decide(arguments, true, &entities);
        assert_eq!((denied, allowed), (Decision::Deny, Decision::Allow));
        [because, by]
    }
}
