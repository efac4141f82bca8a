//! `toolgate serve`, a process for each person who asks. Approvals are answered by the command: over the network the people
//! of a folder have calls alone.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Answer, Binary, Door, Exchange, Run, toolgate};
use crate::scenario::{Call, GateName, Runs};
use crate::serve::Serving;

/// Servers over a copy of an example.
pub(crate) struct Http {
    command: Binary,
    serving: BTreeMap<Option<String>, Serving>,
}

impl Http {
    pub(crate) fn new(gate: GateName) -> Self {
        Self { command: Binary::new(gate), serving: BTreeMap::new() }
    }

    pub(super) fn serving(&mut self, user: Option<&str>) -> &Serving {
        let folder = self.command.folder();
        self.serving.entry(user.map(str::to_owned)).or_insert_with(|| {
            let options: Vec<&str> = user.into_iter().flat_map(|user| ["--as", user]).collect();
            Serving::start(folder.path(), &options)
        })
    }

    /// Lets all servers come to their end.
    fn stop(&mut self) {
        std::mem::take(&mut self.serving).into_values().for_each(Serving::stop);
    }

    /// What every stage learned, from the record. That of a read is written a moment after its reply.
    pub(super) fn trace(&self, reference: &str) -> Value {
        let dir = self.command.folder().path().to_str().unwrap().to_owned();
        let begun = Instant::now();
        loop {
            let told = Run::of(&mut toolgate(&["why", &dir, reference, "--json"]), "");
            if told.exit == Some(0) {
                let records = told.json();
                return records.as_array().unwrap().last().unwrap()["stages"].clone();
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "it is not on record: {told:?}");
        }
    }
}

impl Door for Http {
    fn call(&mut self, user: Option<&str>, call: &Call) -> Answer {
        let function = json!({ "name": call.tool, "arguments": call.text() });
        let calls = json!([{ "id": "call_1", "type": "function", "function": function }]);
        let body = json!({ "dialect": "openai-chat", "message": { "role": "assistant", "tool_calls": calls } });
        let operation = call.operation.iter().map(|id| ("Toolgate-Operation", id.as_str()));
        let approval = call.approval.iter().map(|id| ("Toolgate-Approval", id.as_str()));
        let headers: Vec<(&str, &str)> = operation.chain(approval).collect();
        let response = self.serving(user).connect().post("/v1/calls", &headers, &body.to_string()).answered();
        assert_eq!(response.status, 200, "{response:?}");
        let mut both = response.json();
        let text = both["messages"][0]["content"].as_str().unwrap().to_owned();
        assert!(response.body.contains(&format!("\"reply\":{text}}}")), "the outcome is the message: {response:?}");
        let outcome = both["outcomes"][0].take();
        assert_eq!(outcome["status"] == json!(200), outcome["reply"]["ok"] == json!(true), "{outcome}");
        let reply = outcome["reply"].clone();
        let reference = reply.get("ref").or_else(|| reply.pointer("/error/ref")).and_then(Value::as_str).unwrap();
        let trace = self.trace(reference);
        Answer { text, reply, trace, exit: None }
    }

    fn message(&mut self, user: Option<&str>, dialect: &str, message: &Value) -> Exchange {
        let response = self.serving(user).post("/v1/calls", &json!({ "dialect": dialect, "message": message }));
        match response.status {
            200 => {
                let mut both = response.json();
                Exchange::Answered { messages: both["messages"].take(), outcomes: both["outcomes"].take() }
            }
            400 => {
                assert_eq!(response.code(), "broken_message");
                let problem = response.json();
                Exchange::Broken(format!("{}: {}", problem["detail"], problem["hint"]))
            }
            _ => panic!("{response:?}"),
        }
    }

    fn approve(&mut self, id: &str, user: Option<&str>) -> Result<String, String> {
        self.command.approve(id, user)
    }

    fn deny(&mut self, id: &str, user: Option<&str>) -> Result<String, String> {
        self.command.deny(id, user)
    }

    fn approvals(&mut self, user: &str) -> Value {
        self.command.approvals(user)
    }

    fn tools(&mut self, user: &str) -> Vec<String> {
        let tools = self.serving(Some(user)).get("/v1/tools").json();
        let names = tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn rows(&self, sql: &str) -> Value {
        self.command.rows(sql)
    }

    fn runs(&self, tool: &str) -> Runs {
        self.command.runs(tool)
    }

    fn advance(&mut self, span: Duration) {
        self.command.advance(span);
    }

    fn edit(&mut self, file: &str, from: &str, to: &str) {
        self.stop();
        self.command.edit(file, from, to);
    }

    fn verify(&mut self) -> Result<(), String> {
        self.stop();
        self.command.verify()
    }
}
