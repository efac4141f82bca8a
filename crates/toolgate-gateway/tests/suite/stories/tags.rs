//! Tags bound what is there: at the command line, over HTTP and over MCP, and by the token of whoever asks.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{refund, tokens};
use crate::door::{Asker, Client, Era, Run, toolgate};
use crate::folder::Folder;
use crate::serve::{Connection, Response, Serving, message};

/// All tools of the shop, and those within each of its tags.
const REFUNDS: [&str; 3] = ["create_refund", "find_refund", "get_refund_status"];

fn dir(folder: &Folder) -> &str {
    folder.path().to_str().unwrap()
}

fn order() -> Value {
    json!({ "order_id": "ord_4821" })
}

/// The names in a list of tools, as `/v1/tools` and `tools/list` have it.
fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// A body without what differs each time: the ref, and the name that was asked for.
fn masked(body: &str, tool: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap();
    let refs = ["/outcomes/0/reply/error/ref", "/error/data/error/ref"];
    let reference = refs.iter().find_map(|at| value.pointer(at)?.as_str()).unwrap_or_else(|| panic!("no ref: {body}"));
    body.replace(reference, "REF").replace(tool, "TOOL")
}

/// A request of MCP, in the form of either era.
fn rpc(address: SocketAddr, path: &str, era: Era, method: &str, params: &Value) -> Response {
    let mut params = params.clone();
    let name = params["name"].as_str().map(str::to_owned);
    let mut headers = vec![("Mcp-Session-Id", "a-session-that-nobody-gave-out")];
    match era {
        Era::Handshake => headers.push(("MCP-Protocol-Version", "2025-11-25")),
        Era::Stateless => {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
            });
            headers.extend([("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)]);
            headers.extend(name.iter().map(|name| ("Mcp-Name", name.as_str())));
        }
    }
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    Connection::open(address).unwrap().post(path, &headers, &body).answered()
}

#[test]
fn over_http_what_is_not_listed_cannot_be_called_and_reads_like_what_is_not_there() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    assert_eq!(names(&serving.get("/v1/tools?tag=refunds").json()), REFUNDS);
    assert_eq!(names(&serving.get("/v1/tools?tag=orders&tag=documents").json()), ["get_order", "read_document"]);
    assert_eq!(serving.get("/v1/tools?tag=orders&dialect=openai-chat").json()["tools"].as_array().unwrap().len(), 1);

    let outside = serving.post("/v1/calls?tag=refunds", &message(&[("get_order", &order())]));
    let absent = serving.post("/v1/calls?tag=refunds", &message(&[("no_such_tool", &order())]));
    assert_eq!(outside.reply()["error"]["code"], "unknown_tool");
    assert_eq!(masked(&outside.body, "get_order"), masked(&absent.body, "no_such_tool"));
    let mut dry = message(&[("get_order", &order())]);
    dry["dry_run"] = json!(true);
    let dry = serving.post("/v1/calls?tag=refunds", &dry);
    assert_eq!(masked(&dry.body, "get_order"), masked(&outside.body, "get_order"));
    assert_eq!(
        serving.post("/v1/calls?tag=orders&tag=refunds", &message(&[("get_order", &order())])).reply()["ok"],
        true
    );
    serving.stop();
}

#[test]
fn over_the_network_a_tag_that_no_tool_has_is_not_told_from_one_whose_tools_are_hidden() {
    let folder = Folder::shop();
    let policies = std::fs::read_to_string(folder.join("policies/refunds.cedar")).unwrap();
    folder.write(
        "policies/refunds.cedar",
        &format!(
            "{policies}\n@id(\"no_documents\")\nforbid (principal, action == Action::\"read_document\", resource);\n"
        ),
    );
    let serving = Serving::start(folder.path(), &[]);
    let [hidden, absent] = ["documents", "no-such-tag"].map(|tag| serving.get(&format!("/v1/tools?tag={tag}")));
    assert_eq!((hidden.status, hidden.json()), (200, json!({ "tools": [] })));
    assert_eq!((hidden.status, hidden.body), (absent.status, absent.body));
    for tag in ["documents", "no-such-tag"] {
        let called = serving.post(&format!("/v1/calls?tag={tag}"), &message(&[("read_document", &json!({}))]));
        assert_eq!(called.reply()["error"]["message"], "There is no tool of this name.", "{tag}");
        for era in [Era::Handshake, Era::Stateless] {
            let listed = rpc(serving.address(), &format!("/mcp/tags/{tag}"), era, "tools/list", &json!({}));
            assert_eq!((listed.status, &listed.json()["result"]["tools"]), (200, &json!([])), "{tag} {era:?}");
        }
    }
    serving.stop();
}

