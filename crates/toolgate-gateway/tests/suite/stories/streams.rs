//! A recorded stream goes where a message goes, and what is odd about it is told.

use serde_json::{Value, json};

use crate::door::{Run, toolgate};
use crate::folder::Folder;
use crate::serve::Serving;

/// Chunks in which two reads of orders come on one index.
fn chunks() -> [Value; 3] {
    let piece = |id: &str, name: &str, text: &str| {
        let function = json!({ "name": name, "arguments": text });
        json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "id": id, "function": function }] } }] })
    };
    [
        piece("call_1", "get_order", "{\"order_id\":"),
        piece("call_1", "", "\"ord_4821\"}"),
        piece("call_2", "get_order", "{\"order_id\":\"ord_1001\"}"),
    ]
}

fn recorded(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\r\n\r\n")).chain(["data: [DONE]\r\n\r\n".to_owned()]).collect()
}

fn ids(messages: &Value) -> Vec<&str> {
    messages.as_array().unwrap().iter().map(|message| message["tool_call_id"].as_str().unwrap()).collect()
}

#[test]
fn a_recorded_stream_is_answered_by_the_shell_with_its_warnings_beside() {
    let folder = Folder::shop();
    let words = ["exec", folder.path().to_str().unwrap(), "--from", "openai-chat"];
    let told = Run::of(&mut toolgate(&words), &recorded(&chunks()));
    assert_eq!(told.exit, Some(0), "{told:?}");
    assert_eq!(ids(&serde_json::from_str(&told.stdout).unwrap()), ["call_1", "call_2"]);
    let warning = "warning: call /1: another id on an index that is in use: another call";
    assert_eq!(told.stderr.lines().filter(|line| line.starts_with("warning: ")).collect::<Vec<_>>(), [warning]);
    let shown = Run::of(toolgate(&words).arg("--json"), &recorded(&chunks())).json();
    assert_eq!(
        (&shown["warnings"][0]["at"], &shown["warnings"][0]["code"]),
        (&json!("/1"), &json!("stream")),
        "{shown}"
    );
    let fine = Run::of(&mut toolgate(&words), &recorded(&chunks()[..2]));
    assert_eq!((fine.exit, fine.stderr.contains("warning")), (Some(0), false), "{fine:?}");
}

#[test]
fn nothing_runs_of_a_stream_with_an_error_in_its_midst() {
    let folder = Folder::shop();
    let words = ["exec", folder.path().to_str().unwrap(), "--from", "openai-chat"];
    let [first, second, _] = chunks();
    let failed =
        Run::of(&mut toolgate(&words), &recorded(&[first, second, json!({ "error": { "message": "secret" } })]));
    assert_eq!((failed.exit, failed.stdout.as_str()), (Some(2), ""), "{failed:?}");
    assert!(failed.stderr.contains("an error of the provider in the midst of the stream"), "{failed:?}");
    assert!(!failed.stderr.contains("secret"), "{failed:?}");
}

#[test]
fn a_recorded_stream_is_a_message_over_http() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let post = |events: &[Value]| {
        let body = json!({ "dialect": "openai-chat", "message": { "stream": events } });
        serving.post("/v1/calls", &body)
    };
    let odd: Value = serde_json::from_str(&post(&chunks()).body).unwrap();
    assert_eq!(ids(&odd["messages"]), ["call_1", "call_2"], "{odd}");
    assert_eq!((&odd["warnings"][0]["at"], &odd["warnings"][0]["code"]), (&json!("/1"), &json!("stream")), "{odd}");
    let fine: Value = serde_json::from_str(&post(&chunks()[..2]).body).unwrap();
    assert_eq!((ids(&fine["messages"]), fine.get("warnings")), (vec!["call_1"], None), "{fine}");
    let wrong = post(&[json!({ "choices": 1 })]);
    assert_eq!(wrong.status, 400, "{wrong:?}");
    assert!(wrong.body.contains("broken_message"), "{wrong:?}");
}
