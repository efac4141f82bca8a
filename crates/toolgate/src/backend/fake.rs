//! A tool for tests: it answers what it was told to answer, and remembers what it was asked.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::{
    Answer, Backend, Context, Dispatch, Failure, FailureKind, Found, Looking, Lookup, Recording, RecordingFault,
    Running, ToolError,
};
use crate::contract::{Access, Tool};
use crate::refusal::Effect;

/// A tool for tests, which answers by a script and keeps what it was asked. Everything before it is the gate's own: a
/// call that is refused never reaches it.
///
/// ```
/// use serde_json::json;
/// use toolgate::backend::{FakeTool, Step, ToolError};
/// use toolgate::ledger::Store;
/// use toolgate::session::{Principal, Session};
/// use toolgate::{Call, Gate};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let refunds = FakeTool::queue([
///     Step::fails(ToolError::refused("declined", "the bank says no")),
///     Step::gives(json!({ "refund_id": "re_1" })),
/// ]);
/// let contract = json!({
///     "description": "Refund an order.",
///     "effect": "write",
///     "input": { "properties": { "order_id": { "type": "string" } }, "required": ["order_id"] },
///     "output": { "type": "object", "properties": { "refund_id": { "type": "string" } } },
/// });
/// let gate = Gate::builder()
///     .tool(refunds.tool("refund", contract.as_object().cloned().unwrap_or_default()))
///     .policy("permit (principal, action, resource);")
///     .store(Store::memory())
///     .build()?;
/// let session = Session::new(Principal::new("local", "alice"), "acme");
/// let refund = || gate.call(Call::new("call_1", "refund", r#"{"order_id": "ord_1"}"#), &session);
///
/// assert!(!refund().await?.is_ok());
/// assert_eq!(refund().await?.result(), Some(r#"{"refund_id":"re_1"}"#));
/// assert!(refund().await?.replayed(), "the third is the second once more, and the tool is not asked");
/// assert_eq!(refunds.calls(), [json!({ "order_id": "ord_1" }), json!({ "order_id": "ord_1" })]);
/// # Ok(())
/// # }
/// ```
///
/// It is a handle: a clone has the same script and the same memory. One that is asked for more than its script has fails
/// with the signal `no_answer`, as a fault that only the author of the test can mend.
#[derive(Clone)]
pub struct FakeTool {
    fake: Arc<Fake>,
}

struct Fake {
    script: Script,
    seen: Mutex<Vec<Seen>>,
}

/// Where the answers come from.
enum Script {
    /// The same for each call.
    Always(Value),
    /// One after the other.
    InTurn(Mutex<VecDeque<Step>>),
    /// Those that are recorded for the arguments.
    Recorded(Recording),
}

/// How one call of a [`FakeTool`] ends, and when.
#[derive(Debug)]
pub struct Step {
    after: Duration,
    end: Result<Value, ToolError>,
}

/// What a [`FakeTool`] was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The effective arguments.
    pub arguments: Value,
    /// Whether the gate asked for itself, for a fact or to learn what became of a write.
    pub looked_up: bool,
    /// The subject of the session's principal.
    pub user: String,
    /// The tenant of the session.
    pub tenant: String,
    /// The key of the action, which only writes have.
    pub idempotency_key: Option<String>,
}

impl Step {
    /// The call gives this result. In a look-up, `null` is what is not there.
    pub fn gives(result: impl Into<Value>) -> Self {
        Self { after: Duration::ZERO, end: Ok(result.into()) }
    }

    /// The call fails.
    pub fn fails(error: ToolError) -> Self {
        Self { after: Duration::ZERO, end: Err(error) }
    }

    /// It ends so only after this long. The deadline of the contract holds all the same.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { after: delay, ..self }
    }
}

impl FakeTool {
    /// It always gives this result.
    pub fn fixed(result: impl Into<Value>) -> Self {
        Self::of(Script::Always(result.into()))
    }

    /// Its calls and look-ups end so, one after the other.
    pub fn queue(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::of(Script::InTurn(Mutex::new(steps.into_iter().collect())))
    }

