//! The schemas that editors hold files to, and the loader, say the same of the form of a file.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate::contract::Contract;
use toolgate::fields::Problems;
use toolgate::json::{self, Limits};
use toolgate::schema::Problem;

use super::located::Located;
use super::settings::Settings;
use crate::backend::mcp::Held;
use crate::backend::{self, Databases, Means, Place, Upstreams};
use crate::mcp::upstream::{Environment, Program, Upstream};

/// A kind of file: its schema, and what the loader finds wrong with the keys of one.
struct Kind {
    schema: Value,
    holds: jsonschema::Validator,
    problems: fn(&Value) -> Vec<Problem>,
}

/// A key that nobody could have meant.
const UNKNOWN: &str = "zzzzzz";

/// A contract that says everything that one can say.
const CONTRACT: &str = r#"
name = "create_refund"
description = "Refund an order."
effect = "write"
mode = "observe"
tags = ["refunds"]
deadline = "5s"
max_result = "16KB"
preview = "Refund {order_id}"
subject = "{order_id}"
allow_identity_members = ["role"]
lenient = ["integer_as_string", "code_fence"]
lenient_for_write = ["integer_as_string", "code_fence"]
fill_defaults = true
arguments = { size = "64KB", depth = 8, members = 100 }
open = true
input = { properties = { order_id = { type = "string" }, amount_cents = { type = "integer", minimum = 1 } }, required = ["order_id"] }
output = { type = "object" }
approval = { when = "true", role = "manager", message = "Refunds need a manager." }
resource = { type = "Order", id = "{order_id}", fact = "order", tenant = "/tenant" }
once = { key = ["{order_id}"], scope = "tenant", repeat = "never", retain = "7d", caller = true }
lane = { key = ["{order_id}"] }
retry = { attempts = 3, on = ["connect"] }
requires = ["get_order"]
labels = { result = ["untrusted"], sink = "external" }

[facts.order]
tool = "get_order"
args = { order_id = "{order_id}" }
max_age = "0s"

[reconcile]
tool = "find_refund"
args = { key = "{idempotency_key}" }
done = "/refund_id"
result = "/refund"
absent_after = "30s"

[[limits]]
sum = "/amount_cents"
max = 50000
roles = { manager = 200000 }
per = "1d"
scope = "tenant"

[[limits]]
calls = 20
per = "1h"

[errors.no_row]
code = "not_found"
message = "There is no such order."
effect = "none"
instead = "get_order"

[backend]
kind = "sql"
database = "shop"
statement = "select 1"
rows = "many"
max_rows = 5
"#;

/// The contract of a tool of an MCP server, which says what the other one cannot.
const IMPORTED: &str = r#"
description = "Keep a file."
effect = "write"
imported = true
input = { properties = { path = { type = "string" } }, required = ["path"] }
once = { scope = "run", repeat = "after_other", retain = "2m" }
lane = { scope = "run" }

[backend]
kind = "mcp"
upstream = "files"
tool = "keep_file"
meta = { tenant = "{session.tenant}" }
idempotency_meta = "vendor.example/key"
"#;

/// A contract with its answers in itself, which says what the others cannot.
const ANSWERED: &str = r#"
description = "The weather of a city."
effect = "read"
input = { properties = { city = { type = "string" } }, required = ["city"] }

[backend]
kind = "fixed"
delay = "20ms"

[[backend.results]]
when = { city = "Oslo" }
result = { city = "{city}", degrees = 3.5, days = [1, 2] }

[[backend.results]]
when = { city = "Atlantis" }
error = { signal = "sunk", effect = "none" }

[[backend.results]]
error = "unknown_city"
"#;

/// The same answer for every call.
const CONSTANT: &str = r#"
description = "The rules of the house."
effect = "read"
input = { properties = {} }
backend = { kind = "fixed", result = { text = "Knock." } }
"#;

/// A failure for every call.
const FAILING: &str = r#"
description = "Nothing works today."
effect = "read"
input = { properties = {} }
backend = { kind = "fixed", error = { signal = "503", effect = "none" } }
"#;

/// Settings of a gate for many people.
const SERVED: &str = r#"
store = "sqlite:state/toolgate.db"
listen = "[::1]:9000"
mode = "observe"
arguments = { size = "2MB", depth = 32, members = 20000 }
approvals = { pending_for = "1h", granted_for = "1h", operator = true, pending = 20, pending_tenant = 200, webhook = { url = "https://desk.example.com/hook", secret = "env:TOOLGATE_WEBHOOK" } }
audit = { arguments = "digest", key = "env:TOOLGATE_KEY", checkpoints = { to = "https://audit.example.com/toolgate", every = "1m", key = "file:state/checkpoints.key" } }
guards = { refused = 20, per = "10m" }
upstreams.files = { command = ["files", "--all"], cwd = "data", env = { MODE = "strict" }, pinned = false }

[http]
hosts = ["gate.example.com:8443"]
origins = ["https://app.example.com"]
max_body = "1MB"
connections = 10
calls = 4
head_within = "1s"
body_within = "2s"

