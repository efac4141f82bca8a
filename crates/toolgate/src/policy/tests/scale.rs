use std::fmt::Write as _;

use super::*;

/// So many tools with four policies each, and four policies for all of them.
fn gate(tools: usize) -> Policies {
    let mut text = String::new();
    let names: Vec<String> = (0..tools).map(|n| format!("tool_{n}")).collect();
    for name in &names {
        let action = format!("principal, action == Action::\"{name}\", resource");
        let _ = write!(
            text,
            r#"@id("{name}.permit") permit (principal in Role::"support", action == Action::"{name}", resource);
               @id("{name}.rule") @message("Too much.") forbid ({action}) when {{ context.input.n > 900 }};
               @id("{name}.silent") forbid (principal, action in [Action::"{name}"], resource) when {{ context.input.n == 13 }};
               @id("{name}.ask") @approvers("manager") forbid ({action}) when {{ context.input.n > 500 }} unless {{ context.approved }};
            "#
        );
    }
    let input = json!({"properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let labels = BTreeSet::new();
    let tools: Vec<PolicyTool<'_>> = names
        .iter()
        .map(|name| PolicyTool {
            name,
            write: true,
            tags: &[],
            groups: &[],
            input: &input,
            facts: vec![],
            resource: None,
            approval: None,
            requires: &[],
            sink: None,
            labels: &labels,
        })
        .collect();
    // Without the validator, which takes its time with this many in a debug build.
    let (vocabulary, faults) = Vocabulary::of(&tools);
    assert_eq!(faults, []);
    let source = Source::file(PolicySource { name: "many.cedar", text: &text });
    let rules = load::load(&[source], &vocabulary, None, Absent::Faulty(&BTreeSet::new()))
        .map_err(|faults| listed(&faults))
        .unwrap();
    Policies::sliced(String::new(), &vocabulary, rules).unwrap()
}

#[test]
fn two_thousand_policies_are_four_for_each_of_five_hundred_tools() {
    let policies = gate(500);
    assert_eq!(policies.slices.len(), 500);
    for slice in policies.slices.values() {
        let sizes = (slice.rules.len(), slice.policies.num_of_policies(), slice.permits.num_of_policies());
        assert_eq!(sizes, (4, 4, 1));
    }
    let session = alice();
    let judge = |n: i64| {
        let (arguments, facts) = (Map::from_iter([("n".to_owned(), json!(n))]), Map::new());
        policies.judge(&Ask {
            tool: "tool_321",
            session: &session,
            arguments: &arguments,
            facts: &facts,
            resource: None,
            run: &RunState::default(),
        })
    };
    assert_eq!(judge(1), Judgement::Permitted { by: vec!["tool_321.permit".into()] });
    assert_eq!(judge(13), Judgement::Forbidden(Why::Silent { policies: vec!["tool_321.silent".into()] }));
    assert!(matches!(judge(501), Judgement::NeedsApproval { .. }));
    assert!(matches!(judge(901), Judgement::Rule(hit) if hit.id == "tool_321.rule"));
}

#[test]
fn a_policy_without_a_scope_and_one_for_a_group_stand_in_the_slices_they_reach() {
    let text = r#"permit (principal, action, resource);
        forbid (principal, action in [Action::"read", Action::"create_refund"], resource) when { context.session.run == "x" };
        forbid (principal, action in Action::"tag:refunds", resource) when { context.session.run == "y" };"#;
    let policies = compile(text, &[get_order(), create_refund()]).unwrap();
    let ids = |tool: &str| policies.slices[tool].rules.iter().map(|rule| rule.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids("get_order"), ["refunds.1", "refunds.2"]);
    assert_eq!(ids("create_refund"), ["create_refund.approval", "refunds.1", "refunds.2", "refunds.3"]);
}
