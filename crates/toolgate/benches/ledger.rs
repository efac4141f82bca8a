//! How much a durable write costs beside two bare transactions of the same database on the same disk.
//!
//! What is compared takes turns in one run, for clients that each do one write after the other: a bare loop
//! ([`bare`]), the store alone as the stages use it (open and close, with their records), and [`Gate::call`] on a write
//! whose backend answers at once.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench may panic, prints what it finds, and is told by the environment how much to fill"
)]

#[path = "ledgers/bare.rs"]
mod bare;
mod calls;
#[path = "ledgers/filled.rs"]
mod filled;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::runtime::{Builder, Runtime};
use toolgate::ledger::Store;
use toolgate::ledger::door::Errand;
use toolgate::session::{Principal, Session};
use toolgate::{Call, Gate, Tool, backend};

use bare::Bare;

const CLIENTS: usize = 128;
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_secs(2);
/// What is done before the time is taken.
const WARM_UP: Duration = Duration::from_millis(500);

/// What of the bare loop's writes a second the store must reach.
const RATE_GOAL: f64 = 0.7;
/// What one client may wait, in waits of the bare loop.
const WAIT_GOAL: f64 = 1.5;
/// What a ledger of millions may cost, in writes of one of thousands.
const SIZE_GOAL: f64 = 1.5;
/// How many entries the large ledger is to hold; it is filled only where this is said.
const ENTRIES: &str = "TOOLGATE_BENCH_ENTRIES";
const FEW: u64 = 10_000;

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "the tool is given the members, and has no use for them")]
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
struct Refunded {
    id: String,
    note: String,
}

/// One who writes: each write has a number of its own.
trait Writer: Send + Sync + 'static {
    fn write(&self, number: u64) -> impl Future<Output = ()> + Send;
}

struct BareWriter {
    bare: Bare,
    answer: String,
}

struct StoreWriter {
    store: Store,
    errand: Errand,
}

struct GateWriter {
    gate: Gate,
    session: Session,
}

impl Writer for BareWriter {
    async fn write(&self, number: u64) {
        self.bare.run(Sha256::digest(number.to_be_bytes()).into(), calls::REFUND, &self.answer).await;
    }
}

impl Writer for StoreWriter {
    async fn write(&self, number: u64) {
        assert_eq!(self.errand.run(&self.store, number).await, Ok(true), "each action is new");
    }
}

impl Writer for GateWriter {
    async fn write(&self, number: u64) {
        // Each run has a lane of its own, and actions of its own.
        let session = self.session.clone().in_run(number.to_string());
        let reply = self.gate.call(Call::new("call_1", "create_refund", calls::REFUND), &session).await.unwrap();
        assert!(reply.is_ok() && !reply.replayed(), "the call that is measured is made");
    }
}

fn main() {
    let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let numbers = Arc::new(AtomicU64::new(0));
    println!("load of the machine before: {}", load());
    let at = |name: &str| folder.path().join(name);
    let bare = Arc::new(BareWriter { bare: Bare::open(&at("bare.db")), answer: answer() });
    let store = Arc::new(store(&at("store.db")));
    let gate = Arc::new(runtime.block_on(async { gate(&at("gate.db")) }));

    let measure = |clients| {
        let mut rates = [const { Vec::new() }; 3];
        let mut waits = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            let measured = [
                round(&runtime, &bare, clients, &numbers),
                round(&runtime, &store, clients, &numbers),
                round(&runtime, &gate, clients, &numbers),
            ];
            for (n, (rate, wait)) in measured.into_iter().enumerate() {
                rates.get_mut(n).unwrap().push(rate);
                waits.get_mut(n).unwrap().push(wait);
            }
        }
        (rates.map(median), waits.map(median))
    };
    let (rates, waits) = measure(CLIENTS);
    report(&format!("{CLIENTS} clients"), rates, waits);
    println!("the store's writes of the bare loop's: {:.2} (at least {RATE_GOAL} is the goal)", rates[1] / rates[0]);
    let (rates, waits) = measure(1);
    report("one client", rates, waits);
    println!("the store's wait of the bare loop's: {:.2} (at most {WAIT_GOAL} is the goal)", waits[1] / waits[0]);

    if let Some(entries) = std::env::var(ENTRIES).ok().and_then(|entries| entries.parse().ok()) {
        by_size(&runtime, folder.path(), &numbers, entries);
    }
    println!("load of the machine after: {}", load());
}

