//! What a session can know of tools before it calls one.

use proptest::prelude::*;

use super::*;

fn visible(text: &str, session: &Session) -> bool {
    compile(text, &[get_order(), create_refund()])
        .unwrap_or_else(|faults| panic!("{}", listed(&faults)))
        .visible("create_refund", session)
}

/// Whether alice, who is of the support, sees the refund where this is the condition of the one permit.
fn shown_when(condition: &str) -> bool {
    visible(&format!("permit ({}) when {{ {condition} }};", head(condition)), &alice())
}

/// Only one of the tools has amounts.
fn head(condition: &str) -> &'static str {
    match condition.contains("input") {
        true => r#"principal, action == Action::"create_refund", resource"#,
        false => "principal, action, resource",
    }
}

/// Whether alice sees it where all is permitted and this forbid is silent.
fn shown_unless_forbidden(forbid: &str) -> bool {
    visible(&format!("permit (principal, action, resource); forbid ({}) {forbid};", head(forbid)), &alice())
}

#[test]
fn a_permit_whose_condition_asks_for_a_role_hides_the_tool_from_everybody_else() {
    assert!(!shown_when(r#"principal in Role::"manager""#));
    assert!(shown_when(r#"principal in Role::"support""#));
    assert!(shown_when(r#"principal in [Role::"manager", Role::"support"]"#));
    assert!(!shown_when(r#"principal in Role::"manager" && context.input.amount_cents < 5"#));
    assert!(shown_when(r#"principal in Role::"manager" || context.input.amount_cents < 5"#));
    assert!(shown_when(r#"!(principal in Role::"manager")"#));
    assert!(!shown_when(r#"if principal in Role::"manager" then context.input.amount_cents < 5 else false"#));
    assert!(shown_when(r#"if principal in Role::"manager" then false else context.input.amount_cents < 5"#));
}

/// Each `if` doubles what the one around it asks: enough of them would fill any memory.
#[test]
fn an_if_within_what_many_others_ask_may_turn_out_either_way() {
    let nested = |depth: usize| {
        let mut asks = r#"principal in Role::"manager""#.to_owned();
        for _ in 0..depth {
            asks = format!("(if {asks} then true else false)");
        }
        asks
    };
    assert!(!shown_when(&nested(4)), "so many are followed");
    assert!(shown_when(&nested(5)) && shown_when(&nested(12)), "any deeper is known when it is called");
    let branches = (0..12)
        .fold(r#"principal in Role::"manager""#.to_owned(), |then, _| format!("(if true then {then} else false)"));
    assert!(!shown_when(&branches), "a branch is not doubled");
}

#[test]
fn a_condition_on_the_person_the_tenant_or_the_action_is_known_before_a_call() {
    assert!(shown_when(r#"principal == User::"[\"local\",\"alice\"]""#));
    assert!(!shown_when(r#"principal == User::"[\"local\",\"bob\"]""#));
    assert!(!shown_when(r#"principal != User::"[\"local\",\"alice\"]""#));
    assert!(shown_when(r#"principal in Tenant::"acme""#) && !shown_when(r#"principal in Tenant::"globex""#));
    assert!(!shown_when(r#"resource in Tenant::"globex""#), "what is acted on is of the session's tenant");
    assert!(shown_when(r#"action == Action::"create_refund""#) && !shown_when(r#"action == Action::"get_order""#));
    assert!(shown_when(r#"action in Action::"tag:refunds""#) && !shown_when(r#"action in Action::"read""#));
    assert!(!shown_when(r#"action in [Action::"read", Action::"get_order"]"#));
    assert!(shown_when(r#"resource == Order::"ord_1""#), "it may be, or not");
}

#[test]
fn a_silent_forbid_that_holds_whatever_is_sent_hides_the_tool_and_any_other_does_not() {
    assert!(!shown_unless_forbidden(r#"unless { principal in Role::"manager" }"#));
    assert!(shown_unless_forbidden(r#"unless { principal in Role::"support" }"#));
    assert!(!shown_unless_forbidden(r#"when { principal in Role::"support" || context.input.amount_cents > 5 }"#));
    assert!(shown_unless_forbidden(r#"when { principal in Role::"support" && context.input.amount_cents > 5 }"#));
    assert!(shown_unless_forbidden(r#"when { principal in Role::"guest" }"#));
    assert!(shown_unless_forbidden(r#"when { context.session.run == "night" }"#), "a run is of the call");
    let told = r#"permit (principal, action, resource);
        @id("m") @message("Managers alone.") forbid (principal, action, resource) unless { principal in Role::"manager" };"#;
    assert!(visible(told, &alice()), "a rule is told, and what is told is there");
    let asked = r#"permit (principal, action, resource);
        @id("a") @approvers("manager") forbid (principal, action, resource) unless { context.approved };"#;
    assert!(visible(asked, &alice()), "somebody may say yes");
}

/// Conditions that are valid for every tool of the shop.
fn condition() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        r#"principal in Role::"support""#,
        r#"principal in Role::"manager""#,
        r#"principal in [Role::"manager", Tenant::"acme"]"#,
        r#"principal == User::"[\"local\",\"alice\"]""#,
        r#"principal is User in Role::"manager""#,
        r#"principal in Tenant::"globex""#,
        r#"resource in Tenant::"acme""#,
        r#"resource == Order::"ord_1""#,
        r#"action in Action::"write""#,
        r#"action == Action::"get_order""#,
        "context.input.amount_cents > 50",
        // It errs for the large amounts.
        "context.input.amount_cents * 9000000000000000 > 0",
        r#"context.session.run == "night""#,
        "true",
    ]);
    let leaf = leaf.prop_map(str::to_owned);
    leaf.prop_recursive(3, 12, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            pair.clone().prop_map(|(a, b)| format!("({a} && {b})")),
            pair.clone().prop_map(|(a, b)| format!("({a} || {b})")),
            inner.clone().prop_map(|a| format!("!({a})")),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("(if {a} then {b} else {c})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    /// Whatever is hidden could not have been called: no call of it is permitted, asked for or told of a rule.
    #[test]
    fn what_is_hidden_no_call_could_have_reached(
        permit in condition(),
        forbid in condition(),
        roles in prop::sample::subsequence(vec!["support", "manager"], 0..=2),
        name in prop::sample::select(vec!["alice", "bob"]),
        tenant in prop::sample::select(vec!["acme", "globex"]),
    ) {
        let text = format!(
            "permit (principal, action == Action::\"create_refund\", resource) when {{ {permit} }};
             forbid (principal, action == Action::\"create_refund\", resource) when {{ {forbid} }};"
        );
        // The validator refuses conditions that are false for every call; nothing is to be seen of them here.
        let Ok(policies) = compile(&text, &[get_order(), create_refund()]) else { return Ok(()) };
        let session = roles.iter().fold(Session::new(Principal::new("local", name), tenant), |s, role| s.role(*role));
        let mut reached = false;
        for (amount, order, run) in [(1, "ord_1", "day"), (100, "ord_1", "night"), (100, "ord_2", "day"), (2000, "ord_2", "night")] {
            let arguments = json!({"order_id": order, "amount_cents": amount, "currency": "USD", "reason": "other"});
            let (facts, session) = (facts(100_000), session.clone().in_run(run));
            let ask = Ask {
                tool: "create_refund", session: &session, arguments: arguments.as_object().unwrap(), facts: &facts,
                resource: Some(order), run: &RunState::default(),
            };
            match policies.judge(&ask) {
                Judgement::Permitted { .. } | Judgement::Rule(_) | Judgement::NeedsApproval { .. } => reached = true,
                Judgement::Forbidden(_) => {}
            }
        }
        prop_assert!(!reached || policies.visible("create_refund", &session), "{text}");
    }
}
