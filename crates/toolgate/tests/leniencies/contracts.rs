//! What a contract says of leniencies, and what it says wrongly.

use super::*;

#[test]
fn a_write_is_lenient_only_where_that_is_said_twice() {
    let properties =
        json!({ "n": { "type": "integer" }, "m": { "type": "integer", "x-lenient": ["integer_as_string"] } });
    let once = with(keys(&["integer_as_string", "trim"], properties), json!({ "effect": "write" }));
    assert_eq!(refused(&once, json!({ "n": "1" })), ["/n"]);
    assert_eq!(refused(&once, json!({ "m": "1" })), ["/m"]);
    let twice = with(once.clone(), json!({ "lenient_for_write": ["integer_as_string", "trim"] }));
    assert_taken(
        &twice,
        json!({ "n": "1", "m": "2" }),
        json!({ "n": 1, "m": 2 }),
        &["integer_as_string at /m", "integer_as_string at /n"],
    );
    // A gate does not take a contract that says what never applies.
    let tool = |keys: &Value| {
        let tool = Tool::write("tool", |arguments: Value, _: &Context| async move { Ok(arguments) });
        keys.as_object().unwrap().iter().fold(tool, |tool, (key, value)| tool.key(key, value.clone()))
    };
    let check = |keys: &Value| match Gate::builder().tool(tool(keys)).check(&[]) {
        Ok(()) => Vec::new(),
        Err(BuildError::Faults { tools, .. }) => {
            tools.into_iter().map(|fault| (fault.problem.at, fault.problem.hint.unwrap())).collect()
        }
        Err(other) => panic!("{other}"),
    };
    assert_eq!(check(&twice), []);
    let named = |name: &str| format!("lenient_for_write = [\"{name}\"]");
    assert_eq!(
        check(&once),
        [
            ("/lenient/0".to_owned(), named("integer_as_string")),
            ("/lenient/1".to_owned(), named("trim")),
            ("/input".to_owned(), named("integer_as_string")),
        ]
    );
}

#[test]
fn a_member_can_name_its_own_leniencies() {
    let contract = keys(
        &["trim"],
        json!({
            "a": { "type": "integer", "x-lenient": ["integer_as_string"] },
            "b": { "type": "integer" },
            "list": { "type": "array", "items": { "type": "object", "properties": {
                "on": { "type": "boolean", "x-lenient": ["boolean_as_string"] } } } },
            "union": { "anyOf": [{ "type": "integer", "x-lenient": ["integer_as_string"] }, { "type": "null" }] },
        }),
    );
    assert_taken(
        &contract,
        json!({ "a": "1", "list": [{ "on": "true" }, { "on": false }], "union": "2" }),
        json!({ "a": 1, "list": [{ "on": true }, { "on": false }], "union": 2 }),
        &["integer_as_string at /a", "boolean_as_string at /list/0/on", "integer_as_string at /union"],
    );
    assert_eq!(refused(&contract, json!({ "a": "1", "b": "2" })), ["/b"], "what is mended is not told again");
}

#[test]
fn an_imported_schema_loosens_nothing() {
    let properties = json!({ "n": { "type": "integer", "x-lenient": ["integer_as_string", "anything"] } });
    let contract = with(keys(&[], properties), json!({ "imported": true }));
    assert_eq!(refused(&contract, json!({ "n": "1" })), ["/n"]);
}

