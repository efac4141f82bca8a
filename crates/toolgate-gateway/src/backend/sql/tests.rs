//! A small shop: two tenants, orders with a balance, payments that must not exceed it.

mod gate;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use toolgate::call::TraceContext;

use super::*;

const SEED: &str = "
    create table orders (id text primary key, tenant text not null, left_cents integer not null check (left_cents >= 0));
    insert into orders values ('ord_1', 'acme', 100), ('ord_2', 'acme', 50), ('ord_9', 'globex', 100);
    create table payments (number integer primary key, order_id text not null references orders, cents integer not null);
    create trigger pay after insert on payments begin
        update orders set left_cents = left_cents - new.cents where id = new.order_id;
    end;";

/// The sum of all numbers; it never ends.
const FOREVER: &str = "with recursive n(x) as (select 1 union all select x + 1 from n) select sum(x) as sum from n";
const PAY: &str = "insert into payments (order_id, cents) values (:order_id, :cents) returning number, cents";

const LATER: Duration = Duration::from_secs(10);
/// What an end may cost beyond its deadline, on a machine that has other things to do.
const GRACE: Duration = Duration::from_millis(1500);

struct Shop {
    folder: TempDir,
    databases: Databases,
}

impl Shop {
    fn new() -> Self {
        Self::seeded(SEED)
    }

    fn seeded(seed: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("shop.sql"), seed).unwrap();
        let databases = open(folder.path());
        Self { folder, databases }
    }

    fn plan(&self, access: Access, rows: Rows, statement: &str) -> Plan {
        Plan { database: self.databases.get("shop").unwrap(), statement: statement.into(), rows, access }
    }

    fn read(&self, statement: &str, arguments: Value) -> Result<Value, Trouble> {
        perform(&self.plan(Access::Read, Rows::One, statement), &arguments, &until(LATER))
    }

    fn list(&self, bound: u32, statement: &str) -> Result<Value, Trouble> {
        perform(&self.plan(Access::Read, Rows::Many(bound), statement), &json!({}), &until(LATER))
    }

    fn write(&self, statement: &str, arguments: Value) -> Result<Value, Trouble> {
        perform(&self.plan(Access::Write, Rows::One, statement), &arguments, &until(LATER))
    }

    /// A connection of somebody else.
    fn other(&self) -> Connection {
        let path = self.folder.path().join("state/shop.db");
        if !path.exists() {
            self.read("select 1 as one", json!({})).unwrap();
        }
        Connection::open(path).unwrap()
    }

    fn count(&self, table: &str) -> i64 {
        self.other().query_row(&format!("select count(*) from {table}"), [], |row| row.get(0)).unwrap()
    }

    fn faults(&self, access: Access, statement: &str) -> Vec<String> {
        let members = ["order_id".to_owned(), "cents".to_owned(), "ref".to_owned()];
        let problems = inspect::inspect(&self.plan(access, Rows::One, statement), &members);
        problems.into_iter().map(|p| format!("{}: {} ({})", p.at, p.message, p.hint.unwrap_or_default())).collect()
    }
}

fn open(folder: &Path) -> Databases {
    let place = Place { path: "state/shop.db".into(), seed: Some("shop.sql".into()) };
    Databases::new(folder, [("shop".to_owned(), place)])
}

fn until(span: Duration) -> Watch {
    Watch::new(Instant::now() + span, || false)
}

/// Alice of acme asks.
fn perform(plan: &Plan, arguments: &Value, watch: &Watch) -> Result<Value, Trouble> {
    let values = Values {
        arguments: arguments.as_object().unwrap(),
        tenant: "acme",
        user: "alice",
        idempotency_key: Some("key"),
        reference: "01J",
        traced: None,
    };
    let mode = if plan.access == Access::Read { Mode::Read } else { Mode::Write };
    plan.perform(mode, &values, watch).map(|text| serde_json::from_slice(&text).unwrap())
}

