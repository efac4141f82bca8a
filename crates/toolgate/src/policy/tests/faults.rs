use super::*;

/// The faults of a permit for refunds under `condition`, which begins at column 72 of line 1.
fn when(condition: &str) -> String {
    let text = format!(r#"permit (principal, action == Action::"create_refund", resource) when {{ {condition} }};"#);
    faults(&text).replace("policies/refunds.cedar:", "")
}

/// The faults of a contract whose approval is needed `when`.
fn approval(when: &'static str, role: &'static str, message: Option<&'static str>) -> String {
    let tool = Declared { approval: Some((when, role, message)), ..create_refund() };
    compile("", &[tool]).map_or_else(|faults| listed(&faults), |_| String::new())
}

#[test]
fn a_misspelled_member_is_named_with_its_place_and_what_was_meant() {
    for (condition, fault) in [
        (
            "context.input.amont_cents > 5",
            "1:86: `context.input.amont_cents` does not exist (did you mean `amount_cents`?)\n",
        ),
        ("context.inputs.amount_cents > 5", "1:80: `context.inputs` does not exist (did you mean `input`?)\n"),
        ("context.facts.ordr.left_cents > 1", "1:86: `context.facts.ordr` does not exist (did you mean `order`?)\n"),
        (
            "context.facts.order.left > 1",
            "1:92: `context.facts.order.left` does not exist (did you mean `left_cents`?)\n",
        ),
        (
            "context[\"session\"].user == \"x\"",
            "1:91: `context.session.user` does not exist (known: calls, completed, labels, run)\n",
        ),
        ("principal in Rolle::\"x\"", "1:85: there is no entity type `Rolle` (did you mean `Role`?)\n"),
        ("resource is Ordr", "1:84: there is no entity type `Ordr` (did you mean `Order`?)\n"),
        (
            "action == Action::\"create_refnd\"",
            "1:82: there is no action `create_refnd` (did you mean `create_refund`?)\n",
        ),
        (
            "amount_cents > 5",
            "1:72: `amount_cents` is not known here (an argument is `context.input.amount_cents`, a text is `\"amount_cents\"`)\n",
        ),
        (
            "context.input.amount_cents.greatrThan(5)",
            "1:72: there is no function `greatrThan` (did you mean `greaterThan`?)\n",
        ),
    ] {
        assert_eq!(when(condition), fault);
    }
}

#[test]
fn asking_first_with_has_does_not_hide_a_misspelled_member() {
    let fault = "1:90: `context.input.amont_cents` does not exist (did you mean `amount_cents`?)\n";
    assert_eq!(when("context.input has amont_cents && context.input.amont_cents > 5"), fault);
    assert_eq!(
        when("(context.input has amont_cents && context.input.amont_cents > 5) || true"),
        fault.replace(":90", ":91")
    );
}

#[test]
fn a_member_without_one_type_says_why_it_cannot_be_used() {
    let fault = when("context.input has extra && context.input.extra == \"x\"");
    assert!(fault.starts_with(
        "1:90: `context.input.extra` of create_refund cannot be used in policies, because its schema allows several types"
    ));
    // In a group too, where the other tools have the member: there the guard would never let the forbid apply.
    let other = Declared::new("other", true, json!({"properties": {"amount_cents": {}}}));
    let text = r#"forbid (principal, action in Action::"write", resource)
when { context.input has amount_cents && context.input.amount_cents > 5 };"#;
    let found = listed(&compile(text, &[create_refund(), other]).unwrap_err());
    assert!(
        found.starts_with("policies/refunds.cedar:2:26: `context.input.amount_cents` of other cannot be used"),
        "{found}"
    );
}

#[test]
fn what_may_be_absent_is_asked_for_first() {
    assert_eq!(
        when("context.facts.order.note == \"x\""),
        "1:72: `context.facts.order.note` may be absent (ask first: `context.facts.order has note && ...`)\n"
    );
    assert_eq!(
        faults("permit (principal, action, resource)\nwhen { context.input.amount_cents > 5 };"),
        "policies/refunds.cedar:2:8: `context.input.amount_cents` does not exist for get_order \
         (ask first: `context.input has amount_cents && ...`, or narrow the action)\n"
    );
}

#[test]
fn types_that_do_not_match_are_named_in_words() {
    for (condition, fault) in [
        ("context.input.currency > 5", "1:72: `context.input.currency` is a text, where an integer is needed\n"),
        (
            "context.input.currency == 5",
            "1:72: `context.input.currency == 5` brings different types together: an integer and a text\n",
        ),
        (
            "context.input.currency",
            "1:72: `context.input.currency` is a text, where a boolean is needed (compare it with something)\n",
        ),
        (
            "context.input has rate && context.input.rate > 5",
            "1:98: `context.input.rate` is a decimal number, where an integer is needed (compare decimals by name: `.lessThan(decimal(\"10.0\"))`)\n",
        ),
    ] {
        assert_eq!(when(condition), fault);
    }
}

#[test]
fn broken_grammar_is_explained_without_the_grammar() {
    for (text, fault) in [
        ("prmit (principal, action, resource);", "1:1: `prmit` is no effect (did you mean `permit`?)\n"),
        ("permit (principal, action resource);", "1:27: `resource` cannot stand here\n"),
        ("permit (principal, action, resource)", "1:37: the policy does not end (end it with `;`)\n"),
        (
            "permit (principal, action, resource)\n@id(\"x\") permit (principal, action, resource);",
            "2:10: the policy before this one does not end (end it with `;`)\n",
        ),
        ("permit (principal, action, resource) when { \"abc };\n", "1:45: this text has no end (close it with `\"`)\n"),
        ("permit (principal, action, resource) when { 1 = 2 };", "1:45: `=` compares nothing (write `==`)\n"),
        ("permit (principal, action, resource) whn { true };", "1:38: `whn` is no condition (did you mean `when`?)\n"),
        (
            "permit (principal == ?principal, action, resource);",
            "1:22: a policy with `?principal` or `?resource` is a template, and there are none here (name the principal or the resource itself)\n",
        ),
    ] {
        assert_eq!(faults(text).replace("policies/refunds.cedar:", ""), fault);
    }
}

#[test]
fn no_inner_words_of_the_library_reach_the_operator() {
    for condition in [
        "context.input.amount_cents >",
        "context.input.amount_cents > 99999999999999999999",
        "foo.bar == 1",
        "1/2 == 3",
        "#",
        "[].contains(1)",
        "decimal(\"x\") == decimal(\"1.0\")",
        "context.input == context.facts.order",
        "[1, \"a\"].contains(1)",
        "context.input.currency has foo",
        "ip(context.input.currency).isLoopback()",
        "1 < 2 < 3",
        "context has 3",
        "context.input.if == 3",
        "principal in User",
        "lessThan(decimal(\"1.0\"))",
        "principal.name == \"x\"",
        "context.input.currency == \"a\u{202e}b\"",
        "1 == 2",
        "\"a\".b.c()",
        "!!!!!!true",
        "principal",
        "if true then 1",
        "context.input.amount_cents in 3",
        "{\"a\": 1, \"a\": 2} == {}",
        "f(1)",
        "a::b == 1",
    ] {
        let told = when(condition);
        for inner in
            ["expected", "upper bound", "__cedar", "RHS", "uid", "invariant", "policy `", "Expr", "Long", "token"]
        {
            assert!(!told.contains(inner), "{condition}: {told}");
        }
    }
}

#[test]
fn every_fault_of_every_policy_is_told_at_once_in_order() {
    let text = "permit (principal, action == Action::\"get_ordr\", resource);\n\
                prmit (principal, action, resource);\n\
                @idd(\"x\") forbid (principal, action, resource) when { context.input.nothing == 1 };\n\
                permit (principal in Rle::\"x\", action, resource);";
    let found = compile(text, &[get_order(), create_refund()]).unwrap_err();
    let lines: Vec<_> = found.iter().map(|fault| (fault.line, fault.column)).collect();
    assert_eq!(lines, [(1, 30), (2, 1), (3, 1), (3, 69), (4, 22)], "{}", listed(&found));
}

#[test]
fn annotations_are_known_and_fit_each_other() {
    for (text, fault) in [
        (
            "@idd(\"x\") permit (principal, action, resource);",
            "1:1: there is no annotation @idd (did you mean `id`?)\n",
        ),
        (
            "@id(\"a b\") permit (principal, action, resource);",
            "1:1: @id is 1 to 128 letters, digits and `_ . : / -`\n",
        ),
        (
            "@message(\"no\") forbid (principal, action, resource);",
            "1:1: a policy with @message needs an @id (records and people name it by that)\n",
        ),
        (
            "@id(\"a\") @message(\"no\") permit (principal, action, resource);",
            "1:10: a permit has no @message; it belongs to a forbid\n",
        ),
        (
            "@id(\"a\") @message(\"no\") @fix(\"operator\") forbid (principal, action, resource);",
            "1:25: @fix is \"model\" or \"user\"\n",
        ),
        (
            "@id(\"a\")\npermit (principal, action, resource);\n\n  @id(\"a\")\nforbid (principal, action, resource);",
            "4:3: another policy has the id `a` (the other one stands in policies/refunds.cedar:1)\n",
        ),
        (
            "permit (principal, action, resource);\n@id(\"refunds.1\") permit (principal, action, resource);",
            "2:1: another policy has the id `refunds.1` (the other one stands in policies/refunds.cedar:1)\n",
        ),
    ] {
        assert_eq!(faults(text).replacen("policies/refunds.cedar:", "", 1), fault);
    }
}

#[test]
fn consent_has_somebody_to_give_it_and_something_to_lift() {
    assert_eq!(
        faults("@id(\"a\") @approvers(\"manager\") forbid (principal, action, resource);"),
        "policies/refunds.cedar:1:10: a policy with @approvers must yield to their consent (end it with `unless { context.approved }`)\n"
    );
    let unnamed = faults("forbid (principal, action, resource) unless { context.approved };");
    assert!(unnamed.contains(":1:55: `context.approved` needs @approvers"), "{unnamed}");
    let permit =
        faults("@id(\"a\") @approvers(\"self\") permit (principal, action, resource) when { context.approved };");
    assert!(permit.contains("a permit has no @approvers"), "{permit}");
    // However the context is dressed up.
    let hidden = faults("forbid (principal, action, resource) unless { {c: context}.c.approved };");
    assert!(hidden.contains("`context` can only be used by its members"), "{hidden}");
}

#[test]
fn a_message_shows_only_facts_that_every_tool_in_scope_looks_up() {
    let told = |message: &str, scope: &str| {
        faults(&format!("@id(\"a\") @message(\"{message}\") forbid (principal, {scope}, resource);"))
            .replace("policies/refunds.cedar:1:10: @message: ", "")
    };
    let refund = "action == Action::\"create_refund\"";
    assert_eq!(
        told("{fact.order/left_cent}", refund),
        "the fact `order` of create_refund has no member `/left_cent`\n"
    );
    assert!(told("{fact.order/id}", refund).starts_with("`/id` of the fact `order` may be any text"));
    assert!(told("{amount_cents}", refund).starts_with("`{amount_cents}` is not something that it can show"));
    let bare = Declared { facts: vec![], ..get_order() };
    let text = "@id(\"a\") @message(\"{fact.order/left_cents}\") forbid (principal, action, resource) when { true };";
    let found = listed(&compile(text, &[create_refund(), bare]).unwrap_err());
    assert!(found.contains("get_order looks up no fact `order`"), "{found}");
}

#[test]
fn a_policy_that_can_never_apply_is_a_fault_unless_its_group_is_empty() {
    assert!(when("1 == 2").contains("1:1: the policy can never apply"));
    assert!(
        faults("permit (principal, action, resource is Tool);").contains("no tool has this action, this principal")
    );
    let text = r#"permit (principal, action in Action::"write", resource);"#;
    assert!(compile(text, &[get_order()]).is_ok(), "a gate of reads alone may have it");
    let group = faults(r#"permit (principal, action == Action::"write", resource);"#);
    assert!(group.contains(":1:38: `write` is a group of actions") && group.lines().count() == 1, "{group}");
}

#[test]
fn an_approval_of_a_contract_is_checked_like_a_policy_and_named_by_its_key() {
    assert_eq!(approval("context.input.amount_cents > 5000 // large ones", "manager", None), "");
    assert_eq!(
        approval("context.input.amont_cents > 5000", "manager", None),
        "tools/create_refund.toml: approval.when, column 15: `context.input.amont_cents` does not exist (did you mean `amount_cents`?)\n"
    );
    assert_eq!(
        approval("context.input.amount_cents >", "manager", None),
        "tools/create_refund.toml: approval.when, column 29: the text ends too early (a bracket or a value is missing)\n"
    );
    assert_eq!(
        approval("context.input.amount_cents >\n  context.input.currency", "self", None),
        "tools/create_refund.toml: approval.when, line 2, column 3: `context.input.currency` is a text, where an integer is needed\n"
    );
    assert!(approval(" ", "manager", None).contains("approval.when says nothing"));
    assert!(approval("true", "", None).contains("approval.role names no role"));
    assert!(
        approval("true", "manager", Some("{order_id}")).starts_with("tools/create_refund.toml: approval: @message: ")
    );
}

#[test]
fn the_condition_of_an_approval_cannot_close_the_policy_around_it() {
    let escape = "true }; permit (principal, action, resource); forbid (principal, action, resource) when { true";
    assert!(approval(escape, "manager", None).starts_with("tools/create_refund.toml: approval.when, column 6: "));
}

#[test]
fn a_tool_that_clashes_with_the_words_of_policies_is_a_fault_of_its_contract() {
    let named = |name, resource| Declared { resource, ..Declared::new(name, true, json!({})) };
    let found = |tools: &[Declared]| listed(&compile("", tools).unwrap_err());
    assert!(
        found(&[named("write", None)]).starts_with("tools/write.toml: a group of actions has the name of this tool")
    );
    assert!(found(&[named("a", None), named("a", None)]).starts_with("tools/a.toml: two tools have this name"));
    for kind in ["User", "Long", "Or der", "Shop::Order", "if", ""] {
        assert!(
            found(&[named("a", Some(kind))]).starts_with("tools/a.toml: resource.type cannot name an entity"),
            "{kind}"
        );
    }
}

#[test]
fn odd_names_of_tools_tags_and_members_are_only_names() {
    let tool = Declared {
        tags: vec!["a \"b\"\\\n".into()],
        ..Declared::new(
            "create-issue.v2",
            true,
            json!({"properties": {"x-y \"z\"": {"type": "integer"}, "if": {"type": "string"}, "": {"type": "string"}}}),
        )
    };
    let text = r#"permit (principal, action in Action::"tag:a \"b\"\\\n", resource)
        when { context.input has "x-y \"z\"" && context.input["x-y \"z\""] > 5 && context.input has "if" };"#;
    assert!(compile(text, &[tool]).map_err(|faults| listed(&faults)).is_ok());
}

#[test]
fn a_broken_approval_hides_no_fault_of_the_policies() {
    let tool = Declared { approval: Some(("context.input.", "manager", None)), ..create_refund() };
    let text = r#"permit (principal, action, resource) when { context.input.order_id > 5 };"#;
    let found = compile(text, &[get_order(), tool]).unwrap_err();
    let sources: Vec<_> = found.iter().map(|fault| fault.source.as_str()).collect();
    assert_eq!(sources, ["policies/refunds.cedar", "tools/create_refund.toml"], "{}", listed(&found));
}
