//! JSONTestSuite, whole: what the reader accepts and refuses of it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test may panic, and say what it found"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use toolgate::json::{FlawCode, Limits, items, members, read};

/// Good JSON that is refused by design. A listed text that is accepted fails the run.
const STRICTER: [(&str, FlawCode, &str); 7] = [
    ("y_number.json", FlawCode::Number, BEYOND),
    ("y_number_real_capital_e.json", FlawCode::Number, BEYOND),
    ("y_number_real_exponent.json", FlawCode::Number, BEYOND),
    ("y_number_real_fraction_exponent.json", FlawCode::Number, BEYOND),
    ("y_object_extreme_numbers.json", FlawCode::Number, BEYOND),
    ("y_object_duplicated_key.json", FlawCode::DuplicateKey, TWICE),
    ("y_object_duplicated_key_and_value.json", FlawCode::DuplicateKey, TWICE),
];
const BEYOND: &str = "an integer beyond 64 bits cannot be kept exactly";
const TWICE: &str = "two readers may take different members";

struct Case {
    name: String,
    expect: String,
    bytes: Vec<u8>,
}

#[test]
fn every_text_is_accepted_or_refused_as_it_should_be() {
    let limits = Limits::default();
    let (mut counts, mut wrong) = (BTreeMap::new(), Vec::new());
    for case in cases() {
        let outcome = read(&case.bytes, &limits).map_err(|flaw| flaw.code);
        let stricter = STRICTER.iter().find(|(name, ..)| *name == case.name);
        let right = match (case.expect.as_str(), stricter) {
            ("accept", None) => outcome.is_ok(),
            ("accept", Some((_, code, _reason))) => outcome == Err(*code),
            ("reject", None) => outcome.is_err(),
            // What the suite leaves open is ill-formed Unicode, a byte order mark or an inexact number.
            ("either", None) => outcome.is_err(),
            _ => false,
        };
        if !right {
            wrong.push(format!("{}: {} but {outcome:?}", case.name, case.expect));
        }
        let what = stricter.map_or(case.expect, |(.., reason)| format!("accept, refused by design: {reason}"));
        *counts.entry(what).or_insert(0) += 1;
    }
    for (what, count) in &counts {
        println!("json: {count:>4} {what}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Splitting a text checks its structure just as reading it does.
#[test]
fn one_level_refuses_what_has_no_structure() {
    let limits = Limits::default();
    for case in cases() {
        let split = members(&case.bytes, &limits).is_ok() || items(&case.bytes, &limits).is_ok();
        match read(&case.bytes, &limits) {
            Ok(value) => assert_eq!(split, value.is_array() || value.is_object(), "{}", case.name),
            Err(flaw) if is_structure(flaw.code) => assert!(!split, "{}", case.name),
            Err(_) => {}
        }
    }
}

fn is_structure(code: FlawCode) -> bool {
    match code {
        FlawCode::Syntax
        | FlawCode::TrailingData
        | FlawCode::Truncated
        | FlawCode::CodeFence
        | FlawCode::NotObject
        | FlawCode::DoubleEncoded
        | FlawCode::Depth
        | FlawCode::Size => true,
        FlawCode::DuplicateKey
        | FlawCode::ControlCharacter
        | FlawCode::LoneSurrogate
        | FlawCode::Members
        | FlawCode::Number => false,
    }
}

/// A few of each kind, for a checkout without the suite.
const OWN: [(&str, &str, &str); 16] = [
    ("own_object", "accept", r#"{"a":[1,-0.5e1,"x\u00e9\ud83d\ude00",true,null,{}]}"#),
    ("own_space", "accept", " \t\r\n[ 1 , 2 ] "),
    ("own_lonely_string", "accept", r#""""#),
    ("own_smallest_integer", "accept", "-9223372036854775808"),
    ("own_trailing_comma", "reject", "[1,]"),
    ("own_two_values", "reject", "{} {}"),
    ("own_half", "reject", "[\"a"),
    ("own_comment", "reject", "[1 /* one */]"),
    ("own_single_quotes", "reject", "{'a':1}"),
    ("own_bare_name", "reject", "{a:1}"),
    ("own_nan", "reject", "[NaN]"),
    ("own_leading_zero", "reject", "[012]"),
    ("own_raw_newline", "reject", "[\"a\nb\"]"),
    ("own_lone_surrogate", "either", r#"["\ud800"]"#),
    ("own_mark", "either", "\u{feff}{}"),
    ("own_huge_exponent", "either", "[1e999999999]"),
];

/// Our own cases, and the suite's where it is: at `$TOOLGATE_CORPORA`, or beside the checkout.
fn cases() -> Vec<Case> {
    let own = OWN.iter().map(|(name, expect, text)| Case {
        name: (*name).to_owned(),
        expect: (*expect).to_owned(),
        bytes: text.as_bytes().to_vec(),
    });
    own.chain(suite()).collect()
}

fn suite() -> Vec<Case> {
    let named = std::env::var_os("TOOLGATE_CORPORA").map(PathBuf::from);
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora"));
    let Some(corpora) = named.or_else(|| beside.is_dir().then_some(beside)) else { return Vec::new() };
    let path = corpora.join("json-test-suite/parsing.jsonl");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{} (TOOLGATE_CORPORA names its folder): {error}", path.display()));
    let case = |line: &str| {
        let case: Value = serde_json::from_str(line).unwrap();
        let member = |name: &str| case.get(name).and_then(Value::as_str).unwrap().to_owned();
        Case {
            name: member("name"),
            expect: member("expect"),
            bytes: data_encoding::BASE64.decode(member("base64").as_bytes()).unwrap(),
        }
    };
    text.lines().map(case).collect()
}
