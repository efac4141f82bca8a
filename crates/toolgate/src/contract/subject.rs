//! Whose personal data a call carries: what can be erased together.

use serde_json::{Map, Value};

use super::{Contract, Registered};
use crate::json::canonical;
use crate::schema::{Mark, Schema};
use crate::session::Session;
use crate::template::Scope;

impl Contract {
    /// The strongest mark of its arguments and results.
    pub(super) fn mark(&self) -> Option<Mark> {
        self.input.mark().max(self.output_mark())
    }

    pub(super) fn output_mark(&self) -> Option<Mark> {
        self.output.as_ref().and_then(Schema::mark)
    }
}

/// The name of whoever's personal data the call carries, within the tenant: the one that the contract's `subject` says,
/// else whoever asks. `None` where the tool marks nothing as personal.
pub(crate) fn subject_of(tool: &Registered, arguments: &Map<String, Value>, session: &Session) -> Option<String> {
    if tool.mark != Some(Mark::Personal) {
        return None;
    }
    let said = tool.contract.subject.as_ref().and_then(|subject| subject.fill(Scope::new(arguments, session)));
    Some(match said {
        Some(Value::String(name)) => name,
        Some(other) => canonical(&other),
        None => session.principal().subject.clone(),
    })
}
