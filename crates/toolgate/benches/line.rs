//! How much one call costs beside its bare parts.
//!
//! The whole is [`Gate::call`] on an in-process read tool, warm, the record of the call included: 190 bytes of
//! arguments, 50 tools, 200 policies, four of them in the slice of the action. The parts are the same work done
//! straight with the crates that do it. Whole and parts take turns in one run, so that what disturbs the machine
//! disturbs them alike.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench may panic, prints what it finds, and measures the lax reader beside the strict one"
)]

mod calls;
mod turns;

use std::fmt::Write as _;
use std::hint::black_box;
use std::str::FromStr;
use std::time::{Duration, Instant};

use cedar_policy::{
    Authorizer, Context, Decision, Entities, Entity, EntityId, EntityTypeName, EntityUid, PolicySet, Request,
    RestrictedExpression,
};
use criterion::Criterion;
use jsonschema::{Draft, PatternOptions, Validator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::runtime::Builder;
use toolgate::json::{Digest, Limits, canonical, read_arguments};
use toolgate::ledger::Store;
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Tool, backend};
use turns::{Work, each, medians};

/// One thing that is measured.
struct Part {
    name: &'static str,
    role: Role,
    run: Work,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The whole call.
    Whole,
    /// A part of the sum that the whole is held against.
    Bare,
    /// Another way to do a part, for comparison.
    Beside,
}

/// A part, measured.
struct Measured {
    name: &'static str,
    role: Role,
    nanos: f64,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "the tool is given the members, and has no use for most of them")]
