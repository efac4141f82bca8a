//! A process with a gate over the shared ledger, which makes the calls that it is told on stdin.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate::backend::{Context, ToolError};
use toolgate::call::OperationId;
use toolgate::clock::{Clock, Millis, SystemClock};
use toolgate::ledger::Store;
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Tool};

use crate::effects;

/// A process, as its story sees it.
pub(crate) struct Process {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

/// What a process is started with.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Start {
    /// How many hours its clock on the wall is ahead.
    pub(crate) ahead: i64,
    /// Whether it looks after the ledger from the start.
    pub(crate) keeps: bool,
}

/// Names the folder to the process.
const FOLDER: &str = "TOOLGATE_TEST_PROCESS";
const START: &str = "TOOLGATE_TEST_PROCESS_START";
/// Marks an answer among the lines of the test harness.
const MARK: char = '@';

impl Process {
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_as(folder, &Start::default())
    }

    pub(crate) fn start_as(folder: &Path, start: &Start) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::the_process_of_a_story", "--nocapture"])
            .env(FOLDER, folder)
            .env(START, json!(start).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
        let mut process = Self { child, orders, answers };
        assert_eq!(process.hear(), "ready");
        process
    }

    /// Tells it what to do, and does not wait.
    pub(crate) fn tell(&mut self, order: &Value) {
        writeln!(self.orders, "{order}").unwrap();
    }

    /// The next answer: they come as they are found.
    pub(crate) fn hear(&mut self) -> Value {
        loop {
            let line = self.answers.next().expect("the process is still there").unwrap();
            if let Some(answer) = line.strip_prefix(MARK) {
                return serde_json::from_str(answer).unwrap();
            }
        }
    }

    pub(crate) fn ask(&mut self, order: &Value) -> Value {
        self.tell(order);
        self.hear()
    }

    /// Ends it as the system does when it has no more memory.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn finish(self) {
        let Self { mut child, orders, answers } = self;
        drop(orders);
        answers.for_each(drop);
        assert!(child.wait().unwrap().success());
    }
}

/// What a process may be told. Whatever it is, it is answered by one line.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    /// One call.
    Call { who: String, tool: String, arguments: Value, patience: Option<u64> },
    /// Calls of one person, so many at once: whether each is well, and how.
    Calls {
        who: String,
        tool: String,
        arguments: Vec<Value>,
        at_once: usize,
        /// The run in which they are made.
        run: Option<String>,
        /// The approvals that they name, one each.
        #[serde(default)]
        approvals: Vec<String>,
        /// Makes each an operation of its own, which is called by this and its number.
        operations: Option<String>,
    },
    /// A manager says yes.
    Approve { who: String, approvals: Vec<String> },
    /// The time of its gate.
    Now,
}

/// No story of its own: this is the process, and without its folder it does nothing.
#[test]
fn the_process_of_a_story() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let start: Start = serde_json::from_str(&std::env::var(START).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let gate = gate(Path::new(&folder), &start);
    if start.keeps {
        runtime.block_on(async { gate.keep(|error| panic!("{error}")) });
    }
    say(&json!("ready"));
    for line in std::io::stdin().lines() {
        let order: Order = serde_json::from_str(&line.unwrap()).unwrap();
        let gate = gate.clone();
        runtime.spawn(async move { say(&follow(&gate, order).await) });
    }
    runtime.block_on(gate.finish()).unwrap();
}

async fn follow(gate: &Gate, order: Order) -> Value {
    match order {
        Order::Call { who, tool, arguments, patience } => {
            let call = Call::new("call_1", tool, arguments.to_string());
            let call = match patience {
                Some(millis) => call.patience(Duration::from_millis(millis)),
                None => call,
            };
            match gate.call(call, &person(&who)).await {
                Ok(reply) => json!(reply),
                Err(fault) => json!({ "fault": fault.to_string() }),
            }
        }
        Order::Calls { who, tool, arguments, at_once, run, approvals, operations } => {
            let session = &run.into_iter().fold(person(&who), Session::in_run);
            let answers = stream::iter(arguments).enumerate().map(|(number, arguments)| {
                let mut call = Call::new("call_1", tool.clone(), arguments.to_string());
                if let Some(id) = approvals.get(number) {
                    call = call.approval(id);
                }
                if let Some(name) = &operations {
                    call = call.operation(OperationId::parse(&format!("{name}_{number}")).unwrap());
                }
                async move {
                    match gate.call(call, session).await {
                        Ok(reply) => match (reply.result(), reply.code()) {
                            (Some(result), _) => json!({ "result": result, "replayed": reply.replayed() }),
                            (None, code) => {
                                let waits = reply.refusal().and_then(|refusal| refusal.approval_notice());
                                json!({
                                    "code": code.unwrap().as_str(), "effect": reply.effect().as_str(),
                                    "approval": waits.map(|notice| &notice.id),
                                })
                            }
                        },
                        Err(fault) => json!({ "fault": fault.to_string() }),
                    }
                }
            });
            json!(answers.buffered(at_once).collect::<Vec<Value>>().await)
        }
        Order::Approve { who, approvals } => {
            let manager = person(&who).role("manager");
            let mut states = Vec::new();
            for id in approvals {
                let decided = gate.approve(&id, &manager).await;
                states.push(decided.map_or_else(|error| error.to_string(), |now| now.state_at(gate.now()).to_owned()));
            }
            json!(states)
        }
        Order::Now => json!(gate.now().0),
    }
}

fn person(name: &str) -> Session {
    Session::new(Principal::new("local", name), "acme")
}