    /// It answers what is recorded for equal arguments, in the lines that [`Recording::read`] reads. Arguments that are
    /// not recorded are not there when they are looked up, and a loud failure when they are called.
    ///
    /// Fails with every line that is no recorded answer.
    pub fn recorded(lines: &str) -> Result<Self, Vec<RecordingFault>> {
        Recording::read(lines).map(|recording| Self::of(Script::Recorded(recording)))
    }

    fn of(script: Script) -> Self {
        Self { fake: Arc::new(Fake { script, seen: Mutex::default() }) }
    }

    /// The tool of a contract, given as the keys of one: [`Tool::new`] with this to run it.
    pub fn tool(&self, name: impl Into<String>, keys: Map<String, Value>) -> Tool {
        let fake: Arc<Fake> = Arc::clone(&self.fake);
        Tool::new(name, keys, fake)
    }

    /// A read whose contract comes from the types of its arguments and its result, as that of [`Tool::read`].
    pub fn read<A: JsonSchema, R: JsonSchema>(&self, name: impl Into<String>) -> Tool {
        let fake: Arc<Fake> = Arc::clone(&self.fake);
        Tool::typed::<A, R>(name, Access::Read, fake)
    }

    /// A write whose contract comes from the types of its arguments and its result, as that of [`Tool::write`].
    pub fn write<A: JsonSchema, R: JsonSchema>(&self, name: impl Into<String>) -> Tool {
        let fake: Arc<Fake> = Arc::clone(&self.fake);
        Tool::typed::<A, R>(name, Access::Write, fake)
    }

    /// The arguments of its calls, in the order in which they reached it. Look-ups are not among them.
    pub fn calls(&self) -> Vec<Value> {
        self.seen().into_iter().filter(|seen| !seen.looked_up).map(|seen| seen.arguments).collect()
    }

    /// Everything that it was asked, look-ups too, in the order in which it reached the tool.
    pub fn seen(&self) -> Vec<Seen> {
        self.fake.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Fake {
    /// Notes what was asked and finds the answer to it; `None` where the script has none.
    fn ask(&self, context: &Context, looked_up: bool) -> Option<(Duration, Answer)> {
        let principal = context.session().principal();
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(Seen {
            arguments: Value::Object(context.arguments().clone()),
            looked_up,
            user: principal.subject.clone(),
            tenant: context.session().tenant().to_owned(),
            idempotency_key: context.idempotency_key().map(str::to_owned),
        });
        match &self.script {
            Script::Always(result) => Some((Duration::ZERO, Answer::done(result.to_string()))),
            Script::InTurn(steps) => {
                let step = steps.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
                let answer = match step.end {
                    Ok(result) => Answer::done(result.to_string()),
                    Err(ToolError { failure, effect }) => Answer::failed(effect, failure),
                };
                Some((step.after, answer))
            }
            Script::Recorded(recording) => Some((Duration::ZERO, recording.answer(context.arguments())?.to_answer())),
        }
    }
}

impl Backend for Fake {
    fn run(&self, dispatch: Dispatch) -> Running<'_> {
        let asked = self.ask(dispatch.context(), false);
        Box::pin(async move {
            match asked {
                Some((after, answer)) => {
                    tokio::time::sleep(after).await;
                    answer
                }
                None => {
                    let why = "the fake has no answer to this call";
                    Answer::failed(Effect::None, Failure::new(FailureKind::Broken, "no_answer", why))
                }
            }
        })
    }

    fn look(&self, lookup: Lookup) -> Looking<'_> {
        let asked = self.ask(lookup.context(), true);
        Box::pin(async move {
            let Some((after, answer)) = asked else {
                return match self.script {
                    Script::Recorded(_) => Found::Absent,
                    Script::Always(_) | Script::InTurn(_) => Found::Failed("the fake has no answer to this".into()),
                };
            };
            tokio::time::sleep(after).await;
            match answer.outcome {
                Ok(result) if result == b"null" => Found::Absent,
                Ok(result) => Found::Found(result),
                Err(failure) => Found::Failed(failure.detail),
            }
        })
    }
}

impl fmt::Debug for FakeTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeTool").field("seen", &self.seen().len()).finish_non_exhaustive()
    }
}
