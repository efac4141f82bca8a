//! What a call carries, sealed: it cannot be read without the gate's key, nor taken for what belongs to another action.

use serde_json::Value;

use super::super::EntryKey;
use super::super::rows::Stored;
use super::trouble::{damaged, unstorable};
use crate::json::{self, Limits};
use crate::vault::{GateKey, Salt, Seal};

/// Wide enough for all that is written: arguments, facts and answers have limits of their own.
const TEXT: Limits = Limits { size: 256 << 20, depth: 512, members: 10_000_000 };

/// From here on a double is an integer that no 64 bits hold.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// The key of a ledger, at work.
pub(super) struct Vault {
    key: GateKey,
    seal: Seal,
}

/// Where a sealed text belongs: a part of one attempt at one action.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) key: EntryKey,
    pub(super) attempt: u32,
    pub(super) part: Part,
}

#[derive(Clone, Copy)]
pub(super) enum Part {
    /// The arguments and the facts.
    Contents,
    Answer,
}

impl Vault {
    pub(super) fn new(key: GateKey) -> Self {
        let seal = key.seal();
        Self { key, seal }
    }

    pub(super) fn key(&self) -> &GateKey {
        &self.key
    }

    /// Seals a text, for whoever the salt is of.
    pub(super) fn seal(&self, place: Place, salt: Option<&Salt>, text: &str) -> Stored<Vec<u8>> {
        let sealed = match salt {
            None => self.seal.seal(&place.bytes(), text.as_bytes()),
            Some(salt) => self.key.seal_of(salt).seal(&place.bytes(), text.as_bytes()),
        };
        Ok(sealed?)
    }

    pub(super) fn open(&self, place: Place, salt: Option<&Salt>, sealed: &[u8]) -> Stored<String> {
        let opened = match salt {
            None => self.seal.open(&place.bytes(), sealed),
            Some(salt) => self.key.seal_of(salt).open(&place.bytes(), sealed),
        };
        String::from_utf8(opened.map_err(|_| damaged())?).map_err(|_| damaged())
    }
}

impl Place {
    fn bytes(self) -> Vec<u8> {
        let part = match self.part {
            Part::Contents => b"contents".as_slice(),
            Part::Answer => b"answer",
        };
        [self.key.as_bytes().as_slice(), &self.attempt.to_be_bytes(), part].concat()
    }
}

/// The text of arguments and facts. INVARIANT (readable): [`read`] makes the same values of it, or it is refused here:
/// nothing may run under an entry that could not be read back.
pub(super) fn print(arguments: &Value, facts: &Value) -> Stored<String> {
    let mut members = TEXT.members;
    // One bracket of the depth is the list around both.
    let depth = TEXT.depth - 1;
    if !readable(arguments, depth, &mut members) || !readable(facts, depth, &mut members) {
        return Err(unstorable());
    }
    // Not the canonical form: members keep their order.
    let text = serde_json::to_string(&[arguments, facts]).map_err(|_| unstorable())?;
    if text.len() > TEXT.size { Err(unstorable()) } else { Ok(text) }
}

pub(super) fn read(text: &str) -> Stored<(Value, Value)> {
    match json::read(text.as_bytes(), &TEXT) {
        Ok(Value::Array(mut both)) => match (both.pop(), both.pop(), both.pop()) {
            (Some(facts), Some(arguments), None) => Ok((arguments, facts)),
            _ => Err(damaged()),
        },
        Ok(_) | Err(_) => Err(damaged()),
    }
}

/// Whether the strict reader takes what is printed of this value: any text is fine, and so is every number but an integer
/// beyond 64 bits.
fn readable(value: &Value, depth: usize, members: &mut usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number.is_i64() || number.is_u64() || number.as_f64().is_some_and(is_kept),
        Value::Array(items) => depth > 0 && items.iter().all(|item| readable(item, depth - 1, members)),
        Value::Object(object) => {
            let Some(left) = members.checked_sub(object.len()).filter(|_| depth > 0) else { return false };
            *members = left;
            object.values().all(|value| readable(value, depth - 1, members))
        }
    }
}

fn is_kept(double: f64) -> bool {
    double.is_finite() && double.abs() < TOO_LARGE
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::json::canonical;

    /// Any value that the strict reader can make, and some that it cannot.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            (-1e6..1e6_f64).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_printed_can_be_read_and_says_the_same(arguments in value(), facts in value()) {
            if let Ok(text) = print(&arguments, &facts) {
                let (read_arguments, read_facts) = read(&text).unwrap();
                prop_assert_eq!(canonical(&read_arguments), canonical(&arguments));
                prop_assert_eq!(canonical(&read_facts), canonical(&facts));
            }
        }

        #[test]
        fn what_was_read_is_never_refused_and_comes_back_equal(arguments in value()) {
            if let Ok(value) = json::read(canonical(&arguments).as_bytes(), &Limits::MOST) {
                prop_assert_eq!(read(&print(&value, &Value::Null).unwrap()).unwrap(), (value, Value::Null));
            }
        }
    }

    #[test]
    fn what_could_not_be_read_back_is_refused() {
        let deep = |depth| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        assert!(print(&deep(511), &Value::Null).is_ok_and(|text| read(&text).is_ok()));
        assert!(print(&deep(512), &Value::Null).is_err());
        assert!(print(&json!({"a": [1e300]}), &Value::Null).is_err());
    }
}
