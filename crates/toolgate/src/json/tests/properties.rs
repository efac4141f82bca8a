//! What holds of every value and of every text.

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{1,2}", "\\PC{0,4}", any::<String>()]
}

/// Values as the reader makes them.
fn any_value() -> impl Strategy<Value = Value> {
    // Integers among the doubles are no values of the reader's.
    let decimal = prop_oneof![any::<f64>(), any::<i32>().prop_map(|cents| f64::from(cents) / 100.0)]
        .prop_map(|double| if double.is_finite() && double.fract() != 0.0 { double } else { 0.5 });
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1000_i64..1000).prop_map(Value::from),
        decimal.prop_map(Value::from),
        any_name().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(any_name(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Values whose numbers are doubles, or integers that are one exactly: other canonicalisers know no others.
fn any_value_of_doubles() -> impl Strategy<Value = Value> {
    let double = any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |double| double.is_finite());
    let leaf = prop_oneof![
        double.prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<i32>().prop_map(|cents| Value::from(f64::from(cents) / 100.0)),
        any_name().prop_map(Value::from),
        any::<Option<bool>>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 30, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(any_name(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Whether values are equal, numbers by what they stand for: the lax reader makes doubles of `25.0` and `-0`.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => {
            ours == theirs || (theirs.is_f64() && ours.as_f64() == theirs.as_f64())
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| same(ours, theirs))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().all(|(name, ours)| theirs.get(name).is_some_and(|theirs| same(ours, theirs)))
        }
        _ => ours == theirs,
    }
}

/// Writes a value in one of its many spellings.
struct Scribe<'a> {
    choices: std::iter::Cycle<std::slice::Iter<'a, u8>>,
    out: String,
}

impl Scribe<'_> {
    fn spell(value: &Value, choices: &[u8]) -> String {
        let mut scribe = Scribe { choices: choices.iter().cycle(), out: String::new() };
        scribe.value(value);
        scribe.out
    }

    fn choose(&mut self, of: usize) -> usize {
        usize::from(*self.choices.next().unwrap()) % of
    }

    fn space(&mut self) {
        let space = ["", "", " ", "\n", "\t\r\n "][self.choose(5)];
        self.out.push_str(space);
    }

    fn value(&mut self, value: &Value) {
        self.space();
        match value {
            Value::String(text) => self.string(text),
            Value::Number(number) if !number.is_f64() => {
                let sign = if number.to_string().starts_with('-') { "-" } else { "" };
                let digits = number.to_string().trim_start_matches('-').to_owned();
                let (first, others) = digits.split_at(1);
                let spelling = match self.choose(5) {
                    0 => format!("{sign}{digits}.0"),
                    1 if digits != "0" => format!("{sign}{digits}00E-2"),
                    2 => format!("{sign}{first}.{others}0e+{}", others.len()),
                    3 if digits == "0" => "-0".to_owned(),
                    _ => format!("{sign}{digits}"),
                };
                self.out.push_str(&spelling);
            }
            Value::Number(_) => {
                let printed = canonical(value);
                let (mantissa, exponent) = printed.split_once('e').unwrap_or((&printed, "0"));
                let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
                let exponent: i64 = exponent.parse().unwrap();
                let places = i64::try_from(fraction.len()).unwrap();
                let spelling = match (self.choose(3), whole.trim_start_matches('-')) {
                    (0, digits) if digits != "0" => format!("{whole}{fraction}E{}", exponent - places),
                    (1, _) => format!("{whole}.{fraction}00e{exponent:+}"),
                    _ => printed,
                };
                self.out.push_str(&spelling);
            }
            Value::Array(items) => {
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.out.push_str(if index > 0 { "," } else { "" });
                    self.value(item);
                }
                self.space();
                self.out.push(']');
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                let turn = self.choose(members.len().max(1));
                members.rotate_left(turn);
                if self.choose(2) == 0 {
                    members.reverse();
                }
                self.out.push('{');
                for (index, (name, value)) in members.into_iter().enumerate() {
                    self.out.push_str(if index > 0 { "," } else { "" });
                    self.space();
                    self.string(name);
                    self.space();
                    self.out.push(':');
                    self.value(value);
                }
                self.space();
                self.out.push('}');
            }
            other => self.out.push_str(&other.to_string()),
        }
        self.space();
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            let must = character < ' ' || character == '"' || character == '\\';
            if must || self.choose(4) == 0 {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(self.out, "\\u{unit:04X}");
                }
            } else {
                self.out.push(character);
            }
        }
        self.out.push('"');
    }
}