#[test]
fn a_secret_that_was_mended_is_nowhere_but_in_the_arguments() {
    let secret = json!({ "type": "integer", "x-secret": true });
    let contract = keys(&["integer_as_string"], json!({ "pin": secret, "n": { "type": "integer" } }));
    let taken = admit(&contract, r#"{"pin": "4711"}"#).unwrap();
    assert_eq!(taken.members()["pin"], 4711);
    assert_eq!(taken.masked(), json!({ "pin": "[secret]" }));
    assert!(!format!("{:?}", taken.leniencies()).contains("4711"));
    let refusal = admit(&contract, r#"{"pin": "4711", "n": "x"}"#).unwrap_err();
    assert!(!format!("{refusal:?}").contains("4711"));
}

#[test]
fn what_a_contract_says_wrongly_of_leniencies_is_told() {
    let fault = |keys: Value, at: &str, hint: &str| {
        let faults = faults(&keys);
        assert!(faults.iter().any(|(place, said)| place == at && said.contains(hint)), "{faults:?}");
    };
    let n = json!({ "n": { "type": "integer" } });
    fault(keys(&["integer_as_strng"], n.clone()), "/lenient/0", "did you mean integer_as_string?");
    fault(keys(&["everything"], n.clone()), "/lenient/0", "known: integer_as_string, ");
    fault(keys(&["trim", "trim"], n.clone()), "/lenient/1", "");
    fault(with(keys(&[], n.clone()), json!({ "lenient": "trim" })), "/lenient", "");
    fault(with(keys(&["trim"], n.clone()), json!({ "lenient_for_write": ["trim"] })), "/lenient_for_write", "");
    let write =
        with(keys(&["trim"], n.clone()), json!({ "effect": "write", "lenient_for_write": ["trim", "code_fence"] }));
    fault(write, "/lenient_for_write/1", "name it under `lenient`");
    let member = |named: Value| keys(&[], json!({ "n": { "type": "integer", "x-lenient": named } }));
    fault(member(json!(["near_tool_name"])), "/input/properties/n/x-lenient/0", "`lenient` of the contract");
    fault(member(json!(["code_fence"])), "/input/properties/n/x-lenient/0", "`lenient` of the contract");
    fault(member(json!(["trimm"])), "/input/properties/n/x-lenient/0", "did you mean trim?");
    fault(member(json!("trim")), "/input/properties/n/x-lenient", "");
    fault(member(json!([1])), "/input/properties/n/x-lenient/0", "");
    let top = with(keys(&[], n.clone()), json!({ "input": { "properties": n, "x-lenient": ["trim"] } }));
    fault(top, "/input/x-lenient/0", "`lenient` of the contract");
    let output =
        json!({ "output": { "type": "object", "properties": { "r": { "type": "integer", "x-lenient": ["trim"] } } } });
    fault(with(keys(&[], json!({})), output), "/output", "");
}

#[test]
fn a_contract_has_bounds_of_its_own() {
    let n = json!({ "list": { "type": "array" } });
    let bound = |bounds: Value| with(keys(&[], n.clone()), json!({ "arguments": bounds }));
    let code = |keys: &Value, text: &str| match admit(keys, text) {
        Ok(_) => "admitted".to_owned(),
        Err(refusal) => refusal.problem_list()[0].code.clone(),
    };
    assert_eq!(code(&bound(json!({ "size": "16B" })), r#"{"list":[1,2,3]}"#), "admitted");
    assert_eq!(code(&bound(json!({ "size": "15B" })), r#"{"list":[1,2,3]}"#), "size");
    assert_eq!(code(&bound(json!({ "depth": 3 })), r#"{"list":[[1]]}"#), "admitted");
    assert_eq!(code(&bound(json!({ "depth": 2 })), r#"{"list":[[1]]}"#), "depth");
    assert_eq!(code(&bound(json!({ "members": 1 })), r#"{"list":[{"a":1}]}"#), "members");
    let long = json!({ "list": vec!["x".repeat(50_000); 21] }).to_string();
    assert_eq!(code(&bound(json!({})), &long), "size");
    assert_eq!(code(&bound(json!({ "size": "2MB" })), &long), "admitted");
    for (bounds, at) in [
        (json!({ "size": "17MB" }), "/arguments/size"),
        (json!({ "size": "0KB" }), "/arguments/size"),
        (json!({ "size": 5 }), "/arguments/size"),
        (json!({ "size": "lots" }), "/arguments/size"),
        (json!({ "depth": 0 }), "/arguments/depth"),
        (json!({ "depth": 65 }), "/arguments/depth"),
        (json!({ "members": -1 }), "/arguments/members"),
        (json!({ "members": 1_000_001 }), "/arguments/members"),
        (json!({ "length": 1 }), "/arguments/length"),
        (json!(5), "/arguments"),
    ] {
        assert_eq!(faults(&bound(bounds.clone()))[0].0, at, "{bounds}");
    }
}
