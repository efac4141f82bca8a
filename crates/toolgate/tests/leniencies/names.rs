//! Names that are nearly those of a tool.

use super::*;

#[test]
fn a_near_name_is_taken_where_it_can_be_of_one_tool_alone() {
    let tool = |lenient: &[&str]| keys(lenient, json!({}));
    let admission_of = |tools: &[(&str, Value)]| {
        let mut admission = Admission::new(Limits::default());
        for (name, keys) in tools {
            admission.add(Contract::parse(name, keys).unwrap()).unwrap();
        }
        admission
    };
    let near = &["near_tool_name"];
    let admission = admission_of(&[("find_files", tool(near)), ("web-fetch", tool(near)), ("send_mail", tool(&[]))]);
    let named = |name: &str| {
        let taken = admission.admit(&Call::new("", name, "{}"));
        taken.map(|taken| {
            let used: Vec<&str> = taken.leniencies().iter().map(|used| used.by.as_str()).collect();
            (taken.tool().to_owned(), used.join(" "), taken.digest())
        })
    };
    let right = named("find_files").unwrap();
    assert_eq!(right.1, "");
    for name in ["find_files ", "FindFiles", "find-files", "find_flies", "functions.find_files"] {
        let (tool, used, digest) = named(name).unwrap();
        assert_eq!((tool.as_str(), used.as_str(), digest), ("find_files", "near_tool_name", right.2), "{name}");
    }
    for name in [
        "fetch",
        "find_file",
        "shop.find_files",
        "send-mail",
        "send_email",
        "mail",
        "",
        "print(find_files(glob='*'))",
        "delete_everything",
    ] {
        assert_eq!(named(name).unwrap_err().code(), Code::UnknownTool, "{name}");
    }
    // Two that are near, one of which takes no near name: what was meant cannot be told.
    let admission = admission_of(&[("get_order", tool(near)), ("get_orders", tool(&[]))]);
    assert_eq!(admission.admit(&Call::new("", "get_ordes", "{}")).unwrap_err().code(), Code::UnknownTool);
    assert_eq!(admission.admit(&Call::new("", "GetOrder", "{}")).unwrap().tool(), "get_order");
}

#[test]
fn the_only_tool_that_is_seen_is_not_run_for_its_opposite() {
    let near = &["near_tool_name"];
    for (known, said) in [
        ("create_refund", ["delete_refund", "undo_create_refund", "dry_run_create_refund", "refund"]),
        ("enable_user", ["disable_user", "dont_enable_user", "unable_user", "user"]),
        ("delete_order", ["order", "undelete_order", "undo_delete_order", "get_order"]),
    ] {
        let mut admission = Admission::new(Limits::default());
        admission.add(Contract::parse(known, &keys(near, json!({}))).unwrap()).unwrap();
        for name in said {
            let refusal = admission.admit(&Call::new("", name, "{}")).unwrap_err();
            assert_eq!(refusal.code(), Code::UnknownTool, "{name} for {known}");
        }
    }
    // A hint may be wrong, and says so: whoever reads it decides.
    let mut admission = Admission::new(Limits::default());
    admission.add(Contract::parse("enable_user", &keys(near, json!({}))).unwrap()).unwrap();
    let refusal = admission.admit(&Call::new("", "disable_user", "{}")).unwrap_err();
    assert!(serde_json::to_string(&refusal).unwrap().contains("did you mean enable_user?"), "{refusal:?}");
}

#[tokio::test]
async fn a_hidden_tool_is_as_far_from_every_name_as_one_that_is_not_there() {
    let tool = |name: &str| {
        let tool = Tool::read(name, |arguments: Value, _: &Context| async move { Ok(arguments) });
        let keys = keys(&["near_tool_name"], json!({}));
        keys.as_object().unwrap().iter().fold(tool, |tool, (key, value)| tool.key(key, value.clone()))
    };
    let gate = |names: &[&str]| {
        let policy = r#"permit (principal, action == Action::"find_file", resource);
            permit (principal in Role::"all", action, resource);"#;
        let builder = names.iter().fold(Gate::builder(), |builder, name| builder.tool(tool(name)));
        builder.policy(policy).store(Store::memory()).build().unwrap()
    };
    let alice = Session::new(Principal::new("local", "alice"), "acme");
    let (with, without) = (gate(&["find_file", "find_files", "drop_table"]), gate(&["find_file"]));
    for name in ["find_file", "find_files", "FindFiles", "find_filed", "drop_table", "drop-table", "DropTable", "other"]
    {
        let said = async |gate: &Gate, session: &Session| {
            let reply = gate.call(Call::new("call_1", name, "{}"), session).await.unwrap();
            let mut shown = serde_json::to_value(&reply).unwrap();
            shown["ref"] = Value::Null;
            shown["error"]["ref"] = Value::Null;
            (shown, reply.trace().stages()[0].learned.get("leniencies").cloned())
        };
        assert_eq!(said(&with, &alice).await, said(&without, &alice).await, "{name}");
        // Whoever sees all of them is told by the name alone.
        let boss = alice.clone().role("all");
        let (shown, used) = said(&with, &boss).await;
        let exact = ["find_file", "find_files", "drop_table"].contains(&name);
        let near = ["FindFiles", "drop-table", "DropTable"].contains(&name);
        assert_eq!((shown["ok"] == true, used.is_some()), (exact || near, near), "{name}: {shown}");
    }
}

#[tokio::test]
async fn a_write_by_a_near_name_is_recorded_under_the_name_of_its_tool() {
    let keys = with(
        keys(&["near_tool_name"], json!({ "n": { "type": "integer" } })),
        json!({ "lenient_for_write": ["near_tool_name"], "effect": "write" }),
    );
    let tool = Tool::write("create_refund", |arguments: Value, _: &Context| async move { Ok(arguments) });
    let tool = keys.as_object().unwrap().iter().fold(tool, |tool, (key, value)| tool.key(key, value.clone()));
    let gate = Gate::builder().tool(tool).policy("permit (principal, action, resource);").store(Store::memory());
    let gate = gate.build().unwrap();
    let alice = Session::new(Principal::new("local", "alice"), "acme");
    let reply = gate.call(Call::new("call_1", "CreateRefund", r#"{"n":1}"#), &alice).await.unwrap();
    assert_eq!((reply.is_ok(), reply.tool()), (true, "create_refund"));
    let learned = &reply.trace().stages()[0].learned;
    assert_eq!(learned.get("spelled"), Some(&json!("CreateRefund")));
    assert_eq!(learned.get("leniencies"), Some(&json!([{ "leniency": "near_tool_name", "at": "" }])));
    let again = gate.call(Call::new("call_2", "create_refund", r#"{"n":1}"#), &alice).await.unwrap();
    assert!(again.is_ok() && again.trace().stages()[0].learned.get("spelled").is_none());
    let refused = gate.call(Call::new("call_3", "Create-Refund", r#"{"n":"x"}"#), &alice).await.unwrap();
    assert_eq!((refused.is_ok(), refused.tool()), (false, "create_refund"));
    assert_eq!(refused.trace().stages()[0].learned.get("spelled"), Some(&json!("Create-Refund")));
}