/// Few entries against many.
fn by_size(runtime: &Runtime, folder: &Path, numbers: &Arc<AtomicU64>, entries: u64) {
    let begun = Instant::now();
    let [few, many] = [("few.db", FEW), ("many.db", entries)].map(|(name, entries)| {
        filled::fill(&folder.join(name), entries);
        Arc::new(store(&folder.join(name)))
    });
    println!("\nfilled in {:.0} s", begun.elapsed().as_secs_f64());
    let mut rates = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        let [of_few, of_many] = &mut rates;
        of_few.push(round(runtime, &few, CLIENTS, numbers).0);
        of_many.push(round(runtime, &many, CLIENTS, numbers).0);
    }
    let [few, many] = rates.map(median);
    println!("{FEW} entries: {few:.0} writes/s; {entries}: {many:.0} writes/s");
    println!(
        "the cost of a write among many, in writes among few: {:.2} (at most {SIZE_GOAL} is the goal)",
        few / many
    );
}

fn report(title: &str, rates: [f64; 3], waits: [f64; 3]) {
    println!("\n{title:<24}{:>12}{:>12}{:>12}", "writes/s", "p50, us", "of bare");
    for (n, name) in ["two bare transactions", "the store alone", "Gate::call"].into_iter().enumerate() {
        let (rate, wait) = (rates.get(n).unwrap(), waits.get(n).unwrap());
        println!("{name:<24}{rate:>12.0}{wait:>12.0}{:>12.2}", rate / rates[0]);
    }
}

/// How many writes a second there were, and the median of how long one took, in microseconds.
fn round<W: Writer>(runtime: &Runtime, writer: &Arc<W>, clients: usize, numbers: &Arc<AtomicU64>) -> (f64, f64) {
    let until_warm = Instant::now() + WARM_UP;
    let until = until_warm + ROUND;
    let client = || {
        let (writer, numbers) = (Arc::clone(writer), Arc::clone(numbers));
        runtime.spawn(async move {
            let mut waits = Vec::new();
            loop {
                let begun = Instant::now();
                if begun >= until {
                    return waits;
                }
                writer.write(numbers.fetch_add(1, Ordering::Relaxed)).await;
                if begun >= until_warm {
                    waits.push(begun.elapsed().as_secs_f64() * 1e6);
                }
            }
        })
    };
    let running: Vec<_> = (0..clients).map(|_| client()).collect();
    let waits: Vec<f64> = runtime
        .block_on(async { futures_util::future::join_all(running).await })
        .into_iter()
        .flat_map(Result::unwrap)
        .collect();
    (waits.len() as f64 / ROUND.as_secs_f64(), median(waits))
}

fn store(path: &Path) -> StoreWriter {
    let arguments = serde_json::from_str(calls::REFUND).unwrap();
    StoreWriter { store: Store::sqlite(path).unwrap(), errand: Errand::new(arguments, answer()) }
}

fn gate(path: &Path) -> GateWriter {
    let refund = |_: Refund, _: &backend::Context| async { Ok(Refunded { id: "re_1".into(), note: "x".repeat(172) }) };
    let gate = Gate::builder()
        .tool(
            Tool::write("create_refund", refund)
                .description("Refunds an order.")
                .key("once", serde_json::json!({ "scope": "run" })),
        )
        .policy("permit (principal, action == Action::\"create_refund\", resource);")
        .store(Store::sqlite(path).unwrap())
        .build()
        .unwrap_or_else(|error| panic!("{error}"));
    GateWriter { gate, session: Session::new(Principal::new("local", "alice"), "acme").role("support") }
}

/// 200 bytes.
fn answer() -> String {
    format!("{{\"id\":\"re_1\",\"note\":\"{}\"}}", "x".repeat(177))
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap()
}

fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").map_or_else(|_| "not known".into(), |load| load.trim().to_owned())
}
