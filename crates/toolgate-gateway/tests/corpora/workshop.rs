//! A folder of the gate with one tool of a row, in which its acts are done: by the gate as a library, and by the command
//! where somebody is killed. The backend does what it is asked as often as it is asked, in a database of its own.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use toolgate::Call;
use toolgate::call::OperationId;
use toolgate::clock::{Clock, ManualClock, Millis, SystemClock};
use toolgate_gateway::config::{self, Loaded, Purpose};

use super::acts::{Act, Arguments, Given, Told, Who};
use super::sample;

/// The folder and its gate.
pub(super) struct Workshop {
    dir: TempDir,
    tool: String,
    schema: Value,
    /// The member that amounts are of.
    amount: Option<String>,
    clock: Arc<ManualClock>,
    runtime: Runtime,
    loaded: Option<Loaded>,
    /// How many calls were told by their amounts alone: each is meant, and so an operation of its own.
    payments: AtomicUsize,
}

/// What runs the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    Database,
    /// A program that ends in the midst of its first call.
    Dying,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Came {
    Reply(Value),
    /// The gate cannot do its work.
    Fault,
}

const MISBEHAVING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/misbehaving.py");

impl Workshop {
    /// The folder for a contract in the words of the corpora; the error is that of loading it.
    pub(super) fn open(contract: &Value, given: &Given, behind: Behind, acts: &[Act]) -> Result<Self, String> {
        let name = contract["tool"].as_str().or_else(|| contract["name"].as_str()).unwrap().to_owned();
        let schema = contract.get("schema").unwrap_or(&contract["input_schema"]).clone();
        let amount =
            contract["budget"]["sum_of"].as_str().map(str::to_owned).or_else(|| sample::first_integer(&schema));
        let workshop = Self {
            dir: tempfile::tempdir().unwrap(),
            clock: Arc::new(ManualClock::at(SystemClock.now())),
            runtime: tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap(),
            loaded: None,
            payments: AtomicUsize::new(0),
            tool: name,
            schema,
            amount,
        };
        workshop.write(contract, given, behind, &people(acts));
        Ok(Self { loaded: Some(workshop.load()?), ..workshop })
    }

