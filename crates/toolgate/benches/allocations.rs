//! How many allocations admission makes, and of how many bytes, beside a lax reader.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench may panic, prints what it finds, and measures the lax reader beside the strict one"
)]

mod calls;

use std::alloc::System;
use std::hint::black_box;

use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use toolgate::Call;
use toolgate::admission::Admission;
use toolgate::contract::Contract;
use toolgate::json::{Digest, Limits, canonical, read};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    println!("{:<48}{:>12}{:>12}{:>12}", "once, warm", "allocations", "regrown", "bytes");
    for (size, schema, text) in [
        ("200 bytes", calls::refund_schema(), calls::REFUND.to_owned()),
        ("9 kB", calls::order_schema(), calls::order()),
    ] {
        let value: Value = serde_json::from_str(&text).unwrap();
        let limits = Limits::default();
        line(&format!("{size}: serde_json::from_slice"), || {
            serde_json::from_slice::<Value>(black_box(text.as_bytes())).unwrap()
        });
        line(&format!("{size}: read"), || read(black_box(text.as_bytes()), &limits).unwrap());
        line(&format!("{size}: canonical digest"), || Digest::of(canonical(black_box(&value)).as_bytes()));
        admission(&format!("{size}: admitted"), &schema, &text);
    }
    let (refund, payment) = (calls::refund_schema(), calls::payment_schema());
    admission("refused: five faults", &refund, calls::REFUND_WITH_FIVE_FAULTS);
    admission("refused: five slips, each with its hint", &refund, calls::REFUND_WITH_FIVE_SLIPS);
    admission("refused: five faults, four in a union", &payment, calls::PAYMENT_WITH_FIVE_FAULTS);
    admission("refused: a string of 12 MB", &refund, &format!(r#"{{"note":"{}"}}"#, "a".repeat(12_000_000)));
    admission("refused: 1,000,000 open brackets", &refund, &"[".repeat(1_000_000));
}

fn admission(name: &str, schema: &Value, text: &str) {
    let keys = json!({ "description": "Gives money back.", "effect": "read", "input": schema });
    let mut admission = Admission::new(Limits::default());
    admission.add(Contract::parse("refund", &keys).unwrap()).unwrap();
    let call = Call::new("call_1", "refund", text);
    line(name, || admission.admit(black_box(&call)));
}

fn line<T>(name: &str, work: impl Fn() -> T) {
    // What is made once and kept, such as a compiled pattern's memory, is not counted.
    drop(work());
    let region = Region::new(HEAP);
    let kept = work();
    let change = region.change();
    drop(kept);
    let bytes = change.bytes_allocated.saturating_add_signed(change.bytes_reallocated.max(0));
    println!("{name:<48}{:>12}{:>12}{bytes:>12}", change.allocations, change.reallocations);
}
