//! What is refused for its size or its depth costs no memory to speak of, however large it is.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test may panic")]

use std::alloc::System;

use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use toolgate::Call;
use toolgate::admission::Admission;
use toolgate::contract::Contract;
use toolgate::json::{Limits, items, members, read};

/// Counts for the whole process: hence one test in this file.
#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes for all that a refusal allocates, the refusal itself included.
const FLAT: usize = 16 * 1024;

#[test]
fn a_text_that_is_too_large_or_too_deep_is_refused_with_flat_memory() {
    let keys = json!({
        "description": "Takes a note.",
        "effect": "read",
        "input": { "properties": { "note": { "type": "string" } } },
    });
    let mut admission = Admission::new(Limits::default());
    admission.add(Contract::parse("take_note", &keys).unwrap()).unwrap();
    for text in [
        format!(r#"{{"note":"{}"}}"#, "a".repeat(12_000_000)),
        format!(r#"{{"note":"{}"#, "a\n".repeat(400_000)),
        "\n".repeat(12_000_000),
        "[".repeat(100_000),
        "[".repeat(1_000_000),
        r#"{"note":"#.repeat(100_000),
        r#"[{"note":"#.repeat(100_000),
        format!(r#"{{"note":1{}}}"#, "0".repeat(900_000)),
        format!(r#"{{"note":0.{}1}}"#, "0".repeat(900_000)),
    ] {
        let call = Call::new("call_1", "take_note", text.as_str());
        let start: String = text.chars().take(12).collect();
        flat(&start, || assert!(admission.admit(&call).is_err(), "{start}"));
        flat(&start, || {
            assert!(read(text.as_bytes(), &Limits::default()).is_err(), "{start}");
        });
        // The raw texts of one level are slices of the whole.
        flat(&start, || {
            let _ = members(text.as_bytes(), &Limits::default());
            let _ = items(text.as_bytes(), &Limits::default());
        });
    }
}

fn flat(text: &str, work: impl Fn()) {
    let region = Region::new(HEAP);
    work();
    let change = region.change();
    let bytes = change.bytes_allocated.saturating_add_signed(change.bytes_reallocated.max(0));
    assert!(bytes <= FLAT, "{text}: {bytes} bytes in {} allocations", change.allocations);
}
