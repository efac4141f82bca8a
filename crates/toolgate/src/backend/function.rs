//! Tools that are async functions of this process.

use std::pin::Pin;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Answer, Backend, Context, Dispatch, Failure, FailureKind, Found, Looking, Lookup, Running};
use crate::refusal::Effect;

/// A failure of a function tool. Its text is for the operator and the record, never for the model.
#[derive(Debug, thiserror::Error)]
#[error("{}", failure.detail)]
pub struct ToolError {
    pub(super) failure: Failure,
    pub(super) effect: Effect,
}

/// What a function gives back, once its types are erased.
type Work = Pin<Box<dyn Future<Output = Result<Vec<u8>, ToolError>> + Send>>;

/// A function with its types erased.
pub(crate) struct Function {
    call: Arc<dyn Fn(Context) -> Result<Work, ToolError> + Send + Sync>,
}

impl ToolError {
    /// It failed, and whether it had an effect is not known.
    pub fn failed(detail: impl Into<String>) -> Self {
        Self { failure: Failure::new(FailureKind::Reported, "failed", detail), effect: Effect::Unknown }
    }

    /// It failed before it could have any effect. `signal` is what the contract's `[errors]` call it.
    pub fn refused(signal: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { failure: Failure::new(FailureKind::Reported, signal, detail), effect: Effect::None }
    }

    /// It could not be tried now, and had no effect; `[retry]` knows it as `503`.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self { failure: Failure::new(FailureKind::Unavailable, "503", detail), effect: Effect::None }
    }
}

impl Function {
    pub(crate) fn new<A, R, F, Fut>(function: F) -> Self
    where
        A: DeserializeOwned,
        R: Serialize,
        F: Fn(A, &Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        let call = move |context: Context| -> Result<Work, ToolError> {
            let work = function(decode(&context.arguments)?, &context);
            Ok(Box::pin(async move { encode(&work.await?) }))
        };
        Self { call: Arc::new(call) }
    }
}

impl Backend for Function {
    fn run(&self, dispatch: Dispatch) -> Running<'_> {
        Box::pin(async move {
            let done = match (self.call)(dispatch.into_context()) {
                Ok(work) => work.await,
                Err(error) => Err(error),
            };
            match done {
                Ok(result) => Answer::done(result),
                Err(error) => Answer::failed(error.effect, error.failure),
            }
        })
    }

    fn look(&self, lookup: Lookup) -> Looking<'_> {
        Box::pin(async move {
            let found = match (self.call)(lookup.into_context()) {
                Ok(work) => work.await,
                Err(error) => Err(error),
            };
            match found {
                Ok(result) if result == b"null" => Found::Absent,
                Ok(result) => Found::Found(result),
                Err(error) => Found::Failed(error.failure.detail),
            }
        })
    }
}

/// The schema and the decoder come from one type, so this fails only where the type's own `Deserialize` refuses what no
/// schema of it says. It is a fault of the tool, and the model cannot mend it, unless the contract has words for it:
/// `errors.decode`.
fn decode<A: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<A, ToolError> {
    A::deserialize(arguments).map_err(|error| {
        let detail = format!("the schema admits arguments that the Rust type does not take: {error}");
        ToolError { failure: Failure::new(FailureKind::Broken, "decode", detail), effect: Effect::None }
    })
}

/// What the function did is done, whether or not its result can be told.
fn encode<R: Serialize>(result: &R) -> Result<Vec<u8>, ToolError> {
    serde_json::to_vec(result).map_err(|error| {
        let detail = format!("the result has no JSON form: {error}");
        ToolError { failure: Failure::new(FailureKind::Broken, "encode", detail), effect: Effect::Done }
    })
}