proptest! {
    #[test]
    fn reading_the_canonical_form_gives_the_value_back(value in any_value()) {
        let text = canonical(&value);
        prop_assert_eq!(try_read(&text).unwrap(), value);
        prop_assert_eq!(canonical(&try_read(&text).unwrap()), text);
    }

    #[test]
    fn all_spellings_of_a_value_have_one_digest(value in any_value(), choices in prop::collection::vec(any::<u8>(), 1..64)) {
        let text = Scribe::spell(&value, &choices);
        let read = try_read(&text).unwrap();
        prop_assert_eq!(&read, &value, "{}", text);
        let digest = |value: &Value| Digest::of(canonical(value).as_bytes());
        prop_assert_eq!(digest(&read), digest(&value));
    }

    #[test]
    fn a_changed_value_has_another_canonical_form(one in any_value(), other in any_value()) {
        prop_assert_eq!(one == other, canonical(&one) == canonical(&other));
    }

    #[test]
    fn another_canonicaliser_writes_the_same(value in any_value_of_doubles()) {
        prop_assert_eq!(canonical(&value), serde_json_canonicalizer::to_string(&value).unwrap());
    }

    #[test]
    fn what_both_readers_accept_has_one_value(value in any_value(), choices in prop::collection::vec(any::<u8>(), 1..64)) {
        let text = Scribe::spell(&value, &choices);
        let ours = try_read(&text).unwrap();
        let theirs: Value = serde_json::from_str(&text).unwrap();
        prop_assert!(same(&ours, &theirs), "{} {}", ours, theirs);
    }

    #[test]
    fn one_level_and_the_whole_agree(value in any_value(), choices in prop::collection::vec(any::<u8>(), 1..64)) {
        let text = Scribe::spell(&value, &choices);
        let read_raw = |raw: &[u8]| read(raw, &Limits::default()).unwrap();
        match &value {
            Value::Object(_) => {
                let parts = members(text.as_bytes(), &Limits::default()).unwrap();
                let whole = parts.into_iter().map(|(name, raw)| (name, read_raw(raw))).collect();
                prop_assert_eq!(Value::Object(whole), value);
            }
            Value::Array(_) => {
                let parts = items(text.as_bytes(), &Limits::default()).unwrap();
                prop_assert_eq!(parts.into_iter().map(read_raw).collect::<Value>(), value);
            }
            _ => prop_assert!(members(text.as_bytes(), &Limits::default()).is_err()),
        }
    }

    #[test]
    fn a_duplicate_is_found_wherever_it_is(name in any_name(), others in prop::collection::hash_set(any_name(), 0..40), at in any::<prop::sample::Index>(), choices in prop::collection::vec(any::<u8>(), 1..64)) {
        let mut names: Vec<String> = others.into_iter().filter(|other| *other != name).collect();
        names.insert(at.index(names.len() + 1), name.clone());
        names.push(name);
        let spelled: Vec<String> = names.iter().map(|name| Scribe::spell(&json!(name), &choices).trim().to_owned() + ":0").collect();
        let text = format!("{{{}}}", spelled.join(","));
        prop_assert_eq!(try_read(&text).unwrap_err().code, FlawCode::DuplicateKey);
        prop_assert_eq!(members(text.as_bytes(), &Limits::default()).unwrap_err().code, FlawCode::DuplicateKey);
    }

    #[test]
    fn integers_are_exactly_those_of_64_bits(mantissa in any::<i128>(), shift in 0_u32..128, exponent in -6_i32..6, places in 0_usize..4) {
        let mantissa = mantissa >> shift;
        let text = format!("{mantissa}.{}e{exponent}", "0".repeat(places + 1));
        let scale = 10_i128.pow(exponent.unsigned_abs());
        let value = if exponent >= 0 {
            mantissa.checked_mul(scale)
        } else if mantissa % scale == 0 {
            Some(mantissa / scale)
        } else {
            return Ok(());
        };
        let wanted = value.and_then(|value| i64::try_from(value).map(Value::from).or_else(|_| u64::try_from(value).map(Value::from)).ok());
        prop_assert_eq!(try_read(&text).ok(), wanted, "{}", text);
    }

    #[test]
    fn nothing_is_accepted_that_serde_json_rejects(bytes in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..64),
        prop::collection::vec(prop::sample::select(&b"{}[]:,\"\\ue0123456789.-+E tfn/'`\n"[..]), 0..24),
    ]) {
        agrees_with_serde_json(&bytes)?;
    }

    #[test]
    fn no_damage_makes_the_reader_panic_or_accept(value in any_value(), choices in prop::collection::vec(any::<u8>(), 1..64), at in any::<prop::sample::Index>(), byte in any::<u8>(), kind in 0..3) {
        let mut bytes = Scribe::spell(&value, &choices).into_bytes();
        let at = at.index(bytes.len());
        match kind {
            0 => bytes.truncate(at),
            1 => bytes[at] = byte,
            _ => bytes.insert(at, byte),
        }
        agrees_with_serde_json(&bytes)?;
    }
}

fn agrees_with_serde_json(bytes: &[u8]) -> Result<(), TestCaseError> {
    let limits = Limits::default();
    let theirs = serde_json::from_slice::<Value>(bytes);
    match read(bytes, &limits) {
        Ok(value) => prop_assert!(theirs.is_ok(), "{value}"),
        Err(flaw) => {
            prop_assert!(flaw.offset <= bytes.len());
            // Whatever we refuse as malformed, another reader refuses too; the rest is stricter by design.
            if matches!(
                flaw.code,
                FlawCode::Syntax
                    | FlawCode::Truncated
                    | FlawCode::TrailingData
                    | FlawCode::ControlCharacter
                    | FlawCode::LoneSurrogate
                    | FlawCode::CodeFence
            ) {
                prop_assert!(theirs.is_err(), "{}", flaw);
            }
        }
    }
    for accepted in [
        read_arguments(bytes, &limits).is_ok(),
        members(bytes, &limits).is_ok_and(|members| members.iter().all(|(_, raw)| read(raw, &limits).is_ok())),
        items(bytes, &limits).is_ok_and(|items| items.iter().all(|raw| read(raw, &limits).is_ok())),
    ] {
        let blank = bytes.iter().all(u8::is_ascii_whitespace);
        prop_assert!(!accepted || blank || serde_json::from_slice::<Value>(bytes).is_ok());
    }
    Ok(())
}
