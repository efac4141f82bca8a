//! The backend behind a whole gate.

use toolgate::ledger::Store;
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Reply, Tool};

use super::*;

/// A gate with one tool `work`, and the backend of it.
fn gate(shop: &Shop, access: Access, statement: &str, deadline: &str) -> (Gate, Arc<Sql>) {
    let sql = Arc::new(Sql { plan: Arc::new(shop.plan(access, Rows::One, statement)) });
    let keys = json!({
        "description": "Works.",
        "effect": if access == Access::Read { "read" } else { "write" },
        "deadline": deadline,
        "input": {"properties": {"order_id": {"type": "string"}, "cents": {"type": "integer"}}},
        "errors": {"no_row": {"code": "not_found", "message": "There is no such thing."}},
    });
    let tool = Tool::new("work", keys.as_object().unwrap().clone(), Arc::clone(&sql) as Arc<dyn Backend>);
    let gate = Gate::builder()
        .tool(tool)
        .policy("permit (principal, action, resource);")
        .store(Store::memory())
        .build()
        .unwrap_or_else(|error| panic!("{error}"));
    (gate, sql)
}

async fn call(gate: &Gate, arguments: Value) -> Reply {
    let session = Session::new(Principal::new("local", "alice"), "acme");
    gate.call(Call::new("call_1", "work", arguments.to_string()), &session).await.unwrap()
}

/// The code of a refusal and the effect.
fn told(reply: &Reply) -> (String, Effect) {
    let refusal = reply.refusal().unwrap_or_else(|| panic!("{reply:?}"));
    (refusal.code().as_str().to_owned(), refusal.effect())
}

/// Waits until no thread works for the tool any more.
fn assert_ends(sql: &Sql, within: Duration) {
    let start = Instant::now();
    while Arc::strong_count(&sql.plan) > 1 {
        assert!(start.elapsed() < within, "something still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn a_write_is_done_and_its_repeat_is_replayed() {
    let shop = Shop::new();
    let (gate, _) = gate(&shop, Access::Write, PAY, "5s");
    let first = call(&gate, json!({"order_id": "ord_1", "cents": 60})).await;
    let again = call(&gate, json!({"cents": 60, "order_id": "ord_1"})).await;
    assert_eq!(first.result(), Some(r#"{"cents":60,"number":1}"#));
    assert_eq!(again.result(), first.result());
    assert_eq!(shop.count("payments"), 1);
}

#[tokio::test]
async fn a_read_without_end_is_ended_and_nothing_is_left_running() {
    let shop = Shop::new();
    let (gate, sql) = gate(&shop, Access::Read, FOREVER, "300ms");
    let start = Instant::now();
    let reply = call(&gate, json!({})).await;
    assert!(start.elapsed() < Duration::from_millis(300) + GRACE, "{:?}", start.elapsed());
    assert_eq!(told(&reply), ("timed_out".to_owned(), Effect::None));
    assert_ends(&sql, GRACE);
}

#[tokio::test]
async fn a_write_without_end_proves_before_its_deadline_that_it_did_nothing() {
    let shop = Shop::new();
    let statement =
        format!("insert into payments (order_id, cents) select 'ord_1', sum from ({FOREVER}) returning number");
    let (gate, sql) = gate(&shop, Access::Write, &statement, "300ms");
    let start = Instant::now();
    let reply = call(&gate, json!({})).await;
    assert!(start.elapsed() < Duration::from_millis(300) + GRACE, "{:?}", start.elapsed());
    assert_eq!(told(&reply), ("timed_out".to_owned(), Effect::None));
    assert_ends(&sql, GRACE);
    assert_eq!(shop.count("payments"), 0);
}

#[tokio::test]
async fn work_whose_caller_is_dropped_ends_long_before_its_deadline() {
    let shop = Shop::new();
    let (gate, sql) = gate(&shop, Access::Read, FOREVER, "60s");
    let dropped = tokio::time::timeout(Duration::from_millis(100), call(&gate, json!({}))).await;
    assert!(dropped.is_err());
    tokio::task::spawn_blocking(move || assert_ends(&sql, Duration::from_secs(2))).await.unwrap();
}

#[tokio::test]
async fn the_contract_words_what_failed() {
    let shop = Shop::new();
    let (reads, _) = gate(&shop, Access::Read, "select id from orders where id = :order_id", "5s");
    let reply = call(&reads, json!({"order_id": "ord_0"})).await;
    assert_eq!(told(&reply), ("tool_failed".to_owned(), Effect::None));
    let (writes, _) = gate(&shop, Access::Write, PAY, "5s");
    let reply = call(&writes, json!({"order_id": "ord_1", "cents": 101})).await;
    assert_eq!(told(&reply), ("tool_failed".to_owned(), Effect::None));
}

/// What the record tells of how a call ended, and of what came late.
async fn history(gate: &Gate, reply: &Reply) -> Vec<Value> {
    let records = gate.store().history(reply.reference().as_str()).await.unwrap();
    records.iter().map(|record| serde_json::from_str(&record.body).unwrap()).collect()
}

#[tokio::test]
async fn a_commit_that_outlasts_the_deadline_is_unknown_until_it_is_told() {
    let shop = Shop::new();
    shop.other();
    let (gate, sql) = gate(&shop, Access::Write, PAY, "400ms");
    sql.plan.database.hook(|| {
        std::thread::sleep(Duration::from_millis(1200));
        false
    });
    let arguments = json!({"order_id": "ord_1", "cents": 60});
    let first = call(&gate, arguments.clone()).await;
    assert_eq!(told(&first), ("timed_out".to_owned(), Effect::Unknown));
    let early = call(&gate, arguments.clone()).await;
    assert_eq!(told(&early), ("outcome_unknown".to_owned(), Effect::Unknown));
    while !history(&gate, &first).await.iter().any(|record| record["late"] == true) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let again = call(&gate, arguments).await;
    assert_eq!((again.result(), again.replayed()), (Some(r#"{"cents":60,"number":1}"#), true));
    assert_eq!(shop.count("payments"), 1);
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_unknown_with_what_is_known() {
    let shop = Shop::new();
    shop.other();
    let (gate, sql) = gate(&shop, Access::Write, PAY, "5s");
    // SQLite says that it failed, and its transaction is over: nobody can tell what it came to.
    sql.plan.database.hook(|| true);
    let reply = call(&gate, json!({"order_id": "ord_1", "cents": 60})).await;
    assert_eq!(told(&reply), ("tool_failed".to_owned(), Effect::Unknown));
    assert!(reply.refusal().unwrap().text().contains(" It was sent at 2"));
    let outcome = history(&gate, &reply).await.pop().unwrap();
    let stages = outcome["stages"].as_array().unwrap();
    let run = stages.iter().find(|stage| stage["stage"] == "run").unwrap();
    assert_eq!((&run["signal"], &run["effect"]), (&json!("commit"), &json!("unknown")));
    assert!(run["detail"].as_str().unwrap().starts_with("the commit failed: "), "{run}");
}