    fn write(&self, contract: &Value, given: &Given, behind: Behind, people: &BTreeSet<Who>) {
        for part in ["tools", "policies", "state"] {
            fs::create_dir(self.dir.path().join(part)).unwrap();
        }
        let user = |who: &Who| json!({ "name": who.user, "tenant": who.tenant, "roles": [] });
        let first = people.iter().next().expect("somebody calls");
        let mut settings = json!({
            "store": "sqlite:state/toolgate.db",
            "databases": { "world": { "path": "state/world.db", "seed": "world.sql" } },
            "identity": {
                "kind": "local", "default": format!("{}@{}", first.user, first.tenant),
                "user": people.iter().map(user).collect::<Vec<_>>(),
            },
        });
        let mut tool = json!({
            "description": "A tool of the corpora.", "effect": contract["effect"], "input": self.schema,
            "once": { "caller": true },
        });
        match behind {
            Behind::Database => {
                let statement = "insert into effects (key) values (:idempotency_key) returning id";
                tool["backend"] = json!({ "kind": "sql", "database": "world", "statement": statement });
            }
            Behind::Dying => {
                let mark = self.dir.path().join("state/died");
                let command = ["python3", MISBEHAVING, "dies", mark.to_str().unwrap()];
                settings["upstreams"] = json!({ "dying": { "command": command, "pinned": false } });
                tool["backend"] = json!({ "kind": "mcp", "upstream": "dying", "tool": "do" });
            }
        }
        if let Some(retained) = given.retained {
            tool["once"]["retain"] = json!(format!("{}s", retained.as_secs()));
        }
        if given.honours_keys {
            tool["reconcile"] = json!({ "tool": "find_effect", "args": { "key": "{idempotency_key}" }, "done": "/id", "absent_after": "0s" });
        }
        if let Some(limit) = contract.get("budget") {
            let per = format!("{}s", limit["window_s"]);
            let sum = format!("/{}", limit["sum_of"].as_str().unwrap());
            tool["limits"] = json!([{ "sum": sum, "max": limit["limit"], "per": per, "scope": limit["scope"] }]);
        }
        let find = json!({
            "description": "Find what was done under a key.", "effect": "read",
            "input": { "properties": { "key": { "type": "string", "maxLength": 128 } }, "required": ["key"] },
            "output": { "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"] },
            "backend": { "kind": "sql", "database": "world", "statement": "select id from effects where key = :key" },
        });
        let write = |file: &str, text: &str| fs::write(self.dir.path().join(file), text).unwrap();
        write("toolgate.toml", &toml(&settings));
        write(&format!("tools/{}.toml", self.tool), &toml(&tool));
        write("tools/find_effect.toml", &toml(&find));
        write("policies/all.cedar", "permit (principal, action, resource);\n");
        write("world.sql", "create table effects (id integer primary key, key text);\n");
    }

    fn load(&self) -> Result<Loaded, String> {
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let load = async { config::load_with(self.dir.path(), Purpose::Run, |builder| builder.clock(clock)) };
        self.runtime.block_on(load).map_err(|error| format!("{error}: {error:?}"))
    }

    /// Does all acts, and tells what came of the calls of each.
    pub(super) fn act(&mut self, acts: &[Act]) -> Vec<Vec<Came>> {
        let mut came = Vec::new();
        for (index, act) in acts.iter().enumerate() {
            let killed = acts.get(index + 1).and_then(|next| match next {
                Act::Killed(point) => Some(*point),
                _ => None,
            });
            match (act, killed) {
                (Act::Call(told), Some(point)) => self.killed(told, point),
                (Act::Call(told), None) => came.push(self.together(std::slice::from_ref(told))),
                (Act::Together(calls), _) => came.push(self.together(calls)),
                (Act::Killed(_) | Act::CutOff, _) => {}
                (Act::Restart, _) => self.restart(),
                (Act::Passes(span), _) => self.clock.advance(*span),
                (Act::SetAheadAndBack(_), _) => panic!("nobody sets a clock that is moved by hand"),
                (Act::At(time), _) => self.clock.advance(until(self.clock.now(), *time)),
            }
        }
        came
    }

    /// Makes calls at the same moment.
    fn together(&self, calls: &[Told]) -> Vec<Came> {
        let loaded = self.loaded.as_ref().expect("the gate is open");
        self.runtime.block_on(async {
            let calls = calls.iter().map(|told| async move {
                let session = loaded.identity.session(Some(&name(&told.who))).unwrap();
                let mut call = Call::new("call_1", &self.tool, self.text(&told.arguments));
                let own = || format!("payment-{}", self.payments.fetch_add(1, Ordering::Relaxed));
                let meant = matches!(told.arguments, Arguments::Amount(_)).then(own);
                if let Some(key) = told.key.clone().or(meant) {
                    call = call.operation(OperationId::parse(&key).unwrap());
                }
                match loaded.gate.call(call, &session).await {
                    Ok(reply) => Came::Reply(json!(reply)),
                    Err(_) => Came::Fault,
                }
            });
            futures_util::future::join_all(calls).await
        })
    }

    /// Makes a call in a process of its own, which dies at a crash point.
    fn killed(&mut self, told: &Told, point: &str) {
        self.close();
        let (text, who) = (self.text(&told.arguments), name(&told.who));
        let mut words = vec!["call", "--as", &who];
        words.extend(told.key.iter().flat_map(|key| ["--operation", key.as_str()]));
        words.extend(["--", self.dir.path().to_str().unwrap(), &self.tool, &text]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        command.args(words).env_remove("TOOLGATE_DIR").env("TOOLGATE_CRASH_AT", point);
        let ended = command.stdin(Stdio::null()).output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), None, "it dies {point}: {told}");
        self.loaded = Some(self.load().unwrap());
    }

    fn restart(&mut self) {
        self.close();
        self.loaded = Some(self.load().unwrap());
    }

    fn close(&mut self) {
        let loaded = self.loaded.take().expect("the gate is open");
        self.runtime.block_on(loaded.finish()).unwrap();
    }

    /// Keeps the ledger from being written as long as what this gives is there.
    pub(super) fn fill_the_volume(&self) -> Connection {
        let file = self.dir.path().join("state/toolgate.db");
        let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        connection.execute_batch("begin immediate").unwrap();
        connection
    }

    /// How often the backend did something.
    pub(super) fn effects(&self) -> usize {
        let file = self.dir.path().join("state/world.db");
        // Opened otherwise it would be made, and never get its tables.
        let Ok(connection) = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY) else { return 0 };
        let count: i64 = connection.query_row("select count(*) from effects", [], |row| row.get(0)).unwrap_or(0);
        usize::try_from(count).unwrap()
    }

    /// Whether the record of the gate holds.
    pub(super) fn verify(mut self) -> Result<(), String> {
        let loaded = self.loaded.take().expect("the gate is open");
        self.runtime.block_on(async {
            loaded.finish().await.unwrap();
            let head = loaded.gate.store().verify(None).await.unwrap();
            head.map(drop).map_err(|broken| broken.to_string())
        })
    }

    fn text(&self, arguments: &Arguments) -> String {
        match arguments {
            Arguments::Text(text) => text.clone(),
            Arguments::Values(values) => Value::Object(sample::valued(&self.schema, values)).to_string(),
            Arguments::Some(number) => Value::Object(sample::arguments(&self.schema, *number)).to_string(),
            Arguments::Amount(amount) => {
                let mut arguments: Map<String, Value> = sample::arguments(&self.schema, 0);
                let member = self.amount.clone().expect("a member that is an amount");
                arguments.insert(member, json!(amount));
                Value::Object(arguments).to_string()
            }
        }
    }
}

/// Everybody who calls.
fn people(acts: &[Act]) -> BTreeSet<Who> {
    let calls = acts.iter().flat_map(|act| match act {
        Act::Call(told) => std::slice::from_ref(told),
        Act::Together(calls) => &calls[..],
        Act::Killed(_) | Act::CutOff | Act::Restart | Act::Passes(_) | Act::SetAheadAndBack(_) | Act::At(_) => &[][..],
    });
    calls.map(|told| told.who.clone()).collect()
}

fn name(who: &Who) -> String {
    format!("{}@{}", who.user, who.tenant)
}

/// A file of TOML with these keys.
pub(super) fn toml(keys: &Value) -> String {
    let line = |(key, value): (&String, &Value)| format!("{} = {}\n", json!(key), inline(value));
    keys.as_object().unwrap().iter().map(line).collect()
}

/// A value in TOML, on one line.
fn inline(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| format!("{} = {}", json!(key), inline(value));
            format!("{{ {} }}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// How long it is from a moment until the next one with this time of the day.
fn until(now: Millis, time: u64) -> std::time::Duration {
    const DAY: u64 = 86_400_000;
    std::time::Duration::from_millis((DAY + time - now.0 % DAY) % DAY)
}
