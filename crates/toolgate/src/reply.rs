//! The answer to a model: a result or a refusal, with what became of the outside world.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::call::Ref;
use crate::json::canonical;
use crate::refusal::{Code, Effect, Refusal};
use crate::schema::Truncated;
use crate::trace::Trace;

/// The answer to one call.
#[derive(Debug)]
pub struct Reply {
    call_id: String,
    tool: String,
    reference: Ref,
    first: Option<Ref>,
    answer: Answer,
    trace: Trace,
}

/// What a model must know of a replayed answer: it looks as if something had been done now.
pub(crate) const REPLAYED: &str = "Nothing ran now: this is the stored answer of an earlier, equal call. If it is meant to \
    happen once more, tell the user: that takes another operation id or other arguments.";

/// What a reply says, as it is stored in the ledger and replayed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The result and what was left out of it.
    Result(Outcome),
    /// A refusal; one with effect `done` is stored and replayed like a result.
    Refused(Refusal),
}

/// A result that may be shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The JSON text of the result. INVARIANT (same bytes): a replay shows exactly these.
    pub(crate) result: Box<RawValue>,
    pub(crate) effect: Effect,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) truncated: Vec<Truncated>,
    /// Whether the result is `{"content": [...]}` of MCP's content blocks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) content: bool,
}

impl Outcome {
    /// The outcome that shows `value`; `None` where it has no JSON text.
    pub(crate) fn of(value: &Value, effect: Effect, truncated: Vec<Truncated>) -> Option<Self> {
        let result = RawValue::from_string(canonical(value)).ok()?;
        Some(Self { result, effect, truncated, content: false })
    }

    /// The same outcome, whose result is MCP's content blocks.
    pub(crate) fn with_content(self, content: bool) -> Self {
        Self { content, ..self }
    }
}

impl Answer {
    /// What became of the outside world.
    pub(crate) fn effect(&self) -> Effect {
        match self {
            Self::Result(outcome) => outcome.effect,
            Self::Refused(refusal) => refusal.effect(),
        }
    }

    /// The same, without advice to use a tool that is not there for whoever reads it. The ledger keeps the whole: the
    /// answer may be given again to a session that sees other tools.
    pub(crate) fn advising(self, visible: impl FnOnce(&str) -> bool) -> Self {
        match self {
            Self::Result(outcome) => Self::Result(outcome),
            Self::Refused(refusal) => Self::Refused(refusal.advising(visible)),
        }
    }

    /// The text as the ledger keeps it.
    pub(crate) fn to_stored(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    /// The answer that the ledger kept.
    #[expect(clippy::disallowed_methods, reason = "the text is our own, and its result must keep its bytes")]
    pub(crate) fn from_stored(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl Reply {
    pub(crate) fn new(call_id: String, tool: String, reference: Ref, answer: Answer, trace: Trace) -> Self {
        Self { call_id, tool, reference, first: None, answer, trace }
    }

    /// Marks the reply as the stored one of an earlier occurrence.
    pub(crate) fn replayed_from(mut self, first: Ref) -> Self {
        self.first = Some(first);
        self
    }

    /// The id that the model gave to the call.
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The name of the tool that was meant; as the model wrote it, where there is none.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The name of this attempt.
    pub fn reference(&self) -> &Ref {
        &self.reference
    }

    /// Whether the call succeeded.
    pub fn is_ok(&self) -> bool {
        matches!(self.answer, Answer::Result(_))
    }

    /// The JSON text of the result, if there is one.
    pub fn result(&self) -> Option<&str> {
        match &self.answer {
            Answer::Result(outcome) => Some(outcome.result.get()),
            Answer::Refused(_) => None,
        }
    }

    pub(crate) fn raw_result(&self) -> Option<&RawValue> {
        match &self.answer {
            Answer::Result(outcome) => Some(&outcome.result),
            Answer::Refused(_) => None,
        }
    }

    /// Whether the result is `{"content": [...]}` of MCP's content blocks, from a tool without an output schema of its
    /// own.
    pub fn is_content(&self) -> bool {
        matches!(&self.answer, Answer::Result(outcome) if outcome.content)
    }

    /// The name of the attempt whose stored reply this is.
    pub fn first_reference(&self) -> Option<&Ref> {
        self.first.as_ref()
    }

    /// What must be known of the answer beside it, in words: that nothing ran now, where it is replayed.
    pub fn note(&self) -> Option<&'static str> {
        self.replayed().then_some(REPLAYED)
    }

    /// What was left out of the result to keep its bound.
    pub fn truncated(&self) -> &[Truncated] {
        match &self.answer {
            Answer::Result(outcome) => &outcome.truncated,
            Answer::Refused(_) => &[],
        }
    }

    /// The refusal, if there is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.answer {
            Answer::Result(_) => None,
            Answer::Refused(refusal) => Some(refusal),
        }
    }

    /// The code of the refusal, if there is one.
    pub fn code(&self) -> Option<Code> {
        self.refusal().map(Refusal::code)
    }

    /// What became of the outside world.
    pub fn effect(&self) -> Effect {
        self.answer.effect()
    }

    /// Whether this is the stored reply of an earlier, equal call.
    pub fn replayed(&self) -> bool {
        self.first.is_some()
    }

    /// What every stage learned, for the operator; never part of what a model reads.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }
}

impl Serialize for Reply {
    /// The object that a model reads.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("ok", &self.is_ok())?;
        match &self.answer {
            Answer::Result(outcome) => {
                map.serialize_entry("result", &outcome.result)?;
                if !outcome.truncated.is_empty() {
                    map.serialize_entry("truncated", &outcome.truncated)?;
                }
                map.serialize_entry("effect", &outcome.effect)?;
                map.serialize_entry("replayed", &self.replayed())?;
                map.serialize_entry("ref", &self.reference)?;
            }
            Answer::Refused(refusal) => {
                map.serialize_entry("error", &Referred { refusal, reference: &self.reference })?;
                if self.replayed() {
                    map.serialize_entry("replayed", &true)?;
                }
            }
        }
        if let Some(first) = &self.first {
            map.serialize_entry("first_ref", first)?;
        }
        if let Some(note) = self.note() {
            map.serialize_entry("note", note)?;
        }
        map.end()
    }
}

/// A refusal with the name of its attempt.
#[derive(Serialize)]
struct Referred<'a> {
    #[serde(flatten)]
    refusal: &'a Refusal,
    #[serde(rename = "ref")]
    reference: &'a Ref,
}
