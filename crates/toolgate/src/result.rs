//! Making a tool's value fit to be shown: declared members only, nothing that cannot be seen, within its bound, and
//! still valid. Whatever does not fit is withheld, and the effect is told all the same.

use serde_json::Value;

use crate::contract::{Contract, content};
use crate::json::{self, Limits};
use crate::refusal::{Code, Effect, Refusal};
use crate::reply::{Answer, Outcome};
use crate::schema::{bound_free, inert};

/// Bytes of what a tool says of its failure.
const MOST_WORDS: usize = 2048;
/// Bytes of content blocks before they are bounded: an image that does not fit is replaced, and must be read for that.
const MOST_CONTENT: usize = 16 << 20;

/// The answer that shows the JSON text which a backend gave.
pub(crate) fn read(contract: &Contract, text: &[u8], effect: Effect) -> Answer {
    // A result may be larger than what is shown of it: an array is cut, a member dropped.
    let size = contract.max_result.saturating_mul(4).max(Limits::default().size);
    let size = if contract.yields_content() { size.max(MOST_CONTENT) } else { size };
    let limits = Limits { size, ..Limits::default() };
    match json::read(text, &limits) {
        Ok(value) => fit(contract, value, effect),
        Err(_) => withheld(effect),
    }
}

/// The answer that shows `value`.
pub(crate) fn fit(contract: &Contract, value: Value, effect: Effect) -> Answer {
    let bounded = match &contract.output {
        Some(output) => {
            let mut value = inert(output.project(value));
            if contract.yields_content() && !output.is_valid(&value) {
                value = content::without_strangers(value, output);
            }
            if !output.is_valid(&value) {
                return withheld(effect);
            }
            match contract.yields_content() {
                true => content::bound(value, contract.max_result),
                false => output.bound(value, contract.max_result),
            }
        }
        None => bound_free(inert(value), contract.max_result),
    };
    match bounded {
        Ok(bounded) => {
            let outcome = Outcome::of(&bounded.value, effect, bounded.truncated);
            let outcome = outcome.map(|outcome| outcome.with_content(contract.yields_content()));
            outcome.map_or_else(|| withheld(effect), Answer::Result)
        }
        Err(_) => Answer::Refused(Refusal::new(Code::ResultTooLarge, effect)),
    }
}

/// What a tool said of its failure, as a model may read it; `None` where nothing is left of it.
pub(crate) fn words(said: &str) -> Option<String> {
    let Value::String(mut words) = inert(Value::from(said.trim())) else { return None };
    if words.len() > MOST_WORDS {
        words.truncate(words.floor_char_boundary(MOST_WORDS));
        words.push_str(" [cut]");
    }
    (!words.is_empty()).then_some(words)
}

fn withheld(effect: Effect) -> Answer {
    Answer::Refused(Refusal::new(Code::InvalidResult, effect))
}
