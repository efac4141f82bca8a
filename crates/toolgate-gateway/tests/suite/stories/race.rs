//! Two processes refund one order at the same moment, again and again.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use toolgate::Call;
use toolgate_gateway::config::{self, Purpose};

use super::refund;
use crate::door;
use crate::folder::Folder;

/// A process that holds the gate of a folder and makes the calls that it is told.
struct Racer {
    child: Child,
    orders: ChildStdin,
    replies: Lines<BufReader<ChildStdout>>,
}

/// Names the folder to the process of a racer.
const FOLDER: &str = "TOOLGATE_TEST_RACER";
/// Marks a line of a racer among those of its test harness.
const MARK: char = '@';
const ROUNDS: usize = 200;

#[test]
fn two_people_refund_one_order_at_the_same_moment_and_one_of_them_does() {
    let folder = shop_with_orders();
    let (mut one, mut other) = (Racer::start(folder.path()), Racer::start(folder.path()));
    let mut refused_by_the_rule = 0;
    for round in 0..ROUNDS {
        let order = format!("ord_r{round}");
        // Who is told first changes, so that neither process is always the later one.
        let [alice, mia] = match round % 2 {
            0 => race([(&mut one, "alice@acme", refund(&order, 1500)), (&mut other, "mia@acme", refund(&order, 1600))]),
            _ => {
                let [mia, alice] = race([
                    (&mut other, "mia@acme", refund(&order, 1600)),
                    (&mut one, "alice@acme", refund(&order, 1500)),
                ]);
                [alice, mia]
            }
        };
        let refunded = folder.number(&format!("select refunded_cents from orders where id = '{order}'")) - 2000;
        let (done, refused, amount) = match (&alice["ok"], &mia["ok"]) {
            (Value::Bool(true), Value::Bool(false)) => (&alice, &mia, 1500),
            (Value::Bool(false), Value::Bool(true)) => (&mia, &alice, 1600),
            _ => panic!("round {round}: one is done and the other refused\n  {alice}\n  {mia}"),
        };
        assert_eq!(done["effect"], "done", "round {round}: {done}");
        assert_eq!(refunded, amount, "round {round}: {alice} {mia}");
        let code = refused["error"]["code"].as_str().unwrap();
        assert!(["rule_failed", "in_progress"].contains(&code), "round {round}: {refused}");
        assert_eq!(refused["error"]["effect"], "none", "round {round}: {refused}");
        refused_by_the_rule += usize::from(code == "rule_failed");
    }
    assert!(refused_by_the_rule > 0, "whoever waited was never told what the rule says");
    assert_eq!(folder.number("select max(refunded_cents) from orders where id like 'ord_r%'"), 3600);
    assert_eq!(folder.number("select count(*) from refunds"), i64::try_from(ROUNDS).unwrap());
    one.finish();
    other.finish();
    door::verify(folder.path()).unwrap();
}

#[test]
fn one_refund_asked_for_twice_at_the_same_moment_is_made_once_and_answered_twice() {
    let folder = shop_with_orders();
    let (mut one, mut other) = (Racer::start(folder.path()), Racer::start(folder.path()));
    for round in 0..ROUNDS / 4 {
        // 500 would be left after the first: the second is answered by what was done, not by what is left.
        let order = format!("ord_r{round}");
        let replies =
            race([(&mut one, "alice@acme", refund(&order, 1500)), (&mut other, "alice@acme", refund(&order, 1500))]);
        for reply in &replies {
            assert_eq!((&reply["ok"], &reply["effect"]), (&json!(true), &json!("done")), "round {round}: {reply}");
        }
        let replayed: Vec<&Value> = replies.iter().filter(|reply| reply["replayed"] == true).collect();
        assert_eq!(replayed.len(), 1, "round {round}: {replies:?}");
        assert_eq!(replies[0]["result"], replies[1]["result"], "round {round}");
        assert_eq!(folder.number(&format!("select count(*) from refunds where order_id = '{order}'")), 1);
    }
    one.finish();
    other.finish();
    door::verify(folder.path()).unwrap();
}

/// No story of its own: this is the process of a racer, and without its folder it does nothing.
#[test]
fn the_process_of_a_racer() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let loaded = runtime.block_on(async { config::load(Path::new(&folder), Purpose::Run).unwrap() });
    say(&json!("ready"));
    for line in std::io::stdin().lines() {
        let order: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let session = loaded.identity.session(order["as"].as_str()).unwrap();
        let call = Call::new("call_1", "create_refund", order["arguments"].to_string());
        let reply = runtime.block_on(loaded.gate.call(call, &session)).unwrap();
        say(&json!(reply));
    }
    runtime.block_on(loaded.gate.finish()).unwrap();
}

fn say(answer: &Value) {
    // Not by a macro, which the test harness would catch.
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "\n{MARK}{answer}").unwrap();
    stdout.flush().unwrap();
}

/// The shop with one order a round, of which 2000 are left.
fn shop_with_orders() -> Folder {
    let folder = Folder::shop();
    let looked = door::call(folder.path(), "alice@acme", "get_order", &json!({ "order_id": "ord_4821" }));
    assert_eq!(looked.exit, Some(0), "{looked:?}");
    let database = folder.database();
    for round in 0..ROUNDS {
        database
            .execute("insert into orders values (?1, 'acme', 4000, 2000, 'USD')", [format!("ord_r{round}")])
            .unwrap();
    }
    folder
}

/// Tells both racers what to do before it hears of either.
fn race(runs: [(&mut Racer, &str, Value); 2]) -> [Value; 2] {
    let orders =
        runs.map(|(racer, user, arguments)| (racer, json!({ "as": user, "arguments": arguments }).to_string()));
    let racers = orders.map(|(racer, order)| {
        writeln!(racer.orders, "{order}").unwrap();
        racer
    });
    racers.map(|racer| racer.hear())
}

impl Racer {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "stories::race::the_process_of_a_racer", "--nocapture"])
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, replies) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
        let mut racer = Self { child, orders, replies };
        assert_eq!(racer.hear(), "ready");
        racer
    }

    fn hear(&mut self) -> Value {
        loop {
            let line = self.replies.next().expect("the racer is still there").unwrap();
            if let Some(answer) = line.strip_prefix(MARK) {
                return serde_json::from_str(answer).unwrap();
            }
        }
    }

    fn finish(self) {
        let Self { mut child, orders, replies } = self;
        drop(orders);
        replies.for_each(drop);
        assert!(child.wait().unwrap().success());
    }
}
