//! A tool as it is given to a gate: a name, the keys of its contract, and how it runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Access, typed};
use crate::backend::{Backend, Context, Function, Keyed, Nothing, ToolError};
use crate::schema::Problem;

/// A tool to declare to a gate.
pub struct Tool {
    pub(super) name: String,
    pub(super) keys: Map<String, Value>,
    pub(super) backend: Arc<dyn Backend>,
    /// Groups of actions that it is in, beside those of its contract.
    pub(super) groups: Vec<String>,
    /// What is wrong with it already.
    pub(super) problems: Vec<Problem>,
}

impl Tool {
    /// A tool from the keys of its contract (as in a contract file, as JSON) and what runs it.
    pub fn new(name: impl Into<String>, keys: Map<String, Value>, backend: Arc<dyn Backend>) -> Self {
        Self { name: name.into(), keys, backend, groups: Vec::new(), problems: Vec::new() }
    }

    /// A tool that nothing runs, for the reasons that `problems` tell: no gate is built with it, but what else is wrong
    /// is told beside them.
    pub fn broken(name: impl Into<String>, keys: Map<String, Value>, problems: Vec<Problem>) -> Self {
        Self { problems, ..Self::new(name, keys, Arc::new(Nothing)) }
    }

    /// A tool that only looks. Its contract comes from the function's types: `A` gives the schema of the arguments and
    /// decodes them, its doc comment is the description, those of its fields describe the arguments; `R` gives the
    /// schema of the results.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::{Deserialize, Serialize};
    /// use toolgate::Tool;
    /// use toolgate::backend::{Context, ToolError};
    ///
    /// /// Look up the stock of an article. Use it before you promise a delivery.
    /// #[derive(Deserialize, JsonSchema)]
    /// struct GetStock {
    ///     /// The number of the article, such as `A-1001`.
    ///     #[schemars(regex(pattern = "^A-[0-9]{4}$"))]
    ///     article: String,
    ///     /// Only what is in this warehouse.
    ///     warehouse: Option<Warehouse>,
    /// }
    ///
    /// #[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
    /// #[serde(rename_all = "snake_case")]
    /// enum Warehouse {
    ///     North,
    ///     South,
    /// }
    ///
    /// #[derive(Serialize, JsonSchema)]
    /// struct Stock {
    ///     pieces: u32,
    /// }
    ///
    /// let get_stock = Tool::read("get_stock", |args: GetStock, context: &Context| {
    ///     let tenant = context.session().tenant().to_owned();
    ///     async move {
    ///         match (tenant.as_str(), args.article.as_str()) {
    ///             ("acme", "A-1001") => Ok(Stock { pieces: 7 }),
    ///             // The text is for the operator. What the model reads stands under `errors`.
    ///             _ => Err(ToolError::refused("unknown_article", "no such article in this tenant's list")),
    ///         }
    ///     }
    /// })
    /// .key("errors", serde_json::json!({
    ///     "unknown_article": { "code": "not_found", "message": "There is no such article." },
    /// }));
    /// ```
    ///
    /// The schema admits only what `A` decodes. It is stricter than serde where serde would drop something: a member
    /// that is not known is refused at every depth, unless the type takes it (`#[serde(flatten)]` of a map), and
    /// neither an alias nor a list in the place of a struct is taken. Integers are bounded as their types are. What a
    /// schema cannot say is a fault of the tool when the gate is built (a map whose keys are integers, integers of 128
    /// bits), or a failure with the signal `decode`, where a hand-written `Deserialize` refuses more than its schema
    /// says: nothing is done then, and the operator must mend it, or the contract's `errors` have words for it.
    pub fn read<A, R, F, Fut>(name: impl Into<String>, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        R: Serialize + JsonSchema,
        F: Fn(A, &Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        Self::typed::<A, R>(name, Access::Read, Arc::new(Function::new(function)))
    }

    /// A tool that acts: at most once for equal arguments of one user, unless its [`key`](Self::key) `once` says
    /// otherwise. Its contract comes from the types, as that of [`Tool::read`].
    ///
    /// A failure says what became of the world: [`ToolError::refused`] and [`ToolError::unavailable`] that nothing did,
    /// [`ToolError::failed`] that nobody knows, and then the call is never run again before it was found out.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::{Deserialize, Serialize};
    /// use toolgate::Tool;
    /// use toolgate::backend::{Context, ToolError};
    ///
    /// /// Send a letter to a customer. It cannot be called back.
    /// #[derive(Deserialize, JsonSchema)]
    /// struct SendLetter {
    ///     customer_id: String,
    ///     #[schemars(length(min = 1, max = 2000))]
    ///     text: String,
    /// }
    ///
    /// #[derive(Serialize, JsonSchema)]
    /// struct Sent {
    ///     letter_id: String,
    /// }
    ///
    /// /// Posts it once for each key, however often it is asked.
    /// async fn post(letter: SendLetter, key: String) -> Result<Sent, std::io::Error> {
    ///     Ok(Sent { letter_id: format!("{}-{}-{}", letter.customer_id, letter.text.len(), key) })
    /// }
    ///
    /// let send_letter = Tool::write("send_letter", |letter: SendLetter, context: &Context| {
    ///     // The same for all attempts of this action: what is sent twice with it is one letter.
    ///     let key = context.idempotency_key().unwrap_or_default().to_owned();
    ///     async move { post(letter, key).await.map_err(|error| ToolError::failed(error.to_string())) }
    /// })
    /// .deadline(std::time::Duration::from_secs(5))
    /// .key("preview", "Letter to {customer_id}: {text}".into());
    /// ```
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

    /// Promises that what is sent twice with the [key](Context::idempotency_key) of one action happens once. A write of
    /// which nobody knows whether it happened may then be tried again, where its `retry` lists the failure.
    ///
    /// ```
    /// # use schemars::JsonSchema;
    /// # use serde::{Deserialize, Serialize};
    /// # use toolgate::Tool;
    /// # use toolgate::backend::{Context, ToolError};
    /// # #[derive(Deserialize, JsonSchema)]
    /// # struct SendLetter { text: String }
    /// # #[derive(Serialize, JsonSchema)]
    /// # struct Sent { letter_id: String }
    /// # async fn post(letter: SendLetter, key: String) -> Result<Sent, std::io::Error> { Ok(Sent { letter_id: key }) }
    /// let send_letter = Tool::write("send_letter", |letter: SendLetter, context: &Context| {
    ///     let key = context.idempotency_key().unwrap_or_default().to_owned();
    ///     // `ToolError::failed` has the signal `failed`: it may have been posted, and is posted again with the same key.
    ///     async move { post(letter, key).await.map_err(|error| ToolError::failed(error.to_string())) }
    /// })
    /// .honours_key()
    /// .key("retry", serde_json::json!({ "attempts": 3, "on": ["503", "failed"] }));
    /// ```
    #[must_use]
    pub fn honours_key(mut self) -> Self {
        self.backend = Arc::new(Keyed(self.backend));
        self
    }

    /// Tries a call again, up to `attempts` in all, where that is provably safe: where a failure is known to have had no
    /// effect, or the tool [honours the key](Self::honours_key) of the action.
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

    /// Puts it into a group of actions that policies can name, such as `upstream:payments`: a word, a colon, a name. Those
    /// of its contract, `read` or `write` and `tag:NAME`, it is in by itself.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}
