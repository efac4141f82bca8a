//! What admission costs beside the least that a lax reader and the schema engine do.
//!
//! Admission is all of [`Admission::admit`]: the strict read, the check, the canonical form and the digest. It is held
//! against `serde_json::from_slice` to a `Value` and the engine's `is_valid` with the same options; the canonical digest
//! against a plain serialisation and SHA-256; a refusal against the admission of the same call without its faults.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench may panic, prints what it finds, and measures the lax reader beside the strict one"
)]

mod calls;
mod turns;

use std::hint::black_box;
use std::time::Duration;

use criterion::Criterion;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolgate::Call;
use toolgate::admission::Admission;
use toolgate::contract::Contract;
use toolgate::json::{Digest, Limits, canonical, read_arguments};
use toolgate::schema::Schema;
use turns::{Work, each, medians};

/// Something that is measured, and what it is held against.
struct Ratio {
    name: String,
    work: Work,
    beside: Work,
    /// At most so many times what it is held against; `None` for a part of another figure.
    goal: Option<f64>,
}

/// A text that is refused before it is read whole.
struct Bomb {
    name: &'static str,
    text: String,
}

const WITHIN: Duration = Duration::from_millis(50);

fn main() {
    let mut ratios = ratios();
    // With a filter, as a test or under a profiler only criterion is asked.
    if std::env::args().skip(1).eq(["--bench"]) {
        report(&mut ratios);
        report_bombs();
    }
    let mut criterion = Criterion::default().without_plots().configure_from_args();
    let mut group = criterion.benchmark_group("admission");
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    for ratio in &mut ratios {
        group.bench_function(&ratio.name, |bencher| bencher.iter_custom(|times| (ratio.work)(times)));
    }
    group.finish();
    criterion.final_summary();
}

fn report(ratios: &mut [Ratio]) {
    println!("{:<48}{:>10}{:>10}{:>8}{:>8}", "medians of batches in turns", "us", "beside", "ratio", "goal");
    for ratio in ratios {
        let [work, beside] = medians([&mut ratio.work, &mut ratio.beside])[..] else { panic!("two were measured") };
        let goal = ratio.goal.map(|goal| format!("{goal:.1}")).unwrap_or_default();
        let (name, factor) = (&ratio.name, work / beside);
        println!("{name:<48}{:>10.3}{:>10.3}{factor:>8.2}{goal:>8}", work / 1e3, beside / 1e3);
    }
}

fn report_bombs() {
    println!("\n{:<48}{:>10}{:>26}", "texts that are refused before they are read", "ms", "goal");
    for bomb in bombs() {
        let admission = admission("refund", &calls::refund_schema());
        let call = Call::new("call_1", "refund", bomb.text);
        let mut work = each(move || admission_refuses(&admission, &call));
        let [nanos] = medians([&mut work])[..] else { panic!("one was measured") };
        println!("{:<48}{:>10.3}{:>26}", bomb.name, nanos / 1e6, WITHIN.as_millis());
    }
}