fn say(answer: &Value) {
    // Not by a macro, which the test harness would catch.
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "\n{MARK}{answer}").unwrap();
    stdout.flush().unwrap();
}

/// The clock on the wall, hours off.
struct Off(i64);

impl Clock for Off {
    fn now(&self) -> Millis {
        Millis(SystemClock.now().0.saturating_add_signed(self.0 * 3_600_000))
    }
}

/// Write a note. It is written for good.
#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
    /// How long it takes after it was written, in milliseconds.
    #[serde(default)]
    lingers: u64,
}

#[derive(Serialize, JsonSchema)]
struct Written {
    /// What the one who really wrote it knows.
    secret: String,
}

/// Look up what was written.
#[derive(Deserialize, JsonSchema)]
struct Find {
    text: String,
}

/// Spend money of an account.
#[derive(Deserialize, JsonSchema)]
struct Spend {
    account: String,
    cents: u64,
}

/// Give something away.
#[derive(Deserialize, JsonSchema)]
struct Give {
    what: String,
}

/// Look up an account.
#[derive(Deserialize, JsonSchema)]
struct Look {
    account: String,
}

#[derive(Serialize, JsonSchema)]
struct Account {
    tenant: String,
    cents: u64,
}

const POLICIES: &str = r#"
    permit (principal, action, resource);
    @id("covered") @message("The account does not cover it.")
    forbid (principal, action == Action::"spend", resource) unless { context.input.cents <= context.facts.account.cents };
    @id("consent") @message("A manager must agree.") @approvers("manager")
    forbid (principal, action == Action::"give", resource) unless { context.approved };
"#;

fn gate(folder: &Path, start: &Start) -> Gate {
    let here = Arc::new(folder.to_path_buf());
    let (notes, finds, spends, looks) = (Arc::clone(&here), Arc::clone(&here), Arc::clone(&here), Arc::clone(&here));
    let gives = Arc::clone(&here);
    let give = Tool::write("give", move |give: Give, _: &Context| {
        let folder = Arc::clone(&gives);
        async move {
            append(&folder, &give.what);
            Ok(true)
        }
    })
    .key("once", json!({ "caller": true }));
    let note = Tool::write("note", move |note: Note, _: &Context| written(Arc::clone(&notes), note))
        .deadline(Duration::from_secs(30))
        .key("once", json!({ "key": ["{text}"], "retain": "1h" }))
        .key("lane", json!({ "key": ["{text}"] }))
        .key(
            "reconcile",
            json!({ "tool": "find", "args": { "text": "{text}" }, "done": "/secret", "absent_after": "1h" }),
        );
    let find = Tool::read("find", move |wanted: Find, _: &Context| {
        let folder = Arc::clone(&finds);
        async move {
            if folder.join("down").exists() {
                return Err(ToolError::unavailable("it is down"));
            }
            let lines = fs::read_to_string(effects(&folder)).unwrap_or_default();
            let found = lines.lines().find_map(|line| line.strip_prefix(&format!("{} ", wanted.text)));
            Ok(found.map(|secret| Written { secret: secret.to_owned() }))
        }
    });
    let spend = Tool::write("spend", move |spend: Spend, _: &Context| spent(Arc::clone(&spends), spend))
        .key("resource", json!({ "type": "Account", "id": "{account}", "fact": "account", "tenant": "/tenant" }))
        .key("facts", json!({ "account": { "tool": "account", "args": { "account": "{account}" } } }));
    let account = Tool::read("account", move |look: Look, _: &Context| {
        let folder = Arc::clone(&looks);
        async move { Ok(Account { tenant: "acme".into(), cents: balance(&folder, &look.account) }) }
    });
    let builder =
        [note, find, spend, account, give].into_iter().fold(Gate::builder(), |builder, tool| builder.tool(tool));
    let gate = builder
        .policy(POLICIES)
        .wall_clock(Arc::new(Off(start.ahead)))
        .store(Store::sqlite(folder.join("gate.db")).unwrap())
        .build();
    gate.unwrap_or_else(|error| panic!("{error}"))
}

/// One effect: a line that nobody else's can run into.
fn append(folder: &Path, line: &str) {
    let file = File::options().append(true).create(true).open(effects(folder));
    file.unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
}

async fn written(folder: Arc<PathBuf>, note: Note) -> Result<Written, ToolError> {
    let secret =
        toolgate::json::Digest::of(format!("{:?} {}", std::time::Instant::now(), std::process::id()).as_bytes());
    let secret = secret.to_string();
    append(&folder, &format!("{} {secret}", note.text));
    tokio::time::sleep(Duration::from_millis(note.lingers)).await;
    Ok(Written { secret })
}

pub(crate) fn account_file(folder: &Path, account: &str) -> PathBuf {
    folder.join(format!("account-{account}"))
}

pub(crate) fn balance(folder: &Path, account: &str) -> u64 {
    fs::read_to_string(account_file(folder, account)).unwrap().parse().unwrap()
}

/// As a backend that looks at nothing and locks nothing: what keeps it right is the gate alone.
async fn spent(folder: Arc<PathBuf>, spend: Spend) -> Result<u64, ToolError> {
    let before = balance(&folder, &spend.account);
    tokio::time::sleep(Duration::from_millis(2)).await;
    let after = before.saturating_sub(spend.cents);
    fs::write(account_file(&folder, &spend.account), after.to_string()).unwrap();
    append(&folder, &format!("{} {}", spend.account, spend.cents));
    Ok(after)
}
