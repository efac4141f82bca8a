//! Which records somebody wants to see.

use serde_json::Value;

use super::{BODY, Sealed};
use crate::clock::Millis;
use crate::json;

/// What a record must tell to be wanted; of what is not said, anything. What a text is compared with is the member of
/// the record as it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The tool.
    pub tool: Option<String>,
    /// The tenant.
    pub tenant: Option<String>,
    /// The subject of the principal.
    pub principal: Option<String>,
    /// One of [`KINDS`](super::KINDS).
    pub kind: Option<String>,
    /// The `ref` of an attempt.
    pub reference: Option<String>,
    /// The code of a refusal.
    pub code: Option<String>,
    /// What became of the outside world.
    pub effect: Option<String>,
    /// From this moment on.
    pub since: Option<Millis>,
    /// Before this moment.
    pub until: Option<Millis>,
}

impl Filter {
    /// Whether it wants everything.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it wants this one.
    pub fn takes(&self, record: &Sealed) -> bool {
        if self.is_open() {
            return true;
        }
        let Ok(body) = json::read(record.body.as_bytes(), &BODY) else { return false };
        let says = |place: &str, wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| body.pointer(place).and_then(Value::as_str) == Some(wanted))
        };
        let at = body.get("at").and_then(Value::as_u64).map(Millis);
        let after = |since: Millis| at.is_some_and(|at| at >= since);
        let before = |until: Millis| at.is_some_and(|at| at < until);
        says("/tool", &self.tool)
            && says("/tenant", &self.tenant)
            && says("/principal/subject", &self.principal)
            && says("/kind", &self.kind)
            && says("/ref", &self.reference)
            && says("/code", &self.code)
            && says("/effect", &self.effect)
            && self.since.is_none_or(after)
            && self.until.is_none_or(before)
    }
}
