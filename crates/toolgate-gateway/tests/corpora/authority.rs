//! `abuse.jsonl`, the rows about policies: folders with the policies that are told there, and what the command does with
//! them. What Cedar's validator refuses never decides a call; a row that expects its call to be forbidden is then answered
//! sooner.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::workshop::toml;
use super::{rows, tell};

/// A folder with the tool of a row, which counts its effects.
struct Desk {
    dir: TempDir,
    tool: String,
}

/// What the policies of a folder come to.
#[derive(Debug, PartialEq, Eq)]
enum Loaded {
    Well,
    /// The files that are at fault.
    Refused(Vec<String>),
}

#[test]
fn every_abuse_of_policies_ends_as_it_should() {
    let mut counts = BTreeMap::new();
    for row in rows("abuse.jsonl").iter().filter(|row| row["surface"] == "policy") {
        let given = row["given"].as_str().unwrap();
        let kind = match given {
            _ if given.contains("resource.owner.suspended") => an_erring_forbid(row),
            _ if given.contains("a bad start") => bad_starts(row),
            _ if given.contains("context.mfa") => arguments_that_look_like_authority(row),
            _ if given.contains("cached daily_limit") => a_fact_that_has_changed(row),
            _ if given.contains("p_internal_fraud") => a_forbid_that_tells_nothing(row),
            _ if given.contains("display id") => "not done here: names of tenants are the identity's to judge",
            _ => panic!("a row that nothing here knows: {row}"),
        };
        *counts.entry(kind.to_owned()).or_insert(0) += 1;
    }
    tell("policies", &counts);
}

/// The forbid of the row reads what no resource has, so it is refused before any call. One that passes the validator and
/// errs over a value denies, where Cedar alone would pass over it.
fn an_erring_forbid(row: &Value) -> &'static str {
    let permit = "permit(principal, action, resource);";
    let given = row["given"].as_str().unwrap();
    let forbid = &given[given.find("forbid(").unwrap()..=given.find("};").unwrap() + 1];
    assert!(given.contains(permit) && forbid.ends_with("};"), "{given}");
    let desk = Desk::of(row, &[("all.cedar", permit), ("owner.cedar", forbid)]);
    assert_eq!(desk.loads(), Loaded::Refused(vec!["policies/owner.cedar".into()]));
    assert_eq!(desk.call(&row["input"]["call"]["args"]).0, Some(2), "no call is judged by half of the policies");

    let member = "context.input.amount_minor";
    let overflows = format!(
        "forbid(principal, action, resource) when {{ context.input has amount_minor && {member} * 9223372036854775807 == 0 }};"
    );
    let desk = Desk::of(row, &[("all.cedar", permit), ("sum.cedar", &overflows)]);
    assert_eq!(desk.loads(), Loaded::Well);
    desk.refuses(&row["input"]["call"]["args"], "forbidden");
    let entry = desk.last_record();
    assert!(entry.contains("could not be evaluated"), "{entry}");
    "an erring forbid denies"
}

fn bad_starts(row: &Value) -> &'static str {
    let permit = "permit(principal, action, resource);";
    let args = json!({"account": "acc_71", "amount_minor": 5});
    let outcomes = row["expect"]["outcome"].as_array().unwrap();
    for (variant, outcome) in row["input"]["variants"].as_array().unwrap().iter().zip(outcomes) {
        let step = variant["steps"][0].as_str().unwrap();
        let desk = match step {
            "empty policy directory" => {
                let desk = Desk::of(row, &[]);
                // Nobody could be permitted the tool, and so it is not there.
                desk.refuses(&args, "unknown_tool");
                assert_eq!(outcome, "forbidden");
                continue;
            }
            "unreadable file in the directory" => {
                let desk = Desk::of(row, &[("all.cedar", permit)]);
                std::os::unix::fs::symlink("nowhere", desk.dir.path().join("policies/gone.cedar")).unwrap();
                desk
            }
            "syntax error in one of three files at reload" => {
                let desk = Desk::of(row, &[("a.cedar", permit), ("b.cedar", ""), ("c.cedar", "")]);
                assert_eq!(desk.call(&args).0, Some(0), "it was sound before");
                desk.policy("b.cedar", "forbid (principal, action, resource) when { context.input.");
                desk
            }
            "two policies with one id" => Desk::of(
                row,
                &[("a.cedar", &format!("@id(\"one\") {permit}")), ("b.cedar", &format!("@id(\"one\") {permit}"))],
            ),
            // A gate goes by one set of policies all its life; another set is another gate.
            "reload while 1000 calls are in flight" => continue,
            _ => panic!("a step that nothing here knows: {step}"),
        };
        assert_eq!(outcome, "config_rejected");
        assert!(matches!(desk.loads(), Loaded::Refused(_)), "{step}");
        let before = desk.effects();
        assert_eq!(desk.call(&args).0, Some(2), "{step}");
        assert_eq!(desk.effects(), before, "{step}");
    }
    "policies that cannot be read make no gate"
}