[identity]
kind = "tokens"
file = "state/tokens.toml"
"#;

/// Settings of a gate for the people that it lists.
const LISTED: &str = r#"
store = "sqlite:state/toolgate.db"
databases.shop = { path = "state/shop.db", seed = "shop.sql" }
approvals = { pending_for = "1h", granted_for = "1h" }
guards = { refused = 5 }

[identity]
kind = "local"
default = "alice@acme"
user = [{ name = "alice", tenant = "acme", roles = ["support"] }]
"#;

/// Settings of a gate for the people of several issuers.
const VOUCHED: &str = r#"
store = "sqlite:state/toolgate.db"

[identity]
kind = "jwt"
resource = "https://gate.example.com/mcp"
revocations = "state/revoked.toml"
development = true

[[identity.issuer]]
issuer = "https://id.example.com"
audience = "https://gate.example.com/mcp"
jwks = "https://id.example.com/keys"
tenant = "/tenant"
tenants = ["acme", "globex"]
roles = "/realm_access/roles"
scopes = "/scope"
leeway = "30s"

[[identity.issuer]]
issuer = "http://127.0.0.1:9000"
audience = ["toolgate", "gate"]
jwks = "keys.json"
tenants = ["staging"]
"#;

impl Kind {
    fn of(schema: &str, problems: fn(&Value) -> Vec<Problem>) -> Self {
        let schema = json::read(schema.as_bytes(), &Limits::default()).unwrap();
        let holds = jsonschema::validator_for(&schema).unwrap();
        Self { schema, holds, problems }
    }

    fn contract() -> Self {
        Self::of(include_str!("../../../../schemas/contract.json"), |keys| {
            let shop = Place { path: "shop.db".into(), seed: None };
            let databases = ["shop", "refunds"].map(|name| (name.to_owned(), shop.clone()));
            let databases = Databases::new("".as_ref(), databases);
            let program =
                Program { command: vec!["files".into()], directory: None, environment: Environment::Inherited };
            let files = ("files".to_owned(), (Upstream::new(program, Arc::new(|_| {})), Held::Unpinned));
            let upstreams = Upstreams::new([files].into());
            let means = Means { databases, upstreams, contracts: "".into() };
            let backend = backend::make("create_refund", keys.as_object().unwrap(), &means);
            let contract = Contract::parse("create_refund", keys);
            backend.err().into_iter().chain(contract.err()).flatten().collect()
        })
    }

    fn settings() -> Self {
        Self::of(include_str!("../../../../schemas/config.json"), |keys| {
            let mut problems = Problems::default();
            Settings::read("".as_ref(), keys.as_object().unwrap(), &mut problems);
            problems.0
        })
    }

    fn assert_both_refuse(&self, keys: &Value, why: &str) {
        assert!(!self.holds.is_valid(keys), "the schema takes {why}");
        assert!(!(self.problems)(keys).is_empty(), "the loader takes {why}");
    }

    /// What the schema says of the value at a place of a file.
    fn at(&self, file: &Value, place: &str) -> &Value {
        let mut at = String::new();
        place.split('/').skip(1).fold(&self.schema, |node, name| {
            let named = &node["properties"][name];
            let any = &node["additionalProperties"];
            let next = [named, any, &node["items"]].into_iter().find(|next| next.is_object());
            at.push_str(&format!("/{name}"));
            let next = next.unwrap_or_else(|| panic!("the schema says nothing of {place}"));
            self.resolved(next, file.pointer(&at).unwrap())
        })
    }

    /// What a part of the schema comes to for a value: of tables of several kinds, the one whose kind it says.
    fn resolved<'s>(&'s self, node: &'s Value, value: &Value) -> &'s Value {
        let are_tables = |choices: &&Vec<Value>| choices.iter().all(|choice| choice["$ref"].is_string());
        if let Some(choices) = node["oneOf"].as_array().filter(are_tables) {
            let mut choices = choices.iter().map(|choice| self.resolved(choice, value));
            let of_its_kind = choices.find(|choice| choice["properties"]["kind"]["const"] == value["kind"]);
            return of_its_kind.unwrap_or_else(|| panic!("the schema knows no such kind: {value}"));
        }
        if let Some(choices) = node["anyOf"].as_array() {
            let of_its_type = choices.iter().map(|choice| self.resolved(choice, value));
            let mut of_its_type = of_its_type.filter(|choice| (choice["type"] == "object") == value.is_object());
            return of_its_type.next().unwrap_or_else(|| panic!("the schema has no such choice: {value}"));
        }
        match node["$ref"].as_str() {
            Some(reference) => self.schema.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
            None => node,
        }
    }
}

fn keys_of(toml: &str) -> Value {
    Value::Object(Located::parse(toml).unwrap().table)
}

