//! A folder whose answers stand in it: the gate's part is real, and nothing in the world is asked.

use serde_json::{Value, json};

use crate::door::{Run, toolgate};

/// A gate folder with a read, a write that rests on it, and a recording.
struct Desk(tempfile::TempDir);

const SETTINGS: &str = r#"
[identity]
kind = "local"
default = "ann@acme"
user = [{ name = "ann", tenant = "acme", roles = ["clerk"] }]
"#;

const GET_ORDER: &str = r#"
description = "Look up an order by its id. Use it before a refund."
effect = "read"
input = { properties = { order_id = { type = "string" } }, required = ["order_id"] }
output = { type = "object", properties = { order_id = { type = "string" }, tenant = { type = "string" }, left_cents = { type = "integer" } }, required = ["order_id", "tenant", "left_cents"] }

[backend]
kind = "fixed"
results = [
    { when = { order_id = "ord_1" }, result = { order_id = "{order_id}", tenant = "{session.tenant}", left_cents = 4000 } },
    { when = { order_id = "ord_2" }, result = { order_id = "{order_id}", tenant = "globex", left_cents = 4000 } },
]
"#;

const REFUND: &str = r#"
description = "Refund an order. Moves money. To look at the order use get_order."
effect = "write"
input = { properties = { order_id = { type = "string" }, cents = { type = "integer" } }, required = ["order_id", "cents"] }
output = { type = "object", properties = { refund_id = { type = "string" }, cents = { type = "integer" } }, required = ["refund_id", "cents"] }
facts.order = { tool = "get_order", args = { order_id = "{order_id}" } }
resource = { type = "Order", id = "{order_id}", fact = "order", tenant = "/tenant" }
errors.declined = { code = "declined", message = "The bank says no.", effect = "none" }

[backend]
kind = "fixed"
results = [
    { when = { cents = 13 }, error = "declined" },
    { when = { cents = 99 }, error = { signal = "lost", effect = "unknown" } },
    { result = { refund_id = "re_{ref}", cents = "{cents}" } },
]
"#;

const RATE: &str = r#"
description = "The rate of a currency against the dollar, as it was recorded."
effect = "read"
input = { properties = { currency = { type = "string" } }, required = ["currency"] }
output = { type = "object", properties = { rate = { type = "number" } }, required = ["rate"] }
backend = { kind = "fixed", file = "rate.jsonl" }
"#;

impl Desk {
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        for folder in ["tools", "policies", "cases"] {
            std::fs::create_dir(desk.0.path().join(folder)).unwrap();
        }
        desk.write("toolgate.toml", SETTINGS);
        desk.write("policies/all.cedar", "permit (principal in Role::\"clerk\", action, resource);");
        desk.write("tools/get_order.toml", GET_ORDER);
        desk.write("tools/refund.toml", REFUND);
        desk.write("tools/rate.toml", RATE);
        desk.write("tools/rate.jsonl", "{\"arguments\": {\"currency\": \"EUR\"}, \"result\": {\"rate\": 1.25}}\n");
        desk
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.path().join(file), text).unwrap();
    }

    fn run(&self, words: &[&str]) -> Run {
        Run::of(toolgate(words).current_dir(self.0.path()), "")
    }

    fn call(&self, tool: &str, arguments: Value) -> Value {
        self.run(&["call", ".", tool, &arguments.to_string(), "--json"]).json()
    }
}

#[test]
fn a_fixed_read_answers_by_its_arguments_and_a_fixed_write_happens_once() {
    let desk = Desk::new();
    let checked = desk.run(&["check", "."]);
    assert_eq!((checked.exit, checked.stdout.as_str()), (Some(0), "ok: 3 tools, 1 policy, 0 cases\n"), "{checked:?}");

    let order = desk.call("get_order", json!({ "order_id": "ord_1" }));
    assert_eq!(order["result"], json!({ "order_id": "ord_1", "tenant": "acme", "left_cents": 4000 }));
    assert_eq!(desk.call("rate", json!({ "currency": "EUR" }))["result"], json!({ "rate": 1.25 }));

    let refund = || desk.call("refund", json!({ "order_id": "ord_1", "cents": 500 }));
    let (first, again) = (refund(), refund());
    assert_eq!((&first["effect"], &first["replayed"]), (&json!("done"), &json!(false)), "{first}");
    assert_eq!(again["replayed"], true, "{again}");
    assert_eq!(first["result"], again["result"], "the second is the first, not made anew");
    assert_eq!(first["result"]["cents"], 500);
}