/// Arguments live in `context.input`, and nothing that a model writes is a word of the session.
fn arguments_that_look_like_authority(row: &Value) -> &'static str {
    let args = &row["input"]["call"]["args"];
    assert_eq!(args["mfa"], true, "{row}");
    for condition in ["context.mfa", "context.session.mfa", "principal.mfa"] {
        let permit = format!("permit(principal, action, resource) when {{ {condition} }};");
        let desk = Desk::of(row, &[("mfa.cedar", &permit)]);
        assert_eq!(desk.loads(), Loaded::Refused(vec!["policies/mfa.cedar".into()]), "{condition}");
        assert_eq!((desk.call(args).0, desk.effects()), (Some(2), 0), "{condition}");
    }
    // A role that stands in the arguments is nobody's.
    let role = format!("permit(principal in Role::{}, action, resource);", args["role"]);
    let desk = Desk::of(row, &[("role.cedar", &role)]);
    desk.refuses(args, "unknown_tool");
    "what a model writes is no authority"
}

/// The limit is looked up for each call, and the record has the value that was used.
fn a_fact_that_has_changed(row: &Value) -> &'static str {
    let rule = r#"permit (principal, action, resource);
        @id("daily") @message("That is more than the limit of today.")
        forbid (principal, action in Action::"write", resource)
        when { context.facts has daily_limit && context.input.amount_minor > context.facts.daily_limit.cents };"#;
    let desk = Desk::of(row, &[("daily.cedar", rule)]);
    let first = json!({"account": "acc_70", "amount_minor": 5000});
    assert_eq!(desk.call(&first).0, Some(0), "{:?}", desk.call(&first));
    desk.world().execute("update limits set cents = 100", []).unwrap();
    desk.refuses(&row["input"]["call"]["args"], "rule_failed");
    let entry = desk.last_record();
    assert!(entry.contains(r#""daily_limit":{"cents":100}"#), "{entry}");
    "a fact is looked up when it is needed"
}

fn a_forbid_that_tells_nothing(row: &Value) -> &'static str {
    let id = row["given"].as_str().unwrap().split(' ').find(|word| word.starts_with("p_")).unwrap();
    let text = format!(
        r#"permit (principal, action, resource);
        @id("{id}") forbid (principal, action in Action::"write", resource) when {{ context.input.account == "acc_71" }};"#
    );
    let desk = Desk::of(row, &[("fraud.cedar", &text)]);
    let args = &row["input"]["call"]["args"];
    let reply = desk.refuses(args, "forbidden").to_string();
    assert!(!reply.contains(id) && !reply.contains("acc_71"), "{reply}");
    assert!(desk.last_record().contains(id), "it is on record which policy it was");
    "a silent forbid tells nothing"
}

