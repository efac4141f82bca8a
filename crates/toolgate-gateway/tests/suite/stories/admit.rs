//! Admission alone: a case a line, and a line for each case.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::door::{Run, call, toolgate};
use crate::folder::Folder;

/// The answers to some lines, which are all answered.
fn admit(lines: &str) -> Vec<Value> {
    let run = Run::of(&mut toolgate(&["admit", "--jsonl"]), lines);
    assert_eq!((run.exit, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn add() -> Value {
    let input = json!({ "properties": { "a": { "type": "integer" }, "b": { "type": "number" } }, "required": ["a"] });
    json!({ "name": "add", "effect": "read", "input": input })
}

/// A case of `add` whose input stands in the line as it is given here.
fn case(id: &str, input: &str) -> String {
    format!(r#"{{"id":"{id}","contract":{},"input":{input}}}"#, add())
}

#[test]
fn an_admitted_call_shows_its_effective_arguments_and_a_refused_one_every_problem() {
    let answers =
        admit(&format!("{}\n{}\n", case("good", r#""{\"b\":0.50,\"a\":1e2}""#), case("bad", r#"{"b":"x","c":1}"#)));
    // The SHA-256 of ["add",{"a":100,"b":0.5}].
    let digest = "eb8cdaaea087541183b2a1bb9a712c0e18958c77a2bee48ec33cc24bd4e23019";
    let call = json!({
        "call_id": "", "tool": "add", "arguments": { "a": 100, "b": 0.5 }, "digest": digest, "leniencies": [],
    });
    assert_eq!(answers[0], json!({ "id": "good", "calls": [call] }));
    let error = &answers[1]["calls"][0]["error"];
    assert_eq!(
        (&error["code"], &error["fix"], &error["retry"], &error["effect"]),
        (&json!("invalid_arguments"), &json!("model"), &json!("after_change"), &json!("none"))
    );
    let places: Vec<&str> =
        error["problems"].as_array().unwrap().iter().map(|problem| problem["at"].as_str().unwrap()).collect();
    assert_eq!(places, ["/a", "/b", "/c"]);
}

#[test]
fn the_digest_is_the_one_that_a_gate_notes_of_the_same_call() {
    let folder = Folder::shop();
    let file: toml::Table = std::fs::read_to_string(folder.join("tools/get_order.toml")).unwrap().parse().unwrap();
    let mut contract = serde_json::to_value(file).unwrap();
    contract["name"] = json!("get_order");
    let arguments = json!({ "order_id": "ord_4821" });
    let line = json!({ "contract": contract, "input": arguments });
    let alone = admit(&line.to_string());
    let dir = folder.path().to_str().unwrap();
    let words = ["call", dir, "get_order", r#"{ "order_\u0069d" : "ord_4821" }"#, "--trace", "--json"];
    let reply = Run::of(&mut toolgate(&words), "").json();
    let noted = reply["trace"].as_array().unwrap().iter().find(|note| note["stage"] == "admit").unwrap();
    assert_eq!(alone[0]["calls"][0]["digest"], noted["args_digest"]);
    assert_eq!(call(folder.path(), "alice@acme", "get_order", &arguments).exit, Some(0));
}

#[test]
fn what_is_no_string_is_judged_as_it_stands_in_the_line() {
    let answers = admit(
        &[
            case("twice", r#"{"a":1,"\u0061":2}"#),
            case("big", r#"{"a":12345678901234567890123}"#),
            case("exact", r#"{"a":9223372036854775807}"#),
            case("half", r#"{"a":"\ud800"}"#),
            case("null", "null"),
            case("text", r#""[1,2]""#),
        ]
        .join("\n"),
    );
    let told: Vec<(&str, &str, &str)> = answers
        .iter()
        .map(|answer| {
            let problem = &answer["calls"][0]["error"]["problems"][0];
            let word = |name: &str| problem[name].as_str().unwrap_or_default();
            (answer["id"].as_str().unwrap(), word("code"), word("at"))
        })
        .collect();
    assert_eq!(
        told,
        [
            ("twice", "duplicate_key", "/a"),
            ("big", "number", "/a"),
            ("exact", "", ""),
            ("half", "lone_surrogate", "/a"),
            ("null", "not_object", ""),
            ("text", "not_object", ""),
        ]
    );
    assert_eq!(answers[2]["calls"][0]["arguments"]["a"], json!(9_223_372_036_854_775_807_i64));
}

#[test]
fn bytes_that_json_cannot_write_come_as_base64() {
    let line = |text: &str| json!({ "contract": add(), "input_base64": text }).to_string();
    let answers = admit(&[line("eyJhIjoxfQ=="), line("eyJhIjr/fQ=="), line("eyJhIjoxfQ"), line("")].join("\n"));
    assert_eq!(answers[0]["calls"][0]["arguments"], json!({ "a": 1 }));
    assert_eq!(answers[1]["calls"][0]["error"]["code"], "invalid_json");
    assert_eq!(answers[2]["error"]["code"], "invalid_line", "it lacks its padding");
    assert_eq!(answers[3]["calls"][0]["error"]["code"], "invalid_arguments", "blank arguments are an empty object");
}

#[test]
fn a_message_names_its_tools_and_each_of_its_calls_is_answered() {
    let search = json!({ "name": "shop.search", "effect": "read", "input": { "properties": {} } });
    let call = |id: &str, name: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    let mut forged = call("c4", "add", "{}");
    forged["tenant"] = json!("other");
    let calls = [call("c1", "add", r#"{"a":1}"#), call("c2", "shop_-_search", ""), call("c3", "ad", "{}"), forged];
    let line = json!({
        "id": { "row": 7 }, "contracts": [add(), search], "dialect": "openai-chat",
        "input": { "role": "assistant", "tool_calls": calls },
    });
    let answers = admit(&line.to_string());
    assert_eq!(answers[0]["id"], json!({ "row": 7 }));
    let told: Vec<(&Value, &Value, &Value)> = answers[0]["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| (&call["call_id"], &call["tool"], &call["error"]["code"]))
        .collect();
    assert_eq!(
        told,
        [
            (&json!("c1"), &json!("add"), &Value::Null),
            (&json!("c2"), &json!("shop.search"), &Value::Null),
            (&json!("c3"), &Value::Null, &json!("unknown_tool")),
            (&json!("c4"), &Value::Null, &json!("invalid_call")),
        ]
    );
    let mcp = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}"#;
    let line = format!(r#"{{"contract":{},"dialect":"mcp","input":{mcp}}}"#, add());
    assert_eq!(admit(&line)[0]["calls"][0]["call_id"], "3");
}

#[test]
fn each_line_is_answered_in_order_also_one_that_is_no_case() {
    let odd = [
        ("{", "invalid_line"),
        ("[]", "invalid_line"),
        (r#"{"id":1,"id":2}"#, "invalid_line"),
        (r#"{"id":"x"}"#, "invalid_line"),
        (r#"{"id":"x","contract":{},"contracts":[],"input":""}"#, "invalid_line"),
        (&case("x", r#""\ud800""#), "invalid_line"),
        (&format!(r#"{{"id":"x","contract":{}}}"#, add()), "invalid_line"),
        (&format!(r#"{{"id":"x","contract":{},"dialect":"openai","input":{{}}}}"#, add()), "invalid_line"),
        (r#"{"id":"x","contracts":[],"input":"{}"}"#, "invalid_line"),
        (&format!(r#"{{"id":"x","contract":{},"dialect":"mcp","input":"{{"}}"#, add()), "broken_message"),
        (r#"{"id":"x","contract":{"name":"a b"},"input":{}}"#, "invalid_contract"),
    ];
    let lines: Vec<String> = odd.iter().map(|(line, _)| format!("{line}\n\n{}", case("good", r#"{"a":1}"#))).collect();
    let answers = admit(&lines.join("\n"));
    assert_eq!(answers.len(), 2 * odd.len(), "empty lines are passed over");
    for (pair, (line, code)) in answers.chunks(2).zip(odd) {
        assert_eq!(pair[0]["error"]["code"], code, "{line}\n{}", pair[0]);
        let named = line.contains(r#""id":"x""#);
        assert_eq!(pair[0]["id"], if named { json!("x") } else { Value::Null }, "{line}");
        assert_eq!(pair[1]["id"], "good");
        assert!(pair[1]["calls"][0]["digest"].is_string());
    }
}

#[test]
fn everything_that_is_wrong_with_contracts_is_told_at_once_with_its_place() {
    let bare = json!({ "efect": "read", "input": { "properties": { "tenant_id": { "type": "strin" } } } });
    let line = json!({ "id": 1, "contracts": [add(), bare, add()], "dialect": "mcp", "input": "" });
    let answers = admit(&line.to_string());
    assert_eq!(answers[0]["error"]["code"], "invalid_contract");
    let places: Vec<(&str, &str)> = answers[0]["error"]["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| (problem["at"].as_str().unwrap(), problem["code"].as_str().unwrap()))
        .collect();
    assert_eq!(
        places,
        [
            ("/1/name", "required"),
            ("/1/input/properties/tenant_id/type", "schema"),
            ("/1/efect", "unknown_key"),
            ("/2/name", "unique"),
        ]
    );
    let twice = r#"{"contract":{"name":"t","effect":"write","\u0065ffect":"read","input":{}},"input":{}}"#;
    let problem = &admit(twice)[0]["error"]["problems"][0];
    assert_eq!((&problem["at"], &problem["code"]), (&json!("/effect"), &json!("duplicate_key")));
}

#[test]
fn whoever_waits_for_an_answer_before_the_next_case_has_it() {
    let mut command = toolgate(&["admit", "--jsonl"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let second = case("2", r#"{"a":2}"#);
    let (begin, rest) = second.split_at(20);
    let mut answer = || {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["id"].clone()
    };
    // The second case has begun when the first is answered.
    write!(stdin, "{}\n{begin}", case("1", r#"{"a":1}"#)).unwrap();
    assert_eq!(answer(), "1");
    writeln!(stdin, "{rest}").unwrap();
    assert_eq!(answer(), "2");
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_line_that_is_too_long_is_answered_and_the_next_is_read() {
    let long = format!("{{\"id\":1,\"input\":\"{}\"}}", "a".repeat(17 * 1024 * 1024));
    let answers = admit(&format!("{long}\n{}\n", case("next", r#"{"a":1}"#)));
    assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&Value::Null, &json!("invalid_line")));
    assert_eq!(answers[1]["id"], "next");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut command = toolgate(&["admit", "--jsonl"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    // The command may be gone before it has read the line.
    let _ = writeln!(stdin, "{}", case("1", r#"{"a":1}"#));
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[test]
fn without_being_told_to_it_reads_nothing() {
    let run = Run::of(&mut toolgate(&["admit"]), &case("1", "{}"));
    assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("hint: toolgate admit --jsonl"), "{}", run.stderr);
}