#[test]
fn what_can_be_no_tag_is_a_problem_and_says_nothing_of_what_there_is() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let call = message(&[("create_refund", &refund("ord_4821", 100))]);
    for query in ["tag=", "tag", "tag=a,b", "tag=a%20b", "tag=refunds&tag=", "tag=%C3%A9"] {
        assert_eq!(serving.get(&format!("/v1/tools?{query}")).code(), "bad_tag", "{query}");
        for path in ["/v1/calls", "/mcp", "/mcp/tags/refunds"] {
            let response = serving.post(&format!("{path}?{query}"), &call);
            assert_eq!((response.status, response.code().as_str()), (400, "bad_tag"), "{path}?{query}");
        }
    }
    for (path, status, code) in [
        ("/mcp/tags/a.b", 400, "bad_tag"),
        ("/mcp/tags/a%20b", 400, "bad_tag"),
        ("/mcp/tags/%ff", 400, "bad_tag"),
        ("/mcp/tags/", 404, "not_found"),
        ("/mcp/tags", 404, "not_found"),
        ("/mcp/tags/refunds/orders", 404, "not_found"),
        ("/mcp/refunds", 404, "not_found"),
        ("/mcp?tags=refunds", 400, "bad_query"),
        ("/v1/calls?dialect=mcp", 400, "bad_query"),
    ] {
        let response = serving.post(path, &call);
        assert_eq!((response.status, response.code().as_str()), (status, code), "{path}");
    }
    let looked = serving.get("/mcp/tags/refunds");
    assert_eq!((looked.status, looked.header("allow")), (405, Some("POST")), "{looked:?}");
    assert_eq!(folder.number("select count(*) from refunds"), 0);
    serving.stop();
}

#[test]
fn an_endpoint_of_a_tag_has_its_tools_alone_in_both_forms_of_mcp() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let ask = |path: &str, era, method: &str, params: Value| rpc(serving.address(), path, era, method, &params);
    let call = |tool: &str, arguments: Value| json!({ "name": tool, "arguments": arguments });
    for era in [Era::Handshake, Era::Stateless] {
        for path in ["/mcp/tags/refunds", "/mcp?tag=refunds", "/mcp/tags/refunds?tag=orders&tag=refunds"] {
            assert_eq!(names(&ask(path, era, "tools/list", json!({})).json()["result"]), REFUNDS, "{path}");
            let outside = ask(path, era, "tools/call", call("get_order", order()));
            let absent = ask(path, era, "tools/call", call("no_such_tool", order()));
            assert_eq!(outside.json()["error"]["data"]["error"]["code"], "unknown_tool", "{path}: {outside:?}");
            assert_eq!(outside.status, absent.status);
            assert_eq!(masked(&outside.body, "get_order"), masked(&absent.body, "no_such_tool"), "{path}");
        }
        // A path and a query bound alike: what is within both is there.
        assert_eq!(names(&ask("/mcp/tags/refunds?tag=orders", era, "tools/list", json!({})).json()["result"]), [""; 0]);
        let cents = if era == Era::Handshake { 100 } else { 200 };
        let done = ask("/mcp/tags/refunds", era, "tools/call", call("create_refund", refund("ord_4821", cents)));
        assert_eq!(done.json()["result"]["isError"], false, "its fact is looked up outside the tag: {done:?}");
    }
    serving.stop();
}

/// The server keeps no session that could be widened: a client that has begun at one address, and goes on at it, stays
/// within its tag whatever it says of a session.
#[test]
fn a_client_that_began_within_a_tag_is_given_no_session_to_leave_it_with() {
    let folder = Folder::shop();
    let serving = Serving::start(folder.path(), &[]);
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let begun = rpc(serving.address(), "/mcp/tags/refunds", Era::Handshake, "initialize", &hello);
    assert_eq!((begun.status, begun.header("mcp-session-id")), (200, None));
    assert_eq!(begun.json()["result"]["capabilities"]["tools"], json!({}), "there is no stream to tell of changes on");
    let wide = rpc(serving.address(), "/mcp", Era::Handshake, "initialize", &hello);
    assert_eq!((wide.status, wide.header("mcp-session-id")), (200, None));
    let params = json!({ "name": "get_order", "arguments": order() });
    let outside = rpc(serving.address(), "/mcp/tags/refunds", Era::Handshake, "tools/call", &params);
    assert_eq!(outside.json()["error"]["data"]["error"]["code"], "unknown_tool", "{outside:?}");
    serving.stop();
}