// ---- values are data -------------------------------------------------------------------------------------------------

#[test]
fn a_value_that_looks_like_sql_stays_a_value() {
    let shop = Shop::new();
    for attack in ["ord_1' or '1'='1", "'; drop table orders; --", "ord_1\0", ":session_tenant", "\" union select 1 --"]
    {
        let found = shop.read("select id from orders where id = :order_id", json!({"order_id": attack}));
        assert_eq!(found, Err(Trouble::NoRow), "{attack}");
        let echoed = shop.read("select :order_id as text", json!({"order_id": attack})).unwrap();
        assert_eq!(echoed, json!({"text": attack}));
    }
    assert_eq!(shop.count("orders"), 3);
}

#[test]
fn the_row_of_another_tenant_is_as_absent_as_one_that_is_not_there() {
    let shop = Shop::new();
    let statement = "select id from orders where id = :order_id and tenant = :session_tenant";
    assert_eq!(shop.read(statement, json!({"order_id": "ord_1"})).unwrap(), json!({"id": "ord_1"}));
    for id in ["ord_9", "ord_0"] {
        // An argument of this name changes nothing.
        let arguments = json!({"order_id": id, "session_tenant": "globex"});
        assert_eq!(shop.read(statement, arguments), Err(Trouble::NoRow), "{id}");
    }
}

/// A context in which everything of the session can be told from everything else.
fn values<'a>(arguments: &'a Map<String, Value>, traced: Option<&'a TraceContext>) -> Values<'a> {
    let (tenant, user, idempotency_key, reference) = ("the-tenant", "the-user", Some("the-key"), "the-ref");
    Values { arguments, tenant, user, idempotency_key, reference, traced }
}

#[test]
fn a_statement_gets_of_the_session_what_it_names_and_nothing_else() {
    let shop = Shop::new();
    let arguments = Map::new();
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let traced = TraceContext::parse(parent, Some("rojo=1")).unwrap();
    let row = |statement: &str, traced| -> Value {
        let plan = shop.plan(Access::Read, Rows::One, statement);
        let text = plan.perform(Mode::Read, &values(&arguments, traced), &until(LATER)).unwrap();
        serde_json::from_slice(&text).unwrap()
    };
    let all = "select :session_tenant as a, :session_user as b, :ref as c, :trace_parent as d, :trace_state as e";
    let named = |d: Value, e: Value| json!({"a": "the-tenant", "b": "the-user", "c": "the-ref", "d": d, "e": e});
    assert_eq!(row(all, Some(&traced)), named(json!(parent), json!("rojo=1")));
    assert_eq!(row(all, None), named(Value::Null, Value::Null));
    let without_state = TraceContext::parse(parent, None).unwrap();
    assert_eq!(row(all, Some(&without_state)), named(json!(parent), Value::Null));
    let some = "select :session_user as user, count(*) as orders from orders";
    assert_eq!(row(some, Some(&traced)), json!({"user": "the-user", "orders": 3}));
    assert_eq!(
        shop.faults(Access::Read, all)[..],
        ["/backend/statement: `:ref` is a value of the gate, never the argument of this name ()"]
    );
    assert_eq!(shop.faults(Access::Read, "select :trace_parent as a, :trace_state as b"), [""; 0]);
    assert_eq!(
        shop.faults(Access::Read, "select :trace_parnt as a"),
        ["/backend/statement: `:trace_parnt` names no argument (did you mean trace_parent?)"]
    );
}

#[test]
fn values_keep_their_type_on_the_way_in_and_out() {
    let shop = Shop::new();
    let statement = "select :text as text, :integer as integer, :real as real, :yes as yes, :none as none,
        :absent as absent, :list as list, typeof(:integer) || typeof(:real) || typeof(:none) as types,
        :session_user as user, :idempotency_key as key, :ref as ref";
    let arguments = json!({
        "text": "Zoë \"\n", "integer": i64::MAX, "real": 0.1, "yes": true, "none": null, "list": [{"b": 1, "a": [null]}],
    });
    assert_eq!(
        shop.read(statement, arguments).unwrap(),
        json!({
            "text": "Zoë \"\n", "integer": i64::MAX, "real": 0.1, "yes": 1, "none": null, "absent": null,
            "list": "[{\"a\":[null],\"b\":1}]", "types": "integerrealnull", "user": "alice", "key": "key", "ref": "01J",
        })
    );
}

