//! `mcp`: what stands in its form alone.

use super::*;
use crate::contract::Contract;
use crate::wire::mcp::{Era, Implementation, Said, definition, proposed, said};

const SERVER: Implementation<'static> = Implementation { name: "toolgate", version: "1" };

fn request(id: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
}

fn result(reply: &Reply, era: Era<'_>) -> Value {
    match said(Ok(reply), era) {
        Said::Result(text) => serde_json::from_str(&text).unwrap(),
        Said::Error { message, .. } => panic!("an error: {message}"),
    }
}

fn error(outcome: Result<&Reply, &Fault>) -> (i64, Value) {
    match said(outcome, Era::Handshake) {
        Said::Error { code, data, .. } => (code, serde_json::from_str(&data).unwrap()),
        Said::Result(text) => panic!("a result: {text}"),
    }
}

#[test]
fn a_request_gives_one_call_with_the_text_of_its_arguments_and_is_answered_under_its_own_id() {
    let params = r#"{"name":"shop.get_order","arguments":{"n":12345678901234567890, "n":1.50},"_meta":{"x":1}}"#;
    for (id, shown) in [("7", "7"), (r#""7""#, "7"), ("-3", "-3"), (r#""a\u0062""#, "ab")] {
        let turn = read(Dialect::Mcp, &request(id, params));
        assert_eq!(whole(&turn), [(shown, "shop.get_order", r#"{"n":12345678901234567890, "n":1.50}"#)]);
        let (_, asked) = turn.open();
        let answers = asked.answer(&[Ok(reply(outcome("{}", Vec::new(), false)))]);
        let id: Value = serde_json::from_str(id).unwrap();
        assert_eq!((&answers[0]["id"], &answers[0]["result"]["isError"]), (&id, &json!(false)));
    }
}

#[test]
fn the_program_names_the_operation_beside_the_arguments_and_what_names_none_runs_nothing() {
    let call = |meta: &str| {
        let params = format!(r#"{{"name":"pay","arguments":{{}},"_meta":{meta}}}"#);
        proposed(&json!(1), Some(params.as_bytes()), &Limits::default())
    };
    let longest = "x".repeat(255);
    for id in ["order-77/charge", "8e03978e-40d5-43dd-bc93-6894a57f9324", longest.as_str()] {
        let Proposed::Call(call) = call(&json!({ "toolgate/operation": id }).to_string()) else { panic!("{id}") };
        assert_eq!(call.operation.unwrap().as_str(), id);
    }
    let Proposed::Call(unnamed) = call(r#"{"operation":"x"}"#) else { panic!() };
    assert_eq!(unnamed.operation, None);
    let long = json!({ "toolgate/operation": "x".repeat(256) }).to_string();
    let twice = r#"{"toolgate/operation":"a","toolgate/operation":"a"}"#;
    let values = [r#""""#, r#""a b""#, r#""\u00e9""#, "7", "null", r#"["a"]"#];
    let metas = values.map(|value| format!(r#"{{"toolgate/operation":{value}}}"#));
    for meta in metas.iter().map(String::as_str).chain([long.as_str(), twice]) {
        let Proposed::Broken(broken) = call(meta) else { panic!("{meta}") };
        assert_eq!(broken.refusal.code(), Code::InvalidCall);
        let [problem] = broken.refusal.problem_list() else { panic!("{meta}: {:?}", broken.refusal) };
        assert!(problem.at.starts_with("/_meta"), "{meta}: {}", problem.at);
        assert!(!problem.message.contains("xxx"), "no value is repeated");
    }
}

#[test]
fn what_cannot_be_answered_or_is_another_request_is_a_fault_of_the_message() {
    let one = request("1", r#"{"name":"x"}"#);
    for (message, expected) in [
        (format!("[{one}]"), "a batch of requests"),
        (format!(" \n[{one},{one}]"), "a batch of requests"),
        (one.replace(r#""id":1,"#, ""), "a call without an id"),
        (request("null", r#"{"name":"x"}"#), "neither text nor a whole number"),
        (request("1.5", r#"{"name":"x"}"#), "neither text nor a whole number"),
        (request("[1]", r#"{"name":"x"}"#), "neither text nor a whole number"),
        (one.replace("tools/call", "tools/list"), "another method than"),
        (one.replace("2.0", "1.0"), "another jsonrpc than"),
        (one.replace(r#""jsonrpc":"2.0","#, ""), "the request has no jsonrpc"),
        (one.replace(r#""id":1"#, r#""id":1,"id":2"#), "the request"),
    ] {
        let found = fault(Dialect::Mcp, &message);
        assert!(found.contains(expected), "{message}\n{found}");
    }
}

#[test]
fn a_member_beside_what_the_protocol_knows_is_refused_where_it_stands() {
    let stray = request("1", r#"{"name":"x","tenant":"globex","arguments":{}}"#);
    assert_eq!(problems(&read(Dialect::Mcp, &stray), 0), [("/params/tenant", "additional_property")]);
    let beside = request("1", r#"{"name":"x"}"#).replace(r#""id":1"#, r#""id":1,"user":"eve""#);
    assert_eq!(problems(&read(Dialect::Mcp, &beside), 0), [("/user", "additional_property")]);
    let Proposed::Broken(broken) = proposed(&json!(1), Some(br#"{"name":7,"user":1}"#), &Limits::default()) else {
        panic!("whole")
    };
    let places: Vec<&str> = broken.refusal.problem_list().iter().map(|problem| problem.at.as_str()).collect();
    assert_eq!(places, ["/name", "/user"]);
    assert!(matches!(proposed(&json!(1), None, &Limits::default()), Proposed::Broken(_)));
}

#[test]
fn the_trace_of_a_call_comes_from_its_meta_and_what_is_malformed_is_none() {
    let traced = |meta: &str| {
        let turn = read(Dialect::Mcp, &request("1", &format!(r#"{{"name":"x","_meta":{meta}}}"#)));
        match &turn.calls()[0] {
            Proposed::Call(call) => call.traced.as_ref().map(|context| context.trace_id().to_owned()),
            Proposed::Broken(broken) => panic!("{broken:?}"),
        }
    };
    let id = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{id}-00f067aa0ba902b7-01");
    assert_eq!(traced(&format!(r#"{{"traceparent":"{parent}","tracestate":"a=1"}}"#)), Some(id.to_owned()));
    for none in ["{}", r#"{"traceparent":"00-1-2-01"}"#, r#"{"traceparent":7}"#, "null"] {
        assert_eq!(traced(none), None, "{none}");
    }
}

#[test]
fn a_wish_for_a_task_is_passed_over_and_the_call_is_made() {
    let turn = read(Dialect::Mcp, &request("1", r#"{"name":"x","task":{"ttl":1000}}"#));
    assert_eq!(whole(&turn), [("1", "x", "")]);
}

#[test]
fn a_result_stands_in_text_and_structure_with_its_own_bytes_and_the_rest_beside_it() {
    let reply = reply(outcome(r#"{"total":1.10,"pad":"ü"}"#, Vec::new(), false));
    let Said::Result(text) = said(Ok(&reply), Era::Handshake) else { panic!("an error") };
    assert!(text.contains(r#""structuredContent":{"total":1.10,"pad":"ü"}"#), "{text}");
    let found = result(&reply, Era::Handshake);
    assert_eq!(found["content"], json!([{"type": "text", "text": r#"{"total":1.10,"pad":"ü"}"#}]));
    assert_eq!(found["isError"], json!(false));
    let note = &found["_meta"]["toolgate/reply"];
    assert_eq!(*note, json!({"effect": "done", "replayed": false, "ref": reply.reference().as_str()}));
    assert_eq!(found.get("resultType"), None);
}

#[test]
fn a_result_of_the_stateless_era_says_that_it_is_complete_and_by_whom_and_may_be_any_json() {
    let list = reply(outcome("[1,2]", Vec::new(), false));
    assert_eq!(result(&list, Era::Handshake).get("structuredContent"), None);
    let found = result(&list, Era::Stateless(SERVER));
    assert_eq!(found["structuredContent"], json!([1, 2]));
    assert_eq!(found["resultType"], json!("complete"));
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"], json!({"name": "toolgate", "version": "1"}));
}

#[test]
fn a_model_can_see_that_a_result_is_replayed_or_cut() {
    let cut = vec![Truncated { at: "/rows".into(), kept: 2, of: 9 }];
    let first = reply(outcome(r#"{"rows":[1,2]}"#, cut, false)).replayed_from(Ref::fresh());
    let found = result(&first, Era::Handshake);
    let aside: Value = serde_json::from_str(found["content"][1]["text"].as_str().unwrap()).unwrap();
    let note = first.note().unwrap();
    let cut = json!([{"at": "/rows", "kept": 2, "of": 9}]);
    assert_eq!(aside, json!({"replayed": true, "note": note, "truncated": cut}));
    assert!(note.starts_with("Nothing ran now") && note.contains("another operation id"), "{note}");
    assert_eq!(found["structuredContent"], json!({"rows": [1, 2]}));
    assert_eq!(found["_meta"]["toolgate/reply"]["first_ref"], json!(first.first_reference().unwrap().as_str()));

    let blocks = r#"{"content":[{"type":"text","text":"a,b]"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}"#;
    let content = reply(outcome(blocks, Vec::new(), true));
    let given: Value = serde_json::from_str(blocks).unwrap();
    assert_eq!(result(&content, Era::Handshake)["content"], given["content"]);
    assert_eq!(result(&content, Era::Handshake).get("structuredContent"), None);
    let again = result(&content.replayed_from(Ref::fresh()), Era::Handshake);
    assert_eq!(again["content"].as_array().unwrap().len(), 3);
    let aside: Value = serde_json::from_str(again["content"][2]["text"].as_str().unwrap()).unwrap();
    assert_eq!(aside, json!({"replayed": true, "note": note}));
    let none = reply(outcome(r#"{"content":[]}"#, Vec::new(), true)).replayed_from(Ref::fresh());
    assert_eq!(result(&none, Era::Handshake)["content"].as_array().unwrap().len(), 1);
}

#[test]
fn a_refusal_is_a_result_that_the_model_reads_and_a_tool_that_is_not_there_is_an_error() {
    let forbidden = refused(Refusal::before(Code::Forbidden));
    let found = result(&forbidden, Era::Handshake);
    assert_eq!((&found["isError"], found.get("structuredContent")), (&json!(true), None));
    assert_eq!(found["content"][0]["text"], json!(serde_json::to_string(&forbidden).unwrap()));

    let unknown = refused(Refusal::before(Code::UnknownTool));
    let (code, data) = error(Ok(&unknown));
    assert_eq!(code, -32602);
    assert_eq!(data, serde_json::to_value(&unknown).unwrap());
}

#[test]
fn a_failure_of_the_gate_is_an_error_that_tells_nothing_of_its_inside() {
    let (code, data) = error(Err(&Fault::Store(StoreError::Broken("disk /dev/sda".into()))));
    assert_eq!(
        (code, &data["error"]["code"], &data["error"]["effect"]),
        (-32603, &json!("unavailable"), &json!("none"))
    );
    assert!(!data.to_string().contains("disk"));
}

#[test]
fn only_a_result_that_is_an_object_has_a_declared_schema() {
    let of = |output: Value| {
        let keys = json!({"description": "x", "effect": "write", "input": {"properties": {}}, "output": output});
        definition(&Contract::parse("x", &keys).unwrap())
    };
    let object = of(json!({"type": "object", "properties": {"a": {"type": "integer"}}}));
    assert_eq!(object["outputSchema"]["type"], json!("object"));
    assert_eq!(object["inputSchema"]["type"], json!("object"));
    assert_eq!(object["annotations"], json!({"readOnlyHint": false}));
    assert_eq!(of(json!({"type": "array", "items": {"type": "integer"}, "maxItems": 3})).get("outputSchema"), None);
}

#[test]
fn no_argument_is_asked_for_as_a_header_which_nothing_would_compare() {
    let marked = json!({"type": "string", "x-mcp-header": "Region", "default": {"x-mcp-header": 1}});
    let schema = json!({
        "type": "object", "additionalProperties": false,
        "properties": {"region": marked, "x-mcp-header": {"type": "array", "items": marked}},
    });
    let keys = json!({"description": "x", "effect": "write", "imported": true, "input": schema, "output": schema});
    let definition = definition(&Contract::parse("x", &keys).unwrap());
    let plain = json!({"type": "string", "default": {"x-mcp-header": 1}});
    for schema in [&definition["inputSchema"], &definition["outputSchema"]] {
        assert_eq!(schema["properties"]["region"], plain);
        assert_eq!(schema["properties"]["x-mcp-header"]["items"], plain, "an argument may be called so");
    }
}

#[test]
fn a_deep_result_is_answered_whole() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(63), "}".repeat(63));
    let (_, asked) = read(Dialect::Mcp, &request("1", r#"{"name":"x"}"#)).open();
    let messages = asked.answer(&[Ok(reply(outcome(&deep, Vec::new(), false)))]);
    assert_eq!(messages[0]["result"]["structuredContent"].to_string(), deep);
}

#[test]
fn arguments_of_mcp_that_are_null_are_no_empty_object() {
    for (arguments, read) in [("", ""), (r#","arguments":null"#, "null"), (r#","arguments":{}"#, "{}")] {
        let params = format!(r#"{{"name":"n"{arguments}}}"#);
        let proposed = proposed(&json!(1), Some(params.as_bytes()), &Limits::default());
        let Proposed::Call(call) = proposed else { panic!("{proposed:?}") };
        assert_eq!(&*call.arguments, read.as_bytes());
    }
}
