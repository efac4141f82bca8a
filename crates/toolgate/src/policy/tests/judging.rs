use super::*;

#[test]
fn a_refund_within_the_balance_is_permitted_and_says_by_which_policy() {
    assert_eq!(refund(&shop(), &alice(), 1500, 2000), Judgement::Permitted { by: vec!["refunds.support".into()] });
}

#[test]
fn a_rule_tells_what_is_left_and_alters_nothing() {
    let Judgement::Rule(hit) = refund(&shop(), &alice(), 2500, 2000) else { panic!("a rule") };
    assert_eq!(hit.id, "refund.exceeds_balance");
    assert_eq!(hit.message, "Only 2000 cents of 4000 are left to refund.");
    assert_eq!((hit.fix, hit.shown, hit.all), (Fix::User, vec!["order".into()], vec!["refund.exceeds_balance".into()]));
}

#[test]
fn above_the_limit_somebody_is_asked_and_never_for_what_a_rule_refuses() {
    let policies = shop();
    let Judgement::NeedsApproval { reasons, by } = refund(&policies, &alice(), 8000, 10_000) else { panic!("pending") };
    assert_eq!(by, ["refunds.support"]);
    assert_eq!(
        reasons,
        [NeedReason {
            rule: "create_refund.approval".into(),
            message: "Refunds above 50.00 need a manager.".into(),
            approvers: Approvers::Role("manager".into()),
        }]
    );
    assert!(
        matches!(refund(&policies, &alice(), 8000, 2000), Judgement::Rule(hit) if hit.id == "refund.exceeds_balance")
    );
}

#[test]
fn without_a_permit_nobody_is_asked_and_no_rule_explains_itself() {
    let policies = shop();
    let eve = person("eve", &["guest"]);
    for (amount, left) in [(100, 2000), (2500, 2000), (8000, 10_000)] {
        assert_eq!(refund(&policies, &eve, amount, left), Judgement::Forbidden(Why::NoPermit));
    }
}

#[test]
fn a_replay_asks_nobody_but_rules_and_permits_still_hold() {
    let policies = shop();
    let session = alice();
    let replay = |session: &Session, amount: i64, left: i64| {
        let arguments = json!({"order_id": "ord_1", "amount_cents": amount, "currency": "USD", "reason": "other"});
        let facts = facts(left);
        let arguments = arguments.as_object().unwrap();
        policies.judge_replay(&Ask {
            tool: "create_refund",
            session,
            arguments,
            facts: &facts,
            resource: Some("ord_1"),
            run: &RunState::default(),
        })
    };
    assert!(matches!(replay(&session, 8000, 10_000), Judgement::Permitted { .. }));
    assert!(matches!(replay(&session, 8000, 2000), Judgement::Rule(_)));
    assert_eq!(replay(&person("eve", &[]), 8000, 10_000), Judgement::Forbidden(Why::NoPermit));
}

#[test]
fn error_comes_before_silence_before_rule_before_approval() {
    let with = |more: &str| compile(&format!("{REFUNDS}{more}"), &[get_order(), create_refund()]).unwrap();
    let silent = r#"@id("quiet") forbid (principal, action in Action::"write", resource) when { context.input.amount_cents == 8000 };"#;
    // The sum overflows for the largest amount, so the forbid errs, and Cedar alone would pass over it.
    let erring = r#"@id("erring") forbid (principal, action == Action::"create_refund", resource)
        when { context.input.amount_cents * 9000000000000000 > 0 && context.input.reason == "nothing" };"#;
    let quiet = with(silent);
    assert_eq!(
        refund(&quiet, &alice(), 8000, 2000),
        Judgement::Forbidden(Why::Silent { policies: vec!["quiet".into()] })
    );
    assert_eq!(
        refund(&quiet, &alice(), 8000, 10_000),
        Judgement::Forbidden(Why::Silent { policies: vec!["quiet".into()] })
    );
    let both = with(&format!("{silent}{erring}"));
    let error = Judgement::Forbidden(Why::Error { policies: vec!["erring".into()] });
    assert_eq!(refund(&both, &alice(), 8000, 2000), error);
    assert_eq!(refund(&both, &alice(), 2000, 2000), error, "an erring forbid would permit this");
    assert!(matches!(refund(&both, &alice(), 1000, 2000), Judgement::Permitted { .. }));
}