#[test]
fn what_has_no_form_on_the_other_side_is_refused_and_never_bent() {
    let shop = Shop::new();
    let large = json!({"cents": u64::MAX, "order_id": "ord_1"});
    assert!(matches!(shop.write(PAY, large), Err(Trouble::Value(_))));
    for statement in ["select x'00' as blob", "select 9e999 as infinite", "select cast(x'ff' as text) as text"] {
        assert!(matches!(shop.read(statement, json!({})), Err(Trouble::Value(_))), "{statement}");
    }
    assert_eq!(shop.count("payments"), 0);
}

// ---- one transaction -------------------------------------------------------------------------------------------------

#[test]
fn a_read_cannot_write() {
    let shop = Shop::new();
    let trouble = shop.read(PAY, json!({"order_id": "ord_1", "cents": 1})).unwrap_err();
    assert!(matches!(trouble, Trouble::Statement(_)), "{trouble}");
    assert_eq!(shop.count("payments"), 0);
}

#[test]
fn a_write_that_breaks_a_constraint_leaves_nothing() {
    let shop = Shop::new();
    let paid = shop.write(PAY, json!({"order_id": "ord_1", "cents": 60})).unwrap();
    assert_eq!(paid, json!({"number": 1, "cents": 60}));
    for (order, cents) in [("ord_1", 41), ("ord_0", 1)] {
        let trouble = shop.write(PAY, json!({"order_id": order, "cents": cents})).unwrap_err();
        assert!(matches!(trouble, Trouble::Constraint(_)), "{trouble}");
        assert_eq!((trouble.effect(), trouble.into_failure().signal), (Effect::None, "constraint".to_owned()));
    }
    assert_eq!(shop.count("payments"), 1);
    assert_eq!(
        shop.read("select left_cents from orders where id = 'ord_1'", json!({})).unwrap(),
        json!({"left_cents": 40})
    );
    // The connection is fit for the next one.
    shop.write(PAY, json!({"order_id": "ord_1", "cents": 40})).unwrap();
}

#[test]
fn a_write_that_gives_no_row_or_too_many_did_nothing() {
    let shop = Shop::new();
    let raise = "update orders set left_cents = 999 where tenant = :session_tenant and id like :order_id returning id";
    assert_eq!(shop.write(raise, json!({"order_id": "ord_9"})), Err(Trouble::NoRow));
    assert_eq!(shop.write(raise, json!({"order_id": "ord_%"})), Err(Trouble::ManyRows));
    let few = shop.plan(Access::Write, Rows::Many(1), raise);
    let too_many = perform(&few, &json!({"order_id": "ord_%"}), &until(LATER)).unwrap_err();
    assert!(matches!(too_many, Trouble::TooLarge(_)));
    assert_eq!(too_many.effect(), Effect::None);
    assert_eq!(shop.count("orders where left_cents = 999"), 0);
    let nothing = shop.plan(Access::Write, Rows::Many(9), raise);
    assert_eq!(perform(&nothing, &json!({"order_id": "ord_9"}), &until(LATER)), Err(Trouble::NoRow));
}

// ---- bounds ----------------------------------------------------------------------------------------------------------

