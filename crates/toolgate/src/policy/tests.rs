//! The shop: orders are looked up, refunds are bounded by what is left, large ones need a manager.

use serde_json::json;

use super::*;
use crate::session::Principal;

/// What a tool of a test declares.
struct Declared {
    name: &'static str,
    write: bool,
    tags: Vec<String>,
    groups: Vec<String>,
    input: Value,
    facts: Vec<(&'static str, Value, bool)>,
    resource: Option<&'static str>,
    approval: Option<(&'static str, &'static str, Option<&'static str>)>,
    requires: Vec<String>,
    sink: Option<&'static str>,
    labels: BTreeSet<String>,
}

impl Declared {
    fn new(name: &'static str, write: bool, input: Value) -> Self {
        Self {
            name,
            write,
            tags: vec![],
            groups: vec![],
            input,
            facts: vec![],
            resource: None,
            approval: None,
            requires: vec![],
            sink: None,
            labels: BTreeSet::new(),
        }
    }

    fn as_tool(&self) -> PolicyTool<'_> {
        PolicyTool {
            name: self.name,
            write: self.write,
            tags: &self.tags,
            groups: &self.groups,
            input: &self.input,
            facts: self
                .facts
                .iter()
                .map(|(name, output, required)| FactShape { name, output, required: *required })
                .collect(),
            resource: self.resource,
            approval: self.approval.map(|(when, approvers, message)| ApprovalSugar {
                when,
                approvers: approvers.to_owned().into(),
                message,
            }),
            requires: &self.requires,
            sink: self.sink,
            labels: &self.labels,
        }
    }
}

fn order() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"}, "total_cents": {"type": "integer"}, "refunded_cents": {"type": "integer"},
            "left_cents": {"type": "integer"}, "currency": {"enum": ["USD"]}, "note": {"type": ["string", "null"]},
        },
        "required": ["id", "total_cents", "refunded_cents", "left_cents", "currency", "note"],
    })
}

fn get_order() -> Declared {
    Declared {
        resource: Some("Order"),
        facts: vec![("order", order(), true)],
        ..Declared::new(
            "get_order",
            false,
            json!({"properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}),
        )
    }
}

fn create_refund() -> Declared {
    let input = json!({
        "type": "object",
        "properties": {
            "order_id": {"type": "string"},
            "amount_cents": {"type": "integer", "minimum": 1, "maximum": 100_000},
            "currency": {"const": "USD"},
            "reason": {"enum": ["duplicate", "customer_request", "damaged", "other"]},
            "rate": {"type": "number"},
            "extra": {"type": ["string", "integer"]},
        },
        "required": ["order_id", "amount_cents", "currency", "reason"],
    });
    Declared {
        resource: Some("Order"),
        tags: vec!["refunds".into()],
        facts: vec![("order", order(), true)],
        approval: Some(("context.input.amount_cents > 5000", "manager", Some("Refunds above 50.00 need a manager."))),
        ..Declared::new("create_refund", true, input)
    }
}

const REFUNDS: &str = include_str!("tests/refunds.cedar");

fn compile(text: &str, tools: &[Declared]) -> Result<Policies, Vec<PolicyFault>> {
    let tools: Vec<PolicyTool<'_>> = tools.iter().map(Declared::as_tool).collect();
    Policies::compile(
        &[PolicySource { name: "policies/refunds.cedar", text }],
        &tools,
        Absent::Faulty(&BTreeSet::new()),
    )
}

fn shop() -> Policies {
    compile(REFUNDS, &[get_order(), create_refund()]).unwrap_or_else(|faults| panic!("{}", listed(&faults)))
}

fn listed(faults: &[PolicyFault]) -> String {
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

/// The faults of `text` over the shop's tools, as an operator reads them.
fn faults(text: &str) -> String {
    listed(&compile(text, &[get_order(), create_refund()]).expect_err("a fault"))
}

fn person(name: &str, roles: &[&str]) -> Session {
    roles.iter().fold(Session::new(Principal::new("local", name), "acme"), |session, role| session.role(*role))
}

fn alice() -> Session {
    person("alice", &["support"])
}

/// A refund of `amount` on an order with 2000 of 4000 cents left.
fn refund(policies: &Policies, session: &Session, amount: i64, left: i64) -> Judgement {
    judged(
        policies,
        session,
        &json!({"order_id": "ord_1", "amount_cents": amount, "currency": "USD", "reason": "other"}),
        left,
    )
}

fn judged(policies: &Policies, session: &Session, arguments: &Value, left: i64) -> Judgement {
    let facts = facts(left);
    let ask = Ask {
        tool: "create_refund",
        session,
        arguments: arguments.as_object().unwrap(),
        facts: &facts,
        resource: Some("ord_1"),
        run: &RunState::default(),
    };
    policies.judge(&ask)
}

fn facts(left: i64) -> Map<String, Value> {
    let order = json!({"id": "ord_1", "total_cents": left + 2000, "refunded_cents": 2000, "left_cents": left,
        "currency": "USD", "note": null});
    Map::from_iter([("order".to_owned(), order)])
}

mod faults;
mod hidden;
mod judging;
mod scale;
mod work;