#[test]
fn a_token_within_tags_is_not_widened_by_what_its_holder_asks_for() {
    let folder = tokens::shop();
    let new = |more: &[&str]| {
        let words = ["token", "new", dir(&folder), "--as", "alice@acme", "--role", "support", "--json"];
        Run::of(&mut toolgate(&[&words, more].concat()), "")
    };
    let given = new(&["--tag", "refunds", "--tag", "documents"]);
    assert_eq!((given.exit, given.stderr.as_str()), (Some(0), ""));
    assert_eq!(given.json()["tags"], json!(["documents", "refunds"]));
    assert_eq!(new(&[]).json()["tags"], Value::Null);
    let misspelt = new(&["--tag", "refnds"]);
    assert_eq!((misspelt.exit, &misspelt.json()["tags"]), (Some(0), &json!(["refnds"])));
    assert!(misspelt.stderr.starts_with("warning: no tool has the tag refnds; did you mean refunds?"), "{misspelt:?}");
    assert_eq!(new(&["--tag", "a b"]).exit, Some(2));
    let listed = Run::of(&mut toolgate(&["token", "list", dir(&folder)]), "");
    let tags: Vec<bool> = listed.stdout.lines().map(|line| line.contains("  tags ")).collect();
    assert_eq!(tags, [true, false, true], "{listed:?}");
    assert!(listed.stdout.contains("  roles support  tags documents,refunds  until "), "{listed:?}");

    let serving = Serving::start(folder.path(), &[]);
    let bearer = format!("Bearer {}", given.json()["token"].as_str().unwrap());
    let headers = [("Authorization", bearer.as_str())];
    let list = |path: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\n\r\n", serving.address());
        names(&serving.connect().answer(&head).json()).join(" ")
    };
    let call = |path: &str, tool: &str, arguments: &Value| {
        let body = message(&[(tool, arguments)]).to_string();
        serving.connect().post(path, &headers, &body).answered().reply()
    };
    assert_eq!(list("/v1/tools"), "create_refund find_refund get_refund_status read_document");
    assert_eq!(list("/v1/tools?tag=documents&tag=orders"), "read_document");
    for path in ["/v1/calls", "/v1/calls?tag=orders", "/v1/calls?tag=orders&tag=refunds"] {
        assert_eq!(call(path, "get_order", &order())["error"]["code"], "unknown_tool", "{path}");
    }
    assert_eq!(call("/v1/calls?tag=refunds", "create_refund", &refund("ord_4821", 100))["ok"], true);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let within = serving.connect().post("/mcp/tags/orders", &headers, &body).answered();
    assert_eq!(within.json()["result"]["tools"], json!([]));
    serving.stop();

    let token = given.json()["token"].as_str().unwrap().to_owned();
    let mut command = toolgate(&["call", dir(&folder), "get_order", r#"{"order_id":"ord_4821"}"#, "--json"]);
    let run = Run::of(command.env("TOOLGATE_TOKEN", token), "");
    assert_eq!((run.exit, &run.json()["error"]["code"]), (Some(3), &json!("unknown_tool")));
}

#[test]
fn at_the_command_line_a_tag_that_no_tool_has_is_a_mistake_and_runs_nothing() {
    let folder = Folder::shop();
    let arguments = refund("ord_4821", 100).to_string();
    let commands: [&[&str]; 4] = [
        &["tools", dir(&folder)],
        &["call", dir(&folder), "create_refund", &arguments],
        &["exec", dir(&folder), "--from", "openai-chat"],
        &["mcp", dir(&folder)],
    ];
    let said = message(&[("create_refund", &refund("ord_4821", 100))])["message"].to_string();
    for words in commands {
        for (tags, code, told) in [
            (
                &["--tag", "refnds"][..],
                "error[unknown_tag]: no tool has the tag refnds\n",
                "did you mean refunds? known: ",
            ),
            (&["--tag", "refunds", "--tag", "x"], "error[unknown_tag]: ", "hint: known: documents, orders, refunds\n"),
            (&["--tag", "a b"], "error[usage]: ", "a tag is made of A-Z a-z 0-9 _ -"),
            (&["--tag", ""], "error[usage]: ", ""),
        ] {
            let run = Run::of(&mut toolgate(&[words, tags].concat()), &said);
            assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""), "{words:?} {tags:?}: {run:?}");
            assert!(run.stderr.starts_with(code) && run.stderr.contains(told), "{words:?} {tags:?}: {run:?}");
        }
    }
    assert_eq!(folder.number("select count(*) from refunds"), 0);
}

