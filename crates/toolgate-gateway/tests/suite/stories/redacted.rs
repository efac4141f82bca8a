//! What is secret or personal is in no file of a folder and in nothing that is printed of it, whichever way it came.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::door::{Run, toolgate};
use crate::serve::Serving;

const SETTINGS: &str = r#"
[identity]
kind = "local"
default = "alice@acme"
user = [{ name = "alice", tenant = "acme", roles = [] }]
"#;

const PERSON: &str = r#"
description = "Looks a person up."
effect = "read"
input = { properties = { id = { type = "string" } }, required = ["id"] }
output = { type = "object", properties = { mail = { type = "string", x-personal = true } }, required = ["mail"] }
backend = { kind = "fixed", result = { mail = "{id}@private.example" } }
"#;

/// A tool that carries a secret, something personal, a fact that is personal, and a secret result.
fn carrying(effect: &str, more: &str) -> String {
    format!(
        r#"
description = "Does something with a card ({effect}). {more}"
effect = "{effect}"
subject = "{{who}}"
input = {{ properties = {{
  who = {{ type = "string" }},
  card = {{ type = "string", x-secret = true }},
  holder = {{ type = "string", x-personal = true }},
  note = {{ type = "string" }},
}}, required = ["who", "card", "holder"] }}
output = {{ type = "object", properties = {{ receipt = {{ type = "string", x-secret = true }} }}, required = ["receipt"] }}
backend = {{ kind = "fixed", result = {{ receipt = "rcpt-{{who}}" }} }}

[facts.person]
tool = "get_person"
args = {{ id = "{{who}}" }}
"#
    )
}

const ASK: &str = r#"
description = "Waits for a person."
effect = "write"
input = { properties = { note = { type = "string" }, password = { type = "string" } }, required = ["note"] }
approval = { when = "true", role = "self" }
backend = { kind = "fixed", result = { ok = true } }
"#;

/// A folder with tools that carry what is secret and personal.
pub(super) struct Desk(TempDir);