#[test]
fn two_rules_are_both_named_and_the_first_by_id_speaks() {
    let more = r#"@id("a.first") @message("No round sums.") @fix("model")
        forbid (principal, action == Action::"create_refund", resource) when { context.input.amount_cents == 3000 };"#;
    let policies = compile(&format!("{REFUNDS}{more}"), &[get_order(), create_refund()]).unwrap();
    let Judgement::Rule(hit) = refund(&policies, &alice(), 3000, 2000) else { panic!("a rule") };
    assert_eq!((hit.id.as_str(), hit.message.as_str(), hit.fix), ("a.first", "No round sums.", Fix::Model));
    assert_eq!(hit.all, ["a.first", "refund.exceeds_balance"]);
}

#[test]
fn each_reason_for_approval_has_its_own_approver() {
    let more = r#"@id("b.confirm") @approvers("self") forbid (principal, action in Action::"write", resource)
        unless { context.approved };"#;
    let policies = compile(&format!("{REFUNDS}{more}"), &[get_order(), create_refund()]).unwrap();
    let asked = |amount| match refund(&policies, &alice(), amount, 10_000) {
        Judgement::NeedsApproval { reasons, .. } => {
            reasons.into_iter().map(|r| (r.rule, r.approvers)).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    let confirm = ("b.confirm".to_owned(), Approvers::Requester);
    assert_eq!(asked(100), std::slice::from_ref(&confirm));
    assert_eq!(asked(8000), [confirm, ("create_refund.approval".into(), Approvers::Role("manager".into()))]);
    assert!(policies.may_ask("create_refund") && !policies.may_ask("get_order"));
}

#[test]
fn no_policy_permits_nothing() {
    let policies = Policies::compile(&[], &[get_order().as_tool()], Absent::Faulty(&BTreeSet::new())).unwrap();
    let (session, facts) = (alice(), facts(1));
    let arguments = Map::from_iter([("order_id".to_owned(), json!("ord_1"))]);
    let ask = Ask {
        tool: "get_order",
        session: &session,
        arguments: &arguments,
        facts: &facts,
        resource: Some("ord_1"),
        run: &RunState::default(),
    };
    assert_eq!(policies.judge(&ask), Judgement::Forbidden(Why::NoPermit));
    assert!(!policies.visible("get_order", &session));
    assert_eq!(policies.judge(&Ask { tool: "no_such_tool", ..ask }), Judgement::Forbidden(Why::NoPermit));
}

#[test]
fn an_argument_that_speaks_of_entities_is_plain_data() {
    let note = Declared::new(
        "note",
        true,
        json!({"properties": {"__entity": {"properties": {"type": {"type": "string"}, "id": {"type": "string"}}}, "role": {
            "properties": {"__entity": {"properties": {"id": {"type": "string"}}}}}}}),
    );
    let text = r#"permit (principal, action, resource) when {
        context.input has __entity.type && context.input.__entity.type == "Role" && context.input has role.__entity
    };"#;
    let policies = compile(text, &[note]).unwrap();
    let arguments = json!({"__entity": {"type": "Role", "id": "manager"}, "role": {"__entity": {"id": "manager"}}});
    let (session, facts) = (alice(), Map::new());
    let arguments = arguments.as_object().unwrap();
    let judgement = policies.judge(&Ask {
        tool: "note",
        session: &session,
        arguments,
        facts: &facts,
        resource: None,
        run: &RunState::default(),
    });
    assert!(matches!(judgement, Judgement::Permitted { .. }), "{judgement:?}");
}

#[test]
fn a_value_without_an_exact_form_denies_where_a_policy_reads_it_and_only_there() {
    let rated = r#"@id("rate") forbid (principal, action == Action::"create_refund", resource)
        when { context.input has rate && context.input.rate.greaterThan(decimal("1.5")) };"#;
    let tools = [get_order(), create_refund()];
    let policies = compile(&format!("{REFUNDS}{rated}"), &tools).unwrap();
    let with = |policies: &Policies, rate: Value| {
        let arguments = json!({"order_id": "o", "amount_cents": 5, "currency": "USD", "reason": "other", "rate": rate});
        judged(policies, &alice(), &arguments, 2000)
    };
    assert!(matches!(with(&policies, json!(1.25)), Judgement::Permitted { .. }));
    assert!(matches!(with(&policies, json!(null)), Judgement::Permitted { .. }));
    assert_eq!(with(&policies, json!(2)), Judgement::Forbidden(Why::Silent { policies: vec!["rate".into()] }));
    let at = "/input/rate".to_owned();
    assert_eq!(with(&policies, json!(1.60001)), Judgement::Forbidden(Why::Unrepresentable { at }));
    assert!(matches!(with(&shop(), json!(1.60001)), Judgement::Permitted { .. }), "no policy reads the rate here");
}

#[test]
fn a_missing_fact_or_resource_denies() {
    let policies = shop();
    let (session, none) = (alice(), Map::new());
    let arguments = json!({"order_id": "o", "amount_cents": 5, "currency": "USD", "reason": "other"});
    let arguments = arguments.as_object().unwrap();
    let ask = Ask {
        tool: "create_refund",
        session: &session,
        arguments,
        facts: &none,
        resource: Some("ord_1"),
        run: &RunState::default(),
    };
    assert_eq!(policies.judge(&ask), Judgement::Forbidden(Why::Unrepresentable { at: "/facts/order".into() }));
    let found = facts(2000);
    let ask = Ask { facts: &found, resource: None, ..ask };
    assert_eq!(policies.judge(&ask), Judgement::Forbidden(Why::Unrepresentable { at: "/resource".into() }));
}

#[test]
fn principals_resources_groups_and_runs_can_be_told_apart() {
    let text = r#"
        permit (principal == User::"[\"local\",\"alice\"]", action in Action::"tag:refunds", resource)
        when { resource in Tenant::"acme" && principal in Tenant::"acme" && action in Action::"write"
            && context.session.run == "night" && resource == Order::"ord_1" };
    "#;
    let policies = compile(text, &[get_order(), create_refund()]).unwrap();
    assert!(matches!(refund(&policies, &alice().in_run("night"), 1, 2000), Judgement::Permitted { .. }));
    assert_eq!(refund(&policies, &alice().in_run("day"), 1, 2000), Judgement::Forbidden(Why::NoPermit));
    let other_issuer = Session::new(Principal::new("https://id", "alice"), "acme").in_run("night");
    assert_eq!(refund(&policies, &other_issuer, 1, 2000), Judgement::Forbidden(Why::NoPermit));
}

#[test]
fn a_tool_is_hidden_from_whom_no_permit_could_ever_match() {
    let visible = |text: &str, session: &Session| {
        compile(text, &[get_order(), create_refund()]).unwrap().visible("create_refund", session)
    };
    let support = r#"permit (principal in Role::"support", action in Action::"write", resource) when { context.input.amount_cents < 0 };"#;
    assert!(visible(support, &alice()), "conditions are about calls, and there is none yet");
    assert!(!visible(support, &person("eve", &["guest"])));
    assert!(!visible(r#"permit (principal, action in Action::"read", resource);"#, &alice()));
    let tenant =
        |name: &str| format!(r#"permit (principal in Tenant::"{name}", action, resource in Tenant::"{name}");"#);
    assert!(visible(&tenant("acme"), &alice()) && !visible(&tenant("globex"), &alice()));
    assert!(visible(r#"permit (principal is User, action, resource == Order::"ord_1");"#, &alice()));

    let all = "permit (principal, action, resource);";
    let bar = |forbid: &str| visible(&format!("{all}{forbid}"), &alice());
    assert!(!bar(r#"forbid (principal in Role::"support", action in Action::"write", resource);"#));
    assert!(!bar(r#"forbid (principal, action in Action::"write", resource is Order);"#));
    assert!(bar(r#"forbid (principal in Role::"guest", action in Action::"write", resource);"#));
    assert!(bar(r#"forbid (principal, action in Action::"write", resource == Order::"ord_1");"#));
    assert!(bar(r#"@id("m") @message("Not today.") forbid (principal, action in Action::"write", resource);"#));
    assert!(bar(r#"forbid (principal, action in Action::"write", resource) when { context.input.amount_cents > 1 };"#));
}

#[test]
fn a_tool_without_a_resource_is_what_is_acted_on() {
    let text = r#"permit (principal, action, resource == Tool::"ping");"#;
    let ping = || Declared::new("ping", false, json!({}));
    let pong = || Declared::new("pong", false, json!({"type": "object", "additionalProperties": false}));
    let policies = compile(text, &[ping(), pong()]).unwrap();
    let (session, none) = (alice(), Map::new());
    let judge = |tool| {
        policies.judge(&Ask {
            tool,
            session: &session,
            arguments: &none,
            facts: &none,
            resource: None,
            run: &RunState::default(),
        })
    };
    assert!(matches!(judge("ping"), Judgement::Permitted { .. }));
    assert_eq!(judge("pong"), Judgement::Forbidden(Why::NoPermit));
    assert!(policies.visible("ping", &session) && !policies.visible("pong", &session));
}

#[test]
fn a_group_policy_looks_before_it_reads() {
    let text = r#"permit (principal, action, resource);
        @id("cap") @message("At most 900.") forbid (principal, action, resource)
        when { context.input has amount_cents && context.input.amount_cents > 900 };"#;
    let policies = compile(text, &[get_order(), create_refund()]).unwrap();
    assert!(matches!(refund(&policies, &alice(), 901, 2000), Judgement::Rule(_)));
    assert!(matches!(refund(&policies, &alice(), 900, 2000), Judgement::Permitted { .. }));
    let (session, facts) = (alice(), facts(1));
    let arguments = Map::from_iter([("order_id".to_owned(), json!("ord_1"))]);
    let ask = Ask {
        tool: "get_order",
        session: &session,
        arguments: &arguments,
        facts: &facts,
        resource: Some("ord_1"),
        run: &RunState::default(),
    };
    assert!(matches!(policies.judge(&ask), Judgement::Permitted { .. }));
}

#[test]
fn an_optional_fact_is_asked_for_before_it_is_read() {
    let mut tool = Declared { approval: None, ..create_refund() };
    tool.facts.push((
        "customer",
        json!({"properties": {"blocked": {"type": "boolean"}}, "required": ["blocked"]}),
        false,
    ));
    let text = r#"permit (principal, action, resource);
        forbid (principal, action, resource) when { context.facts has customer && context.facts.customer.blocked };"#;
    let policies = compile(text, &[tool]).unwrap();
    let blocked = |value: Value| {
        let (session, mut facts) = (alice(), facts(1));
        facts.insert("customer".into(), value);
        let arguments = Map::new();
        let ask = Ask {
            tool: "create_refund",
            session: &session,
            arguments: &arguments,
            facts: &facts,
            resource: Some("o"),
            run: &RunState::default(),
        };
        policies.judge(&ask)
    };
    assert!(matches!(blocked(json!({"blocked": true})), Judgement::Forbidden(Why::Silent { .. })));
    assert!(matches!(blocked(json!({"blocked": false})), Judgement::Permitted { .. }));
    assert!(matches!(blocked(Value::Null), Judgement::Permitted { .. }));
    assert_eq!(blocked(json!({})), Judgement::Forbidden(Why::Unrepresentable { at: "/facts/customer/blocked".into() }));
}

#[test]
fn the_digest_of_a_slice_moves_with_its_own_policies_alone() {
    let digest = |text: &str, tool: &str| compile(text, &[get_order(), create_refund()]).unwrap().slice_digest(tool);
    let changed = REFUNDS.replace("when { context.input.amount_cents >", "when { 1 + context.input.amount_cents >");
    assert_ne!(changed, REFUNDS);
    assert_ne!(digest(REFUNDS, "create_refund"), digest(&changed, "create_refund"));
    assert_eq!(digest(REFUNDS, "get_order"), digest(&changed, "get_order"));
    let reworded = REFUNDS.replace("are left to refund", "are left");
    assert_ne!(digest(REFUNDS, "create_refund"), digest(&reworded, "create_refund"));
    let commented = format!("// A word about it.\n{REFUNDS}");
    assert_eq!(digest(REFUNDS, "create_refund"), digest(&commented, "create_refund"));
}

#[test]
fn the_generated_schema_is_readable_and_leaves_out_what_has_no_type() {
    let policies = shop();
    let schema = policies.cedar_schema();
    assert!(schema.contains("entity Order in [Tenant];\n"));
    assert!(schema.contains("action \"create_refund\" in [\"tag:refunds\", \"write\"] appliesTo {\n"));
    assert!(schema.contains("      \"amount_cents\": Long,\n") && schema.contains("      \"rate\"?: decimal,\n"));
    assert!(schema.contains("        \"note\"?: String,\n"), "null and absent are both absent");
    assert!(!schema.contains("extra"), "{schema}");
}

#[test]
fn an_object_that_is_compared_as_a_whole_is_there_as_a_whole() {
    let place =
        json!({"properties": {"city": {"type": "string"}, "zip": {"type": "string"}}, "required": ["city", "zip"]});
    let input =
        json!({"properties": {"to": place, "stops": {"type": "array", "items": place}}, "required": ["to", "stops"]});
    let text = r#"permit (principal, action, resource);
        @id("to") forbid (principal, action, resource) when { context.input.to == {city: "Rome", zip: "1"} };
        @id("stop") forbid (principal, action, resource) when { context.input.stops.contains({city: "Oslo", zip: "2"}) };"#;
    let policies = compile(text, &[Declared::new("ship", true, input)]).unwrap();
    let ship = |to: Value, stop: Value| {
        let (session, facts) = (alice(), Map::new());
        let arguments = json!({"to": to, "stops": [stop]});
        let arguments = arguments.as_object().unwrap();
        policies.judge(&Ask {
            tool: "ship",
            session: &session,
            arguments,
            facts: &facts,
            resource: None,
            run: &RunState::default(),
        })
    };
    let place = |city: &str, zip: &str| json!({"city": city, "zip": zip});
    let silent = |id: &str| Judgement::Forbidden(Why::Silent { policies: vec![id.to_owned()] });
    assert_eq!(ship(place("Rome", "1"), place("Oslo", "1")), silent("to"));
    assert_eq!(ship(place("Rome", "2"), place("Oslo", "2")), silent("stop"));
    assert!(matches!(ship(place("Rome", "2"), place("Oslo", "1")), Judgement::Permitted { .. }));
}

#[test]
fn what_a_run_has_done_and_read_is_a_set_and_a_count_and_only_what_is_read_is_tracked() {
    let judge = |text: &str, run: &RunState| {
        let policies = compile(text, &[get_order(), create_refund()]).unwrap();
        let (session, facts) = (alice(), facts(2000));
        let arguments = json!({"order_id": "ord_1"});
        let arguments = arguments.as_object().unwrap();
        let ask = Ask { tool: "get_order", session: &session, arguments, facts: &facts, resource: Some("ord_1"), run };
        (matches!(policies.judge(&ask), Judgement::Permitted { .. }), policies.tracked())
    };
    let run = RunState { calls: 2, ..RunState::default() };
    let run = RunState { completed: BTreeSet::from(["get_order".into()]), ..run };
    let reads = |completed, calls, labels| Tracked { completed, calls, labels };
    let all = "permit (principal, action, resource)";
    for (when, permitted, tracked) in [
        ("", true, reads(false, false, false)),
        (" when { context.session.run == \"default\" }", true, reads(false, false, false)),
        (" when { context.session.completed.contains(\"get_order\") }", true, reads(true, false, false)),
        (" when { context.session.completed.contains(\"create_refund\") }", false, reads(true, false, false)),
        (" when { context.session.calls == 2 }", true, reads(false, true, false)),
        (" unless { context.session.labels.containsAny([\"untrusted\"]) }", true, reads(false, false, true)),
    ] {
        assert_eq!(judge(&format!("{all}{when};"), &run), (permitted, tracked), "{when}");
    }
}

#[test]
fn a_required_tool_is_a_rule_of_the_contract_and_a_sink_a_group() {
    let refund = Declared { requires: vec!["get_order".into()], sink: Some("external"), ..create_refund() };
    let text = "permit (principal, action in [Action::\"read\", Action::\"sink:external\"], resource);";
    let policies = compile(text, &[get_order(), refund]).unwrap();
    let judge = |run: &RunState| {
        let arguments = json!({"order_id": "ord_1", "amount_cents": 5, "currency": "USD", "reason": "other"});
        let (session, facts, arguments) = (alice(), facts(2000), arguments.as_object().unwrap().clone());
        let resource = Some("ord_1");
        policies.judge(&Ask {
            tool: "create_refund",
            session: &session,
            arguments: &arguments,
            facts: &facts,
            resource,
            run,
        })
    };
    let Judgement::Rule(hit) = judge(&RunState::default()) else { panic!("no rule") };
    assert_eq!((hit.id.as_str(), hit.fix), ("create_refund.requires.get_order", Fix::Model));
    let looked = RunState { completed: BTreeSet::from(["get_order".into()]), ..RunState::default() };
    assert!(matches!(judge(&looked), Judgement::Permitted { .. }));
}