#[test]
fn a_message_is_answered_within_the_tags_of_the_command_line() {
    let folder = Folder::shop();
    let said = message(&[("create_refund", &refund("ord_4821", 100)), ("get_order", &order())])["message"].to_string();
    let exec = |more: &[&str]| {
        let words = ["exec", dir(&folder), "--from", "openai-chat", "--json"];
        let run = Run::of(&mut toolgate(&[&words, more].concat()), &said);
        assert_eq!(run.exit, Some(0), "{run:?}");
        let both = run.json();
        [0, 1].map(|place| both["outcomes"][place]["reply"]["error"]["code"].clone())
    };
    assert_eq!(exec(&["--tag", "refunds", "--dry-run"]), [Value::Null, json!("unknown_tool")]);
    assert_eq!(exec(&["--tag", "orders"]), [json!("unknown_tool"), Value::Null]);
    assert_eq!(folder.number("select count(*) from refunds"), 0);
    assert_eq!(exec(&["--tag", "orders", "--tag", "refunds"]), [Value::Null, Value::Null]);
    assert_eq!(folder.number("select count(*) from refunds"), 1);
}

#[test]
fn the_entry_for_a_client_keeps_the_tags() {
    let folder = Folder::shop();
    let words = ["mcp", dir(&folder), "--as", "alice@acme", "--tag", "refunds", "--tag", "orders", "--print-config"];
    let entry: Value = serde_json::from_str(&Run::of(&mut toolgate(&words), "").stdout).unwrap();
    let (_, server) = entry["mcpServers"].as_object().unwrap().iter().next().unwrap();
    let arguments: Vec<&str> =
        server["args"].as_array().unwrap().iter().skip(2).map(|word| word.as_str().unwrap()).collect();
    assert_eq!(arguments, ["--as", "alice@acme", "--tag", "refunds", "--tag", "orders"]);
}

#[test]
fn a_server_goes_on_where_the_tools_of_a_tag_are_set_aside() {
    let folder = Folder::shop();
    folder.edit("tools/read_document.toml", "effect = \"read\"", "effect = \"reads\"");
    let tags = ["documents", "orders"].map(str::to_owned);
    let mut client = Client::start(folder.path(), Asker { user: None, tags: &tags }, Era::Handshake);
    assert_eq!(names(&client.request("tools/list", "{}")["result"]), ["get_order"]);
    assert_eq!(client.call("create_refund", "{}")["error"]["data"]["error"]["code"], "unknown_tool");
    let run = client.close();
    assert!(run.stderr.contains("no tool has the tag documents"), "{run:?}");
    let mut strict = toolgate(&["mcp", dir(&folder), "--strict", "--tag", "orders"]);
    assert_eq!(Run::of(&mut strict, "").exit, Some(2));
}

#[test]
fn the_record_tells_within_which_tags_a_call_was_made() {
    let folder = Folder::shop();
    let call = |tags: &[&str]| {
        let words = ["call", dir(&folder), "get_order", r#"{"order_id":"ord_4821"}"#, "--json"];
        let reply = Run::of(&mut toolgate(&[&words, tags].concat()), "").json();
        let reference = reply.get("ref").or_else(|| reply.pointer("/error/ref")).unwrap().as_str().unwrap().to_owned();
        let told = Run::of(&mut toolgate(&["why", dir(&folder), &reference, "--json"]), "").json();
        told[0]["stages"][0].get("tags").cloned()
    };
    assert_eq!(call(&["--tag", "refunds"]), Some(json!([["refunds"]])));
    assert_eq!(call(&["--tag", "refunds", "--tag", "orders"]), Some(json!([["orders", "refunds"]])));
    assert_eq!(call(&[]), None);
}