#[test]
fn a_look_up_without_an_answer_finds_nothing_and_another_tenants_is_as_if_it_were_not_there() {
    let desk = Desk::new();
    for order_id in ["ord_2", "ord_3"] {
        let refused = desk.call("refund", json!({ "order_id": order_id, "cents": 500 }));
        assert_eq!(refused["error"]["code"], "forbidden", "{refused}");
    }
}

#[test]
fn a_fixed_failure_is_told_in_the_words_of_the_contract_and_an_unknown_one_is_not_run_again() {
    let desk = Desk::new();
    let declined = desk.call("refund", json!({ "order_id": "ord_1", "cents": 13 }));
    assert_eq!((&declined["error"]["reason"], &declined["error"]["effect"]), (&json!("declined"), &json!("none")));
    let lost = || desk.call("refund", json!({ "order_id": "ord_1", "cents": 99 }));
    assert_eq!(lost()["error"]["effect"], "unknown");
    assert_eq!(lost()["error"]["code"], "outcome_unknown");
    let unrecorded = desk.call("rate", json!({ "currency": "USD" }));
    assert_eq!(
        (&unrecorded["error"]["code"], &unrecorded["error"]["fix"]),
        (&json!("tool_failed"), &json!("operator"))
    );
}

#[test]
fn what_does_not_fit_is_found_before_there_is_a_gate() {
    let desk = Desk::new();
    desk.write(
        "tools/get_order.toml",
        &GET_ORDER.replace("left_cents = 4000 } },\n    { when", "left_cents = \"4000\" } },\n    { whn"),
    );
    desk.write("tools/refund.toml", &REFUND.replace("errors.declined", "errors.decline"));
    desk.write("tools/rate.jsonl", "{\"arguments\": {\"currency\": \"EUR\"}, \"result\": {\"rate\": \"1.25\"}}\n");
    let checked = desk.run(&["check", "."]);
    assert_eq!(checked.exit, Some(2), "{checked:?}");
    for told in [
        "backend.results.1.whn: unknown key",
        "hint: did you mean when?",
        "errors.decline: no failure of this backend is called that",
        "hint: did you mean declined?",
        "backend.file: /rate does not fit the output schema: expected number, got string",
    ] {
        assert!(checked.stdout.contains(told), "`{told}` in\n{}", checked.stdout);
    }
}

#[test]
fn a_fixed_result_that_does_not_keep_its_output_is_told_at_its_place() {
    let desk = Desk::new();
    desk.write("tools/get_order.toml", &GET_ORDER.replacen("left_cents = 4000", "left_cents = \"4000\"", 1));
    let checked = desk.run(&["check", "."]);
    assert_eq!(checked.exit, Some(2), "{checked:?}");
    let told = "tools/get_order.toml:10:";
    let message = "backend.results.0.result: /left_cents does not fit the output schema: expected integer, got string";
    assert!(checked.stdout.starts_with(told) && checked.stdout.contains(message), "{}", checked.stdout);
}

#[test]
fn a_case_may_run_a_fixed_tool() {
    let desk = Desk::new();
    let lines = [
        json!({ "case": "done", "tool": "refund", "arguments": { "order_id": "ord_1", "cents": 5 }, "run": true, "expect": { "result": { "cents": 5 } } }),
        json!({ "case": "declined", "tool": "refund", "arguments": { "order_id": "ord_1", "cents": 13 }, "run": true, "expect": { "code": "tool_failed", "message": "The bank says no." } }),
    ];
    desk.write("cases/refunds.jsonl", &lines.map(|line| format!("{line}\n")).concat());
    let checked = desk.run(&["check", "."]);
    assert_eq!((checked.exit, checked.stdout.as_str()), (Some(0), "ok: 3 tools, 1 policy, 2 cases\n"), "{checked:?}");
}
