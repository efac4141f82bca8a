//! Records are decided again by other policies.

use serde_json::json;

use super::unhidden::hidden;
use super::*;
use crate::audit::{Kind, Record, Sealed};
use crate::call::Ref;
use crate::clock::Millis;
use crate::contract::Tool;
use crate::ledger::Store;

const POLICIES: &str = r#"
@id("pay.clerk") permit (principal in Role::"clerk", action == Action::"pay", resource);
@id("pay.large") @message("That is too much.") forbid (principal, action == Action::"pay", resource)
when { context.input.cents > 1000 };
"#;

fn tools() -> Vec<Tool> {
    let look = json!({
        "description": "Looks an account up.", "effect": "read",
        "input": { "properties": { "id": { "type": "string" } }, "required": ["id"] },
        "output": {
            "type": "object", "required": ["open", "owner"],
            "properties": { "open": { "type": "boolean" }, "owner": { "type": "string", "x-personal": true } },
        },
    });
    let pay = json!({
        "description": "Pays. Moves money.", "effect": "write",
        "input": {
            "properties": {
                "to": { "type": "string", "pattern": "^acc_[a-z]+$", "x-personal": true },
                "cents": { "type": "integer" },
            },
            "required": ["to", "cents"],
        },
        "facts": { "account": { "tool": "look", "args": { "id": "{to}" } } },
    });
    [("look", look), ("pay", pay)]
        .map(|(name, keys)| {
            Tool::new(name, keys.as_object().unwrap().clone(), std::sync::Arc::new(crate::backend::Nothing))
        })
        .into()
}

/// A gate whose payments these policies judge.
fn gate(policies: &str) -> Gate {
    let builder = tools().into_iter().fold(Gate::builder(), crate::gate::Builder::tool);
    builder.policy(policies).store(Store::memory()).build().unwrap_or_else(|error| panic!("{error}"))
}

/// A record of a payment of 500, with these members otherwise.
fn record(kind: Kind, members: Value) -> Sealed {
    let contract = gate(POLICIES).contracts().find(|one| one.name() == "pay").unwrap().digest;
    let mut body = json!({
        "tool": "pay", "call_id": "c", "tenant": "acme", "principal": { "issuer": "local", "subject": "ann" },
        "roles": ["clerk"], "run": "default", "contract": contract,
        "arguments": { "to": "acc_bob", "cents": 500 },
        "stages": [
            { "stage": "admit", "micros": 1 },
            { "stage": "inform", "micros": 1, "recall": "fresh", "facts": { "account": { "open": true, "owner": hidden("$personal") } } },
            { "stage": "permit", "micros": 1, "permitted_by": ["pay.clerk"] },
        ],
    });
    let (Value::Object(body), Value::Object(members)) = (&mut body, members) else { panic!("objects") };
    for (name, value) in members {
        match value {
            Value::Null => drop(body.remove(&name)),
            value => drop(body.insert(name, value)),
        }
    }
    Record::new(kind, Millis(1), Ref::fresh(), body.clone()).seal(crate::audit::Head::empty())
}

fn intent(members: Value) -> Recorded {
    Recorded::of(&record(Kind::Intent, members)).unwrap()
}

fn refused(code: &str, members: Value) -> Ended {
    let mut told = json!({ "stages": [{ "stage": "permit", "refused": code, "why": "asked by b, a" }], "code": code });
    told.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    Recorded::of(&record(Kind::Refusal, told)).unwrap().ended().clone()
}

fn permitted(by: &str) -> Decided {
    Decided::Permitted { by: vec![by.into()] }
}

fn rule(rule: &str) -> Decided {
    Decided::Rule { rule: rule.into() }
}

#[test]
fn the_same_policies_decide_as_they_did() {
    let gate = gate(POLICIES);
    let call = intent(json!({}));
    assert_eq!(call.ended(), &Ended::Decided(permitted("pay.clerk")));
    assert_eq!(gate.rejudge(&call), Ok(permitted("pay.clerk")));
    let large = json!({ "arguments": { "to": "acc_bob", "cents": 1001 } });
    assert_eq!(gate.rejudge(&intent(large)), Ok(rule("pay.large")));
    let stranger = json!({ "roles": ["guest"] });
    assert_eq!(gate.rejudge(&intent(stranger)), Ok(Decided::Invisible));
}