impl Desk {
    fn new(settings: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["tools", "policies"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let write = |file: &str, text: &str| fs::write(dir.path().join(file), text).unwrap();
        write("toolgate.toml", &format!("{SETTINGS}{settings}"));
        write("tools/get_person.toml", PERSON);
        write("tools/check_card.toml", &carrying("read", "It only looks."));
        write("tools/charge_card.toml", &carrying("write", "It takes money."));
        write("tools/ask.toml", ASK);
        write("policies/all.cedar", "permit (principal, action, resource);\n");
        Self(dir)
    }

    /// One that holds something personal to `who`.
    pub(super) fn with_a_person(who: &str) -> Self {
        let desk = Self::new("");
        let read = desk.call("check_card", &carried(who).to_string());
        assert_eq!(read.exit, Some(0), "{read:?}");
        desk
    }

    pub(super) fn dir(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    fn run(&self, words: &[&str]) -> Run {
        let mut all = words.to_vec();
        all.insert(1, self.dir());
        Run::of(&mut toolgate(&all), "")
    }

    fn call(&self, tool: &str, arguments: &str) -> Run {
        self.run(&["call", tool, arguments, "--json", "--trace"])
    }

    fn records(&self) -> Vec<Value> {
        let tail = self.run(&["audit", "tail", "-n", "1000", "--json"]);
        assert_eq!(tail.exit, Some(0), "{tail:?}");
        tail.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What stands for the holder in the last record of `kind`.
    fn holder(&self, kind: &str) -> Value {
        let records = self.records();
        let last = records.iter().rev().find(|record| record["kind"] == kind).expect("a record");
        assert!(last["arguments"]["holder"]["$personal"].is_string(), "{last}");
        last["arguments"]["holder"].clone()
    }

    /// Each file of the folder in which one of these texts stands.
    fn found(&self, secrets: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        look(self.0.path(), secrets, &mut found);
        found
    }
}

fn look(folder: &Path, secrets: &[String], found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            look(&path, secrets, found);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let holds = |secret: &&String| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        found.extend(secrets.iter().filter(holds).map(|secret| format!("{secret} in {}", path.display())));
    }
}

/// A token of a known form, made when the test runs.
fn token() -> String {
    format!("gh{}_{}", 'p', "aB3xZ9q0".repeat(5))
}

fn carried(who: &str) -> Value {
    json!({ "who": who, "card": "4000-0027-9911", "holder": "Ada Byron", "note": format!("use {} there", token()) })
}

fn secrets() -> Vec<String> {
    let fixed = ["4000-0027-9911", "Ada Byron", "c17@private", "rcpt-c17", "Tr0ub4dor"];
    fixed.map(str::to_owned).into_iter().chain([token()]).collect()
}

/// What was printed beside the reply itself, which is for whoever asked.
fn is_silent(run: &Run) {
    for secret in secrets() {
        assert!(!run.stderr.contains(&secret), "{secret} in {}", run.stderr);
    }
}

#[test]
fn of_reads_and_of_wrong_calls_no_secret_is_kept_or_printed() {
    for settings in ["", "\n[audit]\narguments = \"digest\"\n"] {
        let desk = Desk::new(settings);
        let right = carried("c17").to_string();
        let wrong = [
            right.replace("\"card\"", "\"crad\""),
            right.replace("\"4000-0027-9911\"", "{\"number\": \"4000-0027-9911\"}"),
            right[..right.len() - 3].to_owned(),
            right.replace('"', "'"),
            format!("```json\n{right}\n```"),
            format!("{right}{right}"),
            Value::from(right.as_str()).to_string(),
        ];
        let read = desk.call("check_card", &right);
        assert_eq!(read.exit, Some(0), "{read:?}");
        is_silent(&read);
        for sent in &wrong {
            let refused = desk.call("check_card", sent);
            assert_eq!(refused.exit, Some(3), "{sent}: {refused:?}");
            is_silent(&refused);
        }
        let unknown = desk.call("chekc_the_card_of", &right);
        assert_eq!(unknown.exit, Some(3), "{unknown:?}");
        let dry = desk.run(&["call", "check_card", &right, "--json", "--dry-run"]);
        assert_eq!(dry.exit, Some(0), "{dry:?}");
        let asked = json!({ "note": format!("with {}", token()), "password": "Tr0ub4dor" }).to_string();
        let pending = desk.call("ask", &asked);
        assert_eq!(pending.exit, Some(4), "{pending:?}");
        is_silent(&pending);

        assert_eq!(desk.found(&secrets()), Vec::<String>::new());
        for words in [["audit", "tail"], ["approvals", "list"]] {
            let told = desk.run(&[&words[..], &["--json"]].concat());
            assert_eq!(told.exit, Some(0), "{told:?}");
            assert!(secrets().iter().all(|secret| !told.stdout.contains(secret)), "{told:?}");
        }
        let records = desk.records();
        assert_eq!(records.iter().filter(|record| record["raw"]["digest"].is_string()).count(), wrong.len() + 1);
        let kept = records.iter().any(|record| record.get("arguments").is_some());
        assert_eq!(kept, settings.is_empty(), "what the operator chose");
    }
}

#[test]
fn of_writes_no_secret_is_kept() {
    let desk = Desk::new("");
    let charged = desk.call("charge_card", &carried("c17").to_string());
    assert_eq!(charged.exit, Some(0), "{charged:?}");
    is_silent(&charged);
    let again = desk.call("charge_card", &carried("c17").to_string());
    assert_eq!(again.json()["result"], charged.json()["result"]);
    assert_eq!(desk.found(&secrets()), Vec::<String>::new());
}

#[test]
fn while_a_server_runs_and_after_it_was_killed_its_log_holds_no_secret_either() {
    let desk = Desk::new("");
    let serving = Serving::start(desk.0.path(), &[]);
    let right = carried("c17");
    for (tool, arguments) in [
        ("check_card", right.to_string()),
        ("charge_card", right.to_string()),
        ("charge_card", right.to_string().replace(',', ",,")),
        ("chrage_the_card", right.to_string()),
    ] {
        let call = json!({ "id": "c", "type": "function", "function": { "name": tool, "arguments": arguments } });
        let message = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
        let answered = serving.post("/v1/calls", &json!({ "dialect": "openai-chat", "message": message }));
        assert_eq!(answered.status, 200, "{answered:?}");
    }
    assert_eq!(desk.found(&secrets()), Vec::<String>::new());
    serving.signal("-KILL");
    let (_, told) = serving.end();
    assert!(secrets().iter().all(|secret| !told.contains(secret)), "{told}");
    assert_eq!(desk.found(&secrets()), Vec::<String>::new());
    assert_eq!(desk.records().iter().filter(|record| record["kind"] == "outcome").count(), 1);
    assert_eq!(desk.found(&secrets()), Vec::<String>::new());
}

#[test]
fn what_was_done_for_somebody_who_is_erased_is_done_and_cannot_be_told_any_more() {
    let desk = Desk::new("");
    let charge = || desk.call("charge_card", &carried("c17").to_string());
    assert_eq!(charge().exit, Some(0));
    let erased = desk.run(&["audit", "erase", "--subject", "c17"]);
    assert_eq!(erased.exit, Some(0), "{erased:?}");
    let after = charge();
    assert_eq!(after.json()["error"]["code"], json!("already_done"), "{after:?}");
}

#[test]
fn once_somebody_is_erased_equal_values_are_equal_no_more_and_the_chain_holds() {
    let desk = Desk::new("");
    let call = |who: &str| {
        let run = desk.call("check_card", &carried(who).to_string());
        assert_eq!(run.exit, Some(0), "{run:?}");
        desk.holder("read")
    };
    let (first, other) = (call("c17"), call("c18"));
    assert_eq!(call("c17"), first);
    assert_ne!(first, other, "the same name of another person is another value");

    let nobody = desk.run(&["audit", "erase", "--subject", "c99"]);
    assert_eq!(nobody.exit, Some(2), "{nobody:?}");
    assert!(nobody.stderr.contains("unknown_subject"), "{nobody:?}");
    let erased = desk.run(&["audit", "erase", "--subject", "c17", "--json"]);
    assert_eq!(erased.exit, Some(0), "{erased:?}");
    let twice = desk.run(&["audit", "erase", "--subject", "c17", "--tenant", "acme"]);
    assert_eq!(twice.exit, Some(2), "{twice:?}");

    assert_ne!(call("c17"), first);
    assert_eq!(call("c18"), other, "nobody else is erased with them");
    let verified = desk.run(&["audit", "verify"]);
    assert_eq!(verified.exit, Some(0), "{verified:?}");
    let records = desk.records();
    let erasure = records.iter().find(|record| record["kind"] == "erasure").expect("an erasure");
    assert_eq!((&erasure["subject"], &erasure["tenant"]), (&erased.json()["subject"], &json!("acme")));
    assert!(!erasure.to_string().contains("c17") && erasure["principal"]["issuer"] == "os", "{erasure}");
}

#[test]
fn who_erases_while_somebody_reads_the_store_is_told_that_a_copy_is_left_in_its_log() {
    let desk = Desk::new("");
    desk.call("charge_card", &carried("c17").to_string());
    let reading = rusqlite::Connection::open(desk.0.path().join("state/toolgate.db")).unwrap();
    reading.execute_batch("begin; select count(*) from salts;").unwrap();
    let erased = desk.run(&["audit", "erase", "--subject", "c17", "--json"]);
    assert_eq!((erased.exit, &erased.json()["in_log"]), (Some(0), &json!(true)), "{erased:?}");

    desk.call("charge_card", &carried("c18").to_string());
    drop(reading);
    let erased = desk.run(&["audit", "erase", "--subject", "c18", "--json"]);
    assert_eq!((erased.exit, &erased.json()["in_log"]), (Some(0), &json!(false)), "{erased:?}");
}

#[test]
fn whoever_has_an_action_in_doubt_is_spared_unless_it_is_said() {
    let desk = Desk::new("");
    let charged = desk.call("charge_card", &carried("c17").to_string());
    assert_eq!(charged.exit, Some(0), "{charged:?}");
    let erased = desk.run(&["audit", "erase", "--subject", "c17", "--json"]);
    assert_eq!((erased.exit, &erased.json()["actions"]), (Some(0), &json!(1)), "{erased:?}");
    let failing = carrying("write", "It takes money.")
        .replace("result = { receipt = \"rcpt-{who}\" }", "error = { signal = \"503\", effect = \"unknown\" }");
    fs::write(desk.0.path().join("tools/charge_card.toml"), failing).unwrap();
    let unknown = desk.call("charge_card", &carried("c18").to_string());
    assert_eq!(unknown.exit, Some(5), "{unknown:?}");
    let spared = desk.run(&["audit", "erase", "--subject", "c18"]);
    assert_eq!(spared.exit, Some(3), "{spared:?}");
    assert!(spared.stderr.contains("subject_in_doubt") && spared.stderr.contains("--even-unknown"), "{spared:?}");
    let forced = desk.run(&["audit", "erase", "--subject", "c18", "--even-unknown"]);
    assert_eq!(forced.exit, Some(0), "{forced:?}");
}

#[test]
fn the_key_is_where_the_folder_says_and_is_told_by_name_alone() {
    let key = "0123456789abcdef".repeat(4);
    let desk = Desk::new("\n[audit]\nkey = \"env:TEST_GATE_KEY\"\n");
    let call = |key: Option<&str>| {
        let words = ["call", desk.0.path().to_str().unwrap(), "get_person", r#"{"id":"c17"}"#, "--json"];
        let mut command = toolgate(&words);
        command.env_remove("TEST_GATE_KEY").envs(key.map(|key| ("TEST_GATE_KEY", key)));
        Run::of(&mut command, "")
    };
    let missing = call(None);
    assert_eq!(missing.exit, Some(1), "{missing:?}");
    assert!(missing.stderr.contains("TEST_GATE_KEY"), "{missing:?}");
    let short = call(Some("0123"));
    assert_eq!(short.exit, Some(1), "{short:?}");
    assert!(short.stderr.contains("TEST_GATE_KEY") && !short.stderr.contains("0123"), "{short:?}");
    assert_eq!(call(Some(&key)).exit, Some(0));
    assert_eq!(desk.found(&[key]), Vec::<String>::new());
    let beside = |desk: &Desk| desk.0.path().join("state/toolgate.db.key").exists();
    assert!(!beside(&desk));
    let plain = Desk::new("");
    plain.call("get_person", r#"{"id":"c17"}"#);
    assert!(beside(&plain));
    let filed = Desk::new("\n[audit]\nkey = \"file:state/own.key\"\n");
    assert_eq!(filed.call("get_person", r#"{"id":"c17"}"#).exit, Some(0));
    assert!(filed.0.path().join("state/own.key").exists() && !beside(&filed));
}