fn bombs() -> [Bomb; 3] {
    [
        Bomb { name: "a string of 12 MB", text: format!(r#"{{"note":"{}"}}"#, "a".repeat(12_000_000)) },
        Bomb { name: "100,000 open brackets", text: "[".repeat(100_000) },
        Bomb { name: "1,000,000 open brackets", text: "[".repeat(1_000_000) },
    ]
}

fn ratios() -> Vec<Ratio> {
    let refund = calls::refund_schema();
    let payment = calls::payment_schema();
    let order = calls::order();
    let order_schema = calls::order_schema();
    assert_eq!(calls::REFUND.len(), 190, "the size that the figures are stated for");
    assert!((8_500..9_500).contains(&order.len()), "the size that the figures are stated for: {}", order.len());
    vec![
        read_and_valid("200 bytes, read and checked", &refund, calls::REFUND, None),
        admitted("200 bytes, admitted", &refund, calls::REFUND, Some(1.5)),
        read_and_valid("9 kB, read and checked", &order_schema, &order, None),
        admitted("9 kB, admitted", &order_schema, &order, Some(1.5)),
        digest("canonical digest of 200 bytes", serde_json::from_str(calls::REFUND).unwrap()),
        digest("canonical digest of 9 kB", serde_json::from_str(&order).unwrap()),
        digest("canonical digest of 10,000 doubles", doubles()),
        refused("five faults", &refund, calls::REFUND, calls::REFUND_WITH_FIVE_FAULTS),
        refused("five slips, each with its hint", &refund, calls::REFUND, calls::REFUND_WITH_FIVE_SLIPS),
        refused("five faults, four in a union", &payment, calls::PAYMENT, calls::PAYMENT_WITH_FIVE_FAULTS),
    ]
}

/// What a lax front door would do at least.
fn bare(schema: &Value, text: &str) -> Work {
    let validator = engine().build(schema).unwrap();
    let text = text.to_owned();
    each(move || {
        let value: Value = serde_json::from_slice(black_box(text.as_bytes())).unwrap();
        assert!(validator.is_valid(&value), "the call that is measured is valid");
    })
}

/// The options that the library sets.
fn engine() -> jsonschema::ValidationOptions<'static> {
    let patterns = jsonschema::PatternOptions::regex().size_limit(1 << 20).dfa_size_limit(1 << 20);
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .offline()
        .with_pattern_options(patterns)
        .should_validate_formats(true)
        .should_ignore_unknown_formats(false)
}

fn read_and_valid(name: &str, document: &Value, text: &str, goal: Option<f64>) -> Ratio {
    let schema = Schema::input(document).unwrap();
    let limits = Limits::default();
    let beside = bare(document, text);
    let text = text.to_owned();
    let work = each(move || {
        let value = Value::Object(read_arguments(black_box(text.as_bytes()), &limits).unwrap());
        assert!(schema.is_valid(&value), "the call that is measured is valid");
    });
    Ratio { name: name.to_owned(), work, beside, goal }
}

fn admitted(name: &str, document: &Value, text: &str, goal: Option<f64>) -> Ratio {
    Ratio { name: name.to_owned(), work: admits(document, text), beside: bare(document, text), goal }
}

fn admits(document: &Value, text: &str) -> Work {
    let admission = admission("refund", document);
    let call = Call::new("call_1", "refund", text);
    each(move || {
        let admitted = admission.admit(black_box(&call));
        assert!(admitted.is_ok(), "the call that is measured is admitted");
        admitted
    })
}

fn refused(name: &str, document: &Value, good: &str, bad: &str) -> Ratio {
    let admission = admission("refund", document);
    let call = Call::new("call_1", "refund", bad);
    let refusal = admission.admit(&call).unwrap_err();
    assert_eq!(refusal.problem_list().len(), 5, "five problems are measured: {:#?}", refusal.problem_list());
    Ratio {
        name: format!("refused: {name}"),
        work: each(move || admission_refuses(&admission, &call)),
        beside: admits(document, good),
        goal: Some(5.0),
    }
}

fn admission_refuses(admission: &Admission, call: &Call) {
    assert!(admission.admit(black_box(call)).is_err(), "the call that is measured is refused");
}

fn digest(name: &str, value: Value) -> Ratio {
    let other = value.clone();
    Ratio {
        name: name.to_owned(),
        work: each(move || Digest::of(canonical(black_box(&value)).as_bytes())),
        beside: each(move || Sha256::digest(serde_json::to_vec(black_box(&other)).unwrap())),
        goal: Some(1.3),
    }
}

/// Numbers with many digits, as measurements have them.
fn doubles() -> Value {
    (1..=10_000).map(|n| Value::from(f64::from(n).sqrt() * 1e3)).collect()
}

fn admission(tool: &str, schema: &Value) -> Admission {
    let keys = json!({ "description": "Gives money back.", "effect": "read", "input": schema });
    let mut admission = Admission::new(Limits::default());
    admission.add(Contract::parse(tool, &keys).unwrap()).unwrap();
    admission
}