struct Refund {
    order_id: String,
    amount_cents: i64,
    currency: String,
    reason: String,
    note: Option<String>,
    notify: Option<bool>,
    items: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
struct Quote {
    order_id: String,
    refundable: bool,
    left_cents: i64,
}

const TOOLS: usize = 50;
const TOOL: &str = "quote_refund_07";
const ARGUMENTS: &str = calls::REFUND;

/// What the whole may cost, in sums of the bare parts.
const GOAL: f64 = 1.5;
/// Calls of a new gate before its time is taken.
const WARM_UP: u64 = 100;

fn main() {
    let mut parts = parts();
    // With a filter, as a test or under a profiler only criterion is asked. It comes second: what it leaves behind on the
    // heap would slow the parts unequally.
    let measured = std::env::args().skip(1).eq(["--bench"]).then(|| compare(&mut parts));
    let mut criterion = Criterion::default().without_plots().configure_from_args();
    let mut group = criterion.benchmark_group("line");
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for part in &mut parts {
        group.bench_function(part.name, |bencher| bencher.iter_custom(|times| (part.run)(times)));
    }
    group.finish();
    criterion.final_summary();
    if let Some(measured) = measured {
        report(&measured);
    }
}

fn parts() -> Vec<Part> {
    assert_eq!(ARGUMENTS.len(), 190, "the size that the figures are stated for");
    let bare: &'static Bare = Box::leak(Box::new(Bare::new(gate().cedar_schema())));
    let mut parts = vec![whole()];
    parts.extend(bare.parts());
    parts
}

/// The parts take turns; the median of each.
fn compare(parts: &mut [Part]) -> Vec<Measured> {
    let nanos = medians(parts.iter_mut().map(|part| &mut part.run));
    parts.iter().zip(nanos).map(|(part, nanos)| Measured { name: part.name, role: part.role, nanos }).collect()
}

fn report(measured: &[Measured]) {
    let sum_of = |role| measured.iter().filter(|part| part.role == role).map(|part| part.nanos).sum::<f64>();
    let (whole, bare) = (sum_of(Role::Whole), sum_of(Role::Bare));
    println!("\n{:<44}{:>10}{:>10}", "median of interleaved batches", "us", "of sum");
    let line = |name: &str, nanos: f64| println!("{name:<44}{:>10.2}{:>9.0}%", nanos / 1e3, nanos / bare * 100.0);
    for part in measured {
        match part.role {
            Role::Whole => {}
            Role::Bare => line(part.name, part.nanos),
            Role::Beside => line(&format!("  beside: {}", part.name), part.nanos),
        }
    }
    line("sum of the bare parts", bare);
    line("the rest of the call", whole - bare);
    line("whole call", whole);
    println!("\nwhole call / sum of the bare parts: {:.2} (at most {GOAL} is the goal)", whole / bare);
}

// The whole.

/// Each batch has a gate of its own: the store in memory keeps every record, and on a heap that only grows the allocator
/// would soon be most of what is measured.
fn whole() -> Part {
    let session = Session::new(Principal::new("local", "alice"), "acme").role("support");
    let run = move |times| {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let gate = gate();
        runtime.block_on(async {
            calls(&gate, &session, WARM_UP).await;
            let started = Instant::now();
            calls(&gate, &session, times).await;
            started.elapsed()
        })
    };
    Part { name: "Gate::call", role: Role::Whole, run: Box::new(run) }
}

async fn calls(gate: &Gate, session: &Session, times: u64) {
    for _ in 0..times {
        let reply = gate.call(Call::new("call_1", TOOL, ARGUMENTS), session).await.unwrap();
        assert!(black_box(reply).is_ok(), "the call that is measured succeeds");
    }
    // The task that writes the records gets its turn within the time that is measured.
    tokio::task::yield_now().await;
}

fn gate() -> Gate {
    let mut builder = Gate::builder().store(Store::memory());
    for name in (0..TOOLS).map(tool_name) {
        let quote = |refund: Refund, _: &backend::Context| async move {
            Ok(Quote { order_id: refund.order_id, refundable: true, left_cents: 2500 - refund.amount_cents })
        };
        let tool = Tool::read(name.clone(), quote).description("Tells whether a refund could be made.");
        builder = builder
            .tool(tool.key("input", calls::refund_schema()))
            .policy_file(format!("{name}.cedar"), policies(&name));
    }
    builder.build().unwrap_or_else(|error| panic!("{error}"))
}

fn tool_name(number: usize) -> String {
    format!("quote_refund_{number:02}")
}

/// Four policies of one tool. The heads of all four match, so each is evaluated.
fn policies(tool: &str) -> String {
    let mut text = String::new();
    for (id, notes, policy) in [
        ("support", "", "permit (principal in Role::\"support\", action == {action}, resource);"),
        (
            "damaged",
            "",
            "permit (principal in Tenant::\"acme\", action == {action}, resource)\n\
             when { context.input.reason == \"damaged\" && context.input.amount_cents <= 5000 };",
        ),
        (
            "ceiling",
            "@message(\"No refund is above 2000.00.\")\n",
            "forbid (principal, action == {action}, resource) when { context.input.amount_cents > 200000 };",
        ),
        (
            "currency",
            "",
            "forbid (principal, action == {action}, resource)\n\
             unless { [\"EUR\", \"USD\"].contains(context.input.currency) };",
        ),
    ] {
        let policy = policy.replace("{action}", &format!("Action::\"{tool}\""));
        writeln!(text, "@id(\"{tool}.{id}\")\n{notes}{policy}\n").unwrap();
    }
    text
}

// The parts.

/// What the parts need, made beforehand as a gate makes it when it is built.
struct Bare {
    arguments: Value,
    validator: Validator,
    schema: cedar_policy::Schema,
    policies: PolicySet,
    entities: Entities,
    principal: EntityUid,
    action: EntityUid,
    resource: EntityUid,
}

impl Bare {
    fn new(cedar_schema: &str) -> Self {
        let patterns = PatternOptions::regex().size_limit(1 << 20).dfa_size_limit(1 << 20);
        let options = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .offline()
            .with_pattern_options(patterns)
            .should_validate_formats(true)
            .should_ignore_unknown_formats(false);
        let (schema, _) = cedar_policy::Schema::from_cedarschema_str(cedar_schema).unwrap();
        let principal = entity("User", &Principal::new("local", "alice").canonical());
        let (action, resource) = (entity("Action", TOOL), entity("Tool", TOOL));
        let entities = [
            Entity::new_no_attrs(principal.clone(), [entity("Role", "support"), entity("Tenant", "acme")].into()),
            Entity::new_no_attrs(action.clone(), [entity("Action", "read")].into()),
            Entity::new_no_attrs(resource.clone(), [].into()),
        ];
        Self {
            arguments: serde_json::from_str(ARGUMENTS).unwrap(),
            validator: options.build(&calls::refund_schema()).unwrap(),
            schema,
            policies: PolicySet::from_str(&policies(TOOL)).unwrap(),
            entities: Entities::from_entities(entities, None).unwrap(),
            principal,
            action,
            resource,
        }
    }