/// The contracts of the examples and those that say everything.
fn contracts() -> Vec<Value> {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let folders = std::fs::read_dir(examples).unwrap().map(|example| example.unwrap().path().join("tools"));
    let files = folders.flat_map(|tools| std::fs::read_dir(tools).unwrap().map(|file| file.unwrap().path()));
    let texts = files.map(|file| std::fs::read_to_string(file).unwrap());
    texts
        .chain([CONTRACT, IMPORTED, ANSWERED, CONSTANT, FAILING].map(str::to_owned))
        .map(|text| keys_of(&text))
        .collect()
}

fn settings() -> Vec<Value> {
    let shop = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/shop/toolgate.toml");
    vec![keys_of(&std::fs::read_to_string(shop).unwrap()), keys_of(LISTED), keys_of(SERVED), keys_of(VOUCHED)]
}

/// Whether the value at a place may have any members: a schema, or arguments and results of a tool.
fn is_free(place: &str) -> bool {
    let of_an_answer = place.starts_with("/backend") && (place.ends_with("/when") || place.ends_with("/result"));
    // Any role may have a maximum of its own.
    let of_roles = place.starts_with("/limits") && place.ends_with("/roles");
    ["/input", "/output"].contains(&place) || of_an_answer || of_roles
}

/// The places of a file, without those inside of what is free.
fn places(value: &Value, at: &str) -> Vec<String> {
    let below: Vec<(String, &Value)> = match value {
        _ if is_free(at) => Vec::new(),
        Value::Object(table) => table.iter().map(|(name, value)| (format!("{at}/{name}"), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, item)| (format!("{at}/{n}"), item)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let below = below.into_iter().flat_map(|(place, value)| places(value, &place));
    std::iter::once(at.to_owned()).chain(below).collect()
}

/// Does something with every place of every file.
fn everywhere(look: impl Fn(&Kind, &Value, &str)) {
    for (kind, files) in [(Kind::contract(), contracts()), (Kind::settings(), settings())] {
        for file in files {
            assert!(kind.holds.is_valid(&file), "the schema refuses a sound file: {file}");
            assert_eq!((kind.problems)(&file), [], "the loader refuses a sound file: {file}");
            places(&file, "").iter().for_each(|place| look(&kind, &file, place));
        }
    }
}

fn changed(file: &Value, place: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut file = file.clone();
    change(file.pointer_mut(place).unwrap());
    file
}

#[test]
fn both_refuse_an_unknown_key_in_every_table_and_know_the_same_ones() {
    everywhere(|kind, file, place| {
        if !file.pointer(place).unwrap().is_object() || is_free(place) {
            return;
        }
        let with = changed(file, place, |table| table[UNKNOWN] = json!(1));
        kind.assert_both_refuse(&with, &format!("an unknown key in `{place}`"));
        let Some(properties) = kind.at(file, place)["properties"].as_object() else { return };
        let unknown = format!("{place}/{UNKNOWN}");
        let problems = (kind.problems)(&with);
        let hint = problems.iter().find(|problem| problem.at == unknown).and_then(|problem| problem.hint.clone());
        let hint = hint.unwrap_or_else(|| panic!("{unknown}: {problems:?}"));
        let known: BTreeSet<&str> = hint.strip_prefix("known: ").unwrap().split(", ").collect();
        let published: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        assert_eq!(known, published, "what the loader knows in `{place}`, and what the schema does");
    });
}

#[test]
fn both_refuse_a_value_of_another_type_at_every_place() {
    everywhere(|kind, file, place| {
        // A result may be anything.
        if place.is_empty() || (is_free(place) && place.ends_with("/result")) {
            return;
        }
        let wrong = changed(file, place, |value| {
            *value = match value {
                Value::Null | Value::Bool(_) | Value::Number(_) => json!("x"),
                Value::String(_) | Value::Array(_) | Value::Object(_) => json!(7),
            }
        });
        kind.assert_both_refuse(&wrong, &format!("another type at `{place}`"));
    });
}

#[test]
fn both_refuse_a_text_that_is_none_of_the_choices_or_not_of_the_form() {
    everywhere(|kind, file, place| {
        let said = kind.at(file, place);
        let bound = ["enum", "const", "pattern"].iter().any(|keyword| said.get(keyword).is_some());
        if bound && file.pointer(place).unwrap().is_string() {
            let wrong = changed(file, place, |value| *value = json!("no, never!"));
            kind.assert_both_refuse(&wrong, &format!("a wrong text at `{place}`"));
        }
    });
}

#[test]
fn both_miss_the_same_keys() {
    everywhere(|kind, file, place| {
        let Some((parent, name)) = place.rsplit_once('/') else { return };
        if !file.pointer(parent).unwrap().is_object() {
            return;
        }
        let without = changed(file, parent, |table| drop(table.as_object_mut().unwrap().remove(name)));
        // Where one of two keys must be there, the loader misses the first.
        let missing = |problem: &Problem| problem.code == "required" && problem.at.starts_with(&format!("{parent}/"));
        let missed = (kind.problems)(&without).iter().any(missing);
        assert_eq!(!kind.holds.is_valid(&without), missed, "whether `{place}` must be there");
    });
}
