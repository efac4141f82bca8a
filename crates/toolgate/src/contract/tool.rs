//! A tool as it is given to a gate: a name, the keys of its contract, and how it runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Access, typed};
use crate::backend::{Backend, Context, Function, Nothing, ToolError};
use crate::schema::Problem;

/// A tool to declare to a gate.
pub struct Tool {
    pub(super) name: String,
    pub(super) keys: Map<String, Value>,
    pub(super) backend: Arc<dyn Backend>,
    /// What is wrong with it already.
    pub(super) problems: Vec<Problem>,
}

impl Tool {
    /// A tool from the keys of its contract (as in a contract file, as JSON) and what runs it.
    pub fn new(name: impl Into<String>, keys: Map<String, Value>, backend: Arc<dyn Backend>) -> Self {
        Self { name: name.into(), keys, backend, problems: Vec::new() }
    }

    /// A tool that nothing runs, for the reasons that `problems` tell: no gate is built with it, but what else is wrong
    /// is told beside them.
    pub fn broken(name: impl Into<String>, keys: Map<String, Value>, problems: Vec<Problem>) -> Self {
        Self { problems, ..Self::new(name, keys, Arc::new(Nothing)) }
    }

    /// A tool that only looks: the schemas and the description come from the types of the function.
    pub fn read<A, R, F, Fut>(name: impl Into<String>, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        R: Serialize + JsonSchema,
        F: Fn(A, &Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        Self::typed::<A, R>(name, Access::Read, Arc::new(Function::new(function)))
    }

    /// A tool that acts: at most once for equal arguments of one user, unless its [`key`](Self::key) `once` says otherwise.
    pub fn write<A, R, F, Fut>(name: impl Into<String>, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        R: Serialize + JsonSchema,
        F: Fn(A, &Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        Self::typed::<A, R>(name, Access::Write, Arc::new(Function::new(function)))
    }

    /// A tool whose contract comes from two types, and which something else than a function of them runs.
    pub(crate) fn typed<A: JsonSchema, R: JsonSchema>(
        name: impl Into<String>,
        access: Access,
        backend: Arc<dyn Backend>,
    ) -> Self {
        let effect = match access {
            Access::Read => "read",
            Access::Write => "write",
        };
        let (input, problems) = typed::arguments::<A>();
        let description = input.get("description").cloned().unwrap_or_else(|| Value::from(""));
        let keys = Map::from_iter([
            ("description".to_owned(), description),
            ("effect".to_owned(), json!(effect)),
            ("input".to_owned(), input),
            ("output".to_owned(), typed::result::<R>()),
        ]);
        Self { problems, ..Self::new(name, keys, backend) }
    }

    /// What the tool does and when to use it; the doc comment of the arguments' type if not set.
    #[must_use]
    pub fn description(self, text: impl Into<String>) -> Self {
        self.key("description", Value::String(text.into()))
    }

    /// How long a call may take; ten seconds if not set.
    #[must_use]
    pub fn deadline(self, span: Duration) -> Self {
        self.key("deadline", Value::String(format!("{}ms", span.as_millis())))
    }

    /// Tries a call again, up to `attempts` in all, where a failure is known to have had no effect.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Self {
        self.key("retry", json!({ "attempts": attempts }))
    }

    /// Sets one key of the contract, as in a contract file: `once`, `lane`, `resource`, `errors`, ...
    #[must_use]
    pub fn key(mut self, key: impl Into<String>, value: Value) -> Self {
        self.keys.insert(key.into(), value);
        self
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}
