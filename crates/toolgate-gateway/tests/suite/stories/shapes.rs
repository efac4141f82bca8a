//! The answer of every command in JSON is as its published schema says.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::killed::in_doubt;
use super::{redacted, refund, tokens};
use crate::door::{self, Run, toolgate};
use crate::folder::Folder;
use crate::serve::Serving;

/// The schema that the command publishes.
fn published(name: &str) -> Value {
    let words: Vec<&str> = ["schema"].into_iter().chain(name.split(' ')).collect();
    let run = Run::of(&mut toolgate(&words), "");
    assert_eq!(run.exit, Some(0), "{name}: {run:?}");
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The commands that do something, as the manual knows them.
fn leaves() -> BTreeSet<String> {
    let pages = Run::of(&mut toolgate(&["man", "--json"]), "").json();
    let files = pages["pages"].as_array().unwrap().iter().map(|page| page["file"].as_str().unwrap());
    let names: Vec<&str> = files.map(|file| file.strip_suffix(".1").unwrap()).collect();
    let is_leaf = |name: &&&str| !names.iter().any(|other| other.starts_with(&format!("{name}-")));
    // What these two write belongs to a protocol.
    let protocols = ["toolgate-mcp", "toolgate-wrap"];
    let leaves = names.iter().filter(is_leaf).filter(|name| !protocols.contains(name));
    leaves.map(|name| name.trim_start_matches("toolgate-").replace('-', " ")).collect()
}

/// Whether every line of an answer is as the schema of its command says.
fn assert_published(command: &str, run: &Run) {
    let schema = published(&format!("output {command}"));
    let schema = jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{command}: {error}"));
    assert!(!run.stdout.is_empty(), "{command}: {run:?}");
    for line in run.stdout.lines() {
        let answer: Value = serde_json::from_str(line).unwrap();
        let wrong: Vec<String> =
            schema.iter_errors(&answer).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(wrong.is_empty(), "{command}: {wrong:#?}\n{line}");
    }
}

/// A case for each form that an answer of admission has.
fn admitted() -> String {
    let contract = json!({ "name": "t", "effect": "read", "input": { "properties": { "n": { "type": "integer" } } } });
    let call = |id| json!({ "index": 0, "id": id, "function": { "name": "t", "arguments": "{}" } });
    let odd = json!({ "stream": [{ "choices": [{ "delta": { "tool_calls": [call("a"), call("b")] } }] }] });
    let cases = [
        json!({ "id": 1, "contract": contract, "input": { "n": 1 } }),
        json!({ "id": "odd", "contract": contract, "dialect": "openai-chat", "input": odd }),
        json!({ "id": "two", "contract": contract, "input": { "n": "1" } }),
        json!({ "id": [3], "contract": { "name": "t", "efect": "read" }, "input": {} }),
        json!({ "contract": contract, "dialect": "openai-chat", "input": "no message" }),
        json!({ "id": 5 }),
    ];
    cases.iter().map(|case| format!("{case}\n")).collect()
}

#[test]
fn every_answer_is_as_its_schema_says() {
    let folder = Folder::shop();
    let dir = folder.path().to_str().unwrap();
    let pending = |amount| {
        let asked = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_1001", amount));
        asked.json()["error"]["approval"]["id"].as_str().unwrap().to_owned()
    };
    let (yes, no) = (pending(8000), pending(7000));
    let other = refund("ord_1001", 6000).to_string();
    let done = door::call(folder.path(), "alice@acme", "create_refund", &refund("ord_4821", 100)).json();
    let reference = done["ref"].as_str().unwrap();
    let message = std::fs::read_to_string(folder.join("message.json")).unwrap();
    let order = r#"{"order_id":"ord_4821"}"#;
    let again = refund("ord_4821", 100).to_string();
    let faulty = Folder::shop();
    faulty.edit("tools/get_order.toml", "effect = \"read\"", "effect = \"raed\"");
    let faulty = faulty.path().to_str().unwrap();
    let desk = tempfile::tempdir().unwrap();
    let [new, files] = ["new", "files"].map(|name| desk.path().join(name).to_str().unwrap().to_owned());
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/described.py");
    let described = desk.path().join("tools.json").to_str().unwrap().to_owned();
    let tools = json!([{ "name": "find", "inputSchema": { "type": "object" } }, { "name": "a b", "inputSchema": {} }]);
    std::fs::write(&described, tools.to_string()).unwrap();
    let import =
        ["init", &files, "--from", "mcp", "--review", "--dry-run", "--json", "--", "python3", server, &described];
    let guarded = tokens::shop();
    let guarded = guarded.path().to_str().unwrap();
    let given = Run::of(&mut toolgate(&["token", "new", guarded, "--as", "mia@acme", "--json"]), "").json();
    let token = given["id"].as_str().unwrap();
    let serving = Serving::start(folder.path(), &["--json"]);
    let url = format!("http://{}", serving.address());
    let failing = Folder::shop();
    failing.write("cases/wrong.jsonl", "{\"case\": \"c\", \"tool\": \"get_order\", \"expect\": \"run\"}\n");
    let failing = failing.path().to_str().unwrap();
    let witnessed = Folder::shop();
    witnessed.edit("toolgate.toml", "[identity]", "[audit.checkpoints]\nto = \"kept.jsonl\"\n\n[identity]");
    let witnessed = witnessed.path().to_str().unwrap();
    let doubted = in_doubt();
    door::call(doubted.path(), "alice@acme", "create_refund", &refund("ord_4821", 1500));
    let doubted = doubted.path().to_str().unwrap();
    let unknown = Run::of(&mut toolgate(&["ledger", doubted, "list", "--unknown", "--json"]), "").json();
    let key = unknown[0]["key"].as_str().unwrap();
    let erasable = redacted::Desk::with_a_person("c17");
    let erasable = erasable.dir();
    let watched = super::observe::watched();
    let watched = watched.path().to_str().unwrap();
    let grant = ["approvals", dir, "grant", "--tool", "create_refund", "--rule", "create_refund.approval"];
    // It covers next to nothing, so that what waits below goes on waiting.
    let bounds = ["--calls", "2", "--sum", "1", "--of", "/amount_cents"];
    let grant = [&grant[..], &bounds, &["--for", "1h", "--to", "alice", "--as", "mia@acme"]].concat();
    let given = Run::of(&mut toolgate(&[&grant[..], &["--json"]].concat()), "").json();
    let stand = given["id"].as_str().unwrap();
    let policies = folder.join("policies").to_str().unwrap().to_owned();
    let answers: [(&str, &[&str], i32); 62] = [
        ("init", &["init", &new, "--dry-run"], 0),
        ("init", &["init", &new], 0),
        ("init", &import, 0),
        ("health", &["health", &url], 0),
        ("health", &["health", "http://127.0.0.1:1"], 1),
        ("token new", &["token", "new", guarded, "--as", "alice@acme", "--role", "support", "--for", "90d"], 0),
        ("token revoke", &["token", "revoke", guarded, token], 0),
        ("token list", &["token", "list", guarded], 0),
        ("check", &["check", failing], 2),
        ("call", &["call", dir, "get_order", order], 0),
        ("call", &["call", dir, "get_order", order, "--trace"], 0),
        ("call", &["call", dir, "create_refund", &again], 0),
        ("call", &["call", dir, "create_refund", &again, "--dry-run"], 0),
        ("call", &["call", dir, "get_order", "{\"order\":1,}"], 3),
        ("call", &["call", dir, "get_order", "{\"order\":1}"], 3),
        ("call", &["call", dir, "get_ordr", order], 3),
        ("exec", &["exec", dir, "--from", "openai-chat"], 0),
        ("exec", &["exec", dir, "--from", "openai-chat", "--trace", "--dry-run"], 0),
        ("tools", &["tools", dir], 0),
        ("tools", &["tools", dir, "--for", "openai-chat"], 0),
        ("tools", &["tools", dir, "--for", "anthropic"], 0),
        ("check", &["check", dir], 0),
        ("check", &["check", dir, "--print-cedar-schema"], 0),
        ("check", &["check", "--print-schema"], 0),
        ("check", &["check", faulty], 2),
        ("approvals list", &["approvals", dir, "list"], 0),
        ("approvals show", &["approvals", dir, "show", &yes], 0),
        ("approvals edit", &["approvals", dir, "edit", &no, "--arguments", &other, "--as", "mia@acme", "--dry-run"], 0),
        ("approvals approve", &["approvals", dir, "approve", &yes, "--as", "mia@acme"], 0),
        ("approvals deny", &["approvals", dir, "deny", &no, "--as", "mia@acme"], 0),
        ("approvals list", &["approvals", dir, "list"], 0),
        ("approvals grant", &grant, 0),
        ("approvals grants", &["approvals", dir, "grants"], 0),
        ("approvals revoke", &["approvals", dir, "revoke", stand, "--as", "mia@acme"], 0),
        ("audit erase", &["audit", erasable, "erase", "--subject", "c17"], 0),
        ("audit tail", &["audit", dir, "tail", "-n", "100"], 0),
        ("audit verify", &["audit", dir, "verify"], 0),
        ("audit observed", &["audit", dir, "observed"], 0),
        ("audit observed", &["audit", watched, "observed"], 0),
        ("check", &["check", dir, "--suggest-policies"], 0),
        ("audit replay", &["audit", dir, "replay", "--policies", &policies], 0),
        ("audit case", &["audit", dir, "case", reference], 0),
        ("audit export", &["audit", dir, "export"], 0),
        ("audit key", &["audit", witnessed, "key"], 0),
        ("why", &["why", dir, reference], 0),
        ("ledger list", &["ledger", doubted, "list"], 0),
        ("ledger show", &["ledger", doubted, "show", key], 0),
        ("ledger resolve", &["ledger", doubted, "resolve", key, "done", "--why", "seen", "--dry-run"], 0),
        ("ledger resolve", &["ledger", doubted, "resolve", key, "done", "--why", "seen"], 0),
        ("explain", &["explain", "rule_failed"], 0),
        ("explain", &["explain", "unknown_key"], 0),
        ("help", &["help", "approvals", "list"], 0),
        ("help", &["help", "exit-codes"], 0),
        ("schema", &["schema", "contract"], 0),
        ("schema", &["schema", "output", "call"], 0),
        ("completions", &["completions", "zsh"], 0),
        ("man", &["man"], 0),
        ("man", &["man", "--out", dir, "--dry-run"], 0),
        ("deny", &["deny", dir, "all", "--for", "1h", "--why", "a leak", "--dry-run"], 0),
        ("deny", &["deny", dir, "get_order", "--for", "1h", "--why", "a leak"], 0),
        ("deny", &["deny", dir, "--list"], 0),
        ("audit tail", &["audit", dir, "tail", "-n", "1"], 0),
    ];
    let mut shown = BTreeSet::new();
    for (command, words, exit) in answers {
        let json = Some("--json").filter(|json| !words.contains(json));
        let words: Vec<&str> = words.iter().copied().chain(json).collect();
        let run = Run::of(&mut toolgate(&words), &message);
        assert_eq!(run.exit, Some(exit), "{words:?}: {run:?}");
        assert_published(command, &run);
        shown.insert(command.to_owned());
    }
    let listening = Run { stdout: serving.announced().to_owned(), stderr: String::new(), exit: Some(0) };
    assert_published("serve", &listening);
    let lines = admitted();
    let admitted = Run::of(&mut toolgate(&["admit", "--json"]), &lines);
    assert_eq!(admitted.stdout.lines().count(), lines.lines().count(), "{admitted:?}");
    assert_published("admit", &admitted);
    shown.extend(["serve", "admit"].map(str::to_owned));
    let unshown: Vec<String> = leaves().into_iter().filter(|leaf| !shown.contains(leaf)).collect();
    assert!(unshown.is_empty(), "no answer is shown of {unshown:?}");
}

#[test]
fn a_broken_record_is_an_answer_too() {
    let folder = Folder::shop();
    door::call(folder.path(), "alice@acme", "get_order", &json!({ "order_id": "ord_4821" }));
    let store = rusqlite::Connection::open(folder.join("state/toolgate.db")).unwrap();
    store.execute("update records set body = replace(body, 'read', 'rode') where seq = 1", []).unwrap();
    let dir = folder.path().to_str().unwrap();
    let run = Run::of(&mut toolgate(&["audit", dir, "verify", "--json"]), "");
    assert_eq!(run.exit, Some(3), "{run:?}");
    assert_published("audit verify", &run);
    let told = Run::of(&mut toolgate(&["audit", dir, "verify"]), "");
    assert!(told.stderr.starts_with("error[record_broken]: "), "{told:?}");
}

#[test]
fn what_is_printed_is_what_is_committed() {
    let schemas = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas");
    let mut files: Vec<(String, String)> =
        ["contract", "config"].map(|name| (name.to_owned(), format!("{schemas}/{name}.json"))).to_vec();
    for entry in std::fs::read_dir(format!("{schemas}/output")).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().replace('-', " ");
        files.push((format!("output {stem}"), path.to_str().unwrap().to_owned()));
    }
    for (name, file) in files {
        let words: Vec<&str> = ["schema"].into_iter().chain(name.split(' ')).collect();
        let printed = Run::of(&mut toolgate(&words), "");
        assert_eq!(printed.stdout, std::fs::read_to_string(&file).unwrap(), "{file}: {printed:?}");
    }
}

#[test]
fn the_first_line_of_every_example_names_its_schema() {
    let examples = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
    let mut seen = 0;
    for example in std::fs::read_dir(examples).unwrap() {
        let example = example.unwrap().path();
        let contracts = std::fs::read_dir(example.join("tools")).unwrap().map(|entry| entry.unwrap().path());
        for file in contracts.chain([example.join("toolgate.toml")]) {
            let text = std::fs::read_to_string(&file).unwrap();
            let named = text.lines().next().unwrap().strip_prefix("#:schema ").unwrap_or_else(|| panic!("{file:?}"));
            assert!(file.parent().unwrap().join(named).is_file(), "{file:?}: there is no {named}");
            seen += 1;
        }
    }
    assert!(seen >= 8, "{seen}");
}
