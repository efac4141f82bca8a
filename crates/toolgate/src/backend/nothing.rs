//! What stands in the place of a backend that could not be made.

use super::{Answer, Backend, Dispatch, Failure, FailureKind, Found, Looking, Lookup, Running};
use crate::refusal::Effect;

/// Runs nothing. No gate holds a tool with it.
pub(crate) struct Nothing;

const WHY: &str = "the tool has no backend";

impl Backend for Nothing {
    fn run(&self, _: Dispatch) -> Running<'_> {
        Box::pin(async { Answer::failed(Effect::None, Failure::new(FailureKind::Unavailable, "connect", WHY)) })
    }

    fn look(&self, _: Lookup) -> Looking<'_> {
        Box::pin(async { Found::Failed(WHY.into()) })
    }
}