impl Desk {
    fn of(row: &Value, policies: &[(&str, &str)]) -> Self {
        let contract = &row["contract"];
        // A dot is no part of a tool's name here.
        let tool = contract["tool"].as_str().unwrap().replace('.', "_");
        let desk = Self { dir: tempfile::tempdir().unwrap(), tool };
        for part in ["tools", "policies", "state"] {
            fs::create_dir(desk.dir.path().join(part)).unwrap();
        }
        let settings = json!({
            "store": "sqlite:state/toolgate.db",
            "databases": { "world": { "path": "state/world.db", "seed": "world.sql" } },
            "identity": { "kind": "local", "default": "u_1@t_a", "user": [{ "name": "u_1", "tenant": "t_a", "roles": ["support"] }] },
        });
        let statement = "insert into effects (key) values (:idempotency_key) returning id";
        let mut tool = json!({
            "description": "A tool of the corpora.", "effect": contract["effect"], "input": contract["schema"],
            "backend": { "kind": "sql", "database": "world", "statement": statement },
        });
        // An argument that names a role is a fault of a contract that does not say that it is meant.
        if contract["schema"]["properties"]["role"].is_object() {
            tool["allow_identity_members"] = json!(["role"]);
        }
        if contract["rules"].to_string().contains("fact daily_limit") {
            tool["facts"] = json!({ "daily_limit": { "tool": "daily_limit", "args": {} } });
        }
        let limit = json!({
            "description": "Look up the limit of the day.", "effect": "read", "input": {},
            "output": { "type": "object", "properties": { "cents": { "type": "integer" } }, "required": ["cents"] },
            "backend": { "kind": "sql", "database": "world", "statement": "select cents from limits" },
        });
        let write = |file: &str, text: &str| fs::write(desk.dir.path().join(file), text).unwrap();
        write("toolgate.toml", &toml(&settings));
        write(&format!("tools/{}.toml", desk.tool), &toml(&tool));
        write("tools/daily_limit.toml", &toml(&limit));
        write(
            "world.sql",
            "create table effects (id integer primary key, key text);\n\
             create table limits (cents integer);\ninsert into limits values (10000);\n",
        );
        for (file, text) in policies {
            desk.policy(file, text);
        }
        desk
    }

    fn policy(&self, file: &str, text: &str) {
        fs::write(self.dir.path().join("policies").join(file), text).unwrap();
    }

    fn loads(&self) -> Loaded {
        let (exit, report) = self.toolgate(&["check", "--json"], &[]);
        let report: Value = serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {report}"));
        if exit == Some(0) {
            return Loaded::Well;
        }
        assert_eq!(exit, Some(2), "{report}");
        let files = report["findings"].as_array().unwrap().iter().filter_map(|finding| finding["file"].as_str());
        let mut files: Vec<String> = files.filter(|file| file.starts_with("policies")).map(str::to_owned).collect();
        files.dedup();
        Loaded::Refused(files)
    }

    /// The exit of a call of the tool, and what was printed.
    fn call(&self, args: &Value) -> (Option<i32>, String) {
        self.toolgate(&["call", "--json"], &[&self.tool, &args.to_string()])
    }

    /// A call that is refused with this code, and does nothing.
    fn refuses(&self, args: &Value, code: &str) -> Value {
        let before = self.effects();
        let (exit, reply) = self.call(args);
        let reply: Value = serde_json::from_str(&reply).unwrap_or_else(|error| panic!("{error}: {reply}"));
        assert_eq!((exit, &reply["error"]["code"]), (Some(3), &json!(code)), "{reply}");
        assert_eq!(reply["error"]["effect"], "none", "{reply}");
        assert_eq!(self.effects(), before, "{reply}");
        json!({ "error": reply["error"] })
    }

    fn last_record(&self) -> String {
        let (exit, entries) = self.toolgate(&["audit"], &["tail", "-n", "1", "--json"]);
        assert_eq!(exit, Some(0), "{entries}");
        entries
    }

    fn world(&self) -> Connection {
        Connection::open(self.dir.path().join("state/world.db")).unwrap()
    }

    fn effects(&self) -> i64 {
        if !self.dir.path().join("state/world.db").exists() {
            return 0;
        }
        self.world().query_row("select count(*) from effects", [], |row| row.get(0)).unwrap()
    }

    /// A command about the folder: its exit, and what it printed.
    fn toolgate(&self, command: &[&str], more: &[&str]) -> (Option<i32>, String) {
        toolgate(self.dir.path(), command, more)
    }
}

fn toolgate(folder: &Path, command: &[&str], more: &[&str]) -> (Option<i32>, String) {
    let mut toolgate = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    let output = toolgate.args(command).arg(folder).args(more).env_remove("TOOLGATE_DIR").output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}
