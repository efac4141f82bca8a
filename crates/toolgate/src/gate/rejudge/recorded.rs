//! A call as the record tells of it.

use serde_json::{Map, Value};

use super::Decided;
use crate::audit::Sealed;
use crate::clock::Millis;
use crate::json::Digest;
use crate::runs::{RunState, Tracked};
use crate::session::{Principal, Session};

/// A call as the record tells of it: who asked for what, what was known, and what was decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    reference: String,
    at: Millis,
    tool: String,
    tenant: String,
    principal: Principal,
    roles: Option<Vec<String>>,
    run: String,
    contract: Option<Digest>,
    arguments: Option<Map<String, Value>>,
    facts: Map<String, Value>,
    /// What the ledger knew of the action; nothing of a read.
    recall: Option<String>,
    /// What the policies of its day read of its run.
    known: Map<String, Value>,
    ended: Ended,
}

/// How far a call came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Policies decided it.
    Decided(Decided),
    /// It was refused before any policy was asked, with this code.
    Before(String),
    /// It named an approval that was not one of it, so that no policy was asked.
    Unasked,
}

impl Recorded {
    /// The call that a record tells of. `None` where it tells of none, of one that was only tried, or of how one ended whose
    /// beginning is told by another record.
    pub fn of(record: &Sealed) -> Option<Self> {
        let body = record.told()?;
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        match text("kind")? {
            "intent" | "read" | "refusal" | "replay" | "proposal" => {}
            _ => return None,
        }
        let stage = |name: &str| {
            let stages = body.get("stages").and_then(Value::as_array)?;
            stages.iter().rev().find(|stage| stage.get("stage").and_then(Value::as_str) == Some(name))
        };
        let admitted = stage("admit");
        let principal = body.get("principal")?;
        let of_principal = |name: &str| principal.get(name).and_then(Value::as_str);
        let ended = match stage("permit") {
            Some(permit) => decided(permit, &body)?,
            None => Ended::Before(text("code")?.to_owned()),
        };
        let contract = text("contract").or_else(|| admitted?.get("contract")?.as_str());
        let facts = stage("inform").and_then(|inform| inform.get("facts")?.as_object());
        let recall = stage("inform").and_then(|inform| inform.get("recall")?.as_str());
        let known = stage("inform").and_then(|inform| inform.get("session")?.as_object());
        Some(Self {
            reference: record.reference.clone(),
            at: Millis(body.get("at")?.as_u64()?),
            tool: text("tool")?.to_owned(),
            tenant: text("tenant")?.to_owned(),
            principal: Principal::new(of_principal("issuer")?, of_principal("subject")?),
            roles: body.get("roles").and_then(Value::as_array).map(|roles| texts(roles)),
            run: text("run").unwrap_or("default").to_owned(),
            contract: contract.and_then(|hex| hex.parse().ok()),
            arguments: body.get("arguments").and_then(Value::as_object).cloned(),
            facts: facts.cloned().unwrap_or_default(),
            recall: recall.map(str::to_owned),
            known: known.cloned().unwrap_or_default(),
            ended,
        })
    }

    /// The name of the attempt.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// When it was recorded.
    pub fn at(&self) -> Millis {
        self.at
    }

    /// The name of the tool.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Whose call it was.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The tenant that they acted for.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// How far it came.
    pub fn ended(&self) -> &Ended {
        &self.ended
    }

    /// The effective arguments, where it was admitted and the operator keeps them.
    pub fn arguments(&self) -> Option<&Map<String, Value>> {
        self.arguments.as_ref()
    }

    /// What had been looked up.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// The session as it was, where the record tells its roles.
    pub(super) fn session(&self) -> Option<Session> {
        let session = Session::new(self.principal.clone(), self.tenant.as_str()).in_run(self.run.as_str());
        Some(self.roles.as_ref()?.iter().fold(session, |session, role| session.role(role.as_str())))
    }

    /// What the run had done and read then, where the record tells all of it that is read today.
    pub(super) fn run(&self, reads: Tracked) -> Option<RunState> {
        let tells = |is_read: bool, name: &str| !is_read || self.known.contains_key(name);
        let whole = tells(reads.completed, "completed") && tells(reads.calls, "calls") && tells(reads.labels, "labels");
        whole.then(|| serde_json::from_value(Value::Object(self.known.clone())).ok())?
    }

    /// The digest of the contract that it was held to.
    pub(super) fn contract(&self) -> Option<Digest> {
        self.contract
    }

    /// Whether something would have run, had it been permitted.
    pub(super) fn would_run(&self) -> bool {
        !matches!(self.recall.as_deref(), Some("replay" | "conflict"))
    }
}

/// What the stage that asks the policies told.
fn decided(permit: &Value, body: &Value) -> Option<Ended> {
    let text = |name: &str| permit.get(name).and_then(Value::as_str);
    let Some(code) = text("refused") else {
        let by = permit.get("permitted_by").and_then(Value::as_array).map(|by| texts(by)).unwrap_or_default();
        // It was permitted by consent: the policies had asked for one.
        return Some(Ended::Decided(match permit.get("approval") {
            Some(_) => Decided::NeedsApproval { rules: Vec::new() },
            None => Decided::Permitted { by },
        }));
    };
    let why = text("why").unwrap_or_default();
    Some(Ended::Decided(match code {
        "approval_required" => {
            let listed = body.get("rules").and_then(Value::as_array).map(|rules| texts(rules));
            let told = || why.trim_start_matches("asked by ").split(", ").map(str::to_owned).collect();
            let mut rules = listed.unwrap_or_else(told);
            rules.sort();
            Decided::NeedsApproval { rules }
        }
        "rule_failed" => Decided::Rule { rule: body.get("rule").and_then(Value::as_str)?.to_owned() },
        "forbidden" => Decided::Forbidden { why: why.to_owned() },
        "approval_invalid" => return Some(Ended::Unasked),
        other => return Some(Ended::Before(other.to_owned())),
    }))
}

fn texts(values: &[Value]) -> Vec<String> {
    values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
