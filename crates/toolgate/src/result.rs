//! Making a tool's value fit to be shown: declared members only, nothing that cannot be seen, within its bound, and
//! still valid. Whatever does not fit is withheld, and the effect is told all the same.

use serde_json::Value;

use crate::contract::Contract;
use crate::json::{self, Limits};
use crate::refusal::{Code, Effect, Refusal};
use crate::reply::{Answer, Outcome};
use crate::schema::{bound_free, inert};

/// The answer that shows the JSON text which a backend gave.
pub(crate) fn read(contract: &Contract, text: &[u8], effect: Effect) -> Answer {
    // A result may be larger than what is shown of it: an array is cut, a member dropped.
    let limits =
        Limits { size: contract.max_result.saturating_mul(4).max(Limits::default().size), ..Limits::default() };
    match json::read(text, &limits) {
        Ok(value) => fit(contract, value, effect),
        Err(_) => withheld(effect),
    }
}

/// The answer that shows `value`.
pub(crate) fn fit(contract: &Contract, value: Value, effect: Effect) -> Answer {
    let bounded = match &contract.output {
        Some(output) => {
            let value = inert(output.project(value));
            if !output.is_valid(&value) {
                return withheld(effect);
            }
            output.bound(value, contract.max_result)
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

fn withheld(effect: Effect) -> Answer {
    Answer::Refused(Refusal::new(Code::InvalidResult, effect))
}