    fn request(&self, context: Context, schema: Option<&cedar_policy::Schema>) -> Request {
        let (principal, action, resource) = (self.principal.clone(), self.action.clone(), self.resource.clone());
        Request::new(principal, action, resource, context, schema).unwrap()
    }

    fn parts(&'static self) -> Vec<Part> {
        let members = self.arguments.as_object().unwrap();
        let context = context(members);
        let request = self.request(context.clone(), Some(&self.schema));
        let authorizer = Authorizer::new();
        let response = authorizer.is_authorized(&request, &self.policies, &self.entities);
        assert_eq!(response.decision(), Decision::Allow, "the parts decide as the gate does");
        assert!(self.validator.is_valid(&self.arguments), "the arguments that are measured are valid");

        let limits = Limits::default();
        let other = context.clone();
        vec![
            part("read: strict", Role::Bare, move || read_arguments(black_box(ARGUMENTS.as_bytes()), &limits).unwrap()),
            part("serde_json::from_slice", Role::Beside, || {
                serde_json::from_slice::<Value>(black_box(ARGUMENTS.as_bytes())).unwrap()
            }),
            part("schema: is_valid", Role::Bare, || self.validator.is_valid(black_box(&self.arguments))),
            part("identity: canonical form and SHA-256", Role::Bare, || {
                Digest::of(canonical(black_box(&self.arguments)).as_bytes())
            }),
            part("context: from pairs", Role::Bare, || self::context(black_box(members))),
            part("request: checked by the schema", Role::Bare, move || {
                self.request(black_box(&context).clone(), Some(&self.schema))
            }),
            part("unchecked request", Role::Beside, move || self.request(black_box(&other).clone(), None)),
            part("decision: 4 policies", Role::Bare, move || {
                authorizer.is_authorized(black_box(&request), &self.policies, &self.entities)
            }),
        ]
    }
}

fn part<T>(name: &'static str, role: Role, work: impl Fn() -> T + 'static) -> Part {
    Part { name, role, run: each(work) }
}

/// The context that the gate's Cedar schema declares, with all of the arguments.
fn context(arguments: &Map<String, Value>) -> Context {
    let record = |pairs: Vec<(String, RestrictedExpression)>| RestrictedExpression::new_record(pairs).unwrap();
    let run = RestrictedExpression::new_string("default".to_owned());
    Context::from_pairs([
        ("approved".to_owned(), RestrictedExpression::new_bool(false)),
        ("facts".to_owned(), record(Vec::new())),
        ("input".to_owned(), record(arguments.iter().map(|(name, value)| (name.clone(), express(value))).collect())),
        ("session".to_owned(), record(vec![("run".to_owned(), run)])),
    ])
    .unwrap()
}

fn express(value: &Value) -> RestrictedExpression {
    match value {
        Value::String(text) => RestrictedExpression::new_string(text.clone()),
        Value::Bool(flag) => RestrictedExpression::new_bool(*flag),
        Value::Number(number) => RestrictedExpression::new_long(number.as_i64().unwrap()),
        Value::Array(items) => RestrictedExpression::new_set(items.iter().map(express)),
        Value::Null | Value::Object(_) => panic!("the arguments that are measured hold neither null nor objects"),
    }
}

fn entity(kind: &str, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(EntityTypeName::from_str(kind).unwrap(), EntityId::new(id))
}