#[test]
fn other_policies_decide_by_the_facts_of_the_day() {
    let closed = format!(
        "{POLICIES} @id(\"pay.closed\") @message(\"The account is closed.\") forbid (principal, action == Action::\"pay\", resource)
         unless {{ context has facts.account && context.facts.account.open }};"
    );
    let gate = gate(&closed);
    assert_eq!(gate.rejudge(&intent(json!({}))), Ok(permitted("pay.clerk")));
    let shut = |facts: Value| {
        json!({ "stages": [
        { "stage": "inform", "recall": "fresh", "facts": facts }, { "stage": "permit", "permitted_by": ["pay.clerk"] },
    ] })
    };
    let found = shut(json!({ "account": { "open": false, "owner": hidden("$personal") } }));
    assert_eq!(gate.rejudge(&intent(found)), Ok(rule("pay.closed")));
    assert_eq!(gate.rejudge(&intent(shut(json!({})))), Ok(rule("pay.closed")), "it was looked up and absent");
    let mut older = shut(json!({}));
    older["contract"] = json!(crate::json::Digest::of(b"older"));
    assert_eq!(gate.rejudge(&intent(older)), Err(Undecided::NoFact { fact: "account".into() }));
    assert_eq!(
        gate.rejudge(&intent(shut(json!({ "account": hidden("$digest") })))),
        Err(Undecided::Hidden { at: "/facts/account".into() })
    );
}

#[test]
fn a_hidden_value_is_in_the_way_only_of_a_policy_that_reads_it() {
    let concealed = json!({ "arguments": { "to": hidden("$personal"), "cents": 1001 } });
    assert_eq!(gate(POLICIES).rejudge(&intent(concealed.clone())), Ok(rule("pay.large")));
    let reads = format!(
        "{POLICIES} @id(\"pay.eve\") forbid (principal, action == Action::\"pay\", resource) when {{ context.input.to == \"acc_eve\" }};"
    );
    assert_eq!(gate(&reads).rejudge(&intent(concealed)), Err(Undecided::Hidden { at: "/input/to".into() }));
}

#[test]
fn what_is_not_told_or_does_not_fit_any_more_is_not_decided() {
    let gate = gate(POLICIES);
    for (members, why) in [
        (json!({ "roles": null }), Undecided::NoRoles),
        (json!({ "arguments": null }), Undecided::NoArguments),
        (json!({ "tool": "gone" }), Undecided::NoTool),
        (json!({ "arguments": { "to": "bob", "cents": 1 } }), Undecided::Misfit { at: "/to".into() }),
        (
            json!({ "arguments": { "to": hidden("$personal"), "cents": "1" } }),
            Undecided::Misfit { at: "/cents".into() },
        ),
    ] {
        assert_eq!(gate.rejudge(&intent(members)), Err(why));
    }
}

#[test]
fn a_replay_asks_nobody() {
    let asks = format!(
        "{POLICIES} @id(\"pay.ask\") @approvers(\"boss\") forbid (principal, action == Action::\"pay\", resource) unless {{ context.approved }};"
    );
    let gate = gate(&asks);
    assert_eq!(gate.rejudge(&intent(json!({}))), Ok(Decided::NeedsApproval { rules: vec!["pay.ask".into()] }));
    let stages =
        json!([{ "stage": "inform", "recall": "replay" }, { "stage": "permit", "permitted_by": ["pay.clerk"] }]);
    let replay = Recorded::of(&record(Kind::Replay, json!({ "stages": stages }))).unwrap();
    assert_eq!(gate.rejudge(&replay), Ok(permitted("pay.clerk")));
}

#[test]
fn what_was_decided_is_read_from_the_record() {
    let asked = Decided::NeedsApproval { rules: vec!["a".into(), "b".into()] };
    assert_eq!(refused("approval_required", json!({})), Ended::Decided(asked.clone()));
    assert_eq!(refused("rule_failed", json!({ "rule": "pay.large" })), Ended::Decided(rule("pay.large")));
    assert_eq!(refused("approval_invalid", json!({})), Ended::Unasked);
    let stages = json!([{ "stage": "admit", "refused": "invalid_json" }]);
    let malformed = record(Kind::Refusal, json!({ "stages": stages, "code": "invalid_json" }));
    assert_eq!(Recorded::of(&malformed).unwrap().ended(), &Ended::Before("invalid_json".into()));
    let consented = json!([{ "stage": "permit", "permitted_by": ["pay.clerk"], "approval": "apr_1" }]);
    let Ended::Decided(given) = intent(json!({ "stages": consented })).ended().clone() else { panic!("decided") };
    assert!(!given.differs(&asked) && given.differs(&permitted("pay.clerk")));
    for other in [Kind::Outcome, Kind::DryRun, Kind::Decision, Kind::Lost, Kind::Ruling] {
        assert_eq!(Recorded::of(&record(other, json!({}))), None);
    }
}

#[test]
fn another_permit_is_no_other_answer_and_another_rule_is() {
    assert!(!permitted("a").differs(&permitted("b")));
    assert!(rule("a").differs(&rule("b")) && !rule("a").differs(&rule("a")));
    assert!(permitted("a").differs(&Decided::Invisible));
}

#[test]
fn what_an_operator_stopped_was_decided_by_no_policy() {
    let stopped =
        json!({ "stages": [{ "stage": "permit", "refused": "forbidden", "stop": "stop_1", "why": "stopped" }] });
    assert_eq!(refused("forbidden", stopped), Ended::Before("forbidden".into()));
}