#[test]
fn many_rows_are_a_list_within_its_bound() {
    let shop = Shop::new();
    let all = "select id from orders order by id";
    assert_eq!(shop.list(3, all).unwrap(), json!({"rows": [{"id": "ord_1"}, {"id": "ord_2"}, {"id": "ord_9"}]}));
    assert_eq!(shop.list(3, "select id from orders where false").unwrap(), json!({"rows": []}));
    assert!(matches!(shop.list(2, all), Err(Trouble::TooLarge(_))));
    assert_eq!(shop.read(all, json!({})), Err(Trouble::ManyRows));
}

#[test]
fn rows_end_at_a_megabyte_and_at_ten_thousand_values() {
    let shop = Shop::new();
    let numbers = "with recursive n(x) as (select 1 union all select x + 1 from n limit 10000)";
    assert!(shop.list(u32::MAX, &format!("{numbers} select x from n")).is_ok());
    for (what, statement) in [
        ("values", format!("{numbers} select x, x as y from n")),
        ("one text", "select printf('%.*c', 1000001, 'x') as text".to_owned()),
        ("many texts", format!("{numbers} select printf('%.*c', 200, 'x') as text from n")),
    ] {
        assert!(matches!(shop.list(u32::MAX, &statement), Err(Trouble::TooLarge(_))), "{what}");
    }
}

// ---- time ------------------------------------------------------------------------------------------------------------

#[test]
fn a_statement_without_end_is_ended_at_its_deadline() {
    let shop = Shop::new();
    let endless = shop.plan(Access::Read, Rows::One, FOREVER);
    let start = Instant::now();
    let trouble = perform(&endless, &json!({}), &until(Duration::from_millis(200))).unwrap_err();
    assert_eq!(trouble, Trouble::TimedOut);
    assert!(start.elapsed() < Duration::from_millis(200) + GRACE, "{:?}", start.elapsed());
    assert_eq!(shop.read("select 1 as one", json!({})).unwrap(), json!({"one": 1}), "the connection is fit");
}

#[test]
fn a_write_that_is_ended_leaves_nothing_and_says_so() {
    let shop = Shop::new();
    let statement = format!("insert into payments (order_id, cents) select 'ord_1', 0 from ({}) returning number", {
        "with recursive n(x) as (select 1 union all select x + 1 from n) select x from n"
    });
    let endless = shop.plan(Access::Write, Rows::One, &statement);
    let trouble = perform(&endless, &json!({}), &until(Duration::from_millis(200))).unwrap_err();
    assert_eq!((trouble.effect(), trouble.into_failure().signal), (Effect::None, "timeout".to_owned()));
    assert_eq!(shop.count("payments"), 0);
    shop.write(PAY, json!({"order_id": "ord_1", "cents": 1})).unwrap();
}

#[test]
fn work_ends_when_its_caller_goes_away() {
    let shop = Shop::new();
    let gone = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&gone);
    let watch = Watch::new(Instant::now() + LATER, move || seen.load(Ordering::Relaxed));
    let endless = shop.plan(Access::Read, Rows::One, FOREVER);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let work = scope.spawn(|| perform(&endless, &json!({}), &watch));
        std::thread::sleep(Duration::from_millis(50));
        gone.store(true, Ordering::Relaxed);
        assert_eq!(work.join().unwrap(), Err(Trouble::Cancelled));
    });
    assert!(start.elapsed() < Duration::from_millis(50) + GRACE);
    // Whoever has gone already has nothing begun for them.
    assert_eq!(perform(&endless, &json!({}), &watch), Err(Trouble::Cancelled));
}

