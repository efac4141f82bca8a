//! What policies would have refused, as records tell it: of calls that went on because those were only observed.

use serde_json::Value;

use super::Sealed;
use crate::clock::Millis;

/// A call whose policies were only observed, as the record tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The name of the attempt.
    pub reference: String,
    /// When it was recorded.
    pub at: Millis,
    /// The name of the tool.
    pub tool: String,
    /// What its policies would have refused; nothing where they permitted it.
    pub would_refuse: Option<WouldRefuse>,
}

/// What would have become of a call, had its policies been enforced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WouldRefuse {
    /// The code of the refusal.
    pub code: String,
    /// The rule that its caller would have been told, or all that ask for consent.
    pub rules: Vec<String>,
    /// Why, for the operator.
    pub why: String,
}

impl Observed {
    /// The observed call that a record tells of. `None` where it tells of none, of one whose policies were enforced, of one
    /// that was only tried, or of how one ended whose beginning is told by another record.
    pub fn of(record: &Sealed) -> Option<Self> {
        let body = record.told()?;
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        match text("kind")? {
            "intent" | "read" | "refusal" | "replay" => {}
            _ => return None,
        }
        let stages = body.get("stages").and_then(Value::as_array)?;
        let is_permit = |stage: &&Value| stage.get("stage").and_then(Value::as_str) == Some("permit");
        let permit = stages.iter().rev().find(is_permit)?;
        permit.get("mode").filter(|mode| mode.as_str() == Some("observe"))?;
        Some(Self {
            reference: record.reference.clone(),
            at: Millis(body.get("at")?.as_u64()?),
            tool: text("tool")?.to_owned(),
            would_refuse: body.get("would_refuse").and_then(WouldRefuse::of),
        })
    }
}

impl WouldRefuse {
    fn of(told: &Value) -> Option<Self> {
        let text = |name: &str| told.get(name).and_then(Value::as_str).map(str::to_owned);
        let listed = told.get("rules").and_then(Value::as_array).into_iter().flatten();
        let listed = listed.filter_map(Value::as_str).map(str::to_owned);
        let rules = text("rule").map_or_else(|| listed.collect(), |rule| vec![rule]);
        Some(Self { code: text("code")?, rules, why: text("why").unwrap_or_default() })
    }
}
