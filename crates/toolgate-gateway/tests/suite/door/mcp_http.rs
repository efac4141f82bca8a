//! MCP on HTTP: the same servers, whose path `/mcp` is talked to.

use std::time::Duration;

use serde_json::Value;

use super::mcp_stdio::{Era, call_params, carries, reply_of};
use super::{Answer, Asker, Door, Exchange, Http};
use crate::scenario::{Call, Runs, Step};
use crate::serve::Connection;

/// The gate of an example behind MCP on HTTP. All else is asked of the same processes, or of the command.
pub(crate) struct McpHttp {
    http: Http,
    era: Era,
}

impl McpHttp {
    pub(crate) fn new(http: Http, era: Era) -> Self {
        Self { http, era }
    }

    /// Posts a request, and gives the answer. One tag is said by the path, several by the query.
    fn request(&mut self, asker: Asker<'_>, method: &str, name: Option<&str>, params: &str) -> Value {
        let params = self.era.enveloped(params);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let mut headers = vec![("Accept", "application/json, text/event-stream")];
        match self.era {
            Era::Handshake => headers.push(("MCP-Protocol-Version", "2025-11-25")),
            Era::Stateless => {
                headers.extend([("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)]);
                headers.extend(name.map(|name| ("Mcp-Name", name)));
            }
        }
        let path = match asker.tags {
            [tag] => format!("/mcp/tags/{tag}"),
            _ => asker.query("/mcp"),
        };
        let mut connection = Connection::open(self.http.address(asker.user)).unwrap();
        let response = connection.post(&path, &headers, &body).answered();
        let answer = response.json();
        let (error, stateless) = (answer.get("error").is_some(), self.era == Era::Stateless);
        assert_eq!(response.status, if error && stateless { 400 } else { 200 }, "{response:?}");
        assert_eq!(answer["id"], 1, "{response:?}");
        answer
    }
}

impl Door for McpHttp {
    fn carries(&self, step: &Step) -> bool {
        carries(step)
    }

    fn call(&mut self, asker: Asker<'_>, call: &Call) -> Answer {
        let params = call_params(&call.tool, &call.text());
        let text = reply_of(&self.request(asker, "tools/call", Some(&call.tool), &params));
        let reply: Value = serde_json::from_str(&text).unwrap();
        let found = ["/ref", "/error/ref"].iter().find_map(|at| reply.pointer(at));
        let trace = self.http.trace(found.expect("a ref").as_str().unwrap());
        Answer { text, reply, trace, exit: None }
    }

    fn message(&mut self, _asker: Asker<'_>, dialect: &str, _message: &Value) -> Exchange {
        panic!("a message of {dialect} is left out")
    }

    fn approve(&mut self, id: &str, user: Option<&str>) -> Result<String, String> {
        self.http.approve(id, user)
    }

    fn deny(&mut self, id: &str, user: Option<&str>) -> Result<String, String> {
        self.http.deny(id, user)
    }

    fn approvals(&mut self, user: &str) -> Value {
        self.http.approvals(user)
    }

    fn tools(&mut self, asker: Asker<'_>) -> Vec<String> {
        let listed = self.request(asker, "tools/list", None, "{}");
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        let mut names: Vec<String> = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    fn rows(&self, sql: &str) -> Value {
        self.http.rows(sql)
    }

    fn runs(&self, tool: &str) -> Runs {
        self.http.runs(tool)
    }

    fn advance(&mut self, span: Duration) {
        self.http.advance(span);
    }

    fn edit(&mut self, file: &str, from: &str, to: &str) {
        self.http.edit(file, from, to);
    }

    fn verify(&mut self) -> Result<(), String> {
        self.http.verify()
    }
}
