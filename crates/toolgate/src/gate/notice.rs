//! What the operator of a gate must hear of while it stands, beside the record.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::stage::admit::Admitted;

/// Something that an operator must mend.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Policies could not be evaluated, which counts as a no that they may not have meant.
    PolicyError {
        /// The name of the tool.
        tool: String,
        /// The ids of the policies.
        policies: Vec<String>,
        /// The name of the attempt, under which the record tells of it.
        reference: String,
        /// How many more such calls of this tool there were since the last notice.
        untold: u64,
    },
}

/// Who hears of it.
pub(super) type Tell = dyn Fn(&Notice) + Send + Sync;

/// Tells what it hears, and not more than once in a while of one tool: what a model can repeat must not flood a log.
pub(super) struct Teller {
    tell: Option<Arc<Tell>>,
    /// When each tool was told of last, and of how many calls it was not told since.
    told: Mutex<HashMap<String, (Instant, u64)>>,
}

const ONCE_IN: Duration = Duration::from_secs(60);

impl Teller {
    pub(super) fn new(tell: Option<Arc<Tell>>) -> Self {
        Self { tell, told: Mutex::default() }
    }

    /// Looks at what the stage that asks the policies learned of a call.
    pub(super) fn hear(&self, admitted: &Admitted) {
        let Some(Value::Array(erring)) = admitted.trace().last("permit", "erring") else { return };
        let policies = erring.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        self.erred(&admitted.tool().contract.name, policies, admitted.reference().as_str(), Instant::now());
    }

    fn erred(&self, tool: &str, policies: Vec<String>, reference: &str, now: Instant) {
        let Some(tell) = &self.tell else { return };
        if let Some(untold) = self.is_due(tool, now) {
            let (tool, reference) = (tool.to_owned(), reference.to_owned());
            tell(&Notice::PolicyError { tool, policies, reference, untold });
        }
    }

    /// Of how many calls nothing was told since the last time; `None` where it is too soon.
    fn is_due(&self, tool: &str, now: Instant) -> Option<u64> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match told.get_mut(tool) {
            Some((last, untold)) if now.saturating_duration_since(*last) < ONCE_IN => {
                *untold += 1;
                None
            }
            // There are no more tools than contracts.
            before => {
                let untold = before.map_or(0, |(_, untold)| *untold);
                told.insert(tool.to_owned(), (now, 0));
                Some(untold)
            }
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::PolicyError { tool, policies, reference, untold } = self;
        let subject = if policies.len() == 1 { "the policy" } else { "the policies" };
        write!(f, "{subject} {} could not be evaluated for a call of {tool}, ", policies.join(", "))?;
        write!(f, "which counts as a no (ref {reference})")?;
        match untold {
            0 => Ok(()),
            1 => write!(f, "; so was 1 more call of it since the last word"),
            more => write!(f, "; so were {more} more calls of it since the last word"),
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic"
)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_can_repeat_is_told_once_a_minute_of_each_tool_with_how_often_it_was() {
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let ears = Arc::clone(&heard);
        let teller = Teller::new(Some(Arc::new(move |notice: &Notice| ears.lock().unwrap().push(notice.to_string()))));
        let begun = Instant::now();
        let err = |tool, after| teller.erred(tool, vec!["rule.sum".into()], "ref1", begun + after);
        (0..200).for_each(|_| err("pay", Duration::ZERO));
        err("refund", Duration::ZERO);
        err("pay", ONCE_IN);
        err("refund", ONCE_IN);
        let first = |tool| {
            format!("the policy rule.sum could not be evaluated for a call of {tool}, which counts as a no (ref ref1)")
        };
        let again = format!("{}; so were 199 more calls of it since the last word", first("pay"));
        assert_eq!(*heard.lock().unwrap(), [first("pay"), first("refund"), again, first("refund")]);
    }
}