#[test]
fn a_locked_database_is_waited_for_and_no_longer_than_the_deadline() {
    let shop = Shop::new();
    let pay = shop.plan(Access::Write, Rows::One, PAY);
    let arguments = json!({"order_id": "ord_1", "cents": 1});
    let other = shop.other();
    other.execute_batch("begin immediate").unwrap();
    let start = Instant::now();
    let trouble = perform(&pay, &arguments, &until(Duration::from_millis(200))).unwrap_err();
    assert!(start.elapsed() < Duration::from_millis(200) + GRACE, "{:?}", start.elapsed());
    assert_eq!(trouble, Trouble::Busy);
    assert_eq!(trouble.effect(), Effect::None);
    let failure = trouble.into_failure();
    assert_eq!((failure.kind, failure.signal.as_str()), (toolgate::backend::FailureKind::Unavailable, "503"));
    // Readers are in nobody's way.
    assert_eq!(shop.read("select count(*) as payments from payments", json!({})).unwrap(), json!({"payments": 0}));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| perform(&pay, &arguments, &until(LATER)));
        std::thread::sleep(Duration::from_millis(100));
        other.execute_batch("rollback").unwrap();
        assert_eq!(waiting.join().unwrap().unwrap(), json!({"number": 1, "cents": 1}));
    });
}

#[test]
fn waiting_for_a_lock_ends_when_the_caller_goes_away() {
    let shop = Shop::new();
    let other = shop.other();
    other.execute_batch("begin immediate").unwrap();
    let start = Instant::now();
    let watch = Watch::new(start + LATER, move || start.elapsed() > Duration::from_millis(60));
    let pay = shop.plan(Access::Write, Rows::One, PAY);
    assert_eq!(perform(&pay, &json!({"order_id": "ord_1", "cents": 1}), &watch), Err(Trouble::Cancelled));
    assert!(start.elapsed() < Duration::from_millis(60) + GRACE);
}

// ---- the file --------------------------------------------------------------------------------------------------------

#[test]
fn many_that_start_at_once_find_one_database_and_lose_nothing() {
    for _ in 0..5 {
        let shop = Shop::new();
        let start = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    // Each like a process of its own.
                    let databases = open(shop.folder.path());
                    let database = databases.get("shop").unwrap();
                    let pay = Plan { database, ..shop.plan(Access::Write, Rows::One, PAY) };
                    start.wait();
                    perform(&pay, &json!({"order_id": "ord_1", "cents": 1}), &until(LATER)).unwrap();
                });
            }
        });
        assert_eq!((shop.count("payments"), shop.count("orders")), (8, 3));
        let state = std::fs::read_dir(shop.folder.path().join("state")).unwrap();
        let left: Vec<_> = state
            .map(|file| file.unwrap().file_name())
            .filter(|name| name.to_string_lossy().contains(".new"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_database_is_durable_and_keeps_its_references() {
    let shop = Shop::new();
    shop.write(PAY, json!({"order_id": "ord_1", "cents": 1})).unwrap();
    let pragmas = shop
        .databases
        .get("shop")
        .unwrap()
        .with(Mode::Write, &until(LATER), |connection| {
            let ask =
                |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, rusqlite::types::Value>(0));
            Ok(["journal_mode", "synchronous", "foreign_keys"].map(|pragma| ask(pragma).unwrap()))
        })
        .unwrap();
    assert_eq!(pragmas, ["wal".to_owned().into(), 2.into(), 1.into()]);
}

#[test]
fn a_seed_that_fails_leaves_no_half_made_database() {
    let shop = Shop::seeded("create table orders (id text); insert into order values (1);");
    for _ in 0..2 {
        let trouble = shop.read("select 1 as one", json!({})).unwrap_err();
        assert!(matches!(&trouble, Trouble::Unopenable(why) if why.contains("the seed is wrong")), "{trouble}");
    }
    assert_eq!(std::fs::read_dir(shop.folder.path().join("state")).unwrap().count(), 0);
}

#[test]
fn without_a_file_and_a_seed_there_is_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let databases = Databases::new(folder.path(), [("shop".to_owned(), Place { path: "shop.db".into(), seed: None })]);
    let database = databases.get("shop").unwrap();
    let plan = Plan { database, statement: "select 1 as one".into(), rows: Rows::One, access: Access::Read };
    let problems = inspect::inspect(&plan, &[]);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].at, "/backend/database");
    assert!(problems[0].message.contains("no seed to make it of"), "{}", problems[0].message);
    assert!(!folder.path().join("shop.db").exists());
}

// ---- what is told before anything runs -------------------------------------------------------------------------------

#[test]
fn a_statement_that_fits_has_no_faults() {
    let shop = Shop::new();
    assert_eq!(shop.faults(Access::Write, PAY), [""; 0]);
    assert_eq!(shop.faults(Access::Read, "select :session_tenant as a, :session_user as b; -- done"), [""; 0]);
    assert_eq!(
        shop.faults(Access::Write, "delete from payments where order_id = :idempotency_key returning 1 as n"),
        [""; 0]
    );
    assert_eq!(shop.count("orders"), 3, "the check makes the database");
}

#[test]
fn a_statement_that_cannot_run_is_told_before_it_does() {
    let shop = Shop::new();
    for (access, statement, told) in [
        (Access::Read, "", "there is no statement ()"),
        (Access::Read, " -- nothing", "there is no statement ()"),
        (Access::Read, "select 1 as a; select 2 as b", "there is more than one statement ()"),
        (Access::Read, "select total from orders", "the statement is wrong: there is no column `total` ()"),
        (Access::Read, "selec 1", "the statement is wrong: it is no SQL from `selec` on ()"),
        (Access::Read, "select id from order_s", "the statement is wrong: there is no table `order_s` ()"),
        (Access::Read, "select nofun(id) as a from orders", "the statement is wrong: there is no function `nofun` ()"),
        (Access::Read, "select id from orders where", "the statement is wrong: it ends too early ()"),
        (Access::Read, "select id from orders where id = $", "the statement is wrong: it is no SQL from `$` on ()"),
        (
            Access::Read,
            "select order_id as a from payments, payments as b",
            "the statement is wrong: `order_id` is a column of more than one table; name the table before it ()",
        ),
        (
            Access::Write,
            "insert into payments (cent) values (1) returning 1 as a",
            "the statement is wrong: the table `payments` has no column `cent` ()",
        ),
        (
            Access::Read,
            "select substr() as a",
            "the statement is wrong: SQLite does not take it; the command `sqlite3` on the same text tells more ()",
        ),
        (Access::Read, "select id, tenant as id from orders", "two columns are called `id` (name it with `as`)"),
        (Access::Read, "select :order_ids as a", "`:order_ids` names no argument (did you mean order_id?)"),
        (
            Access::Read,
            "select :whatever as a",
            "`:whatever` names no argument (known: order_id, cents, ref, session_tenant, session_user, idempotency_key, ref, trace_parent, trace_state)",
        ),
        (
            Access::Read,
            "select ? as a",
            "a parameter is not written as a name after a colon (write :order_id for the argument order_id)",
        ),
        (
            Access::Read,
            "select :idempotency_key as a",
            "a read has no `:idempotency_key` (take the key as an argument)",
        ),
        (Access::Read, "select :ref as a", "`:ref` is a value of the gate, never the argument of this name ()"),
        (Access::Read, PAY, "the statement writes, and the contract says effect = \"read\" ()"),
        (
            Access::Write,
            "delete from payments",
            "the statement returns nothing, so there would be no result (a write ends with `returning ...`)",
        ),
    ] {
        assert_eq!(shop.faults(access, statement), [format!("/backend/statement: {told}")], "{statement}");
    }
}

#[test]
fn every_failure_has_a_signal_that_contracts_may_name() {
    let text = || "x".to_owned();
    let all = [
        Trouble::TimedOut,
        Trouble::Cancelled,
        Trouble::Busy,
        Trouble::Unopenable(text()),
        Trouble::NoRow,
        Trouble::ManyRows,
        Trouble::TooLarge(text()),
        Trouble::Constraint(text()),
        Trouble::Value(text()),
        Trouble::Statement(text()),
        Trouble::Commit(text()),
        Trouble::Lost,
    ];
    assert_eq!(all.map(|trouble| trouble.into_failure().signal), trouble::SIGNALS);
}
